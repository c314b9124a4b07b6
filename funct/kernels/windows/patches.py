"""Convolutions whose windows lie side by side, as patches of an image: a copy makes them matrices.

Where they are long, BLAS is quicker than tiles that read the image, unless `in_tiles` says
otherwise. The adjoint in x has channels for lanes: where they are few, it is also quicker for short
windows.

Note [Short runs]
    NumPy copies patches run by run, a run being what a window holds of one line, and an element of
    a short run takes as long as many products do where vectors are long. Tiles lay out lines of the
    image instead, whatever the windows.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import host
from funct.kernels.channels import lie_last
from funct.kernels.cpu.scratch import fresh
from funct.kernels.linalg.products import matmul
from funct.kernels.windows.pointwise import summed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Index, Sizes, Sliding

__all__ = ["convolution", "convolution_input", "convolution_weight", "in_tiles"]

_LONG = 512  # elements of a window
_FEW_CHANNELS = 16
# pixels of the results of all images, by which tiles are quicker:
_MANY_PIXELS = 1 << 10  # their weights are read often
_SOME_PIXELS, _SOME_WEIGHTS = 96, 5 << 18  # of more than a few channels: laying these out pays
_FEW_OUTPUTS, _FEW_SUMS = 32, 16  # or outputs, by pixels and summed over them
_FEW_LANES, _SHORT = 8, 16  # channels that fill no vector of tiles, by windows of more elements
_WIDE = 64  # bytes of a vector, with which BLAS is quicker at adjoints,
_LONG_RUN = 14  # if so many elements are copied at a time; see Note [Short runs]
_FEW_PRODUCTS = 1 << 22  # of single elements
_ALONE = 3  # channels, of which products make little,
_FEW_SEEN = 1 << 12  # and pixels; of more a copy is less work than tiles of few channels


def _wide() -> bool:
    """Whether vectors are long."""
    return host().vector_bytes >= _WIDE


def _apart(x: Any, other: Any, channels: int, kernel: Sizes, slide: Sliding, few: int) -> bool:
    """Whether windows do not overlap, and are long or of few channels."""
    apart = slide.stride == kernel and slide.groups == 1 and set(slide.dilation) == {1}
    length = channels * prod(kernel)
    pays = length >= _LONG or channels <= few
    some = x.size > 0 and other.size > 0 and x.dtype == other.dtype
    return apart and pays and some and prod(kernel) > 1 and not any(map(any, slide.padding))


def in_tiles(images: int, pixels: int, w: Sizes, slide: Sliding) -> bool:
    """Whether tiles are quicker than the copy: of windows side by side, those of 16 registers,
    which fill them as BLAS does, and those of 32 where runs are short; and any of a few, of several
    images, that are single elements strides apart.

    pixels: of the results of all images. w: shape of the weights.
    """
    if slide.groups > 1 or max(slide.stride) == 1:
        return False
    if prod(w[2:]) == 1:
        some = w[1] >= _FEW_CHANNELS or (w[1] > _ALONE and pixels <= _FEW_SEEN)
        return images > 1 and some and pixels * prod(w) <= _FEW_PRODUCTS
    if slide.stride != w[2:] or _wide():
        return slide.stride == w[2:] and w[-1] < _LONG_RUN
    some = w[1] > _FEW_CHANNELS and prod(w) <= _SOME_WEIGHTS
    return pixels >= (_SOME_PIXELS if some else _MANY_PIXELS)


def _split(x: NDArray[Any], size: Sizes, kernel: Sizes) -> NDArray[Any]:
    """A view of x as (n, *T, c, *K)."""
    inside: Index = (..., *[slice(t * k) for t, k in zip(size, kernel)])
    both = [m for pair in zip(size, kernel) for m in pair]
    split = x[inside].reshape(*x.shape[:2], *both)
    return split.transpose(0, *range(2, split.ndim, 2), 1, *range(3, split.ndim, 2))


def _rows(x: NDArray[Any], size: Sizes, kernel: Sizes) -> NDArray[Any]:
    """The windows as matrices (n, T, c K)."""
    return np.ascontiguousarray(_split(x, size, kernel)).reshape(len(x), prod(size), -1)


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution`."""
    kernel = w.shape[2:]
    if _wide() or len(w) <= _FEW_OUTPUTS or not _apart(x, w, x.shape[1], kernel, slide, 0):
        return NotImplemented
    size = slide.size(x.shape[2:], kernel)
    y: NDArray[Any] = matmul(w.reshape(len(w), -1), _rows(x, size, kernel).swapaxes(1, 2))
    return y.reshape(len(x), len(w), *size)


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_input`."""
    (outputs, channels, *kernel), places = w.shape, g.shape[2:]
    filled = channels >= _FEW_LANES or prod(kernel) <= _SHORT
    if filled and outputs <= _FEW_OUTPUTS:
        return NotImplemented
    if channels < _FEW_LANES and outputs > _FEW_OUTPUTS and not _wide() and not lie_last(g):
        return NotImplemented  # what is sent is added where it belongs, at once
    if not _apart(g, w, channels, tuple(kernel), slide, _FEW_CHANNELS):
        return NotImplemented
    pixels = g.reshape(len(g), outputs, -1).swapaxes(1, 2)
    sent = matmul(pixels, w.reshape(outputs, -1))  # (n, T, c K)
    shape = (len(g), channels, *size)
    whole = all(t * k == s for t, k, s in zip(places, kernel, size))
    x = fresh(shape, g.dtype) if whole else np.zeros(shape, g.dtype)
    to = _split(x, places, tuple(kernel))
    to[...] = sent.reshape(to.shape)
    return x


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_weight`."""
    (n, channels), outputs = x.shape[:2], g.shape[1]
    if outputs <= _FEW_SUMS or not _apart(x, g, channels, size, slide, 0):
        return NotImplemented
    rows = _rows(x, g.shape[2:], size).swapaxes(1, 2)
    return summed(g.reshape(n, outputs, -1), rows).reshape(outputs, channels, *size)
