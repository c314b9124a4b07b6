"""Means and power means of windows."""

from __future__ import annotations

import math
from typing import Any

from funct import ops
from funct.array.direct import direct
from funct.array.in_single import narrowed, widened
from funct.errors import ArgumentError
from funct.kernels import neural as kernels
from funct.nn.functional.arguments import Ints, Pairs, unbatched
from funct.nn.functional.compiled import compiled, whole
from funct.nn.functional.windows import pooled_windows

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d"]


@direct(kernels.avg_pool_of(1))
@whole
def avg_pool1d(
    input: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """Take the mean of each window of a signal.

    Args: input: shape (N, C, L) or (C, L). stride: None is kernel_size. padding: zeros, at most
    half a kernel. ceil_mode: as in `max_pool1d`. count_include_pad: whether padding counts in the
    divisor; what ceil_mode reaches beyond the padding never does.
    Returns: shape (N, C, T) or (C, T).
    Raises: ShapeError: when the rank does not fit. ArgumentError: when a parameter is out of range.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.asarray([[2.0, 4.0]])
        >>> F.avg_pool1d(x, 2, stride=1, padding=1).tolist()
        [[1.0, 3.0, 2.0]]
        >>> F.avg_pool1d(x, 2, stride=1, padding=1, count_include_pad=False).tolist()
        [[2.0, 3.0, 4.0]]

    Source: torch.nn.functional.avg_pool1d.
    """
    return _avg_pool(
        "avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )


@direct(kernels.avg_pool_of(2))
@whole
def avg_pool2d(
    input: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """Take the mean of each window of an image.

    Args: input: shape (N, C, H, W) or (C, H, W). divisor_override: divides each sum instead of the
    count. The rest: as in `avg_pool1d`.
    Returns: shape (N, C, *T) or (C, *T).
    Raises: ShapeError, ArgumentError: as `avg_pool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.avg_pool2d(xp.ones((1, 1, 2, 2)), 2, padding=1).tolist()
        [[[[0.25, 0.25], [0.25, 0.25]]]]

    Source: torch.nn.functional.avg_pool2d.
    """
    return _avg_pool(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip


@direct(kernels.avg_pool_of(3))
@whole
def avg_pool3d(
    input: Any, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """Take the mean of each window of a volume.

    Args: input: shape (N, C, D, H, W) or (C, D, H, W). The rest: as in `avg_pool2d`.
    Returns: shape (N, C, *T) or (C, *T).
    Raises: ShapeError, ArgumentError: as `avg_pool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.avg_pool3d(xp.reshape(xp.arange(8.0), (1, 1, 2, 2, 2)), 2).tolist()
        [[[[[3.5]]]]]

    Source: torch.nn.functional.avg_pool3d.
    """
    return _avg_pool(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip


@compiled
def lp_pool1d(
    input: Any, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Take (Σ x^p)^(1/p) of each window of a signal; p = 1 is the sum, large p near the maximum.

    Args: input: shape (N, C, L) or (C, L). norm_type: p. The rest: as in `avg_pool1d`.
    Returns: shape (N, C, T) or (C, T).
    Raises: ShapeError: when the rank does not fit. ArgumentError: when a parameter is out of range.
    Notes: the derivative at a sum of 0 is 0. A window that ceil_mode lets reach beyond the input
    is scaled up to a whole one, as in torch.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.lp_pool1d(xp.asarray([[3.0, 4.0]]), 2, 2).tolist()
        [[5.0]]

    Source: torch.nn.functional.lp_pool1d.
    """
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@compiled
def lp_pool2d(
    input: Any, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Take (Σ x^p)^(1/p) of each window of an image.

    Args: input: shape (N, C, H, W) or (C, H, W). The rest, Raises, Notes: as `lp_pool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.asarray([[[3.0, 4.0]]])
        >>> [round(v, 6) for v in xp.ravel(F.lp_pool2d(x, 2, (1, 2))).tolist()]
        [5.0]

    Source: torch.nn.functional.lp_pool2d.
    """
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@compiled
def lp_pool3d(
    input: Any, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Take (Σ x^p)^(1/p) of each window of a volume.

    Args: input: shape (N, C, D, H, W) or (C, D, H, W). The rest, Raises, Notes: as `lp_pool1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.lp_pool3d(xp.ones((1, 2, 2, 2)), 1, 2).tolist()
        [[[[8.0]]]]

    Source: torch.nn.functional.lp_pool3d.
    """
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


def _avg_pool(
    name: str, rank: int, x: Any, kernel_size: Ints, stride: Ints | None, padding: Ints,
    ceil_mode: bool, count_include_pad: bool, divisor_override: int | None,
) -> Any:  # fmt: skip
    if divisor_override == 0:
        raise ArgumentError(f"{name}: divisor_override must not be 0")
    x, added, window, strides, pads, _, extra = pooled_windows(
        name, x, rank, kernel_size, stride, padding, 1, ceil_mode
    )
    pairs: Pairs = tuple([(p, p) for p in pads])
    if divisor_override is None:
        return unbatched(
            ops.avg_pool(x, window, strides, pairs, extra, bool(count_include_pad)), added
        )
    # with zeros written out, every window counts prod(window) elements: the sums follow exactly
    whole = tuple([(p, p + more) for p, more in zip(pads, extra, strict=True)])
    none, no_extra = ((0, 0),) * rank, (0,) * rank
    mean = ops.avg_pool(ops.pad_axes(x, whole), window, strides, none, no_extra, True)
    return unbatched(mean * (math.prod(window) / divisor_override), added)


def _lp_pool(
    name: str, rank: int, x: Any, p: float, kernel_size: Ints, stride: Ints | None,
    ceil_mode: bool,
) -> Any:  # fmt: skip
    if p == 0:
        raise ArgumentError(f"{name}: norm_type must not be 0")
    given = x
    (x,) = widened(x)
    x, added, window, strides, pads, _, extra = pooled_windows(
        name, x, rank, kernel_size, stride, 0, 1, ceil_mode
    )
    pairs: Pairs = tuple([(n, n) for n in pads])
    mean = ops.avg_pool(x**p, window, strides, pairs, extra, True)
    none = ops.equal(mean, 0)
    total = ops.where(none, 1.0, mean) * math.prod(window)
    return narrowed(unbatched(ops.where(none, 0.0, total ** (1.0 / p)), added), given)
