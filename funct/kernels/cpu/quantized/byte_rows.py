"""A row of codes times 8-bit weights, which are read once, where they lie.

With few rows a product of matrices is bounded by the weights it reads: bytes are a quarter of what
float32 reads. They become 16-bit integers in registers, and `vpmaddwd` sums pairs exactly.
"""

from __future__ import annotations

from typing import Any

from funct.device import host
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.slab import each
from funct.kernels.cpu.quantized.codes import differences
from funct.kernels.llvm import Emitter, Value, typed

__all__ = ["centre", "lanes", "pitch", "sums"]

_TOGETHER = 4  # outputs that share what is loaded of x


def lanes() -> int:
    """Bytes that are taken at a time."""
    return supported(DOTS["s16"], host()) // 2


def pitch(depth: int) -> int:
    """Differences that `centre` writes for a row."""
    return depth - depth % lanes() + lanes()


def centre(f: Emitter, x: Value, y: Value, depth: Value, zero: Value, element: str) -> None:
    """Differences of a row of codes from the zero point; the last vector's stand behind, at its
    end, with 0 for those that were in the vector before.
    """
    rest = f.rem(depth, lanes())
    whole = depth - rest
    differences(f, x, y, whole, whole + lanes(), zero, element)
    tail = f.at(y, whole + lanes() - rest, "i16")
    differences(f, f.at(x, whole, element), tail, rest, rest, zero, element)


def sums(f: Emitter, x: Value, w: Value, depth: Value, start: Value, stop: Value, y: Value) -> None:
    """Sums of a centred row times the weights of the outputs from start to stop."""

    def outputs(count: int) -> Any:
        def some(o: Value) -> None:
            rows = [f.at(w, (o + k) * depth, "i8") for k in range(count)]
            for k, total in enumerate(_sums(f, x, rows, depth)):
                f.store(f.reduce(total, f.add), f.at(y, o - start + k, "i32"))

        return some

    middle = stop - f.rem(stop - start, _TOGETHER)
    each(f, start, middle, outputs(_TOGETHER), _TOGETHER)
    each(f, middle, stop, outputs(1))


def _sums(f: Emitter, x: Value, rows: list[Value], depth: Value) -> list[Value]:
    """Lane by lane, for each row of weights."""
    total, step = typed("i32", lanes() // 2), DOTS["s16"].step

    def products(of_x: Value, of_w: Value, held: list[Value]) -> list[Value]:
        left = f.bitcast(f.load(typed("i16", lanes()), f.at(x, of_x, "i16")), total)
        out = []
        for w, s in zip(rows, held):
            codes = f.convert(f.load(typed("i8", lanes()), f.at(w, of_w, "i8")), "i16")
            out.append(step(f, s, left, f.bitcast(codes, total)))
        return out

    whole = depth - f.rem(depth, lanes())
    zeros = [f.constant(total, 0)] * len(rows)
    held = f.loop(0, whole, lanes(), lambda i, held: products(i, i, held), zeros)
    # the last vector overlaps; what was summed before is 0 in the copy of x that stands behind
    return f.branch(whole < depth, lambda: products(whole, depth - lanes(), held), lambda: held)
