"""The front of the allocator as LLVM text: what NumPy calls for each array (NEP 49).

Small requests go to NumPy's own functions. Others take a block from their bin (`bins_text.py`). A
request that finds its bin empty asks `miss`: that calls Python, which knows how to make room, by
CPython's own functions, so that what is raised anywhere in there is known; giving a
block back never calls Python, so it is safe wherever an array may die.
"""

from __future__ import annotations

import mmap
import re
import sys
import time

from funct.device.memory.bins_text import bins_text
from funct.device.memory.front_record import expanded
from funct.device.memory.touching_text import HUGE_PAGES, touching_text

__all__ = ["front_text"]

_DISCARD = 4 if sys.platform == "linux" else -1  # of madvise: there pages are zeros afterwards

_WHOSE = """  ; whether the block is one of ours
  %base = get base
  %extent = get extent
  %b = ptrtoint ptr %block to i64
  %base_wide = ptrtoint ptr %base to i64
  %offset = sub i64 %b, %base_wide
  %ours = icmp ult i64 %offset, %extent
"""

_TEXT = """
declare i64 @llvm.umin.i64(i64, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @madvise(ptr, i64, i32)
declare i32 @clock_gettime(i32, ptr)
declare i32 @Py_AddPendingCall(ptr, ptr)
declare void @PyErr_SetObject(ptr, ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare i32 @PyException_SetTraceback(ptr, ptr)
declare void @Py_DecRef(ptr)

; What `miss` is after Python has ended.
define void @theirs(ptr %front, i64 %size, ptr %answer) {
  %context = get context
  %malloc = get malloc
  %a = call ptr %malloc(ptr %context, i64 %size)
  store ptr %a, ptr %answer
  ret void
}

; What `miss` is before.
define void @ask(ptr %front, i64 %size, ptr %found) {
entry:
  %type = alloca ptr
  %error = alloca ptr
  %trace = alloca ptr
  %gil = call i32 @PyGILState_Ensure()
  %answer = get answer
  %asked = call ptr @PyLong_FromUnsignedLongLong(i64 %size)
  %unasked = icmp eq ptr %asked, null
  br i1 %unasked, label %failed, label %call
call:
  %made = call ptr @PyObject_CallOneArg(ptr %answer, ptr %asked)
  call void @Py_DecRef(ptr %asked)
  %unmade = icmp eq ptr %made, null
  br i1 %unmade, label %failed, label %met
met:
  %place = call i64 @PyLong_AsLongLong(ptr %made)
  store i64 %place, ptr %found
  call void @Py_DecRef(ptr %made)
  br label %end
failed:
  call void @PyErr_Fetch(ptr %type, ptr %error, ptr %trace)
  call void @PyErr_NormalizeException(ptr %type, ptr %error, ptr %trace)
  %e = load ptr, ptr %error
  %raised_at = at raised
  store ptr %e, ptr %raised_at
  %t = load ptr, ptr %trace
  %untraced = icmp eq ptr %t, null
  br i1 %untraced, label %end, label %traced
traced:
  %s = call i32 @PyException_SetTraceback(ptr %e, ptr %t)
  call void @Py_DecRef(ptr %t)
  br label %end
end:
  call void @PyGILState_Release(i32 %gil)
  ret void
}

; Python's main thread runs this once NumPy has its block: nothing can be raised through NumPy.
define internal i32 @raise(ptr %error) {
  %type_at = getelementptr ptr, ptr %error, i64 1
  %type = load ptr, ptr %type_at
  call void @PyErr_SetObject(ptr %type, ptr %error)
  call void @Py_DecRef(ptr %error)
  ret i32 -1
}

define ptr @malloc_(ptr %front, i64 %size) {
entry:
  %answer = alloca i64
  %least = get least
  %small = icmp ult i64 %size, %least
  br i1 %small, label %theirs, label %ours
theirs:
  %context = get context
  %malloc = get malloc
  %a = tail call ptr %malloc(ptr %context, i64 %size)
  ret ptr %a
ours:
  %recorded = get recorded
  %extent = get extent
  %huge = icmp ugt i64 %size, %extent
  %huge_wide = zext i1 %huge to i64
  %due = get due
  %handed_at = at stats, i64 1, i64 1, i64 2
  %handed = load i64, ptr %handed_at
  %is_due = icmp sge i64 %handed, %due
  %due_wide = zext i1 %is_due to i64
  %slow = or i64 %recorded, %huge_wide
  %slower = or i64 %slow, %due_wide
  %direct = icmp eq i64 %slower, 0
  br i1 %direct, label %try, label %ask
try:
  %found = call ptr @pop(ptr %front, i64 %size)
  %hit = icmp ne ptr %found, null
  br i1 %hit, label %end, label %ask
ask:
  %miss = get miss
  store i64 -1, ptr %answer            ; so it stays where Python raises
  call void %miss(ptr %front, i64 %size, ptr %answer)
  %made_wide = load i64, ptr %answer
  %made = inttoptr i64 %made_wide to ptr
  %raised_at = at raised
  %raised = atomicrmw xchg ptr %raised_at, i64 0 acquire
  %error = inttoptr i64 %raised to ptr
  %quiet = icmp eq i64 %raised, 0
  br i1 %quiet, label %asked, label %tell
tell:
  %t = call i32 @Py_AddPendingCall(ptr @raise, ptr %error)
  br label %asked
asked:
  %unanswered = icmp eq i64 %made_wide, -1
  br i1 %unanswered, label %theirs, label %answered
answered:
  ret ptr %made
end:
  ret ptr %found
}

define ptr @calloc_(ptr %front, i64 %count, i64 %each) {
entry:
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %each)
  %size = extractvalue { i64, i1 } %product, 0
  %over = extractvalue { i64, i1 } %product, 1
  %least = get least
  %small = icmp ult i64 %size, %least
  %outside = or i1 %small, %over
  br i1 %outside, label %theirs, label %mine
theirs:
  %context = get context
  %calloc = get calloc
  %a = tail call ptr %calloc(ptr %context, i64 %count, i64 %each)
  ret ptr %a
mine:
  %block = call ptr @malloc_(ptr %front, i64 %size)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %end, label %made
made:
  %most = get zero_most
  %few = icmp ule i64 %size, %most
  br i1 %few, label %clear, label %many
many:
WHOSE
  br i1 %ours, label %discard, label %clear
discard:                          ; whole pages are the system's zeros, each when it is touched
  %stop = add i64 %b, %size
  %above = add i64 %b, LAST
  %first = and i64 %above, -PAGE
  %last = and i64 %stop, -PAGE
  %pages = inttoptr i64 %first to ptr
  %bytes = sub i64 %last, %first
  %refused = call i32 @madvise(ptr %pages, i64 %bytes, i32 DISCARD)
  %is_refused = icmp ne i32 %refused, 0
  br i1 %is_refused, label %clear, label %ends
ends:
  %huge_or_not = call i32 @madvise(ptr %pages, i64 %bytes, i32 HUGE)
  %head = sub i64 %first, %b
  call void @llvm.memset.p0.i64(ptr %block, i8 0, i64 %head, i1 false)
  %behind = inttoptr i64 %last to ptr
  %tail = sub i64 %stop, %last
  call void @llvm.memset.p0.i64(ptr %behind, i8 0, i64 %tail, i1 false)
  br label %end
clear:
  call void @llvm.memset.p0.i64(ptr %block, i8 0, i64 %size, i1 false)
  br label %end
end:
  ret ptr %block
}

define ptr @realloc_(ptr %front, ptr %block, i64 %size) {
entry:
WHOSE
  br i1 %ours, label %move, label %theirs
theirs:
  %context = get context
  %realloc = get realloc
  %a = tail call ptr %realloc(ptr %context, ptr %block, i64 %size)
  ret ptr %a
move:
  %unit = lshr i64 %offset, UNIT
  %table = get table
  %asked_at = getelementptr %entry, ptr %table, i64 %unit, i32 2
  %asked = load i64, ptr %asked_at
  %kept = call i64 @llvm.umin.i64(i64 %asked, i64 %size)
  %made = call ptr @malloc_(ptr %front, i64 %size)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %end, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %made, ptr %block, i64 %kept, i1 false)
  call void @free_(ptr %front, ptr %block, i64 %asked)
  br label %end
end:
  ret ptr %made
}

define void @free_(ptr %front, ptr %block, i64 %size) {
entry:
WHOSE
  br i1 %ours, label %back, label %theirs
theirs:
  %context = get context
  %free = get free
  tail call void %free(ptr %context, ptr %block, i64 %size)
  ret void
back:
  %unit = lshr i64 %offset, UNIT
  %table = get table
  %place = getelementptr %entry, ptr %table, i64 %unit
  %n_at = of %place granules
  %n_narrow = load i32, ptr %n_at
  %bare = and i32 %n_narrow, COUNT
  %n = zext i32 %bare to i64
  %which_narrow = lshr i32 %n_narrow, LARGE_BIT
  %which = zext i32 %which_narrow to i64
  %asked_at = of %place asked
  %asked = load i64, ptr %asked_at
  %bytes = shl i64 %n, GRANULE
  %waiting_at = at waiting
  %may_at = at keep
  %bin = call ptr @bin(ptr %front, i64 %n)
  %seen = load i64, ptr %waiting_at
  %would = add i64 %seen, %bytes
  %may = load i64, ptr %may_at
  %much = icmp ugt i64 %would, %may
  br i1 %much, label %cool, label %push
cool:                                              ; its pages go back to the system, not its place
  %begin = shl i64 %unit, UNIT
  %first_page = getelementptr i8, ptr %base, i64 %begin
  %c = call i32 @madvise(ptr %first_page, i64 %bytes, i32 4)
  br label %push
push:
  call void @lock(ptr %front)
  %first = load i32, ptr %bin
  store i32 %first, ptr %place
  %number = add i64 %unit, 1
  %narrow = trunc i64 %number to i32
  store i32 %narrow, ptr %bin
  %waiting = load i64, ptr %waiting_at
  %warm = select i1 %much, i64 0, i64 %bytes
  %more = add i64 %waiting, %warm
  store i64 %more, ptr %waiting_at
  %cold = or i32 %n_narrow, -2147483648
  %held = select i1 %much, i32 %cold, i32 %n_narrow
  store i32 %held, ptr %n_at
  call void @note(ptr %front, i64 %which, i64 %n, i64 %asked, i64 -1)
  %recorded = get recorded
  %silent = icmp eq i64 %recorded, 0
  br i1 %silent, label %end, label %record
record:
  %count_at = at count
  %count = load i64, ptr %count_at
  %length = get length
  %counted = add i64 %count, 1
  store i64 %counted, ptr %count_at
  %fits = icmp slt i64 %count, %length
  br i1 %fits, label %write, label %end
write:
  %room = get room
  %event = getelementptr [4 x i64], ptr %room, i64 %count
  store i64 %unit, ptr %event
  %n_to = getelementptr i64, ptr %event, i64 1
  store i64 %bytes, ptr %n_to
  %time = getelementptr i64, ptr %event, i64 2
  %t = call i32 @clock_gettime(i32 CLOCK, ptr %time)
  br label %end
end:
  call void @unlock(ptr %front)
  ret void
}
"""


def front_text() -> str:
    """The functions `malloc_`, `calloc_`, `realloc_`, `free_`, and those that Python calls."""
    text = _TEXT.replace("WHOSE\n", _WHOSE)
    numbers = {
        "CLOCK": time.CLOCK_MONOTONIC, "DISCARD": _DISCARD, "HUGE": HUGE_PAGES,
        "LAST": mmap.PAGESIZE - 1, "PAGE": mmap.PAGESIZE,
    }  # fmt: skip
    for name, number in numbers.items():
        text = re.sub(rf"\b{name}\b", str(number), text)
    return expanded(bins_text() + text) + touching_text()
