"""Attention inside of a program: the machine code that eager execution runs, by its address.

Its operands are read where they lie, if the elements of their rows do so side by side: a cache that
a loop carries is not copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import copy, places_of
from funct.compile.loops.views import View
from funct.compile.rewriting.attention import NEEDS, PARTS, job_of_attention, lets_all
from funct.compile.steps.told import told
from funct.graph import Node
from funct.kernels.table import met

__all__ = ["is_attention", "lower_attention"]

_NAMES = ("attention", PARTS)
_BYTES = np.dtype(np.uint8)


def is_attention(step: Any) -> bool:
    """Whether a step is such an op, of numbers that the machine code knows."""
    kinds = {v.dtype for v in arrays(step, _NAMES)[:3]}
    return len(kinds) == 1 and kinds.pop().char in "fd" and met(NEEDS)


def lower_attention(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what cannot be read where it lies."""
    q, k, v, mask, seed, *rest = node.operands
    passes = lets_all(mask, dict(fused.graph.constants))
    calls, (seeds,) = places_of([seed], fused)
    at, layouts = {"seed": seeds}, []
    for name, x in zip("qkvg", (q, k, v, *rest[1:2]), strict=False):
        added, view = _readable(fused.views[x], fused)  # type: ignore[index]
        calls += added
        byte = view.root.dtype.itemsize
        at[name] = Address(view.root, view.offset * byte)
        layouts.append((view.shape, tuple([s * byte for s in view.strides])))
    for name, x in zip(("lse", "", "delta"), rest, strict=False):
        if name:
            added, (at[name],) = places_of([x], fused)
            calls += added
    if not passes:
        added, at["mask"] = _mask(fused.views[mask], q.shape[-2], k.shape[-2], fused)  # type: ignore[index, union-attr]
        calls += added
    results = ("dq", "dk", "dv") if rest else ("o", "lse")
    at |= zip(results, map(Address, node.results), strict=True)
    name, dtype = "attend_back" if rest else "attend", node.results[0].dtype
    found = job_of_attention(name, dtype, node.params, passes, (mask, seed), layouts)
    at["scratch"] = Address(Buffer(max(1, found.room), _BYTES))
    return [*calls, told(found, at, node.results)]


def _readable(view: View, fused: Fused) -> tuple[list[Call], View]:
    """The view, or a copy of it, with elements of rows side by side, and rows one after another."""
    near = view.strides[-1] == 1 or view.shape[-1] == 1
    if near and min(view.strides) >= 0 and view.within is None:
        return [], view
    return copy(view, fused)


def _mask(view: View, queries: int, keys: int, fused: Fused) -> tuple[list[Call], Address]:
    """Where the numbers of a mask stand: of each key, or of each query for each key."""
    *lead, rows, _ = view.shape
    whole = view.broadcast((*lead, 1 if rows == 1 else queries, keys))
    calls: list[Call] = []
    if not whole.is_run:
        calls, whole = copy(whole, fused)
    return calls, Address(whole.root, whole.offset * whole.root.dtype.itemsize)
