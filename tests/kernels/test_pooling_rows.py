"""Laws of pools of images in C's order, along their rows."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels.cpu.loops import available
from funct.kernels.table import restricted
from funct.kernels.windows.pooling import (
    max_pool,
    max_pool_index,
    plain_max_pool_index,
    sum_pool,
)
from tests.kernels.arrays import agree
from tests.kernels.test_pooling import Case, cases, few

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

from funct.kernels.cpu.windows import pooling_rows as cpu
from funct.kernels.windows import rows


@given(
    cases(), st.integers(0, 40), st.sampled_from([1, 2, 5, 40]),
    st.sampled_from(["sum", "mean", "max"]),
)  # fmt: skip
def test_no_index_leaves_rows(case: Case, more: int, wide: int, how: str) -> None:
    """Run as Python, the kernel of rows stays inside and gives what the machine code gives."""
    shape, (window, stride, padding, dilation) = case
    shape, window = (*shape[:-1], shape[-1] + wide + more), (*window[:-1], window[-1] + wide)
    dilation = (*dilation[:-1], 1) if more else dilation
    size = max(shape[-1], dilation[-1] * window[-1] - sum(padding[-1]))
    x = few((*shape[:-1], size), wide, np.float64)
    plan = rows.plan_of(x.shape, window, stride, padding, dilation)
    if plan is None:
        return
    to, told, rest, room, tasks = plan
    counts = np.arange(1.0, 1 + prod(to[len(to) - len(window) :]))
    y, none = np.zeros(to), np.asarray([-np.inf if how == "max" else -0.0])
    agree(cpu.fold_rows, x, y, np.zeros(room), *told, none, counts, *rest, how, tasks)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("k", "step"), [(40, 40), (33, 32), (70, 1), (100, 3), (200, 500)])
def test_wide_windows_are_those_of_passes(k: int, step: int, dtype: Any) -> None:
    """Maxima and their places bit for bit; sums in another order, which rounds less."""
    x = np.random.default_rng(k).standard_normal((2, 3, 4, 1203)).astype(dtype)
    static = ((2, k), (2, step), ((0, 0), (1, 2)), (1, 1))
    for _ in range(2):
        with restricted():
            expected = max_pool(x, *static), plain_max_pool_index(x, *static), sum_pool(x, *static)
        np.testing.assert_array_equal(max_pool(x, *static), expected[0], strict=True)
        np.testing.assert_array_equal(max_pool_index(x, *static), expected[1], strict=True)
        if not np.isnan(x).any():
            size = sum_pool(np.abs(x), *static)
            off = np.abs(sum_pool(x, *static) - expected[2])
            assert np.all(off <= k * np.finfo(dtype).eps * size)
        x[0, :, 1, ::97] = np.nan
