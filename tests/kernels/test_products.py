"""Products of matrices: NumPy's values and dtypes for everything, integers modulo their range."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
from funct.device import host
from funct.kernels import table
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.products import few_rows, integer_rows, large_products, outer
from funct.kernels.cpu.products import integers as fast
from funct.kernels.cpu.products.numpys import small_matmul
from funct.kernels.linalg import products
from funct.kernels.linalg.products import integer_matmul, matmul, outer_product, plain_matmul
from tests.kernels.arrays import whole_range

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
LONG = host().vector_bytes == 64 and table.met(table._LONG)
here = pytest.mark.skipif(
    not table.available().issuperset(("llvm", "avx2")), reason="the processor lacks AVX2"
)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of two stacks of matrices that can be multiplied."""
    m, k, n = (draw(st.sampled_from([0, 1, 2, 4, 5, 7, 8, 9, 17, 33])) for _ in range(3))
    lead = draw(st.sampled_from([((), ()), ((3,), ()), ((3,), (3,)), ((2, 1), (3,)), ((), (2,))]))
    return (*lead[0], m, k), (*lead[1], k, n)


@pytest.mark.parametrize("left", [False, True])
def test_a_matrix_by_a_stack_needs_no_compiler(left: bool) -> None:
    """However the matrix lies, where there is nothing but NumPy for so much work."""
    x, y = np.arange(36.0).reshape(6, 6).T, np.arange(3 * 6 * 9000.0).reshape(3, 6, 9000)
    x, y = (x, y) if left else (y.mT, x)
    with table.restricted():
        found = matmul(x, y)
    np.testing.assert_array_equal(found, np.matmul(x, y))


@pytest.mark.skipif(not available(), reason="no LLVM here")
@given(shapes(), st.sampled_from("fdFD"), *[st.integers(0, 3)] * 2, st.integers(0, 2))
def test_small_products_have_the_bits_of_numpys(
    of: Any, dtype: str, left: int, right: int, vectors: int
) -> None:
    """Of vectors, matrices and a stack, however they lie: by its own loop, without the call."""
    rng, (a, b) = np.random.default_rng(left), of
    a, b = a[-1:] if vectors == 1 else a, b[-2:-1] if vectors == 2 else b
    x, y = (rng.normal(size=shape).astype(dtype) for shape in (a, b))
    turns: list[Any] = [lambda v: v, lambda v: np.repeat(v, 2, -1)[..., ::2], lambda v: v[::-1],
                        lambda v: np.ascontiguousarray(v.T).T]  # fmt: skip
    x, y = turns[left](x), turns[right](y)
    found = small_matmul(x, y)
    assert (found is NotImplemented) == (0 in (*a, *b) or max(len(a), len(b)) > 3)
    if found is not NotImplemented:
        expected = np.matmul(x, y)
        assert found.shape == np.shape(expected)
        assert found.dtype == x.dtype
        assert found.tobytes() == expected.tobytes()
    assert small_matmul(x, np.zeros(a[-1] + 1, dtype)) is NotImplemented
    once, often = (np.asarray(way(x, y)(x, y)) for way in (products._way, products._often))
    assert once.tobytes() == often.tobytes()


@pytest.mark.skipif(not available(), reason="no LLVM here")
@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("shape", [(1, 1), (1, 37), (37, 1), (5, 9), (9, 2), (2, 64)])
def test_products_of_one_term_are_numpys(shape: tuple[int, int], dtype: str) -> None:
    """With its zeros and warnings, of columns and rows however they lie; large ones are others'."""
    values = np.asarray([0.0, -0.0, 1.5, -2.5, 3.0], dtype)
    x, y = (np.resize(np.roll(values, k), 2 * n) for k, n in enumerate(shape))
    for a in (x[: shape[0], None], x[::2, None], x[::-2, None]):
        for b in (y[None, : shape[1]], y[None, ::2]):
            found = outer.outer_product(a, b)
            along = a.strides[0] if shape[1] == 1 else b.strides[1]
            assert (found is NotImplemented) == (along != b.itemsize and shape != (1, 1))
            if found is not NotImplemented:
                assert found.tobytes() == np.matmul(a, b).tobytes()
                with np.errstate(all="raise"), pytest.raises(FloatingPointError):
                    outer.outer_product(np.full_like(a, np.inf), np.zeros_like(b))
    assert outer.outer_product(np.ones((200, 1), dtype), np.ones((1, 200), dtype)) is NotImplemented


