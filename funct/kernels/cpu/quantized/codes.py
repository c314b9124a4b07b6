"""Passes over codes: to differences or words, from sums to codes, from numbers to codes.

Each is one loop over memory; the formulas are those of `funct.kernels.quantized.affine`.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import PARALLEL, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.quantized.narrowing import TO_CODES, float_field, narrows, to_codes
from funct.kernels.cpu.quantized.words import PAIRS, QUADS, Words
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.runners import filling
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed
from funct.kernels.quantized.affine import Codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes

__all__ = [
    "BYTE", "Planes", "farthest", "fit", "in_words", "of_columns", "planes_of_words", "requantized",
    "rounded", "scaled", "spans", "to_codes_fields",
]  # fmt: skip

BYTE = {np.dtype(np.uint8): "u8", np.dtype(np.int8): "i8"}
_FARTHEST = 255 * 128  # the largest product there can be
_INT32_MAX = 2**31 - 1
_FLOAT, _INT = struct.Struct("f"), struct.Struct("i")
_TASK = 1 << 16  # elements that are worth a task
_PIECE = 256  # pixels whose sums are turned around at a time
_NARROWEST = 4  # lanes; fewer elements are taken one by one

PLANES = Fields(("tasks", "rows", "x", "y", "plane", "words", "channels", "zero_point"))
SUMS = Fields(("tasks", "rows", "x", "y", "columns", "channels", *TO_CODES))
NUMBERS = Fields(("x", "y", "tasks", "rows", "columns", "scale", "zero_point", "low", "high"))


def spans(f: Emitter, count: Value, lanes: int, body: Callable[[Value, int], None]) -> None:
    """`body(index, lanes)` over all elements: vectors (the last one may overlap) or scalars."""

    def vectors() -> list[Value]:
        last = count - lanes
        each(f, 0, count, lambda k: body(f.select(k > last, last, k), lanes), lanes)
        return []

    def scalars() -> list[Value]:
        each(f, 0, count, lambda k: body(k, 1))
        return []

    def fewer() -> list[Value]:
        spans(f, count, lanes // 2, body)
        return []

    f.branch(count >= lanes, vectors, fewer if lanes > _NARROWEST else scalars)


def _text(name: str, element: str) -> str:
    """`run(job)`: a function of that name for each row, rows dealt out to tasks."""
    fields, rows = _ROWS[name]
    row = rows(element)
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


def _at_a_time(f: Emitter) -> int:
    """Numbers that become codes at a time."""
    return (4 if narrows(f) else 2) * _lanes("f32")


def _of_word(f: Emitter, codes: Value, zero: Value | None) -> Value:
    """Codes as words hold them: 16-bit differences from the zero point or, without it, as bytes."""
    if zero is not None:
        return f.convert(codes, "i16") - f.splat(zero, codes.type.lanes)
    return codes ^ -128 if codes.type.is_signed else codes


def in_words(
    f: Emitter, x: Value, y: Value, count: Value, room: Value, zero: Value | None, element: str
) -> None:
    """A row of codes as they stand in words, and 0 in what is left of the room.

    zero: as 16-bit integer what is taken off them; None: they stay bytes. See `words.py`.
    """
    to = "u8" if zero is None else "i16"

    def some(i: Value, lanes: int) -> None:
        codes = f.load(typed(element, lanes), f.at(x, i, element))
        f.store(_of_word(f, codes, zero), f.at(y, i, to))

    spans(f, count, _lanes(to), some)
    each(f, count, room, lambda i: f.store(f.constant(typed(to), 0), f.at(y, i, to)))


def _planes_row(words: Words) -> Callable[[str], Callable[[Emitter, Record, Value], None]]:
    """One plane of words: a channel's codes lowest, those of the next ones, if there are, above."""

    def of(element: str) -> Callable[[Emitter, Record, Value], None]:
        return lambda f, job, k: _plane(f, job, k, words, element)

    return of


