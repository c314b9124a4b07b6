"""Chapter: spherical Bessel functions of integer order, and sinc. Derivatives from DLMF 10.51."""

from __future__ import annotations

import math
from typing import Any

from funct import ops
from funct.core import Absent, Operand, Value
from funct.kernels.special import functions as kernels
from funct.ops.samples import ordered, reals
from funct.ops.special.room import room

__all__ = ["sinc", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn"]

_INTEGER = Absent("the order is an integer")
_ORDERED = ordered((0, 1, 2, 5), (0.4, 5.0), complex_too=True)


def _less(n: Operand) -> Any:
    """n − 1, but 0 for n = 0, where its factor n is 0."""
    return max(n, 1) - 1 if isinstance(n, int) else ops.maximum(n, 1) - 1


def _spherical_jn_rule(g: Value, n: Operand, x: Value) -> Value:
    f = ops.special.spherical_jn
    return g * ((n * f(_less(n), x) - (n + 1) * f(n + 1, x)) / (2 * n + 1))


@room(kernels.spherical("spherical_jn"), _INTEGER, _spherical_jn_rule, samples=_ORDERED)
def spherical_jn(n: Operand, x: Operand, /) -> Value:
    """Spherical Bessel function of the first kind of order n = 0, 1, …

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.spherical_jn(0, xp.asarray(1.0))), 6)  # sin(1)
        0.841471
    """


def _spherical_in_rule(g: Value, n: Operand, x: Value) -> Value:
    f = ops.special.spherical_in
    return g * ((n * f(_less(n), x) + (n + 1) * f(n + 1, x)) / (2 * n + 1))


@room(kernels.spherical("spherical_in"), _INTEGER, _spherical_in_rule, samples=_ORDERED)
def spherical_in(n: Operand, x: Operand, /) -> Value:
    """Modified spherical Bessel function of the first kind of order n = 0, 1, …

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.spherical_in(0, xp.asarray(1.0))), 6)  # sinh(1)
        1.175201
    """


def _spherical_yn_rule(g: Value, ans: Value, n: Operand, x: Value) -> Value:
    return g * (n * (ans / x) - ops.special.spherical_yn(n + 1, x))


@room(kernels.spherical("spherical_yn"), _INTEGER, _spherical_yn_rule, samples=_ORDERED)
def spherical_yn(n: Operand, x: Operand, /) -> Value:
    """Spherical Bessel function of the second kind of order n = 0, 1, …

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.spherical_yn(0, xp.asarray(1.0))), 6)  # -cos(1)
        -0.540302
    """


def _spherical_kn_rule(g: Value, ans: Value, n: Operand, x: Value) -> Value:
    return g * (n * (ans / x) - ops.special.spherical_kn(n + 1, x))


@room(kernels.spherical("spherical_kn"), _INTEGER, _spherical_kn_rule, samples=_ORDERED)
def spherical_kn(n: Operand, x: Operand, /) -> Value:
    """Modified spherical Bessel function of the second kind of order n = 0, 1, …

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.spherical_kn(0, xp.asarray(1.0))), 6)  # pi / 2 exp(-1)
        0.577864
    """


def _sinc_rule(g: Value, x: Value) -> Value:
    z = math.pi * x
    near = ops.less(ops.abs(z), 1e-3)  # SciPy's is NaN at the smallest numbers
    square = ops.square(ops.where(near, z, 0.0))
    series = z / 3.0 * (1.0 - square / 10.0 * (1.0 - square / 28.0))
    bessel = ops.where(near, series, ops.special.spherical_jn(1, ops.where(near, 1.0, z)))
    return -g * (math.pi * bessel)


@room("sinc", _sinc_rule, samples=reals(complex_too=True))
def sinc(x: Operand, /) -> Value:
    """sin(pi x) / (pi x), 1 at 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> float(special.sinc(xp.asarray(0.0))), round(float(special.sinc(xp.asarray(0.5))), 6)
        (1.0, 0.63662)
    """