@pytest.mark.skipif(not available(), reason="no LLVM here")
@pytest.mark.parametrize("dtype", "fdFD")
def test_small_products_warn_as_numpys(dtype: str) -> None:
    """Where a number is invalid or leaves the range, and of nothing that was computed before."""
    one, none = np.ones((3, 3), dtype), np.zeros((3, 3), dtype)
    endless, large = (np.full((3, 3), v, dtype) for v in (np.inf, np.finfo(dtype).max))
    with np.errstate(all="raise"):
        for x, y in ((endless, none), (large, large)):
            for given in ((x, y), (x[:1], y), (x, y[:, 0])):
                with pytest.raises(FloatingPointError, match="in matmul"):
                    small_matmul(*given)
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(small_matmul(x, y), np.matmul(x, y))
            np.testing.assert_array_equal(small_matmul(one, one), one * 3)


@here
@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("terms", [1, 3, 16, 33])
def test_thin_products_are_numpys(terms: int, dtype: str) -> None:
    """Exactly, on integers, however operands lie; many terms are left to others."""
    for m, n, left, right in ((3, 1024, 0, 1), (65, 512, 1, 0), (40, 1024, 2, 3)):
        x, y = lying(m, terms, dtype, left), lying(terms, n, dtype, right)
        found = fast.thin_matmul(x, y)
        few = terms * 8 <= x.itemsize * host().vector_bytes
        assert (found is not NotImplemented) == few
        if few:
            np.testing.assert_array_equal(found, np.matmul(x, y))
            np.testing.assert_array_equal(found, matmul(x, y))
    assert fast.thin_matmul(x, y[1:]) is NotImplemented


@st.composite
def large_shapes(draw: st.DrawFn) -> tuple[int, int, int]:
    """Rows, terms and columns on both sides of where tiles begin and end to pay."""
    m, n = (draw(st.sampled_from([1, 3, 4, 9, 14, 33, 100, 256])) for _ in range(2))
    k = draw(st.sampled_from([1, 7, 8, 33, 511, 513, 1030, 8192, 8193]))
    return m, k, n


@given(large_shapes(), st.sampled_from("fdFD"), *[st.integers(0, 3)] * 2)
def test_large_products_are_numpys(shape: Any, dtype: str, left: int, right: int) -> None:
    """Exactly, on integers, however operands lie, among NaN; a result is dense."""
    m, k, n = shape
    x, y = lying(m, k, dtype, left), lying(k, n, dtype, right)
    wide = "D" if dtype in "FD" else "d"
    expected = x.astype(wide) @ y.astype(wide)
    found = [matmul(x, y), plain_matmul(x, y)]
    if LONG:
        found.append(large_products.large_matmul(x, y))
    for z in found:
        if z is not NotImplemented:
            assert z.flags.c_contiguous
            np.testing.assert_array_equal(z, expected.astype(dtype), strict=True)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize(
    "shape", [(1030, 300, 530), (1040, 200, 300), (2, 520, 430, 300), (2, 512, 129, 257)]
)
def test_products_of_many_rows_are_numpys(shape: tuple[int, ...], dtype: str) -> None:
    """Exactly, on integers: columns some at a time, the last ones a vector too, however A lies."""
    *stack, m, k, n = shape
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-8, 9, (*stack, *two)).astype(dtype) for two in ((m, k), (k, n)))
    expected = (x.astype("d") @ y.astype("d")).astype(dtype)
    for a in (x, np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)):
        np.testing.assert_array_equal(matmul(a, y), expected, strict=True)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("m", "n"), [(1, 70), (70, 1), (1, 1), (2, 70)])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 1), (2, 0), (0, 3), (2, 2), (1, 0)])
def test_stacks_of_rows_and_columns(dtype: str, m: int, n: int, left: int, right: int) -> None:
    """By what BLAS has for vectors, wherever their numbers lie; NaN stays in its matrix."""
    x, y = (np.stack([lying(*shape, "f", 0)] * 5).astype(dtype) for shape in ((m, 2003), (2003, n)))
    x, y = (_relaid(v, how) for v, how in ((x, left), (y, right)))
    x[3, 0, 5] = np.nan
    z, expected = matmul(x, y), np.matmul(x, y)
    assert np.isnan(z[3, 0]).all()
    z[3, 0] = expected[3, 0] = 0
    np.testing.assert_array_equal(z, expected, strict=True)


