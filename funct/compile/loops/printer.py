"""Print kernels of the Loop IR as LLVM text: `void kernel(ptr frame, i64 task)`.

Rows are walked in vectors of a few of the host's registers, so that one instruction need not wait
for another, and what is left over in vectors of one register, under a mask.
No product is contracted with a sum: an elementwise op has the bits that NumPy gives it. A sum along
a row has as many running sums as its vectors have lanes, added up in halves.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from typing import Any

from funct.compile.loops.barriers import Barriers, Widths, are_abreast
from funct.compile.loops.kernel import (
    CONTROL_WORDS,
    Constant,
    Expression,
    Kernel,
    Load,
    Op,
    Reduce,
)
from funct.compile.loops.passes import STRIP, Pass, passes
from funct.compile.loops.places import Places
from funct.compile.loops.reductions import combine, in_memory, read, write
from funct.compile.loops.weaving import write_woven
from funct.compile.loops.widths import lanes_of, registers
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

__all__ = ["print_kernel"]

_DEAR = 8  # of an op, in additions: its text is longer than a call
_OFTEN = 3  # such ops of a kind


def print_kernel(module: Module, name: str, kernel: Kernel) -> None:
    """Add the kernel to a module as a function of that name."""
    _Printer(module, name, kernel).run()


class _Printer(Barriers):
    """One kernel as it is printed."""

    def __init__(self, module: Module, name: str, kernel: Kernel) -> None:
        f: Emitter = module.function(name, [("frame", PTR), ("task", I64)])
        frame, task = f.arguments
        self.space: Value | None = None
        if kernel.looks or kernel.warns:
            self.space = f.load(PTR, frame)
            frame = f.at(frame, CONTROL_WORDS, "i64")
        super().__init__(f, kernel, frame, task)
        self.passes = passes(kernel)
        self.lanes = lanes_of(kernel.values, module.target.vector_bytes)
        self.places = Places(self.f, kernel, self.frame, self.lanes, self.space)
        self.stored = dict(kernel.stores)
        self.once = self._alike() if kernel.flat and kernel.widest == 1 else frozenset()
        self.rows: dict[int, Value] = {}  # row values of the row that is being walked
        self.room: dict[int, Value] = {}  # rows of values that are kept
        self.strip: Value | None = None  # the column at which they begin, if not the first
        self.streams = self._streams()
        self.passing: Value | None = None  # whether those of this row may and should
        self.ahead: dict[int, Value] = {}  # where the next row's elements are

    # The whole

    def run(self) -> None:
        """Print the function."""
        f = self.f
        rows, self.columns, block = self.f.words(self.frame, 0, 3)
        start = self.task * block
        total = self.columns if self.k.flat or self.k.across else rows
        stop = f.intrinsic("smin", start + block, total)
        length = f.constant(I64, STRIP) if self.passes.staged else self.columns
        for n in sorted(self.passes.kept):
            text = typed(in_memory(self.k.values[n].element)).text
            self.room[n] = f.emit(PTR, f"alloca {text}, {length!r}, align 64", pure=False)
        self.open_barriers()
        self.start = start
        if self.k.flat:
            self._place_accesses(None)
            if self.passes.staged:
                f.loop(start, stop, STRIP, functools.partial(self._strip, stop))
            else:
                for walk in self.passes.walks:
                    self._pass(walk, start, stop)
        elif are_abreast(self.k, self.passes):
            none = f.constant(I64, 0)
            across = (none, rows), (start, stop)
            self._abreast(*(across if self.k.across else ((start, stop), (none, self.columns))))
        else:
            f.loop(start, stop, 1, self._row)
        if self.streams:
            f.line("fence seq_cst")  # such writes wait for no others
        f.ret()

    def _row(self, row: Value, _: list[Value]) -> list[Value]:
        f, k = self.f, self.k
        self.rows = {}
        self._place_accesses(row)
        self.place_partials(row)
        self.ahead = {a: self.places.at(a, row + 1) for a in self._fetched()}
        for walk in self.passes.walks:
            self._pass(walk, f.constant(I64, 0), self.columns)
        for n, a in k.stores:
            if k.values[n].kind == "row":
                self._store_row(n, a)
        for n in k.barriers:
            v = k.values[n]
            assert isinstance(v, Reduce)
            if v.over == "all" and k.values[v.operand].kind == "row":
                self.add_to_partial(n, self.f.convert(self.row(v.operand), v.element))
        return []

    def _abreast(self, rows: tuple[Value, Value], columns: tuple[Value, Value]) -> None:
        """The walk along strips of columns."""
        (walk,) = self.passes.walks
        sums = list(self.barrier_at)

        def step(
            row: Value, column: Value, lanes: int, mask: Value | None, held: list[Value]
        ) -> list[Value]:
            self.rows = {}
            self._place_accesses(row)
            for n in walk.needed:
                self._look(n)
            return self._step(walk, sums, column, lanes, mask, held)

        self.places.move_to(rows[0])  # words of the frame are read before the loops
        self.abreast(rows, columns, self._widths(walk, sums), step)

    def _strip(self, stop: Value, start: Value, _: list[Value]) -> list[Value]:
        """All stages of a few elements of a flat row."""
        end = self.f.intrinsic("smin", start + STRIP, stop)
        self.strip = start
        for walk in self.passes.walks:
            self._pass(walk, start, end)
        return []

    def _alike(self) -> frozenset[Any]:
        """How the dear functions of a float are printed that the kernel has several of: on a few
        elements a call costs less than code for each of them, which is read once or twice.
        """
        ops = [v for v in self.k.values if isinstance(v, Op) and v.kind == "full"]
        dear = [
            v.printing
            for v in ops
            if v.printing.cost >= _DEAR and not v.params and v.elements == (v.element,)
        ]
        return frozenset(p for p, n in Counter(dear).items() if n >= _OFTEN)

    # Addresses

    def _place_accesses(self, row: Value | None) -> None:
        f = self.f
        self.places.move_to(row)
        if self.streams:
            base = self.places.base
            places = [base[self.stored[n]] for n in self.streams]
            pairs = itertools.product(places, [base[a] for a in self._full_loads()])
            # what was read where it is written is in a cache
            apart = [f.ne(p, q) for p, q in pairs]
            self.passing = functools.reduce(f.bitand, apart, f.aligned(places))

    # Row values

    def row(self, n: int) -> Value:
        """A value that the whole row shares, as a scalar."""
        stack = [n]
        while stack:  # chains may be longer than Python's stack
            missing = [o for o in self.k.operands(stack[-1]) if o not in self.rows]
            if missing:
                stack += missing
                continue
            m = stack.pop()
            if m not in self.rows:
                self.rows[m] = self._row_value(m)
        return self.rows[n]

    def _row_value(self, n: int) -> Value:
        f, v = self.f, self.k.values[n]
        match v:
            case Constant():
                return f.constant(typed(v.element), v.number)
            case Load():
                self._look(n)
                return self.places.only(v.access)
            case Op(may_refuse=True):
                return self.places.on_axis(self.rows[v.operands[0]], v.params[0], v.element, None)
            case Op():
                return v.of(self.f, [self.rows[o] for o in v.operands], self.space)
        raise AssertionError("a reduction is known once its pass is over")

    def _look(self, n: int) -> None:
        """Let what is read stand where the row's index is, if it has one."""
        v, operands = self.k.values[n], self.k.operands(n)
        if isinstance(v, Load) and operands and self.k.values[operands[0]].kind == "row":
            self.places.look(v.access, self.row(operands[0]))

    def _store_row(self, n: int, a: int) -> None:
        write(self.f, self.row(n), self.places.base[a], None)

    # Passes

    def _pass(self, walk: Pass, start: Value, stop: Value) -> None:
        f, k = self.f, self.k
        roots, needed = walk.roots, walk.needed
        sums = [n for n in roots if self._accumulates(n)]
        widths = self._widths(walk, sums)
        wide, rest = widths.wide, widths.rest > 0
        for n in needed:  # before the loops: these are the row's
            for lanes in sorted({wide, self.lanes if rest else wide}):
                if k.values[n].kind == "row":
                    f.splat(self.row(n), lanes)
            self._look(n)
            for lanes in sorted({wide, self.lanes if rest else wide}):
                self.places.prepare(n, lanes)

        def whole(lanes: int, column: Value, carried: list[Value]) -> list[Value]:
            return self._step(walk, sums, column, lanes, None, carried)

        def masked(column: Value, carried: list[Value]) -> list[Value]:
            mask = f.first_lanes(self.lanes, stop - column)
            return self._step(walk, sums, column, self.lanes, mask, carried)

        found = [self.neutral(n, wide) for n in sums]
        if not rest or wide > self.lanes:
            bulk = start + (stop - start & -wide) if rest else stop
            found = f.loop(
                start, bulk, wide, functools.partial(whole, wide), found, maybe_empty=rest
            )
            found = [self._folded(n, x, self.lanes) for n, x in zip(sums, found, strict=True)]
            start = bulk
        if rest:
            last = functools.partial(whole, self.lanes) if k.even else masked
            found = f.loop(start, stop, self.lanes, last, found, maybe_empty=wide > self.lanes)
        for n, x in zip(sums, found, strict=True):
            v = k.values[n]
            assert isinstance(v, Reduce)
            total = self._folded(n, x, 1)
            if v.over == "row":
                self.rows[n] = total
            else:
                self.add_to_partial(n, total)

    def _widths(self, walk: Pass, sums: list[int]) -> Widths:
        """Of how many lanes the vectors of a walk are."""
        wide = self.lanes * registers(self.k, self.passes, walk, sums)
        rest = not self.k.even or self.lanes * self.k.even % wide > 0
        return Widths(wide, self.lanes * rest, not self.k.even)

    def _folded(self, n: int, x: Value, lanes: int) -> Value:
        """The running results of a reduction in no more than so many lanes."""
        v = self.k.values[n]
        assert isinstance(v, Reduce)
        return self.f.reduce(x, functools.partial(combine, self.f, v.how), lanes)

    @functools.cached_property
    def _busiest(self) -> Pass:
        """The walk with the most to compute."""
        return max(self.passes.walks, key=lambda w: sum(map(self._cost, set(w.needed) - w.known)))

    def _cost(self, n: int) -> int:
        return self.k.cost(n)

    def _accumulates(self, n: int) -> bool:
        v = self.k.values[n]
        return isinstance(v, Reduce) and v.over in ("row", "all")

    def _fetched(self) -> list[int]:
        """The accesses whose next row is brought near while this one is computed: a row is read
        at once and computed for long, and processors look ahead within pages only.
        """
        first = self.passes.walks[0]
        if self._busiest is first:
            return []
        loads = [v for n in first.needed if isinstance(v := self.k.values[n], Load)]
        found = [v.access for v in loads if v.kind == "full"]
        accesses = [(a, self.k.accesses[a]) for a in found]
        return [a for a, access in accesses if access.inner == "one" and access.look is None]

    def _step(
        self,
        walk: Pass,
        sums: list[int],
        column: Value,
        lanes: int,
        mask: Value | None,
        carried: list[Value],
    ) -> list[Value]:
        """One vector of columns."""
        f, k = self.f, self.k
        memo: dict[int, Value] = {}
        self.places.unwoven = {}
        for n in walk.needed:  # operands stand before what is made of them
            v = k.values[n]
            if not (isinstance(v, Op) and v.is_weave):
                memo[n] = self._full(n, n in walk.known, column, lanes, mask, memo)
        if walk is self._busiest:
            for a, row in self.ahead.items():
                f.prefetch(f.at(row, column, in_memory(k.accesses[a].element)))
        running = dict(zip(sums, carried, strict=True))
        self._write([n for n in walk.roots if n in self.stored], memo, column, mask)
        for n in walk.roots:
            v = k.values[n]
            if not isinstance(v, Reduce):
                continue
            x = f.convert(memo[v.operand], v.element)
            if n not in running:
                held, address = self.held(n, column, lanes, mask)
                write(f, combine(f, v.how, held, x), address, mask)
                continue
            if mask is not None:
                x = f.select(mask, x, self.neutral(n, lanes))
            running[n] = combine(f, v.how, running[n], x)
        return list(running.values())

    def _streams(self) -> list[int]:
        """The values that go past the caches: no later pass reads them from memory."""
        if not self.k.streamed:
            return []
        read_again = {n for walk in self.passes.walks for n in walk.known}
        return [
            n
            for n, a in self.k.stores
            if self.k.values[n].kind == "full"
            and n not in read_again
            and self.k.accesses[a].inner == "one"
        ]

    def _full_loads(self) -> list[int]:
        """The accesses by which rows of elements are read."""
        loads = [v for v in self.k.values if isinstance(v, Load) and v.kind == "full"]
        return [v.access for v in loads if self.k.accesses[v.access].look is None]

    def _write(
        self, stored: list[int], memo: dict[int, Value], column: Value, mask: Value | None
    ) -> None:
        """Put one vector of each of the values where it belongs."""
        f = self.f

        def put(values: list[int], streaming: bool) -> list[Value]:
            for n in values:
                v, a = self.k.values[n], self.stored[n]
                if isinstance(v, Op) and v.is_weave:
                    given = [memo[o] for o in v.operands]
                    write_woven(f, given, self.places.base[a], column, self.lanes, mask)
                else:
                    write(f, memo[n], self.places.address(a, column), mask, streaming=streaming)
            return []

        streams = [n for n in stored if n in self.streams and mask is None]
        put([n for n in stored if n not in streams], False)
        if streams:
            assert self.passing is not None, "known since the accesses have their places"
            f.branch(self.passing, lambda: put(streams, True), lambda: put(streams, False))

    def _full(
        self,
        n: int,
        known: bool,
        column: Value,
        lanes: int,
        mask: Value | None,
        memo: dict[int, Value],
    ) -> Value:
        f, v = self.f, self.k.values[n]
        if v.kind == "row":
            return f.splat(self.row(n), lanes)
        if known:
            if n in self.room:
                address = self._kept_at(n, column)
            else:
                address = self.places.address(self.stored[n], column)
            return read(f, v.element, address, lanes, mask)
        x = self._computed(v, self.k.operands(n), column, lanes, mask, memo)
        if n in self.room:
            write(f, x, self._kept_at(n, column), mask)
        return x

    def _computed(
        self,
        v: Expression,
        operands: tuple[int, ...],
        column: Value,
        lanes: int,
        mask: Value | None,
        memo: dict[int, Value],
    ) -> Value:
        if isinstance(v, Op) and v.may_refuse:
            return self.places.on_axis(memo[operands[0]], v.params[0], v.element, mask)
        if isinstance(v, Op):
            once = v.printing in self.once
            return v.of(self.f, [memo[o] for o in operands], self.space, mask, once=once)
        assert isinstance(v, Load), "reductions are row values"
        if any(self.k.values[o].kind == "full" for o in operands):
            return self.places.gathered(v.access, memo[operands[0]], column, mask)
        return self.places.vector(v, column, lanes, mask)

    def _kept_at(self, n: int, column: Value) -> Value:
        column = column if self.strip is None else column - self.strip
        return self.f.at(self.room[n], column, in_memory(self.k.values[n].element))
