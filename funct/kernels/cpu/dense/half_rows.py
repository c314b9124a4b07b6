"""Few rows of a product of half-precision matrices: the right one is read where it lies.

So few rows use each of its elements too seldom for panels, which take a store and a load of each.
An element of the result is summed as in tiles: along the depth, word by word, in one sum.
"""

from __future__ import annotations

from funct.kernels.cpu.dense.dots import Dot
from funct.kernels.cpu.record import Record
from funct.kernels.llvm import Emitter, Value, each, typed

__all__ = ["AHEAD", "NARROWEST", "few_rows"]

AHEAD = 8  # rows of words
NARROWEST = 4  # elements of a vector
_LINE = 32  # elements of a cache line
# Rows at a time, and by the lanes of a vector how many vectors of each: about half of the registers
# hold sums, as many as two units of latency 4 need.
_ROWS = 8, 2, 1
_VECTORS = {16: {8: 2, 2: 4, 1: 16}, 8: {8: 1, 2: 4, 1: 8}, 4: {8: 1, 2: 4, 1: 4}}


def few_rows(
    f: Emitter, job: Record, element: str, dot: Dot, left: Value, y: Value, out: Value,
    count: Value, columns: Value,
) -> None:  # fmt: skip
    """Print `count` rows of the result from rows of words, `left`, and rows of elements, y.

    The last vector of a row takes columns again that it shares with the one before, so that it is
    full. There are at least NARROWEST columns where words are pairs.
    """
    full = f.module.target.vector_bytes // 4
    least = NARROWEST if dot.per_word > 1 else 1

    def block(m: Value, rows: int, o: Value, lanes: int, vectors: int) -> None:
        total = typed("f32", lanes)
        lines = [f.at(left, (m + r) * job.left_row, dot.word) for r in range(rows)]

        def step(k: Value, held: list[Value]) -> list[Value]:
            here = f.at(y, k * dot.per_word * job.y_row + o, element)
            if rows == 1:  # of a matrix that may be large
                for column in range(0, vectors * lanes, _LINE) if vectors > 1 else ():
                    for ahead in range(AHEAD, AHEAD + dot.per_word):
                        f.prefetch(f.at(here, job.y_row * ahead + column, element))
            right = [
                _words(f, job, element, dot, f.at(here, v * lanes, element), lanes)
                for v in range(vectors)
            ]
            sums = []
            for r, line in enumerate(lines):
                a = f.splat(f.load(typed(dot.word), f.at(line, k, dot.word)), lanes)
                mine = held[r * vectors : (r + 1) * vectors]
                sums += [dot.step(f, x, a, b) for x, b in zip(mine, right, strict=True)]
            return sums

        sums = f.loop(0, job.depth, 1, step, [f.constant(total, 0)] * (rows * vectors))
        for n, x in enumerate(sums):
            to = f.at(out, (m + n // vectors) * job.columns + o, element)
            f.store(f.convert(x, element), f.at(to, n % vectors * lanes, element))

    def rest(m: Value, rows: int, begin: Value | int, lanes: int) -> None:
        def fits() -> list[Value]:
            each(f, begin, columns, lambda o: block(m, rows, f.min(o, columns - lanes), lanes, 1),
                 lanes)  # fmt: skip
            return []

        def narrower() -> list[Value]:
            rest(m, rows, begin, lanes // 2 if lanes > NARROWEST else 1)
            return []

        if lanes == least:
            fits()
        else:
            f.branch(columns < lanes, narrower, fits)

    first: Value | int = 0
    for rows in _ROWS:
        vectors = _VECTORS[full][rows]
        wide = vectors * full

        def some(m: Value, rows: int = rows, vectors: int = vectors, wide: int = wide) -> None:
            whole = columns - f.rem(columns, wide)
            if vectors > 1:
                each(f, 0, whole, lambda o: block(m, rows, o, full, vectors), wide)
            begin: Value | int = whole if vectors > 1 else 0
            f.when(columns > begin, lambda: rest(m, rows, begin, full))

        stop = count & -rows
        each(f, first, stop, some, rows)
        first = stop


def _words(f: Emitter, job: Record, element: str, dot: Dot, here: Value, lanes: int) -> Value:
    """So many columns' words, from rows of elements."""
    x = f.load(typed(element, lanes), here)
    if dot.per_word == 1:
        return f.convert(x, dot.word)
    other = f.load(typed(element, lanes), f.at(here, job.y_row, element))
    order = [k for n in range(lanes) for k in (n, lanes + n)]
    return f.bitcast(f.shuffle(x, other, order), typed(dot.word, lanes))
