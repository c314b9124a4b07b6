"""Distribution functions of counts by SciPy, where its own function is not called as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.special import Raw, find, in_double, keep_dtype

__all__ = ["of_trials", "poisson_quantile"]

ndarray = np.ndarray

_DOUBLE = np.dtype(np.float64)
_LARGE = 2.0**31  # from here on a number of trials is none to SciPy, and the answer NaN


def of_trials(name: str) -> Raw:
    """SciPy's function of (k, n, p), which warns of every n that is not given as an integer."""

    @keep_dtype
    def general(k: Any, n: Any, p: Any) -> Any:
        shape = np.broadcast_shapes(k.shape, n.shape, p.shape)
        if 0 in shape:
            return np.empty(shape, p.dtype)  # an abstract rule asks: SciPy can wait
        trials = np.where(np.abs(n) < _LARGE, n, _LARGE).astype(np.int64)
        return np.asarray(find(name)(k, trials, p), p.dtype)

    f: Raw | None = None

    def raw(k: Any, n: Any, p: Any) -> Any:
        nonlocal f
        double = p.__class__ is ndarray and p.dtype is _DOUBLE and p.size
        if not double or n.__class__ is not int or (k.__class__ is ndarray and k.dtype != _DOUBLE):
            return general(k, n, p)
        if f is None:
            f = find(name)
        return f(k, n, p)

    return raw


@in_double(2)
def poisson_quantile(p: Any, m: Any) -> Any:
    """The least k with P(X ≤ k) ≥ p, X Poisson with mean m; SciPy's real k may be 1 too large."""
    k = np.ceil(find("pdtrik")(p, np.where(m > 0, m, 1.0)))
    below = np.maximum(k - 1, 0)
    found = np.where(find("pdtr")(below, m) >= p, below, k)
    return np.where(m > 0, found, np.where(m == 0, 0.0, np.nan))
