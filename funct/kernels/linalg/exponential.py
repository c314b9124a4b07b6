"""Exponentials of stacks of matrices by scaling and squaring, all of them at once.

SciPy takes some microseconds for each. Padé's approximant has one degree for each precision, so
every matrix takes the same steps but for the squarings. Of matrices that would be squared often
SciPy looks at powers first: their norm may say little about them.

Source: N. Higham, "The scaling and squaring method for the matrix exponential revisited", SIAM
Journal on Matrix Analysis and Applications 26, 2005.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.linalg.lapack import alone
from funct.kernels.linalg.products import matmul

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["of_stack", "one_by_one", "suits"]

# The approximant's coefficients, from the constant on, and the largest norm that it is good for.
_SINGLE = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0), 3.92
_DOUBLE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0,
    960960.0, 16380.0, 182.0, 1.0,
), 5.37  # fmt: skip
_WAYS = {"f": _SINGLE, "F": _SINGLE, "d": _DOUBLE, "D": _DOUBLE}
_OFTEN = 3  # squarings
_MOST = 16  # rows
_FEWEST = 16  # matrices


def suits(x: NDArray[Any]) -> bool:
    """Whether there are so many, and so small, that they are found together."""
    n = x.shape[-1]
    return 1 < n <= _MOST and x.size >= _FEWEST * n * n


@functools.cache
def _expm() -> Any:
    from scipy.linalg import expm

    return expm


def one_by_one(x: NDArray[Any]) -> NDArray[Any]:
    """exp of matrices (…, n, n), by SciPy."""
    call = _expm()
    if x.shape[-1] == 1:
        plain: NDArray[Any] = call(x)
        return plain
    with alone("expm", x):
        found: NDArray[Any] = call(x)
    return found


def of_stack(x: NDArray[Any], solve: Callable[[Any, Any], Any]) -> NDArray[Any]:
    """The same of many at once."""
    n = x.shape[-1]
    numbers, largest = _WAYS[x.dtype.char]
    shape, x = x.shape, x.reshape(-1, n, n)
    size = np.abs(x).sum(1).max(1)
    part, times = np.frexp(size / largest)
    times = np.where(np.isfinite(size), np.maximum(times - (part == 0.5), 0), _OFTEN + 1)
    few = times <= _OFTEN
    if not few.all():
        both = np.empty_like(x)
        both[~few] = one_by_one(x[~few])
        if few.any():
            both[few] = of_stack(x[few], solve)
        return both.reshape(shape)
    a = x * np.ldexp(x.real.dtype.type(1), -times)[:, None, None]
    odd, even = _approximant(a, numbers)
    found: NDArray[Any] = solve(even - odd, even + odd)
    for k in range(times.max(initial=0)):
        again = times > k
        if again.all():
            found = matmul(found, found)
        else:
            some = found[again]
            found[again] = matmul(some, some)
    return found.reshape(shape)


def _approximant(a: Any, numbers: tuple[float, ...]) -> tuple[Any, Any]:
    """Padé's numerator in two parts: the odd powers of a, and the even ones."""
    unit = np.eye(a.shape[-1], dtype=a.dtype)
    two = matmul(a, a)
    four = matmul(two, two)
    six = matmul(two, four)
    parts = []
    for first in (1, 0):  # of every other number, which is that of a power less one
        low, *rest = numbers[first::2]
        found = low * unit + rest[0] * two + rest[1] * four + rest[2] * six
        if len(rest) > 3:
            found += matmul(six, rest[3] * two + rest[4] * four + rest[5] * six)
        parts.append(found)
    return matmul(a, parts[0]), parts[1]
