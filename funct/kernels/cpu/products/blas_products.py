"""Products of matrices of floats and complex numbers by NumPy's BLAS, on our own threads.

Threads of BLAS wait for each other many times in a product, and yield to whoever else is there:
beside other work on the cores, or our own pool, one takes many times as long. So BLAS computes on
the thread that calls it, and what is worth two threads is cut into panels of rows or columns, as
many as its shape and the processor's cores say: each packs the other operand anew, which for panels
of 128 costs a seventh. Panels cut no sum; long ones of vectors (`dot`) are cut by their length
alone. So any number of threads gives the same bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from msgspec import Struct

from funct.device import PARALLEL, Host, host, printed
from funct.kernels import table
from funct.kernels.cpu.products.blas import (
    KINDS,
    WORTH_CUTTING,
    alone,
    call_dot,
    call_gemm,
    call_gemv,
    counts,
)
from funct.kernels.cpu.products.tiled import Laid, as_vectors, find_products, follows, laid
from funct.kernels.cpu.runners import making
from funct.kernels.llvm import F64, I64, PTR, Emitter, Module, Value, each, typed

__all__ = [
    "Panels", "axes_of", "dot", "large_matmul", "panels", "print_product", "summed_matmul", "vdot",
    "vector_matmul",
]  # fmt: skip

_NARROWEST, _WIDE = 16, 512  # rows or columns of a panel; of one that is worth being one of more
_EVEN, _EVEN_FEW = 16, 4  # a panel is so many rows or columns, several times; and if it is narrow
_WORDS = 15  # of `Panels`, behind three addresses
# rows from which on products of so few terms are cut by rows: they are bound by the result, and
# panels of columns write a part of each row
_TALL, _FEW_TERMS = 64, 32
_TERMS, _MOST_SUMS = 1 << 16, 256  # of a sum that are worth a task, and tasks
_LONG_BYTES = 1 << 19  # of a matrix whose product with a vector is worth two threads
_ELEMENT = {"f": "f32", "d": "f64", "F": "c64", "D": "c128"}  # by NumPy's name
_BYTES = {"f32": 4, "f64": 8, "c64": 8, "c128": 16}


class Panels(Struct, frozen=True):
    """How products are cut. words: what a task reads behind the addresses of both operands and the
    result, but for the stack's axes. alone: whether BLAS would give one to threads of its own.
    """

    words: tuple[int, ...]
    tasks: int
    alone: bool


def panels(
    sizes: tuple[int, int, int], operands: tuple[Laid, Laid], element: str, count: int = 1
) -> Panels:
    """The panels of so many products. sizes: rows, columns, terms."""
    (m, n, k), (a, b), byte = sizes, operands, _BYTES[element]
    work = m * n * k * (4 if element.startswith("c") else 1)
    tall = m >= n or (m >= _TALL and k <= _FEW_TERMS)
    length = m if tall else n
    several = _several(length, work) if count < 2 * host().cores else 1
    panel = math.ceil(length / several)
    even = _EVEN if panel >= 4 * _EVEN else _EVEN_FEW
    panel = math.ceil(panel / even) * even
    several = -(-length // panel)
    # how far a panel moves in x, y and the result
    moves = (1 if a.turned else a.leading, 0, n) if tall else (0, b.leading if b.turned else 1, 1)
    kinds = [KINDS[x.turned] for x in operands]
    words = (
        m, n, k, a.leading, b.leading, n, *kinds, int(tall), panel, *[s * byte for s in moves],
        several, m * n * byte,
    )  # fmt: skip
    return Panels(words, several * count, work > WORTH_CUTTING)


def _several(length: int, work: int) -> int:
    """Into how many panels so many rows or columns are cut: one for each core, or two if wide."""
    if work <= WORTH_CUTTING:
        return 1
    cores = host().cores
    most = 2 * cores if length >= 2 * cores * _WIDE else cores
    return max(1, min(most, length // _NARROWEST))


def print_product(
    module: Module, name: str, element: str, depth: int, kept: bool, *, summed: bool = False
) -> None:
    """Add the call of BLAS for one task: a panel of a product, or of one of a stack of that depth.
    kept: whether BLAS has to be kept from threads of its own. Frame: both operands, the result; the
    words of `Panels`; the stack's axes (`find_products`), or what is summed: how many products, and
    the bytes from one of either operand to the next.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments

    a, b, c = f.pointers(frame, 0, 3)
    m, n, k, lda, ldb, ldc = f.words(frame, 3, 6)
    kind_a, kind_b, tall, panel = f.words(frame, 9, 4)
    if depth:
        several, bytes_ = f.words(frame, 16, 2)
        number, task = f.div(task, several), f.rem(task, several)
        axes = [f.words(frame, 3 + _WORDS + 4 * axis, 4) for axis in range(depth)]
        a, b = find_products(f, number, axes, (a, b), "i8")
        c = f.at(c, number * bytes_, "i8")
    first = task * panel
    a, b, c = (f.at(x, first * f.word(frame, 13 + i), "i8") for i, x in enumerate((a, b, c)))
    is_tall, is_row, is_column = f.ne(tall, 0), f.eq(m, 1), f.eq(n, 1)
    length = f.select(is_tall, m, n)
    count = f.intrinsic("smin", panel, length - first)
    m, n = f.select(is_tall, count, m), f.select(is_tall, n, count)
    kinds, places = (kind_a, kind_b), (a, lda, b, ldb, c, ldc)
    with alone(f) if kept else nullcontext():
        if depth:
            _print_by_vector(f, element, (is_row, is_column), kinds, (m, n, k), places)
        elif summed:
            many, *apart = f.words(frame, 3 + _WORDS, 3)

            def one(i: Value) -> None:
                here = [f.at(x, i * step, "i8") for x, step in zip((a, b), apart)]
                call_gemm(f, element, kinds, (m, n, k), (here[0], lda, here[1], *places[3:]), i > 0)

            each(f, 0, many, one)
        else:
            call_gemm(f, element, kinds, (m, n, k), places)
    f.ret()


