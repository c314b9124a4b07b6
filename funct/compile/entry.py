"""One call from Python for a whole compiled function: machine code between it and the arrays.

Most calls of a compiled function have the arguments of the call before, but for the elements. An
entry looks at them in machine code: each must be an `Array` whose buffer is a dense ndarray of the
very dtype and shape that the function was compiled for. All else is answered with None, and the
caller goes the long way. Two entries stand on that:

- `unwrapping(inputs)(*arrays)` gives the buffers, for a function that is run as Python;
- `serving(whole)(*arrays)` makes the results, runs the program and wraps them, for a function that
  is one program: a call costs little more than NumPy needs to make the results.

Results lie in memory of their own, unless something better is known (`Reuse`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from funct.array import Array
from funct.compile.entry_text import (
    ARRAY,
    BYTE,
    BYTES,
    CALLS,
    GIVEN,
    HEAD,
    INPUTS,
    NDARRAY,
    NONE,
    PROGRAM,
    RESULTS,
    ROOM,
    SINGLE,
    SPARE,
    SPECS_OUT,
    WALK,
    WHENCE,
    entry_text,
)
from funct.compile.walker import walker
from funct.device import Code, assemble
from funct.device.machine_code import offer
from funct.graph import Var
from funct.kernels.cpu.calls import builtin, readable
from funct.ops.fast import wrap

__all__ = [
    "Whole", "Reuse", "calls_of", "note_whole", "whole_of", "serving", "unwrapping",
]  # fmt: skip

_MOST = 4096  # arrays of a call: their addresses lie on the stack


@attrs.frozen(eq=False)
class Whole:
    """A function that is one program, without anything before, between or behind.

    inputs: of the function. results: of the function, each made by the program as a whole.
    arguments: of the program, by their positions among inputs and results. reusable: (result,
    input) where the result may be written into the input's memory. table, workspace: of the
    program. owner: of whatever the table points to.
    """

    inputs: tuple[Var, ...]
    results: tuple[Var, ...]
    arguments: tuple[int, ...]
    table: np.ndarray[Any, Any]
    workspace: int
    owner: Any
    reusable: tuple[tuple[int, int], ...] = ()


@attrs.frozen
class Reuse:
    """Memory that results may take. donated: positions of inputs that nobody uses any more.

    spare: whether buffers of results and the workspace are kept between calls, and used again as
    soon as nobody holds them.
    """

    donated: frozenset[int] = frozenset()
    spare: bool = False


_wholes: WeakKeyDictionary[Callable[..., Any], Whole] = WeakKeyDictionary()


def note_whole(run: Callable[..., Any], whole: Whole) -> None:
    """Say that a function is one program."""
    _wholes[run] = whole


def whole_of(run: Callable[..., Any]) -> Whole | None:
    """How a function is one program, if it is."""
    return _wholes.get(run)


def unwrapping(inputs: Sequence[Var]) -> Callable[..., Any] | None:
    """`unwrap(*arrays)`: the buffers in a tuple, or None; None where there is no such code."""
    if not _fits(inputs):
        return None
    table = _table(inputs)
    return builtin("unwrap", _code().address("unwrap"), table, tuple(inputs))


def serving(whole: Whole, single: bool, reuse: Reuse = Reuse()) -> Callable[..., Any] | None:
    """`serve(*arrays)`: the result as an Array if it is a single one, a list of Arrays, or None."""
    if not _fits((*whole.inputs, *whole.results)):
        return None
    table = _table(whole.inputs)
    held: list[Any] = [whole, table]
    words = []
    taken = _taken(whole, reuse.donated)
    for k, v in enumerate(whole.results):
        shape = np.asarray(v.shape, np.int64)
        held.append(shape)
        spare = [np.empty(v.shape, v.dtype) for _ in range(SPARE)] if reuse.spare else []
        held.append(spare)
        places = [id(x) for x in spare] + [0] * (SPARE - len(spare))
        words += [id(v.dtype), len(v.shape), shape.ctypes.data, taken.get(k, -1), *places]
        words.append(len(spare))
    room = np.empty(whole.workspace, np.uint8) if reuse.spare else None
    held.append(room)
    full = np.concatenate((table, np.asarray([*words, *whole.arguments], np.int64)))
    full[RESULTS], full[GIVEN] = len(whole.results), len(whole.arguments)
    full[PROGRAM], full[WALK] = id(whole.table), walker()
    full[BYTES], full[BYTE] = whole.workspace, id(np.dtype(np.uint8))
    full[ROOM], full[SINGLE] = id(room) if room is not None else 0, int(single)
    full[SPECS_OUT], full[WHENCE] = len(table), len(table) + len(words)
    return builtin("serve", _code().address("serve"), full, held)


def _taken(whole: Whole, donated: frozenset[int]) -> dict[int, int]:
    """Which result takes which input's memory."""
    found: dict[int, int] = {}
    for r, i in whole.reusable:
        if i in donated and r not in found and i not in found.values():
            found[r] = i
    return found


def calls_of(entry: Any) -> int:
    """How often what `serving` gave has answered."""
    return int(entry.__self__[CALLS])


def _fits(arrays: Sequence[Var]) -> bool:
    numbers = all(isinstance(n, int) for v in arrays for n in v.shape)
    return numbers and len(arrays) <= _MOST and _slot() is not None


def _table(inputs: Sequence[Var]) -> np.ndarray[Any, Any]:
    words: list[int] = [0] * HEAD
    words[INPUTS], words[ARRAY], words[NDARRAY] = len(inputs), id(Array), id(np.ndarray)
    words[NONE] = id(None)
    for v in inputs:
        words += [id(v.dtype), len(v.shape), *v.shape]
    return np.asarray(words, np.int64)


@functools.cache
def _slot() -> int | None:
    """Where in an Array its buffer stands; None where objects are not as is assumed here."""
    if not readable():
        return None
    mark = np.zeros(1)
    probe = wrap(mark)
    words = range(0, Array.__basicsize__, 8)
    at = [k for k in words if ctypes.c_size_t.from_address(id(probe) + k).value == id(mark)]
    return at[0] if len(at) == 1 else None


# The code

_API = (
    "PyList_New", "PyList_SetItem", "PyTuple_New", "PyTuple_SetItem", "PyType_GenericAlloc",
    "Py_DecRef", "Py_IncRef",
)  # fmt: skip
_NEW_FROM_DESCR = 94  # in the table of NumPy's C API, which its ABI fixes


def _of_python(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def _of_numpy() -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = pointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return ctypes.c_size_t.from_address(api + 8 * _NEW_FROM_DESCR).value


for _name in _API:
    offer(_name, functools.partial(_of_python, _name))
offer("PyArray_NewFromDescr", _of_numpy)


@functools.cache
def _code() -> Code:
    slot = _slot()
    assert slot is not None, "asked for where objects are as assumed"
    return assemble(entry_text(slot), opt=0).keep()  # every process waits for it
