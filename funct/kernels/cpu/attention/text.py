"""The loops of attention: scores stand transposed, keys by queries, and never leave the cache.

A strip is two or three vectors of queries; a task takes a few strips and walks over the keys in
blocks. With queries in the lanes, the maximum, the sum and the weights of a query are vertical: no
lane looks at another one, no mask is needed at the edges, and keys and values are read where they
lie.

    forward, per strip and block of keys:
        S = K Qᵀ;  m' = max(m, max S);  P = 2^(S - m');  O = O 2^(m - m') + Vᵀ P
    backward:
        P = 2^(S - l);  D = P (V dOᵀ - δ);  dQ += Kᵀ D;  dV += P dO;  dK += D Q

Queries are multiplied by scale · log2(e) on the way in, so that powers of two suffice.

Source: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867;
    T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré, "FlashAttention", arXiv:2205.14135.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from funct.device import PARALLEL
from funct.kernels.cpu.attention.few import FewQueries
from funct.kernels.cpu.attention.strips import BLOCK, JOB, SOFTEST, Strips
from funct.kernels.cpu.record import Record
from funct.kernels.llvm import I64, PTR, Module, each
from funct.kernels.llvm.exponential import LN2
from funct.kernels.llvm.functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from funct.device import Host
    from funct.kernels.llvm import Emitter, Value

__all__ = ["text"]

_APART = 4  # keys whose maxima do not wait for each other


def text(name: str, element: str, target: Host) -> str:
    """`attend(job)`, `attend_few` or `attend_back`, for floats of this element."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    item = _ITEMS[name](element, target.vector_bytes)
    work = module.function("some", [("job", PTR), ("w", I64)], local=True)
    address, w = work.arguments
    job = Record(work, JOB, address)
    room = work.at(job.pointer("scratch"), w * job.scratch_step, element)
    # the last first: where attention is causal they take longest, so nobody waits in the end
    each(work, w, job.items, lambda i: item(work, job, job.items - 1 - i, room), job.workers)
    work.ret()
    f = module.function(name, [("job", PTR)])
    count = Record(f, JOB, f.arguments[0]).workers
    f.line(f"call void @funct_parallel(ptr @some, {f.arguments[0]!r}, {count!r})")
    f.ret()
    return module.text()


