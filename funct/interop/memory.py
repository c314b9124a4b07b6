"""Memory of handles: what NumPy's code writes into `np.asarray(x)` the handle x holds.

Clients expect it who give that as `output=`. The ndarray is a copy of the Tensor; until `x[i] = v`
the handle takes it for its value in turn: as it is once nobody can write into it any more, and a
copy of it before. What a view gives is a view of what its base gives.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from funct import array as plain
from funct.interop.looks import View

__all__ = ["LOCK", "Given", "give"]

LOCK = threading.RLock()  # held while a handle is given another value, by whichever thread


class Given:
    """Where a handle gets its value from that gave memory to NumPy, which may write into it."""

    __slots__ = ("data", "seen")

    def __init__(self, data: Any, seen: Any) -> None:
        self.data, self.seen = data, weakref.ref(seen)

    def value(self, handle: Any) -> Any:
        """What the memory holds; the handle keeps it once nobody sees the memory any more."""
        with LOCK:
            if self.seen() is not None:
                return plain.asarray(self.data)
            value = plain.asarray(self.data, copy=False)
            if handle._source is self:
                handle._value, handle._source = value, None
            return value


def give(handle: Any) -> Any:
    """An ndarray of the elements; the handle will hold what is written into it."""
    source = handle._source
    if source.__class__ is View:
        return source.look.get(give(source.base))
    with LOCK:  # threads that fill one array part by part get one memory
        source = handle._source
        seen = source and source.seen()
        if seen is not None:
            return seen
        value = handle.value
        data: Any = np.array(value.__array__(), order="C")
        if data.dtype.kind == "V":  # a dtype of ml_dtypes: no buffer format, no code that writes
            return data
        seen = np.asarray(memoryview(data))  # the base of every view of it: it is no view itself
        handle._value, handle._source = value, Given(data, seen)
        return seen
