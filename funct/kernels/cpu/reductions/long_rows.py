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
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.reductions.columns import COMBINED, carried
from funct.kernels.cpu.reductions.pairwise import PARTS
from funct.kernels.cpu.reductions.short_rows import result_of
from funct.kernels.cpu.reductions.wide_columns import ELEMENTS
from funct.kernels.cpu.runners import runner
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.tasks import Units, deal_out_units
from funct.kernels.llvm import Emitter, Module, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PAYS", "of_runs", "shortest", "text"]

_FIELDS = Fields(("x", "y", "tasks", "units", "segments", "segment", "length"))
_rest = struct.Struct(f"{len(_FIELDS) - 2}q").pack
_ABREAST = 8  # vectors that are gathered by turns
_PAIRS = "prod of pairs"  # of the parts of complex numbers
_SHORT = 128  # elements up to which rows are short,
_FACTORS = 32  # and where products are sooner made in an order of our own
_OWN = {np.dtype(char) for char in "fdlL"}  # of which they are, without being widened
_SEGMENT = 1 << 17
_TASK = 1 << 15  # elements that are worth a task,
PAYS = 1 << 11  # and a call of this
_REDUCE: dict[str, Any] = {
    "prod": np.multiply.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce,
}  # fmt: skip
_BOOL = np.dtype(bool)


def shortest(name: str, dtype: np.dtype[Any]) -> int:
    """Of how many elements rows are too short here."""
    return _FACTORS if name == "prod" and dtype in _OWN else _SHORT


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
    y = fresh(plan.made, plan.dtype)
    plan.run(x, y, plan.rest)
    if plan.several:
        y = _REDUCE[name](y, -1)
    y = y.reshape(plan.left)
    return y if plan.left else y[()]


class _Plan(Struct, frozen=True, eq=False):
    """The code, the shape of what it makes and of what is left, their dtype, and the job behind the
    addresses. several: whether rows have segments, which are the last axis of what it makes.
    """

    run: Any
    made: tuple[int, ...]
    left: tuple[int, ...]
    dtype: np.dtype[Any]
    rest: bytes
    several: bool


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
        _entry(how, element), (rows, segments), (*kept, *(1,) * len(order)) if keepdims else kept,
        result_of(name, dtype), several=segments > 1,
        rest=_rest(tasks, rows * segments, segments, -(-length // segments), length),
    )  # fmt: skip


@functools.cache
def _entry(name: str, element: str) -> Any:
    code = printed(text, name, element, host()).keep()
    return runner(code.address("reduce"))


def text(name: str, element: str, target: Host) -> str:
    """`reduce(job)` of rows of `length` elements, in segments."""
    module = Module(target)
    parts, segment = (2, _segment_of_pairs) if name == _PAIRS else (1, _segment)

    def units(f: Emitter, job: Record) -> Units:
        def unit(u: Value) -> None:
            row = f.div(u, job.segments)
            start = (u - row * job.segments) * job.segment
            count = f.min(job.segment, job.length - start)
            x = f.at(job.pointer("x"), (row * job.length + start) * parts, element)
            found = segment(f, name, element, x, count)
            for k, part in enumerate(found):
                f.store(part, f.at(job.pointer("y"), u * parts + k, part.type.element))

        return job.units, unit

    deal_out_units(module, "reduce", _FIELDS, units)
    return module.text()


def _segment(f: Emitter, name: str, element: str, x: Value, count: Value) -> list[Value]:
    """Of a vector's elements at least."""
    kind = carried(name, element)
    lanes = f.module.target.vector_bytes // typed(kind).bytes
    combine = functools.partial(COMBINED[name], f)

    def read(i: Value | int, lanes: int = lanes) -> Value:
        return f.convert(f.load(typed(element, lanes), f.at(x, i, element)), kind)

    def several(i: Value, held: list[Value]) -> list[Value]:
        return [combine(v, read(i + k * lanes)) for k, v in enumerate(held)]

    def one(i: Value, held: list[Value]) -> list[Value]:
        return [combine(held[0], read(i)), *held[1:]]

    def single(i: Value, held: list[Value]) -> list[Value]:
        return [combine(held[0], read(i, 1))]

    factors = name == "prod"
    begin = f.constant(typed(kind, lanes), 1) if factors else read(0)
    full, whole = count & -(_ABREAST * lanes), count & -lanes

    def by_turns() -> list[Value]:
        held = f.loop(0, full, _ABREAST * lanes, several, [begin] * _ABREAST)
        held = f.loop(full, whole, lanes, one, held, maybe_empty=True)
        while len(held) > 1:
            held = [combine(a, b) for a, b in zip(held[::2], held[1::2], strict=True)]
        return held

    def few() -> list[Value]:
        return f.loop(0, whole, lanes, one, [begin], maybe_empty=True)

    (held,) = f.branch(f.ne(full, 0), by_turns, few)
    if not factors:
        held = combine(held, read(count - lanes))  # some for the second time
    total = f.reduce(held, combine)
    return f.loop(whole, count, 1, single, [total], maybe_empty=True) if factors else [total]


def _segment_of_pairs(
    f: Emitter, name: str, element: str, x: Value, count: Value
) -> list[Value]:  # fmt: skip
    """The parts of a product of complex numbers."""
    lanes = f.module.target.vector_bytes // typed(element).bytes
    abreast = _ABREAST // 2

    def read(i: Value, lanes: int = lanes) -> list[Value]:
        both = f.load(typed(element, 2 * lanes), f.at(x, i * 2, element))
        return [f.shuffle(both, None, range(k, 2 * lanes, 2)) for k in (0, 1)]

    def times(a: list[Value], b: list[Value]) -> list[Value]:
        return [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]

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
