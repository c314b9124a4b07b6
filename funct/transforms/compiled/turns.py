"""Threads that call a function at the same time, the first time: one of them compiles it."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Event, get_ident

__all__ = ["Turns"]

_PATIENCE = 60.0  # seconds
_makers: set[int] = set()  # threads that make something now


class Turns:
    """What is made by one thread at a time, and is there for all afterwards."""

    def __init__(self) -> None:
        self._taken: dict[Hashable, Event] = {}

    @contextmanager
    def taken(self, key: Hashable) -> Iterator[bool]:
        """Whether it is this thread's turn to make what the key names. If another thread was at it,
        it has done so: look again.

        A thread that makes something waits for nobody: the other may wait for what it makes.
        Example:
            >>> from funct.transforms.compiled.turns import Turns
            >>> with Turns().taken("a path") as mine:
            ...     print(mine)
            True
        """
        done, thread = Event(), get_ident()
        key = os.getpid(), key  # a fork has none of the threads
        making, outermost = self._taken.setdefault(key, done), thread not in _makers
        if making is not done and outermost and making.wait(_PATIENCE):
            yield False
            return
        _makers.add(thread)
        try:
            yield True
        finally:
            if outermost:
                _makers.discard(thread)
            if making is done:
                del self._taken[key]
                done.set()
