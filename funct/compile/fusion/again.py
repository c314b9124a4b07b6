"""What costs less to compute again than to read back from memory.

Loops may read a large array that earlier loops wrote, and beside it all that it was made of: x and
1 + x. Such an array is computed a second time, where it is read, if that takes a few additions.
Nothing is read that was not read before, and where nobody else wants the array it is never written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from funct.compile.fusion.groups import Group, walked_through
from funct.compile.loops.scalars import printing
from funct.compile.loops.views import VIEWS
from funct.graph import Entry, Graph, Guard, Node, Var

__all__ = ["computed_again"]

_MOST_COST = 6  # of an element, in additions; to write and read one costs several times as much
_LEAST_BYTES = 1 << 16  # of an array: less stays in a near cache


def computed_again(graph: Graph, steps: Sequence[Group | Node | Guard]) -> Graph:
    """The graph with copies of nodes for loops that read them; itself where there are none.

    steps: the graph's nodes as they share their loops.
    """
    made = {e.results[0]: e for s in steps if isinstance(s, Group) for e in s.nodes}
    copies: dict[Node, list[Node]] = {}
    names: dict[Node, dict[Var, Var]] = {}  # of the operands of each member of such loops
    for k, step in enumerate(steps):
        found = _copied(step, made) if isinstance(step, Group) else []
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


def _copied(group: Group, made: dict[Var, Node]) -> list[Node]:
    """The nodes that a group had better compute itself."""
    read = dict.fromkeys(walked_through(group))
    found: dict[Node, None] = {}
    for v in read:
        if group.is_full(v) and math.prod(v.shape) * v.dtype.itemsize >= _LEAST_BYTES:
            found |= dict.fromkeys(_chain(v, read, made))
    return list(found)


def _chain(v: Var, read: dict[Var, None], made: dict[Var, Node]) -> list[Node]:
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
        missing = [a for a in e.operands if isinstance(a, Var) and a not in read]
        if cost > _MOST_COST or any(a.shape != v.shape for a in missing):
            return []
        stack += missing
    return chain


def _renamed(e: Node, names: dict[Var, Var]) -> Node:
    operands = tuple([names.get(a, a) if isinstance(a, Var) else a for a in e.operands])
    return e if operands == e.operands else attrs.evolve(e, operands=operands)
