"""Products of large matrices of floats, and of stacks of them, in tiles (`tiled.py`), wherever
their rows or columns lie one after the other in memory.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import PARALLEL, Host, host, printed
from funct.kernels import table
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.products.blas_products import axes_of
from funct.kernels.cpu.products.gemm import foretell
from funct.kernels.cpu.products.tiled import is_worth, laid, print_tasks, tasks_of
from funct.kernels.cpu.runners import making, runner
from funct.kernels.llvm import PTR, Module

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Sizes = tuple[int, ...]

__all__ = ["large_matmul"]

# by NumPy's name, with its bytes
_ELEMENT = {"f": ("f32", 4), "d": ("f64", 8), "F": ("c64", 8), "D": ("c128", 16)}
_NUMBER = 21  # the word behind those of a task, of which four are of an axis of a stack


def _plan(
    x: _Sizes, y: _Sizes, x_strides: _Sizes, y_strides: _Sizes, char: str
) -> Callable[..., Any] | None:
    """x @ y of matrices, or of stacks of them, of one dtype; None where BLAS is as good."""
    if min(len(x), len(y)) < 2 or x[-1] != y[-2] or 0 in (*x, *y):
        return None
    element, byte = _ELEMENT[char]
    a = laid(x_strides[-2:], x[-2], x[-1], byte)
    b = laid(y_strides[-2:], y[-2], y[-1], byte)
    if a is None or b is None or any(s % byte for s in (*x_strides, *y_strides)):
        return None
    stack = np.broadcast_shapes(x[:-2], y[:-2])
    count = math.prod(stack)
    sizes = (x[-2], y[-1], x[-1])
    if not is_worth(sizes, element, a, b, several=count > 1):
        return None
    tasks = tasks_of(sizes, element, a, b, count)
    foretell(tasks.tiles())
    axes = axes_of(stack, (x[:-2], x_strides), (y[:-2], y_strides)) if count > 1 else []
    steps: list[int] = []
    for below, length, *apart in axes:
        steps += [below, length, *[step // byte for step in apart]]
    depth = len(steps) // 4
    code = _code(element, depth, *tasks.kind)
    shape, room = (*stack, x[-2], y[-1]), tasks.room * byte
    numbers = [*tasks.words(), *steps, tasks.number]
    if not room:
        most = max(math.prod(x), math.prod(y), math.prod(shape))
        return making(code, shape, np.dtype(char), [0, *numbers], most)
    run, make = runner(code), memory.maker(shape, np.dtype(char))
    words = struct.pack(f"{len(numbers)}q", *numbers)

    def multiply(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        run(x, y, out := make(), struct.pack("q", memory.scratch(room)) + words)
        return out

    return multiply


large_matmul = table.Planned(_plan)


@functools.cache
def _code(element: str, depth: int, rows: int, way: str, wide: int, narrow: int) -> int:
    code = printed(_text, element, depth, rows, way, wide, narrow, host())
    return code.keep().address("multiply")


def _text(
    element: str, depth: int, rows: int, way: str, wide: int, narrow: int, target: Host
) -> str:
    """`multiply(job)`: all tasks."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    print_tasks(module, "task", element, depth, rows, way, wide, narrow)
    f = module.function("multiply", [("job", PTR)])
    (job,) = f.arguments
    number = f.word(job, _NUMBER + 4 * depth)
    f.line(f"call void @funct_parallel(ptr @task, {job!r}, {number!r})")
    f.ret()
    return module.text()
