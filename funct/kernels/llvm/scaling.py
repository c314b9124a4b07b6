"""Floats taken apart and put together: nearest integers, powers of two, exponent and mantissa."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funct.kernels.llvm.emitter import Emitter
    from funct.kernels.llvm.values import Type, Value

__all__ = [
    "BIAS", "LARGEST_EXPONENT", "MANTISSA", "above_floor", "apart", "apart_normal", "below_two",
    "bits_of", "exact_sum", "fast_sum", "has_avx512", "in_registers", "is_between", "is_normal",
    "nearest", "octave", "pow2", "quotient", "root_pair", "rough_inverse", "rounded", "scaled",
    "scalef", "split_constant",
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


def nearest(e: Emitter, x: Value, factor: float = 1, offset: int = 0) -> tuple[Value, Value]:
    """The integer nearest to x · factor as a float, and an integer whose low bits are it + offset.

    |x · factor| < 2^21 or 2^50. Adding 1.5 · 2^mantissa pushes the fraction out: no conversion,
    which AVX2 has not for float64.
    """
    magic = 1.5 * 2.0 ** MANTISSA[x.type.element] + offset
    pushed = x + magic if factor == 1 else e.fma(x, factor, magic)
    return pushed - magic, e.bitcast(pushed, x.type.integer)


def quotient(e: Emitter, x: Value, y: Value, x_low: Value, y_low: Value) -> tuple[Value, Value]:
    """(x + x_low) / (y + y_low) as a float near it and what that lacks."""
    inverse = 1 / y
    near = x * inverse
    return near, (e.fma(-near, y, x) + e.fma(-near, y_low, x_low)) * inverse


def root_pair(e: Emitter, x: Value) -> tuple[Value, Value]:
    """The root of x = 0 or a normal number as a float near it, and the first bits of what it lacks.

    AVX-512 takes Newton's steps from 14 bits: its square roots and divisions hold their unit for
    longer than all else of an arc takes.
    """
    if not has_avx512(e, x.type):
        root = e.sqrt(x)
        return root, e.fma(-root, root, x) / e.max(root * 2, 1e-30)
    inverse = e.select(e.eq(x, 0), 1, _rough_inverse_root(e, x))
    root, half = x * inverse, inverse * 0.5
    for _ in range({"f32": 1, "f64": 3}[x.type.element]):
        root = e.fma(e.fma(-root, root, x), half, root)
    return root, e.fma(-root, root, x) * half


def _rough_inverse_root(e: Emitter, x: Value) -> Value:
    """1 / sqrt(x), with an error of 2^-14 at most; `has_avx512`."""
    return in_registers(e, x, lambda part: _to_14_bits(e, "rsqrt14", part))


def rough_inverse(e: Emitter, x: Value) -> Value:
    """1 / x of normal numbers, with an error of 2^-14 at most; AVX-512."""
    return in_registers(e, x, lambda part: _to_14_bits(e, "rcp14", part))


def in_registers(e: Emitter, x: Value, run: Callable[[Value], Value]) -> Value:
    """run(x) of whole registers of 64 bytes, for any number of lanes."""
    lanes, whole = x.type.lanes, 512 // x.type.bits
    if lanes == whole:
        return run(x)
    if lanes < whole:
        wide = [k % lanes for k in range(whole)]
        found = run(e.splat(x, whole) if lanes == 1 else e.shuffle(x, None, wide))
        return e.extract(found, 0) if lanes == 1 else e.shuffle(found, None, range(lanes))
    half = -(-lanes // 2)  # of an odd number one lane is there twice
    parts = [[k % lanes for k in range(n, n + half)] for n in (0, half)]
    both = e.joined([in_registers(e, e.shuffle(x, None, part), run) for part in parts])
    return both if both.type.lanes == lanes else e.shuffle(both, None, range(lanes))


def _to_14_bits(e: Emitter, name: str, x: Value) -> Value:
    """An approximation by an instruction of AVX-512 on a whole register."""
    type = x.type
    full = f"@llvm.x86.avx512.{name}.{'ps' if type.element == 'f32' else 'pd'}.512"
    mask = f"i{type.lanes}"
    e.module.declare(full, f"declare {type.text} {full}({type.text}, {type.text}, {mask})")
    return e.emit(type, f"call {type.text} {full}({x!r}, {x!r}, {mask} -1)")


def fast_sum(x: Value, y: Value) -> tuple[Value, Value]:
    """x + y and what rounding it lost, for |x| >= |y| or x = 0 (T. Dekker, 1971)."""
    total = x + y
    return total, (x - total) + y


def exact_sum(x: Value, y: Value) -> tuple[Value, Value]:
    """x + y and what rounding it lost (D. Knuth, "The art of computer programming" 4.2.2)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def pow2(e: Emitter, bits: Value, type: Type) -> Value:
    """2^k, a normal number; the low bits of the integer are k + BIAS (`nearest`)."""
    return e.bitcast(bits << MANTISSA[type.element], type)


def scaled(e: Emitter, p: Value, n: Value, bits: Value) -> Value:
    """p 2^n for an integer n in a float, rounded once if p 2^(n/2) is normal.

    n runs from twice the least to twice the largest exponent. bits: as an integer, + 2 BIAS.
    """
    if has_avx512(e, p.type):
        return scalef(e, p, n)
    mantissa = MANTISSA[p.type.element]  # half of the exponent, and the rest, in their place
    whole = bits << mantissa
    half = (bits << (mantissa - 1)) & -(1 << mantissa)
    return p * e.bitcast(half, p.type) * e.bitcast(whole - half, p.type)


