"""Distributions with parameters.

Gamma and Poisson numbers are primitives, which accept or reject (docs/decisions/0017); beta and
Dirichlet numbers are made of gamma numbers. Draws are made in float64 and rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array import Array, asarray, iinfo, linalg, matmul, matrix_transpose
from funct.array.axes import normal_shape
from funct.array.creation import served
from funct.array.direct import direct
from funct.core import Shape, Value
from funct.errors import DTypeError, ShapeError
from funct.kernels.random import draws
from funct.ops.broadcasting import broadcast_shapes
from funct.ops.counting import lifted
from funct.random.draws import normal, open_unit
from funct.random.keys import drawn_in, float_dtype, integer_dtype, known, rounded

__all__ = [
    "beta", "dirichlet", "gamma", "multivariate_normal", "orthogonal", "poisson",
    "truncated_normal",
]  # fmt: skip

_FLOAT64 = np.dtype(np.float64)
_FAR = -36.0  # from here down the lower tail's probability loses digits, and then is 0
_BOTTOM = -1e100  # draws so far out are closer to their limit than the next float; it has a square
_FEW = 32  # rows of matrices of which each draw has its own: such products are written out


def _parameter(name: str, argument: str, x: Any) -> Any:
    """A parameter in float64."""
    x = x if isinstance(x, Value) else asarray(x)
    if x.dtype.kind == "c":
        raise DTypeError(f"random.{name}: {argument} must be of real numbers, got {x.dtype}")
    return ops.astype(x, _FLOAT64)


def _full(name: str, shape: Any, *parts: Shape) -> Shape:
    """The shape of the draws: that of the parameters, or one that they broadcast to."""
    asked = None if shape is None else normal_shape(f"random.{name}", shape)
    try:
        own = broadcast_shapes(*parts)
        full = own if asked is None else asked
        fits = broadcast_shapes(own, full) == full
    except ValueError as error:
        raise ShapeError(f"random.{name}: the parameters' shapes must broadcast: {error}") from None
    if not fits:
        raise ShapeError(f"random.{name}: parameters of shape {own} must broadcast to {full}")
    return full


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw standard normal numbers, given that they lie in [lower, upper].

    Args:    key: uint32, shape (..., 2). lower, upper: numbers or arrays that broadcast to shape.
             shape: that of the limits by default. dtype: float16, bfloat16, float32 or float64.
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
    lower = _parameter("truncated_normal", "lower", lower)
    upper = _parameter("truncated_normal", "upper", upper)
    full = _full("truncated_normal", shape, lower.shape, upper.shape)
    above = ops.greater(lower, 0.0)  # the lower tail has more digits than the upper one
    low, high = ops.where(above, -upper, lower), ops.where(above, -lower, upper)
    start, end = ops.special.ndtr(low), ops.special.ndtr(high)
    u = open_unit(key, full, _FLOAT64, "truncated_normal")
    p, far = start + u * (end - start), ops.less(high, _FAR)
    if isinstance(far, Array) and not far.data.any():
        x = ops.special.ndtri(p)
    else:
        tail = _far_below(u, ops.where(far, low, 2.0 * _FAR), ops.where(far, high, _FAR))
        x = ops.where(far, tail, ops.special.ndtri(ops.where(far, 0.5, p)))
    x = ops.minimum(ops.maximum(x, low), high)
    return ops.astype(ops.where(above, -x, x), dtype)


def _far_below(u: Any, low: Any, high: Any) -> Any:
    """Normal numbers between limits whose probabilities may be less than any float."""
    low, high = ops.maximum(low, 2.0 * _BOTTOM), ops.maximum(high, _BOTTOM)
    top = ops.special.log_ndtr(high)
    share = ops.expm1(ops.special.log_ndtr(low) - top)  # of the upper tail that is cut off, minus 1
    return ops.special.ndtri_exp(top + ops.log1p((1.0 - u) * share))


def _gammas(key: Any, a: Any, full: Shape, dtype: Any, logarithm: bool, second: bool) -> Any:
    """Gamma numbers of a shape that a broadcasts to, or their logarithms."""
    known(key)
    if len(a.shape):
        a = ops.broadcast_to(a, (*key.shape[:-1], *full))
    return served(ops.random_gamma(lifted(key, full), a, full, dtype, logarithm, second))


@direct(draws.gamma, maybe=("a",))
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw gamma numbers with shape parameter a and scale 1.

    Args:    key: uint32, shape (..., 2). a: a number or an array that broadcasts to shape.
             shape: a's by default. dtype: float16, bfloat16, float32 or float64.
    Returns: shape (..., *shape). 0 for a = 0, infinity for infinity, NaN for a < 0 and NaN; for a
             far below 1 many draws are below the least float, and 0.
    Raises:  ShapeError: when a does not broadcast to shape. DTypeError: when dtype is another, or
             key none.
    Notes:   differentiable in a: the derivative is the implicit one, -(∂P/∂a) / density, that of
             the quantile at the draw's own rank, so that means of derivatives are derivatives of
             means. At a fixed key draws jump as a changes, so differences tell nothing.
    Example:
        >>> import funct as ft
        >>> x = ft.random.gamma(ft.random.key(7), 2.0, (1000,))
        >>> abs(float(x.mean()) - 2.0) < 0.2
        True

    Source: jax.random.gamma; Marsaglia, Tsang 2000, https://doi.org/10.1145/358407.358414;
            Figurnov, Mohamed, Mnih 2018, arXiv:1805.08498, for the derivative. Computed in float64.
    """
    dtype, a = float_dtype("gamma", dtype), _parameter("gamma", "a", a)
    wide = dtype if dtype.itemsize > 2 else _FLOAT64
    full = _full("gamma", shape, a.shape)
    return rounded(_gammas(key, a, full, wide, False, False), dtype)


