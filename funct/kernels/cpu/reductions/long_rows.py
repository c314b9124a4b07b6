"""Extrema and products of many numbers that lie side by side, in vectors, eight of them by turns.

NumPy takes the factors of a product one after the other, and begins anew in each row. Extrema have
no order. The factors of a product have one of our own, which depends on the length alone: what is
the same place of every eighth vector is multiplied first; of complex numbers, whose parts are
vectors of their own, of every fourth. Long rows are halved into segments for
the threads, where the length says, not their number.
"""

from __future__ import annotations

import functools
import struct
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import Host, host, printed
from funct.kernels.cpu.loops import compiles, ready
from funct.kernels.cpu.prepared import Job
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.reductions.pairwise import PARTS
from funct.kernels.cpu.reductions.segments import ABREAST, COMBINED, FACTORS, carried, segment
from funct.kernels.cpu.reductions.short_rows import result_of
from funct.kernels.cpu.reductions.wide_columns import ELEMENTS
from funct.kernels.cpu.runners import runner
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.tasks import Units, deal_out_units
from funct.kernels.elementwise.thresholds import MANY
from funct.kernels.llvm import I64, Emitter, Module, Type, Value, each, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PAYS", "job", "of_runs", "shortest", "text"]

_FIELDS = Fields(("x", "y", "parts", "tasks", "rows", "segments", "segment", "length"))
_rest, _words = (getattr(struct.Struct(f"{len(_FIELDS) - 3}q"), n) for n in ("pack", "unpack"))
_PAIRS = "prod of pairs"  # of the parts of complex numbers
_SHORT = 128  # elements up to which rows are short, but for products
_OWN = {np.dtype(char) for char in "fdlL"}  # which are not widened
_SEGMENT = 1 << 17
_TASK = 1 << 15  # elements that are worth a task
PAYS = MANY  # elements from which on products have an order of our own
_BOOL = np.dtype(bool)


def shortest(name: str, dtype: np.dtype[Any]) -> int:
    """Of how many elements rows are too short here."""
    return FACTORS if name == "prod" and dtype in _OWN else _SHORT


def of_runs(name: str, x: NDArray[Any], axis: Any, keepdims: bool) -> Any:
    """prod, max or min of all elements, or over the last axis; None where NumPy is to do it."""
    if x.size < PAYS or not x.flags.c_contiguous or not x.flags.aligned:
        return None
    if axis is not None and axis.__class__ is not int and axis.__class__ is not tuple:
        return None
    plan = _plan(name, x.shape, x.dtype, axis, keepdims)
    ordered = name == "prod" and x.dtype.kind not in "biu"  # in another order than by NumPy
    if plan is None or not (compiles() if ordered else ready(x.size)):
        return None
    y = fresh(plan.left, plan.dtype)
    parts = y if plan.segments == 1 else fresh((*plan.left, plan.segments), plan.dtype)
    runner(plan.code)(x, y, parts, plan.rest)
    return y


def job(name: str, x: NDArray[Any], axis: Any, keepdims: bool) -> Job | None:
    """What `of_runs` runs for arrays that are dense and lie so."""
    if axis is not None and axis.__class__ is not int and axis.__class__ is not tuple:
        return None
    plan = _plan(name, x.shape, x.dtype, axis, keepdims) if x.size >= PAYS else None
    if plan is None:
        return None
    room = prod(plan.left) * plan.segments * plan.dtype.itemsize if plan.segments > 1 else 0
    return Job(plan.code, plan.left, plan.dtype, _words(plan.rest), room)


class _Plan(Struct, frozen=True, eq=False):
    """The code, the shape and the dtype of what is left, the segments of a row, and the job behind
    the addresses.
    """

    code: int
    left: tuple[int, ...]
    dtype: np.dtype[Any]
    segments: int
    rest: bytes


