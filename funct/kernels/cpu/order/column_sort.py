"""Columns sorted side by side, each in a lane of vectors: the network says what is compared.

Which rows are compared does not depend on what stands in them, so all columns take the same steps,
without a branch. What compares two floats gives them back as they were: it loses none, but knows no
order of NaN, nor of zeros.

Source: Knuth, "The Art of Computer Programming", volume 3, algorithm 5.2.2M (Batcher's).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import making
from funct.kernels.cpu.vectors import detached, loaded, stored

__all__ = ["LANES", "QUARTER", "sort_columns", "sort_lanes"]

LANES = 16
QUARTER = 4  # elements that are copied together
_SIGNED: dict[int, Any] = {4: np.int32, 8: np.int64}


@making("x")
def sort_columns(
    x: Any, room: Any, n: int, inner: int, lanes: int, descending: bool, y: Any, size: int
) -> int:  # fmt: skip
    """x (outer, n, inner) sorted along the middle axis, so many columns together: a multiple of
    QUARTER, LANES at most. room: (n, lanes) elements. The answer is 1 where there is NaN or -0,
    whose order is another.
    """
    odd: Any = n < 0
    block: Any = 0
    while block < size:
        c: Any = np.int64(0)
        while c < inner:
            first = block + c
            many = min(inner - c, lanes)
            if many > 3 * QUARTER:
                odd = odd | _sorted(x, y, room, first, n, inner, many, LANES, descending)
            elif many > 2 * QUARTER:
                odd = odd | _sorted(x, y, room, first, n, inner, many, 3 * QUARTER, descending)
            elif many > QUARTER:
                odd = odd | _sorted(x, y, room, first, n, inner, many, 2 * QUARTER, descending)
            else:
                odd = odd | _sorted(x, y, room, first, n, inner, many, QUARTER, descending)
            c += lanes
        block += n * inner
    if odd:
        return 1
    return 0


def _sorted(
    x: Any, y: Any, room: Any, first: Any, n: Any, inner: Any, many: Any, lanes: int,
    descending: bool,
) -> Any:  # fmt: skip
    """Sort columns from `first` on in so many lanes; those behind the last column are anything.
    Whether some element is odd.
    """
    odd: Any = n < 0
    whole = many & -QUARTER
    for i in range(n):
        at = first + i * inner
        for j in range(0, whole, QUARTER):
            v = loaded(x, at + j, QUARTER)
            odd = odd | _is_odd(v).any()
            stored(room, i * lanes + j, v)
        for j in range(whole, many):
            odd = odd | _is_odd(x[at + j])
            room[i * lanes + j] = x[at + j]
    sort_lanes(room, n, lanes, descending)
    for i in range(n):
        at = first + i * inner
        for j in range(0, whole, QUARTER):
            stored(y, at + j, loaded(room, i * lanes + j, QUARTER))
        for j in range(whole, many):
            y[at + j] = room[i * lanes + j]
    return odd


def _is_odd(v: Any) -> Any:
    """Whether it is NaN or -0."""
    if v.dtype.kind != "f":
        return v != v
    signed = _SIGNED[v.dtype.itemsize]
    return (v != v) | (v.view(signed) == np.iinfo(signed).min)


def sort_lanes(room: Any, n: Any, lanes: int, descending: bool) -> None:
    """Sort each lane of the first n rows of so many."""
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
            end = n - far
            if p == 1:
                while start < end:
                    _exchange(room, start, far, lanes, descending)
                    start += 2
            else:
                while start < end:
                    for i in range(start, min(start + p, end)):
                        _exchange(room, i, far, lanes, descending)
                    start += p + p
            far = np.where(q > p, q - p, 0)
            q = q >> 1
            r = p
        p = p >> 1


def _exchange(room: Any, i: Any, far: Any, lanes: int, descending: bool) -> None:
    """Compare a row with the one so far behind it, and exchange elements that are out of order."""
    a = detached(loaded(room, i * lanes, lanes))
    b = loaded(room, (i + far) * lanes, lanes)
    turned = a < b if descending else b < a
    stored(room, i * lanes, np.where(turned, b, a))
    stored(room, (i + far) * lanes, np.where(turned, a, b))
