"""Whether numbers are finite inside of a program: if not, it is not right, and eager execution does
all again.

Kernels multiply zeros around an image by all factors: `funct/kernels/windows/inside.py` says which
elements of the result tell whether those were finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Call
from funct.compile.loops.kernel import CONTROL_WORDS, WRONG
from funct.compile.loops.scalars import ELEMENTS
from funct.device import host
from funct.graph import Var
from funct.kernels.llvm import I64, PTR, Module, Value, typed
from funct.kernels.windows.views import Index

__all__ = ["all_finite", "print_finite", "some_finite"]


def some_finite(v: Var, index: Index) -> Call:
    """The call that looks at these elements of a dense array."""
    sizes: Any = v.shape
    every = (range(n)[i] for n, i in zip(sizes, index, strict=True))
    axes = [[i] if isinstance(i, int) else list(i) for i in every]
    places = np.ravel_multi_index(np.ix_(*axes), sizes).reshape(-1)
    table = Var("telling", places.shape, places.dtype)
    kernel = "finite", ELEMENTS[v.dtype], True
    words = Address(v), len(places), Address(table)
    return Call(kernel, words, 1, (), checks=True, doubts=True, held={table: places})


def all_finite(place: Address, count: int, dtype: np.dtype[Any]) -> Call:
    """The call that looks at so many elements that lie one after the other."""
    kernel = "finite", ELEMENTS[dtype], False
    return Call(kernel, (place, count), 1, (), checks=True, doubts=True)


def print_finite(module: Module, name: str, element: str, some: bool) -> None:
    """Add what says that the program is not right if a number is infinite or none. Frame: where the
    numbers are, and how many; if they are some of an array, where their places in it are.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    space, own = f.load(PTR, frame), f.at(frame, CONTROL_WORDS, "i64")
    place, count = f.load(PTR, own), f.word(own, 1)
    wide = typed(element, host().vector_bytes // typed(element).bytes)
    table = f.pointer(own, 2) if some else None

    def added(t: Value, held: list[Value]) -> list[Value]:
        if table is None:
            x = f.load(wide, f.at(place, t, element), f.first_lanes(wide.lanes, count - t))
        else:
            x = f.load(typed(element), f.at(place, f.word(table, t), element))
        return [f.fma(x, 0.0, held[0])]  # infinity times zero is no number

    start = f.constant(wide if table is None else typed(element), 0)
    (total,) = f.loop(0, count, wide.lanes if table is None else 1, added, [start])
    f.when(f.any(f.isnan(total)), lambda: f.store(f.constant(I64, WRONG), space))
    f.ret()
