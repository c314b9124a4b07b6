"""Activations of halves are those of float32, rounded: what cancels in them does so in float32."""

from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct.nn import functional as F  # noqa: N812

NAMES = ("celu", "elu", "gelu", "hardswish", "logsigmoid", "mish", "selu", "sigmoid", "silu",
         "softplus", "softshrink", "softsign", "tanh", "tanhshrink")  # fmt: skip


@pytest.mark.parametrize(("dtype", "unit", "least"), [
    (xp.float16, 2.0**-10, 2.0**-22), (xp.bfloat16, 2.0**-7, 2.0**-120),
])  # fmt: skip
def test_activations_of_halves_are_those_of_singles(dtype: Any, unit: float, least: float) -> None:
    """To a few units in the last place, far out in the tails too."""
    x = xp.astype(xp.linspace(-12.0, 12.0, 1001, dtype=xp.float32), dtype)
    for name in NAMES:
        fun = getattr(F, name)
        found = fun(x)
        assert found.dtype == dtype
        wanted = np.asarray(fun(xp.astype(x, xp.float32)), np.float64)
        away = np.abs(np.asarray(xp.astype(found, xp.float64)) - wanted)
        assert np.all(away <= 3 * np.maximum(np.abs(wanted) * unit, least)), name
