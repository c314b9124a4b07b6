"""Matrices that several ops take apart are taken apart once.

A system, an inverse and a determinant begin with L, U and a permutation; a gradient asks for them
again, of the transpose. Where a program has several such ops of one matrix or its transpose, its
factors are a node of their own, and what is left of each op reads them. The numbers are LAPACK's;
those of a transpose come from the factors of the matrix. Matrices of fewer rows are taken apart by
vectors of rows (`steps/rows.py`) as often as somebody asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from funct import ops
from funct.compile.readers import decisive
from funct.compile.rewriting.new_nodes import NewNodes, renamed, swaps
from funct.compile.steps.elimination import FACTORED, SOLVED, pivots
from funct.compile.steps.systems import is_systems
from funct.core import Value
from funct.graph import Graph, Node, Var
from funct.kernels.linalg import lapack
from funct.ops.fast import wrap
from funct.ops.matrices import column

__all__ = ["factored_once"]

_OPS = frozenset({"solve", "inv", "det", "slogdet"})
_RAISE = frozenset({"solve", "inv"})
_LEAST = 97  # rows: factors of fewer are found sooner than shared


def factored_once(graph: Graph) -> Graph:
    """The graph with such nodes."""
    if sum([isinstance(e, Node) and e.name in _OPS for e in graph.nodes]) < 2 or not pivots():
        return graph
    walk = _Walk(graph)
    return walk.run() if walk.shared else graph


class _Need(Struct, frozen=True):
    """What an op needs the factors of. turned: it is of the transpose. safe: where the matrix is
    singular the op is of the unit matrix instead; the Var says where.
    """

    matrix: Var
    turned: bool = False
    safe: Var | None = None


class _Walk(NewNodes):
    """One walk over the nodes."""

    prefix = "lu"

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.made_by = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.needs: dict[Node, _Need] = {}
        asked = decisive(graph)  # with NumPy's bits
        for e in graph.nodes:
            if isinstance(e, Node) and e not in asked and (need := self._need(e)) is not None:
                self.needs[e] = need
        times = Counter(need.matrix for need in self.needs.values())
        self.shared = {v for v, n in times.items() if n > 1}
        self.raising = {  # whose factors are refused if one is singular
            need.matrix for e, need in self.needs.items() if e.name in _RAISE and need.safe is None
        }
        self.factors: dict[Var, list[Var]] = {}

    def run(self) -> Graph:
        """Rewrite."""
        new: dict[Any, Any] = {}
        for e in self.graph.nodes:
            need = self.needs.get(e) if isinstance(e, Node) else None
            e = renamed(e, new)
            if need is None or need.matrix not in self.shared:
                self.nodes.append(e)
                continue
            assert isinstance(e, Node)
            self.site = e.site
            matrix = new.get(need.matrix, need.matrix)
            new |= zip(e.results, self._written(e, need, matrix), strict=True)
        return self.finished(new)

    # What is found

    def _need(self, e: Node) -> _Need | None:
        if e.name not in _OPS or is_systems(e):
            return None
        x, b = e.operands[0], e.operands[-1]
        if not isinstance(x, Var) or not isinstance(b, Var) or 0 in (*x.shape, *b.shape):
            return None
        alike = x.dtype == b.dtype and x.shape[:-2] == b.shape[:-2]
        if not alike or x.dtype.char not in "fd" or x.shape[-1] < _LEAST:
            return None
        return self._seen(x)

    def _seen(self, x: Var) -> _Need:
        """A matrix behind transposes and selections of those that are regular."""
        e = self.made_by.get(x)
        if swaps(e):
            (below,) = e.reads
            need = self._seen(below)
            return replace(need, turned=not need.turned)
        if e is not None and e.name == "where" and (where := self._singular(e)) is not None:
            return _Need(e.reads[-1], safe=where)
        return _Need(x)

    def _singular(self, e: Node) -> Var | None:
        """Where a matrix is singular, if `where` has the unit matrix instead there: as derivatives
        of logarithms of determinants ask for it.
        """
        mask, unit, x = e.operands
        if not isinstance(x, Var) or not self._is_unit(unit, x.shape[-1]):
            return None
        asked = self._looked_at(mask)
        if asked is None or asked.name != "equal" or asked.operands[1] != -np.inf:
            return None
        made = self.made_by.get(asked.operands[0])  # type: ignore[arg-type]
        of_it = made is not None and made.name == "slogdet" and made.operands[0] is x
        return asked.results[0] if of_it else None

    def _looked_at(self, v: Any) -> Node | None:
        """What makes an array that is looked at in other shapes."""
        e = self.made_by.get(v)
        while e is not None and e.name in ("reshape", "broadcast_to"):
            e = self.made_by.get(e.reads[0])
        return e

    def _is_unit(self, v: Any, n: int) -> bool:
        e = self.made_by.get(v)
        known = self.constants.get(e.reads[0] if e is not None and e.name == "broadcast_to" else v)
        return known is not None and np.array_equal(known.data, np.eye(n))

    # What is written

    def _written(self, e: Node, need: _Need, matrix: Var) -> list[Any]:
        """What is left of an op."""
        if need.matrix not in self.factors:
            self.factors[need.matrix] = self._factors(matrix, need.matrix in self.raising)
        factors, dtype = self.factors[need.matrix], e.results[-1].dtype
        if e.name in ("det", "slogdet"):
            way = _determinant if e.name == "det" else _sign_and_size
            return self.spelled(lambda *given: [_as(x, dtype) for x in way(*given)], factors)
        shape, inner = e.results[0].shape, factors[0].dtype
        sides = self._sides(e, inner)
        found = self.private(SOLVED, (*factors, sides), (need.turned,), (sides.shape, inner))
        if need.safe is None:
            return self.spelled(lambda x: [_turned(x, dtype)], found)

        def chosen(x: Value, singular: Value) -> list[Value]:
            return [ops.where(column(column(singular)), _unit(shape, dtype), _turned(x, dtype))]

        return self.spelled(chosen, (*found, need.safe))

    def _sides(self, e: Node, inner: np.dtype[Any]) -> Var:
        """The right sides of a system, or of those that an inverse solves."""
        if e.name == "solve":
            (sides,) = self.spelled(lambda b: [_turned(b, inner)], e.reads[1:])
        else:
            (sides,) = self.spelled(lambda: [_unit(e.results[0].shape, inner)], ())
        assert isinstance(sides, Var)
        return sides

    def _factors(self, x: Var, fails: bool) -> list[Var]:
        """Factors and pivots of a matrix."""
        inner = np.dtype(lapack.inner(x.dtype.char, *x.shape[-2:]))
        (turned,) = self.spelled(lambda x: [_turned(x, inner)], (x,))
        order = x.shape[:-1], pivots()
        return self.private(FACTORED, (turned,), (fails,), (x.shape, inner), order)


def _turned(x: Value, dtype: np.dtype[Any]) -> Value:
    """Matrices whose columns lie one behind the other, of numbers of this dtype."""
    return _as(ops.swap_last(x), dtype)


def _as(x: Value, dtype: np.dtype[Any]) -> Value:
    return x if x.dtype == dtype else ops.astype(x, dtype)


def _unit(shape: Sequence[int], dtype: np.dtype[Any]) -> Value:
    return ops.broadcast_to(wrap(np.eye(shape[-1], dtype=dtype)), tuple(shape))


def _sign_and_size(lu: Value, order: Value) -> list[Value]:
    """What `slogdet` gives."""
    *lead, n, _ = lu.shape
    last = len(lead)
    places = (*((None, None, 1),) * last, (0, n * n, n + 1))
    pivot = ops.slice_(ops.reshape(lu, (*lead, n * n)), places)
    swapped = ops.not_equal(order, wrap(np.arange(1, n + 1, dtype=order.dtype)))
    minus = ops.astype(ops.logical_xor(swapped, ops.less(pivot, 0.0)), np.dtype(np.int32))
    odd = ops.bitwise_and(ops.reduce_sum(minus, (last,), False), 1)
    singular = ops.any(ops.equal(pivot, 0.0), (last,), False)
    sign = ops.where(singular, 0.0, ops.subtract(1.0, ops.multiply(2.0, _as(odd, lu.dtype))))
    size = ops.reduce_sum(ops.log(ops.abs(pivot)), (last,), False)
    return [sign, ops.where(singular, -np.inf, size)]


def _determinant(lu: Value, order: Value) -> list[Value]:
    sign, size = _sign_and_size(lu, order)
    return [ops.multiply(sign, ops.exp(size))]
