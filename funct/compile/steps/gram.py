"""A matrix times its own transpose: one half is computed, and put on the other side.

So does NumPy. On two cores the half is cut into a square, which is a product, and the triangles at
both ends of the diagonal: those take together as long as the square.
"""

from __future__ import annotations

from funct.compile.fusion.calls import Address, Call
from funct.compile.steps.blas import KINDS, Matrix, call_gemm, call_syrk
from funct.device import host
from funct.graph import Var
from funct.kernels.llvm import I64, PTR, Module, Value, typed

__all__ = ["gram", "is_gram", "print_gram", "print_mirrored"]

_LEAST_TERMS = 64  # of fewer, the other half costs no more than to put it there
_LEAST_WORK = 1 << 18  # multiplications: OpenBLAS leaves no more than that to one thread
_ROWS = 64  # that are put there by one task


def is_gram(a: Matrix, b: Matrix, work: int) -> bool:
    """Whether the second of two matrices is the first one transposed, and half of it is less."""
    terms = a.view.shape[-1]
    same = (a.view.root, a.view.offset, a.leading) == (b.view.root, b.view.offset, b.leading)
    turned = a.view.shape[-2:] == b.view.shape[:-3:-1] and a.transposed != b.transposed
    return same and turned and terms >= _LEAST_TERMS and work > _LEAST_WORK


def gram(a: Matrix, out: Var, sizes: tuple[int, int]) -> list[Call]:
    """The calls that compute it. sizes: rows and terms."""
    (n, k), byte = sizes, out.dtype.itemsize
    element = "f32" if byte == 4 else "f64"
    half = n // 2 if host().cores > 1 else n
    step = 1 if a.transposed else a.leading
    place = Address(a.view.root, a.view.offset * byte)
    kinds = KINDS[a.transposed], KINDS[not a.transposed]
    words = place, Address(out), n, k, a.leading, *kinds, step, half
    tasks = 3 if half < n else 1
    return [
        Call(("gram", element), words, tasks, (out,)),
        Call(("mirrored", element), (Address(out), n, _ROWS), -(-n // _ROWS), (out,)),
    ]


def print_gram(module: Module, name: str, element: str) -> None:
    """Add the kernel for what stands on the diagonal and to its right. Frame: the matrix, the
    result; its rows, terms; leading dimension, what BLAS calls the matrix and its transpose,
    elements from row to row; rows of the first triangle. Task 0 is the square if there is one.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments

    x, out = f.pointers(frame, 0, 2)
    n, k, leading, kind, turned, step, half = f.words(frame, 2, 7)
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
