"""Levels that let every op pass and look at it: what intercepting, tracing and saving share.

A `Watch` is a level like those of the transforms: its tracers stand for the values themselves, and
its rule is the op one level down. So it composes with every transform, sees what depends on the
arguments of the function that it was given, and costs nothing where it is not used. The nodes that
tapes below or above it record meanwhile are shown to `born`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from funct import pytree, tree
from funct.array import Array, Tensor, asarray
from funct.core import Level, Primitive, Region, bind_region, expect_below, handed_on
from funct.core.level import birth
from funct.errors import TransformError
from funct.graph import Control, Graph, GraphTracer, check
from funct.graph.capture import capture
from funct.source import user_site
from funct.transforms.tape.nodes import Node

__all__ = ["SITES", "Watch", "WatchTracer", "chain", "note_site", "run_under", "watches"]


class WatchTracer(Tensor):
    """A value that is watched."""

    __slots__ = ("level", "value")

    level: Watch

    def __init__(self, value: Any, level: Watch) -> None:
        self.value = value
        self.level = level

    def __repr__(self) -> str:
        return f"WatchTracer({self.value!r})"


class Watch(Level):
    """Every op passes one level down; a subclass may look at it, or answer it.

    around: the level for which this one goes on, within a function with rules.
    """

    __slots__ = ("around",)

    around: Watch | None

    def __init__(self, label: str, fun: Callable[..., Any] | None = None) -> None:
        super().__init__(label, fun)
        self.around = None

    def op(self, prim: Primitive, vals: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """What an op gives, on values one level down."""
        return prim.fn(*vals, *params)

    def replay(self, graph: Graph, args: Sequence[Any]) -> tuple[Any, ...]:
        """A compiled function on values that are watched: its ops, one by one."""
        return graph(*args)

    def inside(self, prim: Control, vals: Sequence[Any]) -> Any:
        """A branch or a loop that is a node of a graph, with its bodies watched."""
        out = prim.kind.mapped(self._watched)(*vals)
        return out if prim.results != 1 else out[0]

    def _watched(self, graph: Graph) -> Graph:
        found, outer = capture(self._inside(graph), [v.aval for v in graph.inputs], label="watch")
        if outer:
            raise TransformError(
                f"{self.label}: a rule for the inside of a branch or a loop closes over a value of "
                "another transform",
                fix="leave out jit, or pass the value as an argument",
            )
        return check(found)

    def born(self, nodes: Sequence[Node]) -> None:
        """Tapes have recorded nodes for what one line of the user's does."""

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """The op one level down."""
        vals = [self.lower(a) for a in args]
        before = {level: level.count for level in _tapes(vals)}
        out = self.op(prim, vals, params)
        self.born(_new_nodes(out, before))
        if isinstance(out, tuple | list):
            return tuple([self.wrap(o) for o in out])
        return self.wrap(out)

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """The same call one level down; what it and its rules do is watched."""
        lifted = self._lifted(region)
        vals = [self.lower(a) for a in args]
        before = {level: level.count for level in _tapes(vals)}
        outs = bind_region(lifted, vals)
        expect_below(self, region, outs)
        self.born(_new_nodes(outs, before))
        return tuple([self.wrap(o) for o in outs])

    def _lifted(self, region: Region) -> Region:
        """The region with all that it and its rules do watched."""
        run, push, forward, backward = [
            None if f is None else self._inside(f)
            for f in (region.run, region.push, region.forward, region.backward)
        ]
        batch = region.batch
        return replace(
            region, run=run, push=push, forward=forward, backward=backward,
            batch=None if batch is None else lambda *given: self._lifted(batch(*given)),
        )  # fmt: skip

    def _inside(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            level = copy.copy(self)
            level.serial, level.open, level.around = birth(), True, self
            with handed_on(self, level):
                return run_under(level, fun, args, {})

        return run

    def wrap(self, x: Any) -> Any:
        """A value from below as a tracer."""
        if isinstance(x, Tensor):
            return WatchTracer(x, self)
        return WatchTracer(asarray(x), self) if isinstance(x, np.ndarray | np.generic) else x

    def lower(self, x: Any) -> Any:
        """What a tracer of this level stands for; anything else is itself."""
        if x.__class__ is not WatchTracer:
            return x
        level: Watch | None = self
        while level is not None and x.level is not level:
            level = level.around
        return x if level is None else x.value


def run_under(level: Watch, fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """fun(*args, **kwargs) with the arrays among the arguments watched.

    Python numbers stay numbers; where there is nothing else, floats are taken for arrays.
    """
    leaves, spec = tree.flatten((args, kwargs))
    if not any(isinstance(x, Tensor | np.ndarray | np.generic) for x in leaves):
        leaves = [asarray(x) if isinstance(x, float | complex) else x for x in leaves]
    a, k = pytree.unflatten(spec, [level.wrap(x) for x in leaves])
    try:
        out = fun(*a, **k)
    finally:
        level.open = False
    return tree.map(level.lower, out)


def note_site(nodes: Sequence[Node]) -> None:
    """Write the user's line on nodes: what their pulls do is told as the derivative of what stands
    there.
    """
    site = user_site() if nodes else None
    for node in nodes:
        node.site = site


class _Sites(Watch):
    """Notes the user's line on every node; it is no level of any tracer."""

    __slots__ = ()

    def born(self, nodes: Sequence[Node]) -> None:
        """Set the nodes' site."""
        note_site(nodes)


SITES = _Sites("sites")


def chain(x: Any) -> Iterator[Any]:
    """A value, what it stands for, and so on down; a value under capture stands for itself."""
    while isinstance(x, Tensor):
        yield x
        if x.__class__ is GraphTracer or not x.level.transforms:
            return
        x = x.value


def watches(values: Sequence[Any]) -> tuple[Watch, ...]:
    """The watches below these values; under capture the graph wants to know lines as well."""
    found: dict[Watch, None] = {}
    for x in values:
        while isinstance(x, Tensor) and x.level.transforms:
            if x.__class__ is GraphTracer:
                found[SITES] = None
                break
            if isinstance(x.level, Watch):
                found[x.level] = None
            x = x.value
    return tuple(found)


def _tapes(vals: Sequence[Any]) -> set[Any]:
    traced = [v for v in vals if v.__class__ is not Array]
    return {x.level for v in traced for x in chain(v) if hasattr(x, "node")}


def _new_nodes(out: Any, before: dict[Any, int]) -> list[Node]:
    """Nodes that were recorded since the tapes counted `before` and that the result needs."""
    if not before:
        return []
    found: dict[int, Node] = {}
    for o in out if isinstance(out, tuple | list) else (out,):
        for x in chain(o):
            if hasattr(x, "node") and x.level in before:
                todo = [x.node]
                while todo:
                    node = todo.pop()
                    if node.serial > before[x.level] and id(node) not in found:
                        found[id(node)] = node
                        todo += node.next
    return sorted(found.values(), key=lambda n: n.serial)
