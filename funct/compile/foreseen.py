"""Memory of a first call, touched while its function is captured: what it took last time.

The system gives memory page by page, at the first touch, and for a call whose code is kept on disk
that takes longer than all else. How large a call's arrays are is known when its code is there; what
they were in another process is known before. So the sizes are kept under the name of the function
and the types of its arguments, and blocks of these sizes are touched by a thread of their own. They
then wait in the bins of the allocator, where the call finds them (`device/memory`).

    with foreseen(fun, types):
        ...                         # capture; whoever makes the code says `takes(sizes)`
    run(*buffers)

The sizes are a guess: wrong ones cost memory that later arrays have.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import CodeType
from typing import Any

import numpy as np

from funct.device import disk_cache, host
from funct.device.memory import LARGE, Touching, is_serving, room, serve

__all__ = ["foreseen", "is_foreseen", "takes"]

_Type = tuple[tuple[int, ...], Any]  # of an argument: shape and dtype
_LEAST = 1 << 20  # bytes of all arguments of a call that is worth it
_MOST = 1 << 28  # bytes that are touched: what is touched early is held early

_call: ContextVar[_Call | None] = ContextVar("call", default=None)


class _Call:
    """A call to come. known: sizes of its arrays, if they were kept; taken: as they are now."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.known = _sizes(disk_cache.read(key) or b"")
        self.taken: list[int] = []
        self.touching: Touching | None = None
        size = sum(self.known)
        if size:
            serve(size)
        if is_serving() and 0 < 2 * size <= room():
            with suppress(MemoryError):  # others have taken it meanwhile
                self.touching = Touching([np.empty(size, np.uint8) for size in self.known])

    def begin(self, *, comes: bool) -> None:
        """The call begins, if it comes: its memory is touched, and the blocks are in their bins."""
        if self.touching is not None:
            self.touching.end(all_of_it=comes)
            self.touching = None

    def note(self) -> None:
        """Keep the sizes, where they are others than before."""
        taken = sorted(self.taken)
        if taken != sorted(self.known):
            told = [f"{size}x{count}" for size, count in Counter(taken).items()]
            disk_cache.write(self.key, " ".join(told).encode())


@contextmanager
def foreseen(fun: Callable[..., Any], types: Sequence[_Type]) -> Iterator[None]:
    """In the block code is made for a call that follows at once; types: of its arguments."""
    large = sum([math.prod(shape) * dtype.itemsize for shape, dtype in types]) >= _LEAST
    if not large or host().cores < 2 or disk_cache.folder() is None:
        yield
        return
    call = _Call(_key(fun, types))
    token = _call.set(call)
    comes = False
    try:
        yield
        comes = True
    finally:
        _call.reset(token)
        call.begin(comes=comes)
    call.note()


def is_foreseen() -> bool:
    """Whether memory of the call to come is touched already."""
    call = _call.get()
    return call is not None and bool(call.known)


def takes(sizes: Iterable[int]) -> None:
    """Say how many bytes each array has that the call to come will make."""
    call = _call.get()
    if call is not None:
        left = _MOST - sum(call.taken)
        for size in sizes:
            if LARGE <= size <= left:
                call.taken.append(size)
                left -= size


def _sizes(told: bytes) -> list[int]:
    """The sizes in a file; none where it says anything that is never written."""
    found: list[int] = []
    left = _MOST
    for word in told.split():
        size, _, count = word.partition(b"x")
        if not (size.isdigit() and count.isdigit() and len(word) < 24):
            return []
        left -= int(size) * int(count)
        if int(size) < LARGE or int(count) < 1 or left < 0:
            return []
        found += [int(size)] * int(count)
    return found


def _key(fun: Callable[..., Any], types: Sequence[_Type]) -> str:
    """Under what the sizes are kept: the function as far as is seen at once, and the types."""
    code = getattr(fun, "__code__", None)
    if isinstance(code, CodeType):
        module = str(fun.__module__)  # None where it comes from text
        parts = [module, fun.__qualname__, code.co_code.hex()]
    else:
        parts = [type(fun).__module__, type(fun).__qualname__]
    parts += [f"{shape}{dtype.num}" for shape, dtype in types]
    return f"memory-{hashlib.sha256(' '.join(parts).encode()).hexdigest()}"
