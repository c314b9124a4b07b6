"""Python's operators on arrays, traced or not: each calls the function that the standard names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from funct import ops
from funct.array.dtypes import in_native
from funct.core import Operand, Value, ask
from funct.errors import ShapeError, UnsupportedOperandError
from funct.ops import fast
from funct.ops.fast import wrap
from funct.ops.linalg import multiplied

if TYPE_CHECKING:
    from funct.array.tensor import Tensor

__all__ = ["Operators", "matmul", "quotient_and_rest"]


asarray = np.asarray
ndarray = np.ndarray


def quotient_and_rest(x: Operand, y: Operand, /) -> tuple[Any, Any]:
    """What `divmod(x, y)` gives: x // y and x % y."""
    return ops.floor_divide(x, y), ops.remainder(x, y)


class Operators(Value):
    """The arithmetic, bitwise and comparison operators of `Tensor`."""

    __slots__ = ()

    def __add__(self, other: Operand, /) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: Operand, /) -> Tensor:
        return ops.add(other, self)

    def __sub__(self, other: Operand, /) -> Tensor:
        return ops.subtract(self, other)

    def __rsub__(self, other: Operand, /) -> Tensor:
        return ops.subtract(other, self)

    def __mul__(self, other: Operand, /) -> Tensor:
        return ops.multiply(self, other)

    def __rmul__(self, other: Operand, /) -> Tensor:
        return ops.multiply(other, self)

    def __truediv__(self, other: Operand, /) -> Tensor:
        return ops.divide(self, other)

    def __rtruediv__(self, other: Operand, /) -> Tensor:
        return ops.divide(other, self)

    def __floordiv__(self, other: Operand, /) -> Tensor:
        return ops.floor_divide(self, other)

    def __rfloordiv__(self, other: Operand, /) -> Tensor:
        return ops.floor_divide(other, self)

    def __mod__(self, other: Operand, /) -> Tensor:
        return ops.remainder(self, other)

    def __rmod__(self, other: Operand, /) -> Tensor:
        return ops.remainder(other, self)

    def __divmod__(self, other: Operand, /) -> tuple[Tensor, Tensor]:
        return quotient_and_rest(self, other)

    def __rdivmod__(self, other: Operand, /) -> tuple[Tensor, Tensor]:
        return quotient_and_rest(other, self)

    def __pow__(self, other: Operand, /) -> Tensor:
        return ops.pow(self, other)

    def __rpow__(self, other: Operand, /) -> Tensor:
        return ops.pow(other, self)

    def __matmul__(self, other: Value, /) -> Tensor:
        return matmul(self, other)

    def __rmatmul__(self, other: Value, /) -> Tensor:
        return matmul(other, self)

    def __neg__(self, /) -> Tensor:
        return ops.negative(self)

    def __pos__(self, /) -> Self:
        return self

    def __abs__(self, /) -> Tensor:
        return ops.abs(self)

    def __invert__(self, /) -> Tensor:
        return ops.bitwise_invert(self)

    def __and__(self, other: Operand, /) -> Tensor:
        return ops.bitwise_and(self, other)

    def __rand__(self, other: Operand, /) -> Tensor:
        return ops.bitwise_and(other, self)

    def __or__(self, other: Operand, /) -> Tensor:
        return ops.bitwise_or(self, other)

    def __ror__(self, other: Operand, /) -> Tensor:
        return ops.bitwise_or(other, self)

    def __xor__(self, other: Operand, /) -> Tensor:
        return ops.bitwise_xor(self, other)

    def __rxor__(self, other: Operand, /) -> Tensor:
        return ops.bitwise_xor(other, self)

    def __lshift__(self, other: Operand, /) -> Tensor:
        return ops.bitwise_left_shift(self, other)

    def __rlshift__(self, other: Operand, /) -> Tensor:
        return ops.bitwise_left_shift(other, self)

    def __rshift__(self, other: Operand, /) -> Tensor:
        return ops.bitwise_right_shift(self, other)

    def __rrshift__(self, other: Operand, /) -> Tensor:
        return ops.bitwise_right_shift(other, self)

    def __lt__(self, other: Operand, /) -> Tensor:
        return ops.less(self, other)

    def __le__(self, other: Operand, /) -> Tensor:
        return ops.less_equal(self, other)

    def __gt__(self, other: Operand, /) -> Tensor:
        return ops.greater(self, other)

    def __ge__(self, other: Operand, /) -> Tensor:
        return ops.greater_equal(self, other)

    def __eq__(self, other: object, /) -> Tensor:  # type: ignore[override]
        return ops.equal(self, other)  # type: ignore[arg-type]

    def __ne__(self, other: object, /) -> Tensor:  # type: ignore[override]
        return ops.not_equal(self, other)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]  # == is elementwise


