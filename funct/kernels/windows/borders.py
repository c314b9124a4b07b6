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

__all__ = ["bordered", "padded"]

_WIDE, _NARROW = 32, 8  # elements that are copied at once
_MOST_ROWS = 1 << 15  # of a plane, for which a table is kept
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
    x: Any, y: Any, rows: Any, columns: Any, around: Any, h: int, w: int, tall: int, low: int,
    high: int, inner: int, count: int, some: int, task: int,
) -> None:  # fmt: skip
    """y (planes, tall, low + w + high, inner): row i of a plane is row rows[i] of x's.

    x: (planes, h, w, inner), where h counts the rows along several axes. columns: which of x stand
    in the `low` columns before it, and then in the `high` behind it. Where a row or column is -1,
    around[0] stands. A task makes `some` of the `count` rows of all planes.
    """
    wide, edge = (low + w + high) * inner, around[0]
    for r in range(task * some, min((task + 1) * some, count)):
        plane = np.int64(np.uint64(r) // np.uint64(tall))
        row = rows[r - plane * tall]
        to = r * wide
        if row < 0:
            _filled(y, to, edge, wide)
        else:
            at = (plane * h + row) * w * inner
            for k in range(low):
                _brought(x, at, columns[k], y, to + k * inner, inner, edge)
            _copied(x, at, y, to + low * inner, w * inner)
            for k in range(low, low + high):
                _brought(x, at, columns[k], y, to + (k + w) * inner, inner, edge)


def _brought(x: Any, at: Any, column: Any, y: Any, to: Any, inner: Any, edge: Any) -> None:
    """A column of the row of x that begins at `at`, or what stands around."""
    if column < 0:
        _filled(y, to, edge, inner)
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

    pairs: of the amounts around each axis. mode: NumPy's; "constant" puts value there. order: of
    x's axes in memory, which is contiguous so.
    """
    word = _WORDS.get(x.dtype.itemsize)
    if word is None or x.dtype.kind not in "biufc":
        return None
    plan = _plan(tuple([x.shape[k] for k in order]), tuple([pairs[k] for k in order]), mode)
    if plan is None or not pays(x.view(word)):
        return None
    size, rows, columns, sizes = plan
    y = fresh(size, x.dtype)
    around = np.array([value if mode == "constant" else 0], x.dtype)
    seen = x if x.flags.c_contiguous else x.transpose(order)
    bordered(seen.view(word), y.view(word), rows, columns, around.view(word), *sizes)
    return y if seen is x else y.transpose(np.argsort(order))


@functools.lru_cache(256)
def _plan(shape: Any, pairs: Any, mode: str) -> Any:
    """The shape of the result, and what `bordered` is told; axes are as they lie in memory."""
    along = [k for k, pair in enumerate(pairs) if any(pair)]
    if not along:
        return None
    size = tuple([n + sum(pair) for n, pair in zip(shape, pairs)])
    first, last = along[0], along[-1]
    if prod(size[first:last]) > _MOST_ROWS:
        return None
    w, inner = shape[last], prod(shape[last + 1 :])
    h, rows = 1, np.zeros(1, np.int64)
    for n, pair in zip(shape[first:last], pairs[first:last]):
        h, at = h * n, _places(n, pair, mode)
        outer = rows[:, None]
        rows = np.where((outer < 0) | (at < 0), -1, outer * n + at).reshape(-1)
    low, high = pairs[last]
    at = _places(w, pairs[last], mode)
    columns = np.concatenate((at[:low], at[low + w :]))
    count = prod(size[:last])
    some = share(prod(size) // count, count)
    sizes = h, w, len(rows), low, high, inner, count, some, -(-count // some)
    return size, rows, columns, sizes


def _places(n: int, pair: Any, mode: Any) -> Any:
    """Which of n elements stand in the padded axis."""
    known: Any = {"constant_values": -1} if mode == "constant" else {}
    return np.pad(np.arange(n), pair, mode, **known)
