"""The graph IR: printing, checking, passes, running."""

import re
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import graph as g
from funct.errors import FunctError, GraphError, GuardError, TransformError
from tests import laws
from tests.strategies import inputs, programs

PASSES = {
    "eliminate_dead": g.eliminate_dead,
    "share_common": g.share_common,
    "inline_calls": g.inline_calls,
    "fold_constants": g.passes.fold_constants,
}


def graph_of(fun: Any, *args: Any) -> g.Graph:
    """The graph as captured, before any pass."""
    return g.capture(lambda *xs: _flat(fun(*xs)), args)[0]


def _flat(out: Any) -> Any:
    return out if isinstance(out, tuple) else (out,)


def names(graph: g.Graph) -> list[str]:
    """What the entries call, in order."""
    return [e.name if not isinstance(e, g.Guard) else "guard" for e in graph.nodes]


def shown(graph: g.Graph) -> list[str]:
    """The printed form without the user's lines."""
    return [re.sub(r"  ?\w+\.py:\d+ .*", "", line).rstrip() for line in str(graph).splitlines()]


# printing -----------------------------------------------------------------------------------------


def test_printing() -> None:
    """A graph prints as Python: types in the head, one node per line, literals and parameters."""

    def fun(x: Any, y: Any) -> Any:
        table = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
        z = xp.concat([x, y * -0.5], axis=1)
        values, at = xp.top_k(z, 2)
        return xp.sum(values, axis=0) + table[0], at

    assert shown(graph_of(fun, xp.ones((2, 3)), xp.ones((2, 1)))) == [
        "def graph(x0: float64[2, 3], x1: float64[2, 1]):",
        "    c0 = constant([1.0, 2.0])                          # float64[2]",
        "    v1 = multiply(x1, -0.5)                            # float64[2, 1]",
        "    v2 = concat(x0, v1, axis=1)                        # float64[2, 4]",
        "    v3, v4 = top_k(v2, axis=1, k=2)                    # float64[2, 2], int64[2, 2]",
        "    v5 = reduce_sum(v3, axes=(0,), keepdims=False)     # float64[2]",
        "    v6 = add(v5, c0)                                   # float64[2]",
        "    return v6, v4",
    ]


def test_printing_of_guards_calls_and_sizes() -> None:
    """Guards print as assertions, calls with their name, symbolic sizes by their name."""

    @ft.custom_jvp
    def twice(x: Any) -> Any:
        return x * 2.0

    twice.defjvp(lambda p, t: (p[0] * 2.0, t[0] * 2.0))

    def fun(x: Any) -> tuple[Any]:
        if xp.sum(x) > 0:
            x = twice(x)
        return (xp.reshape(x, (-1,)),)

    graph, _ = g.capture(fun, [xp.ones((4, 3))], names=[{0: "n"}])
    assert shown(graph) == [
        "def graph(x0: float64[n, 3]):",
        "    v1 = reduce_sum(x0, axes=(0, 1), keepdims=False)   # float64[]",
        "    v2 = greater(v1, 0)                                # bool[]",
        "    assert bool(v2) == True                            #",
        "    v4 = call[twice](x0)                               # float64[n, 3]",
        "    v5 = reshape(v4, shape=(3*n,))                     # float64[3*n]",
        "    return v5",
    ]


def test_printing_shows_the_users_line() -> None:
    """Each node carries the line it came from; large constants are not printed."""

    def fun(x: Any) -> Any:
        return x + xp.asarray(np.arange(9.0))  # here

    text = str(graph_of(fun, xp.ones(9)))
    assert re.search(
        r"test_graph\.py:\d+  return x \+ xp\.asarray\(np\.arange\(9\.0\)\)  # here", text
    )
    assert "c0 = constant(...)" in text
    assert repr(graph_of(fun, xp.ones(9))) == "<Graph: 1 inputs, 1 nodes, 1 outputs>"


# check --------------------------------------------------------------------------------------------


