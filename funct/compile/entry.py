"""One call from Python for a whole compiled function: machine code between it and the arrays.

Most calls of a compiled function have the arguments of the call before, but for the elements. An
entry looks at them in machine code: each must be an `Array` whose buffer is an ndarray of the very
dtype and shape that the function was compiled for, dense or of so few elements that a copy is next
to nothing. All else is answered with None, and the caller goes the long way. Two entries stand on
that:

- `unwrapping(inputs)(*arrays)` gives the buffers, for a function that is run as Python;
- `serving(whole)(*arrays)` makes the results, runs the program and wraps them, for a function that
  is one program: a call costs little more than NumPy needs to make the results.

Results lie in memory of their own, unless something better is known (`Reuse`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct

from funct.array import Array
from funct.compile.entry_table import (
    ARRAY,
    BYTE,
    BYTES,
    CALLS,
    COPIED,
    GIVEN,
    HEAD,
    INPUTS,
    NDARRAY,
    NONE,
    ORDERS,
    PROGRAM,
    RESULTS,
    ROOM,
    SINGLE,
    SPECS_OUT,
    WALK,
    WARNS,
    WHENCE,
)
from funct.compile.entry_text import SPARE, entry_text
from funct.compile.memory.reuse import Reusable
from funct.compile.steps.walker import walker
from funct.device import Code, printed
from funct.device.llvm import loaded
from funct.device.machine_code import beside
from funct.device.printed import kept
from funct.graph import Var
from funct.kernels.cpu.calls import builtin, slot
from funct.kernels.cpu.outside import warning_flags
from funct.settings import cores

__all__ = [
    "Whole", "Reuse", "at_hand", "calls_of", "faster", "has_faster", "note_faster", "note_whole",
    "whole_of", "serving", "unwrapping",
]  # fmt: skip

_MOST = 4096  # arrays of a call: their addresses lie on the stack


class Whole(Struct, frozen=True, eq=False):
    """A function that is one program, without anything before, between or behind.

    inputs: of the function. results: of the function, each made by the program as a whole, or
    shared. arguments: of the program, by their positions among inputs and results. reusable: which
    results may be written into which inputs' memory. shared: (result, position among inputs and
    results) where it is what is there already. table, workspace: of the program. owner: of whatever
    the table points to.
    """

    inputs: tuple[Var, ...]
    results: tuple[Var, ...]
    arguments: tuple[int, ...]
    table: np.ndarray[Any, Any]
    workspace: int
    owner: Any
    reusable: Reusable
    shared: tuple[tuple[int, int], ...]


class Reuse(Struct, frozen=True):
    """Memory that results may take. donated: positions of inputs that nobody uses any more.

    spare: whether buffers of results and the workspace are kept between calls, and used again as
    soon as nobody holds them.
    """

    donated: frozenset[int] = frozenset()
    spare: bool = False


_NO_REUSE = Reuse()


Run = Callable[..., Any]

_wholes: WeakKeyDictionary[Run, Whole] = WeakKeyDictionary()
_faster: WeakKeyDictionary[Run, Callable[[], Run]] = WeakKeyDictionary()


def note_whole(run: Run, whole: Whole) -> None:
    """Say that a function is one program."""
    _wholes[run] = whole


def whole_of(run: Run) -> Whole | None:
    """How a function is one program, if it is."""
    return _wholes.get(run)


def note_faster(run: Run, make: Callable[[], Run]) -> None:
    """Say how a function of NumPy calls is made as machine code that gives the same bits."""
    _faster[run] = make


def has_faster(run: Run) -> bool:
    """Whether `faster` may give something."""
    return run in _faster


def faster(run: Run) -> Whole | None:
    """A program with the bits of a function of NumPy calls, made now; None where there is none."""
    make = _faster.pop(run, None)
    return None if make is None else whole_of(make())


def unwrapping(inputs: Sequence[Var]) -> Callable[..., Any] | None:
    """`unwrap(*arrays)`: the buffers in a tuple, or None; None where there is no such code."""
    if not _fits(inputs):
        return None
    table = _table(inputs)
    return builtin("unwrap", _code().address("unwrap"), table, tuple(inputs))


def serving(
    whole: Whole, single: bool, reuse: Reuse = _NO_REUSE, *, warns: bool = False,
    orders: int = COPIED,
) -> Callable[..., Any] | None:  # fmt: skip
    """`serve(*arrays)`: the result as an Array if it is a single one, a list of Arrays, or None.

    warns: None also where NumPy would warn, so that it does. orders: what becomes of arrays that
    are not dense (`entry_table.py`); in one order, they and the results have one shape and dtype.
    """
    if not _fits((*whole.inputs, *whole.results)):
        return None
    table = _table(whole.inputs)
    held: list[Any] = [whole, table]
    words = []
    donated = () if warns else reuse.donated
    taken = whole.reusable.taken(whole.inputs, whole.results, donated)
    shared = dict(whole.shared)
    for k, v in enumerate(whole.results):
        shape = np.asarray(v.shape, np.int64)
        held.append(shape)
        keeps = reuse.spare and k not in shared
        spare = [np.empty(v.shape, v.dtype) for _ in range(SPARE)] if keeps else []
        held.append(spare)
        places = [id(x) for x in spare] + [0] * (SPARE - len(spare))
        words += [id(v.dtype), len(v.shape), shape.ctypes.data, taken.get(k, -1), *places]
        words += [len(spare), shared.get(k, -1)]
    room = np.empty(whole.workspace, np.uint8) if reuse.spare else None
    held.append(room)
    full = np.concatenate((table, np.asarray([*words, *whole.arguments], np.int64)))
    full[RESULTS], full[GIVEN] = len(whole.results), len(whole.arguments)
    full[PROGRAM], full[WALK] = id(whole.table), walker()
    full[BYTES], full[BYTE] = whole.workspace, id(np.dtype(np.uint8))
    full[ROOM], full[SINGLE] = id(room) if room is not None else 0, int(single)
    full[WARNS], full[ORDERS] = int(warns), orders
    full[SPECS_OUT], full[WHENCE] = len(table), len(table) + len(words)
    return builtin("serve", _code().address("serve"), full, held)


def calls_of(entry: Any) -> int:
    """How often what `serving` gave has answered."""
    return int(entry.__self__[CALLS])


def _fits(arrays: Sequence[Var]) -> bool:
    numbers = all(isinstance(n, int) for v in arrays for n in v.shape)
    return numbers and len(arrays) <= _MOST and _given() is not None


def _table(inputs: Sequence[Var]) -> np.ndarray[Any, Any]:
    words: list[int] = [0] * HEAD
    words[INPUTS], words[ARRAY], words[NDARRAY] = len(inputs), id(Array), id(np.ndarray)
    words[NONE] = id(None)
    for v in inputs:
        words += [id(v.dtype), len(v.shape), *v.shape]
    return np.asarray(words, np.int64)


@functools.cache
def _given() -> tuple[int, int] | None:
    """Where in an Array its buffer stands, and the flags that warn; None where that is unknown."""
    at, flags = slot(Array, "data"), warning_flags()
    return None if at is None or flags is None else (at, flags)


@functools.cache
def _code() -> Code:
    given = _given()
    assert given is not None, "asked for where objects are as assumed"
    return printed(entry_text, *given, opt=0).keep()  # every process waits for it


_makers: list[Thread] = []  # one at most: who has LLVM make the code


def at_hand() -> bool:
    """Whether entries cost next to nothing: their code is there, or kept on disk. Where LLVM is
    loaded it is made from now on, while others go on; with one core, by who needs it.
    """
    if _kept() or not loaded():
        return _kept()
    if not _makers and cores() > 1:
        thread = beside(_code)
        with suppress(RuntimeError):  # the system has no thread for that
            thread.start()
            _makers.append(thread)
    return not any(t.is_alive() for t in _makers)  # in a forked child none is


@functools.cache
def _kept() -> bool:
    given = _given()
    return given is not None and kept(entry_text, *given, opt=0)
