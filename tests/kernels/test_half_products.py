"""Products of float16 and bfloat16 matrices: float32 sums rounded once, whoever computes them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.device import Host, host, machine_code
from funct.device.host import vector_bytes
from funct.kernels import table
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.products import half_products as fast
from funct.kernels.cpu.products.half_text import text
from funct.kernels.linalg.products import half_matmul, matmul
from funct.ops.linalg import multiplied

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
AVX2 = frozenset({"avx", "avx2", "fma", "f16c"})
AVX512 = AVX2 | {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512vnni", "avx512bf16"}
there = table.available().issuperset(("llvm", "avx2", "fma"))
here = pytest.mark.skipif(not there, reason="no tiles for this processor")


def ways(dtype: np.dtype[Any]) -> list[str]:
    """The dots that this processor can multiply the dtype by."""
    pairs = dtype != np.float16 and supported(DOTS["bf16"], host()) == host().vector_bytes
    return ["f32", "bf16"] if pairs else ["f32"]


def by(dot: str, x: Any, y: Any) -> Any:
    """The product by machine code with this dot."""
    kind = fast._ELEMENTS[x.dtype], dot, DOTS[dot].per_word
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "_kind", lambda dtype: kind)
        call = fast._plan(x.shape, y.shape, x.strides, y.strides, x.dtype.char)
        return NotImplemented if call is None else call(x, y)


def assert_close(found: Any, x: Any, y: Any) -> None:
    """Within half a unit of the dtype, and what float32 may lose on the way."""
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    exact = np.matmul(wide_x, wide_y)
    assert found.dtype == x.dtype
    assert found.shape == exact.shape
    info: Any = ml_dtypes.finfo(x.dtype)
    summed = x.shape[-1] * 2.0**-23 * np.matmul(abs(wide_x), abs(wide_y))
    half = 0.5 * float(info.eps) * (abs(exact) + summed)
    tiny = float(info.smallest_subnormal) + x.shape[-1] * 2.0**-126
    assert (abs(found.astype(np.float64) - exact) <= half + summed + tiny).all()


@st.composite
def operands(draw: st.DrawFn) -> tuple[Any, Any]:
    """Stacks of matrices that can be multiplied, in any order of axes and with gaps."""
    sizes = st.sampled_from([1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 66])
    m, k, n = draw(sizes), draw(sizes), draw(sizes)
    leads = [((), ()), ((3,), ()), ((3,), (3,)), ((2, 1), (3,)), ((), (2,)), ((0,), ())]
    a, b = draw(st.sampled_from(leads))
    dtype = draw(st.sampled_from(HALVES))
    rng = np.random.default_rng(draw(st.integers(0, 99)))

    def laid(shape: tuple[int, ...]) -> Any:
        how = draw(st.sampled_from(["rows", "columns", "part", "apart", "backwards"]))
        if how == "columns":
            turned = (*shape[:-2], shape[-1], shape[-2])
            return rng.standard_normal(turned).astype(dtype).swapaxes(-1, -2)
        step = 2 if how == "apart" else 1
        wider = (*shape[:-1], step * shape[-1] + (how == "part"))
        x = rng.standard_normal(wider).astype(dtype)[..., : step * shape[-1] : step]
        return x[..., ::-1] if how == "backwards" else x

    return laid((*a, m, k)), laid((*b, k, n))


@here
@given(operands())
def test_sums_are_rounded_once(given: Any) -> None:
    """Of every shape and layout, with every dot, and through the table."""
    x, y = given
    assert_close(matmul(x, y), x, y)
    assert_close(half_matmul(x, y), x, y)
    for dot in ways(x.dtype):
        found = by(dot, x, y)
        if x.size and y.size:
            assert_close(found, x, y)
        else:
            assert found is NotImplemented


@here
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(300, 1100, 290), (1, 2600, 700), (700, 33, 1), (530, 8, 520)]
)
def test_several_blocks_pieces_and_splits(dtype: Any, m: int, k: int, n: int) -> None:
    """Integers, whose sums are exact: no row, column or term is lost or taken twice."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, s).astype(dtype) for s in ((m, k), (k, n)))
    exact = (x.astype(np.float64) @ y.astype(np.float64)).astype(np.float32).astype(dtype)
    for dot in ways(dtype):
        for a in (x, np.asfortranarray(x)):
            for b in (y, np.asfortranarray(y)):
                np.testing.assert_array_equal(by(dot, a, b), exact, strict=True)


@here
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_threads_change_no_bit(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(dtype) for s in ((270, 600), (600, 330)))
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(matmul(x, y).view(np.uint16))
    np.testing.assert_array_equal(*found)


@here
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_infinities_and_nans_stay_where_they_are(dtype: Any) -> None:
    x, y = np.zeros((40, 50), dtype), np.ones((50, 45), dtype)
    x[3, 7], x[11, 0], x[20] = np.inf, np.nan, -0.0
    for dot in ways(dtype):
        z = by(dot, x, y).astype(np.float64)
        assert np.isposinf(z[3]).all()
        assert np.isnan(z[11]).all()
        assert not np.delete(z, (3, 11), 0).any()