def broken() -> list[Any]:
    """One graph per rule, made from a good one."""
    good = graph_of(lambda x, y: (x * y + xp.asarray([1.0, 2.0]), x), xp.ones(2), xp.ones(2))
    mul, add = good.nodes
    c0, x0 = good.constants[0][0], good.inputs[0]
    wide = attrs.evolve(mul.results[0], shape=(3,))
    single = attrs.evolve(mul.results[0], dtype=np.dtype("float32"))
    stranger = g.Var("s1", (2,), np.dtype("float64"))
    twin = attrs.evolve(mul.results[0], name="x0")

    def nodes(*entries: Any) -> g.Graph:
        return attrs.evolve(good, nodes=entries)

    call = g.Call(None, (x0,), (stranger, twin), attrs.evolve(good, outputs=(x0,)))  # type: ignore[arg-type]
    cases = {
        "v1 is used before it is defined": nodes(add, mul),
        "v1 is defined twice": nodes(mul, attrs.evolve(mul), add),
        "x0 is defined twice": attrs.evolve(good, inputs=(x0, x0)),
        "two values are named x0": nodes(attrs.evolve(mul, results=(twin,))),
        "multiply gives float64[2], its results are typed float64[3]": nodes(
            attrs.evolve(mul, results=(wide,))
        ),
        "multiply gives float64[2], its results are typed float32[2]": nodes(
            attrs.evolve(mul, results=(single,))
        ),
        "multiply gives 1 results, got 2": nodes(attrs.evolve(mul, results=(stranger, wide))),
        "multiply takes 2 operands, got 1": nodes(attrs.evolve(mul, operands=(x0,))),
        "multiply takes 0 parameters, got 1": nodes(attrs.evolve(mul, params=(1,))),
        "s1 is used before it is defined": nodes(attrs.evolve(mul, operands=(x0, stranger))),
        "output s1 is not defined": attrs.evolve(good, outputs=(stranger,)),
        "constant c0 is": attrs.evolve(good, constants=((c0, xp.ones(3)),)),
        "has 2 results, its body 1": nodes(attrs.evolve(call, region=ft.core.Region("f", len))),
        "symbol n is read off input 5": attrs.evolve(good, symbols=(g.Symbol("n", 5, 0),)),
        "symbol n is read off axis 3": attrs.evolve(good, symbols=(g.Symbol("n", 0, 3),)),
        "size m names no symbol": attrs.evolve(
            good, nodes=(g.Guard("size", None, "m == 2"), *good.nodes)
        ),
        "size guard 'n.real == 2' is no arithmetic": attrs.evolve(
            good, nodes=(g.Guard("size", None, "n.real == 2"), *good.nodes)
        ),
        "a bool guard needs an operand": attrs.evolve(
            good, nodes=(g.Guard("bool", None, True), *good.nodes)
        ),
        "operand 'text' of multiply is neither": nodes(attrs.evolve(mul, operands=(x0, "text"))),
    }
    return [pytest.param(graph, text, id=text) for text, graph in cases.items()]


@pytest.mark.parametrize(("graph", "text"), broken())
def test_check_names_the_broken_rule(graph: g.Graph, text: str) -> None:
    """Every rule of the IR, once broken, is reported by name."""
    with pytest.raises(GraphError, match=re.escape(text)):
        g.check(graph)


@given(programs())
def test_captured_graphs_are_well_formed(program: Any) -> None:
    """What capture records obeys every rule, and so does what each pass makes of it."""
    graph = graph_of(program, *inputs(1))
    assert g.check(graph) is graph
    for apply in PASSES.values():
        g.check(apply(graph))


# passes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=2 * settings.default.max_examples)
@given(program=programs())
def test_passes_keep_the_meaning(name: str, program: Any) -> None:
    """A pass changes no bit of any output, alone and after the others."""
    xs = inputs(1)
    graph = graph_of(program, *xs)
    expected = program(*map(xp.asarray, xs))
    laws.same(graph(*xs), expected)
    laws.same(PASSES[name](graph)(*xs), expected)
    everything = graph
    for apply in PASSES.values():
        everything = apply(everything)
    laws.same(PASSES[name](everything)(*xs), expected)


