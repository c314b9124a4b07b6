"""The Loop IR: one kernel, its domain, what it reads, computes and writes.

A kernel walks rows of a domain (rows, columns). A value is *full* (one element for each place of
the domain) or *row* (one for each row: a scalar of the loops). Within a row the work is done in
passes: a reduction along the row ends one, because only then does its value exist. Reductions over
rows, or over everything, are barriers: the kernel leaves partial results, one for each task, and a
later kernel combines them in order; over stretches of rows, within which no task ends, it leaves
the results. Tasks are blocks of rows (or of elements, where the domain is one flat row) whose size
follows from the shape alone, so bits depend on no number of threads.

Sizes, strides and addresses are no part of a kernel: they come in a *frame* of 64-bit words, one
for each call, so kernels that differ in nothing else are compiled once. `Kernel` is hashable; it is
the key under which code is found again.

A kernel that looks elements up in a table may find an index that is not on its axis. It must say so
in the workspace's first word, so before its frame stand CONTROL_WORDS that tell it where that is.
So they do before that of a kernel which divides integers: NumPy warns of some (`warned.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import attrs
from msgspec import Struct

from funct.compile.loops.scalars import widened
from funct.compile.loops.warned import STOPPED, WRONG, cases, note, refuses
from funct.kernels.llvm import Emitter, Value

__all__ = [
    "Access", "CONTROL_WORDS", "Constant", "Expression", "How", "Kernel", "Kind", "Load", "Look",
    "Op", "Over", "Reach", "Reduce", "STOPPED", "Term", "WEAVE", "WRONG",
]  # fmt: skip

CONTROL_WORDS = 4  # before a frame: the workspace; of control flow also steps, and their moves
WEAVE = "weave"
_GATHERED = 16  # cost of an element at an index of its own, in additions
Kind = Literal["full", "row"]
How = Literal["sum", "prod", "max", "min", "any", "all"]
Reach = Literal["next", "near", "far"]
Over = Literal["row", "column", "stretch", "all"]
Term = tuple[bool, bool]  # whether the row's number is divided, and whether it is wrapped around


class Look(Struct, frozen=True):
    """By what an access moves beside rows and columns: an index on an axis of a table.

    at: which of the kernel's values it is. reach: of indices that differ along a row, whether
    elements along the axis are "next" to each other, so "near" that four bytes hold their
    distances, or "far". sure: whether it is known to be on the axis.
    """

    at: int
    reach: Reach
    sure: bool = False


class Access(Struct, frozen=True):
    """How a buffer is walked.

    inner: elements from one column to the next: "none" (a row's value), "one", "back" (one, towards
    the beginning), "some" (a stride of the frame), or a number of places that are woven: whole
    vectors of all of them are moved, and shuffled. terms: how the row's number moves the address,
    each by a stride of the frame. each: how many columns one element is for, one after the other.
    limits: of the row's number, which is divided and wrapped around first, between which there are
    elements; ends: whether there are such of the columns. Elsewhere there are zeros. look: what
    moves it too, of a table.
    """

    element: str
    inner: Literal["none", "one", "back", "some"] | int
    terms: tuple[Term, ...]
    each: int = 1
    limits: tuple[Term, ...] = ()
    ends: bool = False
    look: Look | None = None

    @property
    def words(self) -> int:
        """Words of the frame: the address, the inner stride, a stride for each term with what it
        divides by and wraps at, and both ends of each limit with the same, and of the columns; the
        stride of the axis that is looked up on, and its length.
        """
        inner = 1 if self.inner == "some" else 0
        terms = sum([1 + divided + wrapped for divided, wrapped in self.terms])
        limits = sum([2 + divided + wrapped for divided, wrapped in self.limits])
        return 1 + inner + terms + limits + 2 * self.ends + 2 * (self.look is not None)

    @property
    def is_within(self) -> bool:
        """Whether there are zeros around its elements."""
        return self.ends or bool(self.limits)


class Load(Struct, frozen=True):
    """An element of a buffer; place: which, of an access to places that are woven."""

    access: int
    element: str
    kind: Kind
    place: int = 0


@attrs.frozen
class Constant:
    """A number. Zeros of two signs are two numbers, and NaN is one."""

    number: float | int = attrs.field(eq=repr)
    element: str
    kind: Kind = "row"


@attrs.frozen(cache_hash=True)
class Op:
    """A scalar op on values; elements: what operands are converted to before it."""

    name: str
    operands: tuple[int, ...]
    elements: tuple[str | None, ...]
    element: str
    kind: Kind
    printing: Any = attrs.field(eq=False)
    params: tuple[Any, ...] = ()
    key: Any = None  # what tells printings of one name apart

    @property
    def is_weave(self) -> bool:
        """Whether it is all operands in turn: there only to be stored, where places are woven."""
        return self.name == WEAVE

    @property
    def may_refuse(self) -> bool:
        """Whether it puts an index on its axis, where it may not be."""
        return self.name == "wrap_index"

    def of(
        self, f: Emitter, operands: Sequence[Value], space: Value | None,
        mask: Value | None = None, *, once: bool = False,
    ) -> Value:  # fmt: skip
        """Print the op of these. space: the workspace, where it is noted what NumPy would warn of;
        None: nothing is. mask: of the lanes that count. once: as a function of the text's own.
        """
        pairs = zip(operands, self.elements, strict=True)
        given = [f.convert(x, e) if e else x for x, e in pairs]
        given = [f.convert(x, widened(x.type.element)) for x in given]
        if space is not None:
            note(f, self.name, given, space, mask)
        x: Value = self._called(f, given) if once else self.printing.emit(f, *given, *self.params)
        return f.convert(x, self.element)

    def _called(self, f: Emitter, given: Sequence[Value]) -> Value:
        """A call of the function that computes the op, for all ops of this kind in f."""
        type = given[0].type

        def build(name: str) -> None:
            parameters = [(f"x{k}", x.type) for k, x in enumerate(given)]
            own = f.module.function(name, parameters, type, local=True)
            own.ret(self.printing.emit(own, *own.arguments, *self.params))

        name = f.module.shared(f"{f.name}_{self.name}_{type.suffix}", build)
        x = f.call(name, type, given, pure=True)
        assert x is not None, "it gives something"
        return x


class Reduce(Struct, frozen=True):
    """Many elements in one: along the row, over all rows for each column, over stretches of so many
    rows (their number is in the frame) for each column, or over everything.
    """

    how: How
    operand: int
    element: str
    over: Over
    kind: Kind = "row"


Expression = Load | Constant | Op | Reduce


class Kernel(Struct, frozen=True, cache_hash=True):
    """What is computed at each place of the domain, in order; operands are positions in `values`.

    stores: (value, access). flat: the domain is one row and tasks are ranges of columns. widest:
    of how many registers a vector is at most. even: how many registers the elements of each range
    fill, or a part of them that fills them too; 0 where a register is left half full. kept: costly
    values of an earlier pass stay in a row of their own. streamed: what is written goes past the
    caches, which hold less than the kernel touches. alone: a long body has one vector to compute.
    across: tasks are ranges of columns, each with all rows.
    """

    accesses: tuple[Access, ...]
    values: tuple[Expression, ...]
    stores: tuple[tuple[int, int], ...]
    flat: bool
    widest: int
    even: int
    kept: bool = True
    streamed: bool = False
    alone: bool = False
    across: bool = False

    @property
    def barriers(self) -> list[int]:
        """The reductions that end the loops: nothing in them reads their results."""
        return [k for k, v in enumerate(self.values) if isinstance(v, Reduce) and v.over != "row"]

    @property
    def looks(self) -> bool:
        """Whether an index may be found that is not on its axis, or a power that is none."""
        unsure = any(a.look is not None and not a.look.sure for a in self.accesses)
        return unsure or bool(self.refusing) or any(self._asks(v, refuses) for v in self.values)

    @property
    def warns(self) -> bool:
        """Whether NumPy would warn of some of the numbers that may be found."""
        return any(self._asks(v, cases) for v in self.values)

    def _asks(self, v: Expression, of: Callable[..., Any]) -> bool:
        if not isinstance(v, Op):
            return False
        last = self.values[v.operands[-1]] if v.operands else None
        return bool(of(v.name, v.element, last.number if isinstance(last, Constant) else None))

    @property
    def refusing(self) -> list[int]:
        """The values that are indices on an axis that nothing is read along here."""
        return [n for n, v in enumerate(self.values) if isinstance(v, Op) and v.may_refuse]

    def operands(self, n: int) -> tuple[int, ...]:
        """What a value is computed from at the same place."""
        v = self.values[n]
        if isinstance(v, Op):
            return v.operands
        look = self.accesses[v.access].look if isinstance(v, Load) else None
        return () if look is None else (look.at,)

    def cost(self, n: int) -> int:
        """Of a value that is full, in additions."""
        v = self.values[n]
        if isinstance(v, Op) and v.kind == "full":
            return int(v.printing.cost)
        return _GATHERED if any(self.values[o].kind == "full" for o in self.operands(n)) else 0

    def deciding(self) -> set[int]:
        """The accesses on whose elements it depends whether an index is on its axis."""
        found: set[int] = set()
        stack = [a.look.at for a in self.accesses if a.look] + self.refusing
        seen: set[int] = set()
        while stack:
            n = stack.pop()
            v = self.values[n]
            if n not in seen:
                seen.add(n)
                found.update([v.access] if isinstance(v, Load) else [])
                stack += [v.operand] if isinstance(v, Reduce) else self.operands(n)
        return found

    def slots(self) -> tuple[list[int], list[int], int]:
        """Where in the frame the words of each access and of each barrier begin, and its length.

        Before them stand three: rows, columns, and how many of them (rows, or columns where the
        kernel is flat) are one task.
        """
        at = 3
        accesses, barriers = [], []
        for a in self.accesses:
            accesses.append(at)
            at += a.words
        for n in self.barriers:
            v = self.values[n]
            barriers.append(at)  # the address of the partial results
            at += 2 if isinstance(v, Reduce) and v.over == "stretch" else 1
        return accesses, barriers, at
