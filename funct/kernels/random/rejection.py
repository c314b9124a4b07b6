"""Draws by rejection on counters: gamma (Marsaglia and Tsang) and Poisson (Hörmann).

Machine code makes them once LLVM is loaded or many are asked for, and NumPy before that, with the
same bits: both run the attempts of `attempts.py`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.random import rejection as cpu
from funct.kernels.random.attempts import gamma_attempt, gamma_terms, most, poisson_attempt
from funct.kernels.random.bits import threefry2x32

__all__ = ["TAGS", "plain", "random_gamma", "random_poisson"]

# High words of counters under the user's key, whose hashes are the keys of the streams. `split`,
# `fold_in` and words of arrays would meet them beyond 2**63 elements.
TAGS = {"gamma": 0xFFFFFFFE, "log_gamma": 0xFFFFFFFE, "poisson": 0xFFFFFFFD}

_COST = 20_000  # of the first calls, which NumPy makes, in elements


def random_gamma(
    key: Any, a: Any, shape: tuple[int, ...], dtype: Any, logarithm: bool, second: bool
) -> Any:
    """Draw gamma numbers with shape parameter a and scale 1, or their logarithms.

    Args:    key: (*b, 2). a: float64, broadcasts to (*b, *shape). dtype: float32 or float64.
             second: draw from streams that are independent of those of a first call.
    Returns: (*b, *shape). For a = 0 it is 0, for infinity infinity, below 0 and for NaN NaN.
    """
    return _drawn(key, a, shape, dtype, "log_gamma" if logarithm else "gamma", second)


def random_poisson(key: Any, mean: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw counts of Poisson distributions.

    Args:    key: (*b, 2). mean: float64, broadcasts to (*b, *shape). dtype: of integers.
    Returns: (*b, *shape). A negative mean or NaN gives -1; what dtype cannot hold is its largest.
    """
    return _drawn(key, mean, shape, dtype, "poisson", False)


def _drawn(key: Any, a: Any, shape: Any, dtype: Any, kind: str, second: bool) -> Any:
    way = cpu.drawn if ready(prod(shape) * key.size, _COST) else plain
    return way(key, a, shape, dtype, TAGS[kind] + second, kind)


def plain(key: Any, a: Any, shape: Any, dtype: Any, tag: int, kind: str) -> Any:
    """The draws in NumPy: what is not accepted is tried again, until nothing is left."""
    lead = key.shape[:-1]
    keys, whole = key.reshape(-1, 2), (*lead, *shape)
    n, a = prod(shape), np.broadcast_to(a, whole).reshape(-1)
    y, left, stream = np.empty(a.size, dtype), np.arange(a.size), 0
    while left.size:
        row, at = np.divmod(left, n)
        u, v, w = [_pair(keys[row], tag, stream + j, at) for j in range(3)]
        with np.errstate(all="ignore"):
            if kind == "poisson":
                made, accepted = poisson_attempt(u, v, a[left])
                made = np.minimum(made, most(dtype))
            else:
                terms = gamma_terms(a[left], kind == "log_gamma")
                made, accepted = gamma_attempt(u, v, w, terms, kind == "log_gamma")
            y[left] = made.astype(dtype)
        left, stream = left[~accepted], stream + 4
    return y.reshape(whole)


def _pair(keys: Any, tag: int, stream: int, at: Any) -> Any:
    """Two words for the elements `at` of keys, from one of their streams."""
    own = threefry2x32(keys[:, 0], keys[:, 1], np.uint32(tag), np.uint32(stream))
    return threefry2x32(*own, (at >> 32).astype(np.uint32), at.astype(np.uint32))
