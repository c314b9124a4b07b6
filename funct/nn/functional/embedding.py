"""Rows of a table by index, one by one or pooled in bags."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct import ops
from funct.array.direct import direct
from funct.core import INEXACT
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.kernels import neural as kernels
from funct.nn.functional.arguments import from_begin
from funct.nn.functional.compiled import compiled
from funct.nn.functional.distance import p_norm

__all__ = ["embedding", "embedding_bag"]

_NO_SPARSE = "a derivative is a dense array here"
_NO_FREQUENCY = "it would make the derivative another one than the function's"


@direct(kernels.embedding, arrays=2)
def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """Take the rows of weight at the indices input.

    Args: input: integers, any shape. weight: shape (V, D). padding_idx: a row that gets no
    derivative. max_norm: rows with a larger norm_type-norm are scaled down to it; torch writes the
    scaled rows into weight, here they are only in the result, and the derivative sees the scaling.
    Returns: shape (*input.shape, D).
    Raises: ArgumentError: when padding_idx is outside the table, or scale_grad_by_freq or sparse is
    set. IndexOutOfBoundsError: when an index is outside [0, V).
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.embedding(xp.asarray([2, 0]), xp.asarray([[1.0], [2.0], [3.0]])).tolist()
        [[3.0], [1.0]]

    Source: torch.nn.functional.embedding.
    """
    _refuse("embedding", scale_grad_by_freq, sparse)
    rows = _rows("embedding", input, weight, max_norm, norm_type)
    if padding_idx is None:
        return rows
    still = xp.expand_dims(input == _inside("embedding", padding_idx, weight), -1)
    return ops.where(still, ops.stop_gradient(rows), rows)


@direct(kernels.embedding_bag, arrays=2, maybe=("offsets",))
@compiled
def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None,
    norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Take rows of weight and pool them in bags.

    Args: input: indices, shape (B, L): B bags; or (n,) with offsets, the places where bags begin,
    shape (B,), rising from 0. weight: shape (V, D). max_norm, norm_type: as in `embedding`. mode:
    "sum", "mean" or "max". per_sample_weights: factors of the rows, input's shape, for "sum".
    include_last_offset: offsets end in n, which begins no bag. padding_idx: an index that counts
    for nothing.
    Returns: shape (B, D); an empty bag gives 0.
    Raises: ShapeError, ArgumentError: when arguments do not go together. IndexOutOfBoundsError:
    when an index is outside [0, V).
    Notes: equal maxima share the derivative, torch gives it to the first.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> table = xp.asarray([[1.0], [2.0], [3.0]])
        >>> F.embedding_bag(xp.asarray([0, 1, 2]), table, xp.asarray([0, 2]), mode="sum").tolist()
        [[3.0], [3.0]]

    Source: torch.nn.functional.embedding_bag.
    """
    name = "embedding_bag"
    _refuse(name, scale_grad_by_freq, sparse)
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"{name}: mode must be 'sum', 'mean' or 'max', got {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError(f"{name}: per_sample_weights need mode 'sum', got {mode!r}")
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ShapeError(
            f"{name}: per_sample_weights must have input's shape {input.shape}, "
            f"got {per_sample_weights.shape}"
        )
    rows = _rows(name, input, weight, max_norm, norm_type)
    counted = None if padding_idx is None else input != _inside(name, padding_idx, weight)
    if per_sample_weights is not None:
        rows = rows * xp.expand_dims(per_sample_weights, -1)
    if len(input.shape) == 2:
        if offsets is not None:
            raise ArgumentError(f"{name}: offsets must be None for input (B, L), got an array")
        return _pooled_rows(rows, counted, mode)
    if len(input.shape) != 1 or offsets is None or len(offsets.shape) != 1:
        raise ShapeError(f"{name}: input must be (B, L), or (n,) with offsets, got {input.shape}")
    starts = offsets[:-1] if include_last_offset else offsets
    bag = xp.searchsorted(starts, xp.arange(input.shape[0]), side="right") - 1
    return _pooled_bags(rows, counted, bag, starts.shape[0], mode)


def _rows(name: str, i: Any, weight: Any, max_norm: float | None, p: float) -> Any:
    if len(weight.shape) != 2:
        raise ShapeError(f"{name}: weight must have shape (V, D), got {weight.shape}")
    if i.dtype in INEXACT:
        raise DTypeError(f"{name}: input must be integers, got {i.dtype}")
    rows = ops.take(weight, from_begin(i, weight.shape[0]), 0)
    if max_norm is None:
        return rows
    norm = p_norm(rows, p, (len(rows.shape) - 1,), True)
    return rows * ops.where(ops.greater(norm, max_norm), max_norm / (norm + 1e-7), 1.0)


def _refuse(name: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    if scale_grad_by_freq:
        raise ArgumentError(f"{name}: scale_grad_by_freq must be False: {_NO_FREQUENCY}")
    if sparse:
        raise ArgumentError(f"{name}: sparse must be False: {_NO_SPARSE}")


def _inside(name: str, padding_idx: int, weight: Any) -> int:
    n = weight.shape[0]
    if not -n <= padding_idx < n:
        raise ArgumentError(f"{name}: padding_idx must be within {n} rows, got {padding_idx}")
    return padding_idx % n


def _pooled_rows(rows: Any, counted: Any, mode: str) -> Any:
    """rows (B, L, D) to (B, D). counted: which of them are, None for all."""
    length = rows.shape[1]
    if mode == "max":
        if length == 0:
            return rows.sum(axis=1)
        if counted is None:
            return ops.reduce_max(rows, (1,), False)
        wide = xp.expand_dims(counted, -1)
        top = ops.reduce_max(ops.where(wide, rows, -xp.inf), (1,), False)
        return ops.where(ops.any(wide, (1,), False), top, 0.0)
    if counted is None:
        total = ops.reduce_sum(rows, (1,), False)
        return total if mode == "sum" else total / max(length, 1)
    wide = xp.expand_dims(counted, -1)
    total = ops.reduce_sum(ops.where(wide, rows, 0.0), (1,), False)
    if mode == "sum":
        return total
    return total / xp.maximum(xp.sum(xp.astype(wide, rows.dtype), axis=1), 1.0)


def _pooled_bags(rows: Any, counted: Any, bag: Any, bags: int, mode: str) -> Any:
    """rows (n, D) to (B, D), by the number of the bag of each. counted: as above."""
    if mode != "max":
        kept = rows if counted is None else ops.where(xp.expand_dims(counted, -1), rows, 0.0)
        total = ops.put(kept, bag, 0, bags)
        if mode == "sum":
            return total
    wide = xp.ones(bag.shape, dtype=xp.bool) if counted is None else counted
    number = xp.expand_dims(ops.put(xp.astype(wide, rows.dtype), bag, 0, bags), 1)
    if mode == "mean":
        return total / xp.maximum(number, 1.0)
    width = rows.shape[1]
    place = xp.reshape(xp.expand_dims(bag * width, 1) + xp.arange(width), (-1,))
    low = xp.full((bags * width,), -xp.inf, dtype=rows.dtype)
    if counted is not None:
        rows = ops.where(xp.expand_dims(counted, -1), rows, -xp.inf)
    top = xp.reshape(ops.scatter_combine(low, xp.reshape(rows, (-1,)), place, "max"), (bags, width))
    return ops.where(number > 0, top, 0.0)
