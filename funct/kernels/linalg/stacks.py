"""Stacks of many small matrices, a matrix in each lane of a vector.

LAPACK takes a call for each matrix, which costs several times what computing with its few elements
does. Every function gives None where LAPACK is to be asked: for other stacks, without LLVM, and
where a matrix is not such that its result is right, which LAPACK then says.

Everything is computed in double precision: by elimination with the largest element of a column as
pivot, as LAPACK does it, or by rotations. Eigenvectors of real matrices are known up to a sign, and
keep the one that LAPACK gives.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import compiles
from funct.kernels.cpu.scratch import workspace
from funct.kernels.cpu.small import eigenvalues, factors, singular, systems
from funct.kernels.cpu.small.numbers import LANES
from funct.kernels.quiet import quiet

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "MOST", "are_some", "cholesky", "cofactors", "dealt", "det", "eigh", "eigvalsh", "in_lanes",
    "inv", "lu", "qr", "reduces", "rows_of", "slogdet", "solve", "svd", "svdvals",
]  # fmt: skip

# rows, up to which elimination in lanes is sooner, and rotations: a task's room stays in the caches
MOST, _MOST_TURNED = 32, 16
_MOST_REDUCED = 64  # rows of Hermitian matrices whose eigenvalues alone are asked for
_MOST_FACTORED = 48  # rows of matrices that are the product of two
_MOST_OF_ONE = 24  # rows of a real matrix alone whose factors L and U are found so
# rows of complex matrices that are found so if there are few of them, or one
_ALONE = {
    "F": {"cholesky": 16, "det": 8, "lu": 16, "solve": 8},
    "D": {"cholesky": 16, "lu": 16},
}  # fmt: skip
# rows or columns of matrices whose singular values are found so: of real ones, of long complex ones
_REAL_COLUMNS, _MOST_COLUMNS = 20, 10
_DOUBLE = np.dtype(np.float64)
_COMPLEX = frozenset(map(np.dtype, "FD"))
_ALL = "fdFD"
_LEAST = 512  # elements, and a few more for each matrix, from which elimination in lanes is sooner
_CALL = 16  # elements that a call of LAPACK costs like
_FEWEST = 32  # matrices, of which rotations are,
_FEWEST_REDUCED = 4  # and Hermitian ones
_TASK = 1 << 15  # elements times rows that are worth a task


def det(x: NDArray[Any]) -> NDArray[Any] | None:
    """Determinants."""
    return _determinants(x, x.dtype)


def slogdet(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Their signs, and the logarithms of their absolute values."""
    wide = np.dtype("D") if x.dtype in _COMPLEX else _DOUBLE
    found = _determinants(x, wide)
    if found is None:
        return None
    size = quiet().run(np.log, np.abs(found))  # of a singular matrix it is -inf
    return np.sign(found).astype(x.dtype), size.astype(x.real.dtype, copy=False)


def inv(x: NDArray[Any]) -> NDArray[Any] | None:
    """Inverses."""
    if not _suits(x, _ALL, most=rows_of("inv", x.dtype.char)):
        return None
    unit = np.empty(x.shape, x.dtype)
    unit[...] = _unit(x.shape[-1])
    return _solved(x, unit)


@functools.cache
def _unit(n: int) -> NDArray[Any]:
    return np.eye(n)


def solve(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any] | None:
    """a⁻¹ b; every matrix has right sides of its own, no more than a few."""
    if not _suits(a, _ALL, few=_are_short("solve", a)):
        return None
    if a.dtype != b.dtype or a.shape[:-1] != b.shape[:-1]:
        return None
    return _solved(a, b) if b.shape[-1] <= MOST else None


def cholesky(x: NDArray[Any]) -> NDArray[Any] | None:
    """Lower factors of the Hermitian parts."""
    if not _suits(x, _ALL, few=_are_short("cholesky", x), most=_MOST_FACTORED):
        return None
    n = x.shape[-1]
    y = np.empty(x.shape, x.dtype)
    return y if _eliminated(systems.cholesky, x.shape, (x, y), n * n, (n,)) else None


