"""What a graph computes, as a hash: equal in every process, whatever names and lines are."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np

from funct.core import Size, lookup
from funct.graph.controls import written
from funct.graph.given import of_graph
from funct.graph.ir import Control, Graph, Guard, Node, Var
from funct.graph.passes.inline_calls import inline_calls

__all__ = ["digest"]

_MOST = 64 << 20  # bytes of constants that are worth reading
_PLAIN = (bool, int, float, complex, str, np.dtype, Size, type(None))  # what `repr` tells apart


@functools.cache
def _name(dtype: np.dtype[Any]) -> str:
    """NumPy puts names together anew each time."""
    return dtype.name


@of_graph
def digest(graph: Graph, *, rules: bool = False) -> str | None:
    """A hash of ops, parameters, types, decisions and constants.

    rules: derivatives of it will be taken, so the rules of functions that have some matter in the
    bodies of branches and loops too. None where there is no hash: for ops that only this process
    knows (callbacks, ops of the user's), parameters that are objects, calls, constants of more
    than 64 MB.
    """
    if sum(x.data.nbytes for _, x in graph.constants) > _MOST:
        return None
    known: dict[Var, str] = {}  # by their order: names are the capture's
    parts: list[str] = []

    def define(v: Var) -> str:
        known[v] = f"%{len(known)}"
        return f"{_name(v.dtype)}{v.shape!r}"

    found = hashlib.sha256()
    parts.append(" ".join([define(v) for v in graph.inputs]))
    parts.append(repr([(s.name, s.input, s.axis) for s in graph.symbols]))
    for v, x in graph.constants:
        parts.append(define(v))
        found.update(np.ascontiguousarray(x.data).tobytes())
    for e in graph.nodes:
        if isinstance(e, Node):
            applied = _applied(e, rules)
            if applied is None:
                return None
            operands = [known[a] if a.__class__ is Var else str(_text(a)) for a in e.operands]
            results = " ".join([define(v) for v in e.results])
            parts.append(f"{e.name}|{' '.join(operands)}|{applied}|{results}")
        elif isinstance(e, Guard):
            expected = _text(e.expected)
            if expected is None:
                return None
            parts.append(f"{e.kind}|{'' if e.operand is None else known[e.operand]}|{expected}")
        else:
            return None
    parts.append(" ".join([known[v] for v in graph.outputs]))
    found.update("\n".join(parts).encode())
    return found.hexdigest()


def _applied(node: Node, rules: bool) -> str | None:
    """What the node applies to its operands: a known primitive with parameters, or graphs."""
    if isinstance(node.primitive, Control):
        form = written(node.primitive)
        if form is None:
            return None
        bodies = [digest(g if rules else inline_calls(g), rules=rules) for g in form.graphs]
        return None if None in bodies else f"{form.kind} {form.values!r} {bodies}"
    if lookup(node.name) is not node.primitive or "::" in node.name:
        return None
    return _text(node.params) if node.params else "()"


def _text(p: Any) -> str | None:
    """A parameter as text that tells it apart; None for objects."""
    if isinstance(p, _PLAIN):
        return f"{type(p).__name__} {p!r}"
    if isinstance(p, np.ndarray):
        return f"{p.dtype}{p.shape} {hashlib.sha256(np.ascontiguousarray(p).tobytes()).hexdigest()}"
    if isinstance(p, tuple):
        inner = [_text(v) for v in p]
        return None if None in inner else repr(inner)
    return None
