"""Loops over a batch of few numbers each, some members at a time: the values are the steps'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.device import host
from tests import laws
from tests.compile.test_lines import OPS, agree, by_steps, in_program
from tests.compile.test_registers import ways_of

W = xp.asarray(np.random.default_rng(1).normal(size=(3, 3)).astype("float32") * 0.4)


@given(
    st.lists(st.sampled_from(sorted(OPS)), min_size=1, max_size=3),
    st.sampled_from([16, 17, 33, 64]), st.integers(1, 3), st.integers(1, 4),
    st.sampled_from([1, 2, 7]), st.booleans(), st.sampled_from(["float32", "float64"]),
)  # fmt: skip
@settings(max_examples=2 * settings.default.max_examples)
def test_bodies(
    names: list[str], batch: int, rows: int, columns: int, steps: int, reverse: bool, dtype: str
) -> None:
    """Whatever is done to each member, with members left over, in both directions: exact ops have
    the bits of eager code.
    """
    rng = np.random.default_rng(batch + rows * 10 + columns)
    c = xp.asarray(rng.normal(size=(batch, rows, columns)).astype(dtype))
    xs = xp.asarray(rng.normal(size=(steps, batch, rows, columns)).astype(dtype))

    @ft.vmap
    def step(c: Any, x: Any) -> Any:
        return c * 0.5 + x, [OPS[name](c) for name in names]

    found = in_program(lambda c, xs: ft.scan(step, c, xs, reverse=reverse), c, xs)
    expected = by_steps(step, c, xs, reverse)
    agree(names, found, expected, dtype)


def oscillator(x: Any, _: Any) -> Any:
    """A step of van der Pol's equation."""
    slope = xp.stack([x[1], 2 * (1 - x[0] ** 2) * x[1] - x[0]])
    return x + 0.01 * slope, x[0]


def recurrent(x: Any, z: Any) -> Any:
    """A step by a matrix that all have in common."""
    x = xp.tanh(W @ x + z)
    return x, x


def filtered(state: Any, y: Any) -> Any:
    """A step of Kalman's filter, of two numbers of which one is seen."""
    m, p = state
    step = xp.asarray([[1.0, 0.1], [0.0, 1.0]], dtype="float32")
    m, p = step @ m, step @ p @ step.T + 0.01 * xp.eye(2, dtype="float32")
    gain = p[:, 0] / (p[0, 0] + 0.1)
    m = m + gain * (y - m[0])
    return (m, p - gain[:, None] * p[0]), (m, xp.sum(p[0]))


def mean(x: Any, z: Any) -> Any:
    """What one step has in common with others, by numbers that a member has."""
    return x * 0.9 + xp.flip(z) * xp.max(x), xp.concat([x, x[:1]])


STEPS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...] | None]] = {
    "oscillator": (oscillator, (2,), None),
    "recurrent": (recurrent, (3,), (3,)),
    "filtered": (filtered, (2,), ()),
    "mean": (mean, (5,), (5,)),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("batch", [16, 31, 300])
@pytest.mark.parametrize("derivative", ["none", "grad", "jacfwd"])
def test_vmapped_loops_go_by_members(name: str, batch: int, derivative: str) -> None:
    """Solvers and filters of many systems, their gradients and Jacobians, are each the single
    one's.
    """
    step, state, row = STEPS[name]
    rng = np.random.default_rng(0)
    c = xp.asarray(rng.normal(size=(batch, *state)).astype("float32") * 0.5)
    xs = xp.zeros((batch, 40)) if row is None else xp.asarray(
        rng.normal(size=(batch, 40, *row)).astype("float32"))  # fmt: skip

    def run(c: Any, xs: Any) -> Any:
        start = (c, xp.eye(2, dtype="float32")) if name == "filtered" else c
        return ft.scan(step, start, None if row is None else xs, length=40)

    def total(c: Any, xs: Any) -> Any:
        return sum(xp.sum(leaf**2) for leaf in ft.tree.leaves(run(c, xs)))

    fun = run if derivative == "none" else getattr(ft, derivative)(total)
    whole = ft.jit(ft.vmap(fun))
    ways = ways_of(whole, c, xs)
    lanes = host().vector_bytes // 4
    assert batch < lanes or f"{batch} columns" in ways
    found = whole(c, xs)
    for k in (0, 7, batch - 1):
        laws.close(ft.tree.map(lambda a, k=k: a[k], found), fun(c[k], xs[k]), 2e-5, 2e-5)


def test_what_looks_at_other_members_does_not() -> None:
    """Means and turns of the batch, and products with all of it, are those of the steps."""
    rng = np.random.default_rng(0)
    c = xp.asarray(rng.normal(size=(16, 16)).astype("float32"))
    xs = xp.asarray(rng.normal(size=(9, 16, 16)).astype("float32"))
    bodies: list[Callable[..., Any]] = [
        lambda c, x: (c * 0.5 + xp.mean(x, axis=0), c[0]),
        lambda c, x: (xp.flip(c, axis=0) * 0.5 + x, c[::2]),
        lambda c, x: (c.T * 0.5 + x, c.T),
        lambda c, x: (0.1 * (c @ x) + x, c @ x),
        lambda c, x: (0.1 * (c @ x.T) + x, x.T @ c),
        lambda c, x: (c * 0.5 + x[0], c + x[:, :1]),
        lambda c, x: (xp.roll(c, 1, axis=0) + x, xp.argmax(c, axis=0)),
        lambda c, x: (c + x, xp.concat([c, x])[3:19]),
    ]
    for body in bodies:
        found = in_program(lambda c, xs, body=body: ft.scan(body, c, xs), c, xs)
        laws.close(found, by_steps(body, c, xs, False), 1e-5, 1e-5)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("places", [3, 7, 8, 13, 40])
@pytest.mark.parametrize("batch", [16, 19])
def test_many_places_are_woven_by_few_shuffles(dtype: str, places: int, batch: int) -> None:
    """What members hold lies one after the other: of 40 places a shuffle for each lane of each
    took longer to make than all else, and ran longer.
    """
    rng = np.random.default_rng(places)
    x = rng.integers(0, 2 if dtype == "bool" else 9, (5, batch, places)).astype(dtype)

    def step(c: Any, x: Any) -> Any:
        c = xp.concat([x[:, -1:], c[:, :-1]], axis=1)
        return c, c

    run = ft.jit(lambda c, xs: ft.scan(step, c, xs))
    args = xp.asarray(x[0]), xp.asarray(x)
    last, rows = run(*args)
    expected, c = [], x[0]
    for row in x:
        c = np.concatenate([row[:, -1:], c[:, :-1]], axis=1)
        expected.append(c)
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(last, c)
    lanes = host().vector_bytes // np.dtype(dtype).itemsize
    if places < lanes or lanes > batch:
        return
    shuffles = run.show(*args, form="llvm").count("shufflevector")
    squares = -(-places // lanes) * lanes * (lanes.bit_length() - 1)
    assert squares <= shuffles <= 4 * squares  # what comes before, in and after each step
