"""What is made of the exponentials of scores: weights of attention, and its gradient.

`softmax(where(mask, q @ k.mT * scale, -1e9)) @ v` has a few spellings, its gradient has hundreds:
how scores are scaled and masked, how the softmax is composed, in which order axes lie. So nothing
is compared with a pattern. Everything that is made of one matrix of exponentials is computed as a
polynomial instead: in e (the exponentials), d (cotangents by values: g @ v.mT), and for each row
l (the sum of e) and r (the sum of e d). What a product then multiplies by tells what the product
is: e / l times v is the result, its transpose times g the cotangent of v, and e d / l - e r / l²
times k or q, whatever it was computed by, that of q or k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from msgspec import structs

from funct.compile.rewriting.scores import (
    NEW,
    Axes,
    End,
    Made,
    Mask,
    Product,
    Scores,
    Softmax,
    Top,
)
from funct.compile.rewriting.terms import (
    ONE,
    ROUNDED,
    SHARE,
    Terms,
    added,
    inverse,
    multiplied,
    summed,
)
from funct.graph import Graph, Node, Var

__all__ = ["Weights"]

_LEAST = 1 << 26  # multiplications of queries and keys: no attention of fewer is worth its kernel
_LOW = -1e8  # a number that hides a key
_SAME = frozenset({"stop_gradient", "checkpoint_name"})


class Weights:
    """One walk over the nodes: what each value is, as far as it is any of the above."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known: dict[Var, Any] = {}
        self.made_by = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
        self.constants = dict(graph.constants)
        self.ends: dict[Softmax, list[End]] = {}
        for e in graph.nodes:
            if isinstance(e, Node) and len(e.results) == 1:
                found = self._what(e)
                if found is not None:
                    self.known[e.results[0]] = found

    # What a value is

    def _what(self, e: Node) -> Any:
        if e.name in ("matmul", "contract"):
            return self._product(e)
        given = [self._operand(a) for a in e.operands]
        if all(g is None or isinstance(g, float) for g in given):
            return None
        rule = _RULES.get(e.name)
        if rule is None:
            return given[0] if e.name in _SAME else None
        found = rule(self, e, *given)
        return found if _fits(e.results[0], found) else None

    def _operand(self, a: Any) -> Any:
        """What an operand is; a number where it is one number everywhere."""
        if not isinstance(a, Var):
            return float(a) if isinstance(a, int | float) else None
        held = self.constants.get(a)
        if held is not None and held.data.size == 1 and held.data.dtype.kind in "fiu":
            return float(held.data.reshape(())[()])
        return self.known.get(a)

    def _product(self, e: Node) -> Scores | None:
        """Scores, if it may be such; what is made of exponentials ends in it."""
        found = self._labelled(e)
        if found is None:
            return None
        for k, (v, labels) in enumerate(found.operands):
            made = self.known.get(v)
            if isinstance(made, Made):
                self._end(e, made, labels, found.operands[1 - k], found.labels)
                return None
        (x, a), (y, b) = found.operands
        inner = [c for c in a if c in b and c not in found.labels]
        own = [c for c in a if c not in b], [c for c in b if c not in a]
        if len(inner) != 1 or list(map(len, own)) != [1, 1] or x.dtype.char not in "fd":
            return None
        numbers = all(isinstance(n, int) for n in (*x.shape, *y.shape))
        if not numbers or x.dtype != y.dtype:
            return None
        if math.prod(found.sizes) * x.shape[a.index(inner[0])] < _LEAST:
            return None
        return Scores(found, tuple(range(len(found.labels))))

    def _labelled(self, e: Node) -> Product | None:
        """A product of matrices, or a contraction, with a label for each axis; of arrays before
        they were turned.
        """
        x, y = e.operands
        if not isinstance(x, Var) or not isinstance(y, Var):
            return None
        if e.name == "contract":
            inputs, out = e.params[0].split("->")
            a, b = inputs.split(",")
            return Product((self._unturned(x, a), self._unturned(y, b)), out, e.results[0].shape)
        rank = len(x.shape)
        if rank < 2 or rank != len(y.shape) or x.shape[:-2] != y.shape[:-2]:
            return None
        lead = "".join([chr(ord("a") + k) for k in range(rank - 2)])
        operands = self._unturned(x, f"{lead}IJ"), self._unturned(y, f"{lead}JK")
        return Product(operands, f"{lead}IK", e.results[0].shape)

    def _unturned(self, x: Var, labels: str) -> tuple[Var, str]:
        """An operand before its axes were put in order, unless it is made of exponentials."""
        while (made := self.made_by.get(x)) is not None and made.name == "permute_dims":
            source = made.operands[0]
            if isinstance(self.known.get(x), Made) or not isinstance(source, Var):
                break
            labels = "".join([labels[made.params[0].index(k)] for k in range(len(labels))])
            x = source
        return x, labels

    def _scaled(self, e: Node, x: Any, y: Any) -> Any:
        if e.name == "multiply" and isinstance(x, float):
            x, y = y, x
        if isinstance(y, float) and (e.name == "multiply" or y):
            factor = y if e.name == "multiply" else 1 / y
            if isinstance(x, Scores) and (x.mask is None or factor > 0):
                mask = x.mask
                if mask is not None:
                    if mask.fill is None:
                        return None
                    mask = Mask(mask.of, mask.axes, mask.fill * factor, mask.hides)
                return Scores(x.product, x.axes, x.scale * factor, mask)
            if isinstance(x, Made):
                return Made(x.softmax, x.axes, multiplied(x.terms, {ONE: factor}), x.d)
            return None
        if isinstance(x, float) and e.name == "divide" and isinstance(y, Made):
            of_one = inverse(y.terms)
            if of_one is None:
                return None
            return Made(y.softmax, y.axes, multiplied({ONE: x}, of_one), y.d)
        return self._of_two(e, x, y)

    def _of_two(self, e: Node, x: Any, y: Any) -> Any:
        """Of two values that are made of the same exponentials."""
        if isinstance(x, Top) and isinstance(y, Top):
            alike = x.scores is y.scores and _together(x.axes, y.axes) == x.scores.axes
            shares = (e.name, x.kind, y.kind) == ("divide", "ties", "count")
            return Top(x.scores, x.along, x.scores.axes, "shares") if alike and shares else None
        x, y = _as_made(x, y), _as_made(y, x)
        if not (isinstance(x, Made) and isinstance(y, Made)) or x.softmax is not y.softmax:
            return None
        axes = _together(x.axes, y.axes)
        d = x.d or y.d
        if axes is None or (x.d and y.d and x.d != y.d):
            return None
        terms: Terms | None
        if e.name in ("add", "subtract"):
            sign = 1.0 if e.name == "add" else -1.0
            terms = added(x.terms, multiplied(y.terms, {ONE: sign}))
        else:
            factor = y.terms if e.name == "multiply" else inverse(y.terms)
            terms = None if factor is None else multiplied(x.terms, factor)
        return None if terms is None else Made(x.softmax, axes, terms, d)

    def _added(self, e: Node, x: Any, y: Any) -> Any:
        """Also scores and a mask of numbers."""
        if e.name == "subtract" and isinstance(x, Scores) and isinstance(y, Top):
            return (x, y.along) if _is_top_of(y, x) else None
        for scores, other, v in ((x, y, e.operands[1]), (y, x, e.operands[0])):
            if isinstance(scores, Scores) and scores.mask is None and e.name == "add":
                if other is not None or not isinstance(v, Var) or v.dtype.char not in "fd":
                    continue
                return self._masked(e, scores, v, None, hides=False)
        return self._of_two(e, x, y)

    def _masked(
        self, e: Node, scores: Scores, mask: Any, fill: float | None, *, hides: bool
    ) -> Scores | None:
        mask = self._unspread(mask)
        if len(e.results[0].shape) != len(scores.axes) or mask is None:
            return None
        axes = scores.axes[len(scores.axes) - len(mask.shape) :]
        found = Mask(mask, axes, fill, hides)
        return Scores(scores.product, scores.axes, scores.scale, found)

    def _unspread(self, x: Any) -> Var | None:
        """An array before it was broadcast."""
        while (made := self.made_by.get(x)) is not None and made.name == "broadcast_to":
            x = made.operands[0]
        return x if isinstance(x, Var) else None

    def _chosen(self, e: Node, _: Any, x: Any, y: Any) -> Any:
        """`where`: scores and a low number, or what is 0 where those are hidden anyway."""
        mask = self._unspread(e.operands[0])
        for kept, fill, hides in ((x, y, False), (y, x, True)):
            if not isinstance(fill, float):
                continue
            if isinstance(kept, Scores) and kept.mask is None and fill <= _LOW:
                return self._masked(e, kept, mask, fill, hides=hides)
            if isinstance(kept, Made) and fill == 0.0:
                own = kept.softmax.scores.mask
                same = own is not None and own.of == mask and own.hides == hides
                covered = all(powers[0] for powers in kept.terms)
                return kept if same and covered and own is not None and own.fill else None
        return None

    def _exp(self, e: Node, x: Any) -> Any:
        if not isinstance(x, tuple):
            return None
        scores, along = x
        if not (scores.scale and math.isfinite(scores.scale)):
            return None
        softmax = Softmax(scores, along, e.results[0])
        return Made(softmax, scores.axes, {(1, 0, 0, 0, 0): 1.0})

    def _largest(self, e: Node, x: Any) -> Any:
        if not isinstance(x, Scores) or len(e.params[0]) != 1:
            return None
        (axis,), keepdims = e.params
        along = x.axes[axis]
        (_, a), (_, b) = x.product.operands
        label = x.product.labels[along]
        one = (label in a) != (label in b)
        return Top(x, along, _reduced(x.axes, axis, keepdims)) if one else None

    def _ties(self, e: Node, x: Any, y: Any) -> Any:
        """Which scores are the largest."""
        if isinstance(x, Scores) and isinstance(y, Top) and _is_top_of(y, x):
            return Top(x, y.along, x.axes, "ties")
        return None

    def _cast(self, e: Node, x: Any) -> Any:
        return x if isinstance(x, Top) and x.kind == "ties" else None

    def _total(self, e: Node, x: Any) -> Any:
        """The sum along the keys."""
        axes, keepdims = e.params
        if not isinstance(x, Top | Made) or len(axes) != 1:
            return None
        (axis,) = axes
        along = x.along if isinstance(x, Top) else x.softmax.along
        left = _reduced(x.axes, axis, keepdims)
        if x.axes[axis] != along:
            return None
        if isinstance(x, Top):
            return Top(x.scores, x.along, left, "count") if x.kind == "ties" else None
        terms = summed(x.terms)
        return None if terms is None else Made(x.softmax, left, terms, x.d)

    def _negative(self, e: Node, x: Any) -> Any:
        if isinstance(x, Made):
            return Made(x.softmax, x.axes, multiplied(x.terms, {ONE: -1.0}), x.d)
        if isinstance(x, Scores) and x.mask is None:
            return Scores(x.product, x.axes, -x.scale)
        return None

    def _broadcast(self, e: Node, x: Any) -> Any:
        if not isinstance(x, Top | Made):
            return None
        return structs.replace(x, axes=_padded(x.axes, len(e.results[0].shape)))

    def _reshaped(self, e: Node, x: Any) -> Any:
        """Axes of length 1 come and go."""
        source, shape = e.operands[0], e.results[0].shape
        if not isinstance(x, Top | Made) or not isinstance(source, Var):
            return None
        old = [(n, a) for n, a in zip(source.shape, x.axes, strict=True) if n != 1]
        if [n for n in shape if n != 1] != [n for n, _ in old]:
            return None
        left = iter(old)
        return structs.replace(x, axes=tuple([NEW if n == 1 else next(left)[1] for n in shape]))

    def _turned(self, e: Node, x: Any) -> Any:
        masked = isinstance(x, Scores) and x.mask is not None
        if masked or not isinstance(x, Scores | Top | Made):
            return None
        return structs.replace(x, axes=tuple([x.axes[k] for k in e.params[0]]))

    # Where it ends

    def _end(self, e: Node, made: Made, labels: str, other: tuple[Var, str], out: str) -> None:
        """A product of what is made of exponentials, if it is one of the four."""
        softmax, terms = made.softmax, made.terms
        axis_of = dict(zip(labels, made.axes, strict=True))
        inner = [c for c in labels if c not in out]
        if len(inner) != 1 or len(set(made.axes)) != len(labels) or NEW in made.axes:
            return
        y, theirs = other
        beyond = [c for c in theirs if c not in labels]
        shared = {c for c in labels if c in theirs}
        if len(beyond) != 1 or len(shared) != len(labels) - 1 or inner[0] not in shared:
            return
        # axes as those of the product, NEW for features
        lies = tuple([axis_of.get(c, NEW) for c in theirs])
        order = tuple([axis_of.get(c, NEW) for c in out])
        by_keys = axis_of[inner[0]] == softmax.along
        if not by_keys and axis_of[inner[0]] != softmax.queries:
            return
        weights = terms.keys() == {(1, 0, -1, 0, 0)}
        if weights:
            kind, factor = ("o" if by_keys else "dv"), terms[1, 0, -1, 0, 0]
        elif terms.keys() == {(1, 1, -1, 0, 0), (1, 0, -2, 1, 0)}:
            kind, factor = ("dq" if by_keys else "dk"), terms[1, 1, -1, 0, 0]
            if abs(factor + terms[1, 0, -2, 1, 0]) > ROUNDED * abs(factor):
                return
        else:
            return
        end = End(e, kind, order, factor, (y, lies), None if weights else made.d)
        self.ends.setdefault(softmax, []).append(end)


