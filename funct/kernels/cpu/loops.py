"""Kernels: Python functions over flat arrays that are compiled for the dtypes they are called with.

A kernel is written in the subset of Python that `printer.py` describes, so it can also be run as
Python: `checked` does that, with every index checked against the array it goes into.

    @kernel
    def running_sum(x, y, n):
        total = x.dtype.type(0)
        for i in range(n):
            total = total + x[i]
            y[i] = total

    running_sum(x, y, len(x))  # machine code; x and y must be contiguous and aligned
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.device.llvm import binding
from funct.device.machine_code import assemble
from funct.kernels.cpu.printer import entry, tasks_entry
from funct.kernels.cpu.vectors import ELEMENTS, INT, Pointer, Type, element
from funct.kernels.table import permitted

__all__ = ["Kernel", "available", "flat", "kernel", "parallel", "pays", "ready"]

_LEAST = 256  # elements below which a call of a kernel costs more than it saves
_LOADS = 1 << 14  # elements that make it worth the 0.1 s to load LLVM
_ENOUGH = 1 << 17  # so do that many, weighed by what plain code costs, over many calls

# An ndarray's data pointer is its first field; it is read there because `a.ctypes.data` costs as
# much as a small kernel.
_DATA = object.__basicsize__

KNOWN = frozenset([d.char for d in (*ELEMENTS, np.dtype(bool))] + ["l", "q", "L", "Q"])
_loaded = False
_cost = 0

ndarray = np.ndarray


@functools.cache
def available() -> bool:
    """Whether there is a compiler: without LLVM the plain implementations run."""
    global _loaded
    try:
        binding()
    except (ImportError, OSError):
        return False
    _loaded = True
    if sys.byteorder != "little":
        return False
    probe = np.zeros(1)
    return int(ctypes.c_void_p.from_address(id(probe) + _DATA).value or 0) == probe.ctypes.data


def pays(x: Any) -> bool:
    """Whether a kernel is to be preferred for an array like x."""
    n = x.size
    return n >= _LEAST and x.dtype.char in KNOWN and (_loaded or _loads(n, n >> 3)) and _usable()


def ready(n: int) -> bool:
    """Whether a kernel is to be preferred for n elements where plain code is slow at any size."""
    return (_loaded or _loads(n, n + 1000)) and _usable()


def _usable() -> bool:
    return permitted("llvm") and available()


def _loads(n: int, cost: int) -> bool:
    """Whether to load LLVM: for n elements at once, or where plain code has cost enough by now."""
    global _cost
    _cost += cost
    return n >= _LOADS or _cost >= _ENOUGH


def flat(x: Any) -> Any:
    """x as a kernel takes it: contiguous, aligned, truth as bytes; a copy only where needed."""
    flags = x.flags
    if not flags.c_contiguous:
        x = np.ascontiguousarray(x)
    elif not flags.aligned:
        x = x.copy()
    return x.view(np.uint8) if x.dtype == bool else x


class Kernel:
    """A function that is compiled when it is called with new dtypes.

    Arrays are contiguous and aligned, ints and floats are int64 and float64, all else is static.
    It gives the int that the function returns, or 0. No index is checked. In parallel: the last
    argument is how many tasks there are, the function's last one is the number of a task; what a
    task writes depends on its number alone, and tasks write the same where they write to one place.
    """

    __slots__ = ("_made", "fn", "parallel")

    def __init__(self, fn: Callable[..., Any], parallel: bool = False) -> None:
        self.fn, self.parallel = fn, parallel
        self._made: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> int:
        kinds, given = [], []
        for a in args:
            c = a.__class__
            if c is ndarray:
                kinds.append(a.dtype.char)
                given.append(id(a))
            elif c is int or c is float:
                given.append(a)
            else:
                kinds.append(a)
        key = tuple(kinds)
        try:
            call, _ = self._made[key]
        except KeyError:
            call, _ = self._made[key] = self._compile(args)
        found: int = call(*given)
        return found

    def text(self, *args: Any) -> str:
        """The LLVM text for such arguments."""
        printed = tasks_entry if self.parallel else entry
        return printed(self.fn, [_given(a) for a in args], _DATA)

    def _compile(self, args: tuple[Any, ...]) -> tuple[Any, Any]:
        code = assemble(self.text(*args))
        kinds = [
            ctypes.c_double if a.__class__ is float else ctypes.c_int64
            for a in args
            if a.__class__ in (ndarray, int, float)
        ]
        address = code.address("tasks" if self.parallel else "kernel")
        return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address), code

    def checked(self, *args: Any) -> int:
        """Run it as Python; an index outside its array raises IndexError."""
        watched = [_Watched(a) if isinstance(a, np.ndarray) else a for a in args]
        with np.errstate(all="ignore"):
            if not self.parallel:
                return int(self.fn(*watched) or 0)
            for task in range(args[-1]):
                self.fn(*watched[:-1], task)
        return 0


def kernel(fn: Callable[..., Any]) -> Kernel:
    """Make a function a kernel."""
    return Kernel(fn)


def parallel(fn: Callable[..., Any]) -> Kernel:
    """Make it a kernel whose tasks run on the pool's threads."""
    return Kernel(fn, True)


def _given(a: Any) -> Any:
    if a.__class__ is ndarray:
        return Pointer("", element(a.dtype))
    return {int: INT, float: Type("f", 64)}.get(a.__class__, a)


class _Watched:
    """An array whose indices are checked: none counts from the end."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype = array.reshape(-1), array.dtype

    def _place(self, at: Any) -> Any:
        first, last = (at.start, at.stop - 1) if isinstance(at, slice) else (np.min(at), np.max(at))
        if not 0 <= first <= last < len(self.array):
            raise IndexError(f"{at} of {len(self.array)}")
        return at

    def __getitem__(self, at: Any) -> Any:
        return self.array[self._place(at)]

    def __setitem__(self, at: Any, v: Any) -> None:
        v = self.dtype.type(v) if np.ndim(v) == 0 else v
        assert v.dtype == self.dtype
        self.array[self._place(at)] = v
