"""Direct ways give what the composition of primitives gives: elements, dtypes, shapes and errors.

The composition is what runs where an argument is watched: then primitives are all that is seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.array.direct import DIRECT, Direct
from funct.errors import FunctError

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
    for k in range(len(_EDGES)):
        found += [xp.asarray(_EDGES[k:] + _EDGES[:k])]
    pairs = [list(p) for p in itertools.product(_EDGES, repeat=2)]
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


def _special(count: int) -> Callable[[], Iterator[Call]]:
    def calls() -> Iterator[Call]:
        values = [0.0, 0.3, 1.0, 2.0, 5.5, -1.0, np.nan, np.inf]
        grid = np.stack([g.reshape(-1) for g in np.meshgrid(*[values] * count)])
        yield tuple(map(xp.asarray, grid)), {}
        yield tuple(map(xp.asarray, grid.astype(np.float32))), {}
        yield tuple(map(xp.asarray, np.abs(np.nan_to_num(grid, posinf=3)).astype(np.int64))), {}
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


def _quantiles(*firsts: Any) -> Iterator[Call]:
    for call, options in _reductions():
        for rest in firsts:
            yield (*call, *rest), options
    for q in ((0.3,), (0.0,), (1.0,), (0.75,), (2.0,), (xp.asarray([0.5, 1.0]),), (1,)):
        for x in (_plain(np.float64, 6), _plain(np.float32, 3, 4), _plain(np.int64, 4)):
            rest = q if firsts[0] else ()
            yield (x, *rest), {}
            yield (x, *rest), {"axis": -1}
            yield (x, *rest, 0), {"keepdims": True}
    if firsts[0]:
        yield (_plain(np.float64, 6), 0.3), {"method": "lower"}
        yield (_plain(np.float64, 6), 0.3), {"method": "least"}


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
        for option in ({}, {"axis": 0}, {"dtype": np.int8}):
            for n in (3, 0, -1, 2.0):
                yield (x, n), option


def _bins() -> Iterator[Call]:
    up, down = [-1.0, 0.0, 0.0, 2.5], [3.0, 1.0, -2.0]
    for bins in (up, down, [0.0, 0.0], [np.nan], [0.0, np.nan], [], [[1.0]]):
        for x in _arrays():
            for right in (False, True):
                yield (x, xp.asarray(bins)), {"right": right}


def _curves() -> Iterator[Call]:
    points = ([0.0, 1.0, 2.5], [-1.0, -1.0, 2.0], [-np.inf, 0.0, 1.0], [0.0, 1.0, np.inf], [0.5])
    for at in points:
        for f in ([1.0, -2.0, 3.0], [np.inf, 0.0, 1.0], [0.0, np.nan, 1.0], [0.0, np.inf, -1.0]):
            for x in _arrays()[::5]:
                args = (x, xp.asarray(at), xp.asarray(f[: len(at)]))
                yield args, {}
                yield (*args, -7.0, 9), {}
                yield args, {"right": 1.5}
            yield args, {"period": 2.0}
    yield (xp.asarray(0.5), xp.asarray([0.0, 1.0]), xp.asarray([1.0])), {}


_ORDERS = ({"axis": 0}, {"descending": True}, {"axis": 0, "descending": True}, {"axis": 7})
_DDOF = ({"correction": 1}, {"correction": 0.5}, {"correction": 9}, {"correction": "a"})
_DTYPE = ({"dtype": np.float32}, {"dtype": "none"})
_NAN_DDOF = ({"ddof": 1}, {"correction": 9}, {"dtype": np.float32})
_DIFF = ({"n": 2}, {"n": 0}, {"n": -1}, {"prepend": xp.asarray([1.0])}, {"n": 1.5})

CALLS: dict[str, Callable[[], Iterator[Call]]] = {
    "distributions.chdtr": _special(2),
    "distributions.chdtrc": _special(2),
    "distributions.chdtri": _special(2),
    "distributions.fdtri": _special(3),
    "distributions.gdtr": _special(3),
    "distributions.gdtrc": _special(3),
    "distributions.pdtr": _special(2),
    "distributions.pdtrc": _special(2),
    "distributions.pdtri": _special(2),
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
    "counting.digitize": _bins,
    "counting.one_hot": _hots,
    "counting.segment_sum": _segments,
    "quantiles.median": lambda: _quantiles(()),
    "quantiles.nanmedian": lambda: _quantiles(()),
    "quantiles.nanquantile": lambda: _quantiles((0.3,), (0.5,)),
    "quantiles.quantile": lambda: _quantiles((0.3,), (0.5,)),
    "sampled.interp": _curves,
    "sampled.trapezoid": lambda: _scans({"dx": 0.5}, {"dx": 2}, {"x": xp.asarray([0.0, 1.0])}),
    "searching.argmax": _reductions,
    "searching.argmin": _reductions,
    "searching.argsort": lambda: _one_by(*_ORDERS),
    "searching.sort": lambda: _one_by(*_ORDERS),
    "searching.top_k": lambda: _one_by({"axis": 0}, {"axis": 5}, rest=(2,)),
    "sets.unique_all": _one_by,
    "sets.unique_counts": _one_by,
    "sets.unique_inverse": _one_by,
    "sets.unique_values": _one_by,
    "special.airy": _special(1),
    "special.comb": _special(2),
    "special.fresnel": _special(1),
    "special.ivp": _special(2),
    "special.jn": _special(2),
    "special.jvp": _special(2),
    "special.kvp": _special(2),
    "special.lambertw": _special(1),
    "special.perm": _special(2),
    "special.shichi": _special(1),
    "special.sici": _special(1),
    "special.yvp": _special(2),
    "statistical.all": _reductions,
    "statistical.any": _reductions,
    "statistical.cumulative_max": _scans,
    "statistical.cumulative_min": _scans,
    "statistical.cumulative_prod": lambda: _scans(*_DTYPE, {"include_initial": True}),
    "statistical.cumulative_sum": lambda: _scans(*_DTYPE, {"include_initial": True}),
    "statistical.diff": lambda: _scans(*_DIFF),
    "statistical.max": _reductions,
    "statistical.mean": _reductions,
    "statistical.min": _reductions,
    "statistical.prod": lambda: _reductions(*_DTYPE),
    "statistical.std": lambda: _reductions(*_DDOF),
    "statistical.sum": lambda: _reductions(*_DTYPE),
    "statistical.var": lambda: _reductions(*_DDOF),
}

WAYS = {name.removeprefix("funct.array."): way for name, way in DIRECT.items()}


def test_every_direct_way_is_compared() -> None:
    """No function has a direct way without calls that the law below is checked on."""
    assert sorted(CALLS) == sorted(WAYS)


def _outcome(fun: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            out = fun(*args, **options)
    except (FunctError, TypeError) as error:
        return type(error), str(error).partition("\n")[0]
    return [np.asarray(v) for v in out] if isinstance(out, tuple) else [np.asarray(out)]


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


@pytest.mark.parametrize("name", CALLS)
def test_direct_is_the_composition(name: str) -> None:
    """The direct way and the primitives agree, errors included; some calls take the direct way."""
    way, seen = WAYS[name], []
    for args, options in CALLS[name]():
        arrays = any(isinstance(v, xp.Tensor) for v in args) or isinstance(args[0], tuple)
        composed = _watched(way, seen) if arrays else way.composed
        direct, other = (_outcome(f, args, options) for f in (way.public, composed))
        assert _same(direct, other), (args, options, direct, other)
    assert seen
