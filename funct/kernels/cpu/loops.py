"""Kernels: Python functions over flat arrays that are compiled for the dtypes they are called with.

A kernel is written in the subset of Python that `printer.py` describes, so it can also be run as
Python: `checked` does that, with every index checked against the array it goes into.

    @kernel
    def running_sum(x, y, n):
        total = x.dtype.type(0)
        for i in range(n):
            total = total + x[i]
            y[i] = total

    running_sum(x, y, len(x))  # machine code; y must be contiguous and aligned

Where arrays are few elements, to make the result takes as long as to fill it. `making` does both:
the last two parameters are a new array and how many elements it has, which no caller hands over.

    @making("x")
    def negative(x, y, n):
        for i in range(n):
            y[i] = -x[i]

    negative(x)  # an array of the shape and dtype of x
"""

from __future__ import annotations

import ctypes
import functools
import operator
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.device.fork import whole
from funct.device.host import host
from funct.device.llvm import LEAN
from funct.device.printed import printed
from funct.kernels.cpu.calls import readable
from funct.kernels.cpu.entries import Entries
from funct.kernels.cpu.printer import entry
from funct.kernels.cpu.vectors import ELEMENTS, HALVES, INT, Pointer, Type, element
from funct.kernels.table import left, permitted

__all__ = [
    "Kernel", "available", "compiles", "kernel", "lean", "making", "parallel", "pays", "ready",
]  # fmt: skip

_LEAST = 256  # elements below which a call of a kernel costs more than it saves
_LOADS = 1 << 14  # elements that make it worth the 0.1 s to load LLVM
_ENOUGH = 1 << 17  # so do that many, weighed by what plain code costs, over many calls

KNOWN = frozenset([d.char for d in (*ELEMENTS, np.dtype(bool))] + ["l", "q", "L", "Q"])
_making = whole(threading.RLock())  # a table of code grows by one thread at a time
_OWN = {c: np.dtype(np.dtype(c).str) for c in KNOWN | {"F", "D"}}
_OWN |= {d.char: d for d in HALVES}
_loaded = False
_compiles = False  # known to be available
_cost = 0

ndarray = np.ndarray


@functools.cache
def available() -> bool:
    """Whether there is a compiler: without LLVM the plain implementations run."""
    global _loaded, _compiles
    try:
        host()
    except (ImportError, OSError):
        return False
    _loaded = True
    _compiles = sys.byteorder == "little" and readable()
    return _compiles


def pays(x: Any, least: int | None = None) -> bool:
    """Whether a kernel is to be preferred for an array like x, of least elements or more."""
    n = x.size
    if n < (_LEAST if least is None else least) or x.dtype.char not in KNOWN:
        return False
    if _compiles and left() is None:
        return True  # what is asked most
    return (_loaded or _loads(n, n >> 3)) and permitted("llvm") and available()


def ready(n: int, cost: int = 1000) -> bool:
    """Whether a kernel is to be preferred for n elements where plain code is slow at any size.

    cost: what a call of that takes besides, in the time of an element.
    """
    if _compiles and left() is None:
        return True
    return (_loaded or _loads(n, n + cost)) and permitted("llvm") and available()


def compiles() -> bool:
    """Whether there is LLVM, loaded or not, for a kernel that rounds in another way than plain
    code: what a call gives may not depend on the calls before it.
    """
    return (_compiles and left() is None) or (permitted("llvm") and available())


def _loads(n: int, cost: int) -> bool:
    """Whether to load LLVM: for n elements at once, or where plain code has cost enough by now."""
    global _cost
    _cost += cost
    return n >= _LOADS or _cost >= _ENOUGH


