"""Calls of kernels that are prepared for arrays of such dtypes and shapes: one builtin function
finds what is to be called again, makes the result, and runs the code.

    taken = Prepared(way)     # way(x, i, axis) gives a Plan, or None where Python is to decide
    taken.call(x, i, axis)    # what the plan gives; None where Python is to decide

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
from funct.kernels.cpu.by_words import PLACES, text
from funct.kernels.cpu.calls import (
    DATA,
    DENSE,
    DTYPE,
    FLAGS,
    RANK,
    SHAPE,
    TYPE,
    builtin,
    field,
    readable,
    word,
)
from funct.kernels.cpu.often import Often
from funct.kernels.cpu.outside import declared
from funct.kernels.cpu.passages import restriction_asked, unlocked
from funct.kernels.table import restriction, unrestricted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.cpu.loops import Kernel

__all__ = ["Plan", "Prepared"]

_ENOUGH = 2000  # calls whose gain, 1 to 2 µs each, pays for the code, which is kept on disk
_SHAPES = 1 << 10  # that have come once
_FREE = 1 << 13  # elements from which on other Python threads may run meanwhile
_MOST = 4  # axes of an array
_ARGUMENTS, _FRAME = 9, 24  # arguments of a call, and words of what a kernel is told
# Words of a place: what is kept, how many words what was asked is, and those
_PLACE = 2 + 1 + _ARGUMENTS * (2 + _MOST)
_REAL = object.__basicsize__  # where a float has its number
# Words of a table: objects, whose addresses are shared, and the places
_NDARRAY, _NONE, _INT, _FLOAT, _STR, _TRUE, _FALSE, _RESTRICTION, _FIRST = range(9)
_TABLE, _WAY, _MISS = range(3)  # of a function: where the table is
# and of a plan, before the places of arguments, the shape of the result and the frame
_CODE, _RESULT, _AXES, _LONG, _TO, _WORDS, _COUNT, _BEGIN = range(8)
_NOWHERE = -1


class Plan(Struct, frozen=True, eq=False):
    """What is called for arguments that are alike.

    kernel: it takes `given`. places: where in that each argument of the call stands, None for what
    the kernel is not told. shape, dtype: of the result, which a kernel
    that makes none has at `to`. The result is given where the kernel answers 0.
    """

    kernel: Kernel
    given: tuple[Any, ...]
    places: tuple[int | None, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    to: int | None = None


class Prepared:
    """What a way says of arguments, found again by the dtypes and shapes of dense arrays, the type
    of floats, and by integers, truth, None and names themselves. Nothing is prepared for what comes
    but once.
    """

    __slots__ = ("_keep", "_met_once", "_names", "_way", "call")

    call: Callable[..., Any]

    def __init__(self, way: Callable[..., Plan | None]) -> None:
        self._way = way
        self._names: set[str] = set()
        self._met_once: set[int] = set()
        self.call = Often(self.load, _ENOUGH, _at_hand).counted(_nothing)

    def load(self) -> None:
        """Let the builtin answer."""
        if readable():
            code, miss = printed(_text).keep(), self._met
            own = np.asarray([_shared().ctypes.data, id(self), id(miss)], np.int64)
            self._keep: Any = builtin("keep", code.address("keep"), own, self)
            self.call = builtin("prepared", code.address("call"), own, (self, miss))

    def _met(self, *args: Any) -> None:
        """Nothing is kept for such arguments."""
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
        self._names.update([a for a in args if a.__class__ is str])
        if plan is None or not _is_early(plan):
            self._keep((_NOTHING,) if plan is None else _words(plan), *args)


def _asked(a: Any) -> Any:
    """What a plan depends on, but for dtypes."""
    if a.__class__ is np.ndarray:
        return a.shape
    return float if a.__class__ is float else a


def _at_hand() -> bool:
    """Whether the code costs no more than milliseconds."""
    return loaded() or (told() and recall(_text) is not None)


def _nothing(*args: Any) -> None:
    """What stands for the code until there is any."""


_tables: list[NDArray[np.int64]] = []


def _shared() -> NDArray[np.int64]:
    """The table of all functions."""
    if not _tables:
        objects = (np.ndarray, None, int, float, str, True, False, restriction)
        _tables.append(np.asarray([*map(id, objects), *[0] * (PLACES * _PLACE)], np.int64))
    return _tables[0]


_NOTHING = np.zeros(_BEGIN, np.int64)  # where Python is to decide


def _is_early(plan: Plan) -> bool:
    """Whether Python makes the result, and says so, as long as large arrays are NumPy's."""
    return prod(plan.shape) * plan.dtype.itemsize >= LARGE and not is_serving()


