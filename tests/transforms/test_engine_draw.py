"""Pictures of tapes and graphs: what is on them, that nothing overlaps, that they stand alone."""

import itertools
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, TransformError
from funct.graph.layout import lay_out
from tests.transforms.test_grad import arr

SVG = "{http://www.w3.org/2000/svg}"


def layer(p: Any, x: Any) -> Any:
    """A small network."""
    h = xp.tanh(x @ p["w"] + p["b"])  # the hidden layer
    return {"loss": xp.sum(h * h), "n": xp.asarray(3)}


PARAMS = {"w": xp.ones((3, 4)), "b": xp.zeros(4)}


def test_a_tape_is_drawn() -> None:
    """Arguments by path, ops with types, results; hovering tells the line and what is saved."""
    d = ft.draw_graph(layer)(PARAMS, xp.ones((5, 3)))
    names = [s.name for s in d.shapes]
    assert sorted(names[:3]) == ["argument 0.b", "argument 0.w", "argument 1"]
    assert names[3:] == ["matmul", "add", "tanh", "multiply", "reduce_sum", "result loss"]
    matmul = d.shapes[names.index("matmul")]
    assert matmul.detail == "float64[5, 4]"
    assert 'h = xp.tanh(x @ p["w"] + p["b"])  # the hidden layer' in matmul.hint
    assert "saves float64[" in matmul.hint
    square = d.shapes[names.index("multiply")]
    assert square.hint.endswith("saves float64[5, 4]")
    by_name = {(names[a], names[b]) for a, b in d.edges}
    assert ("tanh", "multiply") in by_name
    assert ("argument 0.w", "matmul") in by_name
    assert ("reduce_sum", "result loss") in by_name


def test_the_picture_is_sound() -> None:
    """The SVG is XML with one box per node and one line per edge; nothing points outside of it."""
    d = ft.draw_graph(layer)(PARAMS, xp.ones((5, 3)))
    root = ElementTree.fromstring(d.svg)
    assert len(root.findall(f"{SVG}g")) == len(d.shapes)
    assert len(root.findall(f"{SVG}path")) == len(d.edges)
    assert d._repr_svg_() == d.svg
    assert d.svg in d._repr_html_()
    assert d.svg in d.html
    assert re.findall(r"(?:https?|file):[^\"' ]+", d.html) == ["http://www.w3.org/2000/svg"]
    assert "<script" not in d.html
    assert "font-weight" in d.svg
    assert repr(d) == "<Drawing tape of layer: 9 nodes, 8 edges>"


def test_names_are_escaped() -> None:
    """What users name with angle brackets stays text."""
    f = ft.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, x), lambda r, g: (g,))
    f.__name__ = "<b>&"
    drawn = ElementTree.fromstring(ft.draw_graph(lambda x: f(x) * 2.0)(arr(1.0)).svg)
    assert any("<b>&" in text for text in drawn.itertext())


def test_calls_are_one_box() -> None:
    """A function with its own rule, or a compiled one, is one box, with its results apart."""
    f = ft.custom_vjp(xp.sin)
    f.defvjp(lambda x: (xp.sin(x), x), lambda r, g: (g * r,))
    d = ft.draw_graph(lambda x: f(x) + ft.jit(lambda y: y * 2.0)(x))(arr([1.0]))
    assert [(s.kind, s.name) for s in d.shapes] == [
        ("input", "argument 0"), ("call", "sin"), ("call", "jit"), ("op", "add"),
        ("output", "result"),
    ]  # fmt: skip
    assert "saves float64[1]" in d.shapes[1].hint
    two = ft.draw_graph(lambda x: xp.top_k(x, 2)[0])(arr([1.0, 2.0, 3.0]))
    assert [s.name for s in two.shapes] == ["argument 0", "top_k", "top_k[0]", "result"]


