"""Ops for one place of the last axes at a time: of an array (…, 3, 3), what stands at (…, i, j).

A place of most results comes from places of the operands. Where that is not so the place is looked
up in the array, which loops read as whole vectors of all places (`loops/weaving.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funct.compile.fusion.groups import REDUCTIONS, is_weave, why_not
from funct.compile.joins import is_concat
from funct.compile.loops.views import VIEWS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Node, Var

__all__ = ["Cells", "Places", "core_of_reshaped", "is_elementwise", "known_places", "takes"]

Places = tuple[int, ...]
_SAME = frozenset({"settled", "stop_gradient", "checkpoint_name"})


class Cells(NewNodes):
    """Who writes arrays place by place."""

    prefix = "p"

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.made_by = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.parts: dict[tuple[Var, Places], Var] = {}

    def part(self, v: Var, places: Places) -> Var:
        """v[..., *places], where an axis of one element has the same at all places."""
        core = v.shape[max(0, len(v.shape) - len(places)) :]
        given = places[len(places) - len(core) :]
        at = tuple([0 if n == 1 else k for k, n in zip(given, core, strict=True)])
        if not at:
            self.needs(v)
            return v
        found = self.parts.get((v, at))
        if found is None:
            found = self.parts[v, at] = self._computed(v, at) or self._looked_up(v, at)
        return found

    def follows(self, v: Var) -> bool:
        """Whether places of v are computed, not looked up."""
        raise NotImplementedError

    def needs(self, v: Var) -> None:
        """Write v, if it is not written."""
        raise NotImplementedError

    def column(self, x: Var) -> Var:
        """x with a last axis of one element."""
        return self.reshape(x, (*x.shape, 1))

    def side_by_side(self, parts: Sequence[Var], out: Var) -> Var:
        """Arrays as the places of out's last axes."""
        columns = [self.column(p) for p in parts]
        shape = (*parts[0].shape, len(parts))
        axis = len(shape) - 1
        if shape == tuple(out.shape):
            return self.concat(columns, axis, out)
        whole = self.concat(columns, axis, self.var(shape, out.dtype))
        return self.apply_to("reshape", (whole,), (tuple(out.shape),), out)

    def _looked_up(self, v: Var, at: Places) -> Var:
        self.needs(v)
        lead, core = v.shape[: -len(at)], v.shape[-len(at) :]
        if math.prod(core) == 1:
            return self.reshape(v, lead)
        triples = (*[(None, None, 1)] * len(lead), *[(k, k + 1, 1) for k in at])
        one = self.apply("slice_", (v,), (triples,), (*lead, *[1] * len(at)), v.dtype)
        return self.reshape(one, lead)

    def _computed(self, v: Var, at: Places) -> Var | None:
        e = self.made_by.get(v)
        if e is None or not self.follows(v):
            return None
        rule = getattr(self, f"_of_{'concat' if is_concat(e) else e.name}", None)
        if rule is not None:
            found: Var | None = rule(e, at)
            return found
        if not is_elementwise(e) and e.name not in _SAME:
            return None
        given = [self.part(a, at) if isinstance(a, Var) else a for a in e.operands]
        return self.apply(e.name, given, e.params, v.shape[: -len(at)], v.dtype)

    # Ops that look elsewhere

    def _of_broadcast_to(self, e: Node, at: Places) -> Var | None:
        x: Any = e.operands[0]
        lead, p = e.results[0].shape[: -len(at)], self.part(x, at)
        return p if p.shape == lead else self.apply("broadcast_to", (p,), (lead,), lead, p.dtype)

    def _of_reshape(self, e: Node, at: Places) -> Var | None:
        x, out = e.operands[0], e.results[0]
        assert isinstance(x, Var)
        n = core_of_reshaped(out.shape, x.shape, len(at))
        if n is None:
            return None
        core = x.shape[len(x.shape) - n :]
        place = int(np.ravel_multi_index(at, out.shape[-len(at) :]))
        there = tuple(map(int, np.unravel_index(place, core))) if core else ()
        return self.reshape(self.part(x, there), out.shape[: -len(at)])

    def _of_permute_dims(self, e: Node, at: Places) -> Var | None:
        x, (axes,) = e.operands[0], e.params
        assert isinstance(x, Var)
        lead = len(axes) - len(at)
        if min(axes[lead:]) < lead:
            return None
        where = dict(zip(axes[lead:], at, strict=True))
        return self.permute(self.part(x, tuple([where[a] for a in sorted(where)])), axes[:lead])

    def _of_slice_(self, e: Node, at: Places) -> Var | None:
        x, (triples,) = e.operands[0], e.params
        assert isinstance(x, Var)
        ranges = [range(*slice(*t).indices(n)) for t, n in zip(triples, x.shape, strict=True)]
        lead = len(ranges) - len(at)
        p = self.part(x, tuple([r[k] for r, k in zip(ranges[lead:], at, strict=True)]))
        shape = [len(r) for r in ranges[:lead]]
        if tuple(shape) == tuple(p.shape) and all(r.step > 0 for r in ranges[:lead]):
            return p
        return self.apply("slice_", (p,), (tuple(triples[:lead]),), shape, p.dtype)

    def _of_flip(self, e: Node, at: Places) -> Var | None:
        x, (axes,) = e.operands[0], e.params
        assert isinstance(x, Var)
        lead = len(x.shape) - len(at)
        turned = [x.shape[lead + k] - 1 - i if lead + k in axes else i for k, i in enumerate(at)]
        p, rest = self.part(x, tuple(turned)), tuple([a for a in axes if a < lead])
        return self.apply("flip", (p,), (rest,), p.shape, p.dtype) if rest else p

    def _of_concat(self, e: Node, at: Places) -> Var | None:
        (axis,) = e.params
        k = axis - (len(e.results[0].shape) - len(at))
        if k < 0:
            return None
        place = at[k]
        for v in e.operands:
            assert isinstance(v, Var)
            if place < v.shape[axis]:
                return self.part(v, (*at[:k], place, *at[k + 1 :]))
            place -= v.shape[axis]
        raise AssertionError("a place of one of them")

    def _of_take(self, e: Node, at: Places) -> Var | None:
        x, (axis,) = e.operands[0], e.params
        assert isinstance(x, Var)
        k, chosen = axis - (len(x.shape) - len(at)), known_places(e, self.constants)
        if k < 0 or chosen is None:
            return None
        return self.part(x, (*at[:k], chosen[at[k]], *at[k + 1 :]))

    def _of_embed(self, e: Node, at: Places) -> Var | None:
        g, (triples, shape) = e.operands[0], e.params
        assert isinstance(g, Var)
        ranges = [range(*slice(*t).indices(n)) for t, n in zip(triples, shape, strict=True)]
        lead = len(ranges) - len(at)
        to = tuple(shape[:lead])
        if any(k not in r for r, k in zip(ranges[lead:], at, strict=True)):
            zero = self.constant(np.zeros((), g.dtype))
            return self.apply("broadcast_to", (zero,), (to,), to, g.dtype)
        p = self.part(g, tuple([r.index(k) for r, k in zip(ranges[lead:], at, strict=True)]))
        if all(r == range(n) for r, n in zip(ranges, to, strict=False)):
            return p
        return self.apply("embed", (p,), (tuple(triples[:lead]), to), to, g.dtype)

    # Small matrices

    def _of_matmul(self, e: Node, at: Places) -> Var | None:
        x, y = e.operands
        assert isinstance(x, Var)
        assert isinstance(y, Var)
        if len(at) != 2:
            return None
        out, terms = e.results[0], range(x.shape[-1])
        lead, column = out.shape[: -len(at)], at[-1]
        pairs = [(self.part(x, (*at[:-1], k)), self.part(y, (k, column))) for k in terms]
        products = [self.apply("multiply", pair, (), lead, out.dtype) for pair in pairs]
        return functools.reduce(functools.partial(self._combined, "add"), products)

    def _of_cofactor(self, e: Node, at: Places) -> Var | None:
        x, out = e.operands[0], e.results[0]
        assert isinstance(x, Var)
        return self._narrowed(self._cofactor(x, *at), out.dtype) if len(at) == 2 else None

    def determinant(self, e: Node) -> None:
        """Write determinants of matrices of two or three rows, by the first one."""
        x, out = e.operands[0], e.results[0]
        assert isinstance(x, Var)
        terms = [
            self._times(self._wide(x, 0, j), self._cofactor(x, 0, j)) for j in range(x.shape[-1])
        ]
        total = functools.reduce(functools.partial(self._combined, "add"), terms)
        self.apply_to("reshape", (self._narrowed(total, x.dtype),), (out.shape,), out)

    def _cofactor(self, x: Var, i: int, j: int) -> Var:
        """What an element is multiplied by in the determinant."""
        if x.shape[-1] == 2:
            a = self._wide(x, 1 - i, 1 - j)
            return a if i == j else self.apply("negative", (a,), (), a.shape, a.dtype)
        (r, s), (c, d) = [[(k + step) % 3 for step in (1, 2)] for k in (i, j)]
        first = self._times(self._wide(x, r, c), self._wide(x, s, d))
        return self._combined(
            "subtract", first, self._times(self._wide(x, r, d), self._wide(x, s, c))
        )

    def _wide(self, x: Var, i: int, j: int) -> Var:
        """An element in double precision, in which products of single ones are exact."""
        p = self.part(x, (i, j))
        if p.dtype == np.float64:
            return p
        return self.apply("astype", (p,), (np.dtype(np.float64),), p.shape, np.float64)

    def _narrowed(self, p: Var, dtype: Any) -> Var:
        return p if p.dtype == dtype else self.apply("astype", (p,), (dtype,), p.shape, dtype)

    def _times(self, x: Var, y: Var) -> Var:
        return self._combined("multiply", x, y)

    def _combined(self, name: str, x: Var, y: Var) -> Var:
        return self.apply(name, (x, y), (), x.shape, x.dtype)


