"""Reductions of arrays that lie as others did: one builtin function finds what reduced those, by
dtype, shape and axes, makes the result, and runs the code.

    kept = Kept(way)     # way(x, axis, keepdims) gives a Job, None, or LATER
    kept.call(x, 1, False)     # None where Python is to decide

To ask for all that takes Python longer than twenty thousand elements do, as what it looks at has
left the caches when they are many.
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
from funct.device.memory import LARGE
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

__all__ = ["LATER", "Job", "Kept"]

LATER: Any = object()
"""What a way gives that has no job now, and may have one another time."""

_ENOUGH = 2000  # calls whose gain, 2 µs each, pays for the code, which is kept on disk
_FREE = 1 << 13  # elements from which on other Python threads may run meanwhile
_MOST = 6  # axes of an array
_ROOM = 1 << 12  # bytes of what is on the way to a result
_JOB = 32  # words
# Words of a place: the plan, how many words what was asked is, and those
_PLACE = 18
_NDARRAY, _NONE, _INT, _TUPLE, _TRUE, _FALSE, _MISS, _RESTRICTION, _FIRST = range(9)  # of a table
# and of a plan, before the shape of the result and the job: no code says that Python is to decide
_CODE, _RESULT, _AXES, _LONG, _THIRD, _WORDS, _BEGIN = range(7)
_IS_RESULT = 0  # what the third word of a job is, if it is no room of so many bytes
_IS_ITS_OWN = -1


class Job(Struct, frozen=True, eq=False):
    """What reduces arrays that lie alike.

    code: where `void code(ptr job)` is, which stays there. shape, dtype: of the result. rest: the
    words behind the addresses of the array and the result. room: bytes whose address comes before
    the rest; 0: that of the result does; None: nothing.
    """

    code: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rest: tuple[int, ...]
    room: int | None = None


class Kept:
    """What `way` gives for dense arrays, found again by their dtype, shape and axes."""

    __slots__ = ("_keep", "_way", "call")

    call: Callable[[Any, Any, Any], Any]

    def __init__(self, way: Callable[[NDArray[Any], Any, bool], Any]) -> None:
        self._way = way
        self.call = Often(self.load, _ENOUGH, _at_hand).counted(_nothing)

    def load(self) -> None:
        """Let the builtin answer."""
        if readable():
            miss = self._met
            held = (np.ndarray, None, int, tuple, True, False, miss, restriction)
            table = np.asarray([*map(id, held), *[0] * (PLACES * _PLACE)], np.int64)
            code = printed(_text).keep()
            self._keep = builtin("keep", code.address("keep"), table, self)
            self.call = builtin("kept", code.address("call"), table, (self, held))

    def _met(self, x: Any, axis: Any, keepdims: Any) -> None:
        """Nothing is kept for such arrays."""
        if x.__class__ is not np.ndarray or keepdims not in (True, False) or not unrestricted():
            return
        if not (x.flags.c_contiguous and x.flags.aligned):
            return
        if x.dtype is not np.dtype(x.dtype.type):
            return  # its place in memory may be another dtype's later
        job = self._way(x, axis, keepdims)
        if job is not LATER:
            self._keep(_plan(job, x.size), x, axis, keepdims)


def _at_hand() -> bool:
    """Whether the code costs no more than milliseconds."""
    return loaded() or (told() and recall(_text) is not None)


def _nothing(x: Any, axis: Any, keepdims: Any) -> None:
    """What stands for the code until there is any."""


def _plan(job: Job | None, size: int) -> NDArray[np.int64]:
    if job is None or (job.room or 0) > _ROOM or len(job.rest) + 3 > _JOB:
        return np.zeros(_BEGIN, np.int64)
    if prod(job.shape) * job.dtype.itemsize >= LARGE:
        return np.zeros(_BEGIN, np.int64)
    words = [0, 0, *([] if job.room is None else [0]), *job.rest]
    third = _IS_ITS_OWN if job.room is None else job.room
    head = [job.code, id(job.dtype), len(job.shape), size >= _FREE, third, len(words)]
    return np.asarray([*head, *job.shape, *words], np.int64)


def _text() -> str:
    return declared(_TEXT)


_TEXT = f"""
{text(_FIRST, _PLACE)}
; Writes what is asked of which array, and gives how many words that is; none where it is not known.
define internal i64 @asked(ptr %table, ptr %args, ptr %words) {{
entry:
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("none", "%table", _NONE, "ptr")}
{word("int", "%table", _INT, "ptr")}
{word("tuple", "%table", _TUPLE, "ptr")}
{word("true", "%table", _TRUE, "ptr")}
{word("false", "%table", _FALSE, "ptr")}
  %x = load ptr, ptr %args
  %axis.at = getelementptr ptr, ptr %args, i64 1
  %axis = load ptr, ptr %axis.at
  %keepdims.at = getelementptr ptr, ptr %args, i64 2
  %keepdims = load ptr, ptr %keepdims.at
{field("type", "%x", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %ndarray
  %keeps = icmp eq ptr %keepdims, %true
  %drops = icmp eq ptr %keepdims, %false
  %known = or i1 %keeps, %drops
  %given = and i1 %is.array, %known
  br i1 %given, label %array, label %no
array:
{field("dtype", "%x", DTYPE, "ptr")}
{field("flags", "%x", FLAGS, "i32")}
{field("rank32", "%x", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
{field("axis.type", "%axis", TYPE, "ptr")}
  %rank = zext i32 %rank32 to i64
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  %short = icmp ule i64 %rank, {_MOST}
  %fits = and i1 %dense, %short
  br i1 %fits, label %head, label %no
head:
  store ptr %dtype, ptr %words
  %keepdims.to = getelementptr ptr, ptr %words, i64 1
  store ptr %keepdims, ptr %keepdims.to
  %kind.to = getelementptr ptr, ptr %words, i64 2
  store ptr %axis.type, ptr %kind.to
  %rank.to = getelementptr ptr, ptr %words, i64 3
  store i64 %rank, ptr %rank.to
  br label %dim
dim:
  %d = phi i64 [ 0, %head ], [ %d.next, %some ]
  %at = add i64 %d, 4
  %walked = icmp eq i64 %d, %rank
  br i1 %walked, label %axes, label %some
some:
  %n.at = getelementptr i64, ptr %shape, i64 %d
  %n = load i64, ptr %n.at
  %n.to = getelementptr i64, ptr %words, i64 %at
  store i64 %n, ptr %n.to
  %d.next = add i64 %d, 1
  br label %dim
axes:
  %all = icmp eq ptr %axis, %none
  br i1 %all, label %whole, label %one
whole:
  ret i64 %at
one:
  %is.int = icmp eq ptr %axis.type, %int
  br i1 %is.int, label %next, label %many
many:
  %is.tuple = icmp eq ptr %axis.type, %tuple
  br i1 %is.tuple, label %counted, label %no
counted:
  %length = call i64 @PyTuple_Size(ptr %axis)
  %is.few = icmp ule i64 %length, {_MOST}
  br i1 %is.few, label %next, label %no
next:
  %k = phi i64 [ 0, %one ], [ 0, %counted ], [ %k.next, %put ]
  %last = phi i64 [ 1, %one ], [ %length, %counted ], [ %last, %put ]
  %to = add i64 %at, %k
  %done = icmp eq i64 %k, %last
  br i1 %done, label %found, label %item
found:
  ret i64 %to
item:
  br i1 %is.int, label %number, label %element
element:
  %got = call ptr @PyTuple_GetItem(ptr %axis, i64 %k)
{field("got.type", "%got", TYPE, "ptr")}
  %is.number = icmp eq ptr %got.type, %int
  br i1 %is.number, label %number, label %no
number:
  %held = phi ptr [ %axis, %item ], [ %got, %element ]
  %a = call i64 @PyLong_AsLongLong(ptr %held)
  %odd = icmp eq i64 %a, -1
  br i1 %odd, label %suspect, label %put
suspect:
  %error = call ptr @PyErr_Occurred()
  %sound = icmp eq ptr %error, null
  br i1 %sound, label %put, label %failed
failed:
  call void @PyErr_Clear()
  br label %no
put:
  %a.to = getelementptr i64, ptr %words, i64 %to
  store i64 %a, ptr %a.to
  %k.next = add i64 %k, 1
  br label %next
no:
  ret i64 0
}}

define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
  %words = alloca [{_PLACE} x i64]
  %value = alloca ptr
  %job = alloca [{_JOB} x i64], align 16
  %room = alloca [{_ROOM} x i8], align 64
{field("table", "%holder", DATA, "ptr")}
{word("none", "%table", _NONE, "ptr")}
  %three = icmp eq i64 %count, 3
  br i1 %three, label %look, label %miss
look:
  %n = call i64 @asked(ptr %table, ptr %args, ptr %words)
  %some = icmp ne i64 %n, 0
  br i1 %some, label %search, label %miss
search:
  %kept = call ptr @recalled(ptr %table, ptr %words, i64 %n)
  %is.kept = icmp ne ptr %kept, null
  br i1 %is.kept, label %ask, label %miss
ask:
{field("plan", "%kept", DATA, "ptr")}
{word("code", "%plan", _CODE, "ptr")}
  %no.code = icmp eq ptr %code, null
  br i1 %no.code, label %nothing, label %allowed
nothing:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
allowed:
{word("restriction", "%table", _RESTRICTION, "ptr")}
{restriction_asked("%value")}
  br i1 %unbound, label %make, label %miss
make:
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("dtype", "%plan", _RESULT, "ptr")}
{word("axes", "%plan", _AXES)}
{word("long", "%plan", _LONG)}
{word("third", "%plan", _THIRD)}
{word("job.words", "%plan", _WORDS)}
  %dims = getelementptr i64, ptr %plan, i64 {_BEGIN}
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
  %x = load ptr, ptr %args
{field("x.data", "%x", DATA, "ptr")}
{field("y.data", "%y", DATA, "ptr")}
  %job.bytes = shl i64 %job.words, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %job, ptr %from, i64 %job.bytes, i1 false)
  call void @Py_DecRef(ptr %kept)
  store ptr %x.data, ptr %job
  %y.to = getelementptr ptr, ptr %job, i64 1
  store ptr %y.data, ptr %y.to
  %its.own = icmp eq i64 %third, {_IS_ITS_OWN}
  br i1 %its.own, label %run, label %between
between:
  %is.result = icmp eq i64 %third, {_IS_RESULT}
  %there = select i1 %is.result, ptr %y.data, ptr %room
  %third.to = getelementptr ptr, ptr %job, i64 2
  store ptr %there, ptr %third.to
  br label %run
run:
  %shared = icmp ne i64 %long, 0
{unlocked("call void %code(ptr %job)", "%shared")}
give:
  ret ptr %y
miss:
{word("function", "%table", _MISS, "ptr")}
  %told = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr null)
  ret ptr %told
}}

; keep(plan, x, axis, keepdims)
define ptr @keep(ptr %holder, ptr %args, i64 %count) {{
entry:
  %words = alloca [{_PLACE} x i64]
{field("table", "%holder", DATA, "ptr")}
{word("none", "%table", _NONE, "ptr")}
  %asked = getelementptr ptr, ptr %args, i64 1
  %n = call i64 @asked(ptr %table, ptr %asked, ptr %words)
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
"""
