"""Decompositions with the standard's names and named results."""

from __future__ import annotations

from typing import Any, NamedTuple

from funct import ops
from funct.errors import ArgumentError
from funct.ops.matrices import adjoint

__all__ = [
    "EigResult", "EighResult", "LUResult", "QRResult", "SVDResult", "cholesky", "eig", "eigh",
    "eigvals", "eigvalsh", "lu", "qr", "svd", "svdvals",
]  # fmt: skip


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors in the columns."""

    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors in the columns; both complex."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """Orthonormal columns Q and upper triangular R."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """Left singular vectors in columns, singular values in descending order, right ones in rows."""

    U: Any
    S: Any
    Vh: Any


class LUResult(NamedTuple):
    """Permutation matrix, unit lower triangle and upper triangle."""

    P: Any
    L: Any
    U: Any


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangular factor of a positive definite matrix: x = L Lᴴ, or x = Uᴴ U where upper.

    Args: x: Shape (..., n, n), Hermitian; of another matrix the Hermitian part is taken, so that
    the gradient is Hermitian too.
    Raises: ShapeError: x is not square. DTypeError: x is not floating. LinAlgError: x is not
    positive definite.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
        [[2.0, 0.0], [1.0, 2.0]]

    Source: Array API 2025.12 `cholesky`.
    """
    factor = ops.cholesky(x)
    return adjoint(factor) if upper else factor


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues and orthonormal eigenvectors of a Hermitian matrix.

    Args: x: Shape (..., n, n); of a matrix that is not Hermitian the Hermitian part is taken.
    Returns: eigenvalues, real, ascending, (..., n); eigenvectors in columns, (..., n, n). Complex
    ones have their largest component real and positive.
    Raises: ShapeError: x is not square. DTypeError: x is not floating.
    Notes: where eigenvalues agree up to rounding, the derivative of the vectors within their space
    is taken as 0: finite, and exact to first order for sums over the spectrum. A matrix made again
    of its parts, V f(w) Vᴴ, then lacks what mixes the equal ones; `expm`, `matrix_power`, `inv` and
    `pinv` are exact everywhere.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
        [1.0, 2.0]

    Source: Array API 2025.12 `eigh`.
    """
    return EighResult(*ops.eigh(x))


def eigvalsh(x: Any, /) -> Any:
    """Eigenvalues of a Hermitian matrix, ascending; (..., n), real. See `eigh`.

    Example:
        >>> import funct.array as xp
        >>> xp.round(xp.linalg.eigvalsh(xp.asarray([[2.0, 1.0], [1.0, 2.0]]))).tolist()
        [1.0, 3.0]
    """
    return ops.eigvalsh(x)


def eig(x: Any, /) -> EigResult:
    """Eigenvalues and eigenvectors of a square matrix, complex always.

    Args: x: Shape (..., n, n).
    Returns: eigenvalues, (..., n), in LAPACK's order; eigenvectors in columns, (..., n, n), of
    length 1 with their largest component real and positive.
    Raises: ShapeError: x is not square. DTypeError: x is not floating. LinAlgError: x is not
    finite; also from the derivative of a matrix without n independent eigenvectors.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.eig(xp.asarray([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.tolist()
        [1j, -1j]

    Source: Array API 2025.12 `eig`.
    """
    return EigResult(*ops.eig(x))


def eigvals(x: Any, /) -> Any:
    """Eigenvalues of a square matrix, complex always, in LAPACK's order; (..., n). See `eig`.

    Example:
        >>> import funct.array as xp
        >>> xp.linalg.eigvals(xp.asarray([[0.0, 1.0], [-1.0, 0.0]])).tolist()
        [1j, -1j]
    """
    return ops.eigvals(x)


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decomposition x = U diag(S) Vh.

    Args: x: Shape (..., m, n). full_matrices: U and Vh are square, else only the first min(m, n)
    vectors are given.
    Returns: U, (..., m, m) or (..., m, k); S, real, descending, (..., k); Vh, (..., n, n) or
    (..., k, n). Complex vectors in U have their largest component real and positive.
    Raises: ShapeError: x has rank below 2. DTypeError: x is not floating. LinAlgError: x is not
    finite.
    Notes: where singular values agree or are 0 up to rounding, the derivative of the vectors takes
    the parts that would be infinite as 0: finite, and exact to first order for sums over the
    spectrum. The vectors that full_matrices adds turn only as far as the others make them.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.svd(xp.asarray([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
        [4.0, 3.0]

    Source: Array API 2025.12 `svd`.
    """
    return SVDResult(*ops.svd(x, bool(full_matrices)))


def svdvals(x: Any, /) -> Any:
    """Singular values, real, descending; (..., min(m, n)). See `svd`.

    Example:
        >>> import funct.array as xp
        >>> xp.linalg.svdvals(xp.asarray([[3.0, 0.0], [0.0, -4.0]])).tolist()
        [4.0, 3.0]
    """
    return ops.svdvals(x)


def qr(x: Any, /, mode: str = "reduced") -> QRResult:
    """QR decomposition x = Q R.

    Args: x: Shape (..., m, n). mode: "reduced" gives the first min(m, n) columns of Q, "complete"
    all m.
    Returns: Q with orthonormal columns, R upper triangular with a real diagonal, as LAPACK has it.
    Raises: ArgumentError: another mode. LinAlgError: from the derivative where the first min(m, n)
    columns of x are dependent.
    Example:
        >>> import funct.array as xp
        >>> xp.abs(xp.linalg.qr(xp.asarray([[0.0, 2.0], [3.0, 0.0]])).R).tolist()
        [[3.0, 0.0], [0.0, 2.0]]

    Source: Array API 2025.12 `qr`.
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"qr: mode must be 'reduced' or 'complete', got {mode!r}")
    return QRResult(*ops.qr(x, mode == "complete"))


def lu(x: Any, /) -> LUResult:
    """LU decomposition with partial pivoting, x = P L U.

    Args: x: Shape (..., m, n).
    Returns: the permutation matrix P, real, (..., m, m); L with ones on its diagonal, (..., m, k);
    U, (..., k, n); k = min(m, n).
    Raises: LinAlgError: from the derivative where the leading block of U is singular.
    Notes: the derivative is that at fixed pivots.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.lu(xp.asarray([[0.0, 2.0], [3.0, 0.0]])).U.tolist()
        [[3.0, 0.0], [0.0, 2.0]]

    Source: SciPy `scipy.linalg.lu`.
    """
    return LUResult(*ops.lu(x))
