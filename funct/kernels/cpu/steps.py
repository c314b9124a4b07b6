"""Many ops on few elements as one piece of machine code, with the bits of NumPy's calls.

A program is a tuple of steps, which are known while the code is printed. Every value lies in one of
the arrays; an operand is (array, offset, strides) or a number. Truth is 0 or 1 in the array of
integers. Functions that round are NumPy's own loops, sums have NumPy's order, and the rest is
exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.irregular.pooling import larger
from funct.kernels.cpu.loops import Kernel
from funct.kernels.cpu.vectors import summed, written

__all__ = ["ARRAYS", "EXACT", "program"]

ARRAYS = 10  # at most, with those for values on the way

EXACT = {
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "negative": 1, "square": 1, "sqrt": 1,
    "abs": 1, "sign": 1, "where": 3, "absorb": 2, "less": 2, "less_equal": 2, "greater": 2,
    "greater_equal": 2, "equal": 2, "not_equal": 2, "copy": 1,
}  # fmt: skip
"""Ops on elements, and how many operands they have."""


def program() -> Kernel:
    """A kernel for one program: `run(*ARRAYS arrays, steps)` gives 1 where an index is none."""
    return Kernel(_run)


def _run(
    a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any, steps: Any
) -> int:
    held = (a, b, c, d, e, f, g, h, i, j)
    for how, what, to, place, shape, given in steps:
        y = held[to]
        if how == "each":
            _each(held, what, y, place, shape, given)
        elif how == "loop":
            x, at, number = given
            if number is None:
                written(what, held[x], at, y, place, shape)
            else:
                written(what, held[x], at, y, place, shape, number)
        elif how == "rows":
            x, at, n = given
            for r in range(shape):
                if what == "sum":
                    y[place + r] = summed(held[x], at + r * n, n)
                else:
                    top = held[x][at + r * n]
                    for k in range(1, n):
                        top = larger(held[x][at + r * n + k], top)
                    y[place + r] = top
        elif how == "columns":
            x, at, rows = given
            for k in range(shape):
                y[place + k] = held[x][at + k]
            for r in range(1, rows):
                for k in range(shape):
                    y[place + k] = y[place + k] + held[x][at + r * shape + k]
        else:  # "put": a number in each row of n
            x, at, indices, first, n = given
            for k in range(shape * n):
                y[place + k] = 0.0
            for r in range(shape):
                index = held[indices][first + r]
                if index.astype(np.uint64) >= np.uint64(n):
                    return 1
                y[place + r * n + index] = held[x][at + r]
    return 0


def _each(held: Any, what: str, y: Any, place: int, shape: Any, given: Any) -> None:
    """y, from place on, = an op of each of the operands' elements."""
    planes, rows, columns = shape
    if planes == 1 and rows == 1:
        for k in range(columns):
            y[place + k] = _element(held, what, y, given, 0, 0, k)
    else:
        for p in range(planes):
            for r in range(rows):
                for k in range(columns):
                    v = _element(held, what, y, given, p, r, k)
                    y[place + (p * rows + r) * columns + k] = v


def _element(held: Any, what: str, y: Any, given: Any, p: Any, r: Any, k: Any) -> Any:
    v, w, u = given
    return _of(what, y, _read(held, v, p, r, k), _read(held, w, p, r, k), _read(held, u, p, r, k))


def _read(held: Any, x: Any, p: Any, r: Any, k: Any) -> Any:
    if not isinstance(x, tuple):
        return x
    return held[x[0]][x[1] + p * x[2][0] + r * x[2][1] + k * x[2][2]]


def _of(what: str, y: Any, v: Any, w: Any, u: Any) -> Any:
    if what == "add":
        return v + w
    if what == "subtract":
        return v - w
    if what == "multiply":
        return v * w
    if what == "divide":
        return v / w
    if what == "negative":
        return -v
    if what == "square":
        return v * v
    if what == "sqrt":
        return np.sqrt(v)
    if what == "abs":
        return np.where(v > 0.0, v, 0.0 - v)
    if what == "sign":
        return np.where(v > 0.0, 1.0, np.where(v < 0.0, -1.0, np.where(v == 0.0, 0.0, v)))
    if what == "where":
        return np.where(v != 0, w, u)
    if what == "absorb":
        return np.where(v != 0.0, w, np.where(w - w == 0.0, w, 0.0))
    if what == "copy":
        return v.astype(y.dtype)
    return np.where(_holds(what, v, w), 1, 0)


def _holds(what: str, v: Any, w: Any) -> Any:
    if what == "less":
        return v < w
    if what == "less_equal":
        return v <= w
    if what == "greater":
        return v > w
    if what == "greater_equal":
        return v >= w
    return v == w if what == "equal" else v != w
