"""Run graphs: `Interpreter` node by node, `Transformer` into another graph.

Both have one method per kind of entry; override what you need. Errors keep their type and gain the
line of the user's code that the failing node came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from msgspec.structs import replace

from funct.array import Tensor, asarray
from funct.core import INEXACT, Region, ShapeDtype, bind_region, size_values
from funct.core.level import unruled
from funct.errors import GraphError, GuardError, SignatureError, TransformError
from funct.graph.capture import GraphTracer, capture
from funct.graph.given import expect, expect_all
from funct.graph.ir import Call, Entry, Graph, Guard, Node, Var
from funct.ops.counting import lifted
from funct.ops.fast import wrap
from funct.source import follow

__all__ = ["Interpreter", "Transformer", "holds", "propagate", "same"]


def holds(guard: Guard, value: Any, sizes: dict[str, int]) -> bool:
    """Whether a guard holds for a concrete value."""
    if guard.kind == "size":
        return bool(eval(guard.expected, {}, dict(sizes)))
    if guard.of_elements:
        found = value.concrete() if guard.kind == "array" else np.asarray(value)
        return same(found, guard.expected)
    ask = {"bool": bool, "int": int, "float": float, "complex": complex, "index": int}[guard.kind]
    return repr(ask(value)) == repr(guard.expected)  # NaN is as NaN, and -0 not as 0


def same(found: Any, expected: Any) -> bool:
    """Whether two arrays are equal in all that can be seen of them: NaN is as NaN, -0 not as 0."""
    if found.dtype not in INEXACT:
        return bool(np.array_equal(found, expected))
    if found.dtype.kind == "c":
        return same(found.real, expected.real) and same(found.imag, expected.imag)
    signs = [np.signbit(x) & ~np.isnan(x) for x in (found, expected)]
    return np.array_equal(found, expected, equal_nan=True) and np.array_equal(*signs)


def _stale(region: Region, *_: Any) -> NoReturn:
    unruled("the captured function around it", region)


class Interpreter:
    """Evaluate a graph on arrays or tracers."""

    def __init__(self, graph: Graph) -> None:
        expect(type(self).__name__, "graph", graph, Graph)
        self.graph = graph
        self.values: dict[Var, Any] = {}
        self.sizes: dict[str, int] = {}

    def run(self, *args: Any) -> tuple[Any, ...]:
        """The outputs for these inputs; raises GuardError when they lead another way."""
        graph = self.graph
        if len(args) != len(graph.inputs):
            raise TransformError(f"graph: expected {len(graph.inputs)} inputs, got {len(args)}")
        values = self.values = dict(graph.constants)
        for v, a in zip(graph.inputs, args, strict=True):
            values[v] = a if isinstance(a, Tensor) else asarray(a)
        self.sizes = {s.name: args[s.input].shape[s.axis] for s in graph.symbols}
        if self.sizes:
            for v, c in graph.constants:
                values[v] = lifted(c, self.sizes.values())
        self._walk(graph.nodes)
        return tuple([values[v] for v in graph.outputs])

    def _walk(self, entries: Sequence[Entry]) -> None:
        values = self.values
        for entry in entries:
            if isinstance(entry, Guard):
                self.guard(entry)
                continue
            operands = [values[a] if isinstance(a, Var) else a for a in entry.operands]
            run = self.node if isinstance(entry, Node) else self.call
            outs = run(entry, operands)  # type: ignore[arg-type]
            if outs.__class__ is not tuple or len(outs) != len(entry.results):
                outs = self._results(entry, outs)
            for v, o in zip(entry.results, outs, strict=True):
                values[v] = o

    def _results(self, entry: Node | Call, outs: Any) -> tuple[Any, ...]:
        """What a method of a subclass returned, unless it is something else than the results."""
        count = len(entry.results)
        if isinstance(outs, tuple | list) and len(outs) == count:
            return tuple(outs)
        many = isinstance(outs, tuple | list)
        got = f"{type(outs).__name__} of {len(outs)}" if many else type(outs).__name__
        method = "node" if isinstance(entry, Node) else "call"
        text = f"{type(self).__name__}.{method} must return a tuple of {count}, got {got}"
        raise SignatureError(f"{entry.name}: {text}", site=entry.site)

    def node(self, node: Node, operands: list[Any]) -> tuple[Any, ...]:
        """One primitive."""
        params = size_values(node.params, self.sizes) if self.sizes else node.params
        out = node.primitive.fn(*operands, *params)
        return out if node.primitive.results != 1 else (out,)

    def call(self, call: Call, operands: list[Any]) -> tuple[Any, ...]:
        """One call of a function with its own rules."""
        region = call.region
        closes = len(call.body.inputs) > call.takes  # over what was traced when it was captured
        if closes and region.ruled and not region.own:
            return self._body(call, *operands)
        if closes or not region.ruled:
            region = replace(region, run=partial(self._body, call))
        if closes and region.ruled:
            no = partial(_stale, region)
            region = replace(region, push=no, forward=no, backward=no)
        return bind_region(region, operands)

    def _body(self, call: Call, *operands: Any) -> tuple[Any, ...]:
        """What a call computes, without the function: that may know of what is there no more."""
        held = {v: self.values[v] for v in call.operands}
        self.values.update(zip(call.operands, operands, strict=True))
        try:
            self._walk(call.body.nodes)
            return tuple([self.values[v] for v in call.body.outputs])
        finally:
            self.values.update(held)

    def guard(self, guard: Guard) -> None:
        """One decision."""
        value = self.values[guard.operand] if guard.operand is not None else None
        if not holds(guard, value, self.sizes):
            what = (
                guard.expected
                if guard.kind == "size"
                else f"{guard.kind}(...) == {guard.expected!r}"
            )
            raise GuardError(
                f"graph: captured for inputs with {what}, which does not hold now",
                site=guard.site,
                fix="capture again for these inputs, or use jit, which keeps one graph per path",
            )


follow(Interpreter._walk, "entry")


class Transformer(Interpreter):
    """Build a new graph: override `node` to say what each node becomes.

    Decisions stay decisions of the new graph; nothing is computed.
    """

    def transform(self, avals: Sequence[ShapeDtype] | None = None) -> Graph:
        """The graph that running this one records. avals: types of the inputs, if they are others.

        Raises: GraphError: for another number of inputs. What an op says to other types.
        """
        inputs = self.graph.inputs
        types = [v.aval for v in inputs] if avals is None else avals
        expect_all("transform", "avals", types, ShapeDtype)
        if len(types) != len(inputs):
            raise GraphError(f"graph: expected {len(inputs)} inputs, got {len(types)}")
        symbols = {s.name for s in self.graph.symbols}
        names: list[dict[int, str] | None] = [
            {axis: str(n) for axis, n in enumerate(a.shape) if str(n) in symbols} for a in types
        ]
        examples = [  # without memory: nobody looks at the elements
            wrap(np.broadcast_to(np.zeros((), a.dtype), size_values(a.shape))) for a in types
        ]
        out, outer = capture(self.run, examples, names=names)
        assert not outer, "a transformed graph is closed"
        return out

    def guard(self, guard: Guard) -> None:
        """The same decision, in the new graph."""
        if guard.operand is None:
            level: Any = self.values[self.graph.inputs[0]].level
            level.entries.append(guard)
            return
        value = self.values[guard.operand]
        if value.__class__ is GraphTracer:
            value.level.guard(guard.kind, value.ref, guard.expected)
        else:
            super().guard(guard)


def propagate(graph: Graph, *avals: ShapeDtype) -> Graph:
    """The graph for inputs of other shapes and dtypes: the same ops, typed anew.

    Raises: ShapeError, DTypeError: naming the first node that does not take them, and its line.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.sum(x * 2.0, axis=0))(xp.ones((3, 2)))
        >>> print(propagate(graph, ft.ShapeDtype((5, 7), xp.float32)).outputs[0].aval.shape)
        (7,)
    """
    return Transformer(graph).transform(avals)
