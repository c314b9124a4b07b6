"""The phases of complex vectors that are known up to one: the largest component is real and
positive.

LAPACK gives any phase; with one that follows from the vector, results and their derivatives are
functions of the matrix. Of components of one size the first counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import compiles
from funct.kernels.cpu.small import phases as cpu

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["turned", "turned_pair"]


def turned(v: NDArray[Any], first: int = 0) -> NDArray[Any]:
    """The columns of v (..., m, n) from the first on; v is the caller's own, and may be written
    into.
    """
    m, n = v.shape[-2:]
    if v.dtype.kind != "c" or not v.size or first >= n:
        return v
    if _writable(v):
        cpu.turn(v, first, v, m, n, 0, 0, v.size // (m * n))
        return v
    rest = v[..., first:]
    return np.concatenate([v[..., :first], rest * _phase(rest)], -1)


def turned_pair(u: NDArray[Any], vh: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The columns of u (..., m, k) and with them the first rows of vh (..., l, n), so that their
    products stay; rows, or columns, that have no partner by themselves. Both are the caller's own.
    """
    if u.dtype.kind != "c" or not (u.size and vh.size):
        return u, vh
    (m, k), (l, n) = u.shape[-2:], vh.shape[-2:]
    if _writable(u) and _writable(vh):
        count = u.size // (m * k)
        cpu.turn(u, 0, vh, m, k, l, n, count)
        if k < l:
            cpu.turn_rows(vh, k, l, n, count)
        return u, vh
    phase = _phase(u)
    back = phase[..., :l]
    if k < l:
        back = np.concatenate([back, _phase(np.conj(vh[..., k:, :].mT))], -1)
    return u * phase, np.conj(back).mT * vh


def _writable(v: Any) -> bool:
    """Whether machine code may turn them where they are."""
    if v.__class__ is not np.ndarray or not compiles():
        return False
    flags = v.flags
    return flags.c_contiguous and flags.aligned and flags.writeable


def _phase(v: NDArray[Any]) -> NDArray[Any]:
    """The factors (..., 1, n)."""
    size = np.square(v.real) + np.square(v.imag)
    at = np.argmax(size, -2, keepdims=True)
    top = np.take_along_axis(v, at, -2)
    return np.conj(top) / np.sqrt(np.take_along_axis(size, at, -2))
