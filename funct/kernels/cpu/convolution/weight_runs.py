"""Runs of pixels whose products gradients of weights sum, and those of them that a tap needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from funct.kernels.cpu.record import address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from funct.kernels.cpu.convolution.axes import Axis

    Ints = NDArray[np.int64]

__all__ = ["kept_runs", "runs_of"]

_ALL = 1 << 40  # more than there are


def runs_of(
    out: Sequence[int], rows: int, at: Sequence[int], by_rows: bool
) -> tuple[Ints, int, int]:
    """(offset in g, offset in the slab) of each run of a band; its length, its step in the slab.

    at: words of the slab from one output to the next, along each axis.
    """
    if by_rows:
        return np.zeros((1, 2), np.int64), 1, at[0]
    last = 2 if out[2] > 1 else 1
    counts = [rows, *[1 if k == last else out[k] for k in (1, 2)]]
    index = np.indices(counts).reshape(3, -1)
    of_g = (index[0] * out[1] + index[1]) * out[2] + index[2]
    of_x = sum([i * n for i, n in zip(index, at)])
    runs = np.stack([of_g, np.asarray(of_x)], axis=1).copy()
    return runs, out[last], at[last]


def kept_runs(
    first: Axis | None, n_taps: int, runs: Ints, row_runs: int, of_images: Ints, length: int
) -> list[Ints]:
    """For each tap, those of an image that read no zeros above it or below: the first one, the one
    behind the last, and the addresses of `runs` and `of_images`; then the tables that these are.

    first: the first axis; None if taps do not differ along it. runs: (image of a unit, run, offset
    in g and in the slab), so many of them in a row. of_images: (image of a chunk, offset in g and
    in a panel). length: of a run. Where a chunk has several images, tables are of what is kept.
    """
    if first is None:
        return [np.array([[0, _ALL, address(runs), address(of_images)]] * n_taps, np.int64)]
    kept, tables = [], []
    for _, offset in first.phases[0].taps:
        start, stop = (
            min(max(-((offset - end) // first.stride), 0), first.out) * row_runs
            for end in (first.low, first.low + first.size)
        )
        of_tap = [runs, of_images]
        if len(of_images) > 1:
            pixels = np.arange(len(of_images)) * ((stop - start) * length)
            of_tap = [runs[:, start:stop].copy(), np.stack([of_images[:, 0], pixels], axis=1)]
            tables += of_tap
        kept.append([start, stop, *map(address, of_tap)])
    return [np.repeat(np.array(kept, np.int64), n_taps // len(kept), axis=0), *tables]