@functools.lru_cache(512)
def _plan(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], axis: Any, keepdims: bool
) -> _Plan | None:
    rank, element, how = len(shape), ELEMENTS.get(dtype), name
    if dtype in PARTS and name == "prod":
        element, how = ELEMENTS[PARTS[dtype]], _PAIRS
    axes = range(rank) if axis is None else axis if axis.__class__ is tuple else (axis,)
    if element is None or not all(a.__class__ is int and -rank <= a < rank for a in axes):
        return None
    order = sorted([a % rank for a in axes])
    if not order or order not in ([*range(rank)], [rank - 1]):
        return None
    kept = shape[: rank - len(order)]
    rows, length = prod(kept), prod(shape[len(kept) :])
    if length <= shortest(name, dtype) or (dtype == _BOOL and name != "prod"):
        return None
    segments = -(-length // _SEGMENT)
    tasks = max(1, min(rows * segments, rows * length // _TASK, 4 * host().cores))
    return _Plan(
        _entry(how, element), (*kept, *(1,) * len(order)) if keepdims else kept,
        result_of(name, dtype), segments,
        _rest(tasks, rows, segments, -(-length // segments), length),
    )  # fmt: skip


@functools.cache
def _entry(name: str, element: str) -> int:
    return printed(text, name, element, host()).keep().address("reduce")


def text(name: str, element: str, target: Host) -> str:
    """`reduce(job)` of rows of `length` elements, in segments."""
    module = Module(target)
    parts, whole = (2, _segment_of_pairs) if name == _PAIRS else (1, segment)

    def at(f: Emitter, job: Record, name: str, u: Value, k: int, part: Type) -> Value:
        return f.at(job.pointer(name), u * parts + k, part.element)

    def units(f: Emitter, job: Record) -> Units:
        def unit(u: Value) -> None:
            row = f.div(u, job.segments)
            start = (u - row * job.segments) * job.segment
            count = f.min(job.segment, job.length - start)
            x = f.at(job.pointer("x"), (row * job.length + start) * parts, element)
            for k, part in enumerate(whole(f, name, element, x, count)):
                f.store(part, at(f, job, "parts", u, k, part.type))

        return job.rows * job.segments, unit

    def behind(f: Emitter, job: Record) -> None:
        """Segments, one after the other."""
        kind = typed(carried(name.split()[0], element))

        def several(r: Value) -> None:
            def read(s: Value) -> list[Value]:
                u = r * job.segments + s
                return [f.load(kind, at(f, job, "parts", u, k, kind)) for k in range(parts)]

            def one(s: Value, held: list[Value]) -> list[Value]:
                return _combined(f, name, held, read(s))

            first = read(f.constant(I64, 0))
            for k, part in enumerate(f.loop(1, job.segments, 1, one, first)):
                f.store(part, at(f, job, "y", r, k, kind))

        f.when(job.segments > 1, lambda: each(f, 0, job.rows, several))

    deal_out_units(module, "reduce", _FIELDS, units, behind)
    return module.text()


def _combined(f: Emitter, name: str, a: list[Value], b: list[Value]) -> list[Value]:
    """Two of what segments are reduced to as one."""
    if name == _PAIRS:
        return [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
    return [COMBINED[name](f, a[0], b[0])]


def _segment_of_pairs(
    f: Emitter, name: str, element: str, x: Value, count: Value
) -> list[Value]:  # fmt: skip
    """The parts of a product of complex numbers."""
    lanes = f.module.target.vector_bytes // typed(element).bytes
    abreast = ABREAST // 2

    def read(i: Value, lanes: int = lanes) -> list[Value]:
        both = f.load(typed(element, 2 * lanes), f.at(x, i * 2, element))
        return [f.shuffle(both, None, range(k, 2 * lanes, 2)) for k in (0, 1)]

    times = functools.partial(_combined, f, name)

    def several(i: Value, held: list[Value]) -> list[Value]:
        pairs = [times(held[2 * k : 2 * k + 2], read(i + k * lanes)) for k in range(abreast)]
        return [part for pair in pairs for part in pair]

    def one(i: Value, held: list[Value]) -> list[Value]:
        return times(held, read(i))

    def single(i: Value, held: list[Value]) -> list[Value]:
        return times(held, read(i, 1))

    none = [f.constant(typed(element, lanes), v) for v in (1, 0)]
    full, whole = count & -(abreast * lanes), count & -lanes
    held = f.loop(0, full, abreast * lanes, several, none * abreast, maybe_empty=True)
    while len(held) > 2:
        quads = [held[k : k + 4] for k in range(0, len(held), 4)]
        held = [part for quad in quads for part in times(quad[:2], quad[2:])]
    held = f.loop(full, whole, lanes, one, held, maybe_empty=True)
    while lanes > 1:
        lanes //= 2
        halves = [range(lanes), range(lanes, 2 * lanes)]
        low, high = ([f.shuffle(v, None, half) for v in held] for half in halves)
        held = times(low, high)
    return f.loop(whole, count, 1, single, held, maybe_empty=True)
