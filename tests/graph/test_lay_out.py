"""Channels last: what transposes between ops on images become, and that no bit changes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import graph as g
from funct.nn import functional
from tests import laws

RNG = np.random.default_rng(5)
W = xp.asarray((RNG.normal(size=(6, 6, 3, 3)) * 0.2).astype(np.float32))
B = xp.asarray(RNG.normal(size=6).astype(np.float32))


def image(*shape: int) -> Any:
    """Numbers in float32."""
    return xp.asarray(RNG.normal(size=shape).astype(np.float32))


def first(x: Any) -> Any:
    """Channels from the last place to the second."""
    return xp.permute_dims(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def last(x: Any) -> Any:
    """And back."""
    return xp.permute_dims(x, (0, *range(2, x.ndim), 1))


def conv(x: Any) -> Any:
    """A convolution with channels first."""
    return functional.conv2d(x, W, B, padding=1)


# Steps of programs on images with channels first; each keeps the number of channels.
STEPS: dict[str, Any] = {
    "conv": conv,
    "relu": functional.relu,
    "scale": lambda x: x * xp.reshape(B, (1, 6, 1, 1)) + 1.0,
    "bias": lambda x: x + xp.reshape(B, (6, 1, 1)),
    "number": lambda x: 2.0 - x,
    "there and back": lambda x: first(xp.tanh(last(x) * B)),
    "max_pool": lambda x: functional.max_pool2d(x, 3, stride=1, padding=1),
    "avg_pool": lambda x: functional.avg_pool2d(x, 3, stride=1, padding=1),
    "mean": lambda x: x - xp.mean(x, axis=(2, 3), keepdims=True),
    "twice": lambda x: x + conv(x),
    "other": lambda x: x + xp.flip(x, axis=3),
    "norm": lambda x: first(functional.layer_norm(last(x), (6,))),
    "masked": lambda x: xp.where(x > 0, x, xp.zeros((), dtype=x.dtype)),
    "depthwise": lambda x: functional.conv2d(x, W[:, :1], padding=1, groups=6),
}


def program(picked: list[str]) -> Any:
    """Steps between transposes at both ends."""

    def run(x: Any) -> Any:
        y = first(x)
        for name in picked:
            y = STEPS[name](y)
        return last(y), y

    return run


@settings(max_examples=2 * settings.default.max_examples)
@given(picked=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=7))
def test_no_bit_changes(picked: list[str]) -> None:
    """The pass keeps values and types, is done after one run, and the checker accepts it."""
    x = image(2, 5, 4, 6)
    graph = g.optimize(ft.make_graph(program(["conv", *picked]))(x))
    once = g.check(g.lay_out(graph))
    laws.same(once(x), graph(x))
    assert [e.name for e in g.lay_out(once).nodes] == [e.name for e in once.nodes]


@pytest.mark.parametrize("name", STEPS)
def test_compiled_code_is_right(name: str) -> None:
    """Machine code of such a graph, its gradient, and at sizes that stay open."""
    f = program(["conv", name, "relu", "conv"])
    x = image(2, 6, 5, 6)
    fast = ft.jit(f, mode="reduce-overhead")
    laws.close(fast(x), f(x), 2e-5, 2e-5)
    loss = lambda h: lambda x: xp.sum(h(x)[0] ** 2)  # noqa: E731
    laws.close(ft.grad(loss(fast))(x), ft.grad(loss(f))(x), 2e-4, 2e-4)
    for n in (3, 4):
        y = image(n, 6, 5, 6)
        laws.close(fast(y), f(y), 2e-5, 2e-5)


def names(graph: g.Graph) -> list[str]:
    """Names of the nodes."""
    return [e.name for e in g.eliminate_dead(graph).nodes]


def test_transposes_between_convolutions_go() -> None:
    """What is written with transposes around each convolution has none; biases are turned alone."""

    def net(x: Any) -> Any:
        for _ in range(3):
            x = functional.relu(last(conv(first(x))))
        return x

    graph = g.lay_out(g.optimize(ft.make_graph(net)(image(2, 5, 4, 6))))
    turned = [e for e in graph.nodes if isinstance(e, g.Node) and e.name == "permute_dims"]
    live = g.eliminate_dead(graph).nodes
    assert all(np.prod(e.operands[0].shape) == 6 for e in turned if e in live)
    assert names(graph).count("convolution_last") == 3


def test_other_ranks_and_other_graphs() -> None:
    """Rows and volumes have channels too; a graph without images is left as it is."""
    for rank in (1, 2, 3):
        w = image(4, 4, *(3,) * rank)
        convolve = getattr(functional, f"conv{rank}d")
        f = lambda x, convolve=convolve, w=w: last(convolve(first(x), w) * 2.0)  # noqa: E731
        x = image(2, *(5,) * rank, 4)
        graph = g.check(g.lay_out(ft.make_graph(f)(x)))
        assert names(graph) == ["convolution_last", "multiply"]
        laws.same(graph(x)[0], f(x))
    plain = ft.make_graph(lambda x: xp.sin(last(x)))(image(2, 3, 4, 5))
    assert g.lay_out(plain) is plain
    untouched = ft.make_graph(conv)(image(2, 6, 5, 5))
    assert names(g.lay_out(untouched)) == names(untouched)


def test_graphs_transform_and_are_written() -> None:
    """The ops have derivatives and batches, as what they are made of, and a JSON form."""
    f = lambda x: last(conv(first(x)))  # noqa: E731
    x = image(2, 5, 4, 6)
    graph = g.lay_out(g.optimize(ft.make_graph(f)(x)))
    assert "convolution_last" in names(graph)
    h = lambda x: graph(x)[0]  # noqa: E731
    laws.close(*[ft.grad(lambda x, k=k: xp.sum(k(x) ** 2))(x) for k in (h, f)], 1e-6, 1e-6)
    batch = image(3, 2, 5, 4, 6)
    laws.close(ft.vmap(h)(batch), ft.vmap(f)(batch), 1e-6, 1e-6)
    laws.same(g.Graph.from_json(graph.to_json())(x), graph(x))
