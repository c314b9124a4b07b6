"""One pass over all parameters: NumPy's bits, whatever the shapes, places, dtypes and threads."""

import sys
import threading

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import funct as ft
from funct.kernels.cpu import updates
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.updates import CHUNK, sum_of_squares, update
from funct.kernels.table import find
from funct.kernels.updates import plain_sum_of_squares, plain_update

if not available():  # which loads LLVM: small models do not, before they have taken many steps
    pytest.skip("there is no LLVM here", allow_module_level=True)

DTYPES = (np.float32, np.float64)


def rule(e, numbers, p, g, m):
    a, b = numbers
    m = a * m + g
    return p - b * (m / (e.sqrt(e.maximum(g * g, a)) + b)), m


def leaves(rng, dtype, shapes):
    return [np.asarray(rng.standard_normal(s), dtype) for s in shapes]


def both(dtype, columns):
    numbers = [dtype(0.9), dtype(0.125)]
    found, squares = update(rule, "test", numbers, columns, 2)
    plain, _ = plain_update(rule, "test", numbers, columns, 2)
    with np.errstate(all="ignore"):
        wide = plain_sum_of_squares([a.astype(np.float64) for a in columns[1]])
        np.testing.assert_allclose(squares, wide, rtol=1e-13)
    return found, plain


def assert_same(found, plain):
    for new, old in zip(found, plain, strict=True):
        for x, y in zip(new, old, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


shapes = st.lists(
    st.lists(st.integers(0, 9), max_size=3).map(tuple)
    | st.sampled_from([(CHUNK - 1,), (CHUNK,), (CHUNK + 1,), (2 * CHUNK + 3,), (70, 1000)]),
    min_size=1,
    max_size=5,
)


@settings(max_examples=2 * settings.default.max_examples)
@given(shapes=shapes, dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_a_pass_has_numpys_bits(shapes, dtype, seed):
    rng = np.random.default_rng(seed)
    assert_same(*both(dtype, [leaves(rng, dtype, shapes) for _ in range(3)]))


@settings(max_examples=2 * settings.default.max_examples)
@given(shapes=shapes, dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_squares_are_summed(shapes, dtype, seed):
    x = leaves(np.random.default_rng(seed), dtype, shapes)
    wide = plain_sum_of_squares([a.astype(np.float64) for a in x])
    np.testing.assert_allclose(sum_of_squares(x), wide, rtol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_strides_and_any_place(dtype):
    rng = np.random.default_rng(0)
    big = rng.standard_normal((60, 41, 3)).astype(dtype)
    odd = np.frombuffer(b"." + big.tobytes(), dtype, offset=1)[1:1001]
    assert not odd.flags.aligned
    views = [big[::2, ::-1], big.T, big[1:, :, 0], np.broadcast_to(big[0, 0], (50, 3)), odd]
    assert_same(*both(dtype, [views, views[:], [v * 2 for v in views]]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values(dtype):
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).smallest_subnormal, 1e30]
    grid = [np.asarray(v, dtype).ravel() for v in np.meshgrid(values, values, values)]
    found, plain = both(dtype, [[g] for g in grid])
    for new, old in zip(found, plain, strict=True):
        np.testing.assert_array_equal(new[0], old[0])
        numbers = ~np.isnan(old[0])
        assert (np.signbit(new[0]) == np.signbit(old[0]))[numbers].all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_thread_or_several_and_past_the_caches(dtype, monkeypatch):
    rng = np.random.default_rng(1)
    columns = [leaves(rng, dtype, [(300, 401), (7,), (70000,)]) for _ in range(3)]
    with ft.config.using(threads=1):
        one, plain = both(dtype, columns)
        squares = sum_of_squares(columns[0])
    monkeypatch.setattr(updates, "_STREAMED", 0)
    for threads in (1, 2, 3):
        with ft.config.using(threads=threads):
            assert_same(both(dtype, columns)[0], one)
            assert sum_of_squares(columns[0]) == squares
    assert_same(one, plain)


def test_operands_stay_as_they_are():
    rng = np.random.default_rng(2)
    columns = [leaves(rng, np.float32, [(100, 100)]) for _ in range(3)]
    before = [c[0].copy() for c in columns]
    both(np.float32, columns)
    assert all((c[0] == b).all() for c, b in zip(columns, before, strict=True))


@pytest.mark.parametrize("dtype", [np.float16, np.complex64, np.int64])
def test_other_dtypes_are_not_known(dtype):
    assert find("update", np.dtype(dtype)) is plain_update
    assert find("sum_of_squares", np.dtype(dtype)) is plain_sum_of_squares


def test_what_a_pass_is_told_is_its_own_while_other_threads_make_arrays():
    """The call lets them run: what it reads must not be memory that waits for the next array."""
    stop = threading.Event()

    def others():
        while not stop.is_set():
            [np.full(6, 7) for _ in range(50)]

    leaves = [np.ones(1 << 18)] * 4
    threads = [threading.Thread(target=others) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        found = {float(sum_of_squares(leaves)) for _ in range(15)}
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for t in threads:
            t.join()
    assert found == {4.0 * (1 << 18)}
