"""One element for each index: `take_along_axis` and its adjoint, as steps of loops.

An index outside of its axis touches no memory, as `gathers.py` says.
"""

from __future__ import annotations

import math
from typing import Any

from funct.compile.fusion.calls import Address, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import places_of
from funct.compile.loops.kernel import CONTROL_WORDS, WRONG
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.tables import placed
from funct.compile.steps.moves import zeros
from funct.graph import Node, Var
from funct.kernels.llvm import I64, PTR, Module, Value, typed

__all__ = ["is_along", "lower_along", "print_along"]


def is_along(step: Any) -> bool:
    """Whether a step is such an op, of elements that loops know."""
    held = arrays(step, ("take_along_axis", "put_along_axis"))
    if not held or any(v.dtype not in ELEMENTS for v in held):
        return False
    x, i, out = held
    added = step.name == "put_along_axis" and x.dtype.kind == "b"
    return i.dtype.kind in "iu" and x.dtype == out.dtype and not added


def lower_along(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what does not lie one after the other."""
    calls, places = places_of(node.operands, fused)
    out, takes, axis = node.results[0], node.name == "take_along_axis", node.params[0]
    x, i = node.operands
    assert isinstance(x, Var)
    assert isinstance(i, Var)
    to = Address(out)
    if not takes:
        calls.append(zeros(out))
    n = (x if takes else out).shape[axis]
    outer, inner = math.prod(i.shape[:axis]), math.prod(i.shape[axis + 1 :])
    words = (*places, to, outer, n, i.shape[axis] * inner, inner)
    kernel = ("along", takes, ELEMENTS[i.dtype], ELEMENTS[out.dtype], inner == 1)
    return [*calls, Call(kernel, words, 1, (out,), checks=True)]


def print_along(
    module: Module, name: str, takes: bool, index: str, element: str, last: bool
) -> None:
    """Add the kernel of an op. Frame: values, indices, result; then the length before the axis, of
    it, of the indices along and behind it, and behind it. last: nothing is behind.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    space, own = f.load(PTR, frame), f.at(frame, CONTROL_WORDS, "i64")
    values, indices, out = f.pointers(own, 0, 3)
    outer, n, count, inner = f.words(own, 3, 4)
    real = typed("u8" if element == "i1" else element)

    def each(o: Value, _: list[Value]) -> list[Value]:
        def one(c: Value, _: list[Value]) -> list[Value]:
            dense = o * count + c
            given = f.convert(f.load(typed(index), f.at(indices, dense, index)), "i64")
            at, outside = placed(f, given, n)

            def refuse() -> list[Value]:
                f.store(f.constant(I64, WRONG), space)
                return []

            def move() -> list[Value]:
                row = o * n + at
                sparse = row if last else row * inner + f.rem(c, inner)
                if takes:
                    x = f.load(real, f.at(values, sparse, real.element))
                    f.store(x, f.at(out, dense, real.element))
                else:
                    place = f.at(out, sparse, real.element)
                    g = f.load(real, f.at(values, dense, real.element))
                    f.store(f.load(real, place) + g, place)
                return []

            f.branch(outside, refuse, move, rare=True)
            return []

        f.loop(0, count, 1, one)
        return []

    f.loop(0, outer, 1, each)
    f.ret()
