"""A graph on few elements as NumPy computes it: what rounds is done by the loops behind its ufuncs.

A function of NumPy calls is followed by machine code once it is called often (`entry.faster`), and
equal arguments give equal results before and after. Exact ops are the same whoever computes them.
Functions, reductions and products keep NumPy's loops, which programs call by address
(`steps/ufuncs.py`, `steps/folds.py`, `steps/loop_products.py`); such nodes have names that say so.
"""

from __future__ import annotations

import enum
import math
from typing import Any

import attrs
import numpy as np

from funct.compile.fusion.groups import is_apart, why_not
from funct.compile.fusion.worth import FEW_ELEMENTS
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.views import VIEWS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.compile.steps.along import is_along
from funct.compile.steps.factors import is_factors
from funct.compile.steps.flat import is_flat
from funct.compile.steps.folds import may_fold
from funct.compile.steps.loop_products import may_be_numpys_product
from funct.compile.steps.matrices import is_matrices
from funct.compile.steps.moves import is_move
from funct.compile.steps.rows import is_doubted_rows, is_rows
from funct.compile.steps.systems import is_systems
from funct.compile.steps.ufuncs import NUMPYS, is_ufunc
from funct.compile.steps.vector_products import is_eager_vector_product
from funct.compile.text import asks
from funct.core import Primitive, lookup
from funct.graph import Graph, Node, Var
from funct.kernels.cpu.reductions.long_rows import PAYS
from funct.kernels.linalg.stacks import are_some, reduces

__all__ = ["as_numpy_computes", "with_drawn_bits"]

# Ops whose result is one number, whoever computes it; of extremes the zero's sign is not.
_SAME = frozenset({
    "abs", "absorb", "add", "all", "any", "bitwise_and", "bitwise_invert", "bitwise_or",
    "bitwise_xor", "copysign", "divide", "equal", "greater", "greater_equal", "isfinite", "isinf",
    "isnan", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor",
    "multiply", "negative", "not_equal", "reciprocal", "signbit", "sqrt", "square", "subtract",
    "where",
})  # fmt: skip
_PLACES = frozenset({"argmax", "argmin"})
_IN_TURN = frozenset({
    "argsort", "cumulative_prod", "cumulative_sum", "running_argmax", "searchsorted", "sort",
    "top_k",
})  # fmt: skip
_MOVED = frozenset({"concat", "embed", "put_along_axis", "take_along_axis"})
_FACTORS = frozenset({-2, -1, -0.5, 0.5, 1, 2, 3, 4})  # powers of arrays that are products or roots
# From how many elements on eager execution has code of our own with other bits.
_OURS = {"reduce_prod": PAYS}
_IN_PLACE = frozenset({"settled", "stop_gradient", "checkpoint_name"})  # views that are all of it


class _Order(enum.IntEnum):
    """How NumPy has the elements of an array in memory."""

    DENSE = 0  # one after the other
    SPREAD = 1  # in their order, with others between them, or again and again
    TURNED = 2  # in another order, or in one that is not followed here


def as_numpy_computes(graph: Graph) -> Graph | None:
    """The graph with NumPy's bits, for one program; None where something in it cannot have them."""
    walk = _Walk(graph)
    if not all(map(walk.takes, graph.nodes)):
        return None
    return attrs.evolve(graph, nodes=tuple(walk.nodes), constants=tuple(walk.constants.items()))


def with_drawn_bits(graph: Graph) -> Graph:
    """The graph of a function that draws, with what samplers make of few numbers left to NumPy:
    factors of covariances, and products with what is drawn. Draws are the same however a function
    is run.
    """
    nodes = [e for e in graph.nodes if isinstance(e, Node)]
    if not any(map(_draws, nodes)):
        return graph
    made_by = {v: e for e in nodes for v in e.results}

    def drawn(v: Any) -> bool:
        e = made_by.get(v)
        return e is not None and (_draws(e) or (e.name in VIEWS and any(map(drawn, e.reads))))

    def written(e: Any) -> Any:
        if not isinstance(e, Node):
            return e
        product = may_be_numpys_product(e) and any(map(drawn, e.reads))
        factor = e.name == "cholesky" and is_matrices(e) and _is_few(e)
        factor = factor and not (is_systems(e) and are_some(e.reads[0].shape))  # in lanes
        return _numpys(e) if product or factor else e

    return attrs.evolve(graph, nodes=tuple(map(written, graph.nodes)))


def _draws(e: Node) -> bool:
    return e.name.startswith("random_")


