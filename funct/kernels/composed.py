"""Compositions that NumPy has under one name, on ndarrays of float64, float32 or int64.

Each does in NumPy's calls what the primitives do, in their order, so that every bit is theirs. None
stands for what only they know: other dtypes, NaN where NumPy merges them, and every mistake.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from funct.kernels.dtypes import FLOATING, INTEGER, is_half
from funct.kernels.elementwise.nans import half_turns, numbers
from funct.kernels.linalg import matrices
from funct.kernels.linalg.chains import chain_product
from funct.kernels.linalg.dots import vdot
from funct.kernels.linalg.products import matmul
from funct.kernels.order.searching import unique_values

__all__ = [
    "MOST_PARTS", "angle", "array_equal", "correlate", "deg2rad", "fmax", "fmin",
    "heaviside", "intersect1d", "lexsort", "multi_dot", "nan_to_num", "polyder", "polyfit",
    "polyint", "polyval", "rad2deg", "ravel_multi_index", "setdiff1d", "setxor1d", "split",
    "union1d", "unravel_index", "unwrap", "vander",
]  # fmt: skip

ndarray = np.ndarray

MOST_PARTS = 2**24  # of a split: no list of arrays is longer

_DOUBLE, _SINGLE, _INT = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64)
_FLOATS = (_DOUBLE, _SINGLE)
_KNOWN = (*_FLOATS, _INT)
_INEXACT = (*_FLOATS, np.dtype(np.complex128), np.dtype(np.complex64))
_EPS = {_DOUBLE: 2.0**-52, _SINGLE: 2.0**-23}
_NUMBERS = (float, int)
_GREAT = 1e38
_correlate: Any = np.correlate


def _alike(x: Any, y: Any) -> bool:
    return x.dtype is y.dtype and x.dtype in _KNOWN


def _floating(x: Any) -> Any:
    """x in float64 where it is of integers; None where it is not of real numbers known here."""
    if x.dtype in _FLOATS:
        return x
    return x.astype(_DOUBLE) if x.dtype.num <= INTEGER else None


def array_equal(x: Any, y: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and elements are equal."""
    if equal_nan is not False or x.shape != y.shape:
        return None
    if x.dtype not in _KNOWN or y.dtype not in _KNOWN:
        return None
    return np.asarray((x == y).all())


def deg2rad(x: Any) -> Any:
    """Degrees as radians."""
    x = _floating(x)
    return None if x is None else x * (np.pi / 180.0)


def rad2deg(x: Any) -> Any:
    """Radians as degrees."""
    x = _floating(x)
    return None if x is None else x * (180.0 / np.pi)


def fmax(x: Any, y: Any) -> Any:
    """The larger of two numbers."""
    return _numbers(np.fmax, np.maximum, x, y)


def fmin(x: Any, y: Any) -> Any:
    """The smaller of two numbers."""
    return _numbers(np.fmin, np.minimum, x, y)


def _numbers(better: Any, fold: Any, x: Any, y: Any) -> Any:
    if x.__class__ is ndarray is y.__class__ and x.dtype is y.dtype and x.dtype in _FLOATS:
        return better(x, y)
    if not (_is_known(x) and _is_known(y)) and not _are_complex(x, y):
        return None
    if x.__class__ is not y.__class__:  # one of them is a number
        return better(x, y)
    z = fold(x, y)  # of unlike zeros the one that the composition takes
    if z.dtype == _INT:
        return z
    total = vdot(z, z)
    return z if total == total else None


def _is_known(v: Any) -> bool:
    """Whether v is a number of Python, or an array of a dtype that is known here."""
    return v.dtype in _KNOWN if v.__class__ is ndarray else v.__class__ in _NUMBERS


def _are_complex(x: Any, y: Any) -> bool:
    return x.__class__ is ndarray is y.__class__ and x.dtype is y.dtype and x.dtype in _INEXACT


def heaviside(x: Any, y: Any) -> Any:
    """The step, with y at 0."""
    if x.__class__ is ndarray and y.__class__ is float:
        x = _floating(x)
        return None if x is None else np.heaviside(x, y)
    kinds = [v.dtype for v in (x, y) if v.__class__ is ndarray]
    if _DOUBLE not in kinds and _SINGLE not in kinds:  # NumPy takes half precision for short ones
        x, y = (_floating(v) if v.__class__ is ndarray else v for v in (x, y))
    return np.heaviside(x, y) if kinds and _is_known(x) and _is_known(y) else None


