"""What becomes of locks and threads in a forked child, on systems that fork."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Uncut", "in_child", "whole"]


def whole(lock: Any) -> Any:
    """The lock, which no fork finds taken by a thread that the child does not have."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


def in_child(fun: Callable[[], Any]) -> None:
    """Call fun first thing in every forked child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=fun)


class Uncut:
    """Blocks of any number of threads at once that no fork cuts: it waits until all have ended, and
    none begins meanwhile.

    They take no lock that forks wait for and that was made after this.
    """

    def __init__(self) -> None:
        self._ended = threading.Condition(threading.Lock())
        self._running = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._wait)
        self._gate = whole(threading.Lock())  # which forks close first: the last one made is

    def _wait(self) -> None:
        with self._ended:
            while self._running:
                self._ended.wait()

    def __enter__(self) -> None:
        with self._gate, self._ended:
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._ended:
            self._running -= 1
            self._ended.notify_all()