def test_dead_code_is_removed() -> None:
    """What no output and no guard needs goes, constants included; guards and what they ask stay."""

    def fun(x: Any) -> Any:
        xp.sin(x) + xp.asarray([5.0])
        if x[0] > 0:
            return x * 2.0
        return x

    graph = graph_of(fun, xp.ones(2))
    assert names(graph) == ["sin", "add", "slice_", "reshape", "greater", "guard", "multiply"]
    lean = g.eliminate_dead(graph)
    assert names(lean) == ["slice_", "reshape", "greater", "guard", "multiply"]
    assert lean.constants == ()
    assert names(g.eliminate_dead(graph, guards=False)) == ["multiply"]


def test_common_expressions_are_shared() -> None:
    """Equal expressions run once; numbers that only compare equal are told apart."""
    graph = graph_of(lambda x: xp.sin(x) * xp.sin(x) + xp.sin(x), xp.ones(2))
    assert names(g.eliminate_dead(g.share_common(graph))) == ["sin", "multiply", "add"]
    apart = graph_of(lambda x: (x * 1, x * 1.0, x * True, x + 0.0, x + -0.0), xp.ones(2))
    assert len(g.share_common(apart).nodes) == 5
    laws.same(
        ft.jit(lambda x: (x + 0.0, x + -0.0))(xp.asarray(-0.0)), (np.asarray(0.0), np.asarray(-0.0))
    )
    params = graph_of(
        lambda x: (xp.sum(x, axis=0), xp.sum(x, axis=1), xp.sum(x, axis=0)), xp.ones((2, 2))
    )
    assert len(g.share_common(params).nodes) == 2


def test_calls_are_inlined() -> None:
    """A call becomes its body, nested ones and free values included."""
    w = xp.asarray([2.0, 3.0])

    @ft.custom_jvp
    def inner(x: Any) -> Any:
        return x * w

    inner.defjvp(lambda p, t: (p[0] * w, t[0] * w))

    @ft.custom_jvp
    def outer(x: Any) -> Any:
        return inner(x) + 1.0

    outer.defjvp(lambda p, t: (outer(p[0]), t[0] * w))
    graph = graph_of(lambda x: outer(xp.sin(x)) * outer(x), xp.ones(2))
    assert names(graph) == ["sin", "outer", "outer", "multiply"]
    flat = g.check(g.inline_calls(graph))
    assert sorted(names(flat)) == ["add", "add", "multiply", "multiply", "multiply", "sin"]
    laws.same(flat(xp.ones(2)), graph(xp.ones(2)))


# running ------------------------------------------------------------------------------------------


@given(programs())
def test_a_graph_takes_every_transform(program: Any) -> None:
    """A graph is a function: grad, vmap and jit of it are those of the function."""
    xs = [xp.asarray(x) for x in inputs(1)]
    graph = ft.make_graph(program)(*xs)

    def total(fun: Any) -> Any:
        return lambda *a: xp.sum(xp.concat([xp.reshape(o, (-1,)) for o in fun(*a)]))

    laws.close(ft.grad(total(graph), (0, 1))(*xs), ft.grad(total(program), (0, 1))(*xs), 1e-9, 1e-9)
    many = [xp.stack([x, 2.0 * x]) for x in xs]
    laws.close(ft.vmap(graph)(*many), ft.vmap(program)(*many), 1e-12, 1e-12)
    laws.rounded_alike(ft.jit(graph)(*xs), ft.jit(program)(*xs))  # one may be NumPy's calls


def test_interpreter_can_be_extended() -> None:
    """A subclass sees every node with its operands: here it counts and records ranges."""

    class Ranges(g.Interpreter):
        def __init__(self, graph: g.Graph) -> None:
            super().__init__(graph)
            self.seen: list[tuple[str, float]] = []

        def node(self, node: g.Node, operands: list[Any]) -> tuple[Any, ...]:
            outs = super().node(node, operands)
            self.seen.append((node.name, float(xp.max(outs[0]))))
            return outs

    runner = Ranges(graph_of(lambda x: xp.exp(x) * 2.0, xp.ones(2)))
    runner.run(xp.asarray([0.0, 1.0]))
    assert runner.seen == [("exp", np.e), ("multiply", 2 * np.e)]


