"""Libraries are files that are mapped: their pages are let go of while nobody needs them.

The system counts to a process every page of a library that it has run or read once. LLVM's are
60 MB, for moments of work. What is never written into is in the file as well: given back, a page is
there again at the next touch, from the memory that the system has of files. So a process that
computes does not hold what it compiled with.

Source: System V ABI, chapter 5, program headers; dl_iterate_phdr(3), madvise(2).
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from typing import Any

__all__ = ["let_go"]

_LOADED, _DYNAMIC, _WRITTEN = 1, 2, 2  # kinds of parts, and the flag of those that are written
_TEXT_RELOCATIONS = 22  # an entry: the linker has written into the other parts, too
_word = ctypes.c_uint64


class _Part(ctypes.Structure):
    """Elf64_Phdr; start is counted from the library's base."""

    _fields_ = (
        ("kind", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("offset", _word), ("start", _word),
        ("physical", _word), ("in_file", _word), ("size", _word), ("align", _word),
    )  # fmt: skip


class _Library(ctypes.Structure):
    """dl_phdr_info, as far as it is read."""

    _fields_ = (
        ("base", _word), ("name", ctypes.c_char_p), ("parts", ctypes.POINTER(_Part)),
        ("count", ctypes.c_uint16),
    )  # fmt: skip


def let_go(name: str) -> None:
    """Give back the pages of a loaded library that nobody writes: half a millisecond, and two when
    as many as LLVM's are touched again. name: of its file, as it was loaded.

    Where the system is not Linux of 64 bits nothing happens.
    """
    for start, size in _unwritten(name):
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.MADV_DONTNEED
        )  # refused where they are locked, and then they stay


@functools.cache
def _unwritten(name: str) -> tuple[tuple[int, int], ...]:
    """Address and bytes of the library's parts whose pages are the file's."""
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return ()
    found: list[tuple[int, int]] = []

    def look(library: Any, _size: int, _data: Any) -> int:
        seen = library.contents
        if seen.name != name.encode():
            return 0
        parts = [seen.parts[k] for k in range(seen.count)]
        entries = [e for p in parts if p.kind == _DYNAMIC for e in _entries(seen.base + p.start)]
        if _TEXT_RELOCATIONS not in entries:
            loaded = [p for p in parts if p.kind == _LOADED and not p.flags & _WRITTEN]
            found.extend([_pages(seen.base + p.start, p.size) for p in loaded])
        return 1

    kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(_Library), ctypes.c_size_t, ctypes.c_void_p
    )
    ctypes.CDLL(None).dl_iterate_phdr(kind(look), None)
    return tuple(found)


def _entries(at: int) -> list[int]:
    """What kinds of entries a library's table for the linker has."""
    found: list[int] = []
    while not found or found[-1]:
        found.append(_word.from_address(at + 16 * len(found)).value)
    return found


def _pages(start: int, size: int) -> tuple[int, int]:
    first = start // mmap.PAGESIZE * mmap.PAGESIZE
    return first, -(-(start + size) // mmap.PAGESIZE) * mmap.PAGESIZE - first
