"""Addresses of the host: what comes back is empty, also where the system refuses to take it."""

from __future__ import annotations

import ctypes

import pytest

from funct.device.memory import arena

SIZE = 4 << 20


@pytest.mark.parametrize("refuses", ["nothing", "mmap", "mmap and madvise"])
def test_what_was_given_back_is_zeros(refuses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may have only so many ranges, and giving one back in the middle makes two more."""
    base = arena.reserve(4 * SIZE)
    assert base is not None
    held = arena.HostArena(base, 4 * SIZE, None)
    start = held.take(SIZE, 0)
    assert start is not None
    ctypes.memset(start, 7, SIZE)

    class System:
        mprotect = arena._system().mprotect

        def mmap(self, *given: int) -> int | None:
            return arena._FAILED if "mmap" in refuses else found.mmap(*given)

        def madvise(self, *given: int) -> int:
            return -1 if "madvise" in refuses else int(found.madvise(*given))

    found = arena._system()
    monkeypatch.setattr(arena, "_system", System)
    held.give(start, SIZE)
    assert held.reserved == 0
    assert held.take(SIZE, 0, start) == start
    assert ctypes.string_at(start, SIZE) == bytes(SIZE)
    held.give(start, SIZE)
