"""Compositions on a tape as single nodes, where all their arrays are concrete.

Op by op, a layer of ten ops is ten nodes of the tape and thirty ops on the way back, each of which
costs far more than the few elements that it computes. The pull of the whole is a function of its
arrays and of the cotangent alone. Once a function has come often with the same types, that pull is
captured and made one function of NumPy calls, later one piece of machine code (`Few`), which
computes what the walk over the tape of the composition does, to the last bit. The value has its
own such function, or the function's direct way.

Whatever is not concrete meets the composition: tapes of tapes, batches and captures never come
here, and a cotangent that is traced, or came through ops that make structural zeros, is pulled
back through a tape of the composition, which is made for that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.array import Array
from funct.compile import Few
from funct.core import ShapeDtype
from funct.graph import Graph, Guard, Node, acts, optimize
from funct.graph.capture import capture
from funct.kernels.dtypes import NAMED
from funct.ops.fast import wrap
from funct.transforms.reverse import Reverse, ReverseTracer, walked
from funct.transforms.tape.nodes import Composed

__all__ = ["Single", "is_told", "static_key"]

_OFTEN = 200  # calls with the same types after which the 20 ms of two captures pay
_MOST = 256  # calls of one function that are told apart
_WORTH = {True: 8, False: 2}  # nodes from which one call costs less: of pulls, and of values
_MANY = 2  # operands of one node; tapes have no fast way for ops of more (`tape/ways.py`)

_STATIC = frozenset({bool, int, str, type(None), *[d.__class__ for d in NAMED.values()]})

_ARRAYS = {Array, ReverseTracer}
_INT = {int}
_TOLD = {bool, int, str, type(None)}  # equal only to the same, beside their classes


def static_key(a: Any) -> Any:
    """What tells a plain value from others; None for what calls are not known by."""
    kind = a.__class__
    if kind in _STATIC:
        return kind, a
    if kind is float:
        return a if a and a == a else repr(a)  # which tells zeros apart, and knows NaN again
    if kind is tuple and {n.__class__ for n in a} <= _INT:
        return kind, *a
    return None


class _Call(Composed):
    """A call of a composition: of so many arrays, some of them on the tape, and of other values.

    frame: the values, None for arrays. arrays: the places of these. names: of the last values,
    which are given by name. mine: which of the arrays are on the tape. value: gives the result's
    buffer for the arrays' buffers. op: what is called on a tape where all is one op of the arrays,
    which the tape records by itself, and its parameters.
    """

    def __init__(
        self, fun: Callable[..., Any], frame: list[Any], arrays: list[int], names: tuple[str, ...],
        mine: list[int],
    ) -> None:  # fmt: skip
        self.name = fun.__name__
        self._fun, self._frame, self._arrays, self._names = fun, frame, arrays, names
        self._mine = mine
        self.op: tuple[Callable[..., Any], tuple[Any, ...]] | None = None

    def compile(self, like: Sequence[ShapeDtype], loops: bool, alone: bool) -> int:
        """Have value and pull as programs; what that is worth, 0 for what is none. loops: as `jit`
        has them. alone: whether a single op is left to the tape.

        What is refused decides on values, does something, or gives other than one real array.
        """
        try:
            value, outer = capture(lambda *xs: (self._composed(*xs),), like, label=self.name)
            (out,) = value.outputs
            ct = ShapeDtype(out.shape, out.dtype)
            if outer or not _plain(value) or ct.dtype.kind not in "fV":
                return 0
            self.op = _only_op(value) if self._mine and alone else None
            if self.op is not None:
                return 1
            if not self._mine:
                self.value = Few(value, loops)
                return len(optimize(value).nodes)
            pull, outer = capture(
                lambda g, *xs: self._walked(g, xs, False), (ct, *like), label=self.name
            )
        except Exception:
            return 0  # which the composition says by name
        if outer or not _plain(pull):
            return 0
        self.value, self._pull = Few(value, loops), Few(pull, loops)
        nodes = optimize(pull).nodes
        heavy = any(len(e.operands) > _MANY for e in nodes if isinstance(e, Node))
        return max(len(nodes), _WORTH[True]) if heavy else len(nodes)

    def _composed(self, *arrays: Any) -> Any:
        full = list(self._frame)
        for k, a in zip(self._arrays, arrays, strict=True):
            full[k] = a
        n = len(full) - len(self._names)
        return self._fun(*full[:n], **dict(zip(self._names, full[n:], strict=True)))

    def _walked(self, g: Any, arrays: Sequence[Any], masked: bool) -> list[Any]:
        """The cotangents by a tape of the composition."""
        one = lambda *xs: (self._composed(*xs),)  # noqa: E731
        return walked(self.name, one, arrays, self._mine, [g], masked)

    def pull(self, g: Any, *arrays: Any) -> Any:
        """By the program, where the cotangent is concrete."""
        if g.__class__ is Array:
            d, x, serve = g.data, arrays[0].data, self._pull.serve
            if d.strides != x.strides and d.shape == x.shape:
                d = np.empty_like(x)  # in the same order, also of one number, as of a sum
                d[...] = g.data
                g = wrap(d)
            elif not d.flags.c_contiguous and not any(d.strides):
                d = d.copy()  # one number: kernels read arrays, not views of a number
                g = wrap(d)
            try:
                known = None if serve is None else serve(g, *arrays)
                if known is not None:
                    return known
                found = self._pull.run(d, *[a.data for a in arrays])
            except Exception:
                return self._given(self._walked(g, arrays, False))  # which says what is wrong
            return wrap(found[0]) if len(found) == 1 else [wrap(d) for d in found]
        return self._given(self._walked(g, arrays, False))

    def masked(self, g: Any, *arrays: Any) -> Any:
        """Op by op, since each op must see the zeros."""
        return self._given(self._walked(g, arrays, True))

    def _given(self, found: list[Any]) -> Any:
        return found[0] if len(found) == 1 else found


def _only_op(graph: Graph) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
    """What a graph calls, and with which parameters, if it is one op of its inputs in order."""
    nodes = optimize(graph).nodes
    e = nodes[0] if len(nodes) == 1 else None
    if not isinstance(e, Node):
        return None
    if e.operands != graph.inputs or e.results != graph.outputs:
        return None
    return e.primitive.fn, e.params


def _plain(graph: Graph) -> bool:
    """Whether a graph takes no decision and has no effect."""
    return not acts(graph) and not any(isinstance(e, Guard) for e in graph.nodes)


def is_told(a: Any) -> bool:
    """Whether what equals a plain value, and has its class, is the same: of floats 0 is not."""
    return a.__class__ in _TOLD or (a.__class__ is float and a != 0)


class Single:
    """A composition of one result that is recorded as one node, or computed as one call.

    direct: what computes it on arrays, bit for bit, if there is something. least: nodes of a pull
    from which one call costs less than the walk over the tape. loops: elements of the first array
    from which on the programs are those of `jit`, from the first call on; there is nothing direct
    of these. alone: the programs of calls with one array, the first argument, and plain values, by
    its type, these, and all their classes.
    """

    __slots__ = ("_direct", "_fun", "_known", "_least", "_loops", "alone", "refused")

    def __init__(
        self, fun: Callable[..., Any], direct: Callable[..., Any] | None, least: int | None = None,
        loops: int = sys.maxsize,
    ) -> None:  # fmt: skip
        self._fun, self._direct, self._least, self._loops = fun, direct, least, loops
        self._known: dict[Any, Any] = {}  # how often such a call came; the call; or None for never
        self.alone: dict[Any, Few] = {}
        self.refused = set[bool]()  # on tapes, and elsewhere: whatever comes

    def __call__(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The result, on the tape if there is one; None where the composition is to be run."""
        given = (*args, *options.values()) if options else args
        taped = ReverseTracer in [a.__class__ for a in given]
        if taped in self.refused:
            return None
        level: Any = None
        key: list[Any] = list(options)
        below, nodes, kept = [], [], []
        for a in given:
            kind = a.__class__
            if kind is ReverseTracer:
                if level is None:
                    level = a.level
                    if level.__class__ is not Reverse or level.open is not True:
                        return None  # watched, closed, or what is done with it is written down
                elif a.level is not level:
                    return None
                node, a = a.node, a.value
                if a.__class__ is not Array:
                    return None
                key.append((node.dtype.num, *node.shape))
                nodes.append(node)
                kept.append(a)
            elif kind is Array:
                d = a.data
                key.append((None, d.dtype.num, *d.shape))
                nodes.append(None)
                kept.append(a)
            else:
                part = static_key(a)
                if part is None:
                    return None
                key.append(part)
            below.append(a)
        types = tuple(key)
        call = self._known.get(types, 0)
        if call.__class__ is int:
            call = self._counted(types, call + 1, below, tuple(options), nodes)
        if call is None:
            return None
        if call.op is not None:
            op, params = call.op
            return op(*[a for a in given if a.__class__ in _ARRAYS], *params)
        try:
            if self._direct is None or level is None or below[0].size >= self._loops:
                serve = call.value.serve
                ans = None if serve is None else serve(*kept)
                if ans is None:
                    ans = wrap(call.value.run(*[a.data for a in kept])[0])
            elif options:
                n = len(args)
                ans = self._direct(*below[:n], **dict(zip(options, below[n:], strict=True)))
            else:
                ans = self._direct(*below)
        except Exception:
            return None  # the composition says by name what is wrong
        if level is None:
            return ans
        return level.record_whole(ans, call, nodes, kept)

    def _counted(
        self, types: Any, count: int, below: list[Any], names: tuple[str, ...], nodes: list[Any]
    ) -> _Call | None:
        """The call, once it has come often."""
        if len(self._known) >= _MOST:
            self._known.clear()
            self.alone.clear()
        self._known[types] = count
        loops = below[0].size >= self._loops
        if count < _OFTEN and not loops:
            return None
        arrays = [k for k, a in enumerate(below) if a.__class__ is Array]
        frame = [None if a.__class__ is Array else a for a in below]
        mine = [k for k, node in enumerate(nodes) if node is not None]
        call = _Call(self._fun, frame, arrays, names, mine)
        like = [ShapeDtype(below[k].shape, below[k].dtype) for k in arrays]
        size = call.compile(like, loops, self._least is not None)
        least = self._least if mine and self._least is not None else _WORTH[bool(mine)]
        if 0 < size < least:
            self.refused.add(bool(mine))
        found = self._known[types] = call if size >= least else None
        plain = below[1:]
        if found and not mine and not names and all(map(is_told, plain)):
            d = below[0].data
            self.alone[(d.dtype.num, d.shape, *plain, *map(type, below))] = found.value
        return found
