"""Index maps: which element of a dense buffer each element of a view is.

Reshapes, transposes, slices and broadcasts of a buffer cost nothing: whoever reads the result reads
the buffer by an affine map. A view that no affine map gives is a copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from funct.graph import Node, Var

__all__ = ["VIEWS", "View", "collapse", "dense", "folded", "has_whole_rows", "reshaped", "through"]

_MOST_EACH = 16  # columns that one element is for, within a row

Sizes = tuple[int, ...]


@attrs.frozen
class View:
    """root[offset + Σ index · stride], strides in elements of a buffer that is dense."""

    root: Var
    shape: Sizes
    strides: Sizes
    offset: int = 0

    def broadcast(self, shape: Sequence[int]) -> View:
        """The view as an operand of that shape."""
        lead = len(shape) - len(self.shape)
        strides = [0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True)]
        return View(self.root, tuple(shape), (*[0] * lead, *strides), self.offset)

    @property
    def is_run(self) -> bool:
        """Whether the elements lie one after the other, in order."""
        return collapse(self.shape, self.strides) in ([], [(self.size, 1)])

    @property
    def is_dense(self) -> bool:
        """Whether they do, from the buffer's first element on."""
        return not self.offset and self.is_run

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def dense(v: Var) -> View:
    """The whole of a buffer."""
    strides, step = [], 1
    for n in reversed(v.shape):
        strides.append(step)
        step *= n
    return View(v, tuple(v.shape), tuple(reversed(strides)))


def collapse(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """The fewest (length, stride) that walk the same elements in the same order."""
    runs: list[tuple[int, int]] = []
    for n, s in zip(shape, strides, strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        else:
            runs.append((n, s))
    return runs


def folded(runs: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], int]:
    """The runs with a row of elements that are each there a few times in a row as one run, and how
    often they are.
    """
    if len(runs) < 2 or runs[-1][1] or runs[-2][1] != 1 or runs[-1][0] > _MOST_EACH:
        return runs, 1
    each = runs[-1][0]
    return [*runs[:-2], (runs[-2][0] * each, 1)], each


def has_whole_rows(view: View, length: int) -> bool:
    """Whether the rows of so many elements that a view's elements stand in are all in the buffer;
    rows begin at multiples of their length before the first element.
    """
    moves = [(n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)]
    start = view.offset - view.offset % length if length > 1 else -1
    least, most = (sum([m for m in moves if sign * m > 0]) for sign in (-1, 1))
    return start + least >= 0 and start + most + length <= math.prod(view.root.shape)


def through(node: Node, view: View) -> View | None:
    """What a node that only looks elsewhere sees; None where no affine map gives it."""
    return VIEWS[node.name](view, tuple(node.results[0].shape), *node.params)


def reshaped(view: View, shape: Sizes, *_: Any) -> View | None:
    """The same elements in that shape; None where no affine map gives them."""
    runs = collapse(view.shape, view.strides)
    strides: list[int] = []
    held = 1  # elements of the innermost open run that are given already
    for n in reversed(shape):
        if n == 1:
            strides.append(0)
            continue
        while runs and held == runs[-1][0]:
            runs.pop()
            held = 1
        if not runs or runs[-1][0] % (held * n):
            return None
        strides.append(runs[-1][1] * held)
        held *= n
    return View(view.root, shape, tuple(reversed(strides)), view.offset)


def _permute(view: View, shape: Sizes, axes: Sizes) -> View:
    return View(view.root, shape, tuple([view.strides[a] for a in axes]), view.offset)


def _slice(view: View, shape: Sizes, index: Any) -> View:
    offset, strides = view.offset, []
    for n, s, triple in zip(view.shape, view.strides, index, strict=True):
        start, _, step = slice(*triple).indices(n)
        offset += start * s
        strides.append(step * s)
    return View(view.root, shape, tuple(strides), offset if math.prod(shape) else 0)


def _flip(view: View, shape: Sizes, axes: Sizes) -> View:
    offset, strides = view.offset, list(view.strides)
    for a in axes:
        offset += (view.shape[a] - 1) * strides[a]
        strides[a] = -strides[a]
    return View(view.root, shape, tuple(strides), offset if math.prod(shape) else 0)


def _broadcast(view: View, shape: Sizes, *_: Any) -> View:
    return view.broadcast(shape)


def _same(view: View, shape: Sizes, *_: Any) -> View:
    return view


VIEWS: dict[str, Any] = {
    "reshape": reshaped, "permute_dims": _permute, "slice_": _slice, "flip": _flip,
    "broadcast_to": _broadcast, "stop_gradient": _same, "settled": _same,
    "checkpoint_name": _same,
}  # fmt: skip
