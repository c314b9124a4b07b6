"""Distribution functions of counts by SciPy, where its own function is not called as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.dtypes import INTEGER
from funct.kernels.special.functions import Raw, find, keep_dtype

__all__ = ["of_trials"]

ndarray = np.ndarray

_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)
_LARGE = 2.0**31  # from here on a number of trials is none to SciPy, and the answer NaN


def of_trials(name: str) -> Raw:
    """SciPy's function of (k, n, p), which warns of every n that is not given as an integer."""

    @keep_dtype
    def general(k: Any, n: Any, p: Any) -> Any:
        shape = np.broadcast_shapes(k.shape, n.shape, p.shape)
        if "c" in (k.dtype.kind, n.dtype.kind, p.dtype.kind):
            raise TypeError("complex")  # also of nothing, by which dtypes are found
        if 0 in shape:
            return np.empty(shape, p.dtype)  # an abstract rule asks: SciPy can wait
        trials = np.where(np.abs(n) < _LARGE, n, _LARGE).astype(np.int64)
        return np.asarray(find(name)(k, trials, p), p.dtype)

    f: Raw | None = None

    def raw(k: Any, n: Any, p: Any) -> Any:
        nonlocal f
        if n.__class__ is not int or not -_LARGE < n < _LARGE or p.__class__ is not ndarray:
            return general(k, n, p)
        kind = p.dtype
        if kind is not _DOUBLE and kind is not _SINGLE:
            if kind.num > INTEGER:
                return general(k, n, p)
            p = p.astype(_DOUBLE)
        if not p.size or (k.__class__ is ndarray and k.dtype not in (kind, p.dtype)):
            return general(k, n, p)
        if f is None:
            f = find(name)
        if kind is _SINGLE:
            return f(k, np.asarray(n, np.int64), p).astype(_SINGLE)
        return f(k if kind is _DOUBLE else np.asarray(k, _DOUBLE), n, p)

    return raw
