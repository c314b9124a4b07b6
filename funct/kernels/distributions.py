"""Distribution functions of counts by SciPy, which cuts a number of trials to a whole one.

Where it is whole the values are SciPy's. Elsewhere they are the incomplete beta function that
continues them, so that the number of trials may be any real one.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from funct.kernels.special import Raw, by_name, find, in_double, keep_dtype

__all__ = ["chdtrc", "of_counts", "poisson_quantile", "with_floor"]

ndarray = np.ndarray

_DOUBLE = np.dtype(np.float64)
_LARGE = 2.0**53  # whole numbers beyond are no counts


def _whole(v: Any) -> Any:
    """v as integers, or None if an element is no whole number."""
    if v.__class__ is not ndarray:
        return v if v.__class__ is int else int(v) if v.is_integer() else None
    if v.dtype.kind == "f":
        if v.size == 1:
            if not v.item().is_integer():
                return None
        elif np.count_nonzero((np.floor(v) == v) & np.isfinite(v)) < v.size:
            return None
    return v.astype(np.int64)


def of_counts(name: str, general: Raw) -> Raw:
    """SciPy's function of (k, n, p) for the whole number below k; general: the same for real n."""

    @keep_dtype
    def mixed(k: Any, n: Any, p: Any) -> Any:
        dtype = p.dtype
        k, n, p = np.broadcast_arrays(np.floor(k), n, p)
        if not p.size:
            return np.empty(p.shape, dtype)  # an abstract rule asks: SciPy can wait
        whole = (np.floor(n) == n) & (np.abs(n) < _LARGE) & (np.abs(k) < _LARGE)
        counts = [np.where(whole, v, 1.0).astype(np.int64) for v in (k, n)]
        exact = find(name)(*counts, p)
        rest = general(k, np.where(whole, 1.0, n), p)
        return np.asarray(np.where(whole, exact, rest), dtype)

    f: Raw | None = None

    def raw(k: Any, n: Any, p: Any) -> Any:
        nonlocal f
        if p.__class__ is ndarray and p.dtype is _DOUBLE and p.size:
            at = k if k.__class__ is int else _whole(k)
            of = n if n.__class__ is int else _whole(n)
            if at is not None and of is not None:
                if f is None:
                    f = find(name)
                return f(at, of, p)
        return mixed(k, n, p)

    return raw


def with_floor(name: str) -> Raw:
    """SciPy's function of (k, m) for the whole number below k."""
    known = by_name(name, 2)

    def raw(k: Any, m: Any) -> Any:
        return known(k if k.__class__ is int else np.floor(k), m)

    return raw


_chdtrc = by_name("chdtrc", 2)


def chdtrc(v: Any, x: Any) -> Any:
    """SciPy's function, and its value at 0 for x < 0, where SciPy has NaN."""
    y = _chdtrc(v, x)
    if y.ndim == 1 and isfinite(y.dot(y)):
        return y
    return _chdtrc(v, np.maximum(x, np.asarray(x).dtype.type(0)))


@in_double(2)
def poisson_quantile(p: Any, m: Any) -> Any:
    """The least k with P(X ≤ k) ≥ p, X Poisson with mean m; SciPy's real k may be 1 too large."""
    k = np.ceil(find("pdtrik")(p, np.where(m > 0, m, 1.0)))
    below = np.maximum(k - 1, 0)
    found = np.where(find("pdtr")(below, m) >= p, below, k)
    return np.where(m > 0, found, np.where(m == 0, 0.0, np.nan))
