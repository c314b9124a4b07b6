"""What memory holds, for people: a table, and what to say when there is no more."""

from __future__ import annotations

from collections import Counter, defaultdict

from funct.device.memory.allocator import Stat, Statistics
from funct.device.memory.front import Lent
from funct.device.memory.host import HOST

__all__ = ["failure", "readable", "table"]

_ROWS = (
    ("allocated", "allocated_bytes"),
    ("requested", "requested_bytes"),
    ("reserved", "reserved_bytes"),
    ("inactive split", "inactive_split_bytes"),
    ("blocks", "allocation"),
    ("segments", "segment"),
)
_COUNTS = ("allocation", "segment")
_TOP = 10


def readable(size: int) -> str:
    """Bytes with a unit: 64.0 MiB."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def table(device: str, found: Statistics) -> str:
    """The statistics as text."""
    width = 78
    lines = [
        f" memory of {device} ".center(width, "="),
        f"limit {readable(found.limit) if found.limit else 'none'} · "
        f"retries {found.retries} · failures {found.failures} · arena calls {found.arena_calls}",
        "-" * width,
        f"{'':24}{'now':>12}{'peak':>12}{'in all':>14}{'given back':>14}",
    ]
    for title, name in _ROWS:
        parts = {pool: stats.get(name, Stat()) for pool, stats in found.pools.items()}
        rows = {title: sum(parts.values(), Stat())} | {
            f"  {pool.replace('_', ' ')}": stat for pool, stat in parts.items()
        }
        lines.append("-" * width)
        for row, s in rows.items():
            shown = [
                str(v) if name in _COUNTS else readable(v)
                for v in (s.current, s.peak, s.allocated, s.freed)
            ]
            lines.append(f"{row:24}{shown[0]:>12}{shown[1]:>12}{shown[2]:>14}{shown[3]:>14}")
    return "\n".join([*lines, "=" * width])


def failure() -> str:
    """About the last request that could not be met: what was asked, what is held and by whom.

    Empty where none has failed since this was last called.
    """
    asked = HOST.failed()
    if asked is None:
        return ""
    found = HOST.statistics()
    sums = [
        sum([stats[name].current for stats in found.pools.values()])
        for name in ("allocated_bytes", "reserved_bytes")
    ]
    lines = [
        f"asked for {readable(asked)}; held by arrays {readable(sums[0])}, "
        f"reserved {readable(sums[1])}, limit {readable(found.limit or 0)}"
    ]
    held = _by_line(HOST.lent()) or _by_size()
    return "\n    ".join(lines + held)


def _by_line(lent: list[Lent]) -> list[str]:
    bytes_of: defaultdict[str, int] = defaultdict(int)
    number_of: Counter[str] = Counter()
    for x in lent:
        bytes_of[x.site] += x.requested
        number_of[x.site] += 1
    largest = sorted(bytes_of, key=lambda site: -bytes_of[site])[:_TOP]
    return [
        f"{readable(bytes_of[site])} in {number_of[site]} from {site or 'an unknown line'}"
        for site in largest
    ]


def _by_size() -> list[str]:
    number_of = Counter(
        [b.requested for s in HOST.segments() for b in s.blocks if b.state == "active"]
    )
    largest = sorted(number_of, key=lambda size: -size * number_of[size])[:_TOP]
    lines = [f"{number_of[size]} × {readable(size)}" for size in largest]
    return [*lines, "(under funct.device.record_memory() this names the lines)"] if lines else []