def cofactors(x: NDArray[Any], most: float) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Determinants times inverses transposed; and which matrices need more care, as the largest
    elements of one and of its inverse, multiplied, are `most` or more.
    """
    if not _suits(x):
        return None
    n = x.shape[-1]
    y, near = np.empty(x.shape, x.dtype), np.empty(x.shape[:-2], np.int64)
    count, part, tasks = dealt(x.shape)
    room = _room(tasks * (n + 1) * (2 * n + 1))
    systems.cofactors(x, y, room, near, n, count, part, most, tasks)
    return y, near != 0


def lu(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
    """Permutations P, unit lower L, upper U with P L U = x; of one matrix too."""
    pairs = x.dtype in _COMPLEX
    few = _are_short("lu", x) if pairs else max(x.shape[-2:]) <= _MOST_OF_ONE
    if not _suits(x, _ALL, square=False, few=few, most=_MOST_FACTORED):
        return None
    *lead, m, n = x.shape
    k, most = min(m, n), max(m, n)
    p = np.empty((*lead, m, m), x.real.dtype)
    low, up = np.empty((*lead, m, k), x.dtype), np.empty((*lead, k, n), x.dtype)
    _eliminated(factors.lu, (*lead, most, most), (x, p, low, up), m * (n + 1) + 1, (m, n))
    return p, low, up


def qr(x: NDArray[Any], complete: bool) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Orthonormal Q and upper R with LAPACK's signs."""
    if not _suits(x, _ALL, square=False, most=_MOST_FACTORED):
        return None
    *lead, m, n = x.shape
    columns, most = m if complete else min(m, n), max(m, n)
    q, r = np.empty((*lead, m, columns), x.dtype), np.empty((*lead, columns, n), x.dtype)
    room = m * (n + columns) + n
    fine = _eliminated(factors.qr, (*lead, most, most), (x, q, r), room, (m, n, columns))
    return (q, r) if fine else None


