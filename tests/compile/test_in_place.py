"""Tables that a loop changes where they stand: eager's bits, and no copy at each step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.control import made
from funct.graph import Control, Graph, Node
from tests import laws

ROWS, COLUMNS = 9, 70  # more than registers hold
X = xp.asarray(np.random.default_rng(0).normal(size=(ROWS, COLUMNS)))
STEPS = xp.arange(300) * 7


def _scan(step: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: ft.scan(step, x, STEPS)


@_scan
def written(t: Any, k: Any) -> Any:
    """An element that depends on others."""
    i, j = k % ROWS, k % COLUMNS
    return t.at[i, j].set(t[i, j - 1] * 0.5 + t[i - 1, j]), None


@_scan
def read_before(t: Any, k: Any) -> Any:
    """What a step gives besides is read off the table as it was."""
    new = t.at[k % ROWS, 3].set(xp.sin(t[0, k % COLUMNS]))
    return new, (t[k % ROWS], t[:, 3] * 2.0)


@_scan
def read_after(t: Any, k: Any) -> Any:
    """The new table is written as well."""
    new = t.at[k % ROWS, 3].set(1.0 + t[0, k % COLUMNS])
    return new, (new, new[2, ::7])


@_scan
def exchanged(t: Any, k: Any) -> Any:
    """Two elements change places: the second is read behind the first that is written."""
    i, j = k % ROWS, k % COLUMNS
    return t.at[i, j].set(t[j % ROWS, i]).at[j % ROWS, i].set(t[i, j]), None


@_scan
def maybe(t: Any, k: Any) -> Any:
    """Only some steps write, and one branch changes all."""
    i, j = k % ROWS, k % COLUMNS
    put = lambda t: t.at[i, j].set(t[j % ROWS, 0] + 1.0)  # noqa: E731
    t = ft.cond(t[i, j] > 0.0, put, lambda t: t, t)
    return ft.switch(k % 5, [put, xp.sin, lambda t: t], t), t[i, 0]


def two(x: Any) -> Any:
    """The table of the step before is carried too, and one that no step changes."""

    def step(c: Any, k: Any) -> Any:
        t, before, kept = c
        t_new = t.at[k % ROWS, 0].set(before[k % ROWS, 1] + kept[0, k % COLUMNS])
        return (t_new, t, kept), None

    return ft.scan(step, (x, x * 2.0, x + 1.0), STEPS)


def crossed(x: Any) -> Any:
    """Each of two tables is written with what was in the other."""

    def step(c: Any, k: Any) -> Any:
        a, b = c
        i, j = k % ROWS, k % COLUMNS
        return (a.at[i, j].set(b[i, 0] * 0.5), b.at[i, 0].set(a[i, j])), b[0, 0]

    return ft.scan(step, (x, x * 2.0), STEPS)


def nested(x: Any) -> Any:
    """A loop in a loop writes the one table."""

    def row(i: Any, t: Any) -> Any:
        def one(j: Any, t: Any) -> Any:
            return t.at[i, j].set(xp.maximum(t[i - 1, j], t[i, j - 1]) * 0.99)

        return ft.fori_loop(1, COLUMNS, one, t)

    return ft.fori_loop(1, ROWS, row, x)


def nested_beside(x: Any) -> Any:
    """The loop inside reads the table of before as well, so that has to stay."""

    def row(i: Any, t: Any) -> Any:
        def one(j: Any, s: Any) -> Any:
            return s.at[i, j].set(t[j % ROWS, i] + s[i, j - 1])

        return ft.fori_loop(1, COLUMNS, one, t)

    return ft.fori_loop(1, ROWS, row, x)


def until(x: Any) -> Any:
    """A while loop, of some steps and of none."""

    def body(s: Any) -> Any:
        t, k = s
        return t.at[k % ROWS, k % COLUMNS].set(xp.sum(t[k % ROWS, :4])), k + 1

    some, _ = ft.while_loop(lambda s: (s[1] < 200) & (s[0][1, 1] < 50.0), body, (x, 0))
    none, _ = ft.while_loop(lambda s: s[1] < 0, body, (x, 0))
    return some, none


def added(x: Any) -> Any:
    """All of a large value changes, element by element."""
    return ft.scan(lambda t, k: (t * 0.5 + k, t[0, 0]), x, STEPS)


LOOPS = {
    "written": written, "read_before": read_before, "read_after": read_after, "maybe": maybe,
    "exchanged": exchanged, "two": two, "crossed": crossed, "nested": nested, "until": until,
    "nested_beside": nested_beside, "added": added,
}  # fmt: skip
# how many tables stay where they are
STAY = {
    "written": 1, "read_before": 1, "read_after": 1, "maybe": 1, "exchanged": 1, "two": 1,
    "crossed": 1, "nested": 1, "nested_beside": 0, "added": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_values_are_those_of_eager_execution(name: str) -> None:
    """Whoever reads the old table and whoever reads the new one; the first table stays as it is."""
    loop = LOOPS[name]
    held = xp.asarray(np.asarray(X).copy())
    expected = loop(X)
    compiled = ft.jit(loop)
    for _ in range(4):
        laws.close(compiled(held), expected, 1e-13, 1e-13)
    laws.same(held, X)


@pytest.mark.parametrize("name", ["written", "exchanged", "maybe", "crossed"])
def test_derivatives_and_batches(name: str) -> None:
    """The loops that the rules make of these."""
    loop = LOOPS[name]

    def total(x: Any) -> Any:
        return sum([xp.sum(v * v) for v in ft.tree.leaves(loop(x)) if v is not None])

    laws.close(ft.jit(ft.grad(total))(X), ft.grad(total)(X), 1e-11, 1e-11)
    lanes = xp.stack([X, X * 0.5, -X])
    expected = [loop(lanes[k]) for k in range(3)]
    stacked = ft.tree.map(lambda *xs: xp.stack(xs), *expected)
    laws.close(ft.jit(ft.vmap(loop))(lanes), stacked, 1e-12, 1e-12)


def _still(graph: Graph) -> list[int]:
    """How many of the carried values of each loop stay in their place."""
    found = []
    for e in graph.nodes:
        if isinstance(e, Node) and isinstance(e.primitive, Control):
            form = e.primitive.kind.form()
            if hasattr(form, "body"):
                found.append(len(made(form).body.staying(form.constants, form.carry)[1]))
    return found


@pytest.mark.parametrize("name", STAY)
def test_which_tables_stay(name: str) -> None:
    """No step copies them: what a step costs does not grow with the table."""
    assert sum(_still(ft.make_graph(LOOPS[name])(X))) == STAY[name]


def test_an_index_out_of_bounds_leaves_the_first_table() -> None:
    """The loop is run again in Python, from what it was given."""
    step = lambda t, k: (t.at[k, 0].set(k * 1.0), None)  # noqa: E731
    ks = xp.asarray([*range(ROWS)] * 30 + [ROWS])
    before = np.asarray(X).copy()
    with pytest.raises(IndexError):
        ft.jit(lambda x, ks: ft.scan(step, x, ks))(X, ks)
    np.testing.assert_array_equal(np.asarray(X), before)
