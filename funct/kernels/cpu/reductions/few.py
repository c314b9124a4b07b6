"""Reductions of few elements by a builtin function, which reads the array and makes the result.

    total = Few("sum")
    total.call(x, None, False)      # an array; None where Python is to decide

NumPy's own reductions take 2 µs to begin. What is given here has the bits that the functions of
`funct.kernels.statistical` give otherwise: sums have NumPy's order, and products too but where rows
are long enough for one of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from funct.device import Host, host, printed
from funct.device.host import told
from funct.device.llvm import loaded
from funct.device.printed import recall
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
    readable,
    word,
)
from funct.kernels.cpu.often import Often
from funct.kernels.cpu.reductions.long_rows import PAYS
from funct.kernels.cpu.reductions.pairwise import SUMS, define_total, of_integers, paired
from funct.kernels.cpu.reductions.segments import COMBINED, FACTORS, carried, segment
from funct.kernels.cpu.reductions.short_rows import result_of
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

__all__ = ["Few", "text"]

_FEW = 1 << 9  # elements in rows and columns of any length,
_MANY, _SOME = 32, 1 << 13  # in so many columns,
_LONG, _TASKS = 128, 1 << 16  # and in rows of more than so many: from here on threads share them
_HALVES = 1 << 12  # elements of two bytes from which on sums have another order
_FREE = 1 << 13  # elements from which on other Python threads may run meanwhile
_BLOCK = 64  # terms from which on a sum is one of blocks
_RANK = 64  # the most that NumPy knows
_ABREAST = 4  # vectors of columns that are reduced side by side
_ELEMENTS = {
    **{np.dtype(c + str(k // 8)): c + str(k) for c in "iu" for k in (8, 16, 32, 64)},
    **{np.dtype(f"f{k // 8}"): f"f{k}" for k in (16, 32, 64)},
    np.dtype(ml_dtypes.bfloat16): "bf16", np.dtype(bool): "u8",
}  # fmt: skip
_BOOL = np.dtype(bool)
# Words of a table; then, for each dtype: what it is, that of the result, the code, and how many
# elements are too many
_NDARRAY, _INT, _TUPLE, _NONE, _TRUE, _FALSE, _MISS, _COUNT, _DTYPES = range(9)


class Few:
    """sum, prod, max, min, any or all of dense arrays, over axes that lie side by side.

    call: takes the array, the axes (None, an int or a tuple) and whether they stay. It is Python,
    which gives None, until it has been called often for a dtype.
    """

    __slots__ = ("_kept", "_name", "_waiting", "call")

    call: Callable[..., Any]

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: list[tuple[Any, ...]] = []
        truth = name in ("any", "all")
        kinds = [d for d in _ELEMENTS if (d == _BOOL) == truth or name == "sum"]
        self._waiting: dict[Any, Callable[[], None] | None] = dict.fromkeys(kinds)
        self.call = self._miss

    def _miss(self, x: Any, axis: Any, keepdims: Any) -> None:
        dtype = x.dtype
        if dtype in self._waiting:
            count = self._waiting.get(dtype)
            if count is None:
                often = Often(partial(self._load, dtype), at_hand=partial(self._at_hand, dtype))
                count = self._waiting[dtype] = often.counted(_nothing)
            count()

    def _at_hand(self, dtype: np.dtype[Any]) -> bool:
        """Whether the code costs no more than milliseconds."""
        if loaded() or not told():
            return loaded()
        return recall(text, self._name, _ELEMENTS[dtype], host()) is not None

    def _load(self, dtype: np.dtype[Any]) -> None:
        """Let the builtin answer for a dtype."""
        if not readable() or dtype not in self._waiting:
            return
        del self._waiting[dtype]
        code = printed(text, self._name, _ELEMENTS[dtype], host()).keep()
        self._kept.append((dtype, _result(self._name, dtype), code))
        objects = (np.ndarray, int, tuple, None, True, False, self._miss)
        words = [*map(id, objects), len(self._kept)]
        for kind, result, made in self._kept:
            most = _HALVES if _ELEMENTS[kind] in ("f16", "bf16") else _TASKS
            words += [id(kind), id(result), made.address("reduce"), most]
        held = (self, objects, list(self._kept))
        self.call = builtin("few", code_of(_TEXT).address("call"), np.asarray(words), held)


def _nothing() -> None:
    """What stands for the code until there is any."""


def _result(name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if _ELEMENTS[dtype] == "bf16" else result_of(name, dtype)


def text(name: str, element: str, target: Host) -> str:
    """`reduce(x, y, outer, length, inner)`: of dense (outer, length, inner), over the length."""
    module = Module(target)
    kind = carried(name, element)
    result = element if kind == "f32" else kind
    if name == "sum" and kind[0] == "f":
        define_total(module, element, typed(kind))
    parameters = [("x", PTR), ("y", PTR), ("outer", I64), ("length", I64), ("inner", I64)]
    f = module.function("reduce", parameters)
    x, y, outer, length, inner = f.arguments

    def put(v: Value, i: Value) -> None:
        f.store(f.convert(v, result), f.at(y, i, result))

    def rows() -> None:
        size = outer * length
        each(f, 0, outer, lambda r: put(
            _row(f, name, element, f.at(x, r * length, element), length, size), r
        ))  # fmt: skip

    def columns() -> None:
        def block(b: Value) -> None:
            at = f.at(x, b * length * inner, element)
            _columns(f, name, element, at, length, inner, lambda v, c: put(v, b * inner + c))

        each(f, 0, outer, block)

    f.when(f.eq(inner, 1), rows)
    f.when(inner > 1, columns)
    f.ret()
    return module.text()


def _read(f: Emitter, name: str, element: str, at: Value, lanes: int = 1) -> Value:
    return f.convert(f.load(typed(element, lanes), at), carried(name, element))


def _row(f: Emitter, name: str, element: str, x: Value, n: Value, size: Value) -> Value:
    kind = carried(name, element)
    lanes = f.module.target.vector_bytes // typed(kind).bytes

    def in_vectors() -> list[Value]:
        return segment(f, name, element, x, n)

    def one_by_one() -> list[Value]:
        return [_rest(f, name, element, x, f.constant(I64, 1), n, read(0))]

    def read(i: int) -> Value:
        return _read(f, name, element, f.at(x, i, element))

    if name == "sum":
        return _sum(f, element, x, n) if kind[0] == "f" else of_integers(f, x, n, element, kind)
    if name == "prod" and kind[0] == "f":
        own = (size >= PAYS) & (n > FACTORS)
        return f.branch(own, in_vectors, one_by_one)[0]
    return f.branch(n >= lanes, in_vectors, one_by_one)[0]


def _rest(
    f: Emitter, name: str, element: str, x: Value, start: Value, n: Value, held: Value
) -> Value:  # fmt: skip
    """What is held and the elements from there on, one after the other."""

    def one(i: Value, held: list[Value]) -> list[Value]:
        return [COMBINED[name](f, held[0], _read(f, name, element, f.at(x, i, element)))]

    return f.loop(start, n, 1, one, [held], maybe_empty=True)[0]


def _sum(f: Emitter, element: str, x: Value, n: Value) -> Value:
    """Of floats, in NumPy's order."""
    kind = carried("sum", element)
    none = f.constant(typed(kind), 0)

    def read(i: Value | int, lanes: int = 1) -> Value:
        return _read(f, "sum", element, f.at(x, i, element), lanes)

    def of_blocks() -> list[Value]:
        found = f.call("total", typed(kind), [x, n, none])
        assert found is not None
        return [found]

    def of_vectors() -> list[Value]:
        whole = n & -SUMS
        sums = f.loop(SUMS, whole, SUMS, lambda i, held: [held[0] + read(i, SUMS)],
                      [read(0, SUMS)], maybe_empty=True)  # fmt: skip
        return [_rest(f, "sum", element, x, whole, n, paired(f, sums[0]))]

    def of_numbers() -> list[Value]:
        return [_rest(f, "sum", element, x, f.constant(I64, 1), n, read(0))]

    def short() -> list[Value]:
        return f.branch(n >= SUMS, of_vectors, of_numbers)

    return f.branch(n >= _BLOCK, of_blocks, short)[0] + 0  # of -0.0 alone it is 0


