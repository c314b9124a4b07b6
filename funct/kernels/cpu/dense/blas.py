"""NumPy's BLAS, called by address from machine code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from funct.device import blas
from funct.kernels.llvm import F32, F64, I32, I64, Emitter, Value

__all__ = [
    "KINDS",
    "alone",
    "call_dot",
    "call_gemm",
    "call_gemv",
    "call_syrk",
    "counts",
    "counts_in_64_bits",
]

_ROWS, _UPPER = 101, 121  # of CBLAS
KINDS = 111, 112  # what it calls a matrix as it is, and transposed


@functools.cache
def counts_in_64_bits() -> bool | None:
    """Whether NumPy's BLAS does, if its products can be called by address; None: they cannot."""
    found = [blas.cblas(name) for name in ("sgemm", "dgemm", "ssyrk", "dsyrk")]
    return None if None in found else found[0] is not None and found[0][1]


def counts(*lengths: int) -> bool:
    """Whether such products can be called by address, of arrays with axes so long."""
    wide = counts_in_64_bits()
    return wide is not None and (wide or max(lengths) < 1 << 31)


def call_gemm(
    f: Emitter, element: str, kinds: Sequence[Value], sizes: Sequence[Value],
    places: Sequence[Value],
) -> None:  # fmt: skip
    """Print the product of two matrices. sizes: rows, columns, terms; places: of both operands and
    the result, each with its leading dimension.
    """
    a, lda, b, ldb, c, ldc = places
    real, one, zero, size = _numbers(f, element)
    given = [
        repr(f.constant(I32, _ROWS)), *[repr(f.convert(x, "i32")) for x in kinds],
        *map(size, sizes), one, repr(a), size(lda), repr(b), size(ldb), zero, repr(c), size(ldc),
    ]  # fmt: skip
    length = "i64" if counts_in_64_bits() else "i32"
    _call(f, "gemm", element, given, f"i32, i32, i32, {length}, {length}, {length}, {real}, ptr, "
          f"{length}, ptr, {length}, {real}, ptr, {length}")  # fmt: skip


def call_syrk(
    f: Emitter, element: str, kind: Value, sizes: Sequence[Value], places: Sequence[Value]
) -> None:
    """Print the product of a matrix and its own transpose, from the diagonal on. sizes: rows of the
    result, terms; places: of the matrix and the result, each with its leading dimension.
    """
    a, lda, c, ldc = places
    real, one, zero, size = _numbers(f, element)
    order = [repr(f.constant(I32, n)) for n in (_ROWS, _UPPER)]
    given = [
        *order, repr(f.convert(kind, "i32")), *map(size, sizes), one, repr(a), size(lda), zero,
        repr(c), size(ldc),
    ]  # fmt: skip
    length = "i64" if counts_in_64_bits() else "i32"
    _call(f, "syrk", element, given, f"i32, i32, i32, {length}, {length}, {real}, ptr, {length}, "
          f"{real}, ptr, {length}")  # fmt: skip


def call_gemv(
    f: Emitter, element: str, kind: Value, sizes: Sequence[Value], places: Sequence[Value]
) -> None:
    """Print the product of a matrix, as it is or transposed, and a vector. sizes: rows, columns of
    the matrix as it is; places: the matrix, its leading dimension, the vector, the result.
    """
    a, lda, x, y = places
    real, one, zero, size = _numbers(f, element)
    step = size(f.constant(I64, 1))
    given = [
        repr(f.constant(I32, _ROWS)), repr(f.convert(kind, "i32")), *map(size, sizes), one, repr(a),
        size(lda), repr(x), step, zero, repr(y), step,
    ]  # fmt: skip
    length = "i64" if counts_in_64_bits() else "i32"
    _call(f, "gemv", element, given, f"i32, i32, {length}, {length}, {real}, ptr, {length}, ptr, "
          f"{length}, {real}, ptr, {length}")  # fmt: skip


def call_dot(f: Emitter, size: Value, x: Value, y: Value) -> Value:
    """Print the sum of so many products in double precision."""
    one = f.constant(I64, 1)
    n, step = (v if counts_in_64_bits() else f.convert(v, "i32") for v in (size, one))
    total = f.call("funct_f64_dot", F64, [n, x, step, y, step])
    assert total is not None
    return total


@contextmanager
def alone(f: Emitter) -> Iterator[None]:
    """What is printed within the block computes on the thread that calls."""
    told = f.call("funct_blas_alone", I32, [])
    assert told is not None
    yield
    f.call("funct_blas_again", None, [told])


def _numbers(f: Emitter, element: str) -> tuple[str, str, str, Callable[[Value], str]]:
    """The name of the numbers, 1, 0, and how sizes are written."""
    real, wide = F32 if element == "f32" else F64, counts_in_64_bits()
    one, zero = (repr(f.constant(real, n)) for n in (1, 0))
    return real.text, one, zero, lambda x: repr(x if wide else f.convert(x, "i32"))


def _call(f: Emitter, name: str, element: str, given: Sequence[str], types: str) -> None:
    function = f"@funct_{element}_{name}"
    f.module.declare(function, f"declare void {function}({types})")
    f.line(f"call void {function}({', '.join(given)})")


for _letter, _element in (("s", "f32"), ("d", "f64")):
    for _name in ("gemm", "gemv", "syrk"):
        blas.offer(f"funct_{_element}_{_name}", f"cblas_{_letter}{_name}")
blas.offer("funct_f64_dot", "cblas_ddot")
