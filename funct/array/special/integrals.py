"""Integrals of which one call gives two, and Lambert's function."""

from __future__ import annotations

from typing import Any

from funct import ops
from funct.array.creation import count
from funct.array.direct import direct
from funct.kernels.special import functions as kernels

__all__ = ["fresnel", "lambertw", "shichi", "sici"]


@direct(kernels.several("fresnel"), gives=tuple)
def fresnel(z: Any, /) -> tuple[Any, Any]:
    """Fresnel integrals S and C: those of sin and cos of pi t**2 / 2 from 0 to z.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> [float(v) for v in special.fresnel(xp.asarray(xp.inf))]
        [0.5, 0.5]
    """
    return ops.special.fresnel_s(z), ops.special.fresnel_c(z)


@direct(kernels.several("sici"), gives=tuple)
def sici(x: Any, /) -> tuple[Any, Any]:
    """Sine and cosine integrals.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> [round(float(v), 6) for v in special.sici(xp.asarray(1.0))]
        [0.946083, 0.337404]
    """
    return ops.special.sici_s(x), ops.special.sici_c(x)


@direct(kernels.several("shichi"), gives=tuple)
def shichi(x: Any, /) -> tuple[Any, Any]:
    """Hyperbolic sine and cosine integrals.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> [round(float(v), 6) for v in special.shichi(xp.asarray(1.0))]
        [1.057251, 0.837867]
    """
    return ops.special.shichi_s(x), ops.special.shichi_c(x)


@direct(kernels.lambertw, arrays="doubles")
def lambertw(z: Any, k: int = 0) -> Any:
    """The w with w * exp(w) = z on branch k; complex, for real z too.

    Raises: UnsupportedOperandError: for a k that is no int; SciPy cuts it to one.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> w = special.lambertw(xp.asarray(1.0))
        >>> w.dtype, round(float(xp.real(w)), 6)
        (dtype('complex128'), 0.567143)
    """
    return ops.special.lambertw(z, count("lambertw", "k", k))
