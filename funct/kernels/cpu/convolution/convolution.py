"""Convolution and its adjoint in x, by bands (`bands.py`) and tiles (`dense/tile.py`)."""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.channels import channels_first, channels_last
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.axes import adjoint_axis, axis, countless, three
from funct.kernels.cpu.convolution.panels import Convolver, batch_of
from funct.kernels.windows.convolution import fitting_size
from funct.kernels.windows.patches import in_tiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

__all__ = [
    "beside", "beside_input", "convolution", "convolution_input", "convolved", "convolver",
]  # fmt: skip

_FEW_CHANNELS = 8
_ELEMENT = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}


@functools.lru_cache(512)
def convolver(
    dot: str, x: Sizes, w: Sizes, size: Sizes, slide: Sliding, adjoint: bool, last: bool = False
) -> Convolver:  # fmt: skip
    """x, w: shapes of what is read and of the weights. size: *T of what is written. last: whether
    channels are last in memory.
    """
    outputs, channels, *kernel = w
    outputs //= slide.groups
    lows = [low for low, _ in slide.padding]
    walk = adjoint_axis if adjoint else axis
    given = zip(x[2:], size, kernel, slide.stride, lows, slide.dilation)
    axes = tuple([walk(*a) for a in given])
    taps = prod(kernel)
    steps = (channels * taps, taps)  # of an output, of a channel, in w
    if adjoint:
        outputs, channels, steps = channels, outputs, steps[::-1]
    batch = batch_of(x[0], slide.groups, channels, outputs, dot, last=last)
    places = three(axes, axis(1, 1, 1, 1, 0, 1))
    return Convolver(dot, batch, places, three(tuple(kernel), 1), steps)


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution`."""
    size = fitting_size(x.shape, w.shape, None, slide)
    return _run(x, w, slide, size, adjoint=False)


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_input`."""
    return _run(g, w, slide, size, adjoint=True)


def beside(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """The same where windows lie side by side, or apart, and BLAS, which takes a copy of them, is
    slower.
    """
    pixels = len(x) * prod(x.shape[2:]) // max(1, prod(slide.stride))
    quick = in_tiles(len(x), pixels, w.shape, slide)
    return convolution(x, w, slide) if quick else NotImplemented


def beside_input(g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes) -> NDArray[Any]:
    """The same of the adjoint in x, whose few channels would leave lanes empty."""
    few = w.shape[1] < _FEW_CHANNELS and prod(w.shape[2:]) > 1
    quick = not few and in_tiles(len(g), g.size // max(1, len(w)), w.shape, slide)
    return convolution_input(g, w, slide, size) if quick else NotImplemented


def _run(
    x: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes, *, adjoint: bool
) -> NDArray[Any]:
    if x.dtype != w.dtype or len(size) > 3 or not (x.size and w.size):
        return NotImplemented
    return convolved(x, w, slide, size, adjoint=adjoint, dot=_ELEMENT[x.dtype])


def convolved(
    x: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes, *, adjoint: bool, dot: str
) -> NDArray[Any]:
    """The map from x to images of this size, all of them words of the dot. Channels that are last
    in memory stay there.
    """
    if not prod(size) or (adjoint and countless(size, slide)):
        return NotImplemented
    last = not x.flags.c_contiguous and channels_last(x).flags.c_contiguous
    made = convolver(dot, x.shape, w.shape, size, slide, adjoint, last)
    w = np.ascontiguousarray(w)
    panels = w if made.once else made.panels(w)
    outputs = w.shape[1] * slide.groups if adjoint else len(w)
    y = memory.fresh((len(x), *((*size, outputs) if last else (outputs, *size))), x.dtype)
    x = channels_last(x) if last else np.ascontiguousarray(x)
    made.run(x, panels, y, laid=not made.once)
    return channels_first(y) if last else y
