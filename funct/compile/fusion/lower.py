"""From a group of nodes to a kernel and the words of its frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from msgspec.structs import replace

from funct.compile.fusion.calls import Address, Buffer, Call, Word
from funct.compile.fusion.domain import Domain
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import REDUCTIONS, Group, is_weave, reduction
from funct.compile.fusion.walks import Walked, walk
from funct.compile.gathered import is_lookup
from funct.compile.loops.barriers import are_abreast
from funct.compile.loops.kernel import (
    WEAVE,
    Constant,
    Expression,
    Kernel,
    Kind,
    Load,
    Look,
    Op,
    Reach,
    Reduce,
)  # fmt: skip
from funct.compile.loops.passes import bytes_of_kept, passes
from funct.compile.loops.ranges import ANYTHING, SHORTENED, Range, is_short, is_within, range_of
from funct.compile.loops.scalars import HELD, Printing, exact_number, met
from funct.compile.loops.transposes import transposed
from funct.compile.loops.views import VIEWS, View, dense
from funct.compile.loops.widths import WIDEST, lanes_of
from funct.core import lookup
from funct.device import host
from funct.graph import Node, Var

__all__ = ["copy", "lower", "places_of"]

_TASK_COST = 1 << 15  # of a task, in additions: some ten microseconds
_MOST_TASKS = 128
_MOST_PARTS = 16  # partial rows of a column reduction: they are added up again
_LEAST_PART = 8  # rows of one of them
_ACROSS, _MANY_ROWS = 1 << 11, 1 << 10  # columns from which, and rows to which, tasks are columns
_LEAST_PIECE = 1 << 9  # columns of one of those
_KEPT_BYTES = 1 << 17  # of rows that are kept, on a thread's stack
_KEPT_EACH = 4 * 8  # bytes for each column of as many rows as there are at most, nearly always
_PART = 1 << 14  # columns of a task that leaves partial results: bits depend on it

_FEW_PLACES = 4  # that are moved and shuffled for one of them as quickly as that is read alone
_LONG_ROW = 128  # elements of a row beside which what comes before and behind them is little
_OFTEN = 8  # times that an element is read from where it makes a copy worth while
_LONG = 96  # of a body, in additions: there may be stages of it

_IDENTITY = Printing(lambda f, x: x, frozenset(), "own", cost=0)


def lower(group: Group, fused: Fused) -> list[Call]:
    """The kernels that compute a group, in order."""
    return _Lowering(group, fused).run()


def copy(view: View, fused: Fused, into: View | None = None) -> tuple[list[Call], View]:
    """Calls that fill a dense buffer, or what `into` sees, with what a view sees; that view."""
    root = Var(f"{view.root.name}_copy", view.shape, view.root.dtype)
    turned = transposed(view) if into is None else None
    if turned is not None:
        source = Address(view.root, view.offset * view.root.dtype.itemsize)
        words: tuple[Word, ...] = (source, Address(root), *turned.words)
        return [Call(("transposed", *turned.kernel), words, turned.tasks, (root,))], dense(root)
    seen = Var(view.root.name, view.shape, view.root.dtype)
    look = lookup("stop_gradient")
    assert look is not None
    node = Node(look, (seen,), (), (root,))
    group = Group(view.size)
    group.take(node)
    to = into or dense(root)
    views = {seen: view, root: to}
    inner = attrs.evolve(fused, views=views, kept=frozenset([root]), copies=frozenset([node]))
    return _Lowering(group, inner).run(), to


def places_of(operands: Sequence[Any], fused: Fused) -> tuple[list[Call], list[Address]]:
    """Where the elements of each operand stand one after the other, after calls that bring them."""
    calls: list[Call] = []
    places: list[Address] = []
    for v in operands:
        view = fused.views[v]
        if not view.is_run:
            added, view = copy(view, fused)
            calls += added
        places.append(Address(view.root, view.offset * v.dtype.itemsize))
    return calls, places


def _extent(view: View) -> int:
    """Elements from the first to the last one in memory."""
    return sum([(n - 1) * abs(s) for n, s in zip(view.shape, view.strides, strict=True)])


class _Lowering(Domain):
    """One group on its way."""

    def __init__(self, group: Group, fused: Fused) -> None:
        super().__init__(group, fused)
        self.calls: list[Call] = []
        self.walked: dict[Walked, int] = {}
        self.values: list[Expression] = []
        self.known: dict[Expression, int] = {}
        self.of: dict[Var, int] = {}
        self.ranges: dict[int, Range] = {}  # of indices, some of which are four bytes here
        self.stores: list[tuple[int, int]] = []
        self.copies: dict[View, View] = {}

    def run(self) -> list[Call]:
        """Lower the group."""
        for e in self.group.nodes:
            self.of[e.results[0]] = self._node(e)
        barriers: list[tuple[int, Var]] = []
        for e in self.group.nodes:
            out, n = e.results[0], self.of[e.results[0]]
            value = self.values[n]
            if isinstance(value, Reduce) and value.over != "row":
                barriers.append((n, out))
            elif out in self.fused.kept:
                self._store(out, n)
        self._emit(barriers)
        return self.calls

    def _value(self, value: Expression) -> int:
        found = self.known.get(value)
        if found is None:
            found = self.known[value] = len(self.values)
            self.values.append(value)
        return found

    def _node(self, e: Node) -> int:
        out = e.results[0]
        element = HELD[out.dtype]
        over = reduction(e)
        if over is not None:
            source = e.operands[0]
            assert isinstance(source, Var)
            operand = self._operand(e, source, out.dtype)
            if self.group.is_full(source) and self.values[operand].kind == "row":
                operand = self._copied(operand, "full")  # a row's value counts for each column
            operand = self._whole(operand, source)
            if over == "row":
                return self._value(Reduce(REDUCTIONS[e.name], operand, element, over))
            self.values.append(Reduce(REDUCTIONS[e.name], operand, element, over))
            return len(self.values) - 1
        if is_weave(e):
            places = [self._whole(self._operand(e, v, out.dtype), v) for v in e.operands]
            n = len(self.values)  # each is stored for itself, though they be of the same
            none = (None,) * len(places)
            self.values.append(Op(WEAVE, tuple(places), none, element, "full", _IDENTITY, (), n))
            return n
        if is_lookup(e):
            return self._lookup(e)
        kind: Kind = "full" if self.group.is_full(out) else "row"
        if e.name in VIEWS:
            return self._operand(e, e.operands[0], out.dtype)
        print_, elements, dtypes = met(e)
        given = [self._operand(e, a, d) for a, d in zip(e.operands, dtypes, strict=True)]
        params = e.params if print_.params else ()
        found = ANYTHING
        if out.dtype.kind in "iu":
            before = [self._range(n) for n in given]
            found = range_of(e.name, params, before, out.dtype)
            if e.name == "wrap_index" and is_within(before[0], params[0]):
                return given[0]
        if element == "i64" and is_short(found) and e.name in SHORTENED:
            element, elements = "i32", ("i32",) * len(given)
        else:
            pairs = zip(elements, given, e.operands, strict=True)
            elements = tuple([a or ("i64" if self._is_half(n, of) else None) for a, n, of in pairs])
        n = self._value(Op(e.name, tuple(given), elements, element, kind, print_, params))
        if found != ANYTHING:
            self.ranges[n] = found
        return n

    def _range(self, n: int) -> Range:
        value = self.values[n]
        if isinstance(value, Constant):
            number = value.number
            return (number, number) if isinstance(number, int) else ANYTHING
        return self.ranges.get(n, ANYTHING)

    def _is_half(self, n: int, of: Any) -> bool:
        """Whether the value has half of the bytes of its dtype, as indices may."""
        return isinstance(of, Var) and n in self.ranges and self.values[n].element != HELD[of.dtype]

    def _whole(self, n: int, of: Any) -> int:
        """The value in all bytes of its dtype."""
        if not self._is_half(n, of):
            return n
        return self._value(Op("copy", (n,), ("i64",), "i64", self.values[n].kind, _IDENTITY))

    def _copied(self, n: int, kind: Kind, key: Any = None) -> int:
        element = self.values[n].element
        return self._value(Op("copy", (n,), (None,), element, kind, _IDENTITY, (), key))

    def _operand(self, e: Node, a: Any, dtype: Any) -> int:
        if not isinstance(a, Var):
            held = exact_number(a, dtype)
            assert held is not None, "the group holds what can be printed"
            return self._value(Constant(held, HELD[dtype]))
        if a in self.of:
            return self.of[a]
        return self._loaded(self.seen(e, a), self.group.is_full(self.shaping(e, a)))

    def _loaded(self, view: View, full: bool) -> int:
        walked = self._walk(view, full) if transposed(view) is None else None
        if walked is None or self._is_read_often(view, walked):
            view = self._copy(view)
            walked = self._walk(view, full)
            assert walked is not None, "a dense buffer can be walked"
        one = walked.access.inner == "none" and not walked.access.ends
        kind: Kind = "row" if one else "full"
        return self._value(Load(self._access(walked), walked.access.element, kind, walked.place))

    def _lookup(self, e: Node) -> int:
        """An element of a table: where it is walked, moved by the index."""
        x, i = e.operands
        assert isinstance(x, Var)
        assert isinstance(i, Var)
        full = self.group.is_full(e.results[0])
        whole, (table, index) = self.fused.views[x], self.looked_up(e)
        at = self.of[i] if i in self.of else self._loaded(index, full)
        walked = self._walk(table, full, looked_up=True)
        if walked is None or walked.access.inner == "some":
            there = self._table(e, whole, full, read=table.size if walked else 0)
            if there is not None:
                whole, walked = there
        assert walked is not None, "the group has rows of all that is looked up"
        (axis,), kind = e.params, self.values[at].kind
        stride, element = whole.strides[axis], walked.access.element
        reach: Reach = "next" if stride == 1 else "near"
        if kind == "row" or _extent(whole) >= 1 << 31:
            reach = "far"
        kind = "row" if kind == "row" and walked.access.inner == "none" else "full"
        look = Look(at, reach, is_within(self._range(at), whole.shape[axis]))
        access = replace(walked.access, look=look)
        words = (*walked.words, stride, whole.shape[axis])
        a = self._access(replace(walked, access=access, words=words))
        return self._value(Load(a, element, kind))

    def _table(self, e: Node, seen: View, full: bool, read: int) -> tuple[View, Walked] | None:
        """A copy of a table whose elements lie apart, and how it is walked; None if so few elements
        are read that it costs more, or it cannot be walked. read: how many, if it can be as it is.
        """
        there = dense(Var("copy", seen.shape, seen.root.dtype))
        walked = self._walk(self.looked_up(e, there)[0], full, looked_up=True)
        if walked is None or (read and seen.size > _OFTEN * read):
            return None
        if seen not in self.copies:
            calls, self.copies[seen] = copy(seen, self.fused)
            self.calls += calls
        found = self.copies[seen]
        return found, replace(walked, root=found.root)

    def _access(self, walked: Walked) -> int:
        return self.walked.setdefault(replace(walked, place=0), len(self.walked))

    def _walk(self, view: View, full: bool, **how: bool) -> Walked | None:
        return walk(view, self.columns if full else None, **how)

    def _is_read_often(self, view: View, walked: Walked) -> bool:
        """Whether elements with others between them are read so often that a copy costs less."""
        once = math.prod([n for n, s in zip(view.shape, view.strides, strict=True) if s])
        apart = walked.access.inner not in ("none", "one", "back")
        return apart and not view.within and _OFTEN * once <= view.size

    def _copy(self, view: View) -> View:
        """The view of a dense buffer, which a kernel fills before; what is read often lies there
        once, unless rows of the domain end within it.
        """
        once = tuple([n if s else 1 for n, s in zip(view.shape, view.strides, strict=True)])
        small = View(view.root, once, view.strides, view.offset)
        there = dense(Var("copy", once, view.root.dtype)).broadcast(view.shape)
        if view.within is not None or self._walk(there, True) is None:
            small = view
        found = self.copies.get(small)
        if found is None:
            calls, found = copy(small, self.fused)
            self.calls += calls
            self.copies[small] = found
        return found.broadcast(view.shape)

    def _store(self, out: Var, n: int) -> None:
        n = self._whole(n, out)
        value = self.values[n]
        if isinstance(value, Op) and value.is_weave:
            whole = self.fused.views[out]
            first = replace(whole, shape=whole.shape[:-1], strides=whole.strides[:-1])
            walked = self._walk(first, True, woven=True)
            assert walked is not None, "what is written can be walked"
            self.stores.append((n, self._access(walked)))
            return
        full = self.group.is_full(out)
        kind: Kind = "full" if full else "row"
        if value.kind != kind or not isinstance(value, Op):
            n = self._copied(n, kind)
        if any(v == n for v, _ in self.stores):
            n = self._copied(n, kind, len(self.stores))
        walked = self._walk(self.fused.views[out], full)
        assert walked is not None, "what is written can be walked"
        if full and walked.access.inner == "none":  # rows of one element
            walked = replace(walked, access=replace(walked.access, inner="one"))
        self.stores.append((n, self._access(walked)))

    def _emit(self, barriers: Sequence[tuple[int, Var]]) -> None:
        walked = self._unwoven()
        kernel = Kernel(
            tuple([w.access for w in walked]), tuple(self.values), tuple(self.stores),
            self.flat, *self._vectors(), True, self._is_beyond_cache(),
        )  # fmt: skip
        if self.flat and self.columns <= lanes_of(self.values, host().vector_bytes):
            cost = sum(map(kernel.cost, range(len(kernel.values))))
            kernel = replace(kernel, alone=cost >= _LONG)
        few = self.columns * _KEPT_EACH <= _KEPT_BYTES
        if not few and self.columns * bytes_of_kept(kernel) > _KEPT_BYTES:
            kernel = replace(kernel, kept=False)
        kernel = replace(kernel, across=self._is_across(kernel))
        block, tasks = self._blocks(kernel, barriers)
        words: list[Word] = [self.rows, self.columns, block]
        for w in walked:
            words += [Address(w.root, w.offset), *w.words]
        roots = [w.root for w in walked]
        writes = [roots[a] for _, a in self.stores]
        combines: list[Call] = []
        for n, out in barriers:
            value = self.values[n]
            assert isinstance(value, Reduce)
            width = 1 if value.over == "all" else self.columns
            if tasks == 1 or value.over == "stretch" or kernel.across:
                words += [Address(out), *([self.group.stretch or 0] * (value.over == "stretch"))]
                writes.append(out)
                continue
            parts = Buffer(width * tasks, out.dtype)
            words.append(Address(parts))
            writes.append(parts)
            piece = max(64, -(-width // 8))
            combines.append(
                Call(
                    ("combine", value.how, HELD[out.dtype]),
                    (Address(parts), Address(out), tasks, width, piece),
                    -(-width // piece),
                    (out,),
                )
            )
        names = {k: w.root.name for k, w in enumerate(walked) if isinstance(w.root, Var)}
        self.calls.append(
            Call(
                kernel,
                tuple(words),
                tasks,
                tuple(writes),
                names,
                checks=kernel.looks,
                warns=kernel.warns,
                turns=self.rows * self.columns if self.columns < _LONG_ROW else 0,
            )
        )
        self.calls += combines

    def _vectors(self) -> tuple[int, int]:
        """Of how many registers vectors are at most, and how many registers ranges fill: loops that
        would never run are not printed. Blocks of a flat row are whole vectors, but for the last.
        """
        lanes = lanes_of(self.values, host().vector_bytes)
        vectors = self.columns // lanes
        widest = next(n for n in (WIDEST, 2, 1) if n <= max(1, vectors))
        return widest, 0 if self.columns % lanes else math.gcd(vectors, WIDEST)

    def _unwoven(self) -> list[Walked]:
        """How each buffer is walked. If of many places that are woven one is read, it is read by
        itself: that costs no more, and code that moves all of them is another for each place.
        """
        places: dict[int, set[int]] = {}
        for v in self.values:
            if isinstance(v, Load):
                places.setdefault(v.access, set()).add(v.place)
        found = list(self.walked)
        for a, w in enumerate(found):
            stride = w.access.inner
            if isinstance(stride, int) and stride > _FEW_PLACES and len(places.get(a, ())) == 1:
                (place,) = places[a]
                access = replace(w.access, inner="some")
                offset = w.offset + place * np.dtype(w.root.dtype).itemsize
                found[a] = Walked(access, w.root, offset, (stride, *w.words))
                self.values = [
                    replace(v, place=0) if isinstance(v, Load) and v.access == a else v
                    for v in self.values
                ]
        return found

    def _is_beyond_cache(self) -> bool:
        """Whether what the kernel writes is better written past the caches: they do not hold what
        it touches, or not all that the caller is given, of which this is a part.
        """
        touched: dict[Any, int] = {}
        roots = [w.root for w in self.walked]
        for w in self.walked:
            size = np.dtype(w.root.dtype).itemsize
            count = w.root.count if isinstance(w.root, Buffer) else math.prod(w.root.shape)
            touched[w.root] = size * min(count, self.group.size)
        if not self.stores or host().overflows(sum(touched.values())):
            return bool(self.stores)
        written = {roots[a] for _, a in self.stores}
        return written <= self.fused.results and host().overflows(self.fused.result_bytes)

    def _is_across(self, kernel: Kernel) -> bool:
        """Whether tasks are columns: there are many, and each is added up from its first row on."""
        wide = not self.flat and self.columns >= _ACROSS and self.rows <= _MANY_ROWS
        by_columns = all(v.over == "column" for v in self.values if isinstance(v, Reduce))
        return wide and by_columns and are_abreast(kernel, passes(kernel))

    def _blocks(self, kernel: Kernel, barriers: Sequence[tuple[int, Var]]) -> tuple[int, int]:
        """Rows (or columns) of a task, and how many tasks: functions of the shape."""
        by_columns = self.flat or kernel.across
        total, others = (self.columns, self.rows) if by_columns else (self.rows, self.columns)
        cost = 2 + sum(map(kernel.cost, range(len(self.values))))
        least = _LEAST_PIECE if kernel.across else 1
        block = max(least, _TASK_COST // (cost * others), -(-total // _MOST_TASKS))
        if barriers and not kernel.across:
            most = _MOST_TASKS
            if any(self.values[n].over == "column" for n, _ in barriers):  # type: ignore[union-attr]
                most, block = _MOST_PARTS, max(block, _LEAST_PART)
            block = max(block, -(-total // most))
            if self.flat:
                block = max(_PART, -(-total // 1024))
        step = 64 if by_columns else self.group.stretch or 1
        block = -(-block // step) * step
        return block, max(1, -(-total // block))
