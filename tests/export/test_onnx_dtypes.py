"""ONNX files compute in NumPy's dtypes, with its wrap-around and its special values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct import ops
from funct.export import to_onnx

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.export.onnx_runs import assert_same, run_onnxruntime

pytestmark = pytest.mark.onnx

SMALL = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
FLOATS = np.asarray([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, 1e-8, -1e-8, 3e38], "f")


def check(fun: Callable[..., Any], *args: Any, rtol: float = 1e-5) -> None:
    """Export fun at args, run it in onnxruntime, compare with fun, small numbers too."""
    arrays = tuple(xp.asarray(a) for a in args)
    with np.errstate(all="ignore"):
        expected = fun(*arrays)
    model = to_onnx(fun, arrays)
    names = [i.name for i in model.graph.input]
    got = run_onnxruntime(model, dict(zip(names, [np.asarray(a) for a in args], strict=True)))
    assert_same(got, (expected,), rtol, 0.0)


def extremes(dtype: str) -> tuple[Any, Any]:
    """Two arrays with the limits of the dtype in them; no 0 in the second."""
    if dtype == "bool":
        return np.asarray([True, True, False, False]), np.asarray([True, False, True, False])
    info = np.iinfo(dtype)
    x = np.asarray([info.min, info.max, info.max - 1, 7, 100, 0, 5], dtype)
    y = np.asarray([3, 1, 2, 4, 100, info.max, info.max], dtype)
    return x, y


def defined(fun: Callable[..., Any], *args: Any) -> bool:
    """Whether funct defines fun for these dtypes."""
    try:
        fun(*[xp.asarray(a) for a in args])
    except TypeError:
        return False
    return True


BINARY = (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "minimum",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
    "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
)  # fmt: skip
UNARY = (
    "negative", "abs", "sign", "square", "floor", "ceil", "trunc", "round", "relu", "sqrt",
    "isfinite", "isinf", "isnan", "logical_not", "bitwise_invert", "stop_gradient",
)  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_integers_of_two(name: str) -> None:
    """Every operator of two integers or booleans wraps around and rounds as NumPy does."""
    fun = getattr(ops, name)
    for dtype in SMALL:
        x, y = extremes(dtype)
        if name in ("divide", "floor_divide", "remainder"):
            if dtype == "bool":
                continue
            x = np.maximum(x, np.asarray(-100, dtype)) if x.dtype.kind == "i" else x
        if defined(fun, x, y):
            check(fun, x, y)


@pytest.mark.parametrize("name", UNARY)
def test_integers_of_one(name: str) -> None:
    """Every operator of one integer or boolean wraps around as NumPy does."""
    fun = getattr(ops, name)
    for dtype in SMALL:
        x = extremes(dtype)[0]
        x = x[1:] if name == "sqrt" else x
        if defined(fun, x):
            check(fun, x, rtol=1e-3 if name == "sqrt" else 0)


def test_signed_floor_division() -> None:
    """Quotients round towards minus infinity, rests have the sign of the divisor."""
    x, y = np.asarray([7, -7, 7, -7, 6, -6]), np.asarray([3, 3, -3, -3, 3, -3])
    check(ops.floor_divide, x, y)
    check(ops.remainder, x, y)
    floats = (
        np.asarray([1.0, -1.0, 0.3, -0.3, 5.5], "f"),
        np.asarray([0.1, 0.1, -0.1, -0.1, 2], "f"),
    )
    check(ops.floor_divide, *floats)
    check(ops.remainder, *floats)


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
def test_shifts(name: str) -> None:
    """Shifts keep the sign and drop the high bits."""
    for dtype in SMALL[1:]:
        x = extremes(dtype)[0]
        check(getattr(ops, name), x, np.asarray([1, 2, 3, 0, 5, 6, 7], dtype))


@pytest.mark.parametrize("dtype", SMALL)
def test_reductions_of_integers(dtype: str) -> None:
    """Sums widen as NumPy's do; extremes, positions, sorting and choices keep the dtype."""
    x = extremes(dtype)[0]
    if dtype in ("uint32", "int64"):  # onnxruntime 1.31 reduces large int64 in float64 or as int32
        x = np.clip(x, np.asarray(-1000 * (dtype == "int64"), dtype), np.asarray(2000, dtype))
    for fun in (ops.reduce_sum, ops.reduce_prod, ops.reduce_max, ops.reduce_min, ops.all, ops.any):
        check(lambda v, fun=fun: fun(v, (0,), True), x)
    check(lambda v: ops.cumulative_sum(v, 0), x)
    check(lambda v: ops.argmax(v, 0, False), x)
    check(lambda v: ops.argsort(v, 0, True), x)
    check(lambda v: ops.sort(v, 0, False), x)
    check(lambda v: ops.where(ops.equal(v, v), v, v), x)
    check(lambda v: ops.concat(v, v, 0), x)
    check(lambda v: ops.embed(v, ((1, 1 + len(x), 1),), (len(x) + 3,)), x)
    check(lambda v: ops.flip(v, (0,)), x)
    check(lambda v: ops.take(v, xp.asarray([0, -1], dtype=xp.int8), 0), x)
    check(lambda v: ops.put(v, xp.asarray([0] * len(x)), 0, 2), x)
    if dtype != "bool":
        check(
            lambda v: ops.matmul(ops.reshape(v, (1, -1 + len(x) + 1)), ops.reshape(v, (len(x), 1))),
            x,
        )
        check(lambda v: ops.contract(v, v, "a,a->a"), x)


