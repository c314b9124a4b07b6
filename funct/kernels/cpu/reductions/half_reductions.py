"""Reductions of float16 and bfloat16, widened in registers: one pass over the array.

An array is (outer, segments, length, inner), of which the length is reduced: in vectors along the
last axis, or in as many sums as there are columns. A sum is float32 within a segment and float64
across them, and segments depend on the shape alone: no thread changes a bit.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import Host, host, printed
from funct.kernels.cpu.elementwise.vector_loops import ELEMENTS
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.reductions.wide_columns import of_many_columns
from funct.kernels.cpu.runners import runner
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.tasks import Units, deal_out_units
from funct.kernels.llvm import Emitter, Module, Value, each, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["half_reduction", "text"]

_FIELDS = Fields(("x", "y", "tasks", "units", "segments", "segment", "length", "inner"))
_SEGMENT = 1 << 18  # elements, of which few are terms of one sum:
_TERMS = 1 << 10  # in each of the columns
_RUN = 1 << 16  # along a run, where there are as many sums as lanes
_TASK = 1 << 14
_SUMS = 8  # vectors that are summed side by side
_ABREAST = (8, 4, 2, 1)  # and of columns, widest first
_LEAST_INNER = 16  # columns that are work for vectors
_SINGLE = np.dtype(np.float32)

_Combine = Callable[[Emitter, Value, Value], Value]
_Put = Callable[..., None]  # a total, and from which column on it is
_OPS: dict[str, tuple[_Combine, float]] = {
    "add": (lambda f, total, x: total + x, -0.0),
    "multiply": (lambda f, total, x: total * x, 1.0),
    "maximum": (lambda f, total, x: f.maximum(total, x), -math.inf),
    "minimum": (lambda f, total, x: f.minimum(total, x), math.inf),
}


_COLUMNS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


def half_reduction(reduce: Any, x: NDArray[Any], axes: Any, keepdims: bool) -> Any:
    """The reduction by `reduce`, a ufunc's, of axes that follow each other in memory."""
    name = reduce.__self__.__name__
    if name not in _OPS or not x.size or not axes:
        return NotImplemented
    if not x.flags.c_contiguous:
        if not x.flags.f_contiguous:
            return NotImplemented
        last = x.ndim - 1
        found = half_reduction(reduce, x.T, tuple([last - a for a in axes]), keepdims)
        return found if found is NotImplemented else found.T
    if len(axes) == 1:
        y = of_many_columns(_COLUMNS[name], x, axes, keepdims)
        if y is not None:
            return y
    plan = _plan(name, x.dtype, x.shape, axes, keepdims)
    if plan is None:
        return NotImplemented
    y = fresh(plan.made, plan.dtype)
    plan.run(x, y, plan.rest)
    if plan.left is None:
        return y
    y = reduce(y, 1, np.dtype(np.float64) if name in ("add", "multiply") else None)
    return y.reshape(plan.left).astype(x.dtype)


class _Plan(Struct, frozen=True, eq=False):
    """What is known before the arrays are. rest: the bytes of a job behind the two addresses; made,
    dtype: of what it writes; left: the shape that its segments are reduced to, if it has several.
    """

    run: Any
    rest: bytes
    made: tuple[int, ...]
    dtype: np.dtype[Any]
    left: tuple[int, ...] | None


