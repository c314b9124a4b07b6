"""What a graph computes, as a hash: equal in every process, whatever names and lines are."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np

from funct.core import Size, lookup
from funct.graph.controls import written
from funct.graph.ir import Control, Graph, Guard, Node, Var
from funct.graph.passes.inline_calls import inline_calls

__all__ = ["digest"]

_MOST = 64 << 20  # bytes of constants that are worth reading
_PLAIN = (bool, int, float, complex, str, np.dtype, Size, type(None))  # what `repr` tells apart


@functools.cache
def _name(dtype: np.dtype[Any]) -> str:
    """NumPy puts names together anew each time."""
    return dtype.name


def digest(graph: Graph) -> str | None:
    """A hash of ops, parameters, types, decisions and constants.

    None where there is none: for ops that only this process knows (callbacks, ops of the user's),
    parameters that are objects, calls, constants of more than 64 MB.
    """
    if sum(x.data.nbytes for _, x in graph.constants) > _MOST:
        return None
    number: dict[Var, int] = {}
    parts: list[str] = []

    def define(v: Var) -> str:
        number[v] = len(number)
        return f"{_name(v.dtype)}{tuple(v.shape)!r}"

    found = hashlib.sha256()
    parts.append(" ".join([define(v) for v in graph.inputs]))
    parts.append(repr([(s.name, s.input, s.axis) for s in graph.symbols]))
    for v, x in graph.constants:
        parts.append(define(v))
        found.update(np.ascontiguousarray(x.data).tobytes())
    for e in graph.nodes:
        if isinstance(e, Guard):
            expected = _text(e.expected)
            at = -1 if e.operand is None else number[e.operand]
            parts.append(f"{e.kind} {at} {expected}")
        elif isinstance(e, Node):
            expected = _applied(e)
            operands = [f"%{number[a]}" if isinstance(a, Var) else _text(a) for a in e.operands]
            parts.append(f"{e.name} {operands} {expected} {[define(v) for v in e.results]}")
        else:
            return None
        if expected is None:
            return None
    parts.append(repr([number[v] for v in graph.outputs]))
    found.update("\n".join(parts).encode())
    return found.hexdigest()


def _applied(node: Node) -> str | None:
    """What the node applies to its operands: a known primitive with parameters, or graphs."""
    if isinstance(node.primitive, Control):
        form = written(node.primitive)
        if form is None:
            return None
        bodies = [digest(inline_calls(g)) for g in form.graphs]
        return None if None in bodies else f"{form.kind} {form.values!r} {bodies}"
    known = lookup(node.name) is node.primitive and "::" not in node.name
    return _text(node.params) if known else None


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
