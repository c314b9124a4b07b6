"""Builtins that run jobs: the addresses of arrays, and the words behind them.

    run = runner(code.address("reduce"))     # void reduce(ptr job)
    run(x, y, rest)     # the words &x[0] and &y[0], and those of `rest`, which is bytes

A job that is prepared but for some of its words is copied, and these are put into it:

    run = filling(code.address("convolve"), job, places)
    run(x, y, 7)     # job[places] = &x[0], &y[0], 7

A small result is made in the same call:

    multiply = making(code.address("multiply"), (3, 4), np.dtype(np.float32), [3, 4, 5], 20)
    z = multiply(x, y)     # the job: &x[0], &y[0], &z[0], 3, 4, 5

ctypes takes longer to be told where two arrays are than they take that have a thousand elements.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device.memory import LARGE
from funct.kernels.cpu import scratch
from funct.kernels.cpu.calls import (
    DATA,
    RANK,
    SHAPE,
    TYPE,
    builtin,
    code_of,
    field,
    readable,
    word,
)
from funct.kernels.cpu.outside import warning_flags
from funct.kernels.cpu.passages import flags_asked, flags_cleared, unlocked
from funct.kernels.cpu.record import address

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["filling", "making", "runner"]

_WORDS = 64  # of the longest job
_LONG = 1 << 13  # elements from which on other Python threads may run meanwhile
_LENGTH = object.__basicsize__  # where bytes have how many they are,
_BYTES = bytes.__basicsize__ - 1  # and where they begin


@functools.cache
def runner(code: int) -> Callable[..., None]:
    """A function of one to three arrays and bytes, for the function at an address, which stays
    there. The arrays lie in memory as the job says: only their addresses are read.
    """
    if not readable():
        return functools.partial(_run, ctypes.CFUNCTYPE(None, ctypes.c_char_p)(code))
    return builtin("run", code_of(_TEXT).address("call"), np.asarray([code, id(None)]))


def _run(function: Any, *given: Any) -> None:
    *arrays, rest = given
    function(struct.pack(f"{len(arrays)}q", *map(address, arrays)) + rest)


def making(
    code: int, shape: tuple[int, ...], dtype: np.dtype[Any], words: Sequence[int], size: int,
    *, turned: bool = False, warned: Callable[[Any, Any], Any] | None = None,
) -> Callable[[Any, Any], Any]:  # fmt: skip
    """The function of two arrays that makes such a result, by the function at an address, which
    stays there. size: elements of the largest one. turned: whether the second one comes first in
    the job. warned: what is called instead where NumPy might warn of what was computed, if the
    result is a small one and the processor tells.
    """
    if math.prod(shape) * dtype.itemsize < LARGE and readable():
        flags = warning_flags() or 0
        head = [code, id(np.ndarray), id(dtype), size >= _LONG, turned, len(shape), len(words)]
        head += [0, 0] if warned is None else [flags, id(warned)]
        table = np.asarray([*head, *shape, *words], np.int64)
        return builtin("make", code_of(_MAKING).address("call"), table, (dtype, warned))
    run, make = runner(code), scratch.maker(shape, dtype)
    rest = struct.pack(f"{len(words)}q", *words)

    def multiply(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        run(*((y, x) if turned else (x, y)), out := make(), rest)
        return out

    return multiply


def filling(code: int, job: NDArray[np.int64], places: Sequence[int]) -> Callable[..., None]:
    """A function of as many arrays, or whole numbers, as there are places: for the function at an
    address, which stays there, as do the tables that the job points to.
    """
    if not readable():
        function = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code)
        return functools.partial(_fill, function, job, np.asarray(places, np.intp))
    head = [code, id(None), id(int), len(job), len(places)]
    table = np.asarray([*head, *places, *job.tolist()], np.int64)
    return builtin("fill", code_of(_FILLING).address("call"), table)


def _fill(function: Any, job: NDArray[np.int64], places: NDArray[np.intp], *given: Any) -> None:
    own = job.copy()
    own[places] = [x if type(x) is int else address(x) for x in given]
    function(address(own))


_FILLING = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
{field("table", "%holder", DATA, "ptr")}
{word("code", "%table", 0, "ptr")}
{word("none", "%table", 1, "ptr")}
{word("int", "%table", 2, "ptr")}
{word("words", "%table", 3)}
{word("missing", "%table", 4)}
  %places = getelementptr i64, ptr %table, i64 5
  %from = getelementptr i64, ptr %places, i64 %missing
  %job = alloca i64, i64 %words, align 16
  %bytes = shl i64 %words, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %job, ptr %from, i64 %bytes, i1 false)
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %all = icmp eq i64 %k, %missing
  br i1 %all, label %run, label %look
look:
  %at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %at
{field("type", "%x", TYPE, "ptr")}
  %whole = icmp eq ptr %type, %int
  br i1 %whole, label %number, label %array
number:
  %value = call i64 @PyLong_AsLongLong(ptr %x)
  br label %put
array:
{field("data", "%x", DATA)}
  br label %put
put:
  %filled = phi i64 [ %value, %number ], [ %data, %array ]
  %place.at = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %place.at
  %to = getelementptr i64, ptr %job, i64 %place
  store i64 %filled, ptr %to
  %k.next = add i64 %k, 1
  br label %next
run:
  %state = call ptr @PyEval_SaveThread()
  call void %code(ptr %job)
  call void @PyEval_RestoreThread(ptr %state)
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
"""


