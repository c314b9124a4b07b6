"""Addresses of the host, reserved at once and backed by memory piece by piece.

Reserving costs nothing: the system hands out pages where they are first written. What is given back
is addresses again. Huge pages are not asked for here: see `huge_pages.py`.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import sys
from typing import Any

__all__ = ["HostArena", "back", "physical", "reserve"]

_HUGE = 2 << 20  # bytes of a huge page, to which segments are aligned
_FAILED = ctypes.c_void_p(-1).value
_NONE, _READ_WRITE = 0, 3
_FIXED = 0x10
_NORESERVE = 0x4000 if sys.platform == "linux" else 0x40


@functools.cache
def physical() -> int:
    """Bytes of memory that this process may have: the machine's, or those of its control group."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            group = file.read().strip()
    except OSError:
        return found
    return min(found, int(group)) if group.isdecimal() else found


@functools.cache
def _system() -> Any:
    system = ctypes.CDLL(None)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    system.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    system.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return system


def reserve(size: int) -> int | None:
    """The address of that many bytes that nothing backs yet, or None."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
    found: int = _system().mmap(None, size, _NONE, flags, -1, 0)
    return None if found == _FAILED else found


def back(start: int, size: int) -> bool:
    """Whether these reserved bytes can be written from now on."""
    return not _system().mprotect(start, size, _READ_WRITE)


def _clear(start: int, size: int) -> None:
    """Make zeros of what is in these bytes, whose pages go where the system can do that."""
    linux = sys.platform == "linux"  # elsewhere pages that are not needed may keep what they hold
    if not linux or _system().madvise(start, size, mmap.MADV_DONTNEED):
        ctypes.memset(start, 0, size)


class HostArena:
    """One reserved range; holes are what nobody has of it."""

    def __init__(self, base: int, size: int, limit: int | None) -> None:
        self.base = -(-base // _HUGE) * _HUGE
        self.size = (base + size - self.base) // _HUGE * _HUGE
        self.limit = limit
        self.calls = 0
        self._holes = [(self.base, self.size)]  # replaced at once: a signal may come at any line

    @property
    def reserved(self) -> int:
        """See `Arena`."""
        return self.size - sum([length for _, length in self._holes])

    def take(self, size: int, near: int, at: int | None = None) -> int | None:
        """See `Arena`; near is counted from the base."""
        if self.limit is not None and self.reserved + size > self.limit:
            return None
        start = at if at is not None else self._place(size, self.base + near)
        hole = None if start is None else self._hole(start, size)
        if start is None or hole is None:
            return None
        self.calls += 1
        if not back(start, size):
            return None
        low, length = self._holes[hole]
        parts = ((low, start - low), (start + size, low + length - start - size))
        left = [part for part in parts if part[1]]
        self._holes = [*self._holes[:hole], *left, *self._holes[hole + 1 :]]
        return start

    def give(self, start: int, size: int) -> None:
        """See `Arena`."""
        self.calls += 1
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE | _FIXED
        if _system().mmap(start, size, _NONE, flags, -1, 0) == _FAILED:
            _clear(start, size)  # too many ranges already: it stays backed, but holds nothing
        joined: list[tuple[int, int]] = []
        for low, length in sorted([*self._holes, (start, size)]):
            if joined and sum(joined[-1]) == low:
                joined[-1] = (joined[-1][0], joined[-1][1] + length)
            else:
                joined.append((low, length))
        self._holes = joined

    def _place(self, size: int, near: int) -> int | None:
        """Where so many bytes fit beyond near, or anywhere."""
        for least in (near, self.base):
            for low, length in self._holes:
                start = -(-max(low, least) // _HUGE) * _HUGE
                if start + size <= low + length:
                    return start
        return None

    def _hole(self, start: int, size: int) -> int | None:
        for k, (low, length) in enumerate(self._holes):
            if low <= start and start + size <= low + length:
                return k
        return None
