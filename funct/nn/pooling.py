"""Pooling layers: maxima, means and power means of windows, adaptive ones, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from funct.nn import functional
from funct.nn.functional.arguments import Ints, hashable
from funct.nn.module import Module, static

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d",
    "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip

OutputSize = int | tuple[int | None, ...] | list[int | None] | None


class _Pool(Module):
    """A layer whose fields have the names of the function's arguments."""

    apply: ClassVar[Callable[..., Any]]

    def __call__(self, x: Any) -> Any:
        """x (N, C, *S) or (C, *S) to (N, C, *T) or (C, *T).

        Raises: as the function in `funct.nn.functional`.
        """
        return type(self).apply(x, **self.__dict__)


class _MaxPool(_Pool):
    kernel_size: Ints = static(converter=hashable)
    stride: Ints | None = static(default=None, converter=hashable)
    padding: Ints = static(default=0, converter=hashable)
    dilation: Ints = static(default=1, converter=hashable)
    return_indices: bool = static(default=False)
    ceil_mode: bool = static(default=False)


class MaxPool1d(_MaxPool):
    """Take the maximum of each window of a signal (N, C, L); see `functional.max_pool1d`.

    Args: kernel_size, stride (None: kernel_size), padding, dilation, return_indices, ceil_mode: as
    in torch.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.MaxPool1d(2)(xp.asarray([[1.0, 5.0, 3.0, 4.0]])).tolist()
        [[5.0, 4.0]]

    Source: torch.nn.MaxPool1d.
    """

    apply = staticmethod(functional.max_pool1d)


class MaxPool2d(_MaxPool):
    """Take the maximum of each window of an image (N, C, H, W); see `functional.max_pool2d`.

    Args: as `MaxPool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.MaxPool2d(2)(xp.ones((1, 3, 8, 8))).shape
        (1, 3, 4, 4)

    Source: torch.nn.MaxPool2d.
    """

    apply = staticmethod(functional.max_pool2d)


class MaxPool3d(_MaxPool):
    """Take the maximum of each window of a volume (N, C, D, H, W); see `functional.max_pool3d`.

    Args: as `MaxPool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.MaxPool3d(2)(xp.ones((1, 3, 4, 4, 4))).shape
        (1, 3, 2, 2, 2)

    Source: torch.nn.MaxPool3d.
    """

    apply = staticmethod(functional.max_pool3d)


class AvgPool1d(_Pool):
    """Take the mean of each window of a signal (N, C, L); see `functional.avg_pool1d`.

    Args: kernel_size, stride (None: kernel_size), padding, ceil_mode, count_include_pad: as in
    torch.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.AvgPool1d(2, stride=1)(xp.asarray([[1.0, 5.0, 3.0, 4.0]])).tolist()
        [[3.0, 4.0, 3.5]]

    Source: torch.nn.AvgPool1d.
    """

    apply = staticmethod(functional.avg_pool1d)
    kernel_size: Ints = static(converter=hashable)
    stride: Ints | None = static(default=None, converter=hashable)
    padding: Ints = static(default=0, converter=hashable)
    ceil_mode: bool = static(default=False)
    count_include_pad: bool = static(default=True)


class _AvgPool(_Pool):
    kernel_size: Ints = static(converter=hashable)
    stride: Ints | None = static(default=None, converter=hashable)
    padding: Ints = static(default=0, converter=hashable)
    ceil_mode: bool = static(default=False)
    count_include_pad: bool = static(default=True)
    divisor_override: int | None = static(default=None)


class AvgPool2d(_AvgPool):
    """Take the mean of each window of an image (N, C, H, W); see `functional.avg_pool2d`.

    Args: kernel_size, stride (None: kernel_size), padding, ceil_mode, count_include_pad,
    divisor_override: as in torch.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.AvgPool2d(2)(xp.ones((1, 1, 2, 2))).tolist()
        [[[[1.0]]]]

    Source: torch.nn.AvgPool2d.
    """

    apply = staticmethod(functional.avg_pool2d)


class AvgPool3d(_AvgPool):
    """Take the mean of each window of a volume (N, C, D, H, W); see `functional.avg_pool3d`.

    Args: as `AvgPool2d`.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.AvgPool3d(2)(xp.ones((1, 3, 4, 4, 4))).shape
        (1, 3, 2, 2, 2)

    Source: torch.nn.AvgPool3d.
    """

    apply = staticmethod(functional.avg_pool3d)


class _LPPool(_Pool):
    norm_type: float = static()
    kernel_size: Ints = static(converter=hashable)
    stride: Ints | None = static(default=None, converter=hashable)
    ceil_mode: bool = static(default=False)


