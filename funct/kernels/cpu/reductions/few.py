"""Reductions of few elements by a builtin function, which reads the array and makes the result.

    total = Few("sum")
    total.call(x, None, False)      # an array; None where Python is to decide

NumPy's own reductions take 2 µs to begin. What is given here has the bits that the functions of
`funct.kernels.reductions.statistical` give otherwise: sums have NumPy's order, and products too but
where rows are long enough for one of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from funct.device import host, printed
from funct.device.host import told
from funct.device.llvm import loaded
from funct.device.printed import recall
from funct.kernels.cpu.calls import (
    DATA,
    DENSE,
    DTYPE,
    FLAGS,
    RANK,
    SHAPE,
    TYPE,
    builtin,
    code_of,
    field,
    readable,
    word,
)
from funct.kernels.cpu.elementwise.vector_loops import ELEMENTS
from funct.kernels.cpu.often import Often
from funct.kernels.cpu.outside import warning_flags
from funct.kernels.cpu.passages import (
    flags_asked,
    flags_cleared,
    restriction_asked,
    sought,
    unlocked,
)
from funct.kernels.cpu.prepared import Prepared
from funct.kernels.cpu.reductions.few_text import text
from funct.kernels.cpu.reductions.short_rows import result_of
from funct.kernels.table import restriction

__all__ = ["Few"]

_FEW = 1 << 9  # elements in rows and columns of any length,
_MANY, _SOME = 32, 1 << 13  # in so many columns,
_LONG, _TASKS = 128, 1 << 16  # and in rows of more than so many: from here on threads share them
_HALVES = 1 << 12  # elements of two bytes from which on sums have another order
_FREE = 1 << 13  # elements from which on other Python threads may run meanwhile
_RANK = 64  # the most that NumPy knows
_BOOL = np.dtype(bool)
# Words of a table; then, for each dtype: what it is, that of the result, the code, how many
# elements are too many, and the flags of the processor at which NumPy is to say what it met
_NDARRAY, _INT, _TUPLE, _NONE, _TRUE, _FALSE, _MISS, _ONLY, _COUNT, _DTYPES = range(10)
_WORDS = 5


class Few:
    """sum, prod, max, min, any or all of dense arrays, over axes that lie side by side.

    then: what is asked where it gives nothing. call: takes the array, the axes (None, an int or a
    tuple) and whether they stay. It is Python, which asks that, until it has been called often for
    a dtype.
    """

    __slots__ = ("_kept", "_name", "_then", "_waiting", "call")

    call: Callable[..., Any]

    def __init__(self, name: str, then: Prepared | None = None) -> None:
        self._name, self._then = name, then
        self._kept: list[tuple[Any, ...]] = []
        truth = name in ("any", "all")
        kinds = [d for d in ELEMENTS if (d == _BOOL) == truth or name == "sum"]
        self._waiting: dict[Any, Callable[[], None] | None] = dict.fromkeys(kinds)
        self.call = self._miss

    def _miss(self, x: Any, axis: Any, keepdims: Any) -> Any:
        dtype = x.dtype
        if dtype in self._waiting:
            count = self._waiting.get(dtype)
            if count is None:
                often = Often(partial(self._load, dtype), at_hand=partial(self._at_hand, dtype))
                count = self._waiting[dtype] = often.counted(_nothing)
            count()
        return self._then and self._then.call(x, axis, keepdims)

    def _at_hand(self, dtype: np.dtype[Any]) -> bool:
        """Whether the code costs no more than milliseconds."""
        if loaded() or not told():
            return loaded()
        return recall(text, self._name, ELEMENTS[dtype], host()) is not None

    def _load(self, dtype: np.dtype[Any]) -> None:
        """Let the builtin answer for a dtype."""
        if not readable() or dtype not in self._waiting:
            return
        del self._waiting[dtype]
        code = printed(text, self._name, ELEMENTS[dtype], host()).keep()
        self._kept.append((dtype, _result(self._name, dtype), code))
        objects = (np.ndarray, int, tuple, None, True, False, self._miss, restriction)
        words = [*map(id, objects), len(self._kept)]
        for kind, result, made in self._kept:
            most = _HALVES if ELEMENTS[kind] in ("f16", "bf16") else _TASKS
            told = kind.kind in "fV" and self._name in ("sum", "prod")
            flags = (told and warning_flags()) or 0
            words += [id(kind), id(result), made.address("reduce"), most, flags]
        held = (self, objects, list(self._kept))
        self.call = builtin("few", code_of(_TEXT).address("call"), np.asarray(words), held)


def _nothing() -> None:
    """What stands for the code until there is any."""


def _result(name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if ELEMENTS[dtype] == "bf16" else result_of(name, dtype)


_CALL = "call void %code(ptr %x.data, ptr %y.data, i64 %outer, i64 %length, i64 %inner)"
_TEXT = f"""
define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
  %dims = alloca [{_RANK} x i64]
  %value = alloca ptr
{field("table", "%holder", DATA, "ptr")}
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("int", "%table", _INT, "ptr")}
{word("tuple", "%table", _TUPLE, "ptr")}
{word("none", "%table", _NONE, "ptr")}
{word("true", "%table", _TRUE, "ptr")}
{word("false", "%table", _FALSE, "ptr")}
{word("kinds", "%table", _COUNT)}
  %x = load ptr, ptr %args
  %axis.at = getelementptr ptr, ptr %args, i64 1
  %axis = load ptr, ptr %axis.at
  %keepdims.at = getelementptr ptr, ptr %args, i64 2
  %keepdims = load ptr, ptr %keepdims.at
{field("type", "%x", TYPE, "ptr")}
  %three = icmp eq i64 %count, 3
  %is.array = icmp eq ptr %type, %ndarray
  %keeps = icmp eq ptr %keepdims, %true
  %drops = icmp eq ptr %keepdims, %false
  %known.keepdims = or i1 %keeps, %drops
  %shaped = and i1 %three, %is.array
  %given = and i1 %shaped, %known.keepdims
  br i1 %given, label %array, label %miss
