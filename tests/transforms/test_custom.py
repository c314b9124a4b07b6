"""custom_jvp and custom_vjp, alone and together, under every transform."""

import math
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import TransformError, TreeError
from tests import laws
from tests.transforms.test_grad import arr


def marked() -> tuple[Any, Any, Any]:
    """sin with derivative rules that are told apart by a factor: 2 for push, 3 for pull."""

    @ft.custom_jvp
    def by_push(x: Any) -> Any:
        return xp.sin(x)

    by_push.defjvp(lambda p, t: (xp.sin(p[0]), 2.0 * xp.cos(p[0]) * t[0]))

    @ft.custom_vjp
    def by_pull(x: Any) -> Any:
        return xp.sin(x)

    by_pull.defvjp(lambda x: (xp.sin(x), x), lambda x, ct: (3.0 * xp.cos(x) * ct,))

    @ft.custom_vjp
    def by_both(x: Any) -> Any:
        return xp.sin(x)

    by_both.defvjp(lambda x: (xp.sin(x), x), lambda x, ct: (3.0 * xp.cos(x) * ct,))
    by_both.defjvp(lambda p, t: (xp.sin(p[0]), 2.0 * xp.cos(p[0]) * t[0]))
    return by_push, by_pull, by_both


X = 0.4


@pytest.mark.parametrize(
    "wrap", [lambda f: f, ft.jit, lambda f: ft.jit(ft.jit(f))], ids=["eager", "jit", "jit2"]
)
def test_each_mode_takes_its_rule_or_derives_it(wrap: Any) -> None:
    """A missing mode is derived from the one given; with both, each mode takes its own."""
    by_push, by_pull, by_both = (wrap(f) for f in marked())
    x, t, c = arr(X), arr(1.0), np.cos(X)

    def push(f: Any) -> float:
        return float(ft.jvp(f, (x,), (t,))[1])

    def pull(f: Any) -> float:
        return float(ft.grad(f)(x))

    np.testing.assert_allclose([push(by_push), pull(by_push)], [2 * c, 2 * c])
    np.testing.assert_allclose([push(by_pull), pull(by_pull)], [3 * c, 3 * c])
    np.testing.assert_allclose([push(by_both), pull(by_both)], [2 * c, 3 * c])
    for f in (by_push, by_pull, by_both):
        assert float(f(x)) == float(xp.sin(x))


@pytest.mark.parametrize("which", [0, 1], ids=["push", "pull"])
def test_rules_survive_vmap_jit_and_order(which: int) -> None:
    """The factor shows under vmap, jit, both, and in second derivatives."""
    f = marked()[which]
    k = (2.0, 3.0)[which]
    xs = arr([0.1, 0.2, 0.3])
    expected = k * np.cos(np.asarray(xs))
    one = ft.grad(f)
    for g in (
        ft.vmap(one),
        ft.jit(ft.vmap(one)),
        ft.vmap(ft.jit(one)),
        ft.vmap(ft.grad(ft.jit(f))),
    ):
        np.testing.assert_allclose(np.asarray(g(xs)), expected)
    total = ft.grad(lambda x: xp.sum(ft.vmap(f)(x)))
    np.testing.assert_allclose(np.asarray(total(xs)), expected)
    np.testing.assert_allclose(np.asarray(ft.jit(total)(xs)), expected)
    second = ft.grad(ft.grad(f))
    first_of_rule = ft.grad(lambda x: k * xp.cos(x))
    np.testing.assert_allclose(float(second(arr(X))), float(first_of_rule(arr(X))))
    tangent = ft.jvp(ft.vmap(f), (xs,), (xs,))[1]
    np.testing.assert_allclose(np.asarray(tangent), expected * np.asarray(xs))


def test_clipping_gradients_leaves_other_uses_alone() -> None:
    """An identity with a rule changes the derivative through itself only."""

    @ft.custom_vjp
    def clip(x: Any) -> Any:
        return x

    clip.defvjp(lambda x: (x, None), lambda _, ct: (xp.clip(ct, -1.0, 1.0),))

    def f(x: Any) -> Any:
        return clip(x) * 5.0 + x * x

    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)), ft.jit(ft.grad(ft.jit(f)))):
        assert float(g(arr(3.0))) == 7.0


