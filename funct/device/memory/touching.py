"""Pages of arrays that are written soon, touched meanwhile by a thread of their own.

The system gives memory page by page, at the first touch. A program that writes into fresh arrays
waits for that longer than for all it computes.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

from funct.device.memory.front import front_code
from funct.device.memory.touching_text import DONE, HURRY

__all__ = ["Touching"]

_PIECE = 1 << 17  # bytes between two looks at what is wanted


class Touching:
    """Dense arrays that nobody else knows: a 0 is written into each of their pages until `end`.

    begun: whether the system had a thread for it.
    """

    def __init__(self, arrays: Sequence[Any]) -> None:
        self._arrays = arrays
        self._process = os.getpid()
        ends: list[int] = []
        for x in arrays:
            start = x.ctypes.data
            stop = start + x.nbytes
            for piece in range(start, stop, _PIECE):
                ends += (piece, min(piece + _PIECE, stop))
        self._pieces = (ctypes.c_int64 * len(ends))(*ends)
        self._job = (ctypes.c_int64 * 5)(ctypes.addressof(self._pieces), len(ends) // 2)
        begin = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        at = front_code().address("begin_touching")
        self.begun = not begin(at)(ctypes.addressof(self._job))

    def end(self, *, all_of_it: bool) -> None:
        """The thread ends. all_of_it: once every page is touched, by two threads from now on."""
        begun, self.begun = self.begun, False
        if begun and os.getpid() == self._process:  # a forked child has no such thread
            form = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
            end = form(front_code().address("end_touching"))
            end(ctypes.addressof(self._job), HURRY if all_of_it else DONE)
