"""Convolution and its adjoint in x, by bands (`bands.py`) and tiles (`dense/tile.py`)."""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.channels import channels_first, channels_last, lie_last
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.axes import adjoint_axis, axis, countless, three
from funct.kernels.cpu.convolution.lines import NEAR
from funct.kernels.cpu.convolution.panels import Convolver, batch_of
from funct.kernels.table import Fitted
from funct.kernels.windows.convolution import fitting_size
from funct.kernels.windows.patches import in_tiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

    _Way = Callable[..., NDArray[Any]]  # one of the maps, of operands that lie as it was made for

__all__ = [
    "beside", "beside_input", "convolution", "convolution_input", "convolved", "convolver",
]  # fmt: skip

_FEW_CHANNELS = 8
_FEW_OUTPUTS = 4
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


def _convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> _Way | None:
    size = fitting_size(x.shape, w.shape, None, slide)
    return _way(x, w, slide, size, adjoint=False)


def _convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> _Way | None:
    return _way(g, w, slide, size, adjoint=True)


def _beside(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> _Way | None:
    """The same where windows lie side by side, or apart, and BLAS, which takes a copy of them, is
    slower.
    """
    pixels = len(x) * prod(x.shape[2:]) // max(1, prod(slide.stride))
    if len(w) <= _FEW_OUTPUTS and slide.stride[-1] <= NEAR and prod(w.shape[2:]) > 1:
        return None  # lines of pixels that lie apart fill vectors
    return _convolution(x, w, slide) if in_tiles(len(x), pixels, w.shape, slide) else None


def _beside_input(g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes) -> _Way | None:
    """The same of the adjoint in x, whose few channels would leave lanes empty."""
    few = w.shape[1] < _FEW_CHANNELS and prod(w.shape[2:]) > 1
    quick = not few and in_tiles(len(g), g.size // max(1, len(w)), w.shape, slide)
    return _convolution_input(g, w, slide, size) if quick else None


# See the functions of these names in `funct.kernels.windows.convolution`.
convolution = Fitted(_convolution)
convolution_input = Fitted(_convolution_input)
beside, beside_input = Fitted(_beside), Fitted(_beside_input)


def _way(
    x: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes, *, adjoint: bool
) -> _Way | None:
    if x.dtype != w.dtype or len(size) > 3 or not (x.size and w.size):
        return None
    return _fitted(x, w, slide, size, adjoint, _ELEMENT[x.dtype])


def convolved(
    x: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes, *, adjoint: bool, dot: str
) -> NDArray[Any]:
    """The map from x to images of this size, all of them words of the dot."""
    way = _fitted(x, w, slide, size, adjoint, dot)
    return NotImplemented if way is None else way(x, w)


def _fitted(
    x: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes, adjoint: bool, dot: str
) -> _Way | None:
    """What `convolved` does with operands that lie as these. Channels that are last in memory stay
    there.
    """
    if not prod(size) or (adjoint and countless(size, slide)):
        return None
    last = lie_last(x)
    made = convolver(dot, x.shape, w.shape, size, slide, adjoint, last)
    outputs = w.shape[1] * slide.groups if adjoint else len(w)
    make = memory.maker((len(x), *((*size, outputs) if last else (outputs, *size))), x.dtype)
    dense = x.flags.c_contiguous and w.flags.c_contiguous
    order = channels_last if last else np.ascontiguousarray

    def way(x: NDArray[Any], w: NDArray[Any], *_: Any) -> NDArray[Any]:
        if not dense:
            x, w = order(x), np.ascontiguousarray(w)
        y = make()
        made.run(x, w if made.once else made.panels(w), y, laid=not made.once)
        return channels_first(y) if last else y

    return way
