"""Why a call of an op failed: the typed error for what NumPy or a kernel raised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct.core import Primitive, Size, Value
from funct.device.memory import failure
from funct.errors import (
    AllocationError,
    ArgumentError,
    DTypeError,
    FunctError,
    IndexOutOfBoundsError,
    RangeError,
    ShapeError,
    UnsupportedOperandError,
)

__all__ = ["explain", "out_of_memory"]


def out_of_memory(name: str, error: MemoryError) -> AllocationError:
    """What is said where an array finds no room, with who has the memory."""
    return AllocationError("\n    ".join([f"{name}: {error}", failure()]).rstrip())


def explain(
    prim: Primitive, args: Sequence[Any], params: tuple[Any, ...], error: Exception
) -> Exception:
    """The typed error for a failed call: the abstract rule knows best, NumPy second best."""
    if isinstance(error, FunctError | RecursionError | Warning):
        return error
    if isinstance(error, MemoryError):
        return out_of_memory(prim.name, error)
    if isinstance(error, OverflowError):
        return RangeError(f"{prim.name}: {error}")
    for name, a in zip(prim.operands, args, strict=False):
        if not isinstance(a, Value | bool | int | float | complex | np.generic | np.ndarray | Size):
            return UnsupportedOperandError(
                f"{prim.name}: {name} must be a Tensor or a Python number, got {type(a).__name__}",
                fix=f"funct.array.asarray({name})" if isinstance(a, list | tuple) else None,
            )
    try:
        prim.aval(args, params)
    except FunctError as better:
        return better
    except Exception:
        pass
    if "::" in prim.name:  # a user's op: the error is the user's own
        return error
    if isinstance(error, IndexError):
        return IndexOutOfBoundsError(f"{prim.name}: {error}")
    if isinstance(error, TypeError):
        dtypes = ", ".join(str(getattr(a, "dtype", type(a).__name__)) for a in args)
        return DTypeError(f"{prim.name}: not defined for {dtypes}")
    if isinstance(error, ValueError):
        kind = ShapeError if prim.spread is None else ArgumentError  # the aval knows its shapes
        return kind(f"{prim.name}: {error}")
    return error
