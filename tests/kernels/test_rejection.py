"""Draws by rejection: machine code gives NumPy's bits, and no draw depends on any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels.cpu import loops
from funct.kernels.cpu.random import rejection as cpu
from funct.kernels.random import elementary
from funct.kernels.random.attempts import gamma_attempt, gamma_terms, poisson_attempt
from funct.kernels.random.bits import fold_in, seed, split, threefry2x32
from funct.kernels.random.rejection import TAGS, plain
from funct.settings import config
from tests.kernels.arrays import agree

DOUBLE, SINGLE, LONG = (np.dtype(d) for d in (np.float64, np.float32, np.int64))
DTYPES = {"gamma": DOUBLE, "log_gamma": DOUBLE, "poisson": LONG}
PARAMETERS = [0.0, 1e-300, 1e-3, 0.3, 0.999, 1.0, 3.0, 9.9, 10.0, 10.1, 80.0, 1e6, 1e15, 1e300]
SPECIAL = [*PARAMETERS, -1.0, np.nan, np.inf, -np.inf, -0.0]

each = pytest.mark.parametrize("kind", DTYPES)
compiled = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")


def same(a: Any, b: Any) -> None:
    """Equal in shape, dtype and bits."""
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    np.testing.assert_array_equal(a, b)


def both(keys: Any, a: Any, shape: Any, dtype: Any, kind: str) -> Any:
    """What NumPy draws, which machine code draws too."""
    expected = plain(keys, np.asarray(a, DOUBLE), shape, dtype, TAGS[kind], kind)
    if loops.available():
        same(cpu.drawn(keys, np.asarray(a, DOUBLE), shape, dtype, TAGS[kind], kind), expected)
    return expected


@each
@given(st.lists(st.integers(0, 3), max_size=2).map(tuple), st.integers(0, 70), st.integers(0, 99))
def test_machine_code_gives_the_bits_of_numpy(kind: str, batch: Any, n: int, value: int) -> None:
    """For any number of keys and of draws, one parameter or many."""
    rng = np.random.default_rng(value)
    keys = rng.integers(0, 2**32, (*batch, 2), np.uint32)[..., ::-1]
    both(keys, rng.choice(SPECIAL), (n,), DTYPES[kind], kind)
    both(keys, rng.choice(SPECIAL, (n, 1)), (n, 1), DTYPES[kind], kind)


@pytest.mark.parametrize("a", SPECIAL)
def test_every_parameter(a: float) -> None:
    """Machine code and NumPy agree, in each dtype; draws are in the domain or say that there is
    none.
    """
    key = seed(3)
    x, logs = (both(key, a, (500,), DOUBLE, kind) for kind in ("gamma", "log_gamma"))
    with np.errstate(over="ignore"):
        same(both(key, a, (500,), SINGLE, "gamma"), x.astype(SINGLE))
    counts = both(key, a, (500,), LONG, "poisson")
    for dtype in ("int8", "uint16", "int32", "uint64"):
        most = min(np.iinfo(dtype).max, 2**63 - 1)
        same(
            both(key, a, (500,), np.dtype(dtype), "poisson"), np.minimum(counts, most).astype(dtype)
        )
    if a < 0 or a != a:
        assert np.isnan(x).all()
        assert np.isnan(logs).all()
        assert (counts == -1).all()
        return
    assert (x >= 0).all()
    assert (counts >= 0).all()
    assert np.isneginf(logs).all() == (a == 0)
    if a == 0:
        assert not x.any()
        assert not counts.any()
    elif a == np.inf:
        assert np.isposinf(x).all()
        assert np.isposinf(logs).all()
    else:
        assert np.isfinite(x).all()
        assert np.isfinite(logs).all()


@each
def test_draws_depend_on_key_and_position_alone(kind: str) -> None:
    """Not on how many others there are, nor on the other parameters, nor on other keys."""
    rng, keys = np.random.default_rng(0), split(seed(1), 30)
    a = rng.uniform(0, 20, (30, 40))
    many = both(keys, a, (40,), DTYPES[kind], kind)
    for i in (0, 7, 29):
        same(both(keys[i], a[i], (40,), DTYPES[kind], kind), many[i])
        same(both(keys[i], a[i, :3], (3,), DTYPES[kind], kind), many[i, :3])
        same(both(keys[i], a[i, 0], (40,), DTYPES[kind], kind)[:1], many[i, :1])


@compiled
@each
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_bits_depend_on_no_number_of_threads(kind: str, threads: int) -> None:
    """Cut in tasks, the draws stay."""
    for keys, n in ((seed(7), 50_003), (split(seed(9), 5000), 7)):
        shape = (*keys.shape[:-1], n)
        a = np.random.default_rng(1).uniform(0, 20, shape)
        with config.using(threads=threads):
            made = cpu.drawn(keys, a, (n,), DTYPES[kind], TAGS[kind], kind)
        same(made, plain(keys, a, (n,), DTYPES[kind], TAGS[kind], kind))


@compiled
@each
@pytest.mark.parametrize(("rows", "n"), [(1, 1), (1, 40), (1, 1100), (3, 5)])
def test_no_index_leaves_its_array(kind: str, rows: int, n: int) -> None:
    """Run as Python, the kernel stays inside and gives what the machine code gives."""
    keys, rng = split(seed(2), rows), np.random.default_rng(n)
    for a in (np.asarray(0.7), rng.uniform(0.2, 20.0, (rows, n))):
        y, room = np.zeros((rows, n), DTYPES[kind]), np.zeros(cpu.ROOM, np.int64)
        agree(cpu.draw, keys, a, y, room, n, n * rows, TAGS[kind], rows == 1, a.size == 1, kind, 1)


@pytest.mark.parametrize("tag", [*TAGS.values(), TAGS["gamma"] + 1])
def test_streams_are_no_keys_of_users(tag: int) -> None:
    """Keys of streams differ from each other, from parts of a split and from folded keys."""
    key = seed(11)
    streams = np.stack(threefry2x32(*key, np.uint32(tag), np.arange(400, dtype=np.uint32)), -1)
    own = np.concatenate([split(key, 4000), [fold_in(key, tag)]])
    whole = np.concatenate([streams, own]).astype(np.uint64) @ np.asarray([2**32, 1], np.uint64)
    assert len(np.unique(whole)) == len(whole)


WORDS = np.asarray([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)


@pytest.mark.parametrize("a", [1e-3, 0.5, 1.0, 9.0, 1e6])
def test_extreme_words(a: float) -> None:
    """What the words at the ends make is finite, or is not accepted."""
    grid = [g.reshape(-1) for g in np.meshgrid(*[WORDS] * 6)]
    pairs = list(zip(grid[::2], grid[1::2], strict=True))
    parameters = np.full(grid[0].size, a)
    with np.errstate(all="ignore"):
        for logarithm in (False, True):
            x, accepted = gamma_attempt(*pairs, gamma_terms(parameters, logarithm), logarithm)
            assert accepted.any()
            assert np.isfinite(x[accepted]).all()
        for mean in (a, a + 10.0):
            count, accepted = poisson_attempt(*pairs[:2], np.full(grid[0].size, mean))
            assert accepted.any()
            near = 60 * (mean**0.5 + 1)  # the outermost count is less likely than 2**-106
            assert (np.abs(count[accepted] - mean) < near).all()


def test_elementary_functions() -> None:
    """Logarithm and exponential err by a unit in the last place or two, x - log(1 + x) by more
    where 1 + x is next to √2.
    """
    mpmath = pytest.importorskip("mpmath", reason="mpmath is the oracle of this test")
    rng = np.random.default_rng(0)
    positive = np.exp(np.concatenate([rng.uniform(-700, 700, 300), rng.normal(0, 1e-6, 100)]))
    small = np.concatenate([rng.normal(0, 10.0**-k, 60) for k in range(1, 12)])
    shifted = np.concatenate([small, rng.uniform(-0.9999, 3.0, 200), positive[:300] ** 0.1])
    negative = -np.concatenate([rng.uniform(0, 708, 300), 10.0 ** rng.uniform(-9, 0, 100)])
    with mpmath.workdps(60), np.errstate(all="ignore"):
        for function, x, exact, error in (
            (elementary.log, positive, mpmath.log, 4e-16),
            (elementary.exp, negative, mpmath.exp, 4e-16),
            (elementary.excess, shifted, lambda v: v - mpmath.log1p(v), 3e-15),
        ):
            expected = [exact(mpmath.mpf(float(v))) for v in x]
            errors = [abs(float((mpmath.mpf(float(y)) - e) / e)) if e else 0.0
                      for y, e in zip(function(x), expected, strict=True)]  # fmt: skip
            assert max(errors) < error, function
        ends = elementary.exp(np.asarray([0.0, -0.0, -740.0, -746.0, -1e300, -np.inf]))
    np.testing.assert_array_equal(ends, np.exp([0.0, -0.0, -740.0, -746.0, -1e300, -np.inf]))
