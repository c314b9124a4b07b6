"""Random programs: whatever hypothesis composes, every interpretation of it agrees."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from tests import laws
from tests.strategies import Program, inputs, programs

# differences see what stop_gradient hides, and float32 steps in between are too coarse for them
SMOOTH = programs(max_steps=8).filter(
    lambda p: not {"stop", "single"} & {name for name, _, _ in p.steps}
)
SEEDS = st.integers(0, 2**31)


def arrays(seed: int) -> list[Any]:
    """Two operands for a program."""
    return [xp.asarray(x * 0.7) for x in inputs(seed)]


@given(SMOOTH, SEEDS)
def test_derivatives(program: Program, seed: int) -> None:
    """Forward = differences, reverse = adjoint of forward, linearize = forward."""
    laws.check_derivatives(program, arrays(seed), np.random.default_rng(seed), order=1, tol=1e-4)


@given(SMOOTH, SEEDS)
def test_batch_and_jit(program: Program, seed: int) -> None:
    """vmap = loop, jit = eager."""
    args = arrays(seed)
    laws.check_batch(program, args, np.random.default_rng(seed), 1e-8)
    laws.close(ft.jit(program)(*args), program(*args), 1e-12, 1e-12)


STEPS: dict[str, Callable[[Any], Any]] = {
    "grad": ft.grad,
    "push": lambda f: lambda x: xp.sum(ft.jvp(f, (x,), (x * 0.5 + 1.0,))[1]),
    "jit": ft.jit,
    "vmap": lambda f: lambda x: xp.sum(ft.vmap(lambda k: f(x * k))(xp.asarray([0.9, 1.1])), axis=0),
}
ORDERS = [p for n in (2, 3) for p in itertools.product(STEPS, repeat=n)]


def summed(g: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of what g gives."""
    return lambda x: xp.sum(g(x))


@given(SMOOTH, SEEDS, st.sampled_from(ORDERS))
def test_nestings(program: Program, seed: int, names: tuple[str, ...]) -> None:
    """Any nesting equals itself without the jits, and compiled as a whole."""
    x, y = arrays(seed)

    def scalar(x: Any) -> Any:
        return xp.sum(xp.sin(sum(xp.sum(o) for o in program(x, y)) * 0.1))  # type: ignore[misc]

    def build(with_jit: bool) -> Any:
        f: Any = scalar
        for name in names:
            if name == "jit" and not with_jit:
                continue
            f = summed(STEPS[name](f))  # every transform takes a scalar function
        return f

    expected = build(False)(x)
    for f in (build(True), ft.jit(build(True)), ft.jit(build(False))):
        laws.close(f(x), expected, 1e-7, 1e-7)
