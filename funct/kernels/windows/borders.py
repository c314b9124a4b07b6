"""Images with borders of their own elements, in one pass: a row is copied while it is at hand."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel, pays
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.vectors import loaded, stored
from funct.kernels.windows.places import share

__all__ = ["bordered", "padded"]

_WIDE, _NARROW = 32, 8  # elements that are copied at once
_WORDS = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def _copied(x: Any, at: Any, y: Any, to: Any, n: Any) -> None:
    """n elements of x from at on come to y; the last vector begins where it ends with them."""
    if n >= _WIDE:
        for q in range(0, n, _WIDE):
            first = min(q, n - _WIDE)
            stored(y, to + first, loaded(x, at + first, _WIDE))
    elif n >= _NARROW:
        for q in range(0, n, _NARROW):
            first = min(q, n - _NARROW)
            stored(y, to + first, loaded(x, at + first, _NARROW))
    else:
        for q in range(n):
            y[to + q] = x[at + q]


@parallel
def bordered(
    x: Any, y: Any, rows: Any, columns: Any, h: int, w: int, tall: int, low: int, high: int,
    inner: int, count: int, some: int, task: int,
) -> None:  # fmt: skip
    """y (planes, tall, low + w + high, inner): row i of a plane is row rows[i] of x's.

    x: (planes, h, w, inner). columns: which of x stand in the `low` columns before it, and then in
    the `high` behind it. A task makes `some` of the `count` rows of all planes.
    """
    wide = (low + w + high) * inner
    for r in range(task * some, min((task + 1) * some, count)):
        plane = np.int64(np.uint64(r) // np.uint64(tall))
        at = (plane * h + rows[r - plane * tall]) * w * inner
        to = r * wide
        for k in range(low):
            _copied(x, at + columns[k] * inner, y, to + k * inner, inner)
        _copied(x, at, y, to + low * inner, w * inner)
        for k in range(low, low + high):
            _copied(x, at + columns[k] * inner, y, to + (k + w) * inner, inner)


def padded(x: Any, places: Any, order: Any) -> Any:
    """x with borders, the axes in memory as x has them; None where no kernel serves.

    places: for each axis None, or which of its elements stand in the padded axis and how many of
    them are in front of the whole axis. order: of x's axes in memory, which is contiguous so.
    """
    word = _WORDS.get(x.dtype.itemsize)
    along = [k for k, axis in enumerate(order) if places[axis] is not None]
    apart = not along or along[-1] - along[0] > 1
    if apart or word is None or x.dtype.kind not in "biufc" or not pays(x.view(word)):
        return None
    seen, last = x.transpose(order), along[-1]
    size = [n if places[a] is None else len(places[a][0]) for n, a in zip(seen.shape, order)]
    y = fresh(tuple(size), x.dtype)
    w, inner, first = seen.shape[last], prod(seen.shape[last + 1 :]), along[0]
    rows = places[order[first]][0] if first < last else np.zeros(1, np.int64)
    h = seen.shape[first] if first < last else 1
    at, low = places[order[last]]
    columns = np.concatenate((at[:low], at[low + w :]))
    count = prod(size[:last])
    some = share(y.size // count, count)
    bordered(
        seen.view(word), y.view(word), rows, columns, h, w, len(rows), low, len(columns) - low,
        inner, count, some, -(-count // some),
    )  # fmt: skip
    return y.transpose(np.argsort(order))
