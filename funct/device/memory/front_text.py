"""The front of the allocator as LLVM text: what NumPy calls for each array (NEP 49).

`front.py` has the same record as a ctypes structure. Small requests go to NumPy's own functions.
Others are counted in granules and rounded to a class; a class has a bin, a stack of free blocks
chained through the table of units. A request that finds its bin empty asks `miss`, which is
Python and knows how to make room; giving a block back never calls Python, so it is safe wherever an
array may die. The lock is held for a few instructions.
"""

from __future__ import annotations

import mmap
import time

__all__ = ["BINS", "GRANULE", "UNIT", "front_text"]

GRANULE = 1 << 16  # bytes, in which sizes are counted
UNIT = max(1 << 13, mmap.PAGESIZE)  # bytes, in which places are counted: a block has one to spare
BINS = 4096

_TEXT = """
%stat = type { i64, i64, i64, i64 }                ; now, most, added, taken
%front = type {
  i64,                                             ;  0 the lock
  i64,                                             ;  1 whether each event is recorded
  ptr, i64,                                        ;  2 the reserved range; its bytes
  ptr,                                             ;  4 an entry for each unit
  i64, i64,                                        ;  5 least bytes; most that are zeroed here
  i64,                                             ;  7 classes in an octave, as a power of two
  i64,                                             ;  8 most granules of a small block
  i64, i64,                                        ;  9 bytes that may wait in bins; that do
  ptr,                                             ; 11 miss
  ptr, ptr, ptr, ptr, ptr,                         ; 12 NumPy's own: context, malloc ...
  ptr, i64, i64,                                   ; 17 record of frees: room, count, length
  [2 x [3 x %stat]],                               ; 20 small and large: blocks, bytes, requested
  [BINS x i32]                                     ; 21 first unit of each bin, + 1
}
%entry = type { i32, i32, i64 }  ; next in its bin, + 1; granules, negative: cold; asked

declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @sched_yield()
declare i32 @madvise(ptr, i64, i32)
declare i32 @clock_gettime(i32, ptr)

define void @lock(ptr %front) {
entry:
  br label %try
try:
  %was = cmpxchg ptr %front, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %was, 1
  br i1 %mine, label %end, label %wait
wait:
  %y = call i32 @sched_yield()
  br label %try
end:
  ret void
}

define void @unlock(ptr %front) {
  store atomic i64 0, ptr %front release, align 8
  ret void
}

; Bytes in granules, rounded to a class.
define i64 @rounded(ptr %front, i64 %size) {
  %divisions_at = getelementptr %front, ptr %front, i64 0, i32 7
  %divisions = load i64, ptr %divisions_at
  %less = sub i64 %size, 1
  %whole = lshr i64 %less, 16
  %n = add i64 %whole, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %n, i1 true)
  %log = sub i64 63, %zeros
  %over = sub i64 %log, %divisions
  %shift = call i64 @llvm.smax.i64(i64 %over, i64 0)
  %step = shl i64 1, %shift
  %mask = sub i64 %step, 1
  %up = add i64 %n, %mask
  %down = lshr i64 %up, %shift
  %rounded = shl i64 %down, %shift
  ret i64 %rounded
}

; The bin of blocks of so many granules.
define internal ptr @bin(ptr %front, i64 %n) {
  %divisions_at = getelementptr %front, ptr %front, i64 0, i32 7
  %divisions = load i64, ptr %divisions_at
  %zeros = call i64 @llvm.ctlz.i64(i64 %n, i1 true)
  %log = sub i64 63, %zeros
  %over = sub i64 %log, %divisions
  %shift = call i64 @llvm.smax.i64(i64 %over, i64 0)
  %octave = shl i64 %shift, %divisions
  %high = shl i64 %octave, 1
  %low = lshr i64 %n, %shift
  %index = add i64 %high, %low
  %bin = getelementptr %front, ptr %front, i64 0, i32 21, i64 %index
  ret ptr %bin
}

; Add to a statistic (now, most, added) or take from it (now, taken).
define internal void @count(ptr %stat, i64 %by) {
  %now = load i64, ptr %stat
  %new = add i64 %now, %by
  store i64 %new, ptr %stat
  %most_at = getelementptr %stat, ptr %stat, i64 0, i32 1
  %most = load i64, ptr %most_at
  %larger = call i64 @llvm.smax.i64(i64 %most, i64 %new)
  store i64 %larger, ptr %most_at
  %gives = icmp sgt i64 %by, 0
  %side = select i1 %gives, i32 2, i32 3
  %side_at = getelementptr i64, ptr %stat, i32 %side
  %before = load i64, ptr %side_at
  %negative = sub i64 0, %by
  %amount = call i64 @llvm.smax.i64(i64 %by, i64 %negative)
  %after = add i64 %before, %amount
  store i64 %after, ptr %side_at
  ret void
}

; A block of so many granules is handed out (sign 1) or comes back (sign -1).
define internal void @note(ptr %front, i64 %n, i64 %asked, i64 %sign) {
  %small_at = getelementptr %front, ptr %front, i64 0, i32 8
  %small = load i64, ptr %small_at
  %large = icmp ugt i64 %n, %small
  %which = zext i1 %large to i64
  %blocks = getelementptr %front, ptr %front, i64 0, i32 20, i64 %which, i64 0
  call void @count(ptr %blocks, i64 %sign)
  %size = shl i64 %n, 16
  %signed = mul i64 %size, %sign
  %bytes = getelementptr %front, ptr %front, i64 0, i32 20, i64 %which, i64 1
  call void @count(ptr %bytes, i64 %signed)
  %asked_signed = mul i64 %asked, %sign
  %requested = getelementptr %front, ptr %front, i64 0, i32 20, i64 %which, i64 2
  call void @count(ptr %requested, i64 %asked_signed)
  ret void
}

; A block from its bin, or null.
define ptr @pop(ptr %front, i64 %asked) {
entry:
  %n = call i64 @rounded(ptr %front, i64 %asked)
  %bin = call ptr @bin(ptr %front, i64 %n)
  call void @lock(ptr %front)
  %first = load i32, ptr %bin
  %none = icmp eq i32 %first, 0
  br i1 %none, label %empty, label %take
empty:
  call void @unlock(ptr %front)
  ret ptr null
take:
  %wide = zext i32 %first to i64
  %unit = sub i64 %wide, 1
  %table_at = getelementptr %front, ptr %front, i64 0, i32 4
  %table = load ptr, ptr %table_at
  %place = getelementptr %entry, ptr %table, i64 %unit
  %next = load i32, ptr %place
  store i32 %next, ptr %bin
  %asked_at = getelementptr %entry, ptr %place, i64 0, i32 2
  store i64 %asked, ptr %asked_at
  %n_at = getelementptr %entry, ptr %place, i64 0, i32 1
  %held = load i32, ptr %n_at
  %narrow = trunc i64 %n to i32
  store i32 %narrow, ptr %n_at
  %cold = icmp slt i32 %held, 0
  %size = shl i64 %n, 16
  %warm = select i1 %cold, i64 0, i64 %size
  %waiting_at = getelementptr %front, ptr %front, i64 0, i32 10
  %waiting = load i64, ptr %waiting_at
  %fewer = sub i64 %waiting, %warm
  store i64 %fewer, ptr %waiting_at
  call void @note(ptr %front, i64 %n, i64 %asked, i64 1)
  call void @unlock(ptr %front)
  %base_at = getelementptr %front, ptr %front, i64 0, i32 2
  %base = load ptr, ptr %base_at
  %block = call ptr @address(ptr %base, i64 %unit)
  ret ptr %block
}

; Where the elements of a block begin. Blocks of equal size would lie at one place of a page and of
; a cache's ways, and push each other out in loops over several arrays: so each begins a few lines
; later than the last.
define internal ptr @address(ptr %base, i64 %unit) {
  %start = shl i64 %unit, SHIFT
  %turned = mul i64 %unit, 320
  %colour = and i64 %turned, COLOURS
  %offset = add i64 %start, %colour
  %address = getelementptr i8, ptr %base, i64 %offset
  ret ptr %address
}

; The block that Python has made for a request is handed out.
define ptr @hand_out(ptr %front, i64 %unit, i64 %n, i64 %asked) {
  %table_at = getelementptr %front, ptr %front, i64 0, i32 4
  %table = load ptr, ptr %table_at
  %place = getelementptr %entry, ptr %table, i64 %unit
  %n_at = getelementptr %entry, ptr %place, i64 0, i32 1
  %narrow = trunc i64 %n to i32
  store i32 %narrow, ptr %n_at
  %asked_at = getelementptr %entry, ptr %place, i64 0, i32 2
  store i64 %asked, ptr %asked_at
  call void @lock(ptr %front)
  call void @note(ptr %front, i64 %n, i64 %asked, i64 1)
  call void @unlock(ptr %front)
  %base_at = getelementptr %front, ptr %front, i64 0, i32 2
  %base = load ptr, ptr %base_at
  %block = call ptr @address(ptr %base, i64 %unit)
  ret ptr %block
}

; Empty all bins into a room of units; how many there were.
define i64 @drain(ptr %front, ptr %room, i64 %length) {
entry:
  call void @lock(ptr %front)
  %table_at = getelementptr %front, ptr %front, i64 0, i32 4
  %table = load ptr, ptr %table_at
  %base_bin = getelementptr %front, ptr %front, i64 0, i32 21
  %waiting_at = getelementptr %front, ptr %front, i64 0, i32 10
  br label %bins
bins:
  %k = phi i64 [ 0, %entry ], [ %following, %after ]
  %count = phi i64 [ 0, %entry ], [ %counted, %after ]
  %bin = getelementptr i32, ptr %base_bin, i64 %k
  br label %chain
chain:
  %counted = phi i64 [ %count, %bins ], [ %more, %block ]
  %first = load i32, ptr %bin
  %some = icmp ne i32 %first, 0
  %fits = icmp slt i64 %counted, %length
  %go = and i1 %some, %fits
  br i1 %go, label %block, label %after
block:
  %wide = zext i32 %first to i64
  %unit = sub i64 %wide, 1
  %place = getelementptr %entry, ptr %table, i64 %unit
  %next = load i32, ptr %place
  store i32 %next, ptr %bin
  %n_at = getelementptr %entry, ptr %place, i64 0, i32 1
  %n = load i32, ptr %n_at
  %cold = icmp slt i32 %n, 0
  %n_wide = zext i32 %n to i64
  %size = shl i64 %n_wide, 16
  %warm = select i1 %cold, i64 0, i64 %size
  %waiting = load i64, ptr %waiting_at
  %fewer = sub i64 %waiting, %warm
  store i64 %fewer, ptr %waiting_at
  store i32 0, ptr %n_at
  %at = getelementptr i64, ptr %room, i64 %counted
  store i64 %unit, ptr %at
  %more = add i64 %counted, 1
  br label %chain
after:
  %following = add i64 %k, 1
  %last = icmp eq i64 %following, BINS
  br i1 %last, label %end, label %bins
end:
  call void @unlock(ptr %front)
  ret i64 %counted
}

; What `miss` is after Python has ended.
define ptr @theirs(ptr %front, i64 %size) {
  %context_at = getelementptr %front, ptr %front, i64 0, i32 12
  %context = load ptr, ptr %context_at
  %malloc_at = getelementptr %front, ptr %front, i64 0, i32 13
  %malloc = load ptr, ptr %malloc_at
  %a = call ptr %malloc(ptr %context, i64 %size)
  ret ptr %a
}

define ptr @malloc_(ptr %front, i64 %size) {
entry:
  %least_at = getelementptr %front, ptr %front, i64 0, i32 5
  %least = load i64, ptr %least_at
  %small = icmp ult i64 %size, %least
  br i1 %small, label %theirs, label %ours
theirs:
  %context_at = getelementptr %front, ptr %front, i64 0, i32 12
  %context = load ptr, ptr %context_at
  %malloc_at = getelementptr %front, ptr %front, i64 0, i32 13
  %malloc = load ptr, ptr %malloc_at
  %a = tail call ptr %malloc(ptr %context, i64 %size)
  ret ptr %a
ours:
  %recorded_at = getelementptr %front, ptr %front, i64 0, i32 1
  %recorded = load i64, ptr %recorded_at
  %extent_at = getelementptr %front, ptr %front, i64 0, i32 3
  %extent = load i64, ptr %extent_at
  %huge = icmp ugt i64 %size, %extent
  %huge_wide = zext i1 %huge to i64
  %slow = or i64 %recorded, %huge_wide
  %direct = icmp eq i64 %slow, 0
  br i1 %direct, label %try, label %ask
try:
  %found = call ptr @pop(ptr %front, i64 %size)
  %hit = icmp ne ptr %found, null
  br i1 %hit, label %end, label %ask
ask:
  %miss_at = getelementptr %front, ptr %front, i64 0, i32 11
  %miss = load ptr, ptr %miss_at
  %made = call ptr %miss(ptr %front, i64 %size)
  ret ptr %made
end:
  ret ptr %found
}

define ptr @calloc_(ptr %front, i64 %count, i64 %each) {
entry:
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %each)
  %size = extractvalue { i64, i1 } %product, 0
  %over = extractvalue { i64, i1 } %product, 1
  %least_at = getelementptr %front, ptr %front, i64 0, i32 5
  %least = load i64, ptr %least_at
  %most_at = getelementptr %front, ptr %front, i64 0, i32 6
  %most = load i64, ptr %most_at
  %small = icmp ult i64 %size, %least
  %large = icmp ugt i64 %size, %most
  %outside = or i1 %small, %large
  %not_ours = or i1 %outside, %over
  br i1 %not_ours, label %theirs, label %ours
theirs:
  %context_at = getelementptr %front, ptr %front, i64 0, i32 12
  %context = load ptr, ptr %context_at
  %calloc_at = getelementptr %front, ptr %front, i64 0, i32 14
  %calloc = load ptr, ptr %calloc_at
  %a = tail call ptr %calloc(ptr %context, i64 %count, i64 %each)
  ret ptr %a
ours:
  %made = call ptr @malloc_(ptr %front, i64 %size)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %end, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %made, i8 0, i64 %size, i1 false)
  br label %end
end:
  ret ptr %made
}

define ptr @realloc_(ptr %front, ptr %block, i64 %size) {
entry:
  %base_at = getelementptr %front, ptr %front, i64 0, i32 2
  %base = load ptr, ptr %base_at
  %extent_at = getelementptr %front, ptr %front, i64 0, i32 3
  %extent = load i64, ptr %extent_at
  %b = ptrtoint ptr %block to i64
  %base_wide = ptrtoint ptr %base to i64
  %offset = sub i64 %b, %base_wide
  %ours = icmp ult i64 %offset, %extent
  br i1 %ours, label %move, label %theirs
theirs:
  %context_at = getelementptr %front, ptr %front, i64 0, i32 12
  %context = load ptr, ptr %context_at
  %realloc_at = getelementptr %front, ptr %front, i64 0, i32 15
  %realloc = load ptr, ptr %realloc_at
  %a = tail call ptr %realloc(ptr %context, ptr %block, i64 %size)
  ret ptr %a
move:
  %unit = lshr i64 %offset, SHIFT
  %table_at = getelementptr %front, ptr %front, i64 0, i32 4
  %table = load ptr, ptr %table_at
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
  %base_at = getelementptr %front, ptr %front, i64 0, i32 2
  %base = load ptr, ptr %base_at
  %extent_at = getelementptr %front, ptr %front, i64 0, i32 3
  %extent = load i64, ptr %extent_at
  %b = ptrtoint ptr %block to i64
  %base_wide = ptrtoint ptr %base to i64
  %offset = sub i64 %b, %base_wide
  %ours = icmp ult i64 %offset, %extent
  br i1 %ours, label %back, label %theirs
theirs:
  %context_at = getelementptr %front, ptr %front, i64 0, i32 12
  %context = load ptr, ptr %context_at
  %free_at = getelementptr %front, ptr %front, i64 0, i32 16
  %free = load ptr, ptr %free_at
  tail call void %free(ptr %context, ptr %block, i64 %size)
  ret void
back:
  %unit = lshr i64 %offset, SHIFT
  %table_at = getelementptr %front, ptr %front, i64 0, i32 4
  %table = load ptr, ptr %table_at
  %place = getelementptr %entry, ptr %table, i64 %unit
  %n_at = getelementptr %entry, ptr %place, i64 0, i32 1
  %n_narrow = load i32, ptr %n_at
  %n = zext i32 %n_narrow to i64
  %asked_at = getelementptr %entry, ptr %place, i64 0, i32 2
  %asked = load i64, ptr %asked_at
  %bytes = shl i64 %n, 16
  %waiting_at = getelementptr %front, ptr %front, i64 0, i32 10
  %may_at = getelementptr %front, ptr %front, i64 0, i32 9
  %bin = call ptr @bin(ptr %front, i64 %n)
  %seen = load i64, ptr %waiting_at
  %would = add i64 %seen, %bytes
  %may = load i64, ptr %may_at
  %much = icmp ugt i64 %would, %may
  br i1 %much, label %cool, label %push
cool:                                              ; its pages go back to the system, not its place
  %begin = shl i64 %unit, SHIFT
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
  call void @note(ptr %front, i64 %n, i64 %asked, i64 -1)
  %recorded_at = getelementptr %front, ptr %front, i64 0, i32 1
  %recorded = load i64, ptr %recorded_at
  %silent = icmp eq i64 %recorded, 0
  br i1 %silent, label %end, label %record
record:
  %count_at = getelementptr %front, ptr %front, i64 0, i32 18
  %count = load i64, ptr %count_at
  %length_at = getelementptr %front, ptr %front, i64 0, i32 19
  %length = load i64, ptr %length_at
  %counted = add i64 %count, 1
  store i64 %counted, ptr %count_at
  %fits = icmp slt i64 %count, %length
  br i1 %fits, label %write, label %end
write:
  %room_at = getelementptr %front, ptr %front, i64 0, i32 17
  %room = load ptr, ptr %room_at
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
    text = _TEXT.replace("BINS", str(BINS)).replace("CLOCK", str(time.CLOCK_MONOTONIC))
    return text.replace("SHIFT", str(UNIT.bit_length() - 1)).replace("COLOURS", str(UNIT - 64))
