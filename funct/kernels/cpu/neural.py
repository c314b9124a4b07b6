"""Layers and losses on few elements: one call for what would be many of NumPy's.

Functions that round (exp, log, tanh) and sums are NumPy's own loops, and all else is exact, so the
bits are those of NumPy's calls. x and y are (rows, n), flat and not empty; y may not be x.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from funct.kernels.cpu.elementwise.ufunc_loops import loop_of
from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.vectors import loaded, stored, summed, written
from funct.kernels.cpu.windows.pooling import larger

__all__ = [
    "class_loss", "gelu", "layer_norm", "log_softmax", "log_softmax_of_columns", "sigmoid",
    "softmax", "softmax_of_columns", "softplus", "usable",
]  # fmt: skip

_LANES = 8
_SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)


@functools.cache
def usable() -> bool:
    """Whether NumPy has the loops that are called here."""
    kinds = (np.dtype(np.float32), np.dtype(np.float64))
    loops = [loop_of(u, d) for u in (np.exp, np.log, np.logaddexp, np.tanh, np.add) for d in kinds]
    return None not in loops


def _combined(x: Any, y: Any, at: int, n: int, v: Any, times: bool) -> None:
    """y = x times v, or x less v, for n elements from at on."""
    whole = at + (n & -_LANES)
    for k in range(at, whole, _LANES):
        many = loaded(x, k, _LANES)
        stored(y, k, many * v if times else many - v)
    for k in range(whole, at + n):
        y[k] = x[k] * v if times else x[k] - v


def _shift(x: Any, y: Any, at: int, n: int) -> None:
    """y = x - its maximum, for n elements from at on."""
    top = x[at]
    if n >= 2 * _LANES:  # the maxima of lanes, where the last vector ends with the row
        many: Any = larger(loaded(x, at + n - _LANES, _LANES), loaded(x, at, _LANES))
        for k in range(at + _LANES, at + n - _LANES, _LANES):
            many = larger(loaded(x, k, _LANES), many)
        stored(y, at, many)
        for k in range(at, at + _LANES):
            top = larger(y[k], top)
    else:
        for k in range(at + 1, at + n):
            top = larger(x[k], top)
    _combined(x, y, at, n, top, False)


@kernel
def softmax(x: Any, y: Any, rows: int, n: int) -> None:
    """y = exp(x - max) / Σ exp(x - max) for each row."""
    for r in range(rows):
        _shift(x, y, r * n, n)
    written(np.exp, y, 0, y, 0, rows * n)
    for r in range(rows):
        _combined(y, y, r * n, n, 1.0 / summed(y, r * n, n), True)


def _log_softmax(x: Any, y: Any, e: Any, base: int, rows: int, n: int) -> None:
    """y = x - max - log Σ exp(x - max) for each row. e: room for as much, from base on."""
    for r in range(rows):
        _shift(x, y, r * n, n)
    written(np.exp, y, 0, e, base, rows * n)
    for r in range(rows):
        e[base + r] = summed(e, base + r * n, n)  # behind which no row is read again
    written(np.log, e, base, e, base, rows)
    for r in range(rows):
        _combined(y, y, r * n, n, e[base + r], False)


@kernel
def log_softmax(x: Any, y: Any, e: Any, rows: int, n: int) -> None:
    """As above."""
    _log_softmax(x, y, e, 0, rows, n)


def _columns_shifted(x: Any, y: Any, images: int, n: int, behind: int) -> None:
    """y = x - the maximum of each column. x, y: (images, n, behind)."""
    for r in range(images):
        first, whole = r * n * behind, behind & -_LANES
        for j in range(first, first + whole, _LANES):
            _shift_column(x, y, j, n, behind, _LANES)
        for j in range(first + whole, first + behind):
            _shift_column(x, y, j, n, behind, 1)


def _shift_column(x: Any, y: Any, at: int, n: int, step: int, width: int) -> None:
    """y = x - its maximum, for as many columns side by side."""
    top = loaded(x, at, width)
    for k in range(1, n):
        top = larger(loaded(x, at + k * step, width), top)
    for k in range(n):
        stored(y, at + k * step, loaded(x, at + k * step, width) - top)


def _column_sum(x: Any, at: int, n: int, step: int, width: int) -> Any:
    """The sums of as many columns side by side."""
    total = loaded(x, at, width)
    for k in range(1, n):
        total = total + loaded(x, at + k * step, width)
    return total


def _share_column(y: Any, at: int, n: int, step: int, width: int) -> None:
    """y times 1 / its sum."""
    factor = 1.0 / _column_sum(y, at, n, step, width)
    for k in range(n):
        stored(y, at + k * step, loaded(y, at + k * step, width) * factor)


def _lower_column(y: Any, at: int, by: Any, n: int, step: int, width: int) -> None:
    """y less one number for each column."""
    for k in range(n):
        stored(y, at + k * step, loaded(y, at + k * step, width) - by)


@kernel
def softmax_of_columns(x: Any, y: Any, images: int, n: int, behind: int) -> None:
    """y = exp(x - max) / Σ exp(x - max) for each column."""
    _columns_shifted(x, y, images, n, behind)
    written(np.exp, y, 0, y, 0, images * n * behind)
    for r in range(images):
        first, whole = r * n * behind, behind & -_LANES
        for j in range(first, first + whole, _LANES):
            _share_column(y, j, n, behind, _LANES)
        for j in range(first + whole, first + behind):
            _share_column(y, j, n, behind, 1)


@kernel
def log_softmax_of_columns(x: Any, y: Any, s: Any, images: int, n: int, behind: int) -> None:
    """y = x - max - log Σ exp(x - max) for each column. s: room for as much."""
    _columns_shifted(x, y, images, n, behind)
    written(np.exp, y, 0, s, 0, images * n * behind)
    whole = behind & -_LANES
    for r in range(images):  # what is written is not read again: it is of images or columns before
        to, back = r * behind, r * n * behind - r * behind
        for j in range(to, to + whole, _LANES):
            stored(s, j, _column_sum(s, j + back, n, behind, _LANES))
        for j in range(to + whole, to + behind):
            stored(s, j, _column_sum(s, j + back, n, behind, 1))
    written(np.log, s, 0, s, 0, images * behind)
    for r in range(images):
        to, back = r * behind, r * n * behind - r * behind
        for j in range(to, to + whole, _LANES):
            _lower_column(y, j + back, loaded(s, j, _LANES), n, behind, _LANES)
        for j in range(to + whole, to + behind):
            _lower_column(y, j + back, loaded(s, j, 1), n, behind, 1)


@kernel
def class_loss(
    x: Any, target: Any, y: Any, e: Any, rows: int, n: int, logits: bool, total: str
) -> int:
    """y: -x at the target of each row; for total "mean" and "sum" one number.

    It gives 1 where a target is none of the n classes. logits: the logarithms are found first, and
    e is room for twice x; else e is room for as many numbers as rows.
    """
    base = rows * n if logits else 0
    if logits:
        _log_softmax(x, e, e, base, rows, n)
    for r in range(rows):
        at = target[r].astype(np.int64)
        if at.astype(np.uint64) >= np.uint64(n):
            return 1
        v = -(e if logits else x)[r * n + at]
        if total == "none":
            y[r] = v
        else:
            e[base + r] = v
    if total != "none":
        s = summed(e, base, rows)
        y[0] = s / np.int64(rows).astype(x.dtype) if total == "mean" else s
    return 0


@kernel
def layer_norm(
    x: Any, weight: Any, bias: Any, y: Any, e: Any, rows: int, n: int, eps: float, weighted: bool,
    biased: bool,
) -> None:  # fmt: skip
    """y = (x - mean) / sqrt(variance + eps) · weight + bias for each row. e: room for a row."""
    count = np.int64(n).astype(x.dtype)
    least = np.float64(eps).astype(x.dtype)
    for r in range(rows):
        first = r * n
        mean = summed(x, first, n) / count
        for k in range(n):
            v = x[first + k] - mean
            y[first + k] = v
            e[k] = v * v
        factor = 1.0 / np.sqrt(summed(e, 0, n) / count + least)
        for k in range(n):
            v = y[first + k] * factor
            if weighted:
                v = v * weight[k]
            if biased:
                v = v + bias[k]
            y[first + k] = v


@kernel
def sigmoid(x: Any, y: Any, n: int, times: bool) -> None:
    """y = 1 / (1 + exp(-x)), or x times that: of exp(-|x|) alone, which is exp(x) below 0."""
    for k in range(n):
        v = x[k]
        y[k] = np.where(v > 0.0, -v, v)
    written(np.exp, y, 0, y, 0, n)
    for k in range(n):
        v = x[k]
        e = y[k]
        share = np.where(v > 0.0, 1.0, e) / (1.0 + e)
        y[k] = v * share if times else share


@kernel
def softplus(x: Any, y: Any, n: int, beta: float, threshold: float) -> None:
    """y = log(1 + exp(beta x)) / beta, or x where beta x is above the threshold."""
    rate = np.float64(beta).astype(x.dtype)
    limit = np.float64(threshold).astype(x.dtype)
    for k in range(n):
        y[k] = x[k] * rate
    written(np.logaddexp, y, 0, y, 0, n, 0.0)
    for k in range(n):
        y[k] = x[k] if x[k] * rate > limit else y[k] / rate


@kernel
def gelu(x: Any, y: Any, n: int) -> None:
    """y = x / 2 (1 + tanh(sqrt(2 / π) (x + 0.044715 x³)))."""
    for k in range(n):
        v = x[k]
        y[k] = (v * v * v * 0.044715 + v) * _SQRT_TWO_OVER_PI
    written(np.tanh, y, 0, y, 0, n)
    for k in range(n):
        y[k] = (y[k] + 1.0) * (0.5 * x[k])
