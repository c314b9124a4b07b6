"""Pooling in bodies of loops: slices of images, folded element by element, an axis after the other.

They are folded in eager execution's order (`funct.kernels.windows.pooling`), so the bits are its. A
border stands around an axis where windows reach beyond it. Windows of a mean that all have one
element, as its pull gives them, are added up an axis at a time too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import prod
from typing import Any

import attrs
import numpy as np

from funct.compile.loops.scalars import ELEMENTS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Graph, Node, Var
from funct.kernels.windows.places import taps_in_order
from funct.kernels.windows.pooling import lowest
from funct.kernels.windows.views import windows
from funct.ops.pooling import whole_padding, window_counts

__all__ = ["pools_spelled_out"]

_MOST = 64  # slices of one op
_REALS = "fd"
_ALL = (None, None, 1)


def pools_spelled_out(graph: Graph) -> Graph:
    """The graph with slices for pooling."""
    if not any(isinstance(e, Node) and e.name in _WAYS for e in graph.nodes):
        return graph
    return _Pools(graph).run()


class _Pools(NewNodes):
    """One walk over the nodes."""

    prefix = "pool"

    def run(self) -> Graph:
        """Rewrite."""
        new: dict[Var, Var] = {}
        for e in self.graph.nodes:
            if isinstance(e, Node):
                operands = [new.get(v, v) if isinstance(v, Var) else v for v in e.operands]
                e = attrs.evolve(e, operands=tuple(operands))
                self.site = e.site
                way = _WAYS.get(e.name)
                found = way(self, e) if way is not None and _is_known(e) else None
                if found is not None:
                    new[e.results[0]] = found
                    continue
                self.keep(e)
            else:
                self.nodes.append(e)
        return self.finished(new)

    def sliced(self, x: Var, axis: int, start: int, count: int, step: int) -> Var:
        """count elements of an axis, from one on."""
        index: list[Any] = [_ALL] * len(x.shape)
        index[axis] = (start, start + (count - 1) * step + 1, step)
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        if shape == tuple(x.shape):
            return x
        return self.apply("slice_", (x,), (tuple(index),), shape, x.dtype)

    def bordered(self, x: Var, axis: int, low: int, high: int, empty: Any) -> Var:
        """x with so many elements before and behind an axis, or without them."""
        n = x.shape[axis]
        if low < 0 or high < 0:
            start, stop = max(0, -low), n + min(0, high)
            x = self.sliced(x, axis, start, stop - start, 1)
        parts = [x]
        for many, front in ((low, True), (high, False)):
            if many > 0:
                shape = (*x.shape[:axis], many, *x.shape[axis + 1 :])
                one = self.constant(np.asarray(empty, x.dtype))
                border = self.apply("broadcast_to", (one,), (shape,), shape, x.dtype)
                parts = [border, *parts] if front else [*parts, border]
        shape = (*x.shape[:axis], sum([p.shape[axis] for p in parts]), *x.shape[axis + 1 :])
        return x if len(parts) == 1 else self.concat(parts, axis, self.var(shape, x.dtype))

    def folded(
        self, fold: str, empty: Any, x: Var, shape: tuple[int, ...], window: Any, stride: Any,
        padding: Any, dilation: Any,
    ) -> Var:  # fmt: skip
        """x with its windows folded, the outer axis first; shape: of the result."""
        first = len(shape) - len(window)
        for k, (size, step, (low, high), apart) in enumerate(
            zip(window, stride, padding, dilation, strict=True)
        ):
            axis, count = first + k, shape[first + k]
            order = taps_in_order(x.shape[axis], count, size, step, apart, low)
            x = self.bordered(x, axis, low, high, empty)
            parts = [self.sliced(x, axis, t * apart, count, step) for t in order]
            x = parts[0]
            for part in parts[1:]:
                x = self.apply(fold, (x, part), (), x.shape, x.dtype)
        return x

    def placed(self, g: Var, index: Any, shape: Any) -> Var:
        """g among zeros."""
        if tuple(g.shape) == tuple(shape):
            return g
        return self.apply("embed", (g,), (tuple(index), tuple(shape)), shape, g.dtype)


def _is_known(e: Node) -> bool:
    held = (*e.operands, *e.results)
    return all(isinstance(v, Var) and 0 not in v.shape for v in held)


def _max(w: _Pools, e: Node) -> Var | None:
    x: Any = e.operands[0]
    window, stride, padding, dilation = e.params
    if sum(window) > _MOST or x.dtype not in ELEMENTS:
        return None
    shape = e.results[0].shape
    return w.folded("maximum", lowest(x.dtype), x, shape, window, stride, padding, dilation)


def _mean(w: _Pools, e: Node) -> Var | None:
    x: Any = e.operands[0]
    window, stride, padding, extra, include = e.params
    if sum(window) > _MOST or x.dtype.char not in _REALS:
        return None
    shape, ones = e.results[0].shape, (1,) * len(window)
    whole = whole_padding(padding, extra)
    total = w.folded("add", -0.0, x, shape, window, stride, whole, ones)  # -0.0 changes no sum
    size = x.shape[len(x.shape) - len(window) :]
    counts = w.constant(window_counts(x.dtype, size, window, stride, padding, extra, include))
    return w.apply("divide", (total, counts), (), shape, x.dtype)


def _added(w: _Pools, e: Node) -> Var | None:
    """The adjoint of windows: each tap of them among zeros, all added up."""
    g: Any = e.operands[0]
    shape, stride, dilation = e.params
    d = len(shape)
    lead, count, window = g.shape[: -2 * d], g.shape[-2 * d : -d], g.shape[-d:]
    if g.dtype.char not in _REALS:
        return None
    made = w.made_by.get(g)
    if made is not None and made.name == "broadcast_to" and set(dilation) <= {1}:
        one: Any = made.operands[0]
        if isinstance(one, Var) and tuple(one.shape) == (*lead, *count, *(1,) * d):
            return _added_evenly(w, w.reshape(one, (*lead, *count)), shape, window, stride)
    if prod(window) > _MOST:
        return None
    total = None
    for tap in itertools.product(*map(range, window)):
        part = g
        for k, t in enumerate(tap):
            part = w.sliced(part, len(lead) + d + k, t, 1, 1)
        starts = [t * a for t, a in zip(tap, dilation, strict=True)]
        part = w.reshape(part, (*lead, *count))
        index = [(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, count, stride, strict=True)]
        part = w.placed(part, [*[_ALL] * len(lead), *index], (*lead, *shape))
        total = _plus(w, total, part)
    return total


def _plus(w: _Pools, total: Var | None, part: Var) -> Var:
    """What is added to nothing is added to 0.0, which -0.0 becomes."""
    return w.apply("add", (0.0 if total is None else total, part), (), part.shape, part.dtype)


def _added_evenly(w: _Pools, g: Var, shape: Any, window: Any, stride: Any) -> Var | None:
    """The same for windows of equal elements: the last axis first, while there is little of it."""
    if sum(window) > _MOST:
        return None
    lead = len(g.shape) - len(shape)
    for k in reversed(range(len(shape))):
        axis, (n, step, size) = lead + k, (g.shape[lead + k], stride[k], shape[k])
        to = (*g.shape[:axis], size, *g.shape[axis + 1 :])
        total = None
        for t in reversed(range(window[k])):  # so what meets an element comes in g's order
            index: list[Any] = [_ALL] * len(to)
            index[axis] = (t, t + (n - 1) * step + 1, step)
            total = _plus(w, total, w.placed(g, index, to))
        assert total is not None, "windows have elements"
        g = total
    return g


def _looked_up(w: _Pools, e: Node) -> Var | None:
    """Windows themselves: elements at places that are known."""
    x: Any = e.operands[0]
    lead = len(x.shape) - len(e.params[0])
    flat = w.reshape(x, (*x.shape[:lead], prod(x.shape[lead:])))
    at = np.arange(flat.shape[-1], dtype=np.int64).reshape(x.shape[lead:])
    places = w.constant(np.ascontiguousarray(windows(at, *e.params)))
    return w.apply("take", (flat, places), (lead,), e.results[0].shape, x.dtype)


_WAYS: dict[str, Callable[[_Pools, Node], Var | None]] = {
    "avg_pool": _mean, "fold_windows": _added, "max_pool": _max, "windows": _looked_up,
}  # fmt: skip
