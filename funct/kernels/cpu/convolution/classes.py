"""Classes of the pixels of a band: those that take the same taps.

A convolution has one class, and its adjoint in x one for each residue of the pixels by the stride.
Where zeros around are a good part of what they read, pixels at borders are classes of their own,
whose taps are those inside. Bands that lie alike in the image share their classes.

Where these would be many, as of large windows on small images, and channels are many, each tap has
a class instead: the pixels for which it reads the image, to whose sums its products are added.
"""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from funct.kernels.cpu.convolution.axes import Axes, Axis, Phase
from funct.kernels.cpu.record import address

__all__ = ["Class", "Classes", "Pixels", "by_taps", "classes_of", "places_of"]

_MOST = 125  # classes at borders of a band,
_WORTH = 0.96  # if they leave no more than this of the work,
_WORTH_ALONG = 0.93  # of walks of several taps, which few pixels repay less,
_IN_PLACE = 1.05  # or where nothing outside of the image is read, and so nothing is copied
_LOST = 3  # pixels, about half of a tile, that a class costs in vain
_ADDED = 3  # products that it takes to add to a sum that is there
_WORTH_TAPS = 0.96  # see `by_taps`

Ints = NDArray[np.int64]


class Class(Struct, frozen=True, eq=False):
    """Pixels of a band, from row `first` on, so many of each row. places: (offset in the slab,
    offset in the sums) of each. offsets: of their taps, in the slab and in a panel. adds: whether
    to sums that are there.
    """

    first: int
    per_row: int
    places: Ints
    offsets: Ints
    adds: bool = False

    def count(self, rows: int, step: int) -> int:
        """How many are in so many rows."""
        return len(range(self.first, rows, step)) * self.per_row


class Pixels(Struct, frozen=True, eq=False):
    """Those of a band that take the same taps. places, offsets: as of a class of all of them.
    along: the axis whose taps are one walk, zeros and all, or -1.
    """

    phases: tuple[Phase, ...]
    places: Ints
    offsets: Ints
    along: int

    def inside(self, axes: Axes, rows: int, start: int) -> list[NDArray[np.bool_]]:
        """See `_all_inside`; all zeros around are read along the axis of walks."""
        found = _all_inside(self.phases, axes, rows, start)
        if self.along >= 0:
            found[self.along] = np.ones((len(found[self.along]), 1), bool)
        return found

    def classes(
        self, inside: list[NDArray[np.bool_]] | None, rows: int, images: int, *, in_place: bool
    ) -> list[Class] | None:
        """Their classes. inside: as above, or None where zeros around are read. rows: of the band.
        images: that share the tiles. in_place: whether none may read outside of the image; None
        where that costs too much.
        """
        first, second, third = self.phases
        all_rows = Class(first.start, second.count * third.count, self.places, self.offsets)
        if inside is None or not self.offsets.size:
            return [all_rows]
        if not in_place:
            inside, _ = _told_apart(inside, images)
        kinds = [np.unique(a, axis=0, return_inverse=True) for a in inside]
        if prod([len(taps) for taps, _ in kinds]) > _MOST:
            return None
        shape, taps_shape = ([a.shape[k] for a in inside] for k in (0, 1))
        at = np.arange(prod(shape)).reshape(shape)
        found, work = [], 0
        for kind in itertools.product(*[range(len(taps)) for taps, _ in kinds]):
            pixels = at[np.ix_(*[of.ravel() == k for (_, of), k in zip(kinds, kind)])].ravel()
            on = [taps[k] for (taps, _), k in zip(kinds, kind)]
            both = np.ones(taps_shape, bool) & on[0][:, None, None] & on[1][:, None] & on[2]
            read = self.offsets[both.ravel()].copy()
            work += (len(pixels) * images + _LOST) * len(read)
            # all of them are one row, the last one
            found.append(Class(rows - 1, len(pixels), self.places[pixels], read))
        found.sort(key=lambda c: -c.per_row)
        plain = at.size * images * len(self.offsets)
        if len(found) == 1 and all(map(np.all, inside)):
            return [all_rows]
        if in_place:
            return found if work < _IN_PLACE * plain else None
        worth = _WORTH if self.along < 0 else _WORTH_ALONG
        return found if work < worth * plain and len(found) > 1 else [all_rows]

    def of_taps(self, inside: list[NDArray[np.bool_]], rows: int) -> list[Class]:
        """A class for each tap that adds to sums, which a first one without taps sets to 0."""
        shape, taps_shape = ([a.shape[k] for a in inside] for k in (0, 1))
        at = np.arange(prod(shape)).reshape(shape)
        found = [Class(rows - 1, at.size, self.places[at.ravel()], self.offsets[:0])]
        for k, taps in enumerate(itertools.product(*map(range, taps_shape))):
            pixels = at[np.ix_(*[a[:, t] for a, t in zip(inside, taps)])].ravel()
            if pixels.size:
                read = self.offsets[k : k + 1].copy()
                found.append(Class(rows - 1, pixels.size, self.places[pixels], read, adds=True))
        return found


