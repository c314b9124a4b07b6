"""Functions of looked-up elements: computed once for each element of a smaller table."""

import math
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.rewriting.looked_up import before_they_are_looked_up
from funct.errors import IndexOutOfBoundsError
from funct.graph import Graph, Interpreter, Node, eliminate_dead, inline_calls

RNG = np.random.default_rng(0)
ROWS, LOOKED_UP = 300, 1000

PROGRAMS = {
    "one function": lambda x, y, i, j, w: xp.tanh(x[i]) * w,
    "cheap ones around": lambda x, y, i, j, w: 1.0 - xp.exp(x[i] * 2.0 + 1.0),
    "of itself": lambda x, y, i, j, w: x[i] * xp.tanh(x[i]),
    "of two tables": lambda x, y, i, j, w: xp.exp(x[i] + y[i]) - w,
    "of two indices": lambda x, y, i, j, w: xp.exp(x[i] + xp.sin(y[j])),
    "cheap": lambda x, y, i, j, w: x[i] + 1.0,
    "beside a number of the program": lambda x, y, i, j, w: xp.tanh(x[i] * xp.sum(w)),
    "read otherwise, too": lambda x, y, i, j, w: (lambda t: (t, t * w, xp.sum(t)))(xp.tanh(x[i])),
    "in another dtype": lambda x, y, i, j, w: xp.sin(xp.astype(x[i], xp.float32)),
    "whether": lambda x, y, i, j, w: xp.where(xp.sin(x[i]) > 0.5, w, 0.0),
    "along an axis": lambda x, y, i, j, w: xp.sin(xp.take_along_axis(x, i[:, None], axis=0)),
    "columns": lambda x, y, i, j, w: xp.sin(xp.take(x.mT, i, axis=1)),
    "of places that are looked up": lambda x, y, i, j, w: xp.sin(x[(i + 0)[j]]) * xp.cos(x[i[j]]),
    "of places that are computed": lambda x, y, i, j, w: xp.exp(
        x[xp.astype(xp.abs(xp.sin(x[j, 0])) * 9, xp.int64)]
    ),
    "of rows of rows": lambda x, y, i, j, w: xp.sin(x[i][xp.tile(j, 3)]),
    "of functions of rows": lambda x, y, i, j, w: xp.sin(xp.tanh(x[i])[xp.tile(j, 3)]),
    "rows of functions of rows": lambda x, y, i, j, w: (
        xp.tanh(x[i])[xp.tile(j, 3)],
        xp.exp(y[xp.tile(i[j], 3)])[i],
    ),
    "at places that are functions of rows": lambda x, y, i, j, w: w[
        xp.astype(xp.abs(xp.tanh(x[i]))[xp.tile(j, 3)] * 9, xp.int64)
    ],
    "slopes": ft.grad(lambda x, y, i, j, w: xp.sum(xp.tanh(x[i]) * w * xp.exp(x[i] - y[i]))),
}
EARLY = {  # how many elements of each of these are computed
    "one function": {"tanh": ROWS * 4},
    "cheap ones around": {"exp": ROWS * 4, "subtract": ROWS * 4, "add": ROWS * 4},
    "of itself": {"tanh": ROWS * 4, "multiply": ROWS * 4},
    "of two tables": {"exp": ROWS * 4, "subtract": LOOKED_UP * 4},
    "of two indices": {"sin": ROWS * 4, "exp": LOOKED_UP * 4},
    "cheap": {"add": LOOKED_UP * 4},
}


def arrays() -> list[Any]:
    x, y = RNG.normal(size=(2, ROWS, 4))
    i, j = RNG.integers(-ROWS, ROWS, (2, LOOKED_UP))
    return [x, y, i, j, RNG.normal(size=(LOOKED_UP, 1))]


def rewritten(fun: Any, *args: Any) -> tuple[Graph, Graph]:
    """A function's graph, and what becomes of it."""
    graph = eliminate_dead(inline_calls(ft.make_graph(fun)(*map(xp.asarray, args))), guards=True)
    return graph, before_they_are_looked_up(graph)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_are_those_of_the_graph_that_it_was(name: str) -> None:
    args = [xp.asarray(a) for a in arrays()]
    before, after = rewritten(PROGRAMS[name], *args)
    for found, expected in zip(
        Interpreter(after).run(*args), Interpreter(before).run(*args), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs(name: str) -> None:
    args = [xp.asarray(a) for a in arrays()]
    expected = ft.tree.leaves(PROGRAMS[name](*args))
    for found, e in zip(ft.tree.leaves(ft.jit(PROGRAMS[name])(*args)), expected, strict=True):
        limit = 4 * np.finfo(e.dtype).eps
        np.testing.assert_allclose(np.asarray(found), np.asarray(e), rtol=limit, atol=limit * 40)


@pytest.mark.parametrize("name", EARLY)
def test_elements_are_computed_once(name: str) -> None:
    _, after = rewritten(PROGRAMS[name], *arrays())
    found = {
        e.name: math.prod(e.results[0].shape)
        for e in after.nodes if isinstance(e, Node) and e.name in EARLY[name]
    }  # fmt: skip
    assert found == EARLY[name]


def test_tables_that_are_not_smaller_stay() -> None:
    """Each row looked up once, or less often than twice: as it was."""
    x, i = RNG.normal(size=(ROWS, 4)), np.arange(2 * ROWS - 1) % ROWS
    before, after = rewritten(lambda x, i: xp.tanh(x[i]), x, i)
    assert after is before


def test_an_index_out_of_bounds_raises_where_it_was_looked_up() -> None:
    x, _, i, _, _ = arrays()
    fun = ft.jit(lambda x, i: xp.tanh(x[i]) * 2.0)
    fun(xp.asarray(x), xp.asarray(i))
    with pytest.raises(IndexOutOfBoundsError, match=f"index {ROWS} .* length {ROWS}") as caught:
        fun(xp.asarray(x), xp.asarray(np.full_like(i, ROWS)))
    assert "test_looked_up.py" in str(caught.value)


@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_nobody_is_told_of_elements_that_are_not_looked_up(name: str) -> None:
    """A division by 0 that never happens, and one that does."""
    by = np.arange(ROWS)
    divide = getattr(xp, name)
    fun = ft.jit(lambda y, i: xp.sin(xp.astype(divide(7, y[i]), xp.float64)))
    with np.errstate(all="raise"):
        found = fun(xp.asarray(by), xp.asarray(1 + np.arange(LOOKED_UP * 9) % (ROWS - 1)))
        with pytest.raises(FloatingPointError):
            fun(xp.asarray(by), xp.asarray(np.arange(LOOKED_UP * 9) % ROWS))
    assert np.isfinite(np.asarray(found)).all()


def test_indices_that_are_not_looked_up_are_not_refused() -> None:
    """Indices that are computed from a table, most of them off the axis: nobody asks for one."""
    fun = ft.jit(lambda x, y, i: x[xp.astype(xp.exp(y[i]), xp.int64)])
    x, y = np.arange(float(ROWS)), np.log(np.arange(ROWS) * 2 + 0.5)
    i = np.arange(LOOKED_UP * 9) % (ROWS // 2)
    found = fun(xp.asarray(x), xp.asarray(y), xp.asarray(i))
    np.testing.assert_array_equal(np.asarray(found), x[i * 2])
    with pytest.raises(IndexOutOfBoundsError):
        fun(xp.asarray(x), xp.asarray(y), xp.asarray(i + 1))
