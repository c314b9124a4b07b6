"""Chapter: error functions, Dawson's and Fresnel's integrals, the normal distribution.

Derivatives from DLMF chapter 7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct import ops
from funct.core import Absent, Operand, Value
from funct.kernels.special import functions as kernels
from funct.ops.ends import settled
from funct.ops.families import elementwise
from funct.ops.samples import ranges, reals
from funct.ops.special.room import bounded, room

__all__ = [
    "dawsn", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv", "fresnel_c", "fresnel_s",
    "log_ndtr", "ndtr", "ndtri", "ndtri_exp", "owens_t", "wofz",
]  # fmt: skip

_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
_HALF_SQRT_PI = math.sqrt(math.pi) / 2.0
_SQRT_2 = math.sqrt(2.0)
_SQRT_2PI = math.sqrt(2.0 * math.pi)
_ANY = reals(complex_too=True)


def _erf_rule(g: Value, x: Value) -> Value:
    return g * (_TWO_OVER_SQRT_PI * settled(ops.exp(-(x * x))))


@elementwise(kernels.erf, _erf_rule, code="erf({0})", onnx="Erf", samples=_ANY)
def erf(x: Operand, /) -> Value:
    """Error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    Example:
        >>> import funct.array as xp
        >>> xp.erf(xp.asarray([0.0, xp.inf])).tolist(), round(float(xp.erf(xp.asarray(1.0))), 6)
        ([0.0, 1.0], 0.842701)

    Source: SciPy `special.erf`; DLMF 7.2.1.
    """


def _erfc_rule(g: Value, x: Value) -> Value:
    return g * (-_TWO_OVER_SQRT_PI * settled(ops.exp(-(x * x))))


@room(kernels.erfc, _erfc_rule, onnx=Absent("1 - Erf(x) loses the digits of erfc"), samples=_ANY)
def erfc(x: Operand, /) -> Value:
    """1 - erf(x), without cancellation for large x.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> float(special.erfc(xp.asarray(10.0))) > 0.0, float(1.0 - special.erf(xp.asarray(10.0)))
        (True, 0.0)
    """


def _far(square: Value, far: Value, sign: float) -> Value:
    """The asymptotic series Σ signᵏ⁻¹ (2k − 1)!! / (2x²)ᵏ, DLMF 7.12.1, of x² where it is far."""
    r = settled(0.5 / ops.where(far, square, 64.0))
    total: Value = r * 0.0
    for k in range(16, 0, -1):
        total = r * (2 * k - 1) * (1.0 + sign * total)
    return total


def _erfcx_slope(ans: Value, x: Value) -> Value:
    """Derivative of erfcx; far out, but for where exp(x²) is all of it, 1 is lost from 1."""
    square = x * x
    right = ops.logical_or(ops.greater(ops.real(x), 0), ops.less(ops.real(square), -40.0))
    far = ops.logical_and(ops.greater(ops.abs(x), 8.0), right)
    near = 2.0 * ops.where(far, 0.0, x) * ans - _TWO_OVER_SQRT_PI
    return ops.where(far, -_TWO_OVER_SQRT_PI * _far(square, far, -1.0), near)


def _erfcx_rule(g: Value, ans: Value, x: Value) -> Value:
    return g * _erfcx_slope(ans, x)


@room("erfcx", _erfcx_rule, samples=_ANY)
def erfcx(x: Operand, /) -> Value:
    """exp(x**2) * erfc(x).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.erfcx(xp.asarray(100.0))), 6)  # exp(100**2) overflows
        0.005642
    """


def _erfi_rule(g: Value, x: Value) -> Value:
    return g * (_TWO_OVER_SQRT_PI * ops.exp(x * x))


@room("erfi", _erfi_rule, samples=_ANY)
def erfi(x: Operand, /) -> Value:
    """Imaginary error function, -1j * erf(1j * x).

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.erfi(xp.asarray(1.0))), 6)
        1.650426
    """


def _dawsn_rule(g: Value, ans: Value, x: Value) -> Value:
    square = x * x
    far = ops.greater(ops.real(square), 64.0)  # and nothing of exp(-x²)
    near = 1.0 - 2.0 * ops.where(far, 0.0, x) * ans
    return g * ops.where(far, -_far(square, far, 1.0), near)


@room("dawsn", _dawsn_rule, samples=_ANY)
def dawsn(x: Operand, /) -> Value:
    """Dawson's integral, exp(-x**2) times the integral of exp(t**2) from 0 to x.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.dawsn(xp.asarray(1.0))), 6)
        0.53808
    """


def _wofz_rule(g: Value, ans: Value, z: Value) -> Value:
    return g * (-1j * _erfcx_slope(ans, -1j * z))


def _wofz(z: Any) -> Any:
    # of doubles SciPy's loop is complex, but the kernel's way for nothing keeps their dtype
    plain = z.__class__ is np.ndarray and z.dtype is _DOUBLE and z.size
    return _faddeeva(z if plain else z + 0j)


_DOUBLE = np.dtype(np.float64)
_faddeeva = kernels.by_name("wofz", 1)


@room(_wofz, _wofz_rule, samples=_ANY)
def wofz(z: Operand, /) -> Value:
    """Faddeeva's function exp(-z**2) * erfc(-1j * z); complex, for real z too.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> w = special.wofz(xp.asarray(1.0))
        >>> w.dtype, round(float(xp.real(w)), 6)  # exp(-1)
        (dtype('complex128'), 0.367879)
    """


def _erfinv_rule(g: Value, ans: Value) -> Value:
    return g * (_HALF_SQRT_PI * ops.exp(ans * ans))


@room(kernels.erfinv, _erfinv_rule, samples=reals(-0.9, 0.9))
def erfinv(x: Operand, /) -> Value:
    """Inverse of erf; infinite at -1 and 1, where the derivative is infinite too.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.erf(special.erfinv(xp.asarray(0.3)))), 12)
        0.3
    """


def _erfcinv_rule(g: Value, ans: Value) -> Value:
    return g * (-_HALF_SQRT_PI * ops.exp(ans * ans))


@room("erfcinv", _erfcinv_rule, samples=reals(0.1, 1.9))
def erfcinv(x: Operand, /) -> Value:
    """Inverse of erfc; infinite at 0 and 2, where the derivative is infinite too.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.erfcinv(xp.asarray(1e-300))), 4)  # erfinv(1 - 1e-300) is infinite
        26.2095
    """


def _ndtr_rule(g: Value, x: Value) -> Value:
    return g * (settled(ops.exp(-0.5 * x * x)) / _SQRT_2PI)


@room("ndtr", _ndtr_rule, samples=_ANY)
def ndtr(x: Operand, /) -> Value:
    """Distribution function of the standard normal distribution.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ndtr(xp.asarray(1.96))), 3)
        0.975
    """


def _log_ndtr_rule(g: Value, ans: Value, x: Value) -> Value:
    right = ops.greater(ops.real(x), 1.0)  # there erfcx overflows, and its derivative before it
    far = ops.less(ops.real(x), -1e3)  # there erfcx is 0 at last
    if x.dtype.kind == "c":
        far = ops.logical_and(far, False)
    middle = ops.where(ops.logical_or(right, far), 0.0, x) * (-1.0 / _SQRT_2)
    left = math.sqrt(2.0 / math.pi) / ops.special.erfcx(middle)
    z, log = ops.where(right, x, 0.0), ops.where(right, ans, 0.0)
    y = ops.where(far, x, -1e3)
    r = ops.reciprocal(y)
    series = -y - r * (1.0 - 2.0 * r * r * (1.0 - 5.0 * r * r))  # DLMF 7.12.1
    near = ops.where(right, settled(ops.exp(-0.5 * z * z - log)) / _SQRT_2PI, left)
    return g * ops.where(far, series, near)


@room(
    "log_ndtr",
    _log_ndtr_rule,
    samples=reals(-4.0, 3.0, complex_too=True),
)
def log_ndtr(x: Operand, /) -> Value:
    """Logarithm of ndtr(x), without underflow for x far below 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> x = xp.asarray(-100.0)
        >>> round(float(special.log_ndtr(x)), 4), float(special.ndtr(x))
        (-5005.5242, 0.0)
    """


def _ndtri_rule(g: Value, ans: Value) -> Value:
    return g * (_SQRT_2PI * ops.exp(0.5 * ans * ans))


@room("ndtri", _ndtri_rule, samples=reals(0.05, 0.95))
def ndtri(p: Operand, /) -> Value:
    """Inverse of ndtr; infinite at 0 and 1, where the derivative is infinite too.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ndtri(xp.asarray(0.975))), 2), float(special.ndtri(xp.asarray(0.0)))
        (1.96, -inf)
    """


def _ndtri_exp_rule(g: Value, ans: Value) -> Value:
    return g * (_SQRT_2PI / 2.0 * ops.special.erfcx(ans * (-1.0 / _SQRT_2)))


@room("ndtri_exp", _ndtri_exp_rule, samples=reals(-4.0, -0.1))
def ndtri_exp(y: Operand, /) -> Value:
    """Inverse of log_ndtr.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ndtri_exp(special.log_ndtr(xp.asarray(-100.0)))), 6)
        -100.0
    """


def _quarter_turns(x: Value) -> Value:
    """π x² / 2 less whole turns, of large x too: 4k² + 4kr + r² quarters for x = 2k + r."""
    k = ops.round(0.5 * ops.real(x))
    r = x - 2.0 * k
    product = k * r
    return math.pi / 2.0 * (4.0 * (product - ops.round(ops.real(product))) + r * r)


def _fresnel_s_rule(g: Value, x: Value) -> Value:
    return g * ops.sin(_quarter_turns(x))


def _fresnel(k: int) -> Any:
    return kernels.keep_dtype(lambda x: kernels.find("fresnel")(x)[k])


@room(_fresnel(0), _fresnel_s_rule, samples=_ANY)
def fresnel_s(x: Operand, /) -> Value:
    """Integral of sin(pi t**2 / 2) from 0 to x."""


def _fresnel_c_rule(g: Value, x: Value) -> Value:
    return g * ops.cos(_quarter_turns(x))


@room(_fresnel(1), _fresnel_c_rule, samples=_ANY)
def fresnel_c(x: Operand, /) -> Value:
    """Integral of cos(pi t**2 / 2) from 0 to x."""


def _owens_t_rule_h(g: Value, h: Value, a: Value) -> Value:
    h, a = bounded(h, 1e150), bounded(a, 1e150)
    half = ops.special.erf(a * h * (1.0 / _SQRT_2)) * (-0.5 / _SQRT_2PI)
    return g * (half * ops.exp(-0.5 * h * h))


def _owens_t_rule_a(g: Value, h: Value, a: Value) -> Value:
    h, a = bounded(h, 1e150), bounded(a, 1e150)
    scale = 1.0 + a * a
    return g * (ops.exp(-0.5 * h * h * scale) / (2.0 * math.pi * scale))


@room(
    "owens_t",
    _owens_t_rule_h,
    _owens_t_rule_a,
    samples=ranges((-2.0, 2.0), (-2.0, 2.0)),
)
def owens_t(h: Operand, a: Operand, /) -> Value:
    """Chance of X > h and 0 < Y < a X, for independent standard normal X and Y.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.owens_t(xp.asarray(0.0), 1.0)), 6)  # an eighth of the plane
        0.125
    """
