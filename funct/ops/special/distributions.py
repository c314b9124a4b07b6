"""Chapter: distribution functions and their inverses.

Values are SciPy's. Counts (events, trials, successes) are cut to whole numbers as SciPy cuts them,
k of pdtr, pdtrc, bdtr and bdtrc, bdtri down, the others towards 0; derivatives in counts are 0 and
a count that is none gives NaN. The others are those of the incomplete gamma and beta functions.
"""

from __future__ import annotations

import math
from typing import Any

from funct import ops
from funct.core import Operand, Value
from funct.kernels.special import distributions as kernels
from funct.ops.samples import ordered, ranges
from funct.ops.special.incomplete import moved
from funct.ops.special.room import room

__all__ = [
    "bdtr", "bdtrc", "bdtri", "chdtr", "chdtrc", "chdtri", "fdtr", "fdtrc", "fdtri", "gdtr",
    "gdtrc", "nbdtr", "nbdtrc", "nbdtri", "pdtr", "pdtrc", "pdtri",
]  # fmt: skip

_CHANCE = (0.1, 0.9)


# chi-square and gamma -----------------------------------------------------------------------------


def _chdtr_rule_v(g: Value, v: Value, x: Value) -> Value:
    return g * (0.5 * ops.special.gammainc_slope(0.5 * v, 0.5 * x, 1))


def _chdtr_rule_x(g: Value, v: Value, x: Value) -> Value:
    return g * (0.5 * ops.special.gamma_density(0.5 * v, 0.5 * x))


@room("chdtr", _chdtr_rule_v, _chdtr_rule_x, samples=ranges((0.8, 8.0), (0.6, 9.0)))
def chdtr(v: Operand, x: Operand, /) -> Value:
    """Distribution function of chi-square with v degrees of freedom.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.chdtr(2, xp.asarray(2.0))), 6)  # 1 - exp(-1)
        0.632121
    """


def _chdtrc_rule_v(g: Value, v: Value, x: Value) -> Value:
    return -_chdtr_rule_v(g, v, x)


def _chdtrc_rule_x(g: Value, v: Value, x: Value) -> Value:
    return -_chdtr_rule_x(g, v, x)


@room("chdtrc", _chdtrc_rule_v, _chdtrc_rule_x, samples=ranges((0.8, 8.0), (0.6, 9.0)))
def chdtrc(v: Operand, x: Operand, /) -> Value:
    """1 - chdtr(v, x), without cancellation.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> float(special.chdtrc(2, xp.asarray(200.0))) > 0.0  # exp(-100), where chdtr gives 1
        True
    """


def _chdtri_rule_v(g: Value, ans: Value, v: Value) -> Value:
    slope = ops.special.gammainc_slope(0.5 * v, 0.5 * ans, 1)
    return -g * moved(slope, ops.special.gamma_density(0.5 * v, 0.5 * ans))


def _chdtri_rule_p(g: Value, ans: Value, v: Value) -> Value:
    return -2.0 * g / ops.special.gamma_density(0.5 * v, 0.5 * ans)


@room("chdtri", _chdtri_rule_v, _chdtri_rule_p, samples=ranges((1.2, 8.0), _CHANCE))
def chdtri(v: Operand, p: Operand, /) -> Value:
    """The x with chdtrc(v, x) = p.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.chdtri(1, xp.asarray(0.05))), 4)
        3.8415
    """


def _product(x: Value, y: Value) -> Value:
    """x y, where 0 has no derivative in the other factor: it would be 0 · ∞."""
    return ops.where(ops.equal(y, 0), ops.stop_gradient(x), x) * ops.where(
        ops.equal(x, 0), ops.stop_gradient(y), y
    )


def _gdtr_slope(a: Value, b: Value, x: Value) -> Any:
    """Derivative of gammainc(b, a x) in a; where x alone is 0 by that in log a."""
    flat = ops.equal(x, 0)
    lone = ops.logical_and(flat, ops.not_equal(a, 0))
    shape = ops.where(flat, ops.maximum(b, 1.0), b)  # at 0, 0 poles have no part in it
    slope = ops.where(lone, 1.0, x) * ops.special.gamma_density(shape, _product(a, x))
    still = b * ops.special.gamma_density(b + 1.0, ops.where(lone, a, 1.0) * x)
    return ops.where(lone, still / ops.where(lone, a, 1.0), slope)