class Kernel:
    """A function that is compiled when it is called with new dtypes.

    Arrays that it writes into are contiguous and aligned, others are copied where they are not;
    truth is bytes, complex numbers are their parts, side by side. Ints and floats are int64 and
    float64, all else is static. It gives the int that the function returns, or 0. No index is
    checked. In parallel: the last argument is how many tasks there are, the function's last one is
    the number of a task; what a task writes depends on its number alone, and tasks write the same
    where they write to one place.

    result: the numbers of the arguments that the new array has its shape and dtype of. A call then
    gives that array, or None where the function returns anything but 0.

    level: LLVM's for its code.
    """

    # The builtin stands where Python looks for it, so a call runs no Python.
    __slots__ = (
        "__call__", "_entries", "_known", "_names", "_otherwise", "_result", "fn", "level",
        "parallel",
    )  # fmt: skip

    __call__: Callable[..., Any]

    def __init__(
        self, fn: Callable[..., Any], parallel: bool = False,
        result: tuple[int, int] | None = None, otherwise: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self.fn, self.parallel, self._result, self._otherwise = fn, parallel, result, otherwise
        self.level = 1
        names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
        self._names = names if result is None else names[:-2]
        self._known: dict[Any, tuple[list[Any], frozenset[str], int]] = {}
        self._entries: Entries | None = None
        self.__call__ = self._miss

    def _miss(self, *args: Any) -> Any:
        """A call that no code fits: make the code, or the arguments such as it was made for."""
        if len(args) != len(self._names):
            raise TypeError(f"kernel {self.fn.__name__} takes {self._names}, got {len(args)}")
        if self._otherwise is not None and not _laid_out(args):
            return self._otherwise(*args)
        args = tuple([_native(a) for a in args])
        key = tuple([_kind(a) for a in args])
        known = key in self._known
        canonical, written, _ = self._made(key, args)
        given = []
        for name, a, c in zip(self._names, args, canonical, strict=True):
            if a.__class__ is not ndarray:
                given.append(a if c is int or c is float else c)
            elif _dense(a):
                given.append(a)
            elif name in written:
                raise ValueError(f"kernel {self.fn.__name__}: {name} must be contiguous")
            else:
                given.append(a.copy())
        if known and self._result is not None and all(map(operator.is_, args, given)):
            return None  # the code has answered
        return self.__call__(*given)

    def alone(self) -> Kernel:
        """The same function as a kernel that is one of its tasks: its last argument is the number
        of that, and it gives what the function returns.
        """
        found = Kernel(self.fn)
        found.level = self.level
        return found

    def located(self, *args: Any) -> int:
        """Where `i64 code(ptr frame)` is for such arguments: what `Entries` calls."""
        return self._made(tuple([_kind(a) for a in args]), args)[2]

    def _made(self, key: Any, args: tuple[Any, ...]) -> tuple[list[Any], frozenset[str], int]:
        """What is known of arguments of such kinds, once there is code for them."""
        with _making:
            if key not in self._known:
                self._known[key] = self._compile(args)
        return self._known[key]

    def text(self, *args: Any) -> str:
        """The LLVM text for such arguments."""
        return entry(self.fn, self._told(args), self.parallel)

    def _told(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the printer is told of arguments, and of the new array."""
        new = () if self._result is None else (args[self._result[1]], 0)
        return tuple(map(_given, (*args, *new)))

    def _compile(self, args: tuple[Any, ...]) -> tuple[list[Any], frozenset[str], int]:
        if self._entries is None:
            name, count = self.fn.__name__, len(self._names)
            alike = self._otherwise is not None and all(a.__class__ is ndarray for a in args)
            self._entries = Entries(name, count, self._miss, self._result, alike)
        code = printed(entry, self.fn, self._told(args), self.parallel, opt=self.level)
        mask = ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("written"))()
        written = frozenset([name for k, name in enumerate(self._names) if mask >> k & 1])
        parameters = list(map(_kind, args))
        given = range(len(parameters) if self._otherwise is None else 0)
        copied = [k for k in given if not mask >> k & 1]
        self._entries.add(parameters, code.address("entry"), code, copied)
        self.__call__ = self._entries.call
        return parameters, written, code.address("entry")

    def checked(self, *args: Any) -> int:
        """Run it as Python; an index outside its array raises IndexError."""
        watched = [_Watched(a) if isinstance(a, np.ndarray) else a for a in args]
        with np.errstate(all="ignore"):
            if not self.parallel:
                return int(self.fn(*watched) or 0)
            for task in range(args[-1]):
                self.fn(*watched[:-1], task)
        return 0


def _native(a: Any) -> Any:
    """Arrays by NumPy's own dtype of their kind and size: `long` and `long long` are one. NumPy's
    numbers are arrays: its functions give them where an array has no axes.
    """
    if isinstance(a, np.generic):
        a = np.asarray(a)
    if a.__class__ is not ndarray:
        return a
    own = _OWN[a.dtype.char]
    return a if a.dtype is own else a.view(own)


def _kind(a: Any) -> Any:
    if a.__class__ is ndarray:
        return a.dtype
    return a.__class__ if a.__class__ is int or a.__class__ is float else a


def _dense(a: Any) -> bool:
    return bool(a.flags.c_contiguous and a.flags.aligned)


def _laid_out(args: tuple[Any, ...]) -> bool:
    """Whether all arrays are dense, and of one shape if there is nothing else."""
    given = [a for a in args if a.__class__ is ndarray]
    same = len(given) < len(args) or len({a.shape for a in given}) == 1
    return same and all(map(_dense, given))


def kernel(fn: Callable[..., Any]) -> Kernel:
    """Make a function a kernel."""
    return Kernel(fn)


def parallel(fn: Callable[..., Any]) -> Kernel:
    """Make it a kernel whose tasks run on the pool's threads."""
    return Kernel(fn, True)


def lean(make: Callable[[Callable[..., Any]], Kernel]) -> Callable[[Callable[..., Any]], Kernel]:
    """`kernel` or `parallel` at the level `LEAN`: for functions whose loops hold few instructions
    as they are written, where code costs a third as much to make.
    """

    def made(fn: Callable[..., Any]) -> Kernel:
        found = make(fn)
        found.level = LEAN
        return found

    return made


def making(
    shape: str, dtype: str | None = None, otherwise: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a function a kernel whose call gives a new array: of the shape of one of its arguments,
    or as long as it says, and of the dtype of one, the same if no other is named. otherwise:
    what is called, with the arguments, where an array is not dense, or all are arrays, but not of
    one shape.
    """

    def make(fn: Callable[..., Any]) -> Kernel:
        names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
        result = names.index(shape), names.index(dtype or shape)
        return Kernel(fn, result=result, otherwise=otherwise)

    return make


def _given(a: Any) -> Any:
    if a.__class__ is ndarray:
        return Pointer("", Type("u", 8) if a.dtype == bool else element(_part(a.dtype)))
    return {int: INT, float: Type("f", 64)}.get(a.__class__, a)


def _part(dtype: Any) -> Any:
    """The dtype of a number, or of the parts of complex ones."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


class _Watched:
    """An array whose indices are checked: none counts from the end."""

    def __init__(self, array: Any) -> None:
        array = array.view(np.uint8 if array.dtype == bool else _part(array.dtype))
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
