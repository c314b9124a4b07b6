"""Distributions with parameters, each by inversion of its distribution function.

One uniform number gives one draw, so a draw needs no loop, and its derivatives in the parameters
are those of the inverse: the implicit reparameterisation gradients, of any order. Uniform numbers
and inverses are taken in float64 and rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array import asarray, iinfo, linalg, matmul, matrix_transpose
from funct.array.axes import normal_shape
from funct.core import Shape
from funct.errors import ShapeError
from funct.ops.broadcasting import broadcast_shapes
from funct.random.draws import normal, open_unit
from funct.random.keys import float_dtype, split

__all__ = [
    "beta", "dirichlet", "gamma", "multivariate_normal", "orthogonal", "poisson",
    "truncated_normal",
]  # fmt: skip

_FLOAT64 = np.dtype(np.float64)


def _parameter(x: Any) -> Any:
    return ops.astype(asarray(x), _FLOAT64)


def _full(name: str, shape: Any, *parts: Shape) -> Shape:
    """The shape of the draws: that of the parameters, or one that they broadcast to."""
    try:
        own = broadcast_shapes(*parts)
        full = own if shape is None else normal_shape(f"random.{name}", shape)
        fits = broadcast_shapes(own, full) == full
    except ValueError as error:
        raise ShapeError(f"random.{name}: the parameters' shapes must broadcast: {error}") from None
    if not fits:
        raise ShapeError(f"random.{name}: parameters of shape {own} must broadcast to {full}")
    return full


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw standard normal numbers, given that they lie in [lower, upper].

    Args:    key: uint32, shape (..., 2). lower, upper: numbers or arrays that broadcast to shape.
             shape: that of the limits by default. dtype: float32 or float64.
    Returns: shape (..., *shape).
    Raises:  ShapeError: when shapes do not fit. DTypeError: when dtype is another, or key none.
    Notes:   differentiable in the limits, at a fixed key.
    Example:
        >>> import funct as ft
        >>> x = ft.random.truncated_normal(ft.random.key(7), -2.0, 2.0, (100,))
        >>> bool((abs(x) <= 2.0).all())
        True

    Source: jax.random.truncated_normal; by inversion, in the tail on the limits' side.
    """
    dtype = float_dtype("truncated_normal", dtype)
    lower, upper = _parameter(lower), _parameter(upper)
    full = _full("truncated_normal", shape, lower.shape, upper.shape)
    above = ops.greater(lower, 0.0)  # the lower tail has more digits than the upper one
    low, high = ops.where(above, -upper, lower), ops.where(above, -lower, upper)
    start, end = ops.special.ndtr(low), ops.special.ndtr(high)
    u = open_unit(key, full, _FLOAT64, "truncated_normal")
    x = ops.special.ndtri(start + u * (end - start))
    x = ops.minimum(ops.maximum(x, low), high)
    return ops.astype(ops.where(above, -x, x), dtype)


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Gamma with shape parameter a and scale 1; shape is a's by default. Differentiable in a."""
    dtype = float_dtype("gamma", dtype)
    a = _parameter(a)
    u = open_unit(key, _full("gamma", shape, a.shape), _FLOAT64, "gamma")
    return ops.astype(ops.special.gammaincinv(a, u), dtype)


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Beta with parameters a and b; shape is theirs by default. Differentiable in both."""
    dtype = float_dtype("beta", dtype)
    a, b = _parameter(a), _parameter(b)
    u = open_unit(key, _full("beta", shape, a.shape, b.shape), _FLOAT64, "beta")
    return ops.astype(ops.special.betaincinv(a, b, u), dtype)


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Dirichlet: points (*shape, k) that sum to 1, for alpha (..., k); shape is (...) by default.

    Gamma draws divided by their sum, in logarithms: for a small alpha they would be 0.
    """
    dtype = float_dtype("dirichlet", dtype)
    alpha = _parameter(alpha)
    if not alpha.shape:
        raise ShapeError("random.dirichlet: alpha must have an axis, got a 0-d array")
    full = (*_full("dirichlet", shape, alpha.shape[:-1]), alpha.shape[-1])
    first, second = split(key)
    larger = ops.special.gammaincinv(alpha + 1.0, open_unit(first, full, _FLOAT64, "dirichlet"))
    smaller = ops.log(open_unit(second, full, _FLOAT64, "dirichlet")) / alpha
    logs = ops.log(larger) + smaller  # Gamma(a) = Gamma(a + 1) U^(1/a)
    axis = (len(full) - 1,)
    weights = ops.exp(logs - ops.stop_gradient(ops.reduce_max(logs, axis, True)))
    return ops.astype(weights / ops.reduce_sum(weights, axis, True), dtype)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Poisson with mean lam, int64 by default; shape is lam's by default."""
    limits = iinfo(np.dtype(np.int64 if dtype is None else dtype))
    lam = _parameter(lam)
    u = open_unit(key, _full("poisson", shape, lam.shape), _FLOAT64, "poisson")
    return ops.astype(ops.special.poisson_quantile(u, lam), limits.dtype)


