"""Symbolic sizes: one captured program for every length of an axis."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export, ops
from funct.compile import build
from funct.errors import ExportError, GuardError, ShapeError
from funct.graph import Guard, Node, capture
from funct.graph.passes import optimize
from tests import laws

SIZES = (1, 2, 3, 7)

GUARDS = {
    "beside_the_first": ["not (n - max(n - 1, 0) < 1)"],
    "half_beside_its_middle": ["not (1 - max(((n) // (2)) - n + 1, 0) < 1)"],
    "before_it_is_decided": ["not (n < 1)"],
    "gradient": ["not (3*n < 2)"],
    "interp": ["not (n == 0)"],
    "last_element": ["not (n < 1)"],
    "logsumexp": ["not (n == 0)"],
    "median": ["not (n == 0)"],
    "quantile": ["not (n == 0)"],
    "windows": ["not (2*n < 2)"],
}
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "elementwise": (lambda x: xp.sin(x) * x + 1.0, ("n", 3)),
    "broadcast": (lambda x: x + xp.ones(3) + x[:, :1], ("n", 3)),
    "outer": (lambda x: x[:, None, :] * x[None, :, :], ("n", 3)),
    "reshape": (lambda x: xp.reshape(x, (-1,)), ("n", 3)),
    "reshape_rest": (lambda x: xp.reshape(x, (x.shape[0], -1)), ("n", 2, 3)),
    "reshape_back": (lambda x: xp.reshape(xp.reshape(x, (-1,)), x.shape), ("n", 3)),
    "flatten_and_split": (lambda x: xp.reshape(xp.reshape(x, (-1, 6)), (-1, 2, 3)), ("n", 2, 3)),
    "transpose": (lambda x: xp.permute_dims(x, (1, 0)), ("n", 3)),
    "concat": (lambda x: xp.concat([x, x * 2.0, xp.ones((1, 3))]), ("n", 3)),
    "stack": (lambda x: xp.stack([x, -x], axis=1), ("n", 3)),
    "slice": (lambda x: x[:, 1:], ("n", 3)),
    "slice_steps": (lambda x: x[:, ::-2], ("n", 3)),
    "all_but_the_last": (lambda x: xp.concat([x, x])[:-1], ("n", 3)),
    "flip": (lambda x: xp.flip(x, axis=0), ("n", 3)),
    "mean": (lambda x: xp.mean(x, axis=0), ("n", 3)),
    "mean_of_all": (xp.mean, ("n", 3)),
    "var": (lambda x: xp.var(x, axis=0), ("n", 3)),
    "softmax": (lambda x: xp.exp(x) / xp.sum(xp.exp(x), axis=1, keepdims=True), ("n", 3)),
    "logsumexp": (lambda x: xp.logsumexp(x, axis=0), ("n", 3)),
    "matmul": (lambda x: x @ xp.ones((3, 2)), ("n", 3)),
    "gram": (lambda x: x @ x.T, ("n", 3)),
    "matmul_vector": (lambda x: x @ xp.ones(3), ("n", 3)),
    "einsum": (lambda x: xp.einsum("ni,mi->nm", x, x), ("n", 3)),
    "vecdot": (lambda x: xp.vecdot(x, x + 1.0), ("n", 3)),
    "convolution": (
        lambda x: ops.convolution(x, xp.ones((2, 3, 2, 2)), (1, 1), ((0, 0), (1, 1)), (1, 1), 1),
        ("n", 3, 4, 5),
    ),
    "convolution_space": (
        lambda x: ops.convolution(x, xp.ones((2, 3, 3)), (1,), ((1, 1),), (1,), 1),
        (2, 3, "n"),
    ),
    "max_pool": (
        lambda x: ops.max_pool(x, (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
        ("n", 2, 4, 5),
    ),
    "take": (lambda x: xp.take(x, xp.asarray([0, 2]), axis=1), ("n", 3)),
    "cumulative_sum": (lambda x: xp.cumulative_sum(x, axis=0), ("n", 3)),
    "sort": (lambda x: xp.sort(x, axis=0), ("n", 3)),
    "where": (lambda x: xp.where(x > 0, x, 0.0), ("n", 3)),
    "pad": (lambda x: xp.pad(x, ((1, 2), (0, 1))), ("n", 3)),
    "tile": (lambda x: xp.tile(x, (2, 1)), ("n", 3)),
    "expand": (lambda x: xp.broadcast_to(xp.expand_dims(x, axis=0), (2, *x.shape)), ("n", 3)),
    "last_element": (lambda x: x[-1], ("n", 3)),
    "zeros_like": (lambda x: x + xp.zeros_like(x), ("n", 3)),
    "corrected_var": (lambda x: xp.var(x, axis=0, correction=0.5), ("n", 3)),
    "repeat": (lambda x: xp.repeat(x, 2, axis=0), ("n", 3)),
    "median": (lambda x: xp.median(x, axis=0), ("n", 3)),
    "quantile": (lambda x: xp.nanquantile(x, [0.1, 0.7], axis=0), ("n", 3)),
    "cov": (lambda x: xp.cov(x, None, False, bias=True), ("n", 3)),
    "interp": (lambda x: xp.interp(xp.asarray([0.1, 0.4]), xp.sort(x), x), ("n",)),
    "kron": (lambda x: xp.kron(x, xp.ones((2, 1))), ("n", 3)),
    "trapezoid": (lambda x: xp.trapezoid(x, axis=0), ("n", 3)),
    "windows": (
        lambda x: xp.lib.stride_tricks.sliding_window_view(xp.concat([x, x]), 2, 0),
        ("n", 3),
    ),
    "beside_the_first": (lambda x: x - x[:1], ("n", 3)),
    "half_beside_its_middle": (
        lambda x: x[: x.shape[0] // 2 + 1] * x[x.shape[0] // 2 : x.shape[0] // 2 + 1], ("n", 3),
    ),
    "before_it_is_decided": (lambda x: xp.concat([x[1:], x[-1][None]]), ("n", 3)),
    "gradient": (lambda x: xp.gradient(xp.concat([x, x, x]), axis=0), ("n", 3)),
}


def example(shape: Any, n: int) -> Any:
    """An array of that shape at n."""
    full = [n if k == "n" else k for k in shape]
    return np.random.default_rng(n).normal(size=full)


def symbolic(fun: Any, shape: Any, at: int = 5) -> Any:
    """The graph with the axis n kept symbolic."""
    names = {k: "n" for k, d in enumerate(shape) if d == "n"}
    return capture(lambda x: [fun(x)], [example(shape, at)], names=[names])[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_symbolic_equals_eager(name: str) -> None:
    """One graph serves every size, interpreted and compiled; guards only where a size decides."""
    fun, shape = FUNCTIONS[name]
    graph = symbolic(fun, shape)
    found = [e.expected for e in graph.nodes if isinstance(e, Guard)]
    assert found == GUARDS.get(name, [])
    run = build(graph)
    for n in SIZES:
        x = example(shape, n)
        expected = fun(xp.asarray(x))
        laws.close(graph(x)[0], expected, 1e-12, 1e-12)
        laws.close(run(x)[0], expected, 1e-12, 1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_exported_equals_eager(name: str) -> None:
    """An exported program with a dynamic axis equals the function, gradients included."""
    fun, shape = FUNCTIONS[name]
    axes = {k: "n" for k, d in enumerate(shape) if d == "n"}
    program = export.export(fun, (xp.asarray(example(shape, 5)),), dynamic_shapes=(axes,))
    for n in SIZES:
        x = xp.asarray(example(shape, n))
        laws.close(program(x), fun(x), 1e-12, 1e-12)
    x = xp.asarray(example(shape, 3))
    laws.close(
        ft.grad(lambda v: xp.sum(xp.sin(program(v))))(x),
        ft.grad(lambda v: xp.sum(xp.sin(fun(v))))(x),
        1e-9, 1e-9,
    )  # fmt: skip


def test_open_sizes_are_those_of_arguments() -> None:
    """What has the argument's shape is not kept to be asked for its size."""
    graph = optimize(symbolic(lambda x: xp.mean(xp.exp(x * 2.0) ** 2.0), ("n", 3)))
    asked = [e for e in graph.nodes if isinstance(e, Node) and e.name == "size_along"]
    assert [e.operands for e in asked] == [graph.inputs]


