"""Linear systems, inverses and determinants with the standard's names."""

from __future__ import annotations

from typing import Any, NamedTuple

from funct import ops
from funct.array.creation import zeros
from funct.array.direct import direct
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.kernels.linalg import functions as kernels
from funct.ops.broadcasting import broadcast_shapes
from funct.ops.least_squares import default_rtol
from funct.ops.matrices import check_matrix, check_square, column, real_dtype

__all__ = [
    "LstsqResult", "SlogdetResult", "cho_factor", "cho_solve", "det", "inv", "lstsq", "pinv",
    "slogdet", "solve", "solve_triangular",
]  # fmt: skip


class SlogdetResult(NamedTuple):
    """Sign or phase of the determinant, and the logarithm of its absolute value."""

    sign: Any
    logabsdet: Any


class LstsqResult(NamedTuple):
    """Solution, sums of squared residuals, rank and singular values."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


@direct(kernels.solve, arrays=2)
def solve(x1: Any, x2: Any, /) -> Any:
    """The x with x1 x = x2.

    Args: x1: Shape (..., n, n). x2: Shape (n,), or (..., n, k); leading axes broadcast.
    Returns: Shape (..., n) for a 1-D x2, else (..., n, k).
    Raises: ShapeError, DTypeError: operands that do not fit. LinAlgError: x1 is singular.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0])).tolist()
        [1.0, 0.5]

    Source: Array API 2025.12 `solve`.
    """
    if len(x2.shape) != 1:
        return ops.solve(x1, x2)
    _check_vector("solve", "x1", x1, "x2", x2)
    out = ops.solve(x1, column(x2))
    return ops.reshape(out, out.shape[:-1])


def _check_vector(function: str, name: str, a: Any, right: str, b: Any) -> None:
    """Refuse a vector that does not fit before it becomes a column."""
    check_matrix(function, name, a)
    if a.shape[-2] != b.shape[0]:
        raise ShapeError(
            f"{function}: {name} and {right} must have as many rows, got {name} {a.shape} and "
            f"{right} {b.shape}: {a.shape[-2]} != {b.shape[0]}"
        )


@direct(kernels.solve_triangular, arrays=2)
def solve_triangular(a: Any, b: Any, *, lower: bool = False) -> Any:
    """The x with a x = b, of a only the upper (or lower) triangle being read.

    Args: a: Shape (..., n, n). b: Shape (n,), or (..., n, k); leading axes broadcast.
    Raises: ShapeError, DTypeError: operands that do not fit. LinAlgError: a 0 on the diagonal.
    Example:
        >>> import funct.array as xp
        >>> a = xp.asarray([[1.0, 0.0], [1.0, 2.0]])
        >>> xp.linalg.solve_triangular(a, xp.asarray([1.0, 5.0]), lower=True).tolist()
        [1.0, 2.0]

    Source: SciPy `scipy.linalg.solve_triangular`.
    """
    if len(b.shape) != 1:
        return ops.solve_triangular(a, b, bool(lower))
    _check_vector("solve_triangular", "a", a, "b", b)
    out = ops.solve_triangular(a, column(b), bool(lower))
    return ops.reshape(out, out.shape[:-1])


def cho_factor(a: Any, lower: bool = False) -> tuple[Any, bool]:
    """The Cholesky factor of a, upper by default, and which it is: what `cho_solve` takes.

    Args: a: Shape (..., n, n), Hermitian and positive definite.
    Raises: LinAlgError: a is not positive definite.
    Example:
        >>> import funct.array as xp
        >>> factor, lower = xp.linalg.cho_factor(xp.asarray([[4.0]]))
        >>> factor.tolist(), lower
        ([[2.0]], False)

    Source: SciPy `scipy.linalg.cho_factor`; the other triangle holds zeros here.
    """
    factor = ops.cholesky(a)
    return (factor if lower else ops.conj(factor.mT)), lower


def cho_solve(c_and_lower: Any, b: Any) -> Any:
    """The x with a x = b, where c_and_lower is what `cho_factor(a)` gave.

    Args: b: Shape (n,), or (..., n, k).
    Raises: ArgumentError: c_and_lower is no pair. ShapeError, DTypeError: operands that do not fit.
    Example:
        >>> import funct.array as xp
        >>> factor = xp.linalg.cho_factor(xp.asarray([[4.0]]))
        >>> xp.linalg.cho_solve(factor, xp.asarray([8.0])).tolist()
        [2.0]

    Source: SciPy `scipy.linalg.cho_solve`.
    """
    if not isinstance(c_and_lower, tuple | list) or len(c_and_lower) != 2:
        got = type(c_and_lower).__name__
        raise ArgumentError(f"cho_solve: c_and_lower must be cho_factor's pair, got {got}")
    c, lower = c_and_lower
    check_square("cho_solve", "c_and_lower[0]", c)
    back = ops.conj(c.mT) if c.dtype.kind == "c" else c.mT
    first, second = (c, back) if lower else (back, c)
    return solve_triangular(second, solve_triangular(first, b, lower=True))


def inv(x: Any, /) -> Any:
    """Inverse of each square matrix; `solve` is more accurate than a product with it.

    Raises: ShapeError, DTypeError: x is no floating square matrix. LinAlgError: x is singular.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]

    Source: Array API 2025.12 `inv`.
    """
    return ops.inv(x)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """Moore-Penrose inverse.

    Args: x: Shape (..., m, n). rtol: number or array that fits the stack; singular values up to
    rtol times the largest count as 0. Default max(m, n) times the machine epsilon.
    Returns: Shape (..., n, m).
    Raises: ShapeError: when rtol does not fit the stack of x. DTypeError: when it is complex.
    Notes: the derivative is that among matrices of the same rank.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.0]]

    Source: Array API 2025.12 `pinv`.
    """
    check_matrix("pinv", "x", x)
    if rtol is None:
        return ops.pinv(x, default_rtol(x) if 0 not in x.shape[-2:] else 0.0)
    if isinstance(rtol, complex) or getattr(getattr(rtol, "dtype", None), "kind", "") == "c":
        raise DTypeError(f"pinv: rtol must be real, got {rtol!r}")
    if hasattr(rtol, "shape") and len(rtol.shape):
        try:
            lead = broadcast_shapes(rtol.shape, x.shape[:-2])
        except ValueError:
            raise ShapeError(
                f"pinv: rtol must fit the stack of x, got x {x.shape} and rtol {rtol.shape}"
            ) from None
        x = ops.broadcast_to(x, (*lead, *x.shape[-2:])) if lead != x.shape[:-2] else x
    return ops.pinv(x, rtol)


@direct(kernels.lstsq, arrays=2, gives=LstsqResult._make)
def lstsq(a: Any, b: Any, rcond: float | None = None) -> LstsqResult:
    """The x of least norm that makes |b - a x| least.

    Args: a: Shape (m, n). b: Shape (m,) or (m, k). rcond: singular values up to rcond times the
    largest count as 0; default max(m, n) times the machine epsilon.
    Returns: solution, (n,) or (n, k); residuals, the sums of |b - a x|² for each column, (k,) or
    (1,), but empty where m <= n or the rank is below n; rank, int64; singular values of a.
    Raises: ShapeError, DTypeError: operands that do not fit.
    Notes: the derivative of the solution is that among matrices of the same rank. Stacks: vmap.
    Example:
        >>> import funct.array as xp
        >>> a, b = xp.asarray([[1.0], [1.0]]), xp.asarray([1.0, 3.0])
        >>> [round(float(v), 9) for v in xp.linalg.lstsq(a, b)[:2]]
        [2.0, 2.0]

    Source: NumPy `numpy.linalg.lstsq`.
    """
    check_matrix("lstsq", "a", a)
    if len(a.shape) != 2 or len(b.shape) not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ShapeError(
            f"lstsq: a must be (m, n) and b (m,) or (m, k), got a {a.shape} and b {b.shape}",
            fix="vmap lstsq over the leading axes" if len(a.shape) > 2 else None,
        )
    m, n = a.shape
    right = column(b) if len(b.shape) == 1 else b
    x, rank, s = ops.lstsq(a, right, None if rcond is None else float(rcond))
    if m > n and bool(ops.equal(rank, n)):
        rest = right - ops.matmul(a, x)
        squares = ops.real(rest * ops.conj(rest)) if rest.dtype.kind == "c" else rest * rest
        residuals = ops.reduce_sum(squares, (0,), False)
    else:
        residuals = zeros((0,), dtype=real_dtype(x.dtype))
    solution = ops.reshape(x, x.shape[:-1]) if len(b.shape) == 1 else x
    return LstsqResult(solution, residuals, rank, s)


def det(x: Any, /) -> Any:
    """Determinant of each square matrix. The derivative is exact for singular matrices too.

    Example:
        >>> import funct.array as xp
        >>> round(float(xp.linalg.det(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))), 9)
        8.0

    Source: Array API 2025.12 `det`.
    """
    return ops.det(x)


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign (phase of a complex matrix) and logarithm of the absolute value of the determinant.

    Returns: sign, x's dtype, (...); logabsdet, real, (...). For a singular matrix 0 and -inf, whose
    derivative is NaN.
    Example:
        >>> import funct.array as xp
        >>> float(xp.linalg.slogdet(xp.asarray([[0.0, 1.0], [1.0, 0.0]])).sign)
        -1.0

    Source: Array API 2025.12 `slogdet`.
    """
    return SlogdetResult(*ops.slogdet(x))
