"""LAPACK on stacks of matrices: the loops that np.linalg calls, without its checks around them.

np.linalg converts, compares and copies for longer than LAPACK works on a small matrix. Operands
here are stacks of matrices whose shapes `matrices.py` has checked. Small matrices in single
precision are computed in double, as np.linalg does: it costs little there. Large ones take two to
three times as long in double, and are computed as they are, as LAPACK's other users do. np.linalg
itself is called for buffers of other devices, whose libraries know its functions and not these
loops, and should NumPy not have a loop any more.
"""

from __future__ import annotations

import ctypes
import functools
from contextlib import nullcontext
from typing import Any

import numpy as np

from funct.device import blas
from funct.kernels.cpu.elementwise.ufunc_loops import generalized
from funct.kernels.linalg.in_parts import WORTH, in_parts
from funct.kernels.quiet import asking

__all__ = [
    "ALONE", "LARGE", "PANEL", "REFLECTIONS", "SIDES", "address", "alone", "inner", "loop",
    "orthogonal",
]  # fmt: skip

LARGE = 32 * 32  # elements of a matrix that is computed in its own precision

ALONE = {
    "cholesky_lo": (96, 500), "solve": (96, 600), "det": (96, 600), "slogdet": (96, 600),
    "eigh_lo": (32, 400), "eigvalsh_lo": (48, 400), "eig": (32, 1 << 15), "eigvals": (32, 1 << 15),
    "svd": (32, 700), "svd_f": (32, 700), "svd_s": (32, 700), "lstsq": (32, 700),
    "inv": (96, 256), "qr_r_raw": (32, 500), "qr_reduced": (32, 500), "qr_complete": (32, 500),
    "lu": (96, 600), "expm": (33, 256),
}  # fmt: skip
"""NumPy's loops, LAPACK's function, one of SciPy's, and from how many rows of real numbers, twice
those of complex ones, BLAS has a use for threads in them, up to how many it computes on one all the
same: several gain a tenth at best, since they wait for each other often, and beside other work on
the cores that takes many times as long. What many right sides cost two threads halve, and bear
company: of a larger `inv` as well.
"""
_COMPLEX = 4  # multiplications of real numbers in one of complex numbers
SIDES = 4  # rows for each right side, from which a system has few

_IN_PARTS = {
    "cholesky_lo": 4, "det": 7, "slogdet": 7, "solve": 8, "inv": 18, "eigvalsh_lo": 40,
    "eigh_lo": 85, "svd": 55, "svd_f": 140, "svd_s": 140, "eig": 200, "eigvals": 140,
}  # fmt: skip
"""Loops that are worth a second thread, and the ns that they take for each element."""
_LARGE_PART = 96 * 96  # elements of a matrix that BLAS may give to threads of its own

_WIDE = {"f": "d", "F": "D"}
_NARROW = {"d": np.dtype(np.float32), "D": np.dtype(np.complex64)}
_LOOPS: Any = getattr(np.linalg, "_umath_linalg", None)


def alone(name: str, x: Any) -> Any:
    """A block in which BLAS computes on the thread that calls, if these matrices want it so."""
    least, most = (n * n for n in ALONE[name])
    size = x.shape[-1] * x.shape[-2]
    some = least <= size * (_COMPLEX if x.dtype.char in "FD" else 1) and size < most
    return blas.alone() if some else nullcontext()


def inner(char: str, rows: int, columns: int) -> str:
    """The dtype, by its character, in which a matrix of another is computed."""
    return char if char in "dD" or rows * columns >= LARGE else _WIDE[char]


@functools.cache
def address(name: str, char: str, beside: str = "") -> int | None:
    """The address of NumPy's loop for "f", "d", "F" or "D": `void (char **args, npy_intp *lengths,
    npy_intp *strides, void *)`. Results of a matrix for which it fails are NaN.

    beside: other dtypes that it has to do with, besides the real one of complex matrices.
    """
    found: Any = getattr(_LOOPS, name, None)
    real = char.lower()  # what a complex matrix may have beside
    known = {char, real, *beside, *"->"}
    types = [t for t in getattr(found, "types", ()) if t[0] == char and set(t) <= known]
    loop = generalized(found, types[0]) if len(types) == 1 else None
    return loop.function or None if loop is not None else None


def _fail(error: str, flag: int) -> None:
    raise np.linalg.LinAlgError(error)


_careful = asking(_fail)


def _in_double(wide: Any, otherwise: Any, fails: bool, operands: tuple[Any, ...]) -> Any:
    """A loop of `wide` on matrices in single precision: another pair of precisions NumPy has to
    know.
    """
    chars = "".join([o.dtype.char for o in operands])
    if otherwise is None or chars[0] not in "fF":
        return otherwise(*operands)
    if operands[-1].ndim and chars.strip("fF"):
        return otherwise(*operands)
    call = wide["F" if "F" in chars else "f"]
    found = _careful().run(call, *operands) if fails else call(*operands)
    return tuple(map(_narrowed, found)) if found.__class__ is tuple else _narrowed(found)


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
    plain = _loop(name, found, otherwise, fails, None, (0, 0))
    alone = ALONE.get(name)
    return plain if alone is None else _loop(name, found, otherwise, fails, plain, alone)


