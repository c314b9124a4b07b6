"""Plans of convolutions: which words of x meet which weights for which pixels of the result.

A plan is a pure function of shapes and parameters. Images have three spatial axes here; of one axis
or two, the second and the third are filled up: (T, 1, 1), (H, 1, W).

Each axis has phases: pixels `start + step i` of the result, i < count, read the slab at
`stride i + offset` for each tap. A convolution has one phase per axis; its adjoint in x has one for
each residue of the pixels by the stride, with the taps that reach it, and reads densely.
"""

from __future__ import annotations

import functools
import itertools
from math import prod
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

__all__ = ["Axis", "Batch", "Phase", "Plan", "adjoint_axis", "axis", "plan", "three"]

Taps = tuple[tuple[int, int], ...]  # (tap, offset in the slab)

_SLAB_BYTES = 192 << 10  # what a band copies and
_SUMS_BYTES = 128 << 10  # what it sums up stay in the second-level cache
_PANEL_BYTES = 192 << 10  # as do the weights of one tile


@attrs.frozen
class Phase:
    """Pixels that take the same taps. taps: (number of the tap, offset in the slab)."""

    start: int
    count: int
    taps: Taps


@attrs.frozen
class Axis:
    """One spatial axis. size: of what is read. out: of the result. low: zeros before it in the
    slab, cropped where negative. step: from one pixel of a phase to the next, in the result.
    stride: the same in the slab.
    """

    size: int
    out: int
    low: int
    step: int
    stride: int
    phases: tuple[Phase, ...]

    def reach(self, out: int | None = None) -> int:
        """The length that the first `out` pixels of the result, or all, need in the slab."""
        out = self.out if out is None else out
        last = [
            (-(-(out - p.start) // self.step) - 1) * self.stride + max([o for _, o in p.taps])
            for p in self.phases
            if p.taps and out > p.start
        ]
        return max(last, default=0) + 1


def axis(size: int, out: int, kernel: int, stride: int, low: int, dilation: int) -> Axis:
    """An axis of a convolution."""
    taps = tuple([(k, k * dilation) for k in range(kernel)])
    return Axis(size, out, low, 1, stride, (Phase(0, out, taps),))


def adjoint_axis(size: int, out: int, kernel: int, stride: int, low: int, dilation: int) -> Axis:
    """The same axis, walked by the adjoint: from `size` pixels of g to `out` pixels of x."""
    found = []
    for r in range(min(stride, out)):
        reached = [(k, r + low - dilation * k) for k in range(kernel)]
        found.append((r, [(k, at // stride) for k, at in reached if at % stride == 0]))
    least = min([o for _, taps in found for _, o in taps], default=0)
    phases = [
        Phase(r, -(-(out - r) // stride), tuple([(k, o - least) for k, o in taps]))
        for r, taps in found
    ]
    return Axis(size, out, -least, stride, 1, tuple(phases))


def three(values: tuple[Any, ...], fill: Any) -> tuple[Any, Any, Any]:
    """One, two or three axes as three."""
    if len(values) == 3:
        return values
    return (values[0], fill, values[1] if len(values) == 2 else fill)


@attrs.frozen
class Batch:
    """The sizes apart from the spatial ones. `depth`: channels of x that one output sums over."""

    images: int
    groups: int
    group_channels: int
    group_outputs: int
    word_bytes: int
    lanes: int
    cores: int


@attrs.frozen(eq=False)
class Plan:
    """All that is known before the arrays are.

    fields: of the job, addresses apart. panels: for each class, its taps and where its weights
    begin. depths: (offset of the merged taps, channel) of each k. run: taps merged into k, or 0.
    """

    fields: dict[str, int]
    classes: NDArray[np.int64]
    panels: tuple[tuple[tuple[int, ...], int], ...]
    merged: int
    weight_words: int
    tables: tuple[NDArray[np.int64], ...]


@functools.lru_cache(256)
def plan(batch: Batch, axes: tuple[Axis, Axis, Axis], kernel: tuple[int, int, int]) -> Plan:
    """The plan of all bands."""
    channels = batch.groups * batch.group_channels
    reach = [a.reach() for a in axes]
    merged = _merged(batch, axes, reach)
    run = kernel[merged] if merged >= 0 else 1
    depth = batch.group_channels * run
    if merged >= 0:
        only = attrs.evolve(axes[merged].phases[0], taps=((0, 0),))
        axes = tuple([  # type: ignore[assignment]
            attrs.evolve(a, phases=(only,)) if k == merged else a for k, a in enumerate(axes)
        ])  # fmt: skip
    lanes, word = batch.lanes, batch.word_bytes
    padded = -(-batch.group_outputs // lanes) * lanes
    band_rows, splits, split_channels = _bands(batch, axes, reach, channels, padded)
    slab_rows = axes[0].reach(band_rows)
    if merged == 0:
        slab_rows += run - 1
    crops = [_crop(a, n) for a, n in zip(axes[1:], reach[1:])]
    inside = all(to == 0 and count == n for (_, count, to), n in zip(crops, reach[1:]))
    inside = inside and axes[0].low <= 0 and reach[0] - axes[0].low <= axes[0].size
    whole = all(a.size == n == c for a, n, (_, c, _) in zip(axes[1:], reach[1:], crops))
    classes, panels, tables = [], [], []
    panel = 0
    for phases in itertools.product(*[a.phases for a in axes]):
        taps, offsets = _taps(phases, kernel, reach, channels, depth)
        rows = len(range(phases[0].start, band_rows, axes[0].step))
        pixels = _pixels(phases, axes, rows, reach, channels, batch.groups * padded)
        tables += [offsets, pixels]
        classes.append([
            phases[0].start, phases[1].count * phases[2].count, pixels.ctypes.data,
            offsets.ctypes.data, len(taps), panel,
        ])  # fmt: skip
        panels.append((taps, panel))
        panel += batch.groups * padded * depth * len(taps)
    most_taps = max([len(t) for t, _ in panels], default=1)
    table = np.array(classes, np.int64).reshape(-1, 6)
    (from1, count1, to1), (from2, count2, to2) = crops
    slab_words = slab_rows * reach[1] * reach[2] * channels
    sums_words = (band_rows * axes[1].out * axes[2].out + 16) * batch.groups * padded
    line = 64 // word
    start = (slab_words // line + 2) * line
    scratch_words = (start + sums_words) // line * line + line
    bands = -(-axes[0].out // band_rows)
    units = batch.images * bands * splits
    fields = {
        "tasks": min(units, 2 * batch.cores), "units": units, "bands": bands, "splits": splits,
        "band_rows": band_rows, "split_channels": split_channels,
        "scratch_step": scratch_words, "sums": start, "channels": channels,
        "size0": axes[0].size, "size1": axes[1].size, "size2": axes[2].size,
        "slab_rows": slab_rows, "slab1": reach[1], "slab2": reach[2], "slab_words": slab_words,
        "clear": int(not inside), "whole": int(whole),
        "slab_step": band_rows // axes[0].step * axes[0].stride, "slab_start": -axes[0].low,
        "from1": from1, "count1": count1, "to1": to1, "from2": from2, "count2": count2, "to2": to2,
        "groups": batch.groups, "group_channels": batch.group_channels, "depth": depth,
        "piece": _piece(depth, most_taps, lanes * word), "group_outputs": batch.group_outputs,
        "padded_outputs": padded, "row_pixels": axes[1].out * axes[2].out,
        "out_rows": axes[0].out, "out_pixels": prod([a.out for a in axes]),
        "classes": table.ctypes.data, "n_classes": len(table), "row_step": axes[0].step,
        "lanes": lanes,
    }  # fmt: skip
    return Plan(fields, table, tuple(panels), merged, panel, tuple(tables))


def _merged(batch: Batch, axes: tuple[Axis, Axis, Axis], reach: list[int]) -> int:
    """The axis whose taps and the few channels are one run of words in the slab, or -1."""
    if batch.groups > 1 or batch.group_channels > 16:
        return -1
    for k in (2, 1, 0):
        phases = axes[k].phases
        taps = phases[0].taps
        if len(phases) == 1 and len(taps) > 1:
            dense = taps == tuple([(i, i) for i in range(len(taps))])
            return k if dense else -1
        if reach[k] > 1:
            return -1
    return -1


def _bands(
    batch: Batch, axes: tuple[Axis, ...], reach: list[int], channels: int, padded: int
) -> tuple[int, int, int]:
    """Rows of a band, the number of splits of the outputs, and the outputs of a split."""
    step, word = axes[0].step, batch.word_bytes
    per_row = axes[1].out * axes[2].out * batch.groups * padded * word
    plane = reach[1] * reach[2] * channels * word
    rows = min(
        _SUMS_BYTES // max(1, per_row), _SLAB_BYTES * axes[0].step // max(1, plane * axes[0].stride)
    )
    wanted = 4 * batch.cores  # units, for threads to share
    rows = min(rows, -(-axes[0].out * batch.images // wanted))
    rows = max(rows, -(-6 // (axes[1].out * axes[2].out)), 1)
    bands = max(1, axes[0].out // rows)
    rows = -(-axes[0].out // bands)
    rows = -(-rows // step) * step
    bands = -(-axes[0].out // rows)
    pair = 2 * batch.lanes
    splits = max(1, min(wanted // (2 * batch.images * bands), padded // (2 * pair)))
    split = -(-padded // (splits * pair)) * pair
    return rows, -(-padded // split), split


def _crop(a: Axis, reach: int) -> tuple[int, int, int]:
    """(first, count, place in the slab) of what is copied along an axis."""
    first, to = max(0, -a.low), max(0, a.low)
    return first, max(0, min(a.size - first, reach - to)), to


def _piece(depth: int, n_taps: int, vector_bytes: int) -> int:
    """Channels of one pass, so that a panel's part of the weights stays in the cache."""
    most = max(16, _PANEL_BYTES // (2 * vector_bytes * max(1, n_taps)))
    pieces = -(-depth // most)
    return max(1, -(-depth // (4 * pieces)) * 4)


def _taps(
    phases: tuple[Phase, ...], kernel: tuple[int, ...], reach: list[int], channels: int, depth: int
) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """The taps of a class, and the table of their offsets."""
    taps: list[int] = []
    offsets: list[tuple[int, int]] = []
    for (k0, o0), (k1, o1), (k2, o2) in itertools.product(*[p.taps for p in phases]):
        offsets.append((((o0 * reach[1] + o1) * reach[2] + o2) * channels, len(taps) * depth))
        taps.append((k0 * kernel[1] + k1) * kernel[2] + k2)
    return tuple(taps), np.array(offsets, np.int64).reshape(-1, 2)


def _pixels(
    phases: tuple[Phase, ...], axes: tuple[Axis, ...], rows: int, reach: list[int], channels: int,
    row_words: int,
) -> NDArray[np.int64]:  # fmt: skip
    """(offset in the slab, offset in the sums) of each pixel of a class in a band."""
    i0 = np.arange(rows)[:, None, None]
    i1 = np.arange(phases[1].count)[:, None]
    i2 = np.arange(phases[2].count)
    s0, s1, s2 = [a.stride for a in axes]
    read = ((i0 * s0 * reach[1] + i1 * s1) * reach[2] + i2 * s2) * channels
    p0, p1, p2 = [p.start + i * a.step for p, i, a in zip(phases, (i0, i1, i2), axes)]
    write = ((p0 * axes[1].out + p1) * axes[2].out + p2) * row_words
    return np.stack([np.broadcast_to(v, read.shape).ravel() for v in (read, write)], axis=1).copy()
