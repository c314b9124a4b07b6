"""Graphs pickled, copied and as text: what comes back computes the same, and shows the same."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import export, nn
from funct.core import catalogue
from funct.errors import ExportError
from funct.graph import Graph, digest
from tests import laws
from tests.graph.test_controls import FUNS, X
from tests.graph.test_symbolic import FUNCTIONS, SIZES, example
from tests.strategies import Program, inputs
from tests.structured import structured


def pickled(x: Any) -> Any:
    """It, through bytes."""
    return pickle.loads(pickle.dumps(x))


def check_again(graph: Graph, *args: Any) -> None:
    """Through bytes and text: the same results, the same hash; through bytes the same names."""
    for again in (pickled(graph), Graph.from_json(graph.to_json())):
        laws.same(again(*args), graph(*args))
        assert digest(again) == digest(graph)
    assert pickled(pickled(graph)).to_json() == graph.to_json()
    assert [v.name for v in pickled(graph).inputs] == [v.name for v in graph.inputs]


@pytest.mark.parametrize("fun", FUNS)
def test_loops_and_branches_pickle(fun: Any) -> None:
    """As a graph, as the derivative of one, and as a graph that holds a compiled function."""
    check_again(ft.make_graph(fun)(X), X)
    check_again(ft.make_graph(ft.jit(fun))(X), X)
    total = lambda g: ft.grad(lambda x: sum(xp.sum(o) for o in g(x)))(X)  # noqa: E731
    graph = ft.make_graph(fun)(X)
    laws.same(total(pickled(graph)), total(graph))


@settings(max_examples=2 * settings.default.max_examples)
@given(structured(), st.integers(0, 2**31))
def test_graphs_of_random_programs_pickle(program: Program, seed: int) -> None:
    """Loops, branches, rules and inner transforms, in any order."""
    args = [xp.asarray(x) for x in inputs(seed)]
    check_again(ft.make_graph(program)(*args), *args)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_of_any_length_pickle(name: str) -> None:
    """Symbolic sizes come back as such."""
    fun, shape = FUNCTIONS[name]
    axes = {k: "n" for k, d in enumerate(shape) if d == "n"}
    program = export.export(fun, (xp.asarray(example(shape, 5)),), dynamic_shapes=(axes,))
    again = pickled(program)
    assert str(again) == str(program)
    for n in SIZES:
        x = xp.asarray(example(shape, n))
        laws.same(again(x), program(x))


def test_a_loop_of_any_length_pickles() -> None:
    """The number of steps may be a size."""
    fun = lambda x: ft.scan(lambda c, r: (c + r, xp.sin(c)), x[0] * 0.0, x)  # noqa: E731
    program = export.export(fun, (xp.ones((5, 2)),), dynamic_shapes=({0: "n"},))
    again = pickled(program)
    for n in (1, 2, 7):
        x = xp.asarray(np.random.default_rng(n).normal(size=(n, 2)))
        laws.close(again(x), fun(x), 1e-12, 1e-12)


def test_names_of_parameters_pickle() -> None:
    """A program's constants keep the names of the parameters that they were."""
    layer = nn.Linear(2, 3, key=ft.random.key(0))
    program = export.export(layer, (xp.ones((1, 2)),))
    assert program.constant_names
    assert pickled(program).constant_names == program.constant_names
    names = {v.name for v, _ in pickled(program).graph.constants}
    assert names >= program.constant_names.keys()


def test_parts_of_graphs_stay_parts() -> None:
    """Pickled together with its graph, a node or a value is that of the graph."""
    graph = ft.make_graph(FUNS[0])(X)
    again, node, value = pickled((graph, graph.nodes[-1], graph.outputs[0]))
    assert node in again.nodes
    assert value is again.outputs[0]


def test_copies_are_the_same() -> None:
    """A graph and a primitive do not change, so that there is nothing to copy."""
    graph = ft.make_graph(FUNS[0])(X)
    for x in (graph, *[node.primitive for node in graph.nodes]):
        assert copy.copy(x) is x
        assert copy.deepcopy(x) is x


@pytest.mark.parametrize("prim", list(catalogue()), ids=lambda p: p.name)
def test_primitives_pickle_by_name(prim: Any) -> None:
    """It is the same one in each process."""
    assert pickled(prim) is prim


def test_functions_of_the_user_do_not_pickle() -> None:
    """A loop around a callback, and a policy of one's own: an error by name."""
    aval = ft.ShapeDtype((4,), X.dtype)
    called = lambda x: ft.scan(  # noqa: E731
        lambda c, r: (ft.pure_callback(np.sin, aval, c) + r, None), x[0], x
    )[0]
    chosen = ft.checkpoint(xp.tanh, policy=lambda node: False)
    for fun, name in (called, "pure_callback"), (chosen, "checkpoint"):
        with pytest.raises(ExportError, match=f"pickle: {name}"):
            pickle.dumps(ft.make_graph(fun)(X))