def _parted(found: Any, name: str, operands: tuple[Any, ...]) -> Any:
    """What it gives for a large stack, computed on several threads; None: for one thread."""
    first = operands[0]
    if name not in _IN_PARTS or 2 * _IN_PARTS[name] * first.size < WORTH:
        return None
    work = first.shape[-1] * first.shape[-2] * (_COMPLEX if first.dtype.kind == "c" else 1)
    if work >= _LARGE_PART:  # with two threads BLAS gives other last bits
        return None
    chars = "".join([o.dtype.char for o in operands])
    if chars.strip(chars[0]) or chars[0] not in "fdFD":
        return None
    inner_char = inner(chars[0], *first.shape[-2:])
    at = address(name, inner_char, "FD")
    types = [t for t in found.types if t.startswith(inner_char * len(operands) + "->")]
    if at is None or len(types) != 1:
        return None
    cost = _IN_PARTS[name] * first.shape[-1] * first.shape[-2] * (2 if inner_char in "FD" else 1)
    out = in_parts(found, at, operands, types[0], cost)
    if out is None or inner_char == chars[0]:
        return out
    return tuple(map(_narrowed, out)) if out.__class__ is tuple else _narrowed(out)


def _loop(
    name: str, found: Any, otherwise: Any, fails: bool, alone: Any, rows: tuple[int, int]
) -> Any:
    """alone: what is called while BLAS has one thread, for matrices of so many rows if they are
    square; None: nothing.
    """
    host = np.ndarray
    least, most = (n * n for n in rows)
    own = {t[: found.nin] for t in found.types}
    # elements, below which BLAS has one thread, stacks too, and single precision is computed wide
    few = min(least // _COMPLEX, LARGE, WORTH // (2 * _IN_PARTS.get(name, 1)))
    wide = {  # by what they take, which they widen
        single: functools.partial(found, signature=t)
        for single, double in zip("fF", "dD", strict=True)
        for t in found.types
        if t[0] == double
    }

    known: dict[Any, Any] = {}  # by the dtypes of the first operand and the last, for few elements
    if found.nin <= 3 and otherwise is not None:
        calls = wide | {c: found for c in "dD" if c * found.nin in own}
        known = {(np.dtype(c), np.dtype(c)): call for c, call in calls.items()}

    def run(*operands: Any) -> Any:
        first, last = operands[0], operands[-1]
        if first.__class__ is not host:
            return otherwise(*operands)
        if first.size < few and (call := known.get((first.dtype, last.dtype))) is not None:
            out = _careful().run(call, *operands) if fails else call(*operands)
            if call is found:
                return out
            return tuple(map(_narrowed, out)) if out.__class__ is tuple else _narrowed(out)
        some = alone is not None and first.size * _COMPLEX >= least  # which costs least to ask
        if some and (last is first or last.size * SIDES <= first.size):
            size = first.shape[-1] * first.shape[-2]
            if least <= size * (_COMPLEX if first.dtype.char in "FD" else 1) and size < most:
                with blas.alone():
                    return alone(*operands)
        if first.ndim > 2 and (parts := _parted(found, name, operands)) is not None:
            return parts
        if first.dtype.char not in "dD" or last.dtype.char not in "dD":
            large = first.shape[-1] * first.shape[-2] >= LARGE
            if not large or "".join([o.dtype.char for o in operands]) not in own:
                return _in_double(wide, otherwise, fails, operands)
        if not fails:
            return found(*operands)
        return _careful().run(found, *operands)

    return run


REFLECTIONS = {"f": ("sgeqrf", "sorgqr"), "F": ("cgeqrf", "cungqr")}
PANEL = 64  # columns of LAPACK's blocks, at most


@functools.cache
def _fortran(name: str) -> Any:
    """The function of LAPACK, which takes addresses, and the type of its integers."""
    found = blas.lapack(name)
    if found is None:
        return None
    integer: Any = ctypes.c_int64 if found[1] else ctypes.c_int32
    return ctypes.CFUNCTYPE(None)(found[0]), integer


def orthogonal(x: Any, complete: bool) -> tuple[Any, Any] | None:
    """Q and R of one large matrix in single precision, which NumPy has in double alone; below R's
    diagonal stands what Q is made of. None where it is not for LAPACK.
    """
    char = x.dtype.char
    if x.ndim != 2 or char not in "fF" or x.size < LARGE:
        return None
    factor, form = (_fortran(name) for name in REFLECTIONS[char])
    if factor is None or form is None:
        return None
    m, n = x.shape
    k, columns = min(m, n), m if complete else min(m, n)
    held = np.empty((max(n, columns), m), x.dtype)  # LAPACK's columns
    held[:n] = x.T
    tau = np.empty(k, x.dtype)
    with alone("qr_r_raw", x):
        _run(factor, (m, n), held, m, tau)
        r = held.T[:columns, :n].copy()
        _run(form, (m, columns, k), held, m, tau)
    return np.ascontiguousarray(held[:columns].T), r


def _run(function: Any, sizes: tuple[int, ...], a: Any, rows: int, tau: Any) -> None:
    call, integer = function
    work = np.empty(PANEL * max(sizes), a.dtype)
    given = [ctypes.byref(integer(n)) for n in sizes]
    data = [ctypes.c_void_p(v.ctypes.data) for v in (a, tau, work)]
    lead, room, told = integer(rows), integer(work.size), integer(0)
    ref = ctypes.byref
    call(*given, data[0], ref(lead), data[1], data[2], ref(room), ref(told))
    assert not told.value, "LAPACK was given what it takes"