def test_trees_static_arguments_and_none() -> None:
    """Arguments and results are trees; nondiff_argnums come first; None is a zero cotangent."""

    def power(p: Any, n: int, scale: Any) -> Any:
        return {"y": p["x"] ** n * scale}

    f = ft.custom_vjp(power, nondiff_argnums=(1,))
    f.defvjp(
        lambda p, n, scale: (power(p, n, scale), (p, scale)),
        lambda n, res, ct: ({"x": ct["y"] * n * res[0]["x"] ** (n - 1) * res[1]}, None),
    )
    gp, gs = ft.grad(lambda p, s: f(p, 3, s)["y"], (0, 1))({"x": arr(2.0)}, arr(10.0))
    assert float(gp["x"]) == 120.0
    assert float(gs) == 0.0
    np.testing.assert_allclose(
        float(ft.vmap(lambda x: f({"x": x}, 2, arr(1.0))["y"])(arr([3.0]))[0]), 9.0
    )


def test_none_stands_for_the_zeros_of_a_subtree() -> None:
    """At any depth of what bwd returns; a tree of another kind is refused."""

    @ft.custom_vjp
    def f(p: Any) -> Any:
        return xp.sum(p["a"] * p["b"][0] + p["b"][1])

    x = arr([1.0, 2.0])
    tree = {"a": x, "b": (x, x), "c": None}
    for given, want in (
        ({"a": x, "b": None, "c": None}, (1, 0, 0)),
        ({"a": None, "b": (None, x), "c": None}, (0, 0, 1)),
        (None, (0, 0, 0)),
        ({"a": x, "b": (x, None), "c": None}, (1, 1, 0)),
    ):
        f.defvjp(lambda p: (f(p), None), lambda _, ct, given=given: (given,))
        for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
            for leaf, k in zip(ft.tree.leaves(g(tree)), want, strict=True):
                laws.close(leaf, k * x)
    for wrong in ((x, x), {"a": x, "b": x, "c": None}, {"a": x, "d": None, "c": None}):
        f.defvjp(lambda p: (f(p), None), lambda _, ct, wrong=wrong: (wrong,))
        with pytest.raises(TreeError, match="bwd of f"):
            ft.grad(f)(tree)


def test_shared_operands_under_vmap_sum_their_cotangents() -> None:
    """An operand without a batch axis gets the sum over lanes."""
    f = ft.custom_vjp(lambda w, x: xp.sum(w * x))
    f.defvjp(lambda w, x: (xp.sum(w * x), (w, x)), lambda r, ct: (ct * r[1], ct * r[0]))
    w, xs = arr([1.0, 2.0]), xp.asarray(np.arange(6.0).reshape(3, 2))
    total = ft.grad(lambda w: xp.sum(ft.vmap(f, (None, 0))(w, xs)))
    laws.close(total(w), xp.sum(xs, axis=0))
    laws.close(ft.jit(total)(w), xp.sum(xs, axis=0))


