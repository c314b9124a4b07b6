"""Pages of arrays that are written soon, touched meanwhile by a thread of their own.

The system gives memory page by page, at the first touch. A program that writes into fresh arrays
waits for that longer than for all it computes.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from typing import Any

from funct.device.memory.front import front_code
from funct.device.memory.huge_pages import HUGE, has_huge_pages
from funct.device.memory.touching_text import DONE, HURRY

__all__ = ["Touching"]

_PIECE = 1 << 17  # bytes between two looks at what is wanted
_SLOW = 5  # word of a job
_slow = False  # whether huge pages were: of this machine, which is asked once


class Touching:
    """Dense arrays that nobody else knows: a 0 is written into each of their pages until `end`, or
    they get huge pages where those come soon.

    begun: whether the system had a thread for it.
    """

    def __init__(self, arrays: Sequence[Any]) -> None:
        self._arrays = arrays
        self._process = os.getpid()
        huge, loose, inner = _pieces(arrays)
        ends = [*huge, *loose, *inner]
        counts = len(huge) // 2, (len(huge) + len(loose)) // 2, len(ends) // 2
        self._pieces = (ctypes.c_int64 * len(ends))(*ends)
        self._job = (ctypes.c_int64 * 9)(ctypes.addressof(self._pieces), *counts)
        begin = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        at = front_code().address("begin_touching")
        self.begun = not begin(at)(ctypes.addressof(self._job))

    def end(self, *, all_of_it: bool) -> None:
        """The thread ends. all_of_it: once every page is touched, by two threads from now on."""
        global _slow
        begun, self.begun = self.begun, False
        if begun and os.getpid() == self._process:  # a forked child has no such thread
            form = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
            end = form(front_code().address("end_touching"))
            end(ctypes.addressof(self._job), HURRY if all_of_it else DONE)
            _slow = _slow or bool(self._job[_SLOW])


def _pieces(arrays: Sequence[Any]) -> tuple[list[int], list[int], list[int]]:
    """Starts and ends of what is touched: parts of arrays that a huge page may hold; all that is in
    no such page, or in one that holds less than it might; and the rest, for small pages.
    """
    huge: list[int] = []
    loose: list[int] = []
    inner: list[int] = []
    whole = HUGE if has_huge_pages() and not _slow else sys.maxsize
    for x in arrays:
        start = x.ctypes.data
        stop = start + x.nbytes
        low, high = -(-start // whole) * whole, stop // whole * whole
        if low >= high:
            loose += _cut(start, stop)
            continue
        for first, last in ((start, low), (high, stop)):  # others may have the rest of the page
            if last - first > HUGE // 2:
                huge += (first, last)
            loose += _cut(first, last)
        for first in range(low, high, HUGE):
            huge += (first, first + HUGE)
        inner += _cut(low, high)
    return huge, loose, inner


def _cut(start: int, stop: int) -> list[int]:
    return [n for k in range(start, stop, _PIECE) for n in (k, min(k + _PIECE, stop))]
