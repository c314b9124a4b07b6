"""Plans of convolutions: which words of x meet which weights for which pixels of the result.

A plan is a pure function of shapes and parameters; it holds tables and no room for results.

Note [Pitch of many channels]
    A tile walks a piece of the channels of its pixels, and of those under the next taps. Where
    pixels lie a large power of two apart, the same piece of all of them falls into few sets of the
    first-level cache; one line more between them spreads it over all. So do the sums of pixels,
    which are turned around.

Note [Narrow groups]
    Where channels are last, what a group of few channels has of a pixel is a line of the cache or
    two, far from those of the next pixel: they fall into few sets, and zeros beside short lines
    would be classes of few pixels. So such groups have slabs of their own, in which pixels lie side
    by side and a run of taps is one walk.
"""

from __future__ import annotations

import functools
import itertools
from math import prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from funct.kernels.cpu.convolution.axes import Axes, Batch, Phase, merged, slab_fields
from funct.kernels.cpu.convolution.classes import Classes, Pixels, by_taps, classes_of, places_of
from funct.kernels.cpu.record import address

__all__ = ["Plan", "plan"]

_SLAB_BYTES = 192 << 10  # what a band copies and
_SUMS_BYTES = 128 << 10  # what it sums up stay in the second-level cache
_WEIGHTS_BYTES = 1 << 20  # more than these each band reads from afar,
_FEW_PRODUCTS = 1 << 20  # are no work for threads, and bands read rows twice
_FEW_PIXELS = 24  # of a band; of fewer tiles are low, and all weights are read for them
_MANY_ROWS = 64  # so there are few bands, and outputs are split among threads
_SHARE = 4  # images for each core: outputs are split rather than these
_PANEL_BYTES = 192 << 10  # as do the weights of one tile
_SETS_BYTES = 1 << 10  # see Note [Pitch of many channels]
_LINE_BYTES = 64
_AFAR_BYTES = 1 << 20
_NARROW_BYTES = 128  # see Note [Narrow groups]


class Plan(Struct, frozen=True, eq=False):
    """All that is known before the arrays are.

    fields: of the job, addresses apart. taps: of a panel, class by class. merged: the axis whose
    taps are merged into k, or -1. once: whether panels are used by one unit alone.
    """

    fields: dict[str, int]
    classes: Classes
    taps: tuple[int, ...]
    merged: int
    weight_words: int
    once: bool


@functools.lru_cache(256)
def plan(batch: Batch, axes: Axes, kernel: tuple[int, int, int]) -> Plan:
    """The plan of all bands. Those whose channels are last are read in place, if that pays; but
    see Note [Narrow groups].
    """
    narrow = batch.group_channels * batch.word_bytes <= _NARROW_BYTES
    if not batch.last or (batch.groups > 1 and prod(kernel) > 1 and narrow):
        batch = batch.in_blocks()
    in_place = None
    if batch.last and batch.blocks == 1:
        in_place = _plan(batch, axes, kernel, in_place=True)
    made = in_place or _plan(batch, axes, kernel, in_place=False)
    assert made is not None, "a slab serves all"
    return made


