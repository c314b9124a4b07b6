"""Linear algebra on stacks of matrices: NumPy's LAPACK; SciPy, at the first call, for the rest.

Every function takes the matrices on the last two axes, in single or double precision, and gives the
same precision back. Ranks and dtypes that do not fit raise plain ValueError and TypeError: the op
above knows the names. What only the numbers show (a singular matrix) raises LinAlgError.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import blas
from funct.kernels import table
from funct.kernels.cpu.getrf import getrf
from funct.kernels.cpu.loops import compiles, ready
from funct.kernels.cpu.small.hermitian import hermitian
from funct.kernels.linalg import exponential, few, stacks
from funct.kernels.linalg.checked import (
    fails_with,
    is_complex,
    need_finite,
    need_matrix,
    need_square,
)
from funct.kernels.linalg.cofactors import cofactors
from funct.kernels.linalg.lapack import alone, inner, loop, orthogonal
from funct.kernels.linalg.phases import turned, turned_pair
from funct.kernels.linalg.products import matmul

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "cholesky", "cofactor", "det", "eig", "eigh", "eigvals", "eigvalsh", "expm", "factored", "inv",
    "lstsq", "lu", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd", "svdvals",
    "triangular_solves",
]  # fmt: skip

_cholesky = loop("cholesky_lo", np.linalg.cholesky)
_solve = loop("solve", np.linalg.solve)
_inv = loop("inv", np.linalg.inv)
_det = loop("det", np.linalg.det, fails=False)
_slogdet = loop("slogdet", np.linalg.slogdet, fails=False)
_eigh = loop("eigh_lo", np.linalg.eigh)
_eigvalsh = loop("eigvalsh_lo", np.linalg.eigvalsh)
_eig = loop("eig", np.linalg.eig)
_eigvals = loop("eigvals", np.linalg.eigvals)
_svd_full = loop("svd_f", np.linalg.svd)
_svd = loop("svd_s", functools.partial(np.linalg.svd, full_matrices=False))
_cholesky_again, _det_again, _inv_again = (few.ALREADY[n] for n in ("cholesky", "det", "inv"))
_qr_again, _slogdet_again, _solve_again = (few.ALREADY[n] for n in ("qr", "slogdet", "solve"))
_triangle_again = few.ALREADY["solve_triangular"]
_svdvals = loop("svd", functools.partial(np.linalg.svd, compute_uv=False))
_qr_raw, _qr_reduced, _qr_complete = (
    loop(f"qr_{name}", None) for name in ("r_raw", "reduced", "complete")
)


def _by_pseudo_inverse(a: Any, b: Any, rtol: Any) -> Any:
    s = svdvals(a)
    x = matmul(pinv(a, rtol), b)
    rank = np.count_nonzero(s > rtol * np.max(s, -1, keepdims=True, initial=0), -1)
    lead = x.shape[:-2]
    return x, None, np.broadcast_to(rank, lead), np.broadcast_to(s, (*lead, s.shape[-1]))


_lstsq = loop("lstsq", _by_pseudo_inverse)


# Elements of right sides of which BLAS uses threads
_SHARED = 1 << 14
_ROWS = 64  # up to which a matrix and its transpose are in the caches


def _hermitian(x: NDArray[Any]) -> NDArray[Any]:
    n = x.shape[-1]
    if n <= _ROWS and x.size and x.__class__ is np.ndarray and ready(x.size):
        y = np.empty(x.shape, x.dtype)
        hermitian(x, y, n, x.size // (n * n), x.dtype.kind == "c")
        return y
    half = x / 2  # first, for the sum of two large elements is infinite
    return half + (half.mT.conj() if x.dtype.kind == "c" else half.mT)


@fails_with("x must be positive definite")
def cholesky(x: NDArray[Any], /) -> NDArray[Any]:
    """Lower L with L Lᴴ = x; of x only the Hermitian part is seen."""
    if x.__class__ is np.ndarray and (y := _cholesky_again.call(x)) is not None:
        return y
    need_square(x)
    found: NDArray[Any] | None = stacks.cholesky(x) if x.ndim > 2 or is_complex(x) else None
    found = few.cholesky(x) if found is None else found
    return _cholesky(_hermitian(x)) if found is None else found


@fails_with("x1 is singular")
def solve(a: NDArray[Any], b: NDArray[Any], /) -> NDArray[Any]:
    """a⁻¹ b."""
    if a.__class__ is np.ndarray and (y := _solve_again.call(a, b)) is not None:
        return y
    need_square(a)
    need_matrix(b)
    found: NDArray[Any] | None = stacks.solve(a, b) if a.ndim > 2 or is_complex(a) else None
    found = few.solve(a, b) if found is None else found
    return _solve(a, b) if found is None else found


@functools.cache
def _trtrs(dtype: np.dtype[Any]) -> Any:
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs(("trtrs",), dtype=dtype)[0]


@fails_with("a has a 0 on its diagonal")
def solve_triangular(a: NDArray[Any], b: NDArray[Any], lower: bool, /) -> NDArray[Any]:
    """a⁻¹ b for the lower or upper triangle of a; what stands in the other is not read."""
    if a.__class__ is np.ndarray:
        turned = not a.flags.c_contiguous and a.ndim > 1  # the transpose of a factor
        if (y := _triangle_again.call(a.mT if turned else a, b, lower, turned)) is not None:
            return y
    need_square(a)
    need_matrix(b)
    if a.shape[-1] != b.shape[-2]:
        raise ValueError("lengths")
    if (y := few.solve_triangular(a, b, lower)) is not None:
        return y
    with blas.alone() if b.shape[-1] > 1 and b.size < _SHARED else nullcontext():
        return table.call("solve_triangular", b.dtype, b.size, a, b, lower)


def triangular_solves(a: NDArray[Any], b: NDArray[Any], lower: bool) -> NDArray[Any]:
    """The same for stacks, which broadcast: LAPACK has none.

    Raises: LinAlgError: of NumPy's, for a 0 on a diagonal.
    """
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.empty((*lead, *b.shape[-2:]), np.result_type(a, b))
    if not out.size:
        return out
    trtrs = _trtrs(out.dtype)
    a, b = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    with blas.alone():
        for k in np.ndindex(*lead):  # rows of ours are columns of its matrix
            out[k], info = trtrs(a[k].T, b[k], lower=not lower, trans=1)
            if info:
                raise np.linalg.LinAlgError
    return out


@fails_with("x is singular")
def inv(x: NDArray[Any], /) -> NDArray[Any]:
    """x⁻¹."""
    if x.__class__ is np.ndarray and (y := _inv_again.call(x)) is not None:
        return y
    need_square(x)
    found: NDArray[Any] | None = stacks.inv(x) if x.ndim > 2 else None
    found = few.inv(x) if found is None else found
    return _inv(x) if found is None else found


@fails_with("the iteration did not converge; is every element finite?")
def pinv(x: NDArray[Any], rtol: Any, /) -> NDArray[Any]:
    """Moore-Penrose inverse; singular values up to rtol · the largest count as 0."""
    need_matrix(x)
    need_finite(x)
    found = stacks.svd(x, False) if x.ndim > 2 else None
    u, s, vh = _svd(x) if found is None else found  # whose phases cancel
    if x.ndim == 2 and np.ndim(rtol) == 0 and s.size and s[-1] > s.dtype.type(rtol) * s[0]:
        inverse = 1 / s
        return matmul(np.conj(vh.T), inverse[:, None] * np.conj(u.T))
    largest = np.max(s, -1, keepdims=True, initial=0)
    kept = s > np.asarray(rtol, s.dtype)[..., None] * largest
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0)
    u = np.conj(np.swapaxes(u, -1, -2))
    # Stacks of complex matrices are multiplied in another order than one of them.
    product = matmul if u.dtype is s.dtype else np.matmul
    return product(np.conj(np.swapaxes(vh, -1, -2)), inverse[..., None] * u)


@fails_with("the iteration did not converge; is every element finite?")
def lstsq(a: NDArray[Any], b: NDArray[Any], rtol: float | None, /) -> tuple[NDArray[Any], ...]:
    """The least x with least |b - a x|, rank and singular values of a.

    rtol None: what rounding does to a singular value that is 0.
    """
    need_matrix(a)
    need_matrix(b)
    if a.shape[-2] != b.shape[-2]:
        raise ValueError("lengths")
    need_finite(a)
    if rtol is None:
        rtol = float(max(a.shape[-2:]) * np.finfo(a.dtype).eps)
    if a.dtype != b.dtype:
        dtype = np.result_type(a, b)
        a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if b.ndim == 2 and b.size and factored(a.shape, a.dtype.char):
        found = _of_full_rank(a, b, rtol)
        if found is not None:
            return found
    least = np.asarray(rtol, a.real.dtype)
    x, _, rank, s = (_lstsq if a.size and b.size else _by_pseudo_inverse)(a, b, least)
    return x, np.asarray(rank, np.int64), s


# elements of a matrix whose factors Q and R, and singular values of R, are sooner found than what
# LAPACK multiplies right sides with
_LEAST_FACTORED, _MOST_FACTORED = 16 * 16, 500 * 500
_LONG = 4  # how much longer than wide it may be, if its Q is LAPACK's


@functools.lru_cache(512)
def factored(shape: tuple[int, ...], char: str) -> bool:
    """Whether `lstsq` of a matrix begins with its factors Q and R."""
    if len(shape) != 2 or char not in "fd":
        return False
    if not _LEAST_FACTORED <= prod(shape) <= _MOST_FACTORED:
        return False
    return max(shape) <= _LONG * min(shape) or few.suits("qr", shape, char)


def _of_full_rank(a: NDArray[Any], b: NDArray[Any], rtol: float) -> tuple[NDArray[Any], ...] | None:
    """`lstsq` by Q and R of a, or of aᵀ if it is wide; None where a singular value is no more than
    rounding leaves of it.
    """
    (m, n), kind = a.shape, a.dtype
    if a.__class__ is not np.ndarray:
        return None
    wide = inner(kind.char, m, n)
    a, b = a.astype(wide, copy=False), b.astype(wide, copy=False)
    q, r = qr(a if m >= n else a.T, False)
    s = svdvals(r)
    if not s[-1] > max(rtol, max(m, n) * float(np.finfo(kind).eps)) * s[0]:
        return None
    if m >= n:
        x = solve_triangular(r, matmul(q.T, b), False)
    else:
        x = matmul(q, solve_triangular(r.T, b, True))
    return x.astype(kind, copy=False), np.asarray(min(m, n)), s.astype(kind, copy=False)


def det(x: NDArray[Any], /) -> NDArray[Any]:
    """Determinant."""
    if x.__class__ is np.ndarray and (y := _det_again.call(x)) is not None:
        return y
    need_square(x)
    found: Any = stacks.det(x) if x.ndim > 2 or is_complex(x) else None
    found = few.det(x) if found is None else found
    if found is None:
        found = _det(x)
    return np.asarray(found) if isinstance(found, np.generic) else found


def slogdet(x: NDArray[Any], /) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sign (or phase) of the determinant, and the logarithm of its absolute value."""
    if x.__class__ is np.ndarray and (both := _slogdet_again.call(x)) is not None:
        return both[0, ...], both[1, ...]
    need_square(x)
    found = stacks.slogdet(x) if x.ndim > 2 else None
    found = few.slogdet(x) if found is None else found
    sign, size = _slogdet(x) if found is None else found
    return sign, size


