"""x[key] and x.at[key]: every form of NumPy indexing, by `slice_`, `reshape` and `take`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funct import ops
from funct.core import Shape, Size, Value
from funct.errors import IndexOutOfBoundsError, UnsupportedOperandError
from funct.ops.families import broadcast_shapes, constant, wrap

__all__ = ["At", "index", "nonzero_axes"]


def index(x: Any, key: Any) -> Any:
    """x[key]: ints, slices, None, Ellipsis, integer arrays, masks and tuples of them."""
    items = _expand(x, key if isinstance(key, tuple) else (key,))
    y, adjacent = _basic(x, items)
    arrays = [i for i in items if isinstance(i, Value)]
    return _advanced(y, items, arrays, adjacent) if arrays else y


def _expand(x: Any, key: tuple[Any, ...]) -> list[Any]:
    """One entry per axis of x, plus None entries; masks become integer arrays."""
    items: list[Any] = []
    for k in key:
        if isinstance(k, bool | np.bool_):
            k = wrap(np.asarray(k))
        if isinstance(k, list | np.ndarray):
            k = wrap(np.asarray(k))
        if isinstance(k, Value):
            if k.dtype.kind == "b":
                _check_mask(x, k, sum(1 for i in items if i is not None and i is not Ellipsis))
                items.extend(nonzero_axes(k) if k.shape else _scalar_mask(k))
                continue
            if k.dtype.kind not in "iu":
                raise IndexOutOfBoundsError(f"x[...]: an index must be of integers, got {k.dtype}")
        items.append(k)
    if sum(1 for i in items if i is Ellipsis) > 1:
        raise IndexOutOfBoundsError("x[...]: an index can have only one Ellipsis")
    used = sum(1 for i in items if i is not None and i is not Ellipsis)
    rank = len(x.shape)
    if used > rank:
        raise IndexOutOfBoundsError(f"x[...]: {used} indices for an array of rank {rank}")
    at = next((n for n, i in enumerate(items) if i is Ellipsis), len(items))
    items[at : at + 1] = [slice(None)] * (rank - used)
    return items


def _check_mask(x: Any, mask: Any, axis: int) -> None:
    covered = x.shape[axis : axis + len(mask.shape)]
    if mask.shape and covered != mask.shape:
        raise IndexOutOfBoundsError(
            f"x[mask]: mask has shape {mask.shape}, the axes it selects have {covered}"
        )


def _scalar_mask(mask: Any) -> list[Any]:
    """A 0-d mask adds an axis of length 0 or 1."""
    return [None, wrap(np.zeros(int(bool(mask)), np.int64))]


def nonzero_axes(x: Any) -> list[Any]:
    """Indices of the true elements, one 1-D array per axis; asks for concrete values."""
    return [wrap(i) for i in np.nonzero(x.concrete())]


def _basic(x: Any, items: list[Any]) -> tuple[Any, bool]:
    """Slices, ints and None; integer arrays keep their axes. Also: are the arrays side by side?"""
    triples: list[Any] = []
    shape: list[Any] = []
    axis = 0
    kinds: list[bool] = []
    for i in items:
        if i is None:
            shape.append(1)
            kinds.append(False)
            continue
        n = x.shape[axis]
        if isinstance(i, slice):
            t = _triple(i)
            triples.append(t)
            shape.append(ops.manipulation._length(n, t))
            kinds.append(False)
        elif isinstance(i, Value):
            triples.append((None, None, 1))
            shape.append(n)
            kinds.append(True)
        else:
            k = _integer(i, n, axis)
            triples.append((k, k + 1 or None, 1))
            kinds.append(True)
        axis += 1
    if any(t != (None, None, 1) for t in triples):
        x = ops.slice_(x, tuple(triples))
    if len(shape) != len(x.shape) or any(isinstance(i, int) or i is None for i in items):
        x = ops.reshape(x, tuple(shape))
    first, last = (
        kinds.index(True) if True in kinds else 0,
        len(kinds) - kinds[::-1].index(True) if True in kinds else 0,
    )
    return x, all(kinds[first:last])


def _triple(s: slice) -> tuple[Any, Any, Any]:
    start, stop, step = (
        None if v is None else v if isinstance(v, Size) else operator.index(v)
        for v in (s.start, s.stop, s.step)
    )
    if step == 0:
        raise IndexOutOfBoundsError("x[...]: a slice step must not be 0")
    return start, stop, 1 if step is None else step


def _integer(i: Any, n: Any, axis: int) -> int:
    try:
        k = operator.index(i)
    except TypeError:
        raise UnsupportedOperandError(
            "x[...]: an index must be an int, slice, None, Ellipsis or Tensor, "
            f"got {type(i).__name__}"
        ) from None
    if not -n <= k < n:
        raise IndexOutOfBoundsError(
            f"x[...]: index {k} is out of bounds for axis {axis} of length {n}"
        )
    return k


def _advanced(x: Any, items: list[Any], arrays: list[Any], adjacent: bool) -> Any:
    """Integer arrays, broadcast together, on axes of x that `_basic` left in place."""
    kept = [i for i in items if i is None or isinstance(i, slice | Value)]
    axes = [n for n, i in enumerate(kept) if isinstance(i, Value)]
    if len(arrays) == 1:
        out = ops.take(x, arrays[0], axes[0])
        rank, start = len(arrays[0].shape), axes[0]
    else:
        common = broadcast_shapes(*[a.shape for a in arrays])
        flat: Any = None
        for a, axis in zip(arrays, axes, strict=True):
            n = x.shape[axis]
            a = ops.wrap_index(a, n)
            flat = a if flat is None else flat * n + a
        if flat.shape != common:
            flat = ops.broadcast_to(flat, common)
        rest = [n for n in range(len(kept)) if n not in axes]
        y = ops.permute_dims(x, tuple(axes + rest))
        merged = ops.statistical.axis_count(x, tuple(axes))
        y = ops.reshape(y, (merged, *[x.shape[n] for n in rest]))
        out, rank, start = ops.take(y, flat, 0), len(common), 0
        if adjacent:
            out = ops.indexing._insert_block(out, 0, rank, axes[0])
            return out
    return out if adjacent or start == 0 else ops.indexing._insert_block(out, start, rank, 0)


class At:
    """x.at[key].set(v) and friends: a new array with the elements at key changed."""

    __slots__ = ("_key", "_x")

    def __init__(self, x: Any, key: Any = None) -> None:
        self._x = x
        self._key = key

    def __getitem__(self, key: Any) -> At:
        return At(self._x, key)

    def get(self) -> Any:
        """x[key]."""
        return index(self._x, self._key)

    def _positions(self) -> Any:
        """Flat positions that key selects: one mechanism for every form of index."""
        x = self._x
        n = ops.statistical.axis_count(x, tuple(range(len(x.shape))))
        return index(constant(np.arange(int(n), dtype=np.int64).reshape(x.shape)), self._key)

    def _scatter(self, v: Any, mode: str) -> Any:
        x, at = self._x, self._positions()
        v = v if isinstance(v, Value) else wrap(np.asarray(v))
        v = ops.astype(v, x.dtype) if v.dtype != x.dtype else v
        v = ops.broadcast_to(v, at.shape) if v.shape != at.shape else v
        n = ops.statistical.axis_count(x, tuple(range(len(x.shape))))
        flat_v, flat_at = (ops.reshape(a, (_size(a.shape),)) for a in (v, at))
        if mode == "add":
            return x + ops.reshape(ops.put(flat_v, flat_at, 0, n), x.shape)
        return ops.reshape(ops.scatter(ops.reshape(x, (n,)), flat_v, flat_at, mode), x.shape)

    def set(self, v: Any) -> Any:
        """Replace; of several writes to one position the last stands."""
        return self._scatter(v, "set")

    def add(self, v: Any) -> Any:
        """Add; repeated positions add up."""
        return self._scatter(v, "add")

    def multiply(self, v: Any) -> Any:
        """Multiply; repeated positions multiply repeatedly."""
        return self._scatter(v, "multiply")

    def divide(self, v: Any) -> Any:
        """Divide by v."""
        return self._scatter(1 / v, "multiply")

    def power(self, v: Any) -> Any:
        """Raise to the power v."""
        return self.set(self.get() ** v)

    def min(self, v: Any) -> Any:
        """The smaller of the old value and v."""
        return self._scatter(v, "min")

    def max(self, v: Any) -> Any:
        """The larger of the old value and v."""
        return self._scatter(v, "max")


def _size(shape: Shape) -> Any:
    n: Any = 1
    for k in shape:
        n = n * k
    return n
