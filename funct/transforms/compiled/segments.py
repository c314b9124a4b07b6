"""Segments: Python runs at every call, and what lies between two of its decisions is compiled.

A function whose decisions lead along more paths than are worth keeping (a loop until something
converges) still repeats itself between them. Its ops are written down until a value is asked for;
then what was written is run: op by op for the first time, since what follows the choice of some
elements may never have their number again, and compiled from the second time on. The results are
eager's, since the function decides on values each time.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from funct.array import Tensor, asarray
from funct.core import Region, bind_region
from funct.core.level import unruled
from funct.core.primitive import Primitive
from funct.graph import Capture, Control, Entry, Graph, GraphTracer, Node, Var, exact, written
from funct.graph.capture import UNKNOWN
from funct.transforms.compiled.backends import Compile
from funct.transforms.compiled.executable import Executable
from funct.transforms.hidden import visible

__all__ = ["Segments", "run_in_segments", "worth_segments"]

_WORK = 1 << 22  # elements times ops; of less, eager ops cost less than what is between them
_MOST = 256  # segments of one function that are kept, the ones of late


def worth_segments(arrays: Sequence[Any], ops: float) -> bool:
    """Whether the arrays are large enough for compiled segments of so many ops to beat eager ops:
    each is written down and looked for.
    """
    return any(x.size * ops >= _WORK for x in arrays)


def run_in_segments(
    fun: Callable[..., Any],
    arrays: Sequence[Any],
    store: dict[Any, Executable | None],
    compile: Compile,
) -> tuple[Any, float]:
    """fun(*arrays), with compiled segments kept in `store`; how many ops they have."""
    level = Segments("jit", fun)
    level.store, level.compile = store, compile
    with written(level):
        out = fun(*[level.known(x) for x in arrays])
        leaves, spec = visible("jit", out, level)
        level.flush()
    out = spec.unflatten(
        [x.have if x.__class__ is GraphTracer and x.level is level else x for x in leaves]
    )
    return out, sum(level.ops) / max(1, len(level.ops))


class Segments(Capture):
    """The level that writes ops down until a value is asked for."""

    __slots__ = ("compile", "given", "live", "ops", "store")

    decides = True
    store: dict[Any, Executable | None]  # what was run, None of what was run once
    compile: Compile

    def __init__(self, label: str, fun: Callable[..., Any] | None) -> None:
        super().__init__(label, fun)
        self.given: dict[Var, Any] = {}  # values that this segment reads, in order
        self.live: list[weakref.ref[GraphTracer]] = []  # what it may have to give
        self.ops: list[int] = []  # of each segment

    def known(self, x: Any) -> GraphTracer:
        """A tracer that has its value."""
        return GraphTracer(self, self.fresh(x.shape, x.dtype), x, None, 0)

    def guard(self, kind: Any, var: Var, seen: Any) -> None:
        """Nothing to remember: Python decides again at the next call."""

    def operand(self, a: Any) -> Any:
        """The name of an operand; a value is an input of the segment."""
        if a.__class__ is GraphTracer and a.level is self:
            if a.have is not UNKNOWN:
                self.given[a.ref] = a.have
            return a.ref
        var = super().operand(a)
        if isinstance(var, Var):
            self.given[var] = self.constants[id(a)][1] if id(a) in self.constants else asarray(a)
        return var

    def _tracers(self, results: tuple[Var, ...], pending: Any) -> tuple[GraphTracer, ...]:
        out = tuple([GraphTracer(self, v, UNKNOWN, None, i) for i, v in enumerate(results)])
        self.live += [weakref.ref(t) for t in out]
        return out

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """Write the op down; a branch or a loop, which is made anew each time, runs at once."""
        if not isinstance(prim, Control):
            return super().run(prim, args, params)
        with self.before():
            out = prim.fn(*[self._have(a) for a in args])
        return tuple([self.known(o) for o in out]) if isinstance(out, tuple) else self.known(out)

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """A function with its own rules runs at once, one level down."""
        if any(map(self._is_own, args)):
            outs = bind_region(region, [self._have(a) for a in args])
        elif region.own:  # it got here by what it closes over
            unruled(self.label, region)
        else:
            outs = region.run(*args)
        return tuple([o if self._is_own(o) else self.known(o) for o in outs])

    def chosen(self, x: Any, mask: Any) -> Any:
        """The elements, at once: to look for their places first takes several times as long."""
        x, mask = self._have(x), self._have(mask)
        with self.before():
            return self.known(x[mask])

    def _is_own(self, a: Any) -> bool:
        return a.__class__ is GraphTracer and a.level is self

    def _have(self, a: Any) -> Any:
        return self.value_of(a) if self._is_own(a) else a if isinstance(a, Tensor) else asarray(a)

    def value_of(self, tracer: GraphTracer) -> Any:
        """The value, for which everything written so far is computed."""
        if tracer.have is UNKNOWN:
            self.flush()
        return tracer.have

    def flush(self) -> None:
        """Run what is written down, and give the results that somebody still holds."""
        entries, self.entries = self.entries, []
        wanted = [t for r in self.live if (t := r()) is not None]
        given, self.given, self.live = self.given, {}, []
        self.constants.clear()
        if not entries:
            return
        self.ops.append(len(entries))
        inputs = tuple(given)
        key = _structure(inputs, entries, [t.ref for t in wanted])
        known = key in self.store
        exe = self.store.pop(key, None)
        if exe is None:
            graph = Graph(inputs, (), tuple(entries), tuple([t.ref for t in wanted]))
            exe = Executable(graph, compile=self.compile)
        repeats = known or exe.acts
        self.store[key] = exe if repeats else None
        for old in list(self.store)[:-_MOST]:  # other threads write into it as well
            self.store.pop(old, None)
        with self.before():
            found = (exe if repeats else exe.captured)(*given.values())
        for t, value in zip(wanted, found, strict=True):
            t.have = value


def _structure(inputs: tuple[Var, ...], entries: Sequence[Entry], outs: list[Var]) -> Hashable:
    """What two segments that compute the same have in common."""
    number = {v: k for k, v in enumerate(inputs)}
    ops = []
    for e in entries:
        assert isinstance(e, Node), "guards and calls do not get here"
        operands = tuple([number[a] if isinstance(a, Var) else (exact(a),) for a in e.operands])
        ops.append((e.primitive, operands, exact(e.params)))
        for v in e.results:
            number[v] = len(number)
    types = tuple([(v.shape, v.dtype) for v in inputs])
    return types, tuple(ops), tuple([number[v] for v in outs])
