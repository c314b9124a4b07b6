"""What turns a graph into something that runs: the compiler, or a function of the user's.

A backend gets a graph without decisions. What it returns is run on arrays; if it returns a graph,
as a pass does, that graph is compiled as usual. Decisions that Python took on values are checked
beforehand, in a function of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from funct.array import Array, asarray
from funct.compile import MISS, build
from funct.core import size_values
from funct.core.effects import once
from funct.errors import ArgumentError, GraphError, TransformError
from funct.graph import (
    Entry,
    Graph,
    Guard,
    acts,
    approximate,
    check,
    eliminate_dead,
    optimize,
)
from funct.ops.fast import wrap

__all__ = ["MODES", "Backend", "Compile", "compiler", "register_backend"]

Backend = Callable[[Graph], Any]
Compile = Callable[[Graph, bool], Callable[..., Any]]

MODES = ("default", "reduce-overhead", "max-autotune", "check")


def _interpret(graph: Graph) -> Callable[..., Any]:
    """Op by op, as eager execution does."""
    return graph.__call__


_named: dict[str, Backend] = {"interpret": _interpret}


def register_backend(name: str, backend: Backend) -> Backend:
    """Make a backend known under a name that `jit(backend=...)` takes.

    Raises: ArgumentError: for a name that is taken by another backend.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.transforms.compiled.backends import register_backend
        >>> _ = register_backend("plain", lambda graph: graph)
        >>> ft.jit(xp.sin, backend="plain")(xp.zeros(2)).tolist()
        [0.0, 0.0]
    """
    if not callable(backend):
        raise ArgumentError(f"register_backend: {name!r} must be a function of a graph")
    if _named.setdefault(name, backend) is not backend:
        raise ArgumentError(f"register_backend: there is a backend {name!r} already")
    return backend


def compiler(mode: str, backend: str | Backend | None, fast: bool = False) -> Compile:
    """What `jit` compiles graphs with: `(graph, guards) -> run on buffers`.

    fast: whether functions may be approximated.
    Raises: ArgumentError: for a mode or a backend that does not exist.
    """
    if mode not in MODES:
        raise ArgumentError(f"jit: mode must be one of {', '.join(MODES)}, got {mode!r}")
    if not isinstance(fast, bool):
        raise ArgumentError(f"jit: fast must be True or False, got {fast!r}")
    if fast and mode == "check":
        raise ArgumentError(
            "jit: mode='check' compares with exact functions, which fast=True does not compute",
            fix="leave one of them out",
        )
    if isinstance(backend, str) and backend not in _named:
        raise ArgumentError(
            f"jit: no backend {backend!r}; there is {', '.join(sorted(_named))}",
            fix="register_backend makes one known under a name",
        )
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise ArgumentError(f"jit: backend must be a function of a graph or a name: {backend!r}")
    made = _named[backend] if isinstance(backend, str) else backend
    kind = "default" if mode == "check" else mode

    def compile(graph: Graph, guards: bool) -> Callable[..., Any]:
        if fast:
            graph = approximate(graph)
        if made is None:
            return build(graph, guards=guards, mode=kind)
        return _foreign(made, optimize(graph, guards=guards), guards, kind)

    return compile


def _foreign(backend: Backend, graph: Graph, guards: bool, mode: str) -> Callable[..., Any]:
    plain = eliminate_dead(graph, guards=False)
    made = backend(plain)
    if isinstance(made, Graph):
        run = build(_fitting(plain, check(made)), guards=False, mode=mode)
    elif callable(made):
        run = _on_buffers(plain, made)
    else:
        raise TransformError(
            f"jit: the backend must return a function of arrays or a graph, got {made!r}"
        )
    if not guards or not any(isinstance(e, Guard) for e in graph.nodes):
        return run
    ask = build(_decisions(graph), mode=mode)

    def decided(*buffers: Any) -> Any:
        with once() as again:
            if ask(*buffers) is MISS:
                return MISS
            again()
            return run(*buffers)

    return decided


def _decisions(graph: Graph) -> Graph:
    """The guards, and what they need; other effects belong to the run that follows, but for those
    that come before one which is needed.
    """
    live: set[Any] = set()
    kept: list[Entry] = []
    for e in reversed(graph.nodes):
        needed = isinstance(e, Guard) or not live.isdisjoint(e.results)
        if needed or (acts(e) and any(map(acts, kept))):
            kept.append(e)
            live.update([e.operand] if isinstance(e, Guard) else e.operands)
    return attrs.evolve(graph, nodes=tuple(kept[::-1]), outputs=())


def _fitting(graph: Graph, made: Graph) -> Graph:
    """The backend's graph, if it is a function of the same type."""
    for what in ("inputs", "outputs"):
        ours, theirs = getattr(graph, what), getattr(made, what)
        if [_type(v) for v in ours] != [_type(v) for v in theirs]:
            raise GraphError(
                f"jit: the backend's graph must have the same {what}: "
                f"{', '.join(map(_type, ours))}; got {', '.join(map(_type, theirs))}"
            )
    return made


def _type(v: Any) -> str:
    return f"{v.dtype}{list(v.shape)}"


def _on_buffers(graph: Graph, run: Callable[..., Sequence[Any]]) -> Callable[..., Any]:
    def on_buffers(*buffers: Any) -> Any:
        outs = run(*[wrap(b) for b in buffers])
        sizes = {s.name: buffers[s.input].shape[s.axis] for s in graph.symbols}
        if not isinstance(outs, tuple | list) or len(outs) != len(graph.outputs):
            raise TransformError(
                f"jit: the backend's function must return {len(graph.outputs)} arrays in a tuple"
            )
        found = []
        for k, (v, o) in enumerate(zip(graph.outputs, outs, strict=True)):
            wanted = size_values(v.shape, sizes)
            if not isinstance(o, Array | np.ndarray | np.generic):
                raise TransformError(
                    f"jit: result {k} of the backend's function must be an array, got "
                    f"{type(o).__name__}"
                )
            if tuple(o.shape) != wanted or o.dtype != v.dtype:
                raise TransformError(
                    f"jit: result {k} of the backend's function must be {v.dtype}{list(wanted)}, "
                    f"got {o.dtype}{list(o.shape)}"
                )
            found.append(asarray(o).data)
        return tuple(found)

    return on_buffers
