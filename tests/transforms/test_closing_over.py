"""Functions that stay functions under transforms may close over values of the transforms around
them: they are the values that they would be without the call, or the error says so.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import FunctError, TransformError
from funct.graph import leaf
from tests import laws

Fun = Callable[..., Any]
X = xp.asarray([0.7, -1.2, 0.4])
Y = xp.asarray([1.1, 0.3, -0.6])


def _jvp_rule(f: Fun) -> Fun:
    g = ft.custom_jvp(f)
    g.defjvp(lambda primals, tangents: ft.jvp(f, primals, tangents))
    return g


def _vjp_rule(f: Fun) -> Fun:
    g = ft.custom_vjp(f)
    g.defvjp(lambda *xs: (f(*xs), xs), lambda xs, ct: ft.vjp(f, *xs)[1](ct))
    return g


def _vmap_rule(f: Fun) -> Fun:
    g = ft.custom_vmap(f)
    g.def_vmap(
        lambda size, batched, *xs: (ft.vmap(f, tuple([0 if b else None for b in batched]))(*xs), 1)
    )
    return g


CALLS: dict[str, Fun] = {
    "leaf": leaf, "custom_jvp": _jvp_rule, "custom_vjp": _vjp_rule, "custom_vmap": _vmap_rule,
    "jit": ft.jit, "checkpoint": ft.checkpoint,
}  # fmt: skip
TRANSFORMS: dict[str, Fun] = {
    "jit": ft.jit,
    "vmap": ft.vmap,
    "grad": lambda f: ft.grad(lambda x: xp.sum(f(x))),
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (xp.ones_like(x),))[1],
    "watch": ft.detect_anomaly,
}
PAIRS = [  # each call under each transform is quick once
    pytest.param(call, names, marks=[] if (k + j) % len(TRANSFORMS) == 0 else pytest.mark.slow)
    for j, call in enumerate(CALLS)
    for k, names in enumerate(itertools.product(TRANSFORMS, repeat=2))
]


def _agrees(call: str, wrapped: Fun, plain: Fun, *args: Any) -> None:
    try:
        found = wrapped(*args)
    except FunctError:
        assert call.startswith("custom"), "there are no rules that could not know of it"
        return
    assert type(found) is type(X)
    laws.close(found, plain(*args), 1e-12, 1e-12)


@pytest.mark.parametrize(("call", "names"), PAIRS)
def test_values_of_one_transform(call: str, names: tuple[str, str]) -> None:
    """Under every nest of two, also where an operand is the value that is closed over."""

    def fun(wrap: Fun, same: bool) -> Fun:
        def run(x: Any) -> Any:
            y = xp.sin(x) * 3.0
            out = wrap(lambda v: v * y + xp.cos(y))(y if same else x)
            return out * (2.0 if xp.all(out * 0.0 == 0.0) else 3.0)

        for name in names:
            run = TRANSFORMS[name](run)
        return run

    x = xp.stack([X, X * 2.0]) if names == ("vmap", "vmap") else X
    for same in (False, True):
        _agrees(call, fun(CALLS[call], same), fun(lambda f: f, same), x)


@pytest.mark.parametrize(("call", "names"), PAIRS)
def test_values_of_another_transform(call: str, names: tuple[str, str]) -> None:
    """The operand belongs to one transform, what is closed over to one inside or outside of it."""
    outer, inner = [TRANSFORMS[name] for name in names]

    def fun(wrap: Fun, swapped: bool) -> Fun:
        def run(x: Any) -> Any:
            def within(y: Any) -> Any:
                v, w = (y, x) if swapped else (x, y)
                return wrap(lambda u: xp.sin(u * w) + u)(v)

            return xp.sum(inner(within)(Y)) + x

        whole: Fun = outer(run)
        return whole

    for swapped in (False, True):
        _agrees(call, fun(CALLS[call], swapped), fun(lambda f: f, swapped), X)


@pytest.mark.parametrize("call", ["custom_jvp", "custom_vjp"])
def test_batched_values_are_lanes_of_a_function_with_rules(call: str) -> None:
    """Its rules run on the same lanes, those that a decision has parted included."""

    def fun(wrap: Fun) -> Fun:
        def run(x: Any, y: Any) -> Any:
            def inner(v: Any) -> Any:
                return v * y if v > y else v + 2.0 * y

            return ft.value_and_grad(wrap(inner))(x)

        return ft.vmap(run)

    laws.close(fun(CALLS[call])(X, Y), fun(lambda f: f)(X, Y), 1e-12, 1e-12)


@pytest.mark.parametrize("call", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("name", ["grad", "jvp"])
def test_rules_do_not_know_of_what_is_closed_over(call: str, name: str) -> None:
    """The error says which function and which transform."""
    fun = TRANSFORMS[name](lambda x: CALLS[call](lambda v: v * x)(x))
    with pytest.raises(TransformError, match=f"closes over a value of {name}, and its rules") as e:
        fun(X)
    assert e.value.fix == "pass the value as an argument"


def test_calls_in_graphs_run_at_other_values() -> None:
    """A graph that is run again computes with what it is given, not with what the function saw."""

    def fun(x: Any) -> Any:
        y = x * 3.0
        return leaf(lambda v: v * y)(y), _vmap_rule(lambda v: v + y)(y)

    graph = ft.make_graph(fun)(X)
    again = ft.make_graph(graph)(Y)
    for g in (graph, again):
        laws.same(g(Y), fun(Y))
    assert np.array_equal(ft.jit(ft.jit(fun))(Y)[0], fun(Y)[0])
