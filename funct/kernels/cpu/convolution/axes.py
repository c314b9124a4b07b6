"""The spatial axes of a convolution, and the slab that its bands read.

Images have three spatial axes here; of one axis or two, the second and the third are filled up:
(T, 1, 1), (H, 1, W).

Each axis has phases: pixels `start + step i` of the result, i < count, read the slab at
`stride i + offset` for each tap. A convolution has one phase per axis; its adjoint in x has one for
each residue of the pixels by the stride, with the taps that reach it, and reads densely.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

__all__ = [
    "Axes",
    "Axis",
    "Batch",
    "Folded",
    "Phase",
    "adjoint_axis",
    "axis",
    "countless",
    "filled",
    "folded",
    "merged",
    "slab_fields",
    "three",
]

_PHASES = 256  # of an adjoint, in all axes, for which plans are made
_FOLDED_TAPS = 12  # their sums, of gradients of weights, are in registers

Taps = tuple[tuple[int, int], ...]  # (tap, offset in the slab)


class Phase(Struct, frozen=True):
    """Pixels that take the same taps. taps: (number of the tap, offset in the slab)."""

    start: int
    count: int
    taps: Taps


class Axis(Struct, frozen=True):
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

    @property
    def within(self) -> bool:
        """Whether nothing is read outside of the image."""
        read = [o + i * self.stride - self.low for p in self.phases if p.count for _, o in p.taps
                for i in (0, p.count - 1)]  # fmt: skip
        return not read or 0 <= min(read) <= max(read) < self.size

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


def countless(size: Sizes, slide: Sliding, most: int = _PHASES) -> bool:
    """Whether the adjoint to images of that size has more phases than are planned one by one."""
    return prod([min(s, n) for s, n in zip(slide.stride, size, strict=True)]) > most


def filled(
    size: Sizes, out: Sizes, kernel: Sizes, slide: Sliding, adjoint: bool
) -> tuple[list[Axis], tuple[int, int, int]]:
    """Three axes of a convolution, or of its adjoint, the last ones in use, and the kernel's."""
    lows = tuple([low for low, _ in slide.padding])
    walk = adjoint_axis if adjoint else axis
    windows = size if adjoint else out
    stride = tuple([s if n > 1 else 1 for s, n in zip(slide.stride, windows)])  # of one: no stride
    values = (size, out, kernel, stride, lows, slide.dilation)
    given = [(n,) * (3 - len(v)) + tuple(v) for v, n in zip(values, (1, 1, 1, 1, 0, 1))]
    k0, k1, k2 = given[2]
    return [walk(*a) for a in zip(*given)], (k0, k1, k2)


class Folded(Struct, frozen=True, eq=False):
    """Images as one line, row after row: see `folded`. shift: of columns, by offset."""

    axes: list[Axis]
    kernel: tuple[int, int, int]
    width: int
    shift: dict[int, int]

    def inside(self, pixels: NDArray[np.intp], offsets: list[int]) -> NDArray[np.bool_]:
        """Whether offsets, (n, 1), of pixels, (..., 1, lanes), are in the columns of the image."""
        shifts = np.array([self.shift[o] for o in offsets], np.intp)[:, None]
        column = pixels % self.width + shifts
        return np.asarray((column >= 0) & (column < self.width))


def folded(axes: list[Axis], kernel: tuple[int, int, int], lanes: int) -> Folded | None:
    """The same with the last two axes as one, whose taps are those of both: for images whose short
    lines leave many lanes of vectors empty. None where they do not, or lines change their length.
    """
    first, second, third = axes
    dense = second.step == second.stride == third.step == third.stride == 1
    if not dense or third.size != third.out or second.out == 1:
        return None
    if 4 * -(-second.out * third.out // lanes) > 3 * second.out * -(-third.out // lanes):
        return None
    width, along = third.size, third.phases[0].taps
    down = second.phases[0].taps
    taps = tuple([(k * kernel[2] + n, o * width + p) for k, o in down for n, p in along])
    shift = {o * width + p: p - third.low for _, o in down for _, p in along}
    if not 1 < len(taps) == len(shift) <= _FOLDED_TAPS:
        return None
    pixels = second.out * width
    low = second.low * width + third.low
    line = Axis(second.size * width, pixels, low, 1, 1, (Phase(0, pixels, taps),))
    return Folded([first, axis(1, 1, 1, 1, 0, 1), line], (kernel[0], 1, len(taps)), width, shift)


def three(values: tuple[Any, ...], fill: Any) -> tuple[Any, Any, Any]:
    """One, two or three axes as three."""
    if len(values) == 3:
        return values
    return (values[0], fill, values[1] if len(values) == 2 else fill)


class Batch(Struct, frozen=True):
    """The sizes apart from the spatial ones. skips: whether what stands around images is 0, which
    need not be multiplied by. last: whether channels are last in memory. blocks: of so many groups
    each, which have slabs of their own.
    """

    images: int
    groups: int
    group_channels: int
    group_outputs: int
    word_bytes: int
    lanes: int
    cores: int
    skips: bool = False
    last: bool = False
    blocks: int = 1

    def in_blocks(self) -> Batch:
        """The same with one group in a slab: a pixel of all channels is long, so that a slab of
        them has few lines of the image.
        """
        return replace(self, groups=1, blocks=self.groups)


Axes = tuple[Axis, Axis, Axis]


def merged(batch: Batch, axes: Axes, reach: list[int]) -> int:
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


def slab_fields(batch: Batch, axes: Axes, band_rows: int, pitch: int) -> dict[str, int]:
    """The job's fields on the slab. pitch: words from one of its pixels to the next."""
    reach = [a.reach() for a in axes]
    slab_rows = axes[0].reach(band_rows)
    crops = [_crop(a, n) for a, n in zip(axes[1:], reach[1:])]
    inside = all(to == 0 and count == n for (_, count, to), n in zip(crops, reach[1:]))
    inside = inside and axes[0].low <= 0 and reach[0] - axes[0].low <= axes[0].size
    whole = all(a.size == n == c for a, n, (_, c, _) in zip(axes[1:], reach[1:], crops))
    (from1, count1, to1), (from2, count2, to2) = crops
    channels = batch.groups * batch.group_channels
    return {
        "bands": -(-axes[0].out // band_rows), "band_rows": band_rows, "channels": channels,
        "pitch": pitch, "x_pitch": batch.blocks * channels,
        "size0": axes[0].size, "size1": axes[1].size, "size2": axes[2].size,
        "slab_rows": slab_rows, "slab1": reach[1], "slab2": reach[2],
        "slab_words": slab_rows * reach[1] * reach[2] * pitch,
        "clear": int(not inside), "around": 0, "whole": int(whole),
        "slab_step": band_rows // axes[0].step * axes[0].stride, "slab_start": -axes[0].low,
        "from1": from1, "count1": count1, "to1": to1, "from2": from2, "count2": count2, "to2": to2,
    }  # fmt: skip


def _crop(a: Axis, reach: int) -> tuple[int, int, int]:
    """(first, count, place in the slab) of what is copied along an axis."""
    first, to = max(0, -a.low), max(0, a.low)
    return first, max(0, min(a.size - first, reach - to)), to
