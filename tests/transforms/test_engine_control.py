"""The engine's mechanisms on branches and loops, in plain Python and as nodes of a graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import AnomalyError
from tests import laws
from tests.transforms.test_grad import arr

X = arr([1.0, 2.0, 3.0])


def looped(xs: Any) -> Any:
    """A scan whose derivative is infinite at 0."""

    def step(c: Any, x: Any) -> Any:
        c = c * 0.5 + xp.sqrt(x)  # inside the scan
        return c, c

    return xp.sum(ft.scan(step, xp.asarray(0.0), xs)[1])


def chosen(xs: Any) -> Any:
    """A branch whose derivative is infinite at 0."""
    return xp.sum(ft.cond(xs[0] > 0.0, xp.sqrt, xp.sin, xs))  # inside the branch


def repeated(xs: Any) -> Any:
    """A while loop whose derivative is infinite at 0."""

    def body(c: Any) -> Any:
        return c[0] + 1, xp.sqrt(c[1])  # inside the loop

    return xp.sum(ft.while_loop(lambda c: c[0] < 2, body, (xp.asarray(0), xs))[1])


FUNCTIONS = {"scan": looped, "branch": chosen, "loop": repeated}
NESTINGS: dict[str, Callable[[Any], Any]] = {
    "d-grad": lambda f: ft.detect_anomaly(ft.grad(f)),
    "grad-d": lambda f: ft.grad(ft.detect_anomaly(f)),
    "d-jit-grad": lambda f: ft.detect_anomaly(ft.jit(ft.grad(f))),
    "jit-grad-d": lambda f: ft.jit(ft.grad(ft.detect_anomaly(f))),
    "grad-d-jit": lambda f: ft.grad(ft.detect_anomaly(ft.jit(f))),
    "d-grad-jit": lambda f: ft.detect_anomaly(ft.grad(ft.jit(f))),
}


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_anomalies_inside_are_located(name: str, nesting: str) -> None:
    """The op inside of the body is named and its line quoted, compiled or not."""
    f, wrap = FUNCTIONS[name], NESTINGS[nesting]
    laws.close(wrap(f)(X), ft.grad(f)(X))
    with pytest.raises(AnomalyError) as caught, np.errstate(all="ignore"):
        wrap(f)(arr([1.0, 0.0, 2.0]))
    assert (caught.value.op, caught.value.phase) == ("sqrt", "backward")
    assert f"inside the {name}" in str(caught.value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rules_see_the_inside(name: str) -> None:
    """An interceptor sees, and replaces, what a compiled branch or loop does."""
    f = FUNCTIONS[name]
    seen: list[str] = []

    def rule(prim: Any, operands: Any, params: Any) -> Any:
        seen.append(prim.name)
        return xp.square(*operands) if prim.name == "sqrt" else NotImplemented

    plain = ft.intercept(f, rule)(X)
    assert "sqrt" in seen
    seen.clear()
    laws.close(ft.intercept(ft.jit(f), rule)(X), plain)
    assert "sqrt" in seen
    laws.close(ft.jit(ft.intercept(f, rule))(X), plain)
    laws.close(ft.grad(ft.intercept(ft.jit(f), rule))(X), ft.grad(ft.intercept(f, rule))(X))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hooks_and_saved_values_in_loops(name: str) -> None:
    """Offloading and hooks around control flow change what they should and nothing else."""
    f = FUNCTIONS[name]
    expected = ft.grad(f)(X)
    for wrap in (lambda g: g, ft.jit):
        laws.close(wrap(ft.grad(ft.offload("cpu")(f)))(X), expected)
        laws.close(ft.grad(wrap(ft.offload("cpu")(f)))(X), expected)
        doubled = lambda x: f(ft.hook(x, backward=lambda g: 2.0 * g))  # noqa: E731
        laws.close(wrap(ft.grad(doubled))(X), 2.0 * expected)
        laws.close(ft.grad(wrap(doubled))(X), 2.0 * expected)


def test_a_hook_inside_a_loop_acts_in_every_step() -> None:
    """The cotangent of the carry is doubled at each step, in Python and compiled."""

    def f(xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return ft.hook(c, backward=lambda g: 2.0 * g) + x, None

        return ft.scan(step, xp.asarray(0.0), xs)[0]

    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        laws.close(g(X), arr([4.0, 2.0, 1.0]))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_conventions_and_checks_in_loops(wrap: Any) -> None:
    """The complex convention does not reach the engine inside loops; check_grads passes."""

    def f(zs: Any) -> Any:
        return xp.real(ft.scan(lambda c, z: (c * z + z, None), xp.asarray(1.0 + 0j), zs)[0])

    z = xp.asarray(np.array([1 + 2j, 0.5 - 1j, 2j]))
    steepest = ft.grad(f)(z)
    with ft.config.using(complex_convention="jax"):
        laws.close(ft.grad(wrap(f))(z), xp.conj(steepest))
        laws.close(wrap(ft.grad(f))(z), xp.conj(steepest))
        ft.check_grads(wrap(f), (z,), fast=True)
