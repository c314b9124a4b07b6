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
_PARTS = 4  # vectors of steps that are codes of one vector
_QUARTER = 4  # lanes that narrowing keeps together
_WIDE = 16  # lanes of the vectors of AVX-512
_NEAREST = 4  # rounding as the processor is set


def float_field(f: Emitter, job: Record, name: str) -> Value:
    """A field that holds the bits of a float32."""
    return f.bitcast(f.convert(getattr(job, name), "i32"), typed("f32"))


def narrows(f: Emitter) -> bool:
    """Whether vectors are those that `Narrowing` takes."""
    target = f.module.target
    needs = {32: "avx2", 64: "avx512bw"}.get(target.vector_bytes)
    return needs is not None and target.has(needs)


def to_codes(f: Emitter, job: Record, element: str) -> Callable[[Value], Value]:
    """Prints codes of numbers of steps."""
    low, high = (float_field(f, job, name) for name in ("low", "high"))
    zero = f.convert(job.zero_point, "i32")
    of_vector = f.module.target.vector_bytes // 4
    narrowing = Narrowing(f, job, element, of_vector) if narrows(f) else None

    def codes(steps: Value) -> Value:
        lanes = steps.type.lanes
        if narrowing is not None and lanes == of_vector * _PARTS:
            parts = [f.piece(steps, k * of_vector, of_vector) for k in range(_PARTS)]
            return narrowing.codes(parts, [divmod(k, of_vector) for k in range(lanes)])
        kept = f.min(f.max(steps, f.splat(low, lanes)), f.splat(high, lanes))
        _, bits = nearest(f, kept)  # a code is their lowest byte
        return f.convert(bits + f.splat(zero, lanes), element)

    return codes


class Narrowing:
    """Prints codes of four vectors at a time: they saturate as they are narrowed.

    lanes: of a vector of steps. bounded: whether all steps are known to fit into int32.
    """

    def __init__(
        self, f: Emitter, job: Record, element: str, lanes: int, *, bounded: bool = False
    ) -> None:
        self.f, self.element, self.lanes, self.bounded = f, element, lanes, bounded
        high, zero = float_field(f, job, "high"), f.convert(job.zero_point, "i32")
        bounds = [f.convert(v, "i32") + zero for v in (float_field(f, job, "low"), high)]
        self.low, self.high = (f.splat(f.convert(b, element), lanes * _PARTS) for b in bounds)
        self.zero, self.most = f.splat(f.convert(zero, "i16"), 2 * lanes), f.splat(high, lanes)

    def codes(self, steps: Sequence[Value], order: Sequence[tuple[int, int]]) -> Value:
        """Those of so many of the steps: (vector, lane)."""
        f, first, second = self.f, *[self._short(*steps[k : k + 2]) for k in (0, 2)]
        name = "packuswb" if self.element == "u8" else "packsswb"
        codes = self._packed(name, typed(self.element, self.lanes * _PARTS), first, second)
        codes = f.min(f.max(codes, self.low), self.high)
        # each quarter has some lanes of all vectors
        size = _QUARTER * _PARTS
        places = [k // _QUARTER * size + part * _QUARTER + k % _QUARTER for part, k in order]
        return f.shuffle(codes, None, places)

    def _short(self, x: Value, y: Value) -> Value:
        """Codes, not yet saturated, quarter by quarter."""
        parts = [self._whole(v) for v in (x, y)]
        both = self._packed("packssdw", typed("i16", 2 * self.lanes), *parts)
        return self.f.intrinsic("sadd.sat", both, self.zero)

    def _whole(self, steps: Value) -> Value:
        """NaN and what is less than all integers are the least one."""
        f, whole = self.f, typed("i32", self.lanes)
        steps = steps if self.bounded else f.min(self.most, steps)
        name, given = "avx.cvt.ps2dq.256", [steps]
        if self.lanes == _WIDE:
            name = "avx512.mask.cvtps2dq.512"
            everywhere, as_ever = f.constant(typed("i16"), -1), f.constant(typed("i32"), _NEAREST)
            given += [f.constant(whole, 0), everywhere, as_ever]
        return self._called(name, whole, *given)

    def _packed(self, name: str, type: Type, *operands: Value) -> Value:
        name = f"avx512.{name}.512" if self.lanes == _WIDE else f"avx2.{name}"
        return self._called(name, type, *operands)

    def _called(self, name: str, type: Type, *operands: Value) -> Value:
        found = self.f.call(f"llvm.x86.{name}", type, operands, pure=True)
        assert found is not None
        return found
