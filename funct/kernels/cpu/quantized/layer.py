"""A linear layer on codes, in one call: words, sums and codes of a few rows at a time.

What is between codes and codes stays in the cache, and a small layer costs little more than its
products. Many rows meet panels of words in tiles (`dense/tile.py`); a few read the weights once,
where they lie (`byte_rows.py`). A unit of work is some rows times some outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.tile import call_tiles, most_rows, tile_table
from funct.kernels.cpu.products.integers import multiplier
from funct.kernels.cpu.quantized import byte_rows
from funct.kernels.cpu.quantized.codes import (
    BYTE,
    fit,
    in_words,
    of_columns,
    to_codes_fields,
)
from funct.kernels.cpu.quantized.narrowing import TO_CODES
from funct.kernels.cpu.quantized.words import Words
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.runners import filling
from funct.kernels.cpu.tasks import deal_out
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each
from funct.kernels.quantized.affine import Codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.cpu.convolution.panels import Convolver

__all__ = ["CALL", "JOB", "Layer", "layer"]

_FEW_ROWS = 4  # more of them are worth weights that are laid out
_ROWS = 60  # at most, of a unit
_ROOM = 1 << 17  # bytes of a unit's words
_TASK = 1 << 18  # products that are worth a task

CALL = ("x", "w", "y", "bias", "scratch")  # the fields that a call fills in
JOB = Fields((
    *CALL, "tasks", "rows", "outputs", "depth", "unit_rows", "units_across", "unit_outputs",
    "pitch", "padded", "x_zero_point", "scratch_step", "places", "tap", "tiles", "most_rows",
    *[name for name in TO_CODES if name not in CALL],
))  # fmt: skip

Products = Callable[[Emitter, Record, Words, Value, Value, Value, Value, Value], None]


def _panels(
    f: Emitter, job: Record, words: Words, held: Value, sums: Value, count: Value, start: Value,
    stop: Value,
) -> None:  # fmt: skip
    """Sums of rows times panels: (block of outputs, k, lane)."""
    lanes = supported(DOTS[words.dot], host()) // 4

    def block(o: Value) -> None:
        wide = f.min(job.padded - o, 2 * lanes)
        depth = f.div(job.pitch, words.count)
        row = f.select(f.eq(wide, lanes), job.most_rows + 1, f.constant(I64, 0))
        given = [
            job.pointer("tap"), f.constant(I64, 1), f.at(job.pointer("w"), o * depth, "i32"),
            depth, wide, f.at(sums, o - start, "i32"), f.constant(I64, 0),
        ]  # fmt: skip
        table, zero = f.at(job.pointer("tiles"), row, "i64"), f.constant(I64, 0)
        call_tiles(f, table, job.most_rows, held, job.pointer("places"), zero, count, given)

    each(f, start, stop, block, 2 * lanes)


def _bytes(
    f: Emitter, job: Record, words: Words, held: Value, sums: Value, count: Value, start: Value,
    stop: Value,
) -> None:  # fmt: skip
    """Sums of rows times weights as they lie."""
    zero = f.convert(job.x_zero_point, "u8")

    def row(m: Value) -> None:
        x = f.at(held, m * job.pitch, words.element)
        y = f.at(sums, m * job.unit_outputs, "i32")
        outputs = start, f.min(stop, job.outputs)
        byte_rows.sums(f, words, x, zero, job.pointer("w"), job.depth, outputs, y)

    each(f, 0, count, row)


def _text(codes_in: str, codes_out: str, words: Words, few: bool) -> str:
    """`run(job)`."""
    module = Module(host())
    f = module.function("some", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    room = f.at(job.pointer("scratch"), task * job.scratch_step, "i8")
    sums = f.at(room, job.unit_rows * job.pitch, words.element)
    zero = f.convert(job.x_zero_point, "i16") if words.centred else None
    products: Products = _bytes if few else _panels

    def unit(u: Value) -> None:
        block = f.div(u, job.units_across)
        first = block * job.unit_rows
        count = f.min(job.rows - first, job.unit_rows)
        start = (u - block * job.units_across) * job.unit_outputs
        stop = f.min(start + job.unit_outputs, job.padded)

        x = f.at(job.pointer("x"), first * job.depth, codes_in)

        def row(m: Value) -> None:
            here, to = f.at(x, m * job.depth, codes_in), f.at(room, m * job.pitch, words.element)
            if few:
                byte_rows.row(f, words, here, to, job.depth, zero, codes_in)
            else:
                in_words(f, here, to, job.depth, job.pitch, zero, codes_in)

        def rows() -> list[Value]:
            each(f, 0, count, row)
            return [room]

        as_it_is = not few and zero is None and codes_in == "u8"
        held = f.branch(f.eq(job.depth, job.pitch), lambda: [x], rows) if as_it_is else rows()
        products(f, job, words, held[0], sums, count, start, stop)

        def finish(m: Value) -> None:
            here = f.at(sums, m * job.unit_outputs, "i32")
            y = f.at(job.pointer("y"), (first + m) * job.outputs + start, codes_out)
            of_columns(f, job, here, y, start, f.min(stop, job.outputs) - start, codes_out)

        each(f, 0, count, finish)

    units = f.div(job.rows + job.unit_rows - 1, job.unit_rows) * job.units_across
    each(f, task, units, unit, job.tasks)
    f.ret()
    deal_out(module, "run", "some", JOB)
    return module.text()


@functools.cache
def _entry(codes_in: str, codes_out: str, words: Words, few: bool) -> int:
    return printed(_text, codes_in, codes_out, words, few).keep().address("run")


class Layer(Struct, frozen=True, eq=False):
    """What is prepared for shapes, and how sums become codes.

    packing: what lays the weights out; None: they are taken as they lie. bias: what sums of
    differences lack. place: of the entry. job: all fields, those of a call open. held: what the job
    points to.
    """

    words: Words
    packing: Convolver | None
    zero_point: int
    bias: NDArray[np.int32]
    run: Callable[..., None]
    place: int
    job: NDArray[np.int64]
    scratch_bytes: int
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    held: tuple[NDArray[Any], ...]

    def ready(self, w: NDArray[np.int8]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """What a call takes: dense weights and their bias, laid out if that serves."""
        w = np.ascontiguousarray(w)
        return (w, self.bias) if self.packing is None else self.laid(w)

    def laid(self, w: NDArray[np.int8]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Weights laid out, and what is added to the sums; they serve any number of rows."""
        assert self.packing is not None
        panels = self.packing.panels(self.words.weights(w[:, :, None]))
        return panels, self.bias - self.zero_point * self.words.offset(w)

    def __call__(self, x: NDArray[Any], w: NDArray[Any], bias: NDArray[np.int32]) -> NDArray[Any]:
        """Codes of the result, (rows, outputs), of dense codes and of panels or dense weights."""
        y = memory.fresh(self.shape, self.dtype)
        self.run(x, w, y, bias, memory.scratch(self.scratch_bytes))
        return y


