"""What is done with two arrays where that depends on how they lie alone: one builtin function finds
it by their dtypes, shapes and strides, among what the last calls did.

    product = ByLayout(way, known=[np.dtype(np.float32)])     # way(x, y) gives a function of both
    product.call(x, y)     # way(x, y)(x, y); way is not asked again for arrays that lie so

To ask arrays how they lie takes Python longer than they take that have a thousand elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from funct.kernels.cpu.by_words import PLACES, text
from funct.kernels.cpu.calls import (
    ALIGNED,
    DATA,
    DTYPE,
    FLAGS,
    RANK,
    SHAPE,
    STRIDES,
    TYPE,
    builtin,
    code_of,
    field,
    readable,
    word,
)
from funct.kernels.cpu.often import Often
from funct.kernels.cpu.passages import restriction_asked
from funct.kernels.table import restriction, unrestricted

__all__ = ["ByLayout"]

_ENOUGH = 2000  # calls whose gain, 1 to 4 µs each, pays for the code, which is kept on disk
_MOST = 4  # axes of an array
_PLACE = 24  # words of what is kept of a layout
_NDARRAY, _NONE, _MISS, _RESTRICTION, _FIRST = range(5)  # words of a table


class ByLayout:
    """A function of two arrays, by what another one gives for how they lie.

    way: of two arrays gives the function of both. often: the same for arrays that lie as others did
    or will; it may take longer to say. known: dtypes of which that is kept. The function depends on
    nothing but dtypes, shapes, strides, and whether both begin at one place.
    """

    __slots__ = ("_keep", "_known", "_often", "_way", "call")

    call: Callable[[Any, Any], Any]

    def __init__(
        self, way: Callable[[Any, Any], Any], often: Callable[[Any, Any], Any],
        known: Iterable[np.dtype[Any]],
    ) -> None:  # fmt: skip
        self._way, self._often = way, often
        self._known = {id(dtype): dtype for dtype in known}
        self.call = Often(self.load, _ENOUGH).counted(self._plain)

    def _plain(self, x: Any, y: Any) -> Any:
        return self._way(x, y)(x, y)

    def load(self) -> None:
        """Let the builtin answer."""
        if readable():
            miss = self._met
            head = [*map(id, (np.ndarray, None, miss, restriction))]
            table = np.asarray([*head, *[0] * (PLACES * _PLACE)], np.int64)
            code = code_of(_TEXT)
            self._keep: Any = builtin("keep", code.address("keep"), table, self)
            self.call = builtin("by_layout", code.address("call"), table, (self, miss))

    def _met(self, x: Any, y: Any) -> Any:
        """The call where nothing is kept for such arrays."""
        if not x.__class__ is y.__class__ is np.ndarray or not unrestricted():
            return self._way(x, y)(x, y)
        way = self._often(x, y)
        if id(x.dtype) in self._known and id(y.dtype) in self._known:
            self._keep(way, x, y)
        return way(x, y)


_TEXT = f"""
{text(_FIRST, _PLACE)}
; Writes how two arrays lie, and gives how many words that is; none where they are no such arrays.
define internal i64 @layout(ptr %table, ptr %arrays, ptr %words) {{
entry:
{word("ndarray", "%table", _NDARRAY, "ptr")}
  br label %array
array:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %at = phi i64 [ 0, %entry ], [ %to, %next ]
  %both = icmp eq i64 %k, 2
  br i1 %both, label %last, label %look
look:
  %x.at = getelementptr ptr, ptr %arrays, i64 %k
  %x = load ptr, ptr %x.at
{field("type", "%x", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %asked, label %no
asked:
{field("flags", "%x", FLAGS, "i32")}
{field("rank32", "%x", RANK, "i32")}
{field("dtype", "%x", DTYPE)}
{field("shape", "%x", SHAPE, "ptr")}
{field("strides", "%x", STRIDES, "ptr")}
  %rank = zext i32 %rank32 to i64
  %aligned = and i32 %flags, {ALIGNED}
  %is.aligned = icmp ne i32 %aligned, 0
  %is.short = icmp ule i64 %rank, {_MOST}
  %fits = and i1 %is.aligned, %is.short
  br i1 %fits, label %head, label %no
head:
  %dtype.to = getelementptr i64, ptr %words, i64 %at
  %rank.to = getelementptr i64, ptr %dtype.to, i64 1
  store i64 %dtype, ptr %dtype.to
  store i64 %rank, ptr %rank.to
  %begin = add i64 %at, 2
  br label %axis
axis:
  %d = phi i64 [ 0, %head ], [ %d.next, %some ]
  %to = phi i64 [ %begin, %head ], [ %to.next, %some ]
  %walked = icmp eq i64 %d, %rank
  br i1 %walked, label %next, label %some
some:
  %n.at = getelementptr i64, ptr %shape, i64 %d
  %step.at = getelementptr i64, ptr %strides, i64 %d
  %n = load i64, ptr %n.at
  %step = load i64, ptr %step.at
  %n.to = getelementptr i64, ptr %words, i64 %to
  %step.to = getelementptr i64, ptr %n.to, i64 1
  store i64 %n, ptr %n.to
  store i64 %step, ptr %step.to
  %d.next = add i64 %d, 1
  %to.next = add i64 %to, 2
  br label %axis
next:
  %k.next = add i64 %k, 1
  br label %array
last:
  %one = load ptr, ptr %arrays
  %other.at = getelementptr ptr, ptr %arrays, i64 1
  %other = load ptr, ptr %other.at
{field("one.data", "%one", DATA)}
{field("other.data", "%other", DATA)}
  %same = icmp eq i64 %one.data, %other.data
  %together = zext i1 %same to i64
  %last.to = getelementptr i64, ptr %words, i64 %at
  store i64 %together, ptr %last.to
  %count = add i64 %at, 1
  ret i64 %count
no:
  ret i64 0
}}

define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
  %words = alloca [{_PLACE} x i64]
  %value = alloca ptr
{field("table", "%holder", DATA, "ptr")}
  %two = icmp eq i64 %count, 2
  br i1 %two, label %look, label %miss
look:
  %n = call i64 @layout(ptr %table, ptr %args, ptr %words)
  %some = icmp ne i64 %n, 0
  br i1 %some, label %search, label %miss
search:
  %way = call ptr @recalled(ptr %table, ptr %words, i64 %n)
  %is.kept = icmp ne ptr %way, null
  br i1 %is.kept, label %ask, label %miss
ask:
{word("restriction", "%table", _RESTRICTION, "ptr")}
{word("none", "%table", _NONE, "ptr")}
{restriction_asked()}
  br i1 %unbound, label %run, label %miss
run:
  call void @Py_IncRef(ptr %way)
  %result = call ptr @PyObject_Vectorcall(ptr %way, ptr %args, i64 2, ptr null)
  call void @Py_DecRef(ptr %way)
  ret ptr %result
miss:
{word("function", "%table", _MISS, "ptr")}
  %told = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr null)
  ret ptr %told
}}

; keep(function, x, y)
define ptr @keep(ptr %holder, ptr %args, i64 %count) {{
entry:
  %words = alloca [{_PLACE} x i64]
{field("table", "%holder", DATA, "ptr")}
{word("none", "%table", _NONE, "ptr")}
  %arrays = getelementptr ptr, ptr %args, i64 1
  %n = call i64 @layout(ptr %table, ptr %arrays, ptr %words)
  %some = icmp ne i64 %n, 0
  br i1 %some, label %write, label %done
write:
  %way = load ptr, ptr %args
  call void @remember(ptr %table, ptr %words, i64 %n, ptr %way)
  br label %done
done:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
"""
