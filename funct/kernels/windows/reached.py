"""Convolutions some of whose taps reach no pixel, as those of large windows on small images: what
is left of their kernels are smaller ones, often single elements.

Tiles leave such taps out by themselves, and read the others where they lie: what is left is copied
for them only if it is single elements.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.windows.views import Index, Sizes, Sliding

__all__ = ["convolution", "convolution_input", "convolution_weight"]


@functools.lru_cache(512)
def _left(image: Sizes, kernel: Sizes, out: Sizes, slide: Sliding) -> tuple[Index, Sliding] | None:
    """The taps from the first to the last that reach a pixel, and how they slide; None where that
    is all of them, or none.
    """
    taps, strides, padding = [], [], []
    for s, k, t, stride, (low, high), d in zip(image, kernel, out, *slide[:3], strict=True):
        at = np.arange(k)[:, None] * d + np.arange(t) * stride - low
        (live,) = np.nonzero(((at >= 0) & (at < s)).any(1))
        if not live.size:
            return None
        first, last = int(live[0]), int(live[-1])
        low, high = low - first * d, high - (k - 1 - last) * d
        if t == 1:  # windows that do not slide are those of any stride
            stride, high = 1, (last - first) * d + 1 - s - low
        taps.append(slice(first, last + 1))
        strides.append(stride)
        padding.append((low, high))
    if [(p.start, p.stop) for p in taps] == [(0, k) for k in kernel]:
        return None
    return (..., *taps), slide._replace(stride=tuple(strides), padding=tuple(padding))


def _tiled(x: NDArray[Any], taps: Index, slide: Sliding) -> bool:
    """Whether tiles take what is left as it lies."""
    several = any(p.stop - p.start > 1 for p in taps[1:]) and len(slide.stride) <= 3
    real = x.dtype in (np.float32, np.float64)
    return slide.groups == 1 and several and real and table.met(table.WIDE)


def _ways(name: str, x: Any, w: Sizes, out: Sizes, taps: Index, images: int) -> table.Remembered:
    left = prod([p.stop - p.start for p in taps[1:]])
    return table.Remembered(name, x.dtype, 2 * images * prod(out) * w[0] * w[1] * left)


def _convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> Callable[..., Any] | None:
    out = slide.size(x.shape[2:], w.shape[2:])
    found = _left(x.shape[2:], w.shape[2:], out, slide)
    if found is None or _tiled(x, found[0], slide):
        return None
    taps, left = found
    ways = _ways("convolution", x, w.shape, out, taps, len(x))
    return lambda x, w, *_: ways(x, np.ascontiguousarray(w[taps]), left)


def _convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> Callable[..., Any] | None:
    found = _left(size, w.shape[2:], g.shape[2:], slide)
    if found is None or _tiled(g, found[0], slide):
        return None
    taps, left = found
    ways = _ways("convolution_input", g, w.shape, g.shape[2:], taps, len(g))
    return lambda g, w, *_: ways(g, np.ascontiguousarray(w[taps]), left, size)


def _convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> Callable[..., Any] | None:
    found = _left(x.shape[2:], size, g.shape[2:], slide)
    if found is None:
        return None
    taps, left = found
    shape = (g.shape[1], x.shape[1] // slide.groups, *size)
    kernel = tuple([p.stop - p.start for p in taps[1:]])
    ways = _ways("convolution_weight", g, shape, g.shape[2:], taps, len(g))

    def within(x: NDArray[Any], g: NDArray[Any], *_: Any) -> NDArray[Any]:
        w = np.zeros(shape, g.dtype)
        w[taps] = ways(x, g, left, kernel)
        return w

    return within


# See the functions of these names in `funct.kernels.windows.convolution`.
convolution = table.Fitted(_convolution)
convolution_input = table.Fitted(_convolution_input)
convolution_weight = table.Fitted(_convolution_weight)
