"""Structural zeros are absorbed inside of compiled calls, too: 0 · inf there would be NaN.

`where`, indexing and extrema make zeros on the way back. A jitted function below them is one call
on the tape; its derivative must be what the same ops give one by one.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.nn import functional
from tests import laws

MASK = xp.asarray([[False, False], [True, True]])
X = xp.asarray([[0.0, 0.0], [1.0, 2.0]])  # the first row has no direction


def direction(x: Any) -> Any:
    """x by its length: 0 / 0 where x is 0."""
    return x / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True))


MASKS: dict[str, Callable[[Any], Any]] = {
    "where": lambda y: xp.sum(xp.where(MASK, y, 0.0) ** 2 * xp.asarray([1.0, 3.0])),
    "index": lambda y: y[1, 0],
    "take": lambda y: xp.sum(xp.take(y, xp.asarray([1, 1]), axis=0) ** 2),
    "max": lambda y: xp.max(xp.where(MASK, y, -1.0)),
}
WAYS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "grad": ft.grad,
    "hessian": ft.hessian,
    "grad of grad": lambda f: ft.grad(lambda x: xp.sum(ft.grad(f)(x)[1] ** 2)),
    "jvp of grad": lambda f: lambda x: ft.jvp(ft.grad(f), (x,), (xp.ones((2, 2)),))[1],
    "lanes": lambda f: lambda x: ft.vmap(ft.grad(f))(xp.stack([x, 2.0 * x])),
    "jacrev": ft.jacrev,
}


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """0 / 0 is what all of this is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("way", WAYS)
def test_below_a_mask(mask: str, way: str) -> None:
    """The derivative through the jitted function is that through its ops, zeros included."""
    inner = ft.jit(direction)
    want = WAYS[way](lambda x: MASKS[mask](direction(x)))(X)
    assert np.isfinite(np.asarray(want)).all()
    laws.close(WAYS[way](lambda x: MASKS[mask](inner(x)))(X), np.asarray(want), 1e-12, 1e-12)


def test_a_true_product_of_zero_and_infinity_stays() -> None:
    """Without a mask nothing is absorbed, compiled or not."""
    for fun in (direction, ft.jit(direction)):
        assert np.isnan(np.asarray(ft.grad(lambda x, f=fun: xp.sum(f(x)))(X))[0]).all()


def test_layers_that_compile_themselves() -> None:
    """A layer of many elements runs through jit of itself."""
    rng = np.random.default_rng(0)
    x = np.where(np.arange(64)[:, None] % 2 == 0, 0.0, rng.normal(size=(64, 128)))
    mask = xp.asarray(x != 0.0)
    slope = ft.grad(
        lambda x: xp.sum(xp.where(mask, functional.rms_norm(x, (128,), eps=0.0), 0.0) ** 2)
    )
    assert np.isfinite(np.asarray(slope(xp.asarray(x)))).all()
