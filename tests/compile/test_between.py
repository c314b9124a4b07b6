"""Reductions of short axes between others, written out: NumPy's bits, in one nest of loops."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.fusion.calls import every_call
from funct.compile.loops.kernel import Kernel, Reduce
from tests.compile.checked import checking, run
from tests.compile.test_bounds import made_of

RNG = np.random.default_rng(0)
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 7.0]
ROWS = 399


def numbers(dtype: str, *shape: int) -> Any:
    if dtype == "bool":
        return RNG.random(shape) > 0.4
    if dtype.startswith(("int", "uint")):
        return RNG.integers(1, 9, shape).astype(dtype)
    x = RNG.normal(size=shape).astype(dtype)
    with np.errstate(under="ignore"):
        x.flat[: 5 * len(SPECIAL) : 5] = np.asarray(SPECIAL, dtype)
    return x


def reductions(made: Any) -> int:
    kernels = [c.kernel for c in every_call(made.calls) if isinstance(c.kernel, Kernel)]
    return sum([isinstance(v, Reduce) for k in kernels for v in k.values])


@pytest.mark.pairwise
@pytest.mark.parametrize(
    ("dtype", "how"),
    [(d, h) for d in ("float32", "float64", "int64") for h in ("sum", "prod", "max", "min")]
    + [("bool", h) for h in ("any", "all")],
)
@pytest.mark.parametrize("places", [2, 5, 16])
@pytest.mark.parametrize("behind", [3, 16, 32])
@pytest.mark.parametrize("keepdims", [False, True])
def test_a_reduction_has_numpys_bits(
    dtype: str, how: str, places: int, behind: int, keepdims: bool
) -> None:
    x, y = numbers(dtype, ROWS, places, 1), numbers(dtype, places, behind)
    combined = xp.logical_xor if dtype == "bool" else xp.subtract
    fun = lambda x, y: getattr(xp, how)(combined(x, y), axis=1, keepdims=keepdims)  # noqa: E731
    with np.errstate(all="ignore"):
        expected = np.asarray(fun(xp.asarray(x), xp.asarray(y)))
        made = made_of(fun, x, y)
        with checking():
            (found,) = run(made_of(fun, x, y), x, y)
        (again,) = made.run(x, y)
    assert not reductions(made)
    for z in (found, again):
        assert z.dtype == expected.dtype
        np.testing.assert_array_equal(z, expected)
        if dtype.startswith("float"):
            np.testing.assert_array_equal(np.signbit(z[z == 0]), np.signbit(expected[z == 0]))


def test_reductions_of_what_others_were_made_of_share_the_loops() -> None:
    a, t = RNG.normal(size=(ROWS, 9)), RNG.normal(size=(9, 9))
    fun = lambda a, t: xp.logsumexp(a[:, :, None] + t, axis=1)  # noqa: E731
    made = made_of(fun, a, t)
    assert len(made.calls) == 1
    assert not reductions(made)
    expected = np.log(np.exp(a) @ np.exp(t))
    np.testing.assert_allclose(np.asarray(ft.jit(fun)(a, t)), expected, rtol=1e-14)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_axes_may_stand_anywhere_between(axis: int, lead: tuple[int, ...]) -> None:
    x, y = RNG.normal(size=(*lead, 40, 4, 6, 5)), RNG.normal(size=(4, 6, 1))
    axis += len(lead)

    def fun(x: Any, y: Any) -> Any:
        z = x * y - xp.broadcast_to(xp.sum(y, axis=0), x.shape)
        return xp.max(z, axis=axis) - xp.sum(xp.abs(z), axis=axis)

    np.testing.assert_array_equal(
        np.asarray(ft.jit(fun)(x, y)), np.asarray(fun(xp.asarray(x), xp.asarray(y)))
    )


def test_what_is_read_whole_as_well_is_still_there() -> None:
    x, y = RNG.normal(size=(ROWS, 6, 1)), RNG.normal(size=(6, 7))

    def fun(x: Any, y: Any) -> Any:
        z = x * y
        w = xp.abs(z) + y
        return xp.max(w, axis=1), z, xp.sum(w, axis=2), xp.sum(w * z, axis=1)

    for a, b in zip(ft.jit(fun)(x, y), fun(xp.asarray(x), xp.asarray(y)), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_of_filters_over_few_states(dtype: str) -> None:
    """Forward filtering, most likely paths, and gradients of both."""
    rows, states, steps = 24, 7, 6
    a, t = (RNG.normal(size=s).astype(dtype) for s in ((rows, states), (states, states)))
    e = RNG.normal(size=(steps, rows, states)).astype(dtype)

    def fun(a: Any, t: Any, e: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            a, m = c
            a = xp.logsumexp(a[:, :, None] + t, axis=1) + x
            m = xp.max(m[:, :, None] + t, axis=1) + x
            return (a, m), xp.sum(m, axis=-1)

        (a, m), ys = ft.scan(step, (a, a), e)
        return xp.sum(xp.logsumexp(a, axis=-1) + xp.max(m, axis=-1)) + xp.sum(ys)

    args = [xp.asarray(z) for z in (a, t, e)]
    rtol = 2e-5 if dtype == "float32" else 1e-12
    for f in (fun, ft.grad(fun, (0, 1, 2))):
        found, expected = ft.tree.leaves(ft.jit(f)(*args)), ft.tree.leaves(f(*args))
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=rtol)