class _Strips(Strips):
    """Prints the two kernels of one dtype."""

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
        turned, sums = room, f.at(room, depth * self.wide, element)
        scores = f.at(sums, width * self.wide, element)
        tops = f.at(scores, BLOCK * strip, element)
        totals = f.at(tops, self.wide, element)
        factor = f.at(totals, self.wide, element)
        size = f.constant(I64, strip)
        scale = self.number(f, job, 0)

        def begin(s: Value, start: Value, queries: Value) -> None:
            to = f.at(turned, start * depth, element)
            f.when(queries < strip, lambda: self.fill(f, to, depth * strip, 0))
            source = f.at(q, start * job.q_row, element)
            f.call(self.turn, None, [source, to, queries, depth, job.q_row, size])
            self.multiply(f, to, depth * strip, scale)

        self.each_strip(f, count, begin)
        wide = f.constant(I64, self.wide)
        self.fill(f, tops, wide, SOFTEST[element])
        self.fill(f, totals, wide, 0)
        self.fill(f, sums, width * wide, 0)

        def block(key: Value) -> None:
            keys = f.min(seen - key, BLOCK)

            def one(s: Value, start: Value, queries: Value) -> None:
                low, high = self.seen_keys(f, job, head, first + start, key, keys)
                f.when(high > low, lambda: strip_block(start, queries, key + low, high - low))

            def strip_block(start: Value, queries: Value, key: Value, mine: Value) -> None:
                here = f.at(k, key * job.k_row, element)
                to = f.at(turned, start * depth, element)
                given = [here, job.k_row, to, size, scores, size, mine, depth]
                self.score(f, job, head, first + start, queries, key, given)
                self.weigh(f, scores, mine, f.at(tops, start, element),
                           f.at(totals, start, element), factor)  # fmt: skip
                f.when(f.ne(job.threshold, 0), lambda: drop(start, key, mine))
                here = f.at(v, key * job.v_row, element)
                to = f.at(sums, start * width, element)

                def scale() -> None:
                    shares = [self.load(f, factor, i) for i in range(self.vectors)]
                    self.scale_rows(f, to, size, width, shares)

                f.when(key > 0, scale)
                given = [here, job.v_row, scores, size, to, size, width, mine]
                self.product_of_strip(f, "add", "rows", queries, given)

            def drop(start: Value, key: Value, mine: Value) -> None:
                kept = self.keeping(f, job, head, first + start, key)

                def one(j: Value) -> None:
                    place = f.at(scores, j * strip, element)
                    for v, stays in enumerate(kept(j)):
                        x = f.select(stays, self.load(f, place, v), 0)
                        self.store(f, x, place, v)

                each(f, 0, mine, one)

            self.each_strip(f, count, one)

        each(f, 0, seen, block, BLOCK)

        def finish(s: Value, start: Value, queries: Value) -> None:
            at = f.at(sums, start * width, element)
            total = [self.load(f, f.at(totals, start, element), i) for i in range(self.vectors)]
            rest = self.number(f, job, 2)
            share = [f.select(t > 0, rest / t, t * 0) for t in total]

            def normal(d: Value) -> None:
                place = f.at(at, d * strip, element)
                for i in range(self.vectors):
                    self.store(f, self.load(f, place, i) * share[i], place, i)

            each(f, 0, width, normal)
            query = head.index * job.queries + first + start
            to = f.at(job.pointer("o"), query * width, element)
            f.call(self.turn, None, [at, to, width, queries, size, width])
            for i in range(self.vectors):
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
        before = [self.load(f, tops, v) for v in range(self.vectors)]

        def largest(j: Value, held: list[Value]) -> list[Value]:
            place = f.at(scores, j * strip, element)
            return [f.max(self.load(f, place, v), x) for v, x in enumerate(held)]

        main = keys & -_APART
        top = f.loop(0, main, _APART, largest, before * _APART, maybe_empty=True)
        while len(top) > self.vectors:
            half = len(top) // 2
            top = [f.max(x, y) for x, y in zip(top[:half], top[half:])]
        top = f.loop(main, keys, 1, largest, top, maybe_empty=True)
        for v in range(self.vectors):
            self.store(f, top[v], tops, v)
            self.store(f, self.power(f, before[v] - top[v]), factor, v)

        def weights(j: Value, held: list[Value]) -> list[Value]:
            place = f.at(scores, j * strip, element)
            out = []
            for v in range(self.vectors):
                p = self.power(f, self.load(f, place, v) - top[v])
                self.store(f, p, place, v)
                out.append(held[v] + p)
            return out

        zero = f.constant(self.vector, 0)
        more = f.loop(0, keys, 1, weights, [zero] * self.vectors)
        for v in range(self.vectors):
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

        each(f, start, stop, one)

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
        query = head.index * job.queries + first
        rooms = [room]
        sizes = (depth, width, depth, job.depth_padded, job.width_padded)
        words = [rows * f.constant(I64, self.wide) for rows in sizes]
        words += [f.constant(I64, n) for n in (BLOCK * self.apart, BLOCK * self.apart, self.wide)]
        for many in words:
            rooms.append(f.at(rooms[-1], many, element))
        q_turned, g_turned, dq, q_rows, g_rows, weights, slopes, logs, deltas = rooms
        size, wide = f.constant(I64, strip), f.constant(I64, self.wide)
        apart = f.constant(I64, self.apart)
        scale, plain, rest = (self.number(f, job, i) for i in range(3))
        self.copy(f, q, job.q_row, q_rows, job.depth_padded, count, depth)
        self.multiply(f, q_rows, count * job.depth_padded, plain)
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
                f.when(queries < strip, functools.partial(self.fill, f, at, columns * strip, 0))
                here = f.at(source, start * row, element)
                f.call(self.turn, None, [here, at, queries, columns, row, size])
            self.multiply(f, f.at(q_turned, start * depth, element), depth * strip, scale)

        self.each_strip(f, count, begin)

        def block_of_keys(key: Value) -> None:
            keys = f.min(seen - key, BLOCK)
            some = f.allocate(I64, 1)
            f.store(f.constant(I64, 0), some)

            def clear(rows: tuple[Value, Value], start: Value) -> None:
                def one(j: Value) -> None:
                    for x in (weights, slopes):
                        for i in range(self.vectors):
                            zero = f.constant(self.vector, 0)
                            self.store(f, zero, f.at(x, j * self.apart + start, element), i)

                each(f, *rows, one)

            def one(s: Value, start: Value, queries: Value) -> None:
                low, high = self.seen_keys(f, job, head, first + start, key, keys)
                high = f.max(low, high)
                clear((f.constant(I64, 0), low), start)
                clear((high, keys), start)
                f.store(f.load(I64, some) + (high - low), some)
                f.when(high > low, lambda: strip_block(start, queries, low, high - low))

            def strip_block(start: Value, queries: Value, low: Value, mine: Value) -> None:
                key_here = key + low
                k_here, v_here = (
                    f.at(x, key_here * row, element) for x, row in ((k, job.k_row), (v, job.v_row))
                )  # fmt: skip
                p, d = (f.at(x, low * self.apart + start, element) for x in (weights, slopes))
                to = f.at(q_turned, start * depth, element)
                given = [k_here, job.k_row, to, size, p, apart, mine, depth]
                self.score(f, job, head, first + start, queries, key_here, given)
                to = f.at(g_turned, start * width, element)
                given = [v_here, job.v_row, to, size, d, apart, mine, width]
                self.product_of_strip(f, "zero", "steps", queries, given)
                log = [self.load(f, f.at(logs, start, element), i) for i in range(self.vectors)]
                delta = [self.load(f, f.at(deltas, start, element), i) for i in range(self.vectors)]

                def slope(j: Value, stays: list[Value] | None = None) -> None:
                    at_p, at_d = (f.at(x, j * self.apart, element) for x in (p, d))
                    for i in range(self.vectors):
                        x = self.power(f, self.load(f, at_p, i) - log[i])
                        from_g = self.load(f, at_d, i)
                        left = x
                        if stays is not None:
                            factor = f.select(stays[i], rest, 0)
                            from_g, left = from_g * factor, x * factor
                        self.store(f, left, at_p, i)
                        self.store(f, x * (from_g - delta[i]), at_d, i)

                def dropped() -> list[Value]:
                    kept = self.keeping(f, job, head, first + start, key_here)
                    each(f, 0, mine, lambda j: slope(j, kept(j)))
                    return []

                def whole() -> list[Value]:
                    each(f, 0, mine, slope)
                    return []

                f.branch(f.ne(job.threshold, 0), dropped, whole)
                to = f.at(dq, start * depth, element)
                given = [k_here, job.k_row, d, apart, to, size, depth, mine]
                self.product_of_strip(f, "add", "rows", queries, given)

            self.each_strip(f, count, one)
            f.when(f.load(I64, some) > 0, lambda: of_keys(key, keys))

        def of_keys(key: Value, keys: Value) -> None:
            """Where attention is causal, strip by strip: the queries before one do not see it."""

            def some(j: Value, mine: Value, before: Value) -> None:
                for x, rows, columns, to in (
                    (weights, g_rows, job.width_padded, dv),
                    (slopes, q_rows, job.depth_padded, dk),
                ):
                    at = f.at(x, j * self.apart + before, element)

                    def columns_of(
                        vectors: int, c: Value, at: Value = at, rows: Value = rows,
                        columns: Value = columns, to: Value = to,
                    ) -> None:  # fmt: skip
                        right = f.at(rows, before * columns + c, element)
                        here = f.at(to, (key + j) * columns + c, element)
                        given = [at, apart, right, columns, here, columns, mine, count - before]
                        self.product(f, "add", "steps", vectors, given)

                    pairs = columns & -2 * self.lanes
                    each(f, 0, pairs, functools.partial(columns_of, 2), 2 * self.lanes)
                    f.when(columns > pairs, functools.partial(columns_of, 1, pairs))

            def strip_of_keys(j: Value) -> None:
                before = f.max(key + j - first, 0)
                some(j, f.min(keys - j, strip), before)

            f.when(f.eq(job.causal, 0), lambda: some(f.constant(I64, 0), keys, f.constant(I64, 0)))
            f.when(f.ne(job.causal, 0), lambda: each(f, 0, keys, strip_of_keys, strip))

        each(f, 0, seen, block_of_keys, BLOCK)

        def finish(s: Value, start: Value, queries: Value) -> None:
            at = f.at(dq, start * depth, element)
            self.multiply(f, at, depth * strip, plain)
            to = f.at(job.pointer("dq"), (query + start) * depth, element)
            f.call(self.turn, None, [at, to, depth, queries, size, depth])

        self.each_strip(f, count, finish)


_ITEMS: dict[str, Callable[[str, int], Callable[[Emitter, Record, Value, Value], None]]] = {
    "attend": lambda *given: _Strips(*given).forward,
    "attend_back": lambda *given: _Strips(*given).backward,
    "attend_few": lambda *given: FewQueries(*given).forward,
}
