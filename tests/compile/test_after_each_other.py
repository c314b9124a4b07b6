"""Each op after each other, on arrays of many short rows, which rewritings take apart: eager's
numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp

OPS: dict[str, Callable[[Any], Any]] = {
    "concat": lambda x: xp.concat([x, x * 2], axis=-1),
    "concat first": lambda x: xp.concat([x, x * 2], axis=0),
    "flip": lambda x: xp.flip(x, axis=-1),
    "stack": lambda x: xp.stack([x, x + 1], axis=-1),
    "sum": lambda x: xp.sum(x, axis=-1),
    "sum first": lambda x: xp.sum(x, axis=0),
    "set": lambda x: x.at[..., :1].set(1),
    "cumsum": lambda x: xp.cumulative_sum(x, axis=-1),
    "products": lambda x: xp.einsum("...ij,...kj->...ik", x, x) * 0.01,
    "where": lambda x: xp.where(xp.real(x) > 0, x, xp.sin(x)),
    "exp": lambda x: xp.exp(-xp.abs(x)) + x,
    "repeated": lambda x: xp.broadcast_to(x, (2, *x.shape)),
    "turned": lambda x: xp.permute_dims(x, tuple(reversed(range(x.ndim)))),
    "rows": lambda x: x[xp.asarray([1, 0, -1])],
    "places": lambda x: x[..., xp.asarray([0, -1, 0])],
    "scaled": lambda x: x / (xp.sum(xp.abs(x), axis=-1, keepdims=True) + 1),
    "one more axis": lambda x: x[..., None],
    "one row": lambda x: xp.reshape(x, (*x.shape[:-1], 1, x.shape[-1])),
}
SHAPES = {"complex128": (12, 4, 12, 3), "float64": (40, 20, 3)}


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", SHAPES)
@pytest.mark.parametrize("first", OPS)
@pytest.mark.parametrize("second", OPS)
def test_two_ops(first: str, second: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    raw = rng.normal(size=SHAPES[dtype])
    x = xp.asarray(raw if dtype[0] == "f" else raw + 1j * rng.normal(size=raw.shape))

    def both(x: Any) -> Any:
        return OPS[second](OPS[first](x))

    found, expected = ft.jit(both, mode="reduce-overhead")(x), both(x)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, 1e-11, 1e-11)
