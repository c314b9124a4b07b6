"""Is a graph well-formed? Run after capture and after every pass."""

from __future__ import annotations

import ast
from typing import Any

from funct.core import ShapeDtype
from funct.errors import FunctError, GraphError
from funct.graph.ir import Call, Entry, Graph, Guard, Node, Symbol, Var

__all__ = ["check"]

# What the text of a size guard may consist of: it is evaluated.
_ARITHMETIC = (
    ast.Expression, ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare,
    ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub, ast.UAdd, ast.Not,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip


def check(graph: Graph) -> Graph:
    """The graph itself, or GraphError naming the entry that breaks a rule.

    Rules: every Var is defined once, before it is used; names are unique; operands and parameters
    are as many as the primitive takes; the shapes and dtypes written on results are those that its
    abstract rule gives; symbols are read off axes that exist, and size guards are arithmetic on
    them.
    """
    scope = _Scope()
    for v in graph.inputs:
        scope.define(v, "an input")
    for v, x in graph.constants:
        scope.define(v, "a constant")
        if tuple(x.shape) != v.shape or x.dtype != v.dtype:
            raise GraphError(
                f"graph: constant {v.name} is {x.dtype}{list(x.shape)}, typed {v.aval}"
            )
    for s in graph.symbols:
        _check_symbol(s, graph)
    for e in graph.nodes:
        scope.use(e)
        if isinstance(e, Guard):
            _check_guard(e, {s.name for s in graph.symbols})
            continue
        if isinstance(e, Node):
            _check_node(e)
        elif len(e.results) != len(e.body.outputs):
            counts = f"{len(e.results)} results, its body {len(e.body.outputs)}"
            raise GraphError(f"graph: {e.name} has {counts}", site=e.site)
        for v in e.results:
            scope.define(v, e.name)
    for v in graph.outputs:
        if v not in scope.known:
            raise GraphError(f"graph: output {v.name} is not defined")
    return graph


class _Scope:
    """The Vars and names that are defined so far."""

    def __init__(self) -> None:
        self.known: set[Var] = set()
        self.names: set[str] = set()

    def define(self, v: Var, by: str) -> None:
        if v in self.known:
            raise GraphError(f"graph: {v.name} is defined twice, again by {by}")
        if v.name in self.names:
            raise GraphError(f"graph: two values are named {v.name}")
        self.known.add(v)
        self.names.add(v.name)

    def use(self, e: Entry) -> None:
        operands: tuple[Any, ...] = (e.operand,) if isinstance(e, Guard) else e.operands
        for a in operands:
            if isinstance(a, Var) and a not in self.known:
                raise GraphError(f"graph: {a.name} is used before it is defined", site=e.site)
        if isinstance(e, Call):
            for v in e.body.inputs:
                if v not in self.known:
                    raise GraphError(f"graph: the body of {e.name} reads {v.name}", site=e.site)


def _check_symbol(s: Symbol, graph: Graph) -> None:
    if not 0 <= s.input < len(graph.inputs):
        raise GraphError(f"graph: symbol {s.name} is read off input {s.input}, which is not there")
    if not 0 <= s.axis < len(graph.inputs[s.input].shape):
        raise GraphError(f"graph: symbol {s.name} is read off axis {s.axis}, which is not there")


def _check_guard(guard: Guard, symbols: set[str]) -> None:
    if guard.kind != "size":
        if guard.operand is None:
            raise GraphError(f"graph: a {guard.kind} guard needs an operand", site=guard.site)
        return
    try:
        parts = list(ast.walk(ast.parse(guard.expected, mode="eval")))
    except (SyntaxError, TypeError, ValueError):
        parts = [ast.Pass()]
    if not all(isinstance(n, _ARITHMETIC) for n in parts):
        raise GraphError(f"graph: size guard {guard.expected!r} is no arithmetic", site=guard.site)
    for name in [n.id for n in parts if isinstance(n, ast.Name) and n.id not in symbols]:
        raise GraphError(f"graph: size {name} names no symbol", site=guard.site)


def _check_node(node: Node) -> None:
    prim = node.primitive
    for what, wanted, got in (
        ("operands", len(prim.operands), len(node.operands)),
        ("parameters", len(prim.params), len(node.params)),
        ("results", prim.results, len(node.results)),
    ):
        if wanted != got:
            verb = "gives" if what == "results" else "takes"
            raise GraphError(
                f"graph: {node.name} {verb} {wanted} {what}, got {got}", site=node.site
            )
    for a in node.operands:
        if not isinstance(a, Var | bool | int | float | complex):
            raise GraphError(
                f"graph: operand {a!r} of {node.name} is neither a Var nor a number", site=node.site
            )
    _check_types(node)


def _check_types(node: Node) -> None:
    try:
        avals = node.primitive.aval(node.operands, node.params)
    except FunctError:
        raise
    except Exception as error:
        raise GraphError(f"graph: {node.name} cannot be typed: {error}", site=node.site) from None
    expected = avals if isinstance(avals, tuple) else (avals,)
    got = tuple([v.aval for v in node.results])
    if not all(_same(a, b) for a, b in zip(got, expected, strict=True)):
        raise GraphError(
            f"graph: {node.name} gives {_plain(expected)}, its results are typed {_plain(got)}",
            site=node.site,
        )


def _same(a: ShapeDtype, b: ShapeDtype) -> bool:
    return repr(a.shape) == repr(b.shape) and a.dtype == b.dtype  # by text: no size guard


def _plain(avals: tuple[ShapeDtype, ...]) -> str:
    return ", ".join(f"{a.dtype}{list(a.shape)}" for a in avals)
