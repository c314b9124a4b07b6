"""Calls whose bodies read values of the graph around them run wherever the graph does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.graph import Transformer, leaf
from tests import laws

X = xp.asarray(np.random.default_rng(0).normal(size=(3, 3)))


def _over_one(x: Any) -> Any:
    y = x * 3.0
    return leaf(lambda v: v + y)(x)


def _over_all(x: Any) -> Any:
    y = xp.sin(x)
    return leaf(lambda: y * 2.0)(), leaf(lambda v: (v, y))(x)


def _inside(x: Any) -> Any:
    return leaf(lambda v: leaf(lambda w: w * v + x)(v) + 1.0)(x * 2.0)


def _twice(x: Any) -> Any:
    y = x + 1.0
    times = leaf(lambda a, b: a * b + y)
    return times(x, x), times(x, 2.0 * y)


@pytest.mark.parametrize("fun", [_over_one, _over_all, _inside, _twice])
def test_graphs_with_calls_that_close_over_values_run(fun: Callable[[Any], Any]) -> None:
    """Interpreted, rebuilt, compiled and differentiated they give what the function gives."""
    graph = ft.make_graph(fun)(X)

    def flat(x: Any) -> Any:
        return tuple(ft.tree.leaves(fun(x)))

    laws.same(graph(X), flat(X))
    laws.same(Transformer(graph).transform()(X), flat(X))
    laws.close(ft.jit(graph)(X), flat(X))
    laws.close(ft.jvp(graph, (X,), (X,)), ft.jvp(flat, (X,), (X,)))
    total = [lambda x, g=g: sum(xp.sum(xp.square(y)) for y in g(x)) for g in (graph, flat)]
    laws.close(*[ft.grad(t)(X) for t in total])
