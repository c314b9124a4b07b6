"""Products of small matrices in stacks: a row of the result is a vector, its sums in registers.

A call of BLAS for each takes longer than the product. Sums have one order, first term first,
whatever the operands' strides are, each product rounded with its sum (`fma`).

A second matrix whose columns lie side by side, as in x @ y.mT, is turned around in registers: what
fits into a few vectors is read whole and its rows taken out of that, others are squares. A stack of
matrices by a vector each is the product of the transposes, turned.

A row of complex numbers is one of their parts: a number times it is its real part times the row
and, added to that, its imaginary part times the row times i.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import Host, host, printed
from funct.kernels.cpu import scratch
from funct.kernels.cpu.dense.turn import transposed
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.tasks import Units, deal_out_units
from funct.kernels.llvm import Emitter, Module, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "SIDE",
    "complex_matmul",
    "matmul",
    "print_pairs",
    "print_product",
    "readable_whole",
    "text",
]

SIDE = 16  # rows, terms and columns, at most
_TERMS = 1 << 9  # of all vectors of sums: of more BLAS, or tiles, are as fast
_BY_NUMBERS = 64  # terms of all sums of a vector that are read number by number
_WHOLE = 256  # bytes of a matrix that is read whole
_LEAST_SQUARE = 4  # elements of a side
_TASK = 1 << 17  # multiplications of a number by a row that are worth a task
_MATRIX = 8  # such multiplications that take as long as to begin a product
_SUMS = {64: 20, 32: 10, 16: 20}  # vectors of sums held at a time, by the bytes of a vector
_ELEMENTS = {"f": "f32", "d": "f64"}
_FIELDS = Fields(("x", "y", "z", "tasks", "count", "x_pitch", "y_pitch"))
_job = struct.Struct(f"{len(_FIELDS)}q").pack

Sizes = tuple[int, int, int]
Steps = tuple[int, int]


def readable_whole(element: str, k: int, n: int) -> bool:
    """Whether a second matrix of k rows may have columns that lie side by side."""
    return k * n * typed(element).bytes <= _WHOLE


def print_product(
    f: Emitter, element: str, sizes: Sizes, steps: tuple[Steps, Steps], places: tuple[Value, ...]
) -> None:
    """Print: c = a b, for a (m, k), b (k, n) and c (m, n), which is contiguous.

    steps: elements from row to row and from column to column of a and of b; those of b are (any, 1)
    or (1, k).
    """
    (m, k, n), (a, b, c) = sizes, places
    (down, along), (across, beside) = steps
    most = f.module.target.vector_bytes // typed(element).bytes
    parts = [(j, min(most, n - j)) for j in range(0, n, most)]
    rows_of_b: list[list[Value]] = []
    if beside != 1 and n > 1:
        assert (across, beside) == (1, k), "columns lie side by side"
        turn = _looked_up if readable_whole(element, k, n) else _turned
        rows_of_b = turn(f, element, b, (k, n), parts)
    held = max(1, _SUMS.get(f.module.target.vector_bytes, 10) // len(parts))
    for first in range(0, m, held):
        rows = range(first, min(m, first + held))
        sums: dict[tuple[int, int], Value] = {}
        for p in range(k):
            if rows_of_b:
                row = rows_of_b[p]
            else:
                row = [_read(f, element, f.at(b, p * across + j, element), w) for j, w in parts]
            for i in rows:
                factor = f.load(typed(element), f.at(a, i * down + p * along, element))
                for q, v in enumerate(row):
                    one = f.splat(factor, v.type.lanes)
                    sums[i, q] = f.fma(one, v, sums[i, q]) if p else one * v
        for i in rows:
            for q, (j, width) in enumerate(parts):
                _write(f, sums[i, q], f.at(c, i * n + j, element), width)


def _looked_up(
    f: Emitter, element: str, b: Value, sizes: Steps, parts: list[Steps]
) -> list[list[Value]]:
    """Rows of a matrix whose columns lie side by side: each takes its elements out of all."""
    k, n = sizes
    whole = _read(f, element, b, k * n)
    return [
        [
            f.shuffle(whole, None, [min(j + i, n - 1) * k + p for i in range(_lanes(width))])
            for j, width in parts
        ]
        for p in range(k)
    ]


def _turned(
    f: Emitter, element: str, b: Value, sizes: Steps, parts: list[Steps]
) -> list[list[Value]]:
    """The same: squares are turned around. What lacks of one is its last column, again."""
    k, n = sizes
    found: list[list[Value]] = [[] for _ in range(k)]
    for j, width in parts:
        side = max(_LEAST_SQUARE, _lanes(width))
        wide = typed(element, side)
        for p in range(0, k, side):
            mask = None if p + side <= k else f.vector(
                typed("i1", side), [p + i < k for i in range(side)]
            )  # fmt: skip
            columns = [
                f.load(wide, f.at(b, min(j + i, n - 1) * k + p, element), mask) for i in range(side)
            ]
            for row, v in zip(found[p:], transposed(f, columns), strict=False):
                row.append(f.piece(v, 0, _lanes(width)))
    return found


def print_pairs(f: Emitter, element: str, sizes: Sizes, places: tuple[Value, ...]) -> None:
    """Print the same of complex numbers whose parts are such elements, all contiguous."""
    (m, k, n), (a, b, c) = sizes, places
    most = f.module.target.vector_bytes // typed(element).bytes
    parts = [(j, min(most, 2 * n - j)) for j in range(0, 2 * n, most)]
    held = max(1, _SUMS.get(f.module.target.vector_bytes, 10) // (2 * len(parts)))
    for first in range(0, m, held):
        rows = range(first, min(m, first + held))
        sums: dict[tuple[int, int], Value] = {}
        for p in range(k):
            row = [_read(f, element, f.at(b, 2 * p * n + j, element), w) for j, w in parts]
            turned = [_times_i(f, v) for v in row]
            for i in rows:
                places = tuple(f.at(a, 2 * (i * k + p) + part, element) for part in range(2))
                re, im = (f.load(typed(element), at) for at in places)
                for q, (v, w) in enumerate(zip(row, turned, strict=True)):
                    one, other = f.splat(re, v.type.lanes), f.splat(im, v.type.lanes)
                    sums[i, q] = f.fma(one, v, sums[i, q]) if p else one * v
                    sums[i, q] = f.fma(other, w, sums[i, q])
        for i in rows:
            for q, (j, width) in enumerate(parts):
                _write(f, sums[i, q], f.at(c, 2 * i * n + j, element), width)


def _times_i(f: Emitter, v: Value) -> Value:
    lanes = v.type.lanes
    signs = f.vector(v.type, [2 * (i % 2) - 1 for i in range(lanes)])
    return f.shuffle(v, None, [i ^ 1 for i in range(lanes)]) * signs


def _lanes(count: int) -> int:
    return 1 << (count - 1).bit_length()


def _read(f: Emitter, element: str, place: Value, count: int) -> Value:
    """So many elements, and zeros up to a power of two."""
    wide = typed(element, _lanes(count))
    return f.load(wide, place, _mask(f, count))


def _write(f: Emitter, v: Value, place: Value, count: int) -> None:
    f.store(v, place, _mask(f, count))


def _mask(f: Emitter, count: int) -> Value | None:
    lanes = _lanes(count)
    if lanes == count:
        return None
    return f.vector(typed("i1", lanes), [k < count for k in range(lanes)])


def text(element: str, sizes: Sizes, steps: tuple[Steps, Steps] | None, target: Host) -> str:
    """`multiply(job)` of stacks of products. steps: None of complex numbers."""
    module, parts = Module(target), 1 if steps is not None else 2

    def units(f: Emitter, job: Record) -> Units:
        x, y, z = (job.pointer(name) for name in "xyz")
        x_pitch, y_pitch = job.x_pitch, job.y_pitch

        def product(at: Value) -> None:
            places = (
                f.at(x, at * x_pitch, element), f.at(y, at * y_pitch, element),
                f.at(z, at * (sizes[0] * sizes[2] * parts), element),
            )  # fmt: skip
            if steps is None:
                print_pairs(f, element, sizes, places)
            else:
                print_product(f, element, sizes, steps, places)

        return job.count, product

    deal_out_units(module, "multiply", _FIELDS, units)
    return module.text()


@functools.lru_cache(512)
def _entry(element: str, sizes: Sizes, steps: tuple[Steps, Steps] | None) -> Any:
    code = printed(text, element, sizes, steps, host()).keep()
    return ctypes.CFUNCTYPE(None, ctypes.c_char_p)(code.address("multiply"))


def matmul(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """x @ y for stacks of matrices of one dtype, which fit; one of the two may be one matrix."""
    (m, k), n = x.shape[-2:], y.shape[-1]
    element, lead = _ELEMENTS[x.dtype.char], _lead(x, y)
    if lead is None:
        return NotImplemented
    count = prod(lead)
    x, x_pitch, x_steps = _laid_out(x)
    y, y_pitch, y_steps = _laid_out(y)
    z = scratch.fresh((*lead, m, n), x.dtype)
    places, pitches, sizes = (address(x), address(y)), (x_pitch, y_pitch), (m, k, n)
    if n == 1 < m and (x_steps[0] == 1 or readable_whole(element, k, m)):  # (yᵀ xᵀ)ᵀ
        places, pitches, sizes = places[::-1], pitches[::-1], (1, k, m)
        x_steps, y_steps = y_steps[::-1], x_steps[::-1]
    if sizes[2] == 1 and m * k > _BY_NUMBERS:
        return NotImplemented
    parts = -(-sizes[2] * x.itemsize // host().vector_bytes)
    tasks = max(1, min(count * (sizes[0] * k * parts + _MATRIX) // _TASK, 4 * host().cores))
    _entry(element, sizes, (x_steps, y_steps))(_job(*places, address(z), tasks, count, *pitches))
    return z


def complex_matmul(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """The same of complex numbers, which are copied where they do not lie side by side."""
    lead, (m, k), n = _lead(x, y), x.shape[-2:], y.shape[-1]
    if lead is None:
        return NotImplemented
    x, y = (np.require(v, requirements=["C", "A"]) for v in (x, y))
    z, count = scratch.fresh((*lead, m, n), x.dtype), prod(lead)
    parts = -(-n * x.itemsize // host().vector_bytes)
    tasks = max(1, min(count * (2 * m * k * parts + _MATRIX) // _TASK, 4 * host().cores))
    pitches = _pitch(x, 2 * m * k), _pitch(y, 2 * k * n)
    element = _ELEMENTS[x.real.dtype.char]
    _entry(element, (m, k, n), None)(_job(*map(address, (x, y, z)), tasks, count, *pitches))
    return z


def _lead(x: NDArray[Any], y: NDArray[Any]) -> tuple[int, ...] | None:
    """The axes of the stack; None where these are no small products of one stack, or of two."""
    (m, k), n = x.shape[-2:], y.shape[-1]
    vectors = -(-n * x.itemsize // host().vector_bytes) * (2 if x.dtype.kind == "c" else 1)
    if not 0 < m * k * vectors <= _TERMS or max(m, k, n) > SIDE:
        return None
    lead = x.shape[:-2] if x.ndim >= y.ndim else y.shape[:-2]
    other = any(v.shape[:-2] != lead and prod(v.shape[:-2]) != 1 for v in (x, y))
    return None if other else lead


def _laid_out(x: NDArray[Any]) -> tuple[NDArray[Any], int, Steps]:
    """x, or a copy, such that the matrices lie one pitch apart, rows or columns side by side."""
    m, n = x.shape[-2:]
    size, flags = x.itemsize, x.flags
    if flags.c_contiguous and flags.aligned:
        return x, _pitch(x, m * n), (n, 1)
    if x.ndim == 3 and flags.aligned:
        pitch, down, along = x.strides
        for steps in ((n, 1), (1, m)):
            if (down, along) == (steps[0] * size, steps[1] * size) and pitch % size == 0:
                return x, 0 if len(x) == 1 else pitch // size, steps
    return x.copy(), _pitch(x, m * n), (n, 1)


def _pitch(x: NDArray[Any], size: int) -> int:
    return size if prod(x.shape[:-2]) > 1 else 0