def is_elementwise(e: Node) -> bool:
    """Whether loops hold the node, and an element of its result comes from one of each operand."""
    named = e.name in VIEWS or e.name in REDUCTIONS
    return not named and len(e.results) == 1 and not is_weave(e) and not why_not(e)


def takes(e: Any, v: Var) -> bool:
    """Whether a node is elementwise, and v has an element for each of its result."""
    return isinstance(e, Node) and is_elementwise(e) and e.results[0].shape == v.shape


def core_of_reshaped(of: Sequence[int], to: Sequence[int], n: int) -> int | None:
    """How many last axes of a shape are the last n of the shape that it is reshaped from."""
    size, below = math.prod(of[len(of) - n :]), 1
    for m in range(len(to) + 1):
        below *= to[len(to) - m] if m else 1
        if below == size and math.prod(to[: len(to) - m]) == math.prod(of[: len(of) - n]):
            return m
    return None


def known_places(e: Node, constants: Any) -> list[int] | None:
    """The places along an axis that `take` looks at, if they are known and there."""
    x, i, (axis,) = e.operands[0], e.operands[1], e.params
    if not isinstance(x, Var) or i not in constants:
        return None
    n, found = x.shape[axis], np.asarray(constants[i].data)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not found.size:
        return None
    places = [int(k) for k in found]
    return [k % n for k in places] if all(-n <= k < n for k in places) else None
