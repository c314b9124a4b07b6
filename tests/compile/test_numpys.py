"""Functions that are called often: machine code follows NumPy calls, and has their bits."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile import build, faster, serving
from funct.kernels.cpu.loops import available
from funct.nn import functional

FUNCTIONS: list[Any] = [
    xp.exp, xp.log, xp.sin, xp.tanh, xp.expm1, xp.log1p, xp.sqrt, xp.atan, xp.abs,
    lambda x: x**2, lambda x: x**-1, lambda x: x**1.7, lambda x: xp.clip(x, -1, 1),
    lambda x: xp.astype(x, xp.float64), functional.sigmoid, functional.relu, functional.gelu,
    functional.softplus, functional.elu,
]  # fmt: skip
PAIRED: list[Any] = [
    xp.add, xp.multiply, xp.divide, xp.maximum, xp.hypot, xp.atan2,
    lambda x, y: xp.where(x > y, x, y), lambda x, y: x - xp.sum(y),
]  # fmt: skip
REDUCED: list[Any] = [
    xp.sum, xp.prod, xp.max, xp.min, xp.mean, xp.var, xp.linalg.vector_norm,
    lambda x, axis, keepdims: xp.where(xp.any(x > 0, axis=axis, keepdims=keepdims), 1.0, 2.0),
    lambda x, axis, keepdims: xp.argmax(x, axis=axis[0], keepdims=keepdims) * 0.5,
]  # fmt: skip
MOVED: list[Any] = [
    lambda x: xp.permute_dims(x, tuple(reversed(range(x.ndim)))), lambda x: x[..., ::-1],
    lambda x: x[..., :2], lambda x: xp.reshape(x, (-1,)),
    lambda x: xp.broadcast_to(x, (3, *x.shape)),
    lambda x: xp.sort(x, axis=0), lambda x: xp.cumulative_sum(x, axis=0), lambda x: x[::2] * 1.5,
    lambda x: xp.concat([x, x * 2], axis=0),
    lambda x: xp.take_along_axis(x, xp.argsort(x, axis=-1), axis=-1),
    lambda x: x.mT @ x if x.ndim == 2 else x, lambda x: x @ x.mT if x.ndim == 2 else x,
    lambda x: x @ xp.reshape(x, (-1, x.shape[-1]))[: x.shape[-1]].mT if x.ndim > 1 else x,
    lambda x: xp.reshape(x, (-1, x.shape[-2]))[:3] @ x if x.ndim > 1 else x,
]  # fmt: skip

BY_VECTORS: list[Any] = [
    lambda x, y: x @ y, lambda x, y: y.T @ x, lambda x, y: x[None] @ y,
    lambda x, y: y.T @ x[:, None],
]  # fmt: skip


def taken(fun: Any, *args: Any) -> tuple[Any, Any]:
    """What NumPy's calls give and what the code gives that follows them; None where none does."""
    graph = ft.make_graph(fun)(*args)
    run = build(graph)
    code = faster(run)
    serve = None if code is None else serving(code, True)
    assert code is None or serve is not None
    (first,) = run(*[x.data for x in args])
    return first, None if serve is None else serve(*args)


def same_bits(x: Any, y: Any) -> bool:
    """But for what a NaN holds."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    signs = np.signbit(x) == np.signbit(y) if x.dtype.kind == "f" else True
    return bool(np.all(((x == y) & signs) | ((x != x) & (y != y))))


@pytest.mark.skipif(not available(), reason="no LLVM here")
@pytest.mark.parametrize(
    "fun",
    [
        lambda x, m: xp.sum(x * x) / 16,
        lambda x, m: xp.log(xp.sum(xp.exp(x))),
        lambda x, m: x - xp.max(x) + 1,
        lambda x, m: x / xp.linalg.vector_norm(x) * 2,
        lambda x, m: xp.mean((x - 1) ** 2),
        lambda x, m: xp.sin(x) * x + 1,
        lambda x, m: xp.tanh(m @ m.mT + 1),
        lambda x, m: xp.tanh(m[:, None] @ m),
        lambda x, m: m @ xp.reshape(x, (2, 4, 2)) + 1,
        lambda x, m: xp.sum(m * m, axis=0) * xp.argmax(x),
        lambda x, m: xp.cumulative_sum(xp.sort(x)) + xp.var(m),
        lambda x, m: xp.sum(xp.reshape(x, (2, 4, 2)), axis=(0, 2)),
        lambda x, m: functional.sigmoid(x) * functional.gelu(x),
    ],
)
@pytest.mark.parametrize("dtype", [xp.float32, xp.float64])
def test_a_few_ops_are_one_call(fun: Any, dtype: Any) -> None:
    """Functions, reductions, products, with the bits of NumPy's calls."""
    rng = np.random.default_rng(0)
    x, m = (xp.asarray(rng.random(shape), dtype=dtype) for shape in (16, (4, 4)))
    first, later = taken(fun, x, m)
    assert later is not None
    assert same_bits(first, later.data)


@pytest.mark.skipif(not available(), reason="no LLVM here")
@pytest.mark.parametrize("dtype", [xp.float32, xp.float64])
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_stacks_have_the_sums_of_eager_calls(count: int, dtype: Any) -> None:
    """Of few terms a product for each matrix, of more one tall matrix."""
    rng = np.random.default_rng(count)
    for rows, terms, columns in itertools.product((1, 3, 4), (2, 4, 7, 16), (1, 4, 9)):
        x = xp.asarray(rng.random((count, rows, terms)), dtype=dtype)
        y = xp.asarray(rng.random((terms, columns)), dtype=dtype)
        first, later = taken(lambda x, y: x @ y * 2, x, y)
        assert later is not None
        assert same_bits(first, later.data), (rows, terms, columns)
        assert same_bits((x @ y * 2).data, later.data), (rows, terms, columns)


