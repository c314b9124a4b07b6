"""Cholesky's factors and triangular systems of large matrices, as LAPACK and BLAS take them.

NumPy and SciPy copy what they are given and what they give: matrices are turned around, made
symmetric, cleared on one side. Here all that is ops on elements, which loops around them take in. A
transposed matrix is read where it lies, and right sides that are rows stay rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funct import ops
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.worth import FEW_ELEMENTS
from funct.compile.readers import decisive
from funct.compile.rewriting.new_nodes import NewNodes, renamed, swaps
from funct.compile.steps.triangles import CHOLESKY, TRIANGULAR, has_triangles
from funct.core import Value
from funct.graph import Graph, Node
from funct.kernels.linalg import lapack
from funct.kernels.linalg.few import suits
from funct.kernels.linalg.stacks import are_some, rows_of
from funct.ops.fast import wrap

__all__ = ["triangles_called"]

_SIDES = 4  # of fewer right sides a system is another function's


def triangles_called(graph: Graph) -> Graph:
    """The graph with calls of them."""
    if not any(map(_way, graph.nodes)) or not has_triangles():
        return graph
    return _Walk(graph).run()


def _way(e: Any) -> Callable[[_Walk, Node], list[Any]] | None:
    held = arrays(e, ("cholesky", "solve_triangular"))
    if not held or len({(v.shape[:-2], v.dtype) for v in held}) > 1:
        return None
    x, b = held[0], held[-1]
    rows = x.shape[-1]
    in_lanes = rows <= rows_of(e.name, x.dtype.char) and are_some(x.shape)
    if e.name == "cholesky" and suits(e.name, x.shape, x.dtype.char):
        return None
    if x.dtype.char not in "fd" or in_lanes or math.prod(x.shape) <= FEW_ELEMENTS:
        return None
    if e.name == "cholesky":
        return _Walk.factor
    return _Walk.system if b.shape[-1] >= _SIDES else None


class _Walk(NewNodes):
    """One walk over the nodes."""

    prefix = "tri"

    def run(self) -> Graph:
        """Rewrite."""
        new: dict[Any, Any] = {}
        asked = decisive(self.graph)  # with NumPy's bits
        for e in self.graph.nodes:
            way = None if e in asked else _way(e)
            e = renamed(e, new)
            if way is not None and isinstance(e, Node):
                self.site = e.site
                new |= zip(e.results, way(self, e), strict=True)
            elif isinstance(e, Node):
                self.keep(e)
            else:
                self.nodes.append(e)
        return self.finished(new)

    def factor(self, e: Node) -> list[Any]:
        """A lower factor, of the symmetric part."""
        (x,), (out,) = e.reads, e.results
        n, inner = x.shape[-1], np.dtype(lapack.inner(x.dtype.char, *x.shape[-2:]))

        def symmetric(x: Value) -> list[Any]:
            half = ops.multiply(x, 0.5)
            found = ops.add(half, ops.swap_last(half))
            return [found if inner == x.dtype else ops.astype(found, inner)]

        def cleared(upper: Value) -> list[Any]:
            kept = ops.where(wrap(np.tri(n, dtype=bool)), ops.swap_last(upper), 0.0)
            return [kept if inner == out.dtype else ops.astype(kept, out.dtype)]

        given = self.spelled(symmetric, (x,))
        return self.spelled(cleared, self.private(CHOLESKY, given, (), (x.shape, inner)))

    def system(self, e: Node) -> list[Any]:
        """Solutions, as columns or as rows."""
        (a, b), (lower,), (out,) = e.reads, e.params, e.results
        of, sides = self.made_by.get(a), self.made_by.get(b)
        turned, right = swaps(of), swaps(sides)
        if swaps(of):
            (a,), lower = of.reads, not lower
        if swaps(sides):
            (b,) = sides.reads
        # rows are multiplied from the other side, by the transpose
        params = bool(lower), turned != right, right
        found = self.private(TRIANGULAR, (a, b), params, (b.shape, out.dtype))
        return self.spelled(lambda x: [ops.swap_last(x)], found) if right else found
