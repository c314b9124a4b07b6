"""One matrix, or few, whose rows are vectors.

LAPACK copies a matrix to columns, asks how much room it needs, and calls BLAS for a few elements at
a time, all of which takes longer than computing with up to some hundred rows. Every function gives
None where LAPACK is to be asked: for other matrices, without LLVM, and where a matrix is not such
that its result is right, which LAPACK then says. Matrices are computed in the precision in which it
would compute them.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import Kernel, compiles
from funct.kernels.cpu.prepared import Plan, Prepared
from funct.kernels.cpu.scratch import aligned, workspace
from funct.kernels.cpu.small import row_factors, row_systems, row_triangles
from funct.kernels.linalg.lapack import inner
from funct.kernels.linalg.stacks import are_some

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "ALREADY", "cholesky", "det", "inv", "layout", "lu", "qr", "reflections", "slogdet", "solve",
    "solve_triangular", "suits", "triangles",
]  # fmt: skip

Layout = tuple[int, int, np.dtype[Any], int, int, int]

_MOST, _MOST_REFLECTED, _MOST_OF_TRIANGLES = 300, 128, 512  # rows: of more, BLAS is as fast
_MOST_OF_ONE = 112, 160  # rows of complex and real triangles of one right side: BLAS reads more
_IN_LANES = 64  # solutions of a real system, up to which lanes are systems where there are so many
_SIDES = 16  # right sides of small matrices
_TASK = 1 << 20  # multiplications that are worth a task
_SPAN = 1 << 23  # and, twice counted, right sides of one triangle
_LINE = 64  # bytes of a vector
_QR, _SLOGDET = row_factors.qr.alone(), row_systems.slogdet.alone()
_TRIANGULAR = row_triangles.solve_triangular.alone()
_PLANNED = 1 << 12  # elements up to which a call is prepared, which keeps some room
_PLANNED_TRIANGLES = 1 << 16  # the same of what keeps room for some columns alone


def det(x: NDArray[Any]) -> NDArray[Any] | None:
    """Determinants."""
    if (how := _layout("det", x)) is None:
        return None
    y = np.empty(x.shape[:-2], x.dtype)
    return y if _fine(row_systems.det, how, (x, y)) else None


def slogdet(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Their signs, and the logarithms of their absolute values."""
    if (how := _layout("slogdet", x)) is None:
        return None
    sign, size = np.empty(x.shape[:-2], x.dtype), np.empty(x.shape[:-2], x.dtype)
    return (sign, size) if _fine(row_systems.slogdet, how, (x, sign, size), (), (0,)) else None


def solve(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any] | None:
    """a⁻¹ b, with no more right sides than rows, or a few more; all systems may have the same."""
    if (sides := _sides(a, b)) is None or (how := _layout("solve", a, sides[0])) is None:
        return None
    y = np.empty((*a.shape[:-1], sides[0]), b.dtype)
    return y if _fine(row_systems.solve, how, (a, b, y), sides) else None


def solve_triangular(a: NDArray[Any], b: NDArray[Any], lower: bool) -> NDArray[Any] | None:
    """a⁻¹ b for the lower or upper triangles of a, in their own precision; of complex ones too."""
    if a.__class__ is not np.ndarray or (sides := _sides(a, b)) is None:
        return None
    if not suits("solve_triangular", a.shape, a.dtype.char, sides[0]) or not compiles():
        return None
    each, wide, count, part, span, tasks = triangles(a.shape, a.dtype.char, sides[0])
    n, along = a.shape[-1], 1
    if not a.flags.c_contiguous and (turned := a.mT).flags.c_contiguous:
        a, along = turned, n
    y, odd = np.empty((*a.shape[:-1], sides[0]), b.dtype), np.empty(tasks, np.int64)
    row_triangles.solve_triangular(
        a, b, y, workspace(tasks * each, wide), odd, n, *sides, along, count, lower,
        bool(a.dtype != wide), part, span, tasks,
    )  # fmt: skip
    if odd.item() if tasks == 1 else odd.any():
        raise np.linalg.LinAlgError
    return y


