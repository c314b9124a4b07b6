"""Loops whose body is one kernel over as many elements as are carried: the steps are innermost.

Each element goes through all steps by itself, so what is carried stays in registers, and a step
costs what it computes. The bits are those of the same kernel step by step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import attrs

from funct.compile.fuse import Fused
from funct.compile.groups import Group
from funct.compile.loops import Constant, Expression, Kernel, Load, Op, Reduce
from funct.compile.lower import Address, Call, Word, lower
from funct.compile.printer import lanes_of
from funct.compile.reductions import in_memory, read, write
from funct.compile.scalars import ELEMENTS, is_exact
from funct.graph import Node, Var
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

__all__ = ["Recurrence", "Recurrent", "print_recurrence", "recurrent"]

_MOST_COLUMNS = 2048  # steps of more stand too far apart in memory
_WORK = 1 << 14  # element-ops from which functions are our own: see worth.py
_BLOCK = 128  # columns of a task


@attrs.frozen
class Recurrence:
    """The code of such a loop. Operands are positions in `values`.

    sources: where each load comes from: "held" (the same at all steps), "carry", or "row" (of an
    x), with its number among those. wide: whether a held value or a row has an element for each
    column. carries, rows: what is carried on, and what is kept of each step. single: one column.
    """

    values: tuple[Expression, ...]
    sources: tuple[tuple[Literal["held", "carry", "row"], int], ...]
    wide: tuple[bool, ...]
    carries: tuple[int, ...]
    rows: tuple[int, ...]
    single: bool


@attrs.frozen(eq=False)
class Recurrent:
    """A body that is such a loop's. held: what the loads "held" read, in order."""

    recurrence: Recurrence
    held: tuple[Var, ...]
    xs: tuple[int, ...]  # numbers of the xs that are read
    columns: int
    exact: bool
    cost: int

    def pays(self, steps: int | None) -> bool:
        """Whether it is what the loop shall be: its functions are not NumPy's."""
        return self.exact or (steps is not None and steps * self.columns * self.cost >= _WORK)

    def call(
        self, inputs: dict[Var, Address], first: Sequence[Address], carried: Sequence[Address],
        xs: Sequence[tuple[Address, int]], ys: Sequence[tuple[Address, int]], head: Sequence[Word],
    ) -> Call:  # fmt: skip
        """The loop. head: steps, the address of a smaller number or 0, whether it goes back, the
        address of the number that was made or 0.
        """
        tasks = 1 if self.columns < 2 * _BLOCK else -(-self.columns // _BLOCK)
        words: list[Word] = [*head, self.columns, self.columns if tasks == 1 else _BLOCK]
        words += [inputs.get(v, Address(v)) for v in self.held]
        for a, b in zip(first, carried, strict=True):
            words += [a, b]
        for place, stride in (*[xs[j] for j in self.xs], *ys):
            words += [place, stride]
        writes = tuple([a.of for a in (*carried, *[y for y, _ in ys])])
        return Call(("recurrence", self.recurrence), tuple(words), tasks, writes)


def recurrent(fused: Fused, constants: int, carry: int) -> Recurrent | None:
    """A body `(*constants, *carry, *x) -> (*carry, *y)` as one; None where it is none."""
    carried = fused.graph.inputs[constants : constants + carry]
    columns = math.prod(carried[0].shape) if carry else 0
    if not 0 < columns <= _MOST_COLUMNS or any(math.prod(v.shape) != columns for v in carried):
        return None
    group = Group(columns)
    for s in fused.steps:
        if not isinstance(s, Group) or s.size != columns:
            return None
        for e in s.nodes:
            group.take(e)
    if not group.nodes:
        return None
    calls = lower(group, fused)
    kernel, words = calls[0].kernel, calls[0].words
    if len(calls) != 1 or calls[0].checks or not isinstance(kernel, Kernel) or not kernel.flat:
        return None
    if any(isinstance(v, Reduce) for v in kernel.values):
        return None
    if any(a.terms or a.inner == "some" for a in kernel.accesses):
        return None
    places = [w for w in words if isinstance(w, Address)]
    return _Finding(fused, constants, carry, kernel, places).run(columns)


class _Finding:
    """What the loads of a kernel are, and which values its outputs are."""

    def __init__(
        self, fused: Fused, constants: int, carry: int, kernel: Kernel, places: Sequence[Address]
    ) -> None:
        self.fused = fused
        self.graph = fused.graph
        self.split = constants, constants + carry
        self.kernel = kernel
        self.places = places
        self.values = list(kernel.values)
        self.sources: list[tuple[Any, int]] = []
        self.wide: list[bool] = []
        self.held: list[Var] = []
        self.xs: list[int] = []

    def run(self, columns: int) -> Recurrent | None:
        """The recurrence; None where something is no element of its column."""
        for n, v in enumerate(self.values):
            if isinstance(v, Load):
                place = self.places[v.access]
                root = place.of
                if place.offset or not isinstance(root, Var):
                    return None
                self.values[n] = attrs.evolve(v, access=self._source(root, v.kind == "full"))
        made = {self.places[a].of: n for n, a in self.kernel.stores}
        found = [self._output(v, made, columns) for v in self.graph.outputs]
        outputs = [n for n in found if n is not None]
        if len(outputs) < len(found):
            return None
        for (kind, _), wide in zip(self.sources, self.wide, strict=True):
            if kind == "carry" and not wide and columns > 1:
                return None
        carry = self.split[1] - self.split[0]
        spec = Recurrence(
            tuple(self.values), tuple(self.sources), tuple(self.wide), tuple(outputs[:carry]),
            tuple(outputs[carry:]), columns == 1,
        )  # fmt: skip
        nodes = [e for e in self.graph.nodes if isinstance(e, Node)]
        cost = sum([v.printing.cost for v in self.values if isinstance(v, Op)])
        return Recurrent(
            spec, tuple(self.held), tuple(self.xs), columns, all(map(is_exact, nodes)), cost
        )

    def _source(self, root: Var, wide: bool) -> int:
        low, high = self.split
        inputs = self.graph.inputs
        at = inputs.index(root) if root in inputs else -1
        if low <= at < high:
            source: tuple[Any, int] = "carry", at - low
        elif at >= high:
            if at - high not in self.xs:
                self.xs.append(at - high)
            source = "row", self.xs.index(at - high)
        else:
            if root not in self.held:
                self.held.append(root)
            source = "held", self.held.index(root)
        self.sources.append(source)
        self.wide.append(wide)
        return len(self.sources) - 1

    def _output(self, v: Var, made: dict[Any, int], columns: int) -> int | None:
        view = self.fused.views[v]
        if not view.is_dense or math.prod(v.shape) != columns or view.root.dtype != v.dtype:
            return None
        root = view.root
        if root in made:
            return made[root]
        if math.prod(root.shape) != columns:
            return None
        if root not in self.graph.inputs and root not in dict(self.graph.constants):
            return None
        load = Load(self._source(root, True), ELEMENTS[root.dtype], "full")
        self.values.append(load)
        return len(self.values) - 1


# The code


def print_recurrence(module: Module, name: str, r: Recurrence) -> None:
    """Add the kernel to a module as a function of that name."""
    _Printer(module, name, r).run()


class _Printer:
    """One recurrence as it is printed. The frame is what `Recurrent.call` puts together."""

    def __init__(self, module: Module, name: str, r: Recurrence) -> None:
        self.r = r
        self.f: Emitter = module.function(name, [("frame", PTR), ("task", I64)])
        self.frame, self.task = self.f.arguments
        self.lanes = 1 if r.single else lanes_of(module, r.values)
        held = max([k + 1 for kind, k in r.sources if kind == "held"], default=0)
        self.at_carries = _HEAD + held
        self.at_xs = self.at_carries + 2 * len(r.carries)
        self.at_ys = self.at_xs + 2 * max(
            [k + 1 for kind, k in r.sources if kind == "row"], default=0
        )
        self.still = self._still()

    def _still(self) -> list[int]:
        """The values that are the same at all steps."""
        found: list[int] = []
        for n, v in enumerate(self.r.values):
            match v:
                case Load():
                    same = self.r.sources[v.access][0] == "held"
                case Op():
                    same = all(o in found for o in v.operands)
                case _:
                    same = True
            if same:
                found.append(n)
        return found

    def run(self) -> None:
        """Print the function."""
        f = self.f
        self.back = f.ne(self._word(2), 0)
        self.n = f.branch(
            f.ne(self._word(1), 0),
            lambda: [f.load(I64, self._pointer(1))],
            lambda: [self._word(0)],
        )[0]
        f.when(f.ne(self._word(3), 0), lambda: f.store(self.n, self._pointer(3)))
        start = self.task * self._word(5)
        stop = f.intrinsic("smin", start + self._word(5), self._word(4))
        if self.r.single:
            self._columns(f.constant(I64, 0), 1, None)
        else:
            wide = 2 * self.lanes
            bulk = start + (stop - start & -wide)

            def whole(column: Value, _: list[Value]) -> list[Value]:
                self._columns(column, wide, None)
                return []

            def masked(column: Value, _: list[Value]) -> list[Value]:
                self._columns(column, self.lanes, f.first_lanes(self.lanes, stop - column))
                return []

            f.loop(start, bulk, wide, whole, maybe_empty=True)
            f.loop(bulk, stop, self.lanes, masked, maybe_empty=True)
        f.ret()

    def _word(self, slot: int) -> Value:
        return self.f.load(I64, self.f.at(self.frame, slot, "i64"))

    def _pointer(self, slot: int) -> Value:
        return self.f.load(PTR, self.f.at(self.frame, slot, "i64"))

    def _columns(self, column: Value, lanes: int, mask: Value | None) -> None:
        """All steps of so many columns."""
        f, r = self.f, self.r

        def there(slot: int, element: str, offset: Value | None = None) -> Value:
            place = self._pointer(slot)
            if offset is not None:
                place = f.at(place, offset, "u8")
            return f.at(place, column, in_memory(element))

        def loaded(v: Load, slot: int, offset: Value | None = None) -> Value:
            if r.wide[v.access] or r.single:
                return read(f, v.element, there(slot, v.element, offset), lanes, mask)
            place = self._pointer(slot)
            if offset is not None:
                place = f.at(place, offset, "u8")
            return f.splat(read(f, v.element, place, 1, None), lanes)

        def value(n: int, memo: dict[int, Value], carried: list[Value], row: Value | None) -> Value:
            v = r.values[n]
            match v:
                case Constant():
                    return f.splat(f.constant(typed(v.element), v.number), lanes)
                case Load():
                    kind, k = r.sources[v.access]
                    if kind == "carry":
                        return carried[k]
                    if kind == "held":
                        return loaded(v, _HEAD + k)
                    assert row is not None, "rows are read in steps"
                    slot = self.at_xs + 2 * k
                    return loaded(v, slot, row * self._word(slot + 1))
            assert isinstance(v, Op), "there are no reductions"
            return v.of(f, [memo[o] for o in v.operands])

        before: dict[int, Value] = {}
        for n in self.still:
            before[n] = value(n, before, [], None)
        elements = [r.values[n].element for n in r.carries]
        first = [
            read(f, e, there(self.at_carries + 2 * k, e), lanes, mask)
            for k, e in enumerate(elements)
        ]

        def step(s: Value, carried: list[Value]) -> list[Value]:
            row = f.select(self.back, self.n - 1 - s, s)
            memo = dict(before)
            for n in range(len(r.values)):
                if n not in memo:
                    memo[n] = value(n, memo, carried, row)
            for k, n in enumerate(r.rows):
                slot = self.at_ys + 2 * k
                offset = row * self._word(slot + 1)
                write(f, memo[n], there(slot, r.values[n].element, offset), mask)
            return [memo[n] for n in r.carries]

        last = f.loop(0, self.n, 1, step, first, maybe_empty=True)
        for k, (x, e) in enumerate(zip(last, elements, strict=True)):
            write(f, x, there(self.at_carries + 2 * k + 1, e), mask)


_HEAD = 6