def cofactor(x: NDArray[Any], /) -> NDArray[Any]:
    """Derivative of det in each element; finite and right for singular matrices too."""
    need_square(x)
    return cofactors(x)


@fails_with("the iteration did not converge; is every element finite?")
def eigh(x: NDArray[Any], /) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ascending eigenvalues and orthonormal eigenvectors of the Hermitian part."""
    need_square(x)
    found = stacks.eigh(x) if x.ndim > 2 else None
    w, v = _eigh(_hermitian(x)) if found is None else found
    return w, turned(v)


@fails_with("the iteration did not converge; is every element finite?")
def eigvalsh(x: NDArray[Any], /) -> NDArray[Any]:
    """Ascending eigenvalues of the Hermitian part."""
    need_square(x)
    found: NDArray[Any] | None = stacks.eigvalsh(x) if x.ndim > 2 else None
    return _eigvalsh(_hermitian(x)) if found is None else found


def _complex(x: NDArray[Any]) -> NDArray[Any]:
    return x if is_complex(x) else x.astype("F" if x.dtype.char == "f" else "D")


@fails_with("the iteration did not converge; is every element finite?")
def eig(x: NDArray[Any], /) -> tuple[NDArray[Any], NDArray[Any]]:
    """Eigenvalues and eigenvectors of length 1, complex always."""
    need_square(x)
    need_finite(x)
    w, v = _eig(x)
    return _complex(w), turned(_complex(v))


@fails_with("the iteration did not converge; is every element finite?")
def eigvals(x: NDArray[Any], /) -> NDArray[Any]:
    """Eigenvalues, complex always."""
    need_square(x)
    need_finite(x)
    return _complex(_eigvals(x))


@fails_with("the iteration did not converge; is every element finite?")
def svd(x: NDArray[Any], full: bool, /) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """U, descending singular values, Vᴴ."""
    need_matrix(x)
    need_finite(x)
    found = stacks.svd(x, full) if x.ndim > 2 else None
    u, s, vh = (_svd_full if full else _svd)(x) if found is None else found
    u, vh = turned_pair(u, vh)
    return u, s, vh


@fails_with("the iteration did not converge; is every element finite?")
def svdvals(x: NDArray[Any], /) -> NDArray[Any]:
    """Singular values, descending."""
    need_matrix(x)
    found: NDArray[Any] | None = stacks.svdvals(x) if x.ndim > 2 else None
    return _svdvals(x) if found is None else found


def _qr(x: NDArray[Any], complete: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """np.linalg.qr; R and what Q is made of are written over a copy of x."""
    made = x.copy()
    tau = _qr_raw(made)
    q = (_qr_complete if complete else _qr_reduced)(made, tau)
    return q, np.where(_upper(q.shape[-1], x.shape[-1]), made[..., : q.shape[-1], :], 0.0)


@functools.lru_cache(64)
def _upper(m: int, n: int) -> NDArray[Any]:
    return ~np.tri(m, n, -1, bool)


def qr(x: NDArray[Any], complete: bool, /) -> tuple[NDArray[Any], NDArray[Any]]:
    """Orthonormal Q and upper R with a real diagonal."""
    if x.__class__ is np.ndarray and (both := _qr_again.call(x, complete)) is not None:
        m, n = x.shape[-2:]
        columns, lead = m if complete else min(m, n), x.shape[:-2]
        start = x.size // n * columns
        return both[:start].reshape(*lead, m, columns), both[start:].reshape(*lead, columns, n)
    need_matrix(x)
    n = x.shape[-1]
    complete = complete and x.shape[-2] > n
    small = stacks.qr(x, complete) if x.ndim > 2 else None
    small = few.qr(x, complete) if small is None else small
    if small is not None:
        return turned(small[0], n), small[1]
    host = x.__class__ is np.ndarray
    if host and (found := orthogonal(x, complete)) is not None:
        q, r = found[0], np.where(_upper(*found[1].shape), found[1], np.zeros((), x.dtype))
    elif x.size and _qr_raw is not None and host:
        wide = x.astype({"f": "d", "F": "D"}.get(x.dtype.char, x.dtype), copy=False)
        q, r = _qr(wide, complete)
        if wide is not x:
            q, r = q.astype(x.dtype), r.astype(x.dtype)
    else:
        q, r = np.linalg.qr(x, mode="complete" if complete else "reduced")
    return turned(q, n), r  # x says nothing about columns beyond its own


def lu(x: NDArray[Any], /) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Permutation P, unit lower L, upper U with P L U = x."""
    need_matrix(x)
    if x.ndim > 2 and (found := stacks.lu(x)) is not None:
        return found
    if x.shape[-1] == x.shape[-2] and (found := few.lu(x)) is not None:
        return found
    if x.ndim == 2 and (found := stacks.lu(x[None])) is not None:
        p, low, up = found
        return p[0], low[0], up[0]
    *lead, m, n = x.shape
    if x.size and x.__class__ is np.ndarray and compiles():
        with alone("lu", x):
            found = getrf(x)
        if found is not None:
            return found
    if x.size:
        import scipy.linalg

        with alone("lu", x):
            p, low, up = scipy.linalg.lu(x, check_finite=False)
    else:  # SciPy loses axes of nothing
        p = np.broadcast_to(np.eye(m), (*lead, m, m))
        low, up = (np.empty((*lead, *s), x.dtype) for s in ((m, min(m, n)), (min(m, n), n)))
    return p.real.astype(low.real.dtype, copy=False), low, up  # SciPy's 1 x 1 p has x's dtype


def expm(x: NDArray[Any], /) -> NDArray[Any]:
    """Matrix exponential by scaling and squaring."""
    need_square(x)
    if x.__class__ is np.ndarray and exponential.suits(x):
        return exponential.of_stack(x, solve)
    return exponential.one_by_one(x)
