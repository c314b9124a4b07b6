"""The order of random words: what a stable sort says, whatever the words are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from funct.kernels.cpu.irregular import shuffling as cpu
from funct.kernels.cpu.irregular.words import DIGIT
from funct.kernels.cpu.loops import available
from funct.kernels.random.orders import order
from funct.kernels.sorting import plain_argsort
from tests.kernels.arrays import agree

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")

LENGTHS = (1, 2, 3, 8, 17, 100, 1000, 4097)


def words(n: int, kind: str) -> Any:
    """Random ones; those that are alike in their first bits, in their last ones, or in all."""
    x = np.random.default_rng(n).integers(0, 2**64, n, dtype=np.uint64)
    first = x >> np.uint64(60)
    others = {"few": first << np.uint64(60), "late": first, "same": x * np.uint64(0)}
    others["cut"] = others["few"] | (x & np.uint64(3))
    return others.get(kind, x)


@pytest.mark.parametrize("kind", ["random", "few", "late", "cut", "same"])
def test_words_are_in_stable_order(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dealt out at once, and by their first digit before."""
    for near in (1 << 17, 64):
        monkeypatch.setattr("funct.kernels.random.orders.NEAR", near)
        for n in LENGTHS:
            x = words(n, kind)
            np.testing.assert_array_equal(order(x), plain_argsort(x, 0, False), strict=True)


@pytest.mark.parametrize("kind", ["random", "few"])
def test_no_index_is_outside(kind: str) -> None:
    """Run as Python with every index checked, the kernel writes what machine code writes."""
    for n in (1, 2, 17, 40):
        x, room = words(n, kind), [np.zeros(k, np.uint64) for k in (n, n)]
        counts, places = np.zeros(1 << DIGIT, np.int64), np.zeros(128, np.int32)
        for near in (8, n):
            agree(cpu.even_order, x, *room, counts, places, near, n, (n - 1).bit_length())
