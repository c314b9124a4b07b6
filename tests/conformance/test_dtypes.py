"""The standard's promotion table, weak scalars, and the dtypes beyond the standard."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, DTypeError, RangeError
from funct.nn import functional

# Rows and columns in this order; a dtype's initial and width, - where the standard is silent.
NAMES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TABLE = """
i8  i16 i32 i64 i16 i32 i64 -
i16 i16 i32 i64 i16 i32 i64 -
i32 i32 i32 i64 i32 i32 i64 -
i64 i64 i64 i64 i64 i64 i64 -
i16 i16 i32 i64 u8  u16 u32 u64
i32 i32 i32 i64 u16 u16 u32 u64
i64 i64 i64 i64 u32 u32 u32 u64
-   -   -   -   u64 u64 u64 u64
"""
FLOATS = ["float32", "float64", "complex64", "complex128"]
FLOAT_TABLE = """
f32  f64  c64  c128
f64  f64  c128 c128
c64  c128 c64  c128
c128 c128 c128 c128
"""
WORDS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
EXTRA = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"]


def _cases() -> list[tuple[str, str, str]]:
    out = [("bool", "bool", "bool")]
    for names, table in ((NAMES, TABLE), (FLOATS, FLOAT_TABLE)):
        rows = [line.split() for line in table.strip().splitlines()]
        out += [
            (a, b, WORDS[w[0]] + w[1:])
            for a, row in zip(names, rows, strict=True)
            for b, w in zip(names, row, strict=True)
            if w != "-"
        ]
    return out


@pytest.mark.parametrize(("a", "b", "expected"), _cases())
def test_promotion(a: str, b: str, expected: str) -> None:
    """result_type, operators eager and compiled, concat and where agree with the table."""
    x, y, dtype = xp.ones(2, dtype=a), xp.ones(2, dtype=b), getattr(xp, expected)
    assert xp.result_type(x, getattr(xp, b)) == dtype
    f = xp.logical_and if expected == "bool" else xp.multiply
    assert f(x, y).dtype == dtype
    assert ft.jit(f)(x, y).dtype == dtype
    assert xp.concat([x, y]).dtype == dtype
    assert xp.where(xp.asarray([True, False]), x, y).dtype == dtype
    assert xp.can_cast(getattr(xp, a), dtype)


@pytest.mark.parametrize(
    ("number", "names"),
    [(True, ["bool"]), (1, NAMES + FLOATS), (1.5, FLOATS), (1j, FLOATS[2:])],
)
def test_scalars_are_weak(number: Any, names: list[str]) -> None:
    """A Python number adopts the array's dtype, on either side, in functions and result_type."""
    for name in names:
        x = xp.ones(2, dtype=name)
        f = xp.logical_or if name == "bool" else xp.add
        for out in (f(x, number), f(number, x), ft.jit(lambda x, f=f: f(x, number))(x)):
            assert out.dtype == x.dtype
        assert xp.result_type(x.dtype, number) == x.dtype
    assert (xp.ones(2, dtype="float32") + 1j).dtype == xp.complex64
    assert xp.result_type(xp.float64, 1j) == xp.complex128


def test_integers_that_do_not_fit() -> None:
    """A Python integer outside the dtype's range is an OverflowError, never a wrapped number."""
    for call in (
        lambda: xp.asarray(300, dtype="uint8"),
        lambda: xp.asarray([1, 2**70]),
        lambda: xp.asarray(2**63),
        lambda: xp.full(2, -1, dtype="uint16"),
        lambda: xp.ones(2, dtype="int8") + 200,
        lambda: xp.arange(2**63, 2**63 + 2),
    ):
        with pytest.raises(RangeError) as caught:
            call()
        assert isinstance(caught.value, OverflowError)


