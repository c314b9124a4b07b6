"""The walk over a tape: cotangents from the results to the leaves.

Nodes are visited in falling order of birth, so each has all its cotangents when its turn comes.
There is no recursion and no list of nodes: one slot per serial number holds what came so far.

Note [Adjoint]: rules are written as if analytic. The adjoint of a complex-linear map is
conj, transpose, conj; it is taken here, once per complex node, for every rule. The pull of an op
with several results, complex and real ones among them, is the adjoint itself.

Note [Structural zeros]: ops whose pull makes zeros (where, gather, max …) mark the tape below them.
There an elementwise pull passes through `absorb(g, h)`: h, but 0 where g is 0, because 0 * inf
would be NaN. Only there: absorbing everywhere would hide a true 0 * inf such as sqrt(x) * sqrt(x)
at 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array import Array
from funct.core.size import OpenShape
from funct.ops.broadcasting import match_operand
from funct.ops.fast import make
from funct.settings import config
from funct.source import follow
from funct.transforms.tape.code import walker
from funct.transforms.tape.nodes import CallPull, Composed, Node, Slots, sink

__all__ = ["backward"]

add, ndarray = np.add, np.ndarray
_C8, _C16 = np.dtype(np.complex64), np.dtype(np.complex128)


def backward(root: Node, ct: Any, once: bool = False, masked: bool = False) -> dict[Node, Any]:
    """Cotangents of the leaves that root depends on, for the cotangent ct of root.

    once: what a pull kept is freed before the next node runs; the tape cannot be walked again.
    masked: the root itself is below ops that make structural zeros.
    """
    due: list[Any] = [None] * root.serial  # by serial, what has come for a node so far
    due.append((root, ct))
    below: set[int] = {root.serial} if masked else set()  # nodes below a mask
    leaves: dict[Node, Any] = {}
    if ct.__class__ is not Array:
        config.get("memory_budget")  # what captures this walk is compiled for that
    walk = walker(root.serial)
    node: Any = None
    while due:
        if walk is not None and not below:
            node = None  # which has no line that an error of other nodes could be said to be of
            walk(due, leaves, once)
            if not due:
                break
        entry = due.pop()
        if entry is None:
            continue
        node, g = entry
        edges = node.edges
        if not edges:
            leaves[node] = g
            continue
        prim, dtype, shape = node.prim, node.dtype, node.shape
        spread, masks = prim.spread, prim.masks
        hot = bool(below) and node.serial in below
        if prim.results != 1:
            g = _each_result(g, node)
        elif hot and isinstance(prim, Composed):
            edges = [(parent, prim.masked, kept) for parent, _, kept in edges]
        elif hot and edges[0][1].__class__ is CallPull:
            edges = [(parent, pull.masked, kept) for parent, pull, kept in edges]
        conjugate = (dtype is _C16 or dtype is _C8) and prim is not sink  # Note [Adjoint]
        if conjugate:
            g = ops.conj(g)
        for parent, pull, kept in edges:
            if not kept:
                h = pull(g)
            elif len(kept) == 1:  # a call with a star costs twice as much
                h = pull(g, kept[0])
            else:
                h = pull(g, *kept)
            if h is None:
                continue
            if conjugate:
                h = ops.conj(h)
            if spread is not None:
                if hot:  # Note [Structural zeros]
                    h = ops.absorb(g, h)
                wanted = parent.shape
                differs = wanted is not shape and (shape.__class__ is OpenShape or wanted != shape)
                if differs or parent.dtype is not dtype:  # what is open is not to be decided
                    h = match_operand(h, wanted, parent.dtype)
            elif parent.dtype is not dtype and prim is not sink and h.dtype != parent.dtype:
                h = match_operand(h, h.shape, parent.dtype)
            k = parent.serial
            before = due[k]
            if before is None:
                due[k] = parent, h
            else:
                due[k] = parent, _sum(before[1], h)
            if hot or masks:
                below.add(k)
        if once:
            node.edges = ()
    return leaves


def _sum(a: Any, b: Any) -> Any:
    """a + b of one type; where both are arrays, nothing is to be asked first."""
    if a.__class__ is not Array or b.__class__ is not Array:
        return a + b
    d = add(a.data, b.data)
    r = make(None)
    r.data = d if d.__class__ is ndarray else np.asarray(d)
    return r


def _each_result(g: Slots, node: Node) -> tuple[Any, ...]:
    """The cotangents of an op with several results, None where none came."""
    return tuple(map(g.get, range(len(node.shape))))


follow(backward, "node", backward=True)
