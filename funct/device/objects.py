"""ELF objects into memory, without LLVM: to load code that is kept on disk takes no compiler.

Code that LLVM generates for its own process has one kind of relocation on x86-64, an address of 64
bits, so what a linker does is a few lines. An object with anything else in it – another format,
another processor – is none for these lines, and LLVM's own linker has it.

Source: System V ABI, AMD64 supplement, chapter 4.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import struct
import sys
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["LOADS", "Mapped", "mapped"]

LOADS = sys.platform == "linux" and platform.machine() == "x86_64"  # whatever LLVM makes here
_ELF, _X86_64, _ADDRESS = b"\x7fELF\x02\x01", 62, 1
_SYMBOL, _RELOCATION, _WORD = map(struct.Struct, ("<IBBHQQ", "<QQq", "<Q"))
_BYTES, _SYMBOLS, _RELOCATIONS, _ZEROS, _UNWINDING = 1, 2, 4, 8, 0x70000001
_WRITTEN, _LOADED = 1, 2
_FLAGS = _WRITTEN | _LOADED | 0x10000034  # of sections: code, what may be merged, large


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    start: int
    size: int
    link: int
    info: int
    align: int
    each: int

    def read(self, file: bytes) -> bytes:
        return b"" if self.type == _ZEROS else file[self.start : self.start + self.size]


class Mapped:
    """Code in memory that it has for itself; names: the address of each function it defines."""

    __slots__ = ("memory", "names")

    def __init__(self, memory: mmap.mmap, names: dict[str, int]) -> None:
        self.memory = memory
        self.names = names


def mapped(file: bytes, address: Callable[[str], int | None]) -> Mapped | None:
    """The object's code, ready to run; None for an object that these lines cannot load.

    address: of what the object wants from outside, None where there is nothing of that name.
    """
    if file[:6] != _ELF or file[18] != _X86_64:
        return None
    sections = _sections(file)
    places, fixed, size = _laid_out(sections)
    if not size:
        return None
    memory = mmap.mmap(
        -1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
    )
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for k, at in places.items():
        held = sections[k].read(file)
        memory[at : at + len(held)] = held
    symbols = _symbols(file, sections)
    for section in sections:
        if section.type != _RELOCATIONS or section.info not in places:
            continue
        for offset, what, addend in _RELOCATION.iter_unpack(section.read(file)):
            name, _, home, value = symbols[what >> 32]
            found = None if home else address(name)
            if home in places:
                found = base + places[home] + value
            if found is None or what & 0xFFFFFFFF != _ADDRESS:
                return None
            at = places[section.info] + offset
            _WORD.pack_into(memory, at, found + addend & 0xFFFFFFFFFFFFFFFF)
    if _protect(base, fixed):
        return None
    names = {n: base + places[k] + v for n, seen, k, v in symbols if seen and k in places}
    return Mapped(memory, names)


def _sections(file: bytes) -> list[_Section]:
    (start,), (count,) = struct.unpack_from("<Q", file, 40), struct.unpack_from("<H", file, 60)
    form = struct.Struct("<IIQQQQIIQQ")
    return [_Section(*form.unpack_from(file, start + k * form.size)) for k in range(count)]


def _laid_out(sections: list[_Section]) -> tuple[dict[int, int], int, int]:
    """Where in memory each section goes, by its number; the bytes of those that are not written,
    which come first, in pages of their own; and the bytes of all, 0 where one is not understood.
    """
    loaded = [(k, s) for k, s in enumerate(sections) if s.flags & _LOADED and s.type != _UNWINDING]
    if any([s.flags & ~_FLAGS or s.type not in (_BYTES, _ZEROS) for _, s in loaded]):  # noqa: C419
        return {}, 0, 0
    places: dict[int, int] = {}
    ends = [0, 0]
    for written in (0, 1):
        size = ends[0]
        for k, s in loaded:
            if s.flags & _WRITTEN == written:
                places[k] = -(-size // max(s.align, 1)) * max(s.align, 1)
                size = places[k] + s.size
        ends[written] = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    return places, ends[0], ends[1]


def _symbols(file: bytes, sections: list[_Section]) -> list[tuple[str, int, int, int]]:
    """Name if others see it, whether they do, number of its section (0: wanted), offset there."""
    table = next(s for s in sections if s.type == _SYMBOLS)
    text = sections[table.link].read(file)
    return [
        (text[name : text.index(0, name)].decode() if info >> 4 else "", info >> 4, home, value)
        for name, info, _, home, value, _ in _SYMBOL.iter_unpack(table.read(file))
    ]


def _protect(base: int, size: int) -> int:
    """Let these bytes run, and nobody write them; 0 where that is allowed."""
    done: int = _change()(base, size, mmap.PROT_READ | mmap.PROT_EXEC)
    return done


@functools.cache
def _change() -> Callable[[int, int, int], int]:
    change = ctypes.CDLL(None).mprotect
    change.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return change
