"""Linear maps and what rearranges or encodes their input."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct.array.axes import normal_axis
from funct.errors import ArgumentError, ShapeError

__all__ = ["flatten", "linear", "one_hot"]


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Compute y = x Wᵀ + b over the last axis.

    Args: input: shape (*, I). weight: shape (O, I) or (I,). bias: shape (O,) or (), or None.
    Returns: shape (*, O), or (*) for a 1-D weight.
    Raises: ShapeError: when the last axis of input is not I long.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.linear(xp.ones((2, 3)), xp.ones((4, 3))).shape
        (2, 4)
    """
    if not input.shape or input.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            f"linear: input must have {weight.shape[-1]} features on its last axis, "
            f"got {input.shape}"
        )
    y = input @ (weight.mT if len(weight.shape) > 1 else weight)
    return y if bias is None else y + bias


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Join the axes start_dim … end_dim into one.

    Raises: ShapeError: when an axis does not exist or start_dim stands behind end_dim.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.flatten(xp.ones((2, 3, 4)), 1).shape
        (2, 12)
    """
    shape = input.shape or (1,)
    start, end = (normal_axis("flatten", d, len(shape)) for d in (start_dim, end_dim))
    if start > end:
        raise ShapeError(
            f"flatten: start_dim must not stand behind end_dim, got {start_dim}, {end_dim}"
        )
    if start == end and input.shape:
        return input
    joined: Any = 1  # no math.prod: a length may be symbolic
    for n in shape[start : end + 1]:
        joined = n if joined == 1 else joined * n
    return xp.reshape(input, (*shape[:start], joined, *shape[end + 1 :]))


def one_hot(input: Any, num_classes: int = -1) -> Any:
    """Mark each index by a 1 in a new last axis of length num_classes.

    Args: input: integers >= 0. num_classes: -1 takes the largest index + 1, which asks for values.
    Returns: int64, shape (*input.shape, num_classes).
    Raises: ArgumentError: when num_classes is neither -1 nor positive.
    Notes: an index outside the classes gives a row of zeros, where torch raises.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.one_hot(xp.asarray([1, 0]), 3).tolist()
        [[0, 1, 0], [1, 0, 0]]
    """
    if num_classes != -1 and num_classes < 1:
        raise ArgumentError(f"one_hot: num_classes must be -1 or positive, got {num_classes}")
    n = int(xp.max(input)) + 1 if num_classes == -1 else num_classes
    hits = xp.expand_dims(input, -1) == xp.arange(n, dtype=input.dtype)
    return xp.astype(hits, xp.int64)