def _plane(f: Emitter, job: Record, k: Value, words: Words, element: str) -> None:
    group = f.div(k, job.words)
    first = (k - group * job.words) * words.count
    x = f.at(job.pointer("x"), (group * job.channels + first) * job.plane, element)
    y = f.at(job.pointer("y"), k * job.plane, "i32")
    zero = f.convert(job.zero_point, "i16") if words.centred else None
    bits = 32 // words.count

    def word(i: Value, lanes: int, count: int) -> None:
        total = None
        for n in range(count):
            place = f.at(f.at(x, job.plane * n, element), i, element)
            codes = _of_word(f, f.load(typed(element, lanes), place), zero)
            unsigned = Value(f, codes.name, codes.type.unsigned)
            part = f.convert(unsigned, "u32") << n * bits
            total = part if total is None else total | part
        assert total is not None
        f.store(total, f.at(y, i, "i32"))

    def run(count: int) -> Callable[[], list[Value]]:
        """With so many channels, or fewer."""

        def go() -> list[Value]:
            spans(f, job.plane, _lanes("i32"), lambda i, lanes: word(i, lanes, count))
            return []

        if count == 1:
            return go
        return lambda: f.branch(first + count <= job.channels, go, run(count - 1))

    run(words.count)()


def of_columns(
    f: Emitter, job: Record, sums: Value, y: Value, first: Value, count: Value, element: str
) -> None:
    """Codes of a row of sums, a channel each, from channel `first` on."""
    bias, multiplier = job.pointer("bias"), job.pointer("multiplier")
    codes = to_codes(f, job, element)

    def some(i: Value, lanes: int) -> None:
        offset = f.load(typed("i32", lanes), f.at(bias, first + i, "i32"))
        factor = f.load(typed("f32", lanes), f.at(multiplier, first + i, "f32"))
        total = f.load(typed("i32", lanes), f.at(sums, i, "i32")) + offset
        steps = f.convert(total, "f32") * factor
        f.store(codes(steps), f.at(y, i, element))

    spans(f, count, _at_a_time(f), some)


def of_channel(
    f: Emitter, job: Record, sums: Value, y: Value, channel: Value, count: Value, element: str
) -> None:
    """Codes of so many sums of one channel."""
    bias = f.load(typed("i32"), f.at(job.pointer("bias"), channel, "i32"))
    multiplier = f.load(typed("f32"), f.at(job.pointer("multiplier"), channel, "f32"))
    codes = to_codes(f, job, element)

    def some(i: Value, lanes: int) -> None:
        total = f.load(typed("i32", lanes), f.at(sums, i, "i32")) + f.splat(bias, lanes)
        steps = f.convert(total, "f32") * f.splat(multiplier, lanes)
        f.store(codes(steps), f.at(y, i, element))

    spans(f, count, _at_a_time(f), some)


class Planes:
    """Prints how sums of a few channels, pixel by pixel, come to planes of codes: turned around in
    pieces that stay in the first-level cache.
    """

    def __init__(self, f: Emitter, job: Record, turn: str, channels: int, element: str) -> None:
        self.f, self.job, self.turn, self.element = f, job, turn, element
        self.room = f.allocate(typed("i32"), channels * _PIECE)

    def write(
        self, sums: Value, to: Value, pixels: Value, channels: tuple[Value, Value],
        steps: tuple[Value, Value],
    ) -> None:  # fmt: skip
        """channels: the first one's number, and how many. steps: from one pixel of the sums, and
        from one plane of the result, to the next.
        """
        f, (first, count), (pitch, plane) = self.f, channels, steps

        def piece(p: Value) -> None:
            some = f.min(pixels - p, _PIECE)
            source = f.at(sums, p * pitch, "i32")
            whole = f.constant(I64, _PIECE)
            f.call(self.turn, None, [source, self.room, some, count, pitch, whole])

            def row(k: Value) -> None:
                here, y = f.at(self.room, k * _PIECE, "i32"), f.at(to, k * plane + p, self.element)
                of_channel(f, self.job, here, y, first + k, some, self.element)

            each(f, 0, count, row)

        each(f, 0, pixels, piece, _PIECE)


