"""Attention that is written out, and its gradient, as the ops that hold no matrix of weights.

What the products of weights are says `weights.py`. Where nobody else needs the weights, all of them
are `attention` and `attention_pull` (`funct.ops`).

A mask that chooses a finite number in place of scores hides keys by that, if it is low: queries
that see no key attend to all of them alike. Here the same is had by other means: such a query is 0
and sees every key. With -inf its weights are no numbers, and so is then the query.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct

from funct import ops
from funct.compile.rewriting.attention import WORTH
from funct.compile.rewriting.new_nodes import Known, NewNodes
from funct.compile.rewriting.scores import NEW, Axes, End, Mask, Product, Softmax
from funct.compile.rewriting.terms import ROUNDED
from funct.compile.rewriting.weights import Weights
from funct.core import Value
from funct.graph import Graph, Node, Var, eliminate_dead, share_common
from funct.graph.passes import substituted
from funct.ops.fast import wrap

__all__ = ["handed_over"]

Lying = tuple[Var, Axes]  # an array, and which axes of the scores its own are

_MASKED = 1 << 16  # scores of a head, if a mask must be looked at
_NO_SEED = wrap(np.zeros((1, 2), np.uint32))


def handed_over(graph: Graph) -> Graph:
    """The graph with attention for what is written out, where its kernel is quicker."""
    weights = Weights(graph)
    found = [_Attention.of(weights, s, ends) for s, ends in weights.ends.items()]
    jobs = [j for j in found if j is not None]
    while jobs:
        new = _Rewriting(graph).run(jobs)
        live = {v for e in new.nodes if isinstance(e, Node) for v in e.results}
        kept = [j for j in jobs if j.softmax.of not in live]
        if len(kept) == len(jobs):
            return new
        jobs = kept  # others need these weights
    return graph


class _Rewriting(NewNodes):
    """One walk, in which attention takes the place of its products."""

    prefix = "at"

    def run(self, jobs: Sequence[_Attention]) -> Graph:
        """Rewrite."""
        new: dict[Any, Any] = {}
        job_of = {end.node: (j, end) for j in jobs for end in j.ends}
        held: dict[_Attention, dict[str, list[Var]]] = {j: {} for j in jobs}
        for e in self.graph.nodes:
            found = job_of.get(e) if isinstance(e, Node) else None
            if found is None or not isinstance(e, Node):
                self.nodes.append(substituted(e, new))
                continue
            (j, end), self.site = found, e.site
            mine = held[j]
            if not mine:
                mine["all"] = self.spelled(j.forward, [new.get(v, v) for v in j.given])
                mine["o"] = mine["all"][:1]
            if end.kind != "o" and "dq" not in mine:
                assert j.cotangent is not None
                g = new.get(j.cotangent[0], j.cotangent[0])
                pulled = self.spelled(j.backward, [*mine["all"], g])
                mine |= {name: [v] for name, v in zip(("dq", "dk", "dv"), pulled, strict=True)}
            (new[e.results[0]],) = self.spelled(partial(j.laid, end), mine[end.kind])
        return eliminate_dead(share_common(self.finished(new)))


class _Attention(Struct, frozen=True, eq=False):
    """One attention, and the products that it stands for.

    operands: queries, keys and values, each with how it lies. cotangent: of the result. mask: None
    where it hides nothing, or as causal does. blind: whether queries may be that see no key.
    """

    softmax: Softmax
    ends: tuple[End, ...]
    operands: tuple[Lying, ...]
    cotangent: Lying | None
    mask: Mask | None
    causal: bool
    blind: bool

    @classmethod
    def of(cls, weights: Weights, softmax: Softmax, ends: Sequence[End]) -> _Attention | None:
        """What these products are; None where they are of several attentions."""
        q, k = softmax.lies(softmax.queries), softmax.lies(softmax.along)
        values = {e.other for e in ends if e.kind == "o"}
        cotangents = {e.other for e in ends if e.kind == "dv"}
        for e in ends:
            if e.d is not None:
                g, v = _parted(e.d, softmax)
                values.add(v)
                cotangents.add(g)
        like = {"dq": k, "dk": q}
        if any(e.other != like.get(e.kind, e.other) for e in ends):
            return None
        backward = [e for e in ends if e.kind != "o"]
        if len(values) != 1 or len(cotangents) > 1 or (backward and not cotangents):
            return None
        mask, causal, blind = _hidden(softmax, dict(weights.constants))
        cotangent = cotangents.pop() if cotangents else None
        found = cls(softmax, tuple(ends), (q, k, values.pop()), cotangent, mask, causal, blind)
        return found if found._is_worth_it() and found._is_in_time(weights.graph) else None

    def _is_worth_it(self) -> bool:
        """Whether the kernel is quicker, and there is enough to do for its code to be made."""
        (q, of_q), (k, of_k), (v, _) = self.operands
        queries = q.shape[of_q.index(self.softmax.queries)]
        keys = k.shape[of_k.index(self.softmax.along)]
        scores, work = queries * keys, math.prod(q.shape) * keys + math.prod(v.shape) * queries
        return work >= WORTH and (self.mask is None or scores >= _MASKED)

    def _is_in_time(self, graph: Graph) -> bool:
        """Whether all is there where it is asked for first."""
        made = {v: k for k, e in enumerate(graph.nodes) if isinstance(e, Node) for v in e.results}
        first = min([made[e.node.results[0]] for e in self.ends])
        back = [made[e.node.results[0]] for e in self.ends if e.kind != "o"]
        needed = [(v, first) for v in self.given]
        needed += [(self.cotangent[0], min(back))] if self.cotangent and back else []
        return all(made.get(v, -1) < place for v, place in needed)

    @property
    def given(self) -> list[Var]:
        """What it is computed from."""
        return [v for v, _ in self.operands] + ([self.mask.of] if self.mask else [])

    @property
    def _lead(self) -> list[int]:
        """The axes of heads."""
        own = (self.softmax.queries, self.softmax.along)
        return [k for k in range(len(self.softmax.scores.product.labels)) if k not in own]

    def forward(self, q: Value, k: Value, v: Value, *mask: Value) -> Sequence[Value]:
        """The result, lse, operands as the kernel has them and, where queries may see no key,
        which do.
        """
        rows = (self.softmax.queries, self.softmax.along, self.softmax.along)
        (_, of_q), (_, of_k), (_, of_v) = self.operands
        q, k, v = (
            self._stacked(x, lies, row)
            for x, lies, row in zip((q, k, v), (of_q, of_k, of_v), rows, strict=True)
        )
        seen: list[Value] = []
        hidden = self._mask(*mask) if mask else wrap(np.ones((1, 1), np.bool_))
        if self.blind:
            assert self.mask is not None
            shows = hidden if self.mask.fill is not None else ops.not_equal(hidden, -np.inf)
            seen = [ops.any(shows, (len(shows.shape) - 1,), True)]
            alike = self.mask.fill is not None and math.isfinite(self.mask.fill)
            q = ops.where(seen[0], q, 0.0 if alike else np.nan)
            hidden = ops.logical_or(hidden, ops.logical_not(seen[0])) if alike else hidden
        o, lse = ops.attention(q, k, v, hidden, _NO_SEED, *self._numbers)
        return o, lse, q, k, v, hidden, *seen

    def backward(
        self, o: Value, lse: Value, q: Value, k: Value, v: Value, mask: Value, *rest: Value
    ) -> Sequence[Value]:
        """The cotangents of queries, keys and values. rest: which queries see some key, and g."""
        assert self.cotangent is not None
        g = self._stacked(rest[-1], self.cotangent[1], self.softmax.queries)
        delta = ops.reduce_sum(g * o, (len(o.shape) - 1,), False)
        found = ops.attention_pull(q, k, v, mask, _NO_SEED, lse, g, delta, *self._numbers)
        dq, dk, dv = found
        return ops.where(rest[0], dq, 0.0) if rest[1:] else dq, dk, dv

    def laid(self, end: End, x: Value) -> Sequence[Value]:
        """What a product gave, laid as it was."""
        softmax = self.softmax
        of_scores = end.kind in ("dq", "dk")
        factor = end.factor / softmax.scores.scale if of_scores else end.factor
        row = softmax.queries if end.kind in ("o", "dq") else softmax.along
        axes = [*self._lead, row, NEW]
        x = _turned(x, [axes.index(a) for a in end.order])
        return [x if abs(factor - 1) < ROUNDED else x * factor]

    @property
    def _numbers(self) -> tuple[bool, float, float]:
        return self.causal, self.softmax.scores.scale, 0.0

    def _stacked(self, x: Value, lies: Axes, row: int) -> Value:
        """An operand with axes (…, row, feature)."""
        return _turned(x, [lies.index(a) for a in (*self._lead, row, NEW)])

    def _mask(self, x: Value) -> Value:
        """The mask with axes (…, query, key), some of length 1."""
        assert self.mask is not None
        axes = (*self._lead, self.softmax.queries, self.softmax.along)
        missing = [a for a in axes if a not in self.mask.axes]
        x = ops.reshape(x, (*[1] * len(missing), *x.shape))
        lies = (*missing, *self.mask.axes)
        x = _turned(x, [lies.index(a) for a in axes])
        return ops.logical_not(x) if self.mask.hides else x


def _turned(x: Value, axes: Sequence[int]) -> Value:
    return x if list(axes) == sorted(axes) else ops.permute_dims(x, tuple(axes))


def _parted(d: tuple[Product, Axes], softmax: Softmax) -> tuple[Lying, Lying]:
    """The cotangent of the result and the values, of whose product the gradient is made."""
    product, axes = d
    found = []
    for axis in (softmax.queries, softmax.along):
        of, labels = product.side(product.labels[axes.index(axis)])
        where = [product.labels.find(c) for c in labels]
        found.append((of, tuple([NEW if k < 0 else axes[k] for k in where])))
    return found[0], found[1]


def _hidden(softmax: Softmax, known: Known) -> tuple[Mask | None, bool, bool]:
    """The mask, if it must be looked at; whether it is causal; whether queries may see no key."""
    mask = softmax.scores.mask
    if mask is None or mask.of not in known:
        return mask, False, mask is not None
    held = np.asarray(known[mask.of].data)
    if mask.fill is None:
        return mask, False, bool(np.any(np.max(held, -1) == -np.inf))
    if mask.axes[-1:] != (softmax.along,):
        return mask, False, True
    shows = held != mask.hides
    lengths = []
    for axis in (softmax.queries, softmax.along):
        of, lies = softmax.lies(axis)
        lengths.append(of.shape[lies.index(axis)])
    if shows.shape[-2:] == tuple(lengths) and mask.axes[-2:-1] == (softmax.queries,):
        causal = np.tri(*lengths, dtype=np.bool_)
        if np.array_equal(np.broadcast_to(causal, shows.shape), shows):
            return None, True, False
    return mask, False, not bool(np.all(np.any(shows, -1)))