def _gdtr_rule_a(g: Value, a: Value, b: Value, x: Value) -> Value:
    return g * _gdtr_slope(a, b, x)


def _gdtr_rule_b(g: Value, a: Value, b: Value, x: Value) -> Value:
    return g * ops.special.gammainc_slope(b, _product(a, x), 1)


def _gdtr_rule_x(g: Value, a: Value, b: Value, x: Value) -> Value:
    return g * _gdtr_slope(x, b, a)


_GAMMA = ranges((0.5, 2.0), (0.4, 4.0), (0.3, 3.0))


@room("gdtr", _gdtr_rule_a, _gdtr_rule_b, _gdtr_rule_x, samples=_GAMMA)
def gdtr(a: Operand, b: Operand, x: Operand, /) -> Value:
    """Distribution function of gamma with rate a and shape b.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.gdtr(2.0, 1.0, xp.asarray(0.5))), 6)  # 1 - exp(-1)
        0.632121
    """


def _gdtrc_rule_a(g: Value, a: Value, b: Value, x: Value) -> Value:
    return -_gdtr_rule_a(g, a, b, x)


def _gdtrc_rule_b(g: Value, a: Value, b: Value, x: Value) -> Value:
    return -_gdtr_rule_b(g, a, b, x)


def _gdtrc_rule_x(g: Value, a: Value, b: Value, x: Value) -> Value:
    return -_gdtr_rule_x(g, a, b, x)


@room("gdtrc", _gdtrc_rule_a, _gdtrc_rule_b, _gdtrc_rule_x, samples=_GAMMA)
def gdtrc(a: Operand, b: Operand, x: Operand, /) -> Value:
    """1 - gdtr(a, b, x), without cancellation.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.gdtrc(2.0, 1.0, xp.asarray(0.5))), 6)  # exp(-1)
        0.367879
    """


# Poisson ------------------------------------------------------------------------------------------


_POISSON = ordered((2, 0, 3, 1), (0.3, 9.0))


def _pdtr_rule_m(g: Value, k: Value, m: Value) -> Value:
    return -g * ops.special.gamma_density(ops.floor(k) + 1.0, m)


@room("pdtr", None, _pdtr_rule_m, samples=_POISSON)
def pdtr(k: Operand, m: Operand, /) -> Value:
    """Distribution function of Poisson with mean m: the chance of at most k events; k >= 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.pdtr(0, xp.asarray(1.0))), 6)  # exp(-1)
        0.367879
    """


def _pdtrc_rule_m(g: Value, k: Value, m: Value) -> Value:
    return -_pdtr_rule_m(g, k, m)


@room("pdtrc", None, _pdtrc_rule_m, samples=_POISSON)
def pdtrc(k: Operand, m: Operand, /) -> Value:
    """1 - pdtr(k, m), without cancellation.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.pdtrc(0, xp.asarray(1.0))), 6)
        0.632121
    """


def _pdtri_rule_y(g: Value, ans: Value, k: Value) -> Value:
    return -g / ops.special.gamma_density(ops.trunc(k) + 1.0, ans)


@room("pdtri", None, _pdtri_rule_y, samples=ordered((2, 0, 3, 1), _CHANCE))
def pdtri(k: Operand, y: Operand, /) -> Value:
    """The m with pdtr(k, m) = y.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.pdtri(0, xp.asarray(0.5))), 6)  # log(2)
        0.693147
    """


# binomial and negative binomial -------------------------------------------------------------------


_TRIALS = ordered((2, 0, 3, 1), (5, 3, 7, 2), _CHANCE)


def _trials(k: Value, n: Value) -> tuple[Any, Any, Any]:
    """Whether 0 <= k < n fails, and the parameters of the incomplete beta function."""
    whole = ops.floor(k)
    rest = ops.trunc(n) - whole
    flat = ops.logical_or(ops.less(whole, 0), ops.less_equal(rest, 0))
    return flat, ops.where(flat, 1.0, whole + 1.0), ops.where(flat, 1.0, rest)


