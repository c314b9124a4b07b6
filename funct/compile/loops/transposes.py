"""Copies of views whose last axis is not the one that lies together, as in a transposed matrix.

Squares of elements are read as vectors along the one and written as vectors along the other; in
between they are turned around in registers. So lines of memory are read and written whole, where
loops over the result would read one element at a time.
"""

from __future__ import annotations

import math

from msgspec import Struct

from funct.compile.loops.views import View, collapse
from funct.kernels.llvm import I64, PTR, Module, Value, typed
from funct.kernels.llvm.shuffles import turned_around

__all__ = ["Transposed", "print_transposed", "transposed"]

_LEAST = 8  # elements along either side: below, loops over the result read no more lines
_MANY = 1 << 16  # elements from which on it pays to make more code
_OUTER = 3  # other axes that a kernel walks
_TASK = 1 << 16  # elements of a task
_SIDE = 16  # elements along a square, where vectors have as many


class Transposed(Struct, frozen=True):
    """A dense copy of such a view. kernel: LLVM's name of what stays together, which strides are
    counted in, and the side of squares. words: of the frame, behind both places.
    """

    kernel: tuple[str, int]
    words: tuple[int, ...]
    tasks: int


def transposed(view: View) -> Transposed | None:
    """How a view is copied; None where it is not one of these."""
    runs = collapse(view.shape, view.strides)
    if len(runs) < 2 or view.within is not None:  # what most views are
        return None
    size = view.root.dtype.itemsize
    if runs and runs[-1][1] == 1:  # a few elements that stay together, as complex numbers do
        few, _ = runs.pop()
        if view.offset % few or any(s % few for _, s in runs):
            return None
        size, runs = size * few, [(n, s // few) for n, s in runs]
    steps = [math.prod([n for n, _ in runs[k + 1 :]]) for k in range(len(runs))]
    down = [k for k, (n, s) in enumerate(runs[:-1]) if s == 1 and n >= _LEAST]
    if size not in (1, 2, 4, 8) or len(down) != 1 or min(runs[-1]) < _LEAST:
        return None
    (k,) = down
    outer = [(n, s, steps[j]) for j, (n, s) in enumerate(runs[:-1]) if j != k]
    if len(outer) > _OUTER or not all(s for _, s, _ in outer):  # or it repeats what it reads
        return None
    (m, _), (n, stride) = runs[k], runs[-1]
    panel = min(m, -(-max(1, _TASK // n) // _SIDE) * _SIDE)
    panels = -(-m // panel)
    count = panels * math.prod([length for length, *_ in outer])
    several = max(1, _TASK // (panel * n))
    words = [m, steps[k], n, stride, panel, panels, count, several]
    for axis in (*outer, *[(1, 0, 0)] * (_OUTER - len(outer))):
        words += axis
    side = _SIDE if min(m, n) >= _SIDE and view.size >= _MANY else _LEAST
    return Transposed((f"i{8 * size}", side), tuple(words), -(-count // several))


def print_transposed(module: Module, name: str, element: str, side: int) -> None:
    """Add the kernel for elements of that many bits, in squares of up to so many, as the lengths
    are at least: the last squares begin where they end with them. Frame: source, result; length and
    step in the result of the axis that lies together; length of the result's last axis and step in
    the source; elements of the first axis in a panel, panels along it, all panels, those of a task;
    length and both steps of each other axis.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    source, out = f.pointers(frame, 0, 2)
    m, step, n, stride, panel, panels, count, several = f.words(frame, 2, 8)
    axes = [f.words(frame, 10 + 3 * k, 3)
            for k in range(_OUTER)]  # fmt: skip
    side = min(side, module.target.vector_bytes // typed(element).bytes)
    wide = typed(element, side)

    def walk(number: Value, _: list[Value]) -> list[Value]:
        rest = f.div(number, panels)
        begin = (number - rest * panels) * panel
        end = f.intrinsic("smin", begin + panel, m)
        read, written = source, out
        for length, there, here in reversed(axes):
            above = f.div(rest, length)
            index = rest - above * length
            read, written = f.at(read, index * there, element), f.at(written, index * here, element)
            rest = above

        def square(i: Value, j: Value) -> list[Value]:
            i, j = f.intrinsic("smin", i, m - side), f.intrinsic("smin", j, n - side)
            rows = [f.load(wide, f.at(read, (j + k) * stride + i, element)) for k in range(side)]
            for k, x in enumerate(turned_around(f, rows)):
                f.store(x, f.at(written, (i + k) * step + j, element))
            return []

        f.loop(begin, end, side, lambda i, _: f.loop(0, n, side, lambda j, _: square(i, j)))
        return []

    first = task * several
    f.loop(first, f.intrinsic("smin", first + several, count), 1, walk)
    f.ret()
