"""Settings of the whole process that are others while any thread is in a block.

    turns = Meanwhile(sys.getswitchinterval, sys.setswitchinterval, lambda now: min(now, 5e-4))
    with turns:
        ...

The first block changes the setting, and the last one that ends restores it, whatever their order;
what somebody else has set meanwhile stays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Generic, TypeVar

from funct.device.fork import in_child, whole

__all__ = ["Meanwhile"]

T = TypeVar("T")


class Meanwhile(ContextDecorator, Generic[T]):
    """Blocks with another setting. other: what it is there, by what it is outside."""

    def __init__(
        self, get: Callable[[], T], put: Callable[[T], object], other: Callable[[T], T]
    ) -> None:
        self._get, self._put, self._other = get, put, other
        self._lock = whole(threading.RLock())  # a finalizer may come here from any line below
        self._blocks = 0
        self._before: T | None = None  # what held, where it was changed
        self._changed: T | None = None
        in_child(self._forget)

    def __enter__(self) -> None:
        with self._lock:
            self._blocks += 1  # first: a block in a finalizer, from here on, is one of several
            if self._blocks == 1:
                now = self._get()
                other = self._other(now)
                self._before = None
                if other != now:
                    self._put(other)
                    self._before, self._changed = now, self._get()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._blocks == 1:
                self._restore()
            self._blocks = max(self._blocks - 1, 0)

    def _restore(self) -> None:
        if self._before is not None and self._get() == self._changed:
            self._put(self._before)

    def _forget(self) -> None:
        """In a forked child the blocks of other threads never end."""
        if self._blocks:
            self._restore()
            self._blocks = 0
