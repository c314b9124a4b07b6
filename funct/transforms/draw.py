"""draw_graph: a picture of what a function does, or of the tape that differentiates it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import attrs

from funct import tree as pytree
from funct.errors import ArgumentError, TransformError
from funct.graph import Graph, Guard, Node, Var
from funct.graph.layout import lay_out
from funct.source import Site
from funct.transforms import tape
from funct.transforms.abstract import make_graph
from funct.transforms.vjp import recorded

__all__ = ["Drawing", "Shape", "draw_graph"]

_HEIGHT, _ROW, _LETTER = 40.0, 84.0, 7.4
_COLOURS = {
    "input": ("#e3f2e6", "#2e7d46"),
    "constant": ("#f3f0e4", "#8a7a3b"),
    "op": ("#e8eefb", "#3559a8"),
    "call": ("#f3e8fb", "#7a3fa0"),
    "output": ("#fbe9e4", "#b0492a"),
}
_STYLE = (
    "text{font-family:ui-monospace,Menlo,Consolas,monospace;text-anchor:middle}"
    ".name{font-size:13px;font-weight:600;fill:#1c1c1c}.type{font-size:10.5px;fill:#555}"
    ".edge{fill:none;stroke:#8a8f98;stroke-width:1.3}.node:hover rect{stroke-width:3}"
)


@attrs.frozen
class Shape:
    """One box: what kind of thing it is, its name, a second line, and what hovering shows."""

    kind: str
    name: str
    detail: str = ""
    hint: str = ""


@attrs.frozen(repr=False)
class Drawing:
    """A drawn graph. It shows itself in notebooks; `svg` and `html` are self-contained texts.

    shapes: the boxes, from top to bottom; edges: pairs of their numbers.
    """

    title: str
    shapes: tuple[Shape, ...]
    edges: tuple[tuple[int, int], ...]

    @property
    def svg(self) -> str:
        """The picture as SVG."""
        return _svg(self)

    @property
    def html(self) -> str:
        """The picture as a page of its own, without scripts and without links."""
        head = f'<meta charset="utf-8"><title>{escape(self.title)}</title>'
        style = "<style>body{margin:16px;font-family:system-ui,sans-serif}</style>"
        heading = f"<h3>{escape(self.title)}</h3>"
        return (
            f"<!doctype html><html><head>{head}{style}</head><body>{heading}"
            f'<div style="overflow:auto">{self.svg}</div></body></html>'
        )

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto">{self.svg}</div>'

    def save(self, path: str | Path) -> None:
        """Write `*.svg` or `*.html`."""
        path = Path(path)
        if path.suffix not in (".svg", ".html"):
            raise ArgumentError(f"save: a drawing is *.svg or *.html, got {path.name!r}")
        path.write_text(self.svg if path.suffix == ".svg" else self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Drawing {self.title}: {len(self.shapes)} nodes, {len(self.edges)} edges>"


def _svg(drawing: Drawing) -> str:
    widths = [max(len(s.name) * 8.2, len(s.detail) * 6.6, 40.0) + 24.0 for s in drawing.shapes]
    layout = lay_out(widths, drawing.edges, row=_ROW)
    w, h = round(layout.width), round(layout.height)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" '
        f'role="img" aria-label="{escape(drawing.title)}"><style>{_STYLE}</style>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#8a8f98"/></marker></defs>',
    ]
    lines += [f'<path class="edge" marker-end="url(#tip)" d="{_curve(r)}"/>' for r in layout.routes]
    for shape, width, (x, y) in zip(drawing.shapes, widths, layout.centres, strict=True):
        fill, stroke = _COLOURS[shape.kind]
        title = f"<title>{escape(shape.hint)}</title>" if shape.hint else ""
        lines.append(
            f'<g class="node">{title}<rect x="{x - width / 2:.1f}" y="{y - _HEIGHT / 2:.1f}" '
            f'width="{width:.1f}" height="{_HEIGHT}" rx="7" fill="{fill}" stroke="{stroke}"/>'
            f'<text class="name" x="{x:.1f}" y="{y - 2:.1f}">{escape(shape.name)}</text>'
            f'<text class="type" x="{x:.1f}" y="{y + 12:.1f}">{escape(shape.detail)}</text></g>'
        )
    return "\n".join([*lines, "</svg>"])


def _curve(route: Sequence[tuple[float, float]]) -> str:
    """A smooth line from the lower edge of the first box through the bends to the last box."""
    points = [
        (route[0][0], route[0][1] + _HEIGHT / 2), *route[1:-1],
        (route[-1][0], route[-1][1] - _HEIGHT / 2 - 1),
    ]  # fmt: skip
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle = (y0 + y1) / 2
        text += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return text


def draw_graph(fun: Callable[..., Any], *, kind: str = "tape") -> Callable[..., Drawing]:
    """A function that draws what fun does at its arguments.

    Args: kind: "tape": the ops that a derivative passes on its way back, from fun's floating
    arguments to its results; hovering shows the user's line and what the node saves. "graph": the
    captured graph, with all inputs, constants and decisions.
    Returns: fun's positional signature -> `Drawing`, with `.svg`, `.html`, `.save(path)`; notebooks
    show it.
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
    if kind not in ("tape", "graph"):
        raise ArgumentError(f"draw_graph: kind must be 'tape' or 'graph', got {kind!r}")
    name = getattr(fun, "__name__", "fun")

    def draw(*args: Any) -> Drawing:
        if kind == "graph":
            return _draw_graph(f"graph of {name}", make_graph(fun)(*args), args)
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
                Shape("output", f"result {path}".strip(), _type(value.shape, value.dtype))
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
        return Shape("input", name or node.name, _type(node.shape, node.dtype))
    first, call = node, False
    while len(first.next) == 1 and id(first.next[0]) in merged:
        first, call = first.next[0], True
    saved = [s for n in (node, *node.next) if n is node or id(n) in merged for s in n.saved]
    kept = ", ".join([_type(s.shape, s.dtype) for s in saved])
    hint = "\n".join(filter(None, [_where(node.where), f"saves {kept}" if kept else ""]))
    detail = _type(node.shape, node.dtype) if isinstance(node.shape, tuple) else ""
    return Shape("call" if call else "op", first.name if call else node.name, detail, hint)