def _print_by_vector(
    f: Emitter, element: str, which: tuple[Value, Value], kinds: tuple[Value, Value],
    sizes: tuple[Value, Value, Value], places: tuple[Value, ...],
) -> None:  # fmt: skip
    """The product of two matrices, of which one may be a row or a column: then what BLAS has for
    vectors, which packs nothing. which: whether the first is a row, the second a column.
    """
    (m, n, k), (a, lda, b, ldb, c, _) = sizes, places
    kind_a, kind_b = kinds

    def by(kind: Value, lines: Value, terms: Value, matrix: tuple[Value, Value], x: Value,
           apart: Value) -> None:  # fmt: skip
        as_it_is = f.eq(kind, KINDS[False])
        shape = f.select(as_it_is, lines, terms), f.select(as_it_is, terms, lines)
        call_gemv(f, element, kind, shape, (*matrix, x, c), apart)

    def row() -> list[Value]:
        apart = f.select(f.eq(kind_a, KINDS[False]), 1, lda)
        by(sum(KINDS) - kind_b, n, k, (b, ldb), a, apart)
        return []

    def column() -> list[Value]:
        apart = f.select(f.eq(kind_b, KINDS[False]), ldb, 1)
        by(kind_a, m, k, (a, lda), b, apart)
        return []

    def matrices() -> list[Value]:
        call_gemm(f, element, kinds, sizes, places)
        return []

    f.branch(which[0], row, lambda: f.branch(which[1], column, matrices))


def _multiplier(
    code: int, x: tuple[int, ...], y: tuple[int, ...], shape: tuple[int, ...], char: str,
    words: list[int],
) -> Any:  # fmt: skip
    """The function of two arrays of these shapes, by the code and the words behind addresses."""
    return making(code, shape, np.dtype(char), words, max(map(math.prod, (x, y, shape))))


