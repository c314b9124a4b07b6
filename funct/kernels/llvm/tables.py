"""Tables of 16 or 32 numbers, of which each lane takes one: AVX-512 holds them in registers.

`curve` puts a polynomial for each of 16 cells together from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm.scaling import in_registers, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Type, Value

__all__ = ["curve", "has_tables", "looked_up", "permuted"]


def has_tables(e: Emitter) -> bool:
    """Whether the target looks numbers up in registers; elsewhere they are better computed."""
    return e.module.target.has("avx512f", "avx512dq")


def looked_up(e: Emitter, type: Type, numbers: Sequence[float], index: Value) -> Value:
    """numbers[index & 15] for each lane of an index as wide as the type, of float32 also 32 numbers
    and index & 31; `has_tables`.
    """
    count = len(numbers)
    assert count in {"f32": (16, 32), "f64": (16,)}[type.element], "one register, or two"
    if type.lanes == 1:
        place = e.address(e.module.table(type, numbers))
        return e.load(type, e.at(place, e.convert(index & (count - 1), "i64"), type.element))
    return in_registers(e, index, lambda k: _permuted(e, type.of(k.type.lanes), numbers, k))


def _permuted(e: Emitter, type: Type, numbers: Sequence[float], index: Value) -> Value:
    """The same for whole registers."""
    whole = type.lanes
    first, *second = [e.vector(type, numbers[k : k + whole]) for k in range(0, len(numbers), whole)]
    return permuted(e, first, index, *second)


def permuted(e: Emitter, first: Value, index: Value, *second: Value) -> Value:
    """The lanes of one register, or of two, whose numbers are the lowest bits of an index."""
    type = first.type
    if second:
        name = {"f32": "vpermi2var.ps", "f64": "vpermi2var.pd"}[type.element]
    else:
        name = "permvar.sf"
    given = [first, index, *second]
    full = f"@llvm.x86.avx512.{name}.512"
    kinds = ", ".join([v.type.text for v in given])
    e.module.declare(full, f"declare {type.text} {full}({kinds})")
    return e.emit(type, f"call {type.text} {full}({', '.join([repr(v) for v in given])})")


def curve(e: Emitter, a: Value, step: float, columns: Sequence[Sequence[float]]) -> Value:
    """f(a) for a >= 0 up to the end of the 16th cell of width `step`; `has_tables`.

    columns: the numbers c, f(c) and the coefficients of the slope P, for f(c + t) = f(c) + t P(t);
    c is 0 in the first cell, and there f(t) = t + t P(t).
    """
    _, index = nearest(e, a, 1 / step)
    centre, value, *slope = (looked_up(e, a.type, c, index) for c in columns)
    t = a - centre
    total = slope.pop()
    for c in reversed(slope):
        total = e.fma(total, t, c)
    return e.fma(total, t, e.select(e.eq(value, 0), t, value))
