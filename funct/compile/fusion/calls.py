"""What a program calls, and where it finds what it works on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from funct.graph import Var

__all__ = ["Address", "Buffer", "Call", "Root", "Slot", "Word", "every_call", "size_bytes"]


class Buffer(Struct, frozen=True, eq=False):
    """Memory that only the steps of a program see. count: of elements."""

    count: int
    dtype: np.dtype[Any]

    @property
    def size_bytes(self) -> int:
        """Bytes."""
        return self.count * self.dtype.itemsize


class Slot(Struct, frozen=True):
    """A buffer that another one takes the place of from step to step of a loop.

    of: the memory that holds addresses; index: which of them is this one's.
    """

    of: Buffer
    index: int
    size_bytes: int


Root = Var | Buffer | Slot


def size_bytes(of: Root) -> int:
    """Bytes of a buffer."""
    if isinstance(of, Var):
        return math.prod(of.shape) * of.dtype.itemsize
    return of.size_bytes


class Address(Struct, frozen=True):
    """Where a buffer stands in a call, moved by so many bytes."""

    of: Root
    offset: int = 0


Word = int | Address


class Call(Struct, frozen=True, eq=False):
    """One kernel with its frame. kernel: a Kernel, or its kind and what else tells its code apart.

    writes: the buffers that it fills. names: what the accesses are, for people. blocks: the calls
    that it makes itself, if it is control flow; slots: those that it moves, if it is a loop.
    checks: whether it may find that an op must raise. stops: whether it looks if somebody wants to
    interrupt it. warns: whether it may find what NumPy warns of. All of them are told where the
    workspace is. doubts: whether it may find so of an op that then does not raise. held: arrays
    that it reads and that are known. turns: how often it goes through its code, at most: steps of a
    loop, elements in short rows.
    """

    kernel: Any
    words: tuple[Word, ...]
    tasks: int
    writes: tuple[Root, ...]
    names: dict[int, str] = field(default_factory=dict)
    blocks: tuple[tuple[Call, ...], ...] = ()
    slots: Buffer | None = None
    checks: bool = False
    stops: bool = False
    warns: bool = False
    doubts: bool = False
    held: dict[Var, Any] = field(default_factory=dict)
    turns: int = 1

    @property
    def is_told(self) -> bool:
        """Whether words before its frame tell it where the workspace is."""
        return bool(self.blocks) or self.checks or self.stops or self.warns


def every_call(calls: Sequence[Call]) -> Iterator[Call]:
    """The calls and those in their blocks, each before those in its own."""
    for c in calls:
        yield c
        for block in c.blocks:
            yield from every_call(block)
