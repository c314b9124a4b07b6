"""What both directions of attention share: products of tiles, masks, dropout, sizes of a job."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Literal

from funct.kernels.attention import KEY_STEP, LAST_SHIFT, MIXES, QUERY_STEP
from funct.kernels.cpu.attention.strip_products import TILES, Along, product_name
from funct.kernels.cpu.dense.turn import turn_name
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, each, typed
from funct.kernels.llvm.coefficients.exponential import EXP2_ABOVE, EXP2_PART
from funct.kernels.llvm.exponential import LN2, LOG2_E, small
from funct.kernels.llvm.scaling import (
    BIAS,
    above_floor,
    has_avx512,
    nearest,
    pow2,
    scalef,
    split_constant,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funct.kernels.llvm import Emitter, Type, Value

__all__ = [
    "ADDRESSES", "BLOCK", "HEAD", "JOB", "SOFTEST", "STRIPS", "Start", "Strips",
]  # fmt: skip

STRIPS = 4  # of a task
BLOCK = 128  # keys at a time
LINE = 64  # bytes
SOFTEST = {"f32": -1e38, "f64": -1e300}  # below every score, but finite

# What changes from call to call stands first; the rest follows from shapes, strides and numbers.
ADDRESSES = Fields((
    "q", "k", "v", "mask", "seed", "o", "lse", "g", "delta", "dq", "dk", "dv", "scratch",
))  # fmt: skip
JOB = Fields((
    *ADDRESSES.names,
    "workers", "items", "blocks", "queries", "keys", "depth", "width", "causal", "mask_kind",
    "mask_row", "q_row", "k_row", "v_row", "g_row", "heads", "scratch_step", "scale", "threshold",
    "splits", "group", "depth_padded", "width_padded",
))  # fmt: skip

HEAD = Fields(("q", "k", "v", "mask", "seed", "g", "index"))

Start = Literal["zero", "add"]


def _mixed(f: Emitter, x: Value) -> Value:
    """See `kernels.attention.mixed`."""
    for shift, factor in MIXES:
        x = (x ^ (x >> shift)) * factor
    return x ^ (x >> LAST_SHIFT)


class Strips:
    """Prints what is done with strips of queries and blocks of keys, for one dtype."""

    def __init__(self, element: str, width: int) -> None:
        self.element, self.width = element, width
        self.vector: Type = typed(element, width // typed(element).bytes)
        self.lanes = self.vector.lanes
        self.vectors = max(TILES[width])
        self.strip = self.vectors * self.lanes
        self.wide = STRIPS * self.strip
        self.apart = self.wide + LINE // typed(element).bytes  # rows in different sets of a cache
        self.turn = turn_name(element, width)

    # Products

    def product(
        self, f: Emitter, start: Start, along: Along, vectors: int,
        operands: list[Value],
    ) -> None:  # fmt: skip
        """Call C[m, v] = start + Σ_k A[m, k] B[k, v] for a few vectors of columns.

        operands: A, its stride, B, its stride, C, its stride, the number of m, and of k. along:
        what lies side by side in A; the stride is the other's. start: what C holds, or zero.
        """
        name = product_name(self.element, self.width, along, vectors)
        f.call(name, None, [*operands, f.constant(I64, start == "add")])

    def product_of_strip(
        self, f: Emitter, start: Start, along: Along, queries: Value,
        operands: list[Value],
    ) -> None:  # fmt: skip
        """`product` for the vectors of a strip that hold queries: the last strip may have fewer."""

        def some(vectors: int) -> None:
            if vectors == 1:
                self.product(f, start, along, 1, operands)
                return
            many = queries > (vectors - 1) * self.lanes
            f.when(many, lambda: self.product(f, start, along, vectors, operands))
            f.when(~many, lambda: some(vectors - 1))

        some(self.vectors)

    # Vectors in memory

    def load(self, f: Emitter, pointer: Value, v: int) -> Value:
        """One of the vectors side by side from an address on."""
        return f.load(self.vector, f.at(pointer, v * self.lanes, self.element))

    def store(self, f: Emitter, x: Value, pointer: Value, v: int) -> None:
        """Write one of the vectors side by side."""
        f.store(x, f.at(pointer, v * self.lanes, self.element))

    def number(self, f: Emitter, job: Record, i: int) -> Value:
        """One of the job's factors in all lanes: scale · log2(e), scale, 1 / (1 - rate)."""
        at = f.at(job.pointer("scale"), i, self.element)
        return f.splat(f.load(self.vector.scalar, at), self.lanes)

    def fill(self, f: Emitter, pointer: Value, count: Value, number: float) -> None:
        """Set `count` elements, a multiple of the lanes."""
        x = f.constant(self.vector, number)
        each(f, 0, count, lambda i: f.store(x, f.at(pointer, i, self.element)), self.lanes)

    def multiply(self, f: Emitter, pointer: Value, count: Value, factor: Value) -> None:
        """Multiply `count` elements, a multiple of the lanes."""

        def one(i: Value) -> None:
            place = f.at(pointer, i, self.element)
            f.store(f.load(self.vector, place) * factor, place)

        each(f, 0, count, one, self.lanes)

    def scale_rows(
        self, f: Emitter, place: Value, row: Value, count: Value, factors: Sequence[Value]
    ) -> None:
        """Multiply rows of a strip by vectors of factors."""

        def one(i: Value) -> None:
            here = f.at(place, i * row, self.element)
            for v, factor in enumerate(factors):
                self.store(f, self.load(f, here, v) * factor, here, v)

        each(f, 0, count, one)

    def copy(
        self, f: Emitter, source: Value, row: Value, to: Value, to_row: Value, rows: Value,
        columns: Value,
    ) -> None:  # fmt: skip
        """Rows with zeros behind them, up to to_row, a multiple of the lanes."""
        self.fill(f, to, rows * to_row, 0)

        def one(i: Value) -> None:
            here, there = f.at(source, i * row, self.element), f.at(to, i * to_row, self.element)

            def element(j: Value) -> None:
                x = f.load(self.vector.scalar, f.at(here, j, self.element))
                f.store(x, f.at(there, j, self.element))

            def vector(j: Value) -> None:
                x = f.load(self.vector, f.at(here, j, self.element))
                f.store(x, f.at(there, j, self.element))

            whole = columns & -self.lanes
            each(f, 0, whole, vector, self.lanes)
            each(f, whole, columns, element)

        each(f, 0, rows, one)

    def power(self, f: Emitter, x: Value) -> Value:
        """2^x for x <= 0 or a bit more, at most 2 ulp off; exactly 0 far below."""
        if self.element in EXP2_ABOVE and has_avx512(f, self.vector):
            part = above_floor(f, x)
            return scalef(f, f.chain(part, (1.0, *EXP2_ABOVE[self.element])), x)
        x = f.max(float(-BIAS[self.element]), x)
        n, bits = nearest(f, x, 1, BIAS[self.element])
        part = x - n
        if self.element in EXP2_PART:
            near = f.polynomial(part, (1.0, *EXP2_PART[self.element]))
        else:
            high, low = split_constant(LN2, self.element)
            near = small(f, f.fma(part, low, part * high)) + 1
        return near * pow2(f, bits, self.vector)

    # What both directions share

    def span(self, f: Emitter, job: Record, block: Value) -> tuple[Value, Value, Value]:
        """First query of a task, their number, and that of the keys that they see."""
        first = block * self.wide
        count = f.min(job.queries - first, self.wide)
        seen = f.select(f.ne(job.causal, 0), f.min(first + count, job.keys), job.keys)
        return first, count, seen

    def each_strip(
        self, f: Emitter, count: Value, body: Callable[[Value, Value, Value], None]
    ) -> None:
        """body(number, first query in the task, queries) for each strip."""

        def one(s: Value) -> None:
            start = s * self.strip
            body(s, start, f.min(count - start, self.strip))

        each(f, 0, f.div(count + (self.strip - 1), self.strip), one)

    def seen_keys(
        self, f: Emitter, job: Record, head: Record, query: Value, key: Value, count: Value
    ) -> tuple[Value, Value]:
        """Between which of a block's keys a strip looks: up to that of its last query, and no word
        of bits that are all off.
        """
        last = f.max(f.min(query + self.strip - key, count), 0)
        stop = f.select(f.ne(job.causal, 0), last, count)
        found = f.branch(
            f.eq(job.mask_kind, 3) & (stop > 0),
            lambda: self._shown(f, job, head, query, key),
            lambda: [f.constant(I64, 0), count],
        )
        return found[0], f.min(found[1], stop)

    def _shown(
        self, f: Emitter, job: Record, head: Record, query: Value, key: Value
    ) -> list[Value]:
        """The first and the last word of a block in which a query of a strip has a bit, as keys."""
        words, bits = typed("i32", self.lanes), f.at(job.pointer("mask"), head.mask, "i32")
        rows, end = self._rows(f, job, query), (job.keys - 1) >> 5
        start, stop = f.constant(I64, 0), f.constant(I64, 0)
        some = []
        for w in range(BLOCK // 32):
            at = f.splat(f.min((key >> 5) + w, end), self.lanes)
            kept = [f.gather(words, f.at(bits, row + at, "i32")) for row in rows]
            total = f.reduce(functools.reduce(f.bitor, kept), f.bitor, 1)
            some.append(f.ne(total, 0))
        for w, has in enumerate(some):
            stop = f.select(has, 32 * (w + 1), stop)
        for w, has in reversed(list(enumerate(some))):
            start = f.select(has, 32 * w, start)
        return [start, stop]

    def _rows(self, f: Emitter, job: Record, query: Value) -> list[Value]:
        """Where the words of a strip's queries begin; behind the last one they are its."""
        number = f.lanes(typed("i64", self.lanes))
        first, last, step = (
            f.splat(x, self.lanes) for x in (query, job.queries - 1, job.mask_row)
        )  # fmt: skip
        return [f.min(number + v * self.lanes + first, last) * step for v in range(self.vectors)]

    def score(
        self, f: Emitter, job: Record, head: Record, query: Value, queries: Value, key: Value,
        operands: list[Value],
    ) -> None:  # fmt: skip
        """The scores of a strip, masked. operands: as of `product`, K and the strip of Q."""
        _, _, _, _, scores, row, keys, _ = operands

        def masked() -> list[Value]:
            mask = self.pointer(f, job, "mask", head.mask + query * job.mask_row + key)
            f.call(self.turn, None, [mask, scores, queries, keys, job.mask_row, row])
            unit = [f.constant(self.vector, float(LOG2_E))] * self.vectors
            self.scale_rows(f, scores, row, keys, unit)
            self.product_of_strip(f, "add", "steps", queries, operands)
            return []

        def plain() -> list[Value]:
            self.product_of_strip(f, "zero", "steps", queries, operands)
            return []

        f.branch(f.eq(job.mask_kind, 1), masked, plain)
        self._admit(f, job, head, query, key, keys, scores, row)

    def _admit(
        self, f: Emitter, job: Record, head: Record, query: Value, key: Value, keys: Value,
        scores: Value, row: Value,
    ) -> None:  # fmt: skip
        """Masks of keys and of bits, and hide the keys behind each query."""
        element = self.element
        mask, mask_row = self.pointer(f, job, "mask", head.mask), job.mask_row

        def added() -> None:
            times = f.constant(self.vector, float(LOG2_E))

            def one(j: Value) -> None:
                place = f.at(scores, j * row, element)
                x = f.load(self.vector.scalar, f.at(mask, (key + j) * mask_row, element))
                of_key = f.splat(x, self.lanes)
                for v in range(self.vectors):
                    self.store(f, f.fma(of_key, times, self.load(f, place, v)), place, v)

            each(f, 0, keys, one)

        def sifted() -> None:
            """A query is a lane and keeps 32 keys in a word: a bit of all words is one key."""
            words, bits = typed("i32", self.lanes), f.at(job.pointer("mask"), head.mask, "i32")
            own_rows = self._rows(f, job, query)

            def some(start: Value) -> None:
                at = f.splat((key + start) >> 5, self.lanes)
                kept = [f.gather(words, f.at(bits, own + at, "i32")) for own in own_rows]

                def one(j: Value, held: list[Value]) -> list[Value]:
                    place = f.at(scores, j * row, element)
                    for v, word in enumerate(kept):
                        x = self.load(f, place, v)
                        stays = f.ne(word & held[0], 0)
                        self.store(f, f.select(stays, x, x + float("-inf")), place, v)
                    return [held[0] << 1]

                f.loop(start, f.min(start + 32, keys), 1, one, [f.constant(words, 1)])

            each(f, 0, keys, some, 32)

        def hidden() -> None:
            whole = typed(f"i{self.vector.bits}", self.lanes)
            numbers = [f.lanes(whole) + v * self.lanes for v in range(self.vectors)]

            def one(j: Value) -> None:
                place = f.at(scores, j * row, element)
                away = f.splat(f.convert(key + j - query, whole.element), self.lanes)
                for v, number in enumerate(numbers):
                    kept = f.select(number < away, float("-inf"), self.load(f, place, v))
                    self.store(f, kept, place, v)

            each(f, f.max(query - key + 1, 0), keys, one)

        f.when(f.eq(job.mask_kind, 2), added)
        f.when(f.eq(job.mask_kind, 3), sifted)
        f.when(f.ne(job.causal, 0), hidden)

    def keeping(
        self, f: Emitter, job: Record, head: Record, query: Value, key: Value
    ) -> Callable[[Value], list[Value]]:
        """Which queries of a strip keep the j-th key of a block (`kernels.attention.kept`)."""
        words = typed("u32", self.lanes)
        seed = f.at(job.pointer("seed"), head.seed, "u32")
        first, second = f.load(words.scalar, seed), f.load(words.scalar, f.at(seed, 1, "u32"))
        threshold = f.splat(f.convert(job.threshold, "u32"), self.lanes)
        start = f.splat(f.convert(query, "u32") * QUERY_STEP + first, self.lanes)
        of_query = [
            _mixed(f, (f.lanes(words) + v * self.lanes) * QUERY_STEP + start)
            for v in range(self.vectors)
        ]

        def kept(j: Value) -> list[Value]:
            of_key = _mixed(f, f.convert(key + j, "u32") * KEY_STEP + second)
            both = f.splat(of_key, self.lanes)
            return [_mixed(f, x ^ both) >= threshold for x in of_query]

        return kept

    def head(self, f: Emitter, job: Record, number: Value) -> Record:
        """What is known of a head."""
        return Record(f, HEAD, f.at(job.pointer("heads"), number * len(HEAD), "i64"))

    def pointer(self, f: Emitter, job: Record, name: str, offset: Value) -> Value:
        """An address in one of the job's arrays."""
        return f.at(job.pointer(name), offset, self.element)
