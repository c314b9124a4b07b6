"""How the elements of arguments lie, where that is known: images whose channels are last.

Programs read arrays whose elements lie one after the other. Images whose channels are last in
memory do so too, in another order: the same graph with transposes behind such arguments is a
function of what lies there, which `lay_out` computes as it lies. It is made when such images come.
Arguments in any other order are copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs

from funct.compile.entry import note_whole, whole_of
from funct.core import lookup
from funct.graph import Graph, Node, Var
from funct.graph.passes import fresh_names
from funct.kernels.channels import channels_last, lie_last

__all__ = ["by_layout"]

_MATRICES = 3  # axes of many, which have no channels
_FEW = 1 << 12  # elements that are copied in no time

_Run = Callable[..., Any]


def by_layout(graph: Graph, run: _Run, make: Callable[[Graph], _Run]) -> _Run:
    """The function of a graph as one that asks first how large images lie; itself without such.

    make: gives the function for another graph.
    """
    sizes = [(k, v.shape) for k, v in enumerate(graph.inputs) if len(v.shape) > _MATRICES]
    images = [k for k, shape in sizes if math.prod(shape) > _FEW]
    if not images:
        return run
    known: dict[tuple[int, ...], _Run] = {}

    def chosen(*buffers: Any) -> Any:
        last = tuple([k for k in images if lie_last(buffers[k])])
        if not last:
            return run(*buffers)
        found = known.get(last)
        if found is None:
            found = known[last] = make(_with_channels_last(graph, last))
        return found(*[channels_last(x) if k in last else x for k, x in enumerate(buffers)])

    whole = whole_of(run)
    if whole is not None:
        note_whole(chosen, whole)  # of arrays that lie as their shapes say
    return chosen


def _with_channels_last(graph: Graph, places: tuple[int, ...]) -> Graph:
    """The graph of what lies there, for images that have their channels last."""
    fresh, permute = fresh_names(graph), lookup("permute_dims")
    assert permute is not None
    inputs, turns = list(graph.inputs), []
    for k in places:
        v = graph.inputs[k]
        n = len(v.shape)
        inputs[k] = Var(fresh(), (v.shape[0], *v.shape[2:], v.shape[1]), v.dtype)
        turns.append(Node(permute, (inputs[k],), ((0, n - 1, *range(1, n - 1)),), (v,)))
    return attrs.evolve(graph, inputs=tuple(inputs), nodes=(*turns, *graph.nodes))
