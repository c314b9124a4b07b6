"""The verifier sees whatever is broken: each part of each entry is broken in each way."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.core import Primitive, Sample, catalogue, lookup
from funct.errors import FunctError, GraphError
from funct.graph import Call, Control, Graph, Guard, Node, Symbol, Var, check, declared
from funct.graph.capture import capture

X = xp.asarray(np.random.default_rng(0).normal(size=(4, 4)))
STRANGE = Var("strange", (), np.dtype(np.float64))

Broken = Iterator[tuple[str, Graph]]


@ft.custom_vjp
def _sine(x: Any) -> Any:
    return xp.sin(x)


_sine.defvjp(lambda x: (_sine(x), x), lambda x, ct: (ct * xp.cos(x),))


def _all_kinds(x: Any) -> Any:
    """A call, a loop, an op of two results, a decision, a branch, a constant."""
    y = _sine(x) + xp.asarray(np.arange(4.0))
    y, _ = ft.scan(lambda c, _: (c * 1.1, None), y, None, 3)
    q, r = xp.linalg.qr(y)
    if xp.sum(x) > -1e9:
        q = q + 1.0
    return xp.sum(q @ r, axis=0), ft.cond(xp.sum(x) > 0, lambda v: v * 2, lambda v: -v, x)


def _of_sizes(x: Any, y: Any) -> Any:
    return [xp.reshape(x, (-1,)) * 2.0 if x.shape[0] > 2 else x, y @ xp.permute_dims(y, (1, 0))]


def _repeated(x: Any) -> Any:
    """Each node thrice: the later ones are broken where one like them was sound."""
    for _ in range(3):
        x = xp.sum(xp.permute_dims(x, (1, 0)) * 2.0, axis=0, keepdims=True) + x
    return [x]


GRAPHS = {
    "all kinds": ft.make_graph(_all_kinds)(X),
    "repeated": capture(_repeated, [X])[0],
    "sizes": capture(_of_sizes, [X, X], names=[{0: "n"}, {0: "m"}])[0],
}


def _without(items: Any, k: int) -> Any:
    return items[:k] + items[k + 1 :]


def _put(items: Any, k: int, new: Any) -> Any:
    return items[:k] + (new,) + items[k + 1 :]


def _ends(graph: Graph) -> Broken:
    for k, o in enumerate(graph.outputs):
        for what in (STRANGE, 1.0, o.name):
            yield "output", attrs.evolve(graph, outputs=_put(graph.outputs, k, what))
    for k, v in enumerate(graph.inputs):
        yield "input left out", attrs.evolve(graph, inputs=_without(graph.inputs, k))
        yield "input twice", attrs.evolve(graph, inputs=(*graph.inputs, v))
    for name, shape in (("def x", ()), ("def", ()), ("y", (-1,)), ("y", ("n",)), ("y", (2.0,))):
        more = Var(name, shape, np.dtype(float))
        yield f"input {name} {shape}", attrs.evolve(graph, inputs=(*graph.inputs, more))
    for k, (v, x) in enumerate(graph.constants):
        for other in (xp.astype(x, xp.float32), np.asarray(x), x[:1], 1.0):
            constants = _put(graph.constants, k, (v, other))
            yield "constant", attrs.evolve(graph, constants=constants)
        yield "no constant", attrs.evolve(graph, constants=_without(graph.constants, k))
    for k, s in enumerate(graph.symbols):
        for change in ({"input": 9}, {"axis": 1}, {"axis": 5}, {"name": "other"}):
            symbols = _put(graph.symbols, k, attrs.evolve(s, **change))
            yield f"symbol {change}", attrs.evolve(graph, symbols=symbols)
        yield "symbol twice", attrs.evolve(graph, symbols=(*graph.symbols, s))
        yield "no symbol", attrs.evolve(graph, symbols=_without(graph.symbols, k))


def _guards(guard: Guard, of: Var, put: Callable[[Any], Graph]) -> Broken:
    if guard.kind == "size":
        for text in ("__import__('os')", "other > 2", "n + 1", "n >", "1 < n < 3", "n.real > 1"):
            yield text, put(attrs.evolve(guard, expected=text))
        return
    for change in ({"kind": "other"}, {"operand": None}, {"operand": STRANGE}, {"expected": "what"},
                   {"operand": of}):  # fmt: skip
        yield f"guard {change}", put(attrs.evolve(guard, **change))


def _results(e: Node | Call, taken: str, put: Callable[[Any], Graph]) -> Broken:
    for k, v in enumerate(e.results):
        for change in ({"shape": (*v.shape, 1)}, {"dtype": np.dtype(np.int8)}, {"name": taken}):
            yield (
                f"result {change}",
                put(attrs.evolve(e, results=_put(e.results, k, attrs.evolve(v, **change)))),
            )
    yield "result missing", put(attrs.evolve(e, results=e.results[:-1]))
    yield "result more", put(attrs.evolve(e, results=(*e.results, STRANGE)))
    for k in range(len(e.operands)):
        for what in (STRANGE, "text", X, None, e.results[0]):
            yield f"operand {what}", put(attrs.evolve(e, operands=_put(e.operands, k, what)))


def broken(graph: Graph) -> Broken:
    """Graphs with one thing wrong."""
    yield from _ends(graph)
    for k, e in enumerate(graph.nodes):

        def put(new: Any, k: int = k) -> Graph:
            return attrs.evolve(graph, nodes=_put(graph.nodes, k, new))

        if isinstance(e, Guard):
            yield from _guards(e, graph.inputs[0], put)
            continue
        yield "entry left out", attrs.evolve(graph, nodes=_without(graph.nodes, k))
        yield "entry twice", attrs.evolve(graph, nodes=graph.nodes[: k + 1] + graph.nodes[k:])
        yield from _results(e, graph.inputs[0].name, put)
        if isinstance(e, Call):
            for what, body in broken(e.body):
                if what != "input twice":  # one value may be two operands
                    yield f"call: {what}", put(attrs.evolve(e, body=body))
            continue
        yield "operand missing", put(attrs.evolve(e, operands=e.operands[:-1]))
        yield "operand more", put(attrs.evolve(e, operands=(*e.operands, graph.inputs[0])))
        yield "parameter more", put(attrs.evolve(e, params=(*e.params, 1)))
        bodies = e.primitive.bodies if isinstance(e.primitive, Control) else ()
        for i, (name, inner) in enumerate(bodies):
            for what, body in broken(inner):
                primitive = attrs.evolve(e.primitive, bodies=_put(bodies, i, (name, body)))
                yield f"{name}: {what}", put(attrs.evolve(e, primitive=primitive))


@pytest.mark.parametrize("name", GRAPHS)
def test_the_verifier_sees_what_is_broken(name: str) -> None:
    """Sound graphs pass, and each broken one is an error of ours."""
    graph = check(GRAPHS[name])
    unseen = []
    for what, wrong in broken(graph):
        try:
            check(wrong)
        except FunctError:
            continue
        unseen.append(what)
    assert not unseen


# What a part of a graph may be put in place of.
_JUNK: tuple[Any, ...] = (
    None, 1, -1, 2.5, 1j, 10**30, "x", "", b"x", (), (1,), [1], {}, {1}, np.zeros(2), X, object(),
    np.float64(1), np.dtype("int8"), int, STRANGE, Var("q", (2,), float), Var(3, (), STRANGE.dtype),  # type: ignore[arg-type]
    Var("z", None, STRANGE.dtype), lookup("add"), GRAPHS["sizes"],  # type: ignore[arg-type]
)  # fmt: skip


def _places(x: Any) -> Iterator[tuple[Any, ...]]:
    """The ways to the parts of a graph: names of fields, and numbers of elements."""
    below: Any = ()
    if isinstance(x, tuple):
        below = enumerate(x)
    elif isinstance(x, Graph | Node | Call | Guard | Symbol | Var):
        below = [(f.name, getattr(x, f.name)) for f in attrs.fields(type(x)) if f.init]
    for k, part in below:
        if k not in ("site", "primitive"):  # a node has the name of its primitive
            yield (k,)
            yield from [(k, *place) for place in _places(part)]


def _replaced(x: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    k, *rest = place
    if isinstance(x, tuple):
        return _put(x, k, _replaced(x[k], tuple(rest), new))
    return attrs.evolve(x, **{k: _replaced(getattr(x, k), tuple(rest), new)})


@pytest.mark.parametrize("name", GRAPHS)
def test_whatever_stands_in_a_graph_is_looked_at(name: str) -> None:
    """Any object in any place is refused by an error of ours, or makes a graph that runs, or whose
    ops refuse what they are given.
    """
    graph = GRAPHS[name]
    places = list(_places(graph))
    for k in range(6 * len(places)):
        place, new = places[k % len(places)], _JUNK[(7 * k) % len(_JUNK)]
        wrong = _replaced(graph, place, new)
        with contextlib.suppress(FunctError):
            check(wrong)
            wrong(*[X] * len(graph.inputs))


def _applied(prim: Primitive, sample: Sample) -> Graph:
    """A graph of one node."""
    inputs = [Var(f"x{k}", np.shape(a), a.dtype) for k, a in enumerate(sample.args)
              if isinstance(a, np.ndarray | np.generic)]  # fmt: skip
    given = iter(inputs)
    operands = tuple(
        [next(given) if isinstance(a, np.ndarray | np.generic) else a for a in sample.args]
    )
    avals = prim.aval(operands, sample.params)
    each = avals if isinstance(avals, tuple) else (avals,)
    results = tuple([Var(f"r{k}", a.shape, a.dtype) for k, a in enumerate(each)])
    return Graph(tuple(inputs), (), (Node(prim, operands, sample.params, results),), results)


WITH_PARAMETERS = [p for p in catalogue() if p.params and p.samples(np.random.default_rng(0))]

_NEVER: tuple[Any, ...] = (None, b"text", 1j, [1], X, object(), ("text",), ((1.5,),))
_DTYPE = (*_NEVER, "f4", np.float32, 1)
OTHERS: dict[str, tuple[Any, ...]] = {  # what is of another type than the declared one
    "int": (*_NEVER, "text", 1.5, True, (1,)),
    "bool": (*_NEVER, "text", 1.5, 1, (True,)),
    "float": (*_NEVER, "text", True, (1.5,)),
    "float | None": (*_NEVER[1:], "text", True, (1.5,)),
    "str": (*_NEVER, 1, True),
    "Norm": (*_NEVER, 1, True, "text"),
    "Side": (*_NEVER, 1, True, "text"),
    "Mode": (*_NEVER, 1, True, "text"),
    "Shape": (*_NEVER, "text", 1, (1.5,), (None,), (True,), ((1,),)),
    "Pads": (*_NEVER, "text", 1, (1, 1), ((1,),), ((1, 1, 1),), ((1, None),)),
    "Triples": (*_NEVER, "text", 1, (1, 1, 1), ((1, 1),), ((1, 1, None),)),
    "DType": _DTYPE,
    "np.dtype[Any]": _DTYPE,
    "Any": (),
}


@pytest.mark.parametrize("prim", WITH_PARAMETERS, ids=lambda p: p.name)
def test_parameters_are_of_the_types_that_are_declared(prim: Primitive) -> None:
    """Samples pass; each parameter in turn is replaced by values of other types."""
    samples = prim.samples(np.random.default_rng(0))
    for sample in samples:
        check(_applied(prim, sample))
    graph = _applied(prim, samples[0])
    (node,) = graph.nodes
    assert isinstance(node, Node)
    declared = inspect.signature(prim.fn).parameters
    for k, name in enumerate(prim.params):
        for other in OTHERS[declared[name].annotation]:
            params = (*node.params[:k], other, *node.params[k + 1 :])
            with pytest.raises(GraphError, match=f"{prim.name}: {name} must be "):
                check(attrs.evolve(graph, nodes=(attrs.evolve(node, params=params),)))


@pytest.mark.parametrize("name", ["axis", "axes"])
def test_axes_are_there(name: str) -> None:
    """And none is named twice."""
    prims = [p for p in WITH_PARAMETERS if name in p.params]
    assert len(prims) > 5
    for prim in prims:
        graph = _applied(prim, prim.samples(np.random.default_rng(0))[0])
        (node,) = graph.nodes
        assert isinstance(node, Node)
        k = prim.params.index(name)
        for what in ((99,), (-1,), (0, 0)) if name == "axes" else (99, -1):
            params = (*node.params[:k], what, *node.params[k + 1 :])
            with pytest.raises(GraphError, match=f"{prim.name}: {name} must "):
                check(attrs.evolve(graph, nodes=(attrs.evolve(node, params=params),)))


def test_what_is_declared_as_nothing_may_be_anything() -> None:
    """Parameters of a primitive of the user's are checked by its own rule alone."""

    @ft.primitive("verified::shifted", abstract=lambda x, by: ft.ShapeDtype(x.shape, x.dtype))
    def shifted(x: Any, *, by: str) -> Any:
        return x + len(by)

    for by in ("text", (1, 2), None):
        check(ft.make_graph(lambda x, by=by: shifted(x, by=by))(X))