@functools.lru_cache(256)
def _plan(
    name: str, dtype: np.dtype[Any], shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool
) -> _Plan | None:
    """None where the axes do not follow each other, or vectors have no work."""
    axes = tuple(sorted(axes))
    first, stop = axes[0], axes[-1] + 1
    if len(axes) != stop - first:
        return None
    outer, length, inner = map(math.prod, (shape[:first], shape[first:stop], shape[stop:]))
    if 1 < inner < _LEAST_INNER or (inner == 1 and length < _LEAST_INNER):
        return None
    segment = max(1, min(length, _TERMS, _SEGMENT // inner)) if inner > 1 else min(length, _RUN)
    segments = -(-length // segment)
    units = outer * segments
    job = _FIELDS.fill(
        x=0, y=0, tasks=max(1, min(units, outer * length * inner // _TASK, 4 * host().cores)),
        units=units, segments=segments, segment=segment, length=length, inner=inner,
    )  # fmt: skip
    left = (*shape[:first], *((1,) * len(axes) if keepdims else ()), *shape[stop:])
    element = ELEMENTS[dtype]
    whole = segments == 1
    run = _entry(name, element, element if whole else "f32", inner > 1)
    made = left if whole else (outer, segments, inner)
    return _Plan(run, job[2:].tobytes(), made, dtype if whole else _SINGLE, None if whole else left)


@functools.cache
def _entry(name: str, element: str, result: str, across: bool) -> Any:
    code = printed(text, name, element, result, across, host()).keep()
    return runner(code.address("reduce"))


def text(name: str, element: str, result: str, across: bool, target: Host) -> str:
    """`reduce(job)`. result: in which elements; across: whether there are columns, else rows are
    runs of memory.
    """
    module = Module(target)

    def units(f: Emitter, job: Record) -> Units:
        printing = _columns if across else _run

        def unit(u: Value) -> None:
            n = f.div(u, job.segments)
            start = (u - n * job.segments) * job.segment
            count = f.min(job.segment, job.length - start)
            x = f.at(job.pointer("x"), (n * job.length + start) * job.inner, element)
            y = f.at(job.pointer("y"), u * job.inner, result)

            def put(total: Value, column: Value | int = 0) -> None:
                f.store(f.convert(total, result), f.at(y, column, result))

            printing(f, name, element, x, put, count, job)

        return job.units, unit

    deal_out_units(module, "reduce", _FIELDS, units)
    return module.text()


def _lanes(f: Emitter) -> int:
    return f.module.target.vector_bytes // 4


def _wide(f: Emitter, at: Value, element: str, lanes: int) -> Value:
    return f.convert(f.load(typed(element, lanes), at), "f32")


def _run(
    f: Emitter, name: str, element: str, x: Value, put: _Put, count: Value, job: Record
) -> None:
    """One number of `count` that lie side by side."""
    combine, start = _OPS[name]
    lanes = _lanes(f)

    def vectors(many: int) -> Callable[[Value, list[Value]], list[Value]]:
        def some(i: Value, sums: list[Value]) -> list[Value]:
            read = [_wide(f, f.at(x, i + k * lanes, element), element, lanes) for k in range(many)]
            return [combine(f, s, v) for s, v in zip(sums, read)] + sums[many:]

        return some

    none = f.constant(typed("f32", lanes), start)
    full, whole = count & -(_SUMS * lanes), count & -lanes
    sums = f.loop(0, full, _SUMS * lanes, vectors(_SUMS), [none] * _SUMS, maybe_empty=True)
    sums = f.loop(full, whole, lanes, vectors(1), sums, maybe_empty=True)
    while len(sums) > 1:
        sums = [combine(f, a, b) for a, b in zip(sums[::2], sums[1::2], strict=True)]
    total = f.reduce(sums[0], lambda a, b: combine(f, a, b))

    def one(i: Value, held: list[Value]) -> list[Value]:
        return [combine(f, held[0], _wide(f, f.at(x, i, element), element, 1))]

    (total,) = f.loop(whole, count, 1, one, [total], maybe_empty=True)
    put(total)


def _columns(
    f: Emitter, name: str, element: str, x: Value, put: _Put, count: Value, job: Record
) -> None:
    """A number for each of the columns, of `count` rows."""
    combine, start = _OPS[name]
    inner = job.inner

    def block(many: int, lanes: int) -> Callable[[Value], None]:
        def columns(c: Value) -> None:
            begin = f.at(x, c, element)

            def row(i: Value, sums: list[Value]) -> list[Value]:
                at = f.at(begin, i * inner, element)
                read = [_wide(f, f.at(at, k * lanes, element), element, lanes) for k in range(many)]
                return [combine(f, s, v) for s, v in zip(sums, read, strict=True)]

            none = f.constant(typed("f32", lanes), start)
            for k, total in enumerate(f.loop(0, count, 1, row, [none] * many)):
                put(total, c + k * lanes)

        return columns

    lanes = _lanes(f)
    first: Value | int = 0
    for many in _ABREAST:
        stop = inner & -(many * lanes)
        each(f, first, stop, block(many, lanes), many * lanes)
        first = stop
    last = inner - lanes  # the last vector ends the row: some of its columns are summed again
    each(f, last, last + f.min(inner - first, 1), block(1, lanes))
