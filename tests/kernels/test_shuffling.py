"""The order of random words: what a stable sort says, whatever the words are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from funct.kernels.cpu.loops import available
from funct.kernels.cpu.order import shuffling as cpu
from funct.kernels.order.sorting import plain_argsort
from funct.kernels.random import orders
from funct.kernels.random.orders import first, order
from tests.kernels.arrays import agree_on_new

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")

LENGTHS = (1, 2, 3, 8, 17, 100, 1000, 4097)


def words(n: int, kind: str) -> Any:
    """Random ones; those that are alike in their first bits, in their last ones, or in all; even
    ones that are alike but for their last bits in pairs.
    """
    x = np.random.default_rng(n).integers(0, 2**64, n, dtype=np.uint64)
    first = x >> np.uint64(60)
    others = {"few": first << np.uint64(60), "late": first, "same": x * np.uint64(0)}
    pairs = np.repeat(x[: (n + 1) // 2], 2)[:n]
    others["alike"] = np.random.default_rng(1).permutation(pairs ^ (x & np.uint64(1)))
    others["cut"] = others["few"] | (x & np.uint64(3))
    return others.get(kind, x)


@pytest.mark.parametrize("kind", ["random", "few", "late", "cut", "same", "alike"])
def test_words_are_in_stable_order(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dealt out at once, and by their first digit before."""
    for near, part in ((1 << 17, 14), (64, 14), (65, 10)):
        monkeypatch.setattr("funct.kernels.random.orders.NEAR", near)  # sizes are kept for each
        monkeypatch.setattr(cpu, "_PART", part)
        for n in LENGTHS:
            x = words(n, kind)
            np.testing.assert_array_equal(order(x), plain_argsort(x, 0, False), strict=True)


@pytest.mark.parametrize("kind", ["random", "few", "alike"])
def test_no_index_is_outside(kind: str) -> None:
    """Run as Python with every index checked, the kernel writes what machine code writes."""
    like = np.zeros(1, np.int64)
    for n in (1, 2, 17, 60):
        x = words(n, kind)
        for near in (8, n):
            low, digit, part, room = cpu.sizes(n, near)
            dealt, counts = np.zeros(part << digit, np.uint64), np.zeros(1 << digit, np.int64)
            items, new = np.zeros(cpu.items_for(room), np.int32), np.zeros(n, np.int64)
            given = (x, like, dealt, counts, items, n, low, digit, part, room)
            agree_on_new(cpu.even_order, new, *given)


@pytest.mark.parametrize("kind", ["random", "equal", "largest", "few"])
@pytest.mark.parametrize("spread", [8, -3])
def test_the_first_places_are_those_of_the_order(
    kind: str, spread: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where words are not random, or too few lie below the limit."""
    monkeypatch.setattr(orders, "_SPREAD", spread)
    words = np.random.default_rng(0).integers(0, 2**64, 20_000, np.uint64, endpoint=False)
    words = {
        "random": words, "equal": np.zeros_like(words), "largest": ~np.zeros_like(words),
        "few": words % np.uint64(7),
    }[kind]  # fmt: skip
    for count in (1 if spread > 0 else 30, 40, 5000, 20_000):
        np.testing.assert_array_equal(first(words, count), plain_argsort(words, 0, False)[:count])
