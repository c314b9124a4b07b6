"""Every public function gives inside a transform that changes nothing what it gives outside.

The rows are those of `benchmarks/namespace.py`, which hold every public name.
"""

import re
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from benchmarks.namespace import call, rows
from tests.conformance.inside_transforms import TRANSFORMS, inside

# rows that make no sense on a tracer, and why
NEEDS_A_BUFFER = re.compile(
    r"dlpack|np\.|__array__|strides|is_contiguous|copy\.|pickle|x\.data|x\.level"
)
NO_DERIVATIVE = re.compile(r"nextafter|spherical_|hyp[012]f|lpmv|polygamma|expn|\byn\(|\bkn\(")

CASES = [(name, chapter) for name in TRANSFORMS for chapter in rows()]


def leaves(tree: Any) -> list[Any]:
    """Arrays and numbers of a result, on the ground."""
    return [
        np.asarray(x.concrete()) if isinstance(x, xp.Tensor) else x for x in ft.tree.leaves(tree)
    ]


def same(got: Any, want: Any) -> bool:
    """Equal up to the rounding of another order of operations; the same dtype."""
    if not isinstance(want, np.ndarray):  # a number, a dtype, or an object such as x.at
        return type(got) is type(want) and (got == want or not isinstance(want, int | float))
    return (
        got.dtype == want.dtype
        and got.shape == want.shape
        and bool(np.allclose(got, want, rtol=1e-12, atol=1e-14, equal_nan=True))
    )


@pytest.mark.parametrize(("name", "chapter"), CASES)
def test_rows(name: str, chapter: str) -> None:
    """One transform, one chapter."""
    wrong = []
    for row, _ in rows()[chapter]:
        if NEEDS_A_BUFFER.search(row) or (name in ("grad", "jvp") and NO_DERIVATIVE.search(row)):
            continue
        want = leaves(call(row, False)())
        try:
            with inside(name):
                got = leaves(call(row, False)())
        except Exception as error:
            wrong.append(f"{row}: {type(error).__name__}: {str(error)[:100]}")
            continue
        if len(got) != len(want) or not all(map(same, got, want)):
            wrong.append(f"{row}: {got} is not {want}"[:160])
    assert wrong == []
