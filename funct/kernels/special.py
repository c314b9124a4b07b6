"""Special functions of ndarrays. The one place where SciPy is imported, at the first call.

float32 stays float32 and float64 stays float64. The 2-byte floats, which SciPy does not know, are
computed in float32 and rounded once.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["digamma", "erf", "erfc", "erfinv", "gammaln"]


@functools.cache
def _ufunc(name: str) -> np.ufunc:
    # SciPy costs 50 ms and most programs never need it, so it waits for the first call.
    import scipy.special

    found: np.ufunc = getattr(scipy.special, name)
    return found


def _apply(name: str, x: NDArray[Any]) -> NDArray[Any]:
    x = np.asarray(x)  # a Python number too
    if x.dtype.itemsize == 2 and x.dtype.kind not in "iu":  # float16 and bfloat16
        half: NDArray[Any] = _ufunc(name)(x.astype(np.float32)).astype(x.dtype)
        return half
    y: NDArray[Any] = _ufunc(name)(x)
    return y


def erf(x: NDArray[Any], /) -> NDArray[Any]:
    """Error function, 2/√π ∫₀ˣ exp(−t²) dt, of each element."""
    return _apply("erf", x)


def erfc(x: NDArray[Any], /) -> NDArray[Any]:
    """Complementary error function, 1 − erf(x), without cancellation for large x."""
    return _apply("erfc", x)


def erfinv(x: NDArray[Any], /) -> NDArray[Any]:
    """Inverse of erf. ±inf at ±1, NaN outside [−1, 1]."""
    return _apply("erfinv", x)


def gammaln(x: NDArray[Any], /) -> NDArray[Any]:
    """Logarithm of |Γ(x)| of each element. inf at the poles 0, −1, −2, …"""
    return _apply("gammaln", x)


def digamma(x: NDArray[Any], /) -> NDArray[Any]:
    """Derivative of log Γ(x) of each element. NaN at the poles −1, −2, …"""
    return _apply("digamma", x)
