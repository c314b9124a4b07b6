"""Derivatives of incomplete elliptic integrals in the parameter, to any degree.

The first is Carlson's R_D (DLMF 19.18.1, 19.25.5, 19.25.9), which cancels nowhere. Further ones are
integrated in u, where sin θ / cos θ = sinh(u) / √c: it is smooth for parameters near 1, with c = 1,
and far below 0, with c = 1 − m.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.special.functions import find, in_double
from funct.kernels.special.order_slopes import integral

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ellipeinc_slope", "ellipkinc_slope", "rising"]


def rising(a: float, n: int) -> float:
    """a (a + 1) … (a + n − 1), Pochhammer's symbol."""
    return math.prod([a + k for k in range(n)])


def _carlson(phi: Any, rest: Any, second: bool) -> Any:
    """The first derivative; rest is 1 − m."""
    sine, cosine = np.sin(phi), np.cos(phi)
    delta = cosine * cosine + rest * sine * sine
    one = np.ones_like(delta)
    rd = find("elliprd")
    if second:
        return -(sine**3) / 6 * rd(cosine * cosine, delta, one)
    return sine**3 / 6 * rd(cosine * cosine, one, delta)


def _quadrature(phi: Any, rest: Any, n: int, second: bool) -> Any:
    c = np.maximum(rest, 1.0)
    reach = np.arcsinh(np.sqrt(c) * np.abs(np.tan(phi)))

    def f(u: Any, rest: Any, c: Any) -> Any:
        square = np.sinh(u) ** 2 / c
        slope = np.cosh(u) / np.sqrt(c * (1 + square))
        delta = 1 + rest * square
        if second:
            return square**n * delta ** (0.5 - n) / (1 + square) * slope
        return square**n * delta ** (-0.5 - n) * slope

    whole = integral(f, np.zeros_like(phi), reach, reach + 8, rest, c)
    return np.sign(phi) * rising(-0.5 if second else 0.5, n) * whole


def _slope(phi: NDArray[Any], m: NDArray[Any], n: int, second: bool) -> NDArray[Any]:
    shape, phi, rest = phi.shape, phi.ravel(), 1.0 - m.ravel()
    turns = np.rint(phi / math.pi)
    inside = phi - turns * math.pi

    def own(phi: Any, rest: Any) -> Any:
        return _carlson(phi, rest, second) if n == 1 else _quadrature(phi, rest, n, second)

    total = own(inside, rest)
    if np.any(turns):
        whole = own(np.full(phi.shape, math.pi / 2), rest)
        total = np.where(turns == 0, total, total + 2 * turns * whole)
    return total.reshape(shape)


@in_double(2)
def ellipkinc_slope(phi: NDArray[Any], m: NDArray[Any], n: int) -> NDArray[Any]:
    """∂ⁿ/∂mⁿ of the incomplete elliptic integral of the first kind F(φ | m), n ≥ 1."""
    return _slope(phi, m, n, second=False)


@in_double(2)
def ellipeinc_slope(phi: NDArray[Any], m: NDArray[Any], n: int) -> NDArray[Any]:
    """∂ⁿ/∂mⁿ of the incomplete elliptic integral of the second kind E(φ | m), n ≥ 1."""
    return _slope(phi, m, n, second=True)
