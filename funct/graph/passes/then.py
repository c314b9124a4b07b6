"""Several passes as one."""

from __future__ import annotations

from collections.abc import Callable

from funct.errors import GraphError
from funct.graph.check import check
from funct.graph.given import expect, of_graph
from funct.graph.ir import Graph

__all__ = ["Pass", "then"]

Pass = Callable[[Graph], Graph]


def then(*passes: Pass) -> Pass:
    """One pass that applies these in order; the graph is checked after each.

    It is a backend as well: `jit(f, backend=then(simplify, my_pass))`.
    Raises: GraphError: for a pass that returns no graph, or a graph that breaks a rule; the text
    names the pass.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.graph import passes
        >>> f = ft.jit(lambda x: xp.sin(x) * 1.0, backend=passes.then(passes.simplify))
        >>> f(xp.zeros(2)).tolist()
        [0.0, 0.0]
    """

    for k, each in enumerate(passes):
        expect("then", f"passes[{k}]", each, Callable)

    @of_graph
    def run(graph: Graph) -> Graph:
        for each in passes:
            name = getattr(each, "__name__", repr(each))
            graph = each(graph)
            if not isinstance(graph, Graph):
                raise GraphError(f"{name}: a pass must return a graph, got {graph!r}")
            try:
                check(graph)
            except GraphError as error:
                raise GraphError(f"after {name}: {error.what}", site=error.site) from None
        return graph

    return run
