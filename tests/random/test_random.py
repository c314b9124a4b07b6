"""Random numbers: pure functions of the key, the right distributions, the same bits for ever."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import random
from funct.errors import DTypeError, ShapeError
from tests import laws

N = 100_000
KEY = random.key(42)

DRAWS: dict[str, Any] = {
    "bits": lambda k: random.bits(k, (5,)),
    "uniform": lambda k: random.uniform(k, (5,)),
    "uniform32": lambda k: random.uniform(k, (5,), dtype="float32", minval=-1.0, maxval=3.0),
    "normal": lambda k: random.normal(k, (2, 3)),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (7,)),
    "exponential": lambda k: random.exponential(k, (5,)),
    "gumbel": lambda k: random.gumbel(k, (5,)),
    "laplace": lambda k: random.laplace(k, (5,)),
    "randint": lambda k: random.randint(k, (5,), -3, 9),
    "permutation": lambda k: random.permutation(k, 6),
    "choice": lambda k: random.choice(k, 9, (4,), replace=False),
    "choice_with_replacement": lambda k: random.choice(k, xp.asarray([3.0, 1.0, 2.0]), (4,)),
    "categorical": lambda k: random.categorical(k, xp.asarray([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]])),
    "split": lambda k: random.split(k, 3),
    "fold_in": lambda k: random.fold_in(k, 7),
}
each = pytest.mark.parametrize("name", DRAWS)

# The first numbers of each draw from key(42). A change breaks every stored result of every user.
GOLDEN: dict[str, Any] = {
    "bits": ("uint32", [2098992034, 2919706841, 2646866425, 2409546199, 1935504149]),
    "uniform": (
        "float64",
        [
            0.4267275666499091,
            0.015010069515314584,
            0.5741444178995353,
            0.729818896904631,
            0.6878003412305661,
        ],
    ),
    "uniform32": (
        "float32",
        [
            0.9548385143280029,
            1.7191886901855469,
            1.4650862216949463,
            1.2440645694732666,
            0.8025786876678467,
        ],
    ),
    "normal": (
        "float64",
        [
            [0.18471174528191153, 2.1698245603977537, -1.4456021053773231],
            [-0.7394434049692936, -0.8860312600794714, -1.0627937734803894],
        ],
    ),
    "bernoulli": ("bool", [False, True, False, False, False, False, False]),
    "exponential": (
        "float64",
        [
            0.5563942243855916,
            0.015123860720489336,
            0.853654999343199,
            1.3086627926324104,
            1.1641123638884818,
        ],
    ),
    "gumbel": (
        "float64",
        [
            0.5862781993145619,
            4.191481602167415,
            0.1582281488500173,
            -0.2690058468907008,
            -0.1519588772005214,
        ],
    ),
    "laplace": (
        "float64",
        [
            1.3552570825679306,
            0.7922070934058772,
            -0.061755641412818904,
            0.3887083374145265,
            -3.0993986655189283,
        ],
    ),
    "randint": ("int64", [-2, 1, 4, -2, 7]),
    "permutation": ("int64", [1, 0, 2, 5, 4, 3]),
    "choice": ("int64", [1, 8, 0, 2]),
    "choice_with_replacement": ("float64", [1.0, 1.0, 1.0, 1.0]),
    "categorical": ("int64", [1, 2]),
    "split": ("uint32", [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]]),
    "fold_in": ("uint32", [2547012911, 1371500959]),
}


@each
def test_golden(name: str) -> None:
    """The bits never change silently."""
    laws.close(DRAWS[name](KEY), np.asarray(GOLDEN[name][1], GOLDEN[name][0]), 1e-7, 1e-12)


@each
@pytest.mark.parametrize("key", [0, None, [0, 7], np.ones(2), np.ones(3, np.uint32)], ids=str)
def test_what_is_no_key_is_refused(name: str, key: Any) -> None:
    """An integer is a seed; a seed is no key."""
    with pytest.raises(DTypeError, match=r"key must be one of random\.key's") as caught:
        DRAWS[name](xp.asarray(key) if isinstance(key, np.ndarray) else key)
    assert caught.value.fix == ("random.key(0)" if isinstance(key, int) else "random.key(seed)")


@each
def test_same_bits_everywhere(name: str) -> None:
    """Eager, jit and vmap give the same bits; a lane of vmap is the call with that lane's key."""
    draw = DRAWS[name]
    keys = random.split(KEY, 3)
    loop = xp.stack([draw(k) for k in keys])
    laws.same(draw(KEY), draw(KEY))
    laws.same(ft.jit(draw)(KEY), draw(KEY))
    laws.same(ft.vmap(draw)(keys), loop)
    laws.same(ft.jit(ft.vmap(draw))(keys), loop)
    laws.same(ft.vmap(ft.jit(draw))(keys), loop)


