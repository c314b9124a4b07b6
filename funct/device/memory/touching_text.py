"""Threads that touch pages, as LLVM text: nothing of it waits for Python.

A job is a record: the pieces, start and end of each; how many of them have a huge page each, how
many are there to do and how many if huge pages are slow, how many are taken, whether they are slow,
what is wanted, the thread, and what huge pages have gained. While others work, small pages are
touched one by one: to ask for many at once takes a third less, but holds the lock of all addresses,
and who maps code waits for it up to 10 ms.

A huge page comes sooner than the small ones in its place, or much later: where a virtual machine
has not used the memory before, or the system must move others' pages. So each is timed, and once
they have taken longer than small ones would have, the rest are small.
"""

from __future__ import annotations

import mmap
import sys
import time

from funct.device.memory.huge_pages import HUGE

__all__ = ["DONE", "HUGE_PAGES", "HURRY", "touching_text"]

HURRY, DONE = 1, 2  # what is wanted: all that is left as soon as may be, or nothing more
_SLOW = 500_000  # nanoseconds: for less a system has hardly ever 512 small pages
HUGE_PAGES = 14  # of madvise: pages may be huge
_CLOCK = getattr(time, "CLOCK_THREAD_CPUTIME_ID", 0)  # who waits for a processor is not slow
_POPULATE_WRITE = 23 if sys.platform == "linux" else -1  # of madvise: pages at once

_TEXT = """
%job = type { ptr, i64, i64, i64, i64, i64, i64, i64, i64 }

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

; 0, or an error of the system's: then there is no thread.
define i32 @begin_touching(ptr %job) {
  %thread = getelementptr %job, ptr %job, i64 0, i32 7
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @touch, ptr %job)
  ret i32 %failed
}

; The thread has ended; all is touched, if that is wanted.
define void @end_touching(ptr %job, i64 %wanted) {
  %wanted_at = getelementptr %job, ptr %job, i64 0, i32 6
  store atomic i64 %wanted, ptr %wanted_at monotonic, align 8
  %mine = call ptr @touch(ptr %job)
  %thread_at = getelementptr %job, ptr %job, i64 0, i32 7
  %thread = load i64, ptr %thread_at
  %ended = call i32 @pthread_join(i64 %thread, ptr null)
  ret void
}

define internal i64 @now() {
  %time = alloca [2 x i64], align 8
  %failed = call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %rest_at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
}

define internal ptr @touch(ptr %job) {
entry:
  %pieces = load ptr, ptr %job
  %huge_at = getelementptr %job, ptr %job, i64 0, i32 1
  %huge = load i64, ptr %huge_at
  %sure_at = getelementptr %job, ptr %job, i64 0, i32 2
  %sure = load i64, ptr %sure_at
  %all_at = getelementptr %job, ptr %job, i64 0, i32 3
  %all = load i64, ptr %all_at
  %taken_at = getelementptr %job, ptr %job, i64 0, i32 4
  %slow_at = getelementptr %job, ptr %job, i64 0, i32 5
  %wanted_at = getelementptr %job, ptr %job, i64 0, i32 6
  %gain_at = getelementptr %job, ptr %job, i64 0, i32 8
  br label %next
next:
  %k = atomicrmw add ptr %taken_at, i64 1 monotonic
  %slow_wide = load atomic i64, ptr %slow_at monotonic, align 8
  %slow = icmp ne i64 %slow_wide, 0
  %count = select i1 %slow, i64 %all, i64 %sure
  %some = icmp ult i64 %k, %count
  %wanted = load atomic i64, ptr %wanted_at monotonic, align 8
  %done = icmp eq i64 %wanted, DONE
  %not_done = xor i1 %done, true
  %on = and i1 %some, %not_done
  br i1 %on, label %piece, label %end
piece:
  %start_at = getelementptr [2 x i64], ptr %pieces, i64 %k
  %start = load i64, ptr %start_at
  %stop_at = getelementptr i64, ptr %start_at, i64 1
  %stop = load i64, ptr %stop_at
  %is_huge = icmp ult i64 %k, %huge
  %hurry = icmp eq i64 %wanted, HURRY
  br i1 %is_huge, label %one, label %several
one:
  br i1 %slow, label %next, label %advise
advise:
  %low = and i64 %start, -HUGE
  %low_place = inttoptr i64 %low to ptr
  %asked = call i32 @madvise(ptr %low_place, i64 HUGE, i32 ADVISED)
  %begin = call i64 @now()
  br label %pages
several:
  br i1 %hurry, label %at_once, label %pages
at_once:
  %first = and i64 %start, -PAGE
  %place = inttoptr i64 %first to ptr
  %bytes = sub i64 %stop, %first
  %refused = call i32 @madvise(ptr %place, i64 %bytes, i32 POPULATE_WRITE)
  %is_refused = icmp ne i32 %refused, 0
  br i1 %is_refused, label %pages, label %next
pages:
  %a = phi i64 [ %start, %several ], [ %start, %at_once ], [ %start, %advise ], [ %a_next, %pages ]
  %b = phi i64 [ 0, %several ], [ 0, %at_once ], [ %begin, %advise ], [ %b, %pages ]
  %byte = inttoptr i64 %a to ptr
  store volatile i8 0, ptr %byte
  %a_next = add i64 %a, PAGE
  %more = icmp ult i64 %a_next, %stop
  br i1 %more, label %pages, label %touched
touched:
  br i1 %is_huge, label %timed, label %next
timed:
  %end_ = call i64 @now()
  %took = sub i64 %end_, %b
  %gained = sub i64 SLOW, %took
  %before = atomicrmw add ptr %gain_at, i64 %gained monotonic
  %gain = add i64 %before, %gained
  %loss = icmp slt i64 %gain, 0
  br i1 %loss, label %give_up, label %next
give_up:
  store atomic i64 1, ptr %slow_at monotonic, align 8
  br label %next
end:
  ret ptr null
}
"""


def touching_text() -> str:
    """The functions `begin_touching` and `end_touching`."""
    text = _TEXT.replace("POPULATE_WRITE", str(_POPULATE_WRITE))
    for name, number in (
        ("PAGE", mmap.PAGESIZE), ("HURRY", HURRY), ("DONE", DONE), ("HUGE", HUGE),
        ("ADVISED", HUGE_PAGES), ("SLOW", _SLOW), ("CLOCK", _CLOCK),
    ):  # fmt: skip
        text = text.replace(name, str(number))
    return text
