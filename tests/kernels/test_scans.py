"""Scans: machine code gives the bits of NumPy, for any shape, axis, dtype and stride."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.kernels.cpu import loops
from funct.kernels.cpu.elementwise import complexes as cpu_complexes
from funct.kernels.cpu.reductions import scans as cpu
from funct.kernels.reductions import scans
from funct.kernels.table import restricted
from tests.kernels.arrays import agree, agree_on_new, arrays, misaligned, same_signs

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")

DTYPES = ["bool", "int8", "uint16", "int32", "int64", "uint64", "float32", "float64"]


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays go to the kernels too."""
    monkeypatch.setattr(loops, "_LEAST", 1)
    monkeypatch.setattr(scans, "_MANY", 1)
    monkeypatch.setattr(scans, "_LEAST", 1)


@given(st.data(), st.sampled_from([np.float16, ml_dtypes.bfloat16]))
def test_halves_run_in_single_precision(data: st.DataObject, dtype: Any) -> None:
    """Each result is rounded once; extrema are those of float32, which holds all halves."""
    x = data.draw(arrays("float32", min_rank=1)).astype(dtype)
    axis = data.draw(st.integers(0, x.ndim - 1))
    wide = x.astype(np.float32)
    with np.errstate(all="ignore"):
        for run in (scans.running_sum, scans.running_product):
            found = run(x, axis)
            assert found.dtype == dtype
            same_signs(found.astype(np.float32), run(wide, axis).astype(dtype).astype(np.float32))
        for largest in (True, False):
            found = scans.running_extremum(x, axis, largest)
            expected = scans.running_extremum(wide, axis, largest)
            assert found.dtype == dtype
            same_signs(found.astype(np.float32), expected)
            places = scans.running_argmax(wide, axis, largest)
            np.testing.assert_array_equal(scans.running_argmax(x, axis, largest), places)
            public = xp.cumulative_max if largest else xp.cumulative_min
            for many in (x, np.repeat(x, 64, axis)):
                found = np.asarray(public(xp.asarray(many), axis=axis))
                assert found.dtype == dtype
                expected = scans.running_extremum(many.astype(np.float32), axis, largest)
                same_signs(found.astype(np.float32), expected)


