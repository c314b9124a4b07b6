"""From numbers of steps to codes: rounded to even, saturated; NaN is the lowest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funct.kernels.llvm import Emitter, Type, Value, typed
from funct.kernels.llvm.scaling import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funct.kernels.cpu.record import Record

__all__ = ["TO_CODES", "Narrowing", "float_field", "narrows", "to_codes"]

TO_CODES = ("bias", "multiplier", "zero_point", "low", "high")
_LANES = 8
_PARTS = 4  # vectors of steps that are codes of one vector


def float_field(f: Emitter, job: Record, name: str) -> Value:
    """A field that holds the bits of a float32."""
    return f.bitcast(f.convert(getattr(job, name), "i32"), typed("f32"))


def narrows(f: Emitter) -> bool:
    """Whether vectors are those that `Narrowing` takes."""
    return f.module.target.vector_bytes == _LANES * _PARTS and f.module.target.has("avx2")


def to_codes(f: Emitter, job: Record, element: str) -> Callable[[Value], Value]:
    """Prints codes of numbers of steps."""
    low, high = (float_field(f, job, name) for name in ("low", "high"))
    zero = f.convert(job.zero_point, "i32")
    narrowing = Narrowing(f, job, element) if narrows(f) else None

    def codes(steps: Value) -> Value:
        lanes = steps.type.lanes
        if narrowing is not None and lanes == _LANES * _PARTS:
            parts = [f.piece(steps, k * _LANES, _LANES) for k in range(_PARTS)]
            return narrowing.codes(parts, [(k // _LANES, k % _LANES) for k in range(lanes)])
        kept = f.min(f.max(steps, f.splat(low, lanes)), f.splat(high, lanes))
        _, bits = nearest(f, kept)  # a code is their lowest byte
        return f.convert(bits + f.splat(zero, lanes), element)

    return codes


class Narrowing:
    """Prints codes of four vectors of AVX2 at a time: they saturate as they are narrowed.

    bounded: whether all steps are known to fit into int32.
    """

    def __init__(self, f: Emitter, job: Record, element: str, *, bounded: bool = False) -> None:
        self.f, self.element, self.bounded = f, element, bounded
        high, zero = float_field(f, job, "high"), f.convert(job.zero_point, "i32")
        bounds = [f.convert(v, "i32") + zero for v in (float_field(f, job, "low"), high)]
        lanes = _LANES * _PARTS
        self.low, self.high = (f.splat(f.convert(b, element), lanes) for b in bounds)
        self.zero, self.most = f.splat(f.convert(zero, "i16"), 2 * _LANES), f.splat(high, _LANES)

    def codes(self, steps: Sequence[Value], order: Sequence[tuple[int, int]]) -> Value:
        """Those of so many of the steps: (vector, lane)."""
        f, first, second = self.f, *[self._short(*steps[k : k + 2]) for k in (0, 2)]
        name = "avx2.packuswb" if self.element == "u8" else "avx2.packsswb"
        codes = self._packed(name, typed(self.element, _LANES * _PARTS), first, second)
        codes = f.min(f.max(codes, self.low), self.high)
        # each half has half of the lanes of all vectors
        half = _LANES // 2
        places = [(k // half) * half * _PARTS + part * half + k % half for part, k in order]
        return f.shuffle(codes, None, places)

    def _short(self, x: Value, y: Value) -> Value:
        """Codes, not yet saturated, half by half."""
        parts = [self._whole(v) for v in (x, y)]
        both = self._packed("avx2.packssdw", typed("i16", 2 * _LANES), *parts)
        return self.f.intrinsic("sadd.sat", both, self.zero)

    def _whole(self, steps: Value) -> Value:
        """NaN and what is less than all integers are the least one."""
        steps = steps if self.bounded else self.f.min(self.most, steps)
        return self._packed("avx.cvt.ps2dq.256", typed("i32", _LANES), steps)

    def _packed(self, name: str, type: Type, *operands: Value) -> Value:
        found = self.f.call(f"llvm.x86.{name}", type, operands, pure=True)
        assert found is not None
        return found