def octave(e: Emitter, x: Value, least: float = 0.5**0.5) -> tuple[Value, Value, Value]:
    """(m, k, an integer) with x = m 2^k, least <= m < 2 least, for normal numbers x > 0.

    k is a float; the integer is k in the place of the exponent.
    """
    element, type = x.type.element, x.type
    mantissa, first = MANTISSA[element], bits_of(least, element)
    exponent = -(1 << mantissa)
    bits = e.bitcast(x, type.integer)
    if element == "f32" or e.module.target.has("avx512dq"):
        step = (bits - first) & exponent
        return e.bitcast(bits - step, type), e.convert(step >> mantissa, element), step
    # AVX2 has no such shift and conversion in float64: an integer below 2^mantissa under the
    # exponent of 2^mantissa is a float of that value above it
    moved = e.bitcast(x, type.unsigned) + ((BIAS[element] << mantissa) - first)
    m = e.bitcast((moved & ((1 << mantissa) - 1)) + first, type)
    one = 2.0**mantissa
    k = e.bitcast((moved >> mantissa) | bits_of(one, element), type) - (one + BIAS[element])
    shifted = e.bitcast(moved, type.integer) & exponent
    return m, k, shifted - (BIAS[element] << mantissa)


def below_two(e: Emitter, x: Value) -> tuple[Value, Value]:
    """(m, k) with x = m 2^k, 1 <= m < 2, in two instructions of AVX-512; k is a float.

    m is 1 and k infinite of 0 and inf; both are right of denormal numbers; m is NaN below 0.
    """
    from_one, of_no_negative = 0, 12
    m = in_registers(e, x, lambda x: _avx512(e, "getmant", [x, from_one | of_no_negative, x]))
    return m, in_registers(e, x, lambda x: _avx512(e, "getexp", [x, x]))


def apart_normal(e: Emitter, x: Value) -> tuple[Value, Value]:
    """`apart` for what is no denormal number."""
    m, k, _ = octave(e, x)
    return m, k


def is_normal(e: Emitter, x: Value) -> Value:
    """The mask of positive normal numbers."""
    if has_avx512(e, x.type) and e.module.target.has("avx512dq"):
        return ~_special(e, x)
    return is_between(e, x, 2.0 ** (1 - BIAS[x.type.element]), float("inf"))


def _special(e: Emitter, x: Value) -> Value:
    """The mask of all others, in one instruction of AVX-512."""

    def of_register(x: Value) -> Value:
        type = x.type
        full = f"@llvm.x86.avx512.fpclass.{'ps' if type.element == 'f32' else 'pd'}.512"
        e.module.declare(full, f"declare {type.mask.text} {full}({type.text}, i32)")
        return e.emit(type.mask, f"call {type.mask.text} {full}({x!r}, i32 255)")

    return in_registers(e, x, of_register)


def is_between(e: Emitter, x: Value, least: float, below: float) -> Value:
    """The mask least <= x < below, for positive bounds."""
    if e.module.target.has("avx512f"):  # masks are cheap
        return (x >= least) & (x < below)
    element = x.type.element
    bits = e.bitcast(x, x.type.integer)
    # negative where the bits are less, or more; the sign bits alone are looked at
    return ((bits - bits_of(least, element)) | (bits_of(below, element) - 1 - bits)) >= 0


def apart(e: Emitter, x: Value) -> tuple[Value, Value]:
    """(m, k) with x = m 2^k and sqrt(1/2) <= m < sqrt(2), for finite x > 0; k is a float."""
    shift = MANTISSA[x.type.element] + 1
    denormal = x < 2.0 ** (1 - BIAS[x.type.element])
    m, k = apart_normal(e, e.select(denormal, x * 2.0**shift, x))
    return m, e.select(denormal, k - shift, k)


def has_avx512(e: Emitter, type: Type) -> bool:
    """Whether these vectors of floats are whole registers of AVX-512, 1, 2, 4 or so many."""
    bits = type.bits * type.lanes
    return bits >= 512 and not bits & (bits - 1) and e.module.target.has("avx512f")


def scalef(e: Emitter, p: Value, n: Value) -> Value:
    """p 2^floor(n) in one instruction of AVX-512, rounded once; p = 1, n = -inf give 0."""
    return _avx512(e, "scalef", [p, n, p])


def above_floor(e: Emitter, x: Value) -> Value:
    """x - floor(x), at most 1, in one instruction of AVX-512; 0 of infinities."""
    downwards, quiet = 1, 8
    return _avx512(e, "reduce", [x, downwards | quiet, x])


def _avx512(e: Emitter, name: str, operands: Sequence[Value | int]) -> Value:
    """An instruction on whole registers, in all lanes, rounding as usual."""
    type = next(x.type for x in operands if not isinstance(x, int))
    if type.bits * type.lanes > 512:
        half = type.lanes // 2
        halves = [
            [x if isinstance(x, int) else e.shuffle(x, None, part) for x in operands]
            for part in (range(half), range(half, type.lanes))
        ]
        return e.joined([_avx512(e, name, part) for part in halves])
    full = f"@llvm.x86.avx512.mask.{name}.{'ps' if type.element == 'f32' else 'pd'}.512"
    given = [f"i32 {x}" if isinstance(x, int) else repr(x) for x in operands]
    kinds = ["i32" if isinstance(x, int) else type.text for x in operands]
    mask = f"i{type.lanes}"
    e.module.declare(full, f"declare {type.text} {full}({', '.join(kinds)}, {mask}, i32)")
    return e.emit(type, f"call {type.text} {full}({', '.join(given)}, {mask} -1, i32 4)")