@direct(draws.beta, maybe=("a", "b"))
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw beta numbers with parameters a and b.

    Args:    key: uint32, shape (..., 2). a, b: numbers or arrays that broadcast to shape. shape:
             theirs by default. dtype: float16, bfloat16, float32 or float64.
    Returns: shape (..., *shape). A parameter of 0, or the other one of infinity, gives 0 or 1;
             NaN where both are, and for negative ones and NaN.
    Raises:  ShapeError: when shapes do not fit. DTypeError: when dtype is another, or key none.
    Notes:   differentiable in both, by the implicit derivatives of the two gamma numbers.
    Example:
        >>> import funct as ft
        >>> x = ft.random.beta(ft.random.key(7), 1.0, 3.0, (1000,))
        >>> abs(float(x.mean()) - 0.25) < 0.05
        True

    Source: jax.random.beta: x / (x + y) of gamma numbers, by their logarithms, since both may be
            less than the least float. Computed in float64.
    """
    dtype = float_dtype("beta", dtype)
    a, b = _parameter("beta", "a", a), _parameter("beta", "b", b)
    full = _full("beta", shape, a.shape, b.shape)
    x, y = (_gammas(key, v, full, _FLOAT64, True, i == 1) for i, v in enumerate((a, b)))
    return ops.astype(ops.random_share(x - y), dtype)


@direct(draws.dirichlet, arrays=2)
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw points of a Dirichlet distribution, which sum to 1.

    Args:    key: uint32, shape (..., 2). alpha: (*batch, k), its parameters. shape: that of the
             draws without their last axis, batch by default, else one that it broadcasts to.
             dtype: float16, bfloat16, float32 or float64.
    Returns: shape (..., *shape, k). A component whose parameter is 0 is 0; NaN where all are 0, and
             for infinite or negative ones and NaN.
    Raises:  ShapeError: when alpha has no axis, or shapes do not fit. DTypeError: when dtype is
             another, or key none.
    Notes:   differentiable in alpha, by the implicit derivatives of the gamma numbers.
    Example:
        >>> import funct as ft
        >>> import funct.array as xp
        >>> x = ft.random.dirichlet(ft.random.key(7), xp.asarray([1.0, 2.0, 3.0]), (5,))
        >>> x.shape, bool((abs(x.sum(axis=-1) - 1.0) < 1e-15).all())
        ((5, 3), True)

    Source: jax.random.dirichlet: gamma numbers divided by their sum, by their logarithms, since all
            may be less than the least float. Computed in float64.
    """
    dtype = float_dtype("dirichlet", dtype)
    alpha = _parameter("dirichlet", "alpha", alpha)
    if not alpha.shape:
        raise ShapeError("random.dirichlet: alpha must have an axis, got a 0-d array")
    full = (*_full("dirichlet", shape, alpha.shape[:-1]), alpha.shape[-1])
    logs = _gammas(key, alpha, full, _FLOAT64, True, False)
    return ops.astype(ops.random_shares(logs), dtype)


