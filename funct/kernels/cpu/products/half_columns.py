"""Few rows of a product of half-precision matrices whose right one has its columns in memory, as
weights of layers have them: squares of it are transposed in registers.

As everywhere, an element is summed along the depth in one sum (Note [Same bits] in `half_text.py`).
"""

from __future__ import annotations

import functools

from funct.kernels.cpu.dense.dots import Dot
from funct.kernels.cpu.dense.turn import transposed
from funct.kernels.cpu.record import Record
from funct.kernels.llvm import F32, Emitter, Value, each, typed

__all__ = ["FEW_TURNED", "few_rows_by_columns"]

FEW_TURNED = 4  # rows; more are worth panels
# Rows at a time, and squares beside each other: one sum alone would wait for itself.
_GROUPS = (4, 1), (2, 1), (1, 2)
_LINE, _AHEAD = 32, 128  # elements: of a line of the cache, and how far ahead one is asked for


def few_rows_by_columns(
    f: Emitter, job: Record, element: str, dot: Dot, left: Value, y: Value, out: Value,
    count: Value, columns: Value,
) -> None:  # fmt: skip
    """Print `count` rows of the result from rows of float32, `left`, and columns of elements, y: at
    least as many as a vector has lanes. The last square takes columns again.
    """
    lanes = f.module.target.vector_bytes // 4
    vector = typed("f32", lanes)
    square = f.allocate(F32, lanes)

    def block(m: Value, rows: int, places: list[Value]) -> None:
        lines = [f.at(left, (m + r) * job.left_row, "f32") for r in range(rows)]
        begin = [[f.at(y, (o + c) * job.y_row, element) for c in range(lanes)] for o in places]

        def add(k: Value, right: Value, sums: list[Value]) -> list[Value]:
            ways = [f.splat(f.load(F32, f.at(line, k, "f32")), lanes) for line in lines]
            return [dot.step(f, s, a, right) for s, a in zip(sums, ways, strict=True)]

        def line(k: Value, held: list[Value]) -> list[Value]:
            """A line of the cache of each column, square by square: columns that lie pages apart
            have the same few places there.
            """
            out = []
            for b, of_columns in enumerate(begin):
                for p in of_columns:
                    f.prefetch(f.at(f.at(p, k, element), _AHEAD, element))
                stop = f.min(k + _LINE, whole)
                mine = held[b * rows : (b + 1) * rows]
                out += f.loop(k, stop, lanes, functools.partial(turn, of_columns), mine)
            return out

        def turn(of_columns: list[Value], k: Value, sums: list[Value]) -> list[Value]:
            held = [_wide(f, element, f.at(p, k, element), lanes) for p in of_columns]
            for i, right in enumerate(transposed(f, held)):
                sums = add(k + i, right, sums)
            return sums

        def one(k: Value, held: list[Value]) -> list[Value]:
            out = []
            for b, of_columns in enumerate(begin):
                for c, p in enumerate(of_columns):
                    f.store(_wide(f, element, f.at(p, k, element), 1), f.at(square, c, "f32"))
                out += add(k, f.load(vector, square), held[b * rows : (b + 1) * rows])
            return out

        whole = job.depth - f.rem(job.depth, lanes)
        zeros = [f.constant(vector, 0)] * (rows * len(places))
        sums = f.loop(0, whole, _LINE, line, zeros, maybe_empty=True)
        sums = f.loop(whole, job.depth, 1, one, sums, maybe_empty=True)
        for n, s in enumerate(sums):
            row, o = m + n % rows, places[n // rows]
            f.store(f.convert(s, element), f.at(f.at(out, row * job.columns, element), o, element))

    def some(m: Value, rows: int, beside: int) -> None:
        whole = columns - f.rem(columns, beside * lanes)

        def squares(o: Value) -> None:
            block(m, rows, [o + b * lanes for b in range(beside)])

        each(f, 0, whole, squares, beside * lanes)
        each(f, whole, columns, lambda o: block(m, rows, [f.min(o, columns - lanes)]), lanes)

    first: Value | int = 0
    for rows, beside in _GROUPS:
        stop = count - f.rem(count, rows)
        each(f, first, stop, functools.partial(some, rows=rows, beside=beside), rows)
        first = stop


def _wide(f: Emitter, element: str, place: Value, lanes: int) -> Value:
    return f.convert(f.load(typed(element, lanes), place), "f32")
