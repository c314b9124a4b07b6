"""Chapter: gamma, beta and zeta functions. Derivatives from DLMF chapters 5 and 25."""

from __future__ import annotations

import math

from funct import ops
from funct.core import Absent, Operand, Value
from funct.kernels.special import gamma as kernels
from funct.kernels.special import incomplete_slopes
from funct.kernels.special import zeta as zeta_kernels
from funct.ops.samples import ordered, ranges, reals
from funct.ops.special.room import room

__all__ = [
    "beta", "betaln", "betaln_slope", "binom", "gamma", "gammaln", "gammasgn", "loggamma", "poch",
    "polygamma", "psi", "rgamma", "riemann_slope", "riemann_zeta", "zeta", "zeta_slope",
    "zetac",
]  # fmt: skip

_POSITIVE = reals(0.3, 4.0, complex_too=True)


def _gamma_rule(g: Value, ans: Value, x: Value) -> Value:
    return g * (ans * ops.special.psi(x))


@room("gamma", _gamma_rule, samples=_POSITIVE)
def gamma(x: Operand, /) -> Value:
    """Gamma function.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.gamma(xp.asarray(5.0))), 9)  # 4!
        24.0
    """


def _gammaln_rule(g: Value, x: Value) -> Value:
    return g * ops.special.psi(x)


@room(kernels.gammaln, _gammaln_rule, samples=reals(-0.9, -0.1), stable=True)
def gammaln(x: Operand, /) -> Value:
    """log(abs(gamma(x))) of real x.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.gammaln(xp.asarray(1000.0))), 4)  # gamma(1000) overflows
        5905.2204
    """


@room("loggamma", _gammaln_rule, samples=_POSITIVE)
def loggamma(x: Operand, /) -> Value:
    """Principal branch of the logarithm of the gamma function; NaN for real x < 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> y = special.loggamma(xp.asarray(-0.5 + 0j))
        >>> round(float(xp.real(y)), 6), round(float(xp.imag(y)), 6)
        (1.265512, -3.141593)
    """


@room("gammasgn", None, samples=reals(-2.9, 2.0))
def gammasgn(x: Operand, /) -> Value:
    """Sign of the gamma function; piecewise constant.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.gammasgn(xp.asarray([0.5, -0.5, -1.5])).tolist()
        [1.0, -1.0, 1.0]
    """


def _rgamma_slope(x: Value) -> Value:
    """Derivative of 1/Γ; left of 1/2 by reflection, DLMF 5.5.3, because ψ has poles there."""
    left = ops.less(ops.real(x), 0.5)
    a = ops.where(left, x, 0.25)
    b = ops.where(left, 1.0, x)
    wave = ops.special.psi(1.0 - a) * ops.sin(math.pi * a) / math.pi - ops.cos(math.pi * a)
    return ops.where(
        left, -ops.special.gamma(1.0 - a) * wave, -ops.special.rgamma(b) * ops.special.psi(b)
    )


def _rgamma_rule(g: Value, x: Value) -> Value:
    return g * _rgamma_slope(x)


@room("rgamma", _rgamma_rule, samples=reals(-2.4, 3.0), end=(math.inf, 0.0))
def rgamma(x: Operand, /) -> Value:
    """1 / gamma(x), an entire function: 0 at 0, -1, -2, …, with a finite derivative there.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.rgamma(xp.asarray([-1.0, 0.0, 3.0])).tolist()
        [0.0, 0.0, 0.5]
    """


def _psi_rule(g: Value, x: Value) -> Value:
    return g * ops.special.polygamma(1, x)


@room(kernels.digamma, _psi_rule, samples=_POSITIVE, stable=True)
def psi(x: Operand, /) -> Value:
    """Digamma function, the derivative of loggamma.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.digamma(xp.asarray(1.0))), 6)  # minus Euler's constant
        -0.577216
    """


def _polygamma_rule(g: Value, n: Operand, x: Value) -> Value:
    return g * ops.special.polygamma(n + 1, x)


@room(
    zeta_kernels.polygamma,
    Absent("the order is an integer"),
    _polygamma_rule,
    samples=ordered((1, 0, 2, 3), (0.3, 4.0)),
)
def polygamma(n: Operand, x: Operand, /) -> Value:
    """n-th derivative of the digamma function, n = 0, 1, 2, …

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.polygamma(1, xp.asarray(1.0))), 6)  # pi**2 / 6
        1.644934
    """


def _betaln_rule_a(g: Value, a: Value, b: Value) -> Value:
    return g * ops.special.betaln_slope(a, b)


def _betaln_rule_b(g: Value, a: Value, b: Value) -> Value:
    return g * ops.special.betaln_slope(b, a)


def _betaln_slope_rule_a(g: Value, a: Value, b: Value) -> Value:
    cancel = _whole(b)
    for v in (a, a + b):
        cancel = ops.logical_and(cancel, ops.logical_and(_whole(v), ops.less_equal(v, 0)))
    first, second = (  # there by reflection, DLMF 5.15.6: the poles are equal
        ops.special.polygamma(1, ops.where(cancel, 1.0 - v, v)) for v in (a, a + b)
    )
    return g * ops.where(cancel, second - first, first - second)


