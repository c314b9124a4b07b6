"""A linear layer on codes, in one call: differences, sums and codes of a few rows at a time.

What is between codes and codes stays in the cache, and a small layer costs little more than its
products. Many rows meet panels of pairs in tiles (`dense/tile.py`); a few read the weights once,
where they lie (`byte_rows.py`). A unit of work is some rows times some outputs.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funct.device import PARALLEL, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.products import multiplier, pairs
from funct.kernels.cpu.dense.slab import each
from funct.kernels.cpu.dense.tile import call_tiles, most_rows, tile_table
from funct.kernels.cpu.quantized import byte_rows
from funct.kernels.cpu.quantized.codes import (
    BYTE,
    TO_CODES,
    differences,
    fit,
    of_columns,
    to_codes_fields,
)
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value
from funct.kernels.quantized.affine import Codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.cpu.dense.panels import Convolver

__all__ = ["Layer", "layer"]

_FEW_ROWS = 4  # more of them are worth weights that are laid out
_ROWS = 60  # at most, of a unit
_ROOM = 1 << 17  # bytes of a unit's differences
_TASK = 1 << 18  # products that are worth a task

JOB = Fields((
    "tasks", "rows", "outputs", "depth", "unit_rows", "units_across", "unit_outputs", "pitch",
    "padded", "x", "y", "w", "x_zero_point", "scratch", "scratch_step", "places", "tap", "tiles",
    "most_rows", *TO_CODES,
))  # fmt: skip

Products = Callable[[Emitter, Record, Value, Value, Value, Value, Value], None]


def _panels(
    f: Emitter, job: Record, held: Value, sums: Value, count: Value, start: Value, stop: Value
) -> None:
    """Sums of rows times panels: (block of outputs, k, lane)."""
    lanes = supported(DOTS["s16"], host()) // 4

    def block(o: Value) -> None:
        wide = f.min(job.padded - o, 2 * lanes)
        depth = job.pitch >> 1  # in words of two
        row = f.select(f.eq(wide, lanes), job.most_rows + 1, f.constant(I64, 0))
        given = [
            job.pointer("tap"), f.constant(I64, 1), f.at(job.pointer("w"), o * depth, "i32"),
            depth, wide, f.at(sums, o - start, "i32"), f.constant(I64, 0),
        ]  # fmt: skip
        table, zero = f.at(job.pointer("tiles"), row, "i64"), f.constant(I64, 0)
        call_tiles(f, table, job.most_rows, held, job.pointer("places"), zero, count, given)

    each(f, start, stop, block, 2 * lanes)


def _bytes(
    f: Emitter, job: Record, held: Value, sums: Value, count: Value, start: Value, stop: Value
) -> None:
    """Sums of rows times weights as they lie."""

    def row(m: Value) -> None:
        x = f.at(held, m * job.pitch, "i16")
        y = f.at(sums, m * job.unit_outputs, "i32")
        byte_rows.sums(f, x, job.pointer("w"), job.depth, start, f.min(stop, job.outputs), y)

    each(f, 0, count, row)


def _text(codes_in: str, codes_out: str, few: bool) -> str:
    """`run(job)`."""
    module = Module(host())
    module.declare("@funct_parallel", PARALLEL)
    f = module.function("some", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    held = f.at(job.pointer("scratch"), task * job.scratch_step, "i8")
    sums = f.at(held, job.unit_rows * job.pitch, "i16")
    products: Products = _bytes if few else _panels

    def unit(u: Value) -> None:
        block = f.div(u, job.units_across)
        first = block * job.unit_rows
        count = f.min(job.rows - first, job.unit_rows)
        start = (u - block * job.units_across) * job.unit_outputs
        stop = f.min(start + job.unit_outputs, job.padded)

        def centre(m: Value) -> None:
            x = f.at(job.pointer("x"), (first + m) * job.depth, codes_in)
            y, zero = f.at(held, m * job.pitch, "i16"), f.convert(job.x_zero_point, "i16")
            if few:
                byte_rows.centre(f, x, y, job.depth, zero, codes_in)
            else:
                differences(f, x, y, job.depth, job.pitch, zero, codes_in)

        each(f, 0, count, centre)
        products(f, job, held, sums, count, start, stop)

        def finish(m: Value) -> None:
            here = f.at(sums, m * job.unit_outputs, "i32")
            y = f.at(job.pointer("y"), (first + m) * job.outputs + start, codes_out)
            of_columns(f, job, here, y, start, f.min(stop, job.outputs) - start, codes_out)

        each(f, 0, count, finish)

    units = f.div(job.rows + job.unit_rows - 1, job.unit_rows) * job.units_across
    each(f, task, units, unit, job.tasks)
    f.ret()
    f = module.function("run", [("job", PTR)])
    (given,) = f.arguments
    f.line(f"call void @funct_parallel(ptr @some, {given!r}, {Record(f, JOB, given).tasks!r})")
    f.ret()
    return module.text()


@functools.cache
def _entry(codes_in: str, codes_out: str, few: bool) -> Any:
    code = printed(_text, codes_in, codes_out, few).keep()
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("run"))


_X, _W, _Y, _SCRATCH = (JOB.place(name) for name in ("x", "w", "y", "scratch"))


@attrs.frozen(eq=False)
class Layer:
    """What is prepared for shapes, and how sums become codes.

    packing: what lays the weights out; None: they are taken as they lie. held: what the job points
    to.
    """

    packing: Convolver | None
    entry: Any
    job: NDArray[np.int64]
    scratch_bytes: int
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    held: tuple[NDArray[Any], ...]

    def panels(self, w: NDArray[np.int8]) -> NDArray[Any]:
        """Weights laid out; they serve any number of rows."""
        assert self.packing is not None
        return self.packing.panels(pairs(w))

    def __call__(self, x: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
        """Codes of the result, (rows, outputs), of dense codes and of panels or dense weights."""
        y = memory.fresh(self.shape, self.dtype)
        job = self.job.copy()
        job[_X], job[_W], job[_Y] = address(x), address(w), address(y)
        job[_SCRATCH] = memory.scratch(self.scratch_bytes)
        self.entry(address(job))
        return y


@functools.lru_cache(256)
def layer(
    rows: int, depth: int, dtype: np.dtype[Any], zero_point: int, bias: bytes, factor: bytes,
    limits: tuple[int, int, int, Any],
) -> Layer | None:  # fmt: skip
    """The layer for so many rows of codes of this dtype; None where sums could leave int32.

    bias: int32, one for each output. factor: float32, one for each or one for all. limits: of the
    codes of the result.
    """
    offsets, factors = np.frombuffer(bias, np.int32), np.frombuffer(factor, np.float32)
    outputs = len(offsets)
    if not fit(depth, offsets):
        return None
    width = supported(DOTS["s16"], host())
    lanes = width // 4
    few = rows <= _FEW_ROWS and depth >= byte_rows.lanes()
    pitch = byte_rows.pitch(depth) if few else depth + depth % 2
    unit_rows = max(1, min(rows, _ROWS, _ROOM // (2 * pitch)))
    down = -(-rows // unit_rows)
    tasks = max(1, min(2 * host().cores, rows * depth * outputs // _TASK))
    padded = -(-outputs // lanes) * lanes
    unit_outputs = -(-padded // -(-tasks // down) // (2 * lanes)) * 2 * lanes
    packing, tiles, places = None, 0, np.zeros(0, np.int64)
    if not few:
        packing = multiplier(unit_rows, pitch // 2, outputs, "s16", True)
        counts = {unit_rows, rows - (down - 1) * unit_rows}
        tiles = address(tile_table("s16", width, counts, padded))
        row = np.arange(unit_rows)[:, None]
        places = np.ascontiguousarray(row * [pitch // 2, unit_outputs], np.int64)
    tap = np.zeros(2, np.int64)
    fields, kept = to_codes_fields(offsets, Codes(factors, *limits))
    scratch = -(-unit_rows * (2 * pitch + 4 * unit_outputs) // 64) * 64
    job = JOB.fill(
        tasks=tasks, rows=rows, outputs=outputs, depth=depth, unit_rows=unit_rows,
        units_across=-(-padded // unit_outputs), unit_outputs=unit_outputs, pitch=pitch,
        padded=padded, x=0, y=0, w=0, x_zero_point=zero_point, scratch=0, scratch_step=scratch,
        places=address(places), tap=address(tap), tiles=tiles,
        most_rows=most_rows(DOTS["s16"], width), **fields,
    )  # fmt: skip
    codes = np.dtype(limits[-1])
    entry = _entry(BYTE[dtype], BYTE[codes], few)
    held = (places, tap, *kept)
    return Layer(packing, entry, job, tasks * scratch, (rows, outputs), codes, held)
