"""Sums of many numbers that lie side by side, in NumPy's order and so with its bits, in vectors.

NumPy halves a row of floats down to 128 terms, and adds those in eight sums side by side, number by
number. The parts of complex numbers are such terms, and have sums of their own. Integers have no
order.

Note [Four blocks]
    A block alone waits for its own sums, so four are added by turns; but not of what comes from
    memory, which the processor then does not see coming: it follows one place after the other.

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
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.runners import runner
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.tasks import Units, deal_out_units
from funct.kernels.dtypes import sum_dtype
from funct.kernels.llvm import I64, PTR, Emitter, Module, Type, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LONG", "PARTS", "SUMS", "of_long_rows", "paired", "text"]

LONG = 1 << 11  # elements from which on a call costs less than what it saves
SUMS = 8

_FIELDS = Fields(("x", "y", "means", "tasks", "rows", "length", "depth"))
_rest = struct.Struct(f"{len(_FIELDS) - 3}q").pack
_TO_VECTORS = SUMS.bit_length() - 1
_BLOCK = 128  # terms that are no more halved
_FOUR = (272, 512, 487)  # terms of four blocks: from, to, and to where the last vector is not whole
_NEAR, _LONGEST = 1 << 20, 64  # bytes of numbers; of vectors
_TASK = 1 << 15  # elements that are worth a task,
_PART = 1 << 17  # and a part of a row: Python adds the sums of parts up
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
    y = fresh((*lead, 1 << depth) if depth else lead, dtype)
    four = element[0] == "f" and x.nbytes <= _near()
    _entry(element, parts, terms, four)(x, y, x if means is None else means, rest)
    for _ in range(depth):
        y = y[..., ::2] + y[..., 1::2]
    y = y[..., 0] if depth else y
    return y if lead else y[()]


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
def _near() -> int:
    """Bytes up to which there are four blocks at a time: measured, and with long vectors less."""
    return _NEAR if host().vector_bytes == _LONGEST else host().cache_bytes // 2


@functools.cache
def _entry(element: str, parts: int, terms: str, four: bool) -> Any:
    code = printed(text, element, parts, terms, four, host()).keep()
    return runner(code.address("reduce"))


def text(element: str, parts: int, terms: str, four: bool, target: Host) -> str:
    """`reduce(job)` of rows of numbers that have so many parts, or of other terms of theirs. four:
    of floats, see Note [Four blocks].
    """
    module = Module(target)
    wide = element if element[0] == "f" else element[0] + "64"
    kind = typed(wide, parts)
    if four:
        _define_four_blocks(module, kind, terms)
    several = _of_blocks if four else _of_halves
    f = module.function("total", _given(wide), kind, local=True)
    x, n, mean = f.arguments
    if element[0] == "f":
        (found,) = f.branch(n <= _BLOCK, lambda: [_of_block(f, x, n, mean, kind, terms)],
                            lambda: [several(f, x, n, mean, kind)])  # fmt: skip
    else:
        found = _of_integers(f, x, n, element, wide)
    f.ret(found)

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
            found = f.call("total", kind, [f.at(job.pointer("x"), first, element), n, mean])
            assert found is not None
            f.store(found + 0, f.at(job.pointer("y"), r * parts, wide))  # of -0.0 alone it is 0

        return job.rows << job.depth, row

    deal_out_units(module, "reduce", _FIELDS, units)
    return module.text()


def _given(element: str) -> list[tuple[str, Type]]:
    """What a function of terms is given: where they begin, how many there are, and their mean."""
    return [("x", PTR), ("n", I64), ("mean", typed(element))]


def _of_blocks(f: Emitter, x: Value, n: Value, mean: Value, kind: Type) -> Value:
    """Of more than one: four are added at once, others half by half."""
    least, most, rest = _FOUR
    four = (n >= least) & (n <= f.select(f.eq(n & (SUMS - 1), 0), most, f.constant(I64, rest)))

    def together() -> list[Value]:
        found = f.call("four", kind, [x, n, mean])
        assert found is not None
        return [found]

    return f.branch(four, together, lambda: [_of_halves(f, x, n, mean, kind)])[0]


def _of_halves(f: Emitter, x: Value, n: Value, mean: Value, kind: Type) -> Value:
    half = f.div(n, 2) & -SUMS
    low = f.call("total", kind, [x, half, mean])
    high = f.call("total", kind, [f.at(x, half, kind.element), n - half, mean])
    assert low is not None
    assert high is not None
    return low + high


def _define_four_blocks(module: Module, kind: Type, terms: str) -> None:
    """`four(x, n, mean)`: the total of four blocks of 8 to 16 vectors, whose sums do not wait for
    each other.

    All have as many vectors as the first, or one more: where there is none, -0 is added, which
    changes no sum, rather than that a branch goes now this way, now that.
    """
    element, parts = kind.element, kind.lanes
    f = module.function("four", _given(element), kind, local=True)
    x, n, mean = f.arguments
    vectors = n >> _TO_VECTORS
    low = vectors >> 1
    shared = low >> 1
    starts = [f.constant(I64, 0), shared, low, low + ((vectors - low) >> 1)]
    ends = [*starts[1:], vectors]
    blocks = [f.at(x, start * SUMS, element) for start in starts]
    read = functools.partial(_read, f, element, terms, mean)
    sums, at = _side_by_side(f, blocks, shared, read, element, n)
    nothing = f.address(module.table(typed(element), [-0.0] * SUMS))
    for k in range(1, 4):
        more = ends[k] - starts[k] - shared
        v = read(f.select(f.ne(more, 0), f.at(blocks[k], at, element), nothing))
        if terms == "deviations":  # of which none is -0
            v = _masked(f, v, -more)
        sums[k] = sums[k] + v
    each = paired(f, f.joined(sums), parts, left=4)
    *three, last = [f.piece(each, k * parts, parts) for k in range(4)]
    last = _with_rest(f, x, vectors * SUMS, n, last, read)
    f.ret((three[0] + three[1]) + (three[2] + last))


def _masked(f: Emitter, v: Value, mask: Value) -> Value:
    """v where the mask is -1, zeros where it is 0."""
    bits = typed(f"i{8 * v.type.bytes}", v.type.lanes)
    kept = f.splat(f.convert(mask, bits.element), bits.lanes)
    return f.bitcast(f.bitcast(v, bits) & kept, v.type)


def _of_block(f: Emitter, x: Value, n: Value, mean: Value, kind: Type, terms: str) -> Value:
    """Of 64 terms or more."""
    vectors = n >> _TO_VECTORS
    read = functools.partial(_read, f, kind.element, terms, mean)
    (sums,), _ = _side_by_side(f, [x], vectors, read, kind.element)
    return _with_rest(f, x, vectors * SUMS, n, paired(f, sums, kind.lanes), read)


def _read(
    f: Emitter, element: str, terms: str, mean: Value, at: Value, lanes: int = SUMS
) -> Value:  # fmt: skip
    v = f.load(typed(element, lanes), at)
    if terms == "deviations":
        v = v - (f.splat(mean, lanes) if lanes > 1 else mean)
    if terms == "numbers":
        return f.select(f.isnan(v), f.constant(v.type, 0), v)
    return v * v if terms else v


def _side_by_side(
    f: Emitter, blocks: list[Value], vectors: Value, read: Callable[..., Value], element: str,
    ahead: Value | None = None,
) -> tuple[list[Value], Value]:  # fmt: skip
    """The sums of so many vectors of each block, 8 to 16, and which element comes after them.

    In no loop: none ends where the processor expects it. Blocks of a row are nearly of one length,
    so of the branches of its binary form only the last ones vary. ahead: how far from here is what
    is wanted next, which processors do not see coming where several places are read by turns.
    """
    line = 64 // typed(element).bytes

    def added(sums: list[Value], at: Value, count: int, first: int = 0) -> list[Value]:
        for k in range(first, count):
            places = [f.at(block, at + k * SUMS, element) for block in blocks]
            if ahead is not None and k * SUMS % line == 0:
                for place in places:
                    f.prefetch(f.at(place, ahead, element))
            sums = [v + read(place) for v, place in zip(sums, places, strict=True)]
        return sums

    def maybe(sums: list[Value], at: Value, count: int) -> list[Value]:
        return f.branch(
            f.ne((vectors - least) & count, 0),
            lambda: [*added(sums, at, count), at + count * SUMS],
            lambda: [*sums, at],
        )

    least = count = _BLOCK // 2 // SUMS
    none = f.constant(I64, 0)
    sums, at = added([read(block) for block in blocks], none, least, 1), none + least * SUMS
    while count:
        *sums, at = maybe(sums, at, count)
        count //= 2
    return sums, at


def _with_rest(
    f: Emitter, x: Value, start: Value, n: Value, total: Value, read: Callable[..., Value]
) -> Value:
    """The total and the terms from there on, of which there are less than a vector has."""
    kind = total.type

    def single(i: Value, totals: list[Value]) -> list[Value]:
        return [totals[0] + read(f.at(x, i, kind.element), kind.lanes)]

    return f.loop(start, n, kind.lanes, single, [total], maybe_empty=True)[0]


def paired(f: Emitter, sums: Value, parts: int = 1, left: int = 1) -> Value:
    """The lanes of a vector, added in pairs until so many are left: of numbers that have so many
    parts.
    """
    while (lanes := sums.type.lanes) > left * parts:
        firsts = [k for k in range(lanes) if k // parts % 2 == 0]
        sums = f.shuffle(sums, None, firsts) + f.shuffle(sums, None, [k + parts for k in firsts])
    return sums


def _of_integers(f: Emitter, x: Value, n: Value, element: str, wide: str) -> Value:
    lanes = f.module.target.vector_bytes // typed(wide).bytes

    def read(i: Value, lanes: int) -> Value:
        return f.convert(f.load(typed(element, lanes), f.at(x, i, element)), wide)

    def several(i: Value, held: list[Value]) -> list[Value]:
        return [v + read(i + k * lanes, lanes) for k, v in enumerate(held)]

    def single(i: Value, held: list[Value]) -> list[Value]:
        return [held[0] + read(i, 1)]

    none = f.constant(typed(wide, lanes), 0)
    whole = n - f.rem(n, _SIDE * lanes)
    held = f.loop(0, whole, _SIDE * lanes, several, [none] * _SIDE, maybe_empty=True)
    total = f.reduce(functools.reduce(f.add, held), f.add)
    return f.loop(whole, n, 1, single, [total], maybe_empty=True)[0]
