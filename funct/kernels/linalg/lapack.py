"""LAPACK on stacks of matrices: the loops that np.linalg calls, without its checks around them.

np.linalg converts, compares and copies for longer than LAPACK works on a small matrix. Operands
here are stacks of matrices whose shapes `matrices.py` has checked. Single precision is
computed in double, as np.linalg does. That is called for buffers of other devices, whose libraries
know its functions and not these loops, and should NumPy not have a loop any more.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from funct.kernels.quiet import asking

__all__ = ["address", "loop"]

_WIDE = {"f": np.dtype(np.float64), "F": np.dtype(np.complex128)}
_NARROW = {"d": np.dtype(np.float32), "D": np.dtype(np.complex64)}
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


def _in_double(run: Any, otherwise: Any, operands: tuple[Any, ...]) -> Any:
    """run of matrices in single precision: of another pair of precisions NumPy has to know."""
    if otherwise is None or operands[0].dtype.char not in "fF":
        return otherwise(*operands)
    if len(operands) == 1:
        found = run(operands[0].astype(_WIDE[operands[0].dtype.char]))
    elif {o.dtype.char for o in operands} - {"f", "F"} and operands[-1].ndim:
        return otherwise(*operands)
    else:
        found = run(*[o.astype(_WIDE.get(o.dtype.char, o.dtype)) for o in operands])
    if found.__class__ is tuple:
        return tuple([_narrowed(v) for v in found])
    return _narrowed(found)


def _narrowed(v: Any) -> Any:
    kind = _NARROW.get(v.dtype.char)
    if kind is None:
        return v
    return v.astype(kind) if v.ndim else kind.type(v)


def loop(name: str, otherwise: Any, *, fails: bool = True) -> Any:
    """NumPy's loop of that name, which raises LinAlgError where LAPACK reports a failure."""
    found = getattr(_LOOPS, name, None)
    if found is None:
        return otherwise
    host = np.ndarray

    def run(*operands: Any) -> Any:
        first, last = operands[0], operands[-1]
        if first.__class__ is not host:
            return otherwise(*operands)
        if first.dtype.char not in "dD" or last.dtype.char not in "dD":
            return _in_double(run, otherwise, operands)
        if not fails:
            return found(*operands)
        return _careful().run(found, *operands)

    return run
