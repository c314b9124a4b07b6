"""Sums of many numbers that lie side by side, in NumPy's order and so with its bits, in vectors.

NumPy halves a row of floats down to 128 terms, and adds those in eight sums side by side, number by
number. The parts of complex numbers are such terms, and have sums of their own. Integers have no
order.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import Host, host, printed
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.tasks import deal_out
from funct.kernels.llvm import I64, PTR, Emitter, Module, Type, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LONG", "PARTS", "SUMS", "of_long_rows", "paired", "text"]

LONG = 1 << 15  # elements from which on a call costs less than what it saves
SUMS = 8

_FIELDS = Fields(("x", "y", "tasks", "rows", "length"))
_job = struct.Struct(f"{len(_FIELDS)}q").pack  # bytes: an array takes NumPy longer
_BLOCK = 128  # terms that are no more halved
_TASK = 1 << 15  # elements that are worth a task
_SIDE = 4  # vectors of integers that are added side by side
_ELEMENTS = {
    np.dtype(bool): "u8", np.dtype(np.uint8): "u8", np.dtype(np.int8): "i8",
    np.dtype(np.int32): "i32", np.dtype(np.int64): "i64", np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
}  # fmt: skip
PARTS: dict[Any, np.dtype[Any]] = {
    np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64),
}  # fmt: skip


def of_long_rows(x: NDArray[Any], axis: Any, keepdims: bool, squares: bool = False) -> Any:
    """The sum of all elements, or over the last axis; None where that is not known here. squares:
    that of floats' squares, each rounded first.
    """
    parts = 2 if x.dtype in PARTS else 1
    element = _ELEMENTS.get(PARTS.get(x.dtype, x.dtype))
    if element is None or not x.flags.c_contiguous or not x.flags.aligned:
        return None
    if axis is not None and axis.__class__ is not int and axis.__class__ is not tuple:
        return None
    layout = _layout(x.shape, axis, keepdims)
    if layout is None or not ready(x.size):
        return None
    length, lead = layout
    y = fresh(lead, _sum_dtype(x.dtype))
    tasks = max(1, min(y.size, x.size // _TASK, 4 * host().cores))
    _entry(element, parts, squares)(_job(address(x), address(y), tasks, y.size, parts * length))
    return y if y.ndim else y[()]


@functools.lru_cache(512)
def _layout(
    shape: tuple[int, ...], axis: Any, keepdims: bool
) -> tuple[int, tuple[int, ...]] | None:
    """How long rows are, and the shape of what is left; None for short ones, and other axes."""
    rank = len(shape)
    axes = range(rank) if axis is None else axis if axis.__class__ is tuple else (axis,)
    if not all(a.__class__ is int and -rank <= a < rank for a in axes):
        return None
    order = sorted([a % rank for a in axes])
    if not order or (order != [*range(rank)] and order != [rank - 1]):
        return None
    kept = shape[: rank - len(order)]
    length, lead = prod(shape[len(kept) :]), (*kept, *(1,) * len(order)) if keepdims else kept
    return (length, lead) if length > _BLOCK else None


@functools.cache
def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    found: np.dtype[Any] = np.add.reduce(np.empty(0, dtype)).dtype
    return found


@functools.cache
def _entry(element: str, parts: int, squares: bool) -> Any:
    code = printed(text, element, parts, squares, host()).keep()
    return ctypes.CFUNCTYPE(None, ctypes.c_char_p)(code.address("reduce"))


def text(element: str, parts: int, squares: bool, target: Host) -> str:
    """`reduce(job)` of rows of numbers that have so many parts; or of their squares."""
    module = Module(target)
    wide = element if element[0] == "f" else element[0] + "64"
    kind = typed(wide, parts)
    f = module.function("total", [("x", PTR), ("n", I64)], kind, local=True)
    x, n = f.arguments
    if element[0] == "f":
        (found,) = f.branch(n <= _BLOCK, lambda: [_of_block(f, x, n, element, parts, squares)],
                            lambda: [_of_halves(f, x, n, kind)])  # fmt: skip
    else:
        found = _of_integers(f, x, n, element, wide)
    f.ret(found)
    f = module.function("some", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, _FIELDS, f.arguments[0]), f.arguments[1]

    def row(r: Value, _: list[Value]) -> list[Value]:
        start = f.at(job.pointer("x"), r * job.length, element)
        found = f.call("total", kind, [start, job.length])
        assert found is not None
        f.store(found + 0, f.at(job.pointer("y"), r * parts, wide))  # of -0.0 alone it is 0
        return []

    first, last = (f.div((task + k) * job.rows, job.tasks) for k in range(2))
    f.loop(first, last, 1, row, maybe_empty=True)
    f.ret()
    deal_out(module, "reduce", "some", _FIELDS)
    return module.text()


def _of_halves(f: Emitter, x: Value, n: Value, kind: Type) -> Value:
    half = f.div(n, 2) & -SUMS
    low = f.call("total", kind, [x, half])
    high = f.call("total", kind, [f.at(x, half, kind.element), n - half])
    assert low is not None
    assert high is not None
    return low + high


def _of_block(
    f: Emitter, x: Value, n: Value, element: str, parts: int, squares: bool
) -> Value:
    """Of 64 terms or more, in no loop: none ends where the processor expects it. Blocks of a row
    are nearly of one length, so of the branches of its binary form only the last ones vary.
    """
    whole = n & -SUMS

    def read(i: Value | int, lanes: int = SUMS) -> Value:
        v = f.load(typed(element, lanes), f.at(x, i, element))
        return v * v if squares else v

    def added(sums: Value, start: Value | int, count: int) -> Value:
        for k in range(count):
            sums = sums + read(start + k * SUMS)
        return sums

    half = _BLOCK // 2
    sums = added(read(0), SUMS, half // SUMS - 1)
    rest, at = whole - half, f.constant(I64, half)
    count = half
    while count >= SUMS:
        sums, at = _maybe(f, rest & count, sums, at, count, added)
        count //= 2

    def single(i: Value, totals: list[Value]) -> list[Value]:
        return [totals[0] + read(i, parts)]

    return f.loop(whole, n, parts, single, [paired(f, sums, parts)], maybe_empty=True)[0]


def _maybe(
    f: Emitter, wanted: Value, sums: Value, at: Value, count: int, added: Callable[..., Value]
) -> list[Value]:
    """The sums and where they stand, with so many terms more if they are wanted."""
    return f.branch(
        f.ne(wanted, 0),
        lambda: [added(sums, at, count // SUMS), at + count],
        lambda: [sums, at],
    )


def paired(f: Emitter, sums: Value, parts: int = 1) -> Value:
    """The lanes of a vector, added in pairs: of numbers that have so many parts."""
    while (lanes := sums.type.lanes) > parts:
        firsts = [k for k in range(lanes) if k // parts % 2 == 0]
        sums = f.shuffle(sums, None, firsts) + f.shuffle(sums, None, [k + parts for k in firsts])
    return sums


def _of_integers(f: Emitter, x: Value, n: Value, element: str, wide: str) -> Value:
    lanes = f.module.target.vector_bytes // typed(wide).bytes

    def read(i: Value, lanes: int) -> Value:
        return f.convert(f.load(typed(element, lanes), f.at(x, i, element)), wide)

    def several(i: Value, held: list[Value]) -> list[Value]:
        return [v + read(i + k * lanes, lanes) for k, v in enumerate(held)]

    def single(i: Value, held: list[Value]) -> list[Value]:
        return [held[0] + read(i, 1)]

    none = f.constant(typed(wide, lanes), 0)
    whole = n - f.rem(n, _SIDE * lanes)
    held = f.loop(0, whole, _SIDE * lanes, several, [none] * _SIDE, maybe_empty=True)
    total = f.reduce(functools.reduce(f.add, held), f.add)
    return f.loop(whole, n, 1, single, [total], maybe_empty=True)[0]
