"""A graph as a picture: boxes and arrows in SVG, a page of its own, or text for Graphviz."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from html import escape
from typing import Any

from msgspec import Struct

from funct.errors import ArgumentError
from funct.graph.ir import Graph, Guard, Node, Var
from funct.graph.layout import lay_out
from funct.source import Site

__all__ = ["Drawing", "Shape", "drawn", "type_text", "where_text"]

_HEIGHT, _ROW = 40.0, 84.0
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


class Shape(Struct, frozen=True):
    """One box: what kind of thing it is, its name, a second line, and what hovering shows."""

    kind: str
    name: str
    detail: str = ""
    hint: str = ""


class Drawing(Struct, frozen=True):
    """A drawn graph. It shows itself in notebooks; `svg` and `html` are self-contained texts.

    shapes: the boxes, from top to bottom; edges: pairs of their numbers. text: what the page has
    below the picture.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.draw_graph(lambda x: xp.sum(x * x))(xp.ones(2)).svg[:4]
        '<svg'
    """

    title: str
    shapes: tuple[Shape, ...]
    edges: tuple[tuple[int, int], ...]
    text: str = ""

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
        text = f"<pre>{escape(self.text)}</pre>" if self.text else ""
        return (
            f"<!doctype html><html><head>{head}{style}</head><body>{heading}"
            f'<div style="overflow:auto">{self.svg}</div>{text}</body></html>'
        )

    @property
    def dot(self) -> str:
        """The boxes and arrows in Graphviz's language."""
        lines = [f"digraph {_quoted(self.title)} {{", "  node [shape=box, style=rounded];"]
        for k, s in enumerate(self.shapes):
            label = _quoted("\n".join(filter(None, [s.name, s.detail])))
            lines.append(f"  n{k} [label={label}, tooltip={_quoted(s.hint)}];")
        lines += [f"  n{a} -> n{b};" for a, b in self.edges]
        return "\n".join([*lines, "}"])

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto">{self.svg}</div>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `*.svg`, `*.html` or `*.dot`."""
        kind = os.path.splitext(path)[1]
        if kind not in (".svg", ".html", ".dot"):
            name = os.path.basename(path)
            raise ArgumentError(f"save: a drawing is *.svg, *.html or *.dot, got {name!r}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(getattr(self, kind[1:]))

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


def drawn(title: str, graph: Graph, names: Sequence[str] | None = None) -> Drawing:
    """The picture of a graph. names: of its inputs."""
    given = names if names is not None else [v.name for v in graph.inputs]
    shapes = [
        Shape("input", n, type_text(v.shape, v.dtype))
        for n, v in zip(given, graph.inputs, strict=True)
    ]
    number = {v: k for k, v in enumerate(graph.inputs)}
    for v, x in graph.constants:
        number[v] = len(shapes)
        text = repr(x.tolist()) if x.size <= 3 else "..."
        shapes.append(Shape("constant", text, type_text(v.shape, v.dtype)))
    edges: dict[tuple[int, int], None] = {}
    for e in graph.nodes:
        operands = (e.operand,) if isinstance(e, Guard) else e.operands
        for a in operands:
            if isinstance(a, Var):
                edges[number[a], len(shapes)] = None
        if isinstance(e, Guard):
            shapes.append(Shape("output", "guard", e.text, where_text(e.site)))
            continue
        for v in e.results:
            number[v] = len(shapes)
        numbers = [repr(a) for a in operands if not isinstance(a, Var)]
        if isinstance(e, Node):
            numbers += [f"{n}={p}" for n, p in zip(e.primitive.params, e.params, strict=True)]
        hint = "\n".join(filter(None, [", ".join(numbers), where_text(e.site)]))
        types = ", ".join([type_text(v.shape, v.dtype) for v in e.results])
        shapes.append(Shape("op" if isinstance(e, Node) else "call", e.name, types, hint))
    for k, v in enumerate(graph.outputs):
        edges[number[v], len(shapes)] = None
        name = f"result {k}" if len(graph.outputs) > 1 else "result"
        shapes.append(Shape("output", name, type_text(v.shape, v.dtype)))
    return Drawing(title, tuple(shapes), tuple(sorted(edges)), str(graph))


def type_text(shape: Any, dtype: Any) -> str:
    """`float64[3, n]`; one after the other for several results."""
    if isinstance(dtype, tuple):
        return ", ".join([type_text(s, d) for s, d in zip(shape, dtype, strict=True)])
    return f"{dtype}[{', '.join(map(str, shape))}]"


def where_text(site: Site | None) -> str:
    """The user's line, or nothing."""
    return str(site) if site is not None else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