class Classes(Struct, frozen=True, eq=False):
    """table: as `bands.CLASS` says, of all bands. sets: for each band, its first class and how many
    it has. evens: of each class, how many pixels after each other lie evenly, how far apart, and
    how many pixels of it a unit has. tables: what the table points to.
    """

    table: Ints
    sets: Ints
    evens: tuple[tuple[int, int, frozenset[int]], ...]
    tables: tuple[Ints, ...]


def classes_of(
    kinds: list[Pixels], axes: Axes, band_rows: int, band_step: int, units: tuple[int, int],
    apart: tuple[int, int], *, skips: bool, in_place: bool, of_taps: bool = False,
) -> Classes | None:  # fmt: skip
    """The classes of all bands. None where images cannot be read in place.

    band_step: rows of the slab from one band to the next. units: images of a unit, and of the last
    one; apart: how far in the slab and in the sums. skips: whether zeros around are left out.
    of_taps: whether each tap has its own.
    """
    table: list[list[int]] = []
    tables: list[Ints] = []
    evens: list[tuple[int, int, frozenset[int]]] = []

    def of_band(inside: list[list[NDArray[np.bool_]]], rows: int) -> tuple[int, int] | None:
        first = len(table)
        for pixels, seen in zip(kinds, inside, strict=True):
            given = seen if skips else None
            if of_taps:
                parts: list[Class] | None = pixels.of_taps(seen, rows)
            else:
                parts = pixels.classes(given, rows, units[0], in_place=in_place)
            if parts is None:
                return None
            for c in parts:
                places = np.concatenate([c.places + i * np.array(apart) for i in range(units[0])])
                tables.extend([c.offsets, places])
                some = frozenset([c.count(rows, axes[0].step) * n for n in units])
                evens.append((*_even(places[:, 0]), some))
                here = address(places), address(c.offsets)
                table.append([c.first, c.per_row, *here, len(c.offsets), int(c.adds)])
        return first, len(table) - first

    known: dict[tuple[object, ...], tuple[int, int]] = {}
    sets = []
    for band, start in enumerate(range(0, axes[0].out, band_rows)):
        rows = min(band_rows, axes[0].out - start)
        inside = [p.inside(axes, rows, band * band_step) for p in kinds]
        alike = (rows, *([of[0].tobytes() for of in inside] if skips else ()))
        found = known.get(alike) or of_band(inside, rows)
        if found is None:
            return None
        known[alike] = found
        sets.append(found)
    words, of_bands = np.array(table, np.int64), np.array(sets, np.int64)
    return Classes(words, of_bands, tuple(evens), tuple(tables))


def _even(at: Ints) -> tuple[int, int]:
    """How many of these places follow each other evenly, the same number again and again, and how
    far apart; (1, 0) where they do not.
    """
    steps = np.diff(at)
    if not len(steps) or steps[0] <= 0:
        return 1, 0
    ends = np.flatnonzero(steps != steps[0]) + 1
    runs = np.diff([0, *ends, len(at)])
    return (int(runs[0]), int(steps[0])) if np.all(runs == runs[0]) else (1, 0)


