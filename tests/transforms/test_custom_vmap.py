"""custom_vmap: the rule runs under vmap, wherever derivatives and jit stand around it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ShapeError, TransformError, TreeError
from tests import laws

Fun = Callable[..., Any]

X = np.asarray([0.3, 0.7, 1.1])


def marked() -> Any:
    """sin, whose batching rule computes three times as much."""

    @ft.custom_vmap
    def f(x: Any) -> Any:
        return xp.sin(x)

    f.def_vmap(lambda size, flags, x: (3.0 * xp.sin(x), flags[0]))
    return f


def values(x: Any) -> Any:
    return np.asarray(x)


wraps = pytest.mark.parametrize(
    "wrap",
    [lambda f: f, ft.jit, lambda f: ft.jit(ft.jit(f)), ft.checkpoint],
    ids=["eager", "jit", "jit2", "checkpoint"],
)


@wraps
def test_the_rule_runs_under_vmap_alone(wrap: Any) -> None:
    """Outside of vmap it is the function, inside the rule: with any jit in between or around."""
    f = wrap(marked())
    x = xp.asarray(X)
    assert float(f(x[0])) == np.sin(X[0])
    np.testing.assert_allclose(values(ft.vmap(f)(x)), 3 * np.sin(X))
    np.testing.assert_allclose(values(wrap(ft.vmap(f))(x)), 3 * np.sin(X))
    np.testing.assert_allclose(values(ft.vmap(lambda v: f(v) + v)(x)), 3 * np.sin(X) + X)
    np.testing.assert_allclose(values(ft.vmap(lambda v: f(x) * v)(x))[0], X[0] * np.sin(X))


@wraps
def test_derivatives_are_those_of_the_rule(wrap: Any) -> None:
    """In both modes, of every order, on both sides of vmap; without vmap those of the function."""
    f = wrap(marked())
    x, one = xp.asarray(X), xp.ones(3)
    sin, cos = 3 * np.sin(X), 3 * np.cos(X)

    def total(x: Any) -> Any:
        return xp.sum(ft.vmap(f)(x))

    def push(v: Any) -> Any:
        return ft.jvp(f, (v,), (xp.asarray(1.0),))[1]

    assert float(ft.grad(f)(x[0])) == np.cos(X[0])
    np.testing.assert_allclose(values(wrap(ft.grad(total))(x)), cos)
    np.testing.assert_allclose(values(ft.jvp(ft.vmap(f), (x,), (one,))[1]), cos)
    np.testing.assert_allclose(values(ft.vmap(ft.grad(f))(x)), cos)
    np.testing.assert_allclose(values(ft.vmap(push)(x)), cos)
    for second in (
        ft.vmap(ft.grad(ft.grad(f))),
        ft.vmap(ft.grad(push)),
        ft.vmap(lambda v: ft.jvp(ft.grad(f), (v,), (xp.asarray(1.0),))[1]),
        ft.grad(lambda x: xp.sum(ft.vmap(ft.grad(f))(x))),
        lambda x: ft.jvp(ft.vmap(ft.grad(f)), (x,), (one,))[1],
    ):
        np.testing.assert_allclose(values(second(x)), -sin)
        np.testing.assert_allclose(values(ft.jit(second)(x)), -sin)
    value, slope = ft.vmap(ft.value_and_grad(f))(x)
    np.testing.assert_allclose(values(value), sin)
    np.testing.assert_allclose(values(slope), cos)


def test_nested_vmap_batches_the_rule() -> None:
    """The inner vmap calls the rule; the outer one batches what the rule does."""
    f = marked()
    x = xp.asarray(np.stack([X, 2 * X]))
    expected = 3 * np.sin(values(x))
    np.testing.assert_allclose(values(ft.vmap(ft.vmap(f))(x)), expected)
    np.testing.assert_allclose(values(ft.vmap(ft.vmap(f, 1), 0)(x.T[None])[0]), expected)
    slopes = ft.vmap(ft.vmap(ft.grad(f)))(x)
    np.testing.assert_allclose(values(slopes), 3 * np.cos(values(x)))


def test_what_the_rule_sees() -> None:
    """The size, which arguments are batched, and the batch on axis 0, as in JAX."""
    seen: list[Any] = []

    @ft.custom_vmap
    def f(x: Any, p: Any, y: Any) -> Any:
        return {"a": x + p["k"], "b": y}

    @f.def_vmap
    def rule(size: int, flags: Any, x: Any, p: Any, y: Any) -> Any:
        seen.append((size, flags, x.shape, p["k"].shape, y.shape))
        return {"a": x + (p["k"][:, None] if flags[1]["k"] else p["k"]), "b": y}, {
            "a": flags[0] or flags[1]["k"],
            "b": flags[2],
        }  # fmt: skip

    x, k, y = xp.ones((2, 3)), xp.asarray([1.0, 2.0, 3.0]), xp.ones(4)
    out = ft.vmap(f, (1, {"k": 0}, None), out_axes={"a": 1, "b": 0})(x, {"k": k}, y)
    assert seen == [(3, [True, {"k": True}, False], (3, 2), (3,), (4,))]
    assert out["a"].shape == (2, 3)
    np.testing.assert_array_equal(values(out["a"])[0], [2.0, 3.0, 4.0])
    assert out["b"].shape == (3, 4)
    ft.vmap(f, (None, None, 0))(xp.ones(3), {"k": xp.asarray(1.0)}, y)
    assert seen[1] == (4, [False, {"k": False}, True], (3,), (), (4,))
    assert float(f(1.0, p={"k": 2.0}, y=1.0)["a"]) == 3.0  # by name, as in JAX


def test_shared_operands_get_the_sum_of_the_lanes() -> None:
    """An operand without a batch: its cotangent is summed, on both sides of vmap."""
    shapes: list[Any] = []

    @ft.custom_vmap
    def dot(w: Any, x: Any) -> Any:
        return xp.sum(w * x)

    @dot.def_vmap
    def rule(size: int, flags: Any, w: Any, x: Any) -> Any:
        shapes.append(w.shape)
        return xp.sum(w * x, axis=-1), True

    rng = np.random.default_rng(0)
    w, xs = xp.asarray(rng.normal(size=2)), xp.asarray(rng.normal(size=(3, 2)))
    total = ft.grad(lambda w: xp.sum(xp.sin(ft.vmap(dot, (None, 0))(w, xs))))
    plain = ft.grad(lambda w: xp.sum(xp.sin(xs @ w)))
    laws.close(total(w), plain(w))
    laws.close(ft.jit(total)(w), plain(w))
    assert (2,) in shapes  # the rule saw it without a batch
    each = ft.vmap(ft.grad(lambda w, x: xp.sin(dot(w, x))), (None, 0))
    laws.close(each(w, xs), ft.vmap(ft.grad(lambda w, x: xp.sin(xp.sum(w * x))), (None, 0))(w, xs))
    pull = ft.vjp(lambda w: dot(w, xs[0]), w)[1]
    laws.close(ft.vmap(pull)(xp.ones(3))[0], xp.stack([xs[0]] * 3))


def test_integers_and_complex_numbers_pass() -> None:
    """An integer operand has no derivative; a complex one has that of the function."""

    @ft.custom_vmap
    def f(x: Any, n: Any) -> Any:
        return xp.exp(x) * n, n + 1

    f.def_vmap(lambda size, flags, x, n: ((xp.exp(x) * n, n + 1), (True, flags[1])))
    z = xp.asarray([0.3 + 0.2j, -0.1j])
    n = xp.asarray([2, 3])

    def real(f: Fun) -> Fun:
        return lambda x, n: xp.real(f(x, n)[0])

    def plain(x: Any, n: Any) -> Any:
        return xp.exp(x) * n, n + 1

    laws.close(ft.vmap(f)(z, n), ft.vmap(plain)(z, n))
    for convention in ("torch", "jax"):
        with ft.config.using(complex_convention=convention):
            laws.close(ft.vmap(ft.grad(real(f)))(z, n), ft.vmap(ft.grad(real(plain)))(z, n))
    t = xp.ones(2) * 1j

    def along(f: Fun) -> Fun:
        return lambda x, n, t: ft.jvp(lambda v: f(v, n)[0], (x,), (t,))

    laws.close(ft.vmap(along(f))(z, n, t), ft.vmap(along(plain))(z, n, t))


@pytest.mark.parametrize("stacked", [True, False], ids=["decorators", "methods"])
@wraps
def test_one_function_with_all_rules(wrap: Any, stacked: bool) -> None:
    """Push, pull and batching rule, told apart by factors 2, 3 and 5: each is used for its own."""

    def sin(x: Any) -> Any:
        return xp.sin(x)

    f: Any
    if stacked:
        f = batching = ft.custom_vmap(sin)
        f = pulling = ft.custom_vjp(f)
        f = ft.custom_jvp(f)
    else:
        f = batching = pulling = ft.custom_vmap(sin)
    f.defjvp(lambda p, t: (f(*p), 2.0 * xp.cos(p[0]) * t[0]))
    pulling.defvjp(lambda x: (f(x), x), lambda x, ct: (3.0 * xp.cos(x) * ct,))
    batching.def_vmap(lambda size, flags, x: (5.0 * xp.sin(x), True))
    g = wrap(f)
    x, one = xp.asarray(X), xp.ones(3)
    sin_, cos = np.sin(X), np.cos(X)
    assert float(g(x[0])) == sin_[0]
    assert float(ft.grad(g)(x[0])) == 3 * cos[0]
    assert float(ft.jvp(g, (x[0],), (one[0],))[1]) == 2 * cos[0]
    np.testing.assert_allclose(values(ft.vmap(g)(x)), 5 * sin_)
    for slopes in (ft.vmap(ft.grad(g)), ft.grad(lambda x: xp.sum(ft.vmap(g)(x)))):
        np.testing.assert_allclose(values(slopes(x)), 3 * cos)
        np.testing.assert_allclose(values(ft.jit(slopes)(x)), 3 * cos)
    value, tangent = ft.jvp(ft.vmap(g), (x,), (one,))
    np.testing.assert_allclose(values(value), 5 * sin_)
    np.testing.assert_allclose(values(tangent), 2 * cos)
    value, slope = ft.vmap(ft.value_and_grad(g))(x)
    np.testing.assert_allclose(values(value), 5 * sin_)
    np.testing.assert_allclose(values(slope), 3 * cos)


def test_other_transforms() -> None:
    """jet, linearize, sparse_jacobian, scan and cond see the function; inside of vmap the rule."""
    f = marked()
    x, one, zero = xp.asarray(X), xp.ones(3), xp.zeros(3)
    _, (first, second) = ft.jet(f, (x,), ([one, zero],))
    np.testing.assert_allclose(values(first), np.cos(X))
    np.testing.assert_allclose(values(second), -np.sin(X))
    np.testing.assert_allclose(ft.sparse_jacobian(f)(x).toarray(), np.diag(np.cos(X)))
    batched = ft.sparse_jacobian(ft.vmap(f))(x)
    np.testing.assert_allclose(batched.toarray(), np.diag(3 * np.cos(X)))
    np.testing.assert_allclose(values(ft.linearize(f, x)[1](one)), np.cos(X))
    scanned = ft.jit(lambda x: ft.scan(lambda c, v: (c, f(v)), 0.0, x)[1])
    np.testing.assert_allclose(values(scanned(x)), np.sin(X))
    lanes = ft.vmap(scanned)(x[:, None])
    np.testing.assert_allclose(values(lanes)[:, 0], 3 * np.sin(X))
    branch = ft.vmap(lambda v: ft.cond(v > 0.5, f, lambda v: v, v))
    np.testing.assert_allclose(values(branch(x)), [X[0], *(3 * np.sin(X[1:]))])
    python = ft.vmap(lambda v: f(v) if v > 0.5 else v)
    np.testing.assert_allclose(values(python(x)), [X[0], *(3 * np.sin(X[1:]))])
    chunks = ft.vmap(f, chunk_size=2)
    np.testing.assert_allclose(values(chunks(x)), 3 * np.sin(X))


def test_rules_that_are_wrong_are_named() -> None:
    """No rule, or one whose result does not fit, is an error with the function's name."""

    @ft.custom_vmap
    def f(x: Any) -> Any:
        return x * 2.0

    x = xp.ones(3)
    assert float(f(1.0)) == 2.0
    with pytest.raises(TransformError, match="custom_vmap: f has no batching rule yet"):
        ft.vmap(f)(x)
    f.def_vmap(lambda size, flags, x: x)
    with pytest.raises(TransformError, match=r"rule of f must return \(out, out_batched\)"):
        ft.vmap(f)(x)
    f.def_vmap(lambda size, flags, x: (x, {"a": True}))
    with pytest.raises(TreeError, match="out_batched of f must be a prefix of out"):
        ft.vmap(f)(x)
    f.def_vmap(lambda size, flags, x: (xp.sum(x), True))
    with pytest.raises(ShapeError, match=r"results with 3 lanes on axis 0 .*, got shape \(\)"):
        ft.vmap(f)(x)
    f.def_vmap(lambda size, flags, x: (xp.sum(x), False))
    assert ft.vmap(f)(x).tolist() == [3.0, 3.0, 3.0]

    @ft.custom_vmap
    def named(x: Any, *, scale: float) -> Any:
        return x * scale

    with pytest.raises(TransformError, match="named takes scale by name alone"):
        named(x, scale=2.0)
