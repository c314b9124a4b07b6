"""What kernels hold and say: types of values, and vectors beside NumPy's own functions.

The functions are known to `printer.py`; where a kernel is run as Python they act on arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

__all__ = [
    "ELEMENTS", "HALVES", "INT", "TRUTH", "Pointer", "Shared", "Type", "Value", "ascend",
    "asked", "backwards", "bits", "chosen", "detached", "element", "fused", "gathered", "in_step",
    "lanes", "loaded", "many", "packed", "picked", "room", "spread", "stepped", "stored", "summed",
    "written",
]  # fmt: skip


class Type(NamedTuple):
    """kind: i, u, f, h for bfloat16, or b for truth. lanes: 0 for a scalar. Of 16 bits, f and h are
    for memory: a kernel widens what it loads.
    """

    kind: str
    bits: int
    lanes: int = 0

    @property
    def scalar(self) -> str:
        """LLVM's name of an element."""
        if self.kind != "f":
            return f"i{self.bits}"
        return {16: "half", 32: "float", 64: "double"}[self.bits]

    @property
    def text(self) -> str:
        """LLVM's name."""
        return f"<{self.lanes} x {self.scalar}>" if self.lanes else self.scalar

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype."""
        if self.kind == "h":
            return _BRAIN
        return np.dtype(bool if self.kind == "b" else f"{self.kind}{self.bits // 8}")


class Value(NamedTuple):
    """What LLVM knows by a name or a constant."""

    text: str
    type: Type


class Pointer(NamedTuple):
    """The first element of an array."""

    text: str
    type: Type


class Shared:
    """A function that kernels call, whose code is its own: see `shared.py`."""

    def __init__(
        self, fn: Callable[..., Any], arrays: tuple[str, ...], writes: tuple[str, ...]
    ) -> None:
        self.fn, self.arrays, self.writes = fn, arrays, writes
        self.parameters = fn.__code__.co_varnames[: fn.__code__.co_argcount]

    def __call__(self, *args: Any) -> Any:
        return self.fn(*args)

    def name(self, dtype: np.dtype[Any]) -> str:
        """Of the code for arrays of a dtype."""
        return f"funct_{self.fn.__name__.strip('_')}_{dtype.name}"


ELEMENTS = {
    np.dtype(f"{kind}{size}"): Type(kind, size * 8)
    for kind, sizes in (("i", (1, 2, 4, 8)), ("u", (1, 2, 4, 8)), ("f", (4, 8)))
    for size in sizes
}
_BRAIN = np.dtype(ml_dtypes.bfloat16)
HALVES = {np.dtype(np.float16): Type("f", 16), _BRAIN: Type("h", 16)}
INT = Type("i", 64)
TRUTH = Type("b", 1)


def element(dtype: np.dtype[Any]) -> Type:
    """The type of an array's elements. Raises KeyError for a dtype that kernels do not know."""
    return HALVES[dtype] if dtype in HALVES else ELEMENTS[dtype]


def loaded(x: Any, at: Any, count: int) -> Any:
    """count elements of x from at on, as a vector."""
    return x[at : at + count].copy()


def stepped(x: Any, at: Any, step: int, count: int) -> Any:
    """count elements of x from at on, each a static step behind the other; all `step * count`
    elements are read.
    """
    return x[at : at + step * count].copy()[::step]


def backwards(v: Any) -> Any:
    """The elements of a vector, the last one first."""
    return v[::-1]


def asked(x: Any, at: Any, count: int) -> None:
    """Ask the memory for count elements of x from at on, which may lie outside."""


def stored(x: Any, at: Any, v: Any) -> None:
    """Write a vector into x from at on."""
    x[at : at + len(v)] = v


def fused(a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once where the processor does that in one instruction."""
    return a * b + c


def spread(v: Any, count: int) -> Any:
    """A vector of equal elements."""
    return np.full(count, v, getattr(v, "dtype", np.int64))


def gathered(x: Any, at: Any, start: Any = 0) -> Any:
    """The elements of x at a vector of indices, counted from start on."""
    return x[start + at]


def packed(v: Any, keep: Any) -> Any:
    """A vector that begins with the elements where `keep` holds, of 4 or 8 bytes, 64 bytes in all.

    What is behind these is not said. For processors with AVX-512.
    """
    return np.concatenate([v[keep], v[~keep]])


def chosen(a: Any, b: Any, at: Any) -> Any:
    """The elements of two vectors, one behind the other, at a vector of indices as wide as they.

    All are of 64 bytes, in elements of 4 or 8. For processors with AVX-512.
    """
    return np.concatenate([a, b])[at]


def picked(a: Any, b: Any, at: tuple[int, ...]) -> Any:
    """The elements of two vectors, one behind the other, at static places."""
    return np.concatenate([a, b])[list(at)]


def room(dtype: Any, count: int) -> Any:
    """An array of a static number of elements that lasts as long as the call; they are anything."""
    return np.zeros(count, dtype)


def many(keep: Any) -> Any:
    """How often a vector of truth holds."""
    return np.count_nonzero(keep)


def bits(keep: Any) -> Any:
    """A vector of up to 8 truths as one number, the first as its lowest bit."""
    return np.packbits(keep, bitorder="little")[0].astype(np.int64)


def in_step(v: Any) -> Any:
    """v, of which every lane is there before anything is made of one.

    A long vector is several registers, and LLVM finishes what is made of one before it begins with
    the next, as that needs fewest. A processor looks some two hundred instructions ahead and waits
    for results meanwhile; here and there in a long chain this lets it find what waits for none.
    """
    return v


def detached(v: Any) -> Any:
    """v, of which LLVM no longer knows that it was loaded.

    What is chosen between that and another vector, and stored where it came from, LLVM would write
    under a mask: some processors take twenty times as long for that as for a store.
    """
    return v


def lanes(count: int, dtype: Any) -> Any:
    """The vector 0, 1, 2, ..."""
    return np.arange(count, dtype=dtype)


def written(ufunc: np.ufunc, x: Any, at: Any, y: Any, to: Any, count: Any, *rest: float) -> None:
    """Write NumPy's ufunc of count elements of x from at on into y from to on; x may be y.

    rest: numbers that are its other operands.
    """
    if count:
        y[to : to + count] = ufunc(x[at : at + count], *rest)


def summed(x: Any, at: Any, count: Any) -> Any:
    """The sum of count > 0 elements of x from at on, in NumPy's order."""
    return np.add.reduce(x[at : at + count])


def ascend(x: Any, at: Any, count: Any) -> None:
    """Sort count elements of x from at on, as NumPy's unstable sort does."""
    x[at : at + count].sort()
