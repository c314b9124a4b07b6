"""Where the channels of images stand: before the axes of pixels or behind them; views."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["channels_first", "channels_last", "lie_last"]


@functools.cache
def _orders(rank: int, axis: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    others = [n for n in range(rank) if n != axis]
    return (*others, axis), (*range(axis), rank - 1, *range(axis, rank - 1))


def channels_last(x: NDArray[Any], axis: int = 1) -> NDArray[Any]:
    """x with that axis behind all others."""
    return x.transpose(_orders(x.ndim, axis)[0])


def channels_first(x: NDArray[Any], axis: int = 1) -> NDArray[Any]:
    """x with its last axis there."""
    return x.transpose(_orders(x.ndim, axis)[1])


def lie_last(x: NDArray[Any]) -> bool:
    """Whether channels are last in memory."""
    return not x.flags.c_contiguous and bool(channels_last(x).flags.c_contiguous)
