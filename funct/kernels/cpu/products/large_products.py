"""Products of large matrices of floats in tiles (`tiled.py`), wherever their rows or columns lie
one after the other in memory.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import PARALLEL, Host, host, printed
from funct.kernels import table
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.products.gemm import foretell
from funct.kernels.cpu.products.tiled import is_worth, laid, print_tasks, tasks_of
from funct.kernels.cpu.runners import runner
from funct.kernels.llvm import I64, PTR, Module

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Sizes = tuple[int, ...]

__all__ = ["large_matmul"]

_ELEMENT = {"f": ("f32", 4), "d": ("f64", 8)}  # by NumPy's name, with its bytes
_NUMBER = 20  # the word behind those of a task: how many there are


def _plan(
    x: _Sizes, y: _Sizes, x_strides: _Sizes, y_strides: _Sizes, char: str
) -> Callable[..., Any] | None:
    """x @ y of two matrices of one dtype; None where BLAS is as good."""
    if len(x) != 2 or len(y) != 2:
        return None
    element, byte = _ELEMENT[char]
    a, b = laid(x_strides, x[0], x[1], byte), laid(y_strides, y[0], y[1], byte)
    if x[1] != y[0] or a is None or b is None:
        return None
    sizes = (x[0], y[1], x[1])
    if not is_worth(sizes, element, a, b):
        return None
    tasks = tasks_of(sizes, element, a, b)
    foretell(tasks.tiles())
    run = _runner(element, *tasks.kind)
    words = struct.pack(f"{_NUMBER - 3}q", *tasks.words(), tasks.number)
    make, room = memory.maker((x[0], y[1]), np.dtype(char)), tasks.room * byte

    def multiply(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        run(x, y, out := make(), struct.pack("q", memory.scratch(room)) + words)
        return out

    return multiply


large_matmul = table.Planned(_plan)


@functools.cache
def _runner(element: str, rows: int, turned: bool, wide: int, narrow: int) -> Callable[..., None]:
    code = printed(_text, element, rows, turned, wide, narrow, host())
    return runner(code.keep().address("multiply"))


def _text(element: str, rows: int, turned: bool, wide: int, narrow: int, target: Host) -> str:
    """`multiply(job)`: all tasks."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    print_tasks(module, "task", element, 0, rows, turned, wide, narrow)
    f = module.function("multiply", [("job", PTR)])
    (job,) = f.arguments
    number = f.load(I64, f.at(job, _NUMBER, "i64"))
    f.line(f"call void @funct_parallel(ptr @task, {job!r}, {number!r})")
    f.ret()
    return module.text()
