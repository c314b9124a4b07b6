"""Convolutions whose windows are single elements: products of matrices, image by image, by BLAS.

Those of several groups are stacks of such products. Images of one pixel, as gates of channels read,
are the rows of one matrix. So are images that are one window, as the last ones of a network of
strides are, and the first of one that draws.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import host
from funct.kernels import table
from funct.kernels.channels import channels_first, channels_last
from funct.kernels.cpu.scratch import fresh
from funct.kernels.linalg.products import matmul

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Index, Sizes, Sliding

__all__ = [
    "convolution", "convolution_input", "convolution_weight", "in_tiles", "mapped", "single",
    "summed", "summed_behind", "whole",
]  # fmt: skip

_FEW = 16  # pixels of an image; with fewer, products of matrices are hardly any
_MANY = 1 << 18  # weights of all images together, which are added up behind
_SHORT, _LONG = 32, 1 << 10  # pixels of images that make one product of many weights, and of it
# what tiles that read images where they lie do quicker
_TILED_PIXELS = 512  # of all images, at least: weights are read and written once for so many
_TILED_WEIGHTS = (1 << 11, 1 << 16)  # fewer leave tiles empty, more leave the cache,
_SHORT_WEIGHTS = 1 << 13  # or are BLAS's, where vectors are short
# bytes of vectors with which BLAS does better than tiles, and pixels of one of several images, for
# each of which it lays all weights out
_SHORT_VECTORS, _SOME = 32, 128
_MOST_ROWS = 1 << 10  # pixels whose channels are last; of more, tiles lay weights out once as well
_LONG_IMAGE = 1 << 11  # BLAS is slow at sums of so many, be weights few or not;
_FEW_CHANNELS = 8  # beside more of them a few are rows that no product lays out
_TILED_BYTES = 1 << 10  # of a pixel's channels, which are turned around


@functools.lru_cache(512)
def single(x: Sizes, kernel: Sizes, slide: Sliding) -> bool:
    """Whether windows are single elements."""
    return prod(kernel) == 1 and slide.groups == 1 and slide.pointwise and prod(x) > 0


@functools.lru_cache(512)
def whole(x: Sizes, kernel: Sizes, slide: Sliding) -> bool:
    """Whether each image is one window."""
    alone = slide.groups == 1 and not any(map(any, slide.padding)) and set(slide.dilation) == {1}
    return alone and tuple(x[2:]) == tuple(kernel) and prod(kernel) > 1 and prod(x) > 0


def _dense(x: NDArray[Any], w: NDArray[Any]) -> bool:
    """Whether x is a stack of matrices, channels by pixels, as it stands, of w's dtype."""
    return x.flags.c_contiguous and x.dtype == w.dtype


def _last(x: NDArray[Any]) -> bool:
    """Whether the channels are last in memory."""
    return bool(channels_last(x).flags.c_contiguous)


@functools.lru_cache(512)
def mapped(x: Sizes, w: Sizes, slide: Sliding) -> bool:
    """Whether a convolution, or its adjoint in x, is products of matrices: of dense x, by shape."""
    pixels = prod(x[2:])
    if not single(x, w[2:], slide) or 1 < pixels < _FEW:
        return False
    return pixels == 1 or _thin(w) or (_short() and (x[0] == 1 or pixels >= _SOME))


def in_tiles(x: Sizes, g: Sizes, size: Sizes, slide: Sliding, itemsize: int) -> bool:
    """Whether the adjoint in w of such a convolution is better left to our own tiles, by shape.

    BLAS lays out both images for each product, tiles only the one of fewer channels.
    """
    (n, channels, *image), outputs = x, g[1]
    least, most = _TILED_WEIGHTS
    if _short():
        most = _SHORT_WEIGHTS
    fewer = min(channels, outputs)
    if fewer <= _FEW_CHANNELS and fewer < max(channels, outputs):
        return False
    if prod(image) >= _LONG_IMAGE:
        least = 0
    return (
        single(x, size, slide)
        and n * prod(image) >= _TILED_PIXELS
        and least <= channels * outputs <= most
        and channels * itemsize <= _TILED_BYTES
    )


def _short() -> bool:
    return host().vector_bytes <= _SHORT_VECTORS


