"""Memory of a first call, touched while its function is captured and made.

The system gives memory page by page, at the first touch, which for large arrays takes as long as to
make the code of a kernel. How large a call's arrays are is known when its code is there; what they
were in another process is known before, how large the results are once the function is captured,
and how large all else is before LLVM is at work. So blocks of these sizes are touched by a thread
of their own. They then wait in the bins of the allocator, where the call finds them
(`device/memory`). The sizes of a call are kept on disk under the name of the function and the types
of its arguments.

    with foreseen(fun, types):
        ...                         # capture; `returns(graph)`
        ...                         # whoever makes the code says `takes(sizes)`
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

from funct.compile.fusion.calls import size_bytes
from funct.compile.loops.views import VIEWS
from funct.device import disk_cache, host
from funct.device.memory import LARGE, Touching, is_serving, room, serve
from funct.graph import Graph, Guard

__all__ = ["foreseen", "needs", "returns", "takes"]

_Type = tuple[tuple[int, ...], Any]  # of an argument: shape and dtype
_LEAST = 1 << 20  # bytes of all arguments, or of all results, of a call that is worth it
_MOST = 1 << 28  # bytes that are touched: what is touched early is held early

_call: ContextVar[_Call | None] = ContextVar("call", default=None)


class _Call:
    """A call to come. known: sizes of its arrays, if they were kept; taken: as they are now."""

    def __init__(self, key: str | None) -> None:
        self.key = key
        self.known = [] if key is None else _sizes(disk_cache.read(key) or b"")
        self.taken: list[int] = []
        self.touching: list[Touching] = []
        self.touch(self.known)

    def touch(self, sizes: Sequence[int]) -> None:
        """Begin to touch blocks of such sizes."""
        size = sum(sizes)
        if size:
            serve(size)
        if is_serving() and 0 < 2 * size <= room():
            with suppress(MemoryError):  # others have taken it meanwhile
                self.touching.append(Touching([np.empty(size, np.uint8) for size in sizes]))

    def begin(self, *, comes: bool) -> None:
        """The call begins, if it comes: its memory is touched, and the blocks are in their bins."""
        while self.touching:
            self.touching.pop().end(all_of_it=comes)

    def note(self) -> None:
        """Keep the sizes, where they are others than before."""
        taken = sorted(self.taken)
        if self.key is not None and taken != sorted(self.known):
            told = [f"{size}x{count}" for size, count in Counter(taken).items()]
            disk_cache.write(self.key, " ".join(told).encode())


@contextmanager
def foreseen(fun: Callable[..., Any], types: Sequence[_Type]) -> Iterator[None]:
    """In the block code is made for a call that follows at once; types: of its arguments."""
    if host().cores < 2:
        yield
        return
    large = sum([math.prod(shape) * dtype.itemsize for shape, dtype in types]) >= _LEAST
    call = _Call(_key(fun, types) if large and disk_cache.folder() is not None else None)
    token = _call.set(call)
    comes = False
    try:
        yield
        comes = True
    finally:
        _call.reset(token)
        call.begin(comes=comes)
    call.note()


def returns(graph: Graph) -> None:
    """Say what the call to come computes: its large results are touched from now on, where nothing
    was known of the call.
    """
    call = _call.get()
    if call is None or call.known or graph.symbols:
        return
    outputs = dict.fromkeys(graph.outputs)
    if sum(map(size_bytes, outputs)) < _LEAST:
        return
    made = {v for e in graph.nodes if not isinstance(e, Guard) and e.name not in VIEWS
            for v in e.results}  # fmt: skip
    sizes = _large([size_bytes(v) for v in outputs if v in made])
    if sum(sizes) >= _LEAST:
        call.touch(sizes)


def needs(sizes: Iterable[int]) -> None:
    """Say how many bytes the code that is being made takes besides its results, before it is made:
    they are touched meanwhile, where nothing was known of the call.
    """
    call = _call.get()
    if call is not None and not call.known:
        call.touch(_large(sizes))


def takes(sizes: Iterable[int]) -> None:
    """Say how many bytes each array has that the call to come will make."""
    call = _call.get()
    if call is not None:
        call.taken += _large(sizes, _MOST - sum(call.taken))


def _large(sizes: Iterable[int], left: int = _MOST) -> list[int]:
    """Those that are large, as long as there is room for them."""
    found = []
    for size in sizes:
        if LARGE <= size <= left:
            found.append(size)
            left -= size
    return found


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
