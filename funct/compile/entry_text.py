"""The LLVM text of entries (`entry.py`): builtins that look at Arrays and run a program."""

from __future__ import annotations

from funct.compile.entry_arguments import arguments_text
from funct.compile.entry_table import (
    ARRAY,
    BYTE,
    BYTES,
    CALLS,
    GIVEN,
    NDARRAY,
    NONE,
    ONE_ORDER,
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
from funct.kernels.cpu.calls import (
    BASE,
    DATA,
    DENSE,
    FLAGS,
    KEEP_ORDER,
    RANK,
    STRIDES,
    field,
    word,
)
from funct.kernels.cpu.outside import declared

__all__ = ["SPARE", "entry_text"]

SPARE = 2  # kept buffers for each result

# words of a result's spec: dtype, rank, shape, input, spare buffers, how many, shared buffer
_OUT = 6 + SPARE
_SMALL = 1 << 13  # bytes of a workspace that lies on the stack
_OBJECT = -(-(FLAGS + 8) // 16) * 16  # bytes of an array, up to its flags
_OWN = 0x0004 | 0x0400  # flags: it owns its elements, and may be written into


def entry_text(slot: int, flags: int) -> str:
    """The LLVM text of `unwrap` and `serve`.

    slot: where in an Array its buffer stands. flags: of <fenv.h>, at which NumPy warns.
    """
    return declared(f"""
{arguments_text(slot)}
define ptr @unwrap(ptr %holder, ptr %args, i64 %count) {{
entry:
{field("table", "%holder", DATA, "ptr")}
  %buffers = alloca ptr, i64 %count
  %copies = alloca ptr, i64 %count
  %copied = alloca i64
  %fits = call i1 @fits(
    ptr %table, ptr %args, i64 %count, ptr %buffers, ptr %copies, ptr %copied)
  br i1 %fits, label %make, label %none
make:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %give, label %next
next:
  %k = phi i64 [ 0, %make ], [ %k.next, %put ]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %give, label %put
put:
  %place = getelementptr ptr, ptr %buffers, i64 %k
  %buffer = load ptr, ptr %place
  call void @Py_IncRef(ptr %buffer)
  %ignored = call i32 @PyTuple_SetItem(ptr %tuple, i64 %k, ptr %buffer)
  %k.next = add i64 %k, 1
  br label %next
give:
  %listed = load i64, ptr %copied
  call void @release(ptr %copies, i64 %listed)
  ret ptr %tuple
none:
{word("nothing", "%table", NONE, "ptr")}
  call void @Py_IncRef(ptr %nothing)
  ret ptr %nothing
}}

; A buffer for a result: one that is there, which it shares, an input that nobody else holds, a
; spare one, or a new one; None where arguments lie in one order, but not side by side.
define internal ptr @buffer(ptr %table, ptr %spec, ptr %buffers) {{
entry:
{word("there", "%spec", 5 + SPARE)}
  %shares = icmp sge i64 %there, 0
  br i1 %shares, label %take.there, label %own
take.there:
  %there.at2 = getelementptr ptr, ptr %buffers, i64 %there
  %shared = load ptr, ptr %there.at2
  call void @Py_IncRef(ptr %shared)
  ret ptr %shared
own:
{word("dtype", "%spec", 0, "ptr")}
{word("input", "%spec", 3)}
{word("spares", "%spec", 4 + SPARE)}
  %donated = icmp sge i64 %input, 0
  br i1 %donated, label %look, label %next
look:
  %input.at2 = getelementptr ptr, ptr %buffers, i64 %input
  %given = load ptr, ptr %input.at2
{field("given.count", "%given", 0)}
{field("given.base", "%given", BASE, "ptr")}
{field("given.flags", "%given", FLAGS, "i32")}
  %alone = icmp eq i64 %given.count, 1
  %whole = icmp eq ptr %given.base, null
  %masked = and i32 %given.flags, {_OWN}
  %owned = icmp eq i32 %masked, {_OWN}
  %ours = and i1 %alone, %whole
  %free = and i1 %ours, %owned
  br i1 %free, label %take.given, label %next
take.given:
  call void @Py_IncRef(ptr %given)
  ret ptr %given
next:
  %k = phi i64 [ 0, %own ], [ 0, %look ], [ %k.next, %spare ]
  %more = icmp slt i64 %k, %spares
  br i1 %more, label %spare, label %new
spare:
  %offset = add i64 %k, 4
  %spare.at = getelementptr ptr, ptr %spec, i64 %offset
  %kept = load ptr, ptr %spare.at
{field("kept.count", "%kept", 0)}
  %unused = icmp eq i64 %kept.count, 1
  %k.next = add i64 %k, 1
  br i1 %unused, label %take.kept, label %next
take.kept:
  call void @Py_IncRef(ptr %kept)
  ret ptr %kept
new:
{word("orders", "%table", ORDERS)}
  %any.order = icmp eq i64 %orders, {ONE_ORDER}
  br i1 %any.order, label %ordered, label %in.order
ordered:
  %first = load ptr, ptr %buffers
{field("first.flags", "%first", FLAGS, "i32")}
  %first.masked = and i32 %first.flags, {DENSE}
  %first.dense = icmp eq i32 %first.masked, {DENSE}
  br i1 %first.dense, label %in.order, label %like
like:
  %alike = call ptr @PyArray_NewLikeArray(ptr %first, i32 {KEEP_ORDER}, ptr null, i32 0)
  %no.room = icmp eq ptr %alike, null
  br i1 %no.room, label %give, label %compare
compare:
{field("axes.of.first", "%first", RANK, "i32")}
{field("strides.of.first", "%first", STRIDES, "ptr")}
{field("strides", "%alike", STRIDES, "ptr")}
  %axes.wide = sext i32 %axes.of.first to i64
  %stride.bytes = shl i64 %axes.wide, 3
  %differ = call i32 @memcmp(ptr %strides.of.first, ptr %strides, i64 %stride.bytes)
  %one.order = icmp eq i32 %differ, 0
  br i1 %one.order, label %give, label %loose
loose:
  call void @Py_DecRef(ptr %alike)
{word("nothing", "%table", NONE, "ptr")}
  call void @Py_IncRef(ptr %nothing)
  br label %give
give:
  %given.back = phi ptr [ null, %like ], [ %alike, %compare ], [ %nothing, %loose ]
  ret ptr %given.back
in.order:
{word("rank", "%spec", 1)}
{word("shape", "%spec", 2, "ptr")}
{word("ndarray", "%table", NDARRAY, "ptr")}
  %axes = trunc i64 %rank to i32
  call void @Py_IncRef(ptr %dtype)
  %made = call ptr @PyArray_NewFromDescr(
    ptr %ndarray, ptr %dtype, i32 %axes, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  ret ptr %made
}}

define ptr @serve(ptr %holder, ptr %args, i64 %count) {{
entry:
{field("table", "%holder", DATA, "ptr")}
{word("results", "%table", RESULTS)}
  %some = add i64 %count, %results
  %buffers = alloca ptr, i64 %some
  %copies = alloca ptr, i64 %count
  %copied = alloca i64
  %fits = call i1 @fits(
    ptr %table, ptr %args, i64 %count, ptr %buffers, ptr %copies, ptr %copied)
  br i1 %fits, label %make, label %none
make:
{word("specs.from", "%table", SPECS_OUT)}
  %specs = getelementptr i64, ptr %table, i64 %specs.from
{word("array.type", "%table", ARRAY, "ptr")}
  %wrapped = alloca ptr, i64 %results
  br label %next
next:
  %r = phi i64 [ 0, %make ], [ %r.next, %wrap ]
  %done = icmp eq i64 %r, %results
  br i1 %done, label %space, label %result
result:
  %from = mul i64 %r, {_OUT}
  %spec = getelementptr i64, ptr %specs, i64 %from
  %buffer = call ptr @buffer(ptr %table, ptr %spec, ptr %buffers)
  %no.buffer = icmp eq ptr %buffer, null
  br i1 %no.buffer, label %undo, label %look.at.it
look.at.it:
{word("refusal", "%table", NONE, "ptr")}
  %refused = icmp eq ptr %buffer, %refusal
  br i1 %refused, label %undo.refused, label %made
undo.refused:
  call void @Py_DecRef(ptr %buffer)
  br label %undo
made:
  %array = call ptr @PyType_GenericAlloc(ptr %array.type, i64 0)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %undo.buffer, label %wrap
wrap:
  %slot = getelementptr i8, ptr %array, i64 {slot}
  store ptr %buffer, ptr %slot
  %wrapped.at = getelementptr ptr, ptr %wrapped, i64 %r
  store ptr %array, ptr %wrapped.at
  %buffer.number = add i64 %count, %r
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %buffer.number
  store ptr %buffer, ptr %buffer.at
  %r.next = add i64 %r, 1
  br label %next

space:
{word("room", "%table", ROOM, "ptr")}
{word("bytes", "%table", BYTES)}
  %kept = icmp ne ptr %room, null
  br i1 %kept, label %reserve, label %measure
reserve:
  store ptr null, ptr %room.at
  br label %arguments
measure:
  %small = icmp ule i64 %bytes, {_SMALL}
  br i1 %small, label %stack, label %heap
stack:
  %elements = alloca i8, i64 %bytes, align 64
  %object = alloca i8, i64 {_OBJECT}, align 16
  %object.data = getelementptr i8, ptr %object, i64 {DATA}
  store ptr %elements, ptr %object.data
  %object.flags = getelementptr i8, ptr %object, i64 {FLAGS}
  store i32 {DENSE}, ptr %object.flags
  br label %arguments
heap:
{word("byte", "%table", BYTE, "ptr")}
{word("ndarray", "%table", NDARRAY, "ptr")}
  call void @Py_IncRef(ptr %byte)
  %heap.room = call ptr @PyArray_NewFromDescr(
    ptr %ndarray, ptr %byte, i32 1, ptr %bytes.at, ptr null, ptr null, i32 0, ptr null)
  %no.room = icmp eq ptr %heap.room, null
  br i1 %no.room, label %undo, label %arguments

arguments:
  %work = phi ptr [ %room, %reserve ], [ %object, %stack ], [ %heap.room, %heap ]
  %own = phi ptr [ null, %reserve ], [ null, %stack ], [ %heap.room, %heap ]
{word("given", "%table", GIVEN)}
{word("whence.from", "%table", WHENCE)}
  %whence = getelementptr i64, ptr %table, i64 %whence.from
  %with.work = add i64 %given, 1
  %given.arrays = alloca ptr, i64 %with.work
{word("orders", "%table", ORDERS)}
  %any.order = icmp eq i64 %orders, {ONE_ORDER}
  %posed.bytes = mul i64 %given, {_OBJECT}
  %posed.room = select i1 %any.order, i64 %posed.bytes, i64 0
  %posed = alloca i8, i64 %posed.room, align 16
  br label %argument
argument:
  %a = phi i64 [ 0, %arguments ], [ %a.next, %passed ]
  %a.done = icmp eq i64 %a, %given
  br i1 %a.done, label %run, label %pass
pass:
  %number.at = getelementptr i64, ptr %whence, i64 %a
  %number = load i64, ptr %number.at
  %source.at = getelementptr ptr, ptr %buffers, i64 %number
  %source = load ptr, ptr %source.at
  %given.at2 = getelementptr ptr, ptr %given.arrays, i64 %a
  store ptr %source, ptr %given.at2
  br i1 %any.order, label %pose, label %passed
pose:  ; as an array that is dense
  %posed.offset = mul i64 %a, {_OBJECT}
  %posed.at = getelementptr i8, ptr %posed, i64 %posed.offset
{field("source.data", "%source", DATA, "ptr")}
  %posed.data = getelementptr i8, ptr %posed.at, i64 {DATA}
  store ptr %source.data, ptr %posed.data
  %posed.flags = getelementptr i8, ptr %posed.at, i64 {FLAGS}
  store i32 {DENSE}, ptr %posed.flags
  store ptr %posed.at, ptr %given.at2
  br label %passed
passed:
  %a.next = add i64 %a, 1
  br label %argument
run:
  call void @hold(ptr %buffers, i64 %count)
{word("warns", "%table", WARNS)}
  %looks = icmp ne i64 %warns, 0
  br i1 %looks, label %before, label %walk.it
before:
  %left.over = call i32 @fetestexcept(i32 {flags})
  %is.clear = icmp eq i32 %left.over, 0
  br i1 %is.clear, label %walk.it, label %clear
clear:
  %ignored.flags = call i32 @feclearexcept(i32 {flags})
  br label %walk.it
walk.it:
  %work.at = getelementptr ptr, ptr %given.arrays, i64 %given
  store ptr %work, ptr %work.at
{word("program", "%table", PROGRAM, "ptr")}
{word("walk", "%table", WALK, "ptr")}
  %told = call ptr %walk(ptr %program, ptr %given.arrays, i64 %with.work)
  call void @Py_DecRef(ptr %told)
  call void @release(ptr %buffers, i64 %count)
  br i1 %kept, label %put.back, label %maybe.free
put.back:
  store ptr %room, ptr %room.at
  br label %answer
maybe.free:
  %freed = icmp ne ptr %own, null
  br i1 %freed, label %free, label %answer
free:
  call void @Py_DecRef(ptr %own)
  br label %answer

answer:
  %stopped = icmp eq ptr %told, null
  br i1 %stopped, label %undo, label %ended
ended:
{word("must.raise", "%table", NONE, "ptr")}
  %raises = icmp eq ptr %told, %must.raise
  br i1 %raises, label %undo, label %warned
warned:
  br i1 %looks, label %after, label %count.it
after:
  %raised = call i32 @fetestexcept(i32 {flags})
  %quiet = icmp eq i32 %raised, 0
  br i1 %quiet, label %count.it, label %decline
decline:
  %ignored.too = call i32 @feclearexcept(i32 {flags})
  br label %undo
count.it:
{word("calls", "%table", CALLS)}
  %calls.next = add i64 %calls, 1
  store i64 %calls.next, ptr %calls.at
{word("single", "%table", SINGLE)}
  %is.single = icmp ne i64 %single, 0
  br i1 %is.single, label %one, label %many
one:
  %only = load ptr, ptr %wrapped
  %copied.of.one = load i64, ptr %copied
  call void @release(ptr %copies, i64 %copied.of.one)
  ret ptr %only
many:
  %list = call ptr @PyList_New(i64 %results)
  %no.list = icmp eq ptr %list, null
  br i1 %no.list, label %undo, label %element
element:
  %e = phi i64 [ 0, %many ], [ %e.next, %put ]
  %e.done = icmp eq i64 %e, %results
  br i1 %e.done, label %listed, label %put
put:
  %element.at = getelementptr ptr, ptr %wrapped, i64 %e
  %element.array = load ptr, ptr %element.at
  %ignored = call i32 @PyList_SetItem(ptr %list, i64 %e, ptr %element.array)
  %e.next = add i64 %e, 1
  br label %element
listed:
  %copied.of.many = load i64, ptr %copied
  call void @release(ptr %copies, i64 %copied.of.many)
  ret ptr %list

undo.buffer:
  call void @Py_DecRef(ptr %buffer)
  br label %undo
undo:
  %made.so.far = phi i64 [ %r, %result ], [ %r, %undo.refused ], [ %r, %undo.buffer ],
                         [ %results, %heap ], [ %results, %many ], [ %results, %answer ],
                         [ %results, %ended ], [ %results, %decline ]
  %declined = phi i1 [ 0, %result ], [ 1, %undo.refused ], [ 0, %undo.buffer ],
                     [ 0, %heap ], [ 0, %many ],
                     [ 0, %answer ], [ 1, %ended ],
                     [ 1, %decline ]
  %copied.in.vain = load i64, ptr %copied
  call void @release(ptr %copies, i64 %copied.in.vain)
  br label %drop
drop:
  %m = phi i64 [ 0, %undo ], [ %m.next, %dropping ]
  %dropped = icmp eq i64 %m, %made.so.far
  br i1 %dropped, label %fail, label %dropping
dropping:
  %drop.at = getelementptr ptr, ptr %wrapped, i64 %m
  %drop.array = load ptr, ptr %drop.at
  call void @Py_DecRef(ptr %drop.array)
  %m.next = add i64 %m, 1
  br label %drop
fail:
  br i1 %declined, label %none, label %error
error:
  ret ptr null
none:
{word("nothing", "%table", NONE, "ptr")}
  call void @Py_IncRef(ptr %nothing)
  ret ptr %nothing
}}
""")
