"""Products of matrices as those that BLAS, or loops, do well.

`contract` is a product of stacks of matrices between transposes. A product by one column of a
matrix that loops compute is a sum in the same loops, and so are products of many small matrices by
one column each. A sum of products over a stack, as in the gradient of a layer's weights, is one
product: the stack joins the inner axis, which adds the same terms in another order. A part of the
walk of `simplify.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.compile.fusion.groups import ends_loops, why_not
from funct.compile.fusion.worth import is_stack_by_vectors
from funct.compile.loops.views import VIEWS
from funct.compile.readers import readers
from funct.compile.rewriting.new_nodes import NewNodes
from funct.device import host
from funct.graph import Graph, Node, Var
from funct.ops.linalg import contract_layout

__all__ = ["REAL", "Products"]

REAL = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
_LONG = 1 << 11  # terms of one sum from which on what it saves is more than what BLAS does better


class Products(NewNodes):
    """Who writes them. readers: of each Var of the graph that is rewritten."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.readers = readers(graph)

    def is_read_once(self, v: Any) -> bool:
        """Whether one node, guard or caller reads v, and once."""
        return len(self.readers.get(v, ())) == 1

    def takes_over(self, new: Var, old: Var) -> None:
        """What stands for a Var is read by those who read that."""
        self.readers[new] = [*self.readers.get(new, ()), *self.readers.get(old, ())]

    def contracted(self, e: Node) -> Var | None:
        """A contraction of floats, as a product between transposes."""
        x, y = e.operands
        if not isinstance(x, Var) or not isinstance(y, Var) or x.dtype != y.dtype:
            return None
        of_x, of_y, n_both, n_left, n_inner, to_out = contract_layout(e.params[0])
        if x.dtype.kind != "f":
            return None
        xs, ys = self.permute(x, of_x), self.permute(y, of_y)
        both, left = xs.shape[:n_both], xs.shape[n_both : n_both + n_left]
        right = ys.shape[n_both + n_inner :]
        if not n_inner:  # nothing is added
            a = self.reshape(xs, (*both, *left, *[1] * len(right)))
            b = self.reshape(ys, (*both, *[1] * n_left, *right))
            product = self.apply("multiply", (a, b), (), (*both, *left, *right), x.dtype)
            return self.permute(product, to_out)
        inner = math.prod(xs.shape[n_both + n_left :])
        a = self.reshape(xs, (*both, math.prod(left), inner))
        b = self.reshape(ys, (*both, inner, math.prod(right)))
        shape = (*both, math.prod(left), math.prod(right))
        out = self.apply("matmul", (a, b), (), shape, x.dtype)
        return self.permute(self.reshape(out, (*both, *left, *right)), to_out)

    def thin(self, e: Node) -> Var | None:
        """A product by one column or row, or of one inner term, as loops hold it.

        A matrix that loops compute for this product alone then is never written; small ones of a
        long stack are no work for BLAS. Two long vectors are read with what else reads them, by all
        threads.
        """
        x, y = e.operands
        out = e.results[0]
        if not isinstance(x, Var) or not isinstance(y, Var) or out.dtype not in REAL:
            return None
        by_one = len(y.shape) == 2 and is_stack_by_vectors(e)
        if x.dtype != y.dtype or not (by_one or x.shape[:-2] == y.shape[:-2]):
            return None
        lead, (m, k), n = x.shape[:-2], x.shape[-2:], y.shape[-1]
        if k == 1:
            return self.apply("multiply", (x, y), (), out.shape, out.dtype)
        if math.prod(out.shape) == 1 and k >= _LONG:
            terms = self.reshape(x, (k,)), self.reshape(y, (k,))
            product = self.apply("multiply", terms, (), (k,), out.dtype)
            found = self.apply("reduce_sum", (product,), ((0,), False), (), out.dtype)
            return self.reshape(found, out.shape)
        one_vector = k * out.dtype.itemsize <= host().vector_bytes  # of terms: `steps/products.py`
        stack = is_stack_by_vectors(e) and (by_one or not one_vector)
        if n == 1 and m > 1 and (self._is_computed(x) or stack):
            row = (*y.shape[:-2], 1, k)
            terms, axis = (x, self.reshape(y, row)), len(lead) + 1
        elif m == 1 and n > 1 and self._is_computed(y):
            terms, axis = (self.reshape(x, (*lead, k, 1)), y), len(lead)
        else:
            return None
        matrix = x if n == 1 else y
        product = self.apply("multiply", terms, (), matrix.shape, out.dtype)
        return self.apply("reduce_sum", (product,), ((axis,), True), out.shape, out.dtype)

    def _is_computed(self, v: Var) -> bool:
        """Whether loops compute v, for one reader."""
        source = self.made_by.get(v)
        if source is None or not self.is_read_once(v):
            return False
        return source.name not in VIEWS and not why_not(source) and not ends_loops(source)

    def sum_of_products(self, e: Node) -> Var | None:
        """A sum over a stack of products that nothing else reads, as one product."""
        product = self.made_by.get(e.operands[0])  # type: ignore[arg-type]
        if product is None or product.name != "matmul":
            return None
        out = product.results[0]
        x, y = product.operands
        assert isinstance(x, Var)
        assert isinstance(y, Var)
        axes = e.params[0]
        stack = len(out.shape) - 2
        if not self.is_read_once(out) or not axes or any(a >= stack for a in axes):
            return None
        if x.shape[:-2] != y.shape[:-2] or x.dtype != y.dtype or out.dtype.kind != "f":
            return None
        kept = [a for a in range(stack) if a not in axes]
        m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
        rest = tuple([x.shape[a] for a in kept])
        inner = k * math.prod([x.shape[a] for a in axes])
        a = self.reshape(self.permute(x, [*kept, stack, *axes, stack + 1]), (*rest, m, inner))
        b = self.reshape(self.permute(y, [*kept, *axes, stack, stack + 1]), (*rest, inner, n))
        joined = self.apply("matmul", (a, b), (), (*rest, m, n), out.dtype)
        return self.reshape(joined, e.results[0].shape)
