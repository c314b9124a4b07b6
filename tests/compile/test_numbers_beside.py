"""Python's numbers beside arrays in loops: whatever the number, programs give what eager gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import FunctError

NAMES = ["logical_and", "logical_or", "logical_xor", "equal", "less", "maximum", "add"]
NUMBERS = [True, 0, 2, -1, 2**40, -0.5, float("nan"), float("inf"), 1j]


def outcome(fun: Any, x: Any) -> Any:
    """Dtype and elements, or the class of the error."""
    try:
        with np.errstate(all="ignore"):
            out = np.asarray(fun(x))
    except FunctError as error:
        return type(error)
    return out.dtype, [*map(repr, out.tolist())]  # NaN is as NaN


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("before", [False, True])
def test_any_number_beside_any_dtype(name: str, dtype: str, number: Any, before: bool) -> None:
    """Also one that the dtype does not hold, of which an op may need the truth alone."""
    fun: Any = getattr(xp, name)
    x = xp.astype(xp.arange(20_000) % 5, getattr(xp, dtype))
    call = (lambda x: fun(number, x)) if before else (lambda x: fun(x, number))
    eager = outcome(call, x)
    assert outcome(ft.jit(call), x) == eager
    few = ft.jit(lambda xs: ft.scan(lambda c, v: (c, call(v)), 0, xs)[1])
    if name == "logical_or" and not isinstance(eager, type):
        assert outcome(few, x[:6]) == (eager[0], eager[1][:6])
