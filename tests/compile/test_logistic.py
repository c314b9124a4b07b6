"""The slope of a sigmoid: one exponential, with the digits of two."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import ops


def total(x: Any) -> Any:
    return xp.sum(ops.sigmoid(x))


def slopes(x: Any) -> Any:
    return ft.grad(total)(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_that_of_both_sigmoids_at_the_ends_too(dtype: Any) -> None:
    some = np.concatenate([np.linspace(-110, 110, 5000), [np.inf, -np.inf, np.nan, 0.0, -0.0]])
    x = xp.asarray(some.astype(dtype))
    compiled = ft.jit(slopes)
    np.testing.assert_array_max_ulp(
        *(np.maximum(np.asarray(f(x)), np.finfo(dtype).tiny) for f in (compiled, slopes)), 6
    )
    shown = compiled.show(x, form="loops")
    assert "sigmoid_slope" in shown
    assert "sigmoid(" not in shown


def test_its_derivatives_are_those_of_the_sigmoid_at_0_too() -> None:
    """What is differentiated are the sigmoids: |x| of the function has a corner there."""
    x = xp.asarray(np.linspace(-3, 3, 5001))

    def derived(f: Any) -> list[Any]:
        found = [f]
        for _ in range(2):
            found.append(lambda x, f=found[-1]: ft.grad(lambda x: xp.sum(f(x)))(x))
        return found

    for eager, compiled in zip(derived(slopes), derived(ft.jit(slopes)), strict=True):
        np.testing.assert_allclose(compiled(x), eager(x), rtol=0, atol=1e-15)
