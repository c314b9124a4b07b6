"""Laws of sums over alignments: the kernels stay inside, and are the recursion in jit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.neural import usable
from funct.kernels.table import restricted
from funct.nn import functional
from tests.kernels.arrays import agree

if not (available() and usable()):
    pytest.skip("there is no LLVM here", allow_module_level=True)

from funct.kernels.cpu.reductions import alignments as cpu


def _some(rng: Any, steps: int, lanes: int, classes: int, longest: int) -> Any:
    """Log-probabilities with infinite and missing ones, texts with letters twice, and lengths."""
    x = rng.standard_normal((steps, lanes, classes)) - 2.0
    x[rng.random(x.shape) < 0.1] = -np.inf
    labels = rng.integers(1, max(2, min(classes, 4)), (lanes, longest)) % classes
    return x, labels, rng.integers(0, steps + 1, lanes), rng.integers(0, longest + 1, lanes)


@given(*[st.integers(1, n) for n in (6, 3, 5)], st.integers(0, 4), st.integers(0, 99))
def test_no_index_leaves_its_array(
    steps: int, lanes: int, classes: int, longest: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x, labels, n_in, _ = _some(rng, steps, lanes, classes, longest)
    width = 2 * longest + 1
    text = np.zeros((lanes, width), np.int64)
    text[:, 1::2] = labels
    skips = rng.random((lanes, width)) < 0.5
    alpha, room = np.zeros((lanes, steps, width)), np.zeros(4 * lanes * width)
    sizes = (steps, lanes, classes, width, -1e30, lanes)
    agree(cpu.alignments, x, text, skips, n_in, alpha, room, *sizes)
    cpu.alignments(x, text, skips, n_in, alpha, room, *sizes)
    ends, y = rng.random((lanes, width)), np.zeros(x.shape)
    agree(cpu.alignments_back, x, text, skips, n_in, alpha, ends, y, room, *sizes)


@pytest.mark.parametrize("seed", range(4))
def test_losses_and_slopes_are_those_of_the_recursion(seed: int) -> None:
    """Also of texts that have no alignment, and second ones; NaN comes out of NaN."""
    rng = np.random.default_rng(seed)
    x, labels, n_in, n_out = _some(rng, 5, 4, 5, 3)
    if seed == 3:
        x[2, 1] = np.nan
    texts, of, to = (xp.asarray(v) for v in (labels, n_in, n_out))

    def losses(x: Any) -> Any:
        return functional.ctc_loss(x, texts, of, to, reduction="none", zero_infinity=True)

    def slope(x: Any) -> Any:
        return ft.grad(lambda x: xp.sum(losses(x) ** 2))(x)

    def again(x: Any) -> Any:
        return ft.grad(lambda x: xp.sum(xp.sin(slope(x))))(x)

    for fun in (losses,) if seed == 3 else (losses, slope, again):
        with np.errstate(invalid="ignore"):
            found = fun(xp.asarray(x))
            with restricted():
                wanted = fun(xp.asarray(x))
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-9, atol=1e-12)
