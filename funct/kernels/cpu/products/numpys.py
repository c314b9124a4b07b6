"""Products of small matrices by the loop behind `numpy.matmul`, with its bits, at less than half of
the cost of a call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.kernels import table
from funct.kernels.cpu.calls import code_of
from funct.kernels.cpu.elementwise.ufunc_loops import generalized
from funct.kernels.cpu.runners import making

__all__ = ["small_matmul"]

_Shape = tuple[int, ...]

# The job: the addresses; the loop and what it is handed besides; how many products, rows, terms,
# columns; bytes from one to the next of both operands and of the result, and within each.
_TEXT = """
define void @multiply(ptr %job) {
  %function.at = getelementptr i64, ptr %job, i64 3
  %data.at = getelementptr i64, ptr %job, i64 4
  %sizes = getelementptr i64, ptr %job, i64 5
  %steps = getelementptr i64, ptr %job, i64 9
  %function = load ptr, ptr %function.at
  %data = load ptr, ptr %data.at
  call void %function(ptr %job, ptr %sizes, ptr %steps, ptr %data)
  ret void
}
"""


def _plan(
    x: _Shape, y: _Shape, x_strides: _Shape, y_strides: _Shape, char: str
) -> Callable[..., Any] | None:
    """x @ y of vectors, matrices, or one stack of them; None where NumPy has no such loop, or has
    nothing to multiply.
    """
    loop = generalized(np.matmul, f"{char}{char}->{char}")
    if loop is None or not (0 < len(x) < 4 and 0 < len(y) < 4) or 0 in (*x, *y):
        return None
    rows, terms = x[-2:] if len(x) > 1 else (1, *x)
    inner, columns = y[-2:] if len(y) > 1 else (*y, 1)
    count = max([1, *x[:-2], *y[:-2]])
    if terms != inner or not {*x[:-2], *y[:-2]} <= {1, count}:
        return None
    lead = (count,) if max(len(x), len(y)) == 3 else ()
    result = (*lead, *x[-2:-1], *(y[-1:] if len(y) > 1 else ()))
    dtype = np.dtype(char)
    dense = dtype.itemsize * columns, dtype.itemsize
    apart = (_steps(x, x_strides, 3)[0], _steps(y, y_strides, 3)[0], rows * dense[0])
    of_y = _steps(y, y_strides, 2) if len(y) > 1 else (*_steps(y, y_strides, 1), 0)
    steps = *apart, *_steps(x, x_strides, 2), *of_y, *_steps((rows, columns), dense, 2)
    words = [loop.function, loop.data, count, rows, terms, columns, *steps]
    code = code_of(_TEXT).address("multiply")
    most = max(map(math.prod, (x, y, result)))
    return making(code, result, dtype, words, most, warned=np.matmul)


small_matmul = table.Planned(_plan)


def _steps(shape: _Shape, strides: _Shape, axes: int) -> _Shape:
    """Those of so many last axes, as NumPy hands them over: 0 of an axis that is absent, or 1."""
    found = [0 if n == 1 else s for n, s in zip(shape, strides, strict=True)]
    return (*[0] * (axes - len(found)), *found[-axes:])
