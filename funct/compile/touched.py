"""Memory of the first results, touched while code is made.

The system gives memory page by page, at the first touch: on a first call that costs several times
what a program needs for its results. How large they are is known before there is code, and while
LLVM is at work a core has time. So what stands for `empty` in a function that is run at once hands
out arrays whose pages are there; from then on it is NumPy's again.

    with run_at_once():
        run = build(graph)
        run(*buffers)
"""

from __future__ import annotations

import math
import mmap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from funct.compile.foreseen import is_foreseen
from funct.settings import cores

__all__ = ["Type", "is_run_at_once", "run_at_once", "touch"]

Type = tuple[tuple[int, ...], np.dtype[Any]]  # of an array: shape and dtype

_LEAST = 1 << 20  # bytes of a result
_MOST = 1 << 26  # bytes of all: what is touched early is held early
_PIECE = 1 << 22  # bytes between two looks whether the array is asked for

_at_once: ContextVar[bool] = ContextVar("at_once", default=False)


@contextmanager
def run_at_once() -> Iterator[None]:
    """Functions that are made in the block are called there, once at least."""
    token = _at_once.set(True)
    try:
        yield
    finally:
        _at_once.reset(token)


def is_run_at_once() -> bool:
    """Whether that holds for the function that is being made, and a core has time meanwhile."""
    return _at_once.get() and cores() > 1


def touch(results: Sequence[Type], names: dict[str, Any]) -> None:
    """Begin to touch arrays for the results of a program, if it is run at once.

    names: those of the function that runs it. Its `empty(shape, dtype)` gives the arrays.
    """
    if is_foreseen() or not is_run_at_once():
        return
    given: list[Type] = []
    room = _MOST
    for shape, dtype in results:
        size = math.prod(shape) * dtype.itemsize
        if _LEAST <= size <= room:
            given.append((shape, dtype))
            room -= size
    if given:
        empty = names["empty"]
        if not isinstance(empty, _Touched):
            empty = names["empty"] = _Touched(names)
        empty.add(given)


class _Touched:
    """`empty`, which gives each of the arrays once."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._arrays: list[Any] = []
        self._threads: list[threading.Thread] = []
        self._asked = threading.Event()
        self._giving = threading.Lock()

    def add(self, given: Sequence[Type]) -> None:
        """Touch such arrays too."""
        new = [np.empty(shape, dtype) for shape, dtype in given]
        self._arrays += new
        thread = threading.Thread(target=self._touch, args=(new,))
        self._threads.append(thread)
        thread.start()

    def _touch(self, arrays: list[Any]) -> None:
        for x in arrays:
            pages = x.reshape(-1).view(np.uint8)
            for start in range(0, pages.size, _PIECE):
                if self._asked.is_set():
                    return
                pages[start : start + _PIECE : mmap.PAGESIZE] = 0

    def __call__(self, shape: Any, dtype: Any) -> Any:
        self._asked.set()
        for thread in self._threads:
            thread.join()  # nobody else writes into what is given
        with self._giving:
            right = [x for x in self._arrays if x.shape == shape and x.dtype == dtype]
            self._arrays = [x for x in self._arrays if not right or x is not right[0]]
            if not self._arrays:
                self._names["empty"] = np.empty
        return right[0] if right else np.empty(shape, dtype)
