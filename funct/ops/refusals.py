"""Why a call failed: the typed error for what NumPy, a kernel or Python raised.

`explain` is for ops, `refuse` for functions that are composed of them.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from funct.source import raised_by_user

__all__ = ["explain", "finding_room", "out_of_memory", "refuse", "retold", "shown"]


def out_of_memory(name: str, error: MemoryError) -> AllocationError:
    """What is said where an array finds no room, with who has the memory."""
    said = str(error) or "the system has no room for what it needs"  # LAPACK says nothing
    return AllocationError("\n    ".join([f"{name}: {said}", failure()]).rstrip())


@contextmanager
def finding_room(name: str) -> Iterator[None]:
    """Where arrays find no room in the block, the function of that name says so."""
    try:
        yield
    except MemoryError as error:
        raise error if isinstance(error, FunctError) else out_of_memory(name, error) from None


# What NumPy says of sizes that no array can have, in its several loops
_NO_SIZE = (
    "Maximum allowed", "array is too big", "iterator is too large", "dimensions are too large",
    "broadcast dimensions too large", "advanced indexing operation result is too large",
    "total number of elements too large", "maximum supported dimension",
)  # fmt: skip


def _is_too_large(error: Exception) -> bool:
    """Whether NumPy refused a size that no array can have."""
    return isinstance(error, ValueError) and str(error).startswith(_NO_SIZE)


def _too_large(name: str, error: Exception, given: Mapping[str, Any]) -> AllocationError:
    return AllocationError(f"{name}: no array is as large as {_listed(given)} asks for: {error}")


def explain(
    prim: Primitive, args: Sequence[Any], params: tuple[Any, ...], error: Exception
) -> Exception:
    """The typed error for a failed call: the abstract rule knows best, NumPy second best."""
    if isinstance(error, FunctError | RecursionError | Warning):
        return error
    if isinstance(error, MemoryError):
        return out_of_memory(prim.name, error)
    if _is_too_large(error):
        names = (*prim.operands, *prim.params)
        return _too_large(prim.name, error, dict(zip(names, (*args, *params), strict=False)))
    if isinstance(error, OverflowError):
        return RangeError(f"{prim.name}: {error}")
    for name, a in zip(prim.operands, args, strict=False):
        if not isinstance(a, Value | bool | int | float | complex | np.generic | np.ndarray | Size):
            if raised_by_user(error):  # by the operand's own operator
                return error
            return UnsupportedOperandError(
                f"{prim.name}: {name} must be a Tensor or a Python number, got {type(a).__name__}",
                fix=f"funct.array.asarray({name})" if isinstance(a, list | tuple) else None,
            )
    wanted, given = len(prim.operands) + len(prim.params), len(args) + len(params)
    if wanted != given and isinstance(error, TypeError):
        return TypeError(f"{prim.name}() takes {wanted} arguments but {given} were given")
    better = retold(prim, args, params)
    if better is not None:
        return better
    if "::" in prim.name:  # a user's op: the error is the user's own
        return error
    if isinstance(error, IndexError):
        return IndexOutOfBoundsError(f"{prim.name}: {error}")
    if isinstance(error, TypeError | AttributeError):
        dtypes = ", ".join(str(getattr(a, "dtype", type(a).__name__)) for a in args)
        return DTypeError(f"{prim.name}: not defined for {dtypes}")
    if isinstance(error, ValueError):
        kind = ShapeError if prim.spread is None else ArgumentError  # the aval knows its shapes
        return kind(f"{prim.name}: {error}")
    return error


def retold(prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> FunctError | None:
    """What the abstract rule says of a failed call: it speaks of the shapes that the user wrote."""
    try:
        prim.aval(args, params)
    except FunctError as error:
        return error
    except Exception:
        pass
    return None


# By the class of what Python or NumPy raised; other classes are faults of ours and stay as they are
_KINDS: dict[type[Exception], type[FunctError]] = {
    OverflowError: RangeError,
    IndexError: IndexOutOfBoundsError,
    AttributeError: UnsupportedOperandError,
    TypeError: UnsupportedOperandError,
    NotImplementedError: UnsupportedOperandError,  # by a buffer that is no array
    ValueError: ArgumentError,
    ZeroDivisionError: ArgumentError,
    LookupError: ArgumentError,
    ArithmeticError: ArgumentError,
}


def refuse(name: str, error: Exception, given: Mapping[str, Any]) -> None:
    """Raise the typed error for what came out of a function, called with the arguments given.

    Where the error is typed already, or raised by the user's own code, nothing is done.
    """
    if isinstance(error, FunctError | Warning) or raised_by_user(error):
        return
    if isinstance(error, MemoryError):
        raise out_of_memory(name, error) from None
    if isinstance(error, AttributeError):
        taken = [argument for argument, v in given.items() if v is error.obj]
        if len(taken) == 1:  # what was asked for is what a Tensor has
            raise UnsupportedOperandError(
                f"{name}: {taken[0]} must be a Tensor, got {type(error.obj).__name__}",
                fix=f"funct.array.asarray({taken[0]})"
                if isinstance(error.obj, list | tuple | int | float | complex)
                else None,
            ) from error
    if _is_too_large(error):
        raise _too_large(name, error, given) from error
    if isinstance(error, ValueError) and str(error).startswith("Exceeds the limit ("):
        # of digits, in a text that would have told the number
        raise RangeError(f"{name}: an int is out of every range: {_listed(given)}") from error
    for known, kind in _KINDS.items():
        if isinstance(error, known):
            raise kind(f"{name}: not defined for {_listed(given)}: {error}") from error


def _listed(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{a}={shown(v)}" for a, v in given.items() if v is not None)


class _Short(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        """As others, but for those of so many digits that Python does not write them."""
        bits = x.bit_length()
        return super().repr_int(x, level) if bits < _WRITTEN else f"an int of {bits} bits"


_WRITTEN = 1 << 10  # bits
_writer = _Short()
_writer.maxtuple = _writer.maxlist = 16  # shapes are whole


def shown(v: Any) -> str:
    """A value that came, in a few words."""
    return f"{v.dtype} {v.shape}" if isinstance(v, Value) else _writer.repr(v)
