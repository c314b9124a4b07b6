"""Polynomials, given by their coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import integers
from funct.array.conversion import asarray, check_allocation, promoted
from funct.array.creation import arange, eye, ones_like, zeros
from funct.array.cumulative import cumulative_prod
from funct.array.direct import direct
from funct.array.dtypes import finfo
from funct.array.elementwise import floating
from funct.array.joining import concat, stack, unstack
from funct.array.linalg.decompositions import eigvals
from funct.array.linalg.norms import vector_norm
from funct.array.linalg.solving import lstsq
from funct.array.manipulation import broadcast_to
from funct.array.searching import argsort, take
from funct.core import INEXACT
from funct.errors import ArgumentError, ConcretizationError, ShapeError, UnknownValueError
from funct.kernels import composed

__all__ = ["polyder", "polyfit", "polyint", "polyval", "roots", "vander"]


def roots(p: Any, /) -> Any:
    """The n roots of p[0] xⁿ + p[1] xⁿ⁻¹ + … + p[n]: eigenvalues of the companion matrix.

    Args: p: Shape (n + 1,). Leading coefficients that are 0 are left out; where nobody can know,
    in lanes of a vmap, p[0] must not be 0.
    Returns: complex, (n,), in LAPACK's order, but those that are 0 come last, as NumPy's do. The
    derivative needs roots that differ.
    Raises: ShapeError: p is not 1-D.

    Example:
        >>> import funct.array as xp
        >>> xp.sort(xp.real(xp.roots(xp.asarray([1.0, -3.0, 2.0])))).tolist()
        [1.0, 2.0]

    Source: NumPy `roots`.
    """
    p = floating(_vector("roots", "p", p))
    while p.shape[0] and _is_zero(p[0]):
        p = p[1:]
    n = p.shape[0] - 1
    if n < 1:
        return zeros((0,), dtype=np.result_type(p.dtype, np.complex64))
    first = (-p[1:] / p[0])[None, :]
    found = eigvals(concat([first, eye(n - 1, n, dtype=p.dtype)]))
    return take(found, argsort(ops.equal(found, 0))) if _is_zero(p[n]) else found


def _is_zero(x: Any) -> bool:
    try:
        return not x
    except UnknownValueError:
        raise
    except ConcretizationError:
        return False


@direct(composed.polyval, maybe=("x",))
def polyval(p: Any, /, x: Any) -> Any:
    """p[0] xⁿ + p[1] xⁿ⁻¹ + … + p[n] for each x, by Horner's rule.

    Args: p: Shape (n + 1,).
    Example:
        >>> import funct.array as xp
        >>> xp.polyval(xp.asarray([1.0, 0.0, 2.0]), xp.asarray([0.0, 3.0])).tolist()
        [2.0, 11.0]

    Source: NumPy `polyval`.
    """
    p, x = _vector("polyval", "p", p), asarray(x)
    y = ops.broadcast_to(ops.astype(asarray(0), p.dtype), x.shape)
    for c in unstack(p):
        y = y * x + c
    return y


@direct(composed.polyder)
def polyder(p: Any, /, m: int = 1) -> Any:
    """Coefficients of the m-th derivative of a polynomial, highest power first.

    Example:
        >>> import funct.array as xp
        >>> xp.polyder(xp.asarray([1.0, 2.0, 3.0])).tolist()
        [2.0, 2.0]

    Source: NumPy `polyder`.
    """
    p = _vector("polyder", "p", p)
    for _ in range(_order("polyder", m)):
        if p.shape[0].__class__ is int and not p.shape[0]:
            break
        p = p[:-1] * arange(p.shape[0] - 1, 0, -1)
    return p


@direct(composed.polyint)
def polyint(p: Any, /, m: int = 1, k: Any = 0.0) -> Any:
    """Coefficients of the m-th antiderivative of a polynomial, highest power first.

    k: the constant of each integration, or one number for all.
    Example:
        >>> import funct.array as xp
        >>> xp.polyint(xp.asarray([2.0, 2.0]), k=3.0).tolist()
        [1.0, 2.0, 3.0]

    Source: NumPy `polyint`.
    """
    p, m = _vector("polyint", "p", p), _order("polyint", m)
    if m > _MOST:
        raise ArgumentError(f"polyint: m must be at most {_MOST}, got {m}")
    constants = broadcast_to(asarray(k), (m,))
    for i in range(m):
        p = concat([p / arange(p.shape[0], 0, -1), constants[i : i + 1]])
    return p


@direct(composed.vander)
def vander(x: Any, /, N: int | None = None, increasing: bool = False) -> Any:
    """Powers of x as columns, from N - 1 down to 0, or up if increasing.

    Args: x: Shape (k,). N: how many columns, by default k.
    Returns: (k, N); floating in x's dtype, of integers in int64 at least, which can overflow.
    Example:
        >>> import funct.array as xp
        >>> xp.vander(xp.asarray([2, 3]), 3).tolist()
        [[4, 2, 1], [9, 3, 1]]

    Source: NumPy `vander`.
    """
    x = _vector("vander", "x", x)
    if x.dtype not in INEXACT:
        x = ops.astype(x, np.result_type(x.dtype, np.int64))
    n = x.shape[0] if N is None else _order("vander", N)
    check_allocation("vander", (*x.shape, n), x.dtype)
    if n.__class__ is not int or n > _COLUMNS:  # a length that varies, or many ops
        factors = broadcast_to(x[:, None], (x.shape[0], n - 1))
        factors = concat([ones_like(x)[:, None], factors], axis=1)
        powers = cumulative_prod(factors, axis=1)
        return powers if increasing else powers[:, ::-1]
    powers = [ones_like(x)][:n]
    while len(powers) < n:
        powers.append(powers[-1] * x)
    if not powers:
        return zeros((x.shape[0], 0), dtype=x.dtype)
    return stack(powers if increasing else powers[::-1], axis=1)


@direct(composed.polyfit, arrays=2, maybe=("w",))
def polyfit(x: Any, /, y: Any, deg: int, rcond: float | None = None, w: Any = None) -> Any:
    """Coefficients of the polynomial of degree deg that fits the points (x, y) best, by squares.

    Args: x: Shape (k,). y: Shape (k,) or (k, m). rcond: as in `linalg.lstsq`, by default k times
    the machine epsilon. w: weights of the points' distances, Shape (k,).
    Returns: (deg + 1,) or (deg + 1, m), highest power first.
    Raises: ShapeError: when y has not one row, or w not one weight, per x.
    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([0.0, 1.0, 2.0, 3.0])
        >>> xp.round(xp.polyfit(x, 3.0 * x + 1.0, 1)).tolist()
        [3.0, 1.0]

    Source: NumPy `polyfit`.
    """
    x, y = floating(_vector("polyfit", "x", x)), floating(asarray(y))
    if len(y.shape) not in (1, 2) or y.shape[0] != x.shape[0]:
        raise ShapeError(f"polyfit: y must have a row per x {x.shape}, got shape {y.shape}")
    columns = vander(x, _order("polyfit", deg) + 1)
    if w is not None:
        w = floating(_vector("polyfit", "w", w))
        if w.shape != x.shape:
            raise ShapeError(f"polyfit: w must have x's shape {x.shape}, got {w.shape}")
        columns, y = columns * w[:, None], y * (w[:, None] if len(y.shape) == 2 else w)
    columns, y = promoted([columns, y])
    size = vector_norm(columns, axis=0)
    size = ops.where(ops.equal(size, 0), 1.0, size)
    if rcond is None and (x.dtype != columns.dtype or x.shape[0] <= deg):
        rcond = x.shape[0] * finfo(x.dtype).eps  # else it is lstsq's own
    c = lstsq(columns / size, y, rcond).solution
    return c / (size[:, None] if len(y.shape) == 2 else size)


def _vector(name: str, argument: str, x: Any) -> Any:
    x = asarray(x)
    if len(x.shape) != 1:
        raise ShapeError(f"{name}: {argument} must have rank 1, got shape {x.shape}")
    return x


_MOST = 4096
_COLUMNS = 64  # of which each is an op


def _order(name: str, n: Any) -> int:
    """A number of columns, degrees or derivatives."""
    (n,) = integers(name, "order", n)
    if n < 0:
        raise ArgumentError(f"{name}: order must not be negative, got {n}")
    return int(n)
