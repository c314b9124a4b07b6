"""Convolution and its adjoint in x, by bands (`bands.py`) and tiles (`tile.py`)."""

from __future__ import annotations

import ctypes
import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import host
from funct.kernels.cpu import bands
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.axes import Batch, adjoint_axis, axis, three
from funct.kernels.cpu.dots import DOTS, supported
from funct.kernels.cpu.geometry import Plan, plan
from funct.kernels.cpu.record import address
from funct.kernels.cpu.tile import most_rows, tile_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["convolution", "convolution_input"]

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]

_ELEMENT = {"float32": "f32", "float64": "f64"}
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_int64)


def convolution(
    x: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution`."""
    size = tuple([
        (n + low + high - d * (k - 1) - 1) // s + 1
        for n, k, s, (low, high), d in zip(x.shape[2:], w.shape[2:], stride, padding, dilation)
    ])  # fmt: skip
    if not _fits(x, w, size) or _pointwise(w, stride, padding):
        return NotImplemented
    out, c = w.shape[:2]
    axes = zip(x.shape[2:], size, w.shape[2:], stride, [low for low, _ in padding], dilation)
    taps = prod(w.shape[2:])
    steps = (c * taps, taps)  # of an output, of a channel, in w
    return _run(x, w, tuple([axis(*a) for a in axes]), groups, c, out // groups, steps, size)


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
    outputs: int, steps: tuple[int, int], size: Sizes,
) -> NDArray[Any]:  # fmt: skip
    me = host()
    dot = DOTS[_ELEMENT[x.dtype.name]]
    width = supported(dot, me)
    lanes = width // x.itemsize
    batch = Batch(len(x), groups, channels, outputs, x.itemsize, lanes, me.cores)
    one = axis(1, 1, 1, 1, 0, 1)
    kernel = three(w.shape[2:], 1)
    made = plan(batch, three(axes, one), kernel)
    x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
    y = memory.fresh((len(x), groups * outputs, *size), x.dtype)
    fields = made.fields
    # the weights' panels, then each task's scratch
    room = memory.scratch(
        (made.weight_words + fields["tasks"] * fields["scratch_step"] + 32) * x.itemsize
    )
    _pack(made, batch, kernel, w, steps, room, dot.name)
    after = room + -(-made.weight_words * x.itemsize // 64) * 64
    job = bands.JOB.fill(
        **fields, x=address(x), y=address(y), weights=room, scratch=after,
        most_rows=most_rows(width), tiles=address(tile_table(dot.name, width)),
    )  # fmt: skip
    _entry(dot.name, "convolve")(address(job))
    return y


def _pack(
    made: Plan, batch: Batch, kernel: tuple[int, int, int], w: NDArray[Any], steps: tuple[int, int],
    to: int, dot: str,
) -> None:  # fmt: skip
    """Lay w out as panels: for each class (group, block of outputs, tap, k, lane)."""
    lane_step, depth_step = steps
    run, run_step = 1, 0
    if made.merged >= 0:
        run, run_step = kernel[made.merged], prod(kernel[made.merged + 1 :])
    depths = np.add.outer(
        np.arange(run) * run_step, np.arange(batch.group_channels) * depth_step
    ).ravel()
    blocks = -(-batch.group_outputs // (2 * batch.lanes))
    for taps, panel in made.panels:
        table = np.array(taps, np.int64)
        job = bands.PACK.fill(
            tasks=blocks * batch.groups, source=address(w), to=to + panel * w.itemsize,
            blocks=blocks, real=batch.group_outputs, lanes=batch.lanes, vectors=2,
            depth=len(depths), n_taps=len(taps), lane_step=lane_step,
            group_step=w.size // batch.groups, depths=address(depths), taps=address(table),
        )  # fmt: skip
        _entry(dot, "pack")(address(job))


@functools.cache
def _entry(dot: str, name: str) -> Any:
    return _SIGNATURE(bands.entry(dot, host(), False, name))
