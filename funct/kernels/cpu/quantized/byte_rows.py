"""A row of codes times 8-bit weights, which are read once, where they lie.

With few rows a product of matrices is bounded by the weights it reads: bytes are a quarter of what
float32 reads. Pairs (`words.py`) widen them in registers. Quads take them as they are, and since
nothing is known of them before, sum them up beside.
"""

from __future__ import annotations

from collections.abc import Callable

from funct.device import host
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.quantized.codes import in_words
from funct.kernels.cpu.quantized.words import Words
from funct.kernels.llvm import Emitter, Value, each, typed

__all__ = ["lanes", "pitch", "row", "sums"]

_TOGETHER = 4  # outputs that share what is loaded of x


def lanes(words: Words) -> int:
    """Bytes that are taken at a time."""
    return supported(DOTS[words.dot], host()) // 4 * words.count


def pitch(depth: int, words: Words) -> int:
    """Codes that `row` writes."""
    return depth - depth % lanes(words) + lanes(words)


def row(
    f: Emitter, words: Words, x: Value, y: Value, depth: Value, zero: Value | None, element: str
) -> None:
    """A row of codes as they stand in words; the last vector's stand behind, at its end, with 0 for
    those that were in the vector before.
    """
    n = lanes(words)
    rest = f.rem(depth, n)
    whole = depth - rest
    in_words(f, x, y, whole, whole + n, zero, element)
    tail = f.at(y, whole + n - rest, words.element)
    in_words(f, f.at(x, whole, element), tail, rest, rest, zero, element)


def sums(
    f: Emitter, words: Words, x: Value, zero: Value, w: Value, depth: Value,
    outputs: tuple[Value, Value], y: Value,
) -> None:  # fmt: skip
    """Sums of the differences of a row, as it was written, times the weights of these outputs."""
    start, stop = outputs

    def some(count: int) -> Callable[[Value], None]:
        def these(o: Value) -> None:
            rows = [f.at(w, (o + k) * depth, "i8") for k in range(count)]
            for k, total in enumerate(_sums(f, words, x, zero, rows, depth)):
                f.store(f.reduce(total, f.add), f.at(y, o - start + k, "i32"))

        return these

    middle = stop - f.rem(stop - start, _TOGETHER)
    each(f, start, middle, some(_TOGETHER), _TOGETHER)
    each(f, middle, stop, some(1))


def _sums(
    f: Emitter, words: Words, x: Value, zero: Value, rows: list[Value], depth: Value
) -> list[Value]:
    """Lane by lane, for each row of weights."""
    n, step = lanes(words), DOTS[words.dot].step
    total, codes, bytes_ = typed("i32", n // words.count), typed(words.element, n), typed("i8", n)

    def products(of_x: Value, of_w: Value, zeros: Value, held: list[Value]) -> list[Value]:
        left = [f.load(codes, f.at(x, of_x, words.element))]
        left += [] if words.centred else [zeros]
        out = []
        for k, w in enumerate(rows):
            f.prefetch(f.at(f.at(w, of_w, "i8"), depth * len(rows), "i8"))  # of the next ones
            right = f.load(bytes_, f.at(w, of_w, "i8"))
            right = f.bitcast(f.convert(right, "i16") if words.centred else right, total)
            for n, v in enumerate(left):
                out.append(step(f, held[k * len(left) + n], f.bitcast(v, total), right))
        return out

    whole = depth - f.rem(depth, n)
    count = len(rows) if words.centred else 2 * len(rows)
    zeros = f.splat(zero, n)
    begin = [f.constant(total, 0)] * count
    held = f.loop(0, whole, n, lambda i, held: products(i, i, zeros, held), begin)

    def last() -> list[Value]:
        """The vector overlaps; what was summed before is 0 in the copy of x that stands behind."""
        new = f.lanes(typed("i32", n)) >= f.splat(f.convert(n - (depth - whole), "i32"), n)
        return products(whole, depth - n, f.select(new, zeros, f.constant(zeros.type, 0)), held)

    held = f.branch(whole < depth, last, lambda: held)
    return held if words.centred else [a - b for a, b in zip(held[::2], held[1::2], strict=True)]
