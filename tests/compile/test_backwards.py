"""Loops over what is read backwards: whole vectors at once, turned around."""

from typing import Any

import numpy as np
import pytest

import funct.array as xp
from tests.compile.checked import checking, run
from tests.compile.test_native import compiled

BACKWARDS: dict[str, Any] = {
    "both ways": lambda x: xp.where(x[..., ::-1] == x, x, xp.flip(x, axis=-1)),
    "a part": lambda x: xp.astype(x[..., ::-1], "float32")[..., :9] * 2.0,
    "added up": lambda x: xp.sum(xp.astype(xp.flip(x), "float64") * 2.0, axis=-1),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("n", [1, 2, 7, 15, 16, 17, 33, 64, 100, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "int64", "float16"])
@pytest.mark.parametrize("rows", [(), (3,)], ids=str)
@pytest.mark.parametrize("how", BACKWARDS)
def test_what_is_read_backwards(dtype: str, n: int, rows: tuple[int, ...], how: str) -> None:
    """Whole vectors and the rest, of one row and of several, nothing beside them."""
    rng, fun = np.random.default_rng(n), BACKWARDS[how]
    x = rng.integers(0, 2 if dtype == "bool" else 100, (*rows, n)).astype(dtype)
    with checking():
        made = compiled(fun, x)
        (found,) = run(made, x)
    np.testing.assert_array_equal(found, fun(xp.asarray(x)))
