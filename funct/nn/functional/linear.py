"""Linear and bilinear maps, and class numbers as vectors."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct.array.direct import direct
from funct.errors import ArgumentError, ShapeError
from funct.kernels import neural as kernels

__all__ = ["bilinear", "linear", "one_hot"]


@direct(kernels.linear, arrays=2, maybe=("bias",))
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


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """Compute y_o = x1ᵀ W_o x2 + b_o over the last axes.

    Args: input1: shape (*, I1). input2: shape (*, I2). weight: shape (O, I1, I2). bias: shape (O,)
    or None.
    Returns: shape (*, O).
    Raises: ShapeError: when the shapes do not fit.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.bilinear(xp.asarray([[1.0, 2.0]]), xp.asarray([[3.0]]), xp.ones((4, 2, 1))).tolist()
        [[9.0, 9.0, 9.0, 9.0]]

    Source: torch.nn.functional.bilinear.
    """
    if len(weight.shape) != 3:
        raise ShapeError(f"bilinear: weight must have shape (O, I1, I2), got {weight.shape}")
    o, i1, i2 = weight.shape
    lead = input1.shape[:-1]
    if input1.shape[-1:] != (i1,) or input2.shape[-1:] != (i2,) or input2.shape[:-1] != lead:
        raise ShapeError(
            f"bilinear: inputs must have shapes (*, {i1}) and (*, {i2}), got {input1.shape} and "
            f"{input2.shape}"
        )
    half = input1 @ xp.reshape(xp.permute_dims(weight, (1, 0, 2)), (i1, o * i2))  # (*, O I2)
    half = xp.reshape(half, (*lead, o, i2))
    y = xp.squeeze(half @ xp.expand_dims(input2, -1), -1)  # (*, O)
    return y if bias is None else y + bias


@direct(kernels.one_hot)
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
