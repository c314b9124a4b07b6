"""Images and volumes with borders of their own elements or of a number: a row is copied while it is
at hand.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel, pays
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.vectors import loaded, spread, stored
from funct.kernels.windows.places import share
from funct.kernels.windows.views import inverse_order

__all__ = ["bordered", "padded"]

_WIDE, _HALF, _NARROW = 32, 16, 8  # elements that are copied at once
NOTHING = -1 << 40  # the place of what is no element
_MOST_ROWS = 1 << 15  # of a plane, for which a table is kept
_WORDS = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def _copied(x: Any, at: Any, y: Any, to: Any, n: Any) -> None:
    """n elements of x from at on come to y; the last vector begins where it ends with them."""
    if n >= _WIDE:
        for q in range(0, n, _WIDE):
            first = min(q, n - _WIDE)
            stored(y, to + first, loaded(x, at + first, _WIDE))
    elif n >= _HALF:
        stored(y, to, loaded(x, at, _HALF))
        stored(y, to + n - _HALF, loaded(x, at + n - _HALF, _HALF))
    elif n >= _NARROW:
        stored(y, to, loaded(x, at, _NARROW))
        stored(y, to + n - _NARROW, loaded(x, at + n - _NARROW, _NARROW))
    else:
        for q in range(n):
            y[to + q] = x[at + q]


@parallel
def bordered(
    x: Any, y: Any, rows: Any, columns: Any, around: Any, plane: int, kept: int, low: int,
    high: int, inner: int, tall: int, count: int, some: int, task: int,
) -> None:  # fmt: skip
    """y (planes, tall, low + kept + high, inner): `kept` columns of a row of x in each.

    x: (planes, plane). rows: where in a plane begins what is kept for each row. columns: which,
    counted from there, stand in the `low` columns before it, and then in the `high` behind it.
    Where a row or column is NOTHING, around[0] stands. A task makes `some` of the `count` rows of
    all planes.
    """
    wide, edge, middle = (low + kept + high) * inner, around[0], kept * inner
    before, behind = low * inner, high * inner
    first = task * some
    image = np.int64(np.uint64(first) // np.uint64(tall))
    row = first - image * tall
    for r in range(first, min(first + some, count)):
        to = r * wide
        if rows[row] == NOTHING:
            _filled(y, to, edge, wide)
        elif around[1] != 0 and middle >= _NARROW:  # whole vectors, before what is between
            for q in range(0, before, _NARROW):
                stored(y, to + q, spread(edge, _NARROW))
            for q in range(0, behind, _NARROW):
                stored(y, to + wide - _NARROW - q, spread(edge, _NARROW))
            _copied(x, image * plane + rows[row], y, to + before, middle)
        else:
            at = image * plane + rows[row]
            for k in range(low):
                _brought(x, at, columns[k], y, to + k * inner, inner, edge)
            _copied(x, at, y, to + before, middle)
            for k in range(low, low + high):
                _brought(x, at, columns[k], y, to + (k + kept) * inner, inner, edge)
        row = row + 1
        if row == tall:
            row = row - tall
            image = image + 1


def _brought(x: Any, at: Any, column: Any, y: Any, to: Any, inner: Any, edge: Any) -> None:
    """A column of the row of x that begins at `at`, or what stands around."""
    if column == NOTHING:
        _filled(y, to, edge, inner)
    elif inner == 1:
        y[to] = x[at + column]
    else:
        _copied(x, at + column * inner, y, to, inner)


def _filled(y: Any, to: Any, edge: Any, n: Any) -> None:
    """n elements of y from `to` on are `edge`."""
    if n >= _NARROW:
        for q in range(0, n, _NARROW):
            stored(y, to + min(q, n - _NARROW), spread(edge, _NARROW))
    else:
        for q in range(n):
            y[to + q] = edge


def padded(x: Any, pairs: Any, mode: str, value: Any, order: Any) -> Any:
    """x with borders, the axes in memory as x has them; None where no kernel serves.

    pairs: of the amounts around each axis; of a "constant" border less than 0 for what is left out.
    mode: NumPy's; "constant" puts value there. order: of x's axes in memory, which is contiguous
    so.
    """
    word = _WORDS.get(x.dtype.itemsize)
    if word is None or x.dtype.kind not in "biufc":
        return None
    plan = _plan(tuple([x.shape[k] for k in order]), tuple([pairs[k] for k in order]), mode)
    if plan is None or not pays(x.view(word)):
        return None
    size, rows, columns, sizes = plan
    y = fresh(size, x.dtype)
    around = np.array([value, 1] if mode == "constant" else [0, 0], x.dtype)
    seen = x if x.flags.c_contiguous else x.transpose(order)
    bordered(seen.view(word), y.view(word), rows, columns, around.view(word), *sizes)
    return y if seen is x else y.transpose(inverse_order(order))


@functools.lru_cache(256)
def _plan(shape: Any, pairs: Any, mode: str) -> Any:
    """The shape of the result, and what `bordered` is told; axes are as they lie in memory."""
    along = [k for k, pair in enumerate(pairs) if any(pair)]
    size = tuple([n + sum(pair) for n, pair in zip(shape, pairs)])
    if not along or min(size) < 1:
        return None
    first, last = along[0], along[-1]
    if prod(size[first:last]) > _MOST_ROWS:
        return None
    inner, rows = prod(shape[last + 1 :]), np.zeros(1, np.int64)
    for n, pair in zip(shape[first:last], pairs[first:last]):
        at, outer = _places(n, pair, mode), rows[:, None]
        nothing = (outer == NOTHING) | (at == NOTHING)
        rows = np.where(nothing, NOTHING, outer * n + at).reshape(-1)
    start, stop = (max(-n, 0) for n in pairs[last])
    low, high = (max(n, 0) for n in pairs[last])
    kept = shape[last] - start - stop
    rows = np.where(rows == NOTHING, NOTHING, (rows * shape[last] + start) * inner)
    at = _places(shape[last], pairs[last], mode)
    columns = np.concatenate((at[:low], at[low + kept :]))
    count, plane = prod(size[:last]), prod(shape[first:])
    some = share(prod(size) // count, count)
    sizes = plane, kept, low, high, inner, len(rows), count, some, -(-count // some)
    return size, rows, columns, sizes


def _places(n: int, pair: Any, mode: Any) -> Any:
    """Which of n elements stand in the padded axis."""
    left = np.arange(n)[max(-pair[0], 0) : n + min(pair[1], 0)]
    known: Any = {"constant_values": NOTHING} if mode == "constant" else {}
    return np.pad(left, [max(k, 0) for k in pair], mode, **known)
