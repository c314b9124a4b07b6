"""Bins of free blocks as LLVM text, in the words of `front_record.py`.

Sizes are counted in granules and rounded to a class; a class has a bin, a stack of free blocks
chained through the table of units. The lock is held for a few instructions.
"""

from __future__ import annotations

from funct.device.memory.front_record import UNIT

__all__ = ["bins_text"]

_TEXT = """
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @sched_yield()

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
  %divisions = get divisions
  %less = sub i64 %size, 1
  %whole = lshr i64 %less, GRANULE
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
  %divisions = get divisions
  %zeros = call i64 @llvm.ctlz.i64(i64 %n, i1 true)
  %log = sub i64 63, %zeros
  %over = sub i64 %log, %divisions
  %shift = call i64 @llvm.smax.i64(i64 %over, i64 0)
  %octave = shl i64 %shift, %divisions
  %high = shl i64 %octave, 1
  %low = lshr i64 %n, %shift
  %index = add i64 %high, %low
  %bin = at bins, i64 %index
  ret ptr %bin
}

; Add to a statistic (now, most, added) or take from it (now, taken).
define internal void @count(ptr %stat, i64 %by) {
  %now = load i64, ptr %stat
  %new = add i64 %now, %by
  store i64 %new, ptr %stat
  %most_at = getelementptr i64, ptr %stat, i64 1
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

; A block of so many granules, of the small pool or the large one (which: 1), is handed out (sign 1)
; or comes back (sign -1).
define internal void @note(ptr %front, i64 %which, i64 %n, i64 %asked, i64 %sign) {
  %blocks = at stats, i64 %which, i64 0
  call void @count(ptr %blocks, i64 %sign)
  %size = shl i64 %n, GRANULE
  %block = add i64 %size, SPARE
  %signed = mul i64 %block, %sign
  %bytes = at stats, i64 %which, i64 1
  call void @count(ptr %bytes, i64 %signed)
  %asked_signed = mul i64 %asked, %sign
  %requested = at stats, i64 %which, i64 2
  call void @count(ptr %requested, i64 %asked_signed)
  ret void
}

; A block from its bin, or null.
define ptr @pop(ptr %front, i64 %asked) {
entry:
  %least = call i64 @rounded(ptr %front, i64 %asked)
  %bin = call ptr @bin(ptr %front, i64 %least)
  call void @lock(ptr %front)
  %first = load i32, ptr %bin
  %none = icmp eq i32 %first, 0
  br i1 %none, label %empty, label %look
empty:
  call void @unlock(ptr %front)
  ret ptr null
look:                                    ; it came here by other classes if they are just changed
  %wide = zext i32 %first to i64
  %unit = sub i64 %wide, 1
  %table = get table
  %place = getelementptr %entry, ptr %table, i64 %unit
  %n_at = of %place granules
  %held = load i32, ptr %n_at
  %bare = and i32 %held, COUNT
  %n = zext i32 %bare to i64
  %less = icmp ult i64 %n, %least
  br i1 %less, label %empty, label %take
take:
  %next = load i32, ptr %place
  store i32 %next, ptr %bin
  %asked_at = of %place asked
  store i64 %asked, ptr %asked_at
  %kept = and i32 %held, 2147483647
  store i32 %kept, ptr %n_at
  %which_narrow = lshr i32 %kept, LARGE_BIT
  %which = zext i32 %which_narrow to i64
  %cold = icmp slt i32 %held, 0
  %size = shl i64 %n, GRANULE
  %warm = select i1 %cold, i64 0, i64 %size
  %waiting_at = at waiting
  %waiting = load i64, ptr %waiting_at
  %fewer = sub i64 %waiting, %warm
  store i64 %fewer, ptr %waiting_at
  call void @note(ptr %front, i64 %which, i64 %n, i64 %asked, i64 1)
  call void @unlock(ptr %front)
  %base = get base
  %block = call ptr @address(ptr %base, i64 %unit)
  ret ptr %block
}

; Where the elements of a block begin. Blocks of equal size would lie at one place of a page and of
; a cache's ways, and push each other out in loops over several arrays: so each begins a few lines
; later than the last.
define internal ptr @address(ptr %base, i64 %unit) {
  %start = shl i64 %unit, UNIT
  %turned = mul i64 %unit, 320
  %colour = and i64 %turned, COLOURS
  %offset = add i64 %start, %colour
  %address = getelementptr i8, ptr %base, i64 %offset
  ret ptr %address
}

; The block that Python has made for a request is handed out. It stays of the pool that it is made
; for, whatever is said of sizes later.
define ptr @hand_out(ptr %front, i64 %unit, i64 %n, i64 %asked) {
  %table = get table
  %place = getelementptr %entry, ptr %table, i64 %unit
  %n_at = of %place granules
  %small = get small
  %large = icmp ugt i64 %n, %small
  %which = zext i1 %large to i64
  %bit = shl i64 %which, LARGE_BIT
  %marked = or i64 %n, %bit
  %narrow = trunc i64 %marked to i32
  store i32 %narrow, ptr %n_at
  %asked_at = of %place asked
  store i64 %asked, ptr %asked_at
  call void @lock(ptr %front)
  call void @note(ptr %front, i64 %which, i64 %n, i64 %asked, i64 1)
  call void @unlock(ptr %front)
  %base = get base
  %block = call ptr @address(ptr %base, i64 %unit)
  ret ptr %block
}

; Empty all bins into a room of units; how many there were.
define i64 @drain(ptr %front, ptr %room, i64 %length) {
entry:
  call void @lock(ptr %front)
  %table = get table
  %base_bin = at bins
  %waiting_at = at waiting
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
  %n_at = of %place granules
  %n = load i32, ptr %n_at
  %cold = icmp slt i32 %n, 0
  %bare = and i32 %n, COUNT
  %n_wide = zext i32 %bare to i64
  %size = shl i64 %n_wide, GRANULE
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
"""


def bins_text() -> str:
    """`lock`, `unlock`, `rounded`, `bin`, `note`, `pop`, `hand_out` and `drain`."""
    return _TEXT.replace("COLOURS", str(UNIT - 64)).replace("SPARE", str(UNIT))
