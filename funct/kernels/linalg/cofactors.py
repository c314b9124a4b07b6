"""Cofactors: the derivative of a determinant in each element, finite and right for singular
matrices too.

Those of up to three rows are written out. Larger ones come from P x Q = L D V, elimination with
complete pivoting, L and Vᵀ unit lower triangular with no element above 1. Matrices of cofactors are
multiplicative, so cof(P x Q) = L⁻ᵀ cof(D) V⁻ᵀ, and those of D are products of all pivots but one:
the last pivot divides nothing, and 0 none. In stacks those of matrices far from singular are
determinants times inverses, which are found for many at a time.

Source: G. W. Stewart, "On the adjugate matrix", Linear Algebra and its Applications 283, 1998.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import compiles
from funct.kernels.cpu.small import cofactors as cpu
from funct.kernels.linalg import few, stacks
from funct.kernels.linalg.lapack import loop
from funct.kernels.quiet import quiet

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["by_elimination", "cofactors"]

_WIDE = {"f": "d", "F": "D"}
# size times size of the inverse: single precision is computed with digits to spare; of double what
# the inverse loses of the largest cofactors is a few units in their last place, as by elimination
_REGULAR = {"f": 1e4, "d": 64.0}
_LARGE = 1e150  # determinants that are usual numbers, and those above its inverse
_TASK = 1 << 16  # elements times rows that are worth a task
_inv, _det = loop("inv", np.linalg.inv), loop("det", np.linalg.det, fails=False)


def cofactors(x: NDArray[Any]) -> NDArray[Any]:
    """Those of square matrices on the last two axes, computed in double precision."""
    n = x.shape[-1]
    if n < 2 or not x.size:
        return np.ones_like(x)
    if n == 2:
        return x[..., ::-1, ::-1] * np.array([[1, -1], [-1, 1]], x.dtype)
    work = x.size * n
    host = x.__class__ is np.ndarray
    if n > 3 and x.dtype.char in "fd" and host and compiles():
        found = _regular(x)
        return _in_machine_code(x, work) if found is None else found
    if n > 3 and host and (made := _by_inverse(x, _REGULAR[x.dtype.char.lower()])) is not None:
        found, near = made
        if near.any():
            found[near] = _by_pivots(x[near])
        return found
    return _minors(_widened(x)).astype(x.dtype, copy=False) if n == 3 else _by_pivots(x)


def _widened(x: NDArray[Any]) -> NDArray[Any]:
    return x.astype(_WIDE.get(x.dtype.char, x.dtype), copy=False)


def _by_pivots(x: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = quiet().run(by_elimination, _widened(x))
    return found.astype(x.dtype, copy=False)


def _regular(x: NDArray[Any]) -> NDArray[Any] | None:
    """Determinants times inverses, of stacks; what is near singular is eliminated."""
    most = _REGULAR[x.dtype.char]
    made = _by_inverse(x, most) if x.shape[-1] > stacks.MOST else stacks.cofactors(x, most)
    if made is None:
        return None
    found, near = made
    if near.any():
        some = np.ascontiguousarray(x[near])
        found[near] = _in_machine_code(some, some.size * x.shape[-1])
    return found


def _by_inverse(x: NDArray[Any], most: float) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """`stacks.cofactors` of more rows, of which an inverse in double loses more digits."""
    wide = _widened(x)
    both = _of_complex(wide) if wide.dtype.kind == "c" else (few.inv(wide), few.det(wide))
    if both[0] is None or both[1] is None:
        return None
    return quiet().run(_turned, x.dtype, most, wide, *both)  # what is not usual may overflow


def _of_complex(x: NDArray[Any]) -> tuple[Any, Any]:
    """Inverses and determinants; of a stack in which one is singular, nothing."""
    inverse, determinant = stacks.inv(x), stacks.det(x)
    try:
        inverse = _inv(x) if inverse is None else inverse
    except np.linalg.LinAlgError:
        return None, None
    return inverse, _det(x) if determinant is None else determinant


def _turned(
    kind: np.dtype[Any], most: float, x: NDArray[Any], inverse: NDArray[Any], determinant: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Determinants times inverses transposed, and which of them need more care."""
    product = np.abs(x).max((-2, -1)) * np.abs(inverse).max((-2, -1))
    size = np.abs(determinant)
    most = most if kind.char in "fF" else most / 8
    usual = (product < most) & (size < _LARGE) & (size > 1 / _LARGE)
    found = np.asarray(determinant)[..., None, None] * inverse.mT
    return found.astype(kind), np.asarray(~usual)


