"""Convolutions to few channels: what each pixel sends to its window, added up.

A tile of few outputs is half empty, and lines of many large planes lie so far apart that they drive
each other out of the cache. So BLAS makes what all pixels send, taps by channels, and what goes to
one tap is an image, added where it belongs. A stride cuts the result into images by the residues of
their pixels, so that each sum is of whole lines. Along one axis this also serves long windows that
overlap a few times, as those of sound do.
"""

from __future__ import annotations

import itertools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.channels import channels_first, channels_last, lie_last
from funct.kernels.cpu.scratch import fresh
from funct.kernels.linalg.products import matmul

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Index, Sizes, Sliding

__all__ = ["convolution", "convolution_input"]

_FEW = 8  # channels; as many fill a vector
_MANY_TERMS = 64  # are summed for each of what is sent,
_MANY_PIXELS = 1 << 12  # of an image
# or of any where nothing else does them well, along one axis and of many terms: if so much is
# multiplied that what is added by itself, and the calls for it line by line, are little beside it
_MUCH, _AFAR = 1 << 20, 1 << 22
_SHARE, _CALL = 8, 1700
_ROOM = 1 << 20  # bytes of what is sent, if an image sends no more
# of sound:
_OVERLAPS = 4  # strides in a window, of one or two channels
_LEAST_STRIDE = 4
_SOME_TERMS = 16


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution`.

    Without strides it is the adjoint in x of one with turned taps.
    """
    size = slide.size(x.shape[2:], w.shape[2:])
    axes = tuple(range(2, w.ndim))
    if max(slide.stride) > 1 or not _large(x, w, len(w), slide, size):
        return NotImplemented
    lows = [d * (k - 1) - low for d, k, (low, _) in zip(slide.dilation, w.shape[2:], slide.padding)]
    turned = slide._replace(padding=tuple([(low, 0) for low in lows]))
    return _added(x, np.flip(w, axes).swapaxes(0, 1), turned, size)


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_input`."""
    if not (_sound(g, w, slide) or _large(g, w, w.shape[1], slide, size)):
        return NotImplemented
    return _added(g, w, slide, size)


def _large(g: Any, w: Any, channels: int, slide: Sliding, size: Sizes) -> bool:
    """Whether so few channels of large images are the sums of many."""
    if slide.groups > 1 or g.dtype != w.dtype or not (g.size and w.size and prod(size)):
        return False
    if channels >= _FEW or prod(w.shape[2:]) == 1:
        return False
    terms, pixels, line = w.size // (channels * prod(w.shape[2:])), prod(g.shape[2:]), g.shape[-1]
    if terms >= _MANY_TERMS and pixels >= _MANY_PIXELS:
        return True
    afar = w.ndim == 3 or terms * channels * pixels * g.itemsize >= _AFAR
    return afar and terms * line >= _SHARE * line + _CALL and w.size * pixels * len(g) >= _MUCH


def _sound(g: Any, w: Any, slide: Sliding) -> bool:
    """Whether windows of sound overlap a few times."""
    outputs, channels, *_, length = w.shape
    stride = slide.stride[0]
    few = channels <= 2 and -(-length // stride) <= _OVERLAPS and stride >= _LEAST_STRIDE
    plain = w.ndim == 3 and slide.groups == slide.dilation[0] == 1 and g.dtype == w.dtype
    return few and plain and outputs >= _SOME_TERMS and g.size > 0


def _parts(kernel: int, stride: int, dilation: int) -> list[tuple[slice, slice, int]]:
    """Taps along an axis that go to pixels of one row of strides: they, the residues of these
    pixels, and the row.
    """
    if dilation == 1:
        cuts = [(k, min(k + stride, kernel)) for k in range(0, kernel, stride)]
        return [(slice(k, end), slice(0, end - k), k // stride) for k, end in cuts]
    at = [(k, k * dilation % stride) for k in range(kernel)]
    return [(slice(k, k + 1), slice(r, r + 1), k * dilation // stride) for k, r in at]


def _strides(
    places: int, kernel: int, stride: int, dilation: int, low: int, size: int
) -> tuple[int, int]:  # fmt: skip
    """Of an axis: strides before the result that are cut off, and all that are written."""
    before = max(0, -(low // stride))
    reach = places + (kernel - 1) * dilation // stride
    return before, before + max(reach, -(-(low + size) // stride))


def _added(g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes) -> NDArray[Any]:
    """The adjoint in x, some images at a time."""
    (outputs, channels, *kernel), n, places = w.shape, len(g), g.shape[2:]
    stride, dilation, lows = slide.stride, slide.dilation, [low for low, _ in slide.padding]
    last, d = lie_last(g), len(kernel)
    pixels = channels_last(g).reshape(n, -1, outputs).swapaxes(1, 2) if last else None
    pixels = g.reshape(n, outputs, -1) if pixels is None else pixels
    matrix = w.reshape(outputs, -1).T
    given = zip(places, kernel, stride, dilation, lows, size)
    before, rows = zip(*[_strides(*axis) for axis in given])
    crop: Index = (..., *[
        slice(b * s + low, b * s + low + m) for b, s, low, m in zip(before, stride, lows, size)
    ])  # fmt: skip
    # images, channels, then rows and residues of each axis
    order = [0, 1, *itertools.chain(*[(2 + d + k, 2 + k) for k in range(d)])]
    x = fresh((n, *size, channels) if last else (n, channels, *size), g.dtype)
    images = channels_first(x) if last else x
    step = max(1, _ROOM // (len(matrix) * pixels.shape[2] * g.itemsize))
    for i in range(0, n, step):
        sent = matmul(matrix, pixels[i : i + step]).reshape(-1, channels, *kernel, *places)
        sums = np.zeros((len(sent), channels, *stride, *rows), g.dtype)
        for parts in itertools.product(*map(_parts, kernel, stride, dilation)):
            taps, residues, first = zip(*parts)
            here = [slice(b + f, b + f + t) for b, f, t in zip(before, first, places)]
            sums[(slice(None), slice(None), *residues, *here)] += sent[:, :, *taps]
        apart = sums.transpose(order)
        whole = apart.reshape(*apart.shape[:2], *[m * s for m, s in zip(rows, stride)])
        images[i : i + step] = whole[crop]
    return x if not last else images
