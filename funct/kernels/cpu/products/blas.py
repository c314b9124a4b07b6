"""NumPy's BLAS, called by address from machine code."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from funct.device import blas
from funct.kernels.llvm import F32, F64, I32, I64, Emitter, Value

__all__ = [
    "KINDS", "WORTH_CUTTING", "alone", "call_dot", "call_gemm", "call_gemv", "call_syrk", "counts",
    "counts_in_64_bits",
]  # fmt: skip

_ROWS, _UPPER = 101, 121  # of CBLAS
KINDS = 111, 112  # what it calls a matrix as it is, and transposed
WORTH_CUTTING = 1 << 18  # multiplications; OpenBLAS leaves no more than that to one thread


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
    places: Sequence[Value], add: Value | None = None,
) -> None:  # fmt: skip
    """Print the product of two matrices. sizes: rows, columns, terms; places: of both operands and
    the result, each with its leading dimension. add: whether to add to what is there.
    """
    a, lda, b, ldb, c, ldc = places
    one, zero = _numbers(f, element)
    old = zero if add is None else f.select(add, one, zero)
    m, n, k, lda, ldb, ldc = (_size(f, v) for v in (*sizes, lda, ldb, ldc))
    kinds = [f.convert(x, "i32") for x in kinds]
    given = [f.constant(I32, _ROWS), *kinds, m, n, k, one, a, lda, b, ldb, old, c, ldc]
    f.call(f"funct_{element}_gemm", None, given)


def call_syrk(
    f: Emitter, element: str, kind: Value, sizes: Sequence[Value], places: Sequence[Value]
) -> None:
    """Print the product of a matrix and its own transpose, from the diagonal on. sizes: rows of the
    result, terms; places: of the matrix and the result, each with its leading dimension.
    """
    a, lda, c, ldc = places
    one, zero = _numbers(f, element)
    n, k, lda, ldc = (_size(f, v) for v in (*sizes, lda, ldc))
    order = [f.constant(I32, x) for x in (_ROWS, _UPPER)]
    given = [*order, f.convert(kind, "i32"), n, k, one, a, lda, zero, c, ldc]
    f.call(f"funct_{element}_syrk", None, given)


def call_gemv(
    f: Emitter, element: str, kind: Value, sizes: Sequence[Value], places: Sequence[Value],
    apart: Value | None = None,
) -> None:  # fmt: skip
    """Print the product of a matrix, as it is or transposed, and a vector. sizes: rows, columns of
    the matrix as it is; places: the matrix, its leading dimension, the vector, the result. apart:
    from one number of the vector to the next, if not 1.
    """
    a, lda, x, y = places
    one, zero = _numbers(f, element)
    m, n, lda, step = (_size(f, v) for v in (*sizes, lda, f.constant(I64, 1)))
    kind, apart = f.convert(kind, "i32"), step if apart is None else _size(f, apart)
    given = [f.constant(I32, _ROWS), kind, m, n, one, a, lda, x, apart, zero, y, step]
    f.call(f"funct_{element}_gemv", None, given)


def call_dot(f: Emitter, kind: str, size: Value, x: Value, y: Value, out: Value) -> None:
    """Print the sum of so many products in double precision. kind: "f64_dot", "c128_dot", or
    "c128_vdot", which conjugates x.
    """
    n, step = (_size(f, v) for v in (size, f.constant(I64, 1)))
    given = [n, x, step, y, step]
    if kind.startswith("c"):
        f.call(f"funct_{kind}", None, [*given, out])
    else:
        total = f.call(f"funct_{kind}", F64, given)
        assert total is not None
        f.store(total, out)


@contextmanager
def alone(f: Emitter, where: Value | None = None) -> Iterator[None]:
    """What is printed within the block computes on the thread that calls. where: if that holds."""

    def call(name: str) -> None:
        f.call(name, None, [])

    def ask(name: str) -> None:
        if where is None:
            call(name)
        else:
            f.when(where, lambda: call(name))

    ask("funct_blas_alone")
    yield
    ask("funct_blas_again")


def _numbers(f: Emitter, element: str) -> list[Value]:
    """1 and 0; where they are complex, their places."""
    kind = F32 if element in ("f32", "c64") else F64
    if element.startswith("f"):
        return [f.constant(kind, n) for n in (1, 0)]
    return [f.address(f.module.table(kind, [n, 0])) for n in (1, 0)]


def _size(f: Emitter, x: Value) -> Value:
    """A length as BLAS counts."""
    return x if counts_in_64_bits() else f.convert(x, "i32")


for _letter, _element in (("s", "f32"), ("d", "f64"), ("c", "c64"), ("z", "c128")):
    for _name in ("gemm", "gemv", "syrk"):
        blas.offer(f"funct_{_element}_{_name}", f"cblas_{_letter}{_name}")
blas.offer("funct_f64_dot", "cblas_ddot")
blas.offer("funct_c128_dot", "cblas_zdotu_sub")
blas.offer("funct_c128_vdot", "cblas_zdotc_sub")