def _sums_row(element: str) -> Callable[[Emitter, Record, Value], None]:
    """One row of sums, of one channel."""

    def row(f: Emitter, job: Record, k: Value) -> None:
        x = f.at(job.pointer("x"), k * job.columns, "i32")
        y = f.at(job.pointer("y"), k * job.columns, element)
        of_channel(f, job, x, y, f.rem(k, job.channels), job.columns, element)

    return row


def _numbers_row(element: str) -> Callable[[Emitter, Record, Value], None]:
    """One row of numbers."""

    def row(f: Emitter, job: Record, k: Value) -> None:
        x = f.at(job.pointer("x"), k * job.columns, "f32")
        y = f.at(job.pointer("y"), k * job.columns, element)
        codes, scale = to_codes(f, job, element), float_field(f, job, "scale")

        def some(i: Value, lanes: int) -> None:
            steps = f.load(typed("f32", lanes), f.at(x, i, "f32")) / f.splat(scale, lanes)
            f.store(codes(steps), f.at(y, i, element))

        spans(f, job.columns, _at_a_time(f), some)

    return row


def _codes_row(element: str) -> Callable[[Emitter, Record, Value], None]:
    """One row of codes, as numbers."""

    def row(f: Emitter, job: Record, k: Value) -> None:
        x = f.at(job.pointer("x"), k * job.columns, element)
        y = f.at(job.pointer("y"), k * job.columns, "f32")
        zero, scale = f.convert(job.zero_point, "i32"), float_field(f, job, "scale")

        def some(i: Value, lanes: int) -> None:
            codes = f.convert(f.load(typed(element, lanes), f.at(x, i, element)), "i32")
            steps = f.convert(codes - f.splat(zero, lanes), "f32")
            f.store(steps * f.splat(scale, lanes), f.at(y, i, "f32"))

        spans(f, job.columns, 2 * _lanes("f32"), some)

    return row


_ROWS: dict[str, tuple[Fields, Callable[[str], Callable[[Emitter, Record, Value], None]]]] = {
    **{words.dot: (PLANES, _planes_row(words)) for words in (PAIRS, QUADS)},
    "sums": (SUMS, _sums_row), "numbers": (NUMBERS, _numbers_row), "codes": (NUMBERS, _codes_row),
}  # fmt: skip


@functools.cache
def _entry(name: str, element: str) -> int:
    return printed(_text, name, element).keep().address("run")


