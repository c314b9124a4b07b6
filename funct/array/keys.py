"""Keys as NumPy takes them: with buffers in place of arrays, where all of it is known.

NumPy's own indexing costs a fraction of the ops that say the same to transforms (`indexing.py`,
`updates.py`), and means the same by every key but those that are declined here.
"""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from funct.ops import fast

__all__ = ["BASIC", "MASK", "POSITIONS", "VIEW", "bare", "selection"]

BASIC = frozenset({int, slice, type(None), EllipsisType})
VIEW, MASK, POSITIONS = range(3)
_BOOL, _INT64 = np.dtype(np.bool_), np.dtype(np.int64)
# beside these there is uint64, of which NumPy takes 2**64 - 1 for -1, and what is no index
_KINDS = frozenset([np.dtype(d) for d in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4")])
_NUMBERS = frozenset({int, bool, np.int64, np.bool_})


def bare(key: Any) -> Any:
    """The key for NumPy; NotImplemented where something is traced or is left to those who refuse.

    A tuple is a tuple, and an array alone is an array.
    """
    found = []
    for k in key if key.__class__ is tuple else (key,):
        c = k.__class__
        if c is fast.Array or c is np.ndarray:
            if c is fast.Array:
                k = k.data
            d = k.dtype
            if d is not _INT64 and d is not _BOOL and d not in _KINDS:
                return NotImplemented
        elif c not in BASIC and not (_is_listed(k) if c is list else _is_number(k)):
            return NotImplemented
        found.append(k)
    return tuple(found) if key.__class__ is tuple else found[0]


def _is_number(k: Any) -> bool:
    return k.__class__ in _NUMBERS or isinstance(k, np.integer)


def _is_listed(k: list[Any]) -> bool:
    """Whether a list holds numbers alone, or lists of them."""
    if _NUMBERS.issuperset(map(type, k)):
        return True
    return all(v.__class__ is list and _NUMBERS.issuperset(map(type, v)) for v in k)


def selection(key: Any) -> int:
    """What a bare key selects: a VIEW, what is under a MASK, or POSITIONS that may repeat."""
    if key.__class__ is np.ndarray:
        return MASK if key.dtype is _BOOL or not key.ndim else POSITIONS
    found = VIEW
    for k in key if key.__class__ is tuple else (key,):
        c = k.__class__
        if c not in BASIC:
            if c is list or (c is np.ndarray and k.ndim and k.dtype is not _BOOL):
                return POSITIONS
            found = MASK
    return found
