"""NumPy's own dtypes by the names that users have for them, and bounds of their numbers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

__all__ = [
    "FLOATING", "HALF", "INTEGER", "MOVED", "NAMED", "NATIVE", "NO_AXIS", "USUAL", "as_words",
    "is_half", "sum_dtype",
]  # fmt: skip

# Numbers of dtypes: up to INTEGER they are of integers and booleans, then come float32 and float64;
# all of NumPy's own are below NATIVE, those of ml_dtypes above. HALF is float16.
INTEGER, FLOATING, HALF, NATIVE = 10, 12, 23, 24
NO_AXIS = -(1 << 31)  # by which NumPy means all of them, as by None


def _named() -> dict[Any, np.dtype[Any]]:
    found: dict[Any, np.dtype[Any]] = {t: np.dtype(t) for t in (bool, int, float, complex)}
    for char in "?bhiqlBHIQLefdFD":
        dtype = np.dtype(char)
        found |= dict.fromkeys((dtype, dtype.type, dtype.name), dtype)
    return found


NAMED = _named()


USUAL = frozenset([np.dtype(c).num for c in "fdl"])  # for which there is code of all kinds
MOVED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # by bytes, what is moved as one


def as_words(x: Any) -> Any:
    """x, or its elements as words, where code for its dtype is not made anyway."""
    return x if x.dtype.num in USUAL else x.view(MOVED[x.itemsize])


def is_half(d: np.dtype[Any]) -> bool:
    """Whether it is float16 or bfloat16."""
    return d.itemsize == 2 and d.kind not in "biu"


@functools.cache
def sum_dtype(d: np.dtype[Any]) -> np.dtype[Any]:
    """That of NumPy's sums."""
    found: np.dtype[Any] = np.add.reduce(np.empty(0, d)).dtype
    return found
