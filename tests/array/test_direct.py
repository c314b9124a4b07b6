"""Direct ways give what the composition of primitives gives: elements, dtypes, shapes and errors.

The composition is what runs where an argument is watched: then primitives are all that is seen.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import funct as ft
import funct.array as xp
import funct.nn.functional
from funct.array.direct import DIRECT, Direct, _public
from funct.errors import ArgumentError, FunctError
from funct.source import ENTRANCE

Call = tuple[tuple[Any, ...], dict[str, Any]]

_DTYPES = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.int8, np.uint8)
_EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.5]


def _plain(dtype: Any, *shape: int) -> Any:
    rng = np.random.default_rng(7)
    return xp.asarray((rng.normal(size=shape) * 3.0).astype(dtype))


def _arrays() -> list[Any]:
    """Every dtype, every kind of shape, every special value, and layouts that are not C order."""
    found = [_plain(d, *s) for d in _DTYPES for s in ((5,), (3, 4))]
    found += [_plain(np.float64, *s) for s in ((), (0,), (1,), (2, 0), (0, 3), (2, 3, 2))]
    found += [_plain(np.float64, 3, 4).mT, _plain(np.float64, 6)[::-2], _plain(np.bool_, 3, 2)]
    found += [_plain(np.float64, 4) + 1j, xp.asarray([2.0, 2.0, -2.0, 2.0, 0.5])]
    rng = np.random.default_rng(1)  # long enough for machine code, special values among them
    found += [xp.asarray(rng.choice(_EDGES, 300)), xp.asarray(rng.integers(-9, 9, (20, 15)))]
    for k in range(len(_EDGES)):
        found += [xp.asarray(_EDGES[k:] + _EDGES[:k])]
    pairs = [list(p) for p in itertools.product(_EDGES, repeat=2)]
    found += [xp.asarray(np.float32(_EDGES)), xp.asarray(np.asarray(_EDGES, np.complex128))]
    return [*found, *[xp.asarray(p) for p in pairs], xp.asarray([_EDGES[2:], _EDGES[:6]])]


_AXES: list[Any] = [None, 0, -1, 1, (0, 1), (0,), 5]


def _reductions(*options: dict[str, Any]) -> Iterator[Call]:
    for x in _arrays():
        for axis in _AXES if len(x.shape) > 1 else _AXES[:3]:
            for keepdims in (False, True):
                yield (x,), {"axis": axis, "keepdims": keepdims}
        for option in options:
            yield (x,), option


def _scans(*options: dict[str, Any]) -> Iterator[Call]:
    for x in _arrays():
        for axis in (None, 0, -1, 2):
            yield (x,), {"axis": axis}
        for option in options:
            yield (x,), option


def _reals() -> list[Any]:
    """Vectors of arguments of special functions, all combinations of edges and of plain values."""
    edges = [*_EDGES, 0.5, 3.0, 7.25, -2.0]
    return [xp.asarray(edges), xp.asarray(np.float32(edges)), xp.asarray(0.75)]


def _slopes() -> Iterator[Call]:
    for x in _arrays():
        for axis, h, order in itertools.product(range(x.ndim), (1.0, 2, 0.0), (1, 2)):
            yield (x, h, axis, order), {}


def _special(count: int) -> Callable[[], Iterator[Call]]:
    def calls() -> Iterator[Call]:
        values = [0.0, 0.3, 1.0, 2.0, 5.5, -1.0, np.nan, np.inf]
        grid = np.stack([g.reshape(-1) for g in np.meshgrid(*[values] * count)])
        yield tuple(map(xp.asarray, grid)), {}
        yield tuple(map(xp.asarray, grid.astype(np.float32))), {}
        for dtype in (np.int64, np.uint8, np.bool_):
            yield tuple(map(xp.asarray, np.abs(np.nan_to_num(grid, posinf=3)).astype(dtype))), {}
        yield tuple(map(xp.asarray, (grid[:, :4] + 0.5j).astype(np.complex64))), {}
        rng = np.random.default_rng(3)
        for low, high in ((0.0, 1.0), (0.5, 20.0), (-4.0, 4.0)):
            drawn = rng.uniform(low, high, (count, 300))
            yield tuple(map(xp.asarray, drawn)), {}
            drawn[-1] = rng.uniform(0.0, 1.0, 300)
            yield tuple(map(xp.asarray, drawn)), {}
            if count > 1:
                for v in (1.5, 3):
                    yield (v, *[xp.asarray(d) for d in drawn[1:]]), {}
                    yield (xp.asarray(np.floor(drawn[0])), 7, *map(xp.asarray, drawn[2:])), {}
        for k in range(count):
            for v in (1.0, 2, 0):
                row = [xp.asarray(g) for g in grid]
                row[k] = v
                yield tuple(row), {}
        yield (xp.asarray([0.5, 2.0]),) * (count + 3), {}

    return calls


def _one_by(*options: dict[str, Any], rest: tuple[Any, ...] = ()) -> Iterator[Call]:
    for x in _arrays():
        for option in ({}, *options):
            yield (x, *rest), option


_ZEROS = xp.asarray([-0.0, 0.0, -0.0, 1.0])


def _quantiles(*firsts: Any) -> Iterator[Call]:
    for call, options in _reductions():
        for rest in firsts:
            yield (*call, *rest), options
    several: list[Any] = [[0.5, 1.0], [[0.25], [0.75]], [], np.float32([0.3, 0.0])]
    fractions = [*map(xp.asarray, several), [0.1, 0.6], [0.5, 1.5], (0.0, 0.5)]
    for q in ((0.3,), (0.0,), (1.0,), (0.75,), (2.0,), (1,), *[(v,) for v in fractions]):
        for x in (_plain(np.float64, 6), _plain(np.float32, 3, 4), _plain(np.int64, 4), _ZEROS):
            rest = q if firsts[0] else ()
            yield (x, *rest), {}
            yield (x, *rest), {"axis": -1}
            yield (x, *rest, 0), {"keepdims": True}
        if firsts[0]:
            for axis in ((0, 2), (1, -1), (-1, 0, 1), (), (0, 0), [0]):
                for keepdims in (False, True):
                    yield (_plain(np.float32, 2, 3, 4), *q, axis), {"keepdims": keepdims}
    if firsts[0]:
        for x in (_plain(np.float64, 6), _plain(np.float64, 3, 4), _plain(np.int8, 7)):
            for method in ("lower", "higher", "nearest", "midpoint", "hazen", "least"):
                for q in (0.0, 0.1, 0.3, 0.5, 0.7, 1.0):
                    yield (x, q), {"method": method}
            yield (x, xp.asarray([0.5, 0.1, 0.9]), 0), {"keepdims": True}


def _indices() -> list[Any]:
    found = [[0, 2, 1, 2], [3, 0, 0, 7], [-1, 0, 1, 1], [5], []]
    return [xp.asarray(np.asarray(i, d)) for i in found for d in (np.int64, np.int8)]


def _segments() -> Iterator[Call]:
    for data in _arrays():
        for ids in _indices():
            for n in (3, 8, 0, None, 2.0):
                yield (data[: len(ids)] if data.shape else data, ids, n), {}


def _hots() -> Iterator[Call]:
    for x in (*_indices(), xp.asarray([[0, 1], [2, 2]]), xp.asarray(1), xp.asarray([0.5])):
        for option in ({}, {"axis": 0}, {"axis": 1}, {"axis": -2}, {"dtype": np.int8, "axis": 0}):
            for n in (3, 0, -1, 2.0):
                yield (x, n), option


def _bins() -> Iterator[Call]:
    up, down = [-1.0, 0.0, 0.0, 2.5], [3.0, 1.0, -2.0]
    for bins in (up, down, [0.0, 0.0], [np.nan], [0.0, np.nan], [], [[1.0]]):
        for x in _arrays():
            for right in (False, True):
                yield (x, xp.asarray(bins)), {"right": right}


def _counted() -> Iterator[Call]:
    for x in [*_arrays(), _plain(np.float64, 999), xp.asarray([0.1, 0.3, 0.30000000000000004])]:
        for bins in (1, 3, 10, 0, 2.0, xp.asarray([0.0, 1.0, 2.0])):
            yield (x, bins), {}
        yield (x,), {"range": (-1.0, 2.0)}
        yield (x, 4), {"density": True}
        yield (x, 4), {"weights": x}


def _occurring() -> Iterator[Call]:
    for x in [*_arrays(), *_indices(), xp.asarray(np.arange(400, dtype=np.uint64))]:
        for option in ({}, {"minlength": 7}, {"minlength": -1}, {"minlength": 2.0}, {"length": 3}):
            yield (x,), option
        for w in (x, _plain(np.float64, *x.shape), _plain(np.float32, *x.shape), 2.0, [1.0]):
            yield (x, w), {}
            yield (x, w, 9), {}


def _taken() -> Iterator[Call]:
    for x in _arrays():
        for i in (*_indices(), xp.asarray([[0, 1], [1, 0]]), xp.asarray(0), xp.asarray([0.5])):
            for option in ({}, {"axis": 0}, {"axis": -1}, {"axis": 2}, {"axis": 0.0}):
                yield (x, i), option


def _sought() -> Iterator[Call]:
    for x in ([-1.0, 0.0, 0.0, 2.5], [0.0, np.nan], [], [[1.0]], list(range(300))):
        for v in _arrays():
            for option in ({}, {"side": "right"}, {"side": "middle"}):
                yield (xp.asarray(x), v), option
        for n in (0.0, 1, -2.5, np.nan, 2**70, True, "a"):
            yield (xp.asarray(x), n), {}
            yield (xp.asarray([1, 2, 3]), n), {"side": "right"}
    order = xp.asarray([2, 0, 1])
    yield (xp.asarray([2.0, 3.0, 1.0]), xp.asarray([1.5])), {"sorter": order}


def _curves() -> Iterator[Call]:
    points = ([0.0, 1.0, 2.5], [-1.0, -1.0, 2.0], [-np.inf, 0.0, 1.0], [0.0, 1.0, np.inf], [0.5])
    for at in points:
        for f in ([1.0, -2.0, 3.0], [np.inf, 0.0, 1.0], [0.0, np.nan, 1.0], [0.0, np.inf, -1.0]):
            for x in _arrays()[::5]:
                args = (x, xp.asarray(at), xp.asarray(f[: len(at)]))
                yield args, {}
                yield (*args, -7.0, 9), {}
                yield args, {"right": 1.5}
            for period in (2.0, -3, 0, np.inf):
                yield args, {"period": period}
            for v in (0.3, 1, True, np.nan, xp.asarray(np.float32(0.3)), xp.asarray([0, 1])):
                yield (v, *args[1:]), {}
                yield (v, *args[1:]), {"left": -7.0, "period": 2.0}
    yield (xp.asarray(0.5), xp.asarray([0.0, 1.0]), xp.asarray([1.0])), {}


_SHAPES: tuple[Any, ...] = (
    3, (), (2, 0), (2, 3), [2, 3], -1, (2, -1), (2.0,), True, None, np.int64(2), (np.int8(1),)
)  # fmt: skip
_KINDS = (
    {}, {"dtype": np.int8}, {"dtype": np.dtype(np.float32)}, {"dtype": complex}, {"dtype": "x"},
    {"device": "cpu"}, {"device": "cuda"},
)  # fmt: skip


def _made(*values: Any) -> Iterator[Call]:
    for shape in _SHAPES:
        for option in _KINDS:
            yield (shape, *values), option


_FILLS: tuple[Any, ...] = (
    2.5, 3, -1, 300, True, np.nan, 2**70, 1e300, 1j, "a", xp.asarray(2.5), xp.asarray(1j),
    xp.asarray(-3), xp.asarray([1.0]),
)  # fmt: skip


def _likes(*values: Any) -> Iterator[Call]:
    return _one_by(*_KINDS[1:], rest=values)


def _ranges() -> Iterator[Call]:
    numbers = [0, 3, -2, 2.5, -1.0, 10**5, np.inf, np.nan, True, 2**70]
    for start in numbers:
        yield (start,), {}
        for stop in numbers:
            yield (start, stop), {}
            for step in (1, -1, 0, 0.5, 3):
                yield (start, stop, step), {}
    for dtype in (np.float32, np.uint8, complex, bool):
        for args in ((3,), (3.0,), (1, 2.0, 0.25), (300,)):
            yield args, {"dtype": dtype}
    yield (0.0, 1.0, np.inf), {}
    yield (xp.asarray(3),), {}


def _spaced() -> Iterator[Call]:
    for a, b in ((0.0, 1.0), (1.0, -2.0), (0, 1), (0.0, np.inf), (1j, 2.0)):
        for n in (0, 1, 5, -1, 2.0):
            for option in (*_KINDS, {"endpoint": False}):
                yield (a, b, n), option


def _spaced_between() -> Iterator[Call]:
    v, w = xp.asarray([1.0, 2.0, 3.0]), xp.asarray([-1.0, 2.0])
    for a, b in ((v, v * 2), (v[:, None], v), (1.0, v[0]), (v, 2), (w, 5e307 * w), (w, w), (1, 8)):
        for n in (0, 1, 5, 10_000, -1, 2.0):
            for option in (*_KINDS, {"endpoint": False}, {"axis": -1}, {"axis": 3}):
                yield (a, b, n), option


def _eyes() -> Iterator[Call]:
    for n in (0, 1, 3, -1, 2.0):
        for option in (*_KINDS, {"k": 1}, {"k": -7}, {"k": 1.5}):
            yield (n,), option
            yield (n, 2), option
            yield (n, -2), option


def _reshapes() -> Iterator[Call]:
    for x in (_plain(np.float64, 12), _plain(np.int8, 3, 4).mT, xp.asarray(1.0), xp.zeros((0, 2))):
        for shape in (*_SHAPES, 12, (3, 4), (-1,), (4, -1), (-1, -1), (-2,), [4, 3], (1, 12), (0,)):
            yield (x, shape), {}
            yield (x, shape), {"copy": True}


def _cast() -> Iterator[Call]:
    kinds = (np.dtype(np.int8), np.float32, float, bool, complex, "float16", xp.bfloat16)
    for x in (*_arrays()[::2], _plain(np.float64, 3) * 1j, xp.ones(5000, dtype=xp.float16)):
        for dtype in (*kinds, x.dtype, "int5", None, object, []):
            for option in ({}, {"copy": False}, {"device": None}):
                yield (x, dtype), option


def _turns() -> Iterator[Call]:
    given = (0, -1, 1, (0,), (0, 1), (1, 0), (-1, 0), (0, 0), (0, 5), [1, 0], (1.0, 0), None, ())
    row = xp.ones((1, 3, 1))
    for x in (_plain(np.float64, 12), row, _plain(np.int8, 3, 4).mT, xp.asarray(1.0)):
        for axes in (*given, 2, -3, (2, 0, 1), (0, 2)):
            yield (x, axes), {}


def _padded() -> Iterator[Call]:
    widths = (0, 1, 2, -1, 1.5, (1, 2), (0, 0), ((1, 0), (0, 2)), ((1, 2),), [1, 2], ((1, -1),))
    for x in _arrays()[::3]:
        for width in widths:
            yield (x, width), {}
            for mode in ("edge", "reflect", "symmetric", "wrap", "odd", 3):
                yield (x, width, mode), {}
            for v in (2.5, -0.0, 3, 1j, xp.asarray(2.0), np.nan):
                yield (x, width), {"constant_values": v}


def _padded_last() -> Iterator[Call]:
    large, last = _plain(np.float32, 2, 9, 30, 31), _plain(np.float64, 2, 30, 31, 9)
    images = (*_arrays()[::3], large, xp.permute_dims(last, (0, 3, 1, 2)))
    widths = ((1, 2), (0, 0), (3, 1, 2, 0), (1, 1, 1, 1, 1, 1), (29, 30), (-1, 2), (1,), (), [1, 2])
    for x, width in itertools.product(images, widths):
        for mode in ("constant", "reflect", "replicate", "circular", "odd", 3):
            yield (x, width, mode), {}
        for value in (2.5, -0.0, 3, np.nan, None):
            yield (x, width), {"value": value}
            yield (x, width, "reflect", value), {}


def _sampled() -> Iterator[Call]:
    images = _plain(np.float32, 2, 3, 9, 8), _plain(np.float64, 1, 2, 4, 4), _plain(int, 2, 3, 9, 8)
    grids = _plain(np.float32, 2, 5, 4, 2), _plain(np.float64, 1, 20, 1, 2), xp.zeros((2, 5, 2))
    turned = xp.permute_dims(images[0], (0, 1, 3, 2))
    every = (*images, turned, images[0][:, :, :0]), (*grids, grids[0][:0])
    for x, grid in itertools.product(*every):
        yield (x, grid), {}
    for mode, padding in itertools.product(
        ("bilinear", "nearest", "bicubic", "odd", 1), ("zeros", "border", "reflection", None)
    ):
        for corners in (None, True, False, 1):
            yield (images[0], grids[0], mode, padding), {"align_corners": corners}


def _shuffled() -> Iterator[Call]:
    last = xp.permute_dims(_plain(np.float32, 2, 6, 4, 8), (0, 3, 1, 2))
    images = *[_plain(d, 2, 8, 6, 4) for d in (np.float32, np.float64, int)], last, last[:, :, ::2]
    for x in (*images, _plain(np.float32, 4, 6, 4), _plain(np.float64, 2, 36, 12, 12)):
        for r in (1, 2, 3, 0, -1, True, 2.0, (2,)):
            yield (x, r), {}


def _copies(*options: dict[str, Any]) -> Iterator[Call]:
    for x in _arrays()[::3]:
        counts = [xp.asarray(c) for c in ([1, 2], [2, 0, 1], [1, 2, 0, 1, 3], [1, -1, 1])]
        for n in (0, 1, 3, -1, (2,), (2, 3), (1, -1), (2, 1, 2), (), 1.5, [1], *counts):
            for option in ({}, *options):
                yield (x, n), option


def _sums_of_products() -> Iterator[Call]:
    specs = {
        1: ("ij->", "ij->ji", "ii", "i->", "i", "...j->...", "iij"),
        2: ("ij,jk->ik", "ij,kj", "ij,j->i", "ij,ij->", "i,i", "i,j->ji", "ij,ik->", "i,ij->j"),
        3: ("ij,jk,kl->il", "i,ij,j", "ij,ij,ij->i", "ij,j,k->ik"),
    }
    square = [_plain(d, 3, 3) for d in _DTYPES] + [_plain(np.float64, 3, 3) * 1j]
    given = [*square, *_arrays()[::5], *[_plain(d, 3) for d in _DTYPES], _plain(np.int64, 200)]
    for count, texts in specs.items():
        for text in texts:
            for k, x in enumerate(given):
                others = given[k + 1 :: 3][:4] + [x]
                for y in others if count > 1 else [x]:
                    yield (text, *(x, y, x)[:count]), {}


def _sequences() -> Iterator[Call]:
    a, b = _plain(np.float64, 2, 3), _plain(np.float64, 2, 3)
    lists = [(a, b), [a, b, a], (a, _plain(np.float32, 2, 3)), (a, _plain(np.int8, 2, 3)), (a,), ()]
    lists += [(a, _plain(np.float64, 3, 2)), (a, a[0]), (xp.asarray(1.0), xp.asarray(2.0))]
    lists += [(_plain(d, 3),) * 2 for d in (ml_dtypes.bfloat16, np.int8)]
    lists += [(x[0], y[1]) for x in (a, a[:, ::2]) for y in (b, b[:, :0], b[:, ::-1])]
    lists += [(a, 1.0), (a.mT, b.mT), (a, _plain(np.float32, 2, 3), _plain(np.float16, 2, 3))]
    lists += [(_plain(np.int64, 3), _plain(np.uint64, 3)), (a, a + 1j)]
    for arrays in lists:
        for axis in (0, 1, -1, 2, -3, None, 1.0, 7):
            yield (arrays,), {"axis": axis}


def _choices() -> Iterator[Call]:
    for x in _arrays():
        for condition in (x != 1, x, xp.asarray(True)):
            for y in (x, x.mT if x.ndim > 1 else x[:1] if x.ndim else x, x[None], 2.5, 2, True):
                yield (condition, x, y), {}
                yield (condition, y, x), {}
            for dtype in (np.float32, np.int64):
                yield (condition, _plain(dtype, 5), x), {}
        yield (x,), {}
        yield (x, x), {}
        yield (x, 2.5, -0.0), {}


def _spectra() -> Iterator[Call]:
    arrays = [_plain(d, *s) for d in (np.float64, np.float32, np.int64) for s in ((6,), (2, 3))]
    arrays += [a + 1j for a in arrays[:2]] + [_plain(np.complex64, 5), _plain(np.float64, 1)]
    arrays += [_plain(np.complex64, 2, 3), _plain(np.uint8, 6), _plain(np.bool_, 2, 3)]
    arrays += [xp.asarray(1.0), xp.zeros(0), xp.zeros((0, 2)), xp.ones((2, 1, 3)) * 1j]
    for x in arrays:
        yield (x,), {}
        for norm in ("ortho", "forward", "none", None):
            yield (x,), {"norm": norm}


def _spectra_along() -> Iterator[Call]:
    for (x,), option in _spectra():
        yield (x,), option
        for more in ({"axis": 0}, {"axis": 1}, {"axis": 1.0}, {"n": 4}, {"n": 9}, {"n": 0}):
            yield (x,), option | more


def _spectra_over() -> Iterator[Call]:
    several = {"axes": (0, 1), "s": (3, 4)}, {"axes": (-1, 0)}, {"axes": (0, -2)}, {"s": (2, -1)}
    for (x,), option in _spectra():
        yield (x,), option
        for more in ({"axes": (0,)}, {"axes": 1.0}, {"s": (4,)}, *several):
            yield (x,), option | more


def _shifts() -> Iterator[Call]:
    return _scans({"axis": None}, {"axes": 0}, {"axes": (0,)}, {"axes": [1, 0]}, {"axes": (0, 0)})


def _frequencies() -> Iterator[Call]:
    for n in (1, 2, 5, 16, 20_001, 0, -1, 2.0, True):
        for option in (*_KINDS, {"d": 0.3}, {"d": 2}, {"d": "a"}):
            yield (n,), option


def _sequences_of_two() -> Iterator[Call]:
    """Each with each, one longer than the other."""
    for x in _arrays()[::4]:
        for y in (_plain(np.float64, 3), _plain(np.float64, 7), _plain(np.int64, 2), xp.zeros(0)):
            for mode in ("full", "same", "valid", "least"):
                yield (x, y), {"mode": mode}
            yield (x, y), {}


def _crossed() -> Iterator[Call]:
    for dtype, shape in itertools.product((np.float32, np.float64, np.int64), ((3,), (5, 3))):
        x = _plain(dtype, *shape)
        for y in (x, x[::-1], x * 2, xp.astype(x, xp.float16), x[..., :2], x + 1j):
            for axis in (-1, 0, 1, len(shape) - 1, True):
                yield (x, y), {"axis": axis}


def _by_kronecker() -> Iterator[Call]:
    for dtype in (np.float32, np.float64, np.int64, np.int8, np.complex64):
        arrays = [_plain(np.float64, *s) for s in ((3,), (2, 3), (9, 1), (20, 17), (0, 2), ())]
        for x, y in itertools.product([xp.astype(v, dtype) for v in arrays], repeat=2):
            yield (x, y), {}
        yield (arrays[1].mT, xp.astype(arrays[1], dtype)), {}
    yield (xp.asarray(_EDGES), xp.asarray(_EDGES)), {}


def _pairs(*options: dict[str, Any]) -> Iterator[Call]:
    for x in _arrays():
        for y in (x, _plain(np.float64, 5), x[::-1] if x.shape else x, 2.5, xp.asarray(1)):
            for option in ({}, *options):
                yield (x, y), option
        for y in (_plain(np.float32, 5), _plain(np.int64, 1), 2, True):
            yield (x, y), {}
            yield (y, x), {}
    z = _plain(np.float64, 5) + 1j * _plain(np.float64, 5)[::-1]
    for w in (z, z[::-1], xp.asarray([1j, xp.nan, xp.inf, 0.0, complex(1, xp.nan)]), 2.0):
        yield (z, w), {}
        yield (w, z), {}


def _sorted_by() -> Iterator[Call]:
    for x in [v for v in _arrays() if v.shape]:
        for keys in ([x], [x, x], (x, x[::-1]), [x, _plain(np.int64, 5)], x, []):
            for option in ({}, {"axis": 0}, {"axis": 1}):
                yield (keys,), option


def _places() -> Iterator[Call]:
    for i in (*_indices(), xp.asarray([[0, 1], [2, 0]]), xp.asarray(1), xp.asarray(0.5)):
        for shape in ((2, 3), (4,), (2, 2, 3), (), (2, 0), 5, [2, 3], (-1, 2), (2.0, 1)):
            yield (i, shape), {}


def _coordinates() -> Iterator[Call]:
    for i in (*_indices(), xp.asarray(1), xp.asarray(0.5)):
        for dims in ((2, 3), (4,), (), (2, 0), 5, [2, 3], (-1, 2)):
            yield ((i, i), dims), {}
            yield ([i], dims), {}


def _cut() -> Iterator[Call]:
    for x in [*_arrays()[::4], _plain(np.float64, 6), _plain(np.int8, 4, 6).mT]:
        for cuts in (1, 2, 3, 0, -1, 2.0, [1], [2, 1], [0, 9], [-2], (1, 3), []):
            for option in ({}, {"axis": 1}, {"axis": -1}, {"axis": 5}):
                yield (x, cuts), option


def _chains() -> Iterator[Call]:
    for x in _matrices():
        for y in (x, x.mT if x.ndim > 1 else x, _plain(np.float64, 3, 7), _plain(np.float64, 3)):
            for chain in ([x, y], (x, y, x), [x, x, y, y], [x], []):
                yield (chain,), {}


def _fitted() -> Iterator[Call]:
    for x in [*_arrays()[::3], _plain(np.float64, 6), _plain(np.float32, 6), xp.zeros(4)]:
        for y in (x, xp.ones(x.shape, dtype=x.dtype), _plain(np.float64, 6, 2)):
            for option in ({}, {"rcond": 0.1}, {"w": x}):
                for deg in (0, 1, 2, -1, 1.5):
                    yield (x, y, deg), option


def _matrices() -> list[Any]:
    shapes = ((1, 1), (2, 2), (4, 4), (3, 5), (5, 3), (2, 3, 3), (0, 0), (0, 3), (3, 0), (3,), ())
    found = [_plain(np.float64, *s) for s in shapes]
    found += [_plain(d, 3, 3) for d in (np.float32, np.int64, np.float16, ml_dtypes.bfloat16)]
    found += [xp.ones((3, 3)), xp.zeros((2, 2)), xp.asarray([[1.0, np.nan], [0.0, 1.0]])]
    return [*found, _plain(np.float64, 4, 4).mT, _plain(np.float64, 3, 3) * 1j, xp.eye(3)]


def _by_matrix(*options: dict[str, Any]) -> Iterator[Call]:
    for x in _matrices():
        for option in ({}, *options):
            yield (x,), option


def _powers() -> Iterator[Call]:
    for x in _matrices():
        for n in (1, 2, 3, 7, 0, -1, -2, 1.5):
            yield (x, n), {}


def _systems(*options: dict[str, Any]) -> Iterator[Call]:
    for a in _matrices():
        for b in (*_matrices()[:4], *[_plain(np.float64, n) for n in (2, 3, 4, 5)]):
            for option in ({}, *options):
                yield (a, b), option
    yield (_plain(np.float32, 3, 3), _plain(np.float64, 3)), {}


def _folds() -> Iterator[Call]:
    named = [
        ([1], [0]), ((0,), [-1]), ([-2], [1]), ([0, 1], [1, 0]), ([1, 0], [0, 1]), ([], []),
        ([0, 0], [0, 1]), ([0], [0, 1]), ([5], [0]), ([1], 0), "ab", ([True], [0]),
    ]  # fmt: skip
    yield from _systems(*[{"axes": axes} for axes in (1, 0, 5, *named)])
    x, y = _plain(np.float64, 2, 3, 4), _plain(np.float64, 4, 3, 5)
    for axes in ([2, 1], [0, 1]), ([1, 2], [1, 0]), ([1], [1]), ([0, 1, 2], [0, 1, 2]):
        yield (x, y), {"axes": axes}
        yield (y.mT, x), {"axes": axes}


def _rows() -> list[Any]:
    shapes = ((4, 4), (3, 5), (6,), (1, 1), (2, 3, 4), (0, 3), (3, 0), ())
    found = [_plain(d, *s) for d in (np.float32, np.float64) for s in shapes]
    found += [_plain(d, 3, 4) for d in (np.int64, np.float16, ml_dtypes.bfloat16)]
    return [*found, xp.asarray([_EDGES, _EDGES[::-1]]), _plain(np.float64, 5, 3).mT]


def _activated(*options: dict[str, Any]) -> Iterator[Call]:
    for x in _rows():
        for option in ({}, *options):
            yield (x,), option


def _along_one_axis() -> Iterator[Call]:
    for x in _rows():
        for dim in (-1, 0, 1, 5, 0.5):
            yield (x, dim), {}
        yield (x, 0), {"dtype": np.float32}


def _normalized() -> Iterator[Call]:
    for x in _rows():
        for shape in (x.shape[-1:], x.shape[-2:], list(x.shape), 4, (), (7,)):
            yield (x, shape), {}
            yield (x, shape), {"eps": 0.5, "weight": xp.ones(4, dtype=x.dtype)}
            yield (x, shape, xp.arange(4.0), _plain(np.float64, 4)), {}


def _labelled() -> Iterator[Call]:
    for x in _rows():
        for n in (1, 3, 4):
            for labels in ([0] * n, [*range(n)], [n - 1] * (n - 1) + [-100], [-1] * n, [9] * n):
                for kind in (np.int64, np.uint8, np.float64):
                    target = xp.asarray(np.asarray(labels).astype(kind))
                    for reduction in ("mean", "sum", "none", "all"):
                        yield (x, target), {"reduction": reduction}
            target = xp.asarray([*range(n)])
            yield (x, target), {"ignore_index": 2}
            yield (x, target), {"weight": _plain(np.float64, 4)}


def _likely() -> Iterator[Call]:
    """Of as many rows as anybody has."""
    yield from _labelled()
    for dtype in (np.float32, np.float64, np.float16):
        x, target = _plain(dtype, 70_001, 3), np.random.default_rng(6).integers(0, 3, 70_001)
        for reduction in ("mean", "sum", "none"):
            yield (x, xp.asarray(target)), {"reduction": reduction}
    yield (x, xp.asarray(target - 1)), {}


def _marked() -> Iterator[Call]:
    for at in ([0, 1, 3], [[2], [-1]], [], 1, [250, 9], [True, False], [1.0]):
        for dtype in (None, np.uint8, np.int32, np.uint64):
            i = xp.asarray(np.asarray(at) if dtype is None else np.asarray(at).astype(dtype))
            for n in (4, 1, 0, -1, 300, 3.0):
                yield (i, n), {}


def _layered() -> Iterator[Call]:
    for x in (*_rows(), xp.arange(4), _plain(np.float64, 300, 400)):
        for shape in ((3, 4), (1, 4), (4,), (0, 4), (3, 5), (2, 3, 4), (1200, 4), (4, 400)):
            if len(shape) == 1 and x.ndim > 2:
                continue  # which is not direct, and whose sums have no order of their own
            for dtype in (x.dtype, np.float32, np.int64):
                w = _plain(dtype, *shape)
                yield (x, w), {}
                for bias in (_plain(dtype, shape[0]), _plain(np.float64, 1), xp.asarray(2.0), 1.0):
                    yield (x, w, bias), {}
    for bias in (_plain(np.float64, 3), _plain(np.float64, 1), _plain(np.float64, 2, 3)):
        yield (_plain(np.float64, 2, 4), _plain(np.float64, 3, 4), bias), {}


def _embedded() -> Iterator[Call]:
    for table in (*_rows(), xp.asarray([[1, 2], [3, 4]]), _plain(ml_dtypes.bfloat16, 3, 2)):
        for at in ([0, 1, 0], [[0], [1]], [-1, 0], [0, 99], [], 1):
            for dtype in (np.int64, np.uint8, np.uint64, np.int8, np.float64):
                i = xp.asarray(np.asarray(at).astype(dtype))
                for option in ({}, {"padding_idx": 1}, {"max_norm": 0.5}, {"sparse": True}):
                    yield (i, table), option


def _bagged() -> Iterator[Call]:
    for table in (_plain(np.float32, 9, 3), _plain(np.float64, 9, 40), _plain(np.float16, 9, 2)):
        i = xp.asarray(np.random.default_rng(4).integers(0, 9, 300))
        for mode in ("sum", "mean", "max"):
            for cuts in ([0], [0, 7, 7, 290], [0, 5, 300], [2, 9], [0, 9, 5], [0, 500], []):
                offsets = xp.asarray(np.asarray(cuts, np.int64))
                yield (i, table, offsets), {"mode": mode}
                yield (i, table, offsets), {"mode": mode, "include_last_offset": True}
            yield (xp.reshape(i, (-1, 4)), table), {"mode": mode}
        offsets = xp.asarray([0, 7, 20])
        for at in (i - 1, i + 1, xp.astype(i, xp.int32), xp.astype(i, xp.uint8), i[:0]):
            yield (at, table, offsets), {"mode": "sum"}
        for option in ({"padding_idx": 1}, {"max_norm": 0.5}, {"sparse": True}):
            yield (i, table, offsets), option
        weights = xp.astype(i, table.dtype)
        yield (i, table, offsets), {"mode": "sum", "per_sample_weights": weights}


def _pooled() -> Iterator[Call]:
    for x in (*_rows(), _plain(np.float64, 2, 3, 7, 5), _plain(np.float32, 1, 2, 4, 4, 3)):
        for size in (1, 2, 3, (2,), 0, -1, 9):
            for option in ({}, {"stride": 1}, {"stride": 3}, {"stride": 0}, {"stride": (2,)}):
                yield (x, size), option
            for option in ({"padding": 1}, {"ceil_mode": True}):
                yield (x, size), option


def _pooled_with_places() -> Iterator[Call]:
    """Zeros of both signs and NaN among the maxima."""
    yield from _pooled()
    for x, size in ((x, size) for x in _arrays() for size in (1, 2, 3, 9)):
        for option in ({}, {"stride": 1}, {"padding": 1}, {"stride": 2, "padding": 1}):
            yield (x, size), {**option, "return_indices": True}
    for dtype in (np.float32, np.float64, ml_dtypes.bfloat16):
        for shape in ((2, 3, 7, 5), (1, 2, 4, 4, 3), (3, 9), (2, 9, 4, 4)):
            x = np.random.default_rng(2).integers(-2, 3, shape).astype(dtype)
            x *= np.where(np.random.default_rng(3).random(shape) < 0.5, 1, -1).astype(dtype)
            x[..., 1] = np.nan
            for v, size in ((x, 2), (x, 3), (x[..., ::2], 2), (np.abs(x), 2), (x[:0], 2)):
                for option in ({}, {"stride": 1}, {"padding": 1}):
                    yield (xp.asarray(v), size), {**option, "return_indices": True}


def _divided() -> Iterator[Call]:
    for x in (*_rows(), _plain(np.float64, 2, 3, 7, 5), _plain(np.float32, 1, 2, 4, 4, 3)):
        for size in (1, 2, 3, 4, (2,), 0, -1, None, 9):
            yield (x, size), {}


def _convolved(rank: int) -> Callable[[], Iterator[Call]]:
    def calls() -> Iterator[Call]:
        steps: list[dict[str, Any]] = [{"stride": 2}, {"stride": (1,) * rank, "padding": 1}]
        steps += [{"padding": "same"}, {"padding": (2,) * rank, "dilation": 2}, {"groups": 2}]
        steps += [{"padding": -1}, {"stride": 0}, {"groups": 0}, {"dilation": [2]}]
        for dtype in (np.float64, np.float32, np.int64, ml_dtypes.bfloat16):
            x, single = _plain(dtype, 2, 4, *(7, 6, 3)[:rank]), _plain(dtype, 1, 1, *(4,) * rank)
            w, one = _plain(dtype, 2, 4, *(3, 2, 3)[:rank]), _plain(dtype, 3, 1, *(3,) * rank)
            halves = _plain(dtype, 6, 2, *(2,) * rank)
            pairs = [(x, w), (single, one), (x, halves), (x[0], w), (x.mT, w), (x, one[0])]
            for a, b in [*pairs, (x[:, :, :1], w), (x[:0], w), (x, xp.astype(w, np.float32))]:
                for option in ({}, *steps, {"bias": _plain(dtype, 2)}, {"bias": xp.ones(3)}):
                    yield (a, b), option

    return calls


def _drawn(*rest: tuple[Any, ...]) -> Iterator[Call]:
    keys = ft.random.key(5), ft.random.split(ft.random.key(1), 3), xp.asarray([1, 2])
    for k in keys:
        for args in rest:
            yield (k, *args), {}


def _chosen() -> Iterator[Call]:
    x = xp.asarray(np.arange(60.0).reshape(5, 12))
    shapes: tuple[Any, ...] = ((), 3, (4,), (2, 2), (0,), [3], (-1,), (5,))
    for a in (7, 0, -1, 5, 2.0, x, xp.asarray([True, False]), xp.asarray(3), [1, 2, 3]):
        for shape in shapes:
            for replace in (True, False):
                yield from _drawn((a, shape, replace))
    for axis in (1, -1, -2, 2, -3, True, "a"):
        for rest in ((True, None, axis), (False, None, axis), (True, None, axis, "float32")):
            yield from _drawn((x, (4,), *rest))
    for n, count in ((9000, 9000), (9000, 5), (20_000, 3000), (20_000, 6000), (100_000, 1)):
        for replace in (True, False):
            yield from _drawn((n, (count,), replace))


def _chosen_by_weight() -> Iterator[Call]:
    weights = [0.0, 1.0, 0.5, 0.0, 3.0]
    for dtype in "dfbe":
        p = xp.asarray(np.asarray(weights, dtype))
        for shape in ((), 3, (2, 400), (9000,)):
            yield from _drawn((5, shape, True, p), (xp.asarray(weights), shape, True, p))
    for p in (weights, xp.asarray([1.0]), xp.asarray([np.nan] * 5), xp.zeros(5), 1.0):
        yield from _drawn((5, (3,), True, p), (5, (3,), False, p))


def _drawn_floats() -> Iterator[Call]:
    shapes = ((16,), (3, 5), (), 20, (0, 2), (-1,), (2.0,), [3], "a", (9000,))
    dtypes = (np.float32, np.float64, "float32", np.float16, np.int64, "a")
    return _drawn(*[(s,) for s in shapes], *[(17, d) for d in dtypes])


def _of_one_parameter(*dtypes: Any) -> Iterator[tuple[Any, ...]]:
    some = xp.asarray([0.5, 2.0, 90.0]), np.float32([0.5, 1.5]), xp.asarray([[1.0], [1e6]])
    for a in (2.0, 0.0, 30, -1.0, np.nan, True, None, xp.asarray(3.0), xp.asarray([]), *some):
        for rest in ((), ((3,),), ((2, 3),), ([3],), (3,), ((-1,),), ((9000,),)):
            yield (a, *rest)
        for dtype in dtypes:
            yield (a, None, dtype)


_ORDERS = ({"axis": 0}, {"descending": True}, {"axis": 0, "descending": True}, {"axis": 7})
_DDOF = ({"correction": 1}, {"correction": 0.5}, {"correction": 9}, {"correction": "a"})
_NAN_DDOF = ({"ddof": 1}, {"correction": 9}, {"dtype": np.float32})
_DTYPES_OF_SUMS = ({"dtype": np.int8}, {"dtype": "complex64"}, {"dtype": bool})
_DTYPE = ({"dtype": np.float32}, {"dtype": "none"}, *_DTYPES_OF_SUMS)
_DIFF = (
    {"n": 2}, {"n": 0}, {"n": -1}, {"n": 1.5}, {"n": 3}, {"prepend": xp.asarray([1.0])},
    {"append": xp.asarray([[1.0, 2.0, 3.0, 4.0]]), "axis": 0},
)  # fmt: skip


def _given() -> Iterator[Call]:
    z, x = xp.asarray(0.5), _plain(np.float32, 2)
    numbers = [2.0, 3, True, 2j, 2**63, -(2**63), np.float64(2.5), np.int8(3), np.bool_(True)]
    raws = [np.arange(3), np.arange(6.0).reshape(2, 3).T, np.arange(2.0).astype(">f8")]
    lists: list[Any] = [
        [], [[]], [1.0, 2], (1, 2), [True, 1j], [[1.0], [2.0]], [[[1]], [[2]]], [1.0, [2.0]],
        [2**63], [10**30], ["a"], [np.float32(1), 2.0], [raws[0], raws[0]], [raws[0], [1, 2, 3]],
        [z, z], (z, 1.0, 2), [[z, 1], [2, z]], [x, x], [x, [1.0, 2.0]], [x, z], [raws[2], raws[2]],
        [xp.asarray(1, dtype=ml_dtypes.bfloat16), 2.0], [None], [z, "a"],
    ]  # fmt: skip
    for obj in [*numbers, *raws, *lists, z, x]:
        for dtype in (None, np.float64, np.float32, np.int8, np.complex64, ml_dtypes.bfloat16, "a"):
            yield (obj,), {"dtype": dtype}
        yield (obj,), {"copy": True}


CALLS: dict[str, Callable[[], Iterator[Call]]] = {
    "conversion.asarray": _given,
    "closeness.nan_to_num": lambda: _one_by(
        {}, {"nan": 2.0}, {"posinf": 1.0, "neginf": -3.0}, {"nan": 1e300}, {"nan": 1}
    ),
    "angles.angle": lambda: _one_by({}, {"deg": True}),
    "angles.deg2rad": _one_by,
    "angles.rad2deg": _one_by,
    "angles.unwrap": lambda: _one_by(
        {"axis": 0}, {"period": 2.0}, {"period": 2}, {"discont": 4.0}, {"axis": 1}, {"period": -1.0}
    ),
    "closeness.array_equal": lambda: _pairs({"equal_nan": True}),
    "elementwise.fmax": _pairs,
    "elementwise.fmin": _pairs,
    "elementwise.heaviside": _pairs,
    "sets.intersect1d": _pairs,
    "sets.isin": lambda: _pairs({"invert": True}),
    "sets.setdiff1d": _pairs,
    "sets.setxor1d": _pairs,
    "sets.union1d": _pairs,
    "sampled.correlate": _sequences_of_two,
    "searching.lexsort": _sorted_by,
    "searching.where": _choices,
    "searching.ravel_multi_index": _coordinates,
    "searching.unravel_index": _places,
    "joining.split": _cut,
    "polynomials.polyder": lambda: _one_by({"m": 2}, {"m": 0}, {"m": -1}, {"m": 1.5}),
    "polynomials.polyint": lambda: _one_by({"m": 2}, {"k": 3.0}, {"m": 2, "k": [1.0, 2.0]}),
    "polynomials.polyfit": _fitted,
    "polynomials.polyval": _pairs,
    "polynomials.vander": lambda: _one_by(
        {"N": 2}, {"N": 3, "increasing": True}, {"N": 0}, {"N": 1}, {"N": -1}, {"N": 2.0}
    ),
    "linalg.norms.norm": lambda: itertools.chain(
        _reductions(*[{"ord": o} for o in (1, 2, -1, np.inf, "fro", "nuc", 3, "a")]),
        _by_matrix({"ord": 1}, {"ord": 2}, {"ord": "fro", "axis": (0, 1)}, {"ord": 1, "axis": 0}),
    ),
    "elementwise.clip": lambda: _one_by(
        {"min": 0.0},
        {"max": 1.5},
        {"max": 1},
        {"min": np.nan, "max": 0.0},
        {"min": "a"},
        {"min": 2},
        {"min": -300, "max": 300},
        {"min": xp.asarray(0.5)},
        {"max": xp.asarray(3)},
        {"min": xp.asarray(np.float32(0.5)), "max": 2},
        {"max": True},
    ),
    "elementwise.rounded": lambda: itertools.chain(
        *[_one_by(rest=(n,)) for n in (0, 1, 3, -1, 29, 30, 300, 2.0, True)]
    ),
    "searching.nonzero": _one_by,
    "searching.searchsorted": _sought,
    "searching.take": _taken,
    "searching.take_along_axis": _taken,
    "counting.bincount": _occurring,
    "counting.digitize": _bins,
    "counting.histogram": _counted,
    "counting.one_hot": _hots,
    "counting.segment_sum": _segments,
    "creation.arange": _ranges,
    "creation.empty": _made,
    "creation.empty_like": _likes,
    "creation.eye": _eyes,
    "creation.full": lambda: itertools.chain(*map(_made, _FILLS)),
    "creation.full_like": lambda: itertools.chain(*map(_likes, _FILLS)),
    "creation.ones": _made,
    "creation.ones_like": _likes,
    "creation.tril": lambda: _one_by({"k": 1}, {"k": -1}, {"k": 9}, {"k": -9}, {"k": 1.0}),
    "creation.triu": lambda: _one_by({"k": 1}, {"k": -1}, {"k": 9}, {"k": -9}, {"k": 1.0}),
    "creation.zeros": _made,
    "creation.zeros_like": _likes,
    "fft.fft": _spectra_along,
    "fft.fftfreq": _frequencies,
    "fft.fftn": _spectra_over,
    "fft.fftshift": _shifts,
    "fft.hfft": _spectra_along,
    "fft.ifft": _spectra_along,
    "fft.ifftn": _spectra_over,
    "fft.ifftshift": _shifts,
    "fft.ihfft": _spectra_along,
    "fft.irfft": _spectra_along,
    "fft.irfftn": _spectra_over,
    "fft.rfft": _spectra_along,
    "fft.rfftfreq": _frequencies,
    "fft.rfftn": _spectra_over,
    "linalg.norms.matrix_norm": lambda: _by_matrix(
        {"keepdims": True}, {"ord": 2}, {"ord": 1}, {"ord": -np.inf, "keepdims": True}, {"ord": 7}
    ),
    "linalg.norms.cond": lambda: _by_matrix({"p": 2}, {"p": -2}, {"p": 1}, {"p": "fro"}),
    "linalg.norms.matrix_rank": lambda: _by_matrix({"rtol": 0.1}),
    "linalg.norms.vector_norm": lambda: itertools.chain(
        _reductions(*[{"ord": o} for o in (3, 5, "a", np.inf, -np.inf, 0, 1, -1, 2.5, True)]),
        _by_matrix({"ord": 1}, {"ord": 0}, {"ord": 3, "axis": 0}),
    ),
    "linalg.structure.cross": _crossed,
    "linalg.solving.lstsq": lambda: _systems({"rcond": 0.1}),
    "linalg.solving.solve": _systems,
    "linalg.solving.solve_triangular": lambda: _systems({"lower": True}),
    "linalg.structure.multi_dot": _chains,
    "linalg.structure.diag": lambda: _by_matrix({"k": 1}, {"k": -2}),
    "linalg.structure.diagonal": lambda: _by_matrix({"offset": 1}, {"offset": -2}, {"offset": 0.5}),
    "lib.stride_tricks.sliding_window_view": lambda: _copies({"axis": 0}, {"axis": (0, -1)}),
    "linalg.structure.matrix_power": _powers,
    "linalg.structure.trace": lambda: _by_matrix(
        {"offset": 1}, {"dtype": np.float32}, {"offset": -9}
    ),
    "joining.concat": _sequences,
    "manipulation.astype": _cast,
    "manipulation.expand_dims": _turns,
    "manipulation.flip": lambda: _scans({"axis": (0,)}, {"axis": False}),
    "joining.pad": _padded,
    "manipulation.permute_dims": _turns,
    "manipulation.ravel": _one_by,
    "joining.repeat": lambda: _copies({"axis": 0}, {"axis": -1}, {"axis": 4}),
    "manipulation.reshape": _reshapes,
    "manipulation.roll": lambda: _copies({"axis": 0}, {"axis": -1}, {"axis": 4}),
    "manipulation.squeeze": _turns,
    "joining.stack": _sequences,
    "joining.tile": _copies,
    "manipulation.transpose": _turns,
    "nan_statistical.nanargmax": _reductions,
    "nan_statistical.nanargmin": _reductions,
    "nan_statistical.nancumprod": lambda: _scans(*_DTYPE),
    "nan_statistical.nancumsum": lambda: _scans(*_DTYPE),
    "nan_statistical.nanmax": _reductions,
    "nan_statistical.nanmean": lambda: _reductions(*_DTYPE),
    "nan_statistical.nanmin": _reductions,
    "nan_statistical.nanprod": lambda: _reductions(*_DTYPE),
    "nan_statistical.nanstd": lambda: _reductions(*_NAN_DDOF),
    "nan_statistical.nansum": lambda: _reductions(*_DTYPE),
    "nan_statistical.nanvar": lambda: _reductions(*_NAN_DDOF),
    "products.einsum": _sums_of_products,
    "products.kron": _by_kronecker,
    "products.outer": _systems,
    "products.tensordot": _folds,
    "quantiles.median": lambda: _quantiles(()),
    "quantiles.nanmedian": lambda: _quantiles(()),
    "quantiles.nanquantile": lambda: _quantiles((0.3,), (0.5,)),
    "quantiles.quantile": lambda: _quantiles((0.3,), (0.5,)),
    "sampled.convolve": _sequences_of_two,
    "sampled.even_slope": _slopes,
    "sampled.interp": _curves,
    "steps.geomspace": _spaced_between,
    "steps.linspace": lambda: itertools.chain(_spaced(), _spaced_between()),
    "sampled.trapezoid": lambda: _scans({"dx": 0.5}, {"dx": 2}, {"x": xp.asarray([0.0, 1.0])}),
    "searching.argmax": _reductions,
    "searching.argmin": _reductions,
    "searching.argsort": lambda: _one_by(*_ORDERS),
    "searching.count_nonzero": _reductions,
    "searching.sort": lambda: _one_by(*_ORDERS),
    "searching.top_k": lambda: _one_by({"axis": 0}, {"axis": 5}, rest=(2,)),
    "sets.unique_all": _one_by,
    "sets.unique_counts": _one_by,
    "sets.unique_inverse": _one_by,
    "sets.unique_values": _one_by,
    "special.bessel.airy": _special(1),
    "special.factorials.comb": _special(2),
    "special.integrals.fresnel": _special(1),
    "special.bessel.ivp": _special(2),
    "special.bessel.jn": _special(2),
    "special.bessel.jvp": _special(2),
    "special.bessel.kvp": _special(2),
    "special.integrals.lambertw": _special(1),
    "special.factorials.perm": _special(2),
    "special.integrals.shichi": _special(1),
    "special.integrals.sici": _special(1),
    "special.bessel.yvp": _special(2),
    "statistical.all": _reductions,
    "statistical.any": _reductions,
    "cumulative.cumprod": lambda: _scans(*_DTYPE),
    "cumulative.cumsum": lambda: _scans(*_DTYPE),
    "cumulative.cumulative_max": _scans,
    "cumulative.cumulative_min": _scans,
    "cumulative.cumulative_prod": lambda: _scans(*_DTYPE, {"include_initial": True}),
    "cumulative.cumulative_sum": lambda: _scans(*_DTYPE, {"include_initial": True}),
    "cumulative.diff": lambda: _scans(*_DIFF),
    "special.shares.log_softmax": lambda: _scans({}, {"axis": (0, 1)}),
    "special.shares.softmax": lambda: _scans({}, {"axis": (0, 1)}),
    "statistical.logsumexp": lambda: _reductions({"b": 2.0}, {"return_sign": True}),
    "statistical.max": _reductions,
    "statistical.mean": _reductions,
    "statistical.min": _reductions,
    "statistical.prod": lambda: _reductions(*_DTYPE),
    "statistical.std": lambda: _reductions(*_DDOF),
    "statistical.sum": lambda: _reductions(*_DTYPE),
    "statistical.var": lambda: _reductions(*_DDOF),
}

CALLS |= {
    "nn.functional.activation.gelu": lambda: _activated({"approximate": "tanh"}),
    "nn.functional.activation.relu": lambda: _activated({"inplace": True}, {"inplace": None}),
    "nn.functional.activation.sigmoid": _activated,
    "nn.functional.embedding.embedding": _embedded,
    "nn.functional.embedding.embedding_bag": _bagged,
    "nn.functional.linear.linear": _layered,
    "nn.functional.linear.one_hot": _marked,
    "nn.functional.activation.silu": lambda: _activated({"inplace": True}),
    "nn.functional.activation.softplus": lambda: _activated(
        {"beta": 2.5}, {"threshold": 0.5}, {"beta": 0}, {"beta": -1, "threshold": 1}
    ),
    "nn.functional.classification_loss.cross_entropy": _labelled,
    "nn.functional.classification_loss.nll_loss": _likely,
    "nn.functional.normalization.layer_norm": _normalized,
    "nn.functional.padding.pad": _padded_last,
    "nn.functional.rearrangement.pixel_shuffle": _shuffled,
    "nn.functional.rearrangement.pixel_unshuffle": _shuffled,
    "nn.functional.sampling.grid_sample": _sampled,
    "nn.functional.softmax.log_softmax": _along_one_axis,
    "nn.functional.softmax.softmax": _along_one_axis,
    "random.draws.bernoulli": lambda: _drawn(
        (), (0.3,), (0.3, (2, 3)), (xp.asarray([0.5]),), (1,), (xp.asarray(0.4),),
        *[(xp.asarray(np.linspace(-0.1, 1.1, 60, dtype=d).reshape(3, 20)), *rest)
          for d in "fde" for rest in ((), ((3, 20),), ((2, 3, 20),), ((20,),), (None, "int8"))],
        (xp.asarray([np.nan, 0.5]),), (xp.asarray([0, 1]),), (xp.zeros((0, 2)),),
    ),
    "random.draws.exponential": _drawn_floats,
    "random.draws.gumbel": _drawn_floats,
    "random.draws.laplace": _drawn_floats,
    "random.draws.normal": _drawn_floats,
    "random.selections.choice": lambda: itertools.chain(_chosen(), _chosen_by_weight()),
    "random.selections.permutation": lambda: _drawn(
        (5,), (0,), (-1,), (300,), (xp.eye(4),), (xp.asarray(1),), (2.0,), (xp.eye(4), 1),
        (xp.eye(4), 0, True), (5, 0, False, np.int8), (5, 1),
    ),
    "random.draws.randint": lambda: _drawn(
        ((16,), 0, 10), (3, 7), (3, 3, 7), (3, 7, (2,)), ((), 5, 5), ((4,), -3, 4),
        ((4,), 0, 256, np.uint8), ((4,), 0, 200, np.int8), ((4,), 0, 2**63), ((4,), 0, 2**70),
        ((4,), 0.5, 3), ((4,), 1, 9, np.float32), ((4,), 0), (5,), (), ((4,), 0, 9, None, 1),
        *[((40,), 0, 100, d) for d in "bBhHiIqQ"], (3, 7, (2,), "int8"), (3, 7, 2), (3, 7, [2]),
        ([4], 0, 9, "uint8"), ((9000,), 3, 9, np.int16),
    ),
    "random.keys.fold_in": lambda: _drawn(
        (3,), (0,), (2**32 - 1,), (-1,), (2**32,), (2.0,), (True,),
        *[(xp.asarray(np.arange(-9, n - 9).astype(d)),)
          for n in (0, 1, 63, 64, 200) for d in "bBhHiIqQ?f"],
        (xp.reshape(xp.arange(120), (2, 60)),), (xp.asarray(5),),
    ),
    "random.keys.split": lambda: _drawn((), (3,), (40,), (0,), (-1,), (2.0,)),
    "random.parametric.beta": lambda: _drawn(
        (2.0, 3), (2.0, 3.0, (4,)), (xp.asarray([2.0, 3.0]),) * 2, (xp.asarray([2.0]), 3.0),
        (xp.asarray([2.0]), 3.0, (1,), np.float32), (2.0, 3.0, (4,), np.int64), (0.0, 2.0, 5),
        (xp.asarray([2.0, 3.0]), xp.asarray([2.0])), (2.0, None), (1e-3, 2e-3, (9000,)),
    ),
    "random.parametric.dirichlet": lambda: _drawn(
        *[(a, *rest) for a in (xp.asarray([0.5, 2.0]), xp.eye(3) + 1.0, xp.asarray(2.0))
          for rest in ((), ((),), ((2, 3),), (4,), ((), "float32"), ((-1,),))],
        (xp.asarray([]),), (2.0,), (xp.asarray([1, 2]),), (xp.asarray([0.0, 2.0]),),
    ),
    "random.parametric.gamma": lambda: _drawn(*_of_one_parameter("float32", np.float64, np.int8)),
    "random.parametric.poisson": lambda: _drawn(*_of_one_parameter("int8", np.uint64, np.float32)),
    "random.draws.uniform": lambda: itertools.chain(
        _drawn_floats(), _drawn((4, np.float32, -1.0, 3.0), (4, None, 0.0, 1)),
        _drawn(*[(n, d, *limits) for n in (5, (3, 70)) for d in (np.float32, "float64", xp.bfloat16)
                 for limits in ((-1, 2), (3.0, 1.0), (2.0, 2.0), (0.1, 0.1 + 1e-12), (-0.0, 0.0),
                                (0.0, 1e-45), (1e30, 2e30), (-3e38, 3e38), (np.nan, 1.0), (0, 1),
                                (0.0, np.inf), (True, 2), (0.3, 16777216))]),
    ),
} | {
    f"nn.functional.{kind}_pooling.{name}_pool{rank}d": (
        _pooled_with_places if name == "max" else _pooled
    )
    for kind, name in (("average", "avg"), ("max", "max")) for rank in (1, 2, 3)
} | {
    f"nn.functional.adaptive_pooling.adaptive_{name}_pool{rank}d": _divided
    for name in ("avg", "max") for rank in (1, 2, 3)
} | {
    f"nn.functional.convolution.conv{rank}d": _convolved(rank) for rank in (1, 2, 3)
}  # fmt: skip

# Functions of shapes alone, or of concrete values.
CREATED = [
    "arange", "empty", "empty_like", "eye", "fftfreq", "full", "full_like", "linspace", "nonzero",
    "ones", "ones_like", "rfftfreq", "zeros", "zeros_like",
]  # fmt: skip

# NumPy's own loops take either of two zeros, by the processor and where in a vector they stand
EITHER_ZERO = {"elementwise.fmax", "elementwise.fmin"}
# Which ask whether elements that are at hand are finite, and take traced ones as they are
ASKING = {"counting.histogram"}
WAYS = {name.removeprefix("funct.").removeprefix("array."): way for name, way in DIRECT.items()}


def test_every_direct_way_is_compared() -> None:
    """No function has a direct way without calls that the law below is checked on."""
    assert sorted(CALLS) == sorted(WAYS)


def _outcome(
    fun: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, bool]:
    """The results or the error, and whether there was a warning."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            out = fun(*args, **options)
        except (FunctError, TypeError) as error:
            text = re.sub(r"WatchTracer\((Array\(.*?\))\)", r"\1", str(error))
            return (type(error), text.partition("\n")[0]), bool(heard)
    several = out if isinstance(out, tuple) else (out,)
    return [np.asarray(v) for v in several], bool(heard)


