"""log|Γ(x)| and its derivative by SciPy, but where it loses digits of float64.

Above a negative pole SciPy takes the tangent of a rounded multiple of π, of which a third may be
wrong: there ψ(x) = ψ(1 − x) − π cot πu, u from the pole to x, and π cot πu = ψ(1 − u) − ψ(u), DLMF
5.5.4. Of the numbers with less than full precision it takes the inverse, which is infinite: a power
of two times x has a logarithm that differs by a constant.

Programs that call SciPy's loops do the same (`funct/compile/steps/mended.py`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.elementwise.guarded import BESIDE_POLES, Guarded
from funct.kernels.special.functions import Raw, by_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BESIDE", "LEAST", "LOGARITHM", "POWER", "digamma", "gammaln"]

BESIDE = 0.0625  # from a pole on, up to where SciPy has all but the last digit
LEAST = float(np.finfo(np.float64).tiny)  # of the numbers that have full precision
POWER = 2.0**54
LOGARITHM = 54 * math.log(2)

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_MANY = 1 << 20  # elements that are looked at in a thousandth of a second


def gammaln(x: NDArray[Any], /) -> NDArray[Any]:
    """Logarithm of |Γ(x)| of each element. inf at the poles 0, −1, −2, …"""
    return _of_full_precision.call(x)


def digamma(x: NDArray[Any], /) -> NDArray[Any]:
    """Derivative of log Γ(x) of each element. NaN at the poles −1, −2, …"""
    return _beside_no_pole.call(x)


def _for_the_least(f: Raw) -> Raw:
    """SciPy's gammaln, mended."""

    def known(x: Any) -> Any:
        if x.__class__ is not np.ndarray or x.dtype is not _DOUBLE:
            return f(x)
        small = np.less(np.abs(x), LEAST)
        if not small.any():
            return f(x)
        y = f(np.where(small, np.where(small, x, 0) * POWER, x))
        return np.where(small, y + LOGARITHM, y)

    return known


def _for_poles(f: Raw) -> Raw:
    """SciPy's digamma, mended."""

    def known(x: Any) -> Any:
        if x.__class__ is not np.ndarray or x.dtype is not _DOUBLE:
            return f(x)
        if not x.size or x.item(x.argmin()) >= 0:
            return f(x)
        finite = np.where(x > -np.inf, x, -0.5)
        apart = finite - np.rint(finite)
        beside = (finite < 0) & (apart > 0) & (apart < BESIDE)
        if not beside.any():
            return f(x)
        apart = np.where(beside, apart, 0.5)
        y = f(np.where(beside, 1 - x, x))
        return np.where(beside, y - f(1 - apart) + f(apart), y)

    return known


_gammaln = by_name("gammaln", 1, mended=_for_the_least)
_digamma = by_name("digamma", 1, mended=_for_poles)
for _raw, _general in ((gammaln, _gammaln), (digamma, _digamma)):
    vars(_raw)["ufunc"] = vars(_general)["ufunc"]

_of_full_precision = Guarded(
    vars(_gammaln)["ufunc"], _gammaln, looked=[_DOUBLE], taken=[_SINGLE], low=LEAST, most=_MANY
)
_beside_no_pole = Guarded(
    vars(_digamma)["ufunc"], _digamma, looked=[_DOUBLE], taken=[_SINGLE], high=BESIDE,
    within=BESIDE_POLES, most=_MANY,
)  # fmt: skip