def places_of(
    phases: tuple[Phase, ...], axes: Axes, band_rows: int, reach: list[int], pitch: int,
    row_words: int,
) -> Ints:  # fmt: skip
    """(offset in the slab, offset in the sums) of the pixels of these phases in a band.

    reach: of the slab. row_words: of a pixel's sums.
    """
    i0 = np.arange(len(range(phases[0].start, band_rows, axes[0].step)))[:, None, None]
    i1 = np.arange(phases[1].count)[:, None]
    i2 = np.arange(phases[2].count)
    s0, s1, s2 = [a.stride for a in axes]
    read = ((i0 * s0 * reach[1] + i1 * s1) * reach[2] + i2 * s2) * pitch
    p0, p1, p2 = [p.start + i * a.step for p, i, a in zip(phases, (i0, i1, i2), axes)]
    write = ((p0 * axes[1].out + p1) * axes[2].out + p2) * row_words
    both = [np.broadcast_to(v, read.shape).ravel() for v in (read, write)]
    return np.stack(both, axis=1).copy()


def by_taps(axes: Axes, bands: tuple[int, int], images: int, depth: int) -> bool:
    """Whether classes of single taps are less work than those of pixels. bands: rows of one, and
    from one to the next in the slab. images: that share the tiles. depth: products of a tap.
    """
    of_pixels, of_taps = 0.0, 0.0
    (most, step), out = bands, axes[0].out
    for band, first in enumerate(range(0, out, most)):
        rows = min(most, out - first)
        for phases in itertools.product(*[a.phases for a in axes]):
            inside = _all_inside(phases, axes, rows, band * step)
            if not all(a.size for a in inside):
                continue
            of_pixels += _told_apart(inside, images)[1]
            products, taps = [prod(n) for n in zip(*[(int(a.sum()), a.shape[1]) for a in inside])]
            of_taps += images * products * (1 + _ADDED / depth) + _LOST * taps
    return of_taps < _WORTH_TAPS * of_pixels


def _all_inside(
    phases: tuple[Phase, ...], axes: Axes, rows: int, start: int
) -> list[NDArray[np.bool_]]:
    """For each axis whether what a tap of a pixel reads is no zero around: (pixels, taps).

    rows: of the band, which begins at row `start` of the slab of the whole image.
    """
    first = phases[0]
    counts = len(range(first.start, rows, axes[0].step)), *[p.count for p in phases[1:]]
    given = zip(phases, axes, counts, (start, 0, 0), strict=True)
    return [_inside(*g) for g in given]


def _told_apart(
    inside: list[NDArray[np.bool_]], images: int
) -> tuple[list[NDArray[np.bool_]], float]:
    """The same, or with all taps of some axes, zeros and all, where that leaves less work: classes
    are so many as the kinds of pixels along all axes, multiplied. And the work: taps of all pixels,
    and what classes cost in vain. images: that share the tiles.
    """

    def ways(a: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], tuple[int, int, int]]]:
        """With what counts: kinds, their taps, and the taps of all pixels."""
        whole = np.ones_like(a), (1, a.shape[1], a.size)
        taps = np.unique(a, axis=0)
        return [whole, *[(a, (len(taps), int(taps.sum()), int(a.sum())))] * (not a.all())]

    def work(way: tuple[tuple[NDArray[np.bool_], tuple[int, int, int]], ...]) -> float:
        kinds, taps, products = [prod(n) for n in zip(*[counts for _, counts in way])]
        return images * products + _LOST * taps if kinds <= _MOST else np.inf

    best = min(itertools.product(*map(ways, inside)), key=work)
    return [a for a, _ in best], work(best)


def _inside(phase: Phase, a: Axis, count: int, start: int) -> NDArray[np.bool_]:
    reads = np.add.outer(np.arange(count) * a.stride, [o for _, o in phase.taps]) + start - a.low
    return np.asarray((reads >= 0) & (reads < a.size))
