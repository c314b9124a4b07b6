"""Elementwise ops on arrays turned alike: computed as the elements lie, where the caller reads."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.loops.kernel import Kernel
from funct.compile.rewriting.simplify import simplify
from funct.graph import Node
from tests import laws
from tests.compile.test_bounds import made_of

RNG = np.random.default_rng(0)

PROGRAMS = {
    "transposed": lambda x, y: x.mT + 1.0,
    "two": lambda x, y: xp.abs(x.mT) * y.mT - 2.0,
    "squared": lambda x, y: x.mT * 2.0 - y.mT * y.mT,
    "flipped": lambda x, y: xp.flip(x, axis=0) * xp.flip(y, axis=0),
    "flipped otherwise": lambda x, y: xp.flip(x, axis=0) * xp.flip(y, axis=1),
    "flipped and turned": lambda x, y: xp.flip(x.mT, axis=0) * 3.0,
    "back": lambda x, y: (x.mT * 2.0).mT + y,
    "and back again": lambda x, y: ((x.mT * 2.0).mT * 3.0).mT - 1.0,
    "read by a sum": lambda x, y: (xp.sum(x.mT * 2.0, axis=0), x.mT * 2.0 + y.mT),
    "read twice": lambda x, y: (lambda z: (z, z * 2.0, z.mT - y))(x.mT + 1.0),
    "turned on": lambda x, y: (lambda z: (xp.sum(z, axis=0), xp.flip(z) * 3.0))(x.mT * 2.0),
    "beside a row": lambda x, y: x.mT * 2.0 + xp.sum(y, axis=1),
    "beside a number": lambda x, y: x.mT * xp.sum(y) + xp.reshape(xp.max(y), (1, 1)),
    "sliced": lambda x, y: x.mT[3:] * 2.0,
    "a product reads it": lambda x, y: (x.mT * 2.0) @ y,
}


@pytest.mark.parametrize("shape", [(200, 200), (300, 200), (181, 190)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_those_of_eager_ops(name: str, shape: tuple[int, int]) -> None:
    x, y = RNG.normal(size=shape), RNG.normal(size=shape)

    def fun(x: Any, y: Any) -> Any:
        out = PROGRAMS[name](x, y)
        return out if isinstance(out, tuple) else (out,)

    expected = fun(xp.asarray(x), xp.asarray(y))
    for found, e in zip(ft.jit(fun)(xp.asarray(x), xp.asarray(y)), expected, strict=True):
        assert found.shape == e.shape
        np.testing.assert_allclose(np.asarray(found), np.asarray(e), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 0, 1), (2, 1, 0), (0, 2, 1)])
def test_other_axes(axes: tuple[int, ...]) -> None:
    x, y = RNG.normal(size=(40, 30, 50)), RNG.normal(size=(40, 30, 50))

    def fun(x: Any, y: Any) -> Any:
        return xp.flip(xp.permute_dims(x, axes) * xp.permute_dims(y, axes), axis=1) + 1.0

    expected = np.asarray(fun(xp.asarray(x), xp.asarray(y)))
    np.testing.assert_array_equal(np.asarray(ft.jit(fun)(xp.asarray(x), xp.asarray(y))), expected)


@pytest.mark.parametrize("name", ["transposed", "two", "flipped", "flipped and turned", "back"])
def test_nothing_is_turned_around(name: str) -> None:
    x = np.ones((300, 200))
    made = made_of(PROGRAMS[name], x, x)
    assert all(isinstance(c.kernel, Kernel) for c in made.calls)
    inner = {a.inner for c in made.calls for a in c.kernel.accesses}
    assert inner == {"one"}


def test_gradients_lie_as_what_they_are_of() -> None:
    x = np.ones((300, 200))
    made = made_of(ft.grad(lambda x: xp.sum(xp.tanh(x.mT) ** 2)), x)
    assert {a.inner for c in made.calls for a in c.kernel.accesses} == {"one"}
    assert made.fused.views[made.fused.graph.outputs[0]].is_dense


@pytest.mark.parametrize("axes", [(0, 2, 1), (2, 0, 1), (1, 2, 0)])
@pytest.mark.parametrize("gone", [(0,), (2,), (0, 1), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("how", ["sum", "max"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_come_before_the_turn(
    axes: tuple[int, ...], gone: tuple[int, ...], how: str, keepdims: bool
) -> None:
    """What is turned is what is left: means of Hessians turned each of them around."""
    x = RNG.normal(size=(5, 6, 70))

    def fun(x: Any) -> Any:
        return getattr(xp, how)(xp.permute_dims(x * x + 1.0, axes), axis=gone, keepdims=keepdims)

    graph, _ = simplify(ft.make_graph(fun)(xp.asarray(x)))
    nodes = [e for e in graph.nodes if isinstance(e, Node)]
    turned = {e.results[0] for e in nodes if e.name == "permute_dims"}
    assert not any(e.name == f"reduce_{how}" and e.operands[0] in turned for e in nodes)
    found, expected = np.asarray(ft.jit(fun)(xp.asarray(x))), np.asarray(fun(xp.asarray(x)))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("order", [(1, 0), (2, 0, 1)])
def test_reductions_of_what_is_turned_read_it_as_it_lies(order: tuple[int, ...]) -> None:
    """Over any axes, of what is made on the way, and beside what they leave: there is no copy."""
    shape = (150, 260) if len(order) == 2 else (10, 60, 70)
    x = xp.asarray(np.random.default_rng(0).normal(size=shape))
    for axis in (None, 0, -1, (0, len(order) - 1)):

        def run(x: Any, axis: Any = axis) -> Any:
            y = xp.permute_dims(x, order)
            most = xp.max(y, axis=axis, keepdims=True)
            return xp.var(y, axis=axis), xp.sum(xp.exp(y - most), axis=axis), most

        compiled = ft.jit(run)
        for found, expected in zip(compiled(x), run(x), strict=True):
            laws.close(found, expected, 1e-12, 1e-12)
        assert "turned around" not in compiled.show(x)
        assert "_copy" not in compiled.show(x)
