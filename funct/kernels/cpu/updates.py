"""One pass over all parameters of a model: an optimizer's step, and the sum of squares.

An update is a function of vectors, `rule(e, numbers, p, g, ...) -> (new p, ...)`, that is printed
once for each key and dtype; the squares of g are summed while it is there. All arrays are cut into
chunks of one size, which are the tasks of one parallel loop; what a chunk computes depends on
nothing else, so the bits are those of NumPy's operations in the rule's order for any number of
threads.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from funct.device import PARALLEL, Code, assemble
from funct.device.memory import serve
from funct.kernels.cpu.calls import DATA, DENSE, Entries, readable
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.record import address
from funct.kernels.llvm import F64, I64, PTR, Emitter, Module, Value, typed

__all__ = ["sum_of_squares", "update"]

Rule = Callable[..., Sequence[Any]]

CHUNK = 1 << 14  # elements of a task
_ALONE = 1 << 16  # elements up to which one thread is as fast
_CALLS = 512
_STREAMED = 10 << 20  # bytes of results from which on they do not stay in the caches
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_INT, _OBJECT, _DOUBLE = map(np.dtype, (np.int64, object, np.float64))
_ELEMENTS: dict[np.dtype[Any], str] = {np.dtype(np.float32): "f32", _DOUBLE: "f64"}


class _Pass:
    """A printed loop over chunks of arrays of one dtype. Its data: the table of tasks (leaf, first
    element, count), the objects of all arrays column by column, the number of leaves, numbers,
    whether to stream, a place for what each task sums; and how many tasks there are."""

    def __init__(self, code: Code, dtype: np.dtype[Any]) -> None:
        self._together = _RUN(code.address("together"))
        entries = Entries("alone", 7, _refuse)
        entries.add((_INT, _OBJECT, int, dtype, int, _DOUBLE, int), code.address("alone"), code)
        self._alone = entries.call

    def __call__(
        self, columns: Sequence[Sequence[Any]], sizes: list[int], numbers: Any, streamed: bool
    ) -> Any:
        """Run it over C-contiguous arrays; the sum of what the tasks leave."""
        tasks, leaves, elements = _tasks(tuple(sizes)), len(sizes), sum(sizes)
        count = len(tasks)
        parts = np.empty(count)
        objects = np.fromiter(chain(*columns), _OBJECT, len(columns) * leaves)
        if elements <= _ALONE:  # a call through ctypes costs more, and lets other threads run
            self._alone(tasks, objects, leaves, numbers, int(streamed), parts, count)
            return parts.item(0)
        given = (
            address(tasks), address(objects), leaves, address(numbers), streamed, address(parts)
        )  # fmt: skip
        data = np.array(given, np.int64)
        self._together(address(data), count)
        return np.add.reduce(parts)


def _refuse(*args: Any) -> int:
    raise TypeError(f"no pass over chunks takes {args}")


@functools.lru_cache(maxsize=256)
def _tasks(sizes: tuple[int, ...]) -> Any:
    """A row (leaf, first element, number of elements) for each chunk, and one at least."""
    rows = [
        (leaf, start, min(CHUNK, size - start))
        for leaf, size in enumerate(sizes)
        for start in range(0, size, CHUNK)
    ]
    return np.array(rows or [(0, 0, 0)], np.int64)


def update(
    rule: Rule, key: Hashable, numbers: Sequence[float], columns: list[list[Any]], results: int
) -> Any:
    """rule on every element of the leaves: for each of its results, a list of new arrays; and the
    sum of the squares of the second operand, in float64.

    rule(e, numbers, *operands) gives `results` values and depends on key alone. columns: for each
    operand its arrays, equal in shape from operand to operand, all float32 or all float64.
    """
    first = columns[0]
    sizes = [a.size for a in first]
    if not readable() or not ready(_work(sizes)):
        return NotImplemented
    dtype = first[0].dtype
    loop = _updating(rule, key, len(columns), len(numbers), results, _ELEMENTS[dtype])
    columns = [_in_place(column) for column in columns]
    size = results * sum(sizes) * dtype.itemsize
    serve(size)
    shapes, empty = [a.shape for a in first], np.empty
    new = [[empty(shape, dtype) for shape in shapes] for _ in range(results)]
    squares = loop([*columns, *new], sizes, np.asarray(numbers, dtype), size >= _STREAMED)
    return new, squares


def sum_of_squares(leaves: list[Any]) -> Any:
    """Of all elements together, in float64 and in an order that is always the same; the leaves are
    all float32 or all float64.
    """
    sizes = [a.size for a in leaves]
    if not readable() or not ready(_work(sizes)):
        return NotImplemented
    dtype = leaves[0].dtype
    return _squaring(_ELEMENTS[dtype])([_in_place(leaves)], sizes, np.zeros(0, dtype), False)


def _work(sizes: list[int]) -> int:
    """Elements, and those that NumPy's calls for each array cost like."""
    return sum(sizes) + _CALLS * len(sizes)


def _in_place(column: list[Any]) -> list[Any]:
    """The arrays, with their elements one after the other, where a load may take them."""
    if all([a.flags.num & DENSE == DENSE for a in column]):  # noqa: C419  a list is faster here
        return column
    return [
        a if a.flags.num & DENSE == DENSE else np.require(a, requirements=("C", "A"))
        for a in column
    ]


_printed: dict[Hashable, _Pass] = {}


