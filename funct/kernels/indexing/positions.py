"""What kernels ask of indices and of the values at them, before they take either.

Indices count from the end where they are negative; one that is out of bounds raises IndexError.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.indexing import gather as cpu
from funct.kernels.cpu.loops import pays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[Any]

__all__ = [
    "PLACES", "WORDS", "alike", "as_int64", "checked", "extents", "fits", "flat", "in_parts",
    "inside", "refuse_outside", "signed",
]  # fmt: skip

_INT64 = np.dtype(np.int64)
PLACES = frozenset([np.dtype(c).num for c in "bBhHiIlq"])  # dtypes of indices that int64 holds
_COMPLEX = frozenset([np.dtype(c).num for c in "FD"])
WORDS = _INT64, np.dtype(np.int32)  # dtypes of indices that are added up


def signed(i: Index) -> Index:
    """Indices, none of which NumPy would take for a negative one: it casts those of 64 bits without
    a sign, and 2**64 - 1 would be the last.
    """
    if i.dtype.kind != "u" or i.dtype.itemsize < 8:
        return i
    i = i.view(_INT64)
    if i.size and i.min() < 0:
        raise IndexError("an index is out of bounds")
    return i


def as_int64(i: Index) -> Any:
    """Indices as kernels that change numbers want them."""
    return i if i.dtype is _INT64 else i.astype(_INT64)


def alike(i: tuple[Any, ...]) -> bool:
    """Whether all are arrays of positions for kernels, of one shape."""
    for k in i:
        if k.__class__ is not np.ndarray or k.dtype not in WORDS or k.shape != i[0].shape:
            return False
    return True


def flat(i: tuple[Index, ...], shape: tuple[int, ...]) -> tuple[Index, int]:
    """The flat places of what is at i, which are `alike`, and how many places there are."""
    places, n = i[0].astype(np.int64, copy=False), shape[0]
    for k, m in zip(i[1:], shape[1:]):
        places, n = inside(cpu.placed(places, k, n, m)), n * m
    return places, n


def inside(made: NDArray[Any] | None) -> NDArray[Any]:
    """What a kernel has made, which is nothing where an index is out of bounds."""
    if made is None:
        raise IndexError("an index is out of bounds")
    return made


def refuse_outside(found: int) -> None:
    """Raise IndexError where a kernel has found an index that is out of bounds."""
    if found:
        raise IndexError(f"index number {found - 1} is out of bounds")


def checked(y: NDArray[Any], wrong: NDArray[Any]) -> NDArray[Any]:
    """y, where no task has written into wrong that an index is out of bounds."""
    if wrong[0]:
        raise IndexError("an index is out of bounds")
    return y


def extents(i: Index, n: int, axis: int) -> tuple[int, int, int, int]:
    """Sizes before axis, of i and of what it reads there, and behind."""
    return prod(i.shape[:axis]), i.shape[axis], n, prod(i.shape[axis + 1 :])


def fits(x: NDArray[Any], *least: int) -> bool:
    """Whether a kernel is to be preferred for values x, at least so many."""
    return pays(x, *least) and x.dtype.kind != "b"


def in_parts(x: NDArray[Any]) -> NDArray[Any] | None:
    """Complex numbers that lie side by side as rows of their parts; None for others."""
    if x.dtype.num not in _COMPLEX or not x.ndim or not x.size or not x.flags.c_contiguous:
        return None
    return x.reshape(len(x), -1).view(x.real.dtype)
