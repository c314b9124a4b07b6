"""A product of matrices in memory as LLVM text: sums in registers, term by term."""

from __future__ import annotations

from funct.compile.lines.lines import Dot
from funct.compile.lines.roomy import filled
from funct.kernels.llvm import I64, Emitter, Value, typed

__all__ = ["DotText"]

_Part = tuple[Value, int]  # a vector, and how many of its lanes count
_SUMS = 8  # vectors that are added to side by side: a sum must not wait for itself


class DotText:
    """A product as it is printed. x, y: the places of its operands."""

    def __init__(self, f: Emitter, line: Dot, x: Value, y: Value) -> None:
        self.f = f
        self.line = line
        element = line.element
        self.x, self.y = (f.at(p, o, element) for p, o in zip((x, y), line.offsets, strict=True))
        self.wide = f.module.target.vector_bytes // typed(element).bytes

    def run(self) -> Value:
        """The result, row after row."""
        f, (m, _, n) = self.f, self.line.shape
        widest = _SUMS * self.wide
        parts: list[_Part] = []
        for j in range(0, n, widest):
            width = min(widest, n - j)
            high = max(1, _SUMS // -(-width // self.wide))
            for i in range(0, m, high):
                parts += self._block(i, min(high, m - i), j, width)
        if n > widest:  # rows are in pieces
            pieces = [parts[k::m] for k in range(m)]
            parts = [p for row in pieces for p in row]
        if len(parts) == 1:  # pairs are filled
            ((x, count),) = parts
            return x if x.type.lanes == count else f.shuffle(x, None, filled(f, range(count)))
        return self._joined(parts)[0]

    def _joined(self, parts: list[_Part]) -> _Part:
        """Vectors one after the other."""
        while len(parts) > 1:
            pairs = [self._pair(*parts[k : k + 2]) for k in range(0, len(parts) - 1, 2)]
            parts = [*pairs, *parts[2 * len(pairs) :]]
        return parts[0]

    def _pair(self, a: _Part, b: _Part) -> _Part:
        f, (x, n), (y, m) = self.f, a, b
        if x.type.lanes == y.type.lanes == 1:
            return f.insert(f.splat(x, 2), 1, y), 2
        wide = max(x.type.lanes, y.type.lanes)
        x, y = (
            v if v.type.lanes == wide
            else f.splat(v, wide) if v.type.lanes == 1
            else f.shuffle(v, None, [min(k, v.type.lanes - 1) for k in range(wide)])
            for v in (x, y)
        )  # fmt: skip
        return f.shuffle(x, y, filled(f, [*range(n), *range(wide, wide + m)])), n + m

    def _block(self, i: int, rows: int, j: int, width: int) -> list[_Part]:
        """So many rows and columns of the result from there on."""
        f, (_, terms, _), element = self.f, self.line.shape, self.line.element
        down, along, below = self.line.strides
        pieces = [(c, min(self.wide, width - c)) for c in range(0, width, self.wide)]
        several = max(1, min(_SUMS // (rows * len(pieces)), terms))
        bulk = terms - terms % several
        zeros = [f.constant(typed(element, _whole(n)), 0) for _ in range(rows) for _, n in pieces]

        def term(t: Value | int, sums: list[Value]) -> list[Value]:
            base = f.constant(I64, t) if isinstance(t, int) else t
            start = f.at(self.y, base * below + j, element)
            row = [self._read(f.at(start, c, element), n) for c, n in pieces]
            out: list[Value] = []
            for r in range(rows):
                place = f.at(self.x, base * along + (i + r) * down, element)
                x = f.load(typed(element), place)
                for y in row:
                    out.append(f.fma(f.splat(x, y.type.lanes), y, sums[len(out)]))
            return out

        def step(t: Value, sums: list[Value]) -> list[Value]:
            done: list[Value] = []
            for u in range(several):
                done += term(t + u, sums[len(done) : len(done) + len(zeros)])
            return done

        sums = f.loop(0, bulk, several, step, zeros * several)
        found = sums[: len(zeros)]
        for u in range(1, several):
            more = sums[u * len(zeros) : (u + 1) * len(zeros)]
            found = [a + b for a, b in zip(found, more, strict=True)]
        for t in range(bulk, terms):
            found = term(t, found)
        of_rows = [found[r * len(pieces) : (r + 1) * len(pieces)] for r in range(rows)]
        return [
            self._joined([(x, n) for x, (_, n) in zip(row, pieces, strict=True)]) for row in of_rows
        ]

    def _read(self, place: Value, count: int) -> Value:
        """So many elements, in a vector that the processor has."""
        f, lanes = self.f, _whole(count)
        mask = None if lanes == count else f.first_lanes(lanes, f.constant(I64, count))
        return f.load(typed(self.line.element, lanes), place, mask)


def _whole(count: int) -> int:
    """The lanes of a vector for so many elements: processors have powers of two."""
    return 1 << (count - 1).bit_length()
