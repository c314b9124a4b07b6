"""Windows that slide over the last axes of an array: their count, views of them, the adjoint.

What convolution and pooling share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funct.kernels.channels import channels_last

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "Index", "Padding", "Sizes", "Sliding", "inverse_order", "known_size", "last_in_memory",
    "memory_order", "output_size", "sum_dtype", "windows", "windows_adjoint",
]  # fmt: skip

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]
Index = Any  # a tuple that indexes the last axes: mypy knows no (..., *slices)


class Sliding(NamedTuple):
    """How the kernels of a convolution slide over images, and what of the channels they see.

    stride, dilation: one int per spatial axis. padding: (low, high) for each, zeros if positive,
    cropped if negative. groups: the channels are cut into so many, convolved apart.
    """

    stride: Sizes
    padding: Padding
    dilation: Sizes
    groups: int

    def size(self, image: Sizes, kernel: Sizes) -> Sizes:
        """*T of images of size *S = image, and kernels of size *K."""
        return output_size(image, kernel, *self[:3])

    @property
    def pointwise(self) -> bool:
        """Whether windows of one element are the images as they stand."""
        return set(self.stride) == {1} and not any(map(any, self.padding))


def output_size(
    size: Sequence[Any],
    kernel: Sequence[Any],
    stride: Sequence[Any],
    padding: Sequence[tuple[Any, Any]],
    dilation: Sequence[Any],
) -> tuple[Any, ...]:
    """Count the window positions along each axis: what convolution and pooling make of `size`.

    Maths: T = floor((S + low + high - dilation (K - 1) - 1) / stride) + 1
    Raises: ValueError: for a stride or dilation < 1, which would leave the array's memory.
    Notes: uses nothing but + - * //, so symbolic sizes pass through.
    """
    if min((*stride, *dilation), default=1) < 1:
        raise ValueError(f"stride {stride} and dilation {dilation} must be >= 1")
    return tuple(
        [
            (s + low + high - d * (k - 1) - 1) // step + 1
            for s, k, step, (low, high), d in zip(
                size, kernel, stride, padding, dilation, strict=True
            )
        ]
    )


def known_size(
    size: Sizes, kernel: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> Sizes:
    """As `output_size`, of sizes that are numbers. Raises: ValueError: where no window fits."""
    count = output_size(size, kernel, stride, padding, dilation)
    if min(count, default=1) < 1:
        raise ValueError(f"window {kernel} is larger than the padded shape {size}")
    return count


def last_in_memory(x: NDArray[Any], d: int) -> NDArray[Any] | None:
    """x with its channels, the axis before the last d, behind them, if that is how they lie.

    None: they do not, or there is no telling, as for one channel.
    """
    if x.ndim <= d or x.flags.c_contiguous:
        return None
    seen = channels_last(x, x.ndim - d - 1)
    return seen if seen.flags.c_contiguous else None


def memory_order(x: NDArray[Any]) -> list[int] | None:
    """The order of axes in which x is contiguous, as images with channels last are; None where it
    is as it stands, or there is no such order.
    """
    if x.flags.c_contiguous:
        return None
    order = sorted(range(x.ndim), key=x.strides.__getitem__, reverse=True)
    return order if x.transpose(order).flags.c_contiguous else None


def inverse_order(order: Sequence[int]) -> list[int]:
    """The order of axes that turns what was transposed to `order` back."""
    return sorted(order, key=order.__getitem__)


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype to sum in: float32 for floats of one or two bytes, else `dtype`."""
    is_short = dtype.itemsize <= 2 and dtype.kind not in "biu"
    return np.dtype(np.float32) if is_short else dtype


def windows(x: NDArray[Any], size: Sizes, stride: Sizes, dilation: Sizes) -> NDArray[Any]:
    """View the windows that slide over the last axes of x, without copying.

    Args:    x: (…, *S). size, stride, dilation: one int per sliding axis.
    Returns: (…, *T, *K), K = size: a read-only view of x.
    """
    lead = x.ndim - len(size)
    count = output_size(x.shape[lead:], size, stride, ((0, 0),) * len(size), dilation)  # *T
    steps = [a * b for a, b in zip(x.strides[lead:], stride)]
    taps = [a * b for a, b in zip(x.strides[lead:], dilation)]
    return as_strided(
        x, (*x.shape[:lead], *count, *size), (*x.strides[:lead], *steps, *taps), writeable=False
    )


def windows_adjoint(g: NDArray[Any], shape: Sizes, stride: Sizes, dilation: Sizes) -> NDArray[Any]:
    """Add windows up where they overlap: the adjoint of `windows`.

    Args:    g: (…, *T, *K). shape: the sizes *S of the axes that the windows slid over.
    Returns: (…, *S), the dtype of g.
    """
    d = len(shape)
    count, size = g.shape[-2 * d : -d], g.shape[-d:]  # *T, *K
    x = np.zeros((*g.shape[: -2 * d], *shape), g.dtype)
    for tap in np.ndindex(*size):
        starts = [k * dil for k, dil in zip(tap, dilation)]
        hit: Index = (..., *[slice(a, a + s * t, s) for a, s, t in zip(starts, stride, count)])
        here: Index = (..., *tap)
        x[hit] += g[here]
    return x
