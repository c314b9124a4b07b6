"""Libraries are files that are mapped: their pages are let go of while nobody needs them.

The system counts to a process every page of a library that it has run or read once. LLVM's are
60 MB, for moments of work. What is never written into is in the file as well: given back, a page is
there again at the next touch, from the memory that the system has of files. So a process that
computes does not hold what it compiled with.

Where its parts lie is read from memory, not asked of the linker: its list of libraries is locked
while it calls back, and who holds the interpreter's lock may be waiting to add one.

Source: System V ABI, chapters 4 and 5; proc_pid_maps(5), madvise(2).
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import sys

__all__ = ["let_go"]

_LOADED, _DYNAMIC, _WRITTEN = 1, 2, 2  # kinds of parts, and the flag of those that are written
_TEXT_RELOCATIONS = 22  # an entry: the linker has written into the other parts, too
_ELF_64 = b"\x7fELF\x02"
_half, _word = ctypes.c_uint16, ctypes.c_uint64


class _Header(ctypes.Structure):
    """Elf64_Ehdr, which a library begins with."""

    _fields_ = (
        ("identity", ctypes.c_char * 16), ("kind", _half), ("machine", _half),
        ("version", ctypes.c_uint32), ("entry", _word), ("parts", _word), ("sections", _word),
        ("flags", ctypes.c_uint32), ("size", _half), ("part", _half), ("count", _half),
    )  # fmt: skip


class _Part(ctypes.Structure):
    """Elf64_Phdr; start is counted from where the library's address 0 would lie."""

    _fields_ = (
        ("kind", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("offset", _word), ("start", _word),
        ("physical", _word), ("in_file", _word), ("size", _word), ("align", _word),
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
    begin = _mapped_at(os.path.realpath(name))
    if begin is None or ctypes.string_at(begin, len(_ELF_64)) != _ELF_64:
        return ()
    header = _Header.from_address(begin)
    parts = list((_Part * header.count).from_address(begin + header.parts))
    loaded = [p for p in parts if p.kind == _LOADED]
    base = begin - loaded[0].start // mmap.PAGESIZE * mmap.PAGESIZE
    entries = [e for p in parts if p.kind == _DYNAMIC for e in _entries(base + p.start)]
    if _TEXT_RELOCATIONS in entries:
        return ()
    return tuple(_pages(base + p.start, p.size) for p in loaded if not p.flags & _WRITTEN)


def _mapped_at(path: str) -> int | None:
    """Where the beginning of a file can be read in this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            where, access, offset, _, _, *file = line.rstrip("\n").split(maxsplit=5)
            if file == [path] and access[0] == "r" and int(offset, 16) == 0:
                return int(where.partition("-")[0], 16)
    return None


def _entries(at: int) -> list[int]:
    """What kinds of entries a library's table for the linker has."""
    found: list[int] = []
    while not found or found[-1]:
        found.append(_word.from_address(at + 16 * len(found)).value)
    return found


def _pages(start: int, size: int) -> tuple[int, int]:
    first = start // mmap.PAGESIZE * mmap.PAGESIZE
    return first, -(-(start + size) // mmap.PAGESIZE) * mmap.PAGESIZE - first
