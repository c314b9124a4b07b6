"""Operands of level 0 that are no Arrays: numbers, arrays of NumPy's, what captures keep open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.array.dtypes import in_native
from funct.core import NARROW, NARROW_INTEGERS, OpenNumber, Size, Value, narrow_of
from funct.errors import ArgumentError, DTypeError, RangeError
from funct.ops.fast import wrap

__all__ = ["OpenOperandError", "bare", "number", "opened"]


def bare(name: str, a: Any) -> Any:
    """An operand that is no Array, as the kernels of an op take it.

    Raises: OpenOperandError: for what a capture keeps open. TypeError: for what is no operand.
    """
    if type(a) is OpenNumber:
        raise OpenOperandError(a.sheet.lift)
    if isinstance(a, bool | int | float | complex):
        return a
    if isinstance(a, np.generic | np.ndarray):
        a = in_native(name, a)
        return np.asarray(a) if isinstance(a, np.ndarray) else a
    if isinstance(a, Size):
        if a.scope.lift is not None and a.scope.measure is not None:
            raise OpenOperandError(a.scope.lift)
        return a.__index__()
    raise TypeError("not an operand")


class OpenOperandError(Exception):
    """An operand is a number that a capture keeps open: the op belongs there."""

    def __init__(self, lift: Callable[[Any], Any]) -> None:
        self.lift = lift

    def lifted(self, args: Sequence[Any]) -> list[Any]:
        """The operands for that capture: arrays are constants of it; of numbers alone, arrays."""
        arrays = Value | np.ndarray | np.generic
        if any(isinstance(a, arrays) for a in args):
            return [self.lift(_held(a)) if isinstance(a, arrays) else a for a in args]
        return [a.__funct_array__() if hasattr(a, "__funct_array__") else a for a in args]


def _held(a: Any) -> Any:
    """An array of NumPy's or ours as one of ours."""
    return a if isinstance(a, Value) else wrap(np.asarray(a))


def number(name: str, value: Any, dtype: Any = None) -> Any:
    """A buffer of a Python number, or a list of them; an integer must fit its dtype."""
    if value.__class__ is int and dtype is None and not -(2**63) <= value < 2**63:
        raise RangeError(f"{name}: {value} does not fit int64", fix="dtype=funct.array.float64")
    if value.__class__ is complex and dtype is not None and dtype.kind not in "cb":
        raise DTypeError(f"{name}: {value} has no {dtype} value")
    try:
        if dtype in NARROW:
            value = narrow_of(value, dtype)
            if value.__class__ is int:
                raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
        made = np.asarray(value, dtype=dtype)
        expect_kept(made, value)
        return made
    except OverflowError as error:
        raise RangeError(f"{name}: {error}") from None
    except ValueError as error:  # NaN as an integer
        raise ArgumentError(f"{name}: {error}") from None


def expect_kept(made: Any, value: Any) -> None:
    """Raise OverflowError where an integer of a list is another in the array made of it: NumPy says
    so of its own dtypes, those of ml_dtypes wrap around.
    """
    if made.dtype not in NARROW_INTEGERS or not isinstance(value, list | tuple):
        return
    wide = np.asarray(value)
    lost: Any = wide[made.astype(wide.dtype) != wide] if wide.dtype.kind in "iuO" else ()
    if len(lost):
        raise OverflowError(f"Python integer {lost[0]} out of bounds for {made.dtype}")


def opened(name: str, x: Any, dtype: Any = None) -> Any:
    """What stands for a Tensor, as one; an integer that is kept open must fit an integer dtype."""
    integer = dtype is not None and (dtype.kind in "iu" or dtype in NARROW_INTEGERS)
    if integer and type(x) is OpenNumber and x.value.__class__ is int:
        number(name, x.value, dtype)
        return x.sheet.measured(x, dtype)
    return x.__funct_array__()
