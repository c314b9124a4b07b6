"""BLAS has one thread while anybody wants it so: they are counted, all in one place.

Blocks of Python, machine code that calls BLAS, and the pool's jobs begin and end in any order, on
any threads. The first one sets each library to one thread, and the last one sets it back to what it
had then or to what was asked for meanwhile. If each kept for itself what to set back, a job's end
would give threads to a block that has not ended.

`Blocks` counts those of Python while there is nothing else; once there is a pool, its text counts
all (`Counted`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["LIBRARIES", "ONE_THREAD_TEXT", "Blocks", "Count", "Counted"]

LIBRARIES = 8  # of BLAS, at most

ONE_THREAD_TEXT = f"""
@blas_count = global i64 0, align 128
@blas_get = global [{LIBRARIES} x ptr] zeroinitializer, align 8
@blas_set = global [{LIBRARIES} x ptr] zeroinitializer, align 8
@blas_had = internal global [{LIBRARIES} x i32] zeroinitializer, align 8  ; 0: nothing to set back
@blas_held = internal global i64 0, align 128  ; how many want one thread; -1 while somebody is here

; How many want one thread; nobody else is here until that or another number is stored.
define internal i64 @blas_enter() {{
entry:
  br label %look
look:
  %held = load atomic i64, ptr @blas_held monotonic, align 8
  %free = icmp sge i64 %held, 0
  br i1 %free, label %try, label %again
try:
  %was = cmpxchg ptr @blas_held, i64 %held, i64 -1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %was, 1
  br i1 %mine, label %end, label %again
again:
  PAUSE
  br label %look
end:
  ret i64 %held
}}

; Linear algebra is computed on the thread that calls it from here to `funct_blas_again`.
define void @funct_blas_alone() {{
entry:
  %held = call i64 @blas_enter()
  %first = icmp eq i64 %held, 0
  %libraries = load i64, ptr @blas_count
  %count = select i1 %first, i64 %libraries, i64 0
  br label %more
more:
  %k = phi i64 [ 0, %entry ], [ %next, %on ]
  %some = icmp slt i64 %k, %count
  br i1 %some, label %one, label %end
one:
  %get_at = getelementptr ptr, ptr @blas_get, i64 %k
  %get = load ptr, ptr %get_at
  %had = call i32 %get()
  %had_at = getelementptr i32, ptr @blas_had, i64 %k
  store i32 %had, ptr %had_at
  %several = icmp sgt i32 %had, 1
  br i1 %several, label %set, label %on
set:
  call void @blas_set_to(i64 %k, i32 1)
  br label %on
on:
  %next = add i64 %k, 1
  br label %more
end:
  %now = add i64 %held, 1
  store atomic i64 %now, ptr @blas_held release, align 8
  ret void
}}

define void @funct_blas_again() {{
entry:
  %held = call i64 @blas_enter()
  %last = icmp sle i64 %held, 1
  br i1 %last, label %back, label %end
back:
  call void @blas_back()
  br label %end
end:
  %fewer = sub i64 %held, 1
  %now = select i1 %last, i64 0, i64 %fewer
  store atomic i64 %now, ptr @blas_held release, align 8
  ret void
}}

; What the library of this number has, or will have as soon as nobody wants one thread.
define i32 @blas_wanted(i64 %k) {{
entry:
  %held = call i64 @blas_enter()
  %had_at = getelementptr i32, ptr @blas_had, i64 %k
  %had = load i32, ptr %had_at
  %kept = icmp ne i32 %had, 0
  br i1 %kept, label %end, label %ask
ask:
  %get_at = getelementptr ptr, ptr @blas_get, i64 %k
  %get = load ptr, ptr %get_at
  %now = call i32 %get()
  br label %end
end:
  %wanted = phi i32 [ %had, %entry ], [ %now, %ask ]
  store atomic i64 %held, ptr @blas_held release, align 8
  ret i32 %wanted
}}

define void @blas_want(i64 %k, i32 %threads) {{
entry:
  %held = call i64 @blas_enter()
  %nobody = icmp eq i64 %held, 0
  br i1 %nobody, label %now, label %later
now:
  call void @blas_set_to(i64 %k, i32 %threads)
  br label %end
later:
  %had_at = getelementptr i32, ptr @blas_had, i64 %k
  store i32 %threads, ptr %had_at
  br label %end
end:
  store atomic i64 %held, ptr @blas_held release, align 8
  ret void
}}

