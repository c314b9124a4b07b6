"""Huge pages behind memory that is used again and again.

A program that walks over megabytes waits for the tables in which the system keeps where each page
is, and 512 times as rarely with pages of 2 MiB. But where a machine is virtual, the first touch of
those may cost five times that of small ones, which first calls would pay. So memory has small pages
until its blocks were handed out many times; then a thread puts them together, without a rest: at
any pace it is as much work, and programs wait for pages that are under way. What a first call is
known to need has huge pages at once, as long as they come soon (`touching_text.py`).

Source: madvise(2), MADV_COLLAPSE, since Linux 6.1; mincore(2). Older systems refuse, and all stays
as it was.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import sys
from _thread import start_new_thread
from collections.abc import Sequence
from contextlib import suppress

__all__ = ["HUGE", "has_huge_pages", "put_together"]

HUGE = 2 << 20  # bytes
_PAGES = HUGE // mmap.PAGESIZE  # small pages in one
_COLLAPSE = 25  # of madvise
_ENOUGH = _PAGES * 3 // 4  # pages that are there already: the rest is given by the system
_NONE_MORE = (errno.EINVAL, errno.ENOMEM)  # there is no such request, or no memory for a page


@functools.cache
def has_huge_pages() -> bool:
    """Whether the system has such pages, and nobody has forbidden them."""
    if sys.platform != "linux" or mmap.PAGESIZE != 4096:
        return False
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
            return "[never]" not in file.read()
    except OSError:
        return False


def put_together(segments: Sequence[tuple[int, int]]) -> None:
    """Begin to put pages of these addresses (start, bytes) together that are nearly all there."""
    with suppress(RuntimeError):  # no more threads: it is a matter of speed alone
        start_new_thread(_walk, (segments,))


def _walk(segments: Sequence[tuple[int, int]]) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    arguments = (ctypes.c_void_p, ctypes.c_size_t)
    system.madvise.argtypes = (*arguments, ctypes.c_int)
    system.mincore.argtypes = (*arguments, ctypes.c_char_p)
    there = ctypes.create_string_buffer(_PAGES)
    for start, size in segments:
        for page in range(-(-start // HUGE) * HUGE, start + size - HUGE + 1, HUGE):
            if system.mincore(page, HUGE, there) or sum(there.raw) < _ENOUGH:
                continue
            if system.madvise(page, HUGE, _COLLAPSE) and ctypes.get_errno() in _NONE_MORE:
                return