@each
def test_other_keys_give_other_numbers(name: str) -> None:
    """Seeds, parts of a split and folded keys are independent of each other."""
    folded = [random.fold_in(KEY, i) for i in (2, 3)]  # 0 and 1 are the parts of the split
    keys = [KEY, random.key(43), *random.split(KEY), *folded]
    long = {
        "permutation": lambda k: random.permutation(k, 40),
        "choice": lambda k: random.choice(k, 99, (30,), replace=False),
        "randint": lambda k: random.randint(k, (20,), -3, 9),
        "categorical": lambda k: random.categorical(k, xp.zeros((40, 4))),
    }.get(name, DRAWS[name])
    outs = [np.asarray(long(k)).tobytes() for k in keys]
    if name not in ("bernoulli", "choice_with_replacement"):  # few values: they may agree by chance
        assert len(set(outs)) == len(outs)


def test_keys() -> None:
    """A key is an array: it can be indexed, iterated, stacked and split; seeds are integers."""
    assert KEY.shape == (2,)
    assert KEY.dtype == xp.uint32
    keys = random.split(KEY, 4)
    assert keys.shape == (4, 2)
    first, *rest = keys
    laws.same(xp.stack([first, *rest]), keys)
    laws.same(random.fold_in(KEY, 1), keys[1])
    laws.same(random.split(keys)[2], random.split(keys[2]))
    laws.same(random.uniform(keys, (3,))[1], random.uniform(keys[1], (3,)))
    laws.same(random.key(2**40 + 5), np.asarray([2**8, 5], "uint32"))
    for i in (0, np.int64(3), xp.asarray(3)):
        assert random.fold_in(KEY, i).shape == (2,)
    steps = ft.vmap(lambda i: random.fold_in(KEY, i))(xp.arange(3))
    laws.same(steps[2], random.fold_in(KEY, 2))


def test_streams_are_uncorrelated() -> None:
    """Parts of a split are uncorrelated with each other and with the draw of the parent."""
    a, b = (random.normal(k, (N,)) for k in random.split(KEY))
    parent = random.normal(KEY, (N,))
    for x, y in ((a, b), (a, parent), (b, parent)):
        assert abs(np.corrcoef(np.asarray(x), np.asarray(y))[0, 1]) < 5 / N**0.5


# distributions ------------------------------------------------------------------------------------

