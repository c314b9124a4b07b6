"""Control flow in control flow: an op that must raise does so as in eager code, however deep."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from tests import laws

Fun = Callable[[Any], Any]
X = xp.asarray(np.linspace(0.5, 1.5, 6))


def _with_rule(f: Fun) -> Fun:
    g: Any = ft.custom_jvp(f)
    g.defjvp(lambda p, t: (g(*p), t[0][0]))
    return g  # type: ignore[no-any-return]


NESTS: dict[str, Callable[[Fun], Fun]] = {
    "fori_loop": lambda f: lambda x: ft.fori_loop(0, 3, lambda k, c: c * f(x), xp.sum(x)),
    "scan": lambda f: lambda x: ft.scan(lambda c, k: (c * f(x), c), xp.sum(x), xp.arange(3))[0],
    "while_loop": lambda f: (
        lambda x: ft.while_loop(
            lambda s: s[1] < 3, lambda s: (s[0] * f(x), s[1] + 1), (xp.sum(x), 0)
        )[0]
    ),
    "cond": lambda f: lambda x: ft.cond(xp.sum(x) > 0, f, xp.sum, x),
    "checkpoint": ft.checkpoint,
    "map": lambda f: lambda x: xp.sum(ft.map(lambda k: f(x) * k, xp.ones(4))),
    "jit": ft.jit,
    "a rule": _with_rule,
    "vmap": lambda f: lambda x: xp.sum(ft.vmap(lambda k: f(x * k))(xp.ones(4))),
    "grad": lambda f: lambda x: xp.sum(ft.grad(lambda x: xp.sum(xp.sin(f(x))))(x)),
}


def _at(x: Any, i: Any) -> Any:
    return xp.astype(xp.sum(x) * 0 + i, xp.int64)  # only a run knows


class OwnError(Exception):
    """Somebody's own."""


def _called(x: Any) -> Any:
    if x > 5:
        raise OwnError("no more than 5")
    return x


def _callback(i: int) -> Fun:
    like = ft.ShapeDtype((), xp.int64)
    return lambda x: xp.sum(x) * ft.pure_callback(_called, like, _at(x, i))


# by a number that is well, or one that must raise: an index, a divisor, what is told by its name
FAULTS: dict[str, tuple[Callable[[int], Fun], int]] = {
    "an element": (lambda i: lambda x: x[_at(x, i)], 9),
    "a step's element": (
        lambda i: lambda x: ft.fori_loop(0, i, lambda k, c: c * x[k], xp.sum(x)), 9,
    ),
    "an update": (lambda i: lambda x: xp.sum(x.at[_at(x, i)].set(1.0)), 9),
    "elements": (lambda i: lambda x: xp.sum(xp.take(x, xp.stack([_at(x, 1), _at(x, i)]))), 9),
    "a quotient": (lambda i: lambda x: (_at(x, 7) // _at(x, i)) * xp.sum(x), 0),
    "a step's quotient": (
        lambda i: lambda x: ft.fori_loop(i, 9, lambda k, c: c + 7 // k, _at(x, 0)) * xp.sum(x), 0,
    ),
    "a callback": (_callback, 9),
}  # fmt: skip


def told(f: Fun) -> str:
    """The error of a call: what, where."""
    with (
        pytest.raises((ft.errors.IndexOutOfBoundsError, FloatingPointError, OwnError)) as caught,
        np.errstate(divide="raise"),
    ):
        f(X)
    error: Any = caught.value
    return f"{type(error).__name__} {getattr(error, 'what', error)} {getattr(error, 'site', '')}"


def warned(f: Fun) -> set[str]:
    """What NumPy warns of in a call that divides by 0."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        f(X)
    return {str(w.message) for w in found}


@pytest.mark.in_turn
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("middle", NESTS)
@pytest.mark.parametrize("outer", ["cond", "checkpoint", "scan", "map", "grad"])
def test_errors_are_eagers_at_any_depth(outer: str, middle: str, fault: str) -> None:
    """What is told, and the line; and the value of a number that is well."""
    make, wrong = FAULTS[fault]
    for inner in ("while_loop", "fori_loop"):
        good, bad = (NESTS[outer](NESTS[middle](NESTS[inner](make(i)))) for i in (5, wrong))
        if fault == "a callback" and "grad" in (outer, middle):
            continue  # nobody needs its value
        compiled = ft.jit(bad)
        expected = told(bad)
        assert [told(compiled) for _ in range(2)] == [expected] * 2
        laws.close(ft.jit(good)(X), good(X), 1e-12, 1e-12)
        if "quotient" in fault:
            assert warned(bad) == warned(compiled) == warned(ft.jit(bad)) != set()
