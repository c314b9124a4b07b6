"""Sums of outer products, written as products of arrays that are broadcast against each other.

`sum(x[:, :, None] * y[:, None, :], axis=0)` is `x.T @ y`: the same terms, added in another order.
Loops would read each number again for every term that it is part of; a product of matrices keeps
many sums in registers. A part of the walk of `simplify.py`.
"""

from __future__ import annotations

import math
from typing import Any

from funct.compile.rewriting.products import REAL, Products
from funct.graph import Node, Var

__all__ = ["OuterSums"]

_LEAST_SIDE = 8  # rows and columns of the product
_LEAST_INNER = 16  # terms of a sum: shorter ones are added in the loops that go on with them


class OuterSums(Products):
    """Who writes them."""

    def sum_of_outer(self, e: Node) -> Var | None:
        """A sum of outer products that nothing else reads, as one product."""
        product, out = self.made_by.get(e.operands[0]), e.results[0]  # type: ignore[arg-type]
        if product is None or product.name != "multiply" or out in self.decided:
            return None
        terms = product.results[0]
        if terms.dtype not in REAL or out.dtype != terms.dtype or not self.is_read_once(terms):
            return None
        given = [self._as_wide(a, len(terms.shape)) for a in product.operands]
        x, y = given
        if x is None or y is None or x[0].dtype != y[0].dtype:
            return None
        return self._as_matmul(e, terms.shape, x, y)

    def _as_matmul(self, e: Node, shape: Any, x: Any, y: Any) -> Var | None:
        """The product, if each operand has an axis that the other lacks, both have all that are
        added, and one of them any other.
        """
        axes = e.params[0]
        (x, x_shape), (y, y_shape) = x, y
        long = [a for a, n in enumerate(shape) if n != 1]
        in_x, in_y = ([a for a in long if s[a] != 1] for s in (x_shape, y_shape))
        inner = [a for a in long if a in axes]
        both = [a for a in long if a in in_x and a in in_y and a not in axes]
        left = [a for a in in_x if a not in in_y]
        right = [a for a in in_y if a not in in_x]
        if any(a in axes for a in (*left, *right)) or len({*in_x, *in_y}) < len(long):
            return None

        def size(of: list[int]) -> int:
            return math.prod([shape[a] for a in of])

        m, k, n = size(left), size(inner), size(right)
        if min(m, n) < _LEAST_SIDE or k < _LEAST_INNER:
            return None
        stack = (size(both),) if both else ()
        a = self._matrix(x, in_x, (both, left, inner), (*stack, m, k))
        b = self._matrix(y, in_y, (both, inner, right), (*stack, k, n))
        whole = self.apply("matmul", (a, b), (), (*stack, m, n), x.dtype)
        now = (*both, *left, *right)
        whole = self.reshape(whole, [shape[a] for a in now])
        whole = self.permute(whole, [now.index(a) for a in sorted(now)])
        return self.reshape(whole, e.results[0].shape)

    def _matrix(self, x: Var, has: list[int], to: Any, shape: Any) -> Var:
        """x with the axes that it has in this order, in this shape."""
        x = self.reshape(x, [n for n in x.shape if n != 1])
        return self.reshape(self.permute(x, [has.index(a) for of in to for a in of]), shape)

    def _as_wide(self, v: Any, rank: int) -> tuple[Var, tuple[int, ...]] | None:
        """What an operand is before it is broadcast, and its shape with as many axes."""
        if not isinstance(v, Var):
            return None
        source = self.made_by.get(v)
        if source is not None and source.name == "broadcast_to":
            (v,) = source.operands
            if not isinstance(v, Var):
                return None
        return v, (*[1] * (rank - len(v.shape)), *v.shape)
