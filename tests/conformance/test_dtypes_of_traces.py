"""What a trace says of shapes and dtypes is what arrays give, for every public function.

The rows are those of `benchmarks/namespace.py`, which hold every public name, with their operands
in another dtype or of another shape. What arrays refuse for these, a trace refuses too.
"""

import re
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from benchmarks.namespace import operands, rows, scope
from funct.errors import IndexOutOfBoundsError, LinAlgError, TransformError
from tests.conformance.test_inside_transforms import NEEDS_A_BUFFER

KINDS = [
    "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "int8", "int4",
    "uint4", "uint64", "bool",
]  # fmt: skip
# Rows that give a property of the array itself, or no arrays.
OF_ARRAYS = NEEDS_A_BUFFER | {"x.concrete()"}
NO_ZEROS = {"xp.geomspace(v, 8.0, 4)"}  # which other dtypes make of fractions
OF_VALUES = (TransformError, LinAlgError, IndexOutOfBoundsError)  # refused for what elements are
CHANGES: dict[str, Callable[[Any], Any]] = {
    "no rows": lambda x: x[:0] if x.ndim else x,
    "no columns": lambda x: x[..., :0] if x.ndim else x,
    "fewer": lambda x: x[:3] if x.ndim else x,
    "one": lambda x: x[(0,) * x.ndim],
    "more axes": lambda x: x[None, None],
}


def described(fun: Any, args: list[Any]) -> Any:
    """Dtypes and shapes of the arrays that come out; None for an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = fun(*args)
        except OF_VALUES:
            raise
        except Exception:
            return None
    leaves = [x if hasattr(x, "dtype") else np.asarray(x) for x in ft.tree.leaves(out)]
    return [(x.dtype, tuple(x.shape)) for x in leaves]


def as_kind(x: Any, kind: str) -> Any:
    """Real floats in another dtype."""
    return xp.astype(x, getattr(xp, kind)) if x.dtype == np.float64 else x


def wrong_rows(change: Callable[[Any], Any], first: bool = False) -> list[str]:
    """Rows that are traced otherwise than they are computed, of changed operands.

    first: of several operands one alone is changed.
    """
    wrong = []
    arrays = {name: xp.asarray(v) for name, v in operands().items()}
    for row in (ours for pairs in rows().values() for ours, _ in pairs):
        names = [name for name in arrays if re.search(rf"\b{name}\b", row)]
        if len(names) <= first or row in OF_ARRAYS | NO_ZEROS or re.search(r"\bnp\.|\braw\b", row):
            continue
        fun = eval(f"lambda {', '.join(names)}: {row}", scope(False))
        args = [arrays[x] if first and k else change(arrays[x]) for k, x in enumerate(names)]
        try:
            computed = described(fun, args)
            if computed is not None and any(dtype.kind == "O" for dtype, _ in computed):
                continue  # something of Python's
            traced = described(lambda *xs, f=fun: ft.eval_shape(f, *xs), args)
        except OF_VALUES:
            continue
        if traced != computed:
            wrong.append(f"{row}: computed {computed}, traced {traced}")
    return wrong


@pytest.mark.parametrize("kind", KINDS)
def test_rows(kind: str) -> None:
    """One dtype."""
    assert wrong_rows(lambda x: as_kind(x, kind)) == []


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "complex64", "int8", "int64", "bool"])
def test_rows_of_two_dtypes(kind: str) -> None:
    """The first operand in another one than the others."""
    assert wrong_rows(lambda x: as_kind(x, kind), first=True) == []


@pytest.mark.in_turn
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_other_shapes(change: str, first: bool) -> None:
    """All operands of another shape, or the first one."""
    assert wrong_rows(CHANGES[change], first) == []


PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "matmul": lambda a, b: a @ b.T, "einsum": lambda a, b: xp.einsum("ij,ij->", a, b),
    "vecdot": xp.vecdot, "outer": lambda a, b: xp.linalg.outer(a[0], b[0]),
    "tensordot": lambda a, b: xp.tensordot(a, b.T, axes=1),
    "convolve": lambda a, b: xp.convolve(a[0], b[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_of_products_have_the_dtype_of_products(name: str) -> None:
    """For each pair of dtypes, of arrays, in traces and compiled."""
    fun = PRODUCTS[name]
    for one, other in product(["float64", "int64", "uint8", *KINDS], repeat=2):
        a = xp.astype(xp.asarray([[1, 0, 1], [1, 1, 0]]), getattr(xp, one))
        b = xp.astype(xp.asarray([[1, 1, 1], [1, 0, 1]]), getattr(xp, other))
        dtypes = [fun(a, b).dtype, ft.eval_shape(fun, a, b).dtype, ft.jit(fun)(a, b).dtype]
        assert set(dtypes) == {(a * b).dtype}, (one, other, dtypes)


def test_a_wrong_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that gives arrays another dtype than tracers is reported."""
    plain = xp.sin
    wider = lambda x: xp.astype(plain(x), xp.float64 if type(x) is xp.Array else x.dtype)  # noqa: E731
    monkeypatch.setattr(xp, "sin", wider)
    found = wrong_rows(lambda x: as_kind(x, "float32"))
    assert any(row.startswith("xp.sin(x)") for row in found)