class LPPool1d(_LPPool):
    """Take (Σ x^p)^(1/p) of each window of a signal; see `functional.lp_pool1d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> [round(v, 6) for v in xp.ravel(nn.LPPool1d(2, 2)(xp.asarray([[3.0, 4.0]]))).tolist()]
        [5.0]
    """

    apply = staticmethod(functional.lp_pool1d)


class LPPool2d(_LPPool):
    """Take (Σ x^p)^(1/p) of each window of an image; see `functional.lp_pool2d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.LPPool2d(1, 2)(xp.ones((1, 2, 2))).tolist()  # sums
        [[[4.0]]]
    """

    apply = staticmethod(functional.lp_pool2d)


class LPPool3d(_LPPool):
    """Take (Σ x^p)^(1/p) of each window of a volume; see `functional.lp_pool3d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.LPPool3d(1, 2)(xp.ones((1, 2, 2, 2))).tolist()  # sums
        [[[[8.0]]]]
    """

    apply = staticmethod(functional.lp_pool3d)


class _AdaptiveAvgPool(_Pool):
    output_size: OutputSize = static(converter=hashable)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Take means of output_size windows of a signal; see `functional.adaptive_avg_pool1d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.AdaptiveAvgPool1d(2)(xp.asarray([[1.0, 2.0, 6.0]])).tolist()
        [[1.5, 4.0]]
    """

    apply = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Take means of output_size windows of an image; see `functional.adaptive_avg_pool2d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.AdaptiveAvgPool2d((2, None))(xp.ones((1, 3, 5, 7))).shape
        (1, 3, 2, 7)
    """

    apply = staticmethod(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Take means of output_size windows of a volume; see `functional.adaptive_avg_pool3d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.AdaptiveAvgPool3d(1)(xp.ones((1, 3, 4, 5, 6))).shape  # one mean per channel
        (1, 3, 1, 1, 1)
    """

    apply = staticmethod(functional.adaptive_avg_pool3d)


class _AdaptiveMaxPool(_Pool):
    output_size: OutputSize = static(converter=hashable)
    return_indices: bool = static(default=False)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Take maxima of output_size windows of a signal; see `functional.adaptive_max_pool1d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.AdaptiveMaxPool1d(2)(xp.asarray([[1.0, 5.0, 3.0, 4.0]])).tolist()
        [[5.0, 4.0]]
    """

    apply = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Take maxima of output_size windows of an image; see `functional.adaptive_max_pool2d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.AdaptiveMaxPool2d((2, None))(xp.ones((1, 3, 5, 7))).shape
        (1, 3, 2, 7)
    """

    apply = staticmethod(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Take maxima of output_size windows of a volume; see `functional.adaptive_max_pool3d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.AdaptiveMaxPool3d(1)(xp.ones((1, 3, 4, 5, 6))).shape  # one maximum per channel
        (1, 3, 1, 1, 1)
    """

    apply = staticmethod(functional.adaptive_max_pool3d)


class _MaxUnpool(Module):
    apply: ClassVar[Callable[..., Any]]

    kernel_size: Ints = static(converter=hashable)
    stride: Ints | None = static(default=None, converter=hashable)
    padding: Ints = static(default=0, converter=hashable)

    def __call__(self, x: Any, indices: Any, output_size: Sequence[int] | None = None) -> Any:
        """x (N, C, *T) or (C, *T) at its indices among zeros, (N, C, *S) or (C, *S).

        Raises: as the function in `funct.nn.functional`.
        """
        return type(self).apply(
            x, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpool):
    """Put maxima back to where `MaxPool1d` found them; see `functional.max_unpool1d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> y, places = nn.MaxPool1d(2, return_indices=True)(xp.asarray([[1.0, 5.0, 3.0, 4.0]]))
        >>> nn.MaxUnpool1d(2)(y, places).tolist()
        [[0.0, 5.0, 0.0, 4.0]]
    """

    apply = staticmethod(functional.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Put maxima back to where `MaxPool2d` found them; see `functional.max_unpool2d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x = xp.asarray([[[1.0, 2.0], [4.0, 3.0]]])
        >>> nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(x)).tolist()
        [[[0.0, 0.0], [4.0, 0.0]]]
    """

    apply = staticmethod(functional.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Put maxima back to where `MaxPool3d` found them; see `functional.max_unpool3d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x = xp.ones((1, 3, 4, 4, 4))
        >>> nn.MaxUnpool3d(2)(*nn.MaxPool3d(2, return_indices=True)(x)).shape
        (1, 3, 4, 4, 4)
    """

    apply = staticmethod(functional.max_unpool3d)
