"""`jit(mode="check")`: is what the compiler made what eager execution computes, node by node?

Every node of the graph is made a result of a second compilation, and compared with eager execution
of that node alone on the operands that the compiled code itself gave: errors do not add up, and the
first node that differs is the one to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from funct.array import finfo
from funct.compile import MISS
from funct.core import INEXACT, size_values
from funct.errors import MismatchError
from funct.graph import (
    Control,
    Graph,
    Node,
    Var,
    acts,
    eliminate_dead,
    inline_calls,
    optimize,
    share_common,
)
from funct.ops.fast import wrap
from funct.transforms.compiled.backends import Compile
from funct.transforms.compiled.rounding import carried, carried_by

__all__ = ["ULPS", "compare_results", "comparing"]

ULPS = 8  # what fused math may differ by from NumPy's, in units in the last place of the result

# Sums of products: rounding is measured against the sum of the absolute values of the terms.
_SUMS = frozenset({
    "avg_pool", "contract", "convolution", "convolution_input", "convolution_weight",
    "cumulative_sum", "matmul", "reduce_sum",
})  # fmt: skip


def comparing(name: str, compile: Compile) -> Compile:
    """compile, whose functions look at every run of theirs: graphs of derivatives and of batches
    are compiled as well, wherever these are taken.
    """

    def compiled(graph: Graph, guards: bool) -> Callable[..., Any]:
        run = compile(graph, guards)
        again: list[tuple[Graph, Callable[..., Any]]] = []  # with every node a result

        def compared(*buffers: Any) -> Any:
            out = run(*buffers)
            if out is not MISS:
                if not again:
                    every = _every_node(optimize(graph, guards=guards))
                    again.append((every, compile(every, False)))
                _compare_nodes(name, *again[0], buffers)
            return out

        return run if acts(graph) else compared  # running it again would be another effect

    return compiled


def _every_node(graph: Graph) -> Graph:
    graph = eliminate_dead(share_common(inline_calls(graph)), guards=False)
    nodes = [e for e in graph.nodes if isinstance(e, Node)]
    return attrs.evolve(graph, outputs=tuple([v for e in nodes for v in e.results]))


def _compare_nodes(
    name: str, graph: Graph, run: Callable[..., Any], buffers: Sequence[Any]
) -> None:
    """Raise MismatchError for the first node whose result is more than `ULPS` from eager's.

    Sums of n terms may differ by √n of them, measured against the sum of the terms' sizes; loops
    and branches by what rounding alone does to them.
    """
    nodes = [e for e in graph.nodes if isinstance(e, Node)]
    made, found = graph.outputs, run(*buffers)
    values: dict[Var, Any] = dict(graph.constants)
    values |= {v: wrap(b) for v, b in zip(graph.inputs, buffers, strict=True)}
    values |= {v: wrap(b) for v, b in zip(made, found, strict=True)}
    sizes = {s.name: buffers[s.input].shape[s.axis] for s in graph.symbols}
    for e in nodes:
        operands = [values[a] if isinstance(a, Var) else a for a in e.operands]
        params = size_values(e.params, sizes)
        out = e.primitive.fn(*operands, *params)
        outs = out if isinstance(out, tuple) else (out,)
        for k, (v, expected) in enumerate(zip(e.results, outs, strict=True)):
            ours, theirs = np.asarray(values[v]), np.asarray(expected)
            scale = _scale(e, operands, params, theirs)
            worst = _worst(ours, theirs, scale)
            if worst is not None and isinstance(e.primitive, Control):
                scale = scale + _in_units(carried_by(e, operands, outs)[k], theirs)
                worst = _worst(ours, theirs, scale)
            if worst is not None:
                raise MismatchError(
                    f"jit({name}): {_text(e, v, ours, theirs, *worst)}", site=e.site
                )


def compare_results(
    name: str, graph: Graph, args: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]
) -> None:
    """Raise MismatchError where the results differ by more than rounding of all nodes explains."""
    nodes = {v: e for e in graph.nodes if isinstance(e, Node) for v in e.results}
    steps = max(len(nodes), 1)
    pairs = zip(graph.outputs, map(np.asarray, ours), map(np.asarray, theirs), strict=True)
    for k, (v, a, b) in enumerate(pairs):
        scale = 1000.0 * steps * np.max(np.abs(b), initial=0.0) if b.dtype in INEXACT else 0.0
        worst = _worst(a, b, scale)
        if worst is not None and b.dtype in INEXACT:
            worst = _worst(a, b, scale + _in_units(carried(graph, args, theirs)[k], b))
        if worst is not None:
            e = nodes.get(v)
            text = _text(e, v, a, b, *worst) if e is not None else f"{v.name} differs from eager"
            raise MismatchError(f"jit({name}): {text}", site=None if e is None else e.site)


def _scale(e: Node, operands: Sequence[Any], params: Any, expected: Any) -> Any:
    """The size that rounding is measured against."""
    if expected.dtype not in INEXACT:
        return 0.0
    if e.name not in _SUMS:
        return np.abs(expected)
    sizes = [wrap(np.abs(np.asarray(a))) if hasattr(a, "shape") else a for a in operands]
    total = np.asarray(e.primitive.fn(*sizes, *params))
    terms = max(int(np.prod(a.shape)) for a in operands) / max(total.size, 1)
    return np.abs(total) * max(1.0, float(np.sqrt(terms)))


def _in_units(distance: float, x: Any) -> float:
    """The size of which so much is a unit in the last place."""
    return distance / float(finfo(x.dtype).eps) if x.dtype in INEXACT else 0.0


def _worst(ours: Any, theirs: Any, scale: Any) -> tuple[Any, float] | None:
    """Index and distance in ulps of the worst element, if one is further away than allowed."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return (), float("inf")
    if theirs.dtype not in INEXACT:
        wrong = ours != theirs
        return (_first(wrong), float("inf")) if wrong.any() else None
    wide = np.complex128 if np.iscomplexobj(theirs) else np.float64
    eps = float(finfo(theirs.dtype).eps)
    a, b = ours.astype(wide), theirs.astype(wide)
    with np.errstate(all="ignore"):
        unit = np.maximum(np.abs(scale).astype(np.float64), np.finfo(np.float64).tiny / eps) * eps
        ulps = np.where((a == b) | ((a != a) & (b != b)), 0.0, np.abs(a - b) / unit)
    ulps = np.where(ulps != ulps, np.inf, ulps)
    if not (ulps > ULPS).any():
        return None
    at = np.unravel_index(int(np.argmax(ulps)), ulps.shape)
    return tuple(map(int, at)), float(ulps[at])


def _first(wrong: Any) -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(int(np.argmax(wrong)), wrong.shape)))


def _text(e: Node, v: Var, ours: Any, theirs: Any, at: Any, ulps: float) -> str:
    head = f"compiled code differs from eager execution at {e.name} ({v.name}, {v.dtype}"
    head += f"{list(theirs.shape)})"
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{head}: {ours.dtype}{list(ours.shape)} is no {theirs.dtype}{list(theirs.shape)}"
    far = f" ({ulps:.3g} ulp, allowed {ULPS})" if np.isfinite(ulps) else ""
    where = f" at {list(at)}" if at else ""
    return f"{head}{where}: {ours[at]!s} is not {theirs[at]!s}{far}"
