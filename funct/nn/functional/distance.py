"""Lengths and distances, with derivatives that are 0 where a length is 0."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import funct.array as xp
from funct import ops
from funct.array import Array
from funct.array.axes import normal_axes
from funct.array.conversion import check_allocation
from funct.array.in_single import narrowed, widened
from funct.array.powers import power
from funct.errors import ArgumentError, ShapeError
from funct.kernels.reductions import distances as kernels
from funct.nn.functional.compiled import compiled, concrete
from funct.nn.functional.own_rules import ruled
from funct.ops.fast import wrap
from funct.transforms import vjp
from funct.transforms.reverse import ReverseTracer

__all__ = ["cdist", "cosine_similarity", "normalize", "p_norm", "pairwise_distance", "pdist"]

_NARROW = 16  # elements of a row whose distances are computed from all rows to all
_FEW_ROWS = 25  # up to which torch takes no product of matrices
_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}  # fmt: skip


def p_norm(x: Any, p: float, axes: tuple[int, ...], keepdims: bool = False) -> Any:
    """(Σ |x|^p)^(1/p) over axes; p = inf is the maximum, p = 0 counts what is not 0."""
    size = ops.abs(x)
    if p == float("inf"):
        return ops.reduce_max(size, axes, keepdims)
    if p == float("-inf"):
        return ops.reduce_min(size, axes, keepdims)
    if p == 0:
        return ops.reduce_sum(xp.astype(x != 0, x.dtype), axes, keepdims)
    if p == 1:
        return ops.reduce_sum(size, axes, keepdims)
    if p == 2:
        powers = x * x
    elif p > 1:
        powers = size**p
    else:  # the slope of a power below 1 is infinite at 0
        powers = power(size, p)
    return power(ops.reduce_sum(powers, axes, keepdims), 1.0 / p)


@compiled
def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
    """Divide by the p-norm along dim, or by eps where that is larger.

    Args: dim: an axis or several.
    Raises: ShapeError: when dim does not exist.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.normalize(xp.asarray([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]

    Source: torch.nn.functional.normalize.
    """
    axes = normal_axes("normalize", dim, len(input.shape))
    (wide,) = widened(input)
    return narrowed(wide / _at_least(p_norm(wide, p, axes, True), eps), input)


@compiled
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Compute x1 · x2 / (|x1| |x2|) along dim; lengths count as at least eps.

    Raises: ShapeError: when the shapes do not broadcast or dim does not exist.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.cosine_similarity(xp.asarray([[1.0, 0.0]]), xp.asarray([[3.0, 4.0]])).tolist()
        [0.6]

    Source: torch.nn.functional.cosine_similarity.
    """
    try:
        x1, x2 = xp.broadcast_arrays(x1, x2)
    except ShapeError:
        raise _apart("cosine_similarity", x1, x2) from None
    axes = normal_axes("cosine_similarity", dim, len(x1.shape))
    a, b = (v / _at_least(p_norm(v, 2.0, axes, True), eps) for v in widened(x1, x2))
    return narrowed(ops.reduce_sum(a * b, axes, False), x1, x2)


@compiled
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """Compute the p-norm of x1 - x2 + eps along the last axis.

    Args: x1, x2: shape (N, D) or (D,), or what broadcasts to that.
    Returns: shape (N,) or (); (N, 1) or (1,) with keepdim.
    Raises: ShapeError: when the shapes do not broadcast.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x, y = xp.asarray([[0.0, 0.0]]), xp.asarray([[3.0, 4.0]])
        >>> round(float(F.pairwise_distance(x, y)[0]), 4)
        5.0

    Source: torch.nn.functional.pairwise_distance.
    """
    try:
        a, b = widened(x1, x2)
        difference = a - b + eps
    except ShapeError:
        raise _apart("pairwise_distance", x1, x2) from None
    return narrowed(p_norm(difference, p, (len(difference.shape) - 1,), keepdim), x1, x2)


def cdist(
    x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Any:
    """Compute the p-norm distances from all rows of x1 to all rows of x2.

    Args: x1: shape (*B, N, M). x2: shape (*B, K, M), where batches broadcast. compute_mode: whether
    Euclidean distances come from products of matrices ("use_mm_for_euclid_dist"), which loses
    digits of short ones, or not ("donot_use_mm_for_euclid_dist"); as it is, where there are more
    than 25 rows of more than 16 elements.
    Returns: shape (*B, N, K).
    Raises: ShapeError: when x1 or x2 has fewer than two axes, or the shapes do not fit.
    ArgumentError: when p is negative or the mode is unknown.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.cdist(xp.asarray([[0.0, 0.0]]), xp.asarray([[3.0, 4.0], [0.0, 1.0]])).tolist()
        [[5.0, 1.0]]

    Source: torch.cdist.
    """
    if min(len(x1.shape), len(x2.shape)) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"cdist: x1 and x2 must have shapes (*B, N, M) and (*B, K, M), got {x1.shape} and "
            f"{x2.shape}"
        )
    if p < 0:
        raise ArgumentError(f"cdist: p must not be negative, got {p}")
    if compute_mode not in _MODES:
        raise ArgumentError(
            f"cdist: compute_mode must be one of {list(_MODES)}, got {compute_mode!r}"
        )
    by_products = _MODES[compute_mode]
    if by_products is None:
        many = x1.shape[-2] > _FEW_ROWS or x2.shape[-2] > _FEW_ROWS
        by_products = many and x1.shape[-1] > _NARROW
    try:
        return (_by_products if p == 2 and by_products else _by_differences)(x1, x2, float(p))
    except ShapeError:
        raise _apart("cdist", x1, x2) from None


@functools.partial(compiled, least=256)
def _by_differences(x1: Any, x2: Any, p: float) -> Any:
    a, b = widened(x1, x2)
    every = xp.expand_dims(a, -2) - xp.expand_dims(b, -3)
    return narrowed(p_norm(every, p, (len(every.shape) - 1,)), x1, x2)


@compiled
def _by_products(x1: Any, x2: Any, p: float) -> Any:
    """|a - b|² is |a|² - 2 a b + |b|², and no less than 0."""
    a, b = widened(x1, x2)
    of_a, of_b = (xp.sum(v * v, axis=-1) for v in (a, b))
    squares = xp.expand_dims(of_a, -1) + xp.expand_dims(of_b, -2) - 2.0 * (a @ b.mT)
    return narrowed(power(xp.where(squares < 0, 0.0, squares), 0.5), x1, x2)


def pdist(input: Any, p: float = 2) -> Any:
    """Compute the p-norm distances between all pairs of rows.

    Args: input: shape (N, M).
    Returns: shape (N (N - 1) / 2,), in the order (0, 1), (0, 2), …, (1, 2), …
    Raises: ShapeError: when input has not two axes. ArgumentError: when p is negative.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.pdist(xp.asarray([[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]])).tolist()
        [5.0, 4.0, 3.0]

    Source: torch.nn.functional.pdist.
    """
    if input.__class__ is Array:
        found = kernels.few_pair_distances(input.data, p)
        if found is not None:
            return wrap(found)
    if len(input.shape) != 2:
        raise ShapeError(f"pdist: input must have shape (N, M), got {input.shape}")
    if p < 0:
        raise ArgumentError(f"pdist: p must not be negative, got {p}")
    rows, columns = map(int, input.shape)
    narrow = columns <= _NARROW
    pairs = (rows, rows) if narrow else (rows * (rows - 1) // 2,)
    check_allocation("pdist", (*pairs, columns), input.dtype)
    (wide,) = widened(input)
    if wide.__class__ is Array:
        return narrowed(_measured(wide, p)[0], input)
    known = wide.__class__ is ReverseTracer and concrete(wide)
    return narrowed(_known_pairs(wide, p) if known else _pairs(wide, p), input)


def _measured(x: Any, p: float) -> tuple[Any, tuple[Any, ...]]:
    """Distances by a kernel, and what its way back keeps; or by the composition, and x alone."""
    found = kernels.pair_distances(x.data, p) if x.__class__ is Array else None
    if found is None:
        return _pairs(x, p), (x,)
    return wrap(found), (x, wrap(found))


def _measured_back(p: float, kept: tuple[Any, ...], g: Any) -> tuple[Any]:
    x = kept[0]
    if g.__class__ is Array is kept[-1].__class__ and len(kept) > 1:
        return (wrap(kernels.pair_distances_back(g.data, x.data, kept[1].data, p)),)
    return vjp(lambda x: _pairs(x, p), x)[1](g)


def _pairs(x: Any, p: float) -> Any:
    """The composition."""
    rows, columns = x.shape
    if columns > _NARROW:
        return _pair_distances(x, p)
    lengths = ops.reshape(_upper_distances(x, p), (rows * rows,))
    return ops.take(lengths, wrap(_above_diagonal(int(rows))), 0)


# where all is known: one kernel, and one for the way back
_known_pairs = ruled(_pairs, _measured, _measured_back, fixed=1)


@functools.lru_cache(4)
def _above_diagonal(rows: int) -> Any:
    """Where in a flat matrix of so many rows and columns its upper triangle stands."""
    return np.flatnonzero(_upper(rows))


def _upper(rows: int) -> Any:
    return np.triu(np.ones((rows, rows), bool), 1)


@functools.partial(compiled, least=256)
def _upper_distances(x: Any, p: float) -> Any:
    """Of each row from all behind it, and 0: loops over all pairs, with no index in them."""
    every = xp.expand_dims(x, 1) - x
    return p_norm(ops.where(wrap(_upper(int(x.shape[0]))[..., None]), every, 0.0), p, (2,))


@functools.partial(compiled, least=256)
def _pair_distances(x: Any, p: float) -> Any:
    first, second = np.triu_indices(int(x.shape[0]), 1)
    return p_norm(ops.take(x, wrap(first), 0) - ops.take(x, wrap(second), 0), p, (1,))


def _apart(name: str, x1: Any, x2: Any) -> ShapeError:
    return ShapeError(f"{name}: x1 and x2 must broadcast, got {x1.shape} and {x2.shape}")


def _at_least(length: Any, eps: float) -> Any:
    return ops.where(ops.less(length, eps), eps, length)
