"""Passes over codes: to pairs for the micro-kernel, from sums to codes, from numbers to codes.

Each is one loop over memory; the formulas are those of `funct.kernels.quantized`.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import PARALLEL, Code, assemble, host
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.slab import each
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.quantized import Codes

__all__ = ["centred_pairs", "centred_planes", "requantized", "rounded"]

_BYTE = {np.dtype(np.uint8): "u8", np.dtype(np.int8): "i8"}
_FLOAT, _INT = struct.Struct("f"), struct.Struct("i")
_TASK = 1 << 16  # elements that are worth a task

PAIRS = Fields(("tasks", "rows", "x", "y", "columns", "row", "zero_point"))
PLANES = Fields(("tasks", "rows", "x", "y", "plane", "words", "channels", "zero_point"))
SUMS = Fields((
    "tasks", "rows", "x", "y", "columns", "channels", "bias", "multiplier", "zero_point", "low",
    "high",
))  # fmt: skip
NUMBERS = Fields(("tasks", "rows", "x", "y", "columns", "scale", "zero_point", "low", "high"))


def spans(f: Emitter, count: Value, lanes: int, body: Callable[[Value, int], None]) -> None:
    """`body(index, lanes)` over all elements: vectors (the last one may overlap) or scalars."""

    def vectors() -> list[Value]:
        last = count - lanes
        each(f, 0, count, lambda k: body(f.select(k > last, last, k), lanes), lanes)
        return []

    def scalars() -> list[Value]:
        each(f, 0, count, lambda k: body(k, 1))
        return []

    f.branch(count >= lanes, vectors, scalars)


def _text(fields: Fields, row: Callable[[Emitter, Record, Value], None]) -> str:
    """`run(job)`: `row` for each row, rows dealt out to tasks."""
    module = Module(host())
    module.declare("@funct_parallel", PARALLEL)
    f = module.function("rows", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, fields, f.arguments[0]), f.arguments[1]
    start = f.div(task * job.rows, job.tasks)
    stop = f.div((task + 1) * job.rows, job.tasks)
    each(f, start, stop, lambda k: row(f, job, k))
    f.ret()
    f = module.function("run", [("job", PTR)])
    (given,) = f.arguments
    tasks = Record(f, fields, given).tasks
    f.line(f"call void @funct_parallel(ptr @rows, {given!r}, {tasks!r})")
    f.ret()
    return module.text()


def _lanes(element: str) -> int:
    return host().vector_bytes // typed(element).bytes


def _float(f: Emitter, job: Record, name: str, lanes: int) -> Value:
    """A field that holds the bits of a float32, in all lanes."""
    bits = f.convert(getattr(job, name), "i32")
    return f.splat(f.bitcast(bits, typed("f32")), lanes)


def _pairs_row(element: str) -> Callable[[Emitter, Record, Value], None]:
    """One row of codes as 16-bit differences from the zero point, filled up by 0."""

    def row(f: Emitter, job: Record, k: Value) -> None:
        x = f.at(job.pointer("x"), k * job.columns, element)
        y = f.at(job.pointer("y"), k * job.row, "i16")
        zero = f.convert(job.zero_point, "i16")

        def some(i: Value, lanes: int) -> None:
            codes = f.convert(f.load(typed(element, lanes), f.at(x, i, element)), "i16")
            f.store(codes - f.splat(zero, lanes), f.at(y, i, "i16"))

        spans(f, job.columns, _lanes("i16"), some)
        each(
            f, job.columns, job.row,
            lambda i: f.store(f.constant(typed("i16"), 0), f.at(y, i, "i16")),
        )  # fmt: skip

    return row


def _planes_row(element: str) -> Callable[[Emitter, Record, Value], None]:
    """One plane of words: a channel's differences below, the next one's, if there is one, above."""

    def row(f: Emitter, job: Record, k: Value) -> None:
        group = f.div(k, job.words)
        pair = k - group * job.words
        x = f.at(job.pointer("x"), (group * job.channels + pair * 2) * job.plane, element)
        y = f.at(job.pointer("y"), k * job.plane, "i32")
        zero = f.convert(job.zero_point, "i32")

        def word(i: Value, lanes: int, second: bool) -> None:
            codes = typed(element, lanes)
            z = f.splat(zero, lanes)
            low = f.convert(f.load(codes, f.at(x, i, element)), "i32") - z
            low = low & 0xFFFF
            if second:
                high = f.convert(
                    f.load(codes, f.at(f.at(x, job.plane, element), i, element)), "i32"
                )
                low = low | (high - z) << 16
            f.store(low, f.at(y, i, "i32"))

        def run(second: bool) -> Callable[[], list[Value]]:
            def go() -> list[Value]:
                spans(f, job.plane, _lanes("i32"), lambda i, lanes: word(i, lanes, second))
                return []

            return go

        f.branch(pair * 2 + 1 < job.channels, run(True), run(False))

    return row


def _codes(f: Emitter, steps: Value, job: Record, lanes: int, element: str) -> Value:
    """Codes of numbers of steps: rounded to even, saturated; NaN is the lowest."""
    low, high = (_float(f, job, name, lanes) for name in ("low", "high"))
    whole = f.min(f.max(f.round(steps), low), high)
    codes = f.convert(whole, "i32") + f.splat(f.convert(job.zero_point, "i32"), lanes)
    return f.convert(codes, element)


def _sums_row(element: str, by_column: bool) -> Callable[[Emitter, Record, Value], None]:
    """One row of sums. by_column: each column is a channel; else each row is of one."""

    def row(f: Emitter, job: Record, k: Value) -> None:
        x = f.at(job.pointer("x"), k * job.columns, "i32")
        y = f.at(job.pointer("y"), k * job.columns, element)
        bias, multiplier = job.pointer("bias"), job.pointer("multiplier")
        channel = f.rem(k, job.channels)

        def some(i: Value, lanes: int) -> None:
            if by_column:
                offset = f.load(typed("i32", lanes), f.at(bias, i, "i32"))
                factor = f.load(typed("f32", lanes), f.at(multiplier, i, "f32"))
            else:
                offset = f.splat(f.load(typed("i32"), f.at(bias, channel, "i32")), lanes)
                factor = f.splat(f.load(typed("f32"), f.at(multiplier, channel, "f32")), lanes)
            total = f.load(typed("i32", lanes), f.at(x, i, "i32")) + offset
            steps = f.convert(total, "f32") * factor
            f.store(_codes(f, steps, job, lanes, element), f.at(y, i, element))

        spans(f, job.columns, _lanes("f32"), some)

    return row


def _numbers_row(element: str) -> Callable[[Emitter, Record, Value], None]:
    """One row of numbers."""

    def row(f: Emitter, job: Record, k: Value) -> None:
        x = f.at(job.pointer("x"), k * job.columns, "f32")
        y = f.at(job.pointer("y"), k * job.columns, element)

        def some(i: Value, lanes: int) -> None:
            steps = f.load(typed("f32", lanes), f.at(x, i, "f32")) / _float(f, job, "scale", lanes)
            f.store(_codes(f, steps, job, lanes, element), f.at(y, i, element))

        spans(f, job.columns, _lanes("f32"), some)

    return row


@functools.cache
def _entry(name: str, element: str) -> tuple[Code, Any]:
    fields, row = {
        "pairs": (PAIRS, _pairs_row(element)),
        "planes": (PLANES, _planes_row(element)),
        "columns": (SUMS, _sums_row(element, True)),
        "channels": (SUMS, _sums_row(element, False)),
        "numbers": (NUMBERS, _numbers_row(element)),
    }[name]
    code = assemble(_text(fields, row))
    return code, ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("run"))


def _tasks(rows: int, size: int) -> int:
    return max(1, min(rows, size // _TASK, 4 * host().cores))


def _bits(number: float) -> int:
    return int(_INT.unpack(_FLOAT.pack(number))[0])


def centred_pairs(x: NDArray[Any], zero_point: int) -> NDArray[np.int32]:
    """A matrix of codes less the zero point as words of two along its rows, filled up by 0."""
    rows, columns = x.shape
    x = np.ascontiguousarray(x)
    y = memory.fresh((rows, -(-columns // 2)), np.dtype(np.int32))
    job = PAIRS.fill(
        tasks=_tasks(rows, x.size), rows=rows, x=address(x), y=address(y), columns=columns,
        row=2 * y.shape[1], zero_point=zero_point,
    )  # fmt: skip
    _entry("pairs", _BYTE[x.dtype])[1](address(job))
    return y


def centred_planes(x: NDArray[Any], zero_point: int, groups: int) -> NDArray[np.int32]:
    """Images of codes less the zero point as words of two channels, filled up group by group."""
    n, channels, *size = x.shape
    x = np.ascontiguousarray(x)
    words = -(-channels // (2 * groups))
    y = memory.fresh((n, groups * words, *size), np.dtype(np.int32))
    plane = y[0, 0].size
    rows = n * groups * words
    job = PLANES.fill(
        tasks=_tasks(rows, x.size), rows=rows, x=address(x), y=address(y), plane=plane, words=words,
        channels=channels // groups, zero_point=zero_point,
    )  # fmt: skip
    _entry("planes", _BYTE[x.dtype])[1](address(job))
    return y


def requantized(sums: NDArray[np.int32], bias: NDArray[np.int32], to: Codes) -> NDArray[Any]:
    """`funct.kernels.quantized.requantize` of sums + bias, for bytes; axis 1 is the channels'."""
    y = memory.fresh(sums.shape, np.dtype(to.dtype))
    channels = sums.shape[1]
    by_column = sums.ndim == 2
    columns = channels if by_column else sums[0, 0].size
    bias = np.ascontiguousarray(bias, np.int32)
    factor = np.ascontiguousarray(to.multiplier, np.float32)
    if len(factor) != channels:
        factor = np.full(channels, factor)
    rows = sums.size // columns if columns else 0
    job = SUMS.fill(
        tasks=_tasks(rows, sums.size), rows=rows, x=address(sums), y=address(y), columns=columns,
        channels=channels, bias=address(bias), multiplier=address(factor), zero_point=to.zero_point,
        low=_bits(to.low - to.zero_point), high=_bits(to.high - to.zero_point),
    )  # fmt: skip
    _entry("columns" if by_column else "channels", _BYTE[y.dtype])[1](address(job))
    return y


def rounded(
    x: NDArray[np.float32], scale: float, zero_point: int, low: int, high: int,
    dtype: np.dtype[Any],
) -> NDArray[Any]:  # fmt: skip
    """`funct.kernels.quantized.quantize` with one scale, to bytes."""
    x = np.ascontiguousarray(x)
    y = memory.fresh(x.shape, dtype)
    rows = max(1, x.shape[0]) if x.ndim > 1 else 1
    job = NUMBERS.fill(
        tasks=_tasks(rows, x.size), rows=rows, x=address(x), y=address(y), columns=x.size // rows,
        scale=_bits(scale), zero_point=zero_point, low=_bits(low - zero_point),
        high=_bits(high - zero_point),
    )  # fmt: skip
    _entry("numbers", _BYTE[y.dtype])[1](address(job))
    return y
