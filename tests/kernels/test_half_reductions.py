"""Sums, products and extrema of float16 and bfloat16, in machine code."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.device import Host, machine_code
from funct.device.host import vector_bytes
from funct.kernels import table

if "llvm" not in table.available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

from funct.kernels.cpu.reductions.half_reductions import half_reduction, text

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
REDUCE: dict[str, Any] = {
    "add": np.add.reduce, "multiply": np.multiply.reduce, "maximum": np.maximum.reduce,
    "minimum": np.minimum.reduce,
}  # fmt: skip


def assert_reduced(found: Any, name: str, x: Any, axes: Any, keepdims: bool) -> None:
    """Extrema are exact; a sum is within half a unit, and what float32 loses in a segment; so is
    a product.
    """
    wide = x.astype(np.float64)
    exact = REDUCE[name](wide, axes, None, None, keepdims)
    assert found.dtype == x.dtype
    assert found.shape == exact.shape
    if name in ("maximum", "minimum"):
        np.testing.assert_array_equal(found.astype(np.float64), exact)
        return
    info: Any = ml_dtypes.finfo(x.dtype)
    lost = 2.0**-24 * 1100 * REDUCE[name](abs(wide), axes, None, None, keepdims)
    half = 0.5 * float(info.eps) * (abs(exact) + lost) + float(info.smallest_subnormal)
    assert (abs(found.astype(np.float64) - exact) <= half + lost).all()


@given(
    st.lists(st.sampled_from([1, 2, 3, 16, 17, 33, 130]), min_size=1, max_size=3), st.data(),
    st.sampled_from(HALVES), st.sampled_from(sorted(REDUCE)), st.booleans(), st.booleans(),
)  # fmt: skip
def test_reductions(
    shape: list[int], data: Any, dtype: Any, name: str, keepdims: bool, turned: bool
) -> None:
    """Of any axes: what it knows is right, and the rest is left to others."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x = x.T if turned else x
    axes = data.draw(st.sets(st.integers(0, x.ndim - 1), min_size=1))
    order = data.draw(st.permutations(sorted(axes)))
    found = half_reduction(REDUCE[name], x, tuple(order), keepdims)
    if found is not NotImplemented:
        assert_reduced(found, name, x, tuple(axes), keepdims)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((300, 515), (0,)), ((300, 515), (1,)), ((170_000,), (0,)), ((5, 4000, 37), (1,)),
     ((40, 50, 60), (0, 1, 2)), ((3, 80_000), (1,)), ((2, 3, 30_000), (0, 1)), ((9000, 16), (0,))],
)  # fmt: skip
def test_segments_lose_nothing(dtype: Any, shape: Any, axes: Any) -> None:
    """Sums that are exact, and a single largest element in every place."""
    x = np.random.default_rng(0).integers(-1, 2, shape).astype(dtype)
    for name in REDUCE:
        found = half_reduction(REDUCE[name], x, axes, False)
        exact = REDUCE[name](x.astype(np.float64), axes)
        np.testing.assert_array_equal(found, exact.astype(np.float32).astype(dtype), strict=True)
    flat = np.zeros(shape, dtype)
    for at in np.linspace(0, flat.size - 1, 40).astype(int):
        flat.ravel()[at] = 3
        found = half_reduction(np.maximum.reduce, flat, axes, True)
        np.testing.assert_array_equal(found, np.maximum.reduce(flat, axes, keepdims=True))
        flat.ravel()[at] = 0


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_special_numbers(dtype: Any, axis: int) -> None:
    x = np.full((128, 128), -0.0, dtype)
    for name, reduce in REDUCE.items():
        signs = np.signbit(half_reduction(reduce, x, (axis,), False).astype(np.float32))
        assert (signs == (name != "multiply")).all()
    x[3, 5], x[17, 64], x[100, 127] = np.nan, np.inf, -np.inf
    for name, reduce in REDUCE.items():
        with np.errstate(invalid="ignore"):
            wide = reduce(x.astype(np.float32), axis)
        found = half_reduction(reduce, x, (axis,), False).astype(np.float32)
        np.testing.assert_array_equal(found, wide, err_msg=name)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_threads_change_no_bit(dtype: Any) -> None:
    x = xp.asarray(np.random.default_rng(0).standard_normal((400, 600)).astype(dtype))
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            sums = [xp.sum(x, axis=axis) for axis in (0, 1, None)]
            found.append([np.asarray(s).view(np.uint16) for s in sums])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["haswell", "znver4"])
@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("across", [False, True])
def test_code_for_other_processors(name: str, element: str, across: bool) -> None:
    """Made, not run."""
    features = frozenset({"avx", "avx2", "fma", "f16c"})
    if name == "znver4":
        features |= {"avx512f", "avx512dq", "avx512bw", "avx512vl"}
    target = Host(name, features, vector_bytes(features), 1)
    for op, result in product(REDUCE, (element, "f32")):
        code = machine_code.emit(text(op, element, result, across, target), target)
        assert code[:4] == b"\x7fELF"