@pytest.mark.parametrize(
    "name", ["elementwise", "concat", "reshape", "transpose", "matmul", "sort"]
)
def test_empty_axes_work(name: str) -> None:
    """Length 0 is a length, where the function knows it."""
    fun, shape = FUNCTIONS[name]
    graph = symbolic(fun, shape)
    x = example(shape, 0)
    laws.close(graph(x)[0], fun(xp.asarray(x)))


@pytest.mark.parametrize("start", [None, -4, -1, 0, 1, 4])
@pytest.mark.parametrize("stop", [None, -4, -1, 0, 1, 4])
@pytest.mark.parametrize("n", [1, 3, 8])
def test_slices_of_symbolic_axes(start: Any, stop: Any, n: int) -> None:
    """A slice has the right length for every size, or a guard says that it would not."""
    graph = symbolic(lambda x: xp.reshape(x[start:stop] * 2.0, (-1,)), ("n",), at=n)
    for m in range(10):
        x = example(("n",), m)
        try:
            laws.same(graph(x)[0], x[start:stop] * 2.0)
        except GuardError:
            assert m != n


def test_constants_of_symbolic_shape() -> None:
    """zeros, ones and full of a symbolic shape are written down, not computed for the example."""

    def fun(x: Any) -> Any:
        n = x.shape[0]
        return xp.concat([x, xp.zeros_like(x), xp.ones((n, 3)), xp.full((2 * n, 3), 0.5)])

    graph = symbolic(fun, ("n", 3))
    for n in SIZES:
        x = example(("n", 3), n)
        laws.same(graph(x)[0], fun(xp.asarray(x)))