def test_long_sums_of_halves_do_not_stand_still() -> None:
    """Ones are counted beyond 2048, where float16 no longer tells one from the next."""
    ones = xp.ones(5000, dtype="float16")
    assert float(xp.cumulative_sum(ones)[-1]) == 5000
    ids = xp.zeros(5000, dtype="int64")
    assert float(xp.segment_sum(ones, ids, 1)[0]) == 5000
    assert float(ft.jit(lambda v: xp.segment_sum(v, ids, 1))(ones)[0]) == 5000
    assert float(ft.jit(xp.cumulative_sum)(ones)[-1]) == 5000


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("n", [3, 300, 3000, 4998])
def test_halves_add_up_to_the_same_with_and_without_llvm(dtype: Any, n: int) -> None:
    """Few are added as many are: what is small is not lost beside what cancels out."""
    x = xp.asarray(np.resize([1.0, 1e-3, -1.0, 2048.0, 0.3, -2048.0], n).astype(dtype))
    ids, m = xp.asarray(np.arange(n) // 3), n // 3
    for sums in (
        lambda: xp.segment_sum(x, ids, m), lambda: xp.segment_sum(x, ids),
        lambda: xp.bincount(ids, weights=x), lambda: xp.zeros(m, dtype=dtype).at[ids].add(x),
        lambda: ft.grad(lambda z: xp.sum(z[ids] * x))(xp.zeros(m, dtype=dtype)),
    ):  # fmt: skip
        found = np.asarray(sums())
        with restricted():
            expected = np.asarray(sums())
        assert found.tobytes() == expected.tobytes()
    wide = np.add.reduceat(np.asarray(x).astype(np.float32), np.arange(0, n, 3)).astype(dtype)
    np.testing.assert_array_equal(np.asarray(xp.segment_sum(x, ids, m)), wide)


def _scan(x: Any, axis: int) -> None:
    with np.errstate(all="ignore"):
        same_signs(scans.running_sum(x, axis), x.cumsum(axis))
        same_signs(scans.running_product(x, axis), x.cumprod(axis))
    for largest in (True, False):
        place = scans.plain_argmax(x, axis, largest)
        same_signs(scans.running_argmax(x, axis, largest), place)
        same_signs(scans.running_extremum(x, axis, largest), np.take_along_axis(x, place, axis))
    if x.dtype != bool:
        a = x[::-1]
        with np.errstate(all="ignore"):
            same_signs(scans.linear_recurrence(a, x, axis), scans.plain_recurrence(a, x, axis))


@given(st.data(), st.sampled_from(DTYPES))
def test_scans_are_those_of_numpy(data: st.DataObject, dtype: str) -> None:
    """Any shape from empty on, any axis, steps and turned axes, special values."""
    x = data.draw(arrays(dtype, min_rank=1))
    _scan(x, data.draw(st.integers(0, x.ndim - 1)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), [((1000,), 0), ((7, 33, 9), 1), ((5, 257), 1)])
def test_long_scans(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    """Whole groups of lanes and what is left over."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) * 3).astype(dtype)
    _scan(x, axis)
    _scan(np.sort(x, axis), axis)
    _scan(misaligned(x), axis)


@given(st.integers(1, 3), st.integers(1, 20), st.integers(1, 18), st.booleans(), st.booleans())
def test_no_index_leaves_its_array(
    outer: int, n: int, inner: int, largest: bool, places: bool
) -> None:
    """Run as Python, each kernel stays inside and gives what the machine code gives."""
    x = np.random.default_rng(n).integers(0, 5, (outer, n, inner)).astype(np.float32)
    y = np.zeros(x.shape, np.int64 if places else np.float32)
    line = x[..., 0].copy(), y[..., 0].copy()
    for k, given_ in (
        (cpu.running, (x, np.zeros_like(x), outer, n, inner, "add")),
        (cpu.running_line, (*line[:1], np.zeros_like(line[0]), outer, n, "multiply")),
        (cpu.running_extremum, (x, y, outer, n, inner, largest, places)),
        (cpu.running_extremum_line, (*line, outer, n, largest, places)),
        (cpu.recurrence, (x, x, np.zeros_like(x), outer, n, inner)),
    ):
        agree(k, *given_)
    if inner >= cpu.LANES:
        agree(cpu.running_extremum_columns, x, y, outer, n, inner, largest, places)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("n", [1, 7, 8, 1000])
def test_lines_of_halves_are_widened_by_the_kernel(dtype: Any, n: int) -> None:
    """Every number but NaN's payloads is widened and rounded as by NumPy; no index leaves."""
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype).reshape(-1, 1)
    single = np.empty_like(every)
    cpu.running_line(every, single, len(every), 1, "add")
    same_signs(single.astype(np.float32), every.astype(np.float32))
    x = np.random.default_rng(n).normal(size=(3, n)).astype(dtype)
    wide = x.astype(np.float32)
    for how, run in (("add", np.cumsum), ("multiply", np.cumprod)):
        agree(cpu.running_line, x, np.empty_like(x), 3, n, how)
        agree_on_new(cpu.running_few, x, x, 3, n, 1, True, how)
        agree_on_new(cpu.running_few, wide, wide, 1, 3, n, False, how)
        found = np.empty_like(x)
        cpu.running_line(x, found, 3, n, how)
        same_signs(found.astype(np.float32), run(wide, axis=1).astype(dtype).astype(np.float32))
    for largest, places in ((True, False), (False, False), (True, True)):
        y = np.empty(x.shape, np.int64 if places else dtype)
        agree(cpu.running_extremum_line, x, y, 3, n, largest, places)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_scans_of_complex_numbers_run_by_their_parts(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((1,), (257,), (3, 1), (7, 5), (2, 3, 4), (0, 3), (3, 0)):
        x = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
        if x.size:
            x.reshape(-1)[0] = complex(-0.0, np.inf)
        for axis in range(-1, x.ndim):
            for a in (x, x[::-1], np.asfortranarray(x)):
                with np.errstate(all="ignore"):
                    pairs = (
                        (scans.running_sum(a, axis), a.cumsum(axis)),
                        (scans.running_product(a, axis), a.cumprod(axis)),
                    )
                for found, expected in pairs:
                    same_signs(found, expected)
                    for part in ("real", "imag"):
                        same_signs(getattr(found, part), getattr(expected, part))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 7), (4, 9)])
def test_lines_of_complex_numbers(dtype: str, shape: tuple[int, int]) -> None:
    """NumPy's, row by row, in Python that looks at its indices too."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    x.ravel()[:1] = complex(-0.0, -0.0)
    for how, run in (("add", np.cumsum), ("multiply", np.cumprod)):
        agree(cpu_complexes.running, x, np.empty_like(x), *shape, how)
        agree_on_new(cpu_complexes.running_few, x, x, *shape, how)
        found = np.empty_like(x)
        cpu_complexes.running(x, found, *shape, how)
        np.testing.assert_array_equal(found, run(x, axis=1))
