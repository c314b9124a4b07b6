"""NumPy's BLAS, called by address from machine code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from funct.compile.loops.views import View
from funct.device import blas
from funct.device.machine_code import offer
from funct.kernels.llvm import F32, F64, I32, Emitter, Value

__all__ = ["KINDS", "Library", "Matrix", "call_gemm", "call_syrk", "library"]

_ROWS, _UPPER = 101, 121  # of CBLAS
KINDS = 111, 112  # what it calls a matrix as it is, and transposed


class Library(Struct, frozen=True):
    """Addresses of CBLAS's functions by their names, and whether it counts in 64 bits."""

    functions: dict[str, int]
    wide: bool


@functools.cache
def library() -> Library | None:
    """NumPy's BLAS, if its products can be called by address."""
    found = {name: blas.cblas(name) for name in ("sgemm", "dgemm", "ssyrk", "dsyrk")}
    if None in found.values():
        return None
    functions = {name: place[0] for name, place in found.items() if place is not None}
    wide = found["sgemm"]
    return Library(functions, wide is not None and wide[1])


class Matrix(Struct, frozen=True):
    """A stack of matrices as BLAS takes them: leading dimension, and how the stack moves."""

    view: View
    transposed: bool
    leading: int
    stack: tuple[tuple[int, int], ...]  # (length, stride), the innermost last


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
    length = "i64" if _is_wide() else "i32"
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
    length = "i64" if _is_wide() else "i32"
    _call(f, "syrk", element, given, f"i32, i32, i32, {length}, {length}, {real}, ptr, {length}, "
          f"{real}, ptr, {length}")  # fmt: skip


def _is_wide() -> bool:
    found = library()
    assert found is not None, "there is BLAS where products are lowered"
    return found.wide


def _numbers(f: Emitter, element: str) -> tuple[str, str, str, Callable[[Value], str]]:
    """The name of the numbers, 1, 0, and how sizes are written."""
    real, wide = F32 if element == "f32" else F64, _is_wide()
    one, zero = (repr(f.constant(real, n)) for n in (1, 0))
    return real.text, one, zero, lambda x: repr(x if wide else f.convert(x, "i32"))


def _call(f: Emitter, name: str, element: str, given: Sequence[str], types: str) -> None:
    function = f"@funct_{element}_{name}"
    f.module.declare(function, f"declare void {function}({types})")
    f.line(f"call void {function}({', '.join(given)})")


def _address(name: str) -> Any:
    found = library()
    assert found is not None, "asked for by text that was printed for it"
    return found.functions[name]


for _letter, _element in (("s", "f32"), ("d", "f64")):
    for _name in ("gemm", "syrk"):
        offer(f"funct_{_element}_{_name}", functools.partial(_address, _letter + _name))
