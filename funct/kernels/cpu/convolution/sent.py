"""Convolutions to few channels: what each pixel sends to its window, added up.

A tile of few outputs is half empty, and lines of many large planes lie so far apart that they drive
each other out of the cache. So BLAS makes what all pixels send, taps by channels, and what goes to
one tap is an image, added where it belongs. Along one axis this also serves long windows that
overlap a few times, as those of sound do.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import host
from funct.kernels.channels import channels_first, channels_last, lie_last
from funct.kernels.cpu.convolution.axes import countless
from funct.kernels.cpu.loops import available, kernel
from funct.kernels.cpu.vectors import loaded, stored
from funct.kernels.linalg.products import matmul, matmul_of
from funct.kernels.table import Fitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

__all__ = ["add_sent", "convolution", "convolution_input"]

_LANES = 8
_FEW = 8  # channels; as many fill a vector
_MANY_TERMS = 64  # are summed for each of what is sent,
_MANY_PIXELS = 1 << 12  # of an image
_MOST_TERMS, _SOME_ROWS = 128, 24  # of any image: BLAS has few rows to compute, but fills them
# or of any where nothing else does them well, along one axis and of many terms: if so much is
# multiplied that what is added by itself, and the calls for it, are little beside it
_MUCH, _AFAR = 1 << 20, 1 << 22
_SHARE, _CALL = 8, 1700
# or of any where zeros around are most of what many taps would read: pixels for each that is
# there, and what is summed at least
_MANY_TAPS, _AROUND, _LEAST_TERMS = 25, 2, 12
# or to few channels of a group, or of few pixels: bytes of vectors with which others are no quicker
# than BLAS, if an image sends no more bytes, for so many terms, half of them with strides, and a
# quarter where windows are boxes that stay in the image, outside of which others read most
_SHORT, _ROOMS = 32, {48: 1 << 24, 16: 1 << 21, 8: 1 << 19}
_FEW_PIXELS, _PIXEL_TERMS = 64, 64
_LAST_ROOM, _LAST_TERMS = 1 << 19, 8  # where channels are last, for each of them
_SOME_TAPS = 9  # of each of which lines read a weight
_TO_ADD = 4  # terms more than taps: those of one more are less work than to add up what it is sent
_ROOM = 1 << 20  # bytes of what is sent, if an image sends no more
# of sound:
_OVERLAPS = 4  # strides in a window, of one or two channels
_LEAST_STRIDE = 4
_SOME_TERMS = 16


def _convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> Any:
    """Without strides it is the adjoint in x of one with turned taps."""
    size = slide.size(x.shape[2:], w.shape[2:])
    axes = tuple(range(2, w.ndim))
    if max(slide.stride) > 1 or slide.groups > 1 or 0 in size or not available():
        return None
    lows = [d * (k - 1) - low for d, k, (low, _) in zip(slide.dilation, w.shape[2:], slide.padding)]
    turned = slide._replace(padding=tuple([(low, 0) for low in lows]))

    def flipped(w: NDArray[Any]) -> NDArray[Any]:
        return np.flip(w, axes).swapaxes(0, 1)

    few = len(w) < _FEW and _apart(x, flipped(w), turned)
    few = few or (_many(x, w, len(w), slide) and not _in_lines(w, size, len(x)))
    if not few and not _large(x, w, len(w), slide, size):
        return None
    added = _added(x, flipped(w), turned, size)
    return lambda x, w, *_: added(x, flipped(w))


def _convolution_input(g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes) -> Any:
    serves = _sound(g, w, slide) or _apart(g, w, slide) or _many(g, w, w.shape[1], slide)
    serves = serves or _large(g, w, w.shape[1], slide, size) or _spread(g, w, slide, size)
    if not serves or 0 in size or not available():
        return None
    return _added(g, w, slide, size)


# See the functions of these names in `funct.kernels.windows.convolution`.
convolution = Fitted(_convolution)
convolution_input = Fitted(_convolution_input)


def _large(g: Any, w: Any, channels: int, slide: Sliding, size: Sizes) -> bool:
    """Whether so few channels are the sums of many, or so large windows reach beyond images."""
    if g.dtype != w.dtype or not (g.size and w.size and prod(size)):
        return False
    taps = prod(w.shape[2:])
    terms, pixels, line = w.size // (channels * taps), prod(g.shape[2:]), g.shape[-1]
    around = prod(size) >= _AROUND * pixels * prod(slide.stride)
    around = around and (w.ndim < 5 or len(g) == 1)  # classes of pixels share tiles of images
    many = taps >= _MANY_TAPS and around and terms >= _LEAST_TERMS * slide.groups
    if many and (slide.groups > 1 or _unfilled(g, channels, terms)):
        return slide.groups == 1 or not lie_last(g)
    if slide.groups > 1 or channels >= _FEW or taps == 1:
        return False
    work = w.size * pixels * len(g)
    if terms >= _MANY_TERMS and pixels >= _MANY_PIXELS:
        return True
    if terms >= _MOST_TERMS and w.size >= _SOME_ROWS * terms and work >= 2 * _MUCH:
        return True
    afar = w.ndim == 3 or terms * channels * pixels * g.itemsize >= _AFAR
    return afar and terms * line >= _SHARE * line + _CALL and work >= _MUCH


def _unfilled(g: Any, channels: int, terms: int) -> bool:
    """Whether tiles, a tap at a time, would leave lanes empty, or lay out most weights for each
    use.
    """
    return channels * g.itemsize < host().vector_bytes or (len(g) == 1 and terms > _MANY_TERMS)


def _apart(g: Any, w: Any, slide: Sliding) -> bool:
    """Whether vectors are short and some outputs are summed for a few channels of a group, or many
    of a few pixels, for which weights would be laid out.
    """
    groups, pixels = slide.groups, prod(g.shape[2:])
    boxes = w.ndim == 5 and max(map(max, slide.padding)) <= 0
    terms = len(w) // groups * (2 if max(slide.stride) > 1 else 1) * (4 if boxes else 1)
    short = host().vector_bytes <= _SHORT
    alone = len(g) == groups == 1 and pixels <= _FEW_PIXELS and terms >= _PIXEL_TERMS
    sent = w.size // max(1, len(w)) * groups * pixels * g.itemsize
    room = next((room for least, room in _ROOMS.items() if terms >= least), 0)
    if lie_last(g) and not alone:
        sent *= w.shape[1]
        room = _LAST_ROOM if groups == 1 and terms >= _LAST_TERMS else 0
    alike = g.dtype == w.dtype and prod(w.shape[2:]) > 1
    return short and (w.shape[1] < _FEW or alone) and alike and g.size > 0 < sent <= room


def _many(g: Any, w: Any, channels: int, slide: Sliding) -> bool:
    """Whether vectors are long and so few channels are the sums of so many outputs that what BLAS
    gains is more than it takes to add what goes to each tap.
    """
    taps = prod(w.shape[2:])
    terms = w.size // max(1, channels * taps)
    long = host().vector_bytes > _SHORT and not lie_last(g)
    few = slide.groups == 1 and channels <= _FEW and taps > 1 and terms >= taps + _TO_ADD
    return long and few and g.dtype == w.dtype and g.size > 0


def _in_lines(w: Any, size: Sizes, images: int) -> bool:
    """Whether lines (`lines.py`) are as quick as BLAS, where loads keep pace with products: those
    of planes for many taps, and of little.
    """
    little = w.size * prod(size) * images < _MUCH
    many = len(size) > 1 and prod(w.shape[2:]) >= _SOME_TAPS
    return host().loads_keep_pace and (little or many)


def _spread(g: Any, w: Any, slide: Sliding, size: Sizes) -> bool:
    """Whether pixels have so many phases that nothing else is planned for them."""
    alike = g.dtype == w.dtype and g.size > 0 < w.size
    return alike and slide.groups == 1 and countless(size, slide)


def _sound(g: Any, w: Any, slide: Sliding) -> bool:
    """Whether windows of sound overlap a few times."""
    outputs, channels, *_, length = w.shape
    stride = slide.stride[0]
    few = channels <= 2 and -(-length // stride) <= _OVERLAPS and stride >= _LEAST_STRIDE
    plain = w.ndim == 3 and slide.groups == slide.dilation[0] == 1 and g.dtype == w.dtype
    return few and plain and outputs >= _SOME_TERMS and g.size > 0


@kernel
def add_sent(
    sent: Any, x: Any, parts: Any, count: int, images: int, channels: int, sent_image: int,
    x_image: int, sent_channel: int, x_channel: int, sent_row: int, x_row: int, step: int,
) -> None:  # fmt: skip
    """x += sent, part by part. parts (count, 4): where one begins in a channel of sent and of x,
    its rows, and the elements of each, which are steps apart in x.
    """
    for i in range(images):
        for c in range(channels):
            here, there = i * sent_image + c * sent_channel, i * x_image + c * x_channel
            for p in range(count):
                a, b = here + parts[4 * p], there + parts[4 * p + 1]
                n = parts[4 * p + 3]
                whole = n & -_LANES if step == 1 else 0
                for _ in range(parts[4 * p + 2]):
                    for j in range(0, whole, _LANES):
                        stored(x, b + j, loaded(x, b + j, _LANES) + loaded(sent, a + j, _LANES))
                    for j in range(whole, n):
                        to = b + j * step
                        x[to] = x[to] + sent[a + j]
                    a, b = a + sent_row, b + x_row


@functools.lru_cache(256)
def _parts(places: Sizes, kernel: Sizes, slide: Sliding, size: Sizes) -> NDArray[np.int64]:
    """The parts of a channel for `add_sent`, one for each tap and place along all but two axes,
    where pixels of x lie side by side.
    """
    lows = [low for low, _ in slide.padding]
    axes = [*zip(places, kernel, slide.stride, slide.dilation, lows, size)]
    axes = [(1, 1, 1, 1, 0, 1)] * (2 - len(axes)) + axes
    counts, taps, *_ = zip(*axes)
    outer = len(axes) - 2
    index = np.indices((*taps, *counts[:outer])).reshape(len(axes) + outer, -1)
    tap, of_sent, of_x = np.zeros((3, index.shape[1]), np.int64)
    lengths, inside = [], tap == 0
    for k, (count, length, stride, dilation, low, most) in enumerate(axes):
        first = index[k] * dilation - low
        begin, end = (
            np.maximum(0, -(first // stride)),
            np.minimum(count, -((first - most) // stride)),
        )
        if k < outer:
            at = index[len(axes) + k]
            inside &= (begin <= at) & (at < end)
            begin = at
        else:
            inside &= begin < end
            lengths.append(end - begin)
        tap, of_sent = tap * length + index[k], of_sent * count + begin
        of_x = of_x * most + begin * stride + first
    parts = np.stack([tap * prod(places) + of_sent, of_x, *lengths], 1)
    return parts[inside]


def _added(g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes) -> Callable[..., Any]:
    """The adjoint in x, some images at a time, of operands that lie as these do."""
    (outputs, channels, *kernel), n, places = w.shape, len(g), g.shape[2:]
    groups, last = slide.groups, lie_last(g)
    channels *= groups
    shape = (n, *size, channels) if last else (n, channels, *size)
    pixel, channel = (channels, 1) if last else (1, prod(size))
    parts = _parts(places, tuple(kernel), slide, size)
    parts = parts * np.array([1, pixel, 1, 1]) if last else parts
    rows = (slide.stride[-2] * size[-1] * pixel if len(size) > 1 else 0, slide.stride[-1] * pixel)
    taps = prod(kernel) * prod(places)
    together = max(1, _ROOM // (channels * taps * g.itemsize))
    strides = channels * taps, channels * prod(size), taps, channel, places[-1], *rows

    def pixels(g: NDArray[Any]) -> NDArray[Any]:
        if last:
            return channels_last(g).reshape(n, -1, outputs).swapaxes(1, 2)
        return g.reshape(n, outputs, -1) if groups == 1 else g.reshape(n, groups, share, -1)

    def matrices(w: NDArray[Any]) -> NDArray[Any]:
        return w.reshape((outputs, -1) if groups == 1 else (groups, share, -1)).swapaxes(-1, -2)

    def add(g: NDArray[Any], w: NDArray[Any], *_: Any) -> NDArray[Any]:
        matrix, images, x = matrices(w), pixels(g), np.zeros(shape, g.dtype)
        for i in range(0, n, together):
            if alone:
                sent, count = product(matrix, images[i]), 1
            else:
                sent = matmul(matrix, images[i : i + together])
                count = len(sent)
            add_sent(sent, x[i : i + together], parts, len(parts), count, channels, *strides)
        return channels_first(x) if last else x

    share = outputs // groups
    alone = groups == 1 and (together == 1 or n == 1)  # of two matrices there is less to ask
    product: Any = matmul_of(w.reshape(outputs, -1).T, pixels(g)[0]) if alone else None
    return add
