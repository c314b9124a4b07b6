"""Weights laid out for tiles (panels), and images convolved with them.

Panels depend on the weights alone and serve any number of calls. Arrays are taken in words
(`dots.py`) and must be contiguous.
"""

from __future__ import annotations

import ctypes
import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import host
from funct.kernels.cpu import bands
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.axes import Axes, Batch
from funct.kernels.cpu.dots import DOTS, supported
from funct.kernels.cpu.geometry import Plan, plan
from funct.kernels.cpu.record import address
from funct.kernels.cpu.tile import most_rows, tile_table
from funct.kernels.llvm import typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["batch_of", "convolve", "packed"]


def batch_of(images: int, groups: int, channels: int, outputs: int, dot: str) -> Batch:
    """The batch for this machine; channels and outputs are those of a group, in words."""
    word = typed(DOTS[dot].word).bytes
    width = supported(DOTS[dot], host())
    return Batch(images, groups, channels, outputs, word, width // word, host().cores)


def packed(
    w: NDArray[Any],
    dot: str,
    batch: Batch,
    axes: Axes,
    kernel: tuple[int, int, int],
    steps: tuple[int, int],
) -> NDArray[Any]:
    """Panels: for each class of pixels (group, block of outputs, tap, k, lane).

    w: words; taps are adjacent. steps: words from one output to the next, from one channel to the
    next.
    """
    made = plan(batch, axes, kernel)
    lane_step, depth_step = steps
    run, run_step = 1, 0
    if made.merged >= 0:
        run, run_step = kernel[made.merged], prod(kernel[made.merged + 1 :])
    depths = np.add.outer(
        np.arange(run) * run_step, np.arange(batch.group_channels) * depth_step
    ).ravel()
    blocks = -(-batch.group_outputs // (2 * batch.lanes))
    to = memory.fresh((max(1, made.weight_words),), w.dtype)
    for taps, panel in made.panels:
        table = np.array(taps, np.int64)
        job = bands.PACK.fill(
            tasks=blocks * batch.groups, source=address(w), to=address(to) + panel * w.itemsize,
            blocks=blocks, real=batch.group_outputs, lanes=batch.lanes, vectors=2,
            depth=len(depths), n_taps=len(taps), lane_step=lane_step,
            group_step=w.size // batch.groups, depths=address(depths), taps=address(table),
        )  # fmt: skip
        _entry(typed(DOTS[dot].word).element, False, False, "pack")(address(job))
    return to


def convolve(
    x: NDArray[Any],
    panels: NDArray[Any],
    y: NDArray[Any],
    dot: str,
    batch: Batch,
    axes: Axes,
    kernel: tuple[int, int, int],
    *,
    reads_last: bool = False,
    writes_last: bool = False,
) -> None:
    """Fill y, (N, outputs, *T), from x, (N, channels, *S), or either with its channels last."""
    made: Plan = plan(batch, axes, kernel)
    fields = made.fields
    width = supported(DOTS[dot], host())
    room = memory.scratch(fields["tasks"] * fields["scratch_step"] * x.itemsize)
    job = bands.JOB.fill(
        **fields, x=address(x), y=address(y), weights=address(panels), scratch=room,
        most_rows=most_rows(width), tiles=address(tile_table(dot, width)),
    )  # fmt: skip
    _entry(typed(DOTS[dot].word).element, reads_last, writes_last, "convolve")(address(job))


@functools.cache
def _entry(element: str, reads_last: bool, writes_last: bool, name: str) -> Any:
    signature = ctypes.CFUNCTYPE(None, ctypes.c_int64)
    return signature(bands.entry(element, host(), reads_last, writes_last, name))
