"""Windows of an array: `sliding_window_view`."""

from __future__ import annotations

from typing import Any

from numpy.lib import stride_tricks

from funct import ops
from funct.array.axes import integers, normal_axis
from funct.array.conversion import as_tensor
from funct.array.creation import arange
from funct.array.direct import direct, entrances
from funct.array.manipulation import moveaxis
from funct.errors import ArgumentError, ShapeError

__all__ = ["sliding_window_view"]


def _views(x: Any, window_shape: Any, axis: Any, subok: bool, writeable: bool) -> Any:
    return None if writeable else stride_tricks.sliding_window_view(x, window_shape, axis)


@direct(_views)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """Every window of a shape that slides over x: at the end, one more axis for each length.

    Of a concrete array it is a view. Args: axis: along which the windows slide, all by default; an
    axis may occur twice. subok, writeable: NumPy's; nobody writes into a view of a Tensor.
    Raises: ShapeError: for a window that is longer than its axis, or another number of axes.
    Example:
        >>> import funct.array as xp
        >>> xp.lib.stride_tricks.sliding_window_view(xp.arange(4), 3).tolist()
        [[0, 1, 2], [1, 2, 3]]

    Source: NumPy `lib.stride_tricks.sliding_window_view`.
    """
    if writeable:
        raise ArgumentError("sliding_window_view: writeable must be False: Tensors are immutable")
    x = as_tensor("sliding_window_view", x)
    rank = len(x.shape)
    lengths = integers("sliding_window_view", "window_shape", window_shape)
    given = range(rank) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    axes = [normal_axis("sliding_window_view", a, rank) for a in given]
    if len(axes) != len(lengths):
        raise ShapeError(
            "sliding_window_view: window_shape must have one length for each axis, "
            f"got {len(lengths)} for {len(axes)}"
        )
    for k, w in zip(axes, lengths, strict=True):
        n = x.shape[k]
        if not 0 <= w <= n:
            raise ShapeError(
                f"sliding_window_view: a window along axis {k} of length {n} must have 0 to {n} "
                f"elements, got {w}"
            )
        m = n - w + 1
        places = ops.reshape(ops.reshape(arange(m), (m, 1)) + arange(w), (m * w,))
        apart = ops.reshape(ops.take(x, places, k), (*x.shape[:k], m, w, *x.shape[k + 1 :]))
        x = moveaxis(apart, k + 1, -1)
    return x


entrances(globals())
