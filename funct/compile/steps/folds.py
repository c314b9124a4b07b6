"""Reductions of floats with NumPy's bits: by the loops behind its ufuncs, as `ufunc.reduce` calls
them.

Where nothing lies behind the axes, a call folds a row into one number, which is the loop's result
and its first operand. Else a call for each place along the axes folds in all the numbers behind it.
Sums and products begin with 0 and 1, extremes with the first number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import places_of
from funct.compile.steps.ufuncs import NUMPYS, data_of, loop_of_numpy
from funct.graph import Node, Var
from funct.kernels.llvm import I64, PTR, Module, Value, typed

__all__ = ["is_fold", "lower_fold", "may_fold", "print_fold"]

_FOLDS: dict[str, tuple[np.ufunc, float | None]] = {
    "reduce_sum": (np.add, 0.0), "reduce_prod": (np.multiply, 1.0),
    "reduce_max": (np.maximum, None), "reduce_min": (np.minimum, None),
}  # fmt: skip
"""The function that folds, and with which number it begins, if not with the first one."""
_STEPS = {f"{NUMPYS}{name}": fold for name, fold in _FOLDS.items()}


def may_fold(e: Node) -> bool:
    """Whether a node is a reduction of floats, of axes without kept ones between them."""
    if e.name not in _FOLDS or len(e.operands) != 1:
        return False
    (x,), (out,) = e.operands, e.results
    if not isinstance(x, Var) or 0 in x.shape or x.dtype.char not in "fd" or out.dtype != x.dtype:
        return False
    return _sizes(e) is not None and loop_of_numpy(_FOLDS[e.name][0], x.dtype) is not None


def is_fold(step: Any) -> bool:
    """Whether a step is such a reduction, by NumPy's loops."""
    return isinstance(step, Node) and step.name in _STEPS


def _sizes(e: Node) -> tuple[int, int, int] | None:
    """How many elements there are before the axes, along them, and behind them; None where others
    are between them.
    """
    shape, axes = e.operands[0].shape, e.params[0]  # type: ignore[union-attr]
    longer = [a for a, n in enumerate(shape) if n != 1]
    gone = [a for a in longer if a in axes]
    if not gone:
        return math.prod(shape), 1, 1
    first, last = gone[0], gone[-1]
    if any(a not in axes for a in longer if first < a < last):
        return None
    before, along, behind = shape[:first], shape[first : last + 1], shape[last + 1 :]
    return math.prod(before), math.prod(along), math.prod(behind)


def lower_fold(node: Node, fused: Fused) -> list[Call]:
    """The call."""
    calls, places = places_of(node.operands, fused)
    out, sizes = node.results[0], _sizes(node)
    ufunc, first = _STEPS[node.name]
    loop = loop_of_numpy(ufunc, out.dtype)
    assert sizes is not None
    assert loop is not None
    kernel = ("fold", *loop, "f32" if out.dtype.itemsize == 4 else "f64", first, sizes[2] == 1)
    return [*calls, Call(kernel, (*places, Address(out), *sizes), 1, (out,))]


def print_fold(
    module: Module, name: str, loop: str, data: bool, element: str, first: float | None, rows: bool
) -> None:
    """Add the kernel of a reduction. Frame: numbers, results; how many are before, along and behind
    the axes. first: the number it begins with, if not with the first one. rows: nothing is behind.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    held, real = data_of(f, loop, data), typed(element)
    x, out = (f.load(PTR, f.at(frame, k, "i64")) for k in range(2))
    outer, n, inner = (f.load(I64, f.at(frame, 2 + k, "i64")) for k in range(3))
    table, length, strides = f.allocate(PTR, 3), f.allocate(I64, 1), f.allocate(I64, 3)
    skipped = 0 if first is not None else 1
    byte = f.constant(I64, real.bytes)
    for k in range(3):
        f.store(f.constant(I64, 0) if rows and k != 1 else byte, f.at(strides, k, "i64"))
    f.store(n - skipped if rows else inner, length)

    def call(given: Value, to: Value) -> None:
        for k, place in enumerate((to, given, to)):
            f.store(place, f.at(table, k, "i64"))
        f.call(loop, None, [table, length, strides, held])

    def begin(to: Value, given: Value) -> None:
        f.store(f.load(real, given) if first is None else f.constant(real, first), to)

    def row(r: Value, _: list[Value]) -> list[Value]:
        given, to = f.at(x, r * n, element), f.at(out, r, element)
        begin(to, given)
        call(f.at(given, skipped, element), to)
        return []

    def block(o: Value, _: list[Value]) -> list[Value]:
        given, to = f.at(x, o * n * inner, element), f.at(out, o * inner, element)

        def one(k: Value, _: list[Value]) -> list[Value]:
            begin(f.at(to, k, element), f.at(given, k, element))
            return []

        def along(r: Value, _: list[Value]) -> list[Value]:
            call(f.at(given, r * inner, element), to)
            return []

        f.loop(0, inner, 1, one)
        f.loop(skipped, n, 1, along, maybe_empty=True)
        return []

    f.loop(0, outer, 1, row if rows else block)
    f.ret()
