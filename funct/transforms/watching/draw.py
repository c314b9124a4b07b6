"""draw_graph: a picture of what a function does, or of the tape that differentiates it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from funct import pytree
from funct.errors import ArgumentError, TransformError
from funct.graph.draw import Drawing, Shape, drawn, type_text, where_text
from funct.transforms.abstract import make_graph
from funct.transforms.given import expect_functions
from funct.transforms.tape import nodes as tape
from funct.transforms.vjp import recorded

__all__ = ["draw_graph"]


def draw_graph(fun: Callable[..., Any], *, kind: str = "tape") -> Callable[..., Drawing]:
    """A function that draws what fun does at its arguments.

    Args: kind: "tape": the ops that a derivative passes on its way back, from fun's floating
    arguments to its results; hovering shows the user's line and what the node saves. "graph": the
    captured graph, with all inputs, constants and decisions.
    Returns: fun's positional signature -> `Drawing`, with `.svg`, `.html`, `.dot`, `.save(path)`;
    notebooks show it.
    Raises: ArgumentError: for another kind. TransformError: for "tape" when no result varies with
    an argument.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> drawing = ft.draw_graph(lambda x: xp.sum(xp.sin(x) * x))(xp.ones(3))
        >>> [s.name for s in drawing.shapes]
        ['argument 0', 'sin', 'multiply', 'reduce_sum', 'result']
        >>> drawing.edges
        ((0, 1), (0, 2), (1, 2), (2, 3), (3, 4))
    """
    expect_functions("draw_graph", fun=fun)
    if kind not in ("tape", "graph"):
        raise ArgumentError(f"draw_graph: kind must be 'tape' or 'graph', got {kind!r}")
    name = getattr(fun, "__name__", "fun")

    def draw(*args: Any) -> Drawing:
        if kind == "graph":
            paths = [f"argument {p}" for p, _ in pytree.flatten_with_path(args)]
            return drawn(f"graph of {name}", make_graph(fun)(*args), paths)
        return _draw_tape(f"tape of {name}", fun, args)

    return draw


def _draw_tape(title: str, fun: Callable[..., Any], args: Any) -> Drawing:
    out, pull = recorded("draw_graph", fun, args, sites=True)
    nodes = list(pull.nodes())[::-1]
    if not nodes:
        raise TransformError(
            "draw_graph: no result varies with an argument, so there is no tape",
            fix="pass floating arrays, or draw the graph: kind='graph'",
        )
    paths = [p for p, _ in pytree.flatten_with_path(args)]
    names = {id(n): f"argument {p}" for n, p in zip(pull.inputs, paths, strict=True) if n}
    merged = _merged(nodes)
    shapes: list[Shape] = []
    number: dict[int, int] = {}
    edges: dict[tuple[int, int], None] = {}
    for node in nodes:
        if id(node) in merged:
            continue
        number[id(node)] = len(shapes)
        shapes.append(_shape_of(node, names.get(id(node)), merged))
        for parent in _parents(node, merged):
            edges[number[id(parent)], number[id(node)]] = None
    results = pytree.flatten_with_path(out)
    for (path, value), root in zip(results, pull.roots, strict=True):
        if root is not None:
            edges[number[id(root)], len(shapes)] = None
            shapes.append(
                Shape("output", f"result {path}".strip(), type_text(value.shape, value.dtype))
            )
    return Drawing(title, tuple(shapes), tuple(sorted(edges)))


def _merged(nodes: list[tape.Node]) -> dict[int, tape.Node]:
    """Halves of calls, which are drawn as one box: the node's id and the node it is drawn as."""
    users: dict[int, list[tape.Node]] = {}
    for node in nodes:
        for parent in node.next:
            users.setdefault(id(parent), []).append(node)
    return {
        id(n): users[id(n)][0] for n in nodes if n.shape is None and len(users.get(id(n), ())) == 1
    }


def _parents(node: tape.Node, merged: dict[int, tape.Node]) -> Iterator[tape.Node]:
    """The parents as they are drawn: those of merged halves in their place."""
    todo = list(node.next)[::-1]
    while todo:
        parent = todo.pop()
        if id(parent) in merged:
            todo += list(parent.next)[::-1]
        else:
            yield parent


def _shape_of(node: tape.Node, name: str | None, merged: dict[int, tape.Node]) -> Shape:
    if name is not None or not node.edges:
        return Shape("input", name or node.name, type_text(node.shape, node.dtype))
    first, call = node, isinstance(node.prim, tape.Composed)
    while len(first.next) == 1 and id(first.next[0]) in merged:
        first, call = first.next[0], True
    saved = [s for n in (node, *node.next) if n is node or id(n) in merged for s in n.saved]
    kept = ", ".join([type_text(s.shape, s.dtype) for s in saved])
    hint = "\n".join(filter(None, [where_text(node.where), f"saves {kept}" if kept else ""]))
    detail = type_text(node.shape, node.dtype) if isinstance(node.shape, tuple) else ""
    return Shape("call" if call else "op", first.name if call else node.name, detail, hint)
