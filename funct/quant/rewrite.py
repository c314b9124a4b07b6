"""`Rewriter`: build a new graph beside an old one, node by node, keeping names and source lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from funct.array import Array, asarray
from funct.core import Primitive, ShapeDtype
from funct.graph import Entry, Graph, Guard, Node, Var, check, eliminate_dead
from funct.source import Site

__all__ = ["Rewriter", "constants_of", "producers", "sole_users"]

Operand = Any  # Var or a Python number
_NUMBER = re.compile(r"\D(\d+)")


def constants_of(graph: Graph) -> dict[Var, Array]:
    """The constants by Var."""
    return dict(graph.constants)


def producers(graph: Graph) -> dict[Var, Node]:
    """The primitive node that makes each Var; inputs, constants and calls have none."""
    return {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}


def sole_users(graph: Graph) -> dict[Var, Node]:
    """The node that uses a Var, for Vars that one primitive node uses once and nothing else."""
    users: dict[Var, list[Entry | None]] = {}
    for e in graph.nodes:
        used = (e.operand,) if isinstance(e, Guard) else e.operands
        for a in used:
            if isinstance(a, Var):
                users.setdefault(a, []).append(e)
    for v in graph.outputs:
        users.setdefault(v, []).append(None)
    return {v: es[0] for v, es in users.items() if len(es) == 1 and isinstance(es[0], Node)}


class Rewriter:
    """Collects the entries of a new graph; Vars of the old one may be used and redefined."""

    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.constants = list(graph.constants)
        self.entries: list[Entry] = []
        names = [v.name for v in (*graph.inputs, *[v for v, _ in graph.constants])]
        names += [v.name for e in graph.nodes if not isinstance(e, Guard) for v in e.results]
        numbers = [int(m.group(1)) for n in names if (m := _NUMBER.fullmatch(n))]
        self.count = max(numbers, default=0)

    def _var(self, letter: str, aval: ShapeDtype) -> Var:
        self.count += 1
        return Var(f"{letter}{self.count}", aval.shape, aval.dtype)

    def constant(self, value: Any) -> Var:
        """A new constant."""
        x = asarray(value)
        var = self._var("c", ShapeDtype(x.shape, x.dtype))
        self.constants.append((var, x))
        return var

    def node(
        self,
        op: Callable[..., Any],
        operands: Sequence[Operand],
        params: tuple[Any, ...] = (),
        *,
        site: Site | None,
        result: Var | None = None,
    ) -> Var:
        """Append op(*operands, *params) and return its result: a new Var, or `result`."""
        primitive: Primitive = op.primitive  # type: ignore[attr-defined]
        if result is None:
            aval = primitive.aval(operands, params)
            assert isinstance(aval, ShapeDtype), "an op with one result"
            result = self._var("v", aval)
        self.entries.append(Node(primitive, tuple(operands), params, (result,), site))
        return result

    def keep(self, entry: Entry) -> None:
        """Append an entry as it is."""
        self.entries.append(entry)

    def graph(self, outputs: Sequence[Var] | None = None) -> Graph:
        """The new graph: well-formed, without what is dead."""
        new = attrs.evolve(
            self.old,
            constants=tuple(self.constants),
            nodes=tuple(self.entries),
            outputs=self.old.outputs if outputs is None else tuple(outputs),
        )
        return check(eliminate_dead(new))
