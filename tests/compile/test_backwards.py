"""Loops over what is read backwards: whole vectors at once, turned around."""

import numpy as np
import pytest

import funct.array as xp
from tests.compile.checked import checking, run
from tests.compile.test_native import compiled


@pytest.mark.parametrize("n", [1, 2, 7, 15, 16, 17, 33, 64, 100, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "int64", "float16"])
def test_what_is_read_backwards(dtype: str, n: int) -> None:
    """Whole vectors and the rest, of one row and of several, nothing beside them."""
    rng = np.random.default_rng(n)
    for shape in ((n,), (3, n)):
        x = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
        for fun in (
            lambda x: xp.where(x[..., ::-1] == x, x, xp.flip(x, axis=-1)),
            lambda x: xp.astype(x[..., ::-1], "float32")[..., :9] * 2.0,
            lambda x: xp.sum(xp.astype(xp.flip(x), "float64") * 2.0, axis=-1),
        ):
            with checking():
                made = compiled(fun, x)
                (found,) = run(made, x)
            np.testing.assert_array_equal(found, fun(xp.asarray(x)))
