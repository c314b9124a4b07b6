"""What a branch or a loop does is done in it alone, also to values that it closes over.

The oracle is Python: eager execution takes one side, and goes through the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.core.level import Level
from funct.errors import IndexOutOfBoundsError, LinAlgError

X = xp.asarray([0.5, 1.5, -2.0, 3.0])


def at(x: Any, i: Any) -> Any:
    """x[i], where there is such an element."""
    return ft.cond(i < 4, lambda: xp.sin(x[i]) * x[i], lambda: x[0] * x[1])


def nested(x: Any, i: Any) -> Any:
    """As `at`, one branch deeper, and in a loop."""

    def step(c: Any, k: Any) -> tuple[Any, Any]:
        inner = lambda: ft.cond(i < 4, lambda: x[i] * c, lambda: xp.sum(x) + c)  # noqa: E731
        return ft.cond(k > 0, inner, lambda: c), c

    return ft.scan(step, x[0] * 0.0 + 1.0, xp.arange(3))[0]


def chosen(x: Any, i: Any) -> Any:
    """As `at`, by switch."""
    sides = [lambda: x[i] ** 2, lambda: xp.exp(x[1]), lambda: xp.prod(x) + x[i - 8]]
    return ft.switch(xp.astype(i >= 4, xp.int64) * 2, sides)


def inverted(x: Any, i: Any) -> Any:
    """A matrix that is singular where the other side is taken."""
    m = xp.eye(2) * xp.astype(4 - i, xp.float64) + x[0]
    m = xp.where(i == 4, xp.zeros((2, 2)), m)
    return ft.cond(i < 4, lambda: xp.sum(xp.linalg.inv(m)), lambda: x[1])


TRANSFORMS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "value": lambda f: f,
    "grad": ft.grad,
    "jvp": lambda f: lambda x, i: ft.jvp(lambda x: f(x, i), (x,), (x * 2.0,)),
    "vmap": lambda f: lambda x, i: ft.vmap(lambda x: f(x, i))(xp.stack([x, -x])),
    "hessian": ft.hessian,
    "vmap of grad": lambda f: lambda x, i: ft.vmap(lambda x: ft.grad(f)(x, i))(xp.stack([x, -x])),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("i", [0, 2, 4, 9, 11])
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("f", [at, nested, chosen, inverted])
def test_a_side_that_is_not_taken_raises_nothing(f: Callable[..., Any], name: str, i: int) -> None:
    """As Python's if, under every transform, inside and outside of jit."""
    k = xp.asarray(i)
    expected = ft.tree.leaves(TRANSFORMS[name](f)(X, k))
    inside = ft.jit(TRANSFORMS[name](f), fullgraph=True)(X, k)
    outside = TRANSFORMS[name](ft.jit(f))(X, k)
    for found in (inside, outside):
        for a, b in zip(ft.tree.leaves(found), expected, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-12)


def test_a_side_that_is_taken_raises_what_eager_code_raises() -> None:
    """With the user's line."""
    f = lambda x, i: ft.cond(i < 99, lambda: x[i], lambda: x[0])  # noqa: E731
    for run in (f, ft.jit(f), ft.jit(ft.grad(f))):
        with pytest.raises(IndexOutOfBoundsError, match=r"test_bodies\.py"):
            run(X, xp.asarray(9))


def test_check_mode_compares_both_sides() -> None:
    f = ft.jit(at, mode="check")
    assert float(f(X, xp.asarray(9))) == float(at(X, xp.asarray(9)))
    assert float(f(X, xp.asarray(2))) == pytest.approx(float(at(X, xp.asarray(2))))


def test_a_loop_of_no_steps_raises_nothing() -> None:
    """What a while loop does at each step is not done before the first."""

    def f(m: Any, n: Any) -> Any:
        return ft.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + xp.linalg.inv(m)), (0 * n, m)
        )[1]

    zero = xp.zeros((2, 2))
    assert ft.jit(f)(zero, xp.asarray(0)).tolist() == zero.tolist()
    with pytest.raises(LinAlgError):
        ft.jit(f)(zero, xp.asarray(1))


