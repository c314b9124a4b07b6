"""Derivatives of the incomplete gamma and beta functions in their parameters, to any order.

With the substitutions t = eᵘ and t = 1/(1 + e⁻ᵘ) the integrals (DLMF 8.2.4, 8.17.2) become those
of smooth functions that decay exponentially; differentiated under the sign they gain a polynomial
in log t. The parts below and above x differ in sign alone: the one whose integrand keeps its sign
is taken, so that nothing cancels. Quadrature: Takahasi and Mori, Double exponential formulas for
numerical integration, 1974.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.special.functions import by_name, in_double
from funct.kernels.special.gamma import digamma, gammaln
from funct.kernels.special.zeta import polygamma

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "bell", "bell2", "beta_density", "betainc_slope", "betaln_slope", "fill", "gamma_density",
    "gammainc_slope",
]  # fmt: skip

_betaln = by_name("betaln", 2)
_CHUNK = 4096  # elements whose nodes are held at once


@functools.cache
def _nodes() -> tuple[NDArray[Any], NDArray[Any]]:
    step = 1 / 20
    tau = np.arange(-80, 48) * step
    s = np.exp(math.pi / 2 * np.sinh(tau))
    return s, step * math.pi / 2 * np.cosh(tau) * s


@functools.cache
def _panels() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Points and weights of a panel, and the ends of ever longer ones."""
    ends = np.concatenate([np.arange(17) / 2, 2.0 ** np.arange(4, 11)])
    return *np.polynomial.legendre.leggauss(16), ends


def _half_line(
    f: Callable[..., Any], start: NDArray[Any] | float, scale: NDArray[Any], *args: NDArray[Any]
) -> NDArray[Any]:
    """Integral over s > start of f(s, *args), which decays on the given scale; flat arrays."""
    s, w = _nodes()
    y = f((start + s.reshape(-1, 1) * scale).T, *[a[:, None] for a in args])  # (elements, nodes)
    integral: NDArray[Any] = (np.where(np.isfinite(y), y, 0.0) @ w) * scale
    return integral


def _plateau(f: Callable[..., Any], end: NDArray[Any], *args: NDArray[Any]) -> NDArray[Any]:
    """Integral over 0 < s < end of f(s, *args), which bends within a few units of the end."""
    x, w, ends = _panels()
    total, last = np.zeros(end.shape), end.max(initial=0.0)
    for low, most in itertools.pairwise(ends):
        if low >= last:
            break
        length = np.clip(end - low, 0.0, most - low)
        s = (end - low)[:, None] - length[:, None] * (x + 1) / 2
        y = f(s, *[a[:, None] for a in args])
        total += (np.where(np.isfinite(y), y, 0.0) @ w) * length / 2
    return total


def fill(
    out: NDArray[Any], where: NDArray[Any], method: Callable[..., Any], *args: NDArray[Any]
) -> None:
    """out[where] = method(*args[where]), a few thousand elements at a time; flat arrays."""
    at = np.flatnonzero(where)
    for k in range(0, at.size, _CHUNK):
        part = at[k : k + _CHUNK]
        out[part] = method(*[a[part] for a in args])


def bell(kappa: list[Any], n: int) -> Any:
    """n-th derivative at 0 of exp(Σ κⱼ εʲ / j!): the complete Bell polynomial."""
    found: list[Any] = [1.0]
    for m in range(n):
        found.append(sum(math.comb(m, k) * found[m - k] * kappa[k] for k in range(m + 1)))
    return found[n]


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _log1p_minus(u: NDArray[Any]) -> NDArray[Any]:
    """log(1 + u) − u without cancellation."""
    r = u / (2 + u)
    series = np.zeros_like(u)
    for k in range(20, -1, -1):
        series = series * r * r + 1 / (2 * k + 3)
    return np.where(np.abs(u) < 0.5, 2 * r**3 * series - r * u, np.log1p(u) - u)


