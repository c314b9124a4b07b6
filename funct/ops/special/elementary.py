"""Chapter: roots, powers of 2 and 10, and angles in degrees."""

from __future__ import annotations

import math

import numpy as np

from funct import ops
from funct.core import Operand, Value
from funct.kernels.special.functions import numpys
from funct.ops.samples import ranges, reals
from funct.ops.special.room import room

__all__ = ["cbrt", "cosdg", "cosm1", "cotdg", "exp10", "exp2", "radian", "sindg", "tandg"]

_ANY = reals()
_DEGREE = math.pi / 180.0


def _cbrt_rule(g: Value, ans: Value) -> Value:
    return g / 3.0 / ans / ans  # one after the other: its derivative at inf is no 0 · ∞


@room(numpys(np.cbrt, "cbrt"), _cbrt_rule, samples=reals(-2.0, -0.3), stable=True)
def cbrt(x: Operand, /) -> Value:
    """Real cube root; the derivative at 0 is infinite.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.cbrt(xp.asarray([-8.0, 64.0])).tolist()
        [-2.0, 4.0]
    """


def _exp2_rule(g: Value, ans: Value) -> Value:
    return g * (math.log(2.0) * ans)


@room(numpys(np.exp2, "exp2"), _exp2_rule, samples=_ANY, stable=True)
def exp2(x: Operand, /) -> Value:
    """2 to the power x.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.exp2(xp.asarray([-1.0, 10.0])).tolist()
        [0.5, 1024.0]
    """


def _exp10_rule(g: Value, ans: Value) -> Value:
    return g * (math.log(10.0) * ans)


@room("exp10", _exp10_rule, samples=_ANY, stable=True)
def exp10(x: Operand, /) -> Value:
    """10 to the power x.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.exp10(xp.asarray([0.0, 3.0])).tolist()
        [1.0, 1000.0]
    """


def _cosm1_rule(g: Value, x: Value) -> Value:
    return -g * ops.sin(x)


@room("cosm1", _cosm1_rule, samples=_ANY)
def cosm1(x: Operand, /) -> Value:
    """cos(x) - 1, accurate near 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> float(special.cosm1(xp.asarray(1e-10))) < 0.0, float(xp.cos(xp.asarray(1e-10)) - 1.0)
        (True, 0.0)
    """


def _radian_rule_d(g: Value) -> Value:
    return g * (math.pi / 180.0)


def _radian_rule_m(g: Value) -> Value:
    return g * (math.pi / (180.0 * 60.0))


def _radian_rule_s(g: Value) -> Value:
    return g * (math.pi / (180.0 * 3600.0))


@room(
    "radian",
    _radian_rule_d,
    _radian_rule_m,
    _radian_rule_s,
    samples=ranges((-90.0, 90.0), (0.0, 60.0), (0.0, 60.0)),
)
def radian(d: Operand, m: Operand, s: Operand, /) -> Value:
    """The angle of d degrees, m minutes and s seconds, in radians.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.radian(xp.asarray(179.0), 59.0, 60.0)), 6)
        3.141593
    """


def _sindg_rule(g: Value, x: Value) -> Value:
    return g * (_DEGREE * ops.special.cosdg(x))


@room("sindg", _sindg_rule, samples=_ANY)
def sindg(x: Operand, /) -> Value:
    """Sine of x in degrees.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.sindg(xp.asarray([90.0, 180.0])).tolist()  # sin(pi) is no zero
        [1.0, -0.0]
    """


def _cosdg_rule(g: Value, x: Value) -> Value:
    return -g * (_DEGREE * ops.special.sindg(x))


@room("cosdg", _cosdg_rule, samples=_ANY)
def cosdg(x: Operand, /) -> Value:
    """Cosine of x in degrees.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.cosdg(xp.asarray([90.0, 180.0])).tolist()  # cos(pi / 2) is no zero
        [-0.0, -1.0]
    """


def _tandg_rule(g: Value, x: Value) -> Value:
    return g * (_DEGREE / ops.square(ops.special.cosdg(x)))


@room("tandg", _tandg_rule, samples=_ANY)
def tandg(x: Operand, /) -> Value:
    """Tangent of x in degrees.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.tandg(xp.asarray([45.0, 180.0])).tolist()
        [1.0, 0.0]
    """


def _cotdg_rule(g: Value, x: Value) -> Value:
    return -g * (_DEGREE / ops.square(ops.special.sindg(x)))  # SciPy's cotangent has few digits


@room("cotdg", _cotdg_rule, samples=reals(20.0, 60.0))
def cotdg(x: Operand, /) -> Value:
    """Cotangent of x in degrees.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.cotdg(xp.asarray([45.0, 90.0])).tolist()
        [1.0, 0.0]
    """
