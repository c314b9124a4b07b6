"""Convolutions whose windows are single elements, of images whose channels come first.

Pixels are the lanes of tiles (`dense/tile.py`), and outputs their rows. Weights are read where they
lie, as are planes of channels by a few outputs. Of more, the first tile lays its pixels of some
channels out for the others: planes lie pages apart. A unit is a tile's pixels of an image and all
outputs; the last pixels of an image overlap those before.

Note [What is read next]
    No processor foresees that after a piece of each plane the next piece of the first one is read.
    Tiles ask for it while they multiply.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import Host, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.tile import call_tiles, most_rows, tile_table
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.runners import filling
from funct.kernels.cpu.tasks import deal_out_units
from funct.kernels.llvm import I64, Emitter, Module, Value, each, typed
from funct.kernels.table import Fitted
from funct.kernels.windows.pointwise import single

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.cpu.tasks import Units
    from funct.kernels.windows.views import Sizes, Sliding

    _Way = Callable[..., NDArray[Any]]

__all__ = ["convolution", "convolution_input"]

_ELEMENT = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_TASKS = 4  # per core,
_TASK = 1 << 18  # of so many products at least
_WEIGHTS = 1 << 19  # bytes, which each unit reads
_WIDE = 64  # bytes of the vectors with which tiles are worth it
_EVEN = 0.85  # of what is computed, counts
_PANEL = 16 << 10  # bytes
_LEAST = 1_000_000  # products of an image; BLAS does not lay out fewer either,
_THIN, _FEW = 4, 16  # but is slow at so few outputs, of no more channels

JOB = Fields((
    "tasks", "x", "w", "y", "units", "blocks", "pixels", "channels", "outputs", "rows", "tap",
    "first",  # outputs of the first tile
    "first_tiles", "tiles", "most_rows", "scratch",
))  # fmt: skip


@functools.lru_cache(512)
def _filling(
    images: int, channels: int, outputs: int, pixels: int, dot: str
) -> Callable[..., None]:
    """What fills y, (images, outputs, pixels), from x, w (outputs, channels) and y."""
    width = supported(DOTS[dot], host())
    byte = typed(DOTS[dot].word).bytes
    lanes = width // byte
    blocks = -(-pixels // (2 * lanes))
    narrow = 0 < pixels % (2 * lanes) <= lanes
    most = most_rows(DOTS[dot], width)
    first = -(-outputs // -(-outputs // most))
    laid = first < outputs
    columns = 3 * lanes if narrow else 2 * lanes
    first_tiles = tile_table(dot, width, {first}, columns, packed=False, lays=laid, ahead=True)
    tiles = tile_table(dot, width, {outputs - first}, columns, ahead=True) if laid else first_tiles
    rows = np.ascontiguousarray(np.arange(outputs)[:, None] * [channels, pixels], np.int64)
    tap = np.zeros(2, np.int64)
    units = images * blocks
    products = images * channels * outputs * pixels
    tasks = max(1, min(units, _TASKS * host().cores, products // _TASK))
    room = tasks * _PANEL if laid else 0
    job = JOB.fill(
        tasks=tasks, x=0, w=0, y=0, scratch=0, units=units, blocks=blocks, pixels=pixels,
        channels=channels, outputs=outputs, rows=address(rows), tap=address(tap), first=first,
        first_tiles=address(first_tiles), tiles=address(tiles), most_rows=most,
    )  # fmt: skip
    code = printed(_text, dot, lanes, laid, host()).keep()
    fill = filling(code.address("run"), job, [JOB.place(n) for n in ("x", "w", "y", "scratch")])

    def fills(x: Any, w: Any, y: Any, held: Any = (rows, tap)) -> None:
        fill(x, w, y, memory.scratch(room))

    return fills


def _text(dot: str, lanes: int, laid: bool, target: Host) -> str:
    """`run(job)`. laid: whether there are other tiles than the first one."""
    module = Module(target)
    element = DOTS[dot].word
    most_channels = _PANEL // (2 * lanes * typed(element).bytes)

    def units(f: Emitter, job: Record) -> Units:
        pixels, channels, outputs, blocks = job.pixels, job.channels, job.outputs, job.blocks
        zero, one, most, turn = f.constant(I64, 0), f.constant(I64, 1), job.most_rows, job.first
        w, rows, tap = (job.pointer(name) for name in ("w", "rows", "tap"))
        tables = [job.pointer(name) for name in ("first_tiles", "tiles")]
        images, result = job.pointer("x"), job.pointer("y")
        panel = f.at(job.pointer("scratch"), f.arguments[1] * _PANEL, "i8")

        def tile(image: Value, first: Value, vectors: int) -> list[Value]:
            kinds = [f.at(t, zero if vectors == 2 else most + 1, "i64") for t in tables]
            first = f.min(first, pixels - lanes * vectors)
            x = f.at(images, image * channels * pixels + first, element)
            y = f.at(result, image * outputs * pixels + first, element)

            def call(c: Value, count: Value, later: Value) -> None:
                """Sums of so many channels from c on. later: what is read next."""
                weights, planes = f.at(w, c, element), f.at(x, c * pixels, element)
                behind = [count, pixels, y, c]
                given = [tap, one, planes, *behind, *[panel] * laid, later, pixels]
                call_tiles(f, kinds[0], most, weights, rows, zero, turn, given)
                if laid:
                    given = [tap, one, panel, *behind, later, pixels]
                    call_tiles(f, kinds[1], most, weights, rows, turn, outputs, given)

            def some(c: Value) -> None:
                count = f.min(channels - c, most_channels)
                more, next_pixels = c + count < channels, f.constant(I64, lanes * vectors)
                later = f.select(more, (c + count) * pixels, next_pixels)
                call(c, count, f.at(x, later, element))

            if laid:
                each(f, 0, channels, some, most_channels)
            else:
                call(zero, channels, f.at(x, lanes * vectors, element))
            return []

        def unit(u: Value) -> None:
            image = f.div(u, blocks)
            first = (u - image * blocks) * (2 * lanes)
            narrow = pixels - first <= lanes
            f.branch(narrow, lambda: tile(image, first, 1), lambda: tile(image, first, 2))

        return job.units, unit

    deal_out_units(module, "run", JOB, units)
    return module.text()


def _way(x: Sizes, dtype: np.dtype[Any], channels: int, outputs: int) -> Callable[..., None] | None:
    dot, pixels = _ELEMENT[dtype], prod(x[2:])
    width = supported(DOTS[dot], host())
    if width != _WIDE or channels * outputs * dtype.itemsize > _WEIGHTS:
        return None
    lanes = width // dtype.itemsize
    computed = -(-pixels // lanes) * lanes
    if pixels < 2 * lanes or pixels < _EVEN * computed:
        return None
    if 1 in (channels, outputs):
        return None  # BLAS, and NumPy, are bound by memory
    if channels > _FEW if outputs <= _THIN else channels * outputs * pixels <= _LEAST:
        return None
    return _filling(x[0], channels, outputs, pixels, dot)


def _convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> _Way | None:
    if not (x.flags.c_contiguous and x.dtype == w.dtype and single(x.shape, w.shape[2:], slide)):
        return None
    fill = _way(x.shape, x.dtype, x.shape[1], len(w))
    if fill is None:
        return None
    make = memory.maker((len(x), len(w), *x.shape[2:]), x.dtype)

    def way(x: NDArray[Any], w: NDArray[Any], *_: Any) -> NDArray[Any]:
        fill(x, np.ascontiguousarray(w), y := make())
        return y

    return way


def _convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> _Way | None:
    if not (g.flags.c_contiguous and g.dtype == w.dtype and single(g.shape, w.shape[2:], slide)):
        return None
    outputs, channels = w.shape[:2]
    fill = _way(g.shape, g.dtype, outputs, channels)
    if fill is None:
        return None
    make = memory.maker((len(g), channels, *size), g.dtype)

    def way(g: NDArray[Any], w: NDArray[Any], *_: Any) -> NDArray[Any]:
        fill(g, np.ascontiguousarray(w.reshape(outputs, channels).T), x := make())
        return x

    return way


# See the functions of these names in `funct.kernels.windows.convolution`.
convolution, convolution_input = Fitted(_convolution), Fitted(_convolution_input)
