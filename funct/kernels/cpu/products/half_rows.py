"""Few rows of a product of half-precision matrices: the right one is read where it lies.

So few rows use each of its elements too seldom for panels, which take a store and a load of each.
An element of the result is summed as in tiles: along the depth, word by word, in one sum.

Note [One row]
    A block of columns, whose sums fit into registers, is two lines of the cache of every row of the
    right one: rows that lie pages apart cost a look into the table of pages each, and the processor
    guesses none. So runs of some rows are read one beside the other, and sums are kept in the
    first-level cache between them. Where there are 32 registers, what is asked for ahead does.
"""

from __future__ import annotations

from funct.kernels.cpu.dense.dots import Dot
from funct.kernels.cpu.record import Record
from funct.kernels.llvm import Emitter, Value, each, typed

__all__ = ["AHEAD", "KEPT", "NARROWEST", "few_rows"]

KEPT = 2048  # sums of one row; see Note [One row]
_BESIDE = 8  # rows of words
_PAGE = 2048  # elements

AHEAD = 8  # rows of words
NARROWEST = 4  # elements of a vector
_SHORT = 8  # lanes of vectors of 32 bytes
_LINE = 32  # elements of a cache line
# Rows at a time, and by the lanes of a vector how many vectors of each: about half of the registers
# hold sums, as many as two units of latency 4 need.
_ROWS = 8, 2, 1
_VECTORS = {16: {8: 2, 2: 4, 1: 16}, 8: {8: 1, 2: 4, 1: 8}, 4: {8: 1, 2: 4, 1: 4}}


def few_rows(
    f: Emitter, job: Record, element: str, dot: Dot, left: Value, y: Value, out: Value,
    kept: Value, count: Value, columns: Value,
) -> None:  # fmt: skip
    """Print `count` rows of the result from rows of words, `left`, and rows of elements, y.
    kept: room for so many sums.

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

    def strips(m: Value, whole: Value) -> None:
        """One row, in columns that fill vectors; see Note [One row]."""
        line, total = f.at(left, m * job.left_row, dot.word), typed("f32", full)

        def strip(o: Value) -> None:
            stop = f.min(o + KEPT, whole)

            def walk(k: Value, beside: int) -> None:
                words = [
                    f.splat(f.load(typed(dot.word), f.at(f.at(line, k, dot.word), r, dot.word)),
                            full)
                    for r in range(beside)
                ]  # fmt: skip
                rows = [f.at(y, (k + r) * dot.per_word * job.y_row, element) for r in range(beside)]

                def vector(c: Value) -> None:
                    at = f.at(kept, c - o, "f32")
                    sums = f.load(total, at)
                    for a, row in zip(words, rows, strict=True):
                        b = _words(f, job, element, dot, f.at(row, c, element), full)
                        sums = dot.step(f, sums, a, b)
                    f.store(sums, at)

                each(f, o, stop, vector, full)

            def clear(c: Value) -> None:
                f.store(f.constant(total, 0), f.at(kept, c - o, "f32"))

            def rounded(c: Value) -> None:
                x = f.convert(f.load(total, f.at(kept, c - o, "f32")), element)
                f.store(x, f.at(f.at(out, m * job.columns, element), c, element))

            each(f, o, stop, clear, full)
            many = job.depth & -_BESIDE
            each(f, 0, many, lambda k: walk(k, _BESIDE), _BESIDE)
            each(f, many, job.depth, lambda k: walk(k, 1))
            each(f, o, stop, rounded, full)

        each(f, 0, whole, strip, KEPT)

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

            def blocks() -> None:
                each(f, 0, whole, lambda o: block(m, rows, o, full, vectors), wide)

            if rows == 1 and full == _SHORT:
                f.when(job.y_row >= _PAGE, lambda: strips(m, whole))
                f.when(job.y_row < _PAGE, blocks)
            elif vectors > 1:
                blocks()
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
