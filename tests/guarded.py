"""Arrays between pages that may not be touched: a kernel that leaves its arrays is killed."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from funct.kernels.cpu import scratch

_LIBC = ctypes.CDLL(None, use_errno=True)
_PAGE = mmap.PAGESIZE


def empty(shape: Any, dtype: Any, *, at_end: bool = True) -> np.ndarray[Any, Any]:
    """Uninitialised (0xFF bytes: NaN as floats); the page behind it, or before it, is forbidden."""
    dtype = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    size = prod(shape) * dtype.itemsize
    inside = -(-max(size, 1) // _PAGE) * _PAGE
    room = mmap.mmap(-1, inside + 2 * _PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(room))
    for page in (start, start + _PAGE + inside):
        if _LIBC.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = _PAGE + (inside - size if at_end else 0)
    y = np.frombuffer(room, np.uint8, size, offset)
    y[...] = 0xFF
    return y.view(dtype).reshape(shape)


@contextmanager
def memory(*, at_end: bool) -> Iterator[None]:
    """Within the block kernels for the CPU take results and scratch from here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scratch, "fresh", lambda shape, dtype: empty(shape, dtype, at_end=at_end))
        patch.setattr(scratch, "_own", SimpleNamespace())
        yield


def copy(x: np.ndarray[Any, Any], *, at_end: bool = True) -> np.ndarray[Any, Any]:
    """x between such pages."""
    y = empty(x.shape, x.dtype, at_end=at_end)
    y[...] = x
    return y
