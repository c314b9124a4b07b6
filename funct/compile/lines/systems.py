"""Linear algebra on few small matrices as lines: elimination and Cholesky's factors, written out.

A call of LAPACK costs more than what it computes of so few elements. A row of all matrices of a
stack is one vector, element by element, in double precision. Pivots are the largest of a column, as
LAPACK's.

An op that would have to raise stops the program, and is then done as it is eagerly. So is one that
loses nearly all digits of a pivot: whether that is 0 is for LAPACK to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from funct.compile.lines.lines import Refused
from funct.compile.lines.products import Products
from funct.compile.lines.vectors import MOST_BYTES, NoLines
from funct.compile.loops.kernel import Constant
from funct.compile.loops.scalars import ELEMENTS, Printing
from funct.graph import Node, Var

__all__ = ["SYSTEMS", "Systems"]

SYSTEMS = ("cholesky", "det", "inv", "solve", "solve_triangular")

_MOST = 8  # rows: code for more is long
_LOST = 2.0**-49  # of a pivot's column, what may be left of it by rounding alone

_WIDE, _BOOL = frozenset({"f64"}), frozenset({"i1"})
_TIMES = Printing(lambda f, x, y: x * y, _WIDE)
_PLUS = Printing(lambda f, x, y: x + y, _WIDE)
_LESS = Printing(lambda f, z, x, y: f.fma(f.neg(x), y, z), _WIDE)
_INVERSE = Printing(lambda f, x: 1.0 / x, _WIDE)
_ROOT = Printing(lambda f, x: f.intrinsic("sqrt", x), _WIDE)
_MINUS = Printing(lambda f, x: f.neg(x), _WIDE)
_HALF = Printing(lambda f, x: x * 0.5, _WIDE)
_SIZE = Printing(lambda f, x: f.intrinsic("fabs", x), _WIDE)
_LARGER = Printing(lambda f, x, y: f.select(f.compare("gt", y, x), y, x), _WIDE)
_IS_LARGER = Printing(lambda f, x, y: f.compare("gt", f.intrinsic("fabs", y),
                                                f.intrinsic("fabs", x)), _BOOL)  # fmt: skip
_CHOSEN = Printing(lambda f, c, x, y: f.select(c, x, y), _WIDE)
_LOSES = Printing(lambda f, p, x: f.compare("le", f.intrinsic("fabs", p), x * _LOST), _BOOL)
_IS_ZERO = Printing(lambda f, x: f.eq(x, 0.0), _BOOL)
_NOT_POSITIVE = Printing(lambda f, x: ~f.compare("gt", x, 0.0), _BOOL)
_DOUBLE = Printing(lambda f, x: f.convert(x, "f64"), _WIDE)
_SINGLE = Printing(lambda f, x: f.convert(x, "f32"), frozenset({"f32"}))


class Systems(Products):
    """Who makes lines of linear algebra. Rows here have their matrices along the last axis."""

    def system(self, e: Node) -> int:
        """The line of such an op. Raises: NoLines: for large matrices, and of other dtypes."""
        if any(not isinstance(v, Var) for v in e.operands) or self.columns[0]:
            raise NoLines(f"{e.name} of what is no matrix, or is not elementwise")
        operands: list[Var] = list(e.operands)  # type: ignore[arg-type]
        kinds = {ELEMENTS[v.dtype] for v in (*operands, *e.results)}
        if kinds not in ({"f32"}, {"f64"}) or len({v.shape[:-2] for v in operands}) > 1:
            raise NoLines(f"{e.name} of {kinds}, or of stacks that differ")
        n, wide = operands[0].shape[-1], 8 * sum([math.prod(v.shape) for v in operands])
        if n > _MOST or wide > MOST_BYTES:
            raise NoLines(f"{e.name} of matrices that are not small, or of many")
        many = math.prod(operands[0].shape[:-2])
        given = [self._rows_of(v, many) for v in operands]
        (element,) = kinds
        ways: dict[str, Callable[..., list[int]]] = {
            "solve": self._solved, "inv": self._inverse, "cholesky": self._factor,
            "solve_triangular": self._substituted, "det": self._determinant,
        }  # fmt: skip
        rows = ways[e.name](many, *given, *e.params)
        found = self._whole_of(rows, many)
        if element == "f64":
            return found
        return self.op("narrow", _SINGLE, [found], element, self.widths[found])

    # Rows

    def _rows_of(self, v: Var, many: int) -> list[int]:
        """The rows of the matrices, in double."""
        a, (m, n) = self.of(v), v.shape[-2:]
        whole = self.vector(a)
        if a.element != "f64":
            whole = self.op("widen", _DOUBLE, [whole], "f64", self.widths[whole])
        at = np.arange(many * m * n).reshape(many, m, n)
        return [self.pick(whole, at[:, i].T.ravel(), "f64") for i in range(m)]

    def _whole_of(self, rows: Sequence[int], many: int) -> int:
        """The elements of an array, from its rows."""
        if len(rows) == 1:
            return rows[0]
        m, parts = len(rows), []
        n = self.widths[rows[0]] // many
        which, row, column = (g.ravel() for g in np.indices((many, m, n)))
        for i, line in enumerate(rows):
            parts.append((line, np.where(row == i, column * many + which, -1)))
        return self.joined(parts, "f64")

    def _line(self, name: str, how: Printing, *operands: int) -> int:
        element = "i1" if how.elements is _BOOL else "f64"
        lanes = max([self.widths[o] for o in operands])
        wide = [self._over(o, lanes) for o in operands]
        return self.op(name, how, wide, element, lanes)

    def _over(self, line: int, lanes: int) -> int:
        """A number of each matrix, for each element of a row."""
        n, element = self.widths[line], self.lines[line].element
        return line if n == lanes else self.pick(line, np.arange(lanes) % n, element)

    def _part(self, row: int, k: int, many: int, count: int = 1) -> int:
        """Some elements of a row."""
        return self.pick(row, np.arange(k * many, (k + count) * many), "f64")

    def _less(self, row: int, factor: int, other: int) -> int:
        return self._line("less", _LESS, row, self._over(factor, self.widths[row]), other)

    def _refuse(self, wrong: int) -> None:
        self.add(Refused(wrong))

    # Elimination

    def _eliminated(
        self, rows: list[int], n: int, many: int, refuses: bool
    ) -> tuple[list[int], list[int], int]:
        """Rows with upper triangles in their first n columns; the pivots, and the determinant's
        sign.
        """
        rows = list(rows)
        sign = self._over(self.add(Constant(1.0, "f64"), 1), many)
        most = self._line("size", _SIZE, rows[0])
        for row in rows[1:]:
            most = self._line("larger", _LARGER, most, self._line("size", _SIZE, row))
        pivots = []
        for k in range(n):
            for i in range(k + 1, n):
                own, other = (self._part(rows[j], k, many) for j in (k, i))
                turned = self._line("is larger", _IS_LARGER, own, other)
                x, y, lanes = rows[k], rows[i], self.widths[rows[k]]
                over = self._over(turned, lanes)
                rows[k] = self._line("choose", _CHOSEN, over, y, x)
                rows[i] = self._line("choose", _CHOSEN, over, x, y)
                if not refuses:
                    turn = self._line("minus", _MINUS, sign)
                    sign = self._line("choose", _CHOSEN, turned, turn, sign)
            pivot = self._part(rows[k], k, many)
            pivots.append(pivot)
            if refuses:
                self._refuse(self._line("loses", _LOSES, pivot, self._part(most, k, many)))
            if k == n - 1:
                break
            inverse = self._line("inverse", _INVERSE, pivot)
            for i in range(k + 1, n):
                factor = self._line("multiply", _TIMES, self._part(rows[i], k, many), inverse)
                if not refuses:  # rows below a column of zeros stay as they are
                    none = self._line("is zero", _IS_ZERO, pivot)
                    zero = self._over(self.add(Constant(0.0, "f64"), 1), many)
                    factor = self._line("choose", _CHOSEN, none, zero, factor)
                rows[i] = self._less(rows[i], factor, rows[k])
        return rows, pivots, sign

    def _solved(self, many: int, a: list[int], b: list[int]) -> list[int]:
        n, m = len(a), self.widths[b[0]] // many
        both = [self._beside(x, y) for x, y in zip(a, b, strict=True)]
        rows, pivots, _ = self._eliminated(both, n, many, refuses=True)
        inverses = [self._line("inverse", _INVERSE, p) for p in pivots]
        found = [self._part(row, n, many, m) for row in rows]
        for k in reversed(range(n)):
            inverse = self._over(inverses[k], m * many)
            found[k] = self._line("multiply", _TIMES, found[k], inverse)
            for i in range(k):
                found[i] = self._less(found[i], self._part(rows[i], k, many), found[k])
        return found

    def _inverse(self, many: int, a: list[int]) -> list[int]:
        zero, one = (self.add(Constant(x, "f64"), 1) for x in (0.0, 1.0))
        n = len(a)
        unit = []
        for i in range(n):
            here = np.arange(n * many) // many == i
            unit.append(
                self.joined([(zero, np.zeros(n * many, int)), (one, np.where(here, 0, -1))], "f64")
            )
        return self._solved(many, a, unit)

    def _determinant(self, many: int, a: list[int]) -> list[int]:
        _, pivots, found = self._eliminated(a, len(a), many, refuses=False)
        for p in pivots:
            found = self._line("multiply", _TIMES, found, p)
        return [found]

    def _beside(self, x: int, y: int) -> int:
        """Two rows as one."""
        at, n = np.arange(self.widths[x] + self.widths[y]), self.widths[x]
        return self.joined([(x, np.where(at < n, at, -1)), (y, np.where(at >= n, at - n, -1))],
                           "f64")  # fmt: skip

    # Triangles

    def _substituted(self, many: int, a: list[int], b: list[int], lower: bool) -> list[int]:
        n, found = len(a), list(b)
        for k in range(n) if lower else reversed(range(n)):
            pivot = self._part(a[k], k, many)
            self._refuse(self._line("is zero", _IS_ZERO, pivot))
            inverse = self._over(self._line("inverse", _INVERSE, pivot), self.widths[found[k]])
            found[k] = self._line("multiply", _TIMES, found[k], inverse)
            for i in range(k + 1, n) if lower else range(k):
                found[i] = self._less(found[i], self._part(a[i], k, many), found[k])
        return found

    def _factor(self, many: int, a: list[int]) -> list[int]:
        n = len(a)
        rows = []
        for i, row in enumerate(a):  # of the Hermitian part
            parts = []
            for j, other in enumerate(a):
                at = np.where(np.arange(n * many) // many == j, np.arange(n * many) % many, -1)
                parts.append((self._part(other, i, many), at))
            turned = self.joined(parts, "f64") if n > 1 else row
            halves = [self._line("half", _HALF, x) for x in (row, turned)]
            rows.append(self._line("add", _PLUS, *halves))
        columns = []
        for k in range(n):
            pivot = self._part(rows[k], k, many)
            self._refuse(self._line("is not positive", _NOT_POSITIVE, pivot))
            root = self._line("root", _ROOT, pivot)
            inverse = self._over(self._line("inverse", _INVERSE, root), n * many)
            column, here = self._line("multiply", _TIMES, rows[k], inverse), np.arange(n * many)
            own = np.where(here // many == k, here % many, -1)
            columns.append(self.joined([(column, here), (root, own)], "f64"))
            for i in range(k + 1, n):
                rows[i] = self._less(rows[i], self._part(columns[k], i, many), columns[k])
        found = []
        zero = self.add(Constant(0.0, "f64"), 1)
        for i in range(n):
            at = np.arange(n * many)
            parts = [(zero, np.zeros(n * many, int))]
            for k in range(i + 1):
                own = np.where(at // many == k, i * many + at % many, -1)
                parts.append((columns[k], own))
            found.append(self.joined(parts, "f64"))
        return found
