"""What every device's allocator answers, ours for the host and a library's pool elsewhere."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import astuple

from funct.errors import ArgumentError

__all__ = [
    "Allocator", "BlockInfo", "Event", "SegmentInfo", "Stat", "Statistics", "allocator", "register",
]  # fmt: skip


class Stat(Struct, frozen=True):
    """One quantity: how much now, at most since the last reset, in all added and taken."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def __add__(self, other: Stat) -> Stat:
        """Both together; the sum of the peaks bounds the peak of the sum."""
        return Stat(*[a + b for a, b in zip(astuple(self), astuple(other))])


class Statistics(Struct, frozen=True):
    """What an allocator has done. pools: for each pool's name, each quantity by name."""

    pools: dict[str, dict[str, Stat]]
    retries: int
    failures: int
    arena_calls: int
    limit: int | None


class BlockInfo(Struct, frozen=True):
    """A piece of a segment: "active" is lent, "cached" free for its own size, else "inactive"."""

    address: int
    size: int
    state: str
    requested: int = 0
    site: str = ""


class Event(Struct, frozen=True):
    """A block was lent (its bytes) or came back (negative), at a time in nanoseconds."""

    time: int
    address: int
    bytes: int
    site: str


class SegmentInfo(Struct, frozen=True):
    """What came from the system at once, and its blocks in order."""

    address: int
    size: int
    pool: str
    blocks: tuple[BlockInfo, ...]


class Allocator(Protocol):
    """A device's memory."""

    def statistics(self) -> Statistics:
        """What it has done until now."""

    def segments(self) -> list[SegmentInfo]:
        """What it holds."""

    def events(self) -> list[Event]:
        """What was recorded, in order of time."""

    def empty_cache(self) -> int:
        """Give back to the system what is free; how many bytes that was."""

    def reset_peak(self) -> None:
        """Peaks are what is there now."""

    def set_limit(self, limit: int | None) -> None:
        """Hold at most so many bytes, free ones included."""


_allocators: dict[str, Allocator] = {}


def register(device: str, found: Allocator) -> None:
    """The allocator of a device, by the device's name."""
    _allocators[device] = found


def allocator(function: str, device: Any) -> Allocator:
    """The allocator of the device; an error in the function's name where there is none."""
    found = _allocators.get(device) if isinstance(device, str) else None
    if found is None:
        known = ", ".join(sorted(_allocators))
        raise ArgumentError(f"{function}: no memory of device {device!r}; the devices are: {known}")
    return found
