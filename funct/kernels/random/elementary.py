"""Logarithm and exponential by operations that round the same everywhere.

Only +, -, ×, ÷ and integers are used, so NumPy's arrays and the vectors of machine code (these
functions are inlined into kernels) give the same bits. All of float64.

Source: fdlibm, e_log.c, s_log1p.c and e_exp.c (Sun Microsystems 1993, 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = [
    "LEAST", "LOG", "excess", "exp", "log", "logistic", "polynomial", "reduced",
]  # fmt: skip

LOG = (1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
       2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
       6.666666666666735130e-01)  # fmt: skip
_EXP = (4.13813679705723846039e-08, -1.65339022054652515390e-06, 6.61375632143793436117e-05,
        -2.77777777770155933842e-03, 1.66666666666666019037e-01)  # fmt: skip

_ROOT = 0x3FE6A09E667F3BCD  # the bits of √½: a mantissa from there on leads to a logarithm around 0
_MANTISSA = (1 << 52) - 1
_LN2 = 0.6931471805599453
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # 32 bits, the rest
_PER_LN2 = 1.4426950408889634
_WHOLE = 1.5 * 2.0**52  # a sum with this is rounded to a whole number
LEAST = -750.0  # its exponential is 0


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """By Horner's rule, highest power first."""
    y: Any = coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


def _short(f: Any) -> Any:
    """f - log(1 + f), for 1 + f between √½ and √2."""
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return half - s * (half + z * polynomial(z, LOG))


def log(p: Any) -> Any:
    """The logarithm of positive numbers that are not subnormal."""
    offset = p.view(np.int64) - _ROOT
    exponent = offset >> 52
    f = ((offset & _MANTISSA) + _ROOT).view(np.float64) - 1.0
    return f - _short(f) + exponent.astype(np.float64) * _LN2


def excess(x: Any) -> Any:
    """x - log(1 + x) for x > -1, with all digits around 0."""
    offset = (x + 1.0).view(np.int64) - _ROOT
    exponent = offset >> 52
    f = ((offset & _MANTISSA) + _ROOT).view(np.float64) - 1.0
    f = np.where(exponent == 0, x, f)  # 1 + x has lost digits of it
    return (x - f) + _short(f) - exponent.astype(np.float64) * _LN2


def reduced(x: Any) -> tuple[Any, Any]:
    """y and a whole number n, of which exp(x) is y 2^n."""
    n = (x * _PER_LN2 + _WHOLE) - _WHOLE
    high = x - n * _LN2_HIGH
    low = n * _LN2_LOW
    r = high - low
    z = r * r
    c = r - z * polynomial(z, _EXP)
    return 1.0 - ((low - r * c / (2.0 - c)) - high), n


def exp(x: Any) -> Any:
    """The exponential of numbers up to 700."""
    y, n = reduced(np.where(x > LEAST, x, LEAST))
    twos = n.astype(np.int64)
    half = twos >> 1  # in two steps: the result may be subnormal
    y = y * ((half + 1023) << 52).view(np.float64)
    return y * ((twos - half + 1023) << 52).view(np.float64)


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x)), within 2 ulp."""
    power = exp(np.where(x < 0.0, x, -x))
    return np.where(x == x, np.where(x < 0.0, power, 1.0) / (power + 1.0), x)