@functools.lru_cache(256)
def layer(
    rows: int, depth: int, dtype: np.dtype[Any], zero_point: int, bias: bytes, factor: bytes,
    limits: tuple[int, int, int, Any], words: Words,
) -> Layer | None:  # fmt: skip
    """The layer for so many rows of codes of this dtype; None where sums could leave int32.

    bias: int32, one for each output. factor: float32, one for each or one for all. limits: of the
    codes of the result.
    """
    offsets, factors = np.frombuffer(bias, np.int32), np.frombuffer(factor, np.float32)
    outputs = len(offsets)
    if not fit(depth, bias):
        return None
    dot, zero_point = DOTS[words.dot], words.zero_point(zero_point, dtype)
    width = supported(dot, host())
    lanes, most = width // 4, most_rows(dot, width)
    few = rows <= _FEW_ROWS and depth >= byte_rows.lanes(words)
    pitch = byte_rows.pitch(depth, words) if few else -(-depth // words.count) * words.count
    code_bytes = 4 // words.count
    unit_rows = max(1, min(rows, _ROWS - _ROWS % most, _ROOM // (code_bytes * pitch)))
    down = -(-rows // unit_rows)
    tasks = max(1, min(2 * host().cores, rows * depth * outputs // _TASK))
    padded = -(-outputs // lanes) * lanes
    unit_outputs = -(-padded // -(-tasks // down) // (2 * lanes)) * 2 * lanes
    packing, tiles, places = None, 0, np.zeros(0, np.int64)
    if not few:
        packing = multiplier(unit_rows, pitch // words.count, outputs, words.dot, True)
        counts = {unit_rows, rows - (down - 1) * unit_rows}
        tiles = address(tile_table(words.dot, width, counts, padded))
        row = np.arange(unit_rows)[:, None]
        places = np.ascontiguousarray(row * [pitch // words.count, unit_outputs], np.int64)
    tap = np.zeros(2, np.int64)
    fields, kept = to_codes_fields(offsets, Codes(factors, *limits))
    scratch = -(-unit_rows * (code_bytes * pitch + 4 * unit_outputs) // 64) * 64
    job = JOB.fill(
        tasks=tasks, rows=rows, outputs=outputs, depth=depth, unit_rows=unit_rows,
        units_across=-(-padded // unit_outputs), unit_outputs=unit_outputs, pitch=pitch,
        padded=padded, x=0, y=0, w=0, x_zero_point=zero_point, scratch=0, scratch_step=scratch,
        places=address(places), tap=address(tap), tiles=tiles,
        most_rows=most, **fields,
    )  # fmt: skip
    codes = np.dtype(limits[-1])
    place = _entry(BYTE[dtype], BYTE[codes], words, few)
    run = filling(place, job, [JOB.place(name) for name in CALL])
    held, shape = (places, tap, *kept), (rows, outputs)
    return Layer(
        words, packing, zero_point, offsets, run, place, job, tasks * scratch, shape, codes, held
    )