_MAKING = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
  %job = alloca [{_WORDS} x i64], align 16
{field("table", "%holder", DATA, "ptr")}
{word("code", "%table", 0, "ptr")}
{word("ndarray", "%table", 1, "ptr")}
{word("dtype", "%table", 2, "ptr")}
{word("long", "%table", 3)}
{word("turned", "%table", 4)}
{word("axes", "%table", 5)}
{word("words", "%table", 6)}
{word("flags.wide", "%table", 7)}
  %flags = trunc i64 %flags.wide to i32
  %shape = getelementptr i64, ptr %table, i64 9
  %from = getelementptr i64, ptr %shape, i64 %axes
  %rank = trunc i64 %axes to i32
  call void @Py_IncRef(ptr %dtype)
  %z = call ptr @PyArray_NewFromDescr(ptr %ndarray, ptr %dtype, i32 %rank, ptr %shape,
                                      ptr null, ptr null, i32 0, ptr null)
  %failed = icmp eq ptr %z, null
  br i1 %failed, label %none, label %fill
none:
  ret ptr null
fill:
  %y.at = getelementptr ptr, ptr %args, i64 1
  %x = load ptr, ptr %args
  %y = load ptr, ptr %y.at
{field("x.place", "%x", DATA)}
{field("y.place", "%y", DATA)}
{field("z.place", "%z", DATA)}
  %swapped = icmp ne i64 %turned, 0
  %first = select i1 %swapped, i64 %y.place, i64 %x.place
  %second = select i1 %swapped, i64 %x.place, i64 %y.place
  %second.to = getelementptr i64, ptr %job, i64 1
  %z.to = getelementptr i64, ptr %job, i64 2
  %rest = getelementptr i64, ptr %job, i64 3
  store i64 %first, ptr %job
  store i64 %second, ptr %second.to
  store i64 %z.place, ptr %z.to
  %bytes = shl i64 %words, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %from, i64 %bytes, i1 false)
{flags_cleared("%flags")}
run:
  %is.long = icmp ne i64 %long, 0
{unlocked("call void %code(ptr %job)", "%is.long")}
give:
{flags_asked("%flags")}
again:
{word("warned", "%table", 8, "ptr")}
  call void @Py_DecRef(ptr %z)
  %told = call ptr @PyObject_Vectorcall(ptr %warned, ptr %args, i64 2, ptr null)
  ret ptr %told
good:
  ret ptr %z
}}
"""


_TEXT = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
  %job = alloca [{_WORDS} x i64], align 16
{field("table", "%holder", DATA, "ptr")}
{word("code", "%table", 0, "ptr")}
{word("none", "%table", 1, "ptr")}
  %arrays = sub i64 %count, 1
  br label %next

next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %array ]
  %most = phi i64 [ 0, %entry ], [ %most.next, %array ]
  %at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %at
  %to = getelementptr i64, ptr %job, i64 %k
  %all = icmp eq i64 %k, %arrays
  br i1 %all, label %rest, label %array
array:
{field("place", "%x", DATA)}
  store i64 %place, ptr %to
{field("rank", "%x", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
  %n = call i64 @PyArray_MultiplyList(ptr %shape, i32 %rank)
  %larger = icmp sgt i64 %n, %most
  %most.next = select i1 %larger, i64 %n, i64 %most
  %k.next = add i64 %k, 1
  br label %next

rest:
{field("length", "%x", _LENGTH)}
  %from = getelementptr i8, ptr %x, i64 {_BYTES}
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %length, i1 false)
  %long = icmp sge i64 %most, {_LONG}
{unlocked("call void %code(ptr %job)", "%long")}
give:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
"""