def test_uint64() -> None:
    """uint64 beyond int64 keeps its values wherever ONNX computes modulo 2**64."""
    x = np.asarray([2**64 - 1, 5, 2**63], np.uint64)
    for fun in (ops.add, ops.multiply, ops.subtract, ops.maximum, ops.less, ops.bitwise_xor):
        check(fun, x, x[::-1].copy())
    check(ops.negative, x)
    check(lambda v: ops.where(ops.equal(v, v), v, v), x)


@pytest.mark.parametrize(
    "name",
    ["atan2", "hypot", "logaddexp", "copysign", "maximum", "minimum", "divide", "floor_divide"],
)
def test_special_values_of_two(name: str) -> None:
    """Infinities and zeros of every combination give what NumPy gives, but for a zero's sign."""
    x, y = (v.reshape(-1).copy() for v in np.meshgrid(FLOATS, FLOATS))
    check(getattr(ops, name), x, y)


@pytest.mark.parametrize("name", ["expm1", "log1p", "signbit", "trunc", "sign", "square", "abs"])
def test_special_values_of_one(name: str) -> None:
    """Infinities, zeros and the smallest arguments give what NumPy gives, but for a zero's sign."""
    check(getattr(ops, name), FLOATS[FLOATS >= -1] if name == "log1p" else FLOATS)


def test_accuracy_near_zero() -> None:
    """expm1 and log1p keep their digits near 0, in float32 and float64."""
    for dtype in ("float32", "float64"):
        x = np.asarray(np.geomspace(1e-12, 0.5, 60), dtype)
        eps = float(8 * np.finfo(dtype).eps)
        for sign in (1, -1):
            check(ops.expm1, (sign * x).astype(dtype), rtol=eps)
            check(ops.log1p, (sign * x).astype(dtype), rtol=eps)


def test_python_numbers() -> None:
    """A Python number takes the dtype that NumPy gives it."""
    for dtype in ("float32", "float16", "int32", "uint8"):
        x = np.asarray([1, 2, 100], dtype)
        check(lambda v: v + 1, x)
        check(lambda v: 2 - v, x)
        check(lambda v: v * 1.5, x, rtol=1e-3)
        check(lambda v: ops.less(v, 300), x)
        check(lambda v: ops.where(ops.greater(v, 1), v, 0), x)


def test_promotion() -> None:
    """Operands of different dtypes are computed in the dtype they promote to."""
    x = np.asarray([1.5, 2.5], "f")
    for other in (
        np.asarray([3, 4], "int8"),
        np.asarray([3, 4], "float16"),
        np.asarray([True, False]),
    ):
        for fun in (ops.add, ops.multiply, ops.maximum, ops.less, ops.equal, ops.pow):
            check(fun, x, other, rtol=1e-3)
    check(ops.matmul, x.reshape(1, 2), np.asarray([[3], [4]], "int8"))
    check(lambda a, b: ops.concat(a, b, 0), x, np.asarray([3, 4], "int64"), rtol=0)


def test_casts() -> None:
    """Casts between integers keep the low bits, casts from floats truncate."""
    x = np.asarray([-1, 0, 300, 70000], "int32")
    for to in (np.int8, np.uint8, np.int64, np.bool_, np.float32):
        check(lambda v, to=to: ops.astype(v, np.dtype(to)), x)
    check(lambda v: ops.astype(v, np.dtype(np.int32)), np.asarray([1.9, -1.9, 0.5], "f"))