def _draw_graph(title: str, graph: Graph, args: Any) -> Drawing:
    paths = [p for p, _ in pytree.flatten_with_path(args)]
    shapes = [
        Shape("input", f"argument {p}", _type(v.shape, v.dtype))
        for p, v in zip(paths, graph.inputs, strict=True)
    ]
    number = {v: k for k, v in enumerate(graph.inputs)}
    for v, x in graph.constants:
        number[v] = len(shapes)
        text = repr(x.tolist()) if x.size <= 3 else "..."
        shapes.append(Shape("constant", text, _type(v.shape, v.dtype)))
    edges: dict[tuple[int, int], None] = {}
    for e in graph.nodes:
        operands = (e.operand,) if isinstance(e, Guard) else e.operands
        for a in operands:
            if isinstance(a, Var):
                edges[number[a], len(shapes)] = None
        if isinstance(e, Guard):
            shapes.append(Shape("output", "guard", e.text, _where(e.site)))
            continue
        for v in e.results:
            number[v] = len(shapes)
        numbers = [repr(a) for a in operands if not isinstance(a, Var)]
        if isinstance(e, Node):
            numbers += [f"{n}={p}" for n, p in zip(e.primitive.params, e.params, strict=True)]
        hint = "\n".join(filter(None, [", ".join(numbers), _where(e.site)]))
        types = ", ".join([_type(v.shape, v.dtype) for v in e.results])
        shapes.append(Shape("op" if isinstance(e, Node) else "call", e.name, types, hint))
    for k, v in enumerate(graph.outputs):
        edges[number[v], len(shapes)] = None
        name = f"result {k}" if len(graph.outputs) > 1 else "result"
        shapes.append(Shape("output", name, _type(v.shape, v.dtype)))
    return Drawing(title, tuple(shapes), tuple(sorted(edges)))


def _type(shape: Any, dtype: Any) -> str:
    if isinstance(dtype, tuple):
        return ", ".join([_type(s, d) for s, d in zip(shape, dtype, strict=True)])
    return f"{dtype}[{', '.join(map(str, shape))}]"


def _where(site: Site | None) -> str:
    return str(site) if site is not None else ""
