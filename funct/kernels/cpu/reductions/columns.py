"""Sums, products, extrema and truth of few columns that lie side by side, all of them in registers.

NumPy walks row by row and begins anew in each, which takes longer than few columns do. Here a text
is printed for each number of columns. Every column is added from its first row on, as NumPy does
it, so sums and products of floats have its bits; what has no order takes several rows at a time.
"""

from __future__ import annotations

import functools
import struct
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import Host, host, printed
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.reductions.pairwise import PARTS
from funct.kernels.cpu.reductions.segments import COMBINED, carried
from funct.kernels.cpu.reductions.short_rows import ELEMENTS, Plan, result_of
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.tasks import Units, deal_out_units
from funct.kernels.llvm import I64, Emitter, Module, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["job", "of_few_columns", "text"]

_FIELDS = Fields(("x", "y", "tasks", "blocks", "rows"))
_rest, _words = (getattr(struct.Struct(f"{len(_FIELDS) - 2}q"), n) for n in ("pack", "unpack"))
_TASK = 1 << 15  # elements that are worth a task
_MANY = 1 << 9  # columns that are more than any processor holds
_MOST, _OF_MANY = 8, 14  # vectors of a row, of 16 registers and of 32
_ABREAST = 8  # vectors that are reduced side by side where there is no order
_ROWS = 4  # the same for rows
_BOOL = np.dtype(bool)


def of_few_columns(name: str, x: NDArray[Any], axis: Any, keepdims: bool) -> Any:
    """What NumPy gives for axes that lie together before the last one; None where what is left
    has many columns or one, or has not paid yet.

    name: sum, prod, max, min, any or all. Zeros of both signs are equal to extrema.
    """
    if not _may_be(x, axis):
        return None
    layout = _layout(name, x.shape, x.dtype, axis, keepdims)
    if layout is None or not x.flags.c_contiguous or not x.flags.aligned:
        return None
    plan, left, dtype, rest = layout
    if not plan.pays(x.size) or not ready(x.size):
        return None
    y = fresh(left, dtype)
    plan.run(x, y, rest)
    return y


def job(name: str, x: NDArray[Any], axis: Any, keepdims: bool) -> Any:
    """What `of_few_columns` runs for arrays that are dense and lie so."""
    layout = _layout(name, x.shape, x.dtype, axis, keepdims) if _may_be(x, axis) else None
    return None if layout is None else layout[0].job(layout[1], layout[2], _words(layout[3]))


def _may_be(x: NDArray[Any], axis: Any) -> bool:
    """Whether axes may be before the last one."""
    return axis not in (-1, x.ndim - 1) if axis.__class__ is int else axis.__class__ is tuple


@functools.lru_cache(512)
def _layout(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], axis: Any, keepdims: bool
) -> tuple[Plan, tuple[int, ...], np.dtype[Any], bytes] | None:
    """The plan, the shape and the dtype of what is left, and the job behind the addresses."""
    rank, axes = len(shape), axis if axis.__class__ is tuple else (axis,)
    if not axes or not all(a.__class__ is int and -rank <= a < rank for a in axes):
        return None
    order = sorted([a % rank for a in axes])
    first, behind = order[0], order[-1] + 1
    if behind == rank or order != [*range(first, behind)]:
        return None
    blocks, rows, columns = (
        prod(shape[part]) for part in (slice(first), slice(first, behind), slice(behind, None))
    )
    if rows < 2 or not 1 < columns <= _MANY:
        return None
    kind, across = dtype, columns
    if kind in PARTS:
        if name != "sum":
            return None
        kind, across = PARTS[kind], 2 * columns  # a sum is one of either part
    plan = _plan(name, kind, across)
    if plan is None:
        return None
    kept = (1,) * (behind - first) if keepdims else ()
    left = (*shape[:first], *kept, *shape[behind:])
    tasks = max(1, min(blocks, blocks * rows * columns // _TASK, 4 * host().cores))
    result = plan.result if kind is dtype else dtype
    return plan, left, result, _rest(tasks, blocks, rows)


@functools.lru_cache(512)
def _plan(name: str, dtype: np.dtype[Any], columns: int) -> Plan | None:
    element = ELEMENTS.get(dtype)
    if element is None or (dtype == _BOOL and name in ("max", "min")):
        return None
    most = _OF_MANY if host().has("avx512f") else _MOST
    if len(_starts(columns, carried(name, element), host())[0]) > most:
        return None
    return Plan(_entry, name, element, columns, result_of(name, dtype))


@functools.cache
def _entry(name: str, element: str, columns: int) -> int:
    return printed(text, name, element, columns, host()).keep().address("reduce")


def _starts(columns: int, kind: str, target: Host) -> tuple[list[int], int]:
    """Where the vectors of a row begin, and their lanes: the last one ends the row."""
    lanes = min(target.vector_bytes // typed(kind).bytes, 1 << (columns.bit_length() - 1))
    return [min(i, columns - lanes) for i in range(0, columns, lanes)], lanes


def text(name: str, element: str, columns: int, target: Host) -> str:
    """`reduce(job)` of blocks of rows of so many columns."""
    module = Module(target)

    def units(f: Emitter, job: Record) -> Units:
        x, y, rows = job.pointer("x"), job.pointer("y"), job.rows

        def block(b: Value) -> None:
            _block(f, name, element, columns, f.at(x, b * rows * columns, element), rows,
                   lambda i, v: f.store(v, f.at(y, b * columns + i, v.type.element)))  # fmt: skip

        return job.blocks, block

    deal_out_units(module, "reduce", _FIELDS, units)
    return module.text()


def _block(
    f: Emitter, name: str, element: str, columns: int, x: Value, rows: Value, put: Any
) -> None:
    kind = carried(name, element)
    starts, lanes = _starts(columns, kind, f.module.target)
    ordered = name in ("sum", "prod") and element[0] == "f"
    abreast = 1 if ordered else max(1, min(_ROWS, _ABREAST // len(starts)))

    def read(r: Value) -> list[Value]:
        at = f.at(x, r * columns, element)
        found = []
        for start in starts:
            v = f.load(typed(element, lanes), f.at(at, start, element))
            if name in ("any", "all"):
                v = f.convert(f.ne(v, 0), kind)
            found.append(f.convert(v, kind))
        return found

    def combine(a: Value, b: Value) -> Value:
        return COMBINED[name](f, a, b)

    def several(r: Value, held: list[Value]) -> list[Value]:
        new = [v for k in range(abreast) for v in read(r + k)]
        return [combine(a, v) for a, v in zip(held, new, strict=True)]

    def one(r: Value, held: list[Value]) -> list[Value]:
        return [combine(a, v) for a, v in zip(held, read(r), strict=True)]

    # in extrema and truth the first row may count more than once
    zero = f.constant(I64, 0)
    begin = (
        [f.constant(typed(kind, lanes), int(name == "prod"))] * len(starts)
        if name in ("sum", "prod") else read(zero)
    )  # fmt: skip
    whole = rows - f.rem(rows, abreast)
    held = f.loop(zero, whole, abreast, several, begin * abreast, maybe_empty=True)
    totals = [functools.reduce(combine, held[k :: len(starts)]) for k in range(len(starts))]
    totals = f.loop(whole, rows, 1, one, totals, maybe_empty=True)
    for start, v in zip(starts, totals, strict=True):
        put(start, f.convert(v, "u8") if name in ("any", "all") else v)
