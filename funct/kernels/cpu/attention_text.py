"""The loops of attention: scores stand transposed, keys by queries, and never leave the cache.

A strip is three vectors of queries; a task takes a few strips and walks over the keys in blocks.
With queries in the lanes, the maximum, the sum and the weights of a query are vertical: no lane
looks at another one, no mask is needed at the edges, and keys and values are read where they lie.

    forward, per strip and block of keys:
        S = K Qᵀ;  m' = max(m, max S);  P = 2^(S - m');  O = O 2^(m - m') + Vᵀ P
    backward:
        P = 2^(S - l);  D = P (V dOᵀ - δ);  dQ += Kᵀ D;  dV += P dO;  dK += D Q

Queries are multiplied by scale · log2(e) on the way in, so that powers of two suffice.

Source: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867;
    T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré, "FlashAttention", arXiv:2205.14135.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from funct.device import PARALLEL
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.turn import define_turn
from funct.kernels.llvm import I64, PTR, Module, typed
from funct.kernels.llvm.exponential import LN2, small
from funct.kernels.llvm.functions import FUNCTIONS
from funct.kernels.llvm.scaling import BIAS, nearest, pow2, split_constant

if TYPE_CHECKING:
    from collections.abc import Callable

    from funct.device import Host
    from funct.kernels.llvm import Emitter, Type, Value

__all__ = ["BLOCK", "HEAD", "JOB", "STRIPS", "VECTORS", "text"]

VECTORS = 3  # of a strip: with 4 rows, 12 sums in 16 registers
STRIPS = 4  # of a task
BLOCK = 64  # keys at a time
SOFTEST = {"f32": -1e38, "f64": -1e300}  # below every score, but finite
_UNROLL = 4

JOB = Fields((
    "workers", "items", "blocks", "queries", "keys", "depth", "width", "causal", "mask_kind",
    "mask_row", "q", "k", "v", "mask", "o", "lse", "q_row", "k_row", "v_row", "heads",
    "scratch", "scratch_step", "scale",
    "splits", "group", "g", "g_row", "delta", "dq", "dk", "dv", "depth_padded", "width_padded",
))  # fmt: skip

HEAD = Fields(("q", "k", "v", "mask", "g", "index"))

Start = Literal["zero", "add", "scaled"]


def text(element: str, target: Host) -> str:
    """`attend(job)` and `attend_back(job)` for floats of this element."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    kernels = _Kernels(module, element, target.vector_bytes)
    for name, item in (("attend", kernels.forward), ("attend_back", kernels.backward)):
        work = module.function(f"{name}_some", [("job", PTR), ("w", I64)], local=True)
        address, w = work.arguments
        job = Record(work, JOB, address)
        room = work.at(job.pointer("scratch"), w * job.scratch_step, element)
        items, workers = job.items, job.workers

        def each(
            i: Value, work: Emitter = work, job: Record = job, room: Value = room,
            item: Callable[[Emitter, Record, Value, Value], None] = item,
        ) -> None:  # fmt: skip
            item(work, job, i, room)

        _each(work, w, items, each, workers)
        work.ret()
        f = module.function(name, [("job", PTR)])
        count = Record(f, JOB, f.arguments[0]).workers
        f.line(f"call void @funct_parallel(ptr @{name}_some, {f.arguments[0]!r}, {count!r})")
        f.ret()
    return module.text()


def _each(
    f: Emitter, start: Value | int, stop: Value | int, body: Callable[[Value], None],
    step: Value | int = 1,
) -> None:  # fmt: skip
    def run(i: Value, _: list[Value]) -> list[Value]:
        body(i)
        return []

    f.loop(start, stop, step, run, maybe_empty=True)


