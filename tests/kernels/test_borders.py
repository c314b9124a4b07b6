"""Borders of an image's own elements are those of NumPy's pad, and no index leaves the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from funct.kernels.cpu import loops
from funct.kernels.manipulation import pad, pad_last
from funct.kernels.windows.borders import NOTHING, bordered
from tests.kernels.arrays import SPECIAL, agree

MODES = ("edge", "reflect", "symmetric", "wrap")
SHAPES = ((3, 40, 13, 11), (2, 33, 40, 7), (1, 1, 2, 9000), (2, 5, 1000, 1), (9, 31, 33, 2))
PAIRS = (
    ((0, 0), (0, 0), (0, 2), (0, 0)), ((0, 0), (0, 0), (0, 0), (1, 0)),
    ((0, 0), (0, 0), (1, 1), (0, 3)), ((1, 1), (1, 0), (2, 1), (1, 1)),
    ((0, 0), (0, 2), (0, 0), (1, 0)), ((1, 0), (0, 0), (0, 0), (0, 0)),
)  # fmt: skip


@pytest.mark.pairwise
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1)])
def test_borders_are_numpys(shape: Any, dtype: str, order: Any) -> None:
    """Whatever axes are padded and however they lie in memory, bit by bit, which they keep."""
    rng = np.random.default_rng(0)
    values = np.asarray(SPECIAL) if np.dtype(dtype).kind in "fc" else np.arange(9)
    x = rng.choice(values, [shape[k] for k in order]).astype(dtype).transpose(np.argsort(order))
    for mode in (*MODES, "constant"):
        for pairs in PAIRS:
            most = [n - (mode == "reflect") for n in shape]
            if any(max(p) > n for p, n in zip(pairs, most)):
                continue
            y: Any = pad(x, pairs, mode)
            assert y.tobytes() == np.pad(x, pairs, mode).tobytes()
            if mode == "constant" and np.dtype(dtype).kind in "fc" and dtype != "float16":
                z: Any = pad(x, pairs, mode, -1.5)
                assert z.tobytes() == np.pad(x, pairs, constant_values=-1.5).tobytes()
            assert y.transpose(order).flags.c_contiguous or 1 in shape


@pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
@pytest.mark.parametrize("inner", [1, 3, 8, 33])
@pytest.mark.parametrize(("h", "w", "low", "high"), [(3, 5, 2, 1), (1, 1, 0, 1), (4, 40, 1, 0)])
def test_no_index_leaves_images(inner: int, h: int, w: int, low: int, high: int) -> None:
    """Run as Python, each row stays inside and is what the machine code gives."""
    x = np.arange(2 * h * w * inner, dtype=np.uint32)
    rows = np.asarray([h - 1, *range(h), NOTHING, 0]) * w * inner
    rows[rows < 0] = NOTHING
    columns = np.arange(low + high) % (w + 1) - 1
    columns[columns < 0] = NOTHING
    count = 2 * len(rows)
    for cut, known in ((0, 0), (0, 1), (w // 2, 1)):  # known: that all around is a number
        start, kept, at = rows + (rows >= 0) * cut * inner, w - cut, columns - (columns >= 0) * cut
        y = np.zeros(count * (low + kept + high) * inner, np.uint32)
        sizes = (h * w * inner, kept, low, high, inner, len(rows), count)
        around = np.asarray([7, known], np.uint32)
        agree(bordered, x, y, start, at, around, *sizes, 3, -(-count // 3))


@pytest.mark.parametrize("shape", [(2, 3, 7, 9), (8, 4, 28, 31), (3, 40, 9, 33)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1)])
def test_amounts_below_0_leave_out_what_a_slice_does(shape: Any, order: Any) -> None:
    """Few and many elements, and what is left out of one end while the other grows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=[shape[k] for k in order]).transpose(np.argsort(order))
    for width in ((-1, 2, 1, -1), (-2, -3), (0, 9, -6, 0), (-1, -1, -1, -1, -1, 5), (5, 5), (0, 0)):
        pairs = [(0, 0)] * (4 - len(width) // 2) + list(zip(width[-2::-2], width[::-2]))
        kept = [slice(max(-a, 0), n + min(b, 0)) for n, (a, b) in zip(x.shape, pairs)]
        for value in (None, 0.0, 2.5):
            grown = [[max(n, 0) for n in pair] for pair in pairs]
            expected = np.pad(x[tuple(kept)], grown, constant_values=value or 0)
            found = pad_last(x, width, "constant", value)
            assert np.array_equal(found, expected)
    assert pad_last(x, (True, 1)) is None
    assert pad_last(x, (1, 1, -shape[2], 0)) is None
