"""Convolution and its adjoint in x, by bands (`bands.py`) and tiles (`tile.py`)."""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.axes import adjoint_axis, axis, three
from funct.kernels.cpu.panels import Convolver, batch_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["convolution", "convolution_input", "convolution_last", "convolver"]

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]

_ELEMENT = {"float32": "f32", "float64": "f64"}


@functools.lru_cache(512)
def convolver(
    dot: str, x: Sizes, w: Sizes, size: Sizes, stride: Sizes, padding: Padding, dilation: Sizes,
    groups: int, adjoint: bool,
) -> Convolver:  # fmt: skip
    """x, w: shapes of what is read and of the weights. size: *T of what is written."""
    outputs, channels, *kernel = w
    outputs //= groups
    lows = [low for low, _ in padding]
    walk = adjoint_axis if adjoint else axis
    axes = tuple([walk(*a) for a in zip(x[2:], size, kernel, stride, lows, dilation)])
    taps = prod(kernel)
    steps = (channels * taps, taps)  # of an output, of a channel, in w
    if adjoint:
        outputs, channels, steps = channels, outputs, steps[::-1]
    batch = batch_of(x[0], groups, channels, outputs, dot)
    places = three(axes, axis(1, 1, 1, 1, 0, 1))
    return Convolver(dot, batch, places, three(tuple(kernel), 1), steps)


def convolution(
    x: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution`."""
    return _forward(x, w, stride, padding, dilation, groups, last=False)


def _forward(
    x: NDArray[Any], w: NDArray[Any], stride: Sizes, padding: Padding, dilation: Sizes, groups: int,
    *, last: bool,
) -> NDArray[Any]:  # fmt: skip
    """last: the channels of the result are, in memory."""
    size = tuple([
        (n + low + high - d * (k - 1) - 1) // s + 1
        for n, k, s, (low, high), d in zip(x.shape[2:], w.shape[2:], stride, padding, dilation)
    ])  # fmt: skip
    if not _fits(x, w, size) or (not last and _pointwise(w, stride, padding)):
        return NotImplemented
    made = convolver(
        _ELEMENT[x.dtype.name], x.shape, w.shape, size, stride, padding, dilation, groups, False
    )
    return _run(made, x, w, len(w), size, last)


def convolution_last(
    x: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution_last`."""
    y = _forward(np.moveaxis(x, -1, 1), w, stride, padding, dilation, groups, last=True)
    return y if y is NotImplemented else np.moveaxis(y, 1, -1)


def convolution_input(
    g: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
    size: Sizes,
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution_input`."""
    if not _fits(g, w, size) or _pointwise(w, stride, padding):
        return NotImplemented
    made = convolver(
        _ELEMENT[g.dtype.name], g.shape, w.shape, size, stride, padding, dilation, groups, True
    )
    return _run(made, g, w, w.shape[1] * groups, size, False)


def _fits(x: NDArray[Any], w: NDArray[Any], size: Sizes) -> bool:
    return bool(x.dtype == w.dtype and len(size) <= 3 and x.size and w.size and prod(size))


def _pointwise(w: NDArray[Any], stride: Sizes, padding: Padding) -> bool:
    """Whether it is a product of matrices as it stands, which BLAS takes without a copy."""
    return prod(w.shape[2:]) == 1 and set(stride) == {1} and not any(map(any, padding))


def _run(
    made: Convolver, x: NDArray[Any], w: NDArray[Any], outputs: int, size: Sizes, last: bool
) -> NDArray[Any]:
    panels = made.panels(np.ascontiguousarray(w))
    reads_last = not x.flags.c_contiguous and np.moveaxis(x, 1, -1).flags.c_contiguous
    y = memory.fresh((len(x), *((*size, outputs) if last else (outputs, *size))), x.dtype)
    where_it_lies = np.moveaxis(x, 1, -1) if reads_last else np.ascontiguousarray(x)
    made.run(where_it_lies, panels, y, reads_last=reads_last, writes_last=last)
    return np.moveaxis(y, -1, 1) if last else y