def test_two_symbols() -> None:
    """Sizes meet: products, sums and equal symbols stay symbolic."""

    def fun(x: Any, y: Any) -> list[Any]:
        z = xp.concat([xp.reshape(x, (-1,)), y])
        return [z, xp.reshape(x, (x.shape[1], x.shape[0])), x @ xp.ones((x.shape[1], 2))]

    args = [np.ones((3, 4)), np.ones(5)]
    graph, _ = capture(fun, args, names=[{0: "n", 1: "m"}, {0: "k"}])
    assert [str(n) for n in graph.outputs[0].shape] == ["m*n + k"]
    for n, m, k in ((1, 1, 1), (2, 3, 4), (5, 1, 2)):
        x, y = np.ones((n, m)), np.ones(k)
        laws.same(graph(x, y), fun(xp.asarray(x), xp.asarray(y)))
        laws.same(list(build(graph)(x, y)), fun(xp.asarray(x), xp.asarray(y)))


def test_one_name_is_one_length() -> None:
    """Two axes of one name must agree when the program runs."""
    program = export.export(
        lambda x, y: x + y, (xp.ones(3), xp.ones(3)), dynamic_shapes=({0: "n"}, {0: "n"})
    )
    laws.same(program(xp.ones(5), xp.ones(5)), np.full(5, 2.0))
    with pytest.raises(ShapeError):
        program(xp.ones(5), xp.ones(4))


def test_decisions_on_sizes_are_guards() -> None:
    """Python's if on a size is a guard; a loop over it fixes it, and export says where."""

    def fun(x: Any) -> list[Any]:
        return [x * 2.0 if x.shape[0] > 3 else x]

    graph, _ = capture(fun, [np.ones(5)], names=[{0: "n"}])
    assert [e.expected for e in graph.nodes if isinstance(e, Guard)] == ["n > 3"]
    run = build(graph)
    assert run(np.ones(9))[0].shape == (9,)
    assert run(np.ones(2)) is ft.compile.MISS

    def loop(x: Any) -> Any:
        return sum(x[i] for i in range(x.shape[0]))  # fixes n

    with pytest.raises(ExportError, match="the size 'n' was to stay symbolic") as caught:
        export.export(loop, (xp.ones(3),), dynamic_shapes=({0: "n"},))
    assert "fixes n" in str(caught.value)


@pytest.mark.parametrize("fixes", ["half", "call"])
def test_a_size_that_is_needed_as_a_number_is_found(fixes: str) -> None:
    """range(n // 2) fixes n, and so does what a function with its own rule reads."""

    def half(x: Any) -> Any:
        return sum((x[i] for i in range(x.shape[0] // 2)), x[0])

    def ones(x: Any) -> Any:
        return x * xp.asarray(np.ones((x.shape[0], 1)))

    call = ft.custom_vjp(ones)
    call.defvjp(lambda x: (ones(x), None), lambda _, ct: (ct,))
    fun = {"half": half, "call": call}[fixes]
    with pytest.raises(ExportError, match="was to stay symbolic, but the function fixes it"):
        export.export(fun, (xp.ones((4, 3)),), dynamic_shapes=({0: "N"},))