def _columns(
    f: Emitter, name: str, element: str, x: Value, length: Value, inner: Value,
    put: Callable[[Value, Value], None],
) -> None:  # fmt: skip
    """Of each column, from its first row on."""
    kind = carried(name, element)
    lanes = f.module.target.vector_bytes // typed(kind).bytes

    def several(c: Value, count: int, lanes: int) -> None:
        starts = [c + k * lanes for k in range(count)]

        def row(i: Value, held: list[Value]) -> list[Value]:
            at = [f.at(x, i * inner + start, element) for start in starts]
            read = [_read(f, name, element, place, lanes) for place in at]
            return [COMBINED[name](f, a, b) for a, b in zip(held, read, strict=True)]

        first = [_read(f, name, element, f.at(x, start, element), lanes) for start in starts]
        if name == "sum" and kind[0] == "f":
            first = [v + 0 for v in first]
        for start, v in zip(
            starts, f.loop(1, length, 1, row, first, maybe_empty=True), strict=True
        ):
            put(v, start)

    done = f.constant(I64, 0)
    for count, width in ((_ABREAST, lanes), (1, lanes), (1, 1)):
        stop = inner - f.rem(inner, count * width)
        each(f, done, stop, partial(several, count=count, lanes=width), count * width)
        done = stop


