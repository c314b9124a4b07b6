"""Random words to uniform, normal and exponential numbers, rounded the same everywhere.

Only +, -, ×, ÷, √ and integers are used, so NumPy's arrays and the vectors of machine code (these
functions are inlined into kernels) give the same bits.

Source: Wichura 1988, Algorithm AS 241: the percentage points of the normal distribution.
        The logarithm is that of `elementary.py`, in two precisions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funct.kernels.cpu.vectors import in_step
from funct.kernels.random.elementary import LOG, polynomial

__all__ = [
    "exponential32", "exponential64", "gumbel32", "gumbel64", "normal32", "normal64", "unit32",
    "unit64",
]  # fmt: skip


class _Quantile(NamedTuple):
    """Coefficients for one precision, highest power first."""

    central: tuple[tuple[float, ...], tuple[float, ...]]  # numerator and denominator, |q| <= 0.425
    tail: tuple[tuple[float, ...], tuple[float, ...]]
    far: tuple[tuple[float, ...], tuple[float, ...]]
    log: tuple[float, ...]
    mantissa: int
    bias: int  # the bits of √½: a mantissa from there on leads to a logarithm around 0
    signed: Any


_SINGLE = _Quantile(
    central=((59.10937472, 159.29113202, 50.434271938, 3.3871327179),
             (67.1875636, 78.757757664, 17.895169469, 1.0)),
    tail=((0.17023821103, 1.3067284816, 2.75681539, 1.4234372777),
          (0.12021132975, 0.7370016425, 1.0)),
    far=((), ()),
    log=(0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693),
    mantissa=23, bias=0x3F3504F3, signed=np.int32,
)  # fmt: skip

_DOUBLE = _Quantile(
    central=((2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
              4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
              1.3314166789178437745e2, 3.3871328727963666080e0),
             (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
              2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
              4.2313330701600911252e1, 1.0)),
    tail=((7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
           1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
           4.63033784615654529590e0, 1.42343711074968357734e0),
          (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
           1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
           2.05319162663775882187e0, 1.0)),
    far=((2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
          2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
          5.46378491116411436990e0, 6.65790464350110377720e0),
         (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
          7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
          5.99832206555887937690e-1, 1.0)),
    log=LOG,
    mantissa=52, bias=0x3FE6A09E667F3BCD, signed=np.int64,
)  # fmt: skip

_LN2 = 0.6931471805599453


def _log(p: Any, of: _Quantile) -> Any:
    """The logarithm of positive numbers that are not subnormal."""
    offset = p.view(of.signed) - of.bias
    exponent = offset >> of.mantissa
    f = ((offset & ((1 << of.mantissa) - 1)) + of.bias).view(p.dtype) - 1.0
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    r = z * polynomial(z, of.log)
    return f - (half - s * (half + r)) + exponent.astype(p.dtype) * _LN2


def _quantile(p: Any, q: Any, of: _Quantile) -> Any:
    """How far a normal number lies from 0, where p > 0 is beyond it and q = ½ - p before it."""
    central = q <= 0.425
    inner = 0.180625 - q * q
    r = np.sqrt(-in_step(_log(in_step(p), of)))
    outer = r - 1.6
    above = np.where(central, q * polynomial(inner, of.central[0]), polynomial(outer, of.tail[0]))
    below = np.where(central, polynomial(inner, of.central[1]), polynomial(outer, of.tail[1]))
    z = in_step(above) / in_step(below)
    if of.far[0]:
        far = r > 5.0
        if far.any():
            beyond = r - 5.0
            most = polynomial(beyond, of.far[0]) / polynomial(beyond, of.far[1])
            z = np.where(far, most, z)
    return z


def unit32(word: Any) -> Any:
    """float32 on [0, 1) from the first 24 bits of a uint32."""
    return (word >> 8).view(np.int32).astype(np.float32) * 2.0**-24


def unit64(high: Any, low: Any) -> Any:
    """float64 on [0, 1) from the first 53 bits of two uint32."""
    return (high.astype(np.float64) * 2.0**21 + (low >> 11).astype(np.float64)) * 2.0**-53


def normal32(word: Any) -> Any:
    """A standard normal float32 from a uint32: a sign, and 31 bits of probability."""
    place = (word & 0x7FFFFFFF).view(np.int32)
    p = (place.astype(np.float32) + 0.5) * 2.0**-32
    q = ((0x7FFFFFFF - place).astype(np.float32) + 0.5) * 2.0**-32
    z = _quantile(p, q, _SINGLE)
    return (z.view(np.uint32) ^ (word & 0x80000000)).view(np.float32)


def normal64(high: Any, low: Any) -> Any:
    """A standard normal float64 from two uint32: a sign, and 63 bits of probability."""
    place = high & 0x7FFFFFFF
    rest = 0x7FFFFFFF - place
    p = (place.astype(np.float64) * 2.0**32 + low.astype(np.float64) + 0.5) * 2.0**-64
    q = (rest.astype(np.float64) * 2.0**32 + (~low).astype(np.float64) + 0.5) * 2.0**-64
    sign = (high & 0x80000000).astype(np.uint64) << 32
    return (_quantile(p, q, _DOUBLE).view(np.uint64) ^ sign).view(np.float64)


def exponential32(word: Any) -> Any:
    """An exponential float32 with rate 1: finite and not 0, as 2^-24 stands for 0 too."""
    u = unit32(word)
    return -_log(in_step(1.0 - np.where(u > 2.0**-24, u, 2.0**-24).astype(np.float32)), _SINGLE)


def exponential64(high: Any, low: Any) -> Any:
    """The same of float64; 2^-53 stands for 0."""
    u = unit64(high, low)
    return -_log(in_step(1.0 - np.where(u > 2.0**-53, u, 2.0**-53)), _DOUBLE)


def gumbel32(word: Any) -> Any:
    """A Gumbel float32: -log of an exponential one."""
    return -_log(in_step(exponential32(word)), _SINGLE)


def gumbel64(high: Any, low: Any) -> Any:
    """The same of float64."""
    return -_log(in_step(exponential64(high, low)), _DOUBLE)