class _Walk(NewNodes):
    """One walk over the nodes. NumPy adds up what lies in memory in the order in which it lies
    there, and lays results out like operands: so it is told which arrays lie as programs have them.
    """

    prefix = "n"

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.orders = dict.fromkeys(graph.inputs, _Order.DENSE)
        for v, x in graph.constants:
            dense = np.asarray(x.data).flags.c_contiguous
            self.orders[v] = _Order.DENSE if dense else _Order.TURNED
        self.matrices: set[Var] = set()  # turned, of two axes, and dense before that

    def takes(self, e: object) -> bool:
        """Whether a node can have NumPy's bits; it is written then."""
        if not isinstance(e, Node) or any(v.dtype not in ELEMENTS for v in e.results):
            return False
        self.site = e.site
        order = max([self.orders[v] for v in e.reads], default=_Order.DENSE)
        if e.name in VIEWS:
            self._view(e, order)
            self.keep(e)
            return True
        by_vector = is_eager_vector_product(e)
        product = by_vector or may_be_numpys_product(e)
        turned = order is _Order.TURNED and not product
        self.orders |= dict.fromkeys(e.results, _Order.TURNED if turned else _Order.DENSE)
        if _is_ours(e):
            self.keep(e)
            return True
        if e.name == "sigmoid" and e.results[0].dtype.char in "fd":
            return self._sigmoid(e)
        if e.name == "relu" and e.results[0].dtype.char in "fd":
            e = attrs.evolve(e, primitive=_primitive("maximum"), operands=(*e.operands, 0.0))
        if _is_same(e) or _is_lapacks(e) or (by_vector and self._are_matrices(e)):
            self.keep(e)
        elif self._is_numpys(e, order):
            self.keep(_numpys(e))
        else:
            return False
        return True

    def _sigmoid(self, e: Node) -> bool:
        """Its steps (`kernels.elementwise.sigmoid`)."""
        (x,), (out,) = e.reads, e.results

        def step(name: str, *operands: Any) -> Var:
            v = self.var(out.shape, out.dtype)
            self.orders[v] = self.orders[out]
            e = Node(_primitive(name), operands, (), (v,), self.site)
            self.keep(_numpys(e) if name == "exp" else e)
            return v

        small = step("exp", step("minimum", x, step("negative", x)))
        positive = self.var(out.shape, bool)
        self.orders[positive] = self.orders[out]
        self.keep(Node(_primitive("greater"), (x, 0.0), (), (positive,), self.site))
        above = step("where", positive, 1.0, small)  # exp(x) below 0, whose sign nothing changes
        self.apply_to("divide", (above, step("add", 1.0, small)), (), out)
        return True

    def _view(self, e: Node, order: _Order) -> None:
        (v,) = e.results
        if e.name == "permute_dims" and order is _Order.DENSE and len(v.shape) == 2:
            self.matrices.add(v)
        if e.name in ("permute_dims", "flip") or (e.name == "slice_" and _is_backward(e)):
            order = _Order.TURNED
        elif e.name not in _IN_PLACE and not (e.name == "reshape" and order is _Order.DENSE):
            order = max(order, _Order.SPREAD)
        self.orders[v] = order

    def _is_numpys(self, e: Node, order: _Order) -> bool:
        """Whether NumPy's loops are called as NumPy calls them, and eagerly as well."""
        if max([math.prod(v.shape) for v in e.reads], default=0) >= _OURS.get(e.name, math.inf):
            return False
        if asks(e):
            return False
        if may_fold(e):
            return order is _Order.DENSE
        return self._are_matrices(e) if may_be_numpys_product(e) else is_ufunc(e)

    def _are_matrices(self, e: Node) -> bool:
        """Whether operands are dense, or the transposes of what is."""
        return all(self.orders[v] is _Order.DENSE or v in self.matrices for v in e.reads)


def _primitive(name: str) -> Primitive:
    found = lookup(name)
    assert found is not None, "ops of the catalogue"
    return found


def _numpys(e: Node) -> Node:
    return attrs.evolve(e, primitive=attrs.evolve(e.primitive, name=f"{NUMPYS}{e.name}"))


def _is_ours(e: Node) -> bool:
    """Whether it is a function that eager execution has code of our own for, as loops have it."""
    if not asks(e):
        return False  # such as an effect without results
    out = e.results[0].dtype
    alike = out.char in "fd" and all(v.dtype == out for v in e.reads)
    return alike and not why_not(e) and not (e.name == "pow" and not _by_arrays(e))


def _by_arrays(power: Node) -> bool:
    return all(isinstance(v, Var) and v.shape for v in power.operands)


def _is_few(e: Node) -> bool:
    return all(math.prod(v.shape) <= FEW_ELEMENTS for v in (*e.reads, *e.results))


def _is_lapacks(e: Node) -> bool:
    """Whether programs hold a node as eager execution's call of linear algebra."""
    ours = e.name == "solve_triangular" or is_systems(e)
    ours = ours or (e.name == "qr" and are_some(e.reads[0].shape))
    ours = ours or (e.name == "eigvalsh" and reduces(e.reads[0].shape, False))
    called = is_rows(e) or is_doubted_rows(e) or is_matrices(e) or is_factors(e)
    return _is_few(e) and not ours and called


def _is_backward(e: Node) -> bool:
    return any(step is not None and step < 0 for _, _, step in e.params[0])


def _is_same(e: Node) -> bool:
    """Whether a node gives one result whoever computes it, and a program can hold it."""
    if e.name in _PLACES:
        (x,) = e.reads
        return x.dtype in ELEMENTS and x.dtype.kind != "b" and 0 not in x.shape
    if e.name in _IN_TURN or _draws(e):
        return is_flat(e)
    if e.name in _MOVED:
        return is_move(e) or is_along(e)
    if why_not(e) and not (e.name in ("all", "any") and is_apart(e)):
        return False
    if e.name == "astype":
        return e.results[0].dtype.char in "fd" or e.reads[0].dtype.kind == "b"
    if e.name == "pow":
        base, y = e.operands
        array = isinstance(base, Var) and bool(base.shape) and base.dtype.char in "fd"
        return array and y in _FACTORS
    return e.name in _SAME
