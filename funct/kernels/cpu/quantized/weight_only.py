"""float32 numbers times weights of 8 or 4 bits, for some rows: decoded where they are used.

At one row a product of matrices reads every weight once and is bounded by memory: a byte is a
quarter of what float32 reads, 4 bits and a scale per group a seventh. For 4 bits x is split once
into its even and its odd elements, so that the low and the high halves of adjacent bytes meet
adjacent numbers. Rows meet outputs in tiles of a few of each: what is decoded serves several rows.

Where one register holds the sixteen numbers of 4 bits, times the scale of a group, codes are looked
up in it. Elsewhere they are converted, and the sums of a group are scaled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import PARALLEL, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.runners import filling
from funct.kernels.llvm import F32, I64, PTR, Emitter, Module, Value, each, typed
from funct.kernels.llvm.tables import has_tables, permuted

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["JOB", "entry", "plan", "weight_only_linear"]

_ROWS = 64  # more of them are worth weights in float32 and BLAS
_TILE = 4  # rows and outputs of a tile, at most
_NUMBERS = (*range(8), *range(-8, 0))  # by their 4 bits
_TASK = 1 << 17  # weights that are worth a task

JOB = Fields((
    "tasks", "rows", "outputs", "groups", "group_bytes", "x", "x_words", "codes", "scale", "y",
))  # fmt: skip


def text(bits: int, most: int) -> str:
    """`run(job)`: rows of x, of 4 bits halves apart, times the weights. most: rows of a tile."""
    module = Module(host())
    module.declare("@funct_parallel", PARALLEL)
    f = module.function("part", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    start = f.div(task * job.outputs, job.tasks)
    stop = f.div((task + 1) * job.outputs, job.tasks)
    sums = host().vector_bytes // 4  # of a tile, which leave as many registers or more

    def tiles(outputs: int, o: Value) -> None:
        first, rows = f.constant(I64, 0), most
        while rows:
            last = job.rows - f.rem(job.rows, rows)
            each(f, first, last, functools.partial(_tile, f, job, bits, rows, o, outputs), rows)
            first, rows = last, rows // 2

    outputs = min(_TILE, sums // most)
    middle = stop - f.rem(stop - start, outputs)
    each(f, start, middle, functools.partial(tiles, outputs), outputs)
    each(f, middle, stop, functools.partial(tiles, 1))
    f.ret()
    f = module.function("run", [("job", PTR)])
    (given,) = f.arguments
    tasks = Record(f, JOB, given).tasks
    f.line(f"call void @funct_parallel(ptr @part, {given!r}, {tasks!r})")
    f.ret()
    return module.text()


def _tile(f: Emitter, job: Record, bits: int, rows: int, o: Value, outputs: int, m: Value) -> None:
    """So many rows from m on times so many outputs from o on."""
    count = job.groups * job.group_bytes
    first = [f.at(job.pointer("x"), (m + k) * count, "f32") for k in range(rows)]
    x = [[p] if bits == 8 else [p, f.at(p, job.x_words, "f32")] for p in first]
    totals = iter(_sums(f, job, x, o, outputs))
    for n in range(outputs):
        for k in range(rows):
            y = f.at(job.pointer("y"), (m + k) * job.outputs + (o + n), "f32")
            f.store(f.reduce(next(totals), f.add), y)


def _sums(f: Emitter, job: Record, x: list[list[Value]], o: Value, count: int) -> list[Value]:
    """For so many outputs from o on, and for each of them all rows: the products, lane by lane.

    x: of each row where its numbers lie, or its even and its odd ones.
    """
    lanes = host().vector_bytes // 4
    vector, bytes_ = typed("f32", lanes), typed("u8" if len(x[0]) > 1 else "i8", lanes)
    groups, group_bytes = job.groups, job.group_bytes
    weights = [
        f.at(job.pointer("codes"), (o + k) * groups * group_bytes, "i8") for k in range(count)
    ]
    scales = [f.at(job.pointer("scale"), (o + k) * groups, "f32") for k in range(count)]
    zero = [f.constant(vector, 0)] * (count * len(x))
    looks_up = len(x[0]) > 1 and lanes == len(_NUMBERS) and has_tables(f)

    def group(g: Value, totals: list[Value]) -> list[Value]:
        first = g * group_bytes
        scaled = [f.splat(f.load(F32, f.at(s, g, "f32")), lanes) for s in scales]
        tables = [f.vector(vector, _NUMBERS) * s for s in scaled] if looks_up else []

        def decoded(k: int, codes: Value) -> list[Value]:
            """A number for each lane of x, of the k-th output."""
            if len(x[0]) == 1:
                return [f.convert(codes, "f32")]
            if looks_up:  # by the lowest bits of an index
                return [permuted(f, tables[k], v) for v in (codes, codes >> 4)]
            return [f.convert(v >> 28, "f32") for v in (codes << 28, codes << 24)]

        def step(i: Value, held: list[Value]) -> list[Value]:
            at = first + i
            numbers = [[f.load(vector, f.at(v, at, "f32")) for v in row] for row in x]
            out, left = [], iter(held)
            for k, w in enumerate(weights):
                codes = f.convert(f.load(bytes_, f.at(w, at, "i8")), "i32")
                parts = decoded(k, codes)
                for row in numbers:
                    total = next(left)
                    for part, number in zip(parts, row, strict=True):
                        total = f.fma(part, number, total)
                    out.append(total)
            return out

        held = f.loop(0, group_bytes, lanes, step, totals if looks_up else zero)
        if looks_up:
            return held
        each_sum = [s for s in scaled for _ in x]
        return [f.fma(h, s, t) for h, s, t in zip(held, each_sum, totals, strict=True)]

    return f.loop(0, groups, 1, group, zero)


@functools.cache
def _entry(bits: int, most: int) -> int:
    return printed(text, bits, most).keep().address("run")


def entry(bits: int, rows: int) -> int:
    """The address of the function that is told a job of so many rows."""
    return _entry(bits, min(_TILE, 1 << rows.bit_length() - 1))


def plan(rows: int, outputs: int, count: int, groups: int) -> NDArray[np.int64] | None:
    """The job but for its addresses; None where it does not serve. count: bytes of an output."""
    if not 0 < rows <= _ROWS or not outputs or count // groups % (host().vector_bytes // 4):
        return None
    return JOB.fill(
        tasks=max(1, min(outputs, outputs * count * rows // _TASK, 4 * host().cores)), rows=rows,
        outputs=outputs, groups=groups, group_bytes=count // groups, x=0, x_words=rows * count,
        codes=0, scale=0, y=0,
    )  # fmt: skip


@functools.lru_cache(256)
def _product(
    rows: int, outputs: int, count: int, groups: int, bits: int
) -> tuple[Callable[..., None], Callable[[], NDArray[np.float32]]] | None:
    """What fills the result, of dense arrays, and what makes it."""
    job = plan(rows, outputs, count, groups)
    if job is None:
        return None
    places = [JOB.place(name) for name in ("x", "codes", "scale", "y")]
    make = memory.maker((rows, outputs), np.dtype(np.float32))
    return filling(entry(bits, rows), job, places), make


def weight_only_linear(
    x: NDArray[np.float32], codes: NDArray[Any], scale: NDArray[np.float32]
) -> NDArray[np.float32]:
    """See `funct.kernels.quantized.weight_only.weight_only_linear`."""
    outputs, count = codes.shape
    bits = 8 if codes.dtype == np.int8 else 4
    rows = x.size // x.shape[-1] if x.size else 0
    found = _product(rows, outputs, count, scale.shape[1], bits)
    if found is None:
        return NotImplemented
    fill, make = found
    if bits == 4:
        x2 = x.reshape(rows, count, 2).transpose(2, 0, 1).copy()
    else:
        x2 = np.ascontiguousarray(x)
    y = make()
    fill(x2, np.ascontiguousarray(codes), np.ascontiguousarray(scale), y)
    return y.reshape(*x.shape[:-1], outputs)
