"""The LLVM text of `reading.py`: builtin functions that look at Arrays and keys."""

from __future__ import annotations

from funct.array.keys_text import (
    ARRAY,
    EXCEPTION,
    MASKS,
    MISS,
    NDARRAY,
    NONE,
    SLICE,
    TUPLE,
    keys_text,
)
from funct.kernels.cpu.calls import (
    BASE,
    DATA,
    DTYPE,
    FLAGS,
    RANK,
    SHAPE,
    STRIDES,
    TYPE,
    field,
    word,
)
from funct.kernels.cpu.outside import declared

__all__ = ["reading_text"]

_MANY = 1 << 11  # positions: from here on `selected` knows better,
_ROWS = 1 << 5  # if they are not of rows,
_SOME = 1 << 9  # and where there is one on each of several axes


def reading_text(at: int) -> str:
    """The LLVM text of `read`, `rows` and `bare`; at: where in an Array its buffer stands."""
    return declared(f"""{keys_text(at)}
; Whether `selected` reads faster than NumPy: many positions, on one axis or on several, columns of
; a matrix.
define internal i1 @otherwise(ptr %table, ptr %buffer, ptr %key) {{
entry:
{word("ndarray.type", "%table", NDARRAY, "ptr")}
{word("tuple.type", "%table", TUPLE, "ptr")}
{field("type", "%key", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %ndarray.type
  br i1 %is.array, label %vector, label %other
vector:
{field("key.rank", "%key", RANK, "i32")}
{field("shape", "%key", SHAPE, "ptr")}
  %size = call i64 @PyArray_MultiplyList(ptr %shape, i32 %key.rank)
{field("key.dtype", "%key", DTYPE, "ptr")}
{word("truth", "%table", MASKS, "ptr")}
{field("rank", "%buffer", RANK, "i32")}
  %says.where = icmp ne ptr %key.dtype, %truth
  %deep = icmp ugt i32 %rank, 1
  %by.rows = and i1 %says.where, %deep
  %least = select i1 %by.rows, i64 {_ROWS}, i64 {_MANY}
  %many = icmp uge i64 %size, %least
  ret i1 %many
other:
  %is.tuple = icmp eq ptr %type, %tuple.type
  br i1 %is.tuple, label %pair, label %no
pair:
  %count = call i64 @PyTuple_Size(ptr %key)
  %two = icmp eq i64 %count, 2
  %some = icmp uge i64 %count, 2
  br i1 %some, label %first, label %no
first:
{word("slice.type", "%table", SLICE, "ptr")}
{word("none", "%table", NONE, "ptr")}
  %all = call ptr @PyTuple_GetItem(ptr %key, i64 0)
{field("all.type", "%all", TYPE, "ptr")}
  %is.slice = icmp eq ptr %all.type, %slice.type
  br i1 %is.slice, label %whole, label %places
places:
  %by.places = icmp eq ptr %all.type, %ndarray.type
  br i1 %by.places, label %placed, label %no
placed:
{field("placed.rank", "%all", RANK, "i32")}
{field("placed.shape", "%all", SHAPE, "ptr")}
  %placed.size = call i64 @PyArray_MultiplyList(ptr %placed.shape, i32 %placed.rank)
  %many.placed = icmp uge i64 %placed.size, {_SOME}
  ret i1 %many.placed
whole:
{field("start", "%all", TYPE + 8, "ptr")}
{field("stop", "%all", TYPE + 16, "ptr")}
{field("step", "%all", TYPE + 24, "ptr")}
  %no.start = icmp eq ptr %start, %none
  %no.stop = icmp eq ptr %stop, %none
  %no.step = icmp eq ptr %step, %none
  %no.ends = and i1 %no.start, %no.stop
  %only = and i1 %no.ends, %two
  %is.whole = and i1 %only, %no.step
  br i1 %is.whole, label %second, label %no
second:
  %columns = call ptr @PyTuple_GetItem(ptr %key, i64 1)
{field("columns.type", "%columns", TYPE, "ptr")}
  %by.array = icmp eq ptr %columns.type, %ndarray.type
  br i1 %by.array, label %dtyped, label %no
dtyped:
{field("dtype", "%columns", DTYPE, "ptr")}
{word("mask", "%table", MASKS, "ptr")}
  %by.positions = icmp ne ptr %dtype, %mask
  ret i1 %by.positions
no:
  ret i1 false
}}

; An Array with this buffer, whose reference is taken.
define internal ptr @wrap(ptr %table, ptr %found) {{
{word("array.type", "%table", ARRAY, "ptr")}
  %array = call ptr @PyType_GenericAlloc(ptr %array.type, i64 0)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %undo, label %give
undo:
  call void @Py_DecRef(ptr %found)
  ret ptr null
give:
  %place = getelementptr i8, ptr %array, i64 {at}
  store ptr %found, ptr %place
  ret ptr %array
}}

define internal ptr @miss(ptr %table, ptr %args, i64 %count) {{
{word("plain", "%table", MISS, "ptr")}
  %told = call ptr @PyObject_Vectorcall(ptr %plain, ptr %args, i64 %count, ptr null)
  ret ptr %told
}}

define ptr @bare(ptr %holder, ptr %args, i64 %count) {{
  %more = alloca i1
{field("table", "%holder", DATA, "ptr")}
  %given = load ptr, ptr %args
  %key = call ptr @key(ptr %table, ptr %given, ptr %more)
  %unknown = icmp eq ptr %key, null
  br i1 %unknown, label %miss, label %give
give:
  ret ptr %key
miss:
  %told = call ptr @miss(ptr %table, ptr %args, i64 %count)
  ret ptr %told
}}

define ptr @read(ptr %holder, ptr %args, i64 %count) {{
entry:
  %more = alloca i1
{field("table", "%holder", DATA, "ptr")}
  %x = load ptr, ptr %args
  %given.at = getelementptr ptr, ptr %args, i64 1
  %given = load ptr, ptr %given.at
  %buffer = call ptr @buffer(ptr %table, ptr %x)
  %foreign = icmp eq ptr %buffer, null
  br i1 %foreign, label %miss, label %ask
ask:
  %key = call ptr @key(ptr %table, ptr %given, ptr %more)
  %unknown = icmp eq ptr %key, null
  br i1 %unknown, label %miss, label %known
known:
  %more.set = load i1, ptr %more
  br i1 %more.set, label %weigh, label %get
weigh:
  %other.way = call i1 @otherwise(ptr %table, ptr %buffer, ptr %key)
  br i1 %other.way, label %drop, label %get
drop:
  call void @Py_DecRef(ptr %key)
  br label %miss
get:
  call void @Py_IncRef(ptr %buffer)
  %found = call ptr @PyObject_GetItem(ptr %buffer, ptr %key)
  call void @Py_DecRef(ptr %buffer)
  call void @Py_DecRef(ptr %key)
  %refused = icmp eq ptr %found, null
  br i1 %refused, label %error, label %look
look:
{word("ndarray.type", "%table", NDARRAY, "ptr")}
{field("type", "%found", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %ndarray.type
  br i1 %is.array, label %order, label %scalar
scalar:
  %number = call ptr @PyArray_FromScalar(ptr %found, ptr null)
  br label %instead
order:
  br i1 %more.set, label %laid, label %wrap
laid:
{field("rank", "%found", RANK, "i32")}
{field("flags", "%found", FLAGS, "i32")}
  %dense = and i32 %flags, 1
  %is.flat = icmp ult i32 %rank, 2
  %is.dense = icmp eq i32 %dense, 1
  %in.order = or i1 %is.flat, %is.dense
  br i1 %in.order, label %wrap, label %copy
copy:
  %copied = call ptr @PyArray_NewCopy(ptr %found, i32 0)
  br label %instead
instead:
  %made = phi ptr [ %number, %scalar ], [ %copied, %copy ]
  call void @Py_DecRef(ptr %found)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %error, label %wrap
wrap:
  %raw = phi ptr [ %found, %order ], [ %found, %laid ], [ %made, %instead ]
  %array = call ptr @wrap(ptr %table, ptr %raw)
  ret ptr %array
error:
{word("exception", "%table", EXCEPTION, "ptr")}
  %matches = call i32 @PyErr_ExceptionMatches(ptr %exception)
  %is.exception = icmp ne i32 %matches, 0
  br i1 %is.exception, label %clear, label %raise
clear:
  call void @PyErr_Clear()
  br label %miss
raise:
  ret ptr null
miss:
  %told = call ptr @miss(ptr %table, ptr %args, i64 %count)
  ret ptr %told
}}

define ptr @rows(ptr %holder, ptr %args, i64 %count) {{
entry:
{field("table", "%holder", DATA, "ptr")}
  %x = load ptr, ptr %args
  %buffer = call ptr @buffer(ptr %table, ptr %x)
  %foreign = icmp eq ptr %buffer, null
  br i1 %foreign, label %miss, label %measure
measure:
{field("rank", "%buffer", RANK, "i32")}
  %flat = icmp eq i32 %rank, 0
  br i1 %flat, label %miss, label %make
make:
{field("elements", "%buffer", DATA, "ptr")}
{field("shape", "%buffer", SHAPE, "ptr")}
{field("strides", "%buffer", STRIDES, "ptr")}
{field("dtype", "%buffer", DTYPE, "ptr")}
{field("flags", "%buffer", FLAGS, "i32")}
{word("ndarray.type", "%table", NDARRAY, "ptr")}
  %length = load i64, ptr %shape
  %stride = load i64, ptr %strides
  %shape.rest = getelementptr i64, ptr %shape, i64 1
  %strides.rest = getelementptr i64, ptr %strides, i64 1
  %rank.rest = sub i32 %rank, 1
  %list = call ptr @PyList_New(i64 %length)
  %failed = icmp eq ptr %list, null
  br i1 %failed, label %none, label %next
next:
  %i = phi i64 [ 0, %make ], [ %i.next, %put ]
  %end = icmp eq i64 %i, %length
  br i1 %end, label %give, label %row
row:
  %offset = mul i64 %i, %stride
  %place = getelementptr i8, ptr %elements, i64 %offset
  call void @Py_IncRef(ptr %dtype)
  %view = call ptr @PyArray_NewFromDescr(ptr %ndarray.type, ptr %dtype, i32 %rank.rest,
    ptr %shape.rest, ptr %strides.rest, ptr %place, i32 %flags, ptr null)
  %no.view = icmp eq ptr %view, null
  br i1 %no.view, label %undo, label %hold
hold:
  call void @Py_IncRef(ptr %buffer)
  %base.at = getelementptr i8, ptr %view, i64 {BASE}
  store ptr %buffer, ptr %base.at
  %array = call ptr @wrap(ptr %table, ptr %view)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %undo, label %put
put:
  %ignored = call i32 @PyList_SetItem(ptr %list, i64 %i, ptr %array)
  %i.next = add i64 %i, 1
  br label %next
give:
  ret ptr %list
undo:
  call void @Py_DecRef(ptr %list)
  br label %none
none:
  ret ptr null
miss:
  %told = call ptr @miss(ptr %table, ptr %args, i64 %count)
  ret ptr %told
}}
""")
