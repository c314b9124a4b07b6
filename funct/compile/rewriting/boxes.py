"""Indices that are known and are a box of an axis: slices, which loops and copies hold.

`x.at[1:-1, 1:-1].add(v)` is captured with the flat positions that its key selects, as every key
is. Where such positions are those of slices of the axis, seen as an array, what is read there is a
view, what is put there is written into zeros, and what replaces it stands between what is left.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct

from funct.compile.loops.scalars import ELEMENTS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.graph import Node, Var

__all__ = ["Boxes", "box"]

_COMBINES = {"multiply": "multiply", "min": "minimum", "max": "maximum"}


class Box(Struct, frozen=True):
    """Slices of an axis in this shape; lengths: how many each of them takes."""

    shape: tuple[int, ...]
    index: tuple[tuple[int, int, int], ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many places each slice has."""
        return tuple([len(range(*t)) for t in self.index])


def box(places: np.ndarray[Any, Any], length: int) -> Box | None:
    """The box that these places of an axis are, in order; None if they are none."""
    places = places.ravel().astype(np.int64)
    if not places.size or places.min() < -length or places.max() >= length:
        return None
    places = np.where(places < 0, places + length, places)
    first, runs = int(places[0]), []  # (length, step) of each axis of the box, the innermost first
    while places.size > 1:
        step = int(places[1] - places[0])
        ends = np.flatnonzero(np.diff(places) != step)
        n = int(ends[0]) + 1 if ends.size else places.size
        if step < 1 or n == 1 or places.size % n:
            return None
        rows = places.reshape(-1, n)
        if (np.diff(rows, axis=1) != step).any():
            return None
        runs.append((n, step))
        places = rows[:, 0]
    return _sliced(first, runs or [(1, 1)], length)


def _sliced(first: int, runs: list[tuple[int, int]], length: int) -> Box | None:
    """The axes that runs of places are slices of."""
    below = [1]  # elements of one step along each axis
    for _, step in runs[1:]:
        below.append(math.gcd(step, length))
    shape, index = [], []
    for k, (n, step) in enumerate(runs):
        above = below[k + 1] if k + 1 < len(runs) else length
        if above % below[k] or step % below[k]:
            return None
        whole, start, by = above // below[k], first % above // below[k], step // below[k]
        stop = start + (n - 1) * by + 1
        if stop > whole:
            return None
        shape.append(whole)
        index.append((start, stop, by))
    return Box(tuple(shape[::-1]), tuple(index[::-1]))


class Boxes(NewNodes):
    """Who writes ops at known indices with slices."""

    def in_box(self, e: Node) -> Var | None:
        """The result of `take`, `put` or an update where indices are a box."""
        i, out = e.operands[-1], e.results[0]
        if not isinstance(i, Var) or i not in self.constants or out.dtype not in ELEMENTS:
            return None
        if 0 in out.shape:
            return None  # nothing is left to stand before or behind
        x, (axis, length) = e.operands[0], _axis(e)
        known = all(isinstance(a, Var) and a.dtype == out.dtype for a in e.operands[:-1])
        found = box(np.asarray(self.constants[i].data), length) if known else None
        if found is None:
            return None
        assert isinstance(x, Var)
        lead, behind = out.shape[:axis], x.shape[axis + (len(i.shape) if e.name == "put" else 1) :]
        shape = (*lead, *found.shape, *behind)
        index = (*_whole(lead), *found.index, *_whole(behind))
        lengths = (*lead, *found.lengths, *behind)
        if e.name == "put":
            if out.dtype.kind == "f":
                x = self.apply("add", (x, 0.0), (), x.shape, x.dtype)  # to zeros: -0 is lost
            return self.reshape(self._embedded(self.reshape(x, lengths), index, shape), out.shape)
        x = self.reshape(x, shape)
        if e.name == "take":
            return self.reshape(self._slice(x, index), out.shape)
        v = e.operands[1]
        assert isinstance(v, Var)
        v = self.reshape(v, lengths)
        if e.name == "scatter_add":
            if out.dtype.kind == "b":
                return None
            less = self.apply("negative", (v,), (), lengths, out.dtype)  # x - 0 is x, also where
            less = self._embedded(less, index, shape)  # x is -0
            return self.reshape(self.apply("subtract", (x, less), (), shape, out.dtype), out.shape)
        if any(step != 1 for _, _, step in index):
            return None
        if e.params:
            operands = (self._slice(x, index), v)
            v = self.apply(_COMBINES[e.params[0]], operands, (), lengths, out.dtype)
        return self.reshape(self._replaced(x, v, index, 0), out.shape)

    def _embedded(self, x: Var, index: Any, shape: tuple[int, ...]) -> Var:
        return self.apply("embed", (x,), (index, shape), shape, x.dtype)

    def _slice(self, x: Var, index: Any) -> Var:
        shape = [len(range(*slice(*t).indices(n))) for t, n in zip(index, x.shape, strict=True)]
        return self.apply("slice_", (x,), (index,), shape, x.dtype)

    def _replaced(self, x: Var, v: Var, index: Any, axis: int) -> Var:
        """x with v where the slices are: before it, it between the rest, behind it."""
        if axis == len(x.shape):
            return v
        (start, stop, _), n = index[axis], x.shape[axis]
        parts = [(0, start), (start, stop), (stop, n)]
        found = []
        for k, (low, high) in enumerate(parts):
            if low == high:
                continue
            whole = _whole(x.shape)
            here = (*whole[:axis], (low, high, 1), *whole[axis + 1 :])
            part = self._slice(x, here)
            found.append(self._replaced(part, v, index, axis + 1) if k == 1 else part)
        if len(found) == 1:
            return found[0]
        return self.concat(found, axis, self.var(x.shape, x.dtype))


def _axis(e: Node) -> tuple[int, int]:
    """Which axis the indices count along, and how long it is."""
    x = e.operands[0]
    assert isinstance(x, Var)
    if e.name == "put":
        return e.params[0], e.params[1]
    axis = e.params[0] if e.name == "take" else 0
    return axis, x.shape[axis]


def _whole(lengths: Any) -> tuple[tuple[int, int, int], ...]:
    return tuple([(0, n, 1) for n in lengths])
