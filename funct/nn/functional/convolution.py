"""Convolution and its transpose over one to three spatial axes, in torch's layout: (N, C, *S)."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct import ops
from funct.array.direct import direct
from funct.errors import ArgumentError, ShapeError
from funct.kernels import neural as kernels
from funct.nn.functional.arguments import Ints, Pairs, Sizes, batched, per_axis, unbatched

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "padding_pairs",
]  # fmt: skip


@direct(kernels.conv_of(1), arrays=2, maybe=("bias",))
def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Ints = 1, padding: Ints | str = 0,
    dilation: Ints = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Cross-correlate a signal with a bank of kernels.

    Args: input: shape (N, C, L) or (C, L). weight: shape (O, C / groups, K). bias: shape (O,) or
    None. padding: zeros on both sides: an int, "valid" (none) or "same" (as long as the input;
    stride 1).
    Returns: shape (N, O, T) or (O, T), T = (L + 2 padding - dilation (K - 1) - 1) // stride + 1.
    Raises: ShapeError: when rank or channels do not fit, or the kernel is larger than the padded
    input. ArgumentError: when stride, padding, dilation or groups is out of range.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x, w = xp.asarray([[[1.0, 2.0, 4.0]]]), xp.asarray([[[-1.0, 1.0]]])
        >>> F.conv1d(x, w).tolist()  # the kernel is not turned round: differences
        [[[1.0, 2.0]]]

    Source: torch.nn.functional.conv1d.
    """
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@direct(kernels.conv_of(2), arrays=2, maybe=("bias",))
def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Ints = 1, padding: Ints | str = 0,
    dilation: Ints = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Cross-correlate an image with a bank of kernels.

    Args: input: shape (N, C, H, W) or (C, H, W). weight: shape (O, C / groups, K, K). The rest: as
    in `conv1d`; an int stands for both axes.
    Returns: shape (N, O, *T) or (O, *T).
    Raises: ShapeError, ArgumentError: as `conv1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.conv2d(xp.ones((1, 3, 8, 8)), xp.ones((4, 3, 3, 3)), padding="same").shape
        (1, 4, 8, 8)

    Source: torch.nn.functional.conv2d.
    """
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@direct(kernels.conv_of(3), arrays=2, maybe=("bias",))
def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Ints = 1, padding: Ints | str = 0,
    dilation: Ints = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Cross-correlate a volume with a bank of kernels.

    Args: input: shape (N, C, D, H, W) or (C, D, H, W). weight: shape (O, C / groups, K, K, K). The
    rest: as in `conv1d`; an int stands for all three axes.
    Returns: shape (N, O, *T) or (O, *T).
    Raises: ShapeError, ArgumentError: as `conv1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.conv3d(xp.ones((1, 2, 4, 4, 4)), xp.ones((5, 2, 3, 3, 3)), padding=1).shape
        (1, 5, 4, 4, 4)

    Source: torch.nn.functional.conv3d.
    """
    return _conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Any, weight: Any, bias: Any = None, stride: Ints = 1, padding: Ints = 0,
    output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1,
) -> Any:  # fmt: skip
    """Apply the transpose of `conv1d` in its input, also called deconvolution.

    Args: input: shape (N, C, T) or (C, T). weight: shape (C, O / groups, K). bias: shape (O,) or
    None. padding: of the convolution, thus taken from the result. output_padding: elements more
    on the high side, less than stride or dilation. groups stands before dilation, as in torch.
    Returns: shape (N, O, L) or (O, L), L = (T - 1) stride - 2 padding + dilation (K - 1) +
    output_padding + 1.
    Raises: ShapeError: when rank or channels do not fit, or nothing is left of the result.
    ArgumentError: when a parameter is out of range.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.conv_transpose1d(xp.ones((1, 1, 2)), xp.ones((1, 1, 2)), stride=2).tolist()
        [[[1.0, 1.0, 1.0, 1.0]]]

    Source: torch.nn.functional.conv_transpose1d.
    """
    return _conv_transpose(
        "conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups,
        dilation,
    )  # fmt: skip


def conv_transpose2d(
    input: Any, weight: Any, bias: Any = None, stride: Ints = 1, padding: Ints = 0,
    output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1,
) -> Any:  # fmt: skip
    """Apply the transpose of `conv2d` in its input.

    Args: input: shape (N, C, *T) or (C, *T). weight: shape (C, O / groups, K, K). The rest: as in
    `conv_transpose1d`; an int stands for both axes.
    Returns: shape (N, O, H, W) or (O, H, W).
    Raises: ShapeError, ArgumentError: as `conv_transpose1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.conv_transpose2d(xp.ones((1, 1, 2, 2)), xp.ones((1, 3, 2, 2)), stride=2).shape
        (1, 3, 4, 4)

    Source: torch.nn.functional.conv_transpose2d.
    """
    return _conv_transpose(
        "conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups,
        dilation,
    )  # fmt: skip


def conv_transpose3d(
    input: Any, weight: Any, bias: Any = None, stride: Ints = 1, padding: Ints = 0,
    output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1,
) -> Any:  # fmt: skip
    """Apply the transpose of `conv3d` in its input.

    Args: input: shape (N, C, *T) or (C, *T). weight: shape (C, O / groups, K, K, K). The rest: as
    in `conv_transpose1d`; an int stands for all three axes.
    Returns: shape (N, O, D, H, W) or (O, D, H, W).
    Raises: ShapeError, ArgumentError: as `conv_transpose1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.conv_transpose3d(xp.ones((1, 1, 2, 2, 2)), xp.ones((1, 3, 2, 2, 2)), stride=2).shape
        (1, 3, 4, 4, 4)

    Source: torch.nn.functional.conv_transpose3d.
    """
    return _conv_transpose(
        "conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups,
        dilation,
    )  # fmt: skip


def _with_bias(y: Any, bias: Any, rank: int) -> Any:
    return y if bias is None else y + xp.reshape(bias, (1, -1, *(1,) * rank))  # (1, O, 1, ...)


def _conv(
    name: str, rank: int, x: Any, w: Any, bias: Any, stride: Ints, padding: Ints | str,
    dilation: Ints, groups: int,
) -> Any:  # fmt: skip
    x, added = batched(name, x, rank)
    _check_rank(name, w, rank)
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
    for n, k, d, (low, high) in zip(x.shape[2:], w.shape[2:], dilations, pairs):
        room = n + low + high - d * (k - 1)
        if isinstance(room, int) and room < 1:
            raise ShapeError(
                f"{name}: kernel {w.shape[2:]} with dilation {dilations} is larger than the padded "
                f"input {x.shape[added:]}"
            )
    y = ops.convolution(x, w, strides, pairs, dilations, groups)
    return unbatched(_with_bias(y, bias, rank), added)


def _conv_transpose(
    name: str, rank: int, x: Any, w: Any, bias: Any, stride: Ints, padding: Ints,
    output_padding: Ints, groups: int, dilation: Ints,
) -> Any:  # fmt: skip
    x, added = batched(name, x, rank)
    _check_rank(name, w, rank)
    if groups < 1 or w.shape[0] % groups:
        raise ArgumentError(f"{name}: groups must divide {w.shape[0]} input channels, got {groups}")
    if x.shape[1] != w.shape[0]:
        raise ShapeError(f"{name}: input must have {w.shape[0]} channels, got {x.shape[added:]}")
    strides = per_axis(name, "stride", stride, rank)
    dilations = per_axis(name, "dilation", dilation, rank)
    pads = per_axis(name, "padding", padding, rank, 0)
    extra = per_axis(name, "output_padding", output_padding, rank, 0)
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        raise ArgumentError(
            f"{name}: output_padding must be less than stride {strides} or dilation {dilations}, "
            f"got {extra}"
        )
    each = zip(x.shape[2:], w.shape[2:], strides, pads, dilations, extra, strict=True)
    size = tuple([(t - 1) * s - 2 * p + d * (k - 1) + e + 1 for t, k, s, p, d, e in each])
    if any(isinstance(n, int) and n < 1 for n in size):
        raise ShapeError(f"{name}: padding {pads} leaves nothing of the result, its size is {size}")
    # a convolution of this size has T windows only if less than a stride is left over behind them
    each = zip(pads, extra, strides, strict=True)
    pairs = tuple([(p, p - e + e % s) for p, e, s in each])
    y = ops.convolution_input(x, w, strides, pairs, dilations, groups, size)
    return unbatched(_with_bias(y, bias, rank), added)


def _check_rank(name: str, w: Any, rank: int) -> None:
    if len(w.shape) != rank + 2:
        raise ShapeError(f"{name}: weight must have {rank + 2} axes, got {w.shape}")


def padding_pairs(
    name: str, padding: Ints | str, kernel: Sizes, stride: Sizes, dilation: Sizes
) -> Pairs:
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
