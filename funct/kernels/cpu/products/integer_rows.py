"""Products of integers that tiles are not worth: of few rows or columns, and small ones.

Both operands are read where they lie. Columns of the result stand in the lanes or, where those of
the right operand are what lies in memory, terms of its sums. What has fewer columns than lanes, and
more rows, is the transpose of such a product. Sums wrap around, so those of bytes are of 16 bits.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import PARALLEL, Host, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.products.tiled import Laid, find_products, laid
from funct.kernels.cpu.runners import runner
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["integer_matmul"]

_SUM = {"i8": "i16", "i16": "i16", "i32": "i32", "i64": "i64"}
_ACROSS = ((4, 3), (2, 4), (1, 8))  # rows, and vectors of each, whose sums are held together
_ALONG = ((2, 4), (1, 4))  # rows, and columns
_PAGE, _KEPT, _BESIDE = 512, 2048, 8  # bytes of rows that lie far apart, sums, and rows at a time
_SHORT = 2  # vectors of terms that are worth reading along them
_TASK = 1 << 18  # multiplications that are worth a task
_WORDS = 9  # of a task, behind three addresses
# rows or columns that are worth numbers in double precision and BLAS, and multiplications
_MANY, _LARGE = 8, 1 << 16


class _Plan(Struct, frozen=True):
    """What follows from shapes and strides. swapped: whether it is the transpose that is computed.
    copied: which of its operands are made dense before.
    """

    run: Callable[..., None]
    words: bytes
    shape: tuple[int, ...]
    swapped: bool
    copied: tuple[bool, bool]


def integer_matmul(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """See `funct.kernels.linalg.products.integer_matmul`."""
    if y.ndim == 2 < x.ndim and x.flags.c_contiguous and x.size:
        flat = integer_matmul(x.reshape(-1, x.shape[-1]), y)
        return flat if flat is NotImplemented else flat.reshape(*x.shape[:-1], y.shape[1])
    plan = _plan(x.shape, y.shape, x.strides, y.strides, x.itemsize)
    if plan is None:
        return NotImplemented
    if plan.swapped:
        x, y = y.swapaxes(-1, -2), x.swapaxes(-1, -2)
    x, y = (np.ascontiguousarray(v) if c else v for v, c in zip((x, y), plan.copied))
    out = memory.fresh(plan.shape, x.dtype)
    plan.run(x, y, out, plan.words)
    return np.ascontiguousarray(out.swapaxes(-1, -2)) if plan.swapped else out


@functools.lru_cache(512)
def _plan(
    x: tuple[int, ...], y: tuple[int, ...], x_strides: tuple[int, ...], y_strides: tuple[int, ...],
    byte: int,
) -> _Plan | None:  # fmt: skip
    """None where there are no elements, or where double precision may do better."""
    m, n, k = x[-2], y[-1], x[-1]
    if 0 in (*x, *y) or (byte == 8 and min(m, n) >= _MANY and m * n * k > _LARGE):
        return None
    element = f"i{8 * byte}"
    lanes = host().vector_bytes // typed(_SUM[element]).bytes
    shapes, strides = [x, y], [x_strides, y_strides]
    swapped = n < min(m, lanes)
    if swapped:
        m, n = n, m
        shapes, strides = ([(*v[:-2], v[-1], v[-2]) for v in w[::-1]] for w in (shapes, strides))
    right = _right(strides[1][-2:], k, n, byte)
    if right is not None and right.turned and n > 1 and k < _SHORT * lanes:
        right = None
    along = right is not None and right.turned
    copied = (
        _is_odd(strides[0], byte) or (along and k > 1 and strides[0][-1] != byte),
        right is None or _is_odd(strides[1], byte),
    )
    if copied[1]:
        right = Laid(False, n)
    assert right is not None
    strides = [_dense(w, byte) if c else v for v, w, c in zip(strides, shapes, copied)]
    stack = np.broadcast_shapes(x[:-2], y[:-2])
    count, work = math.prod(stack), m * n * k
    several = max(1, min(host().cores, work // _TASK, n // lanes))
    panel = -(-n // (several * lanes)) * lanes
    several = -(-n // panel)
    steps = [[s // byte for s in v] for v in strides]
    words = [m, n, k, *steps[0][-2:], right.leading, panel, several, m * n]
    axes = len(stack) if count > 1 else 0
    for axis in range(axes):
        words += [math.prod(stack[axis + 1 :]), stack[axis]]
        for own, step in zip(shapes, steps):
            at = axis - len(stack) + len(own) - 2
            words.append(step[at] if at >= 0 and own[at] > 1 else 0)
    words.append(several * count)
    run = _runner(element, right.turned, axes)
    packed = struct.pack(f"{len(words)}q", *words)
    return _Plan(run, packed, (*stack, m, n), swapped, copied)


def _right(strides: tuple[int, ...], k: int, n: int, byte: int) -> Laid | None:
    """How the right operand lies; one column is read along its terms."""
    return Laid(True, k) if n == 1 and strides[0] == byte else laid(strides, k, n, byte)


def _is_odd(strides: tuple[int, ...], byte: int) -> bool:
    return any(s % byte for s in strides)


def _dense(shape: tuple[int, ...], byte: int) -> tuple[int, ...]:
    return tuple(byte * math.prod(shape[i + 1 :]) for i in range(len(shape)))


@functools.cache
def _runner(element: str, turned: bool, axes: int) -> Callable[..., None]:
    return runner(printed(_text, element, turned, axes, host()).keep().address("multiply"))


def _text(element: str, turned: bool, axes: int, target: Host) -> str:
    """`multiply(job)`: all tasks. The job: both operands, the result; rows, columns, terms; from
    row to row of the left one, and from term to term; leading dimension of the right one; columns
    of a task, tasks of a product, elements of its result; the stack's axes (`find_products`);
    tasks.
    """
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    f = module.function("task", [("frame", PTR), ("task", I64)], local=True)
    frame, task = f.arguments
    x, y, out = f.pointers(frame, 0, 3)
    m, n, k, down, along, leading, panel, several, size = f.words(frame, 3, _WORDS)
    number = f.div(task, several)
    stack = [f.words(frame, 3 + _WORDS + 4 * axis, 4) for axis in range(axes)]
    x, y = find_products(f, number, stack, (x, y), element)
    out = f.at(out, number * size, element)
    start = (task - number * several) * panel
    stop = f.min(start + panel, n)
    rows = _Rows(f, element, (x, y, out), (down, along, leading, n), k)
    (rows.along if turned else rows.across)(m, start, stop)
    f.ret()
    f = module.function("multiply", [("job", PTR)])
    (job,) = f.arguments
    tasks = f.word(job, 3 + _WORDS + 4 * axes)
    f.line(f"call void @funct_parallel(ptr @task, {job!r}, {tasks!r})")
    f.ret()
    return module.text()


class _Rows:
    """Prints the rows of a product. steps: of the left operand from row to row and from term to
    term, of the right one, and of the result.
    """

    def __init__(
        self, f: Emitter, element: str, places: tuple[Value, Value, Value],
        steps: tuple[Value, Value, Value, Value], terms: Value,
    ) -> None:  # fmt: skip
        self.f, self.element, self.total = f, element, _SUM[element]
        self.x, self.y, self.out = places
        self.down, self.step, self.leading, self.lower = steps
        self.terms = terms
        self.lanes = f.module.target.vector_bytes // typed(self.total).bytes

    def load(self, pointer: Value, lanes: int = 1) -> Value:
        """Elements as numbers of the sums."""
        return self.f.convert(self.f.load(typed(self.element, lanes), pointer), self.total)

    def store(self, x: Value, row: Value, column: Value) -> None:
        """Elements of the result."""
        to = self.f.at(self.out, row * self.lower + column, self.element)
        self.f.store(self.f.convert(x, self.element), to)

    def each_rows(self, count: Value, groups: tuple[tuple[int, int], ...], body: Any) -> None:
        """body(first, rows, how much of each) for all rows."""
        first: Value | int = 0
        for rows, wide in groups:
            stop = count - self.f.rem(count, rows)
            each(self.f, first, stop, functools.partial(body, rows=rows, wide=wide), rows)
            first = stop

    def across(self, count: Value, start: Value, stop: Value) -> None:
        """Columns in the lanes; the last vector takes some again that the one before has."""
        f, lanes = self.f, self.lanes

        def some(i: Value, rows: int, wide: int) -> None:
            whole = stop - f.rem(stop - start, wide * lanes)

            def blocks() -> None:
                each(f, start, whole, lambda j: self._block(i, rows, j, lanes, wide), wide * lanes)

            if rows > 1:
                blocks()
            else:
                far = self.leading >= _PAGE // typed(self.element).bytes
                f.when(~far, blocks)
                f.when(far, lambda: self._strips(i, start, whole))
            f.when(whole < stop, lambda: rest(i, rows, whole, lanes))

        def rest(i: Value, rows: int, begin: Value, lanes: int) -> None:
            def one(j: Value) -> None:
                self._block(i, rows, f.min(j, stop - lanes), lanes, 1)

            if lanes == 1:
                each(f, begin, stop, one)
                return
            fits = stop - start >= lanes
            f.when(fits, lambda: each(f, begin, stop, one, lanes))
            f.when(~fits, lambda: rest(i, rows, begin, lanes // 2))

        self.each_rows(count, _ACROSS, some)

    def _block(self, i: Value, rows: int, j: Value, lanes: int, vectors: int) -> None:
        f = self.f
        lines = [f.at(self.x, (i + r) * self.down, self.element) for r in range(rows)]

        def term(t: Value, held: list[Value]) -> list[Value]:
            here = f.at(self.y, t * self.leading + j, self.element)
            right = [self.load(f.at(here, v * lanes, self.element), lanes) for v in range(vectors)]
            left = [self.load(f.at(p, t * self.step, self.element)) for p in lines]
            both = [a * b for a in (f.splat(x, lanes) for x in left) for b in right]
            return [s + p for s, p in zip(held, both, strict=True)]

        zero = f.constant(typed(self.total, lanes), 0)
        sums = f.loop(0, self.terms, 1, term, [zero] * (rows * vectors))
        for place, s in enumerate(sums):
            self.store(s, i + place // vectors, j + place % vectors * lanes)

    def _strips(self, i: Value, start: Value, stop: Value) -> None:
        """One row where those of the right operand lie pages apart: runs of some of them are read
        one beside the other, and sums are kept in memory between them.
        """
        f, lanes = self.f, self.lanes
        kept = f.allocate(typed(self.total), _KEPT)
        line = f.at(self.x, i * self.down, self.element)
        vector, vectors = typed(self.total, lanes), 2 if self.element == "i8" else 1

        def strip(o: Value) -> None:
            end = f.min(o + _KEPT, stop)

            def walk(t: Value, beside: int) -> None:
                left = [
                    f.splat(self.load(f.at(line, (t + r) * self.step, self.element)), lanes)
                    for r in range(beside)
                ]
                rows = [f.at(self.y, (t + r) * self.leading, self.element) for r in range(beside)]

                def some(j: Value) -> None:
                    places = [f.at(kept, j - o + v * lanes, self.total) for v in range(vectors)]
                    sums = [f.load(vector, place) for place in places]
                    for a, row in zip(left, rows, strict=True):
                        read = self._apart(f.at(row, j, self.element))
                        sums = [s + a * v for s, v in zip(sums, read, strict=True)]
                    for s, place in zip(sums, places, strict=True):
                        f.store(s, place)

                each(f, o, end, some, vectors * lanes)

            def clear(j: Value) -> None:
                f.store(f.constant(vector, 0), f.at(kept, j - o, self.total))

            def written(j: Value) -> None:
                places = [f.at(kept, j - o + v * lanes, self.total) for v in range(vectors)]
                total, *odd = (f.load(vector, place) for place in places)
                if odd:
                    both = (total & 0xFF) | (odd[0] << 8)
                    to = f.at(self.out, i * self.lower + j, self.element)
                    f.store(f.bitcast(both, typed(self.element, 2 * lanes)), to)
                else:
                    self.store(total, i, j)

            each(f, o, end, clear, lanes)
            many = self.terms - f.rem(self.terms, _BESIDE)
            each(f, 0, many, lambda t: walk(t, _BESIDE), _BESIDE)
            each(f, many, self.terms, lambda t: walk(t, 1))
            each(f, o, end, written, vectors * lanes)

        each(f, start, stop, strip, _KEPT)

    def _apart(self, place: Value) -> list[Value]:
        """What meets a vector of sums, or two: of bytes first the even ones, then the odd ones,
        where they stand in words, whose upper bytes are in no sum's way.
        """
        if self.element != "i8":
            return [self.load(place, self.lanes)]
        read = self.f.load(typed("i8", 2 * self.lanes), place)
        words = self.f.bitcast(read, typed("i16", self.lanes))
        return [words, words >> 8]

    def along(self, count: Value, start: Value, stop: Value) -> None:
        """Terms in the lanes."""

        def some(i: Value, rows: int, wide: int) -> None:
            middle = stop - self.f.rem(stop - start, wide)
            each(self.f, start, middle, lambda j: self._sums(i, rows, j, wide), wide)
            each(self.f, middle, stop, lambda j: self._sums(i, rows, j, 1))

        self.each_rows(count, _ALONG, some)

    def _sums(self, i: Value, rows: int, j: Value, columns: int) -> None:
        f = self.f
        xs = [f.at(self.x, (i + r) * self.down, self.element) for r in range(rows)]
        ys = [f.at(self.y, (j + c) * self.leading, self.element) for c in range(columns)]

        def term(t: Value, held: list[Value], lanes: int) -> list[Value]:
            left, right = (
                [self.load(f.at(p, t, self.element), lanes) for p in given] for given in (xs, ys)
            )
            both = [a * b for a in left for b in right]
            return [s + p for s, p in zip(held, both, strict=True)]

        whole = self.terms - f.rem(self.terms, self.lanes)
        zero = f.constant(typed(self.total, self.lanes), 0)
        many = functools.partial(term, lanes=self.lanes)
        held = f.loop(0, whole, self.lanes, many, [zero] * (rows * columns), maybe_empty=True)
        sums = [f.reduce(s, f.add) for s in held]
        one = functools.partial(term, lanes=1)
        sums = f.loop(whole, self.terms, 1, one, sums, maybe_empty=True)
        for place, s in enumerate(sums):
            self.store(s, i + place // columns, j + place % columns)