def _without_signs(found: Any) -> Any:
    """Arrays whose zeros have one sign; errors as they are."""
    if isinstance(found, tuple):
        return found
    return [x + 0.0 if x.dtype.kind in "fc" else x for x in found]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) or isinstance(b, tuple):
        return a == b
    return len(a) == len(b) and all(_equal(v, w) for v, w in zip(a, b, strict=True))


def _equal(a: Any, b: Any) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        return _equal(a.real, b.real) and _equal(a.imag, b.imag)
    if a.dtype.kind not in "fV":
        return bool((a == b).all())
    same = ((a == b) & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b))
    return bool(same.all())


def _watched(way: Direct, seen: list[str]) -> Callable[..., Any]:
    def rule(primitive: Any, operands: Any, params: Any) -> Any:
        seen.append(primitive.name)
        return NotImplemented

    return ft.intercept(way.public, rule)


@pytest.mark.parametrize("name", [name for name in CALLS if WAYS[name].arrays])
def test_no_kernel_is_given_a_tensor(name: str) -> None:
    """Whatever argument is traced: a kernel that asked it for its number would cut a derivative."""
    public, given = WAYS[name].public, list[Any]()
    names: dict[str, Any] = public.__globals__
    kernel = names["kernel"]

    def spy(*args: Any) -> Any:
        given.extend(args)
        return kernel(*args)

    def calls(t: Any) -> Any:
        kinds = inspect.signature(public).parameters.values()
        args, options = next(CALLS[name]())
        keyed = [p.name for p in kinds if p.kind is p.KEYWORD_ONLY]
        for k in range(len(kinds) - len(keyed)):
            row = [*args, *[None] * k][: max(k + 1, len(args))]
            with contextlib.suppress(FunctError, TypeError):
                public(*row[:k], t, *row[k + 1 :], **options)
        for key in keyed:
            with contextlib.suppress(FunctError, TypeError):
                public(*args, **options | {key: t})
        return t

    names["kernel"] = spy
    try:
        with np.errstate(all="ignore"):
            ft.jvp(calls, (xp.asarray(0.5),), (xp.asarray(1.0),))
    finally:
        names["kernel"] = kernel
    assert not any(isinstance(a, xp.Tensor) for a in given)


