"""Bodies over a batch of few numbers each, cell by cell: of arrays (batch, 2, 2) four columns.

Steps of many systems at once (`vmap` of a solver, of a filter, of their Jacobians) carry arrays
whose first axis is the batch, and compute each member's new state from its own. Written for each
cell of the other axes, such a body is elementwise over the batch: some members go through all steps
in registers before the next ones do, and no lane moves to another.

An array whose first axis is not as long as the batch is the same for all members. What looks at
members of others, or at cells that only a step knows, is no case for this.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from funct.array import Array, asarray
from funct.compile.fusion.groups import REDUCTIONS
from funct.compile.joins import is_concat
from funct.compile.lines.vectors import NoLines
from funct.compile.rewriting.cells import is_elementwise, known_places
from funct.compile.rewriting.narrow import FOLDS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Node, Var

__all__ = ["Cells", "by_cells"]

Cells = list[Var]  # of one array, in order
Place = tuple[int, ...]

_MOST_CELLS = 64  # of one array
_MOST_NODES = 512  # that are written: code for each takes its time
_SAME = frozenset({"settled", "stop_gradient", "checkpoint_name"})


def by_cells(graph: Graph, batch: int) -> tuple[Graph, list[Cells], list[Cells]]:
    """The graph of cells, whose inputs and outputs are those of all arrays in order; which they
    are for each of the inputs and of the outputs. Raises: NoLines.
    """
    return _Walk(graph, batch).run()


class _Walk(NewNodes):
    """One walk, from the outputs' cells to what they are computed of."""

    prefix = "c"

    def __init__(self, graph: Graph, batch: int) -> None:
        super().__init__(graph)
        self.batch = batch
        self.made_by = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.known: dict[tuple[Var, Place], Var] = {}
        self.held = dict(graph.constants)

    def run(self) -> tuple[Graph, list[Cells], list[Cells]]:
        """Write it."""
        inputs = [self._given(v) for v in self.graph.inputs]
        outputs = [[self.cell(v, at) for at in self._places(v)] for v in self.graph.outputs]
        found = attrs.evolve(
            self.graph, inputs=tuple([v for cells in inputs for v in cells]),
            constants=tuple(self.constants.items()), nodes=tuple(self.nodes),
            outputs=tuple([v for cells in outputs for v in cells]),
        )  # fmt: skip
        return found, inputs, outputs

    def is_batched(self, v: Var) -> bool:
        """Whether an array has cells of each member."""
        return tuple(v.shape[:1]) == (self.batch,)

    def _core(self, v: Var) -> tuple[int, ...]:
        return tuple(v.shape[1:]) if self.is_batched(v) else tuple(v.shape)

    def _places(self, v: Var) -> list[Place]:
        core = self._core(v)
        if math.prod(core) > _MOST_CELLS:
            raise NoLines("a member of the batch is many numbers")
        return list(np.ndindex(*core))

    def _new(self, v: Var) -> Var:
        return self.var((self.batch,) if self.is_batched(v) else (), v.dtype)

    def _given(self, v: Var) -> Cells:
        for at in self._places(v):
            self.known[v, at] = self._new(v)
        return [self.known[v, at] for at in self._places(v)]

    def cell(self, v: Var, at: Place) -> Var:
        """v[:, *at], or v[*at] of what is the same for all members."""
        found = self.known.get((v, at))
        if found is None:
            found = self.known[v, at] = self._computed(v, at)
        return found

    def _computed(self, v: Var, at: Place) -> Var:
        if v in self.held:
            x = np.asarray(self.held[v].data)
            key: Any = (slice(None), *at) if self.is_batched(v) else at
            return self._constant(x[key])
        e = self.made_by[v]
        self.site = e.site
        if len(self.nodes) > _MOST_NODES or len(e.results) != 1:
            raise NoLines("cells of many ops")
        name = "concat" if is_concat(e) else "reduction" if e.name in REDUCTIONS else e.name
        rule = getattr(self, f"_of_{name}", None)
        if rule is not None:
            found: Var = rule(e, at)
            return found
        if not is_elementwise(e) and e.name not in _SAME:
            raise NoLines(f"{e.name} is not computed cell by cell")
        given = [self._beside(a, v, at) if isinstance(a, Var) else a for a in e.operands]
        out = self._new(v)
        return self.apply_to(e.name, given, e.params, out)

    def _constant(self, x: Any) -> Var:
        v = self.var(x.shape, x.dtype)
        held = asarray(np.ascontiguousarray(x))
        assert isinstance(held, Array)
        self.constants[v] = held
        return v

    def _beside(self, a: Var, out: Var, at: Place) -> Var:
        """The cell of an operand that is broadcast to the result."""
        places = [*([0] if self.is_batched(out) else []), *at]
        places = places[len(places) - len(a.shape) :]
        if self.is_batched(a):
            if len(a.shape) != len(out.shape) or not self.is_batched(out):
                raise NoLines("members stand along another axis")
            places = places[1:]
        core = self._core(a)
        return self.cell(a, tuple([0 if n == 1 else k for k, n in zip(places, core, strict=True)]))

    def _along(self, e: Node) -> int:
        """How many first axes of an op's operand and result, which are alike, are no cells."""
        x, out = e.operands[0], e.results[0]
        if not isinstance(x, Var) or self.is_batched(x) != self.is_batched(out):
            raise NoLines(f"{e.name} along the batch")
        return int(self.is_batched(out))

    # Ops that look elsewhere

    def _of_broadcast_to(self, e: Node, at: Place) -> Var:
        x, out = e.operands[0], e.results[0]
        assert isinstance(x, Var)
        return self._beside(x, out, at)

    def _of_reshape(self, e: Node, at: Place) -> Var:
        self._along(e)
        x, out = e.operands[0], e.results[0]
        assert isinstance(x, Var)
        core, place = self._core(out), 0
        if core:
            place = int(np.ravel_multi_index(at, core))
        to = self._core(x)
        return self.cell(x, tuple(map(int, np.unravel_index(place, to))) if to else ())

    def _of_permute_dims(self, e: Node, at: Place) -> Var:
        lead, (axes,) = self._along(e), e.params
        if lead and axes[0] != 0:
            raise NoLines("members stand along another axis")
        where = dict(zip(axes[lead:], at, strict=True))
        return self.cell(e.operands[0], tuple([where[a] for a in sorted(where)]))  # type: ignore[arg-type]

    def _of_slice_(self, e: Node, at: Place) -> Var:
        lead, x = self._along(e), e.operands[0]
        assert isinstance(x, Var)
        ranges = [range(*slice(*t).indices(n)) for t, n in zip(e.params[0], x.shape, strict=True)]
        if lead and ranges[0] != range(self.batch):
            raise NoLines("some members of the batch")
        return self.cell(x, tuple([r[k] for r, k in zip(ranges[lead:], at, strict=True)]))

    def _of_flip(self, e: Node, at: Place) -> Var:
        lead, x = self._along(e), e.operands[0]
        assert isinstance(x, Var)
        if lead and 0 in e.params[0]:
            raise NoLines("members of the batch turned")
        core = enumerate(zip(at, self._core(x), strict=True), lead)
        return self.cell(x, tuple([n - 1 - k if a in e.params[0] else k for a, (k, n) in core]))

    def _of_concat(self, e: Node, at: Place) -> Var:
        lead, (axis,) = self._along(e), e.params
        k = axis - lead
        if k < 0:
            raise NoLines("members of several batches")
        place = at[k]
        for v in e.operands:
            if not isinstance(v, Var) or self.is_batched(v) != self.is_batched(e.results[0]):
                raise NoLines("members of several batches")
            if place < v.shape[axis]:
                return self.cell(v, (*at[:k], place, *at[k + 1 :]))
            place -= v.shape[axis]
        raise AssertionError("a place of one of them")

    def _of_take(self, e: Node, at: Place) -> Var:
        lead, x, (axis,) = self._along(e), e.operands[0], e.params
        assert isinstance(x, Var)
        k, chosen = axis - lead, known_places(e, self.held)
        if k < 0 or chosen is None:
            raise NoLines("places that a step knows")
        return self.cell(x, (*at[:k], chosen[at[k]], *at[k + 1 :]))

    def _of_embed(self, e: Node, at: Place) -> Var:
        lead, g, (triples, shape) = self._along(e), e.operands[0], e.params
        assert isinstance(g, Var)
        ranges = [range(*slice(*t).indices(n)) for t, n in zip(triples, shape, strict=True)]
        if lead and ranges[0] != range(self.batch):
            raise NoLines("some members of the batch")
        inside = list(zip(ranges[lead:], at, strict=True))
        if any(k not in r for r, k in inside):
            return self._constant(np.zeros((), g.dtype))
        return self.cell(g, tuple([r.index(k) for r, k in inside]))

    def _of_reduction(self, e: Node, at: Place) -> Var:
        x, out, (axes, kept) = e.operands[0], e.results[0], e.params
        assert isinstance(x, Var)
        lead = int(self.is_batched(x))
        if (lead and 0 in axes) or self.is_batched(out) != self.is_batched(x):
            raise NoLines("it looks at all members")
        rest = iter([k for a, k in enumerate(at, lead) if a not in axes] if kept else at)
        each = [range(n) if a in axes else (next(rest),) for a, n in enumerate(self._core(x), lead)]
        cells = [self.cell(x, tuple(place)) for place in _every(each)]
        if x.dtype != out.dtype:
            cells = [self.apply("astype", (c,), (out.dtype,), c.shape, out.dtype) for c in cells]
        return functools.reduce(functools.partial(self._both, FOLDS[e.name]), cells)

    def _of_matmul(self, e: Node, at: Place) -> Var:
        x, y = e.operands
        assert isinstance(x, Var)
        assert isinstance(y, Var)
        of_rows = self.is_batched(x) and len(x.shape) == 2  # each member is a row
        if self.is_batched(y) and (of_rows or len(y.shape) < 3):
            raise NoLines("members stand along an axis of a matrix")
        if of_rows != (self.is_batched(e.results[0]) and len(e.results[0].shape) == 2):
            raise NoLines("members are rows of one matrix and no rows of another")
        *stack, i, j = [0, *at] if self.is_batched(e.results[0]) else at

        def factor(a: Var, row: int, column: int) -> Var:
            places = [*stack, row, column][len(stack) + 2 - len(a.shape) :]
            places = places[1:] if self.is_batched(a) else places
            core = self._core(a)
            one = [0 if n == 1 else k for k, n in zip(places, core, strict=True)]
            return self.cell(a, tuple(one))

        terms = [
            self._both("multiply", factor(x, i, k), factor(y, k, j)) for k in range(x.shape[-1])
        ]
        return functools.reduce(functools.partial(self._both, "add"), terms)

    def _both(self, name: str, x: Var, y: Var) -> Var:
        return self.apply(name, (x, y), (), x.shape or y.shape, x.dtype)


def _every(each: Sequence[Sequence[int]]) -> list[Place]:
    found: list[Place] = [()]
    for places in each:
        found = [(*at, k) for at in found for k in places]
    return found
