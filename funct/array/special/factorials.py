"""Factorials, what is composed of them or of the gamma function, and zeta."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct import ops
from funct.array.conversion import as_tensor, asarray
from funct.array.creation import how_many
from funct.array.direct import direct
from funct.array.elementwise import floating
from funct.array.manipulation import expand_dims
from funct.errors import ArgumentError
from funct.kernels.special import functions as kernels

__all__ = ["comb", "factorial", "multigammaln", "perm", "zeta"]


def zeta(x: Any, q: Any = None, /) -> Any:
    """Riemann zeta function, or with q Hurwitz's, the sum of 1 / (k + q)**x over k = 0, 1, …

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> x = xp.asarray(2.0)
        >>> round(float(special.zeta(x)), 6), round(float(special.zeta(x, 2.0)), 6)  # pi**2 / 6
        (1.644934, 0.644934)
    """
    return ops.special.riemann_zeta(x) if q is None else ops.special.zeta(x, q)


_MOST_TERMS = 1 << 16
_TOGETHER = 64  # terms that are computed at once, behind as many that are an op each


def multigammaln(a: Any, d: int) -> Any:
    """Logarithm of the multivariate gamma function of dimension d; NaN unless a > (d - 1) / 2.

    Raises: ArgumentError: when d is not positive, or above 65536.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.multigammaln(xp.asarray(2.0), 2)), 6)  # log(pi / 2)
        0.451583
    """
    d = how_many("multigammaln", "d", d)
    if not 0 < d <= _MOST_TERMS:
        raise ArgumentError(f"multigammaln: d must be between 1 and {_MOST_TERMS}, got {d}")
    a = floating(as_tensor("multigammaln", a, "a"))
    y = ops.special.gammaln(a) + 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(1, min(d, _TOGETHER)):
        y = y + ops.special.gammaln(a - 0.5 * j)
    for first in range(_TOGETHER, d, _TOGETHER):  # of which a graph has one op, not one for each
        below = 0.5 * np.arange(first, min(first + _TOGETHER, d))
        terms = ops.special.gammaln(expand_dims(a, -1) - asarray(below, dtype=a.dtype))
        y = y + ops.reduce_sum(terms, (len(a.shape),), False)
    return ops.where(ops.greater(a, 0.5 * (d - 1)), y, math.nan)


def factorial(n: Any) -> Any:
    """gamma(n + 1), and 0 for n < 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.factorial(xp.asarray([-1.0, 0.0, 5.0])).tolist()
        [0.0, 1.0, 120.0]
    """
    below = ops.less(n, 0)
    return ops.where(below, 0.0, ops.special.gamma(ops.where(below, 0.0, n) + 1.0))


def _within(n: Any, k: Any) -> tuple[Any, Any]:
    """Whether 0 <= k <= n, and k, which is 0 elsewhere."""
    inside = ops.logical_and(ops.greater_equal(k, 0), ops.less_equal(k, n))
    return inside, ops.where(inside, k, 0.0)


@direct(kernels.comb, arrays="doubles")
def comb(n: Any, k: Any) -> Any:
    """Number of choices of k out of n things; 0 unless 0 <= k <= n.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.comb(xp.asarray([5.0, 5.0]), xp.asarray([2.0, 6.0])).tolist()
        [10.0, 0.0]
    """
    inside, k = _within(n, k)
    return ops.where(inside, ops.special.binom(n, k), 0.0)


@direct(kernels.perm, arrays="doubles")
def perm(n: Any, k: Any) -> Any:
    """Number of ordered choices of k out of n things; 0 unless 0 <= k <= n.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.perm(xp.asarray([5.0, 5.0]), xp.asarray([2.0, 6.0])).tolist()
        [20.0, 0.0]
    """
    inside, k = _within(n, k)
    return ops.where(inside, ops.special.poch(n - k + 1.0, k), 0.0)
