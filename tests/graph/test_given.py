"""Functions of graphs say which argument is none: any of them, whatever is given instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import funct as ft
import funct.array as xp
from funct import graph as g
from funct.errors import FileFormatError, FunctError, SignatureError

X = xp.ones((3, 2))
GRAPH = ft.make_graph(lambda x: xp.sum(xp.exp(x) * 2.0))(X)
VALUE = GRAPH.nodes[0].results[0]
GOOD: dict[str, Any] = {
    "graph": GRAPH, "pattern": xp.exp, "replacement": xp.tanh,
    "fun": lambda x: x + 1.0, "value": VALUE, "values": {VALUE: VALUE}, "inputs": [VALUE],
    "outputs": list(GRAPH.outputs), "like": None, "where": None, "flags": [True],
    "avals": None, "table": None,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: fun
    for name in g.__all__
    if inspect.isfunction(fun := getattr(g, name)) and "graph" in inspect.signature(fun).parameters
}
FUNCTIONS["transform"] = lambda avals: g.Transformer(GRAPH).transform(avals)
FUNCTIONS["Interpreter"] = g.Interpreter
BAD = [3, "x", object(), X, [None], {None: None}, (X,)]
ARGUMENTS = [
    (name, argument)
    for name, fun in FUNCTIONS.items()
    for argument in inspect.signature(fun).parameters
    if argument in GOOD and argument not in ("flags", "table") and fun is not g.propagate
]


def test_every_function_of_a_graph_is_looked_at() -> None:
    """The lists below come from the package itself."""
    assert {"check", "find", "rewrite", "digest", "optimize", "extract"} < FUNCTIONS.keys()


@pytest.mark.parametrize("bad", BAD, ids=lambda b: type(b).__name__)
@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_an_argument_of_another_kind_is_named(name: str, argument: str, bad: Any) -> None:
    """By the same words everywhere."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    given = {
        p.name: GOOD[p.name]
        for p in parameters
        if p.name in GOOD and p.kind is not p.VAR_POSITIONAL
    }
    with pytest.raises(SignatureError, match=rf"^{name}: {argument}(\[\d\])? must be"):
        FUNCTIONS[name](**{**given, argument: bad})


@pytest.mark.parametrize("bad", BAD, ids=lambda b: type(b).__name__)
def test_passes_are_functions(bad: Any) -> None:
    """They are looked at when they are put together, not when they run."""
    with pytest.raises(SignatureError, match=r"^then: passes\[1\] must be a function"):
        g.then(g.simplify, bad)


@pytest.mark.parametrize("bad", [None, 3, b"{}", X, "", "\ud800", "{", "[]", '{"data": 3}'])
def test_what_is_no_text_of_a_graph(bad: Any) -> None:
    """The class is the one of files that are broken."""
    with pytest.raises(FileFormatError):
        ft.Graph.from_json(bad)


@pytest.mark.parametrize("made", [None, X, 2.0, [], (X, X), "xx"])
def test_what_a_method_returns_is_counted(made: Any) -> None:
    """An array is not taken for the tuple of its rows, and nothing is no result."""

    class Wrong(g.Transformer):
        def node(self, node: Any, operands: Any) -> Any:
            return made

        def call(self, call: Any, operands: Any) -> Any:
            return made

    called = ft.make_graph(ft.graph.leaf(lambda y: y * 2.0))(X)
    for graph, method in ((GRAPH, "node"), (called, "call")):
        for run in (Wrong(graph).transform, lambda graph=graph: Wrong(graph).run(X)):
            with pytest.raises(SignatureError, match=rf"Wrong\.{method} must return a tuple of 1"):
                run()


@pytest.mark.parametrize("made", [(None,), ("x",), (object(),)])
def test_what_is_no_value_is_refused(made: Any) -> None:
    """Where the graph, or an op of it, meets it."""

    class Wrong(g.Transformer):
        def node(self, node: Any, operands: Any) -> Any:
            return made

    with pytest.raises(FunctError):
        Wrong(GRAPH).transform()


@pytest.mark.parametrize("bad", [lambda: X, lambda x, y: x, lambda *, x: x, lambda x, *, y: x])
@pytest.mark.parametrize(
    ("name", "argument"),
    [("find", "pattern"), ("rewrite", "pattern"), ("rewrite", "replacement"),
     ("insert_after", "fun"), ("decompose", "table")],
)  # fmt: skip
def test_a_function_of_other_operands_is_named(name: str, argument: str, bad: Any) -> None:
    """Where operands are known it must take them; a pattern's are those that `like` types."""
    given = {k: GOOD[k] for k in inspect.signature(FUNCTIONS[name]).parameters if k in GOOD}
    given |= {"like": [VALUE.aval]} if argument == "pattern" else {}
    given[argument] = {"exp": bad} if argument == "table" else bad
    with pytest.raises(SignatureError, match=rf"^(find|{name}): {argument}.* must take 1 values"):
        FUNCTIONS[name](**given)


def test_defaults_of_functions_stay() -> None:
    """They are no operands."""
    assert len(g.find(GRAPH, lambda x, power=2.0: xp.exp(x) * power)) == 1
    new = g.rewrite(GRAPH, xp.exp, lambda x, keep=True: xp.tanh(x) if keep else x)
    assert "tanh" in [e.name for e in new.nodes]
