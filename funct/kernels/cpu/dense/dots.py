"""What one step of the micro-kernel multiplies, and with which instruction of the target.

A `Dot` walks its operands in words: a word is one number, or as many narrow ones as the instruction
sums at once (two bfloat16, two 16-bit integers, four bytes). The left word is the same in all
lanes.

    s32, s64: products and sums wrap around, as NumPy's.
    s16:      pairs of 16-bit integers, exact as long as the int32 sum is.
    u8s8:     four unsigned times four signed bytes, exact: VNNI, of AVX-512 or without it,
              never AVX2's `vpmaddubsw`, which saturates its 16-bit sums.
    bf16:     pairs summed as the processor does (subnormals count as 0); not the bits of float32.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from funct.device import Host
from funct.kernels.llvm import Emitter, Value, typed

__all__ = ["DOTS", "Dot", "supported"]

Needs = tuple[tuple[int, tuple[str, ...]], ...]
Step = Callable[[Emitter, Value, Value, Value], Value]


class Dot(Struct, frozen=True, eq=False):
    """word: element of both operands in memory. sum: element of the accumulators. step(emitter,
    sum, left, right): the new sum. needs: features that are enough for vectors of so many bytes, a
    width as often as there are ways to have it. beside: registers for products that are added by an
    instruction of their own.
    """

    name: str
    word: str
    sum: str
    per_word: int
    step: Step
    needs: Needs
    beside: int = 0


def supported(dot: Dot, target: Host) -> int:
    """The widest vector, in bytes, for which the target has the instruction; 0 for none."""
    widths = [w for w, needs in dot.needs if w <= target.vector_bytes and target.has(*needs)]
    return max(widths, default=0)


def _fused(f: Emitter, total: Value, a: Value, b: Value) -> Value:
    return f.fma(a, b, total)


def _product(f: Emitter, total: Value, a: Value, b: Value) -> Value:
    return total + a * b


def _declared(f: Emitter, name: str, total: Value, a: Value, b: Value) -> Value:
    """An instruction (sum, a, b) that LLVM knows by name."""
    found = f.call(name, total.type, [total, a, b], pure=True)
    assert found is not None
    return found


def _pairs(f: Emitter, total: Value, a: Value, b: Value) -> Value:
    narrow = typed("i16", 2 * a.type.lanes)
    bits = 32 * a.type.lanes
    name = {128: "sse2.pmadd.wd", 256: "avx2.pmadd.wd", 512: "avx512.pmaddw.d.512"}[bits]
    name = f"llvm.x86.{name}"
    both = [f.bitcast(v, narrow) for v in (a, b)]
    products = f.call(name, total.type, both, pure=True)
    assert products is not None
    return total + products


def _bytes(f: Emitter, total: Value, a: Value, b: Value) -> Value:
    quads = typed("i8", 4 * a.type.lanes)
    both = [f.bitcast(v, quads) for v in (a, b)]
    return _declared(f, f"llvm.x86.avx512.vpdpbusd.{32 * a.type.lanes}", total, *both)


def _bfloats(f: Emitter, total: Value, a: Value, b: Value) -> Value:
    lanes = a.type.lanes
    vector = f"<{2 * lanes} x bfloat>"  # to the emitter, a bfloat16 is an integer
    both = [f.emit(v.type, f"bitcast {v!r} to {vector}") for v in (a, b)]
    name = f"@llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    sums = total.type.text
    f.module.declare(name, f"declare {sums} {name}({sums}, {vector}, {vector})")
    given = ", ".join([repr(total), *[f"{vector} {v.name}" for v in both]])
    return f.emit(total.type, f"call {sums} {name}({given})")


_FMA: Needs = ((32, ("avx2", "fma")), (64, ("avx512f",)))
_INTEGER: Needs = ((16, ("sse4.1",)), (32, ("avx2",)), (64, ("avx512bw",)))

DOTS = {
    d.name: d
    for d in (
        Dot("f32", "f32", "f32", 1, _fused, _FMA),
        Dot("f64", "f64", "f64", 1, _fused, _FMA),
        Dot("s32", "i32", "i32", 1, _product, _INTEGER, beside=2),
        Dot("s64", "i64", "i64", 1, _product, _INTEGER, beside=2),
        Dot("s16", "i32", "i32", 2, _pairs, _INTEGER, beside=1),
        Dot(
            "u8s8", "i32", "i32", 4, _bytes,
            ((32, ("avxvnni",)), (32, ("avx512vnni", "avx512vl")), (64, ("avx512vnni",))),
        ),
        Dot(
            "bf16", "i32", "f32", 2, _bfloats,
            ((32, ("avx512bf16", "avx512vl")), (64, ("avx512bf16",))),
        ),
    )
}  # fmt: skip