# A method that is the op itself costs no call of its own.
if not TYPE_CHECKING:
    for _method, _op in {
        "__add__": ops.add,
        "__sub__": ops.subtract,
        "__mul__": ops.multiply,
        "__truediv__": ops.divide,
        "__floordiv__": ops.floor_divide,
        "__mod__": ops.remainder,
        "__pow__": ops.pow,
        "__and__": ops.bitwise_and,
        "__or__": ops.bitwise_or,
        "__xor__": ops.bitwise_xor,
        "__lshift__": ops.bitwise_left_shift,
        "__rshift__": ops.bitwise_right_shift,
        "__lt__": ops.less,
        "__le__": ops.less_equal,
        "__gt__": ops.greater,
        "__ge__": ops.greater_equal,
        "__eq__": ops.equal,
        "__ne__": ops.not_equal,
        "__neg__": ops.negative,
        "__abs__": ops.abs,
        "__invert__": ops.bitwise_invert,
    }.items():
        setattr(Operators, _method, _op)


def matmul(x: Any, y: Any, /) -> Any:
    """Matrix product; 1-D operands are rows and columns as in the Array API.

    Raises: ShapeError: when the inner lengths differ, and for 0-d operands.
    Example:
        >>> import funct.array as xp
        >>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1])).tolist()
        [3, 7]
        >>> xp.matmul(xp.ones((5, 2, 3)), xp.ones((3, 4))).shape  # leading axes broadcast
        (5, 2, 4)
    """
    if x.__class__ is ndarray:
        x = wrap(in_native("matmul", x))
    if y.__class__ is ndarray:
        y = wrap(in_native("matmul", y))
    if x.__class__ is fast.Array and y.__class__ is fast.Array:
        try:
            d = multiplied(x.data, y.data)
        except Exception:
            pass  # refused by name below
        else:
            r = fast.make(None)
            r.data = d if d.__class__ is ndarray else asarray(d)
            return r
    if not isinstance(x, Value) or not isinstance(y, Value):
        if (answer := ask("matmul", x, y)) is not NotImplemented:
            return answer
        x, y = _matrix(x), _matrix(y)
    a, b = len(x.shape), len(y.shape)
    if a >= 2 and b >= 2:
        return ops.matmul(x, y)
    if a == 0 or b == 0:
        raise ShapeError(
            f"matmul: operands must have at least 1 axis, got x {x.shape} and y {y.shape}"
        )
    inner = y.shape[0 if b == 1 else -2]
    if x.shape[-1] != inner:
        raise ShapeError(
            f"matmul: inner dimensions must agree, got x {x.shape} and y {y.shape}: "
            f"{x.shape[-1]} != {inner}"
        )
    left = ops.reshape(x, (1, *x.shape)) if a == 1 else x
    right = ops.reshape(y, (*y.shape, 1)) if b == 1 else y
    out = ops.matmul(left, right)
    keep = (out.shape[-2:-1] if a > 1 else ()) + (out.shape[-1:] if b > 1 else ())
    return ops.reshape(out, (*out.shape[:-2], *keep))


def _matrix(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return wrap(in_native("matmul", x))
    if not isinstance(x, Value):
        raise UnsupportedOperandError(
            f"matmul: both operands must be Tensors, got {type(x).__name__}"
        )
    return x
