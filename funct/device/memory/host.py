"""The host's allocator: one reserved range of addresses, a front for everybody, private ones.

`serve()` makes NumPy take its large buffers here, in all threads; funct calls it where large arrays
come in, so that importing funct changes nothing for others.
"""

from __future__ import annotations

import atexit
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from msgspec.structs import astuple, replace

from funct.device.fork import in_child
from funct.device.memory.allocator import (
    BlockInfo,
    Event,
    SegmentInfo,
    Stat,
    Statistics,
    register,
)
from funct.device.memory.arena import HostArena, back, physical, reserve
from funct.device.memory.front import Front, Lent, lock, set_handler
from funct.device.memory.front_record import UNIT
from funct.device.memory.policy import Options, Pool

__all__ = ["HOST", "LARGE", "HostMemory", "PrivatePool", "is_serving", "room", "serve"]

LARGE = 1 << 16  # bytes of an array that is worth a call of `serve` where it is made
_ENOUGH = 1 << 21  # bytes of such arrays from which on LLVM is loaded (60 ms) to serve them
_ENTRY = 16  # bytes of the table for each unit
_QUANTITIES = ("allocation", "allocated_bytes", "requested_bytes")

_seen = 0  # bytes of large arrays before they were enough
_serving = False


def serve(size: int = _ENOUGH) -> None:
    """Large arrays that this process makes from now on lie in blocks of ours, if it is worth it:
    size is that of one that it makes now."""
    global _seen, _serving
    if not _serving:
        _seen += size
        if _seen < _ENOUGH:
            return
        _serving = True
        front = HOST.front()
        if front is not None:
            front.serve_everybody()


def is_serving() -> bool:
    """Whether large arrays lie in blocks of ours: one that dies leaves its pages to the next."""
    return _serving and HOST.has_front


def room() -> int:
    """Bytes that may still be taken from the system."""
    ground = _ground()
    return 0 if ground is None else (ground[0].limit or physical()) - ground[0].reserved


