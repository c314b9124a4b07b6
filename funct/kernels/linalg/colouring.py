"""Colourings of a sparse matrix: which columns can be had from one product with a vector.

Sets of colours are Python integers, one bit per colour. Vertices are coloured greedily, in the
order given and with the largest degree first; the better result counts.

Source: Gebremedhin, Manne, Pothen, "What color is your Jacobian? Graph coloring for computing
derivatives", SIAM Review 47 (2005), sections 3 and 4.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["column_colours", "star_colours", "star_readings"]


def column_colours(
    rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]
) -> NDArray[np.int64]:
    """A colour for each column, such that no row has two columns of one colour.

    Args: rows, columns: the places that are not zero.
    Returns: (number of columns,), colours 0, 1, … without gaps; -1 for an empty column.
    """
    inside = _neighbours(columns, rows, shape[1])
    in_row = np.bincount(rows, minlength=shape[0])
    least = int(in_row.max(initial=0))  # no colouring has fewer
    weight = np.bincount(columns, in_row[rows], minlength=shape[1])
    best: NDArray[np.int64] | None = None
    for order in (range(shape[1]), np.argsort(-weight, kind="stable").tolist()):
        colours = _greedy(order, inside, shape[0])
        if best is None or _count(colours) < _count(best):
            best = colours
        if _count(best) == least:
            break
    assert best is not None
    return best


def _greedy(
    order: Sequence[int], inside: Sequence[Sequence[int]], n_rows: int
) -> NDArray[np.int64]:
    taken = [0] * n_rows  # the colours that a row has already
    colours = np.full(len(inside), -1, np.int64)
    for column in order:
        forbidden = 0
        for row in inside[column]:
            forbidden |= taken[row]
        if inside[column]:
            colours[column] = colour = _lowest(forbidden)
            for row in inside[column]:
                taken[row] |= 1 << colour
    return colours


def star_colours(rows: NDArray[np.int64], columns: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """A colour for each column of a symmetric matrix, from which `star_readings` finds all entries.

    Neighbours differ in colour, and no path of four vertices has two colours only. Colouring a
    vertex v last forbids the colour of x on paths v-w-x-y with c(w) = c(y), where v is an end, and
    on paths q-v-w-x with c(q) = c(w), where it is inside; so it takes one set per vertex each.
    """
    off = rows != columns
    around = _neighbours(rows[off], columns[off], n)
    degree = np.asarray([len(a) for a in around])
    best: NDArray[np.int64] | None = None
    for order in (range(n), np.argsort(-degree, kind="stable").tolist()):
        colours = _stars(order, around)
        if best is None or _count(colours) < _count(best):
            best = colours
    assert best is not None
    return best


def _stars(order: Sequence[int], around: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    n = len(around)
    colours = [-1] * n
    near = [0] * n  # colours of the neighbours
    hubs = [0] * n  # of neighbours that have another neighbour of this vertex's colour
    first: list[dict[int, int]] = [{} for _ in range(n)]  # colour -> neighbour that had it first
    for v in order:
        forbidden = near[v]
        classes: dict[int, list[int]] = {}
        for w in around[v]:
            if colours[w] >= 0:
                forbidden |= hubs[w]
                classes.setdefault(colours[w], []).append(w)
        for alike in classes.values():
            if len(alike) > 1:
                for w in alike:
                    forbidden |= near[w]
        colours[v] = colour = _lowest(forbidden)
        bit = 1 << colour
        for alike in classes.values():
            if len(alike) > 1:
                for w in alike:
                    hubs[w] |= bit
        for x in around[v]:
            near[x] |= bit
            other = first[x].setdefault(colour, v)
            if other != v and colours[x] >= 0:
                hubs[other] |= 1 << colours[x]
                hubs[v] |= 1 << colours[x]
    return np.asarray(colours, np.int64)


def star_readings(
    rows: NDArray[np.int64], columns: NDArray[np.int64], colours: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each entry of a symmetric matrix stands in its products with the colours' seeds.

    Returns: (colour, row) for each place: entry (i, j) is in row i of the product for j's colour
    where no other neighbour of i has that colour, and else in row j of that for i's colour.
    """
    n = int(colours.max(initial=0)) + 1
    off = rows != columns
    key = rows * n + colours[columns]
    _, back, count = np.unique(key[off], return_inverse=True, return_counts=True)
    alone = np.ones(len(rows), np.bool_)
    alone[off] = count[back] == 1
    return (
        np.where(alone, colours[columns], colours[rows]),
        np.where(alone, rows, columns),
    )


def _neighbours(of: NDArray[np.int64], which: NDArray[np.int64], n: int) -> list[list[int]]:
    order = np.argsort(of, kind="stable")
    ends = np.cumsum(np.bincount(of, minlength=n))
    sorted_ = which[order].tolist()
    starts = [0, *ends.tolist()]
    return [sorted_[a:b] for a, b in itertools.pairwise(starts)]


def _count(colours: NDArray[np.int64]) -> int:
    return int(colours.max(initial=-1)) + 1


def _lowest(forbidden: int) -> int:
    """The lowest bit that is not set."""
    return (~forbidden & (forbidden + 1)).bit_length() - 1
