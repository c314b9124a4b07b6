"""Derivatives of Bessel functions in their order, to any degree, for x ≥ 0.

Integral representations are differentiated under the sign, where the n-th derivative is a factor
tⁿ, and series term by term: DLMF 10.9.6, 10.9.7, 10.32.4, 10.32.9, 10.2.2, 10.25.2. The sums are
Gauss–Legendre panels, as many as the integrand has waves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.special.functions import by_name, in_double
from funct.kernels.special.gamma import digamma, gammaln
from funct.kernels.special.incomplete_slopes import bell, fill
from funct.kernels.special.zeta import polygamma

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["integral", "ive_slope", "jv_slope", "kve_slope", "yv_slope"]

_ive, _kve = by_name("ive", 2), by_name("kve", 2)
_MOST = 1 << 18  # nodes times elements held at once
_DEEP = 42.0  # e⁻⁴² is nothing

Flat = Any  # float64, one axis


@functools.cache
def _panels(count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(16)
    left = np.arange(count)[:, None]
    return ((left + (x + 1) / 2) / count).ravel(), np.tile(w / (2 * count), count)


def integral(f: Callable[..., Any], low: Flat, high: Flat, count: Flat, *args: Flat) -> Flat:
    """∫ f(t, *args) dt from low to high, element by element."""
    out = np.empty(low.shape)
    order = np.argsort(count, kind="stable")
    k = 0
    while k < out.size:
        many = 2 ** math.ceil(math.log2(max(count[order[k]], 24)))  # few sizes to keep
        same = np.searchsorted(count[order], many, side="right")
        part = order[k : min(same, k + max(1, _MOST // (16 * many)))]
        s, w = _panels(many)
        width = (high - low)[part, None]
        y = f(low[part, None] + width * s, *[a[part, None] for a in args])
        out[part] = (np.where(np.isfinite(y), y, 0.0) @ w) * width[:, 0]
        k += part.size
    return out


def _ends(v: Flat, x: Flat, n: int, *, at_zero: bool) -> tuple[Flat, Flat]:
    """The derivatives at x = 0 and ∞, NaN elsewhere, and where there are others.

    xᵛ is 0 at 0 for every v > 0, and (log x)ⁿ for v = 0. Where it is infinite there is none.
    """
    out = np.full(x.shape, np.nan)
    out[(x == np.inf) & np.isfinite(v)] = 0.0
    if at_zero:
        out[(x == 0) & (v > 0) & np.isfinite(v)] = 0.0
        out[(x == 0) & (v == 0)] = math.inf * (-1) ** n
    return out, (x > 0) & np.isfinite(x) & np.isfinite(v)


def _waves(x: Flat, v: Flat) -> Flat:
    """Panels that resolve cos(vθ − x sin θ) on [0, π]."""
    return np.minimum((np.abs(v) + x) * math.pi / 12 + 2, 1 << 14)


def _cos(angle: Any, n: int) -> Any:
    """n-th derivative of the cosine."""
    return np.cos(angle + n * math.pi / 2)


def _turns(v: Any, k: int, shift: float = 0.0) -> Any:
    """k-th derivative of sin(π(v + shift)) in v; exact at integers."""
    return math.pi**k * np.sin(math.pi * ((v + shift + k / 2) % 2))


def _by_parts(n: int, f: Callable[[int], Any], g: Callable[[int], Any]) -> Any:
    """n-th derivative of a product, from those of the factors."""
    return sum(math.comb(n, k) * f(k) * g(n - k) for k in range(n + 1))


def _reach(x: Flat, v: Flat) -> Flat:
    """Where x sinh t − |v| t is deep."""
    t = np.full(x.shape, 1.0)
    for _ in range(12):
        t = np.arcsinh((_DEEP + np.abs(v) * t) / x)
    return t


def _schlafli(v: Flat, x: Flat, n: int) -> Flat:
    def wave(t: Any, v: Any, x: Any) -> Any:
        return t**n * _cos(v * t - x * np.sin(t), n)

    def tail(t: Any, v: Any, x: Any) -> Any:
        turned = _by_parts(n, lambda k: _turns(v, k), lambda k: (-t) ** k)
        return turned * np.exp(-x * np.sinh(t) - v * t)

    zero = np.zeros(x.shape)
    first = integral(wave, zero, zero + math.pi, _waves(x, v), v, x)
    second = integral(tail, zero, _reach(x, v), zero, v, x)
    return (first - second) / math.pi


def _descent(v: Flat, x: Flat, n: int) -> Flat:
    """J_v(x) for v ≥ x along the path of steepest descent, where the integrand is positive."""

    def f(w: Any, v: Any, x: Any) -> Any:
        ratio = v * w / (x * np.sin(w))
        root = np.sqrt((ratio - 1) * (ratio + 1))
        u = np.log(ratio + root)
        slope = ratio * (1 / w - 1 / np.tan(w)) / root
        t = ((-u - 1j * w) ** n * (1 - 1j * slope)).real if n else 1.0
        return t * np.exp(x * root * np.cos(w) - v * u)

    zero = np.zeros(x.shape)
    return integral(f, zero, zero + math.pi, zero + 64, v, x) / math.pi


def _terms(v: Flat, x: Flat, k: Flat, n: int) -> tuple[Flat, Flat]:
    """Of (x/2)^(2k + v) / (k! Γ(v + k + 1)) the logarithm, and the n-th derivative over itself."""
    b = v + k + 1
    half = np.log(x / 2)
    kappa = [half - digamma(b)] + [-polygamma(float(j), b) for j in range(1, n)]
    return (2 * k + v) * half - gammaln(k + 1) - gammaln(b), bell(kappa, n)


def _series(v: Flat, x: Flat, n: int) -> Flat:
    """Σ (−1)ᵏ (x/2)^(2k + v) / (k! Γ(v + k + 1))."""
    k = np.arange(40.0)
    size, factor = _terms(v[:, None], x[:, None], k, n)
    return np.sum(np.exp(size) * (-1) ** k * factor, axis=1)


@in_double(2)
def jv_slope(v: NDArray[Any], x: NDArray[Any], n: int) -> NDArray[Any]:
    """∂ⁿ/∂vⁿ of the Bessel function J_v(x), x ≥ 0."""
    shape, v, x = v.shape, v.ravel(), x.ravel()
    out, valid = _ends(v, x, n, at_zero=True)
    early = valid & (v > -0.5) & (x * x <= 12 * (v + 1))
    steep = valid & ~early & (v >= x)
    fill(out, early, lambda v, x: _series(v, x, n), v, x)
    fill(out, steep, lambda v, x: _descent(v, x, n), v, x)
    fill(out, valid & ~early & ~steep, lambda v, x: _schlafli(v, x, n), v, x)
    return out.reshape(shape)


@in_double(2)
def yv_slope(v: NDArray[Any], x: NDArray[Any], n: int) -> NDArray[Any]:
    """∂ⁿ/∂vⁿ of the Bessel function of the second kind Y_v(x), x > 0."""
    shape, v, x = v.shape, v.ravel(), x.ravel()

    def wave(t: Any, v: Any, x: Any) -> Any:
        return t**n * _cos(v * t - x * np.sin(t) + math.pi / 2, n)

    def tail(t: Any, v: Any, x: Any) -> Any:
        turned = _by_parts(n, lambda k: _turns(v, k, 0.5), lambda k: (-t) ** k)
        down = -x * np.sinh(t)
        return t**n * np.exp(v * t + down) + turned * np.exp(down - v * t)

    def both(v: Flat, x: Flat) -> Flat:
        zero = np.zeros(x.shape)
        first = integral(wave, zero, zero + math.pi, _waves(x, v), v, x)
        return (first - integral(tail, zero, _reach(x, v), zero + 64, v, x)) / math.pi

    out, valid = _ends(v, x, n, at_zero=False)
    fill(out, valid, both, v, x)
    return out.reshape(shape)


def _ive_wave(v: Flat, x: Flat, n: int) -> Flat:
    def f(t: Any, v: Any, x: Any) -> Any:
        return t**n * _cos(v * t, n) * np.exp(-2 * x * np.sin(t / 2) ** 2)

    zero = np.zeros(x.shape)
    return integral(f, zero, np.minimum(math.pi, 14 / np.sqrt(x)), zero + 24, v, x) / math.pi


def _ive_series(v: Flat, x: Flat, n: int) -> Flat:
    """The terms around the greatest one, which weigh their own derivatives.

    Many terms are smooth in k: so few of them stand for all that their number does not grow with x.
    """
    peak = x / 2 * (x / (np.hypot(v, x) + v))  # half of the root less v, without cancellation
    spread = 10 * np.sqrt(peak) + 24
    step = np.maximum(np.floor(np.sqrt(peak) / 8), 1.0)
    start = np.floor(np.maximum(peak - spread, 0.0))
    count = np.ceil(np.max((peak + spread - start) / step))
    k = start[:, None] + step[:, None] * np.arange(count)
    size, factor = _terms(v[:, None], x[:, None], k, n)
    weight = np.exp(size - np.max(size, axis=1, keepdims=True))
    return _ive(v, x) * np.sum(weight * factor, axis=1) / np.sum(weight, axis=1)


@in_double(2)
def ive_slope(v: NDArray[Any], x: NDArray[Any], n: int) -> NDArray[Any]:
    """∂ⁿ/∂vⁿ of e⁻ˣ I_v(x), x ≥ 0."""
    shape, v, x = v.shape, v.ravel(), x.ravel()
    out, valid = _ends(v, x, n, at_zero=True)
    u = np.abs(v)
    smooth = (x > 30) & (u * u < 10 * x)
    fill(out, valid & smooth, lambda u, x: _ive_wave(u, x, n), u, x)
    fill(out, valid & ~smooth, lambda u, x: _ive_series(u, x, n), u, x)

    def reflected(u: Flat, x: Flat, y: Flat) -> Flat:  # I_u + 2/π sin(πu) K_u, DLMF 10.27.2
        other = _by_parts(n, lambda k: _turns(u, k), lambda k: _kve_slope(u, x, k))
        return (-1) ** n * (y + 2 / math.pi * np.exp(-2 * x) * other)

    fill(out, valid & (v < 0), reflected, u, x, out)
    return out.reshape(shape)


def _kve_slope(v: Flat, x: Flat, n: int) -> Flat:
    """½ ∫ tⁿ exp(−x (cosh t − 1) + vt) dt, folded at 0; v ≥ 0."""
    if n == 0:
        return _kve(v, x)
    root = np.hypot(v, x)
    top = np.arcsinh(v / x)
    ahead = np.arccosh(1 + _DEEP / root)
    back = np.full(x.shape, 1.0)
    for _ in range(60):  # grown until root (cosh d − 1) − v (sinh d − d) is deep
        depth = root * (np.cosh(back) - 1) - v * (np.sinh(back) - back)
        back = np.where(depth < _DEEP, back * 1.15, back)
    low = np.maximum(top - back, 0.0)

    def f(t: Any, v: Any, x: Any) -> Any:
        fold = -np.expm1(-2 * v * t) if n % 2 else 1 + np.exp(-2 * v * t)  # sinh or cosh
        return t**n * np.exp(v * t - x * (np.cosh(t) - 1)) * fold / 2

    return integral(f, low, top + ahead, 0 * x + 32, v, x)


@in_double(2)
def kve_slope(v: NDArray[Any], x: NDArray[Any], n: int) -> NDArray[Any]:
    """∂ⁿ/∂vⁿ of eˣ K_v(x), x > 0."""
    shape, v, x = v.shape, v.ravel(), x.ravel()
    out, valid = _ends(v, x, n, at_zero=False)
    fill(out, valid, lambda u, x: _kve_slope(u, x, n), np.abs(v), x)
    return (np.where(v < 0, (-1.0) ** n, 1.0) * out).reshape(shape)  # even in v