def _plan(batch: Batch, axes: Axes, kernel: tuple[int, int, int], *, in_place: bool) -> Plan | None:
    """in_place: whether there is no slab, and all offsets are those in an image."""
    all_groups = batch.groups * batch.blocks
    reach = [a.size if in_place else a.reach() for a in axes]
    along = merged(batch, axes, reach)
    depth = batch.group_channels * (kernel[along] if along >= 0 else 1)
    word, lanes = batch.word_bytes, batch.lanes
    channels = batch.groups * batch.group_channels
    padded = -(-batch.group_outputs // lanes) * lanes
    line = _LINE_BYTES // word
    few_sets = channels * word % _SETS_BYTES == 0
    pitch = channels + line * (few_sets and not in_place)
    walked = [
        [replace(p, taps=((0, 0),)) for p in a.phases] if k == along else a.phases
        for k, a in enumerate(axes)
    ]
    n_taps = prod([sum([len(p.taps) for p in a]) for a in walked])
    piece = _piece(depth, n_taps, lanes * word)
    lows = [0, 0, 0]
    if in_place:
        if not batch.skips or (along >= 0 and not all(a.within for a in axes)):
            return None
        if few_sets and (batch.groups > 1 or piece < depth):
            return None
        lows = [a.low for a in axes]
    # sums of one block of outputs at a time leave the first-level cache only for the result
    spread = batch.last or piece < depth
    row_words = batch.groups * padded if spread else min(padded, 2 * lanes)
    band_rows, together, splits, split_channels, once = _bands(
        batch, axes, reach, pitch, (padded, row_words), piece / depth
    )
    slab = slab_fields(batch, axes, band_rows, pitch)
    of_taps = along < 0 and batch.skips and not once
    of_taps = of_taps and by_taps(axes, (band_rows, slab["slab_step"]), together, depth)
    if of_taps:
        piece = _piece(depth, 1, lanes * word)
    outputs = all_groups * batch.group_outputs
    direct = batch.last and all_groups * padded == outputs
    if direct:  # sums are written to their places in the result
        row_words = outputs
    place = (slab["slab_words"] // line + 2) * line
    if in_place:
        place = prod(reach) * channels
    taps: list[int] = []
    kinds: list[Pixels] = []
    pieces = -(-depth // piece)
    # the last piece may have fewer channels, but its taps lie as far apart
    panel_rows = (pieces * n_taps - 1) * piece + depth - (pieces - 1) * piece
    if not batch.last and row_words * word % _SETS_BYTES == 0:
        row_words += line
    for phases in itertools.product(*walked):
        own, offsets = _taps(phases, kernel, reach, lows, pitch, (len(taps), piece))
        places = places_of(phases, axes, band_rows, reach, pitch, row_words)
        kinds.append(Pixels(phases, places, offsets, along))
        taps += own
    several = -(-batch.images // together)
    of_units = together, batch.images - (several - 1) * together
    apart = place, prod([a.out for a in axes]) * row_words
    classes = classes_of(
        kinds, axes, band_rows, slab["slab_step"], of_units, apart, skips=batch.skips,
        in_place=in_place, of_taps=of_taps,
    )  # fmt: skip
    if classes is None:
        return None
    sums = 0 if in_place else together * place
    band_pixels = band_rows * axes[1].out * axes[2].out
    sums_words = 0 if direct else (together * band_pixels + 16) * row_words
    panel = -(-(sums + sums_words) // line) * line
    panel_words = min(panel_rows, n_taps * piece) * 2 * lanes if once else 0
    units = several * batch.blocks * slab["bands"] * splits
    fields = {
        **slab, "images": batch.images, "unit_images": together, "slab_place": place,
        "in_place": int(in_place), "splits": splits, "units": units,
        "tasks": min(units, 2 * batch.cores),
        "split_channels": split_channels, "pack": 0, "panel": panel,
        "panel_rows": panel_rows, "panel_taps": n_taps, "scratch_step": panel + panel_words,
        "sums": sums, "sums_pitch": row_words, "sums_spread": int(spread),
        "group_blocks": batch.blocks, "groups": batch.groups,
        "group_channels": batch.group_channels, "depth": depth, "piece": piece,
        "group_outputs": batch.group_outputs, "padded_outputs": padded,
        "row_pixels": axes[1].out * axes[2].out, "out_rows": axes[0].out,
        "ahead": int(in_place and prod(kernel) == 1 and _afar(batch, axes)),
        "out_pixels": prod([a.out for a in axes]), "classes": address(classes.table),
        "sets": address(classes.sets), "row_step": axes[0].step, "lanes": lanes,
    }  # fmt: skip
    return Plan(fields, classes, tuple(taps), along, all_groups * padded * panel_rows, once)


def _afar(batch: Batch, axes: Axes) -> bool:
    """Whether images that are read where they lie, once, come from beyond the caches of a core."""
    channels = batch.groups * batch.group_channels
    pixels = batch.images * prod([a.size for a in axes])
    return batch.groups == 1 and pixels * channels * batch.word_bytes >= _AFAR_BYTES


def _bands(
    batch: Batch, axes: Axes, reach: list[int], pitch: int, outputs: tuple[int, int], walked: float
) -> tuple[int, int, int, int, bool]:
    """Rows of a band, images of a unit, the number of splits of the outputs, the outputs of a
    split, and whether one unit alone uses its panels.

    outputs: of a group, padded, and those whose sums are kept of a pixel. walked: part of the slab
    that is in use at a time, since channels are taken in pieces.
    """
    step, word, (padded, kept) = axes[0].step, batch.word_bytes, outputs
    per_row = axes[1].out * axes[2].out * kept * word
    plane = reach[1] * reach[2] * pitch * word
    taps = prod([sum([len(p.taps) for p in a.phases]) for a in axes])
    pixels = batch.images * prod([a.out for a in axes]) // prod([a.step for a in axes])
    products = pixels * taps * batch.group_channels * padded * batch.groups * batch.blocks
    wanted = 4 * batch.cores if products > _FEW_PRODUCTS else 1  # units, for threads to share
    fitting = _SLAB_BYTES * step // max(1, plane * axes[0].stride)
    channels = batch.groups * batch.group_channels
    weights = padded * channels * prod([len(p.taps) for a in axes for p in a.phases]) * word
    afar = weights > _WEIGHTS_BYTES
    if afar:
        rows = min(fitting, 4 * _SUMS_BYTES // max(1, per_row), _MANY_ROWS)
    else:
        units = batch.images * batch.blocks
        rows = min(fitting, _SUMS_BYTES // max(1, per_row), -(-axes[0].out * units // wanted))
    rows = max(rows, -(-_FEW_PIXELS // (axes[1].out * axes[2].out)), 1)
    bands = max(1, axes[0].out // rows)
    rows = -(-axes[0].out // bands)
    rows = min(-(-rows // step) * step, axes[0].out)
    bands = -(-axes[0].out // rows)
    together = 1
    if bands == 1:
        times = 4 if afar else 2
        fitting = min(
            times * _SLAB_BYTES // (plane * reach[0]), 2 * times * _SUMS_BYTES // (per_row * rows)
        )
        units = batch.images * batch.blocks
        most = min(fitting, units // (batch.cores if afar else wanted))
        if afar and batch.images >= _SHARE * batch.cores:
            all_fit = plane * reach[0] * batch.images * walked <= 2 * _SLAB_BYTES
            most = batch.images if all_fit else most
        together = -(-batch.images // -(-batch.images // max(1, most)))
    once = afar and bands == 1 and together == batch.images
    units = -(-batch.images // together) * batch.blocks * bands
    pair = 2 * batch.lanes
    most_splits = batch.cores if once else wanted // (2 * units)  # each fills a slab of its own
    splits = max(1, min(most_splits, padded // (2 * pair)))
    split = -(-padded // (splits * pair)) * pair
    return rows, together, -(-padded // split), split, once


def _piece(depth: int, n_taps: int, vector_bytes: int) -> int:
    """Channels of one pass, so that a panel's part of the weights stays in the cache."""
    most = max(16, _PANEL_BYTES // (2 * vector_bytes * max(1, n_taps)))
    pieces = -(-depth // most)
    return max(1, -(-depth // (4 * pieces)) * 4)


def _taps(
    phases: tuple[Phase, ...], kernel: tuple[int, ...], reach: list[int], lows: list[int],
    pitch: int, panel: tuple[int, int],
) -> tuple[list[int], NDArray[np.int64]]:  # fmt: skip
    """The taps of a class, and the table of their offsets. lows: of the slab in the image. panel:
    taps before them in it, and its rows from one tap to the next.
    """
    taps: list[int] = []
    offsets: list[tuple[int, int]] = []
    for (k0, o0), (k1, o1), (k2, o2) in itertools.product(*[p.taps for p in phases]):
        at = ((o0 - lows[0]) * reach[1] + o1 - lows[1]) * reach[2] + o2 - lows[2]
        offsets.append((at * pitch, (panel[0] + len(taps)) * panel[1]))
        taps.append((k0 * kernel[1] + k1) * kernel[2] + k2)
    return taps, np.array(offsets, np.int64).reshape(-1, 2)
