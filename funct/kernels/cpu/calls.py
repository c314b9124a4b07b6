"""Machine code as builtin functions of Python, which read Python's objects and NumPy's arrays
themselves: where these have their fields, text that reads them, and functions of such text.

A call through ctypes costs some 100 ns for each argument, and asking an array for its address as
much again. A builtin is handed the objects.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.device import Code, assemble
from funct.kernels.cpu.outside import address_in_python, declared

__all__ = [
    "ALIGNED", "BASE", "DATA", "DENSE", "DTYPE", "FLAGS", "KEEP_ORDER", "RANK", "REAL", "SHAPE",
    "STRIDES", "TYPE", "builtin", "code_of", "field", "maker", "readable", "slot", "word",
]  # fmt: skip

# Where the fields of an object and of an array stand: NumPy's ABI fixes what follows the head.
_HEAD = object.__basicsize__
TYPE, REAL = _HEAD - 8, _HEAD  # of a float, its number
DATA, RANK, SHAPE, STRIDES, BASE, DTYPE, FLAGS = range(_HEAD, _HEAD + 56, 8)
ALIGNED = 0x0100  # a flag
DENSE = 0x0001 | ALIGNED  # flags: C-contiguous, aligned
KEEP_ORDER = 2  # a new array lies as another one


@functools.cache
def readable() -> bool:
    """Whether arrays lie in memory as is assumed here."""
    probe = np.zeros((3, 5), np.float32)
    word = ctypes.c_size_t
    return all([
        word.from_address(id(probe) + TYPE).value == id(np.ndarray),
        word.from_address(id(probe) + DATA).value == probe.ctypes.data,
        ctypes.c_int.from_address(id(probe) + RANK).value == 2,
        word.from_address(word.from_address(id(probe) + SHAPE).value + 8).value == 5,
        word.from_address(id(probe) + DTYPE).value == id(probe.dtype),
        ctypes.c_int.from_address(id(probe) + FLAGS).value & DENSE == DENSE,
    ])  # fmt: skip


def slot(made: type, name: str) -> int | None:
    """Where in its instances a class has one of its `__slots__`; None where objects are not as is
    assumed here.
    """
    if not readable():
        return None
    probe: Any = object.__new__(made)
    mark = object()
    object.__setattr__(probe, name, mark)
    words = range(_HEAD, made.__basicsize__, 8)
    at = [k for k in words if ctypes.c_size_t.from_address(id(probe) + k).value == id(mark)]
    return at[0] if len(at) == 1 else None


@functools.cache
def code_of(text: str) -> Code:
    """The code of such a text, until the process ends."""
    return assemble(declared(text)).keep()


def word(name: str, table: str, number: int, kind: str = "i64") -> str:
    """Text that reads a word of a table."""
    return field(name, table, 8 * number, kind)


def field(name: str, of: str, offset: int, kind: str = "i64") -> str:
    """Text that reads what stands so many bytes from the beginning of an object."""
    return (
        f"  %{name}.at = getelementptr i8, ptr {of}, i64 {offset}\n"
        f"  %{name} = load {kind}, ptr %{name}.at"
    )


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


_FASTCALL, _ONE_ARGUMENT = 0x0080, 0x0008
_kept: dict[tuple[str, int], _MethodDef] = {}


def builtin(
    name: str, address: int, held: object, owner: object = None, flags: int = _FASTCALL
) -> Callable[..., Any]:
    """A function of Python that is `PyObject *code(held, PyObject **arguments, Py_ssize_t count)`.

    The code must outlive it; what is held and the owner do.
    """
    method = _kept.setdefault((name, address), _MethodDef(name.encode(), address, flags, None))
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    made: Callable[..., Any] = new(ctypes.addressof(method), held, owner)
    return made


def maker(made: type) -> Callable[[None], Any]:
    """`make(None)` is `object.__new__(made)` at half its cost: Python's own allocator of instances.

    Where that expects a number of items, which instances of a class with `__slots__` have not, it
    is handed the argument.
    """
    assert not made.__itemsize__, made
    address = address_in_python("PyType_GenericAlloc")
    return builtin(f"make_{made.__name__}", address, made, flags=_ONE_ARGUMENT)
