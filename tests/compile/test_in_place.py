"""Tables that a loop changes where they stand: eager's bits, and no copy at each step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile.control import made
from funct.compile.lines.small_loops import SmallLoop
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


@_scan
def shown(t: Any, k: Any) -> Any:
    """The table between two writings is given besides."""
    half = t.at[k % ROWS, k % COLUMNS].set(t[0, k % COLUMNS] * 0.5)
    return half.at[(k + 1) % ROWS, 3].set(t[1, 1] * 0.5 + k % 11), half


@_scan
def part(t: Any, k: Any) -> Any:
    """The new table is a part of a larger one."""
    wide = xp.concat([t, t * 2.0, t * 3.0])
    return wide[:ROWS] * 0.5 + k, wide[20, 3]


def in_turn(x: Any) -> Any:
    """One table reads the other between two writings, and is written in one pass itself."""

    def step(c: Any, k: Any) -> Any:
        a, b = c
        half = a.at[k % ROWS, k % COLUMNS].set(b[0, k % COLUMNS] + 1.0)
        return (half.at[(k + 1) % ROWS, 3].set(b[1, 1] * 0.5 + k % 11), (b + half) * 0.5), None

    return ft.scan(step, (x, x * 2.0), STEPS[:50])


def handed(x: Any) -> Any:
    """The table between two writings is carried as another one."""

    def step(c: Any, k: Any) -> Any:
        a, b = c
        half = a.at[k % ROWS, k % COLUMNS].set(b[0, k % COLUMNS] + 1.0)
        return (half.at[(k + 1) % ROWS, 3].set(b[1, 1] * 0.5 + k % 11), half), None

    return ft.scan(step, (x, x * 2.0), STEPS[:50])


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
    "nested_beside": nested_beside, "added": added, "shown": shown, "part": part,
    "in_turn": in_turn, "handed": handed,
}  # fmt: skip
# how many tables stay where they are
STAY = {
    "written": 1, "read_before": 1, "read_after": 1, "maybe": 1, "exchanged": 1, "two": 1,
    "crossed": 1, "nested": 1, "nested_beside": 0, "added": 1, "shown": 0, "part": 0,
    "in_turn": 2, "handed": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_values_are_those_of_eager_execution(name: str) -> None:
    """Whoever reads the old table and whoever reads the new one; the first table stays as it is."""
    loop = LOOPS[name]
    held = xp.asarray(np.asarray(X).copy())
    expected = loop(X)
    compiled = ft.jit(loop)
    for _ in range(4):
        _leave_nans()
        laws.close(compiled(held), expected, 1e-13, 1e-13)
    laws.same(held, X)


@pytest.mark.parametrize("name", ["written", "exchanged", "maybe", "crossed", "in_turn"])
def test_derivatives_and_batches(name: str) -> None:
    """The loops that the rules make of these."""
    loop = LOOPS[name]

    def total(x: Any) -> Any:
        return sum([xp.sum(v * v) for v in ft.tree.leaves(loop(x)) if v is not None])

    expected = ft.grad(total)(X)
    _leave_nans()
    laws.close(ft.jit(ft.grad(total))(X), expected, 1e-11, 1e-11)
    lanes = xp.stack([X, X * 0.5, -X])
    expected = [loop(lanes[k]) for k in range(3)]
    stacked = ft.tree.map(lambda *xs: xp.stack(xs), *expected)
    laws.close(ft.jit(ft.vmap(loop))(lanes), stacked, 1e-12, 1e-12)


_PLACE = st.integers(0, 60)
_ONE = st.tuples(
    st.sampled_from(["set", "set", "set", "put", "half", "sum", "maybe", "inner", "part"]),
    _PLACE, _PLACE, _PLACE,
)  # fmt: skip


def _next(op: str, made: list[Any], a: int, b: int, j: int, k: Any) -> Any:
    """A table of those that were made: an element of one depends on another, or all do."""
    t, s = made[-1 - a % min(len(made), 2)], made[b % len(made)]
    i = (k + j) % ROWS
    put = lambda t: t.at[i, j].set(s[j % ROWS, k % COLUMNS] * 0.5 + 0.25)  # noqa: E731
    match op:
        case "set":
            return put(t)
        case "put":
            return t.at[2:4].set(s[k % ROWS, j] + 0.125)
        case "half":
            return t * 0.5
        case "sum":
            return xp.sin(t + s)
        case "maybe":
            return ft.switch((k + j) % 3, [put, xp.sin, lambda t: t], t)
        case "inner":
            return ft.fori_loop(0, 3, lambda n, t: t.at[n + j % 4, b].set(s[n, j] - t[n, b]), t)
    return xp.concat([t, s * 0.5])[j % 2 * ROWS :][:ROWS]


@settings(max_examples=2 * settings.default.max_examples)
@given(st.lists(_ONE, min_size=1, max_size=5), st.tuples(_PLACE, _PLACE, _PLACE, _PLACE))
def test_any_step_gives_what_eager_execution_gives(
    ops: list[tuple[str, int, int, int]], ends: tuple[int, int, int, int]
) -> None:
    """Whichever tables a step makes of which, carries and gives besides, and their derivatives."""

    def step(c: Any, k: Any) -> Any:
        made = list(c)
        for op, a, b, j in ops:
            made.append(_next(op, made, a, b, j, k))
        first, second, besides, other = [made[-1 - e % 4 % len(made)] for e in ends]
        return (first, second), (besides if ends[0] % 2 else None, other[ends[1] % ROWS, k])

    def loop(x: Any) -> Any:
        return ft.scan(step, (x, x * 0.5), xp.arange(50))

    def total(x: Any) -> Any:
        return sum([xp.sum(v * v) for v in ft.tree.leaves(loop(x)) if v is not None])

    for f in (loop, ft.grad(total)):
        expected, compiled = f(X), ft.jit(f)
        for _ in range(2):
            _leave_nans()
            laws.close(compiled(X), expected, 1e-11, 1e-11)


def _leave_nans() -> None:
    """Memory that is taken next and not written shows."""
    _ = [np.full((n, ROWS, COLUMNS), np.nan) for n in (1, 1, 2, 4, 7, 7, 7, 14, 28, 300)]


def _still(graph: Graph) -> list[int]:
    """How many of the carried values of each loop stay in their place."""
    found = []
    for e in graph.nodes:
        if isinstance(e, Node) and isinstance(e.primitive, Control):
            form = e.primitive.kind.form()
            if hasattr(form, "body"):
                loop = made(form)
                if isinstance(loop, SmallLoop):
                    found.append(len([size for size in loop.code.tables if size]))
                else:
                    found.append(len(loop.body.staying(form.constants, form.carry)[1]))
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