def _relaid(x: Any, how: int) -> Any:
    """The same matrices: by rows, by columns, rows within longer ones, and columns so."""
    if how % 2:
        return _relaid(x.swapaxes(-1, -2), how - 1).swapaxes(-1, -2)
    held = np.zeros((*x.shape[:-1], x.shape[-1] + 3 * (how // 2)), x.dtype)
    held[..., : x.shape[-1]] = x
    return held[..., : x.shape[-1]]


def lying(rows: int, columns: int, dtype: str, how: int) -> Any:
    """Small whole numbers: rows, columns, rows within longer ones, every other one of a row."""
    drawn = np.random.default_rng(rows + columns).integers(-8, 9, (rows, columns)).astype(dtype)
    if dtype in "FD":
        drawn += 1j * drawn[::-1, ::-1] + 2
    if how < 2:
        return drawn if how == 0 else np.asfortranarray(drawn)
    held = np.full((rows + 2, 2 * columns + 3), np.nan if dtype in "fdFD" else 77, dtype)
    apart = held[1:-1, 2 : 2 + columns] if how == 2 else held[1:-1, 2 : 2 + 2 * columns : 2]
    apart[...] = drawn
    return apart


@pytest.mark.skipif(not LONG, reason="the processor's vectors are shorter")
@pytest.mark.parametrize(("turned", "rows"), [(True, 40), (False, 64)])
def test_large_products_go_to_tiles(turned: bool, rows: int) -> None:
    """Few rows too, where BLAS is slow: by a transpose. Bits are those of any number of threads."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s, dtype=np.float32) for s in ((rows, 640), (300, 640)))
    w = y.T if turned else np.ascontiguousarray(y.T)
    tiles = large_products.large_matmul(x, w)
    assert tiles is not NotImplemented
    with ft.config.using(threads=1):
        one = matmul(x, w)
    with ft.config.using(threads=2):
        two = matmul(x, w)
    np.testing.assert_array_equal(one, tiles)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one, x.astype(np.float64) @ w, rtol=0, atol=1e-4)


@pytest.mark.skipif(not LONG, reason="the processor's vectors are shorter")
@pytest.mark.parametrize(
    ("m", "n", "serves"), [(32, 27, True), (128, 511, True), (20, 600, True), (512, 64, False)]
)
def test_long_sums_of_few_rows_go_to_tiles_as_they_lie(m: int, n: int, serves: bool) -> None:
    """Of operands that both have a term's elements side by side."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((9001, k), dtype=np.float32) for k in (m, n))
    tiles = large_products.large_matmul(x.T, y)
    assert (tiles is not NotImplemented) == serves
    assert large_products.large_matmul(np.ascontiguousarray(x.T), y) is NotImplemented
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(matmul(x.T, y))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], x.T.astype(np.float64) @ y, rtol=0, atol=1e-3)


@pytest.mark.skipif(not LONG, reason="the processor's vectors are shorter")
@pytest.mark.parametrize(
    ("x", "y", "serves"),
    [
        ((32, 4096), (4096, 1024), True), ((32, 4096), (4096, 1025), True),
        ((2, 4096), (4096, 1024), False), ((256, 256), (257, 256), False),
    ],
)  # fmt: skip
def test_who_has_large_products(x: Any, y: Any, serves: bool) -> None:
    """Tiles, but those of fewest rows; nobody has what is wrong."""

    def plan(x_turned: bool, y_turned: bool) -> Any:
        strides = [
            (4, 4 * shape[0]) if turned else (4 * shape[1], 4)
            for shape, turned in ((x, x_turned), (y, y_turned))
        ]
        return large_products._plan(x, y, *strides, "f")

    for turned in itertools.product((False, True), repeat=2):
        assert (plan(*turned) is not None) == serves


@pytest.mark.skipif(not LONG, reason="the processor's vectors are shorter")
@pytest.mark.parametrize(
    ("m", "k", "n", "dtype", "tiled"),
    [
        (114, 1345, 14, "f", True), (60, 900, 28, "f", True), (29, 547, 19, "d", True),
        (300, 300, 6, "f", False),  # which fill a vector badly
        (400, 180, 5, "d", False), (1000, 1500, 16, "f", True),  # which no cache nearby holds
        (700, 2048, 14, "f", False),  # nor rows of it that are a page apart, all at once
    ],
)  # fmt: skip
def test_few_columns_go_where_they_take_least(
    m: int, k: int, n: int, dtype: str, tiled: bool
) -> None:
    """To tiles as they lie, or turned to what sums along the terms; by any number of threads."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
    assert (few_rows.large_matmul(x, y) is NotImplemented) == tiled
    assert few_rows.large_matmul(x, np.asfortranarray(y)) is not NotImplemented
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(matmul(x, y))
    np.testing.assert_array_equal(*found)
    if tiled:
        np.testing.assert_array_equal(found[0], large_products.large_matmul(x, y))
    error = 64 * np.finfo(dtype).eps * np.sqrt(k)
    np.testing.assert_allclose(found[0], x.astype("d") @ y.astype("d"), rtol=0, atol=error)


@pytest.mark.skipif(not LONG, reason="the processor's vectors are shorter")
def test_special_values_go_through_tiles() -> None:
    """An element is made of its row and its column alone, also beside padding."""
    x, y = np.ones((37, 300), np.float32), np.ones((300, 143), np.float32)
    x[3, 5], x[4, 6], x[36, 299], y[7, 142] = np.inf, np.nan, -np.inf, np.inf
    y[5, 0] = 0.0
    with np.errstate(invalid="ignore"):
        expected = np.matmul(x, y)
    np.testing.assert_array_equal(large_products.large_matmul(x, y), expected)


@given(shapes(), st.sampled_from(INTEGERS), st.booleans())
def test_integers_wrap_around_as_in_numpy(given: Any, dtype: str, turned: bool) -> None:
    """Whatever computes them, and also of transposed views."""
    x, y = (whole_range(shape, dtype, k) for k, shape in enumerate(given))
    if turned and y.ndim == 2:
        y = np.asfortranarray(y)
    expected = np.matmul(x, y)
    found = [matmul(x, y), integer_matmul(x, y)]
    if table.available().issuperset(("llvm", "avx2")):
        found += [fast.integer_matmul(x, y), integer_rows.integer_matmul(x, y)]
    for z in found:
        if z is not NotImplemented:
            np.testing.assert_array_equal(z, expected, strict=True)


@here
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8"])
@pytest.mark.parametrize("shape", [(1, 19, 2500), (6, 17, 2500), (2500, 40, 1), (5, 300, 7)])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 1), (2, 2), (3, 3), (1, 0), (0, 1)])
def test_few_rows_of_integers(
    dtype: str, shape: tuple[int, int, int], left: int, right: int
) -> None:
    """Rows that lie pages apart, sums shorter and longer than vectors, however operands lie."""
    m, k, n = shape
    x, y = lying(m, k, dtype, left), lying(k, n, dtype, right)
    z = integer_rows.integer_matmul(x, y)
    assert z.flags.c_contiguous
    np.testing.assert_array_equal(z, np.matmul(x, y), strict=True)


@here
@pytest.mark.parametrize("dtype", INTEGERS)
def test_large_integer_products(dtype: str) -> None:
    """Through the table, over several bands."""
    x, y = whole_range((3, 90, 170), dtype, 1), whole_range((170, 95), dtype, 2)
    np.testing.assert_array_equal(matmul(x, y), np.matmul(x, y), strict=True)


@pytest.mark.parametrize("x", ["i1", "u1", "i4", "?"])
@pytest.mark.parametrize("y", ["i2", "u8", "?"])
def test_mixed_dtypes_are_numpys(x: str, y: str) -> None:
    a = np.random.default_rng(0).integers(0, 2, (40, 30)).astype(x)
    b = np.random.default_rng(1).integers(0, 2, (30, 50)).astype(y)
    np.testing.assert_array_equal(matmul(a, b), np.matmul(a, b), strict=True)


def test_half_precision_is_summed_in_single() -> None:
    x = np.full((1, 4096), 1.0, np.float16)
    x[0, 0] = 2048
    y = matmul(x, np.ones((4096, 1), np.float16))
    assert y.dtype == np.float16
    assert y[0, 0] == np.float16(2048 + 4095)  # in half precision it would stay 2048


@pytest.mark.parametrize(
    ("x", "y"),
    [((200, 1), (1, 300)), ((2, 200, 1), (3, 1, 1, 300)), ((200, 1), (2, 1, 300)),
     ((0, 200, 1), (1, 300))],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_sums_of_one_term_are_numpys(x: Any, y: Any, dtype: str) -> None:
    """Bit for bit, with zeros and infinities."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(dtype) for s in (x, y))
    a[..., :2, 0], b[..., 0, :3] = 0.0, [-1.0, 0.0, np.inf]
    with np.errstate(invalid="ignore"):
        found, expected = matmul(a, b), np.matmul(a, b)
    np.testing.assert_array_equal(found, expected, strict=True)
    number = ~np.isnan(expected)
    for part in (np.real, np.imag):
        signs = [np.signbit(part(v[number])) for v in (found, expected)]
        np.testing.assert_array_equal(*signs)
    with pytest.raises(ValueError, match="mismatch"):
        matmul(a, np.concatenate([b, b], -2))


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("terms", [2, 3, 16, 31, 32, 33])
@pytest.mark.parametrize(("rows", "columns"), [(1030, 512), (257, 1024), (70, 4096), (512, 1000)])
def test_sums_of_few_terms(rows: int, columns: int, terms: int, dtype: str) -> None:
    """On both sides of where they are tiles, of whole numbers: their sums are exact."""
    rng = np.random.default_rng(terms)
    x = rng.integers(-8, 9, (rows, terms)).astype(dtype)
    y = rng.integers(-8, 9, (terms, columns)).astype(dtype)
    expected = np.einsum("ij,jk->ik", x, y)
    for a in (x, np.asfortranarray(x)):
        np.testing.assert_array_equal(matmul(a, y), expected, strict=True)
    np.testing.assert_array_equal(matmul(x, y[:, 0]), expected[:, 0], strict=True)
    x[0, 0], y[0, 1] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(matmul(x, y), x @ y, strict=True)
    with pytest.raises(ValueError, match=r"matmul|aligned"):
        matmul(x, y[1:])


@given(shapes())
def test_stacks_times_one_matrix(given: Any) -> None:
    x, y = (np.random.default_rng(0).standard_normal(shape) for shape in given)
    expected = np.matmul(x, y)
    z = matmul(x, y)
    assert z.shape == expected.shape
    np.testing.assert_allclose(z, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4"])
@pytest.mark.parametrize(("x", "y"), [((3, 4), (5, 4)), ((2, 30, 40), (41, 30)), ((), (3,))])
def test_shapes_that_do_not_fit_are_refused(dtype: str, x: Any, y: Any) -> None:
    with pytest.raises(ValueError, match=r"matmul|aligned"):
        matmul(np.zeros(x, dtype), np.zeros(y, dtype))


@pytest.mark.parametrize(("m", "n"), [(150, 130), (700, 600)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ml_dtypes.bfloat16])
def test_products_of_a_column_and_a_row(m: int, n: int, dtype: Any) -> None:
    """By each way there is: rounded once, and 0 where a product is -0."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(dtype) for s in ((m, 1), (1, n)))
    x[:2, 0], y[0, :3] = 0.0, [-1.0, 0.0, 2.0]
    expected = x * y
    for z in (matmul(x, y), outer_product(x, y), matmul(x.copy().T.swapaxes(0, 1), y)):
        np.testing.assert_array_equal(z, expected, strict=True)
        assert not np.signbit(z[np.asarray(z == 0)].astype(np.float32)).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 5, 70, 5000, 40_000])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zero_times_what_is_not_finite_is_nan(zero: float, n: int, dtype: str) -> None:
    """Of one number by a row, a column or a vector as well, whichever of the two is zero."""
    row = np.full((1, n), np.nan, dtype)
    row[:, ::2] = np.inf
    one, nothing = np.full((1, 1), zero, dtype), np.full((1, n), zero, dtype)
    for a, b in ((one, row), (row[:, :1], nothing)):
        for x, y in ((a, b), (a[0], b), (b.T, a), (b.T, a[0])):
            with np.errstate(invalid="ignore"):
                assert np.isnan(matmul(x, y)).all()