@here
@pytest.mark.parametrize("n", [1, 4, 31, 128, 259, 700])
def test_one_row_is_summed_as_several_are(n: int) -> None:
    """Without panels, in the same order: bit for bit."""
    rng = np.random.default_rng(0)
    for dtype in HALVES:
        x, y = (rng.standard_normal(s).astype(dtype) for s in ((5, 601), (601, n)))
        for dot in ways(dtype):
            for b in (y, np.asfortranarray(y)):
                one, several = by(dot, x[:1], b), by(dot, x, b)
                np.testing.assert_array_equal(one.view("u2"), several[:1].view("u2"))


@here
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 13, 16])
@pytest.mark.parametrize("n", [1, 3, 4, 6, 11, 16, 20, 47, 65, 96])
def test_few_rows_are_summed_as_many_are(rows: int, n: int) -> None:
    """Of matrices in stacks too, the left one as it lies or turned; nothing beside is written."""
    rng = np.random.default_rng(0)
    for dtype in HALVES:
        x, y = (rng.standard_normal(s).astype(dtype) for s in ((3, 40, 34), (3, 34, n)))
        for dot in ways(dtype):
            many = by(dot, x, y).view("u2")
            for a in (x[:, :rows], np.ascontiguousarray(x[:, :rows].mT).mT):
                for b in (y, np.ascontiguousarray(y.mT).mT):
                    found = by(dot, a, b).view("u2")
                    np.testing.assert_array_equal(found, many[:, :rows])


@here
@pytest.mark.parametrize("n", [2047, 2048, 2500])
def test_one_row_of_many_columns_is_summed_as_many_are(n: int) -> None:
    """Where rows of the other one lie pages apart, runs of some of them are read at a time."""
    rng = np.random.default_rng(0)
    for dtype in HALVES:
        x, y = (rng.standard_normal(s).astype(dtype) for s in ((20, 45), (45, n)))
        for dot in ways(dtype):
            many = by(dot, x, y).view("u2")
            for row in range(2):
                found = by(dot, x[row : row + 1], y).view("u2")
                np.testing.assert_array_equal(found, many[row : row + 1])


@here
def test_subnormal_numbers() -> None:
    """Those of float16 count; those of bfloat16 may be 0 where pairs are multiplied at once."""
    tiny = np.full((40, 64), 2.0**-24, np.float16)
    y = np.full((64, 40), 1.0, np.float16)
    assert (fast.half_matmul(tiny, y) == np.float16(64 * 2.0**-24)).all()
    brain = HALVES[1]
    tiny, y = np.full((40, 64), 2.0**-130).astype(brain), np.ones((64, 40), brain)
    assert (by("f32", tiny, y).astype(np.float64) == 2.0**-124).all()
    if "bf16" in ways(brain):
        assert not by("bf16", tiny, y).astype(np.float64).any()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_compiled_products_are_the_same_bits(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (xp.asarray(rng.standard_normal(s).astype(dtype)) for s in ((70, 90), (90, 50)))

    def f(x: Any, y: Any) -> Any:
        return x @ y, y.mT @ x.mT, xp.einsum("ij,jk->ki", x, y)

    for a, b in zip(f(x, y), ft.jit(f)(x, y), strict=True):
        np.testing.assert_array_equal(np.asarray(a).view(np.uint16), np.asarray(b).view(np.uint16))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_vectors(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, y, v = (rng.standard_normal(s).astype(dtype) for s in ((300, 400), (2, 400, 300), 400))
    assert_close(matmul(x, v)[:, None], x, v[:, None])
    assert_close(matmul(v, y)[..., None, :], v[None], y)
    assert_close(matmul(v, v)[None, None], v[None], v[:, None])


@pytest.mark.parametrize("x", HALVES, ids=str)
@pytest.mark.parametrize("y", [*HALVES, np.dtype(np.float32)], ids=str)
def test_mixed_dtypes(x: Any, y: Any) -> None:
    try:
        expected = np.result_type(x, y)
    except TypeError:
        return
    found = multiplied(np.ones((3, 4), x), np.ones((4, 2), y))
    assert found.dtype == expected
    assert (found == 4).all()


@pytest.mark.skipif("llvm" not in table.available(), reason="llvmlite is absent")
@pytest.mark.parametrize(
    ("features", "element", "dot"),
    [
        (AVX2, "f16", "f32"), (AVX2, "bf16", "f32"), (AVX512, "f16", "f32"),
        (AVX512, "bf16", "f32"), (AVX512, "bf16", "bf16"),
    ],
)  # fmt: skip
def test_code_for_other_processors(features: Any, element: str, dot: str) -> None:
    """Made, not run."""
    name = "znver4" if "avx512f" in features else "haswell"
    target = Host(name, features, vector_bytes(features), 1)
    assert machine_code.emit(text(element, dot, target), target)[:4] == b"\x7fELF"
