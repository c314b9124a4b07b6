"""Chapter: comparison, logic, bits, choice. Tests and bits have no derivative; choices mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.core import Operand, Value
from funct.kernels.elementwise import functions as kernels
from funct.ops.elementwise import onnx_signbit
from funct.ops.families import elementwise
from funct.ops.samples import booleans, integers, pairs, reals, specials

__all__ = [
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "less",
    "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum",
    "not_equal", "signbit", "where",
]  # fmt: skip

_PAIRS = pairs(smooth=False)


@elementwise(np.equal, None, None, code="{0} == {1}", onnx="Equal", samples=integers(0, 3))
def equal(x1: Operand, x2: Operand, /) -> Value:
    """x1 == x2, elementwise.

    Example:
        >>> import funct.array as xp
        >>> xp.equal(xp.asarray([1.0, xp.nan]), xp.asarray([1.0, xp.nan])).tolist()
        [True, False]
    """


def _onnx_not_equal(w: Any, x: str, y: str) -> str:
    return str(w.op("Not", w.op("Equal", x, y)))


@elementwise(
    np.not_equal, None, None, code="{0} != {1}", onnx=_onnx_not_equal, samples=integers(0, 3)
)
def not_equal(x1: Operand, x2: Operand, /) -> Value:
    """x1 != x2, elementwise.

    Example:
        >>> import funct.array as xp
        >>> xp.not_equal(xp.asarray([1.0, xp.nan]), xp.asarray([1.0, xp.nan])).tolist()
        [False, True]
    """


@elementwise(np.less, None, None, code="{0} < {1}", onnx="Less", samples=_PAIRS)
def less(x1: Operand, x2: Operand, /) -> Value:
    """x1 < x2, elementwise.

    Example:
        >>> import funct.array as xp
        >>> xp.less(xp.asarray([1, 2, 3]), 2).tolist()
        [True, False, False]
    """


@elementwise(np.less_equal, None, None, code="{0} <= {1}", onnx="LessOrEqual", samples=_PAIRS)
def less_equal(x1: Operand, x2: Operand, /) -> Value:
    """x1 <= x2, elementwise.

    Example:
        >>> import funct.array as xp
        >>> xp.less_equal(xp.asarray([1, 2, 3]), 2).tolist()
        [True, True, False]
    """


@elementwise(np.greater, None, None, code="{0} > {1}", onnx="Greater", samples=_PAIRS)
def greater(x1: Operand, x2: Operand, /) -> Value:
    """x1 > x2, elementwise.

    Example:
        >>> import funct.array as xp
        >>> xp.greater(xp.asarray([[1], [3]]), xp.asarray([0, 2])).tolist()
        [[True, False], [True, True]]
    """


@elementwise(np.greater_equal, None, None, code="{0} >= {1}", onnx="GreaterOrEqual", samples=_PAIRS)
def greater_equal(x1: Operand, x2: Operand, /) -> Value:
    """x1 >= x2, elementwise.

    Example:
        >>> import funct.array as xp
        >>> xp.greater_equal(xp.asarray([1, 2, 3]), 2).tolist()
        [False, True, True]
    """


@elementwise(np.logical_and, None, None, code="{0} and {1}", onnx="And", samples=booleans())
def logical_and(x1: Operand, x2: Operand, /) -> Value:
    """x1 and x2, elementwise.

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([-1.0, 0.5, 2.0])
        >>> xp.logical_and(x > 0, x < 1).tolist()
        [False, True, False]
    """


@elementwise(np.logical_or, None, None, code="{0} or {1}", onnx="Or", samples=booleans())
def logical_or(x1: Operand, x2: Operand, /) -> Value:
    """x1 or x2, elementwise.

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([-1.0, 0.5, 2.0])
        >>> xp.logical_or(x < 0, x > 1).tolist()
        [True, False, True]
    """


@elementwise(np.logical_xor, None, None, code="{0} != {1}", onnx="Xor", samples=booleans())
def logical_xor(x1: Operand, x2: Operand, /) -> Value:
    """Exactly one of x1 and x2, elementwise.

    Example:
        >>> import funct.array as xp
        >>> xp.logical_xor(xp.asarray([True, True]), xp.asarray([True, False])).tolist()
        [False, True]
    """


@elementwise(np.logical_not, None, code="not {0}", onnx="Not", samples=booleans(1))
def logical_not(x: Operand, /) -> Value:
    """not x, elementwise.

    Example:
        >>> import funct.array as xp
        >>> xp.logical_not(xp.asarray([True, False])).tolist()
        [False, True]
    """


@elementwise(np.bitwise_and, None, None, code="{0} & {1}", onnx="BitwiseAnd", samples=integers())
def bitwise_and(x1: Operand, x2: Operand, /) -> Value:
    """Bits set in x1 and in x2.

    Example:
        >>> import funct.array as xp
        >>> xp.bitwise_and(xp.asarray([6, 5]), 3).tolist()
        [2, 1]
    """


@elementwise(np.bitwise_or, None, None, code="{0} | {1}", onnx="BitwiseOr", samples=integers())
def bitwise_or(x1: Operand, x2: Operand, /) -> Value:
    """Bits set in x1 or in x2.

    Example:
        >>> import funct.array as xp
        >>> xp.bitwise_or(xp.asarray([6, 5]), 3).tolist()
        [7, 7]
    """


@elementwise(np.bitwise_xor, None, None, code="{0} ^ {1}", onnx="BitwiseXor", samples=integers())
def bitwise_xor(x1: Operand, x2: Operand, /) -> Value:
    """Bits set in exactly one of x1 and x2.

    Example:
        >>> import funct.array as xp
        >>> xp.bitwise_xor(xp.asarray([6, 5]), 3).tolist()
        [5, 6]
    """


@elementwise(np.bitwise_invert, None, code="~{0}", onnx="BitwiseNot", samples=integers(n=1))
def bitwise_invert(x: Operand, /) -> Value:
    """All bits of x flipped; logical not for booleans.

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray(5)
        >>> int(xp.bitwise_invert(x)), int(xp.bitwise_invert(xp.astype(x, xp.uint8)))
        (-6, 250)
    """


def _onnx_shift(w: Any, x: str, y: str, direction: str) -> str:
    # ONNX shifts unsigned integers; the cast to uint64 keeps the bits and extends the sign
    wide = [w.cast(v, np.dtype(np.uint64)) for v in (x, y)]
    return str(w.cast(w.op("BitShift", *wide, direction=direction), w.results[0].dtype))


def _onnx_left_shift(w: Any, x: str, y: str) -> str:
    return _onnx_shift(w, x, y, "LEFT")


def _onnx_right_shift(w: Any, x: str, y: str) -> str:
    if w.dtype_of(x).kind == "u":
        return _onnx_shift(w, x, y, "RIGHT")
    flipped = w.op("BitwiseNot", _onnx_shift(w, w.op("BitwiseNot", x), y, "RIGHT"))
    below = w.op("Less", x, w.constant(0, w.dtype_of(x)))
    return str(w.op("Where", below, flipped, _onnx_shift(w, x, y, "RIGHT")))


@elementwise(np.left_shift, None, None, onnx=_onnx_left_shift, samples=integers(0, 9, high_last=5))
def bitwise_left_shift(x1: Operand, x2: Operand, /) -> Value:
    """Bits of x1 moved up by x2 places.

    Example:
        >>> import funct.array as xp
        >>> xp.bitwise_left_shift(xp.asarray([1, 3]), xp.asarray([4, 1])).tolist()
        [16, 6]
    """


@elementwise(
    np.right_shift, None, None, onnx=_onnx_right_shift, samples=integers(0, 9, high_last=5)
)
def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Value:
    """Bits of x1 moved down by x2 places; the sign is kept.

    Example:
        >>> import funct.array as xp
        >>> xp.bitwise_right_shift(xp.asarray([16, -16]), 2).tolist()
        [4, -4]
    """


def _onnx_isfinite(w: Any, x: str) -> str:
    return str(w.op("Not", w.op("Or", w.op("IsNaN", x), w.op("IsInf", x))))


@elementwise(np.isfinite, None, onnx=_onnx_isfinite, samples=specials())
def isfinite(x: Operand, /) -> Value:
    """Whether x is neither infinite nor NaN.

    Example:
        >>> import funct.array as xp
        >>> xp.isfinite(xp.asarray([1.0, -xp.inf, xp.nan])).tolist()
        [True, False, False]
    """


@elementwise(np.isinf, None, onnx="IsInf", samples=specials())
def isinf(x: Operand, /) -> Value:
    """Whether x is infinite.

    Example:
        >>> import funct.array as xp
        >>> xp.isinf(xp.asarray([1.0, -xp.inf, xp.nan])).tolist()
        [False, True, False]
    """


@elementwise(np.isnan, None, onnx="IsNaN", samples=specials())
def isnan(x: Operand, /) -> Value:
    """Whether x is NaN.

    Example:
        >>> import funct.array as xp
        >>> xp.isnan(xp.asarray([1.0, -xp.inf, xp.nan])).tolist()
        [False, False, True]
    """


@elementwise(np.signbit, None, onnx=onnx_signbit, samples=reals())
def signbit(x: Operand, /) -> Value:
    """Whether the sign bit of x is set.

    Example:
        >>> import funct.array as xp
        >>> xp.signbit(xp.asarray([1.0, -0.0, -xp.inf])).tolist()
        [False, True, True]
    """


def _share(g: Value, x: Value, ans: Value, other: Value) -> Value:
    ties = ops.where(ops.equal(other, ans), 0.5 * g, g)
    return ops.where(ops.equal(x, ans), ties, 0.0)


def _extremum_rule_x1(g: Value, ans: Value, x1: Value, x2: Value) -> Value:
    return _share(g, x1, ans, x2)


def _extremum_rule_x2(g: Value, ans: Value, x1: Value, x2: Value) -> Value:
    return _share(g, x2, ans, x1)


@elementwise(
    np.maximum, _extremum_rule_x1, _extremum_rule_x2,
    code="max({0}, {1})", onnx="Max", samples=pairs(), masks=True,
)  # fmt: skip
def maximum(x1: Operand, x2: Operand, /) -> Value:
    """The larger of x1 and x2, NaN kept; equal operands share the derivative.

    Example:
        >>> import funct.array as xp
        >>> xp.maximum(xp.asarray([1.0, 5.0, xp.nan]), 3.0).tolist()
        [3.0, 5.0, nan]
    """


@elementwise(
    np.minimum, _extremum_rule_x1, _extremum_rule_x2,
    code="min({0}, {1})", onnx="Min", samples=pairs(), masks=True,
)  # fmt: skip
def minimum(x1: Operand, x2: Operand, /) -> Value:
    """The smaller of x1 and x2, NaN kept; equal operands share the derivative.

    Example:
        >>> import funct.array as xp
        >>> xp.minimum(xp.asarray([1.0, 5.0, xp.nan]), 3.0).tolist()
        [1.0, 3.0, nan]
    """


def _where_rule_x1(g: Value, condition: Value) -> Value:
    return ops.where(condition, g, 0.0)


def _where_rule_x2(g: Value, condition: Value) -> Value:
    return ops.where(condition, 0.0, g)


def _where_samples(rng: np.random.Generator) -> list[Any]:
    out = []
    for kind in ("float64", "complex128"):
        for sc, sx, sy in (((3,), (3,), (3,)), ((2, 1), (3,), (2, 3)), ((), (2,), ())):
            c = rng.integers(0, 2, sc).astype(bool)
            out.append(
                ops.Sample((c, rng.normal(size=sx).astype(kind), rng.normal(size=sy).astype(kind)))
            )
    return out


@elementwise(
    kernels.choice, None, _where_rule_x1, _where_rule_x2,
    code="{1} if {0} else {2}", onnx="Where", samples=_where_samples, masks=True,
)  # fmt: skip
def where(condition: Operand, x1: Operand, x2: Operand, /) -> Value:
    """x1 where condition holds, else x2. What is not chosen has derivative 0, even were it NaN."""