CONTINUOUS = {
    "uniform": (lambda k, d: random.uniform(k, (N,), d), scipy.stats.uniform()),
    "range": (lambda k, d: random.uniform(k, (N,), d, -2.0, 3.0), scipy.stats.uniform(-2, 5)),
    "normal": (lambda k, d: random.normal(k, (N,), d), scipy.stats.norm()),
    "exponential": (lambda k, d: random.exponential(k, (N,), d), scipy.stats.expon()),
    "gumbel": (lambda k, d: random.gumbel(k, (N,), d), scipy.stats.gumbel_r()),
    "laplace": (lambda k, d: random.laplace(k, (N,), d), scipy.stats.laplace()),
}


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_distributions(name: str, kind: str) -> None:
    """Mean and variance lie within five standard errors, and Kolmogorov and Smirnov agree."""
    draw, expected = CONTINUOUS[name]
    x = np.asarray(draw(KEY, kind))
    assert x.dtype == kind
    assert np.isfinite(x).all()
    x = x.astype("float64")
    mean, var, kurtosis = (float(v) for v in expected.stats("mvk"))
    assert abs(x.mean() - mean) < 5 * (var / N) ** 0.5
    assert abs(x.var() - var) < 5 * var * ((kurtosis + 2) / N) ** 0.5
    assert scipy.stats.kstest(x, expected.cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_uniform_stays_below_its_end(kind: str) -> None:
    """uniform lies in [minval, maxval), also where rounding would reach maxval."""
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (1.0, 1.0 + 1e-6), (1e8, 1e8 + 16), (-3.0, 5.0)):
        x = random.uniform(KEY, (N,), kind, low, high)
        a, b = np.asarray(low, kind), np.asarray(high, kind)
        assert bool(xp.all(x >= a))
        assert bool(xp.all(x < b))


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
def test_uniform_between_numbers_too_far_apart(kind: str) -> None:
    """Where the difference of the limits is no number, elsewhere the bits are what they were."""
    dtype = xp.bfloat16 if kind == "bfloat16" else kind
    most = float(xp.finfo(dtype).max)
    for low, high in ((-most, most), (-most, 0.9 * most), (-0.7 * most, most)):
        x = np.asarray(random.uniform(KEY, (N,), dtype, low, high), np.float64)
        u = (x / 2 - low / 2) / (high / 2 - low / 2)
        assert abs(u.mean() - 0.5) < 5 * (1 / 12 / N) ** 0.5 + 1e-3
        assert x.min() >= low
        assert x.max() < high
    ends = xp.asarray([-1.0, -most, 3e-40, 0.0], dtype=dtype), xp.asarray(
        [2.0, most, 5e-40, most], dtype=dtype
    )

    def draw(low: Any, high: Any) -> Any:
        return random.uniform(KEY, (50, 4), dtype, low, high)

    both = draw(*ends)
    laws.same(ft.jit(draw)(*ends), both)
    for k in (0, 2, 3):
        laws.same(both[:, k], draw(ends[0][k], ends[1][k])[:, k])
    assert float(xp.std(xp.astype(both[:, 1], "float64") / most)) > 0.4
    (g,) = ft.vjp(lambda b: draw(ends[0], b), ends[1])[1](xp.ones_like(both))
    assert bool(xp.all(xp.isfinite(g)))


def test_uniform_limits_may_be_arrays() -> None:
    """minval and maxval broadcast, and the draw has derivatives in them."""
    low = xp.asarray([0.0, 10.0])
    x = random.uniform(KEY, (3, 2), None, low, low + 1.0)
    assert bool(xp.all(xp.floor(x) == low))
    g = ft.grad(lambda a: xp.sum(random.uniform(KEY, (4,), None, a, 1.0)))(xp.asarray(0.0))
    laws.close(g, 4.0 - xp.sum(random.uniform(KEY, (4,))))


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_bits_are_fair(kind: str) -> None:
    """Every bit is set half of the time."""
    x = np.asarray(random.bits(KEY, (N,), kind))
    assert x.dtype == kind
    for k in range(x.dtype.itemsize * 8):
        ones = int(((x >> np.asarray(k, kind)) & np.asarray(1, kind)).sum())
        assert abs(ones - N / 2) < 5 * (N / 4) ** 0.5


@pytest.mark.parametrize(("low", "high"), [(0, 2), (-3, 4), (0, 1), (5, 1005), (-(2**40), 2**40)])
def test_randint(low: int, high: int) -> None:
    """Integers cover [minval, maxval) evenly."""
    x = np.asarray(random.randint(KEY, (N,), low, high))
    assert x.dtype == np.int64
    assert x.min() >= low
    assert x.max() < high
    if high - low <= 1000:
        counts = np.bincount(x - low, minlength=high - low)
        expected = N / (high - low)
        assert np.abs(counts - expected).max() <= 5 * expected**0.5
    assert random.randint(KEY, (2,), 0, 9, dtype="int8").dtype == xp.int8


