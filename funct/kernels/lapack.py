"""LAPACK on stacks of matrices: the loops that np.linalg calls, without its checks around them.

np.linalg converts, compares and copies for longer than LAPACK works on a small matrix. Operands
here are stacks of matrices whose shapes `funct.kernels.matrices` has checked. np.linalg is called
for single precision, which it computes in double, for buffers of other devices, whose libraries
know its functions and not these loops, and should NumPy not have a loop any more.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from funct.kernels.quiet import asking

__all__ = ["address", "loop"]

_LOOPS: Any = getattr(np.linalg, "_umath_linalg", None)


class _Ufunc(ctypes.Structure):
    """The first fields of `PyUFuncObject`, which NumPy's ABI has fixed."""

    _fields_ = (
        ("head", ctypes.c_ssize_t * 2), ("nin", ctypes.c_int), ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int), ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.c_void_p),
        ("ntypes", ctypes.c_int),
    )  # fmt: skip


@functools.cache
def address(name: str) -> int | None:
    """The address of NumPy's loop in double precision: `void (char **args, npy_intp *lengths,
    npy_intp *strides, void *)`. Results of a matrix for which it fails are NaN.
    """
    found: Any = getattr(_LOOPS, name, None)
    types = [t for t in getattr(found, "types", ()) if set(t) <= {"d", "-", ">"}]
    if len(types) != 1 or object.__basicsize__ != ctypes.sizeof(ctypes.c_ssize_t * 2):
        return None
    seen = _Ufunc.from_address(id(found))
    if (seen.nin, seen.nout, seen.ntypes) != (found.nin, found.nout, found.ntypes):
        return None
    return seen.functions[found.types.index(types[0])]


def _fail(error: str, flag: int) -> None:
    raise np.linalg.LinAlgError(error)


_careful = asking(_fail)


def loop(name: str, otherwise: Any, *, fails: bool = True) -> Any:
    """NumPy's loop of that name, which raises LinAlgError where LAPACK reports a failure."""
    found = getattr(_LOOPS, name, None)
    if found is None:
        return otherwise
    host = np.ndarray

    def run(*operands: Any) -> Any:
        first, last = operands[0], operands[-1]
        double = first.dtype.char in "dD" and last.dtype.char in "dD"
        if not double or first.__class__ is not host:
            return otherwise(*operands)
        if not fails:
            return found(*operands)
        return _careful().run(found, *operands)

    return run
