"""The adjoint in w of convolution with 3 × 3 taps, by squares: see `squares.py`.

Each place of the squares has a sum over all of them, outputs by channels: products of g's squares,
whose lanes are squares, with those of x, whose lanes are channels. Units are dealt out to partial
sums as in `weight_gradient.py` (Note [Partial sums]), so that threads change no bits.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import host
from funct.kernels.channels import channels_last, lie_last
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.panels import batch_of
from funct.kernels.cpu.convolution.squares import PLACES, cut, worth
from funct.kernels.cpu.convolution.winograd import Plan, served
from funct.kernels.cpu.convolution.winograd_weight_text import JOB, text
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.tile import most_rows, tile_table
from funct.kernels.cpu.record import address
from funct.kernels.table import UNFIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

__all__ = ["convolution_weight", "plan"]

_ELEMENT = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_PARTIAL_SUMS = 8
_PARTIAL_BYTES = 2 << 20  # of all, if there are more than two
_NEAR_BYTES = 8 << 20  # of one, which stays in the third-level cache
_NEAR, _AFAR = 25, 120  # squares that take as long as to write sums and add them up
_WORTH = 1.2  # tap by tap, rows above and below images are left out
_UNIT_BYTES = 768 << 10  # of a unit's squares, of x and of g
_FEWEST, _MOST = 112, 224  # squares of a unit
_FEW_OUTPUTS = 56  # of a split
_NARROW = 2  # vectors of a group: sums of all places are written as often as those of few taps
_LINE_BYTES = 64


@functools.lru_cache(512)
def plan(dot: str, x: Sizes, g: Sizes, slide: Sliding) -> Plan | None:
    """What is known of shapes, if squares are worth it."""
    groups = slide.groups
    outputs, channels = g[1] // groups, x[1] // groups
    batch = batch_of(x[0], groups, channels, outputs, dot)
    out = g[2], g[3]
    lanes, word = batch.lanes, batch.word_bytes
    afar = _AFAR if PLACES * g[1] * channels * word > _NEAR_BYTES else _NEAR
    if not worth(batch, *out, afar, 1, _NARROW, _WORTH):
        return None
    line = _LINE_BYTES // word
    most = _UNIT_BYTES // (PLACES * groups * (channels + outputs) * word)
    lows = [low for low, _ in slide.padding]
    most = max(_FEWEST, min(_MOST, most))
    padded = -(-channels // lanes) * lanes
    sum_plane = groups * outputs * padded + line  # see Note [Places apart]
    partial_words = PLACES * sum_plane
    sums = max(2, min(_PARTIAL_SUMS, _PARTIAL_BYTES // (partial_words * word)))
    squares = x[0] * -(-out[0] // 2) * -(-out[1] // 2)
    wanted = max(2, min(_PARTIAL_SUMS, 2 * sums, squares // _FEWEST))  # each writes all sums
    of = cut(batch, (x[2], x[3]), out, lows, most, wanted)
    sums = min(sums, of.units)
    splits = max(1, min(batch.cores // sums, outputs // _FEW_OUTPUTS))  # each transforms x
    split = -(-outputs // splits)
    splits = -(-outputs // split)
    g_row = -(-(of.count + lanes) // line) * line
    g_plane = groups * split * g_row + line
    of_x = of.fields["unit_images"] * of.fields["slab_place"]
    of_g = of_x + PLACES * of.fields["plane"] + 2 * line
    scratch_step = of_g + PLACES * g_plane
    flags = sums * partial_words
    own = flags + -(-groups * outputs * 8 // _LINE_BYTES) * line
    numbers = np.arange(split)
    rows = np.stack([numbers * g_row, numbers * padded], axis=1)
    tap = np.zeros(2, np.int64)
    width = supported(DOTS[dot], host())
    counts = {min(split, outputs - k * split) for k in range(splits)}
    fields = {
        **of.fields, "tasks": sums * splits, "units": of.units, "scratch_step": scratch_step,
        "partial": 0, "flags": flags, "own": own, "squares": of_x, "of_g": of_g,
        "g_row": g_row, "g_plane": g_plane, "partial_sums": sums, "partial_words": partial_words,
        "sum_plane": sum_plane, "splits": splits, "split_outputs": split, "groups": groups,
        "group_channels": channels, "group_outputs": outputs, "padded_channels": padded,
        "most_rows": most_rows(DOTS[dot], width), "rows": address(rows), "tap": address(tap),
        "tiles": address(tile_table(dot, width, counts, padded, packed=False)),
    }  # fmt: skip
    job = JOB.fill(**fields, x=0, g=0, g_last=0, w=0, scratch=0, flag=0)
    room = (own + fields["tasks"] * scratch_step) * word
    return Plan(text, dot, JOB, ("x", "g", "g_last", "w"), job, room, (rows, tap))


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_weight`."""
    if not served(size, slide) or x.dtype != g.dtype or not (x.size and g.size):
        return NotImplemented
    dot = _ELEMENT[x.dtype]
    made = plan(dot, x.shape, g.shape, slide)
    if made is None:
        return NotImplemented
    last = lie_last(x)
    x = channels_last(x) if last else np.ascontiguousarray(x)
    of_g: tuple[Any, Any]
    if lie_last(g):
        of_g = memory.fresh(g.shape, g.dtype), channels_last(g)
    else:
        of_g = np.ascontiguousarray(g), 0
    w = memory.fresh((g.shape[1], x.shape[-1 if last else 1] // slide.groups, *size), x.dtype)
    return w if made.run(last, x, *of_g, w) else UNFIT