def _bdtrc_rule_p(g: Value, k: Value, n: Value, p: Value) -> Value:
    flat, a, b = _trials(k, n)
    return g * ops.where(flat, 0.0, ops.special.beta_density(a, b, p))


def _bdtr_rule_p(g: Value, k: Value, n: Value, p: Value) -> Value:
    return -_bdtrc_rule_p(g, k, n, p)


@room(kernels.of_trials("bdtr"), None, None, _bdtr_rule_p, samples=_TRIALS)
def bdtr(k: Operand, n: Operand, p: Operand, /) -> Value:
    """Distribution function of binomial: the chance of at most k successes in n of chance p.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.bdtr(1, 3, xp.asarray(0.5))), 6)  # no head or one, of three coins
        0.5
    """


@room(kernels.of_trials("bdtrc"), None, None, _bdtrc_rule_p, samples=_TRIALS)
def bdtrc(k: Operand, n: Operand, p: Operand, /) -> Value:
    """1 - bdtr(k, n, p), without cancellation; 1 for k < 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.bdtrc(1, 3, xp.asarray(0.5))), 6)
        0.5
    """


def _bdtri_rule_y(g: Value, ans: Value, k: Value, n: Value) -> Value:
    flat, a, b = _trials(k, n)
    return -g / ops.where(flat, math.nan, ops.special.beta_density(a, b, ans))


@room(kernels.of_trials("bdtri"), None, None, _bdtri_rule_y, samples=_TRIALS)
def bdtri(k: Operand, n: Operand, y: Operand, /) -> Value:
    """The p with bdtr(k, n, p) = y.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.bdtri(1, 3, xp.asarray(0.5))), 6)
        0.5
    """


def _failures_density(k: Value, n: Value, p: Value) -> Value:
    return ops.special.beta_density(ops.trunc(n), ops.trunc(k) + 1.0, p)


def _nbdtr_rule_p(g: Value, k: Value, n: Value, p: Value) -> Value:
    return g * _failures_density(k, n, p)


@room("nbdtr", None, None, _nbdtr_rule_p, samples=_TRIALS)
def nbdtr(k: Operand, n: Operand, p: Operand, /) -> Value:
    """Distribution function of negative binomial: at most k failures before success n.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.nbdtr(1, 1, xp.asarray(0.5))), 6)
        0.75
    """


def _nbdtrc_rule_p(g: Value, k: Value, n: Value, p: Value) -> Value:
    return -_nbdtr_rule_p(g, k, n, p)


@room("nbdtrc", None, None, _nbdtrc_rule_p, samples=_TRIALS)
def nbdtrc(k: Operand, n: Operand, p: Operand, /) -> Value:
    """1 - nbdtr(k, n, p), without cancellation.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.nbdtrc(1, 1, xp.asarray(0.5))), 6)
        0.25
    """


def _nbdtri_rule_y(g: Value, ans: Value, k: Value, n: Value) -> Value:
    return g / _failures_density(k, n, ans)


@room("nbdtri", None, None, _nbdtri_rule_y, samples=_TRIALS)
def nbdtri(k: Operand, n: Operand, y: Operand, /) -> Value:
    """The p with nbdtr(k, n, p) = y.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.nbdtri(1, 1, xp.asarray(0.75))), 6)
        0.5
    """


# F ------------------------------------------------------------------------------------------------


def _f_parts(n: Any, d: Any, x: Any) -> tuple[Any, Any, Any]:
    """Whether n x < d, and the parts of d and of n x in their sum; 1/2 for the one not taken."""
    up = _product(n, x)
    small = ops.less(up, d)
    whole = d + up
    high = up / (ops.where(ops.equal(x, 0), ops.stop_gradient(d), d) + up)
    return small, ops.where(small, 0.5, d / whole), ops.where(small, high, 0.5)


def _f_slope(n: Any, d: Any, x: Any, of_n: int, of_d: int) -> Any:
    """Derivative of the incomplete beta function in one of its parameters."""
    small, low, high = _f_parts(n, d, x)
    near = ops.special.betainc_slope(0.5 * n, 0.5 * d, high, of_n, of_d)
    far = ops.special.betainc_slope(0.5 * d, 0.5 * n, low, of_d, of_n)
    return ops.where(small, near, -far)