def test_what_is_the_same_in_every_step_is_computed_once() -> None:
    """Before the loop, unless that could raise where the loop has no steps."""

    def f(m: Any, v: Any) -> Any:
        return ft.scan(lambda c, x: (xp.linalg.inv(m) @ c + xp.exp(m) @ x, None), v[0], v)[0]

    def g(m: Any, v: Any) -> Any:
        body = lambda c: xp.linalg.inv(m) @ c + xp.exp(m) @ c  # noqa: E731
        return ft.while_loop(lambda c: xp.sum(c) < 9.0, body, v)

    m, v = xp.eye(2) * 2.0, xp.ones((3, 2))
    outside = [n.name for n in ft.make_graph(f)(m, v).nodes]
    assert "inv" in outside
    assert "exp" in outside
    outside = [n.name for n in ft.make_graph(g)(m, v[0]).nodes]
    assert "inv" not in outside
    assert "exp" in outside


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_a_loop_of_no_steps_would_have_done_has_no_part_in_its_derivative() -> None:
    """Infinite slopes of what is the same in every step, times a cotangent of 0."""

    def loops(x: Any, n: Any) -> Any:
        z, one = x - x, x / x
        edges = lambda: xp.asin(one) + xp.acosh(one) + xp.atanh(one) + xp.sqrt(z)  # noqa: E731
        powers = lambda: z**0.5 + 1.0 / z + xp.reciprocal(z) + xp.hypot(z, z)  # noqa: E731
        logs = lambda: xp.log(z) + xp.logaddexp(z, -1.0 / z) + xp.atan2(z, z)  # noqa: E731
        a = ft.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + edges()), (0 * n, x))
        b = ft.fori_loop(0, n, lambda k, s: s * powers(), x)
        c = ft.scan(lambda s, y: (s - logs() * y, None), x, xp.ones(0))[0]
        return a[1] + b * c

    x, n = xp.asarray(3.0), xp.asarray(0)
    for slope in (ft.grad(loops), ft.jit(ft.grad(loops)), ft.grad(ft.jit(loops))):
        assert slope(x, n) == 7.0


def test_a_decision_on_what_is_closed_over_is_one_of_the_function() -> None:
    """It is taken outside of the branch, and guarded there."""

    def f(p: Any, x: Any) -> Any:
        return ft.cond(p, lambda: x * 2.0 if xp.sum(x * x[0]) > 0 else -x, lambda: x)

    run = ft.jit(f)
    for p in (True, False):
        for x in (X, -X, X - 5.0):
            assert run(xp.asarray(p), x).tolist() == f(xp.asarray(p), x).tolist()


def test_an_exception_in_a_branch_leaves_the_transforms_as_they_were() -> None:
    """The levels around it take their ops again."""

    def f(p: Any, x: Any) -> Any:
        def wrong() -> Any:
            raise KeyError("mine")

        try:
            return ft.cond(p, wrong, lambda: x * 2.0)
        except KeyError:
            return x * 3.0

    p = xp.asarray(True)
    assert ft.jit(ft.grad(lambda x: xp.sum(f(p > False, x))))(X).tolist() == [3.0] * 4
    graph = ft.make_graph(f)(p, X)
    assert [n.name for n in graph.nodes] == ["multiply"]


def test_levels_that_are_no_part_of_a_body_are_open_while_a_value_is_computed() -> None:
    """A decision needs the ops before it at the levels around the body."""
    seen = []

    def f(w: Any) -> Any:
        def g(p: Any, x: Any) -> Any:
            def side() -> Any:
                seen.append(bool(xp.sum(x * w) > 0))
                return x * w

            return ft.cond(p, side, lambda: x)

        return xp.sum(ft.jit(g)(xp.asarray(True), X))

    assert ft.grad(f)(X).tolist() == X.tolist()
    assert set(seen) == {True}


# Effects


