"""Passes, rewriting, editing, text forms and pictures of graphs: laws over random programs."""

import contextlib
import itertools
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import graph as g
from funct.errors import ExportError, FileFormatError, GraphError, ShapeError
from tests import laws
from tests.graph.test_graph import graph_of, names
from tests.strategies import UNARY, inputs, programs

SPECIAL = np.asarray([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e308, 5e-324])
EXTREMES = np.asarray([0, 1, -1, 127, -128], dtype=np.int8)

MORE: dict[str, Any] = {
    "one": lambda x: x * 1,
    "one float": lambda x: 1.0 * x,
    "halves": lambda x: x / 1,
    "zero": lambda x: x + 0.0,
    "minus zero": lambda x: x - 0,
    "negative zero": lambda x: x + -0.0,
    "negate": lambda x: -x,
    "twice": lambda x: xp.negative(-x),
    "size": lambda x: xp.abs(-x),
    "square": lambda x: xp.square(-x),
    "transpose": lambda x: xp.permute_dims(x, (1, 0)),
    "flip": lambda x: xp.flip(x, axis=0),
    "there and back": lambda x: xp.reshape(xp.reshape(x, (-1,)), x.shape),
    "cast": lambda x: xp.astype(xp.astype(x, "float64"), "float32"),
    "self": lambda x: xp.where(x > 0, x, x),
    "floor": lambda x: xp.floor(xp.floor(x)),
    "product of one": lambda x: xp.prod(xp.expand_dims(x, axis=0), axis=0),
    "sum of one": lambda x: xp.sum(xp.expand_dims(x, axis=0), axis=0, dtype=x.dtype),
}
PASSES: dict[str, Any] = {
    "simplify": g.simplify,
    "compose_views": g.compose_views,
    "sink_views": g.sink_views,
    "fold_constants": g.fold_constants,
    "share_common": g.share_common,
    "eliminate_dead": g.eliminate_dead,
    "inline_calls": g.inline_calls,
    "lay_out": g.lay_out,
}


@st.composite
def chains(draw: Any) -> Any:
    """Programs full of what the passes look for."""
    picked = draw(st.lists(st.sampled_from([*MORE, "sin", "sum"]), min_size=1, max_size=10))
    pairs = draw(st.lists(st.sampled_from("+-*"), min_size=len(picked), max_size=len(picked)))

    def program(x: Any, y: Any) -> Any:
        a, b = x, y
        for name, op in zip(picked, pairs, strict=True):
            step = MORE.get(name) or UNARY.get(name, xp.sin)
            a, b = b, step(a)
            a = a + b if op == "+" else a - b if op == "-" else -a * -b
        return a, b

    return program


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=2 * settings.default.max_examples)
@given(program=st.one_of(programs(), chains()), fortran=st.booleans())
def test_laws_of_passes(name: str, program: Any, fortran: bool) -> None:
    """A pass changes no bit, is done after one run, and gives what the checker accepts."""
    xs = inputs(3, fortran)
    graph = graph_of(program, *xs)
    once = g.check(PASSES[name](graph))
    with np.errstate(all="ignore"):
        laws.same(once(*xs), graph(*xs))
    assert len(once.nodes) <= len(graph.nodes) or name == "sink_views"
    assert names(PASSES[name](once)) == names(once)


