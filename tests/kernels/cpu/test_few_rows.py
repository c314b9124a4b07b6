"""Products of a few rows: every number of them, and none beside the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from funct.kernels import table
from funct.kernels.cpu.products import few_rows
from tests import guarded
from tests.compile.test_native import compiled
from tests.kernels.cpu.test_blas_products import LIES, close, normal
from tests.pairwise import drawn

pytestmark = pytest.mark.skipif(not table.met(few_rows.FEW_ROWS), reason="AVX2 and FMA")


@pytest.fixture
def at_end(request: Any) -> Iterator[bool]:
    with guarded.memory(at_end=request.param):
        yield request.param


@drawn(
    1500,
    indirect=["at_end"],
    dtype=["float32", "float64"],
    rows=[*range(2, 17), 24, 32, 33],
    terms=[7, 32, 100, 257],
    columns=[50, 1030, 2048, 2049],
    left=["rows", "columns", "a part"],
    right=["rows", "columns", "a part"],
    swapped=[False, True],
    stacks=[((), ()), ((3,), ()), ((), (3,)), ((3,), (1,))],
    at_end=[False, True],
)
def test_matrices(
    rows: int, terms: int, columns: int, dtype: str, left: str, right: str, swapped: bool,
    stacks: tuple[tuple[int, ...], tuple[int, ...]], at_end: bool,
) -> None:  # fmt: skip
    """Of few rows or few columns, however the operands lie; what it leaves to others is known."""
    first, second = stacks
    x, y = normal(dtype, (*first, rows, terms)), normal(dtype, (*second, terms, columns))
    x, y = LIES[left](guarded.copy(x, at_end=at_end)), LIES[right](guarded.copy(y, at_end=at_end))
    turned = right == "columns"
    count = 3 if (3,) in stacks else 1
    byte = np.dtype(dtype).itemsize
    known = few_rows.are_few(rows, terms, columns, turned, count, byte=byte, swapped=swapped)
    if swapped:
        x, y, known = y.mT, x.mT, known and turned
    elif turned:
        known = known and left != "columns"
    found = few_rows.large_matmul(x, y)
    assert (found is not NotImplemented) == known
    if known:
        close(found, x, y)


@pytest.mark.parametrize("rows", [2, 16, 31])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_panels_of_programs_stay_in_the_result(rows: int, left: bool, right: bool) -> None:
    """Of operands that are turned or not."""
    x, y = np.ones((rows, 400), np.float32), np.ones((400, 1021), np.float32)
    made = compiled(
        lambda x, y: (x.mT if left else x) @ (y.mT if right else y),
        x.T.copy() if left else x,
        y.T.copy() if right else y,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(made.run.__globals__, "empty", guarded.empty)
        (found,) = made.run(x.T.copy() if left else x, y.T.copy() if right else y)
    assert (found == 400).all()
