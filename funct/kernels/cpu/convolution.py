"""Convolution and its adjoint in x, by bands (`bands.py`) and tiles (`tile.py`)."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.axes import adjoint_axis, axis, three
from funct.kernels.cpu.panels import batch_of, convolve, packed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["convolution", "convolution_input", "convolution_last"]

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]

_ELEMENT = {"float32": "f32", "float64": "f64"}


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
    out, c = w.shape[:2]
    axes = zip(x.shape[2:], size, w.shape[2:], stride, [low for low, _ in padding], dilation)
    taps = prod(w.shape[2:])
    steps = (c * taps, taps)  # of an output, of a channel, in w
    walked = tuple([axis(*a) for a in axes])
    return _run(x, w, walked, groups, c, out // groups, steps, size, last=last)


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
    out, c = w.shape[:2]
    axes = zip(g.shape[2:], size, w.shape[2:], stride, [low for low, _ in padding], dilation)
    taps = prod(w.shape[2:])
    return _run(
        g, w, tuple([adjoint_axis(*a) for a in axes]), groups, out // groups, c, (taps, c * taps),
        size,
    )  # fmt: skip


def _fits(x: NDArray[Any], w: NDArray[Any], size: Sizes) -> bool:
    return bool(x.dtype == w.dtype and len(size) <= 3 and x.size and w.size and prod(size))


def _pointwise(w: NDArray[Any], stride: Sizes, padding: Padding) -> bool:
    """Whether it is a product of matrices as it stands, which BLAS takes without a copy."""
    return prod(w.shape[2:]) == 1 and set(stride) == {1} and not any(map(any, padding))


def _run(
    x: NDArray[Any], w: NDArray[Any], axes: tuple[Any, ...], groups: int, channels: int,
    outputs: int, steps: tuple[int, int], size: Sizes, *, last: bool = False,
) -> NDArray[Any]:  # fmt: skip
    dot = _ELEMENT[x.dtype.name]
    batch = batch_of(len(x), groups, channels, outputs, dot)
    places = three(axes, axis(1, 1, 1, 1, 0, 1))
    kernel = three(w.shape[2:], 1)
    panels = packed(np.ascontiguousarray(w), dot, batch, places, kernel, steps)
    here = np.moveaxis(x, 1, -1)
    reads_last = here.flags.c_contiguous  # it is taken where it lies
    shape = (*size, groups * outputs) if last else (groups * outputs, *size)
    y = memory.fresh((len(x), *shape), x.dtype)
    convolve(
        here if reads_last else np.ascontiguousarray(x), panels, y, dot, batch, places, kernel,
        reads_last=reads_last, writes_last=last,
    )  # fmt: skip
    return np.moveaxis(y, -1, 1) if last else y