def _plan(
    x: tuple[int, ...], y: tuple[int, ...], x_strides: tuple[int, ...], y_strides: tuple[int, ...],
    char: str,
) -> Callable[..., Any] | None:  # fmt: skip
    """x @ y of matrices, or of stacks of them, of one dtype, copied where a matrix has neither
    dense rows nor columns.
    """
    if not counts(*x, *y) or x[-1] != y[-2] or 0 in (*x, *y):
        return None
    element = _ELEMENT[char]
    byte = _BYTES[element]
    a = laid(x_strides[-2:], x[-2], x[-1], byte)
    b = laid(y_strides[-2:], y[-2], y[-1], byte)
    stack = np.broadcast_shapes(x[:-2], y[:-2])
    if a is None or b is None:
        dense = np.empty(x, char).strides, np.empty(y, char).strides
        copied: Any = _plan(x, y, *dense, char)
        return lambda x, y: copied(np.ascontiguousarray(x), np.ascontiguousarray(y))
    count = math.prod(stack)
    cut = panels((x[-2], y[-1], x[-1]), (a, b), element, count)
    axes = list(axes_of(stack, (x[:-2], x_strides), (y[:-2], y_strides))) if count > 1 else []
    words = [*cut.words, *[word for axis in axes for word in axis], cut.tasks]
    return _multiplier(_code(element, len(axes)), x, y, (*stack, x[-2], y[-1]), char, words)


large_matmul = table.Planned(_plan)


def axes_of(stack: tuple[int, ...], *operands: tuple[tuple[int, ...], tuple[int, ...]]) -> Any:
    """The words of `find_products` for each axis of a stack, of operands' lengths and strides."""
    for axis, length in enumerate(stack):
        steps = []
        for lengths, strides in operands:
            own = axis - len(stack) + len(lengths)
            steps.append(strides[own] if own >= 0 and lengths[own] > 1 else 0)
        yield math.prod(stack[axis + 1 :]), length, *steps


def _summed_plan(
    x: tuple[int, ...], y: tuple[int, ...], x_strides: tuple[int, ...], y_strides: tuple[int, ...],
    char: str,
) -> Callable[..., Any] | None:  # fmt: skip
    """Σ_n x[n] @ y[n] of two stacks of matrices, of one dtype: BLAS adds to what is there. None
    where a matrix has neither dense rows nor columns.
    """
    if not counts(*x, *y) or 0 in (*x, *y):
        return None
    (count, m, k), n, element = x, y[2], _ELEMENT[char]
    byte = _BYTES[element]
    a, b = laid(x_strides[1:], m, k, byte), laid(y_strides[1:], k, n, byte)
    if a is None or b is None:
        return None
    cut = panels((m, n, k * count), (a, b), element)
    words = [*cut.words[:2], k, *cut.words[3:], count, x_strides[0], y_strides[0], cut.tasks]
    return _multiplier(_code(element, 0, True), x, y, (m, n), char, words)


summed_matmul = table.Planned(_summed_plan)


@functools.cache
def _code(element: str, depth: int, summed: bool = False) -> int:
    return printed(_text, element, depth, summed, host()).keep().address("multiply")


def _text(element: str, depth: int, summed: bool, target: Host) -> str:
    """`multiply(job)`: all tasks."""
    module = Module(target)
    print_product(module, "task", element, depth, True, summed=summed)
    _print_all(module, 3 + _WORDS + (3 if summed else 4 * depth))
    return module.text()


def _print_all(module: Module, number: int) -> None:
    """Add what runs all tasks of a job, of which that word says how many there are."""
    module.declare("@funct_parallel", PARALLEL)
    f = module.function("multiply", [("job", PTR)])
    (job,) = f.arguments
    f.line(f"call void @funct_parallel(ptr @task, {job!r}, {f.word(job, number)!r})")
    f.ret()