@pytest.mark.skipif(not available(), reason="no LLVM here")
@pytest.mark.parametrize("dtype", [xp.float32, xp.float64])
@pytest.mark.parametrize("turned", [False, True])
def test_products_by_vectors_have_the_sums_of_eager_calls(turned: bool, dtype: Any) -> None:
    """Around where eager execution goes from BLAS to loops of its own, and to several tasks."""
    rng = np.random.default_rng(0)
    for m, n in ((2, 40), (64, 64), (97, 95), (96, 96), (3, 4000), (300, 217), (257, 256)):
        x, y = (xp.asarray(rng.random(s), dtype=dtype) for s in (m, (n, m) if turned else (m, n)))
        for fun in BY_VECTORS:

            def twice(x: Any, y: Any, fun: Any = fun) -> Any:
                return fun(x, y.T if turned else y) * 2

            first, later = taken(twice, x, y)
            assert later is not None or m * n > 1 << 16
            assert same_bits(twice(x, y).data, first)
            assert later is None or same_bits(first, later.data), (m, n)


@pytest.mark.skipif(not available(), reason="no LLVM here")
@pytest.mark.parametrize("draw", ["uniform", "normal", "gumbel", "exponential", "gamma", "split"])
@pytest.mark.parametrize("dtype", [xp.float32, xp.float64])
def test_draws_are_part_of_it(draw: str, dtype: Any) -> None:
    """They have the same bits however a function is run, and so has what follows from them."""

    def drawn(key: Any) -> Any:
        if draw == "split":
            return ft.random.uniform(ft.random.split(key, 3)[1], (4,), dtype) * 2
        given = (xp.asarray(2.5, dtype=dtype), (5, 3)) if draw == "gamma" else ((5, 3), dtype)
        return xp.sum(getattr(ft.random, draw)(key, *given), axis=0) * 2

    for seed in range(3):
        first, later = taken(drawn, ft.random.key(seed))
        assert later is not None
        assert same_bits(first, later.data)


@settings(max_examples=5 * settings.default.max_examples)
@given(st.data())
def test_code_has_the_bits_of_numpys_calls(data: st.DataObject) -> None:
    """Whatever the ops, the shapes and the numbers, and however arrays lie on the way."""
    lengths = st.sampled_from((1, 2, 3, 8, 9, 17, 130))
    shape = tuple(data.draw(st.lists(lengths, min_size=1, max_size=3)))
    if np.prod(shape) > 3000:
        shape = shape[:2]
    kinds = (FUNCTIONS, PAIRED, REDUCED, MOVED)
    steps = [
        (k := data.draw(st.sampled_from((0, 1, 2, 2, 3))), data.draw(st.sampled_from(kinds[k])))
        for _ in range(data.draw(st.integers(1, 4)))
    ]
    first, second = (data.draw(st.integers(0, 7)) for _ in range(2))
    keepdims = data.draw(st.booleans())

    def fun(x: Any, y: Any) -> Any:
        for kind, op in steps:
            if kind == 1:
                x = op(x, y) if x.shape == y.shape else op(x, x)
            elif kind == 2:
                axes = tuple(sorted({first % x.ndim, second % x.ndim})) if x.ndim else ()
                x = op(x, axis=axes, keepdims=keepdims) if axes else x
            elif x.ndim or kind == 0:
                x = op(x)
        return x * 1

    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    dtype = data.draw(st.sampled_from((np.float32, np.float64)))
    x, y = (rng.normal(size=shape).astype(dtype) * 3 for _ in range(2))
    x.flat[-1] = data.draw(st.sampled_from((1.0, 0.0, -0.0, np.inf, -np.inf, np.nan, 3e38)))
    with np.errstate(all="ignore"):
        first_, later = taken(fun, xp.asarray(x), xp.asarray(y))
    assert later is None or same_bits(first_, later.data)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [-2, -1, -0.5, 0.5, 1, 2, 3, 4])
def test_powers_that_are_products_and_roots_are_one_number(power: float, dtype: Any) -> None:
    """Eagerly, in code that follows NumPy's calls, and in loops; infinities change no other bit."""
    x = np.abs(np.random.default_rng(0).normal(size=40)).astype(dtype)
    root = np.sqrt(x)
    exact = {0.5: root, -0.5: 1 / root, 2: x * x, -1: 1 / x, 1: x}
    for special in (1.0, 0.0, -0.0, -2.0, np.inf, -np.inf, np.nan):
        y = np.append(x, dtype(special))
        with np.errstate(all="ignore"):
            eager = xp.asarray(y) ** power
            _, later = taken(lambda x: x**power + 0, xp.asarray(y))
            looped = ft.jit(lambda x: x**power, mode="reduce-overhead")(xp.asarray(y))
        assert same_bits(eager.data, looped.data)
        assert later is None or same_bits(eager.data + dtype(0), later.data)
        assert power not in exact or same_bits(eager.data[:-1], exact[power])
        if special == -np.inf and abs(power) == 0.5:
            assert eager[-1] == (np.inf if power > 0 else 0)
