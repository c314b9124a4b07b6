"""Folding constants and per-channel affine maps changes no value."""

from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct.array as xp
from funct import export, ops
from funct.graph import Graph, inline_calls
from funct.graph.passes import fold_constants
from funct.quant.fold import fold_affine
from tests.quant.runtime import names


def folded(fun: Any, x: Any) -> tuple[Graph, Any]:
    """The folded graph of fun, and its value at x."""
    graph = fold_affine(fold_constants(inline_calls(export.export(fun, (x,)).graph)))
    return graph, np.asarray(graph(x)[0])


def close(a: Any, b: Any) -> None:
    """Equal up to rounding in float64."""
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-12)


def batch_norm(y: Any, statistics: list[Any], axis: int) -> Any:
    """Evaluation-mode batch normalization, written the long way."""
    shape = [-1 if i == axis else 1 for i in range(y.ndim)]
    mean, variance, factor, offset = (xp.reshape(v, tuple(shape)) for v in statistics)
    return (y - mean) / xp.sqrt(variance + 1e-5) * factor + offset


def statistics_of(rng: np.random.Generator, channels: int) -> list[Any]:
    """mean, variance, weight and bias."""
    normal = [xp.asarray(rng.normal(size=channels)) for _ in range(3)]
    return [normal[0], xp.asarray(rng.uniform(0.1, 3, channels)), *normal[1:]]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("rank", "groups"), [(1, 1), (2, 1), (2, 2)])
def test_convolution_and_batch_norm(
    rank: int, groups: int, bias: bool, rng: np.random.Generator
) -> None:
    """convolution -> batch norm becomes convolution + bias of equal value."""
    w = xp.asarray(rng.normal(size=(6, 4 // groups, *[3] * rank)))
    b = xp.asarray(rng.normal(size=(1, 6, *[1] * rank)))
    statistics = statistics_of(rng, 6)

    def fun(x: Any) -> Any:
        y = ops.convolution(x, w, (1,) * rank, ((1, 1),) * rank, (1,) * rank, groups)
        return batch_norm(y + b if bias else y, statistics, 1)

    x = xp.asarray(rng.normal(size=(2, 4, *[7] * rank)))
    graph, value = folded(fun, x)
    assert names(graph) == ["convolution", "add"]
    close(value, fun(x))


@pytest.mark.parametrize("lead", [(5,), (2, 5)])
def test_linear_and_batch_norm(lead: tuple[int, ...], rng: np.random.Generator) -> None:
    """linear -> batch norm over the features becomes one product and one bias."""
    w, b = xp.asarray(rng.normal(size=(6, 4))), xp.asarray(rng.normal(size=6))
    statistics = statistics_of(rng, 6)

    def fun(x: Any) -> Any:
        return batch_norm(x @ xp.permute_dims(w, (1, 0)) + b, statistics, len(lead))

    x = xp.asarray(rng.normal(size=(*lead, 4)))
    graph, value = folded(fun, x)
    assert names(graph) == ["matmul", "add"]
    close(value, fun(x))


STEPS = {
    "add": lambda y, c: y + c,
    "subtract": lambda y, c: y - c,
    "reversed subtract": lambda y, c: c - y,
    "multiply": lambda y, c: c * y,
    "divide": lambda y, c: y / c,
    "negative": lambda y, _: -y,
}


@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6),
    numbers=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_any_chain_of_affine_maps(steps: list[str], numbers: bool, seed: int) -> None:
    """Whatever the order of the maps, the folded graph has the value of the chain."""
    rng = np.random.default_rng(seed)
    w = xp.asarray(rng.normal(size=(3, 2, 2)))
    size = (1,) if numbers else (3, 1)
    held = [rng.uniform(0.5, 2, size) for _ in steps]

    def fun(x: Any) -> Any:
        y = ops.convolution(x, w, (1,), ((0, 0),), (1,), 1)
        for name, c in zip(steps, held, strict=True):
            y = STEPS[name](y, float(c[0]) if numbers else xp.asarray(c))
        return y

    x = xp.asarray(rng.normal(size=(2, 2, 5)))
    graph, value = folded(fun, x)
    assert names(graph) == ["convolution", "add"]
    close(value, fun(x))


def test_what_is_not_affine_per_channel_stays(rng: np.random.Generator) -> None:
    """Maps that vary along other axes, values used twice and reversed division are left alone."""
    w = xp.asarray(rng.normal(size=(3, 2, 2)))
    along = xp.asarray(rng.normal(size=4))

    def product(x: Any) -> Any:
        return ops.convolution(x, w, (1,), ((0, 0),), (1,), 1)

    cases = [
        (lambda x: product(x) * along, ["convolution", "multiply"]),
        (lambda x: 2.0 / product(x), ["convolution", "divide"]),
        (lambda x: (lambda y: y * 2.0 + xp.sum(y))(product(x)),
         ["convolution", "multiply", "reduce_sum", "add"]),
    ]  # fmt: skip
    x = xp.asarray(rng.normal(size=(2, 2, 5)))
    for fun, expected in cases:
        graph, value = folded(fun, x)
        assert names(graph) == expected
        close(value, fun(x))


def bound(graph: Graph, value: Any) -> Graph:
    """A graph with its last input fixed to a constant."""
    held = (*graph.constants, (graph.inputs[-1], value))
    return attrs.evolve(graph, inputs=graph.inputs[:-1], constants=held)


def test_constants_are_evaluated_once(rng: np.random.Generator) -> None:
    """Nodes on constants become constants."""
    x, w = (xp.asarray(rng.normal(size=s)) for s in ((3, 4), (5, 4)))
    program = export.export(lambda x, w: x @ xp.exp(xp.permute_dims(w, (1, 0))), (x, w))
    graph = fold_constants(bound(program.graph, w))
    assert names(graph) == ["matmul"]
    close(graph(x)[0], program(x, w))


def test_some_constants_stay_computed(rng: np.random.Generator) -> None:
    """A dequantized weight stays an integer, and a broadcast of one number stays small."""
    q = xp.asarray(rng.integers(-9, 9, (4, 4)).astype(np.int8))
    scale, zero, float64 = xp.asarray(0.5), xp.asarray(np.int8(0)), np.dtype(np.float64)
    x = xp.asarray(rng.normal(size=(3, 4)))
    kept = export.export(lambda x, q: x @ ops.dequantize(q, scale, zero, float64, 0), (x, q))
    assert "dequantize" in names(fold_constants(bound(kept.graph, q)))
    one = xp.asarray(1.0)
    wide = export.export(lambda x, one: x[0, 0] * xp.broadcast_to(one, (300, 300)), (x, one))
    assert "broadcast_to" in names(fold_constants(bound(wide.graph, one)))
