"""NumPy's own loops: the C function behind a ufunc for one dtype, where it gives what it says.

A ufunc has, for each dtype, a C function `void (char **args, intp *counts, intp *strides, void *)`.
Whoever calls it with the strides that NumPy would hand over gets NumPy's bits.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from contextlib import suppress
from typing import Any

import numpy as np
from msgspec import Struct

from funct.device.machine_code import offer, offer_all
from funct.kernels.elementwise.thresholds import SLOW

__all__ = ["Loop", "by_count", "generalized", "loop_of", "offered"]


class _UFunc(ctypes.Structure):
    """PyUFuncObject, as far as it is the same in all versions."""

    _fields_ = (
        ("head", ctypes.c_byte * object.__basicsize__), ("nin", ctypes.c_int),
        ("nout", ctypes.c_int), ("nargs", ctypes.c_int), ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)), ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int), ("reserved", ctypes.c_int), ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_char)),
    )  # fmt: skip


class Loop(Struct, frozen=True):
    """A C function and what it is handed besides arrays."""

    function: int
    data: int


@functools.cache
def loop_of(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Loop | None:
    """The loop of a function on one dtype; None if there is none that does what it says."""
    wanted = f"{dtype.char * ufunc.nin}->{dtype.char}"
    if wanted not in ufunc.types:
        return None
    at = ufunc.types.index(wanted)
    held = _UFunc.from_address(id(ufunc))
    loop = Loop(held.functions[at] or 0, held.data[at] or 0)
    return loop if held.nin == ufunc.nin and _is_right(loop, ufunc, dtype) else None


@functools.cache
def generalized(ufunc: np.ufunc, types: str) -> Loop | None:
    """The loop of a function of whole arrays for these types, as `ufunc.types` names them."""
    held = _UFunc.from_address(id(ufunc))
    counts = ufunc.nin, ufunc.nout, ufunc.ntypes
    if types not in ufunc.types or (held.nin, held.nout, held.ntypes) != counts:
        return None
    at = ufunc.types.index(types)
    return Loop(held.functions[at] or 0, (held.data[at] or 0) if held.data else 0)


@functools.cache
def offered(ufunc: np.ufunc, dtype: np.dtype[Any]) -> tuple[str, str]:
    """The name by which machine code may call a loop, and what it hands over besides arrays.

    Raises: LookupError: where there is no such loop.
    """
    loop = loop_of(ufunc, dtype)
    if loop is None:
        raise LookupError(f"NumPy's {ufunc.__name__} has no loop for {dtype}")
    name = f"numpy_{ufunc.__name__}_{dtype.name}"
    offer(name, lambda: loop.function)
    if not loop.data:
        return name, "null"
    offer(f"{name}_data", lambda: loop.data)
    return name, f"@{name}_data"


@functools.cache
def by_count(ufunc: np.ufunc, dtype: np.dtype[Any]) -> tuple[str, str]:
    """The same of what eager code runs, for few elements and for many (`alike.loop`).

    Raises: LookupError: as `offered`.
    """
    theirs = offered(ufunc, dtype)
    if ufunc.__name__ not in SLOW:
        return theirs
    name = f"{theirs[0]}_by_count"
    beside = f"{__package__}.alike"  # the functions, which few processes ask for
    offer(name, lambda: importlib.import_module(beside).loop(ufunc, dtype))
    return name, "null"


def _offer(name: str) -> None:
    """Offer a function by its name, as in `offered` and `by_count`, if NumPy has it."""
    ufunc, _, dtype = name.partition("_")[2].removesuffix("_by_count").rpartition("_")
    if dtype == "data":
        ufunc, _, dtype = ufunc.rpartition("_")
    found = getattr(np, ufunc, None)
    if isinstance(found, np.ufunc):
        with suppress(LookupError, TypeError):  # of a dtype that is none
            by_count(found, np.dtype(dtype))


offer_all("numpy", _offer)


def _is_right(loop: Loop, ufunc: np.ufunc, dtype: np.dtype[Any]) -> bool:
    """Whether the loop gives what the function gives, on a few numbers."""
    x = [np.linspace(0.5, 0.875, 7).astype(dtype) for _ in range(ufunc.nin)]
    with np.errstate(all="ignore"):
        expected, found = ufunc(*x), np.empty(7, dtype)
    arrays = [*x, found]
    addresses = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    strides = (ctypes.c_ssize_t * len(arrays))(*[dtype.itemsize] * len(arrays))
    kind = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
    )
    count = ctypes.c_ssize_t(7)
    kind(loop.function)(addresses, ctypes.byref(count), strides, loop.data or None)
    return bool(np.array_equal(expected, found, equal_nan=True))