def eigh(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Ascending eigenvalues of the Hermitian parts of complex matrices; vectors of any phase."""
    if x.dtype.char not in "FD" or not reduces(x.shape, True) or not _suits(x, _ALL, few=True):
        return None
    v = np.empty(x.shape, x.dtype)
    w = _reduced(x, v, True)
    return None if w is None else (w, v)


def eigvalsh(x: NDArray[Any]) -> NDArray[Any] | None:
    """The eigenvalues alone: for complex matrices, those of `eigh`."""
    if not reduces(x.shape, False) or not _suits(x, _ALL, few=True, most=_MOST_REDUCED):
        return None
    return _reduced(x, x, False)


@functools.lru_cache(512)
def reduces(shape: tuple[int, ...], vectors: bool) -> bool:
    """Whether a stack of Hermitian matrices is so many that they are reduced in lanes, if they are
    small enough for it. vectors: whether their eigenvectors are asked for.
    """
    return math.prod(shape[:-2]) >= _FEWEST_REDUCED and shape[-1] <= (
        MOST if vectors else _MOST_REDUCED
    )


def _reduced(x: NDArray[Any], v: NDArray[Any], vectors: bool) -> NDArray[Any] | None:
    n, pairs = x.shape[-1], x.dtype.kind == "c"
    w = np.empty(x.shape[:-1], x.real.dtype)
    near = max(float(np.finfo(x.dtype).eps) / 16, float(np.finfo(np.float64).eps) / 2)
    room = (2 * (n | 1) + 4) * n * (2 if pairs else 1)
    fine = _fine(eigenvalues.eigh, x.shape, (x, w, v), room, (n,), near, pairs, vectors)
    return w if fine else None


def svd(x: NDArray[Any], full: bool) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
    """U, descending singular values and Vᴴ of complex matrices; vectors of any phase."""
    if not _suits(x, "FD", square=False, many=True, most=_MOST_TURNED):
        return None
    *lead, m, n = x.shape
    rows, k = max(m, n), min(m, n)
    columns, tall = rows if full else k, m > n
    short = np.empty((*lead, k, k), x.dtype)
    long = np.empty((*lead, rows, columns) if tall else (*lead, columns, rows), x.dtype)
    s = _orthogonal(x, long, short, columns, True)
    if s is None:
        return None
    return (long, s, short) if tall else (short, s, long)


def svdvals(x: NDArray[Any]) -> NDArray[Any] | None:
    """Descending singular values alone: for complex matrices, those of `svd`."""
    if x.ndim < 3:
        return None
    columns = min(x.shape[-2:])
    few = columns <= (_MOST_COLUMNS if x.dtype in _COMPLEX else _REAL_COLUMNS)
    most = MOST if few else _MOST_TURNED
    if not _suits(x, _ALL, square=False, many=True, most=most):
        return None
    return _orthogonal(x, x, x, columns, False)


def _orthogonal(
    x: NDArray[Any], long: NDArray[Any], short: NDArray[Any], columns: int, vectors: bool
) -> NDArray[Any] | None:
    *lead, m, n = x.shape
    rows, k, pairs = max(m, n), min(m, n), x.dtype.kind == "c"
    s = np.empty((*lead, k), x.real.dtype)
    near = max(float(np.finfo(x.dtype).eps) / 16, rows * float(np.finfo(np.float64).eps))
    room = 2 * (rows * columns + k * k + rows) + 3 * k
    sizes, arrays = (rows, k, columns), (x, s, long, short)
    how = near, m > n, pairs, vectors
    return s if _fine(singular.svd, (*lead, rows, rows), arrays, room, sizes, *how) else None


@functools.lru_cache(512)
def dealt(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """How many matrices there are, and how many in each of so many tasks."""
    n = shape[-1]
    count = math.prod(shape[:-2])
    part = -(-_TASK // (n**3 * LANES)) * LANES
    return count, part, -(-count // part)


def _room(vectors: int) -> NDArray[Any]:
    """So many of them, each in one line of the caches; across two, access takes twice as long."""
    return workspace(vectors * LANES, _DOUBLE)


def _are_short(name: str, x: NDArray[Any]) -> bool:
    """Whether complex matrices have so few rows that even one is sooner found so."""
    return x.ndim > 1 and _short(name, x.shape, x.dtype.char)


def _short(name: str, shape: tuple[int, ...], char: str) -> bool:
    return max(shape[-2:]) <= _ALONE.get(char, {}).get(name, 0)


def in_lanes(name: str, shape: tuple[int, ...], char: str) -> bool:
    """Whether matrices with elements are found so, as far as their shapes say."""
    some = max(shape[-2:]) <= rows_of(name, char) and are_some(shape)
    return some or _short(name, shape, char)


def _suits(
    x: Any, chars: str = "fd", *, square: bool = True, many: bool = False, few: bool = False,
    most: int = MOST,
) -> bool:  # fmt: skip
    """Whether these are many small matrices of such dtypes on the host. many: at least _FEWEST,
    however large. few: any number of them. most: rows.
    """
    least = 2 if x.dtype in _COMPLEX else 3  # a real matrix alone is not for lanes
    if x.ndim < least or x.dtype.char not in chars or x.__class__ is not np.ndarray:
        return False
    if not (few or many or are_some(x.shape)):
        return False
    n = x.shape[-1] if square else max(x.shape[-2:])
    k = n if square else min(x.shape[-2:])
    if not 0 < k <= n <= most:
        return False
    if few or many:
        count = x.size // (n * k)
        return count >= (_FEWEST if many else 1) and compiles()
    return compiles()


def rows_of(name: str, char: str) -> int:
    """Of how many rows matrices are, at most, for which elimination is sooner in lanes."""
    if name in ("cholesky", "qr", "lu"):
        return _MOST_FACTORED
    return MOST - 1 if name == "inv" and char == "f" else MOST  # as LAPACK leaves the double there


@functools.lru_cache(512)
def are_some(shape: tuple[int, ...]) -> bool:
    """Whether a stack of matrices with elements is so many that elimination in lanes is sooner."""
    (rows, columns), count = shape[-2:], math.prod(shape[:-2])
    some = count >= max(rows, columns) // 4  # as programs ask for
    return some and count * (rows * columns + _CALL) >= _LEAST


def _determinants(x: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    if not _suits(x, _ALL, few=_are_short("det", x)):
        return None
    n = x.shape[-1]
    y = np.empty(x.shape[:-2], dtype)
    return y if _eliminated(systems.det, x.shape, (x, y), (n + 1) * (n | 1), (n,)) else None


def _solved(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any] | None:
    n, m = b.shape[-2:]
    y = np.empty(b.shape, b.dtype)
    if not m:
        return y
    room = (n + 2) * (n + m | 1)
    return y if _eliminated(systems.solve, a.shape, (a, b, y), room, (n, m)) else None


def _eliminated(
    kernel: Callable[..., int], shape: tuple[int, ...], arrays: tuple[Any, ...], room: int,
    sizes: tuple[int, ...],
) -> bool:  # fmt: skip
    """`_fine`, of real numbers or complex ones."""
    pairs = arrays[0].dtype in _COMPLEX
    return _fine(kernel, shape, arrays, 2 * room if pairs else room, sizes, pairs)


def _fine(
    kernel: Callable[..., int], shape: tuple[int, ...], arrays: tuple[Any, ...], room: int,
    sizes: tuple[int, ...], *rest: float,
) -> bool:  # fmt: skip
    """Run it in tasks; whether what it met was all regular. room: numbers for each lane."""
    count, part, tasks = dealt(shape)
    odd = np.empty(tasks, np.int64)
    given = _room(tasks * room)
    kernel(*arrays, given, odd, *sizes, count, part, *rest, tasks)
    return not (odd.item() if tasks == 1 else odd.any())