define internal void @blas_set_to(i64 %k, i32 %threads) {{
  %set_at = getelementptr ptr, ptr @blas_set, i64 %k
  %set = load ptr, ptr %set_at
  call void %set(i32 %threads)
  ret void
}}

define internal void @blas_back() {{
entry:
  %count = load i64, ptr @blas_count
  br label %more
more:
  %k = phi i64 [ 0, %entry ], [ %next, %on ]
  %some = icmp slt i64 %k, %count
  br i1 %some, label %one, label %end
one:
  %had_at = getelementptr i32, ptr @blas_had, i64 %k
  %had = load i32, ptr %had_at
  store i32 0, ptr %had_at
  %several = icmp sgt i32 %had, 1
  br i1 %several, label %set, label %on
set:
  call void @blas_set_to(i64 %k, i32 %had)
  br label %on
on:
  %next = add i64 %k, 1
  br label %more
end:
  ret void
}}

; Nobody wants one thread: as a forked child begins, whose parent's other threads are not there.
define internal void @blas_reset() {{
  call void @blas_back()
  store i64 0, ptr @blas_held
  ret void
}}
"""


class Count(Protocol):
    """Who wants BLAS on one thread, and what each library, by its number, has otherwise."""

    def begin(self) -> None:
        """One more wants it."""

    def end(self) -> None:
        """One less."""

    def wanted(self, k: int) -> int:
        """Threads of library k while nobody wants one."""

    def want(self, k: int, threads: int) -> None:
        """From now on so many, or from when nobody wants one."""


class Blocks:
    """Those of Python, as long as there is no pool; whoever calls has the lock."""

    def __init__(self, libraries: Callable[[], list[Any]]) -> None:
        self._libraries = libraries
        self.within = 0
        self.had: dict[int, int] = {}  # by the number of a library

    def begin(self) -> None:
        """One more."""
        if not self.within:
            for k, library in enumerate(self._libraries()):
                self.had[k] = library.get_num_threads()
                if self.had[k] > 1:
                    library.set_num_threads(1)
        self.within += 1

    def end(self) -> None:
        """One less."""
        self.within -= 1
        if not self.within:
            self.reset()

    def reset(self) -> None:
        """Nobody wants one thread: as a forked child begins."""
        self.within = 0
        if self.had:
            for k, library in enumerate(self._libraries()):
                if self.had.get(k, 1) > 1:
                    library.set_num_threads(self.had[k])
            self.had.clear()

    def wanted(self, k: int) -> int:
        """Threads of library k otherwise."""
        found: int = self.had.get(k) or self._libraries()[k].get_num_threads()
        return found

    def want(self, k: int, threads: int) -> None:
        """Let library k have so many otherwise."""
        if self.within:
            self.had[k] = threads
        else:
            self._libraries()[k].set_num_threads(threads)


class Counted:
    """All of them, by the pool's text at these addresses."""

    def __init__(self, address: Callable[[str], int], blocks: Blocks) -> None:
        number, index = ctypes.c_int, ctypes.c_int64
        self._address = address
        self._begin = ctypes.CFUNCTYPE(None)(address("funct_blas_alone"))
        self._end = ctypes.CFUNCTYPE(None)(address("funct_blas_again"))
        self._wanted = ctypes.CFUNCTYPE(number, index)(address("blas_wanted"))
        self._want = ctypes.CFUNCTYPE(None, index, number)(address("blas_want"))
        self._blocks = blocks

    def tell(self, entries: list[tuple[int, int]]) -> None:
        """Of each library, the addresses of `int get()` and `void set(int)`."""
        for k, both in enumerate(entries):
            for name, at in zip(("blas_get", "blas_set"), both, strict=True):
                ctypes.c_void_p.from_address(self._address(name) + 8 * k).value = at
        ctypes.c_int64.from_address(self._address("blas_count")).value = len(entries)

    def take_over(self) -> None:
        """From blocks that have begun; they end here."""
        for _ in range(self._blocks.within):
            self.begin()
        for k, threads in self._blocks.had.items():
            self.want(k, threads)

    def begin(self) -> None:
        """One more."""
        self._begin()

    def end(self) -> None:
        """One less."""
        self._end()

    def wanted(self, k: int) -> int:
        """Threads of library k otherwise."""
        found: int = self._wanted(k)
        return found

    def want(self, k: int, threads: int) -> None:
        """Let library k have so many otherwise."""
        self._want(k, threads)
