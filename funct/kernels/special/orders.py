"""Functions of an integer order. SciPy takes those that a C int has: of others it keeps the last
32 bits, or gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from funct.kernels.special.functions import by_name, find, in_double, keep_dtype

__all__ = ["expn", "expn_slope", "yn"]

Doubles = NDArray[np.float64]
_MOST = 2**30  # orders up to which SciPy is asked: a float32 of 2**31 - 1 is 2**31


def _of_orders(name: str, beyond: Callable[[Doubles, Doubles], Doubles]) -> Callable[..., Any]:
    """SciPy's function of that name, and beyond for orders that it does not take."""
    plain = by_name(name, 2)

    @in_double(2)
    def both(n: Doubles, x: Doubles) -> Doubles:
        far = np.abs(n) > _MOST
        return np.where(far, beyond(n, x), plain(np.where(far, 0.0, n), x))

    def raw(n: Any, x: Any) -> Any:
        return (plain if _are_taken(n) else both)(n, x)

    raw.__name__ = name
    return raw


def _are_taken(n: Any) -> bool:
    if n.__class__ is np.ndarray:
        return not n.size or bool(n.item(n.argmin()) >= -_MOST and n.item(n.argmax()) <= _MOST)
    return bool(-_MOST <= n <= _MOST)


def _yn_beyond(n: Doubles, x: Doubles) -> Doubles:
    """Orders far above x have infinities, where those of no order in particular may have NaN."""
    y = np.asarray(find("yv")(n, x))
    infinite = np.where((n < 0) & (n % 2 == 1), np.inf, -np.inf)
    return np.where(np.isnan(y) & (x > 0) & (x < 0.5 * np.abs(n)), infinite, y)


def _expn_beyond(n: Doubles, x: Doubles) -> Doubles:
    """By the first two terms in 1 / n, DLMF 8.20.ii: the next one is below 2⁻⁶⁰."""
    with np.errstate(all="ignore"):
        y = np.exp(-x) / (x + n) * (1.0 + n / np.square(x + n))
        y = np.where(np.isinf(x) | np.isinf(n), 0.0, y)
        return np.where((n > 0) & (x >= 0), y, np.nan)


yn, expn = _of_orders("yn", _yn_beyond), _of_orders("expn", _expn_beyond)


def expn_slope(n: Any, x: Any, order: int) -> Any:
    """Derivative of SciPy's expn in x, (−1)ᵒʳᵈᵉʳ ∫₁^∞ e^−xt / tⁿ⁻ᵒʳᵈᵉʳ dt: DLMF 8.19.13.

    For n − order ≤ 0, where SciPy has no integral, by DLMF 8.19.1: Γ(1 − n, x) xⁿ⁻¹.
    """

    @keep_dtype
    def slope(n: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
        whole = np.trunc(n)
        left = whole - order
        below = left <= 0
        a = np.where(below, 1.0 - left, 1.0).astype(x.dtype)
        finite = np.where(x > 0, x, 1.0).astype(x.dtype)
        size = find("gamma")(a) * find("gammaincc")(a, finite) / finite**a
        at_zero = np.where(x == 0, np.inf, np.nan)
        closed = np.where(x > 0, size, at_zero)
        y = np.where(below, closed, expn(np.maximum(left, 1), x)) * (-1.0) ** order
        return np.where(whole < 0, y.dtype.type(np.nan), y)

    return slope(n, x)
