"""What costs less to compute again than to read back from memory.

Loops may read a large array that earlier loops wrote, and beside it all that it was made of: x and
1 + x. Such an array is computed a second time, where it is read, if that takes a few additions.
Nothing is read that was not read before, and where nobody else wants the array it is never written.

Where nobody does, one array may be read in its place that is in memory anyway: the sum of a product
and a row, kept for a gradient, is computed from the product again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from typing import Any

import attrs

from funct.compile.fusion.groups import Group, reads, walked_through
from funct.compile.loops.scalars import printing
from funct.compile.loops.views import VIEWS
from funct.graph import Entry, Graph, Guard, Node, Var

__all__ = ["computed_again"]

_MOST_COST = 6  # of an element, in additions; to write and read one costs several times as much
_LEAST_BYTES = 1 << 16  # of an array: less stays in a near cache
_SMALL = 16  # one of how many elements a row has that is read again and again


def computed_again(graph: Graph, steps: Sequence[Group | Node | Guard]) -> Graph:
    """The graph with copies of nodes for loops that read them; itself where there are none.

    steps: the graph's nodes as they share their loops.
    """
    made = {e.results[0]: e for s in steps if isinstance(s, Group) for e in s.nodes}
    spared = _spared(graph, steps, made)
    copies: dict[Node, list[Node]] = {}
    names: dict[Node, dict[Var, Var]] = {}  # of the operands of each member of such loops
    for k, step in enumerate(steps):
        found = _copied(step, made, spared) if isinstance(step, Group) else []
        if isinstance(step, Group) and found:
            own = {v: Var(f"{v.name}_{k}", v.shape, v.dtype) for e in found for v in e.results}
            names |= dict.fromkeys(step.nodes, own)
            for e in found:
                copy = attrs.evolve(_renamed(e, own), results=(own[e.results[0]],))
                copies.setdefault(e, []).append(copy)
    if not copies:
        return graph
    nodes: list[Entry] = []
    for entry in graph.nodes:
        if isinstance(entry, Node):
            nodes += [_renamed(entry, names.get(entry, {})), *copies.get(entry, ())]
        else:
            nodes.append(entry)
    return attrs.evolve(graph, nodes=tuple(nodes))


def _copied(group: Group, made: dict[Var, Node], spared: dict[Var, list[Node]]) -> list[Node]:
    """The nodes that a group had better compute itself."""
    read = dict.fromkeys(walked_through(group))
    found: dict[Node, None] = {}
    for v in read:
        if _is_large(group, v):
            found |= dict.fromkeys(_chain(v, read.__contains__, made) or spared.get(v, []))
    return list(found)


def _is_large(group: Group, v: Var) -> bool:
    return group.is_full(v) and math.prod(v.shape) * v.dtype.itemsize >= _LEAST_BYTES


def _spared(
    graph: Graph, steps: Sequence[Group | Node | Guard], made: dict[Var, Node]
) -> dict[Var, list[Node]]:
    """What need not be written: how all who read it compute it from one array instead, which other
    steps or the caller leave in memory, and from rows and numbers.
    """
    there = {*graph.inputs, *[v for v, _ in graph.constants]}
    reading: dict[Var, list[Any]] = {v: [None] for v in graph.outputs}
    for step in steps:
        there.update(step.results if isinstance(step, Node) else ())
        for v in reads(step):
            reading.setdefault(v, []).append(step)
    walked = {id(s): set(walked_through(s)) for s in steps if isinstance(s, Group)}
    found: dict[Var, list[Node]] = {}
    for v, all_of_them in reading.items():
        if v not in made or not all(isinstance(g, Group) and _is_large(g, v) for g in all_of_them):
            continue
        chains = [_instead(v, walked[id(g)], there, reading, made) for g in all_of_them]
        if all(chains):
            found[v] = chains[0]
    return found


def _instead(
    v: Var, read: set[Var], there: set[Var], passed: Container[Var], made: dict[Var, Node]
) -> list[Node]:
    """What computes v from what a group reads, at most one array that is there, and few numbers.

    passed: what steps read that others make, which is in memory for them.
    """
    least = math.prod(v.shape) // _SMALL

    def is_there(a: Var) -> bool:
        if math.prod(a.shape) <= least:
            return a in there or a in passed
        return a in there and _is_like(a, v)

    chain = _chain(v, lambda a: a in read or is_there(a), made) if v in read else []
    new = {a for e in chain for a in e.reads if a.shape == v.shape and a not in read and a in there}
    return chain if len(new) <= 1 else []


def _is_like(a: Var, v: Var) -> bool:
    return a.shape == v.shape and a.dtype.itemsize <= v.dtype.itemsize


def _chain(v: Var, is_read: Callable[[Var], bool], made: dict[Var, Node]) -> list[Node]:
    """What computes v from others that are read; nothing where that is none or costs too much."""
    chain: list[Node] = []
    cost, stack = 0, [v]
    while stack:
        e = made.get(stack.pop())
        how = None if e is None or e.name in VIEWS else printing(e)
        if e is None or how is None:
            return []
        if e in chain:
            continue
        chain.append(e)
        cost += how.cost
        missing = [a for a in e.operands if isinstance(a, Var) and not is_read(a)]
        if cost > _MOST_COST or any(a.shape != v.shape for a in missing):
            return []
        stack += missing
    return chain


def _renamed(e: Node, names: dict[Var, Var]) -> Node:
    operands = tuple([names.get(a, a) if isinstance(a, Var) else a for a in e.operands])
    return e if operands == e.operands else attrs.evolve(e, operands=operands)