def test_rules_that_are_wrong_are_named() -> None:
    """A rule with the wrong number of results, or none at all, is an error with its name."""

    @ft.custom_vjp
    def f(x: Any) -> Any:
        return x

    with pytest.raises(TransformError, match="custom_vjp: f has no derivative rule yet"):
        f(arr(1.0))
    f.defvjp(lambda x: (x, None), lambda _, ct: (ct, ct))
    with pytest.raises(TransformError, match="bwd of f must return a tuple of 1 cotangents"):
        ft.grad(f)(arr(1.0))
    f.defvjp(lambda x: x, lambda _, ct: (ct,))
    with pytest.raises(TransformError, match=r"fwd of f must return \(out, residuals\)"):
        ft.grad(f)(arr(1.0))
    f.defvjp(lambda x: (x, None), lambda _, ct: (xp.ones(3),))
    with pytest.raises(
        ValueError, match=r"cotangent 0 must have its operand's shape \(\), got \(3,\)"
    ):
        ft.grad(f)(arr(1.0))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_complex_results_take_the_same_cotangents(wrap: Any, rng: np.random.Generator) -> None:
    """A rule of a function with complex results sees and gives the cotangents that vjp gives."""

    def plain(z: Any) -> Any:
        return xp.exp(z) * 2j, xp.real(z * z)

    @ft.custom_vjp
    def by_pull(z: Any) -> Any:
        return plain(z)

    by_pull.defvjp(lambda z: (plain(z), z), lambda z, cts: ft.vjp(plain, z)[1](cts))

    @ft.custom_jvp
    def by_push(z: Any) -> Any:
        return plain(z)

    by_push.defjvp(lambda p, t: ft.jvp(plain, p, t))
    z = xp.asarray([0.3 - 0.4j, 1.0 + 0.5j])
    cts = tuple([laws.noise(rng, o) for o in plain(z)])
    expected = ft.vjp(plain, z)[1](cts)
    for f in (plain, by_pull, by_push):
        laws.close(ft.vjp(wrap(f), z)[1](cts), expected)
        alike = laws.rounded_alike if wrap is ft.jit else laws.same
        laws.check_derivatives(wrap(f), [z], rng, alike=alike)


def test_the_value_of_a_forward_rule_is_the_value_in_every_mode() -> None:
    """A rule may compute the value otherwise, with fewer overflows say; alone the function does.

    Source: `jax.custom_jvp`, which gives 5 and 7 at each of these places.
    """

    @ft.custom_jvp
    def f(x: Any) -> Any:
        return xp.sin(x)

    f.defjvp(lambda p, t: (p[0] * 5.0, t[0] * 7.0))
    x = xp.asarray(1.0)
    pull = ft.vjp(f, x)
    both = [
        ft.jvp(f, (x,), (x,)), ft.value_and_grad(f)(x), (pull[0], pull[1](x)[0]),
        ft.jit(ft.value_and_grad(f))(x), ft.value_and_grad(ft.jit(f))(x),
        [v[0] for v in ft.vmap(ft.value_and_grad(f))(xp.ones(1))],
        ft.value_and_grad(lambda x: ft.vmap(f)(x[None])[0])(x),
        ft.value_and_grad(lambda x: ft.scan(lambda c, _: (f(c), None), x, None, 1)[0])(x),
        ft.jit(ft.value_and_grad(lambda x: ft.cond(x > 0.0, f, xp.sin, x)))(x),
        ft.value_and_grad(lambda x: ft.jvp(f, (x,), (x * 0.0,))[0] * 1.4)(x),
    ]  # fmt: skip
    assert [float(v) for v, _ in both] == [5.0] * 9 + [7.0]
    assert [float(g) for _, g in both] == [7.0] * 10
    assert float(f(x)) == float(ft.jit(f)(x)) == float(xp.sin(x))


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("inner", [ft.grad, ft.jacfwd])
@pytest.mark.parametrize("outer", [ft.grad, ft.jacfwd])
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, ft.checkpoint])
def test_the_value_of_a_rule_is_differentiated_as_it_is_written(
    wrap: Any, outer: Any, inner: Any, again: bool
) -> None:
    """Through the function where the rule calls it again, else not, in every order of modes.

    Source: `jax.custom_jvp`.
    """

    @ft.custom_jvp
    def f(x: Any) -> Any:
        return xp.sin(x)

    f.defjvp(lambda p, t: (f(*p) if again else xp.sin(*p), 2.0 * xp.cos(p[0]) * t[0]))
    looped = lambda x: ft.fori_loop(0, 1, lambda _, c: f(c), x)  # noqa: E731
    x = xp.asarray(0.5)
    s, c = math.sin(0.5), math.cos(0.5)
    expected = math.exp(s) * (2.0 * c * (2.0 * c if again else c) - 2.0 * s)
    for inside in (f, wrap(f), looped, wrap(looped)):
        g = wrap(lambda x, inside=inside: xp.exp(inside(x)))
        laws.close(wrap(outer(wrap(inner(g))))(x), xp.asarray(expected), 1e-14, 1e-14)
        laws.close(ft.vmap(outer(inner(g)))(x[None]), xp.asarray([expected]), 1e-14, 1e-14)