@pytest.mark.parametrize("low", [0, -5, -(2**62)])
@pytest.mark.parametrize("count", [8, 3 * 2**31, 10**12, 2**53 + 8, 10**18, 3 * 2**61, 10**19])
def test_every_part_of_a_range_is_as_likely(low: int, count: int) -> None:
    """Ranges that do not divide 2**64 and are not far below it are as even as all others."""
    dtype = "uint64" if low == 0 else "int64"
    count = min(count, int(np.iinfo(dtype).max) - low)
    fun = lambda k: random.randint(k, (N,), low, low + count, dtype)  # noqa: E731
    x = fun(KEY)
    parts = [(int(v) - low) * 8 // count for v in np.asarray(x)]
    counts = np.bincount(parts, minlength=8)
    assert len(counts) == 8
    assert np.abs(counts - N / 8).max() <= 5 * (N / 8) ** 0.5
    laws.same(ft.jit(fun)(KEY), x)
    laws.same(ft.vmap(fun)(random.split(KEY, 2))[1], fun(random.split(KEY, 2)[1]))
    if count > 2**32:
        words = np.asarray(random.bits(KEY, (N, 2), "uint64")).tolist()
        drawn = [low + ((a << 64 | b) * count >> 128) for a, b in words]
        assert np.asarray(x).tolist() == drawn


def test_large_ranges_keep_their_low_bits() -> None:
    """Over a range wider than 2**53 the integers are neither rounded nor out of range."""
    low, high = -(2**63), 2**63 - 1
    x = np.asarray(random.randint(KEY, (N,), low, high))
    assert abs(int((x & 1).sum()) - N / 2) < 5 * (N / 4) ** 0.5
    assert abs(int((x > 0).sum()) - N / 2) < 5 * (N / 4) ** 0.5
    assert np.asarray(random.randint(KEY, (5,), 2**60, 2**60 + 2)).tolist()[0] in (2**60, 2**60 + 1)


@given(st.integers(0, 50), st.integers(0, 2**31))
def test_permutation(n: int, seed: int) -> None:
    """A permutation holds each element once; rows move as a whole."""
    p = np.asarray(random.permutation(random.key(seed), n))
    assert sorted(p.tolist()) == list(range(n))
    rows = np.arange(2 * n).reshape(n, 2)
    shuffled = np.asarray(random.permutation(random.key(seed), xp.asarray(rows)))
    np.testing.assert_array_equal(shuffled, rows[p])


def test_permutations_are_even() -> None:
    """Each of the six orders of three elements comes up as often."""
    keys = random.split(KEY, 6000)
    p = np.asarray(ft.vmap(lambda k: random.permutation(k, 3))(keys))
    counts = np.unique(p, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert np.abs(counts - 1000).max() < 5 * 1000**0.5


@given(st.integers(1, 20), st.data())
def test_choice_without_replacement(n: int, data: Any) -> None:
    """No element is chosen twice, and all come from a."""
    k = data.draw(st.integers(0, n))
    picked = np.asarray(random.choice(KEY, xp.arange(n) * 2, (k,), replace=False)).tolist()
    assert len(set(picked)) == k
    assert set(picked) <= set(range(0, 2 * n, 2))
    assert random.choice(KEY, n, (2, 3)).shape == (2, 3)
    assert random.choice(KEY, n).shape == ()


def test_bernoulli() -> None:
    """True comes up with probability p, 0 and 1 included; p may be an array."""
    x = np.asarray(random.bernoulli(KEY, 0.2, (N,)))
    assert x.dtype == bool
    assert abs(x.mean() - 0.2) < 5 * (0.16 / N) ** 0.5
    assert not np.asarray(random.bernoulli(KEY, 0.0, (N,))).any()
    assert np.asarray(random.bernoulli(KEY, 1.0, (N,))).all()
    assert random.bernoulli(KEY, xp.asarray([[0.1, 0.9]])).shape == (1, 2)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_categorical(kind: str) -> None:
    """Indices come up with probability softmax(logits); -inf never does."""
    logits = xp.asarray([0.0, 1.0, -xp.inf, 2.0], dtype=kind)
    x = np.asarray(random.categorical(KEY, logits, shape=(N,)))
    p = np.exp([0.0, 1.0, -np.inf, 2.0]) / np.exp([0.0, 1.0, -np.inf, 2.0]).sum()
    counts = np.bincount(x, minlength=4)
    assert counts[2] == 0
    assert (np.abs(counts - N * p) <= 5 * (N * p) ** 0.5).all()


def test_categorical_shapes() -> None:
    """The result has the logits' shape without the axis; a shape asked for must end in it."""
    logits = xp.zeros((2, 3, 5))
    assert random.categorical(KEY, logits).shape == (2, 3)
    assert random.categorical(KEY, logits, axis=0).shape == (3, 5)
    assert random.categorical(KEY, logits, axis=1, shape=(7, 2, 5)).shape == (7, 2, 5)
    assert random.categorical(KEY, logits[0, 0], shape=(4, 6)).shape == (4, 6)
    with pytest.raises(ShapeError) as caught:
        random.categorical(KEY, logits, shape=(4,))
    assert caught.value.what == "random.categorical: shape must end in (2, 3), got (4,)"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: random.uniform(xp.ones(2)),
            DTypeError,
            "uniform: key must be one of random.key's, uint32 of shape (..., 2), got float64 (2,)",
        ),
        (
            lambda: random.split(xp.zeros(3, dtype="uint32")),
            DTypeError,
            "split: key must be one of random.key's, uint32 of shape (..., 2), got uint32 (3,)",
        ),
        (
            lambda: random.normal(KEY, (2,), "int32"),
            DTypeError,
            "random.normal: dtype must be float16, bfloat16, float32 or float64, got int32",
        ),
        (
            lambda: random.bits(KEY, (2,), "int32"),
            DTypeError,
            "random.bits: dtype must be unsigned, got int32",
        ),
        (
            lambda: random.uniform(KEY, (-1,)),
            ShapeError,
            "random.uniform: shape must not be negative, got (-1,)",
        ),
        (
            lambda: random.randint(KEY, (), 3, 3),
            ShapeError,
            "random.randint: maxval must exceed minval, got 3 and 3",
        ),
        (
            lambda: random.choice(KEY, 3, (4,), replace=False),
            ShapeError,
            "random.choice: 4 elements of 3 need replace=True",
        ),
        (
            lambda: random.permutation(KEY, xp.asarray(3.0)),
            ShapeError,
            "random.permutation: x must have an axis, got a 0-d array",
        ),
        (lambda: random.key(1.5), DTypeError, "random.key: seed must be an int, got 1.5"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    """Arguments out of range are named, with the user's line."""
    with pytest.raises(error) as caught:
        call()
    assert caught.value.what == text  # type: ignore[attr-defined]
    assert "in test_random.py:" in str(caught.value)


def test_populations() -> None:
    """A NumPy integer stands for a range as an int does; a 0-d array is no population."""
    key = random.key(3)
    for draw, name in ((random.permutation, "x"), (random.choice, "a")):
        assert draw(key, np.int64(5)).tolist() == draw(key, 5).tolist()
        with pytest.raises(ShapeError, match=f"{name} must have an axis, got a 0-d array"):
            draw(key, xp.asarray(5.0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [7, 3000, 9000, 20_000])
@pytest.mark.parametrize(
    "draw",
    [random.uniform, random.normal, random.exponential, random.gumbel, random.laplace],
    ids=lambda f: f.__name__,
)
def test_bits_do_not_depend_on_how_many_are_drawn_at_once(draw: Any, n: int, dtype: str) -> None:
    """Functions of large arrays are machine code eagerly, of small ones NumPy's; draws are not."""
    expected = draw(KEY, (n,), dtype)
    laws.same(ft.jit(lambda k: draw(k, (n,), dtype))(KEY), expected)
    keys = random.split(KEY, 3)
    laws.same(ft.vmap(lambda k: draw(k, (n,), dtype))(keys)[1], draw(keys[1], (n,), dtype))
    laws.same(draw(KEY, (n + 1,), dtype)[:n], expected)
