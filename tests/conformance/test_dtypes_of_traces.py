"""What a trace says of shapes and dtypes is what arrays give, for every public function and dtype.

The rows are those of `benchmarks/namespace.py`, which hold every public name, with their float64
operands in another dtype. A row that a dtype does not have is refused both ways.
"""

import re
import warnings
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from benchmarks.namespace import operands, rows, scope
from funct.errors import TransformError
from tests.conformance.test_inside_transforms import NEEDS_A_BUFFER

KINDS = [
    "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "int8", "int4",
    "uint4", "uint64", "bool",
]  # fmt: skip
# Rows that give a property of the array itself, or no arrays.
OF_ARRAYS = NEEDS_A_BUFFER | {"x.concrete()"}


def described(fun: Any, args: list[Any]) -> Any:
    """Dtypes and shapes of the arrays that come out; None for an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = fun(*args)
        except TransformError:
            raise
        except Exception:
            return None
    leaves = [x if hasattr(x, "dtype") else np.asarray(x) for x in ft.tree.leaves(out)]
    return [(x.dtype, tuple(x.shape)) for x in leaves]


def wrong_rows(kind: str) -> list[str]:
    """Rows that are traced otherwise than they are computed."""
    dtype, wrong = getattr(xp, kind), []
    arrays = {name: xp.asarray(v) for name, v in operands().items()}
    arrays = {n: xp.astype(x, dtype) if x.dtype == np.float64 else x for n, x in arrays.items()}
    for row in (ours for pairs in rows().values() for ours, _ in pairs):
        names = [name for name in arrays if re.search(rf"\b{name}\b", row)]
        if not names or row in OF_ARRAYS or re.search(r"\bnp\.|\braw\b", row):
            continue
        fun = eval(f"lambda {', '.join(names)}: {row}", scope(False))
        args = [arrays[name] for name in names]
        computed = described(fun, args)
        if computed is not None and any(dtype.kind == "O" for dtype, _ in computed):
            continue  # something of Python's
        try:
            traced = described(lambda *xs, f=fun: ft.eval_shape(f, *xs), args)
        except TransformError:
            continue  # the shape depends on values
        if traced != computed:
            wrong.append(f"{row}: computed {computed}, traced {traced}")
    return wrong


@pytest.mark.parametrize("kind", KINDS)
def test_rows(kind: str) -> None:
    """One dtype."""
    assert wrong_rows(kind) == []


def test_a_wrong_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that gives arrays another dtype than tracers is reported."""
    plain = xp.sin
    wider = lambda x: xp.astype(plain(x), xp.float64 if type(x) is xp.Array else x.dtype)  # noqa: E731
    monkeypatch.setattr(xp, "sin", wider)
    assert any(row.startswith("xp.sin(x)") for row in wrong_rows("float32"))
