"""Solutions are differentiated by what they solve: linear systems, roots; closure_convert."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ShapeError, TreeError, UndefinedDerivativeError
from tests import laws
from tests.transforms.test_control_flow import X, arr

A = xp.asarray(np.random.default_rng(0).normal(size=(3, 3)) * 0.5)


def conjugate_gradients(matvec: Any, b: Any) -> Any:
    """A solver with a loop inside."""

    def body(s: Any) -> Any:
        x, r, p, rs = s
        q = matvec(p)
        a = rs / xp.sum(p * q)
        r = r - a * q
        new = xp.sum(r * r)
        return x + a * p, r, r + new / rs * p, new

    return ft.while_loop(lambda s: s[3] > 1e-18, body, (b * 0.0, b, b, xp.sum(b * b)))[0]


def symmetric(t: Any) -> Any:
    """Conjugate gradients; the matrix closes over t."""
    m = (A @ A.T + 2.0 * xp.eye(3)) * xp.sum(t * t) + xp.eye(3)
    x = ft.custom_linear_solve(lambda v: m @ v, xp.sin(t), conjugate_gradients, symmetric=True)
    return xp.sum(x * t)


def symmetric_plain(t: Any) -> Any:
    """The same by the linear algebra chapter."""
    m = (A @ A.T + 2.0 * xp.eye(3)) * xp.sum(t * t) + xp.eye(3)
    return xp.sum(xp.linalg.solve(m, xp.sin(t)) * t)


def general(t: Any) -> Any:
    """A solver that closes over the matrix itself, and a transposed one; b is a tree."""
    m = (A + 3.0 * xp.eye(3)) * xp.sum(t * t) + xp.eye(3)
    x = ft.custom_linear_solve(
        lambda v: {"b": m @ v["b"]},
        {"b": xp.sin(t)},
        lambda _, b: {"b": xp.linalg.solve(m, b["b"])},
        lambda _, b: {"b": xp.linalg.solve(m.T, b["b"])},
    )
    return xp.sum(x["b"] * t)


def general_plain(t: Any) -> Any:
    """The same by the linear algebra chapter."""
    m = (A + 3.0 * xp.eye(3)) * xp.sum(t * t) + xp.eye(3)
    return xp.sum(xp.linalg.solve(m, xp.sin(t)) * t)


def newton(f: Any, x: Any) -> Any:
    """Until nothing is left, at most 30 steps."""

    def step(s: Any) -> Any:
        x, k = s
        return x - f(x) / ft.jvp(f, (x,), (xp.ones_like(x),))[1], k + 1

    return ft.while_loop(lambda s: (xp.max(xp.abs(f(s[0]))) > 1e-12) & (s[1] < 30), step, (x, 0))[0]


def root(t: Any) -> Any:
    """z³ + z t = t² + 2, for each element."""
    z = ft.custom_root(
        lambda z: z**3 + z * t - (t * t + 2.0),
        xp.ones(3),
        newton,
        lambda g, y: y / g(xp.ones_like(y)),
    )
    return xp.sum(z * t)


def root_plain(t: Any) -> Any:
    """The same by Newton steps that are differentiated."""
    z = xp.ones(3) + t * 0.0
    for _ in range(12):
        z = z - (z**3 + z * t - (t * t + 2.0)) / (3.0 * z * z + t)
    return xp.sum(z * t)


PROBLEMS = {
    "symmetric": (symmetric, symmetric_plain),
    "general": (general, general_plain),
    "root": (root, root_plain),
}
LANES = xp.stack([X, X * 2.0])

MODES: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f,
    "jit": ft.jit,
    "grad": ft.grad,
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (x + 1.0,)),
    "hessian": ft.hessian,
    "reverse-reverse": lambda f: ft.jacrev(ft.jacrev(f)),
    "jit-grad": lambda f: ft.jit(ft.grad(f)),
    "grad-jit": lambda f: ft.grad(ft.jit(f)),
    "jit-hessian": lambda f: ft.jit(ft.hessian(f)),
    "vmap-grad": lambda f: lambda x: ft.vmap(ft.grad(f))(LANES),
    "grad-vmap": lambda f: lambda x: ft.grad(lambda r: xp.sum(ft.vmap(f)(r)))(LANES),
    "jit-vmap-grad": lambda f: lambda x: ft.jit(ft.vmap(ft.grad(f)))(LANES),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_derivatives_are_those_of_the_solution(name: str, mode: str) -> None:
    """Whatever finds the solution: values and derivatives are those of the closed form."""
    solved, plain = PROBLEMS[name]
    laws.close(MODES[mode](solved)(X), MODES[mode](plain)(X), 1e-7, 1e-7)


def test_errors_of_solvers() -> None:
    """A missing transpose, and results of another type."""
    b = xp.ones(3)
    solve = lambda matvec, b: b / matvec(xp.ones(3))  # noqa: E731
    one_way = lambda t: xp.sum(ft.custom_linear_solve(lambda v: v * t, b, solve))  # noqa: E731
    laws.close(ft.jvp(one_way, (arr(2.0),), (arr(1.0),)), (arr(1.5), arr(-0.75)))
    with pytest.raises(UndefinedDerivativeError, match="transpose_solve"):
        ft.grad(one_way)(arr(2.0))
    with pytest.raises(ShapeError, match=r"result of matvec .* must be float64\[3\]"):
        ft.custom_linear_solve(lambda v: v[:2], b, solve)
    with pytest.raises(TreeError, match="the root"):
        ft.custom_root(lambda x: x, b, lambda f, x: (x, x), lambda g, y: y)


def test_closure_convert() -> None:
    """What a function closes over becomes arguments, in any transform."""

    def f(w: Any, b: Any) -> Any:
        converted, values = ft.closure_convert(lambda x: {"y": x * w + b}, X)
        assert len(values) == 2
        return xp.sum(converted(X * 2.0, *values)["y"])

    w, b = arr(3.0), arr(1.0)
    expected = (arr(float(xp.sum(X * 2.0))), arr(3.0))
    laws.close(ft.grad(f, (0, 1))(w, b), expected)
    laws.close(ft.jit(ft.grad(f, (0, 1)))(w, b), expected)
    converted, values = ft.closure_convert(lambda x: x * 2.0, X)
    assert values == []
    laws.same(converted(X), X * 2.0)
    with pytest.raises(TreeError, match="arguments"):
        converted((X, X))
