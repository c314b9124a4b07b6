"""Draws by rejection on counters, in vectors: of gamma and Poisson distributions.

Attempt t for element i of a key hashes i under keys that are hashes of (tag, t): no draw depends on
any other, nor on who makes it. What is not accepted is listed, and tried again in vectors.

`draw_all` is a step of compiled loops (`funct/compile/steps/flat.py`).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.random.bits import mixed
from funct.kernels.cpu.vectors import gathered, loaded, spread, stored
from funct.kernels.random.attempts import gamma_attempt, gamma_terms, most, poisson_attempt

__all__ = ["ROOM", "draw_all", "drawn"]

_LANES = 16
_TILE = 1 << 10  # elements whose list stays in the first-level cache
_PART = 1 << 14  # elements of a task
_MADE, _KEPT = _TILE + _LANES, _TILE + 2 * _LANES
ROOM = _TILE + 3 * _LANES  # words that a task needs: a list, candidates, whether they are refused


def _streams(k0: Any, k1: Any, tag: Any, stream: Any, kind: str) -> Any:
    """The keys of an attempt's streams: two, for gamma numbers three."""
    s0, s1 = mixed(k0, k1, tag, stream)
    t0, t1 = mixed(k0, k1, tag, stream + 1)
    if kind == "poisson":
        return s0, s1, t0, t1
    u0, u1 = mixed(k0, k1, tag, stream + 2)
    return s0, s1, t0, t1, u0, u1


def _pair(s0: Any, s1: Any, at: Any) -> Any:
    """Two words for the elements `at` of a stream."""
    return mixed(s0, s1, (at >> 32).astype(np.uint32), at.astype(np.uint32))


def _terms(a: Any, kind: str) -> Any:
    """What attempts with parameters a share."""
    return a if kind == "poisson" else gamma_terms(a, kind == "log_gamma")


def _tried(streams: Any, at: Any, terms: Any, kind: str, dtype: Any) -> tuple[Any, Any]:
    """Candidates, as words, and whether they are accepted."""
    u = _pair(streams[0], streams[1], at)
    v = _pair(streams[2], streams[3], at)
    if kind == "poisson":
        count, accepted = poisson_attempt(u, v, terms)
        return np.where(count < most(dtype), count, most(dtype)), accepted
    w = _pair(streams[4], streams[5], at)
    x, accepted = gamma_attempt(u, v, w, terms, kind == "log_gamma")
    return x.view(np.int64), accepted


def _number(word: Any, dtype: Any, kind: str) -> Any:
    return word.astype(dtype) if kind == "poisson" else word.view(np.float64).astype(dtype)


def _tile(
    keys: Any, a: Any, y: Any, room: Any, at: Any, first: Any, count: Any, n: Any, tag: Any,
    one: bool, single: bool, kind: str,
) -> None:  # fmt: skip
    """Elements from `first` on, as many as count, of n for each key. at: where room begins."""
    mark = np.uint32(tag)
    stream = np.uint32(0)
    for i in range(count):
        room[at + i] = first + i
    while count > 0:
        kept = count - count
        stored(room, at + count, spread(room[at], _LANES))  # what fills the last vector
        if single:
            shared = _terms(spread(a[0], _LANES), kind)
        if one:
            streams = _streams(keys[0], keys[1], mark, stream, kind)
        for j in range(0, count, _LANES):
            flat = loaded(room, at + j, _LANES)
            terms = shared if single else _terms(gathered(a, flat), kind)
            if one:
                v, ok = _tried(streams, flat, terms, kind, y.dtype)
            else:
                row = (flat.astype(np.uint64) // np.uint64(n)).astype(np.int64)
                k0, k1 = gathered(keys, row * 2), gathered(keys, row * 2 + 1)
                own = _streams(k0, k1, mark, stream, kind)
                v, ok = _tried(own, flat - row * n, terms, kind, y.dtype)
            stored(room, at + _MADE, v)
            stored(room, at + _KEPT, np.where(ok, 0, 1))
            for q in range(min(_LANES, count - j)):
                place = room[at + j + q]
                y[place] = _number(room[at + _MADE + q], y.dtype, kind)
                room[at + kept] = place
                kept = kept + room[at + _KEPT + q]
        count = kept
        stream = stream + 4


@parallel
def draw(
    keys: Any, a: Any, y: Any, room: Any, n: int, total: int, tag: int, one: bool, single: bool,
    kind: str, task: int,
) -> None:  # fmt: skip
    """y: n elements for each key; a: parameters of all, or a single one. one: one key."""
    last = min((task + 1) * _PART, total)
    for i in range(task * _PART, last, _TILE):
        _tile(keys, a, y, room, task * ROOM, i, min(_TILE, last - i), n, tag, one, single, kind)


def draw_all(
    keys: Any, a: Any, y: Any, room: Any, n: int, total: int, tag: int, one: bool, single: bool,
    kind: str,
) -> None:  # fmt: skip
    """`draw` in one task."""
    for i in range(0, total, _TILE):
        _tile(keys, a, y, room, 0, i, min(_TILE, total - i), n, tag, one, single, kind)


def drawn(keys: Any, a: Any, shape: Any, dtype: Any, tag: int, kind: str) -> Any:
    """Elements (*b, *shape) for the keys (*b, 2): "gamma", "log_gamma" or "poisson"."""
    y = np.empty((*keys.shape[:-1], *shape), dtype)
    if not y.size:
        return y
    single = a.size == 1
    if not single and not (a.shape == y.shape and a.flags.c_contiguous):
        a = np.broadcast_to(a, y.shape).copy()
    tasks = -(-y.size // _PART)
    room = np.empty(tasks * ROOM, np.int64)
    draw(keys, a, y, room, prod(shape), y.size, tag, keys.size == 2, single, kind, tasks)
    return y
