"""Memory of the devices: what arrays have, what is kept for the next ones, how much there may be.

Large buffers of the host come from a caching allocator of our own, in this order of files:
`policy.py` decides which block a request gets; `arena.py` has the addresses; `front.py` and its
machine code (`front_text.py` over `bins_text.py`) are what NumPy calls; `host.py` puts them
together; `report.py` and `timeline.py` show what is held; `touching.py` has pages touched before
they are needed. `allocator.py` is what any other device's pool has to answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from funct.device.memory import timeline
from funct.device.memory.allocator import Allocator, Stat, Statistics, allocator, register
from funct.device.memory.arena import physical
from funct.device.memory.host import HOST, LARGE, PrivatePool, is_serving, room, serve
from funct.device.memory.policy import Options
from funct.device.memory.report import failure, readable, table
from funct.device.memory.touching import Touching
from funct.errors import ArgumentError

__all__ = [
    "LARGE", "Allocator", "MemoryScope", "Options", "PrivatePool", "Stat", "Statistics",
    "Touching", "configure_memory", "empty_cache", "failure", "is_serving", "memory_scope",
    "memory_snapshot", "memory_stats", "memory_summary", "readable", "record_memory", "register",
    "reset_peak", "room", "serve", "set_limit",
]  # fmt: skip


def memory_stats(device: str = "cpu") -> dict[str, int]:
    """What memory has done, by names as `torch.cuda.memory_stats` has them.

    "<quantity>.<pool>.<what>": quantities allocated_bytes (rounded to blocks), requested_bytes,
    reserved_bytes (taken from the system), inactive_split_bytes (free pieces of segments that are
    divided, but not what waits for the next array of its size), allocation and segment (numbers of
    them); pools all, small_pool, large_pool; what current, peak (since `reset_peak`), allocated,
    freed. The peak of all is at most what it says: peaks of pools are added. Then
    num_alloc_retries, num_ooms, num_arena_calls and limit.

    Raises: ArgumentError: where there is no such device.

    Example:
        >>> import funct as ft
        >>> stats = ft.device.memory_stats()
        >>> stats["allocated_bytes.all.current"] <= stats["reserved_bytes.all.current"]
        True
    """
    found = allocator("memory_stats", device).statistics()
    flat: dict[str, int] = {}
    names = list(dict.fromkeys([name for stats in found.pools.values() for name in stats]))
    for name in names:
        parts = {pool: stats.get(name, Stat()) for pool, stats in found.pools.items()}
        for pool, stat in {"all": sum(parts.values(), Stat()), **parts}.items():
            for what, value in asdict(stat).items():
                flat[f"{name}.{pool}.{what}"] = value
    flat["num_alloc_retries"] = found.retries
    flat["num_ooms"] = found.failures
    flat["num_arena_calls"] = found.arena_calls
    flat["limit"] = found.limit or 0
    return flat


def memory_summary(device: str = "cpu") -> str:
    """`memory_stats` as a table."""
    return table(device, allocator("memory_summary", device).statistics())


def memory_snapshot(
    path: str | os.PathLike[str] | None = None, *, device: str = "cpu"
) -> dict[str, Any]:
    """Every segment with its blocks, the events that were recorded, and the statistics.

    path: where to write it too: JSON, or for a name that ends in .html a page that shows bytes over
    time by the user's line and what lies where.

    Raises: ArgumentError: where there is no such device, or the name ends otherwise.
    """
    kind = os.path.splitext(path)[1] if isinstance(path, str | os.PathLike) else path
    if kind not in (None, ".json", ".html"):
        raise ArgumentError(f"memory_snapshot: path must end in .json or .html, got {path!r}")
    memory = allocator("memory_snapshot", device)
    segments, events = memory.segments(), memory.events()
    snapshot = {
        "device": device,
        "segments": to_builtins(segments),
        "events": to_builtins(events),
        "stats": memory_stats(device),
    }
    if path is not None:
        import json  # a fiftieth of the time that `import funct` takes, for a file seldom written

        text = (
            json.dumps(snapshot)
            if kind == ".json"
            else timeline.page(events, segments, memory_summary(device))
        )
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return snapshot


@contextmanager
def record_memory(most: int = 100_000) -> Iterator[None]:
    """In the block, remember the last `most` events, each with the line of the user's code.

    What is lent and comes back is then in `memory_snapshot`, also after the block until another one
    begins. In the block the snapshot and an AllocationError name the lines whose arrays have the
    memory. A request costs some microseconds more.
    """
    given: Any = most
    if not isinstance(given, int) or not 1 <= given <= sys.maxsize:
        raise ArgumentError(f"record_memory: most must be an int of at least 1, got {most!r}")
    serve()
    HOST.record_events(most)
    try:
        yield
    finally:
        HOST.record_events(0)


_TAKEN = {"allocations": "allocation", "requested": "requested_bytes"}
_GROWN = {
    "active": "allocated_bytes", "reserved": "reserved_bytes",
    "inactive_split": "inactive_split_bytes",
}  # fmt: skip


class MemoryScope(Struct, eq=False):
    """What a block of code did: bytes it was lent, gave back and had at most beyond the start.

    requested: bytes of `allocated` that arrays asked for. active, reserved, inactive_split: by how
    much what arrays have, what is taken from the system, and what of that is free between blocks in
    use, has grown.
    retries, failures, arena_calls: how often memory was full at first, for good, and asked of the
    system, by any pool.
    """

    allocated: int = 0
    freed: int = 0
    peak: int = 0
    allocations: int = 0
    requested: int = 0
    active: int = 0
    reserved: int = 0
    inactive_split: int = 0
    retries: int = 0
    failures: int = 0
    arena_calls: int = 0


@contextmanager
def memory_scope() -> Iterator[MemoryScope]:
    """Statistics of a block; scopes may stand in each other. They are there when it ends.

    Example:
        >>> import funct as ft
        >>> import funct.array as xp
        >>> with ft.device.memory_scope() as scope:
        ...     x = xp.ones((512, 512)) + 1
        >>> scope.allocated >= 512 * 512 * 8
        True
    """
    serve()
    scope = MemoryScope()
    with HOST.watching() as total:
        before, sooner = total()
        try:
            yield scope
        finally:
            after, later = total()
            then, now = before["allocated_bytes"], after["allocated_bytes"]
            scope.allocated = now.allocated - then.allocated
            scope.freed = now.freed - then.freed
            scope.peak = now.peak - then.current
            for field, name in _TAKEN.items():
                setattr(scope, field, after[name].allocated - before[name].allocated)
            for field, name in _GROWN.items():
                setattr(scope, field, after[name].current - before[name].current)
            for field in ("retries", "failures", "arena_calls"):
                setattr(scope, field, getattr(later, field) - getattr(sooner, field))


def empty_cache(device: str = "cpu") -> int:
    """Give free memory back to the system; how many bytes that was."""
    return allocator("empty_cache", device).empty_cache()


def reset_peak(device: str = "cpu") -> None:
    """Let peaks start from what is there now."""
    allocator("reset_peak", device).reset_peak()


def set_limit(limit: float | None, device: str = "cpu") -> None:
    """Hold at most so much memory, what is kept for later included.

    limit: bytes as an int, a share of the machine's memory as a float up to 1.0, or None for all.
    Only what funct's allocator holds counts: arrays of 64 KiB and more.

    Raises: ArgumentError: for anything else. Later, what would pass the limit raises an
    AllocationError, after everything free has been given back.
    """
    given: Any = limit
    most = {int: physical() * 1024, float: 1.0, type(None): 0}.get(type(given), -1)
    if most < 0 or (given is not None and not 0 <= given <= most):
        raise ArgumentError(
            f"set_limit: limit must be bytes, a share between 0.0 and 1.0, or None, got {limit!r}"
        )
    found = int(given * physical()) if isinstance(given, float) else given
    allocator("set_limit", device).set_limit(found)


def configure_memory(**changes: Any) -> Options:
    """Change how memory of the host is divided; the fields are those of `Options`.

    Raises: ArgumentError: for a field that does not exist or a value that it may not have.
    """
    unknown = set(changes) - {f.name for f in attrs.fields(Options)}
    if unknown:
        raise ArgumentError(f"configure_memory: no option {', '.join(sorted(unknown))}")
    options = attrs.evolve(HOST.options, **changes)
    HOST.configure(options)
    return options
