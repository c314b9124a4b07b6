"""Channels as pixels and back, of few elements; None for all else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.channels import channels_first, channels_last
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.windows.shuffling import few_pixels, few_pixels_last

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["pixel_shuffle", "pixel_unshuffle"]

_FEW = 1 << 12  # elements; of more axes are woven by vectors


def pixel_shuffle(x: NDArray[Any], r: Any) -> NDArray[Any] | None:
    """(N, C r², H, W) to (N, C, H r, W r), in the layout of x."""
    if r.__class__ is not int or r < 1 or not _are_few(x) or x.shape[1] % (r * r):
        return None
    n, channels, h, w = x.shape
    c = channels // (r * r)
    if x.flags.c_contiguous:
        y = np.empty((n, c, h * r, w * r), x.dtype)
        few_pixels(x, y, n * c, r, h, w, False)
        return y
    seen = channels_last(x)
    if not seen.flags.c_contiguous:
        return None
    y = np.empty((n, h * r, w * r, c), x.dtype)
    few_pixels_last(seen, y, n * h, r, w, c)
    return channels_first(y)


def pixel_unshuffle(x: NDArray[Any], r: Any) -> NDArray[Any] | None:
    """(N, C, H r, W r) to (N, C r², H, W)."""
    if r.__class__ is not int or r < 1 or not _are_few(x) or x.shape[2] % r or x.shape[3] % r:
        return None
    n, c, height, width = x.shape
    if not x.flags.c_contiguous:
        return None
    h, w = height // r, width // r
    y = np.empty((n, c * r * r, h, w), x.dtype)
    few_pixels(x, y, n * c, r, h, w, True)
    return y


def _are_few(x: NDArray[Any]) -> bool:
    return x.ndim == 4 and x.dtype.char in "fd" and 0 < x.size < _FEW and ready(x.size)
