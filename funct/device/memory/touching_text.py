"""Threads that touch pages, as LLVM text: nothing of it waits for Python.

A job is a record: the pieces, start and end of each, how many there are, how many are taken, what
is wanted, and the thread. While others work, pages are touched one by one: to ask for many at once
takes a third less, but holds the lock of all addresses, and who maps code waits for it up to 10 ms.
"""

from __future__ import annotations

import mmap
import sys

__all__ = ["DONE", "HURRY", "touching_text"]

HURRY, DONE = 1, 2  # what is wanted: all that is left as soon as may be, or nothing more
_POPULATE_WRITE = 23 if sys.platform == "linux" else -1  # of madvise: pages at once

_TEXT = """
%job = type { ptr, i64, i64, i64, i64 }

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

; 0, or an error of the system's: then there is no thread.
define i32 @begin_touching(ptr %job) {
  %thread = getelementptr %job, ptr %job, i64 0, i32 4
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @touch, ptr %job)
  ret i32 %failed
}

; The thread has ended; all is touched, if that is wanted.
define void @end_touching(ptr %job, i64 %wanted) {
  %wanted_at = getelementptr %job, ptr %job, i64 0, i32 3
  store atomic i64 %wanted, ptr %wanted_at monotonic, align 8
  %mine = call ptr @touch(ptr %job)
  %thread_at = getelementptr %job, ptr %job, i64 0, i32 4
  %thread = load i64, ptr %thread_at
  %ended = call i32 @pthread_join(i64 %thread, ptr null)
  ret void
}

define internal ptr @touch(ptr %job) {
entry:
  %pieces = load ptr, ptr %job
  %count_at = getelementptr %job, ptr %job, i64 0, i32 1
  %count = load i64, ptr %count_at
  %taken_at = getelementptr %job, ptr %job, i64 0, i32 2
  %wanted_at = getelementptr %job, ptr %job, i64 0, i32 3
  br label %next
next:
  %k = atomicrmw add ptr %taken_at, i64 1 monotonic
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
  %hurry = icmp eq i64 %wanted, HURRY
  br i1 %hurry, label %at_once, label %pages
at_once:
  %first = and i64 %start, -PAGE
  %place = inttoptr i64 %first to ptr
  %bytes = sub i64 %stop, %first
  %refused = call i32 @madvise(ptr %place, i64 %bytes, i32 POPULATE_WRITE)
  %is_refused = icmp ne i32 %refused, 0
  br i1 %is_refused, label %pages, label %next
pages:
  %a = phi i64 [ %start, %piece ], [ %start, %at_once ], [ %a_next, %pages ]
  %byte = inttoptr i64 %a to ptr
  store volatile i8 0, ptr %byte
  %a_next = add i64 %a, PAGE
  %more = icmp ult i64 %a_next, %stop
  br i1 %more, label %pages, label %next
end:
  ret ptr null
}
"""


def touching_text() -> str:
    """The functions `begin_touching` and `end_touching`."""
    text = _TEXT.replace("POPULATE_WRITE", str(_POPULATE_WRITE))
    for name, number in (("PAGE", mmap.PAGESIZE), ("HURRY", HURRY), ("DONE", DONE)):
        text = text.replace(name, str(number))
    return text
