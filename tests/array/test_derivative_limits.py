"""Derivatives where formulas lose them: at infinities, at 0, and where digits cancel."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

WAYS = [lambda f: f, ft.jit]


def numbers(*values: float) -> list[Any]:
    return [xp.asarray(float(v)) for v in values]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("x1", "x2"), [(1, inf), (1, -inf), (-1, inf), (-1, -inf), (0, inf)])
def test_remainders_of_infinite_divisors(way: Any, x1: float, x2: float) -> None:
    """They are those of a large one: x1, or x1 + x2 where the signs differ."""
    found = way(ft.grad(xp.remainder, (0, 1)))(*numbers(x1, x2))
    near = ft.grad(xp.remainder, (0, 1))(*numbers(x1, np.copysign(1e9, x2)))
    assert [float(v) for v in found] == [float(v) for v in near]
