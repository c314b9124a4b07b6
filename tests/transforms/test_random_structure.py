"""Random programs with loops, branches, rules and inner transforms, under random transforms."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from tests import laws
from tests.strategies import Program
from tests.structured import STRUCTURED, structured
from tests.transforms.test_random_programs import arrays

SEEDS = st.integers(0, 2**31)


def _alike(compiled: bool) -> Any:
    """How values agree that go with different derivatives."""
    return laws.rounded_alike if compiled else laws.same


@pytest.mark.parametrize("name", STRUCTURED)
def test_each_step_obeys_the_laws(name: str, rng: np.random.Generator) -> None:
    """One step alone, with derivatives to second order; compiled it is staged."""
    program = Program(((name, 0, 1),), (-1,), STRUCTURED)
    args = arrays(3)
    laws.check_derivatives(program, args, rng, alike=_alike(name == "jit"))
    laws.check_batch(program, args, rng, 1e-8)
    laws.close(ft.jit(program)(*args), program(*args), 1e-12, 1e-12)


def agree(program: Program, seed: int) -> None:
    """Differences, adjoint, linearize; batch = loop; jit = eager; derivatives of it compiled."""
    args = arrays(seed)
    inner = any(name == "jit" for name, *_ in program.steps)
    for f, compiled in ((program, inner), (ft.jit(program), True)):
        rng, alike = np.random.default_rng(seed), _alike(compiled)
        laws.check_derivatives(f, args, rng, order=1, tol=1e-4, alike=alike)
    laws.check_batch(program, args, np.random.default_rng(seed), 1e-8)
    laws.close(ft.jit(program)(*args), program(*args), 1e-11, 1e-11)


Scalar = Callable[[Any], Any]
AROUND: dict[str, Callable[[Scalar], Scalar]] = {
    "grad": lambda f: lambda x: xp.sum(ft.grad(f)(x)),
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (x * 0.5 + 1.0,))[1],
    "linearize": lambda f: lambda x: ft.linearize(f, x)[1](x * 0.5 + 1.0),
    "jet": lambda f: lambda x: ft.jet(f, (x,), ([x * 0.5 + 1.0],))[1][0],
    "vmap": lambda f: lambda x: xp.sum(ft.vmap(lambda k: f(x * k))(xp.asarray([0.9, 1.1]))),
    "scan": lambda f: (
        lambda x: ft.scan(
            lambda c, k: (c + f(x * k), None), xp.asarray(0.0), xp.asarray([0.9, 1.1])
        )[0]
    ),
    "cond": lambda f: lambda x: ft.cond(xp.sum(x * x) >= 0.0, f, lambda v: f(v) * 0.0, x),
    "checkpoint": lambda f: ft.checkpoint(f),  # noqa: PLW0108
    "jit": lambda f: ft.jit(f),  # noqa: PLW0108
}
# What stands in for each without it: derivatives in forward mode, loops, nothing.
PLAIN = AROUND | {
    "grad": lambda f: lambda x: ft.jvp(f, (x,), (xp.ones_like(x),))[1],
    "linearize": AROUND["jvp"],
    "jet": AROUND["jvp"],
    "vmap": lambda f: lambda x: f(x * 0.9) + f(x * 1.1),
    "scan": lambda f: lambda x: f(x * 0.9) + f(x * 1.1),
    "cond": lambda f: f,
    "checkpoint": lambda f: f,
    "jit": lambda f: f,
}
NESTINGS = [p for n in (2, 3) for p in itertools.product(AROUND, repeat=n)]


def nested(program: Program, seed: int, names: tuple[str, ...]) -> None:
    """A nesting equals its plain form, and itself compiled as a whole."""
    x, y = arrays(seed)

    def build(table: dict[str, Callable[[Scalar], Scalar]]) -> Scalar:
        f: Scalar = lambda x: xp.sum(xp.sin(sum(xp.sum(o) for o in program(x, y)) * 0.1))  # noqa: E731
        for name in names:
            f = table[name](f)
        return f

    expected = build(PLAIN)(x)
    tol = 1e-7 * (1.0 + abs(float(expected)))
    laws.close(build(AROUND)(x), expected, 1e-7, tol)
    laws.close(ft.jit(build(AROUND))(x), expected, 1e-7, tol)


@settings(max_examples=2 * settings.default.max_examples)
@given(structured(), SEEDS)
def test_interpretations(program: Program, seed: int) -> None:
    """Every interpretation of a random program agrees with the plain one."""
    agree(program, seed)


@settings(max_examples=3 * settings.default.max_examples)
@given(structured(3), SEEDS, st.sampled_from(NESTINGS))
def test_nestings(program: Program, seed: int, names: tuple[str, ...]) -> None:
    """Every nesting of two or three transforms agrees with the plain one."""
    nested(program, seed, names)


@pytest.mark.slow
@settings(max_examples=40 * settings.default.max_examples)
@given(structured(), SEEDS)
def test_many_interpretations(program: Program, seed: int) -> None:
    """The same, for longer."""
    agree(program, seed)


@pytest.mark.slow
@settings(max_examples=80 * settings.default.max_examples)
@given(structured(), SEEDS, st.sampled_from(NESTINGS))
def test_many_nestings(program: Program, seed: int, names: tuple[str, ...]) -> None:
    """The same, for longer."""
    nested(program, seed, names)
