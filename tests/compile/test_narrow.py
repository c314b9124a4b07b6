"""A short last axis that is reduced is taken apart: the numbers stay, the large array goes."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.loops.kernel import Kernel
from funct.compile.native import native
from funct.compile.program import kernels_text
from funct.compile.rewriting.narrow import taken_apart
from funct.graph import check, eliminate_dead, inline_calls, share_common


def distances(x: Any) -> Any:
    """For each point, of the squared distances from all others."""
    d = x[:, None, :] - x[None, :, :]
    return xp.sum(xp.exp(-xp.sum(d * d, axis=2)), axis=1)


def pulls(x: Any) -> Any:
    """For each point, what all points pull at it with: a sum of rows that are put side by side."""
    d = x[None] - x[:, None]
    return xp.sum(d / (1 + xp.sum(d * d, axis=2))[..., None], axis=1)


FUNCTIONS: dict[str, Any] = {
    "pairs": distances,
    "gradient": ft.grad(lambda x: xp.sum(distances(x))),
    "tangent": lambda x: ft.jvp(distances, (x,), (x * 0.5,))[1],
    "all but the last": lambda x: xp.sum(xp.sin(x)[:, None, :] * x, axis=(0, 1)),
    "some": lambda x: xp.max(xp.sin(x)[:, None, :] * x, axis=0),
    "kept": lambda x: xp.max(xp.abs(x[:, None] - x), axis=-1, keepdims=True),
    "everything": lambda x: xp.prod(1.0 + 1e-6 * xp.cos(x[:, None] - x)),
    "masks": lambda x: xp.any(x[:, None] > x + 2.0, axis=2),
    "one for each row": lambda x: xp.sum((x[:, None] - x) * x[:, None, :1], axis=2),
    "pulls": pulls,
    "flat": lambda x: xp.sum(xp.reshape(x[:, None] * x, (-1, x.shape[-1])) * 2.0, axis=1),
}


def graph_of(fun: Any, x: Any) -> Any:
    """The graph, as the compiler sees it."""
    return eliminate_dead(share_common(inline_calls(ft.make_graph(fun)(xp.asarray(x)))))


@pytest.mark.in_turn
@pytest.mark.parametrize("places", [2, 3, 4, 7, 16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_stay(name: str, places: int) -> None:
    """As a graph, and as machine code."""
    fun = FUNCTIONS[name]
    x = np.random.default_rng(0).normal(size=(70, places))
    graph = graph_of(fun, x)
    apart = taken_apart(graph)
    check(apart)
    expected = np.asarray(fun(xp.asarray(x)))
    for actual in (apart(xp.asarray(x))[0], ft.jit(fun)(xp.asarray(x))):
        np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "places"),
    [*[(n, 3) for n in ("pairs", "gradient", "some", "masks")], ("pairs", 8), ("some", 16)],
)
def test_the_large_array_goes(name: str, places: int) -> None:
    """No array has an element for each pair and place."""
    graph = taken_apart(graph_of(FUNCTIONS[name], np.ones((70, places))))
    assert all(v.shape != (70, 70, places) for e in graph.nodes for v in e.results)


@pytest.mark.parametrize("places", [5, 8, 10, 16])
def test_rows_of_few_are_taken_apart(places: int) -> None:
    """What is found of a row, and what is made of the row with it, are loops over all rows."""

    def standardized(x: Any) -> Any:
        e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
        return e / xp.sum(e, axis=1, keepdims=True)

    x = np.random.default_rng(2).normal(size=(5000, places))
    graph = taken_apart(graph_of(standardized, x))
    assert sum(v.shape == x.shape for e in graph.nodes for v in e.results) == 1  # what is given
    e = np.exp(x - x.max(1, keepdims=True))
    for found in (graph(xp.asarray(x))[0], ft.jit(standardized)(xp.asarray(x))):
        np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-14)


@pytest.mark.parametrize("points", [8, 12, 16, 70])
def test_what_is_put_side_by_side_is_reduced_before(points: int) -> None:
    """Of few points, too, the places are reduced one by one along other axes."""
    x = np.random.default_rng(1).normal(size=(points, 3))
    graph = taken_apart(graph_of(pulls, x))
    check(graph)
    assert all(v.shape != (points, points, 3) for e in graph.nodes for v in e.results)
    np.testing.assert_allclose(graph(xp.asarray(x))[0], pulls(xp.asarray(x)), rtol=1e-12)


def test_long_axes_and_small_arrays_stay() -> None:
    """It is another graph only where that pays."""
    rows = lambda x: xp.sum(xp.sin(x) * x, axis=1)  # noqa: E731  reads nothing often
    for fun, shape in ((distances, (70, 17)), (distances, (7, 3)), (rows, (1000, 5))):
        graph = graph_of(fun, np.ones(shape))
        assert taken_apart(graph) is graph


def test_parts_of_whole_vectors_stay() -> None:
    """8 columns beside 8 others, or beside zeros, are good as they are; not so 8 beside one."""
    x = np.ones((2000, 8))
    halves = lambda x: xp.concat([xp.tanh(x), x * 2], axis=1) * 2  # noqa: E731
    beside = lambda x: xp.concat([x[:, :1], x], axis=1) * 2  # noqa: E731
    slope = ft.grad(lambda x: xp.sum(x[:, 8:] ** 2))
    for fun, given, stays in ((halves, x, True), (beside, x, False), (slope, halves(x), True)):
        graph = graph_of(fun, np.asarray(given))
        assert (taken_apart(graph) is graph) == stays


@pytest.mark.parametrize("rows", [64, 100, 1000])
@pytest.mark.parametrize("places", [2, 3, 4])
def test_some_rows_of_few(rows: int, places: int) -> None:
    """Gradients of columns are not put into zeros, in loops and outside of them."""
    slope = ft.grad(lambda q: xp.sum((q[:, 1:] - q[:, :1] ** 2) ** 2))

    def step(s: Any, _: Any) -> tuple[Any, None]:
        q, p = s
        p = p - 0.01 * slope(q)
        return (q + 0.01 * p, p), None

    fun = lambda q, p: ft.scan(step, (q, p), None, length=5)[0]  # noqa: E731
    q, p = (np.random.default_rng(k).normal(size=(rows, places)) for k in (0, 1))
    apart = taken_apart(graph_of(slope, q))
    assert all(e.name != "embed" for e in apart.nodes)
    found = ft.jit(fun, mode="reduce-overhead")(xp.asarray(q), xp.asarray(p))
    for a, b in zip(found, fun(xp.asarray(q), xp.asarray(p)), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-14)


def test_few_points_in_pairs() -> None:
    """Vectors lie along pairs of few points too, and sums keep NumPy's order; few rows that are
    no pairs stay as they are.
    """
    p = xp.asarray(np.random.default_rng(0).normal(size=(30, 3)))
    rows = xp.asarray(np.random.default_rng(0).normal(size=(900, 3)))

    def pairs(p: Any) -> Any:
        d = p[:, None] - p[None]
        return xp.sum(d * d, axis=-1)

    def alone(x: Any) -> Any:
        return xp.sum(x * x, axis=-1)

    for f, x, narrow in ((pairs, p, False), (alone, rows, True)):
        made = native(ft.make_graph(f)(x))
        assert any(c.words[1] == 3 for c in made.calls) is narrow
        (found,) = made.run(x.data)
        np.testing.assert_allclose(found, np.asarray(f(x)), 1e-15 if narrow else 0)


def mixed(x: Any) -> Any:
    """Rows are put side by side several times."""
    a, b, c = (xp.exp(k * distances(x)) for k in (1, 2, 3))
    return xp.stack([a, b], axis=-1), xp.stack([b, c], axis=-1), xp.stack([a, b, c], axis=-1)


@pytest.mark.parametrize("places", [5, 9, 12, 16])
@pytest.mark.parametrize("name", ["pairs", "gradient", "tangent", "mixed"])
def test_what_is_alike_is_compiled_once(name: str, places: int) -> None:
    """No two kernels of a program are one text, and places do not have kernels of their own."""
    fun = (FUNCTIONS | {"mixed": mixed})[name]

    def kernels(places: int) -> list[Any]:
        made = native(graph_of(fun, np.ones((70, places))))
        return [k for k in dict.fromkeys([c.kernel for c in made.calls]) if isinstance(k, Kernel)]

    found = kernels(places)
    assert len({kernels_text([k]) for k in found}) == len(found)
    assert len(found) <= len(kernels(5)) + 2


@pytest.mark.parametrize("axes", [1, (2, 3), (0, 2, 3), 0])
def test_pixels_of_small_images_stay_together(axes: Any) -> None:
    """Where both of the last axes are reduced, or neither is, vectors lie along both of them."""
    x = np.random.default_rng(0).normal(size=(8, 30, 14, 14))

    def shares(x: Any) -> Any:
        e = xp.exp(x - xp.max(x, axis=axes, keepdims=True))
        return e / xp.sum(e * e, axis=axes, keepdims=True)

    graph = graph_of(shares, x)
    assert taken_apart(graph) is graph
    np.testing.assert_allclose(np.asarray(ft.jit(shares)(xp.asarray(x))), shares(x), 1e-13)


@pytest.mark.parametrize(("places", "apart"), [(7, True), (8, False), (9, True), (16, False)])
def test_columns_of_rows_of_whole_vectors_are_reduced_as_they_lie(places: int, apart: bool) -> None:
    """Vectors lie along such rows already; others are not read in whole ones."""
    graph = graph_of(
        lambda x: xp.sum(xp.exp(x - xp.max(x, axis=0)), axis=0), np.ones((5000, places), "f")
    )
    assert (taken_apart(graph) is not graph) is apart
