"""A device's memory where a library has the pool: its pool, our figures.

The library takes its memory through `malloc`, which counts and asks the pool what is in use.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Protocol

from funct.device.memory.allocator import BlockInfo, Event, SegmentInfo, Stat, Statistics

__all__ = ["LibraryPool", "Pooled"]

_UNIT = 512  # bytes; blocks of CuPy's pool are multiples of it


class LibraryPool(Protocol):
    """What a library's pool answers: CuPy's `MemoryPool`, by its names."""

    def malloc(self, size: int, /) -> Any:
        """A block; raises MemoryError."""

    def used_bytes(self) -> int:
        """What arrays have."""

    def total_bytes(self) -> int:
        """What it has of the device."""

    def free_all_blocks(self) -> None:
        """Give back what is free."""

    def set_limit(self, size: int) -> None:
        """Hold at most so many bytes; 0 is as many as there are."""

    def get_limit(self) -> int:
        """The limit; 0 without one."""


class _Gauge:
    """A quantity that is read off, its peak, and what was added to it in all."""

    def __init__(self) -> None:
        self.peak = 0
        self.up = 0

    def read(self, now: int) -> Stat:
        self.peak = max(self.peak, now)
        self.up = max(self.up, now)  # some may have been there before
        return Stat(now, self.peak, self.up, self.up - now)


class Pooled:
    """An `Allocator` over a library's pool; peaks are those that were there at some `malloc`."""

    def __init__(self, pool: LibraryPool) -> None:
        self._pool = pool
        self._used, self._held = _Gauge(), _Gauge()
        self._calls = self._failures = 0
        self._lock = Lock()

    def malloc(self, size: int) -> Any:
        """A block of the pool, counted. Raises: MemoryError: where there is none."""
        held = self._pool.total_bytes()
        try:
            block = self._pool.malloc(size)
        except MemoryError:
            with self._lock:
                self._failures += 1
            raise
        with self._lock:
            grown = self._pool.total_bytes() - held
            self._calls += grown > 0
            self._held.up += max(grown, 0)
            self._used.up += -(-size // _UNIT) * _UNIT
            self._read()
        return block

    def _read(self) -> dict[str, Stat]:
        return {
            "allocated_bytes": self._used.read(self._pool.used_bytes()),
            "reserved_bytes": self._held.read(self._pool.total_bytes()),
        }

    def statistics(self) -> Statistics:
        """What it has done until now. Retries are the library's own, and not told."""
        with self._lock:
            limit = self._pool.get_limit() or None
            return Statistics({"large_pool": self._read()}, 0, self._failures, self._calls, limit)

    def segments(self) -> list[SegmentInfo]:
        """What is in use and what is free, each as one block: a library tells no addresses."""
        used, held = self._pool.used_bytes(), self._pool.total_bytes()
        blocks = (BlockInfo(0, used, "active"), BlockInfo(used, held - used, "cached"))
        return [SegmentInfo(0, held, "large_pool", blocks)] if held else []

    def events(self) -> list[Event]:
        """None: a library does not tell when a block comes back."""
        return []

    def empty_cache(self) -> int:
        """Give back to the device what is free; how many bytes that was."""
        before = self._pool.total_bytes()
        self._pool.free_all_blocks()
        return before - self._pool.total_bytes()

    def reset_peak(self) -> None:
        """Peaks are what is there now."""
        with self._lock:
            self._used.peak = self._held.peak = 0
            self._read()

    def set_limit(self, limit: int | None) -> None:
        """Hold at most so many bytes, free ones included."""
        self._pool.set_limit(size=limit or 0)
