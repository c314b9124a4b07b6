"""Ufuncs whose values at the edges NumPy gives otherwise than the standard, called where nothing is
at an edge: a builtin function looks at the few elements of the operands, and calls the ufunc.

    tanh = Guarded(np.tanh, plain, looked=[np.dtype("c16")], taken=[np.dtype("f8")])
    tanh.call(x)     # np.tanh(x) for real x, and for few finite complex numbers; else plain(x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

import numpy as np

from funct.kernels.cpu.calls import (
    DATA,
    DENSE,
    DTYPE,
    FLAGS,
    RANK,
    SHAPE,
    TYPE,
    builtin,
    code_of,
    field,
    word,
)
from funct.kernels.cpu.often import Often
from funct.kernels.cpu.passages import sought

__all__ = ["BESIDE_POLES", "Guarded"]

_FEW = 256  # elements; where there are more, their own way costs little beside them
# Words of a table; then, for each dtype: what it is, the bytes of a part of an element (0 where
# nothing is looked at), and how many parts there are
_NDARRAY, _FLOAT, _INT, _UFUNC, _PLAIN, _LOW, _HIGH, _COUNT, _DTYPES = range(9)


# What tells that a part %v is %within the ufunc's
_APART = """  %a = call double @llvm.fabs.f64(double %v)
  %above = fcmp oge double %a, %low
  %below = fcmp olt double %a, %high
  %within = and i1 %above, %below"""
BESIDE_POLES = """  %whole = call double @llvm.roundeven.f64(double %v)
  %apart = fsub double %v, %whole
  %left = fcmp olt double %v, 0.0
  %above = fcmp ogt double %apart, 0.0
  %below = fcmp olt double %apart, %high
  %near = and i1 %above, %below
  %beside = and i1 %near, %left
  %within = xor i1 %beside, true"""


class Guarded:
    """A ufunc for few elements whose every part is in [low, high), signs apart, or in (-high, high)
    for a low of 0; and for Python's real numbers.

    ufunc: or what gives it, when it is needed. looked: dtypes of which that is asked. taken: dtypes
    that the ufunc is right for at once. within: BESIDE_POLES asks that no part is less than high
    above a whole number below 0. most: how many elements are few. call: the ufunc for such
    operands; plain for all others, and until it has been called often.
    """

    __slots__ = ("_given", "call")

    call: Callable[..., Any]

    def __init__(
        self,
        ufunc: Any,
        plain: Callable[..., Any],
        looked: Iterable[np.dtype[Any]],
        taken: Iterable[np.dtype[Any]],
        low: float = 0.0,
        high: float = inf,
        *,
        within: str = _APART,
        most: int = _FEW,
    ) -> None:
        kinds = [(d, 0, 0) for d in taken]
        for d in looked:
            parts = 2 if d.kind == "c" else 1
            kinds.append((d, d.itemsize // parts, parts))
        self._given = ufunc, plain, kinds, low, high, within, most
        self.call = Often(self.load).counted(plain)

    def load(self) -> None:
        """Let the builtin answer."""
        ufunc, plain, kinds, low, high, within, most = self._given
        ufunc = ufunc if isinstance(ufunc, np.ufunc) else ufunc()
        if ufunc is None:
            return
        head = np.asarray([*map(id, (np.ndarray, float, int, ufunc, plain)), 0, 0, len(kinds)])
        head[_LOW:_COUNT].view(np.float64)[:] = low, high
        rest = [(id(d), size, parts) for d, size, parts in kinds]
        table = np.concatenate((head, np.ravel(rest)))
        code = code_of(_text(within, most))
        self.call = builtin("few_" + ufunc.__name__, code.address("call"), table, (self, ufunc))


def _text(test: str, most: int) -> str:
    return f"""
declare double @llvm.fabs.f64(double)
declare double @llvm.roundeven.f64(double)

define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
{field("table", "%holder", DATA, "ptr")}
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("float", "%table", _FLOAT, "ptr")}
{word("int", "%table", _INT, "ptr")}
{word("low", "%table", _LOW, "double")}
{word("high", "%table", _HIGH, "double")}
{word("kinds", "%table", _COUNT)}
  %first = getelementptr i64, ptr %table, i64 {_DTYPES}
  br label %operand

operand:
  %k = phi i64 [ 0, %entry ], [ %k.next, %good ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %take, label %ask
ask:
  %x.at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %x.at
{field("type", "%x", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array, label %number
number:
  %is.int = icmp eq ptr %type, %int
  br i1 %is.int, label %good, label %real
real:
  %is.float = icmp eq ptr %type, %float
  %value.at = getelementptr i8, ptr %x, i64 {TYPE + 8}
  br i1 %is.float, label %parts, label %leave

array:
{field("dtype", "%x", DTYPE, "ptr")}
  br label %kind
{sought("%first", 3, "array", "found", "leave")}
{field("size", "%at", 8)}
{field("each", "%at", 16)}
  %right = icmp eq i64 %size, 0
  br i1 %right, label %good, label %laid
laid:
{field("flags", "%x", FLAGS, "i32")}
{field("elements", "%x", DATA, "ptr")}
{field("rank", "%x", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  br i1 %dense, label %measured, label %leave
measured:
  %length = call i64 @PyArray_MultiplyList(ptr %shape, i32 %rank)
  %n = mul i64 %length, %each
  %few = icmp ule i64 %n, {most}
  br i1 %few, label %parts, label %leave

parts:
  %p.first = phi ptr [ %value.at, %real ], [ %elements, %measured ]
  %p.count = phi i64 [ 1, %real ], [ %n, %measured ]
  %p.size = phi i64 [ 8, %real ], [ %size, %measured ]
  %is.double = icmp eq i64 %p.size, 8
  br label %part
part:
  %p = phi i64 [ 0, %parts ], [ %p.next, %inside ]
  %p.end = icmp eq i64 %p, %p.count
  br i1 %p.end, label %good, label %read
read:
  %p.offset = mul i64 %p, %p.size
  %p.at = getelementptr i8, ptr %p.first, i64 %p.offset
  br i1 %is.double, label %double, label %single
double:
  %wide = load double, ptr %p.at
  br label %weigh
single:
  %narrow = load float, ptr %p.at
  %widened = fpext float %narrow to double
  br label %weigh
weigh:
  %v = phi double [ %wide, %double ], [ %widened, %single ]
{test}
  br i1 %within, label %inside, label %leave
inside:
  %p.next = add i64 %p, 1
  br label %part

good:
  %k.next = add i64 %k, 1
  br label %operand

take:
{word("ufunc", "%table", _UFUNC, "ptr")}
  %result = call ptr @PyObject_Vectorcall(ptr %ufunc, ptr %args, i64 %count, ptr null)
  ret ptr %result
leave:
{word("plain", "%table", _PLAIN, "ptr")}
  %told = call ptr @PyObject_Vectorcall(ptr %plain, ptr %args, i64 %count, ptr null)
  ret ptr %told
}}
"""
