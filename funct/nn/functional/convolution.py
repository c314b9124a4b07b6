"""Convolution over one and two spatial axes, in torch's layout: (N, C, *S)."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct import ops
from funct.errors import ArgumentError, ShapeError
from funct.nn.functional.arguments import Ints, batched, per_axis, unbatched

__all__ = ["conv1d", "conv2d", "padding_pairs"]

Pairs = tuple[tuple[int, int], ...]


def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Ints = 1, padding: Ints | str = 0,
    dilation: Ints = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Cross-correlate a signal with a bank of kernels.

    Args: input: shape (N, C, L) or (C, L). weight: shape (O, C / groups, K). bias: shape (O,) or
    None. padding: zeros on both sides: an int, "valid" (none) or "same" (as long as the input;
    stride 1).
    Returns: shape (N, O, T) or (O, T), T = (L + 2 padding - dilation (K - 1) - 1) // stride + 1.
    Raises: ShapeError: when rank or channels do not fit. ArgumentError: when stride, padding,
    dilation or groups is out of range.
    Source: torch.nn.functional.conv1d.
    """
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Ints = 1, padding: Ints | str = 0,
    dilation: Ints = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Cross-correlate an image with a bank of kernels.

    Args: input: shape (N, C, H, W) or (C, H, W). weight: shape (O, C / groups, K, K). The rest: as
    in `conv1d`; an int stands for both axes.
    Returns: shape (N, O, *T) or (O, *T).
    Raises: ShapeError, ArgumentError: as `conv1d`.
    Source: torch.nn.functional.conv2d.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.conv2d(xp.ones((1, 3, 8, 8)), xp.ones((4, 3, 3, 3)), padding="same").shape
        (1, 4, 8, 8)
    """
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def _conv(
    name: str, rank: int, x: Any, w: Any, bias: Any, stride: Ints, padding: Ints | str,
    dilation: Ints, groups: int,
) -> Any:  # fmt: skip
    x, added = batched(name, x, rank, "L" if rank == 1 else "H, W")
    if len(w.shape) != rank + 2:
        raise ShapeError(f"{name}: weight must have {rank + 2} axes, got {w.shape}")
    if groups < 1 or w.shape[0] % groups:
        raise ArgumentError(
            f"{name}: groups must divide {w.shape[0]} output channels, got {groups}"
        )
    if x.shape[1] != w.shape[1] * groups:
        raise ShapeError(
            f"{name}: input must have {w.shape[1] * groups} channels, got {x.shape[added:]}"
        )
    strides = per_axis(name, "stride", stride, rank)
    dilations = per_axis(name, "dilation", dilation, rank)
    pairs = padding_pairs(name, padding, w.shape[2:], strides, dilations)
    y = ops.convolution(x, w, strides, pairs, dilations, groups)
    if bias is not None:
        y = y + xp.reshape(bias, (1, -1, *(1,) * rank))  # (1, O, 1, ...)
    return unbatched(y, added)


def padding_pairs(
    name: str, padding: Ints | str, kernel: tuple[int, ...], stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Pairs:  # fmt: skip
    """One (low, high) pair per spatial axis; "same" puts an odd zero behind."""
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if any(s != 1 for s in stride):
            raise ArgumentError(f"{name}: padding='same' needs stride 1, got {stride}")
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return tuple([(t // 2, t - t // 2) for t in totals])
    if isinstance(padding, str):
        raise ArgumentError(f"{name}: padding must be ints, 'same' or 'valid', got {padding!r}")
    return tuple([(p, p) for p in per_axis(name, "padding", padding, len(kernel), 0)])
