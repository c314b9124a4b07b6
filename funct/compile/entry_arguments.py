"""The LLVM text by which entries (`entry.py`) look at the Arrays that they are given."""

from __future__ import annotations

from funct.compile.entry_table import ARRAY, COPIED, HEAD, INPUTS, NDARRAY, ONE_ORDER, ORDERS
from funct.kernels.cpu.calls import (
    ALIGNED,
    DATA,
    DENSE,
    DTYPE,
    FLAGS,
    RANK,
    SHAPE,
    STRIDES,
    field,
    word,
)

__all__ = ["arguments_text"]

_FEW = 1 << 12  # elements that are copied where they do not lie side by side


def arguments_text(slot: int) -> str:
    """`fits`, `hold` and `release`. slot: where in an Array its buffer stands."""
    type_at = DATA - 8
    return f"""
; Whether the arguments are what the table says; their buffers, or copies of them, which are listed
; and whoever has them lets go of.
define internal i1 @fits(
    ptr %table, ptr %args, i64 %count, ptr %buffers, ptr %copies, ptr %copied) {{
entry:
  store i64 0, ptr %copied
{word("inputs", "%table", INPUTS)}
{word("array.type", "%table", ARRAY, "ptr")}
{word("ndarray.type", "%table", NDARRAY, "ptr")}
  %first = getelementptr i64, ptr %table, i64 {HEAD}
  %right = icmp eq i64 %count, %inputs
  br i1 %right, label %next, label %no
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %spec = phi ptr [ %first, %entry ], [ %spec.next, %put ]
  %done = icmp eq i64 %k, %inputs
  br i1 %done, label %yes, label %look
look:
  %arg.at = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg.at
{field("type", "%arg", type_at, "ptr")}
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %array, label %refuse
array:
{field("buffer", "%arg", slot, "ptr")}
  %gone = icmp eq ptr %buffer, null
  br i1 %gone, label %refuse, label %held
held:
{field("buffer.type", "%buffer", type_at, "ptr")}
  %is.ndarray = icmp eq ptr %buffer.type, %ndarray.type
  br i1 %is.ndarray, label %ndarray, label %refuse
ndarray:
{word("wanted", "%spec", 0)}
{field("dtype", "%buffer", DTYPE)}
  %same.dtype = icmp eq i64 %dtype, %wanted
{word("axes", "%spec", 1)}
{field("rank", "%buffer", RANK, "i32")}
  %rank.wide = sext i32 %rank to i64
  %same.rank = icmp eq i64 %rank.wide, %axes
{field("flags", "%buffer", FLAGS, "i32")}
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  %both = and i1 %same.dtype, %same.rank
{field("shape", "%buffer", SHAPE, "ptr")}
  %lengths = getelementptr i64, ptr %spec, i64 2
  br i1 %both, label %axis, label %refuse
axis:
  %d = phi i64 [ 0, %ndarray ], [ %d.next, %length ]
  %size = phi i64 [ 1, %ndarray ], [ %size.next, %length ]
  %last = icmp eq i64 %d, %axes
  br i1 %last, label %good, label %length
length:
  %ours.at = getelementptr i64, ptr %lengths, i64 %d
  %ours = load i64, ptr %ours.at
  %theirs.at = getelementptr i64, ptr %shape, i64 %d
  %theirs = load i64, ptr %theirs.at
  %same = icmp eq i64 %ours, %theirs
  %d.next = add i64 %d, 1
  %size.next = mul i64 %size, %ours
  br i1 %same, label %axis, label %refuse
good:
{word("orders", "%table", ORDERS)}
  %any.order = icmp eq i64 %orders, {ONE_ORDER}
  br i1 %any.order, label %ordered, label %in.order
ordered:  ; as the first argument is
  %is.first = icmp eq i64 %k, 0
  %aligned.flag = and i32 %flags, {ALIGNED}
  %aligned = icmp ne i32 %aligned.flag, 0
  br i1 %aligned, label %maybe.first, label %refuse
maybe.first:
  br i1 %is.first, label %put, label %compare
compare:
  %first.buffer = load ptr, ptr %buffers
{field("first.strides", "%first.buffer", STRIDES, "ptr")}
{field("strides", "%buffer", STRIDES, "ptr")}
  %stride.bytes = shl i64 %axes, 3
  %differ = call i32 @memcmp(ptr %first.strides, ptr %strides, i64 %stride.bytes)
  %one.order = icmp eq i32 %differ, 0
  br i1 %one.order, label %put, label %both.dense
both.dense:
{field("first.flags", "%first.buffer", FLAGS, "i32")}
  %first.masked = and i32 %first.flags, %masked
  %are.dense = icmp eq i32 %first.masked, {DENSE}
  br i1 %are.dense, label %put, label %refuse
in.order:
  br i1 %dense, label %put, label %strided
strided:
  %copies.some = icmp eq i64 %orders, {COPIED}
  br i1 %copies.some, label %count.them, label %refuse
count.them:
  %is.few = icmp ule i64 %size, {_FEW}
  br i1 %is.few, label %copy, label %refuse
copy:
  %made = call ptr @PyArray_NewCopy(ptr %buffer, i32 0)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %clear, label %keep
clear:
  call void @PyErr_Clear()
  br label %refuse
keep:
  %number = load i64, ptr %copied
  %copy.at = getelementptr ptr, ptr %copies, i64 %number
  store ptr %made, ptr %copy.at
  %number.next = add i64 %number, 1
  store i64 %number.next, ptr %copied
  br label %put
put:
  %found = phi ptr [ %buffer, %in.order ], [ %buffer, %maybe.first ], [ %buffer, %compare ],
                  [ %buffer, %both.dense ], [ %made, %keep ]
  %place = getelementptr ptr, ptr %buffers, i64 %k
  store ptr %found, ptr %place
  %k.next = add i64 %k, 1
  %spec.next = getelementptr i64, ptr %lengths, i64 %axes
  br label %next
refuse:
  %listed = load i64, ptr %copied
  call void @release(ptr %copies, i64 %listed)
  br label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

; The buffers are here as long as the program runs, whatever other threads do to their Arrays.
{_for_each("hold", "Py_IncRef")}
{_for_each("release", "Py_DecRef")}
"""


def _for_each(name: str, called: str) -> str:
    return f"""
define internal void @{name}(ptr %buffers, i64 %count) {{
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %take ]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %all, label %take
take:
  %place = getelementptr ptr, ptr %buffers, i64 %k
  %buffer = load ptr, ptr %place
  call void @{called}(ptr %buffer)
  %k.next = add i64 %k, 1
  br label %next
all:
  ret void
}}
"""
