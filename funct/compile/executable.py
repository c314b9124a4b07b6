"""From a graph to a function on bare buffers.

Graphs of few ops on few elements are printed as one Python function of NumPy calls, with results
written into buffers that nobody reads any more: such a function is there within a millisecond and
has NumPy's bits. Where it is called often, machine code that has these bits too takes its place
(`entry.py`). Where there is work for more than that, the graph is made machine code (`native.py`).
Which of the two follows from ops and shapes alone, and code that is kept on disk is found before
any pass. A graph with symbolic sizes is made code for each size it meets; its kernels are the same
for all of them.

A guard that does not hold returns MISS. Beside each function stands which of its lines came from
which of the user's, for errors.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakSet

from funct.compile.control import is_lowered
from funct.compile.entry import note_faster
from funct.compile.fusion.worth import ELEMENT_OPS, worth
from funct.compile.layouts import by_layout
from funct.compile.native import Native, native
from funct.compile.numbers import handed_over, numbers
from funct.compile.plan import Plan, plan
from funct.compile.rewriting.numpys import as_numpy_computes
from funct.compile.rewriting.pairs import in_pairs
from funct.compile.sizes import at_sizes
from funct.compile.steps.products import begin_products
from funct.compile.steps.walker import begin_walker
from funct.compile.stored import kept_as, stored
from funct.compile.text import MISS, call_text, guard_text, scope
from funct.compile.tuned import tuned
from funct.core.collecting import seldom
from funct.device.llvm import release
from funct.graph import (
    Call,
    Graph,
    Guard,
    Node,
    Var,
    acts,
    eliminate_dead,
    inline_calls,
    optimize,
    share_common,
)
from funct.settings import config
from funct.source import SITES

__all__ = ["MISS", "build", "call_by_call", "expect", "first_calls", "is_numpy_calls", "source"]

_SIZES = 64  # functions that a graph with symbolic sizes keeps
_MANY = 64  # different numbers: loops that are alike but for theirs are better compiled once

_LONG = 0.05  # seconds that making code takes where it leaves much memory behind


@seldom
def build(graph: Graph, *, guards: bool = True, mode: str = "default") -> Callable[..., Any]:
    """`run(*buffers) -> tuple of buffers | MISS` for a graph without outer tracers.

    mode: "default" makes machine code where the work is worth it, "max-autotune" where it is faster
    on the arrays of the first call, the others always.
    """
    if graph.symbols:
        return _for_each_size(_whole(graph, guards), mode)
    return _fixed(inline_calls(graph), lambda: _whole(graph, guards), guards, mode)


def expect(shapes: Iterable[tuple[int, ...]]) -> None:
    """Say that a function of arrays of such shapes is captured now: code that all programs need is
    made meanwhile, where one is likely to come of it.
    """
    if sum(map(math.prod, shapes)) >= ELEMENT_OPS:
        begin_walker(several=True)


def call_by_call(graph: Graph) -> Callable[..., Any]:
    """`run(*buffers) -> tuple of buffers`, by NumPy calls at any size, so with the bits of ops that
    are run one by one. The graph has no symbolic sizes, guards or outer tracers.
    """
    return _printed(plan(_whole(inline_calls(graph), guards=False), guards=False))


def _fixed(given: Graph, whole: Callable[[], Graph], guards: bool, mode: str) -> Callable[..., Any]:
    """The function for a graph whose sizes are numbers. whole: gives it after all passes."""

    def numpy_calls() -> Callable[..., Any]:
        simple = whole()
        run = _printed(plan(simple, guards=guards))
        exact = as_numpy_computes(simple) if mode == "default" else None
        if exact is not None:
            note_faster(run, lambda: machine_code(lambda: kept(exact, lambda: exact, alone=True)))
        return run

    def machine_code(make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        start = time.perf_counter()
        begin_walker()
        run = make()
        if time.perf_counter() - start > _LONG:
            release()
        return run

    def loops() -> Callable[..., Any]:
        nodes = [e for e in given.nodes if isinstance(e, Node)]
        if len({a for e in nodes for a in e.operands if not isinstance(a, Var)}) <= _MANY:
            run = kept(given, whole)
            return by_layout(given, run, lambda g: kept(g, lambda: _whole(g, guards)))
        open_, values = handed_over(given, numbers(given))
        run = kept(open_, lambda: _whole(open_, guards))
        return lambda *buffers: run(*buffers, *values)

    def kept(
        graph: Graph, whole: Callable[[], Graph], alone: bool = False
    ) -> Callable[..., Any]:
        made = functools.cache(lambda: _printed(plan(whole(), guards=guards)))

        def slowly(*buffers: Any) -> Any:
            return made()(*buffers)

        def make() -> Native:
            begin_products(graph)
            return native(whole(), slowly, alone=alone)

        return stored(graph, make, slowly, guards=guards)

    if mode == "max-autotune" and not config.deterministic and not acts(given):
        ways = {"machine code": lambda: machine_code(loops), "NumPy": numpy_calls}
        return tuned(kept_as(given, guards), ways)
    return machine_code(loops) if _pays(given, mode) else numpy_calls()


def _pays(graph: Graph, mode: str) -> bool:
    """Whether machine code is made at once."""
    pairs = in_pairs(graph, islands=is_lowered) or graph
    return mode != "default" or worth(pairs, calls=graph, held=_is_held)


def first_calls(graph: Graph, mode: str) -> str | None:
    """The function of NumPy calls that serves first, as text; None where machine code does."""
    flat = inline_calls(graph)
    return None if _pays(flat, mode) else source(plan(_whole(flat, guards=True)))[0]


def _is_held(e: Node) -> bool:
    """Whether a program can hold a branch or a loop; a fault in that is told by who runs it."""
    try:
        return is_lowered(e)
    except Exception:
        return False


def _whole(graph: Graph, guards: bool) -> Graph:
    """The graph after all passes, without calls."""
    simple = optimize(graph, guards=guards)
    if not any(isinstance(e, Call) for e in simple.nodes):
        return simple
    return eliminate_dead(share_common(inline_calls(simple)), guards=guards)


def _for_each_size(graph: Graph, mode: str) -> Callable[..., Any]:
    made: dict[tuple[tuple[int, ...], ...], Callable[..., Any]] = {}
    symbols = [(s.name, s.input, s.axis) for s in graph.symbols]
    any_size = _printed(plan(graph))
    checks = [e for e in graph.nodes if isinstance(e, Guard) and e.kind == "size"]

    def run(*buffers: Any) -> Any:
        shapes = tuple([b.shape for b in buffers])
        found = made.get(shapes)
        if found is None:
            if not graph.takes(shapes):
                return MISS
            values = {name: shapes[i][axis] for name, i, axis in symbols}
            if not all(eval(e.expected, {}, dict(values)) for e in checks):
                return MISS
            with seldom:
                fixed = at_sizes(graph, values)
                large = mode != "default" or worth(fixed)
                found = _fixed(fixed, lambda: fixed, True, mode) if large else any_size
            if len(made) >= _SIZES:
                made.pop(next(iter(made)), None)
            made[shapes] = found
        return found(*buffers)

    return run


def is_numpy_calls(run: Callable[..., Any]) -> bool:
    """Whether what `build` gave is a function of NumPy calls: no machine code was made for it."""
    return run in _numpy_calls


_numpy_calls: WeakSet[Callable[..., Any]] = WeakSet()


def _printed(planned: Plan) -> Callable[..., Any]:
    text, names = source(planned)
    exec(compile(text, "<funct graph>", "exec"), names)
    _numpy_calls.add(names["run"])
    return names["run"]


def source(planned: Plan) -> tuple[str, dict[str, Any]]:
    """Text of the function of NumPy calls, and what its names mean."""
    graph = planned.graph
    names = scope(graph)
    lines = [f"def run({', '.join(v.name for v in graph.inputs)}):"]
    for s in graph.symbols:
        lines.append(f"    {s.name} = {graph.inputs[s.input].name}.shape[{s.axis}]")
    outputs = set(graph.outputs)
    sites: dict[int, Any] = {}
    for step in planned.steps:
        e = step.entry
        sites[len(lines) + 1] = e.site
        if isinstance(e, Guard):
            lines.append(guard_text(e, names))
        else:
            assert isinstance(e, Node), "calls are inlined"
            lines.append(call_text(e, step.reuse, names))
        made_here = {v.name for v in step.dead if v not in outputs and v.name.startswith("v")}
        if made_here:
            lines.append(f"    del {', '.join(sorted(made_here))}")
    lines.append(f"    return ({''.join(v.name + ', ' for v in graph.outputs)})")
    names[SITES] = sites
    return "\n".join(lines), names
