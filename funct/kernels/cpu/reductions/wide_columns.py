"""Sums, products and extrema of many columns: several rows at a time.

NumPy takes row after row, and reads and writes what it has gathered for each. Here that stays in
registers for several rows. Every column is still added from its first row on, so sums and products
of floats have NumPy's bits.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import parallel, ready
from funct.kernels.cpu.reductions.short_rows import result_of
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.vectors import loaded, stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["gather_rows", "of_many_columns"]

LANES = 16
ABREAST = 4  # rows that are taken at a time
_STRIP = 1 << 11  # columns whose results stay in the first cache, and
_LEAST = 1 << 9  # those of which it pays to read so little of each row
_FAR = 1 << 23  # bytes that do not come from caches
_TASK = 1 << 15  # elements that are worth a task, and a call of this
_ROWS = tuple(range(1, ABREAST))
_NAMES = frozenset(["sum", "prod", "max", "min"])
_KINDS = frozenset([np.dtype(c).num for c in "iqlfd"])


def of_many_columns(name: str, x: NDArray[Any], axis: Any, keepdims: bool) -> Any:
    """What NumPy gives for one axis before the last one; None where NumPy is to do it."""
    rank = x.ndim
    if name not in _NAMES or x.dtype.num not in _KINDS or axis.__class__ is not int:
        return None
    if not -rank <= axis < rank or not x.flags.c_contiguous or not x.flags.aligned:
        return None
    k = axis % rank
    rows, columns = x.shape[k], prod(x.shape[k + 1 :])
    if rows < ABREAST or columns < LANES or k == rank - 1:
        return None
    dtype = result_of(name, x.dtype)
    far = x.nbytes > _FAR and dtype.itemsize == x.itemsize  # NumPy, too, waits for memory alone
    if x.size < _TASK or far or not ready(x.size):
        return None
    blocks = prod(x.shape[:k])
    y = fresh((*x.shape[:k], *(1,) * keepdims, *x.shape[k + 1 :]), dtype)
    part = min(_STRIP, max(_LEAST, _TASK // rows))
    parts = -(-columns // part)
    gather_rows(x, y, rows, columns, part, parts, name, blocks * parts)
    return y


@parallel
def gather_rows(
    x: Any, y: Any, rows: int, columns: int, part: int, parts: int, name: str, task: int
) -> None:
    """y (blocks, columns): of x (blocks, rows, columns), which are ABREAST rows at least.

    A task takes `part` columns of a block, of which there are so many parts.
    """
    block: Any = (np.uint64(task) // np.uint64(parts)).astype(np.int64)
    first: Any = (task - block * parts) * part
    last: Any = min(first + part, columns)
    to: Any = block * columns
    at: Any = block * rows * columns
    _strip(x, at, y, to, first, last, columns, ABREAST, True, name)
    done: Any = np.int64(ABREAST)
    while done + ABREAST <= rows:
        _strip(x, at + done * columns, y, to, first, last, columns, ABREAST, False, name)
        done += ABREAST
    while done < rows:
        _strip(x, at + done * columns, y, to, first, last, columns, 1, False, name)
        done += 1


def _strip(
    x: Any, at: Any, y: Any, to: Any, first: Any, last: Any, columns: Any, many: int, new: bool,
    name: str,
) -> None:  # fmt: skip
    """The columns from first to last of so many rows; new: y has nothing yet."""
    whole = first + ((last - first) & -LANES)
    for j in range(first, whole, LANES):
        held = loaded(x, at + j, LANES).astype(y.dtype)
        if new:
            held = _begun(held, name)
        else:
            held = _combined(loaded(y, to + j, LANES), held, name)
        for k in _ROWS[: many - 1]:
            held = _combined(held, loaded(x, at + k * columns + j, LANES).astype(y.dtype), name)
        stored(y, to + j, held)
    for j in range(whole, last):
        one = x[at + j].astype(y.dtype)
        if new:
            one = _begun(one, name)
        else:
            one = _combined(y[to + j], one, name)
        for k in _ROWS[: many - 1]:
            one = _combined(one, x[at + k * columns + j].astype(y.dtype), name)
        y[to + j] = one


def _begun(v: Any, name: str) -> Any:
    """A sum begins with 0, so it is never -0."""
    return v + v.dtype.type(0) if name == "sum" else v


def _combined(a: Any, b: Any, name: str) -> Any:
    if name == "sum":
        return a + b
    if name == "prod":
        return a * b
    return np.where(a != a, a, np.where(a < b if name == "min" else a > b, a, b))