@in_double(2)
def gamma_density(a: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """xᵃ⁻¹ e⁻ˣ / Γ(a), the density of the gamma distribution.

    For large a by Stirling's series around x = a. Source: Loader, Fast and accurate computation of
    binomial probabilities, 2000; DLMF 5.11.1.
    """
    plain = np.exp((a - 1) * np.log(x) - x - gammaln(a))
    rest = np.zeros_like(a)
    for c in reversed(_STIRLING):
        rest = rest / (a * a) + c
    scaled = a * _log1p_minus((x - a) / a) - rest / a
    large = np.exp(scaled) * np.sqrt(a / (2 * math.pi)) / x
    at_zero = np.where(a > 1, 0.0, np.where(a == 1, 1.0, np.inf))
    y = np.where(a > 10, large, plain)
    y = np.where(x == np.inf, 0.0, np.where(x == 0, at_zero, y))
    y = np.where((a == 0) | ((a == np.inf) & (x < np.inf)), 0.0, y)  # all is at 0, or at infinity
    return np.where((x >= 0) & (a >= 0), y, np.nan)


def _gamma_series(a: Any, x: Any, n: int) -> Any:
    """Term by term from xᵃ e⁻ˣ Σ xᵏ / Γ(a + k + 1), DLMF 8.7.1; for x ≤ 1.5."""
    a, x = a[:, None], x[:, None]
    k = np.arange(24.0)
    b = a + k + 1
    kappa = [np.log(x) - digamma(b)] + [-polygamma(float(j), b) for j in range(1, n)]
    term = np.exp((a + k) * np.log(x) - x - gammaln(b)) * bell(kappa, n)
    return np.sum(term[:, ::-1], axis=1)


def _gamma_part(a: Any, x: Any, n: int) -> Any:
    """By quadrature over log t on the side of x where log t − ψ(a) keeps its sign.

    1/Γ(a) is a / Γ(a + 1), whose derivatives do not cancel near a = 0.
    """
    sign = np.where(np.log(x) > digamma(a), 1.0, -1.0)
    psi = digamma(a + 1)
    rest = [-polygamma(float(j), a + 1) for j in range(1, n)]

    def f(s: Any, a: Any, x: Any, psi: Any, sign: Any, *rest: Any) -> Any:
        u = sign * s
        kappa = [np.log(x) + u - psi, *rest]
        return np.exp(a * u - x * np.expm1(u)) * (a * bell(kappa, n) + n * bell(kappa, n - 1))

    scale = 1 / (np.abs(x - a) + np.sqrt(x))
    return -sign * gamma_density(a + 1, x) * _half_line(f, 0.0, scale, a, x, psi, sign, *rest)


@in_double(2)
def gammainc_slope(a: NDArray[Any], x: NDArray[Any], n: int) -> NDArray[Any]:
    """∂ⁿ/∂aⁿ of the regularized lower incomplete gamma function P(a, x), n ≥ 1, a ≥ 0."""
    shape, a, x = a.shape, a.ravel(), x.ravel()
    inside = (a >= 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    end = (x == 0) | ((x == np.inf) != (a == np.inf))
    flat = np.where((a >= 0) & (x >= 0) & end, 0.0, np.nan)
    fill(flat, inside & (x <= 1.5), lambda a, x: _gamma_series(a, x, n), a, x)
    fill(flat, inside & (x > 1.5), lambda a, x: _gamma_part(a, x, n), a, x)
    return flat.reshape(shape)


_B2K = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


@in_double(2)
def betaln_slope(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """∂/∂a log |B(a, b)| = ψ(a) − ψ(a + b), without the cancellation for b ≪ a.

    Ten steps of ψ(a) = ψ(a + 1) − 1/a, then the differences of the asymptotic series, DLMF 5.11.2.
    Left of 0 both are reflected, DLMF 5.5.4: their poles cancel for whole b.
    """
    left = ((a <= 0) | (a + b <= 0)) & (a < 1) & (a + b < 1)
    p, q = np.where(left, 1 - a, a), np.where(left, -b, b)
    total = np.zeros_like(a)
    c = np.array(p)
    for _ in range(10):
        total -= q / (c * (c + q))
        c += 1.0
    ratio = np.log1p(q / c)
    total -= ratio + q / (2 * c * (c + q))
    for k, coefficient in enumerate(_B2K, 1):
        total += coefficient * c ** (-2.0 * k) * np.expm1(-2 * k * ratio)
    total = np.where((p > 0) & (p + q > 0), total, digamma(a) - digamma(a + b))
    wave = math.pi * _sine(b) / (_sine(a) * _sine(a + b))
    return np.where(left & (b != np.rint(b)), total - wave, total)


def _sine(x: NDArray[Any]) -> NDArray[Any]:
    """sin(πx), of large x too."""
    return np.sin(math.pi * (x - 2 * np.rint(x / 2)))


def bell2(kappa: Callable[[int, int], Any], m: int, n: int) -> Any:
    """∂ᵐ⁺ⁿ at 0 of exp(Σ κᵢⱼ εᵢ δʲ / (i! j!))."""
    found: dict[tuple[int, int], Any] = {(0, 0): 1.0}
    for p in range(m + 1):
        for q in range(n + 1):
            if p:  # one derivative in ε is taken last
                found[p, q] = sum(
                    math.comb(p - 1, i) * math.comb(q, j) * found[p - 1 - i, q - j]
                    * kappa(i + 1, j) for i in range(p) for j in range(q + 1)
                )  # fmt: skip
            elif q:
                found[p, q] = sum(
                    math.comb(q - 1, j) * found[0, q - 1 - j] * kappa(0, j + 1) for j in range(q)
                )
    return found[m, n]


@in_double(3)
def beta_density(a: NDArray[Any], b: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b), the density of the beta distribution."""
    left = np.where(a == 1, 0.0, (a - 1) * np.log(x))
    right = np.where(b == 1, 0.0, (b - 1) * np.log1p(-x))
    y = np.exp(left + right - _betaln(a, b))
    y = np.where((a == 0) != (b == 0), 0.0, y)  # all is at one end
    return np.where((x >= 0) & (x <= 1) & (a >= 0) & (b >= 0), y, np.nan)


def _beta_part(a: Any, b: Any, x: Any, m: int, n: int) -> Any:
    """By quadrature over logit t, on the side of x that is farther from the mean.

    As far as the integrand is flat, for parameters below 1, and around its knee, by panels.
    1/B(a, b) is a / ((a + b) B(a + 1, b)), whose derivatives do not cancel near a = 0.
    """
    total = a + b
    log_x, log_y = np.log(x), np.log1p(-x)
    if m and n:
        below = x * total < a
    else:  # the logarithm that is averaged keeps its sign
        below = log_x < betaln_slope(a, b) if m else log_y > betaln_slope(b, a)
    small = a < b  # which of the two is the factor
    factor, p, q = np.minimum(a, b), a + small, b + ~small
    first, y = np.where(below, a, b), np.where(below, x, 1 - x)
    rest = np.where(below, 1 - x, x)
    orders = {
        (i, j): -(
            (polygamma(float(i - 1), p) if j == 0 else 0.0)
            + (polygamma(float(j - 1), q) if i == 0 else 0.0)
            - polygamma(float(i + j - 1), total)
        )
        for i in range(m + 1) for j in range(n + 1) if i + j > 1
    }  # fmt: skip
    keys = list(orders)

    def f(
        s: Any, first: Any, total: Any, y: Any, rest: Any, below: Any, small: Any, factor: Any,
        p: Any, q: Any, *others: Any,
    ) -> Any:  # fmt: skip
        bend = np.where(rest < 0.5, np.log(rest + y * np.exp(-s)), np.log1p(y * np.expm1(-s)))
        known = dict(zip(keys, others, strict=True))
        known[1, 0] = p - bend - np.where(below, s, 0.0)
        known[0, 1] = q - bend - np.where(below, 0.0, s)

        def polynomial(i: int, j: int) -> Any:
            return bell2(lambda i, j: known[i, j], i, j)

        fewer = np.where(
            small, m * polynomial(m - 1, n) if m else 0.0, n * polynomial(m, n - 1) if n else 0.0
        )
        return np.exp(-first * s - total * bend) * (factor * polynomial(m, n) + fewer)

    # from the odds of y's complement that are e⁶ / (1 + a + b) on, nothing bends any more
    end = 6 - np.log1p(total) - np.where(below, log_y - log_x, log_x - log_y)
    scale = 1 / (np.abs(first - total * y) + np.sqrt(total * y * (1 - y)))
    end = np.where(scale > 1, np.maximum(end, 0.0), 0.0)
    there = np.where(end > 0, 1 / (1 + math.exp(6) / (1 + total)), y)
    after = 1 / (np.abs(first - total * there) + np.sqrt(total * there * (1 - there)))
    after = np.where(first < 1, np.maximum(after, 1 / first), after)
    known = (
        first, total, y, rest, below, small, factor,
        log_x - betaln_slope(p, b - small), log_y - betaln_slope(q, a - ~small), *orders.values(),
    )  # fmt: skip
    whole = _half_line(f, end, after, *known)
    long = np.flatnonzero(end > 0)
    whole[long] += _plateau(f, end[long], *[v[long] for v in known])
    mass = np.exp(a * log_x + b * log_y - _betaln(p, q)) / total
    return np.where(below, mass, -mass) * whole


@in_double(3)
def betainc_slope(
    a: NDArray[Any], b: NDArray[Any], x: NDArray[Any], m: int, n: int
) -> NDArray[Any]:
    """∂ᵐ⁺ⁿ/∂aᵐ∂bⁿ of the regularized incomplete beta function I_x(a, b), m + n ≥ 1, a + b > 0."""
    if min(m, n) < 0 or m + n < 1:
        raise ValueError(f"there is no derivative of order {m}, {n}")
    shape, a, b, x = a.shape, a.ravel(), b.ravel(), x.ravel()
    valid = (a >= 0) & (b >= 0) & (a + b > 0) & np.isfinite(a) & np.isfinite(b)
    flat = np.where(valid & ((x == 0) | (x == 1)), 0.0, np.nan)
    inside = valid & (x > 0) & (x < 1)
    fill(flat, inside, lambda a, b, x: _beta_part(a, b, x, m, n), a, b, x)
    return flat.reshape(shape)