def _vector_plan(
    x: tuple[int, ...], y: tuple[int, ...], x_strides: tuple[int, ...], y_strides: tuple[int, ...],
    char: str,
) -> Callable[..., Any] | None:  # fmt: skip
    """x @ y of a matrix and a vector of one dtype, or of a vector and a matrix; None where elements
    to be read one after the other do not lie so.
    """
    result = (*x[:-1], *y[1:])
    x, y, x_strides, y_strides = as_vectors(x, y, x_strides, y_strides)
    columns = len(x) == 1  # of y, by x
    shape, strides, step = (y, y_strides, x_strides) if columns else (x, x_strides, y_strides)
    if not counts(*shape) or x[-1] != y[0]:
        return None
    element = _ELEMENT[char]
    byte = _BYTES[element]
    matrix = laid(strides, shape[0], shape[1], byte)
    if matrix is None or step != (byte,) or 0 in shape:
        return None
    rows, terms = reversed(shape) if columns else shape
    turned = matrix.turned != columns
    several = host().cores if rows * terms * byte >= _LONG_BYTES else 1
    panel = math.ceil(math.ceil(rows / several) / _EVEN) * _EVEN
    move = byte * (1 if turned else matrix.leading)
    words = [rows, terms, matrix.leading, KINDS[turned], panel, move, byte, -(-rows // panel)]
    most = max(math.prod(shape), rows)
    return making(_vector_code(element), result, np.dtype(char), words, most, turned=columns)


vector_matmul = table.Planned(_vector_plan)


@functools.cache
def _vector_code(element: str) -> int:
    return printed(_vector_text, element, host()).keep().address("multiply")


def _vector_text(element: str, target: Host) -> str:
    """`multiply(job)`: all tasks of a matrix by a vector. The job: matrix, vector, result; numbers
    of the result and of each sum, leading dimension, what BLAS calls the matrix, numbers of a task,
    bytes of the matrix and of the result from one to the next; tasks.
    """
    module = Module(target)
    f = module.function("task", [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    a, x, y = f.pointers(frame, 0, 3)
    rows, terms, leading, kind, panel, move, byte = f.words(frame, 3, 7)
    first = task * panel
    count = f.intrinsic("smin", panel, rows - first)
    turned = f.ne(kind, KINDS[False])
    sizes = f.select(turned, terms, count), f.select(turned, count, terms)
    with alone(f):
        call_gemv(f, element, kind, sizes, (f.at(a, first * move, "i8"), leading, x,
                                            f.at(y, first * byte, "i8")))  # fmt: skip
    f.ret()
    _print_all(module, 10)
    return module.text()


def _dot_plan(
    conjugate: bool, x: tuple[int, ...], y: tuple[int, ...], x_strides: tuple[int, ...],
    y_strides: tuple[int, ...], char: str,
) -> Callable[..., Any] | None:  # fmt: skip
    """The sum of x · y, or conj(x) · y, in double precision, of all elements of two arrays that are
    dense, in their order.
    """
    size, byte = math.prod(x), 8 if char == "d" else 16
    if not counts(size) or size != math.prod(y):
        return None
    if not (follows(x, x_strides, byte) and follows(y, y_strides, byte)):
        return None
    panel = max(_TERMS, -(-size // _MOST_SUMS)) if size >= 2 * _TERMS else size
    kind = "f64_dot" if char == "d" else "c128_vdot" if conjugate else "c128_dot"
    multiply = making(_dot_code(kind), (), np.dtype(char), [size, panel, -(-size // panel)], size)
    return lambda x, y: multiply(x, y)[()]


dot = table.Planned(functools.partial(_dot_plan, False))
vdot = table.Planned(functools.partial(_dot_plan, True))


@functools.cache
def _dot_code(kind: str) -> int:
    return printed(_dot_text, kind, host()).keep().address("all")


def _dot_text(kind: str, target: Host) -> str:
    """`all(job)`: a sum for each task, and theirs. The job: both arrays, the result; numbers of
    both, numbers of a task, tasks.
    """
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    number = typed("f64", parts := 2 if kind.startswith("c") else 1)
    byte = parts * F64.bytes
    f = module.function("task", [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    x, y, sums = f.pointers(frame, 0, 3)
    size, panel = f.words(frame, 3, 2)
    first = task * panel
    count = f.intrinsic("smin", panel, size - first)
    with alone(f):
        x, y, out = (f.at(v, n * byte, "i8") for v, n in ((x, first), (y, first), (sums, task)))
        call_dot(f, kind, count, x, y, out)
    f.ret()
    f = module.function("all", [("job", PTR)])
    (job,) = f.arguments
    tasks, frame, sums = f.word(job, 5), f.allocate(I64, 5), f.allocate(number, _MOST_SUMS)
    out = f.pointer(job, 2)
    for k, word in enumerate((*f.words(job, 0, 2), None, *f.words(job, 3, 2))):
        f.store(sums if word is None else word, f.at(frame, k, "i64"))
    f.line(f"call void @funct_parallel(ptr @task, {frame!r}, {tasks!r})")

    def one(task: Value, held: list[Value]) -> list[Value]:
        return [held[0] + f.load(number, f.at(sums, task * byte, "i8"))]

    (total,) = f.loop(0, tasks, 1, one, [f.constant(number, 0)])
    f.store(total, out)
    f.ret()
    return module.text()