def test_errors_name_what_is_wrong() -> None:
    """Values and dtypes that do not go together."""
    for call, text in (
        (lambda: xp.zeros(2, dtype="U5"), "zeros: arrays hold numbers and booleans, not 'U5'"),
        (lambda: xp.asarray("abc"), "asarray: elements must be numbers, got dtype <U3"),
        (lambda: xp.asarray([object()]), "asarray: elements must be numbers, got dtype object"),
        (lambda: xp.asarray(np.zeros(2, "M8[s]")), "asarray: elements must be numbers"),
        (lambda: xp.full(2, 1j, dtype="float64"), "full: 1j has no float64 value"),
        (lambda: xp.astype(xp.ones(2) + 1j, xp.int8), "astype: a complex array has no int8 value"),
        (lambda: xp.finfo(xp.int8), "finfo: dtype must be floating, got int8"),
        (lambda: xp.iinfo(xp.float32), "iinfo: dtype must be of integers, got float32"),
        (lambda: xp.isdtype(xp.int8, "whole"), "isdtype: kind must be one of"),
        (lambda: xp.can_cast(xp.int8, None), "can_cast: None is no dtype"),
    ):
        with pytest.raises(DTypeError) as caught:
            call()
        assert text in caught.value.what
    with pytest.raises(ArgumentError, match="result_type: at least one"):
        xp.result_type()
    with pytest.raises(ArgumentError, match="pow: Integers to negative integer powers"):
        xp.ones(2, dtype="int64") ** -1


@pytest.mark.parametrize("name", EXTRA)
def test_dtypes_beyond_the_standard(name: str) -> None:
    """They are made, cast, sorted into kinds, and computed with; a round trip keeps the values."""
    dtype = getattr(xp, name)
    x = xp.asarray([0, 1, 2, 3], dtype=dtype)
    assert x.dtype == dtype
    assert xp.astype(x, xp.float64).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert xp.astype(x + x, xp.float64).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert ft.jit(lambda v: v + v)(x).dtype == (x + x).dtype
    assert repr(x) == f"Array([0, 1, 2, 3], dtype={name})" or name == "float16"
    kind = "real floating" if "float" in name else "integral"
    assert xp.isdtype(dtype, kind)
    assert xp.isdtype(dtype, "numeric")
    limits: Any = xp.finfo(dtype) if "float" in name else xp.iinfo(dtype)
    assert limits.dtype == dtype
    assert limits.bits == int("".join(filter(str.isdigit, name.removesuffix("_e4m3fn")[:8])) or 0)
    top = xp.asarray(limits.max, dtype=dtype)
    assert float(xp.astype(top, xp.float64)) == limits.max


ALL = ["bool", *NAMES, *EXTRA, *FLOATS]
# ml_dtypes holds a cast of this float to integers of four bits for safe, in one order only
BUGGY = ({"float8_e4m3fn", "int4"}, {"float8_e4m3fn", "uint4"})
PAIRS = [(a, b) for a in ALL for b in ALL if a != b and {a, b} not in BUGGY]
JOINS: dict[str, Any] = {
    "where": lambda x, y: xp.where(xp.asarray([True, False]), x, y),
    "where of NumPy's": lambda x, y: xp.where(xp.asarray([True, False]), x, np.asarray(y)),
    "select": lambda x, y: xp.select([xp.asarray([True, False])], [x], y),
    "concat": lambda x, y: xp.concat([x, y]),
    "stack": lambda x, y: xp.stack([x, y]),
    "asarray": lambda x, y: xp.asarray([x, y]),
    "block_diag": xp.linalg.block_diag,
    "union1d": xp.union1d,
    "matmul": lambda x, y: x @ y,
    "vecdot": xp.vecdot,
    "tensordot": lambda x, y: xp.tensordot(x, y, axes=1),
    "einsum": lambda x, y: xp.einsum("i,j->ij", x, y),
    "convolve": xp.convolve,
    "conv1d": lambda x, y: functional.conv1d(x[None, None], y[None, None]),
}


@pytest.mark.parametrize("name", [*JOINS, "result_type"])
def test_what_operators_promote_is_promoted_everywhere(name: str) -> None:
    """Narrow dtypes beside all others: results have the dtype of the product, in both orders."""
    for a, b in PAIRS:
        x, y = xp.ones(2, dtype=a), xp.ones(2, dtype=b)
        got = xp.result_type(x, y) if name == "result_type" else JOINS[name](x, y).dtype
        assert got == (x * y).dtype, (a, b)