SCALARS: dict[str, Any] = {
    **{n: f for n, f in MORE.items() if n not in ("transpose", "there and back")},
    "x - -y": lambda x: x - (-xp.flip(x)),
    "x + -y": lambda x: x + (-xp.flip(x)),
    "-x + y": lambda x: (-x) + xp.flip(x),
    "-x * -y": lambda x: (-x) * (-xp.flip(x)),
    "mixed": lambda x: xp.astype(x, "float32") + -x,
    "power": lambda x: x**1,
    "number": lambda x: 3 - (-x),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint8", "complex128"])
@pytest.mark.parametrize("name", SCALARS)
def test_algebra_keeps_every_bit(name: str, dtype: str) -> None:
    """Signed zeros, infinities, NaN, the least integer: the result's bits and dtype are kept."""
    raw = SPECIAL if dtype[0] in "fc" else EXTREMES
    with np.errstate(all="ignore"):
        x = xp.asarray(raw.astype(dtype))
        if dtype == "complex128":
            x = x * 1j + xp.flip(x)
            if name in ("floor", "self", "cast", "mixed"):
                return
        graph = graph_of(SCALARS[name], x)
        laws.same(g.simplify(graph)(x), graph(x))


def test_simplify_does_something() -> None:
    """Neutral elements, double negation and chains of views go."""

    def f(x: Any) -> Any:
        y = xp.permute_dims(xp.permute_dims(xp.negative(-x) * 1, (1, 0)), (1, 0))
        z = xp.reshape(xp.reshape(y, (-1,)), (3, 2)) - 0.0
        return xp.reshape(xp.flip(xp.flip(z, axis=0), axis=0), (2, 3)) + (-x)

    graph = g.eliminate_dead(g.simplify(graph_of(f, xp.ones((2, 3)))))
    assert names(graph) == ["subtract"]
    one = graph_of(lambda x: xp.max(xp.expand_dims(x, axis=1), axis=1), xp.ones((2, 3)))
    assert names(g.eliminate_dead(g.simplify(one))) == []


def test_transposes_sink_and_cancel() -> None:
    """What lies between two transposes is computed without either."""

    def f(x: Any, y: Any) -> Any:
        a, b = (xp.permute_dims(v, (0, 2, 3, 1)) for v in (x, y))
        return xp.permute_dims(xp.tanh(a * 2.0) + b, (0, 3, 1, 2))

    xs = [xp.asarray(np.random.default_rng(k).normal(size=(2, 3, 4, 5))) for k in range(2)]
    graph = g.eliminate_dead(g.sink_views(graph_of(f, *xs)))
    assert names(graph) == ["multiply", "tanh", "add"]
    laws.same(graph(*xs)[0], f(*xs))


@given(program=programs())
def test_decompose_keeps_values(program: Any) -> None:
    """Composite ops are spelled out, and values agree up to rounding."""
    xs = inputs(4)
    graph = graph_of(program, *xs)
    plain = g.check(g.decompose(graph))
    laws.close(plain(*xs), graph(*xs), 1e-9, 1e-9)
    assert not {"square", "relu", "sigmoid"} & set(names(plain))
    own = g.decompose(graph_of(xp.sin, xp.ones(2)), {"sin": lambda x: x * 3.0})
    laws.same(own(xp.ones(2)), (xp.full(2, 3.0),))


def test_then_is_a_backend_and_names_the_broken_pass() -> None:
    """Passes in a row compile with jit; one that breaks the graph is named."""

    def swap(graph: g.Graph) -> g.Graph:
        return g.rewrite(graph, xp.sin, xp.cos)

    f = ft.jit(lambda x: xp.sin(x * 1.0), backend=g.then(g.simplify, swap))
    laws.close(f(xp.zeros(2)), xp.ones(2), 1e-15, 1e-15)

    def broken(graph: g.Graph) -> g.Graph:
        return g.Graph(graph.inputs, (), graph.nodes[1:], graph.outputs)

    with pytest.raises(GraphError, match="after broken: graph: "):
        ft.jit(lambda x: xp.sin(x * 2.0), backend=g.then(broken))(xp.zeros(2))
    with pytest.raises(GraphError, match="<lambda>: a pass must return a graph, got 3"):
        g.then(lambda graph: 3)(graph_of(xp.sin, xp.ones(2)))  # type: ignore[arg-type, return-value]


# rewriting --------------------------------------------------------------------------------------


def softmax(x: Any) -> Any:
    """Written out, as people write it."""
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def test_patterns_are_found_whatever_the_shape() -> None:
    """A written-out softmax is found at any rank; over another axis it is another function."""
    for shape in ((4,), (2, 3), (2, 3, 4)):
        x = xp.asarray(np.random.default_rng(0).normal(size=shape))
        graph = ft.make_graph(lambda x: softmax(x * 2.0) + 1.0)(x)
        (match,) = g.find(graph, softmax)
        assert [n.name for n in match.nodes][-1] == "divide"
        assert match.operands[0] is graph.nodes[0].results[0]  # type: ignore[union-attr]
        new = g.rewrite(graph, softmax, lambda x: x)
        assert names(new) == ["multiply", "add"]
        laws.same(new(x)[0], x * 2.0 + 1.0)
    other = ft.make_graph(lambda x: xp.exp(x) / xp.sum(xp.exp(x), axis=0))(xp.ones((3, 3)))
    assert g.find(other, softmax) == []


def test_patterns_of_several_results() -> None:
    """All results at one place, replaced by one function; what reads the first one waits for it."""

    def both(x: Any, y: Any) -> Any:
        return xp.sin(x), xp.cos(x) * y

    def turned(x: Any, y: Any) -> Any:
        return -x, x - y

    def f(x: Any, y: Any) -> Any:
        s = xp.sin(x)
        t = xp.exp(s)  # before the second result, whose operand comes later still
        return t, xp.cos(x) * xp.sqrt(y), xp.sin(y)

    x, y = (xp.asarray(v) for v in ([0.5, 1.0], [4.0, 9.0]))
    graph = graph_of(f, x, y)
    (match,) = g.find(graph, both)
    assert [v.name for v in match.results] == [graph.nodes[0].results[0].name, "v5"]  # type: ignore[union-attr]
    assert [e.name for e in match.nodes] == ["sin", "cos", "multiply"]
    new = g.rewrite(graph, both, turned)
    assert sorted(names(new)) == ["exp", "negative", "sin", "sqrt", "subtract"]
    laws.same(new(x, y), (xp.exp(-x), x - xp.sqrt(y), xp.sin(y)))
    swapped = g.rewrite(graph, lambda x, y: both(x, y)[::-1], lambda x, y: turned(x, y)[::-1])
    laws.same(swapped(x, y), new(x, y))
    with pytest.raises(GraphError, match="the replacement gives float64"):
        g.rewrite(graph, both, lambda x, y: x)
    with pytest.raises(GraphError, match="each of which something computes"):
        g.find(graph, lambda x: (xp.sin(x), x))


def test_results_that_need_each_other_are_no_match() -> None:
    """One op cannot give a value and what is computed from it outside of the pattern."""
    both = lambda x, y: (xp.sin(x), xp.cos(y))  # noqa: E731
    x = xp.asarray([0.5, 1.0])
    assert g.find(graph_of(lambda x: xp.cos(xp.exp(xp.sin(x))), x), both) == []

    def chained(x: Any) -> Any:
        s = xp.sin(x)
        return s, xp.cos(xp.exp(s)), xp.cos(x)

    crossed = graph_of(chained, x)
    (match,) = g.find(crossed, both)
    assert match.operands == (crossed.inputs[0],) * 2

    def tangled(x: Any, y: Any) -> Any:
        a, b = xp.sin(x), xp.sin(y)
        return xp.cos(xp.exp(a)), xp.cos(xp.exp(b))

    graph = graph_of(tangled, x, x + 1.0)
    found = g.find(graph, both)
    assert len(found) == 1, "two that are crossed would wait for each other"
    laws.close(g.rewrite(graph, both, both)(x, x + 1.0), graph(x, x + 1.0), 1e-15, 1e-15)


def test_ops_of_several_results_are_patterns() -> None:
    """Both results of one node, and others that only use one of them."""
    a = xp.asarray([[2.0, 1.0], [1.0, 3.0]])
    pattern = lambda a: tuple(xp.linalg.eigh(a))  # noqa: E731

    def f(a: Any) -> Any:
        values, vectors = xp.linalg.eigh(a)
        return values * 2.0, vectors

    graph = graph_of(f, a)
    (match,) = g.find(graph, pattern)
    assert len(match.nodes) == 1
    new = g.rewrite(graph, pattern, lambda a: (a[0], a + 1.0))
    laws.same(new(a), (a[0] * 2.0, a + 1.0))


def test_patterns_of_two_operands_numbers_and_constants() -> None:
    """Sums and products match in both orders, numbers and constants exactly, values once."""
    x, y = xp.ones(3), xp.full(3, 2.0)
    pattern = lambda a, b: a * b + 1.0  # noqa: E731
    fused = lambda a, b: a - b  # noqa: E731
    for f in (lambda x, y: x * y + 1.0, lambda x, y: 1.0 + y * x):
        assert names(g.rewrite(graph_of(f, x, y), pattern, fused)) == ["subtract"]
    assert g.find(graph_of(lambda x, y: x * y + 1, x, y), pattern) == [], "1 is not 1.0"
    assert len(g.find(graph_of(lambda x, y: (x * x + 1.0) * y, x, y), lambda a: a * a + 1.0)) == 1
    assert g.find(graph_of(lambda x, y: (x * y + 1.0) * y, x, y), lambda a: a * a + 1.0) == []
    table = lambda x: x * xp.asarray([1.0, 2.0, 3.0])  # noqa: E731
    found = g.find(graph_of(lambda x, y: table(x) + y, x, y), table, [ft.ShapeDtype((3,), "f8")])
    assert len(found) == 1
    constants = [np.asarray(c) for c in ([0.0], [-0.0], [np.nan], [0j], [complex(-0.0, 0.0)], [0])]
    adding = lambda c: lambda x: x + xp.asarray(c)  # noqa: E731
    for k, c in enumerate(constants):  # another sign of zero, or dtype, is another constant
        graph = graph_of(adding(c), x)
        assert [len(g.find(graph, adding(d))) for d in constants] == [j == k for j in range(6)]
    kept = g.rewrite(
        graph_of(lambda x, y: (xp.exp(x) * 2.0, xp.exp(x)), x, y),
        lambda x: xp.exp(x) * 2.0,
        lambda x: x,
    )
    assert names(kept) == ["exp"], "what others use stays"
    few = g.find(graph_of(lambda x, y: xp.sin(xp.sin(x)), x, y), xp.sin, where=lambda m: False)
    assert few == []
    with pytest.raises(GraphError, match=r"the replacement gives float64\[\] for float64\[3\]"):
        g.rewrite(graph_of(xp.sin, x), xp.sin, xp.sum)
    with pytest.raises(GraphError, match="each of which something computes"):
        g.find(graph_of(xp.sin, x), lambda x: x)


@given(program=programs())
def test_rewriting_to_the_same_keeps_every_bit(program: Any) -> None:
    """Each op of a program is found by a pattern of itself, and replaced by itself."""
    xs = inputs(5)
    graph = graph_of(program, *xs)
    new = graph
    for one in (xp.sin, xp.exp, xp.tanh, lambda x, y: x + y, lambda x, y: x * y):
        new = g.check(g.rewrite(new, one, one))
    laws.same(new(*xs), graph(*xs))


# editing ----------------------------------------------------------------------------------------


def soft(x: Any) -> Any:
    """What stands in bodies."""
    return xp.log1p(xp.exp(x))


BODIES: dict[str, Any] = {
    "scan": lambda x: ft.scan(lambda c, v: (c + soft(v), soft(c)), xp.zeros(()), x),
    "while_loop": lambda x: ft.while_loop(
        lambda s: xp.sum(soft(s[0])) < 9.0, lambda s: (soft(s[0]), s[1] + 1), (x, 0)
    )[0],
    "fori_loop": lambda x: ft.fori_loop(0, 3, lambda _, c: soft(c) + x, x),
    "map": lambda x: ft.map(lambda v: soft(v * x), x),
    "cond": lambda x: ft.cond(xp.sum(x) > 0.0, soft, lambda v: -soft(v), soft(x)),
    "checkpoint": ft.checkpoint(lambda x: soft(x) * x),
    "deep": ft.checkpoint(
        lambda x: ft.scan(lambda c, _: (ft.cond(c[0] > 0.0, soft, xp.exp, c), None), x, None, 3)[0]
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_patterns_are_replaced_in_bodies(name: str) -> None:
    """Of branches and loops, however deep; the graph is differentiated and written as before."""
    x = xp.asarray([0.5, -1.0, 0.25])
    graph = ft.make_graph(lambda x: ft.tree.leaves(BODIES[name](x)))(x)
    new = g.rewrite(graph, soft, lambda x: xp.logaddexp(x, 0.0))
    assert "= log1p(" in str(graph)
    assert "= log1p(" not in str(new)
    assert "= logaddexp(" in str(new)
    for run in (new, ft.jit(new), g.Graph.from_json(new.to_json())):
        laws.close(list(run(x)), list(graph(x)), 1e-12, 1e-12)
    total = lambda run: lambda x: sum(xp.sum(xp.sin(o)) for o in run(x))  # noqa: E731
    if name != "while_loop":
        laws.close(ft.grad(total(new))(x), ft.grad(total(graph))(x), 1e-10, 1e-10)
    assert g.rewrite(new, soft, lambda x: x) is new


def test_editing_builds_other_graphs() -> None:
    """Values are replaced, functions put in, parts cut out; the first graph stays as it was."""
    x = xp.asarray([0.5, 1.0])
    graph = ft.make_graph(lambda x: xp.exp(xp.sin(x) * 2.0))(x)
    sin, mul, exp = (n.results[0] for n in graph.nodes)  # type: ignore[union-attr]
    text = str(graph)
    laws.same(g.replace(graph, {mul: sin})(x)[0], xp.exp(xp.sin(x)))
    table = xp.asarray([1.0, 2.0])
    laws.same(
        g.insert_after(graph, sin, lambda v: v + table)(x)[0], xp.exp((xp.sin(x) + table) * 2.0)
    )
    laws.same(g.insert_after(graph, graph.inputs[0], xp.cos)(x)[0], xp.exp(xp.sin(xp.cos(x)) * 2.0))
    laws.same(g.insert_after(graph, exp, xp.sqrt)(x)[0], xp.sqrt(xp.exp(xp.sin(x) * 2.0)))
    laws.same(g.extract(graph, [sin], [exp])(x)[0], xp.exp(x * 2.0))
    assert str(graph) == text
    with pytest.raises(GraphError, match="the outputs need x0 as well"):
        g.extract(graph, [], [exp])
    with pytest.raises(GraphError, match="insert_after: v1 is"):
        g.insert_after(graph, sin, xp.sum)
    with pytest.raises(GraphError, match="fun gives 2 results"):
        g.insert_after(graph, sin, lambda v: (v, v))
    with pytest.raises(GraphError, match="v2 is used before it is defined"):
        g.replace(graph, {sin: mul})
    with pytest.raises(GraphError, match="replace: x0 is"):
        g.replace(graph, {graph.inputs[0]: ft.make_graph(xp.sum)(x).outputs[0]})


def test_shapes_propagate() -> None:
    """A graph is typed anew for other inputs; what does not fit is named with its line."""
    graph = ft.make_graph(lambda x, y: xp.sum(x @ y, axis=0))(xp.ones((2, 3)), xp.ones((3, 4)))
    f4 = np.dtype(np.float32)
    new = g.propagate(graph, ft.ShapeDtype((7, 5), f4), ft.ShapeDtype((5, 2), f4))
    assert [v.aval for v in new.outputs] == [ft.ShapeDtype((2,), f4)]
    laws.same(
        new(xp.ones((7, 5), dtype=f4), xp.ones((5, 2), dtype=f4))[0], xp.full(2, 35.0, dtype=f4)
    )
    with pytest.raises(ShapeError, match="matmul"):
        g.propagate(graph, ft.ShapeDtype((7, 5), f4), ft.ShapeDtype((4, 2), f4))
    with pytest.raises(GraphError, match="expected 2 inputs, got 1"):
        g.propagate(graph, ft.ShapeDtype((7, 5), f4))


def test_transformers_keep_decisions_and_symbols() -> None:
    """Guards on values and sizes are those of the new graph, shared symbols stay shared."""

    def f(x: Any, y: Any) -> Any:
        return [x + y if xp.sum(x) > 0 else x - y]

    named: Any = [{0: "n"}, {0: "n"}]
    graph, _ = g.capture(f, [xp.ones((4, 2)), xp.ones((4, 2))], names=named)
    new = g.Transformer(graph).transform()
    assert g.show(new) == g.show(graph)
    laws.same(new(xp.ones((7, 2)), xp.ones((7, 2)))[0], xp.full((7, 2), 2.0))


def test_leaves_stay_calls() -> None:
    """A function marked as a leaf is one node, under every transform the function that it is."""

    @g.leaf
    def block(p: Any, x: Any, n: int = 2) -> Any:
        return {"y": xp.tanh(x * p["w"]) * n, "x": x}

    def f(p: Any, x: Any) -> Any:
        out = block(p, x, n=3)
        return xp.sum(out["y"] * out["x"])

    p, x = {"w": xp.asarray([1.0, 2.0])}, xp.asarray([0.5, -1.0])
    graph = ft.make_graph(f)(p, x)
    assert names(graph) == ["block", "multiply", "reduce_sum"]
    assert "call[block]" in str(graph)
    plain = lambda p, x: xp.sum(xp.tanh(x * p["w"]) * 3 * x)  # noqa: E731
    for t in (ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(ft.jit(f))):
        laws.close(t(f)(p, x), t(plain)(p, x), 1e-14, 1e-14)
    many = xp.stack([x, 2.0 * x])
    laws.close(ft.vmap(f, (None, 0))(p, many), ft.vmap(plain, (None, 0))(p, many), 1e-14, 1e-14)


# text and pictures ------------------------------------------------------------------------------


@settings(max_examples=2 * settings.default.max_examples)
@given(program=programs())
def test_json_round_trip(program: Any) -> None:
    """A graph comes back from its text: the same ops, the same bits, the same text again."""
    xs = inputs(6)
    graph = ft.make_graph(program)(*xs)
    text = graph.to_json()
    again = ft.Graph.from_json(text)
    assert names(again) == names(graph)
    laws.same(again(*xs), graph(*xs))
    assert ft.Graph.from_json(again.to_json()).to_json() == again.to_json()


def test_json_of_sizes_guards_and_narrow_constants() -> None:
    """Symbols, decisions and constants of any dtype survive; what has no form is refused."""
    table = xp.astype(xp.asarray([1.0, 2.0]), xp.bfloat16)

    def f(x: Any) -> Any:
        return [(x if xp.sum(x) > 0 else -x) * xp.astype(table, "float64"), xp.reshape(x, (-1,))]

    graph, _ = g.capture(f, [xp.ones((3, 2))], names=[{0: "n"}])
    again = ft.Graph.from_json(g.eliminate_dead(graph).to_json())
    assert str(again.inputs[0].shape[0]) == "n"
    laws.same(again(xp.ones((3, 2)))[0], xp.asarray([[1.0, 2.0]] * 3))
    with pytest.raises(ExportError, match="pure_callback is not in the catalogue"):
        ft.make_graph(lambda x: ft.pure_callback(np.negative, ft.ShapeDtype((3,), np.float64), x))(
            xp.ones(3)
        ).to_json()


@given(st.data())
@settings(max_examples=3 * settings.default.max_examples)
def test_hostile_json_is_refused(data: Any) -> None:
    """Whatever is changed in the text, reading gives a graph that is well-formed, or one error."""
    table = xp.asarray([3.0, 4.0])
    text = ft.make_graph(lambda x: xp.sum(x * table + 1.5))(xp.ones(2)).to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    put = data.draw(st.sampled_from(["", "0", "9", '"', "}", "]", "x", "-", "null", "[[", "\\"]))
    changed = text[:at] + put + text[at + data.draw(st.integers(0, 3)) :]
    with contextlib.suppress(FileFormatError):
        g.check(ft.Graph.from_json(changed))


def test_pictures() -> None:
    """A graph draws itself as SVG, as a page without links, and for Graphviz."""
    drawing = ft.make_graph(lambda x: xp.sum(xp.sin(x) * 2.0))(xp.ones(3)).draw("a <b>")
    assert [s.name for s in drawing.shapes] == ["x0", "sin", "multiply", "reduce_sum", "result"]
    ElementTree.fromstring(drawing.svg)
    assert "<title>a &lt;b&gt;</title>" in drawing.html
    assert "reduce_sum(v2, axes=(0,), keepdims=False)" in drawing.html
    assert "http" not in drawing.html.replace("http://www.w3.org/2000/svg", "")
    lines = drawing.dot.splitlines()
    assert lines[0] == 'digraph "a <b>" {'
    assert [s.strip() for s in lines if "->" in s] == [
        f"n{a} -> n{b};" for a, b in itertools.pairwise(range(5))
    ]
    assert 'n1 [label="sin\\nfloat64[3]"' in drawing.dot