array:
{field("dtype", "%x", DTYPE, "ptr")}
{field("flags", "%x", FLAGS, "i32")}
{field("rank.short", "%x", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
  %rank = sext i32 %rank.short to i64
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  %first.kind = getelementptr i64, ptr %table, i64 {_DTYPES}
  br i1 %dense, label %kind, label %miss
{sought("%first.kind", _WORDS, "array", "axes", "miss")}
{field("axis.type", "%axis", TYPE, "ptr")}
  %all = icmp eq ptr %axis, %none
  br i1 %all, label %known, label %one
one:
  %is.int = icmp eq ptr %axis.type, %int
  br i1 %is.int, label %next, label %many
many:
  %is.tuple = icmp eq ptr %axis.type, %tuple
  br i1 %is.tuple, label %several, label %miss
several:
  %length.given = call i64 @PyTuple_Size(ptr %axis)
  %empty = icmp eq i64 %length.given, 0
  br i1 %empty, label %miss, label %next
next:
  %k = phi i64 [ 0, %one ], [ 0, %several ], [ %k.next, %follows ]
  %last = phi i64 [ 1, %one ], [ %length.given, %several ], [ %last, %follows ]
  %before = phi i64 [ -1, %one ], [ -1, %several ], [ %begin, %follows ]
  %done = icmp eq i64 %k, %last
  br i1 %done, label %known, label %item
item:
  %in.tuple = icmp eq ptr %axis.type, %tuple
  br i1 %in.tuple, label %element, label %number
element:
  %got = call ptr @PyTuple_GetItem(ptr %axis, i64 %k)
{field("got.type", "%got", TYPE, "ptr")}
  %whole = icmp eq ptr %got.type, %int
  br i1 %whole, label %number, label %miss
number:
  %one.axis = phi ptr [ %axis, %item ], [ %got, %element ]
  %a = call i64 @PyLong_AsLongLong(ptr %one.axis)
  %odd = icmp eq i64 %a, -1
  br i1 %odd, label %suspect, label %counted
suspect:
  %error = call ptr @PyErr_Occurred()
  %sound = icmp eq ptr %error, null
  br i1 %sound, label %counted, label %failed
failed:
  ret ptr null
counted:
  %from.end = icmp slt i64 %a, 0
  %turned = add i64 %a, %rank
  %place = select i1 %from.end, i64 %turned, i64 %a
  %inside = icmp ult i64 %place, %rank
  %at.first = icmp eq i64 %k, 0
  %begin = select i1 %at.first, i64 %place, i64 %before
  %due = add i64 %begin, %k
  %in.order = icmp eq i64 %place, %due
  %fine = and i1 %inside, %in.order
  br i1 %fine, label %follows, label %miss
follows:
  %k.next = add i64 %k, 1
  br label %next

known:
  %first = phi i64 [ 0, %axes ], [ %before, %next ]
  %number.of = phi i64 [ %rank, %axes ], [ %last, %next ]
  %behind = add i64 %first, %number.of
  %rest = sub i64 %rank, %behind
  %first.short = trunc i64 %first to i32
  %number.short = trunc i64 %number.of to i32
  %rest.short = trunc i64 %rest to i32
  %reduced = getelementptr i64, ptr %shape, i64 %first
  %kept = getelementptr i64, ptr %shape, i64 %behind
  %outer = call i64 @PyArray_MultiplyList(ptr %shape, i32 %first.short)
  %length = call i64 @PyArray_MultiplyList(ptr %reduced, i32 %number.short)
  %inner = call i64 @PyArray_MultiplyList(ptr %kept, i32 %rest.short)
  %rows = mul i64 %outer, %inner
  %n = mul i64 %rows, %length
  %is.last = icmp eq i64 %rest, 0
  %columns = icmp sgt i64 %inner, 1
  %placed = or i1 %is.last, %columns
  %several.terms = icmp sgt i64 %length, 1
  %several.rows = icmp sgt i64 %rows, 0
  %few = icmp slt i64 %n, {_FEW}
  %some = icmp slt i64 %n, {_SOME}
{word("most", "%at", 3)}
  %not.many = icmp slt i64 %n, %most
  %long = icmp sgt i64 %length, {_LONG}
  %last.long = and i1 %is.last, %long
  %long.rows = and i1 %last.long, %not.many
  %many.columns = icmp sge i64 %inner, {_MANY}
  %wide = and i1 %many.columns, %some
  %wide.few = and i1 %wide, %not.many
  %well = or i1 %long.rows, %wide.few
  %right = or i1 %few, %well
  %yes.1 = and i1 %placed, %several.terms
  %yes.2 = and i1 %yes.1, %several.rows
  %yes = and i1 %yes.2, %right
  br i1 %yes, label %allowed, label %miss
allowed:
{word("restriction", "%table", _ONLY, "ptr")}
{restriction_asked()}
  br i1 %unbound, label %make, label %miss

make:
  %d = phi i64 [ 0, %allowed ], [ %d.next, %step ]
  %left = phi i64 [ 0, %allowed ], [ %left.next, %step ]
  %measured = icmp eq i64 %d, %rank
  br i1 %measured, label %new, label %dim
dim:
  %in.before = icmp slt i64 %d, %first
  %in.behind = icmp sge i64 %d, %behind
  %stays = or i1 %in.before, %in.behind
  %taken = or i1 %stays, %keeps
  %own.at = getelementptr i64, ptr %shape, i64 %d
  %own = load i64, ptr %own.at
  %put = select i1 %stays, i64 %own, i64 1
  %to = getelementptr i64, ptr %dims, i64 %left
  store i64 %put, ptr %to
  br label %step
step:
  %more = zext i1 %taken to i64
  %left.next = add i64 %left, %more
  %d.next = add i64 %d, 1
  br label %make
new:
{word("made.dtype", "%at", 1, "ptr")}
{word("code", "%at", 2, "ptr")}
  %made.rank = trunc i64 %left to i32
  call void @Py_IncRef(ptr %made.dtype)
  %y = call ptr @PyArray_NewFromDescr(ptr %ndarray, ptr %made.dtype, i32 %made.rank, ptr %dims,
                                      ptr null, ptr null, i32 0, ptr null)
  %no.room = icmp eq ptr %y, null
  br i1 %no.room, label %failed, label %made
made:
{field("x.data", "%x", DATA, "ptr")}
{field("y.data", "%y", DATA, "ptr")}
{word("watched.wide", "%at", 4)}
  %watched = trunc i64 %watched.wide to i32
{flags_cleared("%watched")}
run:
  %shared = icmp sge i64 %n, {_FREE}
{unlocked(_CALL, "%shared")}
give:
{flags_asked("%watched")}
again:
  call void @Py_DecRef(ptr %y)
  br label %miss
good:
  ret ptr %y

miss:
{word("function", "%table", _MISS, "ptr")}
  %told = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr null)
  ret ptr %told
}}
"""
