"""Chapter: incomplete gamma and beta functions, their inverses and their derivatives.

DLMF chapter 8. Derivatives in the parameters have no closed form; `gammainc_slope` and
`betainc_slope` are all of them, so that every order exists.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from funct import ops
from funct.core import Operand, Value
from funct.kernels.special import incomplete_slopes
from funct.ops.samples import ranges
from funct.ops.special.room import room

__all__ = [
    "beta_density", "betainc", "betainc_slope", "betaincc", "betainccinv", "betaincinv",
    "gamma_density", "gammainc", "gammainc_slope", "gammaincc", "gammainccinv", "gammaincinv",
    "gammaincinv_slope", "moved",
]  # fmt: skip

_GAMMA = ranges((0.4, 4.0), (0.3, 5.0))
_BETA = ranges((0.6, 4.0), (0.6, 4.0), (0.1, 0.9))


def _lifted(lifted: Any, a: Any, n: int, h: Callable[[int], Any]) -> Any:
    """n-th derivative of a h(a), or of h where a is not lifted, from those of h."""
    whole = h(n)
    return ops.where(lifted, a * whole + n * h(n - 1) if n else a * whole, whole)


def _gamma_density_slope(a: Value, x: Value, n: int) -> Value:
    """n-th derivative of the density in a; at a = 0 by 1/Γ(a) = a / Γ(a + 1)."""
    start = ops.logical_and(ops.equal(x, 0), ops.greater(a, 1))  # log(x) is -∞, and loses to x
    nothing = ops.equal(a, 0)
    b, z = ops.where(nothing, a + 1, a), ops.where(start, 1.0, x)
    density = ops.special.gamma_density(b, z) / ops.where(nothing, z, 1.0)
    kappa = [ops.log(z) - ops.special.psi(b)]
    kappa += [-ops.special.polygamma(j, b) for j in range(1, n)]
    inside = _lifted(nothing, a, n, lambda k: density * incomplete_slopes.bell(kappa, k))
    still = (-1.0) ** n * ops.special.gamma_density(a, ops.where(start, x, 1.0))
    return ops.where(start, still, inside)


def _gamma_density_rule_a(g: Value, a: Value, x: Value) -> Value:
    return g * _gamma_density_slope(a, x, 1)


def _gamma_density_rule_x(g: Value, ans: Value, a: Value, x: Value) -> Value:
    # Far below the peak, and for a = 1, by the density of a - 1: what is left of it is the same
    # again, where products with 1 / x are ∞ - ∞ in the next derivatives.
    low = ops.logical_or(ops.equal(a, 1), ops.less(2.0 * x, a - 1))
    lower = ops.special.gamma_density(ops.where(low, a - 1, 1.0), ops.where(low, x, 1.0))
    safe = ops.where(ops.logical_or(low, ops.equal(a, 0)), 1.0, x)  # for a = 0 there is nothing
    return g * ops.where(low, lower - ans, ans * ((a - 1) / safe - 1))


@room(
    incomplete_slopes.gamma_density,
    _gamma_density_rule_a,
    _gamma_density_rule_x,
    samples=ranges((0.4, 20.0), (0.3, 15.0)),
)
def gamma_density(a: Operand, x: Operand, /) -> Value:
    """x**(a - 1) * exp(-x) / gamma(a)."""


def _gammainc_slope_rule_a(g: Value, a: Value, x: Value, n: int) -> Value:
    return g * ops.special.gammainc_slope(a, x, n + 1)


def _gammainc_slope_rule_x(g: Value, a: Value, x: Value, n: int) -> Value:
    return g * _gamma_density_slope(a, x, n)


@room(
    incomplete_slopes.gammainc_slope,
    _gammainc_slope_rule_a,
    _gammainc_slope_rule_x,
    samples=ranges((0.4, 4.0), (0.3, 5.0), params=(1,)),
)
def gammainc_slope(a: Operand, x: Operand, /, n: int) -> Value:
    """n-th derivative of gammainc(a, x) in a."""


def _gammainc_rule_a(g: Value, a: Value, x: Value) -> Value:
    return g * ops.special.gammainc_slope(a, x, 1)


def _gammainc_rule_x(g: Value, a: Value, x: Value) -> Value:
    return g * ops.special.gamma_density(a, x)


@room(
    "gammainc",
    _gammainc_rule_a,
    _gammainc_rule_x,
    samples=_GAMMA,
)
def gammainc(a: Operand, x: Operand, /) -> Value:
    """Regularized lower incomplete gamma function.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.gammainc(1.0, xp.asarray(1.0))), 6)  # 1 - exp(-1)
        0.632121
    """


def _gammaincc_rule_a(g: Value, a: Value, x: Value) -> Value:
    return -g * ops.special.gammainc_slope(a, x, 1)


def _gammaincc_rule_x(g: Value, a: Value, x: Value) -> Value:
    return -g * ops.special.gamma_density(a, x)


@room(
    "gammaincc",
    _gammaincc_rule_a,
    _gammaincc_rule_x,
    samples=_GAMMA,
)
def gammaincc(a: Operand, x: Operand, /) -> Value:
    """Regularized upper incomplete gamma function, 1 - gammainc(a, x).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> x = xp.asarray(100.0)
        >>> float(special.gammaincc(1.0, x)) > 0.0, float(1.0 - special.gammainc(1.0, x))
        (True, 0.0)
    """


def moved(slope: Any, density: Any) -> Any:
    """slope / density, how far a quantile goes.

    0 where the slope is: no parameter moves the ends of a domain.
    """
    still = ops.equal(slope, 0)
    return ops.where(still, 0.0, slope / ops.where(still, 1.0, density))


def gammaincinv_slope(a: Value, x: Value) -> Value:
    """Derivative of a quantile x in a."""
    return -moved(ops.special.gammainc_slope(a, x, 1), ops.special.gamma_density(a, x))


def _gammaincinv_rule_a(g: Value, ans: Value, a: Value) -> Value:
    return g * gammaincinv_slope(a, ans)


def _gammaincinv_rule_p(g: Value, ans: Value, a: Value) -> Value:
    return g / ops.special.gamma_density(a, ans)


@room(
    "gammaincinv",
    _gammaincinv_rule_a,
    _gammaincinv_rule_p,
    samples=ranges((0.6, 4.0), (0.1, 0.9)),
)
def gammaincinv(a: Operand, p: Operand, /) -> Value:
    """The x with gammainc(a, x) = p.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.gammaincinv(1.0, xp.asarray(0.5))), 6)  # log(2)
        0.693147
    """


def _gammainccinv_rule_p(g: Value, ans: Value, a: Value) -> Value:
    return -g / ops.special.gamma_density(a, ans)


@room(
    "gammainccinv",
    _gammaincinv_rule_a,
    _gammainccinv_rule_p,
    samples=ranges((0.6, 4.0), (0.1, 0.9)),
)
def gammainccinv(a: Operand, p: Operand, /) -> Value:
    """The x with gammaincc(a, x) = p.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.gammainccinv(1.0, xp.asarray(0.5))), 6)  # log(2)
        0.693147
    """


def _beta_density_slope(a: Value, b: Value, x: Value, m: int, n: int) -> Value:
    """m-th derivative in a of the n-th in b of the density.

    At a = 0 and b = 0 by 1/B(a, b) = a / ((a + b) B(a + 1, b)), and so for b.
    """
    ends = [  # where a logarithm is -∞, and loses to its factor
        ops.logical_and(ops.equal(x, place), ops.greater(p, 1))
        for place, p, order in ((0, a, m), (1, b, n)) if order
    ]  # fmt: skip
    end = functools.reduce(ops.logical_or, ends)
    z = ops.where(end, 0.5, x)
    of_a, of_b = ops.equal(a, 0), ops.equal(b, 0)
    p, q = ops.where(of_a, a + 1, a), ops.where(of_b, b + 1, b)
    total, lifted = a + b, ops.logical_or(of_a, of_b)
    rest = ops.where(of_a, z, 1.0) * ops.where(of_b, 1 - z, 1.0) * ops.where(lifted, total, 1.0)
    density = ops.special.beta_density(p, q, z) / rest

    def kappa(i: int, j: int) -> Any:
        if i + j == 1:
            if i:
                return ops.log(z) - ops.special.betaln_slope(p, ops.where(of_a, b - 1, b))
            return ops.log1p(-z) - ops.special.betaln_slope(q, ops.where(of_b, a - 1, a))
        both: Any = ops.special.polygamma(i + j - 1, total)
        if i and j:
            return both
        return both - ops.special.polygamma(i + j - 1, p if i else q)

    def row(j: int) -> Any:
        return _lifted(of_a, a, m, lambda i: density * incomplete_slopes.bell2(kappa, i, j))

    still = (-1.0) ** (m + n) * ops.special.beta_density(a, b, ops.where(end, x, 0.5))
    return ops.where(end, still, _lifted(of_b, b, n, row))


def _beta_density_rule_a(g: Value, a: Value, b: Value, x: Value) -> Value:
    return g * _beta_density_slope(a, b, x, 1, 0)


def _beta_density_rule_b(g: Value, a: Value, b: Value, x: Value) -> Value:
    return g * _beta_density_slope(a, b, x, 0, 1)


def _steeper(a: Value, b: Value, x: Value, low: Value) -> Value:
    """a + b - 1 times the density for a - 1, where x is low."""
    p, q = ops.where(low, a - 1, 1.0), ops.where(low, b, 1.0)
    return (p + q) * ops.special.beta_density(p, q, ops.where(low, x, 0.5))


def _is_low(a: Value, b: Value, x: Value) -> Value:
    """Where x is far below the peak, and all for a = 1."""
    return ops.logical_or(ops.equal(a, 1), ops.less(2.0 * x * (a + b), a - 1))


def _beta_density_rule_x(g: Value, ans: Value, a: Value, b: Value, x: Value) -> Value:
    some = ops.greater(a * b, 0)  # else all is at one end
    left = ops.logical_and(some, _is_low(a, b, x))  # products with 1 / x would be ∞ - ∞
    right = ops.logical_and(some, _is_low(b, a, 1 - x))
    lower, upper = _steeper(a, b, x, left), _steeper(b, a, 1 - x, right)
    zero = ops.equal(ans, 0)
    at_left = ops.logical_or(left, ops.logical_and(zero, ops.equal(x, 0)))
    at_right = ops.logical_or(right, ops.logical_and(zero, ops.equal(x, 1)))
    rise = ops.where(at_left, 0.0, (a - 1) / ops.where(at_left, 1.0, x))
    fall = ops.where(at_right, 0.0, (b - 1) / (1 - ops.where(at_right, 0.0, x)))
    return g * (ans * (rise - fall) + ops.where(left, lower, 0.0) - ops.where(right, upper, 0.0))


@room(
    incomplete_slopes.beta_density,
    _beta_density_rule_a,
    _beta_density_rule_b,
    _beta_density_rule_x,
    samples=_BETA,
)
def beta_density(a: Operand, b: Operand, x: Operand, /) -> Value:
    """x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)."""


def _betainc_slope_rule_a(g: Value, a: Value, b: Value, x: Value, m: int, n: int) -> Value:
    return g * ops.special.betainc_slope(a, b, x, m + 1, n)


def _betainc_slope_rule_b(g: Value, a: Value, b: Value, x: Value, m: int, n: int) -> Value:
    return g * ops.special.betainc_slope(a, b, x, m, n + 1)


def _betainc_slope_rule_x(g: Value, a: Value, b: Value, x: Value, m: int, n: int) -> Value:
    return g * _beta_density_slope(a, b, x, m, n)


@room(
    incomplete_slopes.betainc_slope,
    _betainc_slope_rule_a,
    _betainc_slope_rule_b,
    _betainc_slope_rule_x,
    samples=ranges((0.6, 4.0), (0.6, 4.0), (0.1, 0.9), params=(1, 0)),
)
def betainc_slope(a: Operand, b: Operand, x: Operand, /, m: int, n: int) -> Value:
    """m-th derivative in a of the n-th in b of betainc(a, b, x)."""


def _betainc_rule_a(g: Value, a: Value, b: Value, x: Value) -> Value:
    return g * ops.special.betainc_slope(a, b, x, 1, 0)


def _betainc_rule_b(g: Value, a: Value, b: Value, x: Value) -> Value:
    return g * ops.special.betainc_slope(a, b, x, 0, 1)


def _betainc_rule_x(g: Value, a: Value, b: Value, x: Value) -> Value:
    return g * ops.special.beta_density(a, b, x)


@room(
    "betainc",
    _betainc_rule_a,
    _betainc_rule_b,
    _betainc_rule_x,
    samples=_BETA,
)
def betainc(a: Operand, b: Operand, x: Operand, /) -> Value:
    """Regularized incomplete beta function.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.betainc(2.0, 2.0, xp.asarray(0.5))), 6)
        0.5
    """


def _betaincc_rule_a(g: Value, a: Value, b: Value, x: Value) -> Value:
    return -_betainc_rule_a(g, a, b, x)


def _betaincc_rule_b(g: Value, a: Value, b: Value, x: Value) -> Value:
    return -_betainc_rule_b(g, a, b, x)


def _betaincc_rule_x(g: Value, a: Value, b: Value, x: Value) -> Value:
    return -_betainc_rule_x(g, a, b, x)


@room(
    "betaincc",
    _betaincc_rule_a,
    _betaincc_rule_b,
    _betaincc_rule_x,
    samples=_BETA,
)
def betaincc(a: Operand, b: Operand, x: Operand, /) -> Value:
    """1 - betainc(a, b, x), without cancellation.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.betaincc(2.0, 1.0, xp.asarray(0.5))), 6)
        0.75
    """


def _betaincinv_rule_a(g: Value, ans: Value, a: Value, b: Value) -> Value:
    slope = ops.special.betainc_slope(a, b, ans, 1, 0)
    return -g * moved(slope, ops.special.beta_density(a, b, ans))


def _betaincinv_rule_b(g: Value, ans: Value, a: Value, b: Value) -> Value:
    slope = ops.special.betainc_slope(a, b, ans, 0, 1)
    return -g * moved(slope, ops.special.beta_density(a, b, ans))


def _betaincinv_rule_p(g: Value, ans: Value, a: Value, b: Value) -> Value:
    return g / ops.special.beta_density(a, b, ans)


@room(
    "betaincinv",
    _betaincinv_rule_a,
    _betaincinv_rule_b,
    _betaincinv_rule_p,
    samples=_BETA,
)
def betaincinv(a: Operand, b: Operand, p: Operand, /) -> Value:
    """The x with betainc(a, b, x) = p.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.betaincinv(2.0, 1.0, xp.asarray(0.25))), 6)
        0.5
    """


def _betainccinv_rule_p(g: Value, ans: Value, a: Value, b: Value) -> Value:
    return -_betaincinv_rule_p(g, ans, a, b)


@room(
    "betainccinv",
    _betaincinv_rule_a,
    _betaincinv_rule_b,
    _betainccinv_rule_p,
    samples=_BETA,
)
def betainccinv(a: Operand, b: Operand, p: Operand, /) -> Value:
    """The x with betaincc(a, b, x) = p.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.betainccinv(2.0, 1.0, xp.asarray(0.75))), 6)
        0.5
    """
