"""Cofactors of matrices of two or three rows, of which there are few: written out, for loops.

Of many, each place is an array of its own (`cells.py`). The products are `kernels.cofactor`'s.
"""

from __future__ import annotations

import numpy as np

from funct.compile.fusion.worth import is_of_small_matrices
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Node, Var

__all__ = ["Minors"]

_WIDE = np.dtype(np.float64)


class Minors(NewNodes):
    """Who writes them."""

    def minors(self, e: Node) -> Var | None:
        """The cofactors; None where they stay an op."""
        x, out = e.operands[0], e.results[0]
        n = out.shape[-1]
        if not isinstance(x, Var) or out.dtype.char not in "fd" or is_of_small_matrices(e):
            return None
        if n == 2:
            last = len(out.shape) - 2, len(out.shape) - 1
            turned = self.apply("flip", (x,), (last,), out.shape, out.dtype)
            signs = self.constant(np.array([[1, -1], [-1, 1]], out.dtype))
            return self.apply("multiply", (turned, signs), (), out.shape, out.dtype)
        if n != 3:
            return None
        if x.dtype != _WIDE:
            x = self.apply("astype", (x,), (_WIDE,), x.shape, _WIDE)
        for axis in (-2, -1):
            x = self._continued(x, len(x.shape) + axis)
        a, b, c, d = (self._moved(x, i, j) for i, j in ((1, 1), (2, 2), (1, 2), (2, 1)))
        first = self.apply("multiply", (a, b), (), out.shape, _WIDE)
        second = self.apply("multiply", (c, d), (), out.shape, _WIDE)
        found = self.apply("subtract", (first, second), (), out.shape, _WIDE)
        if out.dtype == _WIDE:
            return found
        return self.apply("astype", (found,), (out.dtype,), out.shape, out.dtype)

    def _continued(self, x: Var, axis: int) -> Var:
        """x, and behind it its first two places along an axis."""
        index = [(0, 2, 1) if a == axis else (None, None, 1) for a in range(len(x.shape))]
        shape = [2 if a == axis else n for a, n in enumerate(x.shape)]
        two = self.apply("slice_", (x,), (tuple(index),), shape, x.dtype)
        shape[axis] += x.shape[axis]
        return self.concat((x, two), axis, self.var(shape, x.dtype))

    def _moved(self, x: Var, i: int, j: int) -> Var:
        """Three rows from i on, of these three columns from j on."""
        index = (*((None, None, 1),) * (len(x.shape) - 2), (i, i + 3, 1), (j, j + 3, 1))
        return self.apply("slice_", (x,), (index,), (*x.shape[:-2], 3, 3), x.dtype)
