"""Objects that builtins find again by some words, which say what was asked: text for their code.

A table has places behind its first words: an object, how many words it is kept for, and those. One
place is for all words that are mixed to its number, and the last object stays there.
"""

from __future__ import annotations

__all__ = ["PLACES", "text"]

PLACES = 256  # a power of two
_WORDS = 2  # where they begin in a place


def text(first: int, length: int) -> str:
    """Text of `@recalled(table, words, count)`, which gives what is kept or null, and
    `@remember(table, words, count, object)`, whose reference is the table's then.

    first: the words before the places. length: those of a place, two more than are ever asked by.
    """
    return f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; The place for so many words.
define internal ptr @place(ptr %table, ptr %words, i64 %count) {{
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
  %number = and i64 %mixed, {PLACES - 1}
  %first = getelementptr i64, ptr %table, i64 {first}
  %words.before = mul i64 %number, {length}
  %place = getelementptr i64, ptr %first, i64 %words.before
  ret ptr %place
}}

define internal ptr @recalled(ptr %table, ptr %words, i64 %count) {{
entry:
  %place = call ptr @place(ptr %table, ptr %words, i64 %count)
  %object = load ptr, ptr %place
  %length.at = getelementptr i64, ptr %place, i64 1
  %length = load i64, ptr %length.at
  %as.long = icmp eq i64 %length, %count
  br i1 %as.long, label %compare, label %no
compare:
  %kept = getelementptr i64, ptr %place, i64 {_WORDS}
  %bytes = shl i64 %count, 3
  %differ = call i32 @memcmp(ptr %kept, ptr %words, i64 %bytes)
  %same = icmp eq i32 %differ, 0
  br i1 %same, label %yes, label %no
yes:
  ret ptr %object
no:
  ret ptr null
}}

define internal void @remember(ptr %table, ptr %words, i64 %count, ptr %object) {{
entry:
  call void @Py_IncRef(ptr %object)
  %place = call ptr @place(ptr %table, ptr %words, i64 %count)
  %old = load ptr, ptr %place
  store ptr %object, ptr %place
  %length.at = getelementptr i64, ptr %place, i64 1
  store i64 %count, ptr %length.at
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
