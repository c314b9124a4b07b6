"""A matrix times its own transpose: one half is computed, and put on the other side.

So does NumPy. On two cores the half is cut into a square, which is a product, and the triangles at
both ends of the diagonal: those take together as long as the square.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from funct.device import PARALLEL, Host, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.products.blas import KINDS, WORTH_CUTTING, call_gemm, call_syrk, counts
from funct.kernels.cpu.products.tiled import Laid, laid
from funct.kernels.cpu.runners import runner
from funct.kernels.llvm import I64, PTR, Module, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MIRRORED", "gram_matmul", "gram_words", "is_worth_halving", "print_gram", "print_mirrored",
]  # fmt: skip

_LEAST_TERMS = 64  # of fewer, the other half costs no more than to put it there
MIRRORED = 64  # rows that are put there by one task


def is_worth_halving(rows: int, terms: int) -> bool:
    """Whether half of the product of a matrix and its transpose, and a copy, are less than all."""
    return terms >= _LEAST_TERMS and rows * rows * terms > WORTH_CUTTING


def gram_words(sizes: tuple[int, int], matrix: Laid) -> tuple[tuple[int, ...], int]:
    """What `print_gram` reads behind the addresses, and its tasks. sizes: rows and terms."""
    n, k = sizes
    half = n // 2 if host().cores > 1 else n
    kinds = KINDS[matrix.turned], KINDS[not matrix.turned]
    step = 1 if matrix.turned else matrix.leading
    return (n, MIRRORED, k, matrix.leading, *kinds, step, half), 3 if half < n else 1


def print_gram(module: Module, name: str, element: str) -> None:
    """Add the kernel for what stands on the diagonal and to its right. Frame: the matrix, the
    result; the words of `gram_words`: its rows, and how many `print_mirrored` is to take; terms;
    leading dimension, what BLAS calls the matrix and its transpose, elements from row to row; rows
    of the first triangle. Task 0 is the square if there is one.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments

    x, out = f.pointers(frame, 0, 2)
    n, _, k, leading, kind, turned, step, half = f.words(frame, 2, 8)
    rest, first = n - half, f.constant(I64, 0)
    below = f.at(x, half * step, element)

    def square() -> None:
        right = f.at(out, half, element)
        places = x, leading, below, leading, right, n
        call_gemm(f, element, (kind, turned), (half, rest, k), places)

    def triangle() -> None:
        behind = task > 1
        start, rows = f.select(behind, half, first), f.select(behind, rest, half)
        corner = f.at(out, start * (n + 1), element)
        places = f.at(x, start * step, element), leading, corner, n
        call_syrk(f, element, kind, (rows, k), places)

    cut = half < n
    f.when(cut & f.eq(task, 0), square)
    f.when(~cut | (task > 0), triangle)
    f.ret()


def print_mirrored(module: Module, name: str, element: str) -> None:
    """Add the kernel that puts what stands right of the diagonal below it. Frame: the matrix, its
    rows, rows of a task.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    place = f.load(PTR, frame)
    n, group = f.words(frame, 1, 2)
    lanes = module.target.vector_bytes // typed(element).bytes
    real, wide = typed(element, lanes), typed("i64", lanes)
    start = task * group

    def row(i: Value, _: list[Value]) -> list[Value]:
        def some(j: Value, _: list[Value]) -> list[Value]:
            last = f.splat(i, lanes)
            rows = f.splat(j, lanes) + f.lanes(wide)
            rows = f.select(rows < last, rows, last)
            x = f.gather(real, f.at(place, rows * f.splat(n, lanes) + last, element))
            f.store(x, f.at(place, i * n + j, element), f.first_lanes(lanes, i - j))
            return []

        f.loop(0, i, lanes, some, maybe_empty=True)
        return []

    f.loop(start, f.intrinsic("smin", start + group, n), 1, row)
    f.ret()


def gram_matmul(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """x @ y, where y is x transposed: the same memory."""
    if not counts(*x.shape):
        return NotImplemented
    matrix = laid(x.strides, x.shape[0], x.shape[1], x.itemsize)
    if matrix is None:
        return NotImplemented
    words, tasks = gram_words((x.shape[0], x.shape[1]), matrix)
    out = memory.fresh((len(x), len(x)), x.dtype)
    run = _runner("f32" if x.itemsize == 4 else "f64")
    run(x, out, struct.pack("10q", *words, tasks, -(-len(x) // MIRRORED)))
    return out


@functools.cache
def _runner(element: str) -> Callable[..., None]:
    code = printed(_text, element, host())
    return runner(code.keep().address("multiply"))


def _text(element: str, target: Host) -> str:
    """`multiply(job)`: both steps, of which the last two words say how many tasks they are."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    print_gram(module, "half", element)
    print_mirrored(module, "mirror", element)
    f = module.function("multiply", [("job", PTR)])
    (job,) = f.arguments
    result = f.at(job, 1, "i64")  # where what `print_mirrored` reads begins
    f.line(f"call void @funct_parallel(ptr @half, {job!r}, {f.word(job, 10)!r})")
    f.line(f"call void @funct_parallel(ptr @mirror, {result!r}, {f.word(job, 11)!r})")
    f.ret()
    return module.text()
