"""Cofactors by elimination with complete pivoting: see `funct.kernels.linalg.cofactors`.

Each matrix has its turn in a task's own room. Products of pivots are numbers with powers of a base
beside them, so that only what is a result may overflow or underflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import parallel

__all__ = ["NUMBERS", "ORDERS", "cofactors"]

NUMBERS, ORDERS = 3, 4  # rows of n that a task needs besides two matrices, and of integers
_LARGE = 2.0**300  # products of two such numbers are finite


@parallel
def cofactors(
    x: Any, y: Any, room: Any, orders: Any, n: int, count: int, part: int, task: int
) -> None:
    """y (count, n, n): the cofactors of x. room: (tasks, 2 n + NUMBERS, n), float64. orders:
    (tasks, ORDERS, n), int64. Each task takes `part` matrices.
    """
    size = n * n
    a = task * (2 * size + NUMBERS * n)
    r, numbers = a + size, a + 2 * size
    rows = task * ORDERS * n
    columns, powers = rows + n, rows + 2 * n
    for t in range(task * part, min((task + 1) * part, count)):
        for e in range(size):
            room[a + e] = x[t * size + e].astype(np.float64)
        sign = _eliminate(room, orders, a, rows, columns, n)
        _invert(room, a, r, n)
        _multiply(room, orders, a, numbers, powers, n, sign)
        for u in range(n):
            i = n - 1 - u
            for j in range(n):
                room[r + i * n + j] = room[r + i * n + j] * room[numbers + i]
            for k in range(i + 1, n):
                factor = room[a + k * n + i]
                for j in range(n):
                    at = r + i * n + j
                    room[at] = room[at] - factor * room[r + k * n + j]
        for i in range(n):
            line = t * size + orders[rows + i] * n
            for j in range(n):
                y[line + orders[columns + j]] = room[r + i * n + j].astype(y.dtype)


def _eliminate(room: Any, orders: Any, a: Any, rows: Any, columns: Any, n: Any) -> Any:
    """Leave L below the diagonal, V above it, and which rows and columns stand where; 1.0, or -1.0
    where the two orders together are odd.
    """
    for k in range(n):
        orders[rows + k] = k
        orders[columns + k] = k
    sign = 1.0
    for k in range(n - 1):
        best: Any = -1.0
        at: Any = 0
        for u in range(k, n):
            for v in range(k, n):
                e = u * n + v
                found = _size(room[a + e])
                at = np.where(found > best, e, at)
                best = np.where(found > best, found, best)
        i = k
        while (i + 1) * n <= at:
            i = i + 1
        j = at - i * n
        if best < 0.0:  # nothing but NaN
            i = k
            j = k
        if i != k:
            sign = -sign
            _swap(orders, rows + k, rows + i, 1, 1)
            _swap(room, a + k * n, a + i * n, 1, n)
        if j != k:
            sign = -sign
            _swap(orders, columns + k, columns + j, 1, 1)
            _swap(room, a + k, a + j, n, n)
        pivot = room[a + k * n + k]
        if pivot != 0.0:
            for u in range(k + 1, n):
                factor = room[a + u * n + k] / pivot
                room[a + u * n + k] = factor
                for v in range(k + 1, n):
                    e = a + u * n + v
                    room[e] = room[e] - factor * room[a + k * n + v]
            for v in range(k + 1, n):
                room[a + k * n + v] = room[a + k * n + v] / pivot
    return sign


def _size(v: Any) -> Any:
    return np.where(v < 0.0, -v, v)


def _swap(x: Any, first: Any, second: Any, step: Any, count: Any) -> None:
    for k in range(count):
        v = x[first + k * step]
        x[first + k * step] = x[second + k * step]
        x[second + k * step] = v


def _invert(room: Any, a: Any, r: Any, n: Any) -> None:
    """Leave V⁻ᵀ at r."""
    for i in range(n):
        for j in range(n):
            room[r + i * n + j] = 0.0
        room[r + i * n + i] = 1.0
        for k in range(i):
            factor = room[a + k * n + i]
            for j in range(k + 1):
                at = r + i * n + j
                room[at] = room[at] - factor * room[r + k * n + j]


def _multiply(room: Any, orders: Any, a: Any, numbers: Any, powers: Any, n: Any, sign: Any) -> None:
    """Leave the products of all pivots but one, for each, at `numbers`."""
    before, beside = numbers + n, powers + n
    product = sign
    power = 0
    for k in range(n):
        room[before + k] = product
        orders[beside + k] = power
        pivot, orders[powers + k] = _settled(room[a + k * n + k], 0)
        room[numbers + k] = pivot
        product, power = _settled(product * pivot, power + orders[powers + k])
    product = 1.0
    power = 0
    for step in range(n):
        k = n - 1 - step
        pivot = room[numbers + k]
        whole = room[before + k] * product
        left = orders[beside + k] + power
        while left > 0:
            whole = whole * _LARGE
            left = left - 1
        while left < 0:
            whole = whole * (1.0 / _LARGE)
            left = left + 1
        room[numbers + k] = whole
        product, power = _settled(product * pivot, power + orders[powers + k])


def _settled(x: Any, power: Any) -> Any:
    """x · _LARGE ** power as such a number again, of moderate size if it is finite and not 0."""
    for _ in range(3):
        if _size(x) > _LARGE:
            x = x * (1.0 / _LARGE)
            power = power + 1
        if _size(x) < 1.0 / _LARGE:
            x = x * _LARGE
            power = power - 1
    return x, power
