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

import attrs
import numpy as np

from funct.compile.forms import Choice, Repeat
from funct.compile.groups import REDUCTIONS
from funct.compile.lines import (
    Argument,
    Chosen,
    Dot,
    Fold,
    Given,
    Joined,
    Kept,
    Line,
    Lines,
    Looped,
    Moved,
    Packed,
    Pick,
    Read,
    Result,
    Room,
    Spilled,
    Taken,
)  # fmt: skip
from funct.compile.loops import Constant, Op
from funct.compile.scalars import ELEMENTS, Printing, exact_number, met, unsupported
from funct.compile.select import prepared
from funct.compile.views import VIEWS, View, dense, through
from funct.device import host
from funct.graph import Control, Graph, Node, Var
from funct.kernels.llvm import typed

__all__ = ["Array", "Making", "NoLines"]

_MOST_BYTES = 1024  # of an array in registers, or near them
_MOST_WORK = 1 << 15  # bytes that a step computes, times their ops' costs: code has its price
_FEW_TERMS = 64  # vectors of a product whose terms are lines of their own
_MOST_MATRIX = 1 << 15  # bytes of a matrix that is packed
_MOST_ROWS = 16  # that are taken by one op, or products of one stack

_FLOATS = frozenset({"f32", "f64"})
_FUSED = Printing(lambda f, x, y, z: f.fma(x, y, z), _FLOATS)
_TIMES = Printing(lambda f, x, y: x * y, _FLOATS)
_PLUS = Printing(lambda f, x, y: x + y, _FLOATS | {"i64"})
_MINUS = Printing(lambda f, x, y: x - y, frozenset({"i64"}))
_LESS = Printing(lambda f, x, y: x < y, frozenset({"i64"}))
_BOTH = Printing(lambda f, x, y: x & y, frozenset({"i1"}))


class NoLines(Exception):  # noqa: N818
    """Something in a body is no line."""


@attrs.frozen
class Array:
    """An array: the line that has its elements, and where among them they stand."""

    line: int
    view: View
    element: str
    in_memory: bool


