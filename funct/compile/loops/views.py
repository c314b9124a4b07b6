"""Index maps: which element of a dense buffer each element of a view is.

Reshapes, transposes, slices and broadcasts of a buffer cost nothing: whoever reads the result reads
the buffer by an affine map. So do loops that read it with zeros around. A view that no such map
gives is a copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from funct.graph import Node, Var

__all__ = [
    "VIEWS", "Run", "View", "collapse", "dense", "embedded", "folded", "has_whole_rows", "reshaped",
    "runs_of", "through",
]  # fmt: skip

_MOST_EACH = 16  # columns that one element is for, within a row

Sizes = tuple[int, ...]
Range = tuple[int, int]


class View(Struct, frozen=True):
    """root[offset + Σ index · stride], strides in elements of a buffer that is dense.

    within: for each axis the indices from one to before the other at which there are elements; at
    others there are zeros. None where there are elements at all.
    """

    root: Var
    shape: Sizes
    strides: Sizes
    offset: int = 0
    within: tuple[Range, ...] | None = None

    def broadcast(self, shape: Sequence[int]) -> View:
        """The view as an operand of that shape."""
        if tuple(shape) == self.shape:
            return self
        assert self.within is None, "only what has its shape reads it"
        lead = len(shape) - len(self.shape)
        strides = [0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True)]
        return View(self.root, tuple(shape), (*[0] * lead, *strides), self.offset)

    @property
    def is_run(self) -> bool:
        """Whether the elements lie one after the other, in order."""
        return not self.within and collapse(self.shape, self.strides) in ([], [(self.size, 1)])

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


class Run(Struct, frozen=True):
    """Elements at one stride from each other. within: at which of them there are elements."""

    length: int
    stride: int
    within: Range | None = None

    def over(self, length: int, stride: int) -> Run:
        """With what each of its elements is a run of."""
        start, stop = self.within or (0, 0)
        within = (start * length, stop * length) if self.within else None
        return Run(self.length * length, stride, within)

    def split(self, length: int) -> list[Run] | None:
        """As runs of runs of that length; None where it is none, or its elements end in one."""
        ends = self.within or (0, 0)
        if self.length % length or any(n % length for n in ends):
            return None
        within = (ends[0] // length, ends[1] // length) if self.within else None
        return [Run(self.length // length, self.stride * length, within), Run(length, self.stride)]


def runs_of(view: View) -> list[Run]:
    """The fewest runs that walk the elements in their order."""
    runs: list[Run] = []
    every = [(0, n) for n in view.shape] if view.within is None else view.within
    for n, s, within in zip(view.shape, view.strides, every, strict=True):
        if within != (0, n):
            runs.append(Run(n, s, within))
        elif n != 1 and runs and runs[-1].stride == n * s:
            runs[-1] = runs[-1].over(n, s)
        elif n != 1:
            runs.append(Run(n, s))
    return runs


def folded(runs: list[Run]) -> tuple[list[Run], int]:
    """The runs with a row of elements that are each there a few times in a row as one run, and how
    often they are.
    """
    if len(runs) < 2 or runs[-1].stride or runs[-2].stride != 1 or runs[-1].length > _MOST_EACH:
        return runs, 1
    if runs[-1].within or runs[-2].within:
        return runs, 1
    each = runs[-1].length
    return [*runs[:-2], Run(runs[-2].length * each, 1)], each


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
    if view.within is not None and node.name != "slice_":
        return None
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


def embedded(node: Node, view: View) -> View:
    """What `embed` gives of a view: its elements from a place on, one after the other, and zeros
    around.
    """
    index, shape = node.params
    starts = [slice(*t).indices(n)[0] for t, n in zip(index, shape, strict=True)]
    offset = view.offset - sum([n * s for n, s in zip(starts, view.strides, strict=True)])
    within = tuple([(n, n + m) for n, m in zip(starts, view.shape, strict=True)])
    return View(view.root, tuple(shape), view.strides, offset, within)


def _slice(view: View, shape: Sizes, index: Any) -> View | None:
    offset, strides = view.offset, []
    within: list[Range] = []
    for k, (n, s, triple) in enumerate(zip(view.shape, view.strides, index, strict=True)):
        start, _, step = slice(*triple).indices(n)
        offset += start * s
        strides.append(step * s)
        if view.within is not None:
            if step != 1:
                return None
            first, last = [min(max(i - start, 0), shape[k]) for i in view.within[k]]
            within.append((first, last))
    if view.within is None:
        return View(view.root, shape, tuple(strides), offset if math.prod(shape) else 0)
    return View(view.root, shape, tuple(strides), offset, tuple(within))


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
