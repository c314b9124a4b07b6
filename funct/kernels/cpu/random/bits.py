"""Threefry-2x32 in vectors: words, and the numbers made of them.

`draw_all` and `fold_all` are steps of compiled loops (`funct/compile/steps/flat.py`).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel, parallel
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.vectors import in_step, lanes, loaded, stored
from funct.kernels.random.normal import (
    exponential32,
    exponential64,
    gumbel32,
    gumbel64,
    normal32,
    normal64,
    unit32,
    unit64,
)

__all__ = [
    "LANES", "WIDE", "draw", "draw_all", "draw_few", "few_numbers", "fold", "fold_all", "folded",
    "hash_one", "hash_words", "hashed", "mixed", "numbers", "of_one_key",
]  # fmt: skip

LANES = 16
WIDE = 64  # lanes of long draws: rounds depend on each other, vectors beside each other do not
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_ROUNDS = (0, 1, 2, 3, 4)
_PARITY = 0x1BD11BDA
_UNIT = 2.0**52  # from which on the last bit of a float is 1
_WORD = 0xFFFFFFFF
_PART = 1 << 14  # elements of a task, a multiple of WIDE


def mixed(k0: Any, k1: Any, x0: Any, x1: Any) -> Any:
    """The hash of counters (x0, x1) under keys (k0, k1), numbers or vectors."""
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0 = x0 + k0
    x1 = x1 + k1
    for i in _ROUNDS:
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = ((x1 << r) | (x1 >> (32 - r))) ^ x0
        x0 = x0 + keys[(i + 1) % 3]
        x1 = x1 + (keys[(i + 2) % 3] + (i + 1))
    return x0, x1


@kernel
def hashed(k0: Any, k1: Any, x0: Any, x1: Any, n: int, single: bool) -> None:
    """Hash n counters in place, n a multiple of LANES; single: under one key."""
    for i in range(0, n, LANES):
        a, b = (k0[0], k1[0]) if single else (loaded(k0, i, LANES), loaded(k1, i, LANES))
        y0, y1 = mixed(a, b, loaded(x0, i, LANES), loaded(x1, i, LANES))
        stored(x0, i, y0)
        stored(x1, i, y1)


def _made(kind: str, y0: Any, y1: Any, dtype: Any) -> Any:
    """What a pair of words stands for."""
    if kind == "split":
        return (y0.astype(np.uint64)) | (y1.astype(np.uint64) << 32)
    if kind == "bits":
        if dtype.itemsize == 8:
            return (y0.astype(np.uint64) << 32) | y1.astype(np.uint64)
        return (y0 ^ y1).astype(dtype)
    if kind == "unit":
        return unit64(y0, y1) if dtype.itemsize == 8 else unit32(y0 ^ y1)
    if kind == "exponential":
        return exponential64(y0, y1) if dtype.itemsize == 8 else exponential32(y0 ^ y1)
    if kind == "gumbel":
        return gumbel64(y0, y1) if dtype.itemsize == 8 else gumbel32(y0 ^ y1)
    return normal64(y0, y1) if dtype.itemsize == 8 else normal32(y0 ^ y1)


def _below(y0: Any, y1: Any, count: Any, first: int, dtype: Any) -> Any:
    """first, and on it what 2**32 y0 + y1 leaves by count, a float up to 2**32: every number on the
    way is an integer that a float is exactly.
    """
    inverse = 1.0 / count
    r = _left(y0.astype(np.float64), count, inverse)
    r = _left(r * 2.0**16 + (y1 >> 16).astype(np.float64), count, inverse)
    r = _left(r * 2.0**16 + (y1 & 0xFFFF).astype(np.float64), count, inverse)
    bits = (r + _UNIT).view(np.uint64) & _WORD
    return (bits + np.uint64(first)).astype(dtype)


def _left(v: Any, count: Any, inverse: Any) -> Any:
    """What v, below 2**48, leaves by count: the quotient is the nearest integer, or the next."""
    quotient = in_step((v * inverse + 1.5 * _UNIT) - 1.5 * _UNIT)
    r = in_step(v - quotient * count)
    r = np.where(r < 0.0, r + count, r)
    return np.where(r >= count, r - count, r)


def _signed(keys: Any, at: Any, count: int, v: Any) -> Any:
    """Numbers above 0, with signs: + where a uniform number of the second key is below ½."""
    z0, _ = _words(keys[2], keys[3], at, count)
    sign = z0 & 0x80000000
    if v.dtype.itemsize == 8:
        return (v.view(np.uint64) | (sign.astype(np.uint64) << 32)).view(np.float64)
    return (v.view(np.uint32) | sign).view(np.float32)


def _together(kind: str, dtype: Any, wide: bool) -> int:
    """How many elements are made together: as many as there are registers for."""
    if not wide:
        return LANES
    return WIDE // 2 if dtype.itemsize == 8 and kind not in ("bits", "split", "unit") else WIDE


def _words(k0: Any, k1: Any, at: Any, count: int) -> Any:
    """The words of the counters from at on."""
    low = np.uint32(at & _WORD)
    x1 = lanes(count, np.uint32) + low
    x0 = np.where(x1 < low, np.uint32(1), np.uint32(0)) + np.uint32(at >> 32)
    return mixed(k0, k1, x0, x1)


def _drawn(
    keys: Any, k0: Any, k1: Any, at: Any, count: int, kind: str, a: Any, b: int, dtype: Any
) -> Any:
    """What the counters from at on give under a key: of "integers" from b on and a in number, of
    "below" whether the uniform number is below a, of "laplace" with signs by the second of keys.
    """
    y0, y1 = _words(k0, k1, at, count)
    if kind == "integers":
        return _below(y0, y1, a, b, dtype)
    if kind == "below":
        return (unit64(y0, y1) < a).astype(np.uint8)
    if kind == "laplace":
        return _signed(keys, at, count, _made("exponential", y0, y1, dtype))
    return _made(kind, y0, y1, dtype)


@parallel
def draw(
    keys: Any, y: Any, rows: int, n: int, some: int, part: int, kind: str, wide: bool, a: Any,
    b: int, task: int,
) -> None:  # fmt: skip
    """y: n >= LANES elements for each of rows keys, by their index, as `_drawn` says; of "laplace"
    for one key. wide: n >= WIDE.

    A task makes `part` elements for each of `some` keys.
    """
    count = _together(kind, y.dtype, wide)
    parts = (np.uint64(n) + np.uint64(part - 1)) // np.uint64(part)
    row = np.uint64(task) // parts
    column: Any = (np.uint64(task) - row * parts).astype(np.int64) * part
    first: Any = row.astype(np.int64) * some
    last: Any = min(column + part, n)
    for r in range(first, min(first + some, rows)):
        k0 = keys[2 * r]
        k1 = keys[2 * r + 1]
        i = column
        while i < last:
            at = min(i, n - count)
            v = _drawn(keys, k0, k1, at, count, kind, a, b, y.dtype)
            stored(y, r * n + at, v)
            i += count


@kernel
def draw_few(keys: Any, y: Any, n: int, kind: str, wide: bool, a: Any, b: int) -> None:
    """The same for one key, in one task."""
    count = _together(kind, y.dtype, wide)
    i = 0
    while i < n:
        at = min(i, n - count)
        stored(y, at, _drawn(keys, keys[0], keys[1], at, count, kind, a, b, y.dtype))
        i += count


def draw_all(keys: Any, y: Any, rest: Any, rows: int, n: int, kind: str) -> None:
    """`draw` of any n, in one task. rest: room for LANES elements."""
    whole = n & -LANES
    for r in range(rows):
        k0 = keys[2 * r]
        k1 = keys[2 * r + 1]
        for i in range(0, whole, LANES):
            y0, y1 = _words(k0, k1, i, LANES)
            stored(y, r * n + i, _made(kind, y0, y1, y.dtype))
        if whole < n:
            y0, y1 = _words(k0, k1, whole, LANES)
            stored(rest, 0, _made(kind, y0, y1, y.dtype))
            for i in range(n - whole):
                y[r * n + whole + i] = rest[i]


def fold_all(keys: Any, data: Any, y: Any, rows: int) -> None:
    """y: a new key from each of rows keys and its number."""
    for r in range(rows):
        low = data[r].astype(np.uint32)
        y0, y1 = mixed(keys[2 * r], keys[2 * r + 1], low ^ low, low)
        y[2 * r] = y0
        y[2 * r + 1] = y1


@parallel
def fold(key: Any, data: Any, y: Any, n: int, part: int, task: int) -> None:
    """y: the keys that belong to n >= WIDE integers, as words of 64 bits; a task makes `part`."""
    k0 = key[0]
    k1 = key[1]
    i = task * part
    last = min(i + part, n)
    while i < last:
        at = min(i, n - WIDE)
        low = loaded(data, at, WIDE).astype(np.uint32)
        y0, y1 = mixed(k0, k1, low ^ low, low)
        stored(y, at, _made("split", y0, y1, y.dtype))
        i += WIDE


def folded(key: Any, data: Any) -> Any:
    """(*data.shape, 2): the keys that belong to integers, WIDE of them at least."""
    n = data.size
    y = np.empty((*data.shape, 2), np.uint32)
    fold(key, data, y.view(np.uint64), n, _PART, -(-n // _PART))
    return y


def few_numbers(
    key: Any, shape: Any, n: int, dtype: Any, kind: str, a: float = 0, b: int = 0
) -> Any:
    """n > 0 elements of a shape for one key: what `draw_few` makes."""
    if n >= LANES:
        y = np.empty(shape, dtype)
        draw_few(key, y, n, kind, n >= WIDE, a, b)
        return y
    y = np.empty(LANES, dtype)
    draw_few(key, y, LANES, kind, False, a, b)
    y = y[:n]
    return y if shape.__class__ is int or len(shape) == 1 else y.reshape(shape)


def of_one_key(
    key: Any, shape: Any, n: int, dtype: Any, kind: str, a: float = 0.0, b: int = 0
) -> Any:
    """n > 0 elements of a shape: what `draw` makes for one key, or for "laplace" of two."""
    if n <= _PART:
        return few_numbers(key, shape, n, dtype, kind, a, b)
    y = fresh(shape, dtype)
    draw(key, y, 1, n, n, _PART, kind, True, a, b, -(-n // _PART))
    return y


def numbers(keys: Any, shape: Any, dtype: Any, kind: str, a: float = 0.0, b: int = 0) -> Any:
    """Elements (*b, *shape) for the keys (*b, 2): "bits", "unit", "normal", "exponential",
    "gumbel", "split", or "integers", from b on and a in number.
    """
    if keys.shape[-1:] != (2,):
        raise ValueError(f"keys are pairs of words, not {keys.shape}")
    n, rows = prod(shape), keys.size >> 1
    if keys.ndim == 1 and n:
        return of_one_key(keys, shape, n, dtype, kind, a, b)
    whole = (*keys.shape[:-1], *shape)
    if not n * rows:
        return np.empty(whole, dtype)
    wide = max(n, LANES)
    y = fresh(whole if n >= LANES else (rows, wide), dtype)
    part = min(wide, _PART)
    some = max(1, _PART // part)
    tasks = -(-wide // part) * -(-rows // some)
    draw(keys, y, rows, wide, some, part, kind, wide >= WIDE, a, b, tasks)
    return y if n >= LANES else y[:, :n].copy().reshape(whole)


def hash_one(key: Any, low: int) -> Any:
    """The hash of one counter under one key, as a key."""
    words = np.zeros((2, LANES), np.uint32)
    words[1, 0] = low
    hashed(key[:1], key[1:], words[0], words[1], LANES, True)
    return words[:, 0].copy()


def hash_words(k0: Any, k1: Any, x0: Any, x1: Any) -> None:
    """Hash flat counters in place; k0 and k1 have one element, or as many as x0."""
    n, single = x0.size, k0.size == 1
    whole = n - n % LANES
    if whole:
        hashed(k0, k1, x0, x1, whole, single)
    if n > whole:
        rest = slice(whole, n)
        padded = np.zeros((4, LANES), np.uint32)
        for row, a in zip(padded, (k0, k1, x0, x1)):
            row[: n - whole] = a if a.size == 1 else a[rest]
        hashed(*padded, LANES, False)
        x0[rest], x1[rest] = padded[2:, : n - whole]