def _in_rows(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> bool:
    """Whether the pixels of all images, whose channels are last, are rows of one product: where
    they are few beside the weights, or of one channel, be it read or written.
    """
    alike = _short() and x.dtype == w.dtype and not x.flags.c_contiguous and _last(x)
    pixels = x.size // max(1, x.shape[1])
    few = _FEW <= pixels <= _MOST_ROWS and not _thin(w.shape)
    return alike and (few or 1 in w.shape[:2]) and single(x.shape, w.shape[2:], slide)


def _rows(x: NDArray[Any], matrix: NDArray[Any]) -> NDArray[Any]:
    """The channels of each pixel times the matrix."""
    n, channels, *size = x.shape
    y: NDArray[Any] = matmul(channels_last(x).reshape(-1, channels), matrix)
    return channels_first(y.reshape(n, *size, matrix.shape[1]))


def _thin(w: Sizes) -> bool:
    """Whether so few products are made of each number that turning it around costs too much."""
    outputs, channels = w[:2]
    return 64 * (outputs + channels) > outputs * channels


def _mapped(matrix: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """The matrix times the channels of each pixel. BLAS is slow where there is one channel."""
    n, channels, *size = x.shape
    if prod(size) == 1:
        of_rows: NDArray[Any] = matmul(x.reshape(n, channels), matrix.T)
        return of_rows.reshape(n, len(matrix), *size)
    product = np.multiply if channels == 1 else matmul
    shape = (channels, -1) if n == 1 else (n, channels, -1)  # of two matrices there is less to ask
    y: NDArray[Any] = product(matrix, x.reshape(shape))
    return y.reshape(n, len(matrix), *size)


def _stacks(x: NDArray[Any], other: NDArray[Any], kernel: Sizes, slide: Sliding) -> bool:
    """Whether the maps are stacks of products, one for each group. Where channels are last, only
    of few pixels and several channels: tiles read others where they lie.
    """
    if slide.groups == 1 or not slide.pointwise or prod(kernel) > 1 or x.dtype != other.dtype:
        return False
    pixels = x.size // max(1, x.shape[1])
    if not x.flags.c_contiguous and (
        pixels > _MOST_ROWS or x.shape[1] == slide.groups or not _last(x)
    ):
        return False
    return pixels >= _FEW * len(x) > 0 < other.size


def _stacked(matrices: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """Each group's matrix times its channels of each pixel."""
    (n, _, *size), (groups, outputs, channels) = x.shape, matrices.shape
    if x.flags.c_contiguous:
        y: NDArray[Any] = matmul(matrices, x.reshape(n, groups, channels, -1))
        return y.reshape(n, groups * outputs, *size)
    pixels = channels_last(x).reshape(-1, groups, channels)
    rows = fresh((len(pixels), groups, outputs), x.dtype)
    np.matmul(pixels.swapaxes(0, 1), matrices.swapaxes(1, 2), out=rows.swapaxes(0, 1))
    return channels_first(rows.reshape(n, *size, groups * outputs))


def _stacked_weight(x: NDArray[Any], g: NDArray[Any], groups: int) -> NDArray[Any]:
    """The sums over all pixels of the products of each group's channels with its outputs."""
    split = [(v.shape[1] // groups, v) for v in (g, x)]
    if x.flags.c_contiguous:
        a, b = (v.reshape(len(v), groups, c, -1) for c, v in split)
        w: NDArray[Any] = matmul(a, b.swapaxes(2, 3))
        return w[0] if len(w) == 1 else np.add.reduce(w, 0)
    ours, theirs = (channels_last(v).reshape(-1, groups, c) for c, v in split)
    of_all: NDArray[Any] = matmul(ours.transpose(1, 2, 0), theirs.swapaxes(0, 1))
    return of_all


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution`."""
    dense = _dense(x, w)
    if dense and mapped(x.shape, w.shape, slide):
        return _mapped(w.reshape(w.shape[:2]), x)
    if _stacks(x, w, w.shape[2:], slide):
        return _stacked(w.reshape(slide.groups, -1, w.shape[1]), x)
    if dense and whole(x.shape, w.shape[2:], slide):
        y: NDArray[Any] = matmul(x.reshape(len(x), -1), w.reshape(len(w), -1).T)
        return y.reshape(*y.shape, *(1,) * len(slide.stride))
    if _in_rows(x, w, slide):
        return _rows(x, w.reshape(w.shape[:2]).T)
    if x.flags.c_contiguous and _apart(x, w, w.shape[2:], slide):
        seen, plain = _seen(x, slide)
        return convolution(seen, w, plain)
    return NotImplemented


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_input`."""
    if _dense(g, w) and mapped(g.shape, w.shape, slide):
        return _mapped(w.reshape(w.shape[:2]).T, g)
    if _stacks(g, w, w.shape[2:], slide):
        return _stacked(w.reshape(slide.groups, -1, w.shape[1]).swapaxes(1, 2), g)
    if g.dtype == w.dtype and whole((*g.shape[:2], *size), w.shape[2:], slide):
        x: NDArray[Any] = matmul(g.reshape(len(g), -1), w.reshape(len(w), -1))
        return x.reshape(len(g), w.shape[1], *size)
    if _in_rows(g, w, slide):
        return _rows(g, w.reshape(w.shape[:2]))
    if g.flags.c_contiguous and _apart(g, w, w.shape[2:], slide):
        sent = convolution_input(g, w, _plain(slide), g.shape[2:])
        if sent is NotImplemented:
            return sent
        x = np.zeros((*sent.shape[:2], *size), g.dtype)
        x[_places(slide)] = sent
        return x
    return NotImplemented


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_weight`."""
    (n, channels), outputs = x.shape[:2], g.shape[1]
    alike = g.flags.c_contiguous if x.flags.c_contiguous else _last(g)
    if _stacks(x, g, size, slide) and alike and g.shape[1] > slide.groups:
        w: NDArray[Any] = _stacked_weight(x, g, slide.groups)
        return w.reshape(outputs, channels // slide.groups, *size)
    if _dense(x, g) and whole(x.shape, size, slide):
        of_all: NDArray[Any] = matmul(g.reshape(n, outputs).T, x.reshape(n, -1))
        return of_all.reshape(outputs, channels, *size)
    if x.dtype != g.dtype or not single(x.shape, size, slide):
        return _of_some_pixels(x, g, slide, size)
    if _last(x) and _last(g):
        rows = [channels_last(v).reshape(-1, v.shape[1]) for v in (g, x)]
        w = matmul(rows[0].T, rows[1])
    else:
        w = summed(g.reshape(n, outputs, -1), x.reshape(n, channels, -1))
    return w.reshape(outputs, channels, *size)


def _of_some_pixels(x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes) -> NDArray[Any]:
    """The same where windows are strides apart: a copy of what they see makes it products."""
    if not _apart(x, g, size, slide):
        return NotImplemented
    seen, plain = _seen(x, slide)
    work = 2 * g.size * x.shape[1]
    w: NDArray[Any] = table.call("convolution_weight", x.dtype, work, seen, g, plain, size)
    return w


def _apart(x: NDArray[Any], other: NDArray[Any], kernel: Sizes, slide: Sliding) -> bool:
    """Whether windows are single elements that lie strides apart."""
    alone = prod(kernel) == 1 and slide.groups == 1 and not any(map(any, slide.padding))
    alike = x.dtype == other.dtype and x.size > 0 < other.size
    return alone and alike and max(slide.stride) > 1


def _places(slide: Sliding) -> Index:
    return (..., *[slice(None, None, s) for s in slide.stride])


def _plain(slide: Sliding) -> Sliding:
    return slide._replace(stride=(1,) * len(slide.stride))


def _seen(x: NDArray[Any], slide: Sliding) -> tuple[NDArray[Any], Sliding]:
    """A copy of what such windows see, which lies as x does, and how they slide over it."""
    seen = x[_places(slide)]
    if _last(x):  # stays so
        seen = channels_first(np.ascontiguousarray(channels_last(seen)))
    else:
        seen = np.ascontiguousarray(seen)
    return seen, _plain(slide)


def summed_behind(a: Sizes, b: Sizes) -> bool:
    """Whether such products are made one by one, and added up."""
    return a[2] >= _FEW and a[0] * a[1] * b[1] <= _MANY


def summed(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Σ_n a[n] b[n]ᵀ. Large products of short sums are made long, so that those are not written
    often.
    """
    n, _, depth = a.shape
    if n == 1:
        alone: NDArray[Any] = matmul(a[0], b[0].T)
        return alone
    if min(a.shape[1], b.shape[1]) <= _FEW and summed_behind(a.shape, b.shape):
        found: NDArray[Any] = np.add.reduce(matmul(a, b.swapaxes(1, 2)), 0)
        return found
    if depth > _SHORT or summed_behind(a.shape, b.shape):
        work = a.size * b.shape[1]
        found = table.call("summed_matmul", a.dtype, work, a, b.swapaxes(1, 2))
        return found
    step = -(-_LONG // depth)
    parts = (
        [
            np.ascontiguousarray(v[k : k + step].swapaxes(0, 1)).reshape(v.shape[1], -1)
            for v in (a, b)
        ]
        for k in range(0, n, step)
    )
    products = (matmul(one, other.T) for one, other in parts)
    total: NDArray[Any] = next(products)
    for p in products:
        total += p
    return total