@direct(draws.poisson, maybe=("lam",))
def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw counts of Poisson distributions with mean lam.

    Args:    key: uint32, shape (..., 2). lam: a number or an array that broadcasts to shape.
             shape: lam's by default. dtype: of integers, int64 by default.
    Returns: shape (..., *shape). -1 for a negative lam and NaN, as in JAX; a count that dtype, or
             int64, does not hold is the largest one.
    Raises:  ShapeError: when lam does not broadcast to shape. DTypeError: when dtype is another, or
             key none.
    Example:
        >>> import funct as ft
        >>> x = ft.random.poisson(ft.random.key(7), 3.0, (1000,))
        >>> abs(float(x.mean()) - 3.0) < 0.2
        True

    Source: jax.random.poisson; below a mean of 10 by inversion, from there on by Hörmann 1993,
            https://doi.org/10.1016/0167-6687(93)90997-4. Computed in float64.
    """
    dtype, lam = integer_dtype("poisson", dtype), _parameter("poisson", "lam", lam)
    full = _full("poisson", shape, lam.shape)
    known(key)
    if len(lam.shape):
        lam = ops.broadcast_to(lam, (*key.shape[:-1], *full))
    if dtype.kind in "iu":
        return served(ops.random_poisson(lifted(key, full), lam, full, dtype))
    most = iinfo(dtype).max  # of 4 bits
    drawn = ops.random_poisson(lifted(key, full), lam, full, np.dtype(np.int8))
    return ops.astype(ops.minimum(drawn, most), dtype)


def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Draw normal vectors with a mean and a covariance matrix.

    Args:    key: uint32, shape (2,). mean: (..., n). cov: (..., n, n), symmetric and positive
             definite. shape: (...) by default, else one that it broadcasts to. dtype: float16,
             bfloat16, float32 or float64.
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
    mean = _parameter("multivariate_normal", "mean", mean)
    cov = _parameter("multivariate_normal", "cov", cov)
    n = mean.shape[-1] if mean.shape else 0
    if not mean.shape or cov.shape[-2:] != (n, n):
        raise ShapeError(
            "random.multivariate_normal: mean must be (..., n) and cov (..., n, n), "
            f"got {mean.shape} and {cov.shape}"
        )
    full = _full("multivariate_normal", shape, mean.shape[:-1], cov.shape[:-2])
    moved = _moved(linalg.cholesky(cov), normal(key, (*full, n), _FLOAT64))
    return ops.astype(mean + moved, dtype)


def _moved(factors: Any, z: Any) -> Any:
    """Vectors times matrices (..., n, n), by sums whose order is the same wherever they are made:
    one product of matrices, or additions of elements.
    """
    n = z.shape[-1]
    if len(factors.shape) == 2:
        return matmul(z, matrix_transpose(factors))
    if n > _FEW:
        return ops.reshape(matmul(factors, z[..., None]), z.shape)
    moved = factors[..., 0] * z[..., :1]
    for k in range(1, n):
        moved = moved + factors[..., k] * z[..., k : k + 1]
    return moved


def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None) -> Any:
    """Draw orthogonal matrices, evenly distributed (Haar measure).

    Args:    key: uint32, shape (2,). n, m: rows and columns; as many by default. shape: how many
             matrices. dtype: float16, bfloat16, float32 or float64.
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
    dtype = float_dtype("orthogonal", dtype)
    q, r = linalg.qr(normal(key, full, drawn_in(dtype)))
    signs = 1.0 - 2.0 * ops.astype(ops.less(linalg.diagonal(r), 0.0), r.dtype)
    q = rounded(q * ops.reshape(signs, (*lead, 1, full[-1])), dtype)
    return matrix_transpose(q) if wide else q
