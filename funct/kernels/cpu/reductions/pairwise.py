"""Sums of many numbers that lie side by side, in NumPy's order and so with its bits, in vectors.

NumPy halves a row of floats down to 128 terms, and adds those in eight sums side by side, number by
number. The parts of complex numbers are such terms, and have sums of their own. Integers have no
order.

Note [Pieces]
    Where a row is halved again and again, all pieces have as many vectors, or one more, and which
    have one more is told by the bits of their number read backwards. So where each piece is to be
    four blocks, piece after piece is added in a loop, and then their sums in pairs: calls that
    halve take as long as what they add up, and the processor does not see memory coming.

Note [Parts of rows]
    Few long rows are halved into parts for the threads, where NumPy halves them, and the sums of
    parts are added as NumPy adds halves. So the bits are the same for any number of parts.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import Host, host, printed
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.prepared import Job
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.reductions.segments import by_halves
from funct.kernels.cpu.runners import runner
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.tasks import Units, deal_out_units
from funct.kernels.dtypes import sum_dtype
from funct.kernels.llvm import I64, PTR, Emitter, Module, Type, Value, each, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "LONG", "PARTS", "SUMS", "define_total", "job", "of_integers", "of_long_rows", "paired", "text",
]  # fmt: skip

Read = Callable[[Value, Value, int], Value]  # from which element on how many terms are

LONG = 1 << 11  # elements from which on a call costs less than what it saves
SUMS = 8

_FIELDS = Fields(("x", "y", "parts", "means", "tasks", "rows", "length", "depth"))
_rest, _words = (getattr(struct.Struct(f"{len(_FIELDS) - 4}q"), n) for n in ("pack", "unpack"))
_TO_VECTORS = SUMS.bit_length() - 1
_BLOCK = 128  # terms that are no more halved
_FOUR = (34, 64, 60)  # vectors of four blocks: from, to, and to where there are terms behind them
_PIECES = 64  # of four blocks, whose sums are kept until they are added
_TASK = 1 << 15  # elements that are worth a task,
_PART = 1 << 17  # and a part of a row
_SIDE = 4  # vectors of integers that are added side by side
_ELEMENTS = {
    np.dtype(bool): "u8", np.dtype(np.uint8): "u8", np.dtype(np.int8): "i8",
    np.dtype(np.int32): "i32", np.dtype(np.int64): "i64", np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
}  # fmt: skip
PARTS: dict[Any, np.dtype[Any]] = {
    np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64),
}  # fmt: skip


def of_long_rows(
    x: NDArray[Any], axis: Any, keepdims: bool, terms: str = "", means: Any = None
) -> Any:
    """The sum of all elements, or over the last axes; None where that is not known here. terms: of
    floats that of their "squares", each rounded first; of the squares of their "deviations" from a
    mean for each row; or of the "numbers" among them, where 0 is added for NaN.
    """
    if not x.flags.c_contiguous or not x.flags.aligned:
        return None
    if axis is not None and axis.__class__ is not int and axis.__class__ is not tuple:
        return None
    plan = _plan(x.shape, x.dtype, axis, keepdims)
    if plan is None or not ready(x.size) or (terms and x.dtype.kind != "f"):
        return None
    element, parts, lead, dtype, depth, rest = plan
    y = fresh(lead, dtype)
    held = fresh((*lead, 1 << depth), dtype) if depth else y
    run = runner(_entry(element, parts, terms))
    run(x, y, held, x if means is None else means, rest)
    return y


def job(x: NDArray[Any], axis: Any, keepdims: bool, terms: str = "") -> Job | None:
    """What `of_long_rows` runs for arrays that are dense and lie so. terms: as there, but for
    deviations.
    """
    if axis is not None and axis.__class__ is not int and axis.__class__ is not tuple:
        return None
    plan = _plan(x.shape, x.dtype, axis, keepdims)
    if plan is None:
        return None
    element, parts, lead, dtype, depth, rest = plan
    room = prod(lead) * dtype.itemsize << depth if depth else 0
    return Job(_entry(element, parts, terms), lead, dtype, (0, *_words(rest)), room)


@functools.lru_cache(512)
def _plan(
    shape: tuple[int, ...], dtype: np.dtype[Any], axis: Any, keepdims: bool
) -> tuple[str, int, tuple[int, ...], np.dtype[Any], int, bytes] | None:
    """The element, how many parts it has, the shape and the dtype of what is left, how often rows
    are halved for threads, and the job behind the addresses; None for short rows, other axes and
    other dtypes.
    """
    parts = 2 if dtype in PARTS else 1
    element = _ELEMENTS.get(PARTS.get(dtype, dtype))
    rank = len(shape)
    axes = range(rank) if axis is None else axis if axis.__class__ is tuple else (axis,)
    if element is None or not all(a.__class__ is int and -rank <= a < rank for a in axes):
        return None
    order = sorted([a % rank for a in axes])
    if not order or order != [*range(rank - len(order), rank)]:
        return None
    kept = shape[: rank - len(order)]
    rows, length = prod(kept), prod(shape[len(kept) :])
    if length <= _BLOCK:
        return None
    most, depth = 4 * host().cores, 0
    while rows << depth < host().cores and length >> (depth + 1) >= _PART:
        depth += 1
    tasks = max(1, min(rows << depth, rows * length // _TASK, most))
    lead = (*kept, *(1,) * len(order)) if keepdims else kept
    return element, parts, lead, sum_dtype(dtype), depth, _rest(tasks, rows, parts * length, depth)


@functools.cache
def _entry(element: str, parts: int, terms: str) -> int:
    return printed(text, element, parts, terms, host()).keep().address("reduce")


def text(element: str, parts: int, terms: str, target: Host) -> str:
    """`reduce(job)` of rows of numbers that have so many parts, or of other terms of theirs."""
    module = Module(target)
    wide = element if element[0] == "f" else element[0] + "64"
    kind = typed(wide, parts)
    define_total(module, element, kind, terms)

    def units(f: Emitter, job: Record) -> Units:
        def row(r: Value) -> None:
            def halved(level: Value, held: list[Value]) -> list[Value]:
                start, n = held
                half = f.div(n, 2) & -SUMS
                late = f.ne((r >> (job.depth - 1 - level)) & 1, 0)
                return [f.select(late, start + half, start), f.select(late, n - half, half)]

            whole = [(r >> job.depth) * job.length, job.length]
            first, n = f.loop(0, job.depth, 1, halved, whole, maybe_empty=True)
            mean = f.constant(typed(wide), 0)
            if terms == "deviations":
                mean = f.load(typed(wide), f.at(job.pointer("means"), r >> job.depth, wide))
            found = _made(f, "total", kind, f.at(job.pointer("x"), first, element), n, mean)
            to = f.at(job.pointer("parts"), r * parts, wide)
            f.store(found + 0, to)  # of -0.0 alone it is 0

        return job.rows << job.depth, row

    def behind(f: Emitter, job: Record) -> None:
        """Parts are added in pairs; in y are those of the last time."""

        def level(k: Value) -> None:
            left = job.depth - 1 - k
            to = f.select(f.eq(left, 0), job.pointer("y"), job.pointer("parts"))

            def pair(r: Value) -> None:
                low, high = (
                    f.load(kind, f.at(job.pointer("parts"), (2 * r + i) * parts, wide))
                    for i in range(2)
                )
                f.store(low + high, f.at(to, r * parts, wide))

            each(f, 0, job.rows << left, pair)

        each(f, 0, job.depth, level)

    deal_out_units(module, "reduce", _FIELDS, units, behind)
    return module.text()


def define_total(module: Module, element: str, kind: Type, terms: str = "") -> None:
    """`total(x, n, mean)`: of n elements, 64 or more where they are floats."""
    f = module.function("total", _given(kind.element), kind, local=True)
    x, n, mean = f.arguments
    if not kind.is_float:
        f.ret(of_integers(f, x, n, element, kind.element))
        return
    read = functools.partial(_read, f, element, kind, terms, mean)
    _define_four(module, element, kind, terms)
    _define_many(module, element, kind)
    least, most, less = _FOUR
    vectors = n >> _TO_VECTORS

    def block() -> list[Value]:
        (total,) = paired(f, [_of_block(f, x, vectors, read)], kind.lanes)
        return [_with_rest(f, x, n, total, read)]

    def more() -> list[Value]:
        one = (vectors >= least) & (vectors <= f.select(_even(f, n), most, f.constant(I64, less)))
        return f.branch(one, lambda: [made("four")], lambda: [made("many")])

    def made(name: str) -> Value:
        return _made(f, name, kind, x, n, mean)

    f.ret(f.branch(n <= _BLOCK, block, more)[0])


def _given(element: str) -> list[tuple[str, Type]]:
    """What a function of terms is given: where they begin, how many there are, and their mean."""
    return [("x", PTR), ("n", I64), ("mean", typed(element))]


def _even(f: Emitter, n: Value) -> Value:
    return f.eq(n & (SUMS - 1), 0)


def _made(f: Emitter, name: str, kind: Type, *given: Value) -> Value:
    found = f.call(name, kind, given)
    assert found is not None
    return found


def _define_many(module: Module, element: str, kind: Type) -> None:
    """`many(x, n, mean)`: of more than four blocks, by pieces where all of these are four,
    others half by half. In no function with fewer, which need not save as many registers.
    """
    f = module.function("many", _given(kind.element), kind, local=True)
    _define_pieces(module, element, kind)
    x, n, mean = f.arguments
    least, most, less = _FOUR
    vectors = n >> _TO_VECTORS

    def halved() -> list[Value]:
        half = (vectors >> 1) * SUMS
        low = _made(f, "total", kind, x, half, mean)
        return [low + _made(f, "total", kind, f.at(x, half, element), n - half, mean)]

    bits = 64 - f.intrinsic("ctlz", vectors - 1, tail="i1 true")
    depth = f.max(bits - (most.bit_length() - 1), f.constant(I64, 0))
    count = f.constant(I64, 1) << depth
    last = (vectors + count - 1) >> depth
    even = _even(f, n) | (last <= less)
    known = ((vectors >> depth) >= least) & (count <= _PIECES) & even
    f.ret(f.branch(known, lambda: [_made(f, "pieces", kind, x, n, mean, depth)], halved)[0])


def _define_pieces(module: Module, element: str, kind: Type) -> None:
    """`pieces(x, n, mean, depth)`: of 2 ** depth of four blocks. See Note [Pieces]."""
    f = module.function("pieces", [*_given(kind.element), ("depth", I64)], kind, local=True)
    x, n, mean, depth = f.arguments
    count = f.constant(I64, 1) << depth
    sums = f.allocate(kind.scalar, _PIECES * kind.lanes)
    vectors, rest = n >> _TO_VECTORS, n & (SUMS - 1)
    none = f.constant(I64, 0)

    def sum_at(k: Value) -> Value:
        return f.at(sums, k * kind.lanes, kind.element)

    def piece(k: Value, held: list[Value]) -> list[Value]:
        start, backwards = held
        own = ((vectors + backwards) >> depth) * SUMS
        behind = f.select(f.eq(k + 1, count), rest, none)
        f.store(_made(f, "four", kind, f.at(x, start, element), own + behind, mean), sum_at(k))
        changed = f.intrinsic("cttz", k + 1, tail="i1 true") + 1
        return [start + own, backwards ^ (count - (count >> changed))]

    def pairs(held: list[Value]) -> list[Value]:
        half = held[0] >> 1

        def pair(k: Value) -> None:
            low, high = (f.load(kind, sum_at(2 * k + i)) for i in range(2))
            f.store(low + high, sum_at(k))

        each(f, 0, half, pair)
        return [half]

    f.loop(0, count, 1, piece, [none, none])
    f.while_loop([count], lambda held: held[0] > 1, pairs)
    f.ret(f.load(kind, sums))


def _define_four(module: Module, element: str, kind: Type, terms: str) -> None:
    """`four(x, n, mean)`: the total of four blocks of 8 to 16 vectors."""
    f = module.function("four", _given(kind.element), kind, local=True)
    x, n, mean = f.arguments
    read = functools.partial(_read, f, element, kind, terms, mean)
    vectors = n >> _TO_VECTORS
    low, least = vectors >> 1, vectors >> 2
    starts = [f.constant(I64, 0), least, low, low + ((vectors - low) >> 1)]
    blocks = [f.at(x, start * SUMS, element) for start in starts]
    sums = [_of_block(f, x, least, read) for x in blocks]
    more = vectors & (len(blocks) - 1)  # how many have one more: the last, the second, the third

    def longer(k: int, others: int) -> Value:
        def last() -> list[Value]:
            return [sums[k] + read(blocks[k], least * SUMS, SUMS)]

        return f.branch(more > others, last, lambda: [sums[k]])[0]

    for k, others in ((3, 0), (1, 1), (2, 2)):
        sums[k] = longer(k, others)
    a, b, c, d = paired(f, sums, kind.lanes)
    f.ret((a + b) + (c + _with_rest(f, x, n, d, read)))


def _of_block(f: Emitter, x: Value, vectors: Value, read: Read) -> Value:
    """The sums of a block of 8 to 16 vectors, lane by lane. Blocks are added one to the end before
    the next one is begun: the processor sees memory coming in one stream, and begins with the next
    sums while the last ones wait.

    In no loop: none ends where the processor expects it. Blocks of a row are nearly of one length,
    so of the branches of its binary form only the last ones vary.
    """
    least = count = _BLOCK // 2 // SUMS

    def added(total: Value, at: Value, count: int) -> list[Value]:
        for k in range(count):
            total = total + read(x, at + k * SUMS, SUMS)
        return [total, at + count * SUMS]

    def maybe(total: Value, at: Value, count: int) -> list[Value]:
        more = f.ne((vectors - least) & count, 0)
        return f.branch(more, lambda: added(total, at, count), lambda: [total, at])

    none = f.constant(I64, 0)
    total, at = added(read(x, none, SUMS), none + SUMS, least - 1)
    while count:
        total, at = maybe(total, at, count)
        count //= 2
    return total


def _read(
    f: Emitter, element: str, kind: Type, terms: str, mean: Value, x: Value, i: Value, lanes: int
) -> Value:  # fmt: skip
    v = f.convert(f.load(typed(element, lanes), f.at(x, i, element)), kind.element)
    if terms == "deviations":
        v = v - (f.splat(mean, lanes) if lanes > 1 else mean)
    if terms == "numbers":
        return f.select(f.isnan(v), f.constant(v.type, 0), v)
    return v * v if terms else v


def _with_rest(f: Emitter, x: Value, n: Value, total: Value, read: Read) -> Value:
    """The total and the terms behind the last whole vector."""
    parts = total.type.lanes

    def single(i: Value, totals: list[Value]) -> list[Value]:
        return [totals[0] + read(x, i, parts)]

    return f.loop(n & -SUMS, n, parts, single, [total], maybe_empty=True)[0]


def paired(f: Emitter, sums: list[Value], parts: int = 1) -> list[Value]:
    """The lanes of each vector, added in pairs until one is left: of numbers that have so many
    parts. Several vectors, a power of two, share each step.
    """
    held = [
        (v, [(k, i // parts, i % parts) for i in range(v.type.lanes)]) for k, v in enumerate(sums)
    ]
    while len(held) > 1 or len(held[0][1]) > parts * len(sums):
        held = [_pairs(f, *held[k : k + 2]) for k in range(0, len(held), 2)]
    ((v, lanes),) = held
    return [
        f.shuffle(v, None, [lanes.index((k, 0, part)) for part in range(parts)])
        for k in range(len(sums))
    ]


_Lanes = tuple[Value, list[tuple[int, int, int]]]  # and whose sum, term and part each one is


def _pairs(f: Emitter, x: _Lanes, y: _Lanes | None = None) -> _Lanes:
    """The sums of neighbouring terms; what stands in one block of registers is in one again."""
    (v, lanes), (w, more) = x, y or (None, [])
    block, register = (max(1, n // v.type.bytes) for n in (16, f.module.target.vector_bytes))
    both = lanes + more
    firsts = [i for i, (_, term, _) in enumerate(both) if term % 2 == 0]
    firsts.sort(key=lambda i: i % register // block)
    known = [both[i] for i in firsts]
    seconds = [both.index((k, term + 1, part)) for k, term, part in known]
    total = f.shuffle(v, w, firsts) + f.shuffle(v, w, seconds)
    return total, [(k, term // 2, part) for k, term, part in known]


def of_integers(f: Emitter, x: Value, n: Value, element: str, wide: str) -> Value:
    """The total, modulo the elements that it is made of."""
    lanes = f.module.target.vector_bytes // typed(wide).bytes

    def read(i: Value, lanes: int) -> Value:
        return f.convert(f.load(typed(element, lanes), f.at(x, i, element)), wide)

    def several(i: Value, held: list[Value]) -> list[Value]:
        places = [at + k * lanes for at in (i, i + apart) for k in range(_SIDE // 2)]
        return [v + read(at, lanes) for v, at in zip(held, places, strict=True)]

    def single(i: Value, held: list[Value]) -> list[Value]:
        return [held[0] + read(i, 1)]

    none = f.constant(typed(wide, lanes), 0)
    whole = n - f.rem(n, _SIDE * lanes)
    apart, step, stop = by_halves(f, whole, _SIDE * lanes, typed(element).bytes)
    held = f.loop(0, stop, step, several, [none] * _SIDE, maybe_empty=True)
    total = f.reduce(functools.reduce(f.add, held), f.add)
    return f.loop(whole, n, 1, single, [total], maybe_empty=True)[0]
