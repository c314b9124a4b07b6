"""Chapter: exponential, sine and cosine integrals, the dilogarithm, Lambert's W.

Derivatives from DLMF chapters 4, 6 and 8.19.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct import ops
from funct.core import Absent, Operand, Value
from funct.kernels.special import functions as kernels
from funct.ops.samples import ordered, ranges, reals
from funct.ops.special.room import room

__all__ = [
    "exp1", "expi", "expn", "expn_slope", "lambertw", "shichi_c", "shichi_s", "sici_c", "sici_s",
    "spence", "wrightomega",
]  # fmt: skip

_INTEGER = Absent("the order is an integer")
_RIGHT = reals(0.3, 4.0, complex_too=True)


def _exp1_rule(g: Value, x: Value) -> Value:
    return -g * (ops.exp(-x) / x)


@room("exp1", _exp1_rule, samples=_RIGHT)
def exp1(x: Operand, /) -> Value:
    """Exponential integral E1, the integral of exp(-t) / t from x to infinity.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.exp1(xp.asarray(1.0))), 6)
        0.219384
    """


def _expi_rule(g: Value, x: Value) -> Value:
    return g * (ops.exp(x) / x)


@room("expi", _expi_rule, samples=_RIGHT)
def expi(x: Operand, /) -> Value:
    """Exponential integral Ei, the principal value of that of exp(t) / t from -infinity to x.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.expi(xp.asarray(1.0))), 6)
        1.895118
    """


def _expn_rule(g: Value, n: Operand, x: Value) -> Value:
    return g * ops.special.expn_slope(n, x, 1)


_ORDERS = (0, 1, 2, 5)


@room("expn", _INTEGER, _expn_rule, samples=ordered(_ORDERS, (0.4, 5.0)))
def expn(n: Operand, x: Operand, /) -> Value:
    """Integral of exp(-x t) / t**n from 1 to infinity for n = 0, 1, 2, …; NaN for n < 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.expn(1, xp.asarray(1.0))), 6)  # exp1(1)
        0.219384
    """


def _expn_slope_rule(g: Value, n: Operand, x: Value, order: int) -> Value:
    return g * ops.special.expn_slope(n, x, order + 1)


@room(
    kernels.expn_slope,
    _INTEGER,
    _expn_slope_rule,
    samples=ordered(_ORDERS, (0.4, 5.0), params=(1,)),
)
def expn_slope(n: Operand, x: Operand, /, order: int) -> Value:
    """Derivative of expn(n, x) in x, of any order."""


def _part(name: str, k: int) -> Any:
    return kernels.keep_dtype(lambda x: kernels.find(name)(x)[k])


def _over(x: Value, bessel: Any, sign: float) -> Value:
    """sin(x) / x, or with sign 1 sinh(x) / x, which is that function of Bessel's of order 0."""
    near = ops.less(ops.abs(x), 1e-2)  # derivatives of SciPy's are NaN at the smallest numbers
    r = sign * ops.square(ops.where(near, x, 0.0))
    series = 1.0 + r / 6.0 * (1.0 + r / 20.0 * (1.0 + r / 42.0 * (1.0 + r / 72.0)))
    return ops.where(near, series, bessel(0, ops.where(near, 1.0, x)))


def _sici_s_rule(g: Value, x: Value) -> Value:
    return g * _over(x, ops.special.spherical_jn, -1.0)


@room(_part("sici", 0), _sici_s_rule, samples=reals(complex_too=True))
def sici_s(x: Operand, /) -> Value:
    """Sine integral, that of sin(t) / t from 0 to x."""


def _sici_c_rule(g: Value, x: Value) -> Value:
    return g * (ops.cos(ops.where(ops.isinf(x), 0.0, x)) / x)


@room(_part("sici", 1), _sici_c_rule, samples=_RIGHT)
def sici_c(x: Operand, /) -> Value:
    """Cosine integral."""


def _shichi_s_rule(g: Value, x: Value) -> Value:
    return g * _over(x, ops.special.spherical_in, 1.0)


@room(_part("shichi", 0), _shichi_s_rule, samples=reals(complex_too=True))
def shichi_s(x: Operand, /) -> Value:
    """Hyperbolic sine integral, that of sinh(t) / t from 0 to x."""


def _shichi_c_rule(g: Value, x: Value) -> Value:
    return g * (ops.cosh(x) / x)


@room(_part("shichi", 1), _shichi_c_rule, samples=_RIGHT)
def shichi_c(x: Operand, /) -> Value:
    """Hyperbolic cosine integral."""


def _spence_rule(g: Value, z: Value) -> Value:
    near = ops.less(ops.abs(z - 1.0), 0.5)  # log(z) / (1 − z), at 1 too
    rest = 1.0 - z
    series = -ops.special.hyp2f1(1.0, 1.0, 2.0, ops.where(near, rest, 0.0))
    plain = ops.log(ops.where(near, 2.0, z)) / ops.where(near, 1.0, rest)
    return g * ops.where(near, series, plain)


@room("spence", _spence_rule, samples=_RIGHT)
def spence(z: Operand, /) -> Value:
    """Dilogarithm Li2(1 - z), the integral of log(t) / (1 - t) from 1 to z.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.spence(xp.asarray(0.0))), 6)  # pi**2 / 6
        1.644934
    """


def _lambertw(z: Any, branch: int = 0) -> Any:
    z = np.asarray(z)
    z = z.astype(np.float64) if z.dtype.kind in "biu" else z
    kind = np.result_type(z, np.complex64)
    return np.asarray(kernels.find("lambertw")(z, branch)).astype(kind, copy=False)


def _lambertw_rule(g: Value, ans: Value, z: Value) -> Value:
    return g / (z + ops.exp(ans))  # e^W (1 + W) = z + e^W


@room(_lambertw, _lambertw_rule, samples=ranges((0.2, 3.0), params=(0,)))
def lambertw(z: Operand, /, branch: int) -> Value:
    """The w with w * exp(w) = z on the given branch; complex, for real z too."""


def _wrightomega_rule(g: Value, ans: Value) -> Value:
    return g * (ans / (1.0 + ans))


@room(
    "wrightomega",
    _wrightomega_rule,
    samples=reals(complex_too=True),
    end=(math.inf, 1.0),
)
def wrightomega(z: Operand, /) -> Value:
    """The w with w + log(w) = z.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.wrightomega(xp.asarray(0.0))), 6)  # w + log(w) = 0
        0.567143
    """
