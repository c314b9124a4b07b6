"""The verifier names the node: one fault at a time in operands and results of nodes of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import FunctError
from funct.graph import Call, Graph, Guard, Node, Var, check, leaf
from funct.graph.capture import capture

X = xp.asarray(np.random.default_rng(0).normal(size=(3, 3)))
INDICES = xp.asarray([0, 2, 1])


@ft.custom_vjp
def _scaled(x: Any, by: Any) -> Any:
    return x * xp.sum(by)


_scaled.defvjp(lambda x, by: (_scaled(x, by), by), lambda by, ct: (ct * xp.sum(by), by * 0.0))


@ft.custom_jvp
def _sine(x: Any) -> Any:
    return xp.sin(x)


_sine.defjvp(lambda xs, ts: (_sine(*xs), ts[0] * xp.cos(xs[0])))

_within = leaf(lambda x, i: (x[i], xp.sum(x, axis=0)))
_root_of = ft.custom_vjp(xp.sqrt)
_root_of.defvjp(lambda x: (xp.sqrt(x), x), lambda x, ct: (ct / (2.0 * xp.sqrt(x)),))


def _closing_over(x: Any, i: Any) -> Any:
    y = x * 2.0
    return leaf(lambda v: v + y[i])(x)


KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise": lambda x, i: xp.exp(x) * x + i,
    "comparison": lambda x, i: xp.where(x > i, x, 0.0),
    "gather": lambda x, i: xp.take(x, i, axis=1),
    "scatter": lambda x, i: x.at[i].add(2.0),
    "joined": lambda x, i: xp.concat([x, x * 2.0, x[i]]),
    "product": lambda x, i: x @ (x @ xp.astype(i, x.dtype)),
    "reduced": lambda x, i: xp.sum(x, axis=0) + xp.argmax(x, axis=0),
    "two results": lambda x, i: xp.linalg.qr(x),
    "random": lambda x, i: ft.random.normal(ft.random.key(0), (3,)) + x,
    "custom_vjp": lambda x, i: _scaled(x, x[0]) + i,
    "custom_jvp": lambda x, i: _sine(x) + i,
    "leaf": _within,
    "leaf that closes over": _closing_over,
    "cond": lambda x, i: ft.cond(xp.sum(x) > 0, lambda x, i: x[i], lambda x, i: x * 2.0, x, i),
    "switch": lambda x, i: ft.switch(i[0], [lambda x: x, xp.sin, xp.cos], x),
    "scan": lambda x, i: ft.scan(lambda c, k: (c[i] * 0.5, xp.sum(c) + k), x, i),
    "while_loop": lambda x, i: ft.while_loop(
        lambda s: s[1] < 3, lambda s: (s[0] * 2.0, s[1] + 1), (x, i[0])
    ),
    "fori_loop": lambda x, i: ft.fori_loop(0, 3, lambda k, c: c[i] + k, x),
    "map": lambda x, i: ft.map(lambda row: row[i] * 2.0, x),
    "associative_scan": lambda x, i: ft.associative_scan(xp.multiply, x),
    "checkpoint": lambda x, i: ft.checkpoint(lambda x: xp.sin(x[i]))(x),
    "custom_linear_solve": lambda x, i: ft.custom_linear_solve(
        lambda v: x @ v, x[0], lambda mv, b: xp.linalg.solve(x, b), lambda mv, b: b
    ),
    "pure_callback": lambda x, i: ft.pure_callback(
        lambda v, k: np.asarray(v)[np.asarray(k)], ft.ShapeDtype((3, 3), X.dtype), x, i
    ),
    "io_callback": lambda x, i: ft.io_callback(
        lambda v: np.asarray(v).sum(), ft.ShapeDtype((), X.dtype), x
    ),
    "derivative": lambda x, i: ft.grad(lambda x: xp.sum(_root_of(x * x + 1.0)[i]))(x),
    "batched": ft.vmap(lambda x, k: x[k] * 2.0),
}


def _of(name: str) -> Graph:
    return ft.make_graph(KINDS[name])(X, INDICES)


def _put(items: Any, k: int, *new: Any) -> Any:
    return (*items[:k], *new, *items[k + 1 :])


def _others(v: Var) -> list[Var]:
    """Values of another dtype, rank or length."""
    other = np.dtype(np.int8) if v.dtype.kind != "i" else np.dtype(np.complex128)
    longer = (*v.shape[:-1], v.shape[-1] + 2) if v.shape else (2,)
    return [
        Var("o0", v.shape, other), Var("o1", (5, *v.shape), v.dtype), Var("o2", longer, v.dtype),
    ]  # fmt: skip


def _with_inputs(graph: Graph, k: int, e: Node | Call, more: list[Var]) -> Graph:
    """The graph with another entry, which may read further inputs."""
    return attrs.evolve(graph, inputs=(*graph.inputs, *more), nodes=_put(graph.nodes, k, e))


def _faults(graph: Graph, k: int, e: Node | Call) -> Iterator[tuple[str, Graph, bool]]:
    """What is wrong, the graph, and whether nothing may excuse it."""
    given = e.operands
    for at, a in enumerate(given):
        yield f"operand {at} dropped", _with_inputs(graph, k, attrs.evolve(
            e, operands=_put(given, at)), []), True  # fmt: skip
        yield f"operand {at} twice", _with_inputs(graph, k, attrs.evolve(
            e, operands=_put(given, at, a, a)), []), True  # fmt: skip
        for other in _others(a) if isinstance(a, Var) else ():
            changed = attrs.evolve(e, operands=_put(given, at, other))
            yield f"operand {at} {other.aval}", _with_inputs(graph, k, changed, [other]), False
        for to in range(at):
            swapped = _put(_put(given, at, given[to]), to, a)
            if isinstance(a, Var) and swapped != given:
                changed = attrs.evolve(e, operands=swapped)
                yield f"operands {to} and {at} swapped", _with_inputs(graph, k, changed, []), False
    extra = Var("more", (), np.dtype(np.float64))
    changed = attrs.evolve(e, operands=(*given, extra))
    yield "operand more", _with_inputs(graph, k, changed, [extra]), True
    for at, v in enumerate(e.results):
        dropped = attrs.evolve(e, results=_put(e.results, at))
        yield f"result {at} dropped", _with_inputs(graph, k, dropped, []), True
        for other in _others(v):
            typed = attrs.evolve(v, shape=other.shape, dtype=other.dtype)
            changed = attrs.evolve(e, results=_put(e.results, at, typed))
            yield f"result {at} {other.aval}", _with_inputs(graph, k, changed, []), True
    more = attrs.evolve(e, results=(*e.results, Var("more", (), np.dtype(float))))
    yield "result more", _with_inputs(graph, k, more, []), True


def _as_it_runs(graph: Graph, e: Node | Call) -> bool:
    """Whether the entry gives what is written on it: it is run, on other values."""
    operands = [v.aval for v in e.operands if isinstance(v, Var)]

    def run(*xs: Any) -> Any:
        each = iter(xs)
        full = [next(each) if isinstance(a, Var) else a for a in e.operands]
        if isinstance(e, Call):
            return e.region.run(*full)
        out = e.primitive.fn(*full, *e.params)
        return out if e.primitive.results != 1 else (out,)

    types = [v.aval for v in capture(run, operands)[0].outputs]
    return types == [v.aval for v in e.results]


@pytest.mark.parametrize("name", KINDS)
def test_each_fault_is_named_with_its_node(name: str) -> None:
    """Another number of operands or results, or other types of results, is an error that names the
    node; other types or another order of operands are one, or the node gives the same types.
    """
    graph = check(_of(name))
    unseen = []
    for k, e in enumerate(graph.nodes):
        if isinstance(e, Guard):
            continue
        for what, wrong, sure in _faults(graph, k, e):
            try:
                check(wrong)
            except FunctError as error:
                if e.name not in str(error):
                    unseen.append((e.name, what, str(error)))
                continue
            new = wrong.nodes[k]
            assert not isinstance(new, Guard)
            if sure or not _as_it_runs(wrong, new):
                unseen.append((e.name, what, "not seen"))
    assert not unseen
