"""A compiled graph on a batch, or with tangents: what to capture once as a graph of its own.

Each call of it is taken apart (`carrying`): what is asked of graphs is asked at the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from funct.core import INEXACT, Level
from funct.graph import Graph, Guard
from funct.transforms.forward import Forward, ForwardTracer, jvp
from funct.transforms.vmap import Batch, BatchTracer, whole

__all__ = ["Carrying", "carrying"]

Flags = tuple[bool, ...]
Names = list[dict[int, str] | None]

_LANES = "lanes"  # the size of a batch, where several were seen


class Carrying:
    """A call of a graph on tracers of one level.

    mine: which leaves these are. vals: the operands of the joint graph. lanes: how many there are.
    varying: which results are tracers of the level, known when the joint graph is: a choice that no
    lane sees takes one side, so it must not become one for each.
    """

    tracer: ClassVar[Any]

    def __init__(self, graph: Graph, level: Any, leaves: Sequence[Any]) -> None:
        self.graph, self.level = graph, level
        self.mine = tuple([x.__class__ is self.tracer and x.level is level for x in leaves])
        self.vals = [x.value if m else x for x, m in zip(leaves, self.mine, strict=True)]
        self.lanes: Any = None
        self.varying: Flags = ()

    @property
    def key(self) -> Any:
        """What the joint graph hangs on besides sizes."""
        return self.tracer, self.mine

    def fits(self) -> bool:
        """Whether one graph can be the call for whatever values come."""
        return True

    def joint(self) -> Callable[..., Any]:
        """The function of vals to capture."""
        raise NotImplementedError

    def names(self, *, any_lanes: bool) -> Names:
        """The symbols of vals' sizes. any_lanes: the number of lanes is one."""
        raise NotImplementedError

    def wrap(self, outs: Sequence[Any], varying: Flags) -> tuple[Any, ...]:
        """The results of the joint graph as tracers, where they vary."""
        raise NotImplementedError

    def _symbols(self) -> list[dict[int, str]]:
        """The symbols of the graph's own inputs, axis by axis."""
        known = {s.name for s in self.graph.symbols}
        return [
            {axis: str(n) for axis, n in enumerate(v.shape) if str(n) in known}
            for v in self.graph.inputs
        ]


class _Batched(Carrying):
    """On a batch."""

    tracer = BatchTracer

    def __init__(self, graph: Graph, level: Batch, leaves: Sequence[Any]) -> None:
        super().__init__(graph, level, leaves)
        self.lanes = level.size

    def fits(self) -> bool:
        decides = [e for e in self.graph.nodes if isinstance(e, Guard) and e.kind != "size"]
        return not decides  # else lanes may part

    def joint(self) -> Callable[..., Any]:
        def every(*vals: Any) -> list[Any]:
            (size, *_) = [v.shape[0] for v, m in zip(vals, self.mine, strict=True) if m]
            level = Batch(self.graph, size)
            pairs = zip(vals, self.mine, strict=True)
            try:
                outs = self.graph(*[BatchTracer(v, level) if m else v for v, m in pairs])
            finally:
                level.open = False
            self.varying = tuple([o.__class__ is BatchTracer and o.level is level for o in outs])
            return [whole(o, level) if v else o for o, v in zip(outs, self.varying, strict=True)]

        return every

    def names(self, *, any_lanes: bool) -> Names:
        lanes = {0: _LANES} if any_lanes else {}
        return [
            {**{a + 1: s for a, s in n.items()}, **lanes} if m else n
            for n, m in zip(self._symbols(), self.mine, strict=True)
        ]

    def wrap(self, outs: Sequence[Any], varying: Flags) -> tuple[Any, ...]:
        pairs = zip(outs, varying, strict=True)
        return tuple([BatchTracer(o, self.level) if v else o for o, v in pairs])


class _Pushed(Carrying):
    """With tangents, which stand behind the operands."""

    tracer = ForwardTracer

    def __init__(self, graph: Graph, level: Forward, leaves: Sequence[Any]) -> None:
        super().__init__(graph, level, leaves)
        self.varying = tuple([v.dtype in INEXACT for v in graph.outputs])
        self.vals += [x.tangent for x, m in zip(leaves, self.mine, strict=True) if m]

    def joint(self) -> Callable[..., Any]:
        def both(*xs: Any) -> tuple[Any, ...]:
            primals = xs[: len(self.mine)]

            def free(*fs: Any) -> Any:
                given = iter(fs)
                picked = zip(primals, self.mine, strict=True)
                return self.graph(*[next(given) if m else x for x, m in picked])

            moving = tuple([x for x, m in zip(primals, self.mine, strict=True) if m])
            outs, tangents = jvp(free, moving, xs[len(self.mine) :])
            return (*outs, *[t for t, v in zip(tangents, self.varying, strict=True) if v])

        return both

    def names(self, *, any_lanes: bool) -> Names:
        own = self._symbols()
        return [*own, *[n for n, m in zip(own, self.mine, strict=True) if m]]

    def wrap(self, outs: Sequence[Any], varying: Flags) -> tuple[Any, ...]:
        n = len(varying)
        tangents = iter(outs[n:])
        pairs = zip(outs[:n], varying, strict=True)
        return tuple([ForwardTracer(o, next(tangents), self.level) if v else o for o, v in pairs])


_KINDS: dict[type[Level], Callable[..., Carrying]] = {Batch: _Batched, Forward: _Pushed}


def carrying(graph: Graph, level: Level, leaves: Sequence[Any]) -> Carrying | None:
    """The call taken apart; None for other levels."""
    kind = _KINDS.get(level.__class__)
    return None if kind is None else kind(graph, level, leaves)