def _f_density(n: Any, d: Any, x: Any) -> Any:
    """Derivative of the incomplete beta function in log x."""
    small, low, high = _f_parts(n, d, x)
    near = n * (1.0 - high) * ops.special.beta_density(0.5 * n + 1.0, 0.5 * d, high)
    far = d * (1.0 - low) * ops.special.beta_density(0.5 * d + 1.0, 0.5 * n, low)
    return ops.where(small, near, far) / (n + d)


def _fdtr_rule_n(g: Value, dfn: Value, dfd: Value, x: Value) -> Value:
    return g * (0.5 * _f_slope(dfn, dfd, x, 1, 0) + _f_density(dfn, dfd, x) / dfn)


def _fdtr_rule_d(g: Value, dfn: Value, dfd: Value, x: Value) -> Value:
    return g * (0.5 * _f_slope(dfn, dfd, x, 0, 1) - _f_density(dfn, dfd, x) / dfd)


def _f_density_x(n: Any, d: Any, x: Any) -> Any:
    """Derivative of the incomplete beta function in x, at 0 too."""
    small, _, high = _f_parts(n, d, x)
    density = ops.special.beta_density(0.5 * n, 0.5 * d, high)
    near = n / d * ops.square(1.0 - high) * density
    return ops.where(small, near, _f_density(n, d, x) / ops.where(small, 1.0, x))


def _fdtr_rule_x(g: Value, dfn: Value, dfd: Value, x: Value) -> Value:
    return g * _f_density_x(dfn, dfd, x)


_F = ranges((1.2, 6.0), (1.2, 6.0), (0.4, 3.0))


@room("fdtr", _fdtr_rule_n, _fdtr_rule_d, _fdtr_rule_x, samples=_F)
def fdtr(dfn: Operand, dfd: Operand, x: Operand, /) -> Value:
    """Distribution function of F with dfn and dfd degrees of freedom.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.fdtr(2, 10, xp.asarray(4.1028))), 4)
        0.95
    """


def _fdtrc_rule_n(g: Value, dfn: Value, dfd: Value, x: Value) -> Value:
    return -_fdtr_rule_n(g, dfn, dfd, x)


def _fdtrc_rule_d(g: Value, dfn: Value, dfd: Value, x: Value) -> Value:
    return -_fdtr_rule_d(g, dfn, dfd, x)


def _fdtrc_rule_x(g: Value, dfn: Value, dfd: Value, x: Value) -> Value:
    return -_fdtr_rule_x(g, dfn, dfd, x)


@room("fdtrc", _fdtrc_rule_n, _fdtrc_rule_d, _fdtrc_rule_x, samples=_F)
def fdtrc(dfn: Operand, dfd: Operand, x: Operand, /) -> Value:
    """1 - fdtr(dfn, dfd, x), without cancellation.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.fdtrc(2, 10, xp.asarray(4.1028))), 4)
        0.05
    """


def _fdtri_rule_n(g: Value, ans: Value, dfn: Value, dfd: Value) -> Value:
    slope = 0.5 * moved(_f_slope(dfn, dfd, ans, 1, 0), _f_density(dfn, dfd, ans))
    return -g * ((slope + 1.0 / dfn) * ans)


def _fdtri_rule_d(g: Value, ans: Value, dfn: Value, dfd: Value) -> Value:
    slope = 0.5 * moved(_f_slope(dfn, dfd, ans, 0, 1), _f_density(dfn, dfd, ans))
    return -g * ((slope - 1.0 / dfd) * ans)


def _fdtri_rule_p(g: Value, ans: Value, dfn: Value, dfd: Value) -> Value:
    return g / _f_density_x(dfn, dfd, ans)


@room(
    "fdtri", _fdtri_rule_n, _fdtri_rule_d, _fdtri_rule_p,
    samples=ranges((1.5, 6.0), (1.5, 6.0), (0.2, 0.8)),
)  # fmt: skip
def fdtri(dfn: Operand, dfd: Operand, p: Operand, /) -> Value:
    """The x with fdtr(dfn, dfd, x) = p.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.fdtri(2, 10, xp.asarray(0.95))), 4)
        4.1028
    """
