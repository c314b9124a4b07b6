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
from funct.kernels.linalg.products import matmul, matmul_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.windows.views import Index, Sizes, Sliding

    _Way = Callable[..., Any]  # one of the maps, of operands that lie as those it was made for

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
_LONG_ROW, _FEW_ELEMENTS = 1 << 11, 1 << 13
_FEW_TOGETHER = 8  # channels of all groups
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
    if fewer <= _FEW_CHANNELS:
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


def _mapped(x: NDArray[Any], w: NDArray[Any], turned: bool) -> _Way:
    """The weights, or their transpose, times the channels of each pixel. Where there is one, NumPy
    is the quickest at long rows, and at few elements.
    """
    (n, channels, *size), outputs = x.shape, w.shape[turned]
    sizes, result = w.shape[:2], (n, outputs, *size)
    # of two matrices there is less to ask
    shape = (channels, -1) if n == 1 else (n, channels, -1)

    def matrix(w: NDArray[Any]) -> NDArray[Any]:
        return w.reshape(sizes).T if turned else w.reshape(sizes)

    def of_rows(x: NDArray[Any], w: NDArray[Any], *_: Any) -> Any:
        return product(x.reshape(n, channels), matrix(w).T).reshape(result)

    def of_pixels(x: NDArray[Any], w: NDArray[Any], *_: Any) -> Any:
        return product(matrix(w), x.reshape(shape)).reshape(result)

    if prod(size) == 1:
        product: Any = matmul
        return of_rows
    if channels > 1:
        product = matmul_of(matrix(w), x.reshape(shape))
    else:
        long = prod(size) >= _LONG_ROW or n * outputs * prod(size) <= _FEW_ELEMENTS
        product = np.multiply if long else matmul
    return of_pixels


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


def _all_together(x: NDArray[Any], g: NDArray[Any], kernel: Sizes, slide: Sliding) -> bool:
    """Whether all channels, which are last, are so few that products of each with all outputs cost
    no more than those of its group.
    """
    alone = slide.groups > 1 and slide.pointwise and prod(kernel) == 1
    few = x.shape[1] <= _FEW_TOGETHER and g.shape[1] > slide.groups
    alike = x.dtype == g.dtype and not x.flags.c_contiguous and _last(x) and _last(g)
    return alone and few and alike and x.size > 0 < g.size