# Axes


def _fits(v: Var, found: Any) -> bool:
    """Whether an array is as long as the scores along each of their axes."""
    if not isinstance(found, Scores | Made):
        return found is not None
    product = found.product if isinstance(found, Scores) else found.softmax.scores.product
    if len(v.shape) != len(found.axes):
        return False
    whole = all(a == NEW or n == product.sizes[a] for n, a in zip(v.shape, found.axes, strict=True))
    return whole and v.dtype == product.operands[0][0].dtype


def _is_top_of(top: Top, scores: Scores) -> bool:
    """Whether these are the maxima of the scores, beside each of which its row's lies."""
    alike = top.scores is scores and top.kind == "top"
    return alike and _together(scores.axes, top.axes) == scores.axes


def _reduced(axes: Axes, axis: int, keepdims: bool) -> Axes:
    return (*axes[:axis], *((NEW,) if keepdims else ()), *axes[axis + 1 :])


def _padded(axes: Axes, rank: int) -> Axes:
    return (NEW,) * (rank - len(axes)) + axes


def _together(x: Axes, y: Axes) -> Axes | None:
    """The axes of what two values are broadcast to; None where they do not lie alike."""
    rank = max(len(x), len(y))
    pairs = list(zip(_padded(x, rank), _padded(y, rank), strict=True))
    if any(NEW not in pair and pair[0] != pair[1] for pair in pairs):
        return None
    return tuple([max(pair) for pair in pairs])


