"""What is said, and what is computed, at the edges: infinite elements, indices and trees that do
not fit, leaves that are no arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import optim, tree
from funct.errors import AllocationError, DTypeError, TransformError, TreeError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INF, NAN = float("inf"), float("nan")
SHARES: list[tuple[list[float], list[float], list[float]]] = [
    ([1.0, INF], [NAN, NAN], [NAN, NAN]),
    ([INF, INF], [NAN, NAN], [NAN, NAN]),
    ([-INF, INF], [NAN, NAN], [NAN, NAN]),
    ([-INF, -INF], [NAN, NAN], [NAN, NAN]),
    ([-INF, 1.0], [0.0, 1.0], [0.0, 0.0]),
    ([NAN, 1.0], [NAN, NAN], [NAN, NAN]),
]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("x", "shares", "slopes"), SHARES)
def test_shares_beside_infinity(
    x: list[float], shares: list[float], slopes: list[float], log: bool
) -> None:
    """As those of torch and JAX: NaN, but for -inf beside a number."""
    given = xp.asarray(x)
    if log:
        f, wanted = xp.special.log_softmax, np.log(shares)
        slopes = [1.0, -1.0] if slopes == [0.0, 0.0] else slopes
    else:
        f, wanted = xp.special.softmax, np.asarray(shares)
    for way in (f, ft.jit(f), lambda v: ft.vmap(f)(v[None])[0]):
        np.testing.assert_array_equal(np.asarray(way(given)), wanted)
    slope = ft.grad(lambda v: xp.sum(f(v)))
    for way in (slope, ft.jit(slope)):
        np.testing.assert_array_equal(np.asarray(way(given)), slopes)


@pytest.mark.parametrize(
    ("x", "value", "slopes"),
    [
        ([1.0, INF], INF, [0.0, NAN]), ([INF, INF], INF, [NAN, NAN]),
        ([-INF, -INF], -INF, [NAN, NAN]), ([-INF, 1.0], 1.0, [0.0, 1.0]),
    ],
)  # fmt: skip
def test_logsumexp_beside_infinity(x: list[float], value: float, slopes: list[float]) -> None:
    """As that of torch and JAX."""
    assert float(xp.logsumexp(xp.asarray(x))) == value
    np.testing.assert_array_equal(np.asarray(ft.grad(xp.logsumexp)(xp.asarray(x))), slopes)


A = xp.ones((2, 300))
MISFITS = [
    ({"b": {"c": A}}, {"b": A}, r"at 'b' expected a dict .*got an array float64 \(2, 300\)"),
    ({"b": {"c": A}}, {"b": {"d": A}}, r"at 'b' expected a dict with keys \['c'\], got .* \['d'\]"),
    ({"b": (A, A)}, {"b": (A,)}, "at 'b' expected a tuple of length 2, got a tuple of length 1"),
    ({"b": (A, A)}, {"b": [A, A]}, "at 'b' expected a tuple .*got a list of length 2"),
    ([A], {"x": A}, "at the root expected a list of length 1, got a dict with keys"),
    ([None], [A], r"at '0' expected None, got an array float64 \(2, 300\)"),
]  # fmt: skip


@pytest.mark.parametrize(("above", "below", "told"), MISFITS)
def test_trees_that_do_not_fit(above: Any, below: Any, told: str) -> None:
    """The path to what differs, and no elements."""
    with pytest.raises(TreeError, match=told) as error:
        tree.map(lambda a, b: a, above, below)
    assert "1., 1." not in str(error.value)
    with pytest.raises(TreeError, match=told) as error:
        tree.broadcast_prefix("axes", above, below)
    assert "1., 1." not in str(error.value)


def test_axes_that_do_not_fit() -> None:
    """in_axes and out_axes of vmap, likewise."""
    with pytest.raises(
        TreeError, match=r"in_axes must be a prefix of .*at '0' expected a dict with"
    ):
        ft.vmap(lambda d: d["a"], in_axes=({"b": 0},))({"a": A})
    with pytest.raises(TreeError, match=r"out_axes .*at the root .*got an array float64 \(300,\)"):
        ft.vmap(lambda d: d["a"], out_axes={"a": 0})({"a": A})


OPTIMIZERS = {
    "adam": optim.adam(1e-3),
    "sgd": optim.sgd(1e-3),
    "momentum": optim.sgd(1e-3, momentum=0.9),
    "chain": optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(1e-3)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("leaf", [1.0, 2, "words"])
def test_parameters_that_are_no_arrays(name: str, leaf: Any) -> None:
    """Refused before the first step and at it, by name."""
    opt = OPTIMIZERS[name]
    good = {"w": {"x": xp.ones(2)}}
    bad = {"w": {"x": leaf}}
    with pytest.raises(DTypeError, match=r"init: parameters must be arrays, got .* at w\.x"):
        opt.init(bad)
    with pytest.raises(DTypeError):
        opt.step(bad, good, opt.init(good))


def test_a_leaf_of_words_is_named() -> None:
    """By argument and path."""
    f = lambda d: d["a"]["x"]  # noqa: E731
    with pytest.raises(DTypeError, match=r"got 'foo' in argument 0, leaf a\.name"):
        ft.grad(f)({"a": {"x": xp.ones(()), "name": "foo"}})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (lambda g: g, r"tuple of 1 cotangents, got an array float64 \(3,\)"),
        (lambda g: [g], "tuple of 1 cotangents, got a list of length 1"),
        (lambda g: (g, g), "tuple of 1 cotangents, got a tuple of length 2"),
        (lambda g: None, "tuple of 1 cotangents, got a NoneType"),
    ],
)
def test_rules_that_return_no_tuple(given: Any, told: str) -> None:
    """What came instead is told."""
    f = ft.custom_vjp(lambda x: 2.0 * x)
    f.defvjp(lambda x: (2.0 * x, None), lambda _, g: given(g))
    with pytest.raises(TransformError, match=told):
        ft.grad(lambda x: xp.sum(f(x)))(xp.ones(3))


@pytest.mark.parametrize("way", ["jvp", "linearize", "custom_jvp"])
@pytest.mark.parametrize(
    ("primal", "tangent"),
    [
        ("float64", "float32"), ("float32", "float64"), ("complex128", "float64"),
        ("float64", "int64"), ("float64", "complex128"),
    ],
)  # fmt: skip
def test_tangents_of_another_dtype(way: str, primal: str, tangent: str) -> None:
    """Refused with both dtypes, as by JAX: a cast loses digits without a word."""
    x, t = xp.ones(2, dtype=getattr(xp, primal)), xp.ones(2, dtype=getattr(xp, tangent))
    ruled = ft.custom_jvp(lambda v: v * 2.0)
    ruled.defjvp(lambda primals, tangents: (primals[0] * 2.0, t))
    calls = {
        "jvp": lambda: ft.jvp(xp.sin, (x,), (t,)),
        "linearize": lambda: ft.linearize(xp.sin, x)[1](t),
        "custom_jvp": lambda: ft.jvp(ruled, (x,), (xp.ones_like(x),)),
    }
    with pytest.raises(DTypeError, match=f"{way}.* dtype {primal}, got {tangent}"):
        calls[way]()


@pytest.mark.parametrize("number", [1, 1.0, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_tangents_that_are_numbers(dtype: str, number: Any) -> None:
    """Python's numbers take the primal's dtype."""
    x = xp.asarray(0.0, dtype=getattr(xp, dtype))
    y, t = ft.jvp(xp.sin, (x,), (number,))
    assert y.dtype == t.dtype == x.dtype
    assert complex(t) == 1.0


FAR = 1 << 40
NAMED = {  # functions that are given a size
    "arange": lambda x: xp.arange(FAR) * x[0],
    "eye": lambda x: xp.eye(FAR) * x[0],
    "fft": lambda x: xp.fft.fft(x, FAR),
    "linspace": lambda x: xp.linspace(x[0], 1.0, FAR),
    "one_hot": lambda x: xp.one_hot(xp.astype(x, xp.int64), FAR),
    "pad": lambda x: xp.pad(x, (0, FAR)),
    "pad at the edge": lambda x: xp.pad(x, FAR, mode="edge"),
    "repeat": lambda x: xp.repeat(x, FAR),
    "repeat as often": lambda x: xp.repeat(x, [FAR, 1]),
    "segment_sum": lambda x: xp.segment_sum(x, xp.asarray([0, 1]), FAR),
    "tile": lambda x: xp.tile(x, (2, FAR)),
    "vander": lambda x: xp.vander(x, FAR),
}


@pytest.mark.parametrize("name", NAMED)
def test_sizes_beyond_all_memory_are_refused_in_captures_too(name: str) -> None:
    """Although a sum of the elements would need no room for them."""
    fun = lambda x: xp.sum(NAMED[name](x))  # noqa: E731
    for way in (fun, ft.jit(fun), ft.grad(fun), lambda x: ft.vmap(fun)(x[None])):
        with pytest.raises(AllocationError):
            way(xp.ones(2))


@pytest.mark.parametrize(
    "fun",
    [
        xp.vander,
        xp.special.multigammaln,
        lambda x, n: xp.linalg.matrix_power(x[:, None] * x, n),
        lambda x, n: x**n,
    ],
)
def test_graphs_are_not_as_long_as_numbers_are_large(fun: Any) -> None:
    """What is done often is done by few ops."""
    assert len(ft.make_graph(lambda x: fun(x, 2000))(xp.ones(2)).nodes) < 512
