"""`Executable`: a graph compiled for buffers, and what it is at each level of tracers.

On the tape it is one call: value and pull are captured as one joint graph, which is cut where the
cotangents come in; both halves are executables again, so every order of derivative is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from funct.array import zeros
from funct.compile import MISS
from funct.core import INEXACT, size_values, top_level
from funct.errors import GuardError
from funct.graph import (
    Graph,
    Guard,
    Var,
    eliminate_dead,
    fold_constants,
    share_common,
    simplify,
)
from funct.graph.capture import capture
from funct.graph.check import check
from funct.ops.families import wrap
from funct.transforms.backends import Compile, compiler
from funct.transforms.reverse import Reverse, ReverseTracer
from funct.transforms.vjp import vjp
from funct.transforms.watch import Watch

__all__ = ["Executable", "cut"]

_default = compiler("default", None)


class Executable:
    """A graph compiled for buffers, and for each level of tracers."""

    __slots__ = ("compile", "graph", "half", "halves", "raw")

    def __init__(self, graph: Graph, *, guards: bool = True, compile: Compile = _default) -> None:
        self.graph = self.simplified(graph, guards)
        self.compile = compile
        self.raw = compile(self.graph, guards)
        self.halves: dict[Any, Any] = {}
        self.half = False  # of another: its tape puts away what is saved

    @staticmethod
    def simplified(graph: Graph, guards: bool = True) -> Graph:
        """The graph that is compiled."""
        whole = share_common(simplify(fold_constants(check(graph))))
        return check(eliminate_dead(whole, guards=guards))

    def __call__(self, *leaves: Any) -> Any:
        """Results on arrays or tracers, or MISS."""
        level = top_level(leaves)
        if not level.transforms:
            try:
                out = self.raw(*[x.data for x in leaves])
            except Exception as error:
                raise self.located(error, leaves) from None
            return out if out is MISS else tuple([wrap(d) for d in out])
        if isinstance(level, Reverse):
            return self._reverse(level, leaves)
        try:
            if isinstance(level, Watch) and not self.half:
                return level.replay(self.graph, leaves)
            return self.graph(*leaves)
        except GuardError:
            return MISS

    def located(self, error: Exception, leaves: Sequence[Any]) -> Exception:
        """The error that eager execution raises, with the user's line: found by interpreting."""
        try:
            self.graph(*leaves)
        except Exception as better:
            return better
        return error

    def _reverse(self, level: Reverse, leaves: Sequence[Any]) -> Any:
        """The forward half gives results and residuals; the backward half is the pull."""
        mine = tuple([x.__class__ is ReverseTracer and x.level is level for x in leaves])
        vals = [x.value if m else x for x, m in zip(leaves, mine, strict=True)]
        sizes = {s.name: int(vals[s.input].shape[s.axis]) for s in self.graph.symbols}
        key = (mine, tuple(sizes.values()))  # the halves know their sizes
        if key not in self.halves:
            found = self._split(mine, vals, sizes)
            if found is MISS:
                return MISS
            self.halves[key] = found
            for e in found:
                e.half = True
        forward, backward = self.halves[key]
        both = forward(*vals)
        if both is MISS:
            return MISS
        n = len(self.graph.outputs)
        outs, residuals = both[:n], both[n:]
        varying = [_varies(o) for o in outs]

        def pull(residuals: Any, cts: Any) -> list[Any]:
            given = iter(backward(*residuals, *[c for c, v in zip(cts, varying, strict=True) if v]))
            return [next(given) if m else None for m in mine]

        nodes = [x.node if m else None for x, m in zip(leaves, mine, strict=True)]
        return level.record_call(outs, nodes, pull, "jit", residuals)

    def _split(self, mine: tuple[bool, ...], vals: Sequence[Any], sizes: dict[str, int]) -> Any:
        """Capture value and pull as one graph, and cut it where the cotangents come in."""
        n_out = len(self.graph.outputs)

        def joint(*xs: Any) -> tuple[Any, ...]:
            ins, cts = xs[: len(mine)], iter(xs[len(mine) :])

            def free(*fs: Any) -> tuple[Any, ...]:
                given = iter(fs)
                return self.graph(
                    *[next(given) if m else x for x, m in zip(ins, mine, strict=True)]
                )

            outs, pull = vjp(free, *[x for x, m in zip(ins, mine, strict=True) if m])
            full = tuple([next(cts) if _varies(o) else zeros(o.shape, dtype=o.dtype) for o in outs])
            return (*outs, *pull.adjoint(full))  # the engine's convention, whatever the user's

        cts = [
            zeros(size_values(v.shape, sizes), dtype=v.dtype)
            for v in self.graph.outputs
            if v.dtype in INEXACT
        ]
        try:
            graph, outer = capture(joint, [*vals, *cts], label="jit")
        except GuardError:
            return MISS
        assert not outer, "a compiled graph is closed"
        return cut(graph, len(vals), n_out, self.compile)


def _varies(x: Any) -> bool:
    return x.dtype in INEXACT


def cut(
    joint: Graph, n_in: int, n_out: int, compile: Compile = _default
) -> tuple[Executable, Executable]:
    """Forward and backward halves of a joint graph.

    joint: inputs are n_in values and then cotangents; outputs are n_out results and then gradients.
    What depends on a cotangent runs backward; what that needs and does not is a residual.
    """
    joint = eliminate_dead(share_common(joint))
    inputs, cts = joint.inputs[:n_in], joint.inputs[n_in:]
    later: set[Var] = set(cts)
    for e in joint.nodes:
        if not isinstance(e, Guard) and not later.isdisjoint(e.operands):
            later.update(e.results)
    constants = {v for v, _ in joint.constants}
    wanted = dict.fromkeys(joint.outputs[n_out:])
    for e in joint.nodes:
        if not isinstance(e, Guard) and not later.isdisjoint(e.results):
            wanted.update(dict.fromkeys(a for a in e.operands if isinstance(a, Var)))
    residuals = tuple([v for v in wanted if v not in later and v not in constants])
    early = tuple([e for e in joint.nodes if isinstance(e, Guard) or later.isdisjoint(e.operands)])
    late = tuple(
        [e for e in joint.nodes if not isinstance(e, Guard) and not later.isdisjoint(e.operands)]
    )
    forward = attrs.evolve(
        joint, inputs=inputs, nodes=early, outputs=(*joint.outputs[:n_out], *residuals)
    )
    backward = attrs.evolve(
        joint, inputs=(*residuals, *cts), nodes=late, outputs=joint.outputs[n_out:]
    )
    return Executable(forward, compile=compile), Executable(backward, guards=False, compile=compile)
