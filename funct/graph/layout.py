"""Where to draw the nodes of an acyclic graph: layers from top to bottom, few crossings, no tools.

Longest paths give the layers, edges that pass layers get a bend in each, barycentre sweeps order a
layer, and every node moves towards its neighbours as far as the others let it. All walks are
loops; ten thousand nodes are fine.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msgspec import Struct

__all__ = ["Layout", "Point", "lay_out"]

Point = tuple[float, float]

_GAP, _SWEEPS = 24.0, 6  # between neighbours in a layer; times that each layer is put in order


class Layout(Struct, frozen=True):
    """Centres of the nodes, points along each edge (ends and bends), and the size of the whole."""

    centres: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def lay_out(
    widths: Sequence[float],
    edges: Sequence[tuple[int, int]],
    *,
    row: float = 84.0,
) -> Layout:
    """A layout for nodes 0, 1, ... whose edges (a, b) lead downwards, a < b in every one.

    Args: widths: of the nodes. row: distance of layers.
    """
    n = len(widths)
    layer = [0] * n
    for a, b in sorted(edges):  # a's layer is final: its own edges come from smaller numbers
        layer[b] = max(layer[b], layer[a] + 1)
    size = list(widths)
    links: list[tuple[int, int]] = []
    chains: list[list[int]] = []
    for a, b in edges:
        path = [a]
        for k in range(layer[a] + 1, layer[b]):
            path.append(len(size))
            size.append(0.0)
            layer.append(k)
        path.append(b)
        chains.append(path)
        links += list(itertools.pairwise(path))
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for v, k in enumerate(layer):
        rows[k].append(v)
    above: list[list[int]] = [[] for _ in size]
    below: list[list[int]] = [[] for _ in size]
    for a, b in links:
        below[a].append(b)
        above[b].append(a)
    _order(rows, above, below)
    x = _positions(rows, size, above, below)
    left = min((x[v] - size[v] / 2 for v in range(len(size))), default=0.0) - _GAP
    centres = tuple([(x[v] - left, (layer[v] + 0.5) * row) for v in range(len(size))])
    width = max((c[0] + size[v] / 2 for v, c in enumerate(centres)), default=0.0) + _GAP
    routes = tuple([tuple([centres[v] for v in path]) for path in chains])
    return Layout(centres[:n], routes, width, len(rows) * row)


def _order(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    place = {v: i for r in rows for i, v in enumerate(r)}
    for k in range(_SWEEPS):
        down = k % 2 == 0
        near = above if down else below
        for r in rows if down else rows[::-1]:
            mean = {v: _mean([place[u] for u in near[v]], place[v]) for v in r}
            r.sort(key=mean.__getitem__)
            for i, v in enumerate(r):
                place[v] = i


def _mean(values: list[int], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _positions(
    rows: list[list[int]],
    size: list[float],
    above: list[list[int]],
    below: list[list[int]],
) -> list[float]:
    x = [0.0] * len(size)
    for r in rows:
        at = 0.0
        for v in r:
            x[v] = at + size[v] / 2
            at += size[v] + _GAP
        for v in r:
            x[v] -= at / 2
    for k in range(_SWEEPS):
        down = k % 2 == 0
        near = above if down else below
        for r in rows if down else rows[::-1]:
            wish = [sum(x[u] for u in near[v]) / len(near[v]) if near[v] else x[v] for v in r]
            _settle(r, wish, x, size)
    return x


def _settle(r: list[int], wish: list[float], x: list[float], size: list[float]) -> None:
    """Positions in one layer nearest to the wishes that keep order and distances.

    Neighbours that push each other become a block, which stands at the mean of its wishes (pool
    adjacent violators).
    """
    blocks: list[tuple[float, int]] = []  # sum of wishes, number of nodes
    offset = 0.0
    offsets: list[float] = []
    for i, v in enumerate(r):
        if i:
            offset += (size[r[i - 1]] + size[v]) / 2 + _GAP
        offsets.append(offset)
        total, count = wish[i] - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            earlier = blocks.pop()
            total, count = total + earlier[0], count + earlier[1]
        blocks.append((total, count))
    i = 0
    for total, count in blocks:
        for _ in range(count):
            x[r[i]] = total / count + offsets[i]
            i += 1