def _updating(
    rule: Rule, key: Hashable, operands: int, numbers: int, results: int, element: str
) -> _Pass:
    """The loop that applies the rule."""
    known = _printed.get((key, element))
    if known is None:
        module, f, chunk = _begun(element)
        given = f.load(PTR, f.at(chunk.data, 3, "ptr"))
        each = [f.load(typed(element), f.at(given, k, element)) for k in range(numbers)]
        spread = [f.splat(x, chunk.type.lanes) for x in each]
        sources = [chunk.column(c) for c in range(operands)]
        places = [chunk.column(operands + c) for c in range(results)]

        def sweep(streaming: bool) -> list[Value]:
            def step(i: Value, mask: Value | None, total: Value) -> Value:
                values = [f.load(chunk.type, f.at(p, i, element), mask) for p in sources]
                for new, p in zip(rule(f, spread, *values), places, strict=True):
                    f.store(new, f.at(p, i, element), mask, streaming=streaming and mask is None)
                return _squared(f, values[1], total)

            return [chunk.sweep(step)]

        wanted = f.ne(f.load(I64, f.at(chunk.data, 4, "i64")), 0)
        (total,) = f.branch(wanted & f.aligned(places), lambda: sweep(True), lambda: sweep(False))
        chunk.leave(total)
        known = _printed[key, element] = _finished(module, f, element)
    return known


@functools.cache
def _squaring(element: str) -> _Pass:
    """The loop that leaves the sums of squares."""
    module, f, chunk = _begun(element)
    source, lanes = chunk.column(0), chunk.type.lanes

    def added(total: Value, i: Value, mask: Value | None) -> Value:
        return _squared(f, f.load(chunk.type, f.at(source, i, element), mask), total)

    def four(i: Value, totals: list[Value]) -> list[Value]:
        return [added(t, i + k * lanes, None) for k, t in enumerate(totals)]

    def rest(i: Value, totals: list[Value]) -> list[Value]:
        return [added(totals[0], i, f.first_lanes(lanes, chunk.count - i))]

    whole = chunk.count & -4 * lanes
    one, *others = f.loop(0, whole, 4 * lanes, four, [chunk.zero] * 4, maybe_empty=True)
    (one,) = f.loop(whole, chunk.count, lanes, rest, [one], maybe_empty=True)
    chunk.leave(functools.reduce(f.add, [one, *others]))
    return _finished(module, f, element)


def _squared(f: Emitter, x: Value, total: Value) -> Value:
    """The total with the squares of x."""
    wide = f.convert(x, "f64")
    return f.fma(wide, wide, total)


class _Chunk:
    """What a task knows, as values of the text."""

    def __init__(self, f: Emitter, element: str) -> None:
        self.f, self.element = f, element
        self.data, self.task = f.arguments
        self.type = typed(element, f.module.target.vector_bytes // typed(element).bytes)
        rows = f.load(PTR, f.at(self.data, 0, "ptr"))
        row = [f.load(I64, f.at(rows, self.task * 3 + k, "i64")) for k in range(3)]
        self._leaf, self._start, self.count = row
        self._objects = f.load(PTR, f.at(self.data, 1, "ptr"))
        self._leaves = f.load(I64, f.at(self.data, 2, "i64"))
        self.zero = f.constant(F64.of(self.type.lanes), 0.0)

    def column(self, c: int) -> Value:
        """The address of the chunk in a column's array."""
        f = self.f
        owner = f.load(PTR, f.at(self._objects, self._leaves * c + self._leaf, "ptr"))
        return f.at(f.load(PTR, f.at(owner, DATA, "i8")), self._start, self.element)

    def sweep(self, step: Callable[[Value, Value | None, Value], Value]) -> Value:
        """Whole vectors, then what is left under a mask: `step(index, mask, total) -> total`."""
        f, lanes = self.f, self.type.lanes
        whole = self.count & -lanes
        (total,) = f.loop(
            0, whole, lanes, lambda i, held: [step(i, None, *held)], [self.zero], maybe_empty=True
        )
        mask = f.first_lanes(lanes, self.count - whole)
        some = f.compare("lt", whole, self.count)
        return f.branch(some, lambda: [step(whole, mask, total)], lambda: [total])[0]

    def leave(self, total: Value) -> None:
        """The lanes' sum is the part of this task."""
        f = self.f
        parts = f.load(PTR, f.at(self.data, 5, "ptr"))
        f.store(f.reduce(total, f.add), f.at(parts, self.task, "f64"))


def _begun(element: str) -> tuple[Module, Emitter, _Chunk]:
    module = Module()
    f = module.function("chunk", [("data", PTR), ("task", I64)], local=True)
    return module, f, _Chunk(f, element)


def _finished(module: Module, f: Emitter, element: str) -> _Pass:
    """The chunks one after the other, whose sum is then the first part, and on all threads."""
    f.ret()
    alone = module.function("alone", [("data", PTR)], I64)
    (data,) = alone.arguments
    parts = alone.load(PTR, alone.at(data, 5, "ptr"))

    def body(i: Value, held: list[Value]) -> list[Value]:
        alone.call("chunk", None, [data, i])
        return [held[0] + alone.load(F64, alone.at(parts, i, "f64"))]

    tasks, zero = alone.load(I64, alone.at(data, 6, "i64")), alone.constant(F64, 0.0)
    (total,) = alone.loop(0, tasks, 1, body, [zero], maybe_empty=True)
    alone.store(total, alone.at(parts, 0, "f64"))
    alone.ret(alone.constant(I64, 0))
    together = module.function("together", [("data", PTR), ("tasks", I64)])
    data, tasks = together.arguments
    module.declare("@funct_parallel", PARALLEL)
    together.line(f"call void @funct_parallel(ptr @chunk, {data!r}, {tasks!r})")
    together.ret()
    dtype = next(d for d, name in _ELEMENTS.items() if name == element)
    return _Pass(assemble(module.text()), dtype)