@pytest.mark.parametrize("most", [300, pytest.param(sys.maxsize, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CALLS)
def test_direct_is_the_composition(name: str, most: int) -> None:
    """The direct way and the primitives agree, errors included; only these may warn more often.

    most: of how many calls, drawn where there are more.
    """
    way, seen = WAYS[name], []
    calls = list(CALLS[name]())
    for args, options in random.Random(0).sample(calls, most) if len(calls) > most else calls:
        several = args[0] if isinstance(args[0], tuple | list) else ()
        arrays = any(isinstance(v, xp.Tensor) for v in (*args, *several))
        composed = _watched(way, seen) if arrays else way.composed
        direct, loud = _outcome(way.public, args, options)
        other, warned = _outcome(composed, args, options)
        if name in EITHER_ZERO:
            direct, other = _without_signs(direct), _without_signs(other)
        refused = name in ASKING and direct[0] is ArgumentError
        assert refused or _same(direct, other), (args, options, direct, other)
        assert warned or not loud, (args, options)
    assert seen or name.partition(".")[2] in CREATED


def test_a_first_call_of_tracers_prints_nothing_and_refuses_as_later_ones():
    """Values, typed errors and Python's own are those of the printed function."""

    def twice(x, /, *, by=2):
        if by == 3:
            raise OverflowError("an int too large")
        return x * by

    def called(times, **options):
        public = _public(twice, None)

        def traced(x):
            for _ in range(times - 1):
                public(x)
            return public(x, **options)

        try:
            return ft.make_graph(traced)(xp.ones(3)), public
        except Exception as error:
            return type(error), str(error).splitlines()[0], public

    (_, first), (_, second) = called(1), called(2)
    assert first.__code__.co_filename != ENTRANCE
    assert second.__code__.co_filename == ENTRANCE
    for wrong in ({"by": 3}, {"with_": 3}):
        assert called(1, **wrong)[:2] == called(2, **wrong)[:2]
    assert [float(y) for y in ft.jit(_public(twice, None))(xp.ones(2))] == [2.0, 2.0]
