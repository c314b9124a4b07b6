"""Bodies over few elements as lines of code, each array one vector in registers.

A loop or a branch whose arrays are small costs what it computes only if nothing stands between its
ops: no frame, no call, no memory. So its body becomes lines (`lines.py`), each of which makes a
vector of all elements of an array, and a view of an array is the list of the lanes that it picks.
Lines that depend on nothing that changes are computed before the loop; large matrices lie in
memory, their rows one after the other. Branches and loops inside are lines too.

A body that is elementwise over more columns than a vector has is made for some columns, which go
through all steps before the next ones do.

Bits: ops have those of all loops in machine code. A product adds its terms in order, fused, in
several running sums where there are many; a reduction adds halves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from funct.compile.forms import Choice, Repeat
from funct.compile.fusion.groups import REDUCTIONS
from funct.compile.joins import is_concat
from funct.compile.lines.elements import ARGUMENTS, Elements
from funct.compile.lines.lines import (
    Chosen,
    Given,
    Kept,
    Lines,
    Looped,
    Moved,
    Result,
    Room,
    Spilled,
    Taken,
)  # fmt: skip
from funct.compile.lines.spans import span
from funct.compile.lines.systems import SYSTEMS
from funct.compile.lines.vectors import MOST_BYTES, MOST_MATRIX, Array, NoLines
from funct.compile.loops.kernel import Constant
from funct.compile.loops.scalars import ELEMENTS, Printing
from funct.compile.loops.updates import UPDATES, how_updated
from funct.compile.loops.views import VIEWS, dense, through
from funct.compile.readers import readers
from funct.compile.rewriting.select import prepared
from funct.graph import Control, Graph, Node, Var
from funct.kernels.llvm import typed

__all__ = ["Making"]

_MOST_ROWS = 16  # that are taken or written by one op

_INDICES = frozenset({"i64"})
_PLUS = Printing(lambda f, x, y: x + y, _INDICES)
_MINUS = Printing(lambda f, x, y: x - y, _INDICES)
_LESS = Printing(lambda f, x, y: x < y, _INDICES)
_BOTH = Printing(lambda f, x, y: x & y, frozenset({"i1"}))
_WIDENED = Printing(lambda f, x: f.convert(x, "i64"), _INDICES)
_SAME = Printing(lambda f, x: x, _INDICES)


class Making(Elements):
    """Who makes lines of graphs."""

    def graph(self, graph: Graph, arrays: Sequence[Array]) -> list[Array]:
        """The outputs of a graph for these inputs. Raises: NoLines."""
        self.arrays |= dict(zip(graph.inputs, arrays, strict=True))
        self.readers |= readers(graph)
        for v, x in graph.constants:
            self.arrays[v] = self.constant(v, x)
            if v.dtype == np.int64 and np.array_equal(x.data, np.arange(math.prod(v.shape))):
                self.counted.add(v)
        for e in self._in_order(graph):
            if any(v.dtype not in ELEMENTS or 0 in v.shape for v in (*_vars(e), *e.results)):
                raise NoLines(f"{e.name} of no elements, or of a dtype that loops do not know")
            found = self._control(e) if isinstance(e.primitive, Control) else self._node(e)
            self.arrays |= dict(zip(e.results, found, strict=False))
        return [self.of(v) for v in graph.outputs]

    def _in_order(self, graph: Graph) -> list[Node]:
        """The nodes. Those that write to tables stand behind all that can be before them, which may
        read what is written over.
        """
        waiting: list[Node] = []
        for e in graph.nodes:
            if not isinstance(e, Node) or e.primitive.effect:
                raise NoLines("it has effects")
            waiting.append(e)
        if not any(map(self._writes, waiting)):
            return waiting
        missing = {v for e in waiting for v in e.results}
        found: list[Node] = []
        while waiting:
            later = []
            for e in waiting:
                if self._writes(e) or not missing.isdisjoint(_vars(e)):
                    later.append(e)
                else:
                    found.append(e)
                    missing.difference_update(e.results)
            k = next((k for k, e in enumerate(later) if missing.isdisjoint(_vars(e))), None)
            if k is not None:
                found.append(later.pop(k))
                missing.difference_update(found[-1].results)
            waiting = later
        return found

    def _writes(self, e: Node) -> bool:
        return e.name not in VIEWS and any(map(self.is_table, e.results))

    # Nodes

    def _node(self, e: Node) -> list[Array]:
        """What a node gives; nothing where it is kept in mind as what reductions read."""
        out = e.results[0]
        if e.name in VIEWS:
            return [] if self.is_same(e) else [self._seen_through(e)]
        if e.name in REDUCTIONS or e.name in ARGUMENTS:
            return [self.made(self.reduced(e), out)]
        ways = {
            "matmul": self._matmul, "concat": self._concat, "embed": self._embed,
            "take": self._take, "put": self._moved, **dict.fromkeys(UPDATES, self._moved),
            "wrap_index": self._take, **dict.fromkeys(SYSTEMS, self.system),
        }  # fmt: skip
        name = "concat" if is_concat(e) else e.name
        if name in ways:
            if self.columns[0]:
                raise NoLines(f"{name} is not elementwise")
            return [self.made(ways[name](e), out)]
        return [] if self.waits(e) else [self.made(self.elementwise(e), out)]

    def _seen_through(self, e: Node) -> Array:
        a = self.of(e.operands[0])
        seen = through(e, a.view)
        if seen is None:
            whole = dense(e.operands[0])  # type: ignore[arg-type]
            a = Array(self.vector(a), whole, ELEMENTS[e.results[0].dtype], False)
            seen = through(e, a.view)
            assert seen is not None, "a dense array can be seen in any shape"
        return replace(a, view=seen)

    def _matmul(self, e: Node) -> int:
        a, b = (self.of(v) for v in e.operands)
        return self.product(a, b, e.results[0])

    # What moves elements

    def _concat(self, e: Node) -> int:
        (axis,), out = e.params, e.results[0]
        total, start, parts = math.prod(out.shape), 0, []
        for v in e.operands:
            a = self.of(v)
            n = a.view.shape[axis]
            inside = np.full(out.shape, -1)
            part = (slice(None),) * axis + (slice(start, start + n),)
            inside[part] = np.arange(a.view.size).reshape(a.view.shape)
            parts.append((self.vector(a), inside.reshape(total)))
            start += n
        return self.joined(parts, ELEMENTS[out.dtype])

    def _embed(self, e: Node) -> int:
        out, a = e.results[0], self.of(e.operands[0])
        inside = np.full(out.shape, -1)
        inside[tuple([slice(*t) for t in e.params[0]])] = np.arange(a.view.size).reshape(
            a.view.shape
        )
        zero = self.add(Constant(0, a.element), 1)
        n = math.prod(out.shape)
        return self.joined([(zero, np.zeros(n, int)), (self.vector(a), inside.ravel())], a.element)

    def _whole(self, v: Any) -> int:
        """The line of an index, in 64 bits."""
        x = self.vector(self.of(v))
        if self.of(v).view.root.dtype.kind not in "iu":
            raise NoLines("an index is no whole number")
        return x if self.lines[x].element == "i64" else self.op("whole", _WIDENED, [x], "i64",
                                                                 self.widths[x])  # fmt: skip

    def _take(self, e: Node) -> int:
        out = e.results[0]
        if e.name == "wrap_index":
            return self._indices(e.operands[0], e.params[0], ELEMENTS[out.dtype])
        if e.operands[0] in self.counted:
            return self._indices(e.operands[1], e.operands[0].shape[0], ELEMENTS[out.dtype])
        a, (axis,) = self.of(e.operands[0]), e.params
        shape = a.view.shape
        outer, n, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        indices = self._each(e.operands[1])
        if outer * len(indices) > _MOST_ROWS:
            raise NoLines("many rows are taken")
        a = self._run(a)
        place, offset = a.line, a.view.offset
        rows = [
            self.add(Taken(place, i, offset + o * n * inner, self._asked(i, n), a.element, inner))
            for o in range(outer)
            for i in indices
        ]
        return self._stacked(rows, a.element)

    def _indices(self, v: Any, length: int, element: str) -> int:
        """Indices counted from the begin."""
        good = [
            self.add(Taken(None, i, 0, length, "i64", 1)) if self._asked(i, length) else i
            for i in self._each(v)
        ]
        found = self._stacked(good, "i64")
        if element == "i64":
            return found
        return self.op("index", _SAME, [found], element, self.widths[found])

    def _asked(self, index: int, length: int) -> int:
        """The length of an axis; 0 if the index cannot be outside of it, nor negative."""
        ends = span(self, index)
        return 0 if ends is not None and ends[0] >= 0 and ends[1] < length else length

    def _each(self, v: Any) -> list[int]:
        """The lines of single indices."""
        x = self._whole(v)
        if self.widths[x] > _MOST_ROWS:
            raise NoLines("many indices")
        return [self.pick(x, np.array([j]), "i64") for j in range(self.widths[x])]

    def _stacked(self, rows: Sequence[int], element: str) -> int:
        """Vectors of one length, one after the other."""
        n = self.widths[rows[0]]
        at = np.arange(len(rows) * n)
        parts = [(row, np.where(at // n == k, at % n, -1)) for k, row in enumerate(rows)]
        return self.joined(parts, element) if len(rows) > 1 else rows[0]

    def _moved(self, e: Node) -> int:
        out, element = e.results[0], ELEMENTS[e.results[0].dtype]
        lanes = math.prod(out.shape)
        if e.name in UPDATES:
            x, g, i = (self.of(v) for v in e.operands)
            length = out.shape[0]
            if x.in_memory and self.table(x):
                return self._written(x, g, i, e)
            base = self.vector(x)
        else:
            (g, i), (axis, length) = (self.of(v) for v in e.operands), e.params
            if math.prod(out.shape[:axis]) > 1:
                raise NoLines("rows are added along an inner axis")
            zero = self.add(Constant(0, element), 1)
            base = self.pick(zero, np.zeros(lanes, int), element)
        if i.view.size > _MOST_ROWS or lanes * typed(element).bytes > MOST_BYTES:
            raise NoLines("many rows are written")
        index = self._whole(e.operands[-1])
        rows, count = self.vector(g), self.widths[index]
        length = self._asked(index, length)
        return self.add(Moved(base, index, rows, count, length, how_updated(e), element, lanes))

    def _written(self, x: Array, g: Array, i: Array, e: Node) -> int:
        if i.view.size > _MOST_ROWS:
            raise NoLines("many rows are written")
        index, rows = self._whole(e.operands[-1]), self.vector(g)
        count, length = self.widths[index], self._asked(index, e.results[0].shape[0])
        how = how_updated(e)
        return self.add(Moved(x.line, index, rows, count, length, how, x.element, 0))

    # Control flow

    def _control(self, e: Node) -> list[Array]:
        form = e.primitive.kind.form()  # type: ignore[attr-defined]
        given = [self.of(v) for v in e.operands]
        if isinstance(form, Choice):
            graphs = [_of_lines(g) for g in form.graphs]
            if len(graphs) == 1:
                return self.graph(graphs[0], given)
            return self._choice(e, graphs, given)
        if isinstance(form, Repeat):
            return self._repeat(e, form, given)
        raise NoLines(f"{e.name} goes through its steps in Python")

    def _choice(self, e: Node, graphs: Sequence[Graph], given: Sequence[Array]) -> list[Array]:
        ways = []
        for g in graphs:
            inner = Making(self.columns, self)
            arrays = [inner.seen(a) for a in given[1:]]
            ways.append(inner.lines_of([inner.vector(a) for a in inner.graph(g, arrays)]))
        index = self.vector(given[0])
        line = self.add(Chosen(index, tuple(ways)))
        return self._results(line, e.results)

    def _run(self, a: Array) -> Array:
        """The array in memory, its elements one after the other."""
        if a.in_memory and a.view.is_run:
            return a
        whole = dense(Var("spilled", a.view.shape, a.view.root.dtype))
        return Array(self.add(Spilled(self.vector(a), a.element)), whole, a.element, True)

    def _results(self, line: int, results: Sequence[Var], first: int = 0) -> list[Array]:
        return [
            self.made(self.add(Result(line, first + k, ELEMENTS[v.dtype], self._width(v))), v)
            for k, v in enumerate(results)
        ]

    def _width(self, v: Var) -> int:
        return 0 if self.is_table(v) else self.lanes(v.shape)

    def _repeat(self, e: Node, form: Any, given: Sequence[Array]) -> list[Array]:
        if form.steps is None and form.test is None:
            raise NoLines("a loop of as many steps as an array has rows")
        body, c, n = _of_lines(form.body), form.constants, form.carry
        moving = body.inputs[c : c + n]
        carry = [self.carried(a, v) for a, v in zip(given[c : c + n], moving, strict=True)]
        xs = [self._run(a) for a in given[c + n :]]
        if self.columns[0] and (xs or len(e.results) > n):
            raise NoLines("a loop inside has rows")
        rooms = []
        for v in e.results[n:]:
            if math.prod(v.shape) * v.dtype.itemsize > MOST_MATRIX:
                raise NoLines("a loop inside keeps many rows")
            rooms.append(self.add(Room(len(self.lines), math.prod(v.shape), ELEMENTS[v.dtype])))

        def made(stepping: bool) -> Lines:
            inner = Making(self.columns, self)
            k = inner.add(Given("state", 0, "i64", 1))
            state = [inner.given(v, "state", j + 1) for j, v in enumerate(moving)]
            held = [inner.seen(a) for a in given[:c]]
            if stepping:
                state, k = inner._step(form, body, (held, state, xs), k, rooms, e.results[n:])
            go = inner.op("less", _LESS, [k, inner.number(form.most)], "i1", 1)
            if form.test is not None:
                (asked,) = inner.graph(_of_lines(form.test), [*held, *state])
                go = inner.op("and", _BOTH, [go, inner.vector(asked)], "i1", 1)
            return inner.lines_of([k, *[a.line for a in state], go] if stepping else [go])

        line = self.add(Looped(made(False), made(True), (self.number(0), *carry)))
        ends = self._results(line, e.results[:n], 1)
        kept = [
            Array(room, dense(v), ELEMENTS[v.dtype], True)
            for room, v in zip(rooms, e.results[n:], strict=True)
        ]
        return [*ends, *kept]

    def _step(
        self, form: Any, body: Graph, given: Any, k: int, rooms: Sequence[int], ys: Sequence[Var]
    ) -> tuple[list[Array], int]:
        """One step of a loop inside: its state, and how many steps there were."""
        held, state, xs = given
        row = k
        if form.back:
            row = self.op("subtract", _MINUS, [self.number(form.steps - 1), k], "i64", 1)
        rows = []
        for a, v in zip(xs, body.inputs[len(held) + len(state) :], strict=True):
            place, lanes = self.seen(a).line, self.lanes(v.shape)
            line = self.add(Taken(place, row, a.view.offset, 0, a.element, lanes))
            rows.append(self.made(line, v))
        found = self.graph(body, [*held, *state, *rows])
        for room, y, v in zip(rooms, found[len(state) :], ys, strict=True):
            place = self.add(Given("outer", room, ELEMENTS[v.dtype], 0))
            self.add(Kept(place, row, self.vector(y), ELEMENTS[v.dtype]))
        after = [
            self.made(self.carried(a, v, ("state", j)), v)
            for j, (a, v) in enumerate(zip(found[: len(state)], body.outputs, strict=False), 1)
        ]
        return after, self.op("add", _PLUS, [k, self.number(1)], "i64", 1)


def _of_lines(graph: Graph) -> Graph:
    found = prepared(graph)
    if found is None:
        raise NoLines("it has guards, effects or symbolic sizes")
    return found


def _vars(e: Node) -> Iterator[Var]:
    return (v for v in e.operands if isinstance(v, Var))
