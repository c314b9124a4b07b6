"""Rewrite a graph for machine code: the same numbers by ops that loops and BLAS do well.

- `absorb` goes where h is finite wherever g is 0, so that there is nothing to absorb (`finite.py`);
- products are those of stacks of matrices, or sums in loops (`products.py`);
- what is one known number is a number, not an array of it, and times 1 is nothing;
- a reduction of axes with others between them is one of the last of them, then one of the rest
  (`in_parts.py`);
- what has no elements is left out of arrays one after the other;
- the place of an extreme element is the least number of those that are one;
- rows that are short, and of which only columns matter, lie side by side (`short_columns.py`);
- last axes of a few elements are taken apart: points, colours, small matrices (`narrow.py`);
- `relu` is computed behind pools instead of before them (`behind_pools.py`);
- the slope of a sigmoid is one function (`logistic.py`);
- functions of looked-up elements of a table that is smaller are computed before (`looked_up.py`);
- elementwise ops on arrays that are all turned alike are computed before the turn (`turned.py`);
- arrays that are put one behind the other in several steps are in one;
- elementwise ops on arrays one behind the other are computed for each (`pieces.py`);
- reductions of a short axis between others are written out (`between.py`);
- elementwise ops on every second element and zeros are computed in pairs (`gaps.py`);
- indices that are known and are a box of an axis are slices of it (`boxes.py`);
- indices at which numbers are added have four bytes;
- indices without a sign are no negative ones in eight bytes;
- one element of each row is taken, or put, by comparing its index with 0, 1, 2 …
  (`row_elements.py`).

The sizes of the graph are numbers. Reads best after `fusion/fuse.py`, which knows what loops hold.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import attrs
import numpy as np

from funct.compile.fusion.groups import REDUCTIONS
from funct.compile.gathered import changes_few
from funct.compile.joins import is_concat
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.updates import UPDATES
from funct.compile.rewriting.behind_pools import behind_pools
from funct.compile.rewriting.between import written_out
from funct.compile.rewriting.boxes import Boxes
from funct.compile.rewriting.finite import finite_at_zeros
from funct.compile.rewriting.gaps import without_gaps
from funct.compile.rewriting.in_parts import InParts
from funct.compile.rewriting.logistic import slope_of, slope_primitive
from funct.compile.rewriting.looked_up import before_they_are_looked_up
from funct.compile.rewriting.minors import Minors
from funct.compile.rewriting.narrow import taken_apart
from funct.compile.rewriting.outer_sums import OuterSums
from funct.compile.rewriting.pieces import in_pieces
from funct.compile.rewriting.row_elements import Check, RowElements
from funct.compile.rewriting.short_columns import rows_together
from funct.compile.rewriting.turned import as_they_lie
from funct.core import lookup
from funct.graph import Graph, Guard, Node, Var

__all__ = ["simplify"]

_ELSEWHERE = frozenset({
    "reshape", "broadcast_to", "permute_dims", "flip", "settled", "stop_gradient",
    "checkpoint_name",
})  # fmt: skip
_LARGE = 256  # elements of a constant that is looked at
_INDEX = {  # which operand is
    "take": 1, "put": 1, "take_along_axis": 1, "put_along_axis": 1, "wrap_index": 0,
    **dict.fromkeys(UPDATES, 2),
}  # fmt: skip
_MOST = np.iinfo(np.int64).max
_FOLDED = frozenset({"add", "subtract", "multiply", "divide", "negative", "maximum", "minimum"})


def simplify(graph: Graph, *, body: bool = False) -> tuple[Graph, tuple[Check, ...]]:
    """The graph rewritten, and what must be checked of its inputs before it runs.

    body: of a loop, or another graph where no call of NumPy may be left.
    """
    found, checks = _Rewriting(graph, body).run()
    found = as_they_lie(before_they_are_looked_up(behind_pools(found)))
    found = written_out(without_gaps(in_pieces(found)), body=body)
    return taken_apart(found if body else rows_together(found)), checks


class _Rewriting(Boxes, InParts, Minors, OuterSums, RowElements):
    """One walk over the nodes, each written anew or replaced."""

    def __init__(self, graph: Graph, body: bool) -> None:
        super().__init__(graph)
        self.body = body
        self.new: dict[Var, Var] = {}  # what a Var is now
        self.numbers: dict[Var, Any] = {}  # what is the same known number everywhere
        for v, x in graph.constants:
            if v.dtype.kind == "f" and math.prod(v.shape) == 1 and v.dtype in ELEMENTS:
                self.numbers[v] = np.asarray(x.data).reshape(())[()]
            elif v.dtype in ELEMENTS and _is_one_number(np.asarray(x.data)):
                one = self.constant(np.asarray(x.data)[(0,) * len(v.shape)].reshape(()))
                self.numbers[one] = np.asarray(x.data)[(0,) * len(v.shape)]
                self.new[v] = self.apply("broadcast_to", (one,), (v.shape,), v.shape, v.dtype)
                self.numbers[self.new[v]] = self.numbers[one]

    def run(self) -> tuple[Graph, tuple[Check, ...]]:
        """Rewrite."""
        for entry in self.graph.nodes:
            e: Any = entry
            if isinstance(e, Guard):
                operand = self._now(e.operand) if e.operand is not None else None
                self.nodes.append(attrs.evolve(e, operand=operand))
                continue
            assert isinstance(e, Node), "calls are inlined"
            operands = tuple([self._now(a) if isinstance(a, Var) else a for a in e.operands])
            if operands != e.operands:
                e = attrs.evolve(e, operands=operands)
            self.site = e.site
            e = self._signed(self._numbered(e))
            found = self._rewritten(e)
            if found is None:
                self.keep(e)
            else:
                self.new[e.results[0]] = found
                self.takes_over(found, e.results[0])
        return self.finished(self.new), tuple(self.checks)

    def _now(self, v: Var) -> Var:
        """What stands for v."""
        return self.new.get(v, v)

    def _rewritten(self, e: Node) -> Var | None:
        match e.name:
            case "multiply" | "divide":
                x, y = e.operands
                if e.name == "multiply" and not isinstance(x, Var):
                    x, y = y, x
                if y.__class__ in (int, float) and y == 1 and _is_whole(x, e):
                    return x
                return None if self.body else self._slope(e)
            case "absorb":
                g, h = e.operands
                return h if isinstance(h, Var) and finite_at_zeros(h, g, self.made_by) else None
            case "cofactor":
                return self.minors(e)
            case "contract":
                return self.contracted(e)
            case "matmul":
                return self.thin(e)
            case "reduce_sum" if (
                found := self.sum_of_products(e) or self.sum_of_outer(e)
            ) is not None:
                return found
            case name if name in REDUCTIONS:
                return self._of_one(e) or self._before_turn(e) or self.in_parts(e)
            case _ if is_concat(e):
                return self._concat(e)
            case "argmax" | "argmin":
                return self._extreme_place(e, e.name == "argmax")
            case name if (name in ("take", "put") or name in UPDATES) and not changes_few(e):
                return self.in_box(e)
            case "wrap_index":
                return self._narrow_index(e)
            case "take_along_axis":
                return self.taken_one(e)
            case "put_along_axis":
                return self.put_one(e)
        return None

    def _slope(self, e: Node) -> Var | None:
        """The slope of a sigmoid, as one function."""
        found, out = slope_of(e, self.made_by), e.results[0]
        if found is None or out in self.decided or found[0].shape != out.shape:
            return None
        slope = self.var(out.shape, out.dtype)
        self.keep(Node(slope_primitive(), found[:1], (), (slope,), e.site))
        return slope

    def _narrow_index(self, e: Node) -> Var | None:
        """Indices that were looked at, in four bytes where numbers are added at them."""
        out, (n,) = e.results[0], e.params
        added = all(map(_adds_numbers, self.readers.get(out, ())))
        if n >= 1 << 31 or out.dtype.itemsize <= 4 or not added:
            return None
        return self.apply("wrap_index", e.operands, e.params, out.shape, np.int32)

    def _signed(self, e: Node) -> Node:
        """The node with indices that loops may take for int64: beyond all of those, none is."""
        at = _INDEX.get(e.name)
        i = e.operands[at] if at is not None else None
        if not isinstance(i, Var) or i.dtype != np.uint64:
            return e
        if i in self.constants:
            known = np.asarray(self.constants[i].data)
            new = self.constant(np.minimum(known, _MOST).astype(np.int64))
        else:
            low = self.apply("minimum", (i, _MOST), (), i.shape, i.dtype)
            new = self.apply("astype", (low,), (np.dtype(np.int64),), i.shape, np.int64)
        operands = tuple([new if k == at else a for k, a in enumerate(e.operands)])
        return attrs.evolve(e, operands=operands)

    # Known numbers

    def _numbered(self, e: Node) -> Node:
        """The node with numbers for operands that are one, and what is known of its result."""
        if len(e.results) != 1 or not any(v in self.numbers for v in e.operands):
            return e
        out = e.results[0]
        first = e.operands[0]
        if e.name in _ELSEWHERE and isinstance(first, Var):
            self.numbers[out] = self.numbers[first]
            return e
        if e.name == "scatter_add" and self._is_zero(first):
            return attrs.evolve(_as_put(out), operands=e.operands[1:], site=e.site)
        if e.name not in _FOLDED or out.dtype.kind != "f":
            return e
        known = [self.numbers.get(a) if isinstance(a, Var) else a for a in e.operands]
        same = all(not isinstance(a, Var) or a.dtype == out.dtype for a in e.operands)
        if same and all(isinstance(n, np.generic | int | float) for n in known):
            with np.errstate(all="ignore"):
                self.numbers[out] = e.primitive.raw(*known)
            return e
        operands = list(e.operands)
        for k, a in enumerate(operands):
            others = [b for b in operands if isinstance(b, Var) and b is not a]
            fits = any(b.shape == out.shape and b.dtype == out.dtype for b in others)
            if isinstance(a, Var) and a in self.numbers and a.dtype == out.dtype and fits:
                operands[k] = float(self.numbers[a])
        return attrs.evolve(e, operands=tuple(operands))

    def _is_zero(self, x: Any) -> bool:
        """Whether x is known to be 0 everywhere, and not -0."""
        number = self.numbers.get(x)
        if number is None or number.dtype.kind == "b":
            return False
        return not number.tobytes().strip(b"\0")

    def _concat(self, e: Node) -> Var | None:
        """Arrays one behind the other of which some are that themselves, in one, without those that
        have no elements, as `roll` by 0 makes.
        """
        out, given = e.results[0], e.operands
        alike = all(isinstance(v, Var) and v.dtype == out.dtype for v in given)
        if 0 in out.shape or not alike:
            return None
        parts: list[Any] = []
        for v in given:
            source = self.made_by.get(v) if self.is_read_once(v) else None  # type: ignore[arg-type]
            nested = source is not None and is_concat(source) and source.params == e.params
            if nested and out.dtype in ELEMENTS and source is not None:
                parts += source.operands
            elif 0 not in v.shape:  # type: ignore[union-attr]
                parts.append(v)
        if parts == list(given):
            return None
        if len(parts) == 1:
            return parts[0]
        found = self.concat(parts, e.params[0], self.var(out.shape, out.dtype))
        self.readers[found] = self.readers[out]
        return found

    # Reductions

    def _of_one(self, e: Node) -> Var | None:
        """A reduction of axes that have one element is none."""
        (x,), (axes, _), out = e.operands, e.params, e.results[0]
        assert isinstance(x, Var)
        if any(x.shape[a] != 1 for a in axes) or 0 in x.shape or out.dtype not in ELEMENTS:
            return None
        if x.dtype != out.dtype:
            x = self.apply("astype", (x,), (out.dtype,), x.shape, out.dtype)
        if e.name == "reduce_sum" and out.dtype.kind == "f":  # which begins with 0: -0 is lost
            x = self.apply("add", (x, 0.0), (), x.shape, out.dtype)
        return self.apply("reshape", (x,), (out.shape,), out.shape, out.dtype)

    def _before_turn(self, e: Node) -> Var | None:
        """A reduction of an array that is turned, before the turn: less is turned. NumPy adds in
        the order of memory, so decisions keep its bits.
        """
        (x,), (axes, kept), out = e.operands, e.params, e.results[0]
        turn = self.made_by.get(x)  # type: ignore[arg-type]
        if turn is None or turn.name != "permute_dims" or not self.is_read_once(x):
            return None
        (core,), (order,) = turn.operands, turn.params
        assert isinstance(core, Var)
        gone = tuple(sorted([order[a] for a in axes]))
        stays = [a for a in range(len(order)) if kept or a not in gone]
        shape = [1 if a in gone else core.shape[a] for a in stays]
        whole = self.var(shape, out.dtype)
        before = attrs.evolve(e, operands=(core,), params=(gone, kept), results=(whole,))
        found = self._rewritten(before)
        if found is None:
            self.keep(before)
        return self.permute(found or whole, [stays.index(a) for a in order if a in stays])

    def _extreme_place(self, e: Node, largest: bool) -> Var | None:
        """The first place of the largest or the least along an axis; a NaN is both.

        It is the least of the places where an element is what the reduction gives.
        """
        (x,), (axis, _), out = e.operands, e.params, e.results[0]
        if not isinstance(x, Var) or x.dtype not in ELEMENTS or 0 in x.shape:
            return None
        length = x.shape[axis]
        if length >= 1 << 31 or x.dtype.kind == "b":
            return None
        if length in (1, math.prod(x.shape)) and not self.body:
            return None  # NumPy finds the one place of an array in one pass
        if length == 1:
            zero = self.constant(np.zeros((), out.dtype))
            return self.apply("broadcast_to", (zero,), (out.shape,), out.shape, out.dtype)
        shape = [1 if a == axis else n for a, n in enumerate(x.shape)]
        name = "reduce_max" if largest else "reduce_min"
        extreme = self.apply(name, (x,), ((axis,), True), shape, x.dtype)
        hit = self.apply("equal", (x, extreme), (), x.shape, bool)
        if x.dtype.kind == "f":
            lost = self.apply("isnan", (x,), (), x.shape, bool)
            hit = self.apply("logical_or", (hit, lost), (), x.shape, bool)
        along = [length if a == axis else 1 for a in range(len(shape))]
        places = self.constant(np.arange(length, dtype=np.int32).reshape(along))
        found = self.apply("where", (hit, places, length), (), x.shape, np.int32)
        first = self.apply("reduce_min", (found,), ((axis,), True), shape, np.int32)
        return self.reshape(
            self.apply("astype", (first,), (out.dtype,), shape, out.dtype), out.shape
        )


def _adds_numbers(reader: Any) -> bool:
    """Whether a node adds numbers, not rows, at places."""
    names = ("put", "scatter_add")
    return isinstance(reader, Node) and reader.name in names and len(reader.results[0].shape) == 1


def _is_one_number(x: np.ndarray[Any, Any]) -> bool:
    """Whether a large array has the same bits everywhere."""
    if x.size < _LARGE or not x.flags.c_contiguous:
        return x.size >= _LARGE and not any(x.strides)
    words = x.reshape(-1).view(f"u{x.itemsize}")
    return bool((words[:_LARGE] == words[0]).all() and (words == words[0]).all())


def _is_whole(x: Any, e: Node) -> TypeGuard[Var]:
    """Whether x has the shape and dtype of the node's result."""
    out = e.results[0]
    return isinstance(x, Var) and x.shape == out.shape and x.dtype == out.dtype


def _as_put(out: Var) -> Node:
    """A node that adds to zeros of this shape; what it adds is to be filled in."""
    put = lookup("put")
    assert put is not None
    return Node(put, (), (0, out.shape[0]), (out,))