def _in_machine_code(x: NDArray[Any], work: int) -> NDArray[Any]:
    """`by_elimination` of real matrices, which there are, in their dtype."""
    n = x.shape[-1]
    count = x.size // (n * n)
    part = max(1, _TASK * count // work)
    tasks = -(-count // part)
    room = np.empty((tasks, 2 * n + cpu.NUMBERS, n))
    orders = np.empty((tasks, cpu.ORDERS, n), np.int64)
    y = np.empty(x.shape, x.dtype)
    cpu.cofactors(x, y, room, orders, n, count, part, tasks)
    return y


def _minors(w: NDArray[Any]) -> NDArray[Any]:
    """Cofactors of matrices of three rows; of products of single precision no digit is lost."""
    one, two = [1, 2, 0], [2, 0, 1]  # the rows, or the columns, behind each
    y, z = w[..., one, :], w[..., two, :]
    found: NDArray[Any] = y[..., one] * z[..., two] - y[..., two] * z[..., one]
    return found


def by_elimination(x: NDArray[Any]) -> NDArray[Any]:
    """The cofactors of matrices in double precision, of any size but 0."""
    n = x.shape[-1]
    a = np.moveaxis(x.reshape(-1, n, n), 0, -1).copy()  # (n, n, stack)
    rows, columns, odd = _eliminate(a)
    pivots = a[range(n), range(n)]  # (n, stack)
    a = np.moveaxis(a, -1, 0)
    unit = np.eye(n, dtype=a.dtype)
    left, right = (np.swapaxes(_inv(np.tril(v, -1) + unit), -1, -2) for v in (a, a.mT))
    others = _all_but_one(np.where(odd, -1, 1), pivots)
    made = np.matmul(left * others.T[:, None, :], np.swapaxes(right, -1, -2))
    back = (np.argsort(v, 0).T for v in (rows, columns))
    row, column = next(back)[:, :, None], next(back)[:, None, :]
    found = np.take_along_axis(np.take_along_axis(made, row, 1), column, 2)
    return found.reshape(x.shape)


def _eliminate(a: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Leave the factors in a, of shape (n, n, stack): below the diagonal those of L, above it those
    of V.

    Returns: which row and which column of each matrix now stands where, of shape (n, stack), and
    whether both orders together are odd.
    """
    n, _, stack = a.shape
    each = np.arange(stack, like=a)
    rows, columns = (np.arange(n, like=a)[:, None] + 0 * each for _ in range(2))
    odd = each < 0
    for k in range(n - 1):
        rest = n - k
        at = np.argmax(np.abs(a[k:, k:]).reshape(rest * rest, stack), 0)
        i, j = at // rest + k, at % rest + k
        odd ^= (i != k) ^ (j != k)
        for order, place in ((rows, i), (columns, j)):
            first = order[k].copy()
            order[k] = order[place, each]
            order[place, each] = first
        line = a[k].copy()
        a[k] = a[i, :, each].T
        a[i, :, each] = line.T
        line = a[:, k].copy()
        a[:, k] = a[:, j, each]
        a[:, j, each] = line
        pivot = np.where(a[k, k] == 0, 1, a[k, k])
        a[k, k + 1 :] /= pivot
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
        a[k + 1 :, k] /= pivot
    return rows, columns, odd


def _all_but_one(start: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """start times the product over k of all x[k] but one, for each; only what is a result may
    overflow or underflow.
    """
    scale = np.frexp(np.abs(x))[1]
    parts = _scaled(x, -scale)  # of sizes from 1/2 to 1, or 0
    before, after = (_running(v, s) for v, s in ((parts, scale), (parts[::-1], scale[::-1])))
    product = start * before[0] * after[0][::-1]
    return _scaled(product, before[1] + after[1][::-1])


def _running(x: NDArray[Any], scale: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Products of all that stands before each, as numbers of sizes from 1/2 to 1, and exponents."""
    products, scales = np.ones_like(x), np.zeros_like(scale)
    for k in range(1, len(x)):
        y = products[k - 1] * x[k - 1]
        small = np.abs(y) < 0.5
        products[k] = np.where(small, 2 * y, y)
        scales[k] = scales[k - 1] + scale[k - 1] - small
    return products, scales


def _scaled(x: NDArray[Any], exponent: NDArray[Any]) -> NDArray[Any]:
    """x · 2 ** exponent."""
    if x.dtype.kind != "c":
        return np.ldexp(x, exponent)
    return np.ldexp(x.real, exponent) + 1j * np.ldexp(x.imag, exponent)