def _sides(a: Any, b: Any) -> tuple[int, int] | None:
    """How many right sides a system has, and how many elements those of the next are behind. A
    vector is one of all systems.
    """
    shape, rank = b.shape, a.ndim
    if b.dtype is not a.dtype or shape[0 if b.ndim == 1 else -2] != a.shape[-1]:
        return None
    if b.ndim < 3 and (b.ndim == 1 or rank > 2):
        return (1 if b.ndim == 1 else shape[1]), 0
    return (shape[-1], shape[-1] * shape[-2]) if shape[:-1] == a.shape[:-1] else None


def inv(x: NDArray[Any]) -> NDArray[Any] | None:
    """Inverses."""
    if (how := _layout("inv", x, x.shape[-1])) is None:
        return None
    y = np.empty(x.shape, x.dtype)
    fine = _fine(row_systems.inv, how, (x, y, _places(how)))
    return y if fine else None


def lu(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
    """Permutations P, unit lower L, upper U with P L U = x, of square matrices."""
    if (how := _layout("lu", x)) is None:
        return None
    p, low, up = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    return (p, low, up) if _fine(row_systems.lu, how, (x, p, low, up, _places(how))) else None


def cholesky(x: NDArray[Any]) -> NDArray[Any] | None:
    """Lower factors of the Hermitian parts."""
    if (how := _layout("cholesky", x)) is None:
        return None
    y = np.empty(x.shape, x.dtype)
    return y if _fine(row_factors.cholesky, how, (x, y)) else None


def qr(x: NDArray[Any], complete: bool) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Orthonormal Q and upper R with LAPACK's signs."""
    if _has_phases(x, complete) or not suits("qr", x.shape, x.dtype.char) or not compiles():
        return None
    sizes, dealt, each, wide, tasks = reflections(x.shape, x.dtype.char, complete)
    m, n, columns, *_ = sizes
    lead, odd = x.shape[:-2], np.empty(tasks, np.int64)
    q, r = np.empty((*lead, m, columns), x.dtype), np.empty((*lead, columns, n), x.dtype)
    count, part = dealt
    row_factors.qr(x, q, r, workspace(tasks * each, wide), odd, *sizes, 0, count, part, tasks)
    return None if odd.any() else (q, r)


def _has_phases(x: Any, complete: bool) -> bool:
    """Whether Q has columns that no column of a complex matrix decides."""
    if x.__class__ is not np.ndarray or x.ndim < 2:
        return True  # nor are others computed here
    return complete and x.shape[-2] > x.shape[-1] and x.dtype.kind == "c"


@functools.lru_cache(1024)
def suits(name: str, shape: tuple[int, ...], char: str, sides: int = 0) -> bool:
    """Whether matrices are computed so. sides: how many right sides a system has."""
    if len(shape) < 2 or 0 in shape:
        return False
    if name == "solve_triangular":
        some = shape[-1] == shape[-2] <= _MOST_OF_TRIANGLES and sides > 0
        return some and _are_panels(shape, char, sides)
    if name == "qr":
        return char in "fdFD" and max(shape[-2:]) <= _MOST_REFLECTED
    if char not in "fd":
        return False
    if name == "solve" and not 0 < sides <= max(shape[-1], _SIDES):
        return False
    return shape[-1] == shape[-2] <= _MOST


def _are_panels(shape: tuple[int, ...], char: str, sides: int) -> bool:
    """Whether right sides of triangles are vectors, rather than systems lanes, or BLAS's."""
    real, count = char in "fd", math.prod(shape[:-2])
    if char not in "fdFD":
        return False
    if real and count >= _LINE // np.dtype(char).itemsize and shape[-1] * sides <= _IN_LANES:
        return False
    return sides > 1 or shape[-1] <= _MOST_OF_ONE[real]


@functools.lru_cache(1024)
def layout(shape: tuple[int, ...], char: str, beside: int = 0) -> Layout:
    """How square matrices stand in a room: their rows, elements from one row to the next with so
    many columns beside them, the room's dtype, how many matrices there are, and how many in each of
    so many tasks. A task's room has one row more.
    """
    n = shape[-1]
    wide = np.dtype(inner(char, n, n))
    return n, _apart(_whole(n, wide) + _whole(beside, wide), wide), wide, *_dealt(shape, n)


@functools.lru_cache(1024)
def triangles(
    shape: tuple[int, ...], char: str, sides: int
) -> tuple[int, np.dtype[Any], int, int, int, int]:
    """What room a task needs for right sides, its dtype, how many systems there are, how many, or
    right sides of one alone, in each of so many tasks.
    """
    n, wide = shape[-1], np.dtype(char.lower())
    each = 2 * (n * _LINE // wide.itemsize + _whole(n, wide))
    count, part, tasks = _dealt(shape, n)
    row = 2 * _LINE // wide.itemsize
    span = -(-_SPAN // (n * n * row)) * row
    return each, wide, count, part, span, -(-sides // span) if count == 1 else tasks


@functools.lru_cache(1024)
def reflections(
    shape: tuple[int, ...], char: str, complete: bool
) -> tuple[tuple[int, ...], tuple[int, int], int, np.dtype[Any], int]:
    """The sizes that the kernel of `qr` is told, how many matrices there are and how many in a
    task, what room that needs, its dtype, and how many tasks there are.
    """
    m, n = shape[-2:]
    columns, wide = m if complete else min(m, n), np.dtype(inner(char, m, n).lower())
    pairs = char in "FD"
    parts = 2 if pairs else 1
    apart, beside = (_apart(parts * _whole(k, wide), wide) for k in (n, columns))
    count, part, tasks = _dealt(shape, max(m, n))
    each = m * (apart + beside) + _whole(2 * parts * m, wide)
    return (m, n, columns, apart, beside, pairs), (count, part), each, wide, tasks


def _layout(name: str, x: Any, beside: int = 0) -> Layout | None:
    if x.__class__ is not np.ndarray or not suits(name, x.shape, x.dtype.char, beside):
        return None
    return layout(x.shape, x.dtype.char, beside) if compiles() else None


def _whole(n: int, dtype: np.dtype[Any]) -> int:
    """How many elements the vectors have that hold n of them."""
    width = _LINE // dtype.itemsize
    return -(-n // width) * width


def _apart(length: int, dtype: np.dtype[Any]) -> int:
    """An odd number of vectors: those of a column find room in the caches."""
    width = _LINE // dtype.itemsize
    return (length // width | 1) * width


def _dealt(shape: tuple[int, ...], n: int) -> tuple[int, int, int]:
    """How many matrices there are, and how many in each of so many tasks."""
    count, part = math.prod(shape[:-2]), max(_TASK // n**3, 1)
    return count, part, -(-count // part)


def _places(how: Layout) -> NDArray[Any]:
    return np.empty(how[-1] * how[0], np.int64)


def _fine(
    kernel: Callable[..., int], how: Layout, arrays: tuple[Any, ...], sizes: tuple[int, ...] = (),
    start: tuple[int, ...] = (),
) -> bool:  # fmt: skip
    """Run it in tasks; whether what it met was all regular."""
    n, apart, wide, count, part, tasks = how
    odd, room = np.empty(tasks, np.int64), workspace(tasks * (n + 1) * apart, wide)
    kernel(*arrays, room, odd, n, *sizes, apart, *start, count, part, tasks)
    return not (odd.item() if tasks == 1 else odd.any())


def _plan_of(name: str, kernel: Kernel) -> Callable[..., Plan | None]:
    """What prepares calls of an op."""
    alone = kernel.alone()

    def way(x: Any, b: Any = None) -> Plan | None:
        sides = (x.shape[-1] if name == "inv" else 0,) if b is None else _sides(x, b)
        sizes = [x.size] if b is None else [x.size, b.size]
        if sides is None or max(sizes) > _PLANNED or (x.ndim > 2 and are_some(x.shape)):
            return None
        if (how := _layout(name, x, sides[0])) is None:
            return None
        n, apart, wide, count, *_ = how
        shape = x.shape[:-2] if name == "det" else x.shape
        if b is not None:
            shape = (*x.shape[:-1], *b.shape[-1:]) if b.ndim > 1 else x.shape[:-1]
        y, given = np.empty(shape, x.dtype), (x,) if b is None else (x, b)
        places = (np.empty(n, np.int64),) if name == "inv" else ()
        spare = (*places, aligned((n + 1) * apart, wide), np.empty(1, np.int64))
        rest = (n, *(() if b is None else sides), apart, count, count, 0)
        to = len(given)
        return Plan(alone, (*given, y, *spare, *rest), tuple(range(to)), shape, x.dtype, to)

    return way


def _plan_of_triangles(a: Any, b: Any, lower: bool, turned: bool) -> Plan | None:
    sides = _sides(a, b)
    if sides is None or max(a.size, b.size) > _PLANNED_TRIANGLES or not compiles():
        return None
    if not suits("solve_triangular", a.shape, a.dtype.char, sides[0]):
        return None
    each, wide, count, *_ = triangles(a.shape, a.dtype.char, sides[0])
    n, shape = a.shape[-1], (*a.shape[:-1], *b.shape[-1:]) if b.ndim > 1 else a.shape[:-1]
    given = (a, b, np.empty(shape, a.dtype), aligned(each, wide), np.empty(1, np.int64))
    rest = (n, *sides, n if turned else 1, count, lower, bool(a.dtype != wide), count, sides[0], 0)
    return Plan(_TRIANGULAR, (*given, *rest), (0, 1, None, None), shape, a.dtype, 2)


def _plan_of_reflections(x: Any, complete: bool) -> Plan | None:
    if (x.ndim > 2 and are_some(x.shape)) or x.size > _PLANNED or not compiles():
        return None
    if _has_phases(x, complete) or not suits("qr", x.shape, x.dtype.char):
        return None
    sizes, (count, _), each, wide, _ = reflections(x.shape, x.dtype.char, complete)
    m, n, columns, *_ = sizes
    start = count * m * columns
    y, odd = np.empty(start + count * columns * n, x.dtype), np.empty(1, np.int64)
    given = (x, y, y, aligned(each, wide), odd, *sizes, start, count, count, 0)
    return Plan(_QR, given, (0, None), y.shape, x.dtype, 1)


def _plan_of_logarithms(x: Any) -> Plan | None:
    if (x.ndim > 2 and are_some(x.shape)) or x.size > _PLANNED:
        return None
    if (how := _layout("slogdet", x)) is None:
        return None
    n, apart, wide, count, *_ = how
    y, odd = np.empty((2, *x.shape[:-2]), x.dtype), np.empty(1, np.int64)
    given = (x, y, y, aligned((n + 1) * apart, wide), odd, n, apart, count, count, count, 0)
    return Plan(_SLOGDET, given, (0,), y.shape, x.dtype, 1)


ALREADY = {
    name: Prepared(_plan_of(name, kernel))
    for name, kernel in (
        ("det", row_systems.det), ("inv", row_systems.inv), ("solve", row_systems.solve),
        ("cholesky", row_factors.cholesky),
    )
} | {
    "solve_triangular": Prepared(_plan_of_triangles), "qr": Prepared(_plan_of_reflections),
    "slogdet": Prepared(_plan_of_logarithms),
}  # fmt: skip
"""Calls that have come before, of few elements. For the right sides of a system also a vector. Q
and R are in one array, one behind the other, signs and logarithms of determinants too.
"""
