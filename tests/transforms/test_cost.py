"""The cheap gradient principle, by count: value and gradient cost at most four times the value.

Operations are weighted as arithmetic units see them: one for an addition, a product or a
comparison, four for a quotient or a root, eight for a transcendental function, for each element; a
product of matrices and a convolution are what their sums of products cost; moving elements is free.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import funct as ft
import funct.array as xp
from funct.graph import Call, Control, Graph, Guard, Node
from funct.nn import functional
from funct.transforms.control.scan_loop import Scan
from funct.transforms.control.sweeps import Sweeps
from tests.strategies import Program
from tests.transforms.test_random_programs import SEEDS, SMOOTH, arrays

_CHEAP = frozenset({
    "abs", "absorb", "add", "ceil", "conj", "cumulative_max", "cumulative_min", "cumulative_sum",
    "equal", "floor", "fold_windows", "greater", "greater_equal", "imag", "isfinite", "isinf",
    "isnan", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor",
    "max_pool", "max_pool_index", "maximum", "minimum", "multiply", "negative", "not_equal",
    "real", "reduce_max", "reduce_min", "reduce_prod", "reduce_sum", "relu", "round", "sign",
    "square", "subtract", "trunc", "where",
})  # fmt: skip
_ROOTS = frozenset({"divide", "floor_divide", "reciprocal", "remainder", "sqrt"})
_MOVES = frozenset({
    "astype", "broadcast_to", "checkpoint_name", "concat", "concatenate", "embed", "flip",
    "gather", "iota", "move_axis", "pad_axes", "permute_dims", "put_along_axis", "reshape",
    "slice_", "stop_gradient", "take", "take_along_axis", "windows",
})  # fmt: skip


def cost(graph: Graph) -> int:
    """Weighted operations of a run."""
    return sum(_entry(e) for e in graph.nodes)


def _size(v: Any) -> int:
    return prod(v.shape) if hasattr(v, "shape") else 1


def _entry(e: Node | Call | Guard) -> int:
    if isinstance(e, Guard):
        return 0
    if isinstance(e, Call):
        return cost(e.body)
    out = sum(_size(v) for v in e.results)
    if isinstance(e.primitive, Control):
        kind = e.primitive.kind
        if isinstance(kind, Scan):
            return kind.steps * cost(kind.body)
        if isinstance(kind, Sweeps):
            return sum(cost(s.body) for s in kind.sweeps) + cost(kind.test)
        return max(cost(g) for _, g in e.primitive.bodies)
    if e.name in ("matmul", "contract") or e.name.startswith("convolution"):
        return 2 * _products(e)
    if e.name in _MOVES:
        return 0
    if e.name.startswith("scatter"):
        return _size(e.operands[-1])  # what is added; making the zeros below is moving
    weight = 1 if e.name in _CHEAP else 4 if e.name in _ROOTS else 8
    return weight * max(out, *[_size(v) for v in e.operands])


def _products(e: Node) -> int:
    """How many products of two elements a contraction takes, by differences of its own result."""
    ones = [np.ones(v.shape, np.float64) if hasattr(v, "shape") else v for v in e.operands]
    return round(float(np.sum(e.primitive.raw(*ones, *e.params))))


def ratio(f: Callable[..., Any], *args: Any) -> float:
    """Cost of value and gradient over that of the value."""
    nums = tuple(range(len(args)))
    both = ft.jit(ft.value_and_grad(f, nums)).graph(*args)
    return cost(both) / cost(ft.jit(f).graph(*args))


RNG = np.random.default_rng(0)


def rand(*shape: int) -> Any:
    """Normal numbers."""
    return xp.asarray(RNG.normal(size=shape))


def mlp(w1: Any, w2: Any, w3: Any, x: Any) -> Any:
    """Three layers, softmax cross-entropy."""
    h = xp.tanh(x @ w1)
    h = functional.gelu(h @ w2)
    return -xp.mean(functional.log_softmax(h @ w3, dim=-1)[:, 0])


def cnn(w1: Any, w2: Any, x: Any) -> Any:
    """Two convolutions, pooling, mean."""
    h = functional.max_pool2d(functional.relu(functional.conv2d(x, w1, padding=1)), 2)
    return xp.mean(functional.silu(functional.conv2d(h, w2)))


def attention(q: Any, k: Any, v: Any, g: Any) -> Any:
    """Scaled dot products and a layer norm."""
    out = functional.scaled_dot_product_attention(q, k, v)
    return xp.sum(functional.layer_norm(out, (8,), g) ** 2)


def chain(x: Any) -> Any:
    """A thousand ops."""
    for k in range(250):
        x = xp.sin(x) * 1.01 + x / (k + 2.0)
    return xp.sum(x)


def products(x: Any, y: Any) -> Any:
    """A thousand products and sums."""
    for _ in range(500):
        x = x * y + x
    return xp.sum(x)


def recurrent(w: Any, x: Any) -> Any:
    """A scan with constants, carry, xs and ys."""
    h, ys = ft.scan(lambda h, v: (xp.tanh(w @ h + v), xp.sum(h * h)), xp.zeros(16), x)
    return xp.sum(h) + xp.sum(ys)


def bumps(x: Any) -> Any:
    """Statistics and special functions."""
    z = (x - xp.mean(x)) / xp.std(x)
    return xp.sum(xp.exp(-z * z) * xp.special.erf(z)) + xp.linalg.vector_norm(xp.cumulative_sum(z))


def quotients(x: Any, y: Any) -> Any:
    """Quotients, roots and powers."""
    return xp.sum((x * x / (1.0 + y * y)) ** 3 / xp.sqrt(1.0 + x * x) - xp.hypot(x, y))


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (mlp, (rand(20, 32), rand(32, 32), rand(32, 5), rand(16, 20))),
    (cnn, (rand(4, 3, 3, 3), rand(6, 4, 3, 3), rand(2, 3, 12, 12))),
    (attention, (rand(2, 2, 10, 8), rand(2, 2, 10, 8), rand(2, 2, 10, 8), rand(8))),
    (chain, (rand(5),)),
    (products, (rand(5), rand(5))),
    (recurrent, (rand(16, 16), rand(30, 16))),
    (bumps, (rand(40),)),
    (quotients, (rand(40), rand(40))),
]


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_gradient_costs_four_times_the_value(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """At most."""
    assert ratio(f, *args) <= 4


@given(SMOOTH, SEEDS)
def test_gradient_of_random_programs(program: Program, seed: int) -> None:
    """At most four times, whatever ops come together."""
    x, y = arrays(seed)

    def scalar(x: Any, y: Any) -> Any:
        return xp.sum(xp.sin(x)) + sum(xp.sum(o) for o in program(x, y))  # type: ignore[misc]

    assert ratio(scalar, x, y) <= 4
