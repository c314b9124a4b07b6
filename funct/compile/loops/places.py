"""Where the accesses of a kernel stand in a row of its loops, and how their elements are read."""

from __future__ import annotations

import functools
import operator

from funct.compile.loops.each import read_each
from funct.compile.loops.kernel import Kernel, Load
from funct.compile.loops.reductions import in_memory, read
from funct.compile.loops.tables import called_up, in_vectors, inside, looked_up
from funct.compile.loops.weaving import read_woven
from funct.kernels.llvm import I64, Emitter, Value, typed

__all__ = ["Places"]


_OFTEN = 8  # look-ups of a kernel


class Places:
    """The accesses of a kernel as it is printed. width: lanes of one register. space: the workspace
    of a kernel that looks elements up.

    axes: of each that looks elements up, how far those of the axis are apart, and its length.
    base: where each stands in the row that is walked; inside: whether it has elements there, if it
    does not always; alone: the one element that it has in all columns, if it ends in between.
    """

    def __init__(
        self, f: Emitter, kernel: Kernel, frame: Value, width: int, space: Value | None
    ) -> None:
        self.f = f
        self.k = kernel
        self.frame = frame
        self.width = width
        self.space = space
        self.slots, _, _ = kernel.slots()
        ends = {a: self.slots[a] + x.words for a, x in enumerate(kernel.accesses) if x.look}
        self.axes = {a: (self._word(end - 2), self._word(end - 1)) for a, end in ends.items()}
        self.often = len(self.axes) >= _OFTEN
        self.base: dict[int, Value] = {}
        self.inside: dict[int, Value] = {}
        self.alone: dict[int, Value] = {}
        self.looked: set[int] = set()  # those that stand where an index of the row is
        self.unwoven: dict[int, list[Value]] = {}  # of a step, by access: a vector for each place

    def move_to(self, row: Value | None) -> None:
        """Go to a row; None where the kernel is flat and has one."""
        every = list(enumerate(self.k.accesses))
        self.base = {a: self.at(a, row) for a, _ in every}
        self.looked = set()
        self.inside = {a: self._has_row(a, row) for a, access in every if access.limits}
        self.alone = {a: self.only(a) for a, x in every if x.ends and x.inner == "none"}

    def at(self, a: int, row: Value | None) -> Value:
        """Where an access stands in a row."""
        f, access, slot = self.f, self.k.accesses[a], self.slots[a]
        pointer = f.pointer(self.frame, slot)
        slot += 1 + (access.inner == "some")
        for divided, wrapped in access.terms:
            stride = self._word(slot)
            index, slot = self._counted(row, divided, wrapped, slot + 1)
            pointer = f.at(pointer, index * stride, in_memory(access.element))
        return pointer

    def address(self, a: int, column: Value) -> Value:
        """Where it stands in a column of the row."""
        return self.f.at(self.base[a], column, in_memory(self.k.accesses[a].element))

    # Indices

    def look(self, a: int, index: Value) -> None:
        """Go to an index that the whole row shares, once a row."""
        if a not in self.looked:
            f = self.f
            self.looked.add(a)
            at = self._looked_up(a, f.convert(index, "i64"), None) * self.axes[a][0]
            self.base[a] = f.at(self.base[a], at, in_memory(self.k.accesses[a].element))

    def prepare(self, n: int, lanes: int) -> None:
        """Print before the loops what gathers do with an axis."""
        f, v = self.f, self.k.values[n]
        if not isinstance(v, Load) or v.access not in self.axes:
            return
        look, (stride, length) = self.k.accesses[v.access].look, self.axes[v.access]
        assert look is not None, "it has an axis"
        if self.often or self.k.values[look.at].kind == "row":
            return
        f.splat(f.convert(length, in_vectors(self.k.values[look.at].element)), lanes) - 1
        f.splat(f.convert(stride, "i64" if look.reach == "far" else "i32"), lanes)

    def gathered(self, a: int, index: Value, column: Value, mask: Value | None) -> Value:
        """The elements at indices that differ along a row."""
        f, access = self.f, self.k.accesses[a]
        look, (stride, length) = access.look, self.axes[a]
        assert look is not None, "it looks elements up"
        given: dict[str, Value] = {"base": self.base[a], "index": index}
        if not look.sure:
            assert self.space is not None, "a kernel that looks elements up knows the workspace"
            given |= {"length": length, "space": self.space}
        if look.reach != "next":
            given["stride"] = stride
        if access.inner != "none":
            given["column"] = column
        if access.inner == "some":
            given["step"] = self._word(self.slots[a] + 1)
        if mask is not None:
            given["mask"] = mask
        if not self.often:
            return looked_up(f, access, **given)
        return called_up(f, access, given)

    def _looked_up(self, a: int, index: Value, mask: Value | None) -> Value:
        """Which places of the axis are meant; the program is told if one is not on it."""
        return self._inside(index, self.axes[a][1], mask)

    def on_axis(self, index: Value, length: int, element: str, mask: Value | None) -> Value:
        """Indices from either end of an axis as they count from its first place."""
        f, near = self.f, length < 1 << 31
        index = f.convert(index, in_vectors(index.type.element) if near else "i64")
        return f.convert(self._inside(index, f.constant(I64, length), mask), element)

    def _inside(self, index: Value, length: Value, mask: Value | None) -> Value:
        assert self.space is not None, "a kernel that looks elements up knows the workspace"
        return inside(self.f, index, length, self.space, mask)

    # Elements

    def only(self, a: int) -> Value:
        """The element of an access in a row that has one; zero where there is none."""
        access, there = self.k.accesses[a], self.inside.get(a)
        if access.ends:
            first, last = self._ends(a)
            there = first < last if there is None else there & (first < last)
        return read(self.f, access.element, self.base[a], 1, there)

    def vector(self, v: Load, column: Value, lanes: int, mask: Value | None) -> Value:
        """The elements of so many columns."""
        f, a, access = self.f, v.access, self.k.accesses[v.access]
        if access.is_within:
            return self._within(a, column, lanes, mask)
        if access.inner == "some":
            return self._strided(a, column, lanes, mask, f.constant(I64, 0))
        if access.inner == "back":
            return self._backwards(a, column, lanes, mask)
        if isinstance(access.inner, int):
            if a not in self.unwoven:
                self.unwoven[a] = read_woven(
                    f, v.element, self.base[a], access.inner, column, lanes, self.width, mask
                )
            return self.unwoven[a][v.place]
        if access.each > 1:
            return read_each(f, v.element, self.base[a], access.each, column, lanes, mask)
        return read(f, v.element, self.address(a, column), lanes, mask)

    def _within(self, a: int, column: Value, lanes: int, mask: Value | None) -> Value:
        """Elements, and zeros where there are none: there may be no memory either."""
        f, access = self.f, self.k.accesses[a]
        row = self.inside.get(a, f.constant(typed("i1"), 1))
        bounds = self._ends(a) if access.ends else None
        some = every = row
        if bounds is not None:
            some = row & (column < bounds[1]) & (column + lanes > bounds[0])
            every = row & (column >= bounds[0]) & (column + lanes <= bounds[1])

        def on() -> Value:
            found = f.first_lanes(lanes, f.constant(I64, lanes)) if mask is None else mask
            if bounds is None:
                return found
            first, last = [
                f.first_lanes(lanes, f.intrinsic("smax", n - column, f.constant(I64, 0)))
                for n in bounds
            ]
            return found & last & ~first

        def elements(mask: Value | None) -> list[Value]:
            if access.inner == "one":
                return [read(f, access.element, self.address(a, column), lanes, mask)]
            if access.inner == "none":
                x = f.splat(self.alone[a], lanes)
            else:
                first = f.constant(I64, 0) if bounds is None else bounds[0]
                x = self._strided(a, column, lanes, mask, first)
            return [x if mask is None else f.select(mask, x, f.constant(x.type, 0))]

        def edge() -> list[Value]:
            zeros = f.constant(typed(access.element, lanes), 0)
            return f.branch(some, lambda: elements(on()), lambda: [zeros])

        if mask is not None:
            return edge()[0]
        return f.branch(every, lambda: elements(None), edge)[0]

    def _strided(
        self, a: int, column: Value, lanes: int, mask: Value | None, there: Value
    ) -> Value:
        """Elements at a stride from each other; there: a column that has one."""
        f, element = self.f, self.k.accesses[a].element
        stride = self._word(self.slots[a] + 1)
        wide = typed("i64", lanes)
        index = f.splat(column, lanes) + f.lanes(wide)
        if mask is not None:
            index = f.select(mask, index, f.splat(there, lanes))
        index = index * f.splat(stride, lanes)
        memory = in_memory(element)
        x = f.gather(typed(memory, lanes), f.at(self.base[a], index, memory))
        return f.convert(x, "i1") if element == "i1" else x

    def _backwards(self, a: int, column: Value, lanes: int, mask: Value | None) -> Value:
        """Elements that lie one before the other."""
        f, order, element = self.f, range(lanes - 1, -1, -1), self.k.accesses[a].element
        first = self.address(a, f.constant(I64, 1 - lanes) - column)
        if lanes == 1:
            return read(f, element, first, lanes, mask)
        mask = None if mask is None else f.shuffle(mask, None, order)
        return f.shuffle(read(f, element, first, lanes, mask), None, order)

    # Words of the frame

    def _word(self, slot: int) -> Value:
        return self.f.word(self.frame, slot)

    def _counted(
        self, row: Value | None, divided: bool, wrapped: bool, slot: int
    ) -> tuple[Value, int]:
        """A row's number along one axis, by the words at a slot; the slot behind them."""
        assert row is not None, "a flat kernel has one row"
        if divided:
            row, slot = self.f.div(row, self._word(slot)), slot + 1
        if wrapped:
            row, slot = self.f.rem(row, self._word(slot)), slot + 1
        return row, slot

    def _has_row(self, a: int, row: Value | None) -> Value:
        """Whether an access has elements in a row, but for its ends."""
        access, on = self.k.accesses[a], []
        slot = self.slots[a] + access.words - 2 * access.ends
        slot -= sum([2 + divided + wrapped for divided, wrapped in access.limits])
        for divided, wrapped in access.limits:
            index, slot = self._counted(row, divided, wrapped, slot)
            on += [index >= self._word(slot), index < self._word(slot + 1)]
            slot += 2
        return functools.reduce(operator.and_, on)

    def _ends(self, a: int) -> tuple[Value, Value]:
        """The columns from one to before the other in which an access has elements."""
        end = self.slots[a] + self.k.accesses[a].words
        return self._word(end - 2), self._word(end - 1)