def _tasks(rows: int, size: int) -> int:
    return max(1, min(rows, size // _TASK, 4 * host().cores))


def _bits(number: float) -> int:
    return int(_INT.unpack(_FLOAT.pack(number))[0])


def planes_of_words(
    x: Sizes, dtype: np.dtype[Any], zero_point: int, groups: int, words: Words
) -> Callable[[NDArray[Any]], NDArray[np.int32]]:
    """What makes images of codes, of this shape and dense, words of adjacent channels, filled up
    group by group.
    """
    n, channels, *size = x
    count = -(-channels // (words.count * groups))
    make = memory.maker((n, groups * count, *size), np.dtype(np.int32))
    rows = n * groups * count
    job = PLANES.fill(
        tasks=_tasks(rows, prod(x)), rows=rows, x=0, y=0, plane=prod(size), words=count,
        channels=channels // groups, zero_point=zero_point,
    )  # fmt: skip
    places = [PLANES.place(name) for name in ("x", "y")]
    fill = filling(_entry(words.dot, BYTE[dtype]), job, places)

    def run(x: NDArray[Any]) -> NDArray[np.int32]:
        fill(x, y := make())
        return y

    return run


@functools.lru_cache(256)
def farthest(terms: int, bias: bytes) -> int:
    """What sums of so many products and their bias, int32, cannot exceed."""
    offsets = np.frombuffer(bias, np.int32)
    return _FARTHEST * terms + max(int(offsets.max(initial=0)), -int(offsets.min(initial=0)))


def fit(terms: int, bias: bytes) -> bool:
    """Whether no sum of so many products and its bias leaves int32."""
    return farthest(terms, bias) <= _INT32_MAX


def to_codes_fields(
    offset: NDArray[Any], to: Codes
) -> tuple[dict[str, int], tuple[NDArray[Any], ...]]:
    """The fields `TO_CODES`, and arrays that they point to; offset: what a channel's sums lack."""
    offset = np.array(offset)
    factor = np.array(np.broadcast_to(to.multiplier, offset.shape), np.float32)
    fields = {
        "bias": address(offset), "multiplier": address(factor), "zero_point": to.zero_point,
        "low": _bits(to.low - to.zero_point), "high": _bits(to.high - to.zero_point),
    }  # fmt: skip
    return fields, (offset, factor)


def requantized(
    sums: Sizes, factor: NDArray[np.float32], limits: tuple[int, int, int, Any]
) -> Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[Any]]:
    """`funct.kernels.quantized.affine.requantize` of images of sums and of what each channel's
    lack, to bytes. factor: one for each channel, or for all. limits: of the codes.
    """
    dtype = np.dtype(limits[-1])
    rows, columns = prod(sums[:2]), prod(sums[2:])
    make = memory.maker(sums, dtype)
    fields, (_, factors) = to_codes_fields(np.zeros(sums[1], np.int32), Codes(factor, *limits))
    job = SUMS.fill(
        tasks=_tasks(rows, rows * columns), rows=rows, x=0, y=0, columns=columns, channels=sums[1],
        **fields,
    )  # fmt: skip
    places = [SUMS.place(name) for name in ("x", "bias", "y", "multiplier")]
    fill = filling(_entry("sums", BYTE[dtype]), job, places)

    def run(sums: NDArray[np.int32], offset: NDArray[np.int32]) -> NDArray[Any]:
        fill(sums, offset, y := make(), factors)
        return y

    return run


def rounded(
    x: NDArray[np.float32], scale: float, zero_point: int, low: int, high: int,
    dtype: np.dtype[Any],
) -> NDArray[Any]:  # fmt: skip
    """`funct.kernels.quantized.affine.quantize` with one scale, to bytes."""
    return _pass("numbers", BYTE[dtype], x, dtype, scale, zero_point, low, high)


def scaled(x: NDArray[Any], scale: float, zero_point: int) -> NDArray[np.float32]:
    """`funct.kernels.quantized.affine.dequantize` of bytes with one scale, to float32."""
    return _pass("codes", BYTE[x.dtype], x, np.dtype(np.float32), scale, zero_point, 0, 0)


def _pass(
    name: str, element: str, x: NDArray[Any], dtype: np.dtype[Any], scale: float, zero_point: int,
    low: int, high: int,
) -> NDArray[Any]:  # fmt: skip
    """One of the passes that know one scale, from x to an array of this dtype."""
    x = np.ascontiguousarray(x)
    y = memory.fresh(x.shape, dtype)
    rows = max(1, x.shape[0]) if x.ndim > 1 else 1
    _passing(name, element, rows, x.size // rows, scale, zero_point, low, high)(x, y)
    return y


@functools.lru_cache(256)
def _passing(
    name: str, element: str, rows: int, columns: int, scale: float, zero_point: int, low: int,
    high: int,
) -> Callable[..., None]:  # fmt: skip
    """The function of both arrays."""
    job = NUMBERS.fill(
        tasks=_tasks(rows, rows * columns), rows=rows, x=0, y=0, columns=columns,
        scale=_bits(scale), zero_point=zero_point, low=_bits(low - zero_point),
        high=_bits(high - zero_point),
    )  # fmt: skip
    return filling(_entry(name, element), job, range(2))