def _betaln_slope_rule_b(g: Value, a: Value, b: Value) -> Value:
    return -g * ops.special.polygamma(1, a + b)


_TWO = ranges((0.3, 4.0), (0.3, 4.0))


@room(
    incomplete_slopes.betaln_slope,
    _betaln_slope_rule_a,
    _betaln_slope_rule_b,
    samples=_TWO,
)
def betaln_slope(a: Operand, b: Operand, /) -> Value:
    """psi(a) - psi(a + b), without cancellation."""


@room(
    "betaln",
    _betaln_rule_a,
    _betaln_rule_b,
    samples=_TWO,
)
def betaln(a: Operand, b: Operand, /) -> Value:
    """log(abs(beta(a, b))).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.betaln(xp.asarray(1000.0), 1000.0)), 4)  # beta underflows
        -1388.4826
    """


def _whole(x: Value) -> Value:
    return ops.equal(x, ops.floor(x))


def _beside(x: Value) -> Value:
    """How far x is from a whole number."""
    return ops.abs(x - ops.round(x))


def _wave(x: Value) -> tuple[Value, Value]:
    """sin(πx) and π cos(πx), of large x too."""
    angle = math.pi * (x - 2.0 * ops.round(0.5 * x))
    return ops.sin(angle), math.pi * ops.cos(angle)


def _beta_slope(ans: Value, a: Value, b: Value) -> Value:
    """∂B/∂a; around its zeros a + b = 0, -1, … by reflection, DLMF 5.5.3."""
    left = ops.logical_and(ops.less_equal(a + b, 0), ops.less(_beside(a + b), _beside(a)))
    p, q = ops.where(left, a, 0.5), ops.where(left, b, -1.2)
    rest = 1.0 - p - q
    (top, top_slope), (bottom, bottom_slope) = _wave(p + q), _wave(p)
    inner = ops.special.betaln_slope(rest, q) + bottom_slope / bottom
    mirrored = ops.special.beta(q, rest) / bottom * (top_slope - top * inner)
    a, b = ops.where(left, 1.0, a), ops.where(left, 1.0, b)
    return ops.where(left, mirrored, ops.where(left, 1.0, ans) * ops.special.betaln_slope(a, b))


def _beta_rule_a(g: Value, ans: Value, a: Value, b: Value) -> Value:
    return g * _beta_slope(ans, a, b)


def _beta_rule_b(g: Value, ans: Value, a: Value, b: Value) -> Value:
    return g * _beta_slope(ans, b, a)


@room("beta", _beta_rule_a, _beta_rule_b, samples=_TWO)
def beta(a: Operand, b: Operand, /) -> Value:
    """Beta function, gamma(a) * gamma(b) / gamma(a + b).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.beta(xp.asarray(2.0), 3.0)), 6)  # 1 / 12
        0.083333
    """


def _poch_rule_z(g: Value, ans: Value, z: Value, m: Value) -> Value:
    top = z + m
    pole = ops.logical_and(ops.less_equal(top, 0), _whole(top))
    zero = ops.logical_or(ops.greater(top, 0), _whole(z))
    near = ops.logical_and(ops.less_equal(z, 0), ops.logical_and(zero, ops.logical_not(pole)))
    p, q = ops.where(near, z, -0.5), ops.where(near, top, 0.5)  # 1/Γ(z) is 0 or near it
    close = ops.where(near, ans, 0.0) * ops.special.psi(q) + ops.special.gamma(q) * _rgamma_slope(p)
    z, m = ops.where(near, 1.0, z), ops.where(near, 1.0, m)
    return g * ops.where(near, close, -ops.where(near, 1.0, ans) * ops.special.betaln_slope(z, m))


def _poch_rule_m(g: Value, ans: Value, z: Value, m: Value) -> Value:
    return g * (ans * ops.special.psi(z + m))


@room("poch", _poch_rule_z, _poch_rule_m, samples=_TWO)
def poch(z: Operand, m: Operand, /) -> Value:
    """Rising factorial gamma(z + m) / gamma(z).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> float(special.poch(xp.asarray(2.0), 3.0))  # 2 · 3 · 4
        24.0
    """


def _beyond(n: Value, k: Value) -> tuple[Value, Value]:
    """Derivatives of binom for k > n, DLMF 5.5.3: B(n + 1, k - n) sin(π (n - k + 1)) / π."""
    wave, slope = _wave(n - k + 1)
    size = ops.special.beta(n + 1, k - n) / math.pi
    middle = ops.special.psi(k - n)
    of_n = size * ((ops.special.psi(n + 1) - middle) * wave + slope)
    return of_n, size * ((middle - ops.special.psi(k + 1)) * wave - slope)


