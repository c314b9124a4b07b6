"""When code for few elements is loaded: once it would have been called so often that this pays.

On few elements machine code saves microseconds, and LLVM takes 40 ms to load. So a function begins
as Python, which counts, and what loads the code puts builtin functions in its place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from funct.device.fork import whole
from funct.device.llvm import loaded
from funct.kernels.cpu.loops import available

__all__ = ["Often"]

_OFTEN = 10_000  # calls after which it pays to load LLVM
_LOADED = 500  # the same where the code is at hand
_lock = whole(threading.RLock())


class Often:
    """Counts calls of plain functions; after enough of them `load` is called, once.

    enough: how many where the code is not at hand, as it is where LLVM is loaded.
    """

    __slots__ = ("_at_hand", "_enough", "_load", "calls", "tried")

    def __init__(
        self,
        load: Callable[[], None],
        enough: int | None = None,
        at_hand: Callable[[], bool] = loaded,
    ) -> None:
        self._load, self._enough = load, _OFTEN if enough is None else enough
        self._at_hand = at_hand
        self.calls, self.tried = 0, False

    def counted(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """plain, whose calls count."""

        def call(*args: Any) -> Any:
            n = self.calls = self.calls + 1
            if not n % _LOADED and (n >= self._enough or self._at_hand()):
                self.load()
            return plain(*args)

        return call

    def load(self) -> None:
        """Let the code answer from now on, where this machine has any."""
        with _lock:
            if not self.tried:
                self.tried = True
                if available():
                    self._load()
