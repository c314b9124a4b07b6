"""Floats taken apart and put together: nearest integers, powers of two, exponent and mantissa."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Type, Value

__all__ = [
    "BIAS", "LARGEST_EXPONENT", "MANTISSA", "apart", "bits_of", "nearest", "pow2", "quotient",
    "rounded", "scaled", "split_constant",
]  # fmt: skip

MANTISSA = {"f32": 23, "f64": 52}
BIAS = {"f32": 127, "f64": 1023}
LARGEST_EXPONENT = {"f32": 128, "f64": 1024}


def rounded(number: float | Fraction, element: str) -> float:
    """The number as the element holds it."""
    number = float(number)
    return number if element == "f64" else float(struct.unpack("<f", struct.pack("<f", number))[0])


def split_constant(digits: str | Fraction, element: str, parts: int = 2) -> list[float]:
    """A number as the unevaluated sum of so many floats, each the nearest to what is left."""
    left, found = Fraction(digits), []
    for _ in range(parts):
        found.append(rounded(left, element))
        left -= Fraction(found[-1])
    return found


def bits_of(number: float, element: str) -> int:
    """The bits of a float as an integer."""
    if element == "f64":
        return int(struct.unpack("<q", struct.pack("<d", number))[0])
    return int(struct.unpack("<i", struct.pack("<f", number))[0])


def nearest(e: Emitter, x: Value) -> tuple[Value, Value]:
    """The nearest integer as a float, and an integer whose low bits are it; |x| < 2^22 or 2^51.

    Adding 1.5 · 2^mantissa pushes the fraction out: no conversion, which AVX2 has not for float64.
    """
    magic = 1.5 * 2.0 ** MANTISSA[x.type.element]
    pushed = x + magic
    return pushed - magic, e.bitcast(pushed, x.type.integer)


def quotient(e: Emitter, x: Value, y: Value, x_low: Value, y_low: Value) -> tuple[Value, Value]:
    """(x + x_low) / (y + y_low) as a float near it and what that lacks."""
    inverse = 1 / y
    near = x * inverse
    return near, (e.fma(-near, y, x) + e.fma(-near, y_low, x_low)) * inverse


def pow2(e: Emitter, bits: Value, type: Type) -> Value:
    """2^k of the low bits of an integer (`nearest`); 2^k is a normal number."""
    element = type.element
    return e.bitcast((bits + BIAS[element]) << MANTISSA[element], type)


def scaled(e: Emitter, p: Value, n: Value) -> Value:
    """p 2^n for an integer n in a float, rounded once if p 2^(n/2) is normal.

    n runs from twice the least to twice the largest exponent.
    """
    if _has_avx512(e, p.type):
        return _avx512(e, "scalef", p, n)
    half, low = nearest(e, n * 0.5)
    _, rest = nearest(e, n - half)
    return p * pow2(e, low, p.type) * pow2(e, rest, p.type)


def apart(e: Emitter, x: Value) -> tuple[Value, Value]:
    """(m, k) with x = m 2^k and sqrt(1/2) <= m < sqrt(2), for finite x > 0; k is a float."""
    element, type = x.type.element, x.type
    mantissa, least = MANTISSA[element], bits_of(0.5**0.5, element)
    up = 2.0 ** (mantissa + 1)
    denormal = x < 2.0 ** (1 - BIAS[element])
    bits = e.bitcast(e.select(denormal, x * up, x), type.unsigned)
    moved = bits + ((BIAS[element] << mantissa) - least)
    m = e.bitcast((moved & ((1 << mantissa) - 1)) + least, type)
    # an integer below 2^mantissa under the exponent of 2^mantissa is a float of that value above it
    one = 2.0**mantissa
    k = e.bitcast((moved >> mantissa) | bits_of(one, element), type) - (one + BIAS[element])
    return m, e.select(denormal, k - (mantissa + 1), k)


def _has_avx512(e: Emitter, type: Type) -> bool:
    return type.bits * type.lanes == 512 and e.module.target.has("avx512f")


def _avx512(e: Emitter, name: str, p: Value, n: Value) -> Value:
    """An instruction of AVX-512 on whole registers."""
    type = p.type
    full = f"@llvm.x86.avx512.mask.{name}.{'ps' if type.element == 'f32' else 'pd'}.512"
    mask = f"i{type.lanes}"
    e.module.declare(
        full, f"declare {type.text} {full}({type.text}, {type.text}, {type.text}, {mask}, i32)"
    )
    return e.emit(type, f"call {type.text} {full}({p!r}, {n!r}, {p!r}, {mask} -1, i32 4)")
