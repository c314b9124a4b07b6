"""Laws of distances of pairs: the kernels stay inside, and are the composition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.reductions import distances as cpu
from funct.kernels.reductions import distances as kernels
from funct.kernels.reductions.distances import HOW
from funct.kernels.table import restricted
from funct.nn import functional
from tests.kernels.arrays import agree

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")


@settings(max_examples=25)
@given(st.integers(1, 20), st.integers(1, 2), st.sampled_from([*HOW.values(), "ties"]))
def test_no_index_leaves_its_array(rows: int, width: int, how: str) -> None:
    """Run as Python, with every index checked."""
    rng = np.random.default_rng(rows)
    pairs, lanes = rows * (rows - 1) // 2, cpu.LANES
    x = rng.integers(-2, 3, (rows, width)).astype(np.float64)
    panels = np.zeros((-(-rows // lanes), width, lanes))
    tasks = -(-rows // 4)
    y, room = np.zeros(pairs), np.zeros(tasks * lanes)
    agree(cpu.distances, x, panels, y, room, rows, width, how, 4, tasks)
    wide = rng.integers(-2, 3, (rows, cpu.PART)).astype(np.float64)
    lengths, shares = rng.integers(0, 3, (2, pairs)).astype(np.float64)
    room = np.zeros(tasks * 8 * rows)
    sizes = (rows, cpu.PART, how, 4, tasks)
    agree(cpu.distances_back, wide, lengths, shares, room, np.zeros(wide.shape), *sizes)


@pytest.mark.parametrize("p", HOW)
@pytest.mark.parametrize("shape", [(7, 3), (19, 9), (1, 2)])
def test_distances_and_slopes_are_those_of_the_composition(
    shape: Any, p: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of equal rows, of differences that are alike and of none, and in second slopes."""
    monkeypatch.setattr(kernels, "_MANY", 1)
    x = np.random.default_rng(0).integers(-2, 3, shape).astype(np.float64)
    x[-1] = x[0]
    odd = x.copy()
    odd[-1, 0], odd[0, -1] = np.nan, np.inf

    def lengths(x: Any) -> Any:
        return functional.pdist(x, p)

    def slope(x: Any) -> Any:
        return ft.grad(lambda x: xp.sum(xp.sin(lengths(x))))(x)

    def again(x: Any) -> Any:
        return ft.grad(lambda x: xp.sum(xp.sin(slope(x))))(x)

    for fun in (lengths, slope, again):
        for rows in (x, odd)[: 1 if fun is again else 2]:
            with np.errstate(invalid="ignore"):
                found = fun(xp.asarray(rows))
                with restricted():
                    wanted = fun(xp.asarray(rows))
            np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-9, atol=1e-12)
