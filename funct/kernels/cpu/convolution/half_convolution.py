"""Convolutions of bfloat16 by processors that multiply pairs of it, twice as fast as float32.

What is summed over is taken in words of two: channels of x, channels of g, or, for the adjoint in
w, pixels of a row. Then these are the maps of `convolution.py` and `weight_gradient.py` on words,
with sums in float32 that are rounded once. Products take subnormal numbers as 0.

Note [Pairs of pixels]
    A word of g is two adjacent pixels, j and j + 1; those of x that meet it at a tap are one stride
    apart. So a word of x stands at each pixel, its own number and that one stride behind, beginning
    one stride before the image; words of g step over them by two strides.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from funct.kernels import table
from funct.kernels.channels import channels_first, channels_last, lie_last
from funct.kernels.cpu.convolution import convolution as maps
from funct.kernels.cpu.convolution import weight_gradient
from funct.kernels.cpu.convolution.pairs import paired

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

__all__ = ["convolution", "convolution_input", "convolution_weight"]

_BRAIN = np.dtype(ml_dtypes.bfloat16)
_WORD = np.dtype(np.float32)
_LEAST = 4  # channels of a group on both sides; of fewer, float32 wastes less


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution`."""
    if not _fits(x, w, slide):
        return NotImplemented
    size = slide.size(x.shape[2:], w.shape[2:])
    outputs, c, *kernel = w.shape
    taps = prod(kernel)
    w = np.ascontiguousarray(w)
    shape = (outputs, c // 2, *kernel)
    if taps == 1:
        pairs = w.reshape(outputs, c).view(_WORD).reshape(shape)
    else:
        pairs = paired(w, shape, taps, 2 * taps, taps)
    return _rounded(maps.convolved(_channels(x), pairs, slide, size, adjoint=False, dot="bf16"))


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_input`."""
    if not _fits(g, w, slide):
        return NotImplemented
    outputs, *rest = w.shape
    line = prod(rest)
    pairs = paired(np.ascontiguousarray(w), (outputs // 2, *rest), line, 2 * line, line)
    return _rounded(maps.convolved(_channels(g), pairs, slide, size, adjoint=True, dot="bf16"))


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_weight`."""
    groups = slide.groups
    few = min(x.shape[1], g.shape[1]) < _LEAST * groups
    if few or x.dtype != _BRAIN or g.dtype != _BRAIN or len(size) > 3 or g.shape[-1] % 2:
        return NotImplemented
    if not (x.size and g.size and prod(size)):
        return NotImplemented
    stride, (low, high) = slide.stride[-1], slide.padding[-1]
    pairs = slide._replace(
        stride=(*slide.stride[:-1], 2 * stride),
        padding=(*slide.padding[:-1], (low - stride, high)),
    )  # see Note [Pairs of pixels]
    sums = weight_gradient.weights(_shifted(x, stride), _pixels(g), pairs, size, "bf16")
    return _rounded(sums)


def _fits(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> bool:
    """Whether the channels of x, and those of w on either side, are pairs in groups."""
    read, groups = x.shape[1] // slide.groups, slide.groups
    few = min(read, w.shape[1], len(w) // groups) < _LEAST
    known = x.dtype == w.dtype == _BRAIN and w.ndim <= 5
    return bool(known and not few and read % 2 == 0 and x.size and w.size)


def _rounded(y: NDArray[Any]) -> NDArray[Any]:
    if y is NotImplemented:
        return y
    if y.flags.c_contiguous:
        z: NDArray[Any] = table.call("cast", y.dtype, y.size, y, _BRAIN)
        return z
    return channels_first(_rounded(channels_last(y)))


def _channels(x: NDArray[Any]) -> NDArray[Any]:
    """Words of adjacent channels, which lie there as they are if channels are last."""
    n, c, *size = x.shape
    if lie_last(x):
        return channels_first(channels_last(x).view(_WORD))
    plane = prod(size)
    return paired(np.ascontiguousarray(x), (n, c // 2, *size), plane, 2 * plane, plane)


def _shifted(x: NDArray[Any], stride: int) -> NDArray[Any]:
    """Words of pixels one stride apart, from one stride before each row of the image on."""
    if lie_last(x):
        x = channels_last(x)
        *lead, width, c = x.shape
        shape = (*lead, width + stride, c)
        return channels_first(paired(x, shape, width * c, width * c, 0, stride * c))
    *lead, width = x.shape
    return paired(np.ascontiguousarray(x), (*lead, width + stride), width, width, 0, stride)


def _pixels(g: NDArray[Any]) -> NDArray[Any]:
    """Words of adjacent pixels."""
    if not lie_last(g):
        return np.ascontiguousarray(g).view(_WORD)
    g = channels_last(g)
    *lead, width, c = g.shape
    return channels_first(paired(g, (*lead, width // 2, c), c, 2 * c, c))
