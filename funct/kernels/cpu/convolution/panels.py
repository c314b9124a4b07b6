"""Weights laid out for tiles (panels), and images convolved with them.

Panels depend on the weights alone and serve any number of calls. Arrays are taken in words
(`dense/dots.py`) and must be contiguous.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import host
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution import bands
from funct.kernels.cpu.convolution.axes import Axes, Batch
from funct.kernels.cpu.convolution.geometry import plan
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.tile import even_table, most_rows, tile_table
from funct.kernels.cpu.quantized.narrowing import TO_CODES
from funct.kernels.cpu.record import address
from funct.kernels.cpu.runners import filling
from funct.kernels.llvm import typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["Convolver", "batch_of"]

_MISSING = tuple(
    [bands.JOB.place(name) for name in ("x", "weights", "y", "scratch", "around", "pack")]
)
_PACK_MISSING = tuple([bands.PACK.place(name) for name in ("source", "to")])


def batch_of(
    images: int, groups: int, channels: int, outputs: int, dot: str, *, last: bool = False
) -> Batch:  # fmt: skip
    """The batch for this machine; channels and outputs are those of a group, in words."""
    word = typed(DOTS[dot].word).bytes
    width = supported(DOTS[dot], host())
    skips = dot in ("f32", "f64")  # of others codes, whose 0 may be any byte
    return Batch(images, groups, channels, outputs, word, width // word, host().cores, skips, last)


_EVEN = 12  # pixels of a line that share a pointer; tiles of fewer have more rows without it


class Convolver:
    """What is prepared for shapes and parameters, whatever the arrays will be.

    steps: words of w from one output to the next, and from one channel to the next; its taps are
    adjacent. once: whether each panel has one use, so that `run` had better make it. job: of
    `convolve`, pack: of `pack`, all but the addresses of arrays.
    """

    def __init__(
        self, dot: str, batch: Batch, axes: Axes, kernel: tuple[int, int, int],
        steps: tuple[int, int],
    ) -> None:  # fmt: skip
        self._plan = made = plan(batch, axes, kernel)
        self.once, self.weight_words = made.once, made.weight_words
        self._word, self._last = batch.word_bytes, batch.last
        self._element, width = typed(DOTS[dot].word).element, supported(DOTS[dot], host())
        alone, padded = most_rows(DOTS[dot], width, 1), made.fields["padded_outputs"]
        ahead = bool(made.fields["ahead"])
        self._evens = np.zeros((len(made.classes.evens), 2), np.int64)  # see `bands.JOB`
        counts: set[int] = set()
        for k, (run, apart, some) in enumerate(made.classes.evens):
            if run < _EVEN or padded != batch.lanes or ahead:
                counts |= some
                continue
            lines = {n for count in some for n in (min(run, count), count % run)}
            tiles = even_table(dot, width, apart, lines)
            self._evens[k] = run, address(tiles)
        table = tile_table(dot, width, counts, padded, alone=alone, ahead=ahead)
        self.job = bands.JOB.fill(
            **made.fields, x=0, y=0, weights=0, scratch=0, most_rows=most_rows(DOTS[dot], width),
            most_alone=alone, tiles=address(table), evens=address(self._evens),
            most_even=most_rows(DOTS[dot], width, 1, even=True), **dict.fromkeys(TO_CODES, 0),
        )  # fmt: skip
        self.scratch_bytes = made.fields["tasks"] * made.fields["scratch_step"] * self._word
        run, run_step = 1, 0
        if made.merged >= 0:
            run, run_step = kernel[made.merged], prod(kernel[made.merged + 1 :])
        channels = np.arange(batch.group_channels) * steps[1]
        depths = np.add.outer(np.arange(run) * run_step, channels).ravel()
        lanes = 1 if steps[0] == 1 else batch.lanes
        blocks = -(-batch.group_outputs // (2 * batch.lanes))
        group_step = batch.group_outputs * batch.group_channels * prod(kernel)
        piece = made.fields["piece"]
        words = np.add.outer(np.array(made.taps, np.int64), depths)
        chunks = [
            _chunks(words[:, c : c + piece], piece, lanes, batch.lanes)
            for c in range(0, len(depths), piece)
        ]
        table, first = np.concatenate(chunks), np.cumsum([0, *map(len, chunks)])
        self._tables = table, first
        self.pack = bands.PACK.fill(
            tasks=blocks * batch.groups, source=0, to=0, blocks=blocks,
            real=batch.group_outputs, rows=made.fields["panel_rows"],
            piece_rows=len(made.taps) * piece, pieces=len(chunks), lane_step=steps[0],
            group_step=group_step, chunks=address(table), first_chunks=address(first),
        )  # fmt: skip

    def panels(self, w: NDArray[Any]) -> NDArray[Any]:
        """(group, block of outputs, piece of k, tap, k, lane)."""
        to = memory.fresh((max(1, self.weight_words),), w.dtype)
        self._packed(w, to)
        return to

    def run(
        self, x: NDArray[Any], panels: NDArray[Any], y: NDArray[Any], *, around: int = 0,
        laid: bool = True,
    ) -> None:  # fmt: skip
        """Fill y, (N, outputs, *T), from x, (N, channels, *S), or both with their channels last, as
        the batch says.

        around: the byte that the words outside of the image are made of. laid: whether `panels` are
        that, and not the weights themselves.
        """
        room = memory.scratch(self.scratch_bytes)
        self._run(x, panels, y, room, around, 0 if laid else self.pack)

    def to_codes(self, written: str, fields: dict[str, int]) -> Callable[..., None]:
        """What fills images of codes of this element from (x, panels, y, around, bias, multiplier).

        fields: the others of `TO_CODES`.
        """
        job = self.job.copy()
        bands.JOB.put(job, **fields)
        places = [*_MISSING, *[bands.JOB.place(name) for name in ("bias", "multiplier")]]
        fill = filling(bands.entry(self._element, host(), False, "convolve", written), job, places)

        def run(x: Any, panels: Any, y: Any, around: int, *of_channels: Any) -> None:
            fill(x, panels, y, memory.scratch(self.scratch_bytes), around, 0, *of_channels)

        return run

    # made at the first call: those who make jobs of this have the code elsewhere

    @functools.cached_property
    def _packed(self) -> Callable[..., None]:
        return filling(bands.entry(self._element, host(), False, "pack"), self.pack, _PACK_MISSING)

    @functools.cached_property
    def _run(self) -> Callable[..., None]:
        code = bands.entry(self._element, host(), self._last, "convolve")
        return filling(code, self.job, _MISSING)


def _chunks(offsets: NDArray[np.int64], piece: int, words: int, lanes: int) -> NDArray[np.int64]:
    """See Note [Chunks of weights]: of each, where it begins, how many words count, and to which
    row of a piece of a panel each goes, or -1.

    offsets: of the words of each tap and channel, from the first of its output. piece: rows from
    one tap to the next. words: of a chunk at most.
    """
    order = np.argsort(offsets, axis=None)
    place = offsets.ravel()[order]
    rows = np.add.outer(np.arange(len(offsets)) * piece, np.arange(offsets.shape[1])).ravel()[order]
    new = np.diff(place, prepend=-lanes) > words // 2  # words between are read in vain
    start = np.maximum.accumulate(np.where(new, place, 0))
    first, which = np.unique(place - (place - start) % words, return_inverse=True)
    table = np.full((len(first), 2 + lanes), -1, np.int64)
    table[:, 0] = first
    table[which, 2 + place - first[which]] = rows
    table[:, 1] = lanes - np.argmax(table[:, :1:-1] >= 0, axis=1)
    return table