class _Kernels:
    """Prints the two kernels of one dtype and what they share."""

    def __init__(self, module: Module, element: str, width: int) -> None:
        self.module, self.element = module, element
        self.vector: Type = typed(element, width // typed(element).bytes)
        self.lanes = self.vector.lanes
        self.strip = VECTORS * self.lanes
        self.wide = STRIPS * self.strip
        self.rows = 8 if width == 64 else 4
        self.turn = define_turn(module, element, width)

    # Products

    def product(
        self, f: Emitter, start: Start, along: Literal["rows", "steps"], vectors: int,
        operands: list[Value],
    ) -> None:  # fmt: skip
        """Call C[m, v] = start + Σ_k A[m, k] B[k, v] for a few vectors of columns.

        operands: A, its stride, B, its stride, C, its stride, the number of m, of k, and a vector
        of factors for C ("scaled"). along: what lies side by side in A; the stride is the other's.
        """
        name = f"product_{start}_{along}_{vectors}"
        self.module.shared(name, lambda n: self._define_product(n, start, along, vectors))
        f.call(name, None, operands)

    def _define_product(
        self, name: str, start: Start, along: Literal["rows", "steps"], vectors: int
    ) -> None:
        names = ("a", "b", "c")
        pointers = [(n, t) for name in names for n, t in ((name, PTR), (f"{name}_row", I64))]
        f = self.module.function(
            name, [*pointers, ("m", I64), ("k", I64), ("factor", PTR)], local=True
        )
        a, a_row, b, b_row, c, c_row, m_count, k_count, factor = f.arguments
        scale = [self.load(f, factor, v) for v in range(vectors)] if start == "scaled" else []
        main = k_count & -_UNROLL

        def tile(m: Value, rows: int) -> None:
            places = [f.at(c, (m + r) * c_row, self.element) for r in range(rows)]
            cells = [(r, v) for r in range(rows) for v in range(vectors)]
            if start == "zero":
                sums = [f.constant(self.vector, 0) for _ in cells]
            else:
                sums = [self.load(f, places[r], v) for r, v in cells]
            if start == "scaled":
                sums = [s * scale[v] for s, (_, v) in zip(sums, cells)]
            if along == "steps":
                left = [f.at(a, (m + r) * a_row, self.element) for r in range(rows)]
            else:
                left = [f.at(f.at(a, m, self.element), r, self.element) for r in range(rows)]

            def steps(count: int) -> Callable[[Value, list[Value]], list[Value]]:
                def body(k: Value, sums: list[Value]) -> list[Value]:
                    for u in range(count):
                        at = f.at(b, (k + u) * b_row, self.element)
                        right = [self.load(f, at, v) for v in range(vectors)]
                        out = []
                        for r in range(rows):
                            if along == "steps":
                                p = f.at(f.at(left[r], k, self.element), u, self.element)
                            else:
                                p = f.at(left[r], (k + u) * a_row, self.element)
                            one = f.splat(f.load(self.vector.scalar, p), self.lanes)
                            for v in range(vectors):
                                out.append(f.fma(one, right[v], sums[r * vectors + v]))
                        sums = out
                    return sums

                return body

            sums = f.loop(0, main, _UNROLL, steps(_UNROLL), sums, maybe_empty=True)
            sums = f.loop(main, k_count, 1, steps(1), sums, maybe_empty=True)
            for (r, v), s in zip(cells, sums):
                self.store(f, s, places[r], v)

        rows = self.rows if vectors == VECTORS else 6
        whole = m_count - f.rem(m_count, rows)
        _each(f, 0, whole, lambda m: tile(m, rows), rows)
        _each(f, whole, m_count, lambda m: tile(m, 1))
        f.ret()

    # Vectors in memory

    def load(self, f: Emitter, pointer: Value, v: int) -> Value:
        return f.load(self.vector, f.at(pointer, v * self.lanes, self.element))

    def store(self, f: Emitter, x: Value, pointer: Value, v: int) -> None:
        f.store(x, f.at(pointer, v * self.lanes, self.element))

    def fill(self, f: Emitter, pointer: Value, count: Value, number: float) -> None:
        """Set `count` elements, a multiple of the lanes."""
        x = f.constant(self.vector, number)
        _each(f, 0, count, lambda i: f.store(x, f.at(pointer, i, self.element)), self.lanes)

    def multiply(self, f: Emitter, pointer: Value, count: Value, factor: Value) -> None:
        """Multiply `count` elements, a multiple of the lanes."""

        def one(i: Value) -> None:
            place = f.at(pointer, i, self.element)
            f.store(f.load(self.vector, place) * factor, place)

        _each(f, 0, count, one, self.lanes)

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
            _each(f, 0, whole, vector, self.lanes)
            _each(f, whole, columns, element)

        _each(f, 0, rows, one)

    def power(self, f: Emitter, x: Value) -> Value:
        """2^x for x <= 0 or a bit more; exactly 0 far below."""
        n, bits = nearest(f, f.max(float(-BIAS[self.element]), x))
        part = f.max(float(-BIAS[self.element]), x) - n
        high, low = split_constant(LN2, self.element)
        return (small(f, f.fma(part, low, part * high)) + 1) * pow2(f, bits, self.vector)

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

        _each(f, 0, f.div(count + (self.strip - 1), self.strip), one)

    def seen_keys(self, f: Emitter, job: Record, query: Value, key: Value, count: Value) -> Value:
        """How many of a block's keys a strip looks at: up to that of its last query."""
        last = f.max(f.min(query + self.strip - key, count), 0)
        return f.select(f.ne(job.causal, 0), last, count)

    def admit(
        self, f: Emitter, job: Record, mask: Value, query: Value, key: Value, keys: Value,
        scores: Value, row: Value | int,
    ) -> None:  # fmt: skip
        """Add the mask to a strip's scores, and hide the keys behind each query."""
        kind, element = job.mask_kind, self.element
        mask_row = job.mask_row

        def masked() -> None:
            def one(j: Value) -> None:
                place = f.at(scores, j * row, element)
                from_mask = f.at(mask, (key + j) * mask_row, element)

                def full() -> list[Value]:
                    at = f.at(from_mask, query, element)
                    return [self.load(f, at, v) for v in range(VECTORS)]

                def of_key() -> list[Value]:
                    x = f.splat(f.load(self.vector.scalar, from_mask), self.lanes)
                    return [x] * VECTORS

                for v, x in enumerate(f.branch(f.eq(kind, 1), full, of_key)):
                    self.store(f, self.load(f, place, v) + x, place, v)

            _each(f, 0, keys, one)

        def hidden() -> None:
            whole = typed(f"i{self.vector.bits}", self.lanes)
            numbers = [f.lanes(whole) + v * self.lanes for v in range(VECTORS)]

            def one(j: Value) -> None:
                place = f.at(scores, j * row, element)
                away = f.splat(f.convert(key + j - query, whole.element), self.lanes)
                for v, number in enumerate(numbers):
                    kept = f.select(number < away, float("-inf"), self.load(f, place, v))
                    self.store(f, kept, place, v)

            _each(f, f.max(query - key + 1, 0), keys, one)

        f.when(f.ne(kind, 0), masked)
        f.when(f.ne(job.causal, 0), hidden)

    def head(self, f: Emitter, job: Record, number: Value) -> Record:
        return Record(f, HEAD, f.at(job.pointer("heads"), number * len(HEAD), "i64"))

    def pointer(self, f: Emitter, job: Record, name: str, offset: Value) -> Value:
        return f.at(job.pointer(name), offset, self.element)

    # Forward

    def forward(self, f: Emitter, job: Record, item: Value, room: Value) -> None:
        """One task: STRIPS strips of queries of one head."""
        strip, element = self.strip, self.element
        depth, width = job.depth, job.width
        number = f.div(item, job.blocks)
        first, count, seen = self.span(f, job, item - number * job.blocks)
        head = self.head(f, job, number)
        q = self.pointer(f, job, "q", head.q + first * job.q_row)
        k = self.pointer(f, job, "k", head.k)
        v = self.pointer(f, job, "v", head.v)
        mask = self.pointer(f, job, "mask", head.mask)
        turned, sums = room, f.at(room, depth * self.wide, element)
        scores = f.at(sums, width * self.wide, element)
        tops = f.at(scores, BLOCK * strip, element)
        totals = f.at(tops, self.wide, element)
        factor = f.at(totals, self.wide, element)
        size = f.constant(I64, strip)
        scale = f.splat(f.load(self.vector.scalar, job.pointer("scale")), self.lanes)

        def begin(s: Value, start: Value, queries: Value) -> None:
            to = f.at(turned, start * depth, element)
            self.fill(f, to, depth * strip, 0)
            source = f.at(q, start * job.q_row, element)
            f.call(self.turn, None, [source, to, queries, depth, job.q_row, size])
            self.multiply(f, to, depth * strip, scale)

        self.each_strip(f, count, begin)
        wide = f.constant(I64, self.wide)
        self.fill(f, sums, width * wide, 0)
        self.fill(f, tops, wide, SOFTEST[element])
        self.fill(f, totals, wide, 0)

        def block(key: Value) -> None:
            keys = f.min(seen - key, BLOCK)

            def one(s: Value, start: Value, queries: Value) -> None:
                mine = self.seen_keys(f, job, first + start, key, keys)
                f.when(mine > 0, lambda: strip_block(start, mine))

            def strip_block(start: Value, mine: Value) -> None:
                here = f.at(k, key * job.k_row, element)
                to = f.at(turned, start * depth, element)
                none = f.null()
                given = [here, job.k_row, to, size, scores, size, mine, depth, none]
                self.product(f, "zero", "steps", VECTORS, given)
                self.admit(f, job, mask, first + start, key, mine, scores, strip)
                self.weigh(f, scores, mine, f.at(tops, start, element),
                           f.at(totals, start, element), factor)  # fmt: skip
                here = f.at(v, key * job.v_row, element)
                to = f.at(sums, start * width, element)
                given = [here, job.v_row, scores, size, to, size, width, mine, factor]
                self.product(f, "scaled", "rows", VECTORS, given)

            self.each_strip(f, count, one)

        _each(f, 0, seen, block, BLOCK)

        def finish(s: Value, start: Value, queries: Value) -> None:
            at = f.at(sums, start * width, element)
            total = [self.load(f, f.at(totals, start, element), i) for i in range(VECTORS)]
            share = [f.select(t > 0, 1 / t, t * 0) for t in total]

            def normal(d: Value) -> None:
                place = f.at(at, d * strip, element)
                for i in range(VECTORS):
                    self.store(f, self.load(f, place, i) * share[i], place, i)

            _each(f, 0, width, normal)
            query = head.index * job.queries + first + start
            to = f.at(job.pointer("o"), query * width, element)
            f.call(self.turn, None, [at, to, width, queries, size, width])
            for i in range(VECTORS):
                top = self.load(f, f.at(tops, start, element), i)
                log = (top + FUNCTIONS["log2"](f, total[i])) * float(LN2)
                log = f.select(f.eq(total[i], 0), float("inf"), log)
                left = f.max(queries - i * self.lanes, 0)
                kept = f.first_lanes(self.lanes, left)
                place = f.at(job.pointer("lse"), query + i * self.lanes, element)
                f.store(log, place, kept)

        self.each_strip(f, count, finish)

    def weigh(
        self, f: Emitter, scores: Value, keys: Value, tops: Value, totals: Value, factor: Value
    ) -> None:
        """Scores to weights; what earlier sums are multiplied by goes to `factor`."""
        strip, element = self.strip, self.element
        before = [self.load(f, tops, v) for v in range(VECTORS)]

        def largest(j: Value, held: list[Value]) -> list[Value]:
            place = f.at(scores, j * strip, element)
            return [f.max(self.load(f, place, v), held[v]) for v in range(VECTORS)]

        top = f.loop(0, keys, 1, largest, before)
        for v in range(VECTORS):
            self.store(f, top[v], tops, v)
            self.store(f, self.power(f, before[v] - top[v]), factor, v)

        def weights(j: Value, held: list[Value]) -> list[Value]:
            place = f.at(scores, j * strip, element)
            out = []
            for v in range(VECTORS):
                p = self.power(f, self.load(f, place, v) - top[v])
                self.store(f, p, place, v)
                out.append(held[v] + p)
            return out

        zero = f.constant(self.vector, 0)
        more = f.loop(0, keys, 1, weights, [zero] * VECTORS)
        for v in range(VECTORS):
            total = f.fma(self.load(f, totals, v), self.load(f, factor, v), more[v])
            self.store(f, total, totals, v)

    # Backward

    def backward(self, f: Emitter, job: Record, item: Value, room: Value) -> None:
        """One task: a share of the tasks of the heads that have one head of keys in common."""
        element = self.element
        number = f.div(item, job.splits)
        split = item - number * job.splits
        dk = f.at(job.pointer("dk"), item * job.keys * job.depth_padded, element)
        dv = f.at(job.pointer("dv"), item * job.keys * job.width_padded, element)
        self.fill(f, dk, job.keys * job.depth_padded, 0)
        self.fill(f, dv, job.keys * job.width_padded, 0)
        tasks = job.group * job.blocks
        start, stop = f.div(split * tasks, job.splits), f.div((split + 1) * tasks, job.splits)

        def one(t: Value) -> None:
            member = f.div(t, job.blocks)
            self._backward_task(
                f, job, number * job.group + member, t - member * job.blocks, room, dk, dv
            )

        _each(f, start, stop, one)

    def _backward_task(
        self, f: Emitter, job: Record, number: Value, block: Value, room: Value, dk: Value,
        dv: Value,
    ) -> None:  # fmt: skip
        strip, element = self.strip, self.element
        depth, width = job.depth, job.width
        first, count, seen = self.span(f, job, block)
        head = self.head(f, job, number)
        q = self.pointer(f, job, "q", head.q + first * job.q_row)
        g = self.pointer(f, job, "g", head.g + first * job.g_row)
        k, v = self.pointer(f, job, "k", head.k), self.pointer(f, job, "v", head.v)
        mask = self.pointer(f, job, "mask", head.mask)
        query = head.index * job.queries + first
        rooms = [room]
        sizes = (depth, width, depth, job.depth_padded, job.width_padded, BLOCK, BLOCK, 1, 1)
        for rows in sizes:
            words = rows * f.constant(I64, self.wide)
            rooms.append(f.at(rooms[-1], words, element))
        q_turned, g_turned, dq, q_rows, g_rows, weights, slopes, logs, deltas = rooms[:-1]
        size, wide = f.constant(I64, strip), f.constant(I64, self.wide)
        none = f.null()
        scale = f.splat(f.load(self.vector.scalar, job.pointer("scale")), self.lanes)
        plain = f.splat(
            f.load(self.vector.scalar, f.at(job.pointer("scale"), 1, element)), self.lanes
        )
        self.copy(f, q, job.q_row, q_rows, job.depth_padded, count, depth)
        self.copy(f, g, job.g_row, g_rows, job.width_padded, count, width)
        for source, to in ((job.pointer("lse"), logs), (job.pointer("delta"), deltas)):
            one = f.constant(I64, 1)
            at = f.at(source, query, element)
            self.copy(f, at, one, to, wide, one, count)
        self.multiply(f, logs, wide, f.constant(self.vector, 1 / float(LN2)))
        self.fill(f, dq, depth * wide, 0)

        def begin(s: Value, start: Value, queries: Value) -> None:
            for source, row, to, columns in (
                (q, job.q_row, q_turned, depth), (g, job.g_row, g_turned, width),
            ):  # fmt: skip
                at = f.at(to, start * columns, element)
                self.fill(f, at, columns * strip, 0)
                here = f.at(source, start * row, element)
                f.call(self.turn, None, [here, at, queries, columns, row, size])
            self.multiply(f, f.at(q_turned, start * depth, element), depth * strip, scale)

        self.each_strip(f, count, begin)

        def block_of_keys(key: Value) -> None:
            keys = f.min(seen - key, BLOCK)
            k_here, v_here = (
                f.at(k, key * job.k_row, element), f.at(v, key * job.v_row, element)
            )  # fmt: skip

            def strip_block(s: Value, start: Value, queries: Value) -> None:
                mine = self.seen_keys(f, job, first + start, key, keys)
                p, d = f.at(weights, start, element), f.at(slopes, start, element)
                to = f.at(q_turned, start * depth, element)
                given = [k_here, job.k_row, to, size, p, wide, mine, depth, none]
                self.product(f, "zero", "steps", VECTORS, given)
                to = f.at(g_turned, start * width, element)
                given = [v_here, job.v_row, to, size, d, wide, mine, width, none]
                self.product(f, "zero", "steps", VECTORS, given)
                self.admit(f, job, mask, first + start, key, mine, p, self.wide)
                log = [self.load(f, f.at(logs, start, element), i) for i in range(VECTORS)]
                delta = [self.load(f, f.at(deltas, start, element), i) for i in range(VECTORS)]

                def slope(j: Value) -> None:
                    at_p, at_d = (f.at(x, j * self.wide, element) for x in (p, d))
                    for i in range(VECTORS):
                        x = self.power(f, self.load(f, at_p, i) - log[i])
                        self.store(f, x, at_p, i)
                        self.store(f, x * (self.load(f, at_d, i) - delta[i]), at_d, i)

                def clear(j: Value) -> None:
                    for x in (p, d):
                        for i in range(VECTORS):
                            zero = f.constant(self.vector, 0)
                            self.store(f, zero, f.at(x, j * self.wide, element), i)

                _each(f, 0, mine, slope)
                _each(f, mine, keys, clear)
                to = f.at(dq, start * depth, element)
                given = [k_here, job.k_row, d, wide, to, size, depth, mine, none]
                self.product(f, "add", "rows", VECTORS, given)

            self.each_strip(f, count, strip_block)
            for x, rows, columns, to in (
                (weights, g_rows, job.width_padded, dv), (slopes, q_rows, job.depth_padded, dk),
            ):  # fmt: skip

                def columns_of(
                    c: Value, x: Value = x, rows: Value = rows, columns: Value = columns,
                    to: Value = to,
                ) -> None:  # fmt: skip
                    right = f.at(rows, c, element)
                    here = f.at(to, key * columns + c, element)
                    given = [x, wide, right, columns, here, columns, keys, count, none]
                    self.product(f, "add", "steps", 2, given)

                _each(f, 0, columns, columns_of, 2 * self.lanes)

        _each(f, 0, seen, block_of_keys, BLOCK)

        def finish(s: Value, start: Value, queries: Value) -> None:
            at = f.at(dq, start * depth, element)
            self.multiply(f, at, depth * strip, plain)
            to = f.at(job.pointer("dq"), (query + start) * depth, element)
            f.call(self.turn, None, [at, to, depth, queries, size, depth])

        self.each_strip(f, count, finish)