_TEXT = f"""
define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
  %dims = alloca [{_RANK} x i64]
{field("table", "%holder", DATA, "ptr")}
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("int", "%table", _INT, "ptr")}
{word("tuple", "%table", _TUPLE, "ptr")}
{word("none", "%table", _NONE, "ptr")}
{word("true", "%table", _TRUE, "ptr")}
{word("false", "%table", _FALSE, "ptr")}
{word("kinds", "%table", _COUNT)}
  %x = load ptr, ptr %args
  %axis.at = getelementptr ptr, ptr %args, i64 1
  %axis = load ptr, ptr %axis.at
  %keepdims.at = getelementptr ptr, ptr %args, i64 2
  %keepdims = load ptr, ptr %keepdims.at
{field("type", "%x", TYPE, "ptr")}
  %three = icmp eq i64 %count, 3
  %is.array = icmp eq ptr %type, %ndarray
  %keeps = icmp eq ptr %keepdims, %true
  %drops = icmp eq ptr %keepdims, %false
  %known.keepdims = or i1 %keeps, %drops
  %shaped = and i1 %three, %is.array
  %given = and i1 %shaped, %known.keepdims
  br i1 %given, label %array, label %miss
array:
{field("dtype", "%x", DTYPE, "ptr")}
{field("flags", "%x", FLAGS, "i32")}
{field("rank.short", "%x", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
  %rank = sext i32 %rank.short to i64
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  %first.kind = getelementptr i64, ptr %table, i64 {_DTYPES}
  br i1 %dense, label %kind, label %miss
kind:
  %i = phi i64 [ 0, %array ], [ %i.next, %other ]
  %at = phi ptr [ %first.kind, %array ], [ %at.next, %other ]
  %unknown = icmp eq i64 %i, %kinds
  br i1 %unknown, label %miss, label %compare
compare:
  %wanted = load ptr, ptr %at
  %same = icmp eq ptr %wanted, %dtype
  br i1 %same, label %axes, label %other
other:
  %i.next = add i64 %i, 1
  %at.next = getelementptr i64, ptr %at, i64 4
  br label %kind

axes:
{field("axis.type", "%axis", TYPE, "ptr")}
  %all = icmp eq ptr %axis, %none
  br i1 %all, label %known, label %one
one:
  %is.int = icmp eq ptr %axis.type, %int
  br i1 %is.int, label %next, label %many
many:
  %is.tuple = icmp eq ptr %axis.type, %tuple
  br i1 %is.tuple, label %several, label %miss
several:
  %length.given = call i64 @PyTuple_Size(ptr %axis)
  %empty = icmp eq i64 %length.given, 0
  br i1 %empty, label %miss, label %next
next:
  %k = phi i64 [ 0, %one ], [ 0, %several ], [ %k.next, %follows ]
  %last = phi i64 [ 1, %one ], [ %length.given, %several ], [ %last, %follows ]
  %before = phi i64 [ -1, %one ], [ -1, %several ], [ %begin, %follows ]
  %done = icmp eq i64 %k, %last
  br i1 %done, label %known, label %item
item:
  %in.tuple = icmp eq ptr %axis.type, %tuple
  br i1 %in.tuple, label %element, label %number
element:
  %got = call ptr @PyTuple_GetItem(ptr %axis, i64 %k)
{field("got.type", "%got", TYPE, "ptr")}
  %whole = icmp eq ptr %got.type, %int
  br i1 %whole, label %number, label %miss
number:
  %one.axis = phi ptr [ %axis, %item ], [ %got, %element ]
  %a = call i64 @PyLong_AsLongLong(ptr %one.axis)
  %odd = icmp eq i64 %a, -1
  br i1 %odd, label %suspect, label %counted
suspect:
  %error = call ptr @PyErr_Occurred()
  %good = icmp eq ptr %error, null
  br i1 %good, label %counted, label %failed
failed:
  ret ptr null
counted:
  %from.end = icmp slt i64 %a, 0
  %turned = add i64 %a, %rank
  %place = select i1 %from.end, i64 %turned, i64 %a
  %inside = icmp ult i64 %place, %rank
  %at.first = icmp eq i64 %k, 0
  %begin = select i1 %at.first, i64 %place, i64 %before
  %due = add i64 %begin, %k
  %in.order = icmp eq i64 %place, %due
  %fine = and i1 %inside, %in.order
  br i1 %fine, label %follows, label %miss
follows:
  %k.next = add i64 %k, 1
  br label %next

known:
  %first = phi i64 [ 0, %axes ], [ %before, %next ]
  %number.of = phi i64 [ %rank, %axes ], [ %last, %next ]
  %behind = add i64 %first, %number.of
  %rest = sub i64 %rank, %behind
  %first.short = trunc i64 %first to i32
  %number.short = trunc i64 %number.of to i32
  %rest.short = trunc i64 %rest to i32
  %reduced = getelementptr i64, ptr %shape, i64 %first
  %kept = getelementptr i64, ptr %shape, i64 %behind
  %outer = call i64 @PyArray_MultiplyList(ptr %shape, i32 %first.short)
  %length = call i64 @PyArray_MultiplyList(ptr %reduced, i32 %number.short)
  %inner = call i64 @PyArray_MultiplyList(ptr %kept, i32 %rest.short)
  %rows = mul i64 %outer, %inner
  %n = mul i64 %rows, %length
  %is.last = icmp eq i64 %rest, 0
  %columns = icmp sgt i64 %inner, 1
  %placed = or i1 %is.last, %columns
  %several.terms = icmp sgt i64 %length, 1
  %several.rows = icmp sgt i64 %rows, 0
  %few = icmp slt i64 %n, {_FEW}
  %some = icmp slt i64 %n, {_SOME}
{word("most", "%at", 3)}
  %not.many = icmp slt i64 %n, %most
  %long = icmp sgt i64 %length, {_LONG}
  %last.long = and i1 %is.last, %long
  %long.rows = and i1 %last.long, %not.many
  %many.columns = icmp sge i64 %inner, {_MANY}
  %wide = and i1 %many.columns, %some
  %wide.few = and i1 %wide, %not.many
  %well = or i1 %long.rows, %wide.few
  %right = or i1 %few, %well
  %yes.1 = and i1 %placed, %several.terms
  %yes.2 = and i1 %yes.1, %several.rows
  %yes = and i1 %yes.2, %right
  br i1 %yes, label %make, label %miss

make:
  %d = phi i64 [ 0, %known ], [ %d.next, %step ]
  %left = phi i64 [ 0, %known ], [ %left.next, %step ]
  %measured = icmp eq i64 %d, %rank
  br i1 %measured, label %new, label %dim
dim:
  %in.before = icmp slt i64 %d, %first
  %in.behind = icmp sge i64 %d, %behind
  %stays = or i1 %in.before, %in.behind
  %as.one = and i1 %keeps, true
  %taken = or i1 %stays, %as.one
  %own.at = getelementptr i64, ptr %shape, i64 %d
  %own = load i64, ptr %own.at
  %put = select i1 %stays, i64 %own, i64 1
  %to = getelementptr i64, ptr %dims, i64 %left
  store i64 %put, ptr %to
  br label %step
step:
  %more = zext i1 %taken to i64
  %left.next = add i64 %left, %more
  %d.next = add i64 %d, 1
  br label %make
new:
{word("made.dtype", "%at", 1, "ptr")}
{word("code", "%at", 2, "ptr")}
  %made.rank = trunc i64 %left to i32
  call void @Py_IncRef(ptr %made.dtype)
  %y = call ptr @PyArray_NewFromDescr(ptr %ndarray, ptr %made.dtype, i32 %made.rank, ptr %dims,
                                      ptr null, ptr null, i32 0, ptr null)
  %no.room = icmp eq ptr %y, null
  br i1 %no.room, label %failed, label %run
run:
{field("x.data", "%x", DATA, "ptr")}
{field("y.data", "%y", DATA, "ptr")}
  %shared = icmp sge i64 %n, {_FREE}
  br i1 %shared, label %free, label %locked
locked:
  call void %code(ptr %x.data, ptr %y.data, i64 %outer, i64 %length, i64 %inner)
  ret ptr %y
free:
  %state = call ptr @PyEval_SaveThread()
  call void %code(ptr %x.data, ptr %y.data, i64 %outer, i64 %length, i64 %inner)
  call void @PyEval_RestoreThread(ptr %state)
  ret ptr %y

miss:
{word("function", "%table", _MISS, "ptr")}
  %told = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr null)
  ret ptr %told
}}
"""
