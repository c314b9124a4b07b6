"""Every public function gives inside a transform that changes nothing what it gives outside.

The rows are those of `benchmarks/namespace.py`, which hold every public name.
"""

import inspect
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from benchmarks.namespace import call, rows
from tests.conformance.inside_transforms import TRANSFORMS, inside

# Rows that ask for a buffer, which a tracer has none of, or for its level.
NEEDS_A_BUFFER = {
    "np.asarray(x)", "x.data", "x.is_contiguous()", "x.level", "x.strides", "xp.from_dlpack(raw)",
}  # fmt: skip
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


def wrong_rows(name: str, asked: Iterable[str]) -> list[str]:
    """Rows that are answered otherwise inside a transform, or not at all."""
    wrong = []
    for row in asked:
        if row in NEEDS_A_BUFFER or (name in ("grad", "jvp") and NO_DERIVATIVE.search(row)):
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
    return wrong


@pytest.mark.parametrize(("name", "chapter"), CASES)
def test_rows(name: str, chapter: str) -> None:
    """One transform, one chapter."""
    assert wrong_rows(name, [row for row, _ in rows()[chapter]]) == []


def test_rows_that_are_left_out_exist() -> None:
    """What is excluded is spelled as the rows are."""
    assert {row for chapter in rows().values() for row, _ in chapter} >= NEEDS_A_BUFFER


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_wrong_row_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that gives tracers another value, dtype or error than arrays is reported."""
    plain = {f: getattr(xp, f) for f in ("sin", "cos", "tan", "exp")}
    broken = {
        "sin": lambda x: plain["sin"](x) + 1e-9,
        "cos": lambda x: xp.astype(plain["cos"](x), xp.complex128),
        "tan": lambda x: float(plain["tan"](x)),
    }
    for f, wrong in broken.items():
        monkeypatch.setattr(
            xp, f, lambda x, f=f, wrong=wrong: (plain[f] if x.__class__ is xp.Array else wrong)(x)
        )
    found = wrong_rows(name, [f"xp.{f}(x)" for f in plain])
    assert [row.partition("(")[0] for row in found] == ["xp.sin", "xp.cos", "xp.tan"]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_methods_of_tracers_have_the_signatures_of_tensors(name: str) -> None:
    """Whoever looks at a signature, as the suite of the standard does, sees the standard's."""
    with inside(name):
        x = xp.asarray([1.0, 2.0])
    others = []
    for attribute, of_tensors in vars(xp.Tensor).items():
        own: Any = getattr(type(x), attribute)
        if inspect.isfunction(of_tensors) and attribute != "__init__":
            found, wanted = (list(inspect.signature(f).parameters) for f in (own, of_tensors))
            if found != wanted:
                others.append(attribute)
    assert others == []
