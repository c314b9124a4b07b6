"""How the elements of arguments lie, where that is known: transposes, and channels that are last.

Programs read arrays whose elements lie one after the other. Those of a transpose do so too, in
another order, and so do images whose channels are last in memory: the same graph with transposes
behind such arguments is a function of what lies there, which `lay_out` and the rewritings compute
as it lies. It is made when such arrays come; of a long graph for images alone, since making it
takes longer than copies do. Arguments in any other order are copied.
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
from funct.kernels.channels import lie_last

__all__ = ["by_layout", "turned"]

_MATRICES = 3  # axes of many, which have no channels
_FEW = 1 << 12  # elements that are copied in no time
_SHORT = 32  # nodes of a graph of which more code is made soon
_MOST, _MANY = 8, 64  # layouts that code is made for, and strides that are known

_Run = Callable[..., Any]
_Order = tuple[int, ...]
_Layout = tuple[tuple[int, _Order], ...]  # of the arguments at those places


def by_layout(graph: Graph, run: _Run, make: Callable[[Graph], _Run]) -> _Run:
    """The function of a graph as one that asks first how large arrays lie; itself without such.

    make: gives the function for another graph.
    """
    least = 1 if len(graph.nodes) <= _SHORT else _MATRICES
    sizes = [(k, v.shape) for k, v in enumerate(graph.inputs) if len(v.shape) > least]
    large = [k for k, shape in sizes if math.prod(shape) > _FEW]
    if not large:
        return run
    made: dict[_Layout, _Run] = {(): run}
    ways: dict[tuple[tuple[int, ...], ...], _Run] = {}  # by the strides of large arrays

    def chosen(*buffers: Any) -> Any:
        strides = tuple([buffers[k].strides for k in large])
        way = ways.get(strides)
        if way is None:
            layout = tuple([(k, o) for k in large if (o := _order(buffers[k], least)) is not None])
            if layout not in made and len(made) > _MOST:
                layout = ()
            if layout not in made:
                made[layout] = make(turned(graph, layout))
            if len(ways) >= _MANY:
                ways.clear()
            way = ways[strides] = _turning(made[layout], layout) if layout else run
        return way(*buffers)

    whole = whole_of(run)
    if whole is not None:
        note_whole(chosen, whole)  # of arrays that lie as their shapes say
    return chosen


def _turning(run: _Run, layout: _Layout) -> _Run:
    """The function of arrays that lie so, by one of arrays that lie as their shapes say."""

    def turning(*buffers: Any) -> Any:
        given = list(buffers)
        for k, order in layout:
            given[k] = buffers[k].transpose(order)
        return run(*given)

    return turning


def _order(x: Any, least: int) -> _Order | None:
    """The axes of an array as they lie in memory, if that is another order and a known one."""
    if x.flags.c_contiguous or (least == _MATRICES and not lie_last(x)):
        return None
    by_stride = tuple(sorted(range(x.ndim), key=lambda a: (x.shape[a] > 1, -x.strides[a])))
    return by_stride if x.transpose(by_stride).flags.c_contiguous else None


def turned(graph: Graph, layout: _Layout) -> Graph:
    """The graph of what lies there, for arguments whose axes lie in that order."""
    fresh, permute = fresh_names(graph), lookup("permute_dims")
    assert permute is not None
    inputs, turns = list(graph.inputs), []
    for k, order in layout:
        v = graph.inputs[k]
        inputs[k] = Var(fresh(), tuple([v.shape[a] for a in order]), v.dtype)
        back = tuple([order.index(a) for a in range(len(order))])
        turns.append(Node(permute, (inputs[k],), (back,), (v,)))
    return attrs.evolve(graph, inputs=tuple(inputs), nodes=(*turns, *graph.nodes))
