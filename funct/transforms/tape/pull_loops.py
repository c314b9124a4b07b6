"""The LLVM text of a pull on small arrays: the list of NumPy's loops that it is, one after another.

Reads best after `loops.py`.
"""

from __future__ import annotations

from funct.kernels.cpu.calls import TYPE, field, word
from funct.transforms.tape.words import HELD, KINDS, STEP, Slots, wrapped

__all__ = ["pulls_text"]


def pulls_text(at: Slots) -> str:
    """The text of `pulled`."""
    return f"""
; What a pull gives on arrays, as a list of loops; null, without an error, where that is not simple.
define internal ptr @pulled(ptr %kinds, ptr %steps, ptr %g, ptr %kept) {{
entry:
  %held = alloca [{HELD} x ptr]
  %operands = alloca [3 x ptr]
{word("count", "%steps", 0)}
{word("keeps", "%steps", 1)}
{word("constants", "%steps", 2)}
{word("array", "%kinds", KINDS["array"], "ptr")}
  %identity = icmp eq i64 %count, 0
  br i1 %identity, label %same, label %sized
same:
  call void @Py_IncRef(ptr %g)
  ret ptr %g
sized:
  %size = call i64 @PyTuple_Size(ptr %kept)
  %right = icmp eq i64 %size, %keeps
  br i1 %right, label %next, label %no
next:
  %k = phi i64 [ 0, %sized ], [ %k.next, %have ]
  %x = phi ptr [ %g, %sized ], [ %x.next, %have ]
{field("type", "%x", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %array
  br i1 %is.array, label %buffer, label %no
buffer:
{field("raw", "%x", at.array, "ptr")}
  %held.at = getelementptr ptr, ptr %held, i64 %k
  store ptr %raw, ptr %held.at
  %all = icmp eq i64 %k, %keeps
  br i1 %all, label %constant, label %have
have:
  %x.next = call ptr @PyTuple_GetItem(ptr %kept, i64 %k)
  %k.next = add i64 %k, 1
  br label %next

constant:
  %c = phi i64 [ 0, %buffer ], [ %c.next, %constant.put ]
  %c.done = icmp eq i64 %c, %constants
  br i1 %c.done, label %begin, label %constant.put
constant.put:
  %c.word = add i64 %c, 3
  %c.from = getelementptr ptr, ptr %steps, i64 %c.word
  %c.object = load ptr, ptr %c.from
  %c.place = add i64 %c, %keeps
  %c.after = add i64 %c.place, 1
  %c.to = getelementptr ptr, ptr %held, i64 %c.after
  store ptr %c.object, ptr %c.to
  %c.next = add i64 %c, 1
  br label %constant

begin:
  %first.place = add i64 %keeps, %constants
  %first = add i64 %first.place, 1
  %head = add i64 %constants, 3
  %first.step = getelementptr i64, ptr %steps, i64 %head
  br label %step
step:
  %s = phi i64 [ 0, %begin ], [ %s.next, %stepped ]
  %spec = phi ptr [ %first.step, %begin ], [ %spec.next, %stepped ]
  %n.at = getelementptr i64, ptr %spec, i64 5
  %n = load i64, ptr %n.at
  %which.at = getelementptr i64, ptr %spec, i64 6
  br label %operand
operand:
  %o = phi i64 [ 0, %step ], [ %o.next, %take ]
  %o.done = icmp eq i64 %o, %n
  br i1 %o.done, label %run, label %take
take:
  %o.at = getelementptr i64, ptr %which.at, i64 %o
  %which = load i64, ptr %o.at
  %from = getelementptr ptr, ptr %held, i64 %which
  %value = load ptr, ptr %from
  %to = getelementptr ptr, ptr %operands, i64 %o
  store ptr %value, ptr %to
  %o.next = add i64 %o, 1
  br label %operand
run:
  %made = call ptr @direct(ptr %kinds, ptr %spec, i64 %n, ptr %operands)
  %refused = icmp eq ptr %made, null
  br i1 %refused, label %drop, label %stepped
stepped:
  %place = add i64 %first, %s
  %made.at = getelementptr ptr, ptr %held, i64 %place
  store ptr %made, ptr %made.at
  %spec.next = getelementptr i64, ptr %spec, i64 {STEP}
  %s.next = add i64 %s, 1
  %last = icmp eq i64 %s.next, %count
  br i1 %last, label %drop, label %step

drop:
  %some = phi i64 [ %s, %run ], [ %s, %stepped ]
  %out = phi ptr [ null, %run ], [ %made, %stepped ]
  br label %dropping
dropping:
  %d = phi i64 [ 0, %drop ], [ %d.next, %dropped ]
  %d.done = icmp eq i64 %d, %some
  br i1 %d.done, label %answer, label %dropped
dropped:
  %d.place = add i64 %first, %d
  %d.at = getelementptr ptr, ptr %held, i64 %d.place
  %d.object = load ptr, ptr %d.at
  call void @Py_DecRef(ptr %d.object)
  %d.next = add i64 %d, 1
  br label %dropping
answer:
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %no, label %wrap
wrap:
{wrapped("result", "%out", at)}
  ret ptr %result
no:
  ret ptr null
}}
"""