def test_a_graph_is_drawn() -> None:
    """Inputs, constants, decisions and numbers are on the picture of the captured graph."""
    w = arr([1.0, 2.0])

    def f(x: Any, n: Any) -> Any:
        return x * w * 2.0 if xp.sum(x) > 0 else n, n

    d = ft.draw_graph(f, kind="graph")(arr([1.0, 1.0]), xp.asarray(1))
    kinds = [s.kind for s in d.shapes]
    assert kinds.count("input") == 2
    assert kinds.count("constant") == 1
    assert any(s.name == "guard" and "True" in s.detail for s in d.shapes)
    assert any("2.0" in s.hint for s in d.shapes if s.name == "multiply")
    ElementTree.fromstring(d.svg)
    backward = ft.draw_graph(ft.grad(lambda x: xp.sum(xp.sin(x))), kind="graph")(w)
    assert "cos" in [s.name for s in backward.shapes]


def test_drawing_composes() -> None:
    """The tape of a gradient has the ops of both passes; a tape inside jit knows lines as well."""
    d = ft.draw_graph(ft.grad(lambda x: xp.sum(xp.sin(x) ** 2)))(arr([1.0, 2.0]))
    assert {"sin", "cos"} <= {s.name for s in d.shapes}
    found: list[Any] = []

    def traced(x: Any) -> Any:
        found.append(ft.draw_graph(xp.exp)(x))
        return x

    ft.jit(traced)(arr(1.0))
    ft.grad(traced)(arr(1.0))
    ft.vmap(traced)(arr([1.0]))
    assert [[s.name for s in d.shapes] for d in found] == [["argument 0", "exp", "result"]] * 3


def test_save_and_errors(tmp_path: Any) -> None:
    """Two file types; other kinds and functions without a tape are refused."""
    d = ft.draw_graph(xp.sin)(arr(1.0))
    d.save(tmp_path / "a.svg")
    d.save(str(tmp_path / "a.html"))
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == d.svg
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(ArgumentError, match=r"a drawing is \*.svg, \*.html or \*.dot, got 'a.png'"):
        d.save(tmp_path / "a.png")
    with pytest.raises(ArgumentError, match="kind must be 'tape' or 'graph', got 'dot'"):
        ft.draw_graph(xp.sin, kind="dot")
    with pytest.raises(TransformError, match="no result varies with an argument"):
        ft.draw_graph(lambda x: x * 2)(xp.asarray(1))


@st.composite
def dags(draw: Any) -> tuple[list[float], list[tuple[int, int]]]:
    """Widths and edges that lead to larger numbers."""
    n = draw(st.integers(1, 25))
    widths = draw(st.lists(st.floats(10, 200), min_size=n, max_size=n))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).map(sorted).map(tuple)
    edges = draw(st.lists(pairs, max_size=60, unique=True))
    return widths, [(a, b) for a, b in edges if a < b]


@given(dags())
def test_layouts_are_sound(dag: tuple[list[float], list[tuple[int, int]]]) -> None:
    """Edges lead down one layer at a time, boxes of a layer keep apart and within the width."""
    widths, edges = dag
    found = lay_out(widths, edges)
    for (a, b), route in zip(edges, found.routes, strict=True):
        assert (route[0], route[-1]) == (found.centres[a], found.centres[b])
        steps = np.diff([y for _, y in route])
        np.testing.assert_allclose(steps, 84.0)
    rows: dict[float, list[tuple[float, float]]] = {}
    for w, (x, y) in zip(widths, found.centres, strict=True):
        rows.setdefault(y, []).append((x - w / 2, x + w / 2))
    for row in rows.values():
        row.sort()
        assert all(b[0] - a[1] >= 24.0 - 1e-6 for a, b in itertools.pairwise(row))
        assert row[0][0] >= 0
        assert row[-1][1] <= found.width + 1e-6
    assert max(y for _, y in found.centres) < found.height


def test_long_and_empty_graphs() -> None:
    """Ten thousand nodes in a chain, and none at all, are laid out without recursion."""
    n = 10_000
    found = lay_out([40.0] * n, [(k, k + 1) for k in range(n - 1)])
    assert len({round(x, 6) for x, _ in found.centres}) == 1
    assert lay_out([], []).height == 0.0

    def chain(x: Any) -> Any:
        for _ in range(2000):
            x = xp.sin(x)
        return x

    assert len(ft.draw_graph(chain)(arr(1.0)).shapes) == 2002