def _as_made(x: Any, beside: Any) -> Any:
    """What a product is beside what is made of exponentials: cotangents by values; and shares."""
    if not isinstance(beside, Made):
        return x
    if isinstance(x, Top) and x.kind == "shares" and x.scores is beside.softmax.scores:
        return Made(beside.softmax, x.axes, {SHARE: 1.0})
    if not isinstance(x, Scores) or x.mask is not None:
        return x
    full = beside.softmax.scores.product.labels
    axes = list(_padded(beside.axes, len(full)))
    missing = [a for a in range(len(full)) if a not in axes]
    if len(x.axes) != len(full) or len(axes) != len(full) or len(missing) > 1:
        return x
    axes = [missing[0] if a == NEW else a for a in axes]
    lies = tuple([axes[x.axes.index(k)] for k in range(len(full))])
    terms = {(0, 1, 0, 0, 0): x.scale}
    return Made(beside.softmax, tuple(axes), terms, (x.product, lies))


_RULES: dict[str, Callable[..., Any]] = {
    "absorb": lambda walk, e, x, y: y, "add": Weights._added, "astype": Weights._cast,
    "broadcast_to": Weights._broadcast, "divide": Weights._scaled, "equal": Weights._ties,
    "exp": Weights._exp, "multiply": Weights._scaled, "negative": Weights._negative,
    "permute_dims": Weights._turned, "reduce_max": Weights._largest,
    "reduce_sum": Weights._total, "reshape": Weights._reshaped, "subtract": Weights._added,
    "where": Weights._chosen,
}  # fmt: skip
