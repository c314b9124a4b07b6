"""Reductions of many columns: NumPy's results, sums and products bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from funct.kernels import statistical
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.reductions import wide_columns as cpu
from funct.kernels.table import restricted
from tests.kernels.arrays import SPECIAL, agree

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")

DTYPES = ("int32", "int64", "float32", "float64")
SHAPES = ((4, 16), (5, 17), (7, 33), (41, 700), (3, 9, 40), (5, 3, 11))
NAMES = {
    "sum": statistical.total, "prod": statistical.product, "max": statistical.most,
    "min": statistical.least,
}  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(shape[-1])
    if dtype[0] == "i":
        return rng.integers(-99, 99, shape).astype(dtype)
    x = rng.normal(size=shape).astype(dtype)
    x = np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), x).astype(dtype)
    x[..., 0] = -0.0
    return x


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_are_reduced_as_numpy_does(
    dtype: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over any axis but the last, in one strip and in several; equal zeros count as one."""
    monkeypatch.setattr(cpu, "_TASK", 1)
    monkeypatch.setattr(cpu, "_LEAST", 16)
    for shape in SHAPES:
        x, axis = numbers(shape, dtype), int(shape[0] == 3)
        for a, keepdims in ((axis, False), (axis - len(shape), True)):
            with restricted("numpy"):
                expected = NAMES[name](x, a, keepdims)
            found = cpu.of_many_columns(name, x, a, keepdims)
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(found, expected)
            if name in ("sum", "prod"):
                known = expected == expected
                assert (np.signbit(found) == np.signbit(expected))[known].all()


def test_what_is_left_to_numpy() -> None:
    """The last axis, few rows or columns, other dtypes, and what is not dense."""
    x = np.ones((300, 333))
    several = (
        ("sum", x, 1), ("sum", x, 2), ("sum", x, -3), ("sum", x, None), ("sum", x, (0,)),
        ("any", x, 0), ("sum", x[:3], 0), ("sum", x[:, :8], 0), ("sum", x.T, 0),
        ("sum", x.astype("f2"), 0), ("sum", x.astype("c8"), 0), ("sum", x[:9, :9], 0),
    )  # fmt: skip
    for name, a, axis in several:
        assert cpu.of_many_columns(name, a, axis, False) is None
    assert cpu.of_many_columns("sum", x, 0, False) is not None


@pytest.mark.parametrize("name", NAMES)
def test_nothing_outside_is_touched(name: str) -> None:
    for dtype in ("int32", "float64"):
        x = numbers((2, 9, 37), dtype)
        y = np.zeros((2, 37), cpu.result_of(name, x.dtype))
        agree(cpu.gather_rows, x, y, 9, 37, 20, 2, name, 4)