def test_transformer_builds_a_new_graph() -> None:
    """A subclass says what each node becomes; symbolic sizes stay symbolic."""

    class Softer(g.Transformer):
        def node(self, node: g.Node, operands: list[Any]) -> tuple[Any, ...]:
            if node.name == "maximum":
                return (xp.log1p(xp.exp(operands[0])),)
            return super().node(node, operands)

    graph, _ = g.capture(lambda x: [xp.maximum(x, 0.0) * 2.0], [xp.ones((3, 2))], names=[{0: "n"}])
    soft = Softer(graph).transform()
    assert names(soft) == ["exp", "log1p", "multiply"]
    assert [str(n) for n in soft.inputs[0].shape] == ["n", "2"]
    x = xp.asarray(np.zeros((5, 2)))
    laws.close(soft(x)[0], np.full((5, 2), 2 * np.log(2.0)))


def test_running_errors() -> None:
    """Too few inputs, a failing node and a broken guard are reported, with the user's line."""

    def fun(x: Any, i: Any) -> Any:
        if x[0] > 0:
            return x[i]  # guilty
        return x

    graph = graph_of(fun, xp.ones(2), xp.asarray([0]))
    with pytest.raises(TransformError, match="graph: expected 2 inputs, got 1"):
        graph(xp.ones(2))
    with pytest.raises(FunctError, match=r"x\[...\]: index 9 is out of bounds") as caught:
        graph(xp.ones(2), xp.asarray([9]))
    assert caught.value.site is not None
    with pytest.raises(GuardError) as guard:
        graph(-xp.ones(2), xp.asarray([0]))
    assert (
        guard.value.what
        == "graph: captured for inputs with bool(...) == True, which does not hold now"
    )
    assert "if x[0] > 0:" in str(guard.value)


# capture ------------------------------------------------------------------------------------------


def test_values_are_computed_only_when_asked() -> None:
    """Capture does not compute; a decision computes what it needs, once, and becomes a guard."""
    calls: list[int] = []
    prim = ft.core.lookup("sin")
    assert prim is not None

    def fun(x: Any) -> Any:
        y = xp.sin(x)
        calls.append(1)
        return y * (2.0 if float(y) > 0 else 3.0) * (2.0 if float(y) > 0.1 else 3.0)

    graph = graph_of(fun, xp.asarray(1.0))
    assert [e.kind for e in graph.nodes if isinstance(e, g.Guard)] == ["float", "float"]
    long = graph_of(lambda x: _repeat(x, 3000), xp.asarray(1.0))  # no recursion
    assert len([e for e in long.nodes if isinstance(e, g.Guard)]) == 1
    assert calls == [1]


def _repeat(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x * 1.0
    return x if bool(x > 0) else -x


def test_outer_tracers_become_inputs() -> None:
    """What a captured function closes over from an outer transform is an input, not a constant."""

    def fun(w: Any) -> Any:
        graph, outer = g.capture(lambda x: [x * w], [xp.ones(2)])
        assert len(outer) == 1
        assert len(graph.inputs) == 2
        return xp.sum(graph(xp.ones(2), *outer)[0])

    laws.close(ft.grad(fun)(xp.asarray(3.0)), np.asarray(2.0))


def test_decisions_on_outer_values_are_outer_guards() -> None:
    """An inner jit that decides on a value of an outer jit makes the outer one decide as well."""

    @ft.jit
    def fun(w: Any, x: Any) -> Any:
        return ft.jit(lambda v: v if bool(xp.sum(v * w) > 0) else -v)(x)

    one = xp.ones(2)
    for w, sign in ((1.0, 1.0), (-1.0, -1.0), (2.0, 1.0), (-3.0, -1.0)):
        laws.same(fun(xp.asarray(w), one), sign * np.ones(2))


@given(st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_constants_are_shared_by_identity(picks: Any) -> None:
    """One array used several times is one constant."""
    held = [xp.asarray([float(k)]) for k in range(3)]
    graph = graph_of(lambda x: x + held[picks[0]] + held[picks[1]] + held[picks[2]], xp.ones(1))
    assert len(graph.constants) == len(set(picks))
