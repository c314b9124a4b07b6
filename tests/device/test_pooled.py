"""Memory that a device's library holds: figures of ours over a pool of theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import funct as ft
from funct.device.memory.allocator import _allocators, allocator, register
from funct.device.memory.pooled import Pooled
from funct.errors import ArgumentError


class Paper:
    """A pool of made-up bytes that keeps what comes back, by size."""

    def __init__(self, most: int = 1 << 40) -> None:
        self.most, self.limit = most, 0
        self.used = self.total = 0
        self.free: Counter[int] = Counter()

    def malloc(self, size: int) -> int:
        """A block is its size."""
        size = -(-size // 512) * 512
        if self.free[size]:
            self.free[size] -= 1
        elif self.total + size > (self.limit or self.most):
            raise MemoryError(size)
        else:
            self.total += size
        self.used += size
        return size

    def give(self, block: int) -> None:
        """The block is free again."""
        self.used -= block
        self.free[block] += 1

    def used_bytes(self) -> int:
        """What is lent."""
        return self.used

    def total_bytes(self) -> int:
        """What there is."""
        return self.total

    def free_all_blocks(self) -> None:
        """Forget free blocks."""
        self.total = self.used
        self.free.clear()

    def set_limit(self, size: int) -> None:
        """0 is none."""
        self.limit = size

    def get_limit(self) -> int:
        """0 is none."""
        return self.limit


@pytest.fixture
def pool() -> Iterator[Paper]:
    """A pool that is the memory of device "paper"."""
    found = Paper()
    register("paper", Pooled(found))
    yield found
    del _allocators["paper"]


@given(st.lists(st.integers(1, 5000), max_size=30), st.data())
def test_figures_follow_the_pool(sizes: list[int], data: Any) -> None:
    """Current is what the pool says, the peak what it said at most, sums what was asked in all."""
    pool = Paper()
    memory = Pooled(pool)
    lent: list[int] = []
    most = asked = 0
    for size in sizes:
        lent.append(memory.malloc(size))
        asked += lent[-1]
        most = max(most, pool.used)
        if data.draw(st.booleans()):
            pool.give(lent.pop(data.draw(st.integers(0, len(lent) - 1))))
    stats = memory.statistics().pools["large_pool"]
    allocated = stats["allocated_bytes"]
    assert allocated.current == pool.used == sum(lent)
    assert (allocated.peak, allocated.allocated) == (most, asked)
    assert allocated.freed == asked - pool.used
    assert stats["reserved_bytes"].current == pool.total
    assert sum(b.size for s in memory.segments() for b in s.blocks) == pool.total
    memory.reset_peak()
    assert memory.statistics().pools["large_pool"]["allocated_bytes"].peak == pool.used
    free = pool.total - pool.used
    assert memory.empty_cache() == free
    assert pool.total == pool.used


def test_the_functions_of_memory_take_the_device(pool: Paper) -> None:
    """Statistics, summary, snapshot, limit and cache, by the device's name."""
    memory: Any = allocator("test", "paper")
    block = memory.malloc(1000)
    assert ft.device.memory_stats("paper")["allocated_bytes.all.current"] == 1024
    assert "paper" in ft.device.memory_summary("paper")
    assert ft.device.memory_snapshot(device="paper")["segments"][0]["size"] == 1024
    pool.give(block)
    ft.device.empty_cache("paper")
    assert ft.device.memory_stats("paper")["reserved_bytes.all.current"] == 0
    ft.device.set_limit(2048, "paper")
    with pytest.raises(MemoryError):
        memory.malloc(4096)
    assert ft.device.memory_stats("paper")["num_ooms"] == 1
    assert ft.device.memory_stats("paper")["limit"] == 2048
    with pytest.raises(ArgumentError, match="no memory of device 'other'"):
        ft.device.memory_stats("other")
