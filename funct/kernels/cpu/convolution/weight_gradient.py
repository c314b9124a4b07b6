"""The adjoint of convolution in w: products of g, read where it lies if its channels are not last,
with slabs of x.

An output's weights are rows of sums, its channels lanes: dw[o, t, c] = Σ g[o, pixel] x[pixel + t,
c]. k walks along a run of pixels; the "taps" of the micro-kernel are the runs of a band.

Note [Partial sums]
    Units (an image's band each) are dealt out to a number of partial sums that depends on the
    shapes alone, in a fixed order, and the partial sums are added in order: the bits do not depend
    on the number of threads.

Note [Small images]
    All sums are read and written once per unit. Where an image has few pixels and many channels
    that would be most of the work, so a unit is then several images.

Note [Sums of one unit]
    Where all pixels are few enough for one unit and one chunk, the sums of a block of channels are
    done after its taps: they are written to w from the second-level cache, and the room for them
    serves all blocks.

Note [Stacked taps]
    The taps along a row of an image and its few channels are one run of words in the slab. Where
    that run leaves lanes empty, a pixel of the slab holds the channels of all rows that an output
    reads there, so the whole kernel is one run: 27 of 32 lanes for three colours, not 9 of 16
    three times. So does a pixel that holds the columns apart that taps with a dilation read.

Note [Panels of pixels]
    The first tile lays the pixels under a tap side by side, if there are others, for a block of
    channels and a chunk of pixels: for these k walks over whole images without a break, in memory
    that stays in the first-level cache, whichever pages the slab's pixels lie on. The slab may be
    large where they are many.

Note [Pitch]
    A tile reads two vectors of each pixel. Where pixels lie a power of two apart, these fall into
    few sets of the first-level cache and drive each other out; one line more between them helps. So
    do the sums of one output, tap by tap.

Note [Rows of a tile]
    Each row of a tile is a channel of g. Where channels lie pages apart, or half a one, all rows
    fall into one or two sets of eight ways, which x needs as well: tiles are lower then. Where the
    channels of g are last, rows are words beside each other, and k walks from pixel to pixel.

Note [Zeros above and below]
    What a tap reads before the first row of an image and behind the last one, along the first axis,
    is 0: only runs of the rows between are summed (`weight_runs.py`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import Code, Host, host, printed
from funct.device.machine_code import LEAN
from funct.kernels.channels import channels_last, lie_last
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.axes import Axes, Batch, axis, merged, slab_fields, three
from funct.kernels.cpu.convolution.panels import batch_of
from funct.kernels.cpu.convolution.weight_runs import kept_runs, runs_of
from funct.kernels.cpu.convolution.weight_text import JOB, text
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.tile import most_rows, tile_table
from funct.kernels.cpu.record import address
from funct.kernels.cpu.runners import filling
from funct.kernels.table import Fitted
from funct.kernels.windows import patches
from funct.kernels.windows.pointwise import in_tiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

    _Way = Callable[..., NDArray[Any]]  # the map, of operands that lie as those it was made for

__all__ = [
    "Plan", "beside_weight", "convolution_weight", "entry", "plan", "pointwise_weight", "weights",
]  # fmt: skip

_ELEMENT = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_PARTIAL_SUMS = 8
_PARTIAL_BYTES = 32 << 20  # all partial sums
_FEW_BYTES = 2 << 20  # of all, if they are more than two
_LEAST_PIXELS = 128  # of a partial sum, which is written and read again
# more than these, or than there is of x, are not written several times: outputs are split
_SUMS_BYTES = 1 << 20
_SLAB_BYTES = 256 << 10
_SLABS_BYTES = 4 << 20  # of several images, or behind panels
_SETS_BYTES = 256
_LINE = 16  # words
_HALF_PAGE, _LINES = 2048, 7  # see Note [Rows of a tile]
_PANEL_OUTPUTS = 48  # whose tiles pay for a panel
_FEW_CHANNELS = 16  # whose taps may be stacked,
_LINE_WORDS = 1 << 16  # and so many words of a line of which no part is read at a time
_CHUNK = 256  # pixels whose channels of one tile stay in the first-level cache

_ARRAYS = ("x", "g", "w", "partial", "scratch")
_PLACES = tuple([JOB.place(name) for name in _ARRAYS])


class Plan(Struct, frozen=True, eq=False):
    """job: all but the addresses of arrays. tables: what it points to."""

    job: NDArray[np.int64]
    partial_bytes: int
    scratch_bytes: int
    tables: tuple[NDArray[np.int64], ...]


@functools.lru_cache(512)
def plan(
    x: Sizes, g: Sizes, slide: Sliding, size: Sizes, name: str, turned: bool = False
) -> Plan:  # fmt: skip
    """What is known of shapes, for the dot of that name. turned: whether channels of g are last."""
    dot = DOTS[name]
    width = supported(dot, host())
    lows = [low for low, _ in slide.padding]
    given = zip(x[2:], g[2:], size, slide.stride, lows, slide.dilation)
    groups = slide.groups
    walked, one = tuple([axis(*a) for a in given]), axis(1, 1, 1, 1, 0, 1)
    axes: Axes = three(walked, one)
    kernel = three(size, 1)
    if _stacks_lines(x, g, slide, size):
        axes, kernel = (one, one, walked[0]), (1, 1, size[0])
    of_all = batch_of(x[0], groups, x[1] // groups, g[1] // groups, dot.name)
    batch = of_all.in_blocks()
    reach = [a.reach() for a in axes]
    along = merged(batch, axes, reach)
    out = [a.out for a in axes]
    channels = batch.groups * batch.group_channels
    lanes, word = batch.lanes, batch.word_bytes
    steps = [prod(kernel[k + 1 :]) for k in range(3)]  # of taps in w
    of_run = range(kernel[along]) if along >= 0 else range(1)
    stacked = _stacked(batch, kernel, along, axes[2].stride)  # see Note [Stacked taps]
    depths = np.array(of_run) * (steps[along] if along >= 0 else 0)
    for k in stacked:
        depths = np.add.outer(depths, np.arange(kernel[k]) * steps[k])
    depths = np.add.outer(depths, np.arange(batch.group_channels) * prod(kernel)).ravel()
    stack = [kernel[k] if k in stacked else 1 for k in range(3)]
    pitch = channels * prod(stack)  # see Note [Pitch]
    if not stacked and channels * word % _SETS_BYTES == 0:
        pitch += 64 // word
    lines, columns = (out[k] if k in stacked else reach[k] for k in (1, 2))
    at = [lines * columns * pitch, columns * pitch, pitch]  # of rows in the slab
    slab_taps, taps = np.zeros((1, 1, 1), np.int64), np.zeros((1, 1, 1), np.int64)
    for k, a in enumerate(axes):
        if k != along and k not in stacked:
            pairs = np.array(a.phases[0].taps)
            shape = [len(pairs) if j == k else 1 for j in range(3)]
            taps = taps + (pairs[:, 0] * steps[k]).reshape(shape)
            slab_taps = slab_taps + (pairs[:, 1] * at[k]).reshape(shape)
    n_taps = taps.size
    depth = len(depths)
    padded = -(-depth // lanes) * lanes
    words = groups * n_taps * batch.group_outputs * padded
    most_splits = max(1, min(_PARTIAL_SUMS, batch.group_outputs // 32))
    most_sums = max(1, _PARTIAL_SUMS // batch.blocks)
    large = words * word > _SUMS_BYTES or most_sums * words > prod(x)
    few = max(1, most_sums // most_splits) if large else most_sums
    few = max(1, min(few, x[0] * prod(out) // _LEAST_PIXELS))
    few = min(few, max(2, _FEW_BYTES // (words * word)))
    strides = [1 if k in stacked else a.stride for k, a in enumerate(axes)]  # of the slab
    plane = at[0] * word * strides[0]
    panels = batch.group_outputs >= _PANEL_OUTPUTS  # see Note [Panels of pixels]
    most_bytes = _SLABS_BYTES if panels else _SLAB_BYTES
    wanted = 2 * few if few > 1 else 1
    rows = max(1, min(most_bytes // plane, -(-out[0] * batch.images // wanted)))
    by_rows = out[1] * out[2] == 1
    if by_rows:
        rows = max(1, min(_SLAB_BYTES // plane, 2 * _CHUNK, out[0]))
    rows = -(-out[0] // -(-out[0] // rows))
    runs, length, step = runs_of(out, rows, [s * n for s, n in zip(strides, at)], by_rows)
    g_step = groups * batch.group_outputs if turned else 1
    runs[:, 0] *= g_step
    slab = slab_fields(batch, axes, rows, pitch)
    slab_rows = rows if 0 in stacked else slab["slab_rows"]
    slab |= {"slab_rows": slab_rows, "slab1": lines, "slab2": columns}
    slab["slab_words"] = slab_rows * at[0]
    for k, a in enumerate(axes):
        of_taps = a.phases[0].taps[-1][1] // max(1, stack[k] - 1)
        slab |= {f"stack{k}": stack[k], f"apart{k}": of_taps, f"down{k}": a.stride // strides[k]}
    del slab["down2"]
    line = 64 // word
    place = (slab["slab_words"] // line + 3) * line
    together = 1
    if slab["bands"] == 1:  # see Note [Small images]
        most = min(_SLABS_BYTES // (place * word), -(-2 * _CHUNK // prod(out)), batch.images)
        together = -(-batch.images // -(-batch.images // max(1, most)))
        apart = [prod(out) * groups * batch.group_outputs, place]
        runs = np.concatenate([runs + i * np.array(apart) for i in range(together)])
    units = -(-batch.images // together) * slab["bands"]
    sums = max(1, min(few, units, _PARTIAL_BYTES // (words * word)))
    length = rows if by_rows else length
    image_runs = len(runs) // together
    chunk = max(1, _CHUNK // length)
    # see Note [Sums of one unit]
    once = units == batch.blocks == 1 and along < 0 and not stacked
    if once and len(runs) * length <= 2 * _CHUNK:
        chunk = len(runs)
    once = once and len(runs) <= chunk
    chunk, chunk_images = min(chunk, image_runs), max(1, min(together, chunk // image_runs))
    most = most_rows(dot, width)
    g_pitch = prod(out)
    g_image = g_pitch * groups * batch.group_outputs
    # see Note [Rows of a tile]
    alone_rows = tile_rows = min(most, _LINES) if g_pitch * word % _HALF_PAGE == 0 else most
    if turned:
        g_pitch, tile_rows, alone_rows = 1, most, most_rows(dot, width, 1, even=True)
    pixels = chunk * length * chunk_images
    of_image = np.array([g_image, image_runs * length])
    of_images = np.arange(chunk_images)[:, None] * of_image
    row_runs = 0 if by_rows else image_runs // rows
    first = None if by_rows or along == 0 or 0 in stacked else axes[0]
    of_unit = runs.reshape(together, image_runs, 2)
    kept, *parts = kept_runs(first, n_taps, of_unit, row_runs, of_images, length)
    panel_words = pixels * 2 * lanes
    most_splits = min(most_splits, host().cores)  # each copies x
    splits = max(1, min(_PARTIAL_SUMS // (sums * batch.blocks), most_splits))
    split = -(-batch.group_outputs // splits)
    counts = {min(split, batch.group_outputs - k * split) for k in range(splits)}
    in_place = n_taps == 1 and depth == padded and np.array_equal(depths, np.arange(depth))
    direct = sums == 1 and in_place and not once
    firsts = {(n, -(-n // -(-n // m))) for n in counts for m in (tile_rows, alone_rows)}
    kinds = functools.partial(
        tile_table, dot.name, width, columns=padded, most=tile_rows, alone=alone_rows,
        across=turned,
    )  # fmt: skip
    lays = max(counts) > tile_rows
    tiles = kinds({first for _, first in firsts}, packed=False, lays=lays)
    laid_tiles = kinds({n - first for n, first in firsts})
    o = np.arange(batch.group_outputs)
    row_words = 2 * lanes if once else padded
    tap_words = batch.group_outputs * row_words
    words = words // padded * row_words
    if once:  # taps of an output are turned around: see Note [Pitch]
        tap_words += line
        words = n_taps * tap_words
    places = np.stack([o * g_pitch, o * row_words], axis=1)
    fields = {
        **slab, "partial_sums": sums, "splits": splits, "tasks": sums * splits * batch.blocks,
        "units": units, "split_outputs": split,
        "partial_words": -(-words // line) * line,
        "scratch_step": together * place + panel_words,
        "lays": int(lays), "panel": together * place,
        "slab_place": place, "images": batch.images,
        "unit_images": together, "group_blocks": batch.blocks, "groups": batch.groups,
        "group_channels": batch.group_channels, "group_outputs": batch.group_outputs,
        "depth": depth, "padded_depth": padded, "lanes": lanes, "out_rows": out[0],
        "row_pixels": out[1] * out[2], "out_pixels": prod(out), "g_pitch": g_pitch,
        "g_step": g_step, "kept": address(kept),
        "row_runs": row_runs, "run": length, "run_is_rows": int(by_rows),
        "chunk": chunk, "chunk_images": chunk_images, "step": step, "once": int(once),
        "direct": int(direct), "row_words": row_words, "tap_words": tap_words,
        "rows": address(places), "in_order": int(along < 0 and not stacked),
        "slab_taps": address(slab_taps), "n_taps": n_taps, "depths": address(depths),
        "taps": address(taps),
    }  # fmt: skip
    job = JOB.fill(
        **fields, x=0, g=0, w=0, partial=0, scratch=0, most_rows=most, tile_rows=tile_rows,
        alone_rows=alone_rows, tiles=address(tiles), laid_tiles=address(laid_tiles),
    )  # fmt: skip
    tables = (depths, slab_taps, taps, runs, places, of_images, kept, *parts)
    partial_bytes = fields["partial_sums"] * fields["partial_words"] * word
    scratch_bytes = fields["tasks"] * fields["scratch_step"] * word
    return Plan(job, partial_bytes, scratch_bytes, tables)


def _stacks_lines(x: Sizes, g: Sizes, slide: Sliding, size: Sizes) -> bool:
    """Whether the taps of a signal lie apart and are stacked: then it is a line, of which each tap
    is one run, and not rows of single pixels.
    """
    apart = len(size) == slide.groups == slide.stride[0] == 1 < slide.dilation[0]
    return apart and x[1] <= _FEW_CHANNELS and x[1] * size[0] * g[2] <= _LINE_WORDS


def _stacked(batch: Batch, kernel: tuple[int, ...], along: int, stride: int) -> tuple[int, ...]:
    """The axes of which a pixel of the slab holds all taps: by the cycles of a pixel, half a one
    for each vector of products and one for each word that is copied. stride: of the third axis.
    """
    of_run = kernel[along] if along >= 0 else 1

    def cycles(axes: tuple[int, ...]) -> float:
        held = batch.group_channels * prod([kernel[k] for k in axes])
        taps = prod(kernel) // (of_run * prod([kernel[k] for k in axes]))
        vectors = taps * -(-of_run * held // batch.lanes)
        return batch.group_outputs * vectors / 2 + held

    if batch.groups > 1 or batch.group_channels > _FEW_CHANNELS:
        return ()
    before = along if along >= 0 else 3 if stride == 1 else 2
    able = [k for k in range(before) if kernel[k] > 1]
    ways = itertools.chain(*[itertools.combinations(able, n) for n in range(len(able) + 1)])
    return min(ways, key=cycles)


def _convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> _Way | None:
    if x.dtype != g.dtype or len(size) > 3 or not (x.size and g.size and prod(size)):
        return None
    return _fitted(x, g, slide, size, _ELEMENT[x.dtype])


def _pointwise_weight(x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes) -> _Way | None:
    """The same where windows are single elements and BLAS is slower. Channels are first.

    What is laid out is the image of fewer channels: the two are alike here.
    """
    if lie_last(x) or lie_last(g) or not in_tiles(x.shape, g.shape, size, slide, x.itemsize):
        return None
    if x.shape[1] <= g.shape[1]:
        return _convolution_weight(x, g, slide, size)
    way = _convolution_weight(g, x, slide, size)
    return way and (lambda x, g, *_: np.ascontiguousarray(way(g, x).swapaxes(0, 1)))


def _beside_weight(x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes) -> _Way | None:
    """The same where windows lie side by side, or apart, and BLAS, which takes a copy of them, is
    slower.
    """
    shape = (*g.shape[1:2], *x.shape[1:2], *size)
    quick = patches.in_tiles(len(g), g.size // max(1, g.shape[1]), shape, slide)
    return _convolution_weight(x, g, slide, size) if quick else None


# See `funct.kernels.windows.convolution.convolution_weight`.
convolution_weight = Fitted(_convolution_weight)
pointwise_weight, beside_weight = Fitted(_pointwise_weight), Fitted(_beside_weight)


def weights(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes, dot: str
) -> NDArray[Any]:
    """The same for x and g in words of the dot, whose sums are of their dtype."""
    return _fitted(x, g, slide, size, dot)(x, g)


def _fitted(x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes, dot: str) -> _Way:
    """What `weights` does with operands that lie as these."""
    out, c = g.shape[1], x.shape[1] // slide.groups
    last, turned = lie_last(x), lie_last(g)
    made = plan(x.shape, g.shape, slide, size, dot, turned)
    run = _filling(made, _ELEMENT[x.dtype], last, turned)
    make, first = memory.maker((out, c, *size), x.dtype), made.partial_bytes + made.scratch_bytes
    dense = x.flags.c_contiguous and g.flags.c_contiguous
    orders = [channels_last if one else np.ascontiguousarray for one in (last, turned)]

    def way(x: NDArray[Any], g: NDArray[Any], *_: Any) -> NDArray[Any]:
        if not dense:
            x, g = orders[0](x), orders[1](g)
        partial = memory.scratch(first)
        run(x, g, w := make(), partial, partial + made.partial_bytes)
        return w

    return way


@functools.lru_cache(1 << 10)
def _filling(made: Plan, element: str, last: bool, turned: bool) -> Callable[..., None]:
    return filling(entry(element, last, turned), made.job, _PLACES)


def entry(element: str, last: bool = False, turned: bool = False) -> int:
    """The address of `gradient` on this machine."""
    return _code(element, host(), last, turned).address("gradient")


@functools.cache
def _code(element: str, target: Host, last: bool, turned: bool) -> Code:
    return printed(text, element, target, last, turned, opt=LEAN)
