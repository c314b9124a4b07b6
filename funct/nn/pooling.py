"""Pooling layers: MaxPool1d, MaxPool2d, AvgPool1d, AvgPool2d."""

from __future__ import annotations

from typing import Any

from funct.nn import functional
from funct.nn.functional.arguments import Ints
from funct.nn.module import Module, static

__all__ = ["AvgPool1d", "AvgPool2d", "MaxPool1d", "MaxPool2d"]


def _hashable(value: Ints | None) -> int | tuple[int, ...] | None:
    return tuple(value) if isinstance(value, list) else value


class MaxPool1d(Module):
    """Take the maximum of each window of a signal (N, C, L); see `functional.max_pool1d`.

    Args: kernel_size, stride (None: kernel_size), padding, dilation, ceil_mode: as in torch.
    Source: torch.nn.MaxPool1d.
    """

    kernel_size: Ints = static(converter=_hashable)
    stride: Ints | None = static(default=None, converter=_hashable)
    padding: Ints = static(default=0, converter=_hashable)
    dilation: Ints = static(default=1, converter=_hashable)
    ceil_mode: bool = static(default=False)

    def __call__(self, x: Any) -> Any:
        """x (N, C, L) or (C, L) to (N, C, T) or (C, T). Raises: as `functional.max_pool1d`."""
        return functional.max_pool1d(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class MaxPool2d(Module):
    """Take the maximum of each window of an image (N, C, H, W); see `functional.max_pool2d`.

    Args: kernel_size, stride (None: kernel_size), padding, dilation, ceil_mode: as in torch.
    Source: torch.nn.MaxPool2d.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.MaxPool2d(2)(xp.ones((1, 3, 8, 8))).shape
        (1, 3, 4, 4)
    """

    kernel_size: Ints = static(converter=_hashable)
    stride: Ints | None = static(default=None, converter=_hashable)
    padding: Ints = static(default=0, converter=_hashable)
    dilation: Ints = static(default=1, converter=_hashable)
    ceil_mode: bool = static(default=False)

    def __call__(self, x: Any) -> Any:
        """x (N, C, *S) or (C, *S) to (N, C, *T) or (C, *T). Raises: as `functional.max_pool2d`."""
        return functional.max_pool2d(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class AvgPool1d(Module):
    """Take the mean of each window of a signal (N, C, L); see `functional.avg_pool1d`.

    Args: kernel_size, stride (None: kernel_size), padding, ceil_mode, count_include_pad: as in
    torch.
    Source: torch.nn.AvgPool1d.
    """

    kernel_size: Ints = static(converter=_hashable)
    stride: Ints | None = static(default=None, converter=_hashable)
    padding: Ints = static(default=0, converter=_hashable)
    ceil_mode: bool = static(default=False)
    count_include_pad: bool = static(default=True)

    def __call__(self, x: Any) -> Any:
        """x (N, C, L) or (C, L) to (N, C, T) or (C, T). Raises: as `functional.avg_pool1d`."""
        return functional.avg_pool1d(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class AvgPool2d(Module):
    """Take the mean of each window of an image (N, C, H, W); see `functional.avg_pool2d`.

    Args: kernel_size, stride (None: kernel_size), padding, ceil_mode, count_include_pad,
    divisor_override: as in torch.
    Source: torch.nn.AvgPool2d.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.AvgPool2d(2)(xp.ones((1, 1, 2, 2))).tolist()
        [[[[1.0]]]]
    """

    kernel_size: Ints = static(converter=_hashable)
    stride: Ints | None = static(default=None, converter=_hashable)
    padding: Ints = static(default=0, converter=_hashable)
    ceil_mode: bool = static(default=False)
    count_include_pad: bool = static(default=True)
    divisor_override: int | None = static(default=None)

    def __call__(self, x: Any) -> Any:
        """x (N, C, *S) or (C, *S) to (N, C, *T) or (C, *T). Raises: as `functional.avg_pool2d`."""
        return functional.avg_pool2d(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip
