"""Print kernels of the Loop IR as LLVM text: `void kernel(ptr frame, i64 task)`.

Rows are walked in vectors of the host's width, a few at a time, and what is left over under a mask.
No product is contracted with a sum: an elementwise op has the bits that NumPy gives it. A sum along
a row has as many running sums as there are lanes, added up in halves.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from funct.compile.loops import Constant, Kernel, Load, Op, Reduce, available
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

__all__ = ["print_combine", "print_kernel"]

_UNROLLED_COST = 48  # a step of more than that is long enough by itself
_KEPT_COST = 8  # what costs more is kept for the passes to come, not computed again
_PIECE = 4096  # columns whose sums are added up before they join the row's


def print_kernel(module: Module, name: str, kernel: Kernel) -> None:
    """Add the kernel to a module as a function of that name."""
    _Printer(module, name, kernel).run()


class _Printer:
    """One kernel as it is printed."""

    def __init__(self, module: Module, name: str, kernel: Kernel) -> None:
        self.k = kernel
        self.f: Emitter = module.function(name, [("frame", PTR), ("task", I64)])
        self.frame, self.task = self.f.arguments
        self.access_slots, self.barrier_slots, _ = kernel.slots()
        self.first = available(kernel)
        self.lanes = _lanes(module, kernel)
        self.barrier_at = dict(zip(kernel.barriers, self.barrier_slots, strict=True))
        self.stored = dict(kernel.stores)
        self.rows: dict[int, Value] = {}  # row values of the row that is being walked
        self.base: dict[int, Value] = {}  # where each access stands in it
        self.partial: dict[int, Value] = {}  # where the task's partial results are
        self.room: dict[int, Value] = {}  # rows of values that are kept
        self.kept = self._kept() if kernel.kept else set()

    # The whole

    def run(self) -> None:
        """Print the function."""
        f = self.f
        rows, self.columns, block = self.word(0), self.word(1), self.word(2)
        start = self.task * block
        total = self.columns if self.k.flat else rows
        stop = f.intrinsic("smin", start + block, total)
        for n in sorted(self.kept):
            text = typed(_memory(self.k.values[n].element)).text
            self.room[n] = f.emit(PTR, f"alloca {text}, {self.columns!r}, align 64", pure=False)
        self._open_barriers()
        if self.k.flat:
            self._place_accesses(None)
            self._pass(0, start, stop)
        else:
            f.loop(start, stop, 1, self._row)
        f.ret()

    def _row(self, row: Value, _: list[Value]) -> list[Value]:
        self.rows = {}
        self._place_accesses(row)
        f, k = self.f, self.k
        for p in range(max(self.first, default=0) + 1):
            if any(self._in_pass(n) == p for n in range(len(k.values)) if self._is_root(n)):
                self._pass(p, f.constant(I64, 0), self.columns)
        for n, a in k.stores:
            if k.values[n].kind == "row":
                self._store_row(n, a)
        for n in k.barriers:
            v = k.values[n]
            assert isinstance(v, Reduce)
            if v.over == "all" and k.values[v.operand].kind == "row":
                self._add_to_partial(n, v, self._convert(self.row(v.operand), v.element))
        return []

    def word(self, slot: int) -> Value:
        """A word of the frame."""
        return self.f.load(I64, self.f.at(self.frame, slot, "i64"))

    def _pointer(self, slot: int) -> Value:
        return self.f.load(PTR, self.f.at(self.frame, slot, "i64"))

    # Addresses

    def _place_accesses(self, row: Value | None) -> None:
        f = self.f
        for a, (access, slot) in enumerate(zip(self.k.accesses, self.access_slots, strict=True)):
            pointer = self._pointer(slot)
            slot += 1 + (access.inner == "some")
            for divided, wrapped in access.terms:
                assert row is not None, "a flat kernel has one row"
                stride = self.word(slot)
                index, slot = row, slot + 1
                if divided:
                    index, slot = f.div(index, self.word(slot)), slot + 1
                if wrapped:
                    index, slot = f.rem(index, self.word(slot)), slot + 1
                pointer = f.at(pointer, index * stride, _memory(access.element))
            self.base[a] = pointer

    def _address(self, a: int, column: Value) -> Value:
        return self.f.at(self.base[a], column, _memory(self.k.accesses[a].element))

    # Row values

    def row(self, n: int) -> Value:
        """A value that the whole row shares, as a scalar."""
        stack = [n]
        while stack:  # chains may be longer than Python's stack
            v = self.k.values[stack[-1]]
            missing = [o for o in v.operands if o not in self.rows] if isinstance(v, Op) else []
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
                return self._read(v.element, self.base[v.access], 1, None)
            case Op():
                return self._apply(v, [self.rows[o] for o in v.operands])
        raise AssertionError("a reduction is known once its pass is over")

    def _store_row(self, n: int, a: int) -> None:
        self._write(self.row(n), self.base[a], None)

    # Passes

    def _in_pass(self, n: int) -> int:
        v = self.k.values[n]
        return self.first[n] - (isinstance(v, Reduce) and v.over == "row")

    def _is_root(self, n: int) -> bool:
        """Whether a pass is there for the value's sake: it is stored, or reduced."""
        v = self.k.values[n]
        if isinstance(v, Reduce):
            return not (v.over == "all" and self.k.values[v.operand].kind == "row")
        return v.kind == "full" and n in self.stored

    def _roots(self, p: int) -> list[int]:
        return [n for n in range(len(self.k.values)) if self._is_root(n) and self._in_pass(n) == p]

    def _kept(self) -> set[int]:
        """Costly full values that later passes need as well and that are stored nowhere."""
        k, kept = self.k, set()
        seen_in: dict[int, int] = {}
        for p in range(max(self.first, default=0) + 1):
            stack, seen = list(self._roots(p)), set()
            while stack:
                n = stack.pop()
                v = k.values[n]
                if n in seen or (v.kind == "row" and not isinstance(v, Reduce)):
                    continue
                seen.add(n)
                if isinstance(v, Reduce):
                    if self._in_pass(n) == p and n in self._roots(p):
                        stack.append(v.operand)
                    continue
                if seen_in.setdefault(n, p) < p:
                    if n in self.stored or n in kept:
                        continue
                    if isinstance(v, Op) and v.printing.cost >= _KEPT_COST:
                        kept.add(n)
                        continue
                if isinstance(v, Op):
                    stack += v.operands
        return kept

    def _pass(self, p: int, start: Value, stop: Value) -> None:
        f, k = self.f, self.k
        roots = self._roots(p)
        needed = self._needed(roots, p)
        for n in needed:  # before the loop: these are the row's
            if k.values[n].kind == "row":
                f.splat(self.row(n), self.lanes)
        sums = [n for n in roots if self._accumulates(n)]
        cost = sum(self._cost(n) for n in needed)
        unroll = k.unroll or (1 if cost > _UNROLLED_COST else 4 if sums and cost < 12 else 2)
        step = unroll * self.lanes
        neutral = [self._neutral(n) for n in sums]

        def whole(column: Value, carried: list[Value]) -> list[Value]:
            out = list(carried)
            for q in range(unroll):
                at = f.add(column, q * self.lanes) if q else column
                self._step(p, roots, sums, needed, at, None, out, q * len(sums))
            return out

        def masked(column: Value, carried: list[Value]) -> list[Value]:
            out = list(carried)
            mask = f.first_lanes(self.lanes, stop - column)
            self._step(p, roots, sums, needed, column, mask, out, 0)
            return out

        if k.even:
            found = f.loop(start, stop, step, whole, neutral * unroll)
            found = self._merge(sums, found)
        else:
            bulk = start + (stop - start & -step)
            found = f.loop(start, bulk, step, whole, neutral * unroll, maybe_empty=True)
            found = self._merge(sums, found)
            found = f.loop(bulk, stop, self.lanes, masked, found, maybe_empty=True)
        for n, x in zip(sums, found, strict=True):
            v = k.values[n]
            assert isinstance(v, Reduce)
            total = f.reduce(x, functools.partial(_combine, f, v.how))
            if v.over == "row":
                self.rows[n] = total
            else:
                self._add_to_partial(n, v, total)

    def _merge(self, sums: list[int], found: list[Value]) -> list[Value]:
        """The unrolled steps' running results in one for each reduction."""
        many = [found[i :: len(sums)] for i in range(len(sums))]
        for i, n in enumerate(sums):
            v = self.k.values[n]
            assert isinstance(v, Reduce)
            while len(many[i]) > 1:
                pairs = zip(many[i][::2], many[i][1::2], strict=True)
                many[i] = [_combine(self.f, v.how, a, b) for a, b in pairs]
        return [m[0] for m in many]

    def _needed(self, roots: list[int], p: int) -> list[int]:
        """What the roots of a pass are computed from, in order; reductions of earlier passes end
        the search.
        """
        found: set[int] = set()
        stack = []
        for n in roots:
            v = self.k.values[n]
            stack.append(v.operand if isinstance(v, Reduce) else n)
        while stack:
            n = stack.pop()
            if n in found:
                continue
            found.add(n)
            v = self.k.values[n]
            if isinstance(v, Op) and v.kind == "full" and not self._known_before(n, p):
                stack += v.operands
        return sorted(found)

    def _known_before(self, n: int, p: int) -> bool:
        return self.first[n] < p and (n in self.stored or n in self.kept)

    def _cost(self, n: int) -> int:
        v = self.k.values[n]
        return v.printing.cost if isinstance(v, Op) and v.kind == "full" else 0

    def _accumulates(self, n: int) -> bool:
        v = self.k.values[n]
        return isinstance(v, Reduce) and v.over in ("row", "all")

    def _step(
        self,
        p: int,
        roots: list[int],
        sums: list[int],
        needed: list[int],
        column: Value,
        mask: Value | None,
        carried: list[Value],
        place: int,
    ) -> None:
        """One vector of columns."""
        f, k = self.f, self.k
        memo: dict[int, Value] = {}
        for n in needed:  # operands stand before what is made of them
            memo[n] = self._full(n, p, column, mask, memo)
        for n in roots:
            v = k.values[n]
            if not isinstance(v, Reduce):
                self._write(memo[n], self._address(self.stored[n], column), mask)
                continue
            x = self._convert(memo[v.operand], v.element)
            if v.over == "column":
                address = f.at(self.partial[n], column, _memory(v.element))
                held = self._read(v.element, address, self.lanes, mask)
                self._write(_combine(f, v.how, held, x), address, mask)
                continue
            if mask is not None:
                x = f.select(mask, x, self._neutral(n))
            at = place + sums.index(n)
            carried[at] = _combine(f, v.how, carried[at], x)

    def _full(
        self, n: int, p: int, column: Value, mask: Value | None, memo: dict[int, Value]
    ) -> Value:
        f, v = self.f, self.k.values[n]
        if v.kind == "row":
            return f.splat(self.row(n), self.lanes)
        if isinstance(v, Load):
            access = self.k.accesses[v.access]
            if access.inner == "some":
                return self._strided(v, column, mask)
            return self._read(v.element, self._address(v.access, column), self.lanes, mask)
        assert isinstance(v, Op), "reductions are row values"
        if self._known_before(n, p):
            if n in self.kept:
                address = f.at(self.room[n], column, _memory(v.element))
            else:
                address = self._address(self.stored[n], column)
            return self._read(v.element, address, self.lanes, mask)
        x = self._apply(v, [memo[o] for o in v.operands])
        if n in self.kept:
            self._write(x, f.at(self.room[n], column, _memory(v.element)), mask)
        return x

    def _strided(self, v: Load, column: Value, mask: Value | None) -> Value:
        f = self.f
        stride = self.word(self.access_slots[v.access] + 1)
        lanes = typed("i64", self.lanes)
        index = f.splat(column, self.lanes) + f.lanes(lanes)
        if mask is not None:
            index = f.select(mask, index, f.constant(lanes, 0))
        index = index * f.splat(stride, self.lanes)
        element = _memory(v.element)
        x = f.gather(typed(element, self.lanes), f.at(self.base[v.access], index, element))
        return f.convert(x, "i1") if v.element == "i1" else x

    # Memory: a mask is a byte there

    def _read(self, element: str, address: Value, lanes: int, mask: Value | None) -> Value:
        x = self.f.load(typed(_memory(element), lanes), address, mask)
        return self.f.convert(x, "i1") if element == "i1" else x

    def _write(self, x: Value, address: Value, mask: Value | None) -> None:
        if x.type.element == "i1":
            x = self.f.convert(x, "u8")
        self.f.store(x, address, mask)

    # Scalars

    def _convert(self, x: Value, element: str) -> Value:
        return self.f.convert(x, element)

    def _apply(self, v: Op, operands: list[Value]) -> Value:
        given: list[Any] = [
            self._convert(x, e) if e else x for x, e in zip(operands, v.elements, strict=True)
        ]
        x: Value = v.printing.emit(self.f, *given, *v.params)
        return self._convert(x, v.element)

    # Reductions

    def _neutral(self, n: int) -> Value:
        v = self.k.values[n]
        assert isinstance(v, Reduce)
        return self.f.constant(typed(v.element, self.lanes), neutral(v.how, v.element))

    def _open_barriers(self) -> None:
        """Where this task's partial results stand, set to what changes nothing."""
        f = self.f
        for n, slot in self.barrier_at.items():
            v = self.k.values[n]
            assert isinstance(v, Reduce)
            element = _memory(v.element)
            wide = v.over == "column"
            first = self.task * self.columns if wide else self.task
            start = self.partial[n] = f.at(self._pointer(slot), first, element)
            zero = f.constant(typed(v.element), neutral(v.how, v.element))
            if not wide:
                self._write(zero, start, None)
                continue

            def clear(
                column: Value, _: list[Value], start: Value = start, zero: Value = zero
            ) -> list[Value]:
                self._write(zero, f.at(start, column, _memory(zero.type.element)), None)
                return []

            f.loop(0, self.columns, 1, clear)

    def _add_to_partial(self, n: int, v: Reduce, x: Value) -> None:
        held = self._read(v.element, self.partial[n], 1, None)
        self._write(_combine(self.f, v.how, held, x), self.partial[n], None)


def print_combine(module: Module, name: str, how: str, element: str) -> None:
    """Add the kernel that combines partial results, column by column, in the order of tasks.

    Its frame: partial results, result, how many of them, columns, columns of one task.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    parts, result = (f.load(PTR, f.at(frame, k, "i64")) for k in (0, 1))
    count, columns, block = (f.load(I64, f.at(frame, k, "i64")) for k in (2, 3, 4))
    start = task * block
    stop = f.intrinsic("smin", start + block, columns)
    memory = _memory(element)
    wide = "f64" if element == "f32" and how == "sum" else element  # few, and added exactly enough

    def read(address: Value) -> Value:
        x = f.load(typed(memory), address)
        return f.convert(f.convert(x, element), wide)

    def column(j: Value, _: list[Value]) -> list[Value]:
        def part(i: Value, held: list[Value]) -> list[Value]:
            return [_combine(f, how, held[0], read(f.at(parts, i * columns + j, memory)))]

        (total,) = f.loop(1, count, 1, part, [read(f.at(parts, j, memory))], maybe_empty=True)
        total = f.convert(total, element)
        if element == "i1":
            total = f.convert(total, "u8")
        f.store(total, f.at(result, j, memory))
        return []

    f.loop(start, stop, 1, column)
    f.ret()


def neutral(how: str, element: str) -> float | int:
    """What a reduction starts from."""
    if how in ("sum", "any"):
        return 0
    if how in ("prod", "all"):
        return 1
    least = how == "max"  # what every number is at least
    if element in ("f32", "f64"):
        return -math.inf if least else math.inf
    if element == "i1":
        return 0 if least else 1
    bits = int(element[1:])
    low, high = (
        (-(1 << bits - 1), (1 << bits - 1) - 1) if element[0] == "i" else (0, (1 << bits) - 1)
    )
    return low if least else high


def _combine(f: Emitter, how: str, x: Value, y: Value) -> Value:
    if x.type.element == "i1":
        return x | y if how in ("any", "max", "sum") else x & y
    match how:
        case "sum":
            return x + y
        case "prod":
            return x * y
        case "max":
            return f.maximum(x, y)
    return f.minimum(x, y)


def _memory(element: str) -> str:
    return "u8" if element == "i1" else element


def _lanes(module: Module, kernel: Kernel) -> int:
    """Elements of a vector: as many floats as a register holds, or integers if there are none."""
    elements = {v.element for v in kernel.values if v.kind == "full"} or {"f64"}
    elements |= {v.element for v in kernel.values if isinstance(v, Reduce)}
    sizes = {e: typed(_memory(e)).bytes for e in elements}
    floats = [n for e, n in sizes.items() if e in ("f32", "f64")]
    return max(2, module.target.vector_bytes // max(floats or [max(4, *sizes.values())]))
