"""One pass over all parameters of a model: an optimizer's step, and the sum of squares.

An update is a function of vectors, `rule(e, numbers, p, g, ...) -> (new p, ...)`, that is printed
once for each key and dtype; the squares of g are summed while it is there. All arrays are cut into
chunks of one size, which are the tasks of one parallel loop; what a chunk computes depends on
nothing else, so the bits are those of NumPy's operations in the rule's order for any number of
threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from funct.device import PARALLEL, assemble
from funct.device.memory import is_serving, serve
from funct.device.printed import printed
from funct.kernels.cpu.calls import DATA, DENSE, builtin, readable
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.updates_text import pass_text
from funct.kernels.llvm import F64, I64, PTR, Emitter, Module, Value, typed

__all__ = ["sum_of_squares", "update"]

Rule = Callable[..., Sequence[Any]]

CHUNK = 1 << 14  # elements of a task
_ALONE = 1 << 16  # elements up to which one thread is as fast
_CALLS = 512
_STREAMED = 10 << 20  # bytes of results from which on they do not stay in the caches
_ELEMENTS = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}

Pass = Callable[..., Any]  # `updates_text.py` says of what


def update(
    rule: Rule, key: Hashable, numbers: Sequence[float], columns: list[list[Any]], results: int
) -> Any:
    """rule on every element of the leaves: for each of its results, a list of new arrays; and the
    sum of the squares of the second operand, in float64. None where a leaf's arrays differ in shape
    or dtype.

    rule(e, numbers, *operands) gives `results` values and depends on key alone. columns: for each
    operand its arrays, all float32 or all float64.
    """
    dtype = columns[0][0].dtype
    known = _printed.get((key, dtype))
    if known is None:
        if not _pays(columns[0]):
            return NotImplemented
        known = _updating(rule, key, len(columns), len(numbers), results, dtype)
    if not is_serving():
        serve(results * sum([a.nbytes for a in columns[0]]))
    told = np.asarray(numbers, dtype)
    found = known(*columns, told)
    if found is None:
        found = known(*map(_in_place, columns), told)
        if found is None:
            return None
    return found[:-1], found[-1]


def sum_of_squares(leaves: list[Any]) -> Any:
    """Of all elements together, in float64 and in an order that is always the same; the leaves are
    all float32 or all float64.
    """
    if not _pays(leaves):
        return NotImplemented
    dtype = leaves[0].dtype
    return _squaring(dtype)(_in_place(leaves), np.zeros(0, dtype))[0]


def _pays(leaves: list[Any]) -> bool:
    """Whether to load LLVM for elements, and what NumPy's calls for each array cost like."""
    return readable() and ready(sum([a.size for a in leaves]) + _CALLS * len(leaves))


def _in_place(column: list[Any]) -> list[Any]:
    """The arrays, with their elements one after the other, where a load may take them."""
    return [
        a if a.flags.num & DENSE == DENSE else np.require(a, requirements=("C", "A"))
        for a in column
    ]


_printed: dict[Hashable, Pass] = {}


def _updating(
    rule: Rule, key: Hashable, operands: int, numbers: int, results: int, dtype: np.dtype[Any]
) -> Pass:
    """The loop that applies the rule."""
    element = _ELEMENTS[dtype]
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
    found = _printed[key, dtype] = _finished(module, f, dtype, operands, results)
    return found


@functools.cache
def _squaring(dtype: np.dtype[Any]) -> Pass:
    """The loop that leaves the sums of squares."""
    element = _ELEMENTS[dtype]
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
    return _finished(module, f, dtype, 1, 0)


def _squared(f: Emitter, x: Value, total: Value) -> Value:
    """The total with the squares of x."""
    wide = f.convert(x, "f64")
    return f.fma(wide, wide, total)


class _Chunk:
    """What a task knows, as values of the text: where the table of tasks is (leaf, first element,
    count), the objects of all arrays column by column, the number of leaves, numbers, whether to
    stream, a place for what each task sums; and how many tasks there are."""

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


def _finished(
    module: Module, f: Emitter, dtype: np.dtype[Any], operands: int, results: int
) -> Pass:
    """The chunks one after the other or on all threads, and the sum of what they leave."""
    f.ret()
    module.declare("@funct_parallel", PARALLEL)
    for name in ("alone", "together"):
        _tell(module.function(name, [("data", PTR)], F64), name == "together")
    code = assemble(module.text())
    objects = [list, np.ndarray, dtype, None, code]
    ways = [code.address("alone"), code.address("together")]
    streamed = _STREAMED // (max(results, 1) * dtype.itemsize)
    table = [*map(id, objects[:4]), operands, results, *ways, _ALONE, streamed]
    shared = printed(pass_text, CHUNK).keep()
    return builtin("sweep", shared.address("call"), np.array(table, np.int64), objects)


def _tell(f: Emitter, together: bool) -> None:
    """The text of a function that runs the tasks and gives the sum of what they leave."""
    (data,) = f.arguments
    parts = f.load(PTR, f.at(data, 5, "ptr"))
    tasks, zero = f.load(I64, f.at(data, 6, "i64")), f.constant(F64, 0.0)
    if together:
        f.line(f"call void @funct_parallel(ptr @chunk, {data!r}, {tasks!r})")

    def body(i: Value, held: list[Value]) -> list[Value]:
        if not together:
            f.call("chunk", None, [data, i])
        return [held[0] + f.load(F64, f.at(parts, i, "f64"))]

    f.ret(f.loop(0, tasks, 1, body, [zero], maybe_empty=True)[0])
