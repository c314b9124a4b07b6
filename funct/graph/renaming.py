"""Entries of graphs with other names for what they read."""

from __future__ import annotations

from typing import Any

import attrs

from funct.graph.ir import Call, Guard, Var

__all__ = ["resolved", "substituted"]


def resolved(v: Var, alias: dict[Var, Var]) -> Var:
    """What stands for a value."""
    while v in alias:
        v = alias[v]
    return v


def substituted(e: Any, alias: dict[Var, Var]) -> Any:
    """An entry with its operands replaced."""
    if not alias:
        return e
    if isinstance(e, Guard):
        return e if e.operand is None else attrs.evolve(e, operand=resolved(e.operand, alias))
    operands = tuple([resolved(a, alias) if isinstance(a, Var) else a for a in e.operands])
    if isinstance(e, Call):
        body = attrs.evolve(
            e.body,
            inputs=tuple([resolved(v, alias) for v in e.body.inputs]),
            nodes=tuple([substituted(n, alias) for n in e.body.nodes]),
            outputs=tuple([resolved(v, alias) for v in e.body.outputs]),
        )
        return attrs.evolve(e, operands=operands, body=body)
    return e if operands == e.operands else attrs.evolve(e, operands=operands)
