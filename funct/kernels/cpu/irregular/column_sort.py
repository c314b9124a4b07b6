"""Columns sorted side by side, each in a lane of vectors: the network says what is compared.

Which rows are compared does not depend on what stands in them, so all columns take the same steps,
without a branch. Floats are sorted as integers that are ordered as they are, NaN above all.

Source: Knuth, "The Art of Computer Programming", volume 3, algorithm 5.2.2M (Batcher's).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.vectors import loaded, stored

__all__ = ["LANES", "sort_columns"]

LANES = 16
_HALF = 8
_SIGNED: dict[int, Any] = {4: np.int32, 8: np.int64}


@kernel
def sort_columns(
    x: Any, y: Any, room: Any, outer: int, n: int, inner: int, descending: bool
) -> int:
    """y: x (outer, n, inner) sorted along the middle axis. room: (n, LANES), of integers of that
    size, signed for floats; lanes behind the last column are anything. The answer is 1 where there
    is a -0, whose order is another one.
    """
    odd: Any = np.int64(0)
    for o in range(outer):
        for c in range(0, inner, LANES):
            first = o * n * inner + c
            many = min(inner - c, LANES)
            whole = many & -_HALF
            for i in range(n):
                at = first + i * inner
                for j in range(0, whole, _HALF):
                    v = loaded(x, at + j, _HALF)
                    odd += np.where(_is_odd(v).any(), 1, 0)
                    stored(room, i * LANES + j, _key(v, descending))
                for j in range(whole, many):
                    odd += np.where(_is_odd(x[at + j]), 1, 0)
                    room[i * LANES + j] = _key(x[at + j], descending)
            if many > _HALF:
                _network(room, n, LANES)
            else:
                _network(room, n, _HALF)
            for i in range(n):
                at = first + i * inner
                for j in range(0, whole, _HALF):
                    v = loaded(room, i * LANES + j, _HALF)
                    stored(y, at + j, _of_key(v, y.dtype, descending))
                for j in range(whole, many):
                    y[at + j] = _of_key(room[i * LANES + j], y.dtype, descending)
    if odd > 0:
        return 1
    return 0


def _key(v: Any, descending: bool) -> Any:
    """An integer that is ordered as v is, or the other way."""
    key = v
    if v.dtype.kind == "f":
        key = np.where(v != v, np.iinfo(_SIGNED[v.dtype.itemsize]).max, _turned(v))
    return ~key if descending else key


def _turned(v: Any) -> Any:
    """The bits of a float, those of a negative one but its sign turned over; and back."""
    signed = _SIGNED[v.dtype.itemsize]
    bits = v.view(signed)
    return bits ^ ((bits >> (v.dtype.itemsize * 8 - 1)) & np.iinfo(signed).max)


def _of_key(key: Any, dtype: Any, descending: bool) -> Any:
    if descending:
        key = ~key
    return _turned(key).view(dtype.type) if dtype.kind == "f" else key


def _is_odd(v: Any) -> Any:
    """Whether it is -0."""
    if v.dtype.kind != "f":
        return v != v
    signed = _SIGNED[v.dtype.itemsize]
    return v.view(signed) == np.iinfo(signed).min


def _network(room: Any, n: Any, lanes: int) -> None:
    """Sort the first n rows of so many lanes."""
    top: Any = np.int64(1)
    while top + top < n:
        top = top + top
    p: Any = top
    while p > 0:
        q: Any = top
        r: Any = np.int64(0)
        far: Any = p
        while far > 0:
            start: Any = r
            while start < n - far:
                for i in range(start, min(start + p, n - far)):
                    a = loaded(room, i * LANES, lanes)
                    b = loaded(room, (i + far) * LANES, lanes)
                    turned = b < a
                    stored(room, i * LANES, np.where(turned, b, a))
                    stored(room, (i + far) * LANES, np.where(turned, a, b))
                start += p + p
            far = np.where(q > p, q - p, 0)
            q = q >> 1
            r = p
        p = p >> 1
