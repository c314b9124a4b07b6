"""Convolutions whose windows are single elements: products of matrices, image by image, by BLAS."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.scratch import fresh

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows import Sizes, Sliding

__all__ = ["convolution", "convolution_input", "convolution_weight"]

_FEW = 16  # pixels of an image; with fewer, products of matrices are hardly any
_MANY = 1 << 18  # weights of all images together, which are added up behind


def _fits(x: NDArray[Any], other: NDArray[Any], kernel: Sizes, slide: Sliding) -> bool:
    """Whether x is a stack of matrices, channels by pixels, as it stands."""
    return (
        prod(kernel) == 1
        and slide.groups == 1
        and slide.pointwise
        and x.dtype == other.dtype
        and x.flags.c_contiguous
        and x.size > 0
        and prod(x.shape[2:]) >= _FEW
    )


def _thin(w: NDArray[Any]) -> bool:
    """Whether so few products are made of each number that turning it around costs too much."""
    outputs, channels = w.shape[:2]
    return 64 * (outputs + channels) > outputs * channels


def _mapped(matrix: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """The matrix times the channels of each pixel."""
    n, channels, *size = x.shape
    y = fresh((n, len(matrix), *size), x.dtype)
    out = y.reshape(n, len(matrix), -1)
    np.matmul(matrix, x.reshape(n, channels, -1), out=out)
    return y


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution`."""
    if not (_fits(x, w, w.shape[2:], slide) and _thin(w)):
        return NotImplemented
    return _mapped(w.reshape(w.shape[:2]), x)


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution_input`."""
    if not (_fits(g, w, w.shape[2:], slide) and _thin(w)):
        return NotImplemented
    return _mapped(w.reshape(w.shape[:2]).T, g)


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution_weight`."""
    (n, channels), outputs = x.shape[:2], g.shape[1]
    if not (_fits(x, g, size, slide) and n * channels * outputs <= _MANY):
        return NotImplemented
    each = g.reshape(n, outputs, -1) @ x.reshape(n, channels, -1).swapaxes(1, 2)
    w: NDArray[Any] = np.add.reduce(each, 0)
    return w.reshape(outputs, channels, *size)
