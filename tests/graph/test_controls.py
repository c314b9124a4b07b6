"""Branches and loops in hashes, files and the cache: the same comes back, and nothing else."""

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ExportError, FileFormatError
from funct.graph import Graph, digest
from tests import laws

X = xp.asarray(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
TABLE = xp.asarray([0.5, -1.0, 2.0, 0.25], dtype=xp.float32)


def scanned(x: Any) -> Any:
    """A loop over rows with a constant."""
    return ft.scan(lambda c, r: (c * 0.5 + r * TABLE, xp.sum(c)), x[0], x)


def backwards(x: Any) -> Any:
    """The rows from the last to the first."""
    return ft.scan(lambda c, r: (c - r, c), x[0] * 1.0, x, reverse=True)


def looped(x: Any) -> Any:
    """A loop that ends by itself."""
    return ft.while_loop(lambda c: xp.max(c) < 100.0, lambda c: xp.abs(c) * 2.0 + 1.0, x)


def branched(x: Any) -> Any:
    """Branches by a predicate and by an index, one in the other."""
    inner = lambda y: ft.switch(xp.astype(xp.sum(y) > 1.0, xp.int32), [xp.sin, xp.cos], y)  # noqa: E731
    return ft.cond(xp.sum(x) > 0.0, inner, lambda y: y * TABLE, x)


def nested(x: Any) -> Any:
    """Loops in loops and branches."""
    step = lambda c, r: (ft.fori_loop(0, 3, lambda k, v: v * 0.9 + r, c), branched(c * r))  # noqa: E731
    return ft.scan(step, x[1], x)


def saved(x: Any) -> Any:
    """A checkpoint with a policy."""
    f = ft.checkpoint(lambda y: xp.tanh(y @ y.T), policy=ft.checkpoint_policies.dots_saveable)
    return f(x) * 2.0


def derived(x: Any) -> Any:
    """The derivative of a loop."""
    return ft.grad(lambda y: xp.sum(scanned(y)[0] ** 2) + xp.sum(looped(y)))(x)


FUNS = [scanned, backwards, looped, branched, nested, saved, derived]


@pytest.mark.parametrize("fun", FUNS)
def test_a_graph_comes_back_from_text(fun: Any) -> None:
    """It computes the same, has the same hash, and its derivative is the same."""
    graph = ft.make_graph(fun)(X)
    again = Graph.from_json(graph.to_json())
    laws.same(again(X), graph(X))
    assert digest(again) == digest(graph) is not None
    assert again.to_json() == graph.to_json()
    total = lambda g: ft.grad(lambda x: sum(xp.sum(o) for o in g(x)))(X)  # noqa: E731
    laws.close(total(again), total(graph), 1e-6, 1e-6)
    laws.same(Graph.from_json(ft.make_graph(ft.jit(fun))(X).to_json())(X), again(X))


def test_hashes_tell_bodies_apart() -> None:
    """Numbers, constants, directions, counts and branches; names do not count."""

    def variant(a: float, table: Any, reverse: bool, n: int) -> Any:
        return lambda x: (
            ft.scan(lambda c, r: (c * a + r * table, c), x[0], x, reverse=reverse),
            ft.fori_loop(0, n, lambda k, v: v * 2.0, x),
        )

    other = xp.asarray([0.5, -1.0, 2.0, 0.26], dtype=xp.float32)
    funs = [
        variant(0.5, TABLE, False, 3), variant(0.25, TABLE, False, 3),
        variant(0.5, other, False, 3),
        variant(0.5, TABLE, True, 3), variant(0.5, TABLE, False, 4),
        lambda x: ft.cond(x[0, 0] > 0, xp.sin, xp.cos, x),
        lambda x: ft.cond(x[0, 0] > 0, xp.cos, xp.sin, x),
    ]  # fmt: skip
    found = [digest(ft.make_graph(f)(X)) for f in funs]
    assert None not in found
    assert len(set(found)) == len(funs)
    assert digest(ft.make_graph(variant(0.5, TABLE, False, 3))(X)) == found[0]


def test_functions_of_the_user_have_no_form() -> None:
    """Callbacks in bodies, policies of one's own, solvers: an error by name, and no hash."""
    aval = ft.ShapeDtype((4,), X.dtype)

    def called(x: Any) -> Any:
        return ft.scan(lambda c, r: (ft.pure_callback(np.sin, aval, c) + r, None), x[0], x)[0]

    def chosen(x: Any) -> Any:
        return ft.checkpoint(xp.tanh, policy=lambda node: False)(x)

    for fun, name in (called, "pure_callback"), (chosen, "checkpoint"):
        graph = ft.make_graph(fun)(X)
        assert digest(graph) is None
        with pytest.raises(ExportError, match=name):
            graph.to_json()
        laws.close(ft.jit(fun)(X), fun(X), 1e-6, 1e-6)


WRONG: list[tuple[Any, Any]] = [
    (scanned, lambda n: n["values"].__setitem__(0, 7)),
    (scanned, lambda n: n["values"].__setitem__(1, -1)),
    (scanned, lambda n: n["values"].__setitem__(2, 1000)),
    (scanned, lambda n: n["values"].__setitem__(2, 1.5)),
    (scanned, lambda n: n["values"].__setitem__(3, 1)),
    (scanned, lambda n: n["values"].append(1)),
    (scanned, lambda n: n["bodies"].append(n["bodies"][0])),
    (scanned, lambda n: n["bodies"][0]["outputs"].reverse()),
    (scanned, lambda n: n["bodies"][0]["outputs"].pop()),
    (scanned, lambda n: n["bodies"][0]["inputs"].pop()),
    (scanned, lambda n: n["in"].pop()),
    (scanned, lambda n: n["in"].reverse()),
    (scanned, lambda n: n.__setitem__("control", "cond")),
    (scanned, lambda n: n.__setitem__("control", "other")),
    (scanned, lambda n: n["out"].pop()),
    (scanned, lambda n: n["out"][0].__setitem__(2, [5])),
    (looped, lambda n: n["bodies"].reverse()),
    (looped, lambda n: n["bodies"][0].__setitem__("outputs", ["x0"])),
    (looped, lambda n: n["values"].__setitem__(1, [])),
    (looped, lambda n: n["values"].__setitem__(1, [[2, False]])),
    (branched, lambda n: n["bodies"].pop()),
    (branched, lambda n: n["bodies"][0]["outputs"].append("x0")),
    (branched, lambda n: n["values"].__setitem__(1, "abc")),
    (branched, lambda n: n["values"].__setitem__(2, {"dtype": "float32"})),
    (saved, lambda n: n["values"].__setitem__(0, "save_only_these_names")),
    (saved, lambda n: n["values"].__setitem__(0, None)),
]  # fmt: skip


@pytest.mark.parametrize(("fun", "change"), WRONG)
def test_files_that_were_not_written_so_are_refused(fun: Any, change: Any) -> None:
    """Machine code takes shapes at their word, so nothing that does not fit gets to it."""
    value = json.loads(ft.make_graph(fun)(X).to_json())
    node = next(n for n in value["nodes"] if "control" in n)
    change(node)
    with pytest.raises(FileFormatError):
        Graph.from_json(json.dumps(value))


PROGRAM = """
import numpy as np, funct as ft, funct.array as xp
x = xp.asarray(np.random.default_rng(0).normal(size=(400, 64)).astype("float32"))
def f(x):
    c, ys = ft.scan(lambda c, r: (c * 0.5 + xp.sin(r), xp.sort(c)), x[0], x)
    z = ft.while_loop(lambda v: xp.max(v) < 50.0, lambda v: v * 2.0 + 1.0, xp.abs(x))
    return xp.sum(c) + xp.sum(ys) + ft.cond(c[0] > 0, xp.sum, xp.max, z)
print(float(ft.jit(f)(x)), float(xp.sum(ft.jit(ft.grad(lambda x: f(x) * 1e-9))(x))))
"""


def test_graphs_with_loops_are_kept(tmp_path: Any) -> None:
    """Another process loads what the first one made."""
    environment = {**os.environ, "FUNCT_LOG": "cache", "FUNCT_CACHE_DIR": str(tmp_path)}

    def run() -> Any:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, text=True, check=True,
            capture_output=True, timeout=100,
        )  # fmt: skip

    first, second = run(), run()
    assert first.stdout == second.stdout
    assert ": made," in first.stderr
    assert ": made," not in second.stderr
    assert "cannot be read" not in second.stderr
    assert second.stderr.count(": loaded") >= 2
