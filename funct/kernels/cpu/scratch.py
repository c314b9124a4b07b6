"""Memory for kernels: results, and room while they run, which is one buffer per Python thread."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from funct.device.memory import LARGE, serve
from funct.kernels.cpu.record import address

__all__ = ["aligned", "fresh", "maker", "scratch", "workspace"]

_LINE = 64
_own = threading.local()


def fresh(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array for a result; every kernel takes its results from here."""
    y = np.empty(shape, dtype)
    if y.nbytes >= LARGE:
        serve(y.nbytes)
    return y


def maker(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[], NDArray[Any]]:
    """What makes `fresh(shape, dtype)`, for calls that are alike."""
    large = math.prod(shape) * dtype.itemsize >= LARGE
    return functools.partial(fresh if large else np.empty, shape, dtype)


def scratch(size_bytes: int) -> int:
    """The address of at least so many bytes, aligned to cache lines; what is there is arbitrary.

    It holds until this thread asks again.
    """
    room: tuple[int, int, Any] | None = getattr(_own, "room", None)  # bytes, where, and what owns
    if room is None or room[0] < size_bytes:
        _own.room = None  # give back before asking
        held = fresh((size_bytes + _LINE,), np.dtype(np.uint8))
        _own.room = room = size_bytes, -(-address(held) // _LINE) * _LINE, held
    return room[1]


def workspace(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of at least so many elements that begins with a cache line: vectors that cross one
    are stored in twice the time. It holds until this thread asks for one of that dtype again.
    """
    held: dict[Any, NDArray[Any]] = _own.__dict__.setdefault("held", {})
    found = held.get(dtype)
    if found is None or found.size < count:
        found = held[dtype] = aligned(count, dtype)
    return found


def aligned(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A new array of so many elements that begins with a cache line."""
    raw = np.empty(count + _LINE // dtype.itemsize, dtype)
    start = -address(raw) % _LINE // dtype.itemsize
    return raw[start : start + count]