@functools.cache
def _ground() -> tuple[HostArena, int] | None:
    """The reserved range and its table; None where the system has no such thing."""
    if sys.platform == "win32":
        return None
    size = 16 * physical()
    while size > physical() // 4:
        base, table = reserve(size), reserve(size // UNIT * _ENTRY)
        if base is not None and table is not None and back(table, size // UNIT * _ENTRY):
            return HostArena(base, size, physical()), table
        size //= 2  # the system, or a limit of this process, gives fewer addresses
    return None


class _Fronts:
    """What is asked of one front or of several."""

    def _all(self) -> list[Front]:
        raise NotImplementedError

    def statistics(self) -> Statistics:
        """What they have done until now, in all."""
        with lock:
            fronts = self._all()
            ground = _ground() if fronts else None
            return Statistics(
                {name: _sum([_pool(f, k) for f in fronts]) for k, name in enumerate(_POOLS)},
                sum([f.policy.retries for f in fronts]),
                sum([f.policy.failures for f in fronts]),
                ground[0].calls if ground else 0,
                ground[0].limit if ground else physical(),
            )

    def segments(self) -> list[SegmentInfo]:
        """What they hold."""
        with lock:
            return [x for f in self._all() for x in _segments(f)]

    def events(self) -> list[Event]:
        """What was recorded, in order of time."""
        with lock:
            for f in self._all():
                f.hear()
            return sorted([e for f in self._all() for e in f.events], key=lambda e: e.time)

    def lent(self) -> list[Lent]:
        """The blocks that arrays have now, of those that were recorded."""
        with lock:
            for f in self._all():
                f.hear()
            return [x for f in self._all() for x in f.lent.values()]

    def record_events(self, most: int) -> None:
        """Remember the last so many events from now on; 0: no more of them."""
        for f in self._all():
            f.record_events(most)

    def empty_cache(self) -> int:
        """Give back to the system what is free; how many bytes that was."""
        with lock:
            for f in self._all():
                f.reclaim()
            return sum([f.policy.empty() for f in self._all()])

    def reset_peak(self) -> None:
        """Peaks are what is there now."""
        with lock:
            for f in self._all():
                f.reset_peak()


class HostMemory(_Fronts):
    """All memory of the host: everybody's front and the private ones."""

    def __init__(self) -> None:
        self.options = Options()
        self._everybody: Front | None = None
        self._private: list[Front] = []
        # What the front's peaks are for each block that watches, in any thread; before them what
        # they are for nobody in particular.
        self._peaks: list[list[int]] = []
        self._recorded = 0

    def front(self) -> Front | None:
        """Everybody's, made when it is first needed; None where the system cannot have one."""
        with lock:
            if self._everybody is None and _ground() is not None:
                self._everybody = self._made(0)
                atexit.register(self._retire)
            return self._everybody

    @property
    def has_front(self) -> bool:
        """Whether everybody's is made."""
        return self._everybody is not None

    def private(self) -> Front | None:
        """One more, with segments of its own."""
        with lock:
            if self.front() is None:
                return None
            self._private.append(self._made(len(self._private) + 1))
            return self._private[-1]

    def _made(self, number: int) -> Front:
        ground = _ground()
        assert ground is not None
        arena, table = ground
        near = arena.size // 64 * (4 * number % 60)  # far from each other: room to grow in place
        front = Front(arena, table, self.options, (near, near + arena.size // 32))
        front.pressure = self.empty_cache
        front.record_events(self._recorded)
        in_child(front.forget_lock)
        return front

    def _retire(self) -> None:
        """Python ends: requests that no bin can meet go to NumPy's own functions."""
        for f in self._all():
            f.retire()

    def _all(self) -> list[Front]:
        return [*([self._everybody] if self._everybody else []), *self._private]

    def configure(self, options: Options) -> None:
        """Divide memory in another way from now on."""
        with lock:
            self.options = options
            for f in self._all():
                f.configure(options)

    def record_events(self, most: int) -> None:
        """Remember the last so many events from now on; 0: no more of them."""
        with lock:
            self._recorded = most
            self.front()
            super().record_events(most)

    def set_limit(self, limit: int | None) -> None:
        """Hold at most so many bytes, free ones included; None: what the machine has."""
        if limit is not None:
            serve()
        ground = _ground()
        with lock:
            if ground is not None:
                ground[0].limit = physical() if limit is None else limit
                if ground[0].reserved > ground[0].limit:
                    self.empty_cache()

    def reset_peak(self) -> None:
        """As for any front; blocks that watch keep theirs."""
        with lock:
            self._look()
            super().reset_peak()
            if self._peaks:
                self._peaks[0][:] = [0] * len(self._peaks[0])

    @contextmanager
    def watching(self) -> Iterator[Callable[[], tuple[dict[str, Stat], Statistics]]]:
        """Peaks start anew in the block and are as if they had not afterwards; blocks of several
        threads may begin and end in any order.

        Gives a function that sums the pools of everybody's front: private ones are apart, and in
        the statistics beside the sum.
        """
        front = self.front()
        if front is None:
            yield lambda: (_sum([]), self.statistics())
            return
        stats = _counted(front)

        def total() -> tuple[dict[str, Stat], Statistics]:
            with lock:
                parts = [_pool(front, k) for k in range(len(_POOLS))]
                self._look()
                for k, part in enumerate(parts):
                    for name, peak in zip(_QUANTITIES, own[k * len(_QUANTITIES) :], strict=False):
                        part[name] = replace(part[name], peak=peak)
                return _sum(parts), self.statistics()

        with lock:
            self._look()
            own = [s[0] for s in stats]
            self._peaks = [*(self._peaks or [[s[1] for s in stats]]), own]
            for s in stats:
                s[1] = s[0]
        try:
            yield total
        finally:
            with lock:
                self._look()
                self._peaks = [p for p in self._peaks if p is not own]
                if len(self._peaks) == 1:
                    for s, peak in zip(stats, self._peaks.pop(), strict=True):
                        s[1] = peak

    def _look(self) -> None:
        """Let all blocks that watch know the peaks until now."""
        for peaks in self._peaks:
            stats = _counted(self._everybody)
            peaks[:] = [max(p, *s[:2]) for p, s in zip(peaks, stats, strict=True)]

    def failed(self) -> int | None:
        """Bytes of the last request that could not be met; it is then forgotten."""
        with lock:
            for f in self._all():
                if f.failed is not None:
                    found, f.failed = f.failed, None
                    return found
        return None


class PrivatePool(_Fronts):
    """Memory apart from everybody's: arrays made in its block lie in segments of its own.

    Example:
        >>> import funct as ft
        >>> import funct.array as xp
        >>> pool = ft.device.PrivatePool()
        >>> with pool:
        ...     x = xp.ones(1 << 20) + 1
        >>> pool.statistics().pools["large_pool"]["allocation"].current
        1
    """

    def __init__(self) -> None:
        self._front = HOST.private()
        self._outer: list[Any] = []

    def _all(self) -> list[Front]:
        return [self._front] if self._front else []

    def set_limit(self, limit: int | None) -> None:
        """The limit is one for all memory of the host."""
        HOST.set_limit(limit)

    def __enter__(self) -> Self:
        if self._front is not None:
            self._outer.append(set_handler(self._front.capsule))
        return self

    def __exit__(self, *_: object) -> None:
        if self._outer:
            set_handler(self._outer.pop())


_POOLS = ("small_pool", "large_pool")


def _counted(front: Front | None) -> list[Any]:
    """What machine code counts, quantity by quantity of both pools."""
    return [s for pool in front.record.stats for s in pool] if front is not None else []


def _pool(front: Front, k: int) -> dict[str, Stat]:
    """The quantities of one pool of one front."""
    pool: Pool = (front.policy.small, front.policy.large)[k]
    found = {name: Stat(*front.record.stats[k][i]) for i, name in enumerate(_QUANTITIES)}
    found["segment"] = Stat(*astuple(pool.number))
    found["reserved_bytes"] = Stat(*astuple(pool.reserved))
    found["inactive_split_bytes"] = Stat(*astuple(pool.inactive))
    return found


def _sum(parts: list[dict[str, Stat]]) -> dict[str, Stat]:
    names = [*_QUANTITIES, "segment", "reserved_bytes", "inactive_split_bytes"]
    return {name: sum([p[name] for p in parts], Stat()) for name in names}


def _segments(front: Front) -> list[SegmentInfo]:
    front.hear()
    found = []
    waiting = front.waiting()
    for pool in (front.policy.small, front.policy.large):
        for segment in pool.segments:
            blocks = []
            for b in segment.blocks():
                held = front.lent.get(b.start)
                state = "inactive" if b.free else "cached" if b.start in waiting else "active"
                asked = 0 if state != "active" else front.asked(b.start)
                site = held.site if held is not None and state == "active" else ""
                blocks.append(BlockInfo(b.start, b.size, state, asked, site))
            found.append(SegmentInfo(segment.start, segment.size, pool.name, tuple(blocks)))
    return found


HOST = HostMemory()
register("cpu", HOST)
