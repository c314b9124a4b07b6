"""Attention of a few queries, as in decoding: each key and value is read once, at copy speed.

A strip of queries in the lanes would leave most lanes empty. So features stand in the lanes: a
score is the sum of a vector's lanes, and as many keys as there are lanes are summed up together, by
halving their number in each step; a value is a row, added to the result as often as its weight.

One task takes a head of keys, with all the queries that share it, and walks over the keys in blocks
that stay in the cache for the next query.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from funct.kernels.cpu.attention.strips import SOFTEST, Strips
from funct.kernels.llvm import I64, each
from funct.kernels.llvm.exponential import LN2, LOG2_E
from funct.kernels.llvm.functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from funct.kernels.cpu.record import Record
    from funct.kernels.llvm import Emitter, Value

__all__ = ["FEW", "FEW_KEYS", "FewQueries"]

FEW = 6  # queries of a head from which on strips are quicker
FEW_KEYS = 64  # of a block: the next query finds most of them in the first-level cache
_NEAR = 8  # keys at a time, whose addresses fit into registers
_CHUNK = 4  # vectors of a key at a time,
_SUMS = 8  # and of a result, so that none waits for the sum before


class FewQueries(Strips):
    """Prints the kernel of one dtype.

    Room of a query: itself, its result, the largest score and the sum of weights, each in all or
    over the lanes of a vector; behind those of all queries the scores of a block.
    """

    def forward(self, f: Emitter, job: Record, item: Value, room: Value) -> None:
        """One task: the queries that share a head of keys."""
        element, lanes = self.element, self.lanes
        queries, depth, width = job.queries, job.depth, job.width
        size = job.depth_padded + job.width_padded + 2 * lanes
        scores = f.at(room, job.group * queries * size, element)
        scale = self.number(f, job, 0)

        def each_query(body: Callable[[Record, Value, Value], None]) -> None:
            """body(its head, its number, its room)."""

            def member(m: Value) -> None:
                head = self.head(f, job, item * job.group + m)

                def query(t: Value) -> None:
                    body(head, t, f.at(room, (m * queries + t) * size, element))

                each(f, 0, queries, query)

            each(f, 0, job.group, member)

        def parts(own: Value) -> tuple[Value, Value, Value]:
            """Where result, largest score and sum of a query are."""
            result = f.at(own, job.depth_padded, element)
            top = f.at(result, job.width_padded, element)
            return result, top, f.at(top, lanes, element)

        def begin(head: Record, t: Value, own: Value) -> None:
            result, top, total = parts(own)
            q = self.pointer(f, job, "q", head.q + t * job.q_row)

            def scaled(d: Value) -> None:
                x = f.load(self.vector, f.at(q, d, element), f.first_lanes(lanes, depth - d))
                f.store(x * scale, f.at(own, d, element))

            each(f, 0, depth, scaled, lanes)
            self.fill(f, result, job.width_padded, 0)
            f.store(f.constant(self.vector, SOFTEST[element]), top)
            f.store(f.constant(self.vector, 0), total)

        def block(key: Value) -> None:
            count = f.min(job.keys - key, FEW_KEYS)

            def one(head: Record, t: Value, own: Value) -> None:
                seen = f.select(f.ne(job.causal, 0), f.min(count, t + 1 - key), count)
                f.when(seen > 0, lambda: some(head, t, own, seen))

            def some(head: Record, t: Value, own: Value, seen: Value) -> None:
                result, top, total = parts(own)
                k = self.pointer(f, job, "k", head.k + key * job.k_row)
                v = self.pointer(f, job, "v", head.v + key * job.v_row)
                by_query = f.select(f.eq(job.mask_kind, 1), t * job.mask_row, 0)
                mask = self.pointer(f, job, "mask", head.mask + by_query + key)
                before = f.load(self.vector, top)
                most = self._score(f, job, own, k, mask, scores, seen, before)
                factor = self.power(f, before - most)
                more = self._weigh(f, scores, seen, most)
                f.store(most, top)
                f.store(f.fma(f.load(self.vector, total), factor, more), total)
                self._add(f, job, v, scores, seen, result, factor)

            each_query(one)

        def finish(head: Record, t: Value, own: Value) -> None:
            result, top, total = parts(own)
            whole = f.reduce(f.load(self.vector, total), f.add)
            whole = f.splat(whole, lanes)
            share = f.select(whole > 0, 1 / whole, whole * 0)
            row = head.index * queries + t
            o = f.at(job.pointer("o"), row * width, element)

            def divided(d: Value) -> None:
                x = f.load(self.vector, f.at(result, d, element)) * share
                f.store(x, f.at(o, d, element), f.first_lanes(lanes, width - d))

            each(f, 0, width, divided, lanes)
            log = (f.load(self.vector, top) + FUNCTIONS["log2"](f, whole)) * float(LN2)
            log = f.select(f.eq(whole, 0), float("inf"), log)
            f.store(f.extract(log, 0), f.at(job.pointer("lse"), row, element))

        each_query(begin)
        each(f, 0, job.keys, block, FEW_KEYS)
        each_query(finish)

    def _score(
        self, f: Emitter, job: Record, q: Value, k: Value, mask: Value, scores: Value, seen: Value,
        before: Value,
    ) -> Value:  # fmt: skip
        """Write the scores of a block, -inf behind the last; the largest so far, in all lanes."""
        element, lanes = self.element, self.lanes
        times = f.constant(self.vector, float(LOG2_E))

        def keys(j: Value, held: list[Value]) -> list[Value]:
            sums = [
                s for start in range(0, lanes, _NEAR)
                for s in self._products(f, job, q, k, j + start, seen)
            ]  # fmt: skip
            there = f.first_lanes(lanes, seen - j)
            product = self._sums(f, sums)

            def masked() -> list[Value]:
                added = f.load(self.vector, f.at(mask, j, element), there)
                return [f.fma(added, times, product)]

            (score,) = f.branch(f.ne(job.mask_kind, 0), masked, lambda: [product])
            score = f.select(there, score, float("-inf"))
            f.store(score, f.at(scores, j, element))
            return [f.max(score, held[0])]

        (most,) = f.loop(0, seen, lanes, keys, [before])
        return f.splat(f.reduce(most, f.max), lanes)

    def _products(
        self, f: Emitter, job: Record, q: Value, k: Value, j: Value, seen: Value
    ) -> list[Value]:
        """For a few keys from the j-th on the products with the query, over the lanes."""
        element, lanes = self.element, self.lanes
        last, near = seen - 1, min(_NEAR, lanes)
        rows = [f.at(k, f.min(j + i, last) * job.k_row, element) for i in range(near)]
        whole, many = job.depth & -lanes, job.depth & -(_CHUNK * lanes)

        def step(d: Value, held: list[Value], mask: Value | None = None) -> list[Value]:
            x = f.load(self.vector, f.at(q, d, element))
            return [
                f.fma(f.load(self.vector, f.at(row, d, element), mask), x, s)
                for row, s in zip(rows, held)
            ]

        def chunk(d: Value, held: list[Value]) -> list[Value]:
            xs = [f.load(self.vector, f.at(q, d + i * lanes, element)) for i in range(_CHUNK)]
            sums = []
            for row, s in zip(rows, held):  # as it lies in memory, which is foreseen then
                for i, x in enumerate(xs):
                    s = f.fma(f.load(self.vector, f.at(row, d + i * lanes, element)), x, s)
                sums.append(s)
            return sums

        zeros = [f.constant(self.vector, 0)] * near
        sums = f.loop(0, many, _CHUNK * lanes, chunk, zeros, maybe_empty=True)
        sums = f.loop(many, whole, lanes, step, sums, maybe_empty=True)
        return f.branch(
            whole < job.depth,
            lambda: step(whole, sums, f.first_lanes(lanes, job.depth - whole)),
            lambda: sums,
        )

    def _sums(self, f: Emitter, rows: list[Value]) -> Value:
        """Lane i: the sum of all lanes of the i-th of as many vectors as there are lanes."""
        lanes, apart = range(self.lanes), 1
        while len(rows) > 1:
            low = [i - apart + self.lanes if i & apart else i for i in lanes]
            high = [i + self.lanes if i & apart else i + apart for i in lanes]
            pairs = zip(rows[::2], rows[1::2])
            rows = [f.shuffle(a, b, low) + f.shuffle(a, b, high) for a, b in pairs]
            apart *= 2
        return rows[0]

    def _weigh(self, f: Emitter, scores: Value, seen: Value, most: Value) -> Value:
        """Scores to weights; their sum over the lanes."""

        def some(j: Value, held: list[Value]) -> list[Value]:
            place = f.at(scores, j, self.element)
            p = self.power(f, f.load(self.vector, place) - most)
            f.store(p, place)
            return [held[0] + p]

        return f.loop(0, seen, self.lanes, some, [f.constant(self.vector, 0)])[0]

    def _add(
        self, f: Emitter, job: Record, v: Value, weights: Value, seen: Value, result: Value,
        factor: Value,
    ) -> None:  # fmt: skip
        """Add the values by their weights to the result, times the factor."""
        element, lanes = self.element, self.lanes

        def chunk(d: Value, vectors: int, mask: Value | None = None) -> None:
            place, column = f.at(result, d, element), f.at(v, d, element)

            def one(j: Value, held: list[Value]) -> list[Value]:
                p = f.splat(f.load(self.vector.scalar, f.at(weights, j, element)), lanes)
                row = f.at(column, j * job.v_row, element)
                return [
                    f.fma(p, f.load(self.vector, f.at(row, i * lanes, element), mask), s)
                    for i, s in enumerate(held)
                ]

            start = [self.load(f, place, i) * factor for i in range(vectors)]
            for i, x in enumerate(f.loop(0, seen, 1, one, start)):
                self.store(f, x, place, i)

        whole, start = job.width & -lanes, f.constant(I64, 0)
        for vectors in (_SUMS, _CHUNK, 1):
            stop = whole - f.rem(whole - start, vectors * lanes)
            each(f, start, stop, functools.partial(chunk, vectors=vectors), vectors * lanes)
            start = stop
        left = f.first_lanes(lanes, job.width - whole)
        f.when(whole < job.width, lambda: chunk(whole, 1, left))