def _binom_slopes(ans: Value, n: Value, k: Value) -> tuple[Value, Value]:
    """Derivatives in n and k. 1/Γ is 0 at the poles of ψ, and its derivative is not."""
    psi, rgamma = ops.special.psi, ops.special.rgamma
    above, below = ops.less_equal(n - k + 1, 0), ops.less_equal(k + 1, 0)
    both = ops.logical_and(above, below)
    beyond = ops.logical_and(ops.logical_or(above, below), ops.logical_not(both))
    x, y = ops.where(beyond, n, 0.5), ops.where(beyond, ops.where(below, n - k, k), 1.7)
    in_n, in_k = _beyond(x, y)  # binom(n, k) = binom(n, n - k)
    in_n, in_k = ops.where(below, in_n + in_k, in_n), ops.where(below, -in_k, in_k)
    p, q, r = (ops.where(both, v, 0.5) for v in (k + 1, n - k + 1, n + 1))
    outer = ops.special.gamma(r)
    left, right = rgamma(p) * _rgamma_slope(q), _rgamma_slope(p) * rgamma(q)
    far = outer * (rgamma(p) * rgamma(q) * psi(r) + left), outer * (right - left)
    inside = ops.logical_not(ops.logical_or(above, below))
    n, k, ans = ops.where(inside, n, 1.0), ops.where(inside, k, 0.5), ops.where(inside, ans, 1.0)
    rest = n - k + 1
    near = -ans * ops.special.betaln_slope(rest, k), ans * (psi(rest) - psi(k + 1))
    of_n, of_k = (
        ops.where(inside, a, ops.where(both, b, c))
        for a, b, c in zip(near, far, (in_n, in_k), strict=True)
    )
    return of_n, of_k


def _binom_rule_n(g: Value, ans: Value, n: Value, k: Value) -> Value:
    return g * _binom_slopes(ans, n, k)[0]


def _binom_rule_k(g: Value, ans: Value, n: Value, k: Value) -> Value:
    return g * _binom_slopes(ans, n, k)[1]


@room(
    "binom",
    _binom_rule_n,
    _binom_rule_k,
    samples=ranges((2.0, 5.0), (-1.7, 6.6)),
)
def binom(n: Operand, k: Operand, /) -> Value:
    """Binomial coefficient of real n and k.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.binom(xp.asarray([5.0, 0.5]), 2.0).tolist()
        [10.0, -0.125]
    """


def _zeta_rule_s(g: Value, s: Value, q: Value) -> Value:
    return g * ops.special.zeta_slope(s, q, 1)


def _zeta_rule_q(g: Value, s: Value, q: Value) -> Value:
    return -g * (s * ops.special.zeta(s + 1, q))


@room(
    "zeta",
    _zeta_rule_s,
    _zeta_rule_q,
    samples=ranges((1.3, 4.0), (0.4, 3.0)),
)
def zeta(s: Operand, q: Operand, /) -> Value:
    """Hurwitz zeta function, the sum of 1 / (k + q)**s over k = 0, 1, …; s > 1."""


def _zeta_slope_rule_s(g: Value, s: Value, q: Value, n: int) -> Value:
    return g * ops.special.zeta_slope(s, q, n + 1)


def _zeta_slope_rule_q(g: Value, s: Value, q: Value, n: int) -> Value:
    s1 = s + 1
    lower = ops.special.zeta_slope(s1, q, n - 1) if n > 1 else ops.special.zeta(s1, q)
    return -g * (s * ops.special.zeta_slope(s1, q, n) + n * lower)


@room(
    zeta_kernels.zeta_slope,
    _zeta_slope_rule_s,
    _zeta_slope_rule_q,
    samples=ranges((1.3, 4.0), (0.4, 3.0), params=(1,)),
)
def zeta_slope(s: Operand, q: Operand, /, n: int) -> Value:
    """n-th derivative of the Hurwitz zeta function in s."""


def _riemann_zeta_rule(g: Value, s: Value) -> Value:
    return g * ops.special.riemann_slope(s, 1)


@room(
    "zeta",
    _riemann_zeta_rule,
    samples=reals(-5.0, -0.5, complex_too=True),
)
def riemann_zeta(s: Operand, /) -> Value:
    """Riemann zeta function, of negative and complex s too."""


@room("zetac", _riemann_zeta_rule, samples=reals(1.5, 5.0))
def zetac(s: Operand, /) -> Value:
    """riemann_zeta(s) - 1, accurate for large s.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> z = xp.asarray(100.0)
        >>> float(special.zetac(z)) > 0.0, float(special.zeta(z)) - 1.0
        (True, 0.0)
    """


def _riemann_slope_rule(g: Value, s: Value, n: int) -> Value:
    return g * ops.special.riemann_slope(s, n + 1)


@room(
    zeta_kernels.riemann_slope,
    _riemann_slope_rule,
    samples=ranges((-5.0, -0.5), params=(1,)),
)
def riemann_slope(s: Operand, /, n: int) -> Value:
    """n-th derivative of the Riemann zeta function."""
