"""Sums, products, extrema and truth of many columns: eight vectors of them stay in registers while
rows go by.

NumPy takes row after row, and reads and writes what it has gathered for each. Every column is still
added from its first row on, so sums and products of floats have NumPy's bits. The last strip ends
the row: some columns are computed twice. Where there are many bytes some rows go by at a time, so
that memory is read nearly as it lies.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from msgspec import Struct

from funct.device import Host, host, printed
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.prepared import Job
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.reductions.pairwise import PARTS
from funct.kernels.cpu.reductions.segments import COMBINED, carried
from funct.kernels.cpu.reductions.short_rows import ELEMENTS as OF_SHORT_ROWS
from funct.kernels.cpu.reductions.short_rows import result_of
from funct.kernels.cpu.runners import runner
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.tasks import Units, deal_out_units
from funct.kernels.llvm import I64, Emitter, Module, Value, each, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ELEMENTS", "job", "of_many_columns", "text"]

_FIELDS = Fields(("x", "y", "tasks", "blocks", "rows", "columns", "strips", "pieces", "together"))
_rest, _words = (getattr(struct.Struct(f"{len(_FIELDS) - 2}q"), n) for n in ("pack", "unpack"))
_ABREAST = 8  # vectors of a strip,
_STRIPS = 8  # and strips of a piece of a row
_TOGETHER, _NEAR = 16, 1 << 18  # rows, where there are more bytes
_LEAST_ROWS = 4
_TERMS = 1 << 10  # of halves, that are one sum in float32
_FAR = 1 << 23  # bytes that do not come from caches
_TASK = 1 << 15  # elements that are worth a task,
_PAYS = 1 << 12  # and a call of this
ELEMENTS = OF_SHORT_ROWS | {
    np.dtype(np.uint16): "u16", np.dtype(np.int16): "i16", np.dtype(np.uint32): "u32",
}  # fmt: skip
_HALVES = {np.dtype(np.float16): "f16", np.dtype(ml_dtypes.bfloat16): "bf16"}
_TRUTH = frozenset(["any", "all"])
_NAMES = _TRUTH | {"sum", "prod", "max", "min"}
_BOOL = np.dtype(bool)


def of_many_columns(name: str, x: NDArray[Any], axis: Any, keepdims: bool) -> Any:
    """What NumPy gives for one axis before the last one; None where NumPy is to do it."""
    if axis.__class__ is tuple and len(axis) == 1:
        (axis,) = axis
    if axis.__class__ is not int or x.size < _PAYS:
        return None
    plan = _plan(name, x.shape, x.dtype, axis, keepdims)
    if plan is None or not x.flags.c_contiguous or not x.flags.aligned or not ready(x.size):
        return None
    y = fresh(plan.left, plan.dtype)
    plan.run(x, y, plan.rest)
    return y


def job(name: str, x: NDArray[Any], axis: Any, keepdims: bool) -> Job | None:
    """What `of_many_columns` runs for arrays that are dense and lie so."""
    if axis.__class__ is tuple and len(axis) == 1:
        (axis,) = axis
    if axis.__class__ is not int or x.size < _PAYS:
        return None
    plan = _plan(name, x.shape, x.dtype, axis, keepdims)
    return None if plan is None else Job(plan.code, plan.left, plan.dtype, _words(plan.rest))


class _Plan(Struct, frozen=True, eq=False):
    """The code, the shape and the dtype of what is left, and the job behind the addresses."""

    name: str
    element: str
    left: tuple[int, ...]
    dtype: np.dtype[Any]
    rest: bytes

    @property
    def code(self) -> int:
        """Where it is."""
        return _entry(self.name, self.element)

    @property
    def run(self) -> Any:
        """The code."""
        return runner(self.code)


@functools.lru_cache(512)
def _plan(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], axis: int, keepdims: bool
) -> _Plan | None:
    rank, part = len(shape), dtype
    if name == "sum" and dtype in PARTS:
        part = PARTS[dtype]
    element = ELEMENTS.get(part) or _HALVES.get(part)
    if element is None or (name in _TRUTH) != (dtype == _BOOL and name not in ("sum", "prod")):
        return None
    if name not in _NAMES or not -rank <= axis < rank - 1 or axis == -1:
        return None
    k = axis % rank
    blocks, rows, columns = prod(shape[:k]), shape[k], prod(shape[k + 1 :])
    columns *= dtype.itemsize // part.itemsize
    strip = _ABREAST * _lanes(name, element, host())
    if rows < _LEAST_ROWS or columns < strip or (part in _HALVES and rows > _TERMS):
        return None
    result = part if part in _HALVES else result_of(name, part)
    size = blocks * rows * columns
    if size * part.itemsize > _FAR and result.itemsize == part.itemsize:
        return None  # NumPy, too, waits for memory alone
    strips = -(-columns // strip)
    pieces = max(-(-strips // _STRIPS), min(strips, host().cores))
    together = rows if size * part.itemsize <= _NEAR else _TOGETHER
    tasks = max(1, min(blocks * pieces, size // _TASK, 4 * host().cores))
    left = (*shape[:k], *(1,) * keepdims, *shape[k + 1 :])
    rest = _rest(tasks, blocks, rows, columns, strips, pieces, together)
    return _Plan(name, element, left, result if part is dtype else dtype, rest)


def _lanes(name: str, element: str, target: Host) -> int:
    return target.vector_bytes // typed(carried(name, element)).bytes


@functools.cache
def _entry(name: str, element: str) -> int:
    return printed(text, name, element, host()).keep().address("reduce")


def text(name: str, element: str, target: Host) -> str:
    """`reduce(job)` of blocks of rows, each of a strip's columns at least."""
    module = Module(target)

    def units(f: Emitter, job: Record) -> Units:
        rows, columns, strips, pieces = job.rows, job.columns, job.strips, job.pieces
        kind, lanes = carried(name, element), _lanes(name, element, target)
        wide, result = _ABREAST * lanes, element if element in _HALVES.values() else kind
        room = f.allocate(typed(kind), _STRIPS * wide)

        def piece(u: Value) -> None:
            block = f.div(u, pieces)
            k = u - block * pieces
            begin, end = (f.div((k + more) * strips, pieces) for more in (0, 1))

            def first(s: Value) -> Value:
                return f.min(s * wide, columns - wide)

            def held(s: Value) -> list[Value]:
                return [f.load(typed(kind, lanes), at) for at in places(s)]

            def places(s: Value) -> list[Value]:
                return [f.at(room, (s - begin) * wide + k * lanes, kind) for k in range(_ABREAST)]

            def some(r: Value) -> None:
                def strip(s: Value) -> None:
                    x = f.at(job.pointer("x"), block * rows * columns + first(s), element)
                    some = r, f.min(r + job.together, rows)
                    before = functools.partial(held, s)
                    totals = _gathered(f, name, element, lanes, x, some, columns, before)
                    for v, at in zip(totals, places(s), strict=True):
                        f.store(v, at)

                each(f, begin, end, strip)

            def put(s: Value) -> None:
                y = f.at(job.pointer("y"), block * columns + first(s), result)
                for k, v in enumerate(held(s)):
                    f.store(f.convert(v, result), f.at(y, k * lanes, result))

            each(f, 0, rows, some, job.together)
            each(f, begin, end, put)

        return job.blocks * pieces, piece

    deal_out_units(module, "reduce", _FIELDS, units)
    return module.text()


def _gathered(
    f: Emitter, name: str, element: str, lanes: int, x: Value, rows: tuple[Value, Value],
    columns: Value, before: Callable[[], list[Value]],
) -> list[Value]:  # fmt: skip
    """The vectors of a strip that begins at x, from a row to another, and what was before."""
    kind = carried(name, element)

    def read(r: Value | int) -> list[Value]:
        at = f.at(x, columns * r, element)
        places = [f.at(at, k * lanes, element) for k in range(_ABREAST)]
        return [f.convert(f.load(typed(element, lanes), place), kind) for place in places]

    def row(r: Value, held: list[Value]) -> list[Value]:
        return [COMBINED[name](f, a, b) for a, b in zip(held, read(r), strict=True)]

    def first() -> list[Value]:
        found = read(0)
        if name == "sum" and element == kind:
            found = [v + 0 for v in found]  # as NumPy's sums of floats are never -0
        return found

    start, stop = rows
    begin = f.branch(f.eq(start, 0), first, before)
    start = f.max(start, f.constant(I64, 1))
    return f.loop(start, stop, 1, row, begin, maybe_empty=True)
