"""Polynomials, given by their coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.conversion import as_tensor
from funct.array.creation import eye, zeros
from funct.array.linalg.decompositions import eigvals
from funct.array.manipulation import concat
from funct.core import INEXACT
from funct.errors import ConcretizationError, ShapeError

__all__ = ["roots"]


def roots(p: Any, /) -> Any:
    """The n roots of p[0] xⁿ + p[1] xⁿ⁻¹ + … + p[n]: eigenvalues of the companion matrix.

    Args: p: Shape (n + 1,). Leading coefficients that are 0 are left out; where nobody can know,
    in lanes of a vmap, p[0] must not be 0.
    Returns: complex, (n,), in LAPACK's order. The derivative needs roots that differ.
    Raises: ShapeError: p is not 1-D.

    Example:
        >>> import funct.array as xp
        >>> xp.sort(xp.real(xp.roots(xp.asarray([1.0, -3.0, 2.0])))).tolist()
        [1.0, 2.0]

    Source: NumPy `roots`.
    """
    p = as_tensor("roots", p)
    if len(p.shape) != 1:
        raise ShapeError(f"roots: p must have rank 1, got shape {p.shape}")
    if p.dtype not in INEXACT:
        p = ops.astype(p, np.dtype(np.float64))
    while p.shape[0] and _is_zero(p[0]):
        p = p[1:]
    n = p.shape[0] - 1
    if n < 1:
        return zeros((0,), dtype=np.result_type(p.dtype, np.complex64))
    first = (-p[1:] / p[0])[None, :]
    return eigvals(concat([first, eye(n - 1, n, dtype=p.dtype)]))


def _is_zero(x: Any) -> bool:
    try:
        return not x
    except ConcretizationError:
        return False
