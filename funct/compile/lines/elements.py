"""Ops on elements as lines, and what reduces their results.

Steps of decoders and filters make a table to reduce it: `max(scores[:, None] + moves, axis=0)`. It
is more than registers hold, so no line is made of it: what reduces it computes it place by place
along its axis, each a vector, and keeps a few running results. What is the same in all steps is
read row by row; where the axis is not its first one, it is turned before the loop.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from funct.compile.fusion.groups import REDUCTIONS
from funct.compile.lines.lines import Argument, Fold, Given
from funct.compile.lines.systems import Systems
from funct.compile.lines.vectors import MOST_BYTES, Array, NoLines
from funct.compile.loops.kernel import Constant, Op
from funct.compile.loops.reductions import combine
from funct.compile.loops.scalars import ELEMENTS, Printing, exact_number, met, unsupported
from funct.compile.loops.views import View, collapse, dense
from funct.graph import Node, Var
from funct.kernels.llvm import typed

__all__ = ["ARGUMENTS", "Elements"]

ARGUMENTS = ("argmax", "argmin")

_MOST_COUNTED = 64  # elements of which the first largest one is sought
_MOST_PLACES = 64  # that are computed one after the other: code for each takes its time
_LEAST_TO_WAIT = 256  # bytes; of less all places are few vectors, which halves reduce as fast
_LEAST_APART = 512  # bytes, where the lanes of a place lie apart, or all is wanted whole too
_LEAST_PLACE = 32  # bytes of a place; less is no vector
_SEVERAL = 4  # running results of one reduction, so that none waits for the one before

_ANY = frozenset(ELEMENTS.values())
_COMBINED = {
    how: Printing(functools.partial(lambda how, f, x, y: combine(f, how, x, y), how), _ANY)
    for how in REDUCTIONS.values()
}

_SAME = Printing(lambda f, x: x, _ANY)


class Elements(Systems):
    """Who makes lines of ops on elements and of reductions.

    waiting: nodes of which no line is made before somebody wants them whole.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting: dict[Var, Node] = {}
        self.places: dict[Any, int] = {}  # lines of places of what waits
        self.readers: dict[Var, list[Any]] = {}

    def of(self, a: Any) -> Array:
        """An operand. Raises: NoLines: for a number, and for what is too much for registers."""
        if a in self.waiting:
            if _bytes(a) > MOST_BYTES:
                raise NoLines(f"{tuple(a.shape)} is too much for registers")
            self.arrays[a] = self.made(self.elementwise(self.waiting.pop(a)), a)
        return super().of(a)

    def waits(self, e: Node) -> bool:
        """Whether no line is made of an op on elements as long as nobody wants its result whole.

        Inside of other lines, what registers hold does not wait: tables may be written over.
        Raises: NoLines: for ops that loops do not hold.
        """
        why = unsupported(e)
        if why:
            raise NoLines(why)
        out = e.results[0]
        at_once = self.waiting.keys().isdisjoint(e.operands)
        if self.columns[0] or (at_once and _bytes(out) < _LEAST_TO_WAIT):
            return False
        within = self.around is not None or self._has_tables()
        if at_once and within and _bytes(out) <= MOST_BYTES:
            return False
        self.waiting[out] = e
        return True

    def is_same(self, e: Node) -> bool:
        """Whether a view is all of what waits, which then waits under this name too."""
        (x, *_), (out,) = e.operands, e.results
        if e.name != "reshape" or x not in self.waiting or x.shape != out.shape:
            return False
        self.waiting[out] = self.waiting[x]
        return True

    def _has_tables(self) -> bool:
        return any(isinstance(g, Given) and g.kind == "carry" and not g.lanes for g in self.lines)

    def elementwise(self, e: Node) -> int:
        """The line of an op whose result registers hold."""
        out = e.results[0]
        return self._op(e, lambda x: self.vector(self.of(x), out.shape), self.lanes(out.shape))

    def _op(self, e: Node, line_of: Callable[[Var], int], lanes: int) -> int:
        print_, elements, dtypes = met(e)
        given = []
        for x, dtype in zip(e.operands, dtypes, strict=True):
            if isinstance(x, Var):
                given.append(line_of(x))
                continue
            held = exact_number(x, dtype)
            assert held is not None, "what is supported has exact numbers"
            given.append(self._splat(held, ELEMENTS[dtype], lanes))
        element = ELEMENTS[e.results[0].dtype]
        params = e.params if print_.params else ()
        return self.add(Op(e.name, tuple(given), elements, element, "full", print_, params), lanes)

    def _splat(self, number: float | int, element: str, lanes: int) -> int:
        return self.pick(self.add(Constant(number, element), 1), np.zeros(lanes, int), element)

    # Reductions

    def reduced(self, e: Node) -> int:
        """The line of a reduction, or of where the largest or smallest elements stand."""
        x, out = e.operands[0], e.results[0]
        axes = tuple(e.params[0]) if e.name in REDUCTIONS else (e.params[0],)
        if axes == (None,):
            axes = tuple(range(len(x.shape)))  # type: ignore[union-attr]
        if x in self.waiting and (axis := self._axis(x, axes)) is not None:
            return self._by_places(e, x, axis)
        return self._reduced(e, self.of(x), axes, out)

    def _reduced(self, e: Node, a: Array, axes: Sequence[int], out: Var) -> int:
        shape = a.view.shape
        order = [*axes, *[k for k in range(len(shape)) if k not in axes]]
        count = math.prod([shape[k] for k in axes])
        if count > 1 and self.columns[0]:
            raise NoLines("it looks at all columns")
        lengths, strides = (tuple([x[k] for k in order]) for x in (shape, a.view.strides))
        turned = View(a.view.root, lengths, strides, a.view.offset)
        x = self.vector(replace(a, view=turned) if count > 1 else a)
        lanes = self.lanes(out.shape)
        if e.name in REDUCTIONS:
            return self.add(Fold(REDUCTIONS[e.name], x, count, ELEMENTS[out.dtype], lanes))
        if count > _MOST_COUNTED:
            raise NoLines(f"{e.name} of many elements")
        self.price(count * lanes * 8)
        return self.add(Argument(x, count, lanes, e.name == "argmin", ELEMENTS[out.dtype]))

    # Place by place

    def _axis(self, x: Var, axes: Sequence[int]) -> int | None:
        """The only axis that is reduced, if the places along it are vectors and not too many."""
        longer = [k for k in axes if x.shape[k] > 1]
        if len(longer) != 1 or ELEMENTS[x.dtype] == "i1":
            return None
        (axis,), count = longer, x.shape[longer[0]]
        if count > _MOST_PLACES or _bytes(x) < count * _LEAST_PLACE:
            return None
        if _bytes(x) >= _LEAST_APART:
            return axis
        once = len(self.readers.get(x, ())) == 1
        return axis if once and self._lies_together(x, tuple(x.shape), axis, set()) else None

    def _lies_together(self, v: Any, shape: tuple[int, ...], axis: int, seen: set[Any]) -> bool:
        """Whether a place of v along an axis is a run of lanes, one of them, or always the same."""
        if v in seen or not isinstance(v, Var):
            return True
        seen.add(v)
        e = self.waiting.get(v)
        if e is not None and tuple(v.shape) == shape:
            return all(self._lies_together(x, shape, axis, seen) for x in e.operands)
        view = (dense(v) if e is not None else self.of(v).view).broadcast(shape)
        rest = [k for k in range(len(shape)) if k != axis]
        lengths, strides = ([x[k] for k in rest] for x in (shape, view.strides))
        runs = collapse(lengths, strides)
        return not view.strides[axis] or not runs or runs[-1][1] in (0, 1)

    def _by_places(self, e: Node, x: Var, axis: int) -> int:
        shape, element = tuple(x.shape), ELEMENTS[e.results[0].dtype]
        lanes = math.prod(shape) // shape[axis]
        places = [self._place(x, shape, axis, k) for k in range(shape[axis])]
        if element != ELEMENTS[x.dtype]:
            places = [self.op("converted", _SAME, [p], element, lanes) for p in places]
        return self._combined(REDUCTIONS[e.name], places, element, lanes)

    def _place(self, v: Any, shape: tuple[int, ...], axis: int, k: int) -> int:
        """The line of a place of an axis of an operand of that shape."""
        if v in self.waiting and tuple(v.shape) == shape:
            found = self.places.get((v, axis, k))
            if found is None:
                e, lanes = self.waiting[v], math.prod(shape) // shape[axis]
                found = self._op(e, lambda x: self._place(x, shape, axis, k), lanes)
                self.places[v, axis, k] = found
            return found
        a = self.of(v)
        view = a.view.broadcast(shape)
        rest = [n for n in range(len(shape)) if n != axis]
        lengths, strides = (tuple([x[n] for n in rest]) for x in (shape, view.strides))
        down = view.strides[axis]
        if down and len(rest) == 1 and abs(strides[0]) > 1 and self._is_still(a):
            line = self.packed(a, view.offset, (down, *strides), (shape[axis], *lengths))
            turned = View(view.root, lengths, (1,), k * lengths[0])
            return self.vector(replace(a, line=line, view=turned))
        offset = view.offset + k * down
        return self.vector(replace(a, view=View(view.root, lengths, strides, offset)))

    def _is_still(self, a: Array) -> bool:
        given = self.lines[a.line]
        return a.in_memory and isinstance(given, Given) and given.kind in ("held", "outer")

    def _combined(self, how: Any, places: list[int], element: str, lanes: int) -> int:
        def both(x: int, y: int) -> int:
            return self.op(f"combine {how}", _COMBINED[how], [x, y], element, lanes)

        found, rest = places[:_SEVERAL], places[_SEVERAL:]
        for k, x in enumerate(rest):
            found[k % _SEVERAL] = both(found[k % _SEVERAL], x)
        while len(found) > 1:
            odd = found[len(found) // 2 * 2 :]
            pairs = zip(found[::2], found[1::2], strict=False)
            found = [*[both(x, y) for x, y in pairs], *odd]
        return found[0]


def _bytes(v: Var) -> int:
    return math.prod(v.shape) * typed(ELEMENTS[v.dtype]).bytes
