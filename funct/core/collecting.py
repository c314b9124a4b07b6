"""Python's collector of cycles looks at new objects seldom while code is made.

To capture a function and to make its code takes tens of thousands of objects that live on. The
collector looks at them at every seven hundred new ones, seventy times for a language model's step,
and finds nothing: a tenth of the first call.

    with seldom():
        ...

Whatever the user sets meanwhile stays set, and a collector that is off, or asked for by name,
does what it did.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from funct.device.fork import in_child, whole

__all__ = ["seldom"]

_MANY = 1 << 17  # new objects, of 10 to 20 MB
_lock = whole(threading.RLock())  # a finalizer may come here from any line of ours
_blocks = 0  # in all threads
_before: tuple[int, int, int] | None = None  # what held, where it was changed


@contextmanager
def seldom() -> Iterator[None]:
    """In the block, a collection comes after as many new objects as a large graph takes.

    Example:
        >>> import gc
        >>> with seldom():
        ...     inside = gc.get_threshold()[0]
        >>> inside > gc.get_threshold()[0]
        True
    """
    global _blocks
    with _lock:
        _blocks += 1  # first: a block in a finalizer, from here on, is one of several
        if _blocks == 1:
            _raise()
    try:
        yield
    finally:
        with _lock:
            if _blocks == 1:
                _restore()
            _blocks = max(_blocks - 1, 0)


def _raise() -> None:
    global _before
    before = gc.get_threshold()
    _before = before if 0 < before[0] < _MANY else None
    if _before is not None:
        gc.set_threshold(_MANY, *before[1:])


def _restore() -> None:
    """What held before, unless somebody has set something else."""
    if _before is not None and gc.get_threshold() == (_MANY, *_before[1:]):
        gc.set_threshold(*_before)


def _forget() -> None:
    """In a forked child the blocks of other threads never end."""
    global _blocks
    if _blocks:
        _restore()
        _blocks = 0


in_child(_forget)
