"""Derivatives of the zeta functions in s, to any order, and of the digamma function.

The Euler–Maclaurin formula, DLMF 25.11.5, carried out on Taylor polynomials in s; left of 0 the
reflection of Riemann, DLMF 25.4.1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.special.functions import by_name, find, in_double, keep_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["polygamma", "riemann_slope", "zeta_slope"]

_gamma = by_name("gamma", 1)
_DOUBLE = np.dtype(np.float64)

# B₂ⱼ / (2j)!, DLMF 24.2
_BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
)  # fmt: skip
_DIRECT = 16  # terms summed as they stand
_LOG_TURN = math.log(2 * math.pi)

Taylor = list[Any]  # coefficients of 1, ε, ε², …


def _times(p: Taylor, q: Taylor) -> Taylor:
    return [sum(p[i] * q[k - i] for i in range(k + 1)) for k in range(len(p))]


def _power(log_a: Any, s: Any, n: int) -> Taylor:
    """a^−(s + ε)."""
    first = np.exp(-s * log_a)
    return [first * (-log_a) ** k / math.factorial(k) for k in range(n + 1)]


def _hurwitz(s: Any, q: Any, n: int, direct: int = _DIRECT) -> Taylor:
    total: Taylor = [0.0] * (n + 1)
    for k in range(direct):
        total = [t + p for t, p in zip(total, _power(np.log(q + k), s, n), strict=True)]
    a = q + direct
    last = _power(np.log(a), s, n)
    tail = [a * (-1) ** k / (s - 1) ** (k + 1) for k in range(n + 1)]  # a / (s − 1 + ε)
    tail[0] = tail[0] + 0.5
    rising: Taylor = [s / a, 1 / a, *[0.0] * n][: n + 1]
    for j, b in enumerate(_BERNOULLI):
        if j:
            for shift in (2 * j - 1, 2 * j):
                rising = _times(rising, [(s + shift) / a, 1 / a, *[0.0] * n][: n + 1])
        tail = [t + b * r for t, r in zip(tail, rising, strict=True)]
    return [t + p for t, p in zip(total, _times(last, tail), strict=True)]


@in_double(2)
def zeta_slope(s: NDArray[Any], q: NDArray[Any], n: int) -> NDArray[Any]:
    """∂ⁿ/∂sⁿ of the Hurwitz zeta function ζ(s, q), for s > 1 and q > 0."""
    y = _hurwitz(s, q, n)[n] * math.factorial(n)
    return np.where((q > 0) & (s > 1), np.where(s == np.inf, 0.0, y), np.nan)


def polygamma(n: Any, x: Any) -> Any:
    """n-th derivative of the digamma function, DLMF 5.15.1, as SciPy has it; x may be complex."""
    if n.__class__ is not int or n < 1 or x.__class__ is not np.ndarray or x.dtype is not _DOUBLE:
        return _polygamma(n, x)
    size = find("gamma")(n + 1.0) * find("zeta")(n + 1.0, x)
    return size if n % 2 else -size


@keep_dtype
def _polygamma(n: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    order = n + 1.0
    if np.iscomplexobj(x):
        first = np.min(x.real, initial=0.0, where=np.isfinite(x.real))
        steps = _DIRECT + int(min(-first, 1000.0))
        with np.errstate(all="ignore"):
            poles = np.maximum(order, 2.0)
            series = _hurwitz(poles, x.astype(np.complex128), 0, steps)[0].astype(x.dtype)
    else:
        series = find("zeta")(order, x)
    sign = (-1.0) ** order  # NaN between the whole orders
    return np.where(n == 0, find("psi")(x), sign * find("gamma")(order) * series)


def _reflected(s: Any, n: int, direct: int) -> Taylor:
    """2 (2π)^(s − 1) sin(πs / 2) Γ(1 − s) ζ(1 − s)."""
    turn = math.pi / 2
    angle = turn * (s if np.iscomplexobj(s) else s % 4)
    wave = [turn**k * np.sin(angle + turn * k) / math.factorial(k) for k in range(n + 1)]
    far = s.real < -160.0  # where the gamma function overflows, and the power before it vanishes
    size = np.exp(find("loggamma")(np.where(far, 1 - s, 1.0)) - (1 - s) * _LOG_TURN)
    gamma: Taylor = [np.where(far, size, _gamma(np.where(far, 1.0, 1 - s)))]
    slopes = [(-1) ** (k + 1) * polygamma(float(k), 1 - s) / math.factorial(k) for k in range(n)]
    for k in range(n):  # Γ' = ψ Γ, coefficient by coefficient
        gamma.append(sum(slopes[i] * gamma[k - i] for i in range(k + 1)) / (k + 1))
    other = [c * (-1) ** k for k, c in enumerate(_hurwitz(1 - s, 1.0, n, direct))]
    power = _power(-_LOG_TURN, np.where(far, 0.0, s - 1), n)
    return [2 * c for c in _times(_times(power, wave), _times(gamma, other))]


@in_double(1)
def riemann_slope(s: NDArray[Any], n: int) -> NDArray[Any]:
    """n-th derivative of the Riemann zeta function; s may be complex."""
    high = np.max(np.abs(s.imag), initial=0.0, where=np.isfinite(s.imag))
    direct = _DIRECT + int(min(high, 1000.0))
    beside = (s.real > 0) | (np.abs(s) < 0.2)  # near 0 the reflection has a pole, the series none
    right = _hurwitz(np.where(beside, s, 2.0), 1.0, n, direct)[n]
    left = _reflected(np.where(beside, -1.0, s), n, direct)[n]
    y: Any = np.where(beside, right, left)
    y = np.where(s.real > 1100.0, 0.0, y * math.factorial(n))
    return np.asarray(np.where(s == 1, np.nan, y))
