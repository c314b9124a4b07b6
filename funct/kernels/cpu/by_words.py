"""Objects that builtins find again by some words, which say what was asked: text for their code.

A table has places behind its first words: an object, how many words it is kept for and what they
are mixed to, and those. What words are mixed to says which few places may hold their object; the
last one takes the first of them, and what stood in the last of them is forgotten. Were it one
place, of some dozen calls that come by turns two would share it and never be found.
"""

from __future__ import annotations

__all__ = ["NEAR", "PLACES", "text"]

PLACES = 256  # a power of two
NEAR = 4  # places that may hold an object: a power of two
_WORDS = 2  # where the words begin in a place
_LENGTH = 8  # bits of how many words there are


def text(first: int, length: int) -> str:
    """Text of `@recalled(table, words, count)`, which gives what is kept or null, and
    `@remember(table, words, count, object)`, whose reference is the table's then.

    first: the words before the places. length: those of a place, two more than are ever asked by.
    """
    return f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

; What so many words are mixed to, and their number in its last bits.
define internal i64 @mixed(ptr %words, i64 %count) {{
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %h = phi i64 [ 0, %entry ], [ %mixed, %next ]
  %at = getelementptr i64, ptr %words, i64 %k
  %w = load i64, ptr %at
  %met = xor i64 %h, %w
  %times = mul i64 %met, {0x9E3779B97F4A7C15 - (1 << 64)}
  %high = lshr i64 %times, 29
  %mixed = xor i64 %times, %high
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %count
  br i1 %more, label %next, label %found
found:
  %upper = shl i64 %mixed, {_LENGTH}
  %tag = or i64 %upper, %count
  ret i64 %tag
}}

; The first of the places for what words are mixed to.
define internal ptr @place(ptr %table, i64 %tag) {{
entry:
  %bits = lshr i64 %tag, {_LENGTH}
  %number = and i64 %bits, {PLACES // NEAR - 1}
  %first = getelementptr i64, ptr %table, i64 {first}
  %words.before = mul i64 %number, {NEAR * length}
  %place = getelementptr i64, ptr %first, i64 %words.before
  ret ptr %place
}}

define internal ptr @recalled(ptr %table, ptr %words, i64 %count) {{
entry:
  %tag = call i64 @mixed(ptr %words, i64 %count)
  %first = call ptr @place(ptr %table, i64 %tag)
  %behind = getelementptr i64, ptr %first, i64 {NEAR * length}
  br label %look
look:
  %place = phi ptr [ %first, %entry ], [ %place.next, %next ]
  %tag.at = getelementptr i64, ptr %place, i64 1
  %its = load i64, ptr %tag.at
  %alike = icmp eq i64 %its, %tag
  br i1 %alike, label %compare, label %next
compare:
  %kept = getelementptr i64, ptr %place, i64 {_WORDS}
  %bytes = shl i64 %count, 3
  %differ = call i32 @memcmp(ptr %kept, ptr %words, i64 %bytes)
  %same = icmp eq i32 %differ, 0
  br i1 %same, label %yes, label %next
yes:
  %object = load ptr, ptr %place
  ret ptr %object
next:
  %place.next = getelementptr i64, ptr %place, i64 {length}
  %more = icmp ne ptr %place.next, %behind
  br i1 %more, label %look, label %no
no:
  ret ptr null
}}

define internal void @remember(ptr %table, ptr %words, i64 %count, ptr %object) {{
entry:
  call void @Py_IncRef(ptr %object)
  %tag = call i64 @mixed(ptr %words, i64 %count)
  %place = call ptr @place(ptr %table, i64 %tag)
  %second = getelementptr i64, ptr %place, i64 {length}
  %last = getelementptr i64, ptr %place, i64 {(NEAR - 1) * length}
  %old = load ptr, ptr %last
  %moved = mul i64 {8 * length}, {NEAR - 1}
  call void @llvm.memmove.p0.p0.i64(ptr %second, ptr %place, i64 %moved, i1 false)
  store ptr %object, ptr %place
  %tag.at = getelementptr i64, ptr %place, i64 1
  store i64 %tag, ptr %tag.at
  %kept = getelementptr i64, ptr %place, i64 {_WORDS}
  %bytes = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %kept, ptr %words, i64 %bytes, i1 false)
  %had = icmp ne ptr %old, null
  br i1 %had, label %drop, label %done
drop:
  call void @Py_DecRef(ptr %old)
  br label %done
done:
  ret void
}}
"""