@pytest.mark.parametrize(
    ("value", "kind", "fits"),
    [((), tuple[()], True), ((1,), tuple[()], False), ((), tuple[int, ...], True)]
    + [(x, complex, True) for x in (1, 2.5, 1j, np.complex64(1j), np.float32(2))]
    + [("1j", complex, False)],
)
def test_empty_tuples_and_complex_numbers(value: Any, kind: Any, fits: bool) -> None:
    """`tuple[()]` holds nothing; any number may stand where a complex one is declared."""
    assert declared._fits(value, kind) is fits


def _others(v: Any) -> Iterator[Any]:
    """Values near to a parameter."""
    if isinstance(v, bool):
        yield not v
    elif isinstance(v, int):
        yield from (v + 1, v - 1, -v - 1, v + 100)
    elif isinstance(v, tuple):
        yield from (v + v[-1:], v[:-1], ())
        for k, e in enumerate(v):
            yield from [_put(v, k, other) for other in _others(e)]
    elif v is None:
        yield from (0, 1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("prim", WITH_PARAMETERS, ids=lambda p: p.name)
def test_what_passes_has_the_types_it_is_given(prim: Primitive) -> None:
    """With parameters near to a sample's a node is refused, or its results are typed right; what
    depends on values may be refused when it runs. So it is where there is machine code.
    """
    xp.sort(xp.ones(1 << 16))  # which loads LLVM
    for sample in prim.samples(np.random.default_rng(0)):
        given = [a for a in sample.args if isinstance(a, np.ndarray | np.generic)]
        for k, value in enumerate(sample.params):
            for other in _others(value):
                params = _put(sample.params, k, other)
                try:
                    graph = check(_applied(prim, attrs.evolve(sample, params=params)))
                    outs = graph(*map(xp.asarray, given))
                except FunctError:
                    continue
                except Exception:  # a graph cannot even be written down without types
                    with pytest.raises(FunctError):
                        check(_retyped(_applied(prim, sample), params))
                    continue
                assert [(o.shape, o.dtype) for o in outs] == [
                    (v.shape, v.dtype) for v in graph.outputs
                ], (sample.params, params)


def _retyped(graph: Graph, params: Any) -> Graph:
    return attrs.evolve(graph, nodes=(attrs.evolve(graph.nodes[0], params=params),))