def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw normal vectors with a mean and a covariance matrix.

    Args:    key: uint32, shape (2,). mean: (..., n). cov: (..., n, n), symmetric and positive
             definite. shape: (...) by default, else one that it broadcasts to. dtype: float32 or
             float64.
    Returns: shape (*shape, n).
    Raises:  ShapeError: when shapes do not fit. DTypeError: when dtype is another, or key none.
             LinAlgError: when a matrix is not positive definite.
    Notes:   differentiable in both, at a fixed key.
    Example:
        >>> import funct as ft
        >>> import funct.array as xp
        >>> ft.random.multivariate_normal(ft.random.key(7), xp.zeros(2), xp.eye(2), (3,)).shape
        (3, 2)

    Source: jax.random.multivariate_normal, by its method "cholesky".
    """
    dtype = float_dtype("multivariate_normal", dtype)
    mean, cov = _parameter(mean), _parameter(cov)
    n = mean.shape[-1] if mean.shape else 0
    if not mean.shape or cov.shape[-2:] != (n, n):
        raise ShapeError(
            "random.multivariate_normal: mean must be (..., n) and cov (..., n, n), "
            f"got {mean.shape} and {cov.shape}"
        )
    full = _full("multivariate_normal", shape, mean.shape[:-1], cov.shape[:-2])
    z = normal(key, (*full, n, 1), _FLOAT64)
    moved = matmul(linalg.cholesky(cov), z)
    return ops.astype(mean + ops.reshape(moved, (*full, n)), dtype)


def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None) -> Any:
    """Draw orthogonal matrices, evenly distributed (Haar measure).

    Args:    key: uint32, shape (2,). n, m: rows and columns; as many by default. shape: how many
             matrices. dtype: float32 or float64.
    Returns: shape (*shape, n, m); the rows are orthonormal where n <= m, the columns where n >= m.
    Raises:  ShapeError: when n, m or shape are no lengths. DTypeError: when dtype is another, or
             key none.
    Example:
        >>> import funct as ft
        >>> q = ft.random.orthogonal(ft.random.key(7), 3)
        >>> bool((abs(q @ q.T - ft.array.eye(3)) < 1e-14).all())
        True

    Source: jax.random.orthogonal; Mezzadri 2007, arXiv:math-ph/0609050.
    """
    lead = normal_shape("random.orthogonal", shape)
    rows, columns = normal_shape("random.orthogonal", (n, n if m is None else m))
    wide = rows < columns
    full = (*lead, columns, rows) if wide else (*lead, rows, columns)
    q, r = linalg.qr(normal(key, full, float_dtype("orthogonal", dtype)))
    signs = 1.0 - 2.0 * ops.astype(ops.less(linalg.diagonal(r), 0.0), r.dtype)
    q = q * ops.reshape(signs, (*lead, 1, full[-1]))
    return matrix_transpose(q) if wide else q
