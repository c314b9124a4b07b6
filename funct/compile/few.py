"""A graph on few elements as one piece of machine code, with the bits of its NumPy calls.

Every value has a place in one of two arrays, of floats and of integers, or in an input; views are
places and strides. What is not known here, or would be added up in another order than NumPy adds,
leaves the graph to its NumPy calls (`call_by_call`), which are also what runs until the code pays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import attrs
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from funct.compile.executable import call_by_call
from funct.graph import Graph, Node, Var, eliminate_dead, inline_calls, optimize
from funct.kernels.cpu.elementwise.ufunc_loops import loop_of
from funct.kernels.cpu.often import Often
from funct.kernels.cpu.steps import ARRAYS, EXACT, program
from funct.kernels.elementwise import real_ufunc

__all__ = ["Few"]

_MOST = 1 << 9  # elements of a value up to which NumPy's loops are no faster than one by one
_NODES = 128
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_VIEWS = frozenset({"broadcast_to", "reshape", "settled", "stop_gradient"})
_LONG, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)
_AXES = 3  # of loops
_ENOUGH = 2_000  # calls whose gain pays for LLVM, and for 50 to 200 ms of printing and compiling

_SQUARED, _INVERTED = ("multiply", "x", "x"), ("divide", 1.0, "x")
_POWERS: dict[Any, tuple[tuple[Any, ...], ...]] = {  # of numbers that NumPy's loop gives otherwise
    -2: (_INVERTED, ("multiply", "last", "last")), -1: (_INVERTED,), 1: (("copy", "x"),),
    2: (_SQUARED,), 3: (_SQUARED, ("multiply", "last", "x")),
    4: (_SQUARED, ("multiply", "last", "last")),
}  # fmt: skip

Run = Callable[..., tuple[Any, ...]]


class Few:
    """`Few(graph).run(*buffers)`: NumPy's calls, and machine code once they have been many.

    The graph has no symbolic sizes, guards or outer tracers. The code warns of nothing.
    """

    __slots__ = ("_calls", "_graph", "run")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._calls = call_by_call(graph)
        self.run: Run = Often(self._load, _ENOUGH).counted(self._calls)

    def _load(self) -> None:
        simple = eliminate_dead(inline_calls(optimize(self._graph, guards=False)), guards=False)
        self.run = _Layout(simple).code(self._calls) or self._calls


class _Place(Struct, frozen=True):
    """Where a value lies. strides: in elements, of all its axes."""

    array: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def dense(self) -> bool:
        """Whether its elements follow each other."""
        dense = _c(self.shape)
        return all(n == 1 or s == t for n, s, t in zip(self.shape, self.strides, dense))


def _c(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple([prod(shape[k + 1 :]) for k in range(len(shape))])


class _UnknownError(Exception):
    """Something that is left to NumPy."""


class _Layout:
    """The places of a graph's values, and the steps between them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._places: dict[Var, _Place] = {}
        self._steps: list[tuple[Any, ...]] = []
        self._floats = self._words = 0  # elements of the two arrays

    def code(self, calls: Run) -> Run | None:
        """What runs the steps; calls: what runs instead where arrays lie otherwise, or raises."""
        graph = self._graph
        dtypes = {v.dtype for v in (*graph.inputs, *graph.outputs)}
        kinds = [d for d in _FLOATS if d in dtypes]
        given, results = len(graph.inputs), len(graph.outputs)
        if len(kinds) != 1 or given + results + 2 > ARRAYS or len(graph.nodes) > _NODES:
            return None
        (self._dtype,) = kinds
        spare = ARRAYS - given - results - 2
        try:
            for k, v in enumerate(graph.inputs):
                self._known(v)
                self._places[v] = _Place(k, 0, v.shape, _c(v.shape))
            for e in graph.nodes:
                self._node(e)
            for k, o in enumerate(graph.outputs):
                if o.dtype != self._dtype:
                    raise _UnknownError
                to = _Place(given + k, 0, o.shape, _c(o.shape))
                self._each("copy", to, [self._operand(o)])
        except _UnknownError:
            return None
        steps, run, dtype = tuple(self._steps), program(), self._dtype
        shapes = [o.shape for o in graph.outputs]
        floats, words = self._floats, self._words
        empty = np.empty

        def code(*buffers: Any) -> tuple[Any, ...]:
            for b in buffers:
                if not b.flags.c_contiguous:
                    if any(b.strides):
                        return calls(*buffers)  # which go through such arrays in another order
                    buffers = tuple([x.copy() if x is b else x for x in buffers])  # of one number
            outs = tuple([empty(s, dtype) for s in shapes])
            room, whole = empty(floats, dtype), empty(words, _LONG)
            if run(*buffers, *outs, *[room] * spare, room, whole, steps):
                return calls(*buffers)
            return outs

        return code

    def _known(self, v: Var) -> None:
        dtype = v.dtype
        if (dtype is not self._dtype and dtype != _LONG) or not 0 < prod(v.shape) <= _MOST:
            raise _UnknownError

    def _operand(self, a: Any) -> Any:
        if isinstance(a, Var):
            if a not in self._places:
                raise _UnknownError  # a constant of the graph
            return self._places[a]
        if a.__class__ is not int and a.__class__ is not float:
            raise _UnknownError
        return a

    def _new(self, v: Var) -> _Place:
        """Room for a value."""
        size = prod(v.shape)
        if not 0 < size <= _MOST:
            raise _UnknownError
        if v.dtype == self._dtype:
            at, self._floats = self._floats, self._floats + size
            place = _Place(ARRAYS - 2, at, v.shape, _c(v.shape))
        elif v.dtype in (_LONG, _BOOL):
            at, self._words = self._words, self._words + size
            place = _Place(ARRAYS - 1, at, v.shape, _c(v.shape))
        else:
            raise _UnknownError
        self._places[v] = place
        return place

    def _node(self, e: Any) -> None:
        if not isinstance(e, Node) or len(e.results) != 1:
            raise _UnknownError
        (v,), given = e.results, [self._operand(a) for a in e.operands]
        params = dict(zip(e.primitive.params, e.params))
        name = e.name
        if name in _VIEWS:
            self._places[v] = self._view(name, given[0], v)
        elif name == "astype":
            if v.dtype != self._dtype and not (v.dtype == _LONG and given[0].array == ARRAYS - 1):
                raise _UnknownError
            self._each("copy", self._new(v), given)
        elif name in ("reduce_sum", "reduce_max"):
            self._reduced(name, v, given[0], params["axes"])
        elif name == "put_along_axis":
            self._put(v, given, params["axis"])
        elif EXACT.get(name) == len(given):
            if name == "where" and not any(isinstance(x, _Place) for x in given[1:]):
                raise _UnknownError
            self._each(name, self._new(v), given)
        elif name == "pow" and given[1] in _POWERS:
            self._power(v, *given)
        else:
            self._loop(e, v, given)

    def _view(self, name: str, x: Any, v: Var) -> _Place:
        if not isinstance(x, _Place):
            raise _UnknownError
        if name != "reshape":
            return replace(x, shape=v.shape, strides=_spread(x, v.shape))
        if not x.dense:
            dense = self._new(attrs.evolve(v, shape=x.shape))
            self._each("copy", dense, [x])
            x = dense
        return replace(x, shape=v.shape, strides=_c(v.shape))

    def _each(self, what: str, to: _Place, given: list[Any]) -> None:
        shape, strides = _merged(to.shape, [_spread(x, to.shape) for x in given])
        operands = [
            (x.array, x.offset, s) if isinstance(x, _Place) else x
            for x, s in zip(given, strides, strict=True)
        ]
        operands += [0.0] * (3 - len(operands))
        self._steps.append(("each", what, to.array, to.offset, shape, tuple(operands)))

    def _power(self, v: Var, x: _Place, y: float) -> None:
        """The steps of `kernels.power`."""
        named = {"x": x, "last": x}
        for what, *given in _POWERS[y]:
            operands = [named.get(a, a) for a in given]
            named["last"] = self._new(v)
            self._each(what, named["last"], operands)

    def _loop(self, e: Node, v: Var, given: list[Any]) -> None:
        """One of NumPy's loops over an array, or SciPy's, with numbers as other operands."""
        raw = e.primitive.raw
        ufunc = raw.ufunc() if hasattr(raw, "ufunc") else real_ufunc(raw)
        if ufunc is None or e.params or loop_of(ufunc, self._dtype) is None:
            raise _UnknownError
        x, *rest = given
        if e.name == "pow" and (isinstance(rest[0], _Place) or float(2 * rest[0]).is_integer()):
            raise _UnknownError  # what `kernels.power` makes of it
        to = self._new(v)
        if not isinstance(x, _Place) or not x.dense or x.array == ARRAYS - 1 or x.shape != to.shape:
            raise _UnknownError
        if any(isinstance(r, _Place) for r in rest) or len(rest) > 1:
            raise _UnknownError
        size = prod(to.shape)
        operands = (x.array, x.offset, float(rest[0]) if rest else None)
        self._steps.append(("loop", ufunc, to.array, to.offset, size, operands))

    def _reduced(self, name: str, v: Var, x: _Place, axes: tuple[int, ...]) -> None:
        """Along the last axes, or the first ones: others are added up in an order of their own."""
        if not x.dense or v.dtype != self._dtype:
            raise _UnknownError
        kept = [k not in axes for k, n in enumerate(x.shape) if n > 1]
        size, n = prod(x.shape), prod([x.shape[k] for k in axes])
        to = self._new(v)
        what = name.removeprefix("reduce_")
        if kept == sorted(kept, reverse=True):
            step = ("rows", what, to.array, to.offset, size // n, (x.array, x.offset, n))
        elif kept == sorted(kept) and what == "sum":
            step = ("columns", what, to.array, to.offset, size // n, (x.array, x.offset, n))
        else:
            raise _UnknownError
        self._steps.append(step)

    def _put(self, v: Var, given: list[Any], axis: int) -> None:
        """One number into each row, at an index."""
        x, indices = given
        rank = len(v.shape)
        both = isinstance(x, _Place) and isinstance(indices, _Place)
        if not both or axis % rank != rank - 1 or not x.dense or not indices.dense:
            raise _UnknownError
        if x.shape != indices.shape or x.shape[:-1] != v.shape[:-1] or x.shape[-1] != 1:
            raise _UnknownError
        to = self._new(v)
        operands = (x.array, x.offset, indices.array, indices.offset, v.shape[-1])
        self._steps.append(("put", "", to.array, to.offset, prod(x.shape), operands))


def _spread(x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an operand along the axes of a shape that it broadcasts to."""
    if not isinstance(x, _Place):
        return (0,) * len(shape)
    new = len(shape) - len(x.shape)
    own = [0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True)]
    return (*(0,) * new, *own)


def _merged(
    shape: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The same elements in the same order with three axes, those that follow each other as one."""
    axes: list[tuple[int, tuple[int, ...]]] = []
    for n, steps in zip(shape, zip(*strides, strict=True), strict=True):
        if n == 1:
            continue
        if axes and all(a == n * b for a, b in zip(axes[-1][1], steps, strict=True)):
            axes[-1] = axes[-1][0] * n, steps
        else:
            axes.append((n, steps))
    if len(axes) > _AXES:
        raise _UnknownError
    full = [(1, (0,) * len(strides))] * (_AXES - len(axes)) + axes
    return tuple([n for n, _ in full]), [tuple(s) for s in zip(*[s for _, s in full], strict=True)]
