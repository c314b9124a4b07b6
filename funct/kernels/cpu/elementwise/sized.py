"""Functions that have another way for large arrays of some dtypes, behind one builtin function: it
looks at the operands, and calls what they are for.

    add = chosen(np.add, of_large, least=4096, dtypes=[np.dtype(np.float16)], unlike=of_unlike)
    add(x, y)     # of_large(x, y) where x or y has that dtype and 4,096 elements; of_unlike(x, y)
                  # where both are arrays, of two shapes, and of many elements; else np.add(x, y),
                  # or `beside`, if one is given, where one of them is an array of many elements
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from funct.kernels.cpu.calls import (
    DATA,
    DTYPE,
    RANK,
    SHAPE,
    TYPE,
    builtin,
    code_of,
    field,
    word,
)
from funct.kernels.cpu.passages import sought
from funct.kernels.elementwise.thresholds import FAR

__all__ = ["chosen"]

# Words of a table
(
    _NDARRAY, _PLAIN, _LARGE, _UNLIKE, _BESIDE, _SOME, _LEAST, _LEAST_OF_SOME, _SOONER, _COUNT,
    _DTYPES,
) = range(11)  # fmt: skip


def chosen(
    plain: Callable[..., Any], large: Callable[..., Any], least: int, dtypes: Iterable[Any],
    unlike: Callable[..., Any] | None = None, beside: Callable[..., Any] | None = None,
    some: Callable[..., Any] | None = None, sooner: Iterable[Any] = (), least_of_some: int = 0,
) -> Callable[..., Any]:  # fmt: skip
    """plain, but large where an operand has one of the dtypes and at least so many elements, and
    unlike where two arrays have different shapes and a result may have many elements, and beside
    where an array of many elements meets what is none. some: what is called in place of large
    for operands of the dtypes `sooner`, from `least_of_some` elements on and up to many.
    """
    first = [*sooner]
    kept = [*first, *[d for d in dtypes if d not in first]]
    functions = map(id, (np.ndarray, plain, large, unlike or plain, beside or plain, some or large))
    words = [*functions, least, least_of_some, len(first), len(kept), *map(id, kept)]
    name = "sized_" + getattr(plain, "__name__", "function")
    held = (plain, large, kept, unlike, beside, some)
    return builtin(name, code_of(_TEXT).address("call"), np.asarray(words), held)


_TEXT = f"""
define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
{field("table", "%holder", DATA, "ptr")}
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("least.of.most", "%table", _LEAST)}
{word("least.of.some", "%table", _LEAST_OF_SOME)}
{word("sooner", "%table", _SOONER)}
{word("kinds", "%table", _COUNT)}
  %first = getelementptr i64, ptr %table, i64 {_DTYPES}
  br label %operand