def _of_all_channels(x: NDArray[Any], g: NDArray[Any], groups: int) -> NDArray[Any]:
    """The sums over all pixels of the products of each group's channels with its outputs, among
    those of all with all.
    """
    ours, theirs = (channels_last(v).reshape(-1, v.shape[1]) for v in (g, x))
    sums: NDArray[Any] = matmul(ours.T, theirs)  # (O, C)
    of_groups = sums.reshape(groups, -1, groups, x.shape[1] // groups)
    return np.ascontiguousarray(of_groups[np.arange(groups), :, np.arange(groups)])  # (G, o, c)


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


def _apart(x: NDArray[Any], other: NDArray[Any], kernel: Sizes, slide: Sliding) -> bool:
    """Whether windows are single elements that lie strides apart."""
    alone = prod(kernel) == 1 and slide.groups == 1 and not any(map(any, slide.padding))
    alike = x.dtype == other.dtype and x.size > 0 < other.size
    return alone and alike and max(slide.stride) > 1


def _places(slide: Sliding) -> Index:
    return (..., *[slice(None, None, s) for s in slide.stride])


def _plain(slide: Sliding) -> Sliding:
    return slide._replace(stride=(1,) * len(slide.stride))


def _seeing(x: NDArray[Any], slide: Sliding) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """What copies what such windows see of images that lie as x does: so does the copy."""
    places, last = _places(slide), _last(x)

    def seen(x: NDArray[Any]) -> NDArray[Any]:
        part = x[places]
        if last:
            return channels_first(np.ascontiguousarray(channels_last(part)))
        return np.ascontiguousarray(part)

    return seen


def _convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> _Way | None:
    dense, groups, sizes = _dense(x, w), slide.groups, w.shape[:2]
    if dense and mapped(x.shape, w.shape, slide):
        return _mapped(x, w, False)
    if _stacks(x, w, w.shape[2:], slide):
        return lambda x, w, *_: _stacked(w.reshape(groups, -1, sizes[1]), x)
    if dense and whole(x.shape, w.shape[2:], slide):
        result = (len(x), len(w), *(1,) * len(slide.stride))
        return lambda x, w, *_: (
            matmul(x.reshape(len(x), -1), w.reshape(len(w), -1).T).reshape(result)
        )
    if _in_rows(x, w, slide):
        return lambda x, w, *_: _rows(x, w.reshape(sizes).T)
    if x.flags.c_contiguous and _apart(x, w, w.shape[2:], slide):
        seen = _seeing(x, slide)
        way = _convolution(seen(x), w, _plain(slide))
        return way and (lambda x, w, *_: way(seen(x), w))
    return None


def _convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> _Way | None:
    groups, sizes = slide.groups, w.shape[:2]
    if _dense(g, w) and mapped(g.shape, w.shape, slide):
        return _mapped(g, w, True)
    if _stacks(g, w, w.shape[2:], slide):
        return lambda g, w, *_: _stacked(w.reshape(groups, -1, sizes[1]).swapaxes(1, 2), g)
    if g.dtype == w.dtype and whole((*g.shape[:2], *size), w.shape[2:], slide):
        result = (len(g), sizes[1], *size)
        return lambda g, w, *_: (
            matmul(g.reshape(len(g), -1), w.reshape(len(w), -1)).reshape(result)
        )
    if _in_rows(g, w, slide):
        return lambda g, w, *_: _rows(g, w.reshape(sizes))
    if g.flags.c_contiguous and _apart(g, w, w.shape[2:], slide):
        way = _convolution_input(g, w, _plain(slide), g.shape[2:])
        return way and _sent(way, slide, (len(g), sizes[1], *size))
    return None


def _sent(way: _Way, slide: Sliding, shape: Sizes) -> _Way:
    """The adjoint whose windows lie apart, by that of what they see."""
    places = _places(slide)

    def spread(g: NDArray[Any], w: NDArray[Any], *_: Any) -> NDArray[Any]:
        x = np.zeros(shape, g.dtype)
        x[places] = way(g, w)
        return x

    return spread


def _convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> _Way | None:
    (n, channels), outputs = x.shape[:2], g.shape[1]
    result = (outputs, channels // slide.groups, *size)
    alike = g.flags.c_contiguous if x.flags.c_contiguous else _last(g)
    if _all_together(x, g, size, slide):
        return lambda x, g, *_: _of_all_channels(x, g, slide.groups).reshape(result)
    if _stacks(x, g, size, slide) and alike and g.shape[1] > slide.groups:
        return lambda x, g, *_: _stacked_weight(x, g, slide.groups).reshape(result)
    if _dense(x, g) and whole(x.shape, size, slide):
        return lambda x, g, *_: matmul(g.reshape(n, outputs).T, x.reshape(n, -1)).reshape(result)
    if x.dtype != g.dtype or not single(x.shape, size, slide):
        return _of_some_pixels(x, g, slide, size)
    if n > 1 and channels == outputs == 1:
        return None  # sums of lines
    if _last(x) and _last(g):
        return lambda x, g, *_: matmul(
            channels_last(g).reshape(-1, outputs).T, channels_last(x).reshape(-1, channels)
        ).reshape(result)
    if n == 1:
        product = matmul_of(g.reshape(outputs, -1), x.reshape(channels, -1).T)
        return lambda x, g, *_: (
            product(g.reshape(outputs, -1), x.reshape(channels, -1).T).reshape(result)
        )
    return lambda x, g, *_: (
        summed(g.reshape(n, outputs, -1), x.reshape(n, channels, -1)).reshape(result)
    )


def _of_some_pixels(x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes) -> _Way | None:
    """The same where windows are strides apart: a copy of what they see makes it products."""
    if not _apart(x, g, size, slide):
        return None
    plain, seen = _plain(slide), _seeing(x, slide)
    ways = table.Remembered("convolution_weight", x.dtype, 2 * g.size * x.shape[1])
    return lambda x, g, *_: ways(seen(x), g, plain, size)


# See the functions of these names in `funct.kernels.windows.convolution`.
convolution = table.Fitted(_convolution)
convolution_input = table.Fitted(_convolution_input)
convolution_weight = table.Fitted(_convolution_weight)


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
