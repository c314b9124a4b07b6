"""Reductions of floats with NumPy's bits: by the loops behind its ufuncs, as `ufunc.reduce` calls
them.

NumPy walks through memory as it lies. Where the last axis is reduced, a call folds a row of it into
one number, which is the loop's result and its first operand; else a call folds the numbers along it
into as many. Sums and products begin with 0 and 1, extremes with the first number.
"""

from __future__ import annotations

import itertools
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
    """Whether a node is a reduction of floats that such a step computes."""
    if e.name not in _FOLDS or len(e.operands) != 1:
        return False
    (x,), (out,) = e.operands, e.results
    if not isinstance(x, Var) or 0 in x.shape or x.dtype.char not in "fd" or out.dtype != x.dtype:
        return False
    ufunc, first = _FOLDS[e.name]
    sizes = _sizes(e)
    known = sizes is not None and (first is not None or sizes[1] == 1)
    return known and loop_of_numpy(ufunc, x.dtype) is not None


def is_fold(step: Any) -> bool:
    """Whether a step is such a reduction, by NumPy's loops."""
    return isinstance(step, Node) and step.name in _STEPS


def _sizes(e: Node) -> tuple[int, ...] | None:
    """How many elements there are along kept axes, reduced ones, kept ones, reduced ones and kept
    ones, of which any may be 1; None where there are more axes by turns.
    """
    shape, axes = e.operands[0].shape, e.params[0]  # type: ignore[union-attr]
    runs = itertools.groupby([a for a, n in enumerate(shape) if n != 1], lambda a: a in axes)
    found = [(gone, math.prod([shape[a] for a in run])) for gone, run in runs]
    behind = found.pop()[1] if found and not found[-1][0] else 1
    last = found.pop()[1] if found else 1
    between = found.pop()[1] if found else 1
    first = found.pop()[1] if found else 1
    before = found.pop()[1] if found else 1
    if first == 1:  # nothing is reduced there
        before, between = before * between, 1
    return None if found else (before, first, between, last, behind)


def lower_fold(node: Node, fused: Fused) -> list[Call]:
    """The call."""
    calls, places = places_of(node.operands, fused)
    out, sizes = node.results[0], _sizes(node)
    ufunc, first = _STEPS[node.name]
    loop = loop_of_numpy(ufunc, out.dtype)
    assert sizes is not None
    assert loop is not None
    kernel = ("fold", *loop, "f32" if out.dtype.itemsize == 4 else "f64", first, sizes[-1] == 1)
    return [*calls, Call(kernel, (*places, Address(out), *sizes), 1, (out,))]


def print_fold(
    module: Module, name: str, loop: str, data: bool, element: str, first: float | None, rows: bool
) -> None:
    """Add the kernel of a reduction. Frame: numbers, results; how many are along kept axes, reduced
    ones, kept, reduced and kept ones. first: the number it begins with, if not with the first one.
    rows: nothing is behind the last axes that are reduced.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    held, real = data_of(f, loop, data), typed(element)
    x, out = f.pointers(frame, 0, 2)
    before, outer, between, n, behind = f.words(frame, 2, 5)
    table, length, strides = f.allocate(PTR, 3), f.allocate(I64, 1), f.allocate(I64, 3)
    skipped = 0 if first is not None else 1
    byte = f.constant(I64, real.bytes)
    for k in range(3):
        f.store(f.constant(I64, 0) if rows and k != 1 else byte, f.at(strides, k, "i64"))
    f.store(n - skipped if rows else behind, length)

    def call(given: Value, to: Value) -> None:
        for k, place in enumerate((to, given, to)):
            f.store(place, f.at(table, k, "i64"))
        f.call(loop, None, [table, length, strides, held])

    def begun(k: Value, _: list[Value]) -> list[Value]:
        to = f.at(out, k, element)
        if first is None:  # nothing is reduced but the last axes
            start = f.div(k, behind) * n * behind + f.rem(k, behind)
            f.store(f.load(real, f.at(x, start, element)), to)
        else:
            f.store(f.constant(real, first), to)
        return []

    def folded(o: Value, r: Value, b: Value) -> None:
        to = f.at(out, (o * between + b) * behind, element)
        given = f.at(x, ((o * outer + r) * between + b) * n * behind, element)

        def along(k: Value, _: list[Value]) -> list[Value]:
            call(f.at(given, k * behind, element), to)
            return []

        if rows:
            call(f.at(given, skipped, element), to)
        else:
            f.loop(skipped, n, 1, along, maybe_empty=True)

    def each(k: Value, _: list[Value]) -> list[Value]:
        o, rest = f.div(k, outer * between), f.rem(k, outer * between)
        folded(o, f.div(rest, between), f.rem(rest, between))
        return []

    f.loop(0, before * between * behind, 1, begun)
    f.loop(0, before * outer * between, 1, each)
    f.ret()
