"""Products of a matrix and a vector, halves too, and of stacks of them (`vector_text.py`)."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from funct.device import PARALLEL, Host, host, printed
from funct.kernels import table
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.products.tiled import as_vectors, follows, laid
from funct.kernels.cpu.products.vector_text import (
    cut,
    cut_stack,
    print_columns,
    print_rows,
    summed_in,
)
from funct.kernels.cpu.runners import making, runner
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Shape = tuple[int, ...]

__all__ = ["large_matmul", "vector_matmul"]

_ELEMENTS = {
    t.char: (name, t)
    for name, t in (
        ("f32", np.dtype(np.float32)), ("f64", np.dtype(np.float64)),
        ("f16", np.dtype(np.float16)), ("bf16", np.dtype(ml_dtypes.bfloat16)),
    )
}  # fmt: skip
_HEAD = 4  # words of a job before those of a task: both operands, the result, room for parts
_WORDS = 8  # of a task, at most, if it is not of a stack


def _plan(
    x: _Shape, y: _Shape, x_strides: _Shape, y_strides: _Shape, char: str
) -> Callable[..., Any] | None:
    """x @ y of one dtype, of which one is a vector and the other a matrix or a vector; None where
    what is read one after the other does not lie so.
    """
    element, dtype = _ELEMENTS[char]
    byte, result = dtype.itemsize, (*x[:-1], *y[1:])
    x, y, x_strides, y_strides = as_vectors(x, y, x_strides, y_strides)
    if len(x) == len(y) == 1:
        x, x_strides = (1, *x), (byte * x[0], *x_strides)
    columns = len(x) == 1  # of y, by x
    shape, strides, step = (y, y_strides, x_strides) if columns else (x, x_strides, y_strides)
    matrix = laid(strides, shape[0], shape[1], byte)
    if matrix is None or x[-1] != y[0] or 0 in shape or step != (byte,):
        return None
    terms, length = shape if columns else shape[::-1]
    across = matrix.turned != columns
    found = cut(length, terms, matrix.leading, across=across)
    words = [*found.words, *[0] * (_WORDS - len(found.words)), found.tasks]
    room = typed(summed_in(element)).bytes * length * found.parts if found.parts > 1 else 0
    code = _code(element, across, 0, room > 0)
    if not room:
        return making(code, result, dtype, [0, *words], math.prod(shape), turned=columns)
    return _in_parts(result, dtype, columns, (runner(code), words, room))


def _stack_plan(
    x: _Shape, y: _Shape, x_strides: _Shape, y_strides: _Shape, char: str
) -> Callable[..., Any] | None:
    """x @ y of stacks of matrices of one dtype, of which the first has one row, or the second one
    column: these are copied where they do not lie one behind the other.
    """
    element, dtype = _ELEMENTS[char]
    byte, columns = dtype.itemsize, x[-2] == 1
    shape, strides, other = (y, y_strides, x) if columns else (x, x_strides, y)
    if columns == (y[-1] == 1) or max(len(x), len(y)) == 2 or x[-1] != y[-2] or 0 in (*x, *y):
        return None
    matrix = laid(strides[-2:], shape[-2], shape[-1], byte)
    if matrix is None or any(s % byte for s in strides):
        return None
    terms, length = shape[-2:] if columns else shape[:-3:-1]
    lead = np.broadcast_shapes(shape[:-2], other[:-2])
    dense = [terms * math.prod(other[k + 1 : -2]) for k in range(len(other) - 2)]
    steps = []
    for of, apart in ((shape, [s // byte for s in strides[:-2]]), (other, dense)):
        own = [0 if n == 1 else step for n, step in zip(of[:-2], apart, strict=True)]
        steps.append([0] * (len(lead) - len(own)) + own)
    across = matrix.turned != columns
    found = cut_stack(math.prod(lead), length, terms, matrix.leading)
    axes = [
        word for k, (n, a, b) in enumerate(zip(lead, *steps, strict=True))
        for word in (math.prod(lead[k + 1 :]), n, a, b)
    ]  # fmt: skip
    code = _code(element, across, len(lead), False)
    result = (*lead, 1, length) if columns else (*lead, length, 1)
    words, most = [0, *found.words, *axes, found.tasks], max(math.prod(shape), math.prod(result))
    multiply = making(code, result, dtype, words, most, turned=columns)
    if follows(other, x_strides if columns else y_strides, byte):
        return multiply
    if columns:
        return lambda x, y: multiply(np.ascontiguousarray(x), y)
    return lambda x, y: multiply(x, np.ascontiguousarray(y))


def _in_parts(
    shape: _Shape, dtype: np.dtype[Any], columns: bool,
    job: tuple[Callable[..., None], list[int], int],
) -> Callable[..., Any]:  # fmt: skip
    """The function of both operands. job: what runs, the words behind the addresses, and bytes of
    room for parts of sums.
    """
    run, words, room = job
    make, packed = memory.maker(shape, dtype), struct.pack(f"{len(words)}q", *words)

    def multiply(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        rest = struct.pack("q", memory.scratch(room)) + packed
        run(*((y, x) if columns else (x, y)), out := make(), rest)
        return out

    return multiply


vector_matmul = table.Planned(_plan)
large_matmul = table.Planned(_stack_plan)


@functools.cache
def _code(element: str, across: bool, depth: int, parted: bool) -> int:
    return printed(_text, element, across, depth, parted, host()).keep().address("multiply")


def _text(element: str, across: bool, depth: int, parted: bool, target: Host) -> str:
    """`multiply(job)`: all tasks, and the sum of their parts."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    if across:
        print_columns(module, "task", element, depth, parted=parted)
    else:
        print_rows(module, "task", element, depth)
    f = module.function("multiply", [("job", PTR)])
    (job,) = f.arguments
    count = 5 + 4 * depth if depth else _WORDS
    frame = f.allocate(I64, 3 + count)
    for k, word in enumerate([*f.words(job, 0, 3), *f.words(job, _HEAD, count)]):
        f.store(word, f.at(frame, k, "i64"))
    tasks = f.word(job, _HEAD + count)
    if parted:
        f.store(f.word(job, 3), f.at(frame, 2, "i64"))
    f.line(f"call void @funct_parallel(ptr @task, {frame!r}, {tasks!r})")
    if parted:
        out, parts = f.pointers(job, 2, 2)
        _add_up(f, element, out, parts, f.word(job, _HEAD), tasks)
    f.ret()
    return module.text()


def _add_up(
    f: Emitter, element: str, out: Value, parts: Value, length: Value, count: Value
) -> None:
    """The sums of so many parts, in their order."""
    sum_element = summed_in(element)
    lanes = f.module.target.vector_bytes // typed(sum_element).bytes
    wide = typed(sum_element, lanes)

    def some(c: Value) -> None:
        mask = f.first_lanes(lanes, length - c)

        def part(k: Value | int) -> Value:
            return f.load(wide, f.at(parts, k * length + c, sum_element), mask)

        (total,) = f.loop(1, count, 1, lambda k, sums: [sums[0] + part(k)], [part(0)])
        f.store(f.convert(total, element), f.at(out, c, element), mask)

    each(f, 0, length, some, lanes)
