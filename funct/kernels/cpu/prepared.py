"""Calls of kernels, and jobs of reductions, that are prepared for arrays of such dtypes and shapes:
one builtin function finds what is to be called again, makes the result, and runs the code.

    taken = Prepared(way)     # way(x, i, axis) gives a Plan, a Job, or None where Python decides
    taken.call(x, i, axis)    # what the plan gives; None where Python decides

    def way(x, i, axis):
        return Plan(gather, (x, i, len(x)), (0, 1), i.shape, x.dtype)

To ask arrays for what kernels are told takes Python as long as they take for a thousand elements.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import printed
from funct.device.host import told
from funct.device.llvm import loaded
from funct.device.memory import LARGE, is_serving
from funct.device.printed import recall
from funct.kernels.cpu.by_words import PLACES
from funct.kernels.cpu.calls import builtin, readable
from funct.kernels.cpu.often import Often
from funct.kernels.cpu.prepared_text import (
    FRAME,
    HEAD,
    IS_RESULT,
    NOWHERE,
    PLACE,
    ROOM,
    ROOM_AT,
    SINGLE,
    prepared_text,
)
from funct.kernels.table import restriction, unrestricted

if TYPE_CHECKING:
    from funct.kernels.cpu.loops import Kernel

__all__ = ["LATER", "Job", "Plan", "Prepared"]

LATER: Any = object()
"""What a way gives that has no plan now, and may have one another time."""

_ENOUGH = 2000  # calls whose gain, 1 to 2 µs each, pays for the code, which is kept on disk
_SHAPES = 1 << 10  # that have come once
_SELDOM = 64  # new ones between two plans, which take 20 µs, once there are more than places
_FREE = 1 << 13  # elements from which on other Python threads may run meanwhile
_OBJECTS = (np.ndarray, int, float, str, tuple, slice, restriction)


class Plan(Struct, frozen=True, eq=False):
    """A kernel that is called for arguments that are alike.

    kernel: it takes `given`. places: where in that each argument of the call stands, None for what
    the kernel is not told. shape, dtype: of the result, which a kernel that makes none
    has at `to`, and may have at 2 as well. The result is given where the kernel answers 0.
    """

    kernel: Kernel
    given: tuple[Any, ...]
    places: tuple[int | None, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    to: int | None = None

    def words(self) -> tuple[list[int], list[int], list[int], list[Any]]:
        """As the code reads it: the code, where the result goes, what room there is and whether
        the code tells whether it is good; where arguments go; the frame. And what has to stay.
        """
        given, to = self.given, self.to
        others = [a for k, a in enumerate(given) if k not in (*self.places, to)]
        result = None if to is None else given[to]
        held = [a for a in others if a.__class__ is np.ndarray and a is not result]
        frame = [a if a.__class__ is int else 0 for a in given]
        for k, a in enumerate(given):
            if any(a is one for one in held):
                frame[k] = a.ctypes.data
        if to is None:
            to, frame = len(frame), [*frame, 0, prod(self.shape)]
        places = [NOWHERE if p is None else p for p in self.places]
        twice = to < ROOM_AT < len(given) and given[ROOM_AT] is result
        room = IS_RESULT if twice else NOWHERE
        return [self.kernel.located(*given), to, room, True], places, frame, held


class Job(Struct, frozen=True, eq=False):
    """Code that is run for arrays that lie alike, whatever else is given.

    code: where `void code(ptr job)` is, which stays there. shape, dtype: of the result. rest: the
    words behind the addresses of the array and the result. room: bytes whose address comes before
    the rest; 0: that of the result does; None: nothing.
    """

    code: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rest: tuple[int, ...]
    room: int | None = None

    def words(self) -> tuple[list[int], list[int], list[int], list[Any]]:
        """As those of a `Plan`."""
        room, between = (NOWHERE, []) if self.room is None else (self.room, [0])
        return [self.code, 1, room, False], [0], [0, 0, *between, *self.rest], []


class Prepared:
    """What a way says of arguments, found again by the dtypes and shapes of dense arrays, the type
    of floats, and by integers, truth, None, names, and slices and tuples of these themselves.
    Nothing is prepared for what comes but once, and little where most is new.
    """

    __slots__ = ("_keep", "_met_once", "_misses", "_names", "_plans", "_way", "call")

    call: Callable[..., Any]

    def __init__(self, way: Callable[..., Plan | Job | None]) -> None:
        self._way = way
        self._names: set[str] = set()
        self._met_once: set[int] = set()
        self._misses = self._plans = 0
        self.call = Often(self.load, _ENOUGH, _at_hand).counted(_nothing)

    def load(self) -> None:
        """Let the builtin answer."""
        if readable():
            code, miss = printed(prepared_text).keep(), self._met
            objects = [*map(id, (*_OBJECTS, miss, *SINGLE))]
            table = np.zeros(len(objects) + PLACES * PLACE, np.int64)
            table[: len(objects)] = objects
            self._keep: Any = builtin("keep", code.address("keep"), table, self)
            self.call = builtin("prepared", code.address("call"), table, (self, miss))

    def _met(self, *args: Any) -> None:
        """Nothing is kept for such arguments."""
        self._misses += 1
        if self._plans > PLACES + self._misses // _SELDOM:
            return
        key = hash(tuple(map(_asked, args)))
        if key not in self._met_once or not unrestricted():
            if len(self._met_once) >= _SHAPES:
                self._met_once.clear()
            self._met_once.add(key)
            return
        for a in args:
            if a.__class__ is np.ndarray and a.dtype is not np.dtype(a.dtype.type):
                return  # its place in memory may be another dtype's later
        plan = self._way(*args)
        if plan is LATER:
            return
        self._plans += 1
        self._names.update([a for a in args if a.__class__ is str])
        if plan is None or not _is_early(plan):
            self._keep((_NOTHING,) if plan is None else _kept(plan, args), *args)


def _asked(a: Any) -> Any:
    """What a plan depends on, but for dtypes."""
    if a.__class__ is np.ndarray:
        return a.shape
    if a.__class__ is slice:
        return a.start, a.stop, a.step
    if a.__class__ is tuple:
        return tuple(map(_asked, a))
    return float if a.__class__ is float else a


def _at_hand() -> bool:
    """Whether the code costs no more than milliseconds."""
    return loaded() or (told() and recall(prepared_text) is not None)


def _nothing(*args: Any) -> None:
    """What stands for the code until there is any."""


_NOTHING = np.zeros(HEAD, np.int64)  # where Python is to decide


def _is_early(plan: Plan | Job) -> bool:
    """Whether Python makes the result, and says so, as long as large arrays are NumPy's."""
    return prod(plan.shape) * plan.dtype.itemsize >= LARGE and not is_serving()


def _kept(plan: Plan | Job, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A plan as the code reads it, and what has to stay while it is."""
    (code, to, room, tells), places, frame, held = plan.words()
    if len(frame) > FRAME or room > ROOM:
        return (_NOTHING,)
    size = max([prod(plan.shape), *[a.size for a in args if a.__class__ is np.ndarray]])
    head = [code, id(plan.dtype), len(plan.shape), size >= _FREE, to, room, tells]
    words = [*head, len(frame), len(places), *places, *plan.shape, *frame]
    return np.asarray(words, np.int64), plan.dtype, *held