operand:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %pair, label %look
look:
  %x.at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %x.at
{field("type", "%x", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array, label %next
array:
{field("dtype", "%x", DTYPE, "ptr")}
  br label %kind
{sought("%first", 1, "array", "measure", "next")}
{field("rank", "%x", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
  %n = call i64 @PyArray_MultiplyList(ptr %shape, i32 %rank)
  %soon = icmp slt i64 %i, %sooner
  %least = select i1 %soon, i64 %least.of.some, i64 %least.of.most
  %few = icmp slt i64 %n, %least
  %not.many = icmp slt i64 %n, {FAR}
  %is.some = and i1 %soon, %not.many
  %large.way = select i1 %is.some, i64 {_SOME}, i64 {_LARGE}
  br i1 %few, label %next, label %go
next:
  %k.next = add i64 %k, 1
  br label %operand

pair:
  %two = icmp eq i64 %count, 2
  br i1 %two, label %first.one, label %go
first.one:
  %a = load ptr, ptr %args
{field("a.type", "%a", TYPE, "ptr")}
  %a.array = icmp eq ptr %a.type, %ndarray
  %b.at = getelementptr ptr, ptr %args, i64 1
  %b = load ptr, ptr %b.at
{field("b.type", "%b", TYPE, "ptr")}
  %b.array = icmp eq ptr %b.type, %ndarray
  br i1 %a.array, label %second.one, label %other.one
second.one:
  br i1 %b.array, label %ranks, label %alone
other.one:
  br i1 %b.array, label %alone, label %go
alone:
  %one = phi ptr [ %a, %second.one ], [ %b, %other.one ]
{field("one.rank", "%one", RANK, "i32")}
{field("one.shape", "%one", SHAPE, "ptr")}
  %one.size = call i64 @PyArray_MultiplyList(ptr %one.shape, i32 %one.rank)
  %one.many = icmp sge i64 %one.size, {FAR}
  %one.way = select i1 %one.many, i64 {_BESIDE}, i64 {_PLAIN}
  br label %go
ranks:
{field("a.rank", "%a", RANK, "i32")}
{field("b.rank", "%b", RANK, "i32")}
{field("a.shape", "%a", SHAPE, "ptr")}
{field("b.shape", "%b", SHAPE, "ptr")}
  %rank.same = icmp eq i32 %a.rank, %b.rank
  br i1 %rank.same, label %axis, label %sizes
axis:
  %d = phi i32 [ 0, %ranks ], [ %d.next, %lengths ]
  %alike = icmp sge i32 %d, %a.rank
  br i1 %alike, label %go, label %lengths
lengths:
  %a.n.at = getelementptr i64, ptr %a.shape, i32 %d
  %b.n.at = getelementptr i64, ptr %b.shape, i32 %d
  %a.n = load i64, ptr %a.n.at
  %b.n = load i64, ptr %b.n.at
  %d.next = add i32 %d, 1
  %n.same = icmp eq i64 %a.n, %b.n
  br i1 %n.same, label %axis, label %sizes
sizes:
  %longer = icmp sgt i32 %a.rank, %b.rank
  %result.rank = select i1 %longer, i32 %a.rank, i32 %b.rank
  br label %meet
meet:
  %e = phi i32 [ 1, %sizes ], [ %e.next, %met ]
  %met.size = phi i64 [ 1, %sizes ], [ %met.next, %met ]
  %walked = icmp sgt i32 %e, %result.rank
  br i1 %walked, label %told, label %a.side
a.side:
  %a.axis = sub i32 %a.rank, %e
  %a.absent = icmp slt i32 %a.axis, 0
  br i1 %a.absent, label %b.side, label %a.length
a.length:
  %a.here = getelementptr i64, ptr %a.shape, i32 %a.axis
  %a.read = load i64, ptr %a.here
  br label %b.side
b.side:
  %a.met = phi i64 [ 1, %a.side ], [ %a.read, %a.length ]
  %b.axis = sub i32 %b.rank, %e
  %b.absent = icmp slt i32 %b.axis, 0
  br i1 %b.absent, label %met, label %b.length
b.length:
  %b.here = getelementptr i64, ptr %b.shape, i32 %b.axis
  %b.read = load i64, ptr %b.here
  br label %met
met:
  %b.met = phi i64 [ 1, %b.side ], [ %b.read, %b.length ]
  %a.larger = icmp sgt i64 %a.met, %b.met
  %both.met = select i1 %a.larger, i64 %a.met, i64 %b.met
  %met.next = mul i64 %met.size, %both.met
  %e.next = add i32 %e, 1
  br label %meet
told:
  %many = icmp sge i64 %met.size, {FAR}
  %way = select i1 %many, i64 {_UNLIKE}, i64 {_PLAIN}
  br label %go

go:
  %chosen = phi i64 [ {_PLAIN}, %pair ], [ {_PLAIN}, %other.one ], [ %one.way, %alone ],
                    [ {_PLAIN}, %axis ], [ %way, %told ], [ %large.way, %measure ]
  %function.at = getelementptr ptr, ptr %table, i64 %chosen
  %function = load ptr, ptr %function.at
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr null)
  ret ptr %result
}}
"""