class Log:
    """What callbacks were called with, in order."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def note(self, tag: int, x: Any) -> Any:
        """Write a value down, and give it back."""

        def write(v: Any) -> Any:
            self.seen.append((tag, float(v)))
            return v

        return ft.io_callback(write, ft.ShapeDtype((), xp.float64), x)


_ENV = ("x", "y", "const")


@st.composite
def programs(draw: Any, depth: int = 2) -> Any:
    """A tree of branches and loops whose leaves are callbacks on what they close over."""
    kind = draw(st.sampled_from(["note", "note", "cond", "switch", "for", "while", "then", "scan"]))
    if depth == 0 or kind == "note":
        return "note", draw(st.integers(0, 99)), draw(st.sampled_from([*_ENV, "carry"]))
    parts = [
        draw(programs(depth - 1)) for _ in range(2 if kind in ("cond", "switch", "then") else 1)
    ]
    return kind, draw(st.sampled_from(["traced", "known"])), draw(st.integers(0, 2)), *parts


def _interpret(program: Any, env: dict[str, Any], carry: Any, log: Log) -> Any:
    kind, *rest = program
    if kind == "note":
        tag, name = rest
        return carry + 0.5 * log.note(tag, carry if name == "carry" else env[name])
    where, n, *parts = rest
    run = [lambda c, p=p: _interpret(p, env, c, log) for p in parts]
    count = env["n"] if where == "traced" else xp.asarray(1)
    if kind == "then":
        return run[1](run[0](carry))
    if kind == "cond":
        return ft.cond(count > n, lambda: run[0](carry), lambda: run[1](carry))
    if kind == "switch":
        return ft.switch(count + n, [lambda: carry, *[lambda r=r: r(carry) for r in run]])
    if kind == "for":
        return ft.fori_loop(0, n, lambda _, c: run[0](c), carry)
    if kind == "scan":
        return ft.scan(lambda c, x: (run[0](c) + x, None), carry, xp.ones(n))[0]
    state = (count * 0, carry)
    return ft.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, run[0](s[1])), state)[1]


@given(programs(3), st.integers(0, 2))
def test_effects_are_those_of_eager_execution(program: Any, n: int) -> None:
    """Each as often as its branch is taken and its loop has steps, and in the same order."""

    def f(x: Any, y: Any, n: Any, log: Log) -> Any:
        return _interpret(program, {"x": x, "y": y, "n": n, "const": xp.asarray(7.0)}, x, log)

    args = xp.asarray(1.0), xp.asarray(2.0), xp.asarray(n)
    eager, inside = Log(), Log()
    expected = f(*args, eager)
    run = ft.jit(lambda *a: f(*a, inside))
    for _ in range(2):
        inside.seen.clear()
        assert float(run(*args)) == float(expected)
        assert inside.seen == eager.seen


def test_a_branch_without_results_is_there_for_its_effects(capsys: Any) -> None:
    """So is a print without any values."""

    def f(p: Any) -> None:
        ft.debug.print("begin")
        ft.cond(p, lambda: ft.debug.print("yes"), lambda: ft.debug.print("no"))

    run = ft.jit(f)
    for p in (True, False, True):
        run(xp.asarray(p))
    assert capsys.readouterr().out.split() == ["begin", "yes", "begin", "no", "begin", "yes"]


def test_derivatives_repeat_no_effect() -> None:
    """The callback sees the primal once."""
    log = Log()

    def f(x: Any, p: Any) -> Any:
        return ft.cond(p, lambda: (log.note(1, ft.stop_gradient(x)), x * x)[1], lambda: x)

    x, p = xp.asarray(3.0), xp.asarray(True)
    for run in (ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        log.seen.clear()
        assert float(run(x, p)) == 6.0
        assert log.seen == [(1, 3.0)]


def test_levels_are_open_again() -> None:
    """After a body was written down; the test that names the invariant."""
    found: list[Level] = []

    def f(x: Any, p: Any) -> Any:
        out = ft.cond(p, lambda: x * 2.0, lambda: x)
        found.append(x.level)
        assert x.level.open is True
        return out

    ft.jit(f)(X, xp.asarray(True))
    assert found
    assert all(level.open is False for level in found)
