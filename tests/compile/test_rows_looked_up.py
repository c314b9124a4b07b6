"""Rows that are taken by programs: of each length that has a kernel, and of longer ones."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import IndexOutOfBoundsError


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 16, 17, 65])
def test_rows_are_taken(width: int, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 99, (9, width)).astype(dtype)
    i = np.random.default_rng(1).integers(-9, 9, (5, 3))
    take: Any = ft.jit(lambda x, i: xp.take(x, i, axis=0))
    for _ in range(2):
        y = np.asarray(take(xp.asarray(x), xp.asarray(i)))
        np.testing.assert_array_equal(y, x[i], strict=True)
    with pytest.raises(IndexOutOfBoundsError):
        take(xp.asarray(x), xp.asarray(np.full((5, 3), 9)))
