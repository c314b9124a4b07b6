"""Sums of exponentials without overflow, and what share of them each element has."""

from __future__ import annotations

from typing import Any

from funct import ops
from funct.array import statistical
from funct.array.axes import normal_axes
from funct.array.direct import direct
from funct.kernels.reductions import shares as kernels

__all__ = ["log_softmax", "logsumexp", "softmax", "softplus"]


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.softplus(xp.asarray([-1000.0, 1000.0])).tolist()
        [0.0, 1000.0]
    """
    return ops.logaddexp(x, 0.0)


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """log(sum(b * exp(a))) over axis, without overflow; `xp.logsumexp` in SciPy's signature.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> float(special.logsumexp(xp.asarray([1000.0, 1000.0]), b=xp.asarray([0.0, 1.0])))
        1000.0
    """
    return statistical.logsumexp(a, axis=axis, keepdims=keepdims, b=b, return_sign=return_sign)


@direct(kernels.softmax)
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) over axis (None: all), without overflow. NaN beside inf and of -inf.

    Example:
        >>> import funct.array as xp
        >>> xp.special.softmax(xp.asarray([0.0, -float("inf"), 0.0])).tolist()
        [0.5, 0.0, 0.5]
    """
    axes = normal_axes("softmax", axis, len(x.shape))
    if 0 in x.shape:
        return x - 0.0
    y = ops.exp(x - _top(x, axes))
    return y * (1.0 / ops.reduce_sum(y, axes, True))  # one division for each sum


@direct(kernels.log_softmax)
def log_softmax(x: Any, axis: Any = None) -> Any:
    """log(softmax(x)), accurate where softmax is near 0 or 1.

    Example:
        >>> import funct.array as xp
        >>> xp.special.log_softmax(xp.asarray([0.0, -1000.0])).tolist()
        [0.0, -1000.0]
    """
    axes = normal_axes("log_softmax", axis, len(x.shape))
    if 0 in x.shape:
        return x - 0.0
    shifted = x - _top(x, axes)
    return shifted - ops.log(ops.reduce_sum(ops.exp(shifted), axes, True))


def _top(x: Any, axes: Any) -> Any:
    """The greatest element, a constant to derivatives. Where it is infinite, x - top is NaN, and so
    are all shares, as everywhere: infinity over itself is no number.
    """
    return ops.stop_gradient(ops.reduce_max(ops.real(x) if x.dtype.kind == "c" else x, axes, True))