class Making:
    """Lines as they are made.

    columns: how many elements are so many lanes at a time, where all is elementwise over them;
    (0, 0): each array is one vector. around: who makes the lines that these stand in. held: gets
    the constants of graphs, which are numbered from first_held on.
    """

    def __init__(
        self, columns: tuple[int, int], around: Making | None = None,
        held: dict[Var, Any] | None = None, first_held: int = 0,
    ) -> None:  # fmt: skip
        self.columns = columns
        self.around = around
        self.lines: list[Line] = []
        self.widths: list[int] = []
        self.known: dict[Line, int] = {}
        self.arrays: dict[Var, Array] = {}
        self.held = held if held is not None else {}
        self.first_held = first_held
        self.work = 0

    def add(self, line: Line, lanes: int | None = None) -> int:
        """Where the line is, which is made if there is none like it."""
        found = self.known.get(line)
        if found is None:
            found = self.known[line] = len(self.lines)
            if lanes is None:
                assert not isinstance(line, Constant | Op), "others say how wide they are"
                lanes = line.lanes
            cost = line.printing.cost if isinstance(line, Op) else 1
            self._price(lanes * typed(line.element).bytes * cost)
            self.lines.append(line)
            self.widths.append(lanes)
        return found

    def _price(self, work: int) -> None:
        self.work += max(8, work)
        if self.work > _MOST_WORK:
            raise NoLines("it is as good as several loops")
        if self.around is not None:
            self.around._price(work)

    def given(self, v: Var, kind: str, index: int) -> Array:
        """An input. What is carried is in registers, the rest in memory."""
        vector = kind in ("carry", "state")
        if vector and math.prod(v.shape) * v.dtype.itemsize > _MOST_BYTES and not self.columns[0]:
            raise NoLines(f"{v.shape} is carried, which is too much for registers")
        element, lanes = ELEMENTS[v.dtype], self.lanes(v.shape) if vector else 0
        return Array(self.add(Given(kind, index, element, lanes)), dense(v), element, not vector)

    def number(self, x: int) -> int:
        """A whole number."""
        return self.add(Constant(x, "i64"), 1)

    def graph(self, graph: Graph, arrays: Sequence[Array]) -> list[Array]:
        """The outputs of a graph for these inputs. Raises: NoLines."""
        self.arrays |= dict(zip(graph.inputs, arrays, strict=True))
        for v, x in graph.constants:
            self.arrays[v] = self._constant(v, x)
        for e in graph.nodes:
            if not isinstance(e, Node) or e.primitive.effect:
                raise NoLines("it has effects")
            if any(v.dtype not in ELEMENTS or 0 in v.shape for v in (*_vars(e), *e.results)):
                raise NoLines(f"{e.name} of no elements, or of a dtype that loops do not know")
            found = self._control(e) if isinstance(e.primitive, Control) else [self._node(e)]
            self.arrays |= dict(zip(e.results, found, strict=True))
        return [self.arrays[v] for v in graph.outputs]

    def _constant(self, v: Var, x: Any) -> Array:
        if self.around is not None:
            return self.seen(self.around._constant(v, x), v)
        if v not in self.held:
            self.held[v] = np.ascontiguousarray(x.data)
        return self.given(v, "held", self.first_held + list(self.held).index(v))

    def seen(self, a: Array, v: Var) -> Array:
        """An array of the lines around, from within."""
        assert self.around is not None
        lanes = 0 if a.in_memory else self.around.widths[a.line]
        return attrs.evolve(a, line=self.add(Given("outer", a.line, a.element, lanes)))

    # Vectors

    def lanes(self, shape: Sequence[int]) -> int:
        """Of an array of that shape."""
        n, (columns, lanes) = math.prod(shape), self.columns
        if not columns or n == 1:
            return n
        if n != columns:
            raise NoLines("it is not elementwise over what is carried")
        return lanes

    def vector(self, a: Array, shape: Sequence[int] | None = None) -> int:
        """The line with the elements of an array in order, as an operand of that shape."""
        view = a.view if shape is None else a.view.broadcast(shape)
        if self.columns[0]:
            return self._column(a, view)
        size = typed(a.element).bytes
        if not 0 < view.size * size <= _MOST_BYTES:
            raise NoLines(f"an array of shape {view.shape} is not held in registers")
        at = _places(view)
        if not a.in_memory:
            return self._pick(a.line, at, a.element)
        low, high = int(at.min()), int(at.max())
        if (high - low + 1) * size <= 2 * _MOST_BYTES:
            base = self.add(Read(a.line, low, a.element, high - low + 1))
            return self._pick(base, at - low, a.element)
        lengths, strides = (1, 1, *view.shape), (0, 0, *view.strides)
        if math.prod(lengths[:-2]) > 1:
            raise NoLines("it reads elements far from one another")
        packed = self._packed(a, view.offset, strides[-2:], lengths[-2:])
        return self.add(Read(packed, 0, a.element, len(at)))

    def _packed(self, a: Array, offset: int, strides: Any, shape: Any) -> int:
        if math.prod(shape) * typed(a.element).bytes > _MOST_MATRIX:
            raise NoLines("a large matrix is transposed")
        return self.add(Packed(a.line, offset, tuple(strides), tuple(shape), a.element))

    def _column(self, a: Array, view: View) -> int:
        if not a.view.is_dense or a.view.size != math.prod(a.view.root.shape):
            raise NoLines("elements change their columns")
        own, wanted = self.lanes(a.view.shape), self.lanes(view.shape)
        line = self.add(Read(a.line, 0, a.element, own)) if a.in_memory else a.line
        return line if own == wanted else self._pick(line, np.zeros(wanted, int), a.element)

    def _pick(self, line: int, at: Any, element: str) -> int:
        base = self.lines[line]
        if len(at) == self.widths[line] and np.array_equal(at, np.arange(len(at))):
            return line
        if isinstance(base, Pick):
            return self._pick(base.operand, np.asarray(base.which)[at], element)
        return self.add(Pick(line, tuple(at.tolist()), element))

    def _made(self, line: int, v: Var) -> Array:
        return Array(line, dense(v), ELEMENTS[v.dtype], False)

    def _op(
        self, name: str, how: Printing, operands: Sequence[int], element: str, lanes: int
    ) -> int:
        line = Op(name, tuple(operands), (None,) * len(operands), element, "full", how)
        return self.add(line, lanes)

    def _joined(self, parts: Sequence[tuple[int, Any]], element: str) -> int:
        """One vector of several. parts: lines, and which lane of each a lane is, or -1."""
        (line, at), *rest = parts
        found = self._pick(line, np.maximum(at, 0), element)
        for line, at in rest:
            n = len(at)
            y = self._pick(line, np.maximum(at, 0), element)
            which = np.where(at >= 0, n + np.arange(n), np.arange(n))
            found = self.add(Joined(found, y, tuple(which.tolist()), element)) if n > 1 else y
        return found

    # Nodes

    def _node(self, e: Node) -> Array:
        out = e.results[0]
        element = ELEMENTS[out.dtype]
        if e.name in VIEWS:
            a = self._of(e.operands[0])
            seen = through(e, a.view)
            if seen is None:
                a = Array(self.vector(a), dense(e.operands[0]), element, False)  # type: ignore[arg-type]
                seen = through(e, a.view)
                assert seen is not None, "a dense array can be seen in any shape"
            return attrs.evolve(a, view=seen)
        if e.name in REDUCTIONS or e.name in ("argmax", "argmin"):
            return self._made(self._reduced(e), out)
        ways = {
            "matmul": self._product, "concat": self._concat, "embed": self._embed,
            "take": self._take, "put": self._moved, "scatter": self._moved,
            "wrap_index": self._take,
        }  # fmt: skip
        if e.name in ways:
            if self.columns[0]:
                raise NoLines(f"{e.name} is not elementwise")
            return self._made(ways[e.name](e), out)
        why = unsupported(e)
        if why:
            raise NoLines(why)
        print_, elements, dtypes = met(e)
        lanes, given = self.lanes(out.shape), []
        for a, dtype in zip(e.operands, dtypes, strict=True):
            if isinstance(a, Var):
                given.append(self.vector(self._of(a), out.shape))
                continue
            held = exact_number(a, dtype)
            assert held is not None, "what is supported has exact numbers"
            line = self.add(Constant(held, ELEMENTS[dtype]), 1)
            given.append(self._pick(line, np.zeros(lanes, int), ELEMENTS[dtype]))
        params = e.params if print_.params else ()
        op = Op(e.name, tuple(given), elements, element, "full", print_, params)
        if lanes * typed(element).bytes > _MOST_BYTES:
            raise NoLines(f"{tuple(out.shape)} is too much for registers")
        return self._made(self.add(op, lanes), out)

    def _of(self, a: Any) -> Array:
        if not isinstance(a, Var):
            raise NoLines("an operand is a number")
        return self.arrays[a]

    def _reduced(self, e: Node) -> int:
        a, out = self._of(e.operands[0]), e.results[0]
        shape = a.view.shape
        axes = e.params[0] if e.name in REDUCTIONS else (e.params[0],)
        if axes == (None,):
            axes = tuple(range(len(shape)))
        order = [*axes, *[k for k in range(len(shape)) if k not in axes]]
        count = math.prod([shape[k] for k in axes])
        if count > 1 and self.columns[0]:
            raise NoLines("it looks at all columns")
        turned = View(
            a.view.root, tuple([shape[k] for k in order]), tuple([a.view.strides[k] for k in order]),
            a.view.offset,
        )  # fmt: skip
        x = self.vector(attrs.evolve(a, view=turned) if count > 1 else a)
        lanes = self.lanes(out.shape)
        if e.name in REDUCTIONS:
            return self.add(Fold(REDUCTIONS[e.name], x, count, ELEMENTS[out.dtype], lanes))
        if count > 4 * _MOST_ROWS:
            raise NoLines(f"{e.name} of many elements")
        self._price(count * lanes * 8)
        return self.add(Argument(x, count, lanes, e.name == "argmin", ELEMENTS[out.dtype]))

    # Products

    def _product(self, e: Node) -> int:
        a, b = (self._of(v) for v in e.operands)
        out = e.results[0]
        (m, k), n = a.view.shape[-2:], b.view.shape[-1]
        stack = tuple(out.shape[:-2])
        rows = math.prod(stack) * m
        if stack and math.prod(b.view.shape[:-2]) == 1:
            tall = _reshaped(a.view, (rows, k))
            if tall is not None:
                return self._matrix(tall, View(b.view.root, (k, n), b.view.strides[-2:],
                                               b.view.offset), a, b, (rows, k, n))  # fmt: skip
        if math.prod(stack) > _MOST_ROWS:
            raise NoLines("a product of many matrices")
        x, y = a.view.broadcast((*stack, m, k)), b.view.broadcast((*stack, k, n))
        parts = []
        for s, index in enumerate(np.ndindex(*stack)):
            line = self._matrix(_nth(x, index), _nth(y, index), a, b, (m, k, n))
            at = np.full(rows * n, -1)
            at[s * m * n : (s + 1) * m * n] = np.arange(m * n)
            parts.append((line, at))
        return self._joined(parts, a.element) if len(parts) > 1 else parts[0][0]

    def _matrix(self, x: View, y: View, a: Array, b: Array, shape: tuple[int, int, int]) -> int:
        """The product of two matrices, which are views of a's and b's lines."""
        m, k, n = shape
        if m * n * typed(a.element).bytes > _MOST_BYTES:
            raise NoLines("a large product")
        a, b = attrs.evolve(a, view=x), attrs.evolve(b, view=y)
        size = typed(a.element).bytes
        small = max(m * k, k * n) * size <= _MOST_BYTES
        if small and k * -(-m * n * size // host().vector_bytes) <= _FEW_TERMS:
            return self._terms(a, b, shape)
        if n == 1 and m > 1:  # a row times the transpose
            a, b = _transposed(b), _transposed(a)
            m, n = n, m
        self._price(2 * k * n * size)
        left, right = self._numbers(a), self._rows(b, k, n)
        lengths = (*left[1][:2], right[1])
        return self.add(Dot(left[0], right[0], (left[1][2], right[2]), lengths, (m, k, n), a.element))

    def _terms(self, a: Array, b: Array, shape: tuple[int, int, int]) -> int:
        m, k, n = shape
        x, y = self.vector(a), self.vector(b)
        i, j = (g.ravel() for g in np.indices((m, n)))
        sums: list[int] = []
        several = 1 if k < 4 else 2 if k < 12 else 4
        for t in range(k):
            factors = [self._pick(x, i * k + t, a.element), self._pick(y, t * n + j, a.element)]
            if len(sums) < several:
                sums.append(self._op("multiply", _TIMES, factors, a.element, m * n))
            else:
                line = sums[t % several]
                sums[t % several] = self._op("fma", _FUSED, [*factors, line], a.element, m * n)
        while len(sums) > 1:
            sums = [
                self._op("add", _PLUS, pair, a.element, m * n)
                for pair in zip(sums[::2], sums[1::2], strict=True)
            ]
        return sums[0]

    def _numbers(self, a: Array) -> tuple[int, tuple[int, int, int]]:
        """A matrix whose numbers are read one by one: place, strides, first element."""
        if a.in_memory:
            return a.line, (*a.view.strides, a.view.offset)  # type: ignore[return-value]
        return self.add(Spilled(self.vector(a), a.element)), (a.view.shape[1], 1, 0)

    def _rows(self, b: Array, k: int, n: int) -> tuple[int, int, int]:
        """A matrix whose rows are runs of memory: place, from row to row, first element."""
        if not b.in_memory:
            return self.add(Spilled(self.vector(b), b.element)), n, 0
        down, along = b.view.strides
        if along == 1 or n == 1:
            return b.line, down, b.view.offset
        return self._packed(b, b.view.offset, b.view.strides, (k, n)), n, 0

    # What moves elements

    def _concat(self, e: Node) -> int:
        (axis,), out = e.params, e.results[0]
        total, start, parts = math.prod(out.shape), 0, []
        for v in e.operands:
            a = self._of(v)
            n = a.view.shape[axis]
            inside = np.full(out.shape, -1)
            part = (slice(None),) * axis + (slice(start, start + n),)
            inside[part] = np.arange(a.view.size).reshape(a.view.shape)
            parts.append((self.vector(a), inside.reshape(total)))
            start += n
        return self._joined(parts, ELEMENTS[out.dtype])

    def _embed(self, e: Node) -> int:
        out, a = e.results[0], self._of(e.operands[0])
        inside = np.full(out.shape, -1)
        inside[tuple([slice(*t) for t in e.params[0]])] = np.arange(a.view.size).reshape(
            a.view.shape
        )
        zero = self.add(Constant(0, a.element), 1)
        n = math.prod(out.shape)
        return self._joined([(zero, np.zeros(n, int)), (self.vector(a), inside.ravel())], a.element)

    def _whole(self, v: Any) -> int:
        """The line of an index, in 64 bits."""
        x = self.vector(self._of(v))
        if self._of(v).view.root.dtype.kind not in "iu":
            raise NoLines("an index is no whole number")
        how = Printing(lambda f, x: f.convert(x, "i64"), frozenset())
        return x if self.lines[x].element == "i64" else self._op("whole", how, [x], "i64",
                                                                 self.widths[x])  # fmt: skip

    def _take(self, e: Node) -> int:
        out = e.results[0]
        if e.name == "wrap_index":
            lines = [Taken(None, i, 0, e.params[0], "i64", 1) for i in self._each(e.operands[0])]
            found = self._stacked([self.add(t) for t in lines], "i64")
            how = Printing(lambda f, x: x, frozenset())
            element = ELEMENTS[out.dtype]
            return self._op("index", how, [found], element, self.widths[found])
        a, (axis,) = self._of(e.operands[0]), e.params
        shape = a.view.shape
        outer, n, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        indices = self._each(e.operands[1])
        if outer * len(indices) > _MOST_ROWS:
            raise NoLines("many rows are taken")
        place, offset = a.line, a.view.offset
        if not a.in_memory or not a.view.is_run:
            place, offset = self.add(Spilled(self.vector(a), a.element)), 0
        rows = [
            self.add(Taken(place, i, offset + o * n * inner, n, a.element, inner))
            for o in range(outer)
            for i in indices
        ]
        return self._stacked(rows, a.element)

    def _each(self, v: Any) -> list[int]:
        """The lines of single indices."""
        x = self._whole(v)
        if self.widths[x] > _MOST_ROWS:
            raise NoLines("many indices")
        return [self._pick(x, np.array([j]), "i64") for j in range(self.widths[x])]

    def _stacked(self, rows: Sequence[int], element: str) -> int:
        """Vectors of one length, one after the other."""
        n = self.widths[rows[0]]
        at = np.arange(len(rows) * n)
        parts = [(row, np.where(at // n == k, at % n, -1)) for k, row in enumerate(rows)]
        return self._joined(parts, element) if len(rows) > 1 else rows[0]

    def _moved(self, e: Node) -> int:
        out, element = e.results[0], ELEMENTS[e.results[0].dtype]
        lanes = math.prod(out.shape)
        if e.name == "scatter":
            x, g, i = (self._of(v) for v in e.operands)
            base, length = self.vector(x), out.shape[0]
        else:
            (g, i), (axis, length) = (self._of(v) for v in e.operands), e.params
            if math.prod(out.shape[:axis]) > 1:
                raise NoLines("rows are added along an inner axis")
            zero = self.add(Constant(0, element), 1)
            base = self._pick(zero, np.zeros(lanes, int), element)
        if i.view.size > _MOST_ROWS or lanes * typed(element).bytes > _MOST_BYTES:
            raise NoLines("many rows are written")
        index = self._whole(e.operands[-1])
        rows, count = self.vector(g), self.widths[index]
        return self.add(Moved(base, index, rows, count, length, e.name, element, lanes))

    # Control flow

    def _control(self, e: Node) -> list[Array]:
        form = e.primitive.kind.form()  # type: ignore[attr-defined]
        given = [self._of(v) for v in e.operands]
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
            arrays = [inner.seen(a, v) for a, v in zip(given[1:], g.inputs, strict=True)]
            ways.append(inner.lines_of([inner.vector(a) for a in inner.graph(g, arrays)]))
        index = self.vector(given[0])
        line = self.add(Chosen(index, tuple(ways)))
        return self._results(line, e.results)

    def lines_of(self, results: Sequence[int]) -> Lines:
        """What has been made."""
        return Lines(tuple(self.lines), tuple(results))

    def _results(self, line: int, results: Sequence[Var], first: int = 0) -> list[Array]:
        return [
            self._made(self.add(Result(line, first + k, ELEMENTS[v.dtype], self.lanes(v.shape))), v)
            for k, v in enumerate(results)
        ]

    def _repeat(self, e: Node, form: Any, given: Sequence[Array]) -> list[Array]:
        if form.steps is None and form.test is None:
            raise NoLines("a loop of as many steps as an array has rows")
        body, c, n = _of_lines(form.body), form.constants, form.carry
        carry = [self.vector(a) for a in given[c : c + n]]
        moving = body.inputs[c : c + n]
        xs = [
            a if a.in_memory and a.view.is_run
            else Array(self.add(Spilled(self.vector(a), a.element)), dense(v), a.element, True)
            for a, v in zip(given[c + n :], e.operands[c + n :], strict=True)
        ]  # fmt: skip
        if self.columns[0] and (xs or len(e.results) > n):
            raise NoLines("a loop inside has rows")
        rooms = []
        for v in e.results[n:]:
            if math.prod(v.shape) * v.dtype.itemsize > _MOST_MATRIX:
                raise NoLines("a loop inside keeps many rows")
            rooms.append(self.add(Room(len(self.lines), math.prod(v.shape), ELEMENTS[v.dtype])))

        def made(stepping: bool) -> Lines:
            inner = Making(self.columns, self)
            k = inner.add(Given("state", 0, "i64", 1))
            state = [inner.given(v, "state", j + 1) for j, v in enumerate(moving)]
            held = [inner.seen(a, v) for a, v in zip(given[:c], body.inputs, strict=False)]
            if stepping:
                state, k = inner._step(form, body, (held, state, xs), k, rooms, e.results[n:])
            go = inner._op("less", _LESS, [k, inner.number(form.most)], "i1", 1)
            if form.test is not None:
                (asked,) = inner.graph(_of_lines(form.test), [*held, *state])
                go = inner._op("and", _BOTH, [go, inner.vector(asked)], "i1", 1)
            return inner.lines_of([k, *[inner.vector(a) for a in state], go] if stepping else [go])

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
            row = self._op("subtract", _MINUS, [self.number(form.steps - 1), k], "i64", 1)
        rows = []
        for a, v in zip(xs, body.inputs[len(held) + len(state) :], strict=True):
            place, lanes = self.seen(a, v).line, self.lanes(v.shape)
            line = self.add(Taken(place, row, a.view.offset, 0, a.element, lanes))
            rows.append(self._made(line, v))
        found = self.graph(body, [*held, *state, *rows])
        for room, y, v in zip(rooms, found[len(state) :], ys, strict=True):
            place = self.add(Given("outer", room, ELEMENTS[v.dtype], 0))
            self.add(Kept(place, row, self.vector(y), ELEMENTS[v.dtype]))
        after = [
            self._made(self.vector(a), v)
            for a, v in zip(found[: len(state)], body.outputs, strict=False)
        ]
        return after, self._op("add", _PLUS, [k, self.number(1)], "i64", 1)


def _of_lines(graph: Graph) -> Graph:
    found = prepared(graph)
    if found is None:
        raise NoLines("it has guards, effects or symbolic sizes")
    return found


def _vars(e: Node) -> Iterator[Var]:
    return (v for v in e.operands if isinstance(v, Var))


def _places(view: View) -> Any:
    """Where the elements stand, in order."""
    at = np.full(view.shape, view.offset)
    for axis, (n, s) in enumerate(zip(view.shape, view.strides, strict=True)):
        at = at + (np.arange(n) * s).reshape(n, *[1] * (len(view.shape) - axis - 1))
    return at.ravel()


def _reshaped(view: View, shape: tuple[int, ...]) -> View | None:
    found: View | None = VIEWS["reshape"](view, shape)
    return found


def _nth(view: View, index: Sequence[int]) -> View:
    """A matrix of a stack."""
    moved = sum([i * s for i, s in zip(index, view.strides, strict=False)])
    return View(view.root, view.shape[-2:], view.strides[-2:], view.offset + moved)


def _transposed(a: Array) -> Array:
    v = a.view
    return attrs.evolve(a, view=View(v.root, v.shape[::-1], v.strides[::-1], v.offset))
