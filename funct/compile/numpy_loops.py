"""NumPy's own loops, called by address: functions and sums in programs with the bits of eager code.

Small bodies of loops call it for what our own loops give only up to the last places. What NumPy
would do with one element or many is done here: one element has stride 0, and a row that is summed
is handed over as a whole, so the order of the sum is NumPy's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.compile.fuse import Fused
from funct.compile.groups import reduction
from funct.compile.lower import Address, Borrowed, Call, Word, copy
from funct.compile.scalars import exact_number
from funct.graph import Node, Var
from funct.kernels.cpu.ufunc_loops import Loop, loop_of
from funct.kernels.llvm import I64, PTR, Module, Value, typed

__all__ = ["borrowed", "is_numpy_loop", "lower_numpy_loop", "print_numpy_loop", "print_numpy_sum"]

_UFUNCS: dict[str, str] = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "cos": "cos", "cosh": "cosh", "exp": "exp",
    "expm1": "expm1", "fmod": "fmod", "hypot": "hypot", "log": "log", "log10": "log10",
    "log1p": "log1p", "log2": "log2", "logaddexp": "logaddexp", "pow": "power",
    "remainder": "remainder", "sin": "sin", "sinh": "sinh", "tan": "tan", "tanh": "tanh",
    "reduce_sum": "add",
}  # fmt: skip
_MOST = 3  # operands and result


def _loop(name: str, dtype: np.dtype[Any]) -> Loop | None:
    return loop_of(getattr(np, _UFUNCS[name]), dtype)


def borrowed(word: Borrowed) -> int:
    """Where it is in this process. Raises: ValueError: if NumPy has no such loop."""
    loop = _loop(word.name, np.dtype(word.dtype)) if word.name in _UFUNCS else None
    if loop is None:
        raise ValueError(f"NumPy has no loop of {word.name} for {word.dtype}")
    return loop.data if word.data else loop.function


def is_numpy_loop(node: Any) -> bool:
    """Whether a step is a function, or a sum of rows, that one of NumPy's loops computes."""
    if not isinstance(node, Node) or len(node.results) != 1:
        return False
    if node.name not in _UFUNCS:
        return False
    out = node.results[0]
    if node.name == "reduce_sum" and reduction(node) not in ("row", "all"):
        return False
    fits = all(
        a.dtype == out.dtype if isinstance(a, Var) else exact_number(a, out.dtype) is not None
        for a in node.operands
    )
    return out.dtype.char in "fd" and fits and _loop(node.name, out.dtype) is not None


def lower_numpy_loop(node: Node, fused: Fused) -> list[Call]:
    """The call of the loop, after copies of what does not lie one after the other."""
    out = node.results[0]
    calls: list[Call] = []
    byte = out.dtype.itemsize
    places: list[Word] = []
    strides: list[int] = []
    rows, count = 1, math.prod(out.shape)
    if node.name == "reduce_sum":
        (x,) = node.operands
        assert isinstance(x, Var)
        rows, count = count, math.prod(x.shape) // max(1, count)
    for a in node.operands:
        if not isinstance(a, Var):
            number = np.asarray(a, out.dtype).view(f"u{byte}")
            places += [0, int(number.astype(np.uint64).view(np.int64))]
            strides.append(0)
            continue
        view = fused.views[a]
        if node.name != "reduce_sum" and view.size != 1:
            view = view.broadcast(out.shape)
        if not view.is_run:
            added, view = copy(view, fused)
            calls += added
        places += [Address(view.root, view.offset * byte), 0]
        strides.append(0 if view.size == 1 else byte)
    loop = [Borrowed(node.name, out.dtype.char, data) for data in (False, True)]
    words: tuple[Word, ...] = (*loop, rows, count, *places, Address(out))
    if node.name == "reduce_sum":
        kernel: tuple[Any, ...] = ("numpy sum", "f32" if byte == 4 else "f64")
    else:
        kernel = ("numpy", len(node.operands))
        words = (*words, *strides, 0 if count == 1 else byte)
    return [*calls, Call(kernel, words, 1, (out,))]


def print_numpy_loop(module: Module, name: str, operands: int) -> None:
    """Add the call of a function's loop."""
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    arguments, steps, counts = (f.allocate(I64, n) for n in (_MOST, _MOST, 1))

    def place(slot: int) -> Value:
        return f.at(frame, slot, "i64")

    f.store(f.load(I64, place(3)), counts)
    for k in range(operands + 1):
        given = f.load(PTR, place(4 + 2 * k))
        if k < operands:
            given = f.select(f.eq(f.load(I64, place(4 + 2 * k)), 0), place(5 + 2 * k), given)
        f.store(given, f.at(arguments, k, "i64"))
        f.store(f.load(I64, place(5 + 2 * operands + k)), f.at(steps, k, "i64"))
    function, data = f.load(PTR, place(0)), f.load(PTR, place(1))
    f.line(f"call void {function.name}({arguments!r}, {counts!r}, {steps!r}, {data!r})")
    f.ret()


def print_numpy_sum(module: Module, name: str, element: str) -> None:
    """Add the call of addition's loop for each row of an array."""
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    real, start = typed(element), float(np.add.reduce(np.array([-0.0])))  # NumPy's, of either sign
    arguments, steps, counts = (f.allocate(I64, n) for n in (_MOST, _MOST, 1))
    function, data, source, out = (f.load(PTR, f.at(frame, k, "i64")) for k in (0, 1, 4, 6))
    rows, count = (f.load(I64, f.at(frame, k, "i64")) for k in (2, 3))
    f.store(count, counts)
    for k, step in enumerate((0, real.bytes, 0)):
        f.store(f.constant(I64, step), f.at(steps, k, "i64"))

    def row(r: Value, _: list[Value]) -> list[Value]:
        sum_ = f.at(out, r, element)
        f.store(f.constant(real, start), sum_)
        for k, given in enumerate((sum_, f.at(source, r * count, element), sum_)):
            f.store(given, f.at(arguments, k, "i64"))
        f.line(f"call void {function.name}({arguments!r}, {counts!r}, {steps!r}, {data!r})")
        return []

    f.loop(0, rows, 1, row)
    f.ret()
