"""Convolutions that read one of several pixels along an axis, since stride and dilation have a
divisor in common: convolutions of the image of these pixels, of stride and dilation divided by it.

What is left is often of stride and dilation 1, which the quickest kernels take. The copy pays for
gradients of weights, which lay x out anyway, and otherwise where it leaves no stride and dilation;
not for groups, which make few products of each number.
"""

from __future__ import annotations

import functools
from math import gcd, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels import table
from funct.kernels.channels import channels_first, channels_last, lie_last

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.windows.views import Index, Sizes, Sliding

__all__ = ["convolution", "convolution_input", "convolution_weight"]

_FEW_CHANNELS = 16  # fewer are read where they lie by texts that know the strides
_FEW_PIXELS = 256  # of the results of all images; weights laid out for fewer are most of the work
_ALONE = 3  # channels of lines, which are summed quicker where they lie side by side
_LEAST = 4_000_000  # operations of a gradient of weights, or the copy and two calls are most of it


@functools.lru_cache(512)
def _read(image: Sizes, kernel: Sizes, out: Sizes, slide: Sliding) -> tuple[Index, Sliding] | None:
    """The pixels that taps meet, and how kernels slide over them; None where no divisor is in
    common, kernels see only zeros, or there are groups.
    """
    if slide.groups > 1:
        return None
    pixels, strides, padding, dilation = [], [], [], []
    apart = False
    for s, k, t, stride, (low, _), d in zip(image, kernel, out, *slide[:3], strict=True):
        step = gcd(stride, d) if k > 1 else stride
        apart |= k > 1 and step > 1
        stride, d = stride // step, d // step if k > 1 else 1
        first = -low if low < 0 else -low % step
        low = (low + first) // step
        reach = (t - 1) * stride + (k - 1) * d + 1 - low  # from the first pixel on
        count = min(-(-(s - first) // step), reach)
        if count < 1:
            return None
        pixels.append(slice(first, first + (count - 1) * step + 1, step))
        strides.append(stride)
        padding.append((low, reach - count))
        dilation.append(d)
    if not apart:
        return None
    how = slide._replace(stride=tuple(strides), padding=tuple(padding), dilation=tuple(dilation))
    return (..., *pixels), how


def _pays(slide: Sliding, pixels: int) -> bool:
    """Whether what is left is quicker, without x laid out, for so many pixels of results."""
    return {*slide.stride, *slide.dilation} == {1} and pixels >= _FEW_PIXELS


def _image(x: NDArray[Any], pixels: Index) -> NDArray[Any]:
    """These pixels side by side, with channels last in memory if they are so in x."""
    if lie_last(x):
        return channels_first(np.ascontiguousarray(channels_last(x[pixels])))
    return np.ascontiguousarray(x[pixels])


def _convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> Callable[..., Any] | None:
    out = slide.size(x.shape[2:], w.shape[2:])
    found = _read(x.shape[2:], w.shape[2:], out, slide)
    pays = found and x.shape[1] >= _FEW_CHANNELS and _pays(found[1], len(x) * prod(out))
    if not (found and pays):
        return None
    pixels, left = found
    ways = table.Remembered("convolution", x.dtype, 2 * len(x) * prod(out) * w.size)
    return lambda x, w, *_: ways(_image(x, pixels), w, left)


def _convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> Callable[..., Any] | None:
    found = _read(size, w.shape[2:], g.shape[2:], slide)
    if found is None or not _pays(found[1], len(g) * prod(g.shape[2:])):
        return None
    channels, *kernel = w.shape[1:]
    squares = kernel == [3, 3] and min(channels, len(w)) >= _FEW_CHANNELS
    if not squares and (channels > _ALONE or len(size) < 3):
        return None
    pixels, left = found
    ways = table.Remembered("convolution_input", g.dtype, 2 * g.size * prod(w.shape[1:]))
    shape = (len(g), w.shape[1], *size)
    some = np.empty(size, bool)[pixels].shape

    def apart(g: NDArray[Any], w: NDArray[Any], *_: Any) -> NDArray[Any]:
        met = ways(g, w, left, some)
        last = lie_last(met)
        x = np.zeros((shape[0], *size, shape[1]) if last else shape, g.dtype)
        x = channels_first(x) if last else x
        x[pixels] = met
        return x

    return apart


def _convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> Callable[..., Any] | None:
    found = _read(x.shape[2:], size, g.shape[2:], slide)
    if found is None:
        return None
    pixels, left = found
    work = 2 * g.size * x.shape[1] * prod(size)
    if x.shape[1] > 1 and work < _LEAST:
        return None
    ways = table.Remembered("convolution_weight", g.dtype, work)
    return lambda x, g, *_: ways(_image(x, pixels), g, left, size)


# See the functions of these names in `funct.kernels.windows.convolution`.
convolution = table.Fitted(_convolution)
convolution_input = table.Fitted(_convolution_input)
convolution_weight = table.Fitted(_convolution_weight)