def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2.0 * np.pi) -> Any:
    """A sequence without jumps."""
    p = _floating(p)
    if p is None or not p.size or axis.__class__ is not int or not -p.ndim <= axis < p.ndim:
        return None
    if discont is not None or period.__class__ is not float or not 0.0 < period < np.inf:
        return None
    before = (slice(None),) * (axis % p.ndim)
    late = (*before, slice(1, None))
    step, half = p[late] - p[(*before, slice(None, -1))], period / 2.0
    near = np.remainder(step + half, period) - half
    near[(near == -half) & (step > 0)] = half
    turns = near - step
    turns[np.abs(step) < half] = 0.0
    if not np.isfinite(turns).all():
        return None
    out = p + 0.0  # no -0.0, as in a sum
    out[late] += turns.cumsum(axis)
    return out


def angle(z: Any, deg: bool = False) -> Any:
    """The angles of real numbers."""
    real = deg is False and z.ndim and INTEGER < z.dtype.num <= FLOATING
    return half_turns(z) if real else None


def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """x with numbers for NaN and for the infinities."""
    half = is_half(x.dtype) and posinf is None and neginf is None
    if not (half or x.dtype in _INEXACT) or not x.size or not x.ndim:
        return None
    for v in (nan, posinf, neginf):
        if v is not None and (v.__class__ is not float or not -_GREAT < v < _GREAT):
            return None
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        turned = nan_to_num(x.T, nan, posinf, neginf)
        return None if turned is None else turned.T
    if half:
        return numbers(x, nan)
    real = np.empty(0, x.dtype).real.dtype
    seen = x.view(real)
    if isfinite(vdot(seen, seen)):
        return x
    if posinf is None and neginf is None and x.dtype is real and real.num <= FLOATING:
        return numbers(x, nan)
    out = x.copy()
    parts, limits = out.view(real), np.finfo(real)
    high, low = parts == np.inf, parts == -np.inf
    parts[np.isnan(parts)] = nan
    parts[high] = limits.max if posinf is None else posinf
    parts[low] = limits.min if neginf is None else neginf
    return out


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts along one axis."""
    n = x.shape[axis]
    if indices_or_sections.__class__ is int:
        if not 1 <= indices_or_sections <= MOST_PARTS or n % indices_or_sections:
            return None
        size = n // indices_or_sections
        cuts = [(i, i + size) for i in range(0, n, size)] if size else None
    elif indices_or_sections.__class__ is list or indices_or_sections.__class__ is tuple:
        ends = [*indices_or_sections, n]
        if any(i.__class__ is not int or not 0 <= i <= n for i in ends):
            return None
        cuts = [(i, max(i, j)) for i, j in zip([0, *ends], ends, strict=False)]
    else:
        return None
    if cuts is None:
        return None
    head = (slice(None),) * (axis % x.ndim)
    return [x[(*head, slice(i, j))] for i, j in cuts]


def union1d(x: Any, y: Any) -> Any:
    """What one has or the other."""
    return unique_values(np.concatenate([x.reshape(-1), y.reshape(-1)])) if _alike(x, y) else None


def intersect1d(x: Any, y: Any) -> Any:
    """What both have."""
    return _chosen(x, y, True) if _alike(x, y) else None


def setdiff1d(x: Any, y: Any) -> Any:
    """What the first has alone."""
    return _chosen(x, y, False) if _alike(x, y) else None


def setxor1d(x: Any, y: Any) -> Any:
    """What one has alone: of the distinct ones of both, those that equal no neighbour."""
    if not _alike(x, y):
        return None
    both = np.concatenate([unique_values(x), unique_values(y)])
    both.sort(0, "stable")
    new = np.ones(both.size + 1, bool)
    np.not_equal(both[1:], both[:-1], new[1:-1])
    return both[new[1:] & new[:-1]]


def _chosen(x: Any, y: Any, shared: bool) -> Any:
    values = unique_values(x)
    pool = np.sort(y, None)
    if not pool.size:
        return values[:0] if shared else values
    found = pool.take(pool.searchsorted(values), mode="clip") == values
    return values[found if shared else ~found]


def lexsort(keys: Any, axis: int = -1) -> Any:
    """The order by the last key, ties by the one before."""
    if axis.__class__ is not int or (axis != -1 and axis != 0):
        return None
    for k in keys:
        if k.ndim != 1 or k.dtype not in _KNOWN:
            return None
    return np.lexsort(keys)


def ravel_multi_index(multi_index: Any, dims: Any) -> Any:
    """Places in the flat array."""
    for i in multi_index:
        if i.dtype is not _INT or not i.size:
            return None
    return np.asarray(np.ravel_multi_index(multi_index, dims))


def unravel_index(indices: Any, shape: Any) -> Any:
    """Coordinates of places in the flat array."""
    if indices.dtype is not _INT or not indices.size:
        return None
    return [np.asarray(i) for i in np.unravel_index(indices, shape)]


def multi_dot(arrays: Any) -> Any:
    """Product of a chain of matrices."""
    if len(arrays) < 2 or arrays[0].dtype not in _INEXACT:
        return None
    if len(arrays) == 2:
        a, b = arrays
        fits = a.dtype is b.dtype and a.ndim == 2 and b.ndim in (1, 2)
        return matmul(a, b) if fits else None
    sizes, last = [], arrays[-1]
    for k, x in enumerate(arrays, 1):
        if x.dtype is not last.dtype or not (x.ndim == 2 or (x.ndim == 1 and k == len(arrays))):
            return None
        sizes.append(x.shape[0])
    sizes.append(last.shape[1] if last.ndim == 2 else 1)
    return chain_product(arrays, tuple(sizes), matmul)


def correlate(x: Any, y: Any, mode: str = "valid") -> Any:
    """Correlation of two sequences, the first the longer."""
    if x.dtype is not y.dtype or (x.dtype not in _INEXACT and x.dtype is not _INT):
        return None
    if x.ndim != 1 or y.ndim != 1 or not x.size >= y.size > 0:
        return None
    if mode == "same":
        before = (y.size - 1) // 2
        return _correlate(x, y, "full")[before : before + x.size]
    return _correlate(x, y, mode) if mode in ("valid", "full") else None


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """Powers as columns."""
    if x.dtype not in _KNOWN or x.ndim != 1 or increasing.__class__ is not bool:
        return None
    n = x.size if N is None else N
    if n.__class__ is not int or n < 1:
        return None
    powers = np.empty((x.size, n), x.dtype)
    upwards = powers if increasing else powers[:, ::-1]
    upwards[:, 0] = 1
    upwards[:, 1:] = x[:, None]
    np.multiply.accumulate(upwards, 1, out=upwards)
    return powers


def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, w: Any = None) -> Any:
    """The polynomial that fits best."""
    if x.dtype is not y.dtype or x.dtype not in _FLOATS or x.ndim != 1 or y.shape != x.shape:
        return None
    if deg.__class__ is not int or deg < 0 or rcond is not None or not x.size:
        return None
    columns = vander(x, deg + 1)
    if w is not None:
        if w.__class__ is not ndarray or w.dtype is not x.dtype or w.shape != x.shape:
            return None
        columns, y = columns * w[:, None], y * w
    size = np.sqrt(np.square(columns).sum(0))
    size[size == 0] = 1.0
    c = matrices.lstsq(columns / size, y[:, None], x.size * _EPS[x.dtype])[0]
    return c[:, 0] / size


def polyval(p: Any, x: Any) -> Any:
    """The value of a polynomial."""
    if x.__class__ in _NUMBERS:
        x = np.asarray(x)
    if x.__class__ is not ndarray or (x.dtype not in _INEXACT and x.dtype is not _INT):
        return None
    if p.dtype not in _FLOATS or p.ndim != 1:
        return None
    y = np.zeros(x.shape, p.dtype)
    for c in p.tolist():
        y = y * x + c
    return y


def polyder(p: Any, m: int = 1) -> Any:
    """The derivative of a polynomial."""
    if p.dtype not in _KNOWN or p.ndim != 1 or m.__class__ is not int or m < 1 or p.size <= m:
        return None
    for _ in range(m):
        p = p[:-1] * np.arange(p.size - 1, 0, -1)
    return p


def polyint(p: Any, m: int = 1, k: Any = 0.0) -> Any:
    """The antiderivative of a polynomial."""
    if p.dtype not in _FLOATS or p.ndim != 1 or m.__class__ is not int or not 0 <= m <= 4096:
        return None
    if k.__class__ is not float:
        return None
    for _ in range(m):
        out = np.empty(p.size + 1)
        np.divide(p, np.arange(p.size, 0, -1), out[:-1])
        out[-1] = k
        p = out
    return p
