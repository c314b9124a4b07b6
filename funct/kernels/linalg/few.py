"""One real matrix, or few, whose rows are vectors.

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

from funct.kernels.cpu.loops import compiles
from funct.kernels.cpu.scratch import workspace
from funct.kernels.cpu.small import row_factors, row_systems
from funct.kernels.linalg.lapack import inner

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "LEAST", "cholesky", "det", "inv", "layout", "lu", "qr", "reflections", "slogdet", "solve",
    "suits",
]  # fmt: skip

Layout = tuple[int, int, np.dtype[Any], int, int, int]

_MOST, _MOST_INVERTED, _MOST_REFLECTED = 300, 256, 128  # rows: of more, BLAS is as fast
_SIDES = 16
_TASK = 1 << 20  # multiplications that are worth a task
_LINE = 64  # bytes of a vector
LEAST = {"d": 2.0**-49, "f": 2.0**-20}  # what rounding may leave of a column


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
    return (sign, size) if _fine(row_systems.slogdet, how, (x, sign, size)) else None


def solve(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any] | None:
    """a⁻¹ b, with no more right sides than rows, or a few more."""
    shape, sides = a.shape, b.shape
    if a.dtype is not b.dtype:
        return None
    if sides[:-1] != shape[:-1]:
        if len(sides) != 2 or sides[0] != shape[-1]:
            return None
        b = np.broadcast_to(b, shape[:-2] + sides)
    if (how := _layout("solve", a, sides[-1])) is None:
        return None
    y = np.empty(b.shape, b.dtype)
    fine = _fine(row_systems.solve, how, (a, b, y), (sides[-1],), LEAST[how[2].char])
    return y if fine else None


def inv(x: NDArray[Any]) -> NDArray[Any] | None:
    """Inverses."""
    if (how := _layout("inv", x, x.shape[-1])) is None:
        return None
    y = np.empty(x.shape, x.dtype)
    fine = _fine(row_systems.inv, how, (x, y, _places(how)), (), LEAST[how[2].char])
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
    if not suits("qr", x.shape, x.dtype.char) or x.__class__ is not np.ndarray or not compiles():
        return None
    sizes, each, wide, tasks = reflections(x.shape, x.dtype.char, complete)
    m, n, columns, *_ = sizes
    lead, odd = x.shape[:-2], np.empty(tasks, np.int64)
    q, r = np.empty((*lead, m, columns), x.dtype), np.empty((*lead, columns, n), x.dtype)
    row_factors.qr(x, q, r, workspace(tasks * each, wide), odd, *sizes, tasks)
    return None if odd.any() else (q, r)


@functools.lru_cache(1024)
def suits(name: str, shape: tuple[int, ...], char: str, sides: int = 0) -> bool:
    """Whether matrices are computed so. sides: how many right sides a system has."""
    if char not in "fd" or len(shape) < 2 or 0 in shape:
        return False
    if name == "qr":
        return max(shape[-2:]) <= _MOST_REFLECTED
    if name == "solve" and not 0 < sides <= max(shape[-1], _SIDES):
        return False
    most = _MOST_INVERTED if name == "inv" else _MOST
    return shape[-1] == shape[-2] <= most


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
def reflections(
    shape: tuple[int, ...], char: str, complete: bool
) -> tuple[tuple[int, ...], int, np.dtype[Any], int]:
    """The sizes that the kernel of `qr` is told, what room a task needs, its dtype, and how many
    tasks there are.
    """
    m, n = shape[-2:]
    columns, wide = m if complete else min(m, n), np.dtype(inner(char, m, n))
    apart, beside = (_apart(_whole(k, wide), wide) for k in (n, columns))
    count, part, tasks = _dealt(shape, max(m, n))
    each = m * (apart + beside) + _whole(2 * m, wide)
    return (m, n, columns, apart, beside, count, part), each, wide, tasks


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
    *rest: float,
) -> bool:  # fmt: skip
    """Run it in tasks; whether what it met was all regular."""
    n, apart, wide, count, part, tasks = how
    odd, room = np.empty(tasks, np.int64), workspace(tasks * (n + 1) * apart, wide)
    kernel(*arrays, room, odd, n, *sizes, apart, count, part, *rest, tasks)
    return not (odd.item() if tasks == 1 else odd.any())
