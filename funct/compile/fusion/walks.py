"""How the loops of a kernel walk a view: its access, and the words of the frame that go with it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from funct.compile.fusion.groups import MOST_WOVEN
from funct.compile.loops.kernel import Access, Term
from funct.compile.loops.scalars import ELEMENTS, HELD
from funct.compile.loops.views import Run, View, folded, has_whole_rows, runs_of

__all__ = ["Walked", "walk"]


class Walked(Struct, frozen=True):
    """An access with the words that go with it, from so many bytes behind the root's first on.

    place: which it is, of those that are woven.
    """

    access: Access
    root: Any
    offset: int
    words: tuple[int, ...]
    place: int = 0


def walk(
    view: View, columns: int | None, *, woven: bool = False, looked_up: bool = False
) -> Walked | None:
    """The walk through what has an element for each place of rows of so many columns, or for each
    row where columns is None; None where a row of it is not one run. woven: it is one of a few
    places that lie side by side. looked_up: an index moves it too, so it may stand elsewhere.
    """
    runs = runs_of(view)
    inner: Any = "none"
    words: list[int] = []
    place, each, ends = 0, 1, None
    if columns is not None:
        found = _row(runs, columns)
        if found is None:
            return None
        runs, row, each = found
        stride, ends = row.stride, row.within
        inner = {0: "none", 1: "one", -1: "back"}.get(stride, "some") if columns > 1 else "none"
        is_short = view.root.dtype in ELEMENTS and stride <= MOST_WOVEN
        if view.within is not None:  # whole vectors may not be there
            inner, is_short = "some" if inner == "back" else inner, False
        is_short = is_short and not looked_up
        if woven or (inner == "some" and is_short and has_whole_rows(view, stride)):
            inner, place = stride, view.offset % stride
        elif inner == "some":
            words.append(stride)
    terms: list[Term] = []
    limits: list[Term] = []
    limit_words: list[int] = []
    below = 1
    for k, run in enumerate(reversed(runs)):
        divided, wrapped = below > 1, k < len(runs) - 1
        counted = [*[below] * divided, *[run.length] * wrapped]
        if run.stride:
            terms.append((divided, wrapped))
            words += [run.stride, *counted]
        if run.within:
            limits.append((divided, wrapped))
            limit_words += [*counted, *run.within]
        below *= run.length
    element = HELD[view.root.dtype]
    access = Access(element, inner, tuple(terms), each, tuple(limits), ends is not None)
    offset = (view.offset - place) * view.root.dtype.itemsize
    return Walked(access, view.root, offset, (*words, *limit_words, *(ends or ())), place)


def _row(runs: list[Run], columns: int) -> tuple[list[Run], Run, int] | None:
    """The runs of rows, the run that a row is, and how often each element is there; None where rows
    end within runs.
    """
    each, (whole, times) = 1, folded(runs)
    if times < columns and not columns % times:
        runs, each = whole, times
    outer, row = (runs[:-1], runs[-1]) if runs else ([], Run(1, 0))
    if row.length == columns:
        return outer, row, each
    if row.length % columns:
        alike = not any(r.stride or r.within for r in runs)  # one element, whatever the row
        return (outer, row, each) if alike and not columns % row.length else None
    both = row.split(columns)
    if both is None:
        return None
    more, row = both
    return [*outer, Run(more.length, more.stride // each, more.within)], row, each
