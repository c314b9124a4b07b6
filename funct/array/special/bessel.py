"""Bessel functions and their derivatives of any order, and Airy's functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct import ops
from funct.array.creation import how_many
from funct.array.direct import direct
from funct.array.tensor import Tensor
from funct.core import INEXACT
from funct.errors import ArgumentError
from funct.kernels.special import functions as kernels

__all__ = ["airy", "ivp", "jn", "jvp", "kvp", "yvp"]


@direct(kernels.several("airy"), gives=tuple)
def airy(z: Any, /) -> tuple[Any, Any, Any, Any]:
    """Airy functions and their derivatives: Ai, Ai', Bi, Bi'.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> [round(float(v), 4) for v in special.airy(xp.asarray(0.0))]
        [0.355, -0.2588, 0.6149, 0.4483]
    """
    s = ops.special
    return s.airy_ai(z), s.airy_aip(z), s.airy_bi(z), s.airy_bip(z)


@direct("jv")
def jn(n: Any, x: Any, /) -> Any:
    """Bessel function of the first kind; another name of `jv`.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.jn(2, xp.asarray(1.0))), 6)
        0.114903
    """
    return ops.special.jv(n, x)


def _derivative(name: str, f: Any, v: Any, z: Any, n: int, sign: float) -> Any:
    """n-th derivative of a Bessel function: DLMF 10.6.7 and 10.29.5."""
    n = how_many(name, "n", n)
    most = kernels.MOST_DERIVATIVES
    if n > most:
        raise ArgumentError(f"{name}: n must be {most} at most, for the terms it adds, got {n}")
    if isinstance(v, Tensor) and v.dtype not in INEXACT:
        v = ops.astype(v, np.dtype(np.float64))  # unsigned orders would not go below 0
    y = f(v - n, z)
    for k in range(1, n + 1):
        y = y + sign**k * math.comb(n, k) * f(v - n + 2 * k, z)
    return y / 2.0**n


@direct(kernels.derivative("jvp"), arrays="doubles")
def jvp(v: Any, z: Any, n: int = 1) -> Any:
    """n-th derivative of jv(v, z) in z.

    Raises: ArgumentError: when n is negative, or beyond 1,000.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.jvp(0, xp.asarray(1.0))), 6)  # -j1(1)
        -0.440051
    """
    return _derivative("jvp", ops.special.jv, v, z, n, -1.0)


@direct(kernels.derivative("yvp"), arrays="doubles")
def yvp(v: Any, z: Any, n: int = 1) -> Any:
    """n-th derivative of yv(v, z) in z.

    Raises: ArgumentError: when n is negative, or beyond 1,000.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.yvp(0, xp.asarray(1.0))), 6)  # -y1(1)
        0.781213
    """
    return _derivative("yvp", ops.special.yv, v, z, n, -1.0)


@direct(kernels.derivative("ivp"), arrays="doubles")
def ivp(v: Any, z: Any, n: int = 1) -> Any:
    """n-th derivative of iv(v, z) in z.

    Raises: ArgumentError: when n is negative, or beyond 1,000.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ivp(0, xp.asarray(1.0))), 6)  # i1(1)
        0.565159
    """
    return _derivative("ivp", ops.special.iv, v, z, n, 1.0)


@direct(kernels.derivative("kvp"), arrays="doubles")
def kvp(v: Any, z: Any, n: int = 1) -> Any:
    """n-th derivative of kv(v, z) in z.

    Raises: ArgumentError: when n is negative, or beyond 1,000.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.kvp(0, xp.asarray(1.0))), 6)  # -k1(1)
        -0.601907
    """
    return _derivative("kvp", ops.special.kv, v, z, n, 1.0) * (-1.0) ** n