@pytest.mark.parametrize("name", ["where", "concat", "conv1d"])
@pytest.mark.parametrize("way", [ft.jit, ft.vmap])
def test_promotion_inside_transforms(name: str, way: Any) -> None:
    """As eagerly, with the same elements."""
    for a, b in [("float16", "bfloat16"), ("bfloat16", "int64"), ("uint8", "int4")]:
        x, y = xp.asarray([[1, 2]], dtype=a), xp.asarray([[3, 4]], dtype=b)
        want = JOINS[name](x[0], y[0])
        got = way(lambda x, y: JOINS[name](x.reshape((2,)), y.reshape((2,))))(x, y)
        assert got.dtype == want.dtype
        assert got.reshape(want.shape).tolist() == want.tolist()


def test_derivatives_where_narrow_dtypes_meet() -> None:
    """Each operand's cotangent has its dtype."""
    x, y = xp.asarray([1.0, 2.0], dtype="float16"), xp.asarray([3.0, 4.0], dtype="bfloat16")
    for name in ("where", "concat", "stack"):
        grads = ft.grad(lambda x, y, f=JOINS[name]: xp.sum(f(x, y)), argnums=(0, 1))(x, y)
        assert [g.dtype for g in grads] == [x.dtype, y.dtype]


@given(st.lists(st.sampled_from([n for n in ALL if n != "float8_e4m3fn"]), min_size=3, max_size=5))
def test_the_order_of_operands_does_not_matter(names: list[str]) -> None:
    """result_type of many, which NumPy folds in pairs."""
    assert xp.result_type(*names) == xp.result_type(*reversed(names))
    assert xp.result_type(*names) == xp.result_type(*sorted(names))


def test_special_functions_where_narrow_dtypes_meet() -> None:
    """They are computed in what holds both."""
    x, y = xp.asarray([0.5], dtype="float16"), xp.asarray([2.0], dtype="bfloat16")
    for f in (xp.special.xlogy, xp.special.gammainc, xp.special.beta):
        single = f(xp.astype(x, xp.float32), xp.astype(y, xp.float32))
        assert f(x, y).dtype == xp.float32
        assert f(x, y).tolist() == single.tolist()


def test_limits_are_python_numbers() -> None:
    """finfo of a complex dtype is that of its parts; arrays are asked for their dtype."""
    info = xp.finfo(xp.complex64)
    assert (info.bits, info.dtype) == (32, xp.float32)
    assert [type(v) for v in (info.eps, info.max, info.min, info.smallest_normal)] == [float] * 4
    assert xp.finfo(xp.ones(2)).eps == 2.0**-52
    assert xp.iinfo(xp.ones(2, dtype="uint64")).max == 2**64 - 1


def test_foreign_byte_order_becomes_native() -> None:
    """Elements in the other byte order are converted, dtype names too."""
    assert xp.asarray(np.asarray([1.5, 2.5], ">f8")).tolist() == [1.5, 2.5]
    assert xp.asarray(np.asarray([1.5], ">f8")).dtype == xp.float64
    assert xp.zeros(2, dtype=">i4").dtype == xp.int32


@pytest.mark.parametrize("name", sorted(xp.__array_namespace_info__().dtypes()))
def test_names_are_dtypes_wherever_one_is_asked_for(name: str) -> None:
    """A name equals the dtype of its arrays and nothing else, None included."""
    dtype, listed = getattr(xp, name), xp.__array_namespace_info__().dtypes()[name]
    assert dtype is not None
    assert dtype not in (None,)  # a numpy.dtype of float64 would equal it
    assert xp.ones(2, dtype=dtype).dtype == dtype == listed
    assert {listed: name}[xp.ones(2, dtype=dtype).dtype] == name
    assert xp.can_cast(dtype, dtype)
    assert [n for n in xp.__array_namespace_info__().dtypes() if getattr(xp, n) == listed] == [name]