def _words(plan: Plan) -> tuple[Any, ...]:
    """A plan as the code reads it, and what has to stay while it is."""
    size, given = prod(plan.shape), plan.given
    held = [a for k, a in enumerate(given) if k not in plan.places and a.__class__ is np.ndarray]
    frame = [a if a.__class__ is int else 0 for a in given]
    for k, a in enumerate(given):
        if any(a is one for one in held):
            frame[k] = a.ctypes.data
    to = plan.to
    if to is None:
        to, frame = len(frame), [*frame, 0, size]
    places = [_NOWHERE if p is None else p for p in plan.places]
    long = max([size, *[a.size for a in given if a.__class__ is np.ndarray]]) >= _FREE
    code, axes = plan.kernel.located(*given), len(plan.shape)
    head = [code, id(plan.dtype), axes, long, to, len(frame), len(places)]
    return np.asarray([*head, *places, *plan.shape, *frame], np.int64), plan.dtype, *held


def _text() -> str:
    return declared(_TEXT)


_TEXT = f"""
{text(_FIRST, _PLACE)}
; Writes what is asked of which arguments, and gives how many words that is; none where nothing is
; kept of such.
define internal i64 @asked(ptr %own, ptr %table, ptr %args, i64 %count, ptr %words) {{
entry:
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("none", "%table", _NONE, "ptr")}
{word("int", "%table", _INT, "ptr")}
{word("float", "%table", _FLOAT, "ptr")}
{word("str", "%table", _STR, "ptr")}
{word("true", "%table", _TRUE, "ptr")}
{word("false", "%table", _FALSE, "ptr")}
{word("way", "%own", _WAY)}
  store i64 %way, ptr %words
  %few = icmp ule i64 %count, {_ARGUMENTS}
  br i1 %few, label %next, label %no
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %at = phi i64 [ 1, %entry ], [ %to, %put ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %found, label %look
found:
  ret i64 %at
look:
  %x.at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %x.at
{field("type", "%x", TYPE, "ptr")}
  %head = getelementptr i64, ptr %words, i64 %at
  %second = getelementptr i64, ptr %head, i64 1
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array, label %other
array:
{field("dtype", "%x", DTYPE, "ptr")}
{field("flags", "%x", FLAGS, "i32")}
{field("rank32", "%x", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
  %rank = zext i32 %rank32 to i64
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  %short = icmp ule i64 %rank, {_MOST}
  %fits = and i1 %dense, %short
  br i1 %fits, label %lengths, label %no
lengths:
  store ptr %dtype, ptr %head
  store i64 %rank, ptr %second
  %dims = getelementptr i64, ptr %head, i64 2
  br label %dim
dim:
  %d = phi i64 [ 0, %lengths ], [ %d.next, %some ]
  %walked = icmp eq i64 %d, %rank
  br i1 %walked, label %shaped, label %some
some:
  %n.at = getelementptr i64, ptr %shape, i64 %d
  %n = load i64, ptr %n.at
  %n.to = getelementptr i64, ptr %dims, i64 %d
  store i64 %n, ptr %n.to
  %d.next = add i64 %d, 1
  br label %dim
shaped:
  %behind.array = add i64 %at, 2
  %array.to = add i64 %behind.array, %rank
  br label %put
other:
  %is.int = icmp eq ptr %type, %int
  br i1 %is.int, label %number, label %real
number:
  %a = call i64 @PyLong_AsLongLong(ptr %x)
  %odd = icmp eq i64 %a, -1
  br i1 %odd, label %suspect, label %numbered
suspect:
  %error = call ptr @PyErr_Occurred()
  %sound = icmp eq ptr %error, null
  br i1 %sound, label %numbered, label %failed
failed:
  call void @PyErr_Clear()
  br label %no
numbered:
  store ptr %type, ptr %head
  store i64 %a, ptr %second
  %number.to = add i64 %at, 2
  br label %put
real:
  %is.float = icmp eq ptr %type, %float
  br i1 %is.float, label %weak, label %named
weak:
  store ptr %type, ptr %head
  %real.to = add i64 %at, 1
  br label %put
named:
  %is.str = icmp eq ptr %type, %str
  %is.none = icmp eq ptr %x, %none
  %is.true = icmp eq ptr %x, %true
  %is.false = icmp eq ptr %x, %false
  %is.truth = or i1 %is.true, %is.false
  %is.one = or i1 %is.none, %is.truth
  %itself = or i1 %is.str, %is.one
  br i1 %itself, label %same, label %no
same:
  store ptr %x, ptr %head
  %same.to = add i64 %at, 1
  br label %put
put:
  %to = phi i64 [ %array.to, %shaped ], [ %number.to, %numbered ], [ %real.to, %weak ],
                [ %same.to, %same ]
  %k.next = add i64 %k, 1
  br label %next
no:
  ret i64 0
}}

define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
  %words = alloca [{_PLACE} x i64]
  %value = alloca ptr
  %frame = alloca [{_FRAME} x i64], align 16
{field("own", "%holder", DATA, "ptr")}
{word("table", "%own", _TABLE, "ptr")}
{word("none", "%table", _NONE, "ptr")}
  %n = call i64 @asked(ptr %own, ptr %table, ptr %args, i64 %count, ptr %words)
  %some = icmp ne i64 %n, 0
  br i1 %some, label %search, label %nothing
search:
  %kept = call ptr @recalled(ptr %table, ptr %words, i64 %n)
  %is.kept = icmp ne ptr %kept, null
  br i1 %is.kept, label %ask, label %miss
ask:
  %held = call ptr @PyTuple_GetItem(ptr %kept, i64 0)
{field("plan", "%held", DATA, "ptr")}
{word("code", "%plan", _CODE, "ptr")}
  %no.code = icmp eq ptr %code, null
  br i1 %no.code, label %nothing, label %allowed
nothing:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
allowed:
{word("restriction", "%table", _RESTRICTION, "ptr")}
{restriction_asked("%value")}
  br i1 %unbound, label %make, label %nothing
make:
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("float", "%table", _FLOAT, "ptr")}
{word("dtype", "%plan", _RESULT, "ptr")}
{word("axes", "%plan", _AXES)}
{word("long", "%plan", _LONG)}
{word("to", "%plan", _TO)}
{word("frame.words", "%plan", _WORDS)}
{word("places.count", "%plan", _COUNT)}
  %places = getelementptr i64, ptr %plan, i64 {_BEGIN}
  %dims = getelementptr i64, ptr %places, i64 %places.count
  %from = getelementptr i64, ptr %dims, i64 %axes
  %rank = trunc i64 %axes to i32
  call void @Py_IncRef(ptr %dtype)
  call void @Py_IncRef(ptr %kept)  ; others may be kept there before it is read
  %y = call ptr @PyArray_NewFromDescr(ptr %ndarray, ptr %dtype, i32 %rank, ptr %dims,
                                      ptr null, ptr null, i32 0, ptr null)
  %failed = icmp eq ptr %y, null
  br i1 %failed, label %error, label %fill
error:
  call void @Py_DecRef(ptr %kept)
  ret ptr null
fill:
  %bytes = shl i64 %frame.words, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %frame, ptr %from, i64 %bytes, i1 false)
{field("y.data", "%y", DATA, "ptr")}
  %y.to = getelementptr ptr, ptr %frame, i64 %to
  store ptr %y.data, ptr %y.to
  br label %each
each:
  %k = phi i64 [ 0, %fill ], [ %k.next, %told ]
  %all = icmp eq i64 %k, %places.count
  br i1 %all, label %run, label %one
one:
  %place.at = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %place.at
  %k.next = add i64 %k, 1
  %nowhere = icmp eq i64 %place, {_NOWHERE}
  br i1 %nowhere, label %told, label %tell
tell:
  %x.at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %x.at
{field("type", "%x", TYPE, "ptr")}
  %is.float = icmp eq ptr %type, %float
  %offset = select i1 %is.float, i64 {_REAL}, i64 {DATA}
  %word.from = getelementptr i8, ptr %x, i64 %offset
  %word = load i64, ptr %word.from
  %word.to = getelementptr i64, ptr %frame, i64 %place
  store i64 %word, ptr %word.to
  br label %told
told:
  br label %each
run:
  %shared = icmp ne i64 %long, 0
{unlocked("%ANSWER = call i64 %code(ptr %frame)", "%shared")}
give:
  %answer = phi i64 [ %soon, %locked ], [ %late, %free ]
  call void @Py_DecRef(ptr %kept)
  %good = icmp eq i64 %answer, 0
  br i1 %good, label %done, label %drop
done:
  ret ptr %y
drop:
  call void @Py_DecRef(ptr %y)
  br label %nothing
miss:
{word("function", "%own", _MISS, "ptr")}
  %given = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr null)
  ret ptr %given
}}

; keep((plan, what it needs), *args)
define ptr @keep(ptr %holder, ptr %args, i64 %count) {{
entry:
  %words = alloca [{_PLACE} x i64]
{field("own", "%holder", DATA, "ptr")}
{word("table", "%own", _TABLE, "ptr")}
{word("none", "%table", _NONE, "ptr")}
  %asked = getelementptr ptr, ptr %args, i64 1
  %rest = sub i64 %count, 1
  %n = call i64 @asked(ptr %own, ptr %table, ptr %asked, i64 %rest, ptr %words)
  %some = icmp ne i64 %n, 0
  br i1 %some, label %write, label %done
write:
  %plan = load ptr, ptr %args
  call void @remember(ptr %table, ptr %words, i64 %n, ptr %plan)
  br label %done
done:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
""".replace("%ANSWER", "%soon", 1).replace("%ANSWER", "%late", 1)
