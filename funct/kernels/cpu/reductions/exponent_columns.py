"""What sums of exponentials need of columns, in two walks down their rows: nothing is written but
what is left of each column.

The greatest of so many columns as a few vectors have stay in registers in the first walk, and the
sums of exp(x - it) in the second. Where there are many bytes some rows go by at a time, so that
memory is read nearly as it lies. The last strip ends the row: some columns are computed twice.
"""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import Host, host, printed
from funct.kernels.cpu.elementwise.vector_loops import PRINTED, registers
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.runners import runner
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.tasks import Units, deal_out_units
from funct.kernels.llvm import Emitter, Module, Value, each, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FIELDS", "sums_of_columns", "text"]

FIELDS = Fields(("x", "y", "tasks", "blocks", "rows", "columns", "strips", "pieces", "together"))
_rest = struct.Struct(f"{len(FIELDS) - 2}q").pack
_ELEMENTS = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_STRIPS = 8  # of a piece of a row
_TOGETHER, _NEAR = 16, 1 << 18  # rows, where there are more bytes
_TASK = 1 << 13  # elements that are worth a task


def sums_of_columns(x: NDArray[Any], blocks: int, rows: int, columns: int) -> NDArray[Any]:
    """Of each column of blocks of rows, (3, blocks, columns): its greatest, or 0 for what is not
    finite; how often it is there; and the sum of exp(x - it) of the others. x: contiguous.
    """
    run, rest = _plan(x.dtype, blocks, rows, columns)
    y = fresh((3, blocks, columns), x.dtype)
    run(x, y, rest)
    return y


@functools.lru_cache(512)
def _plan(dtype: np.dtype[Any], blocks: int, rows: int, columns: int) -> tuple[Any, bytes]:
    """The code, and the job behind the addresses."""
    lanes = _lanes(dtype.itemsize, columns, host())
    strips = -(-columns // lanes)
    size = blocks * rows * columns
    pieces = max(-(-strips // _STRIPS), min(strips, host().cores))
    together = rows if size * dtype.itemsize <= _NEAR else _TOGETHER
    tasks = max(1, min(blocks * pieces, size // _TASK, 4 * host().cores))
    code = printed(text, _ELEMENTS[dtype], lanes, columns < lanes, host()).keep()
    rest = _rest(tasks, blocks, rows, columns, strips, pieces, together)
    return runner(code.address("sums")), rest


def _lanes(bytes: int, columns: int, target: Host) -> int:
    """Columns of a strip: as many vectors as an exponential is computed of at once, or one."""
    whole = target.vector_bytes // bytes
    return next((n * whole for n in registers("exp") if columns >= n * whole), whole)


def text(element: str, lanes: int, short: bool, target: Host) -> str:
    """`sums(job)` of columns, of which a strip has so many. short: they are fewer."""
    module, kind = Module(target), typed(element, lanes)

    def units(f: Emitter, job: Record) -> Units:
        rows, columns, strips, pieces = job.rows, job.columns, job.strips, job.pieces
        mask = f.first_lanes(lanes, columns) if short else None
        room = f.allocate(typed(element), 3 * _STRIPS * lanes)
        size = job.blocks * columns
        zero = f.constant(kind, 0)

        def piece(u: Value) -> None:
            block = f.div(u, pieces)
            k = u - block * pieces
            begin, end = (f.div((k + more) * strips, pieces) for more in (0, 1))

            def first(s: Value) -> Value:
                return s * lanes if short else f.min(s * lanes, columns - lanes)

            def place(s: Value, which: int) -> Value:
                return f.at(room, ((s - begin) * 3 + which) * lanes, element)

            def held(s: Value, which: int) -> Value:
                return f.load(kind, place(s, which))

            def read(s: Value, r: Value | int) -> Value:
                x = f.at(job.pointer("x"), (block * rows + r) * columns + first(s), element)
                return f.load(kind, x, mask)

            def walk(start: int, body: Any) -> None:
                """body(strip, row, row behind the last one)."""

                def some(r: Value) -> None:
                    stop = f.min(r + job.together, rows)
                    each(f, begin, end, lambda s: body(s, r, stop))

                each(f, start, rows, some, job.together)

            def compare(s: Value, r: Value, stop: Value) -> None:
                (top,) = f.loop(
                    r, stop, 1, lambda i, v: [f.maximum(v[0], read(s, i))], [held(s, 0)]
                )
                f.store(top, place(s, 0))

            def add(s: Value, r: Value, stop: Value) -> None:
                top = held(s, 0)
                less = finite(top)

                def row(i: Value, sums: list[Value]) -> list[Value]:
                    x = read(s, i)
                    same = f.select(f.eq(x, top), f.constant(kind, 1), zero)
                    return [sums[0] + same, sums[1] + (PRINTED["exp"](f, x - less) - same)]

                found = f.loop(r, stop, 1, row, [held(s, 1), held(s, 2)])
                for which, v in enumerate(found, 1):
                    f.store(v, place(s, which))

            def finite(top: Value) -> Value:
                return f.select(f.eq(top - top, 0), top, zero)

            def start(s: Value) -> None:
                for which, v in enumerate((read(s, 0), zero, zero)):
                    f.store(v, place(s, which))

            def put(s: Value) -> None:
                found = finite(held(s, 0)), held(s, 1), held(s, 2)
                for which, v in enumerate(found):
                    y = f.at(job.pointer("y"), size * which + block * columns + first(s), element)
                    f.store(v, y, mask)

            each(f, begin, end, start)
            walk(0, compare)
            walk(0, add)
            each(f, begin, end, put)

        return job.blocks * pieces, piece

    deal_out_units(module, "sums", FIELDS, units)
    return module.text()
