"""Products of a column and a row, and by one number, of few elements: each is a product and 0."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.device import Host, host, printed
from funct.device.memory import LARGE
from funct.kernels import table
from funct.kernels.cpu.runners import making
from funct.kernels.llvm import PTR, Module, Value, each, typed

__all__ = ["outer_product"]

_ELEMENT = {"f": "f32", "d": "f64"}  # by NumPy's name


def _plan(
    x: tuple[int, ...], y: tuple[int, ...], x_strides: tuple[int, ...], y_strides: tuple[int, ...],
    char: str,
) -> Callable[..., Any] | None:  # fmt: skip
    """x @ y of two matrices, where sums have one term; None of many elements, which threads share,
    and where a row does not lie so.
    """
    if len(x) != 2 or len(y) != 2 or not x[1] == y[0] == 1 or 0 in (*x, *y):
        return None
    m, n, dtype = x[0], y[1], np.dtype(char)
    byte, down, along = dtype.itemsize, x_strides[0], y_strides[1]
    turned = n == 1 < m
    rows, columns, down, along = (1, m, along, down) if turned else (m, n, down, along)
    if m * n * byte >= LARGE or (along != byte and columns > 1) or down % byte:
        return None
    code = printed(_text, _ELEMENT[char], host()).keep().address("multiply")
    words = [rows, columns, down // byte]
    return making(code, (m, n), dtype, words, math.prod((m, n)), turned=turned, warned=np.matmul)


outer_product = table.Planned(_plan)


def _text(element: str, target: Host) -> str:
    """`multiply(job)`. The job: column, row, result; rows, columns, elements from row to row of the
    column.
    """
    module = Module(target)
    f = module.function("multiply", [("job", PTR)])
    (job,) = f.arguments
    x, y, z = f.pointers(job, 0, 3)
    rows, columns, down = f.words(job, 3, 3)
    lanes = target.vector_bytes // typed(element).bytes
    whole = columns - f.rem(columns, lanes)

    def row(i: Value) -> None:
        factor = f.load(typed(element), f.at(x, i * down, element))
        out = f.at(z, i * columns, element)

        def some(j: Value, lanes: int) -> None:
            wide = typed(element, lanes) if lanes > 1 else typed(element)
            one = f.splat(factor, lanes) if lanes > 1 else factor
            v = one * f.load(wide, f.at(y, j, element)) + f.constant(wide, 0)
            f.store(v, f.at(out, j, element))

        each(f, 0, whole, functools.partial(some, lanes=lanes), lanes)
        each(f, whole, columns, functools.partial(some, lanes=1))

    each(f, 0, rows, row)
    f.ret()
    return module.text()
