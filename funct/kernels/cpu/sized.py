"""Functions that have another way for large arrays of some dtypes, behind one builtin function: it
looks at the operands, and calls what they are for.

    add = chosen(np.add, of_large, least=4096, dtypes=[np.dtype(np.float16)])
    add(x, y)     # of_large(x, y) where x or y has that dtype and 4,096 elements, else np.add(x, y)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from funct.device import Code, assemble
from funct.kernels.cpu.calls import DATA, DTYPE, RANK, SHAPE, TYPE, builtin, field, word

__all__ = ["chosen"]

_NDARRAY, _PLAIN, _LARGE, _LEAST, _COUNT, _DTYPES = range(6)  # words of a table


def chosen(
    plain: Callable[..., Any], large: Callable[..., Any], least: int, dtypes: Iterable[Any]
) -> Callable[..., Any]:
    """plain, but large where an operand has one of the dtypes and at least so many elements."""
    kept = [*dtypes]
    words = [*map(id, (np.ndarray, plain, large)), least, len(kept), *map(id, kept)]
    name = "sized_" + getattr(plain, "__name__", "function")
    return builtin(name, _code().address("call"), np.asarray(words), (plain, large, kept))


@functools.cache
def _code() -> Code:
    return assemble(_TEXT).keep()


_TEXT = f"""
declare i64 @PyArray_MultiplyList(ptr, i32)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)

define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
{field("table", "%holder", DATA, "ptr")}
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("least", "%table", _LEAST)}
{word("kinds", "%table", _COUNT)}
  %first = getelementptr i64, ptr %table, i64 {_DTYPES}
  br label %operand

operand:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %go, label %look
look:
  %x.at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %x.at
{field("type", "%x", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array, label %next
array:
{field("dtype", "%x", DTYPE, "ptr")}
  br label %kind
kind:
  %i = phi i64 [ 0, %array ], [ %i.next, %compare ]
  %none = icmp eq i64 %i, %kinds
  br i1 %none, label %next, label %compare
compare:
  %at = getelementptr ptr, ptr %first, i64 %i
  %known = load ptr, ptr %at
  %same = icmp eq ptr %known, %dtype
  %i.next = add i64 %i, 1
  br i1 %same, label %measure, label %kind
measure:
{field("rank", "%x", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
  %n = call i64 @PyArray_MultiplyList(ptr %shape, i32 %rank)
  %few = icmp slt i64 %n, %least
  br i1 %few, label %next, label %go
next:
  %k.next = add i64 %k, 1
  br label %operand

go:
  %chosen = phi i64 [ {_PLAIN}, %operand ], [ {_LARGE}, %measure ]
  %function.at = getelementptr ptr, ptr %table, i64 %chosen
  %function = load ptr, ptr %function.at
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr null)
  ret ptr %result
}}
"""
