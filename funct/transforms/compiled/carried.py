"""A compiled graph on a batch, or with tangents: what to capture once as a graph of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from funct.core import INEXACT, Level
from funct.graph import Control, Graph, Guard, Node
from funct.transforms.forward import Forward, ForwardTracer, jvp
from funct.transforms.vmap import Batch, BatchTracer, vmap

__all__ = ["Carrying", "carrying"]

Names = list[dict[int, str] | None]

_LANES = "lanes"  # the size of a batch, where several were seen


@attrs.frozen(eq=False)
class Carrying:
    """A call of a graph on tracers of one level.

    key: what the joint graph hangs on besides sizes. vals: its operands. lanes: how many, or 0.
    joint: the function to capture. names: the symbols of vals' sizes. wrap: its results as tracers.
    """

    key: Any
    vals: list[Any]
    lanes: Any
    joint: Callable[..., Any]
    names: Names
    wrap: Callable[[Sequence[Any]], tuple[Any, ...]]

    def any_size(self) -> Names:
        """Names with a symbol for the number of lanes."""
        moved = self.key[1] if self.lanes else ()
        return [
            {**(n or {}), 0: _LANES} if m else n for n, m in zip(self.names, moved, strict=True)
        ]


def carrying(graph: Graph, level: Level, leaves: Sequence[Any]) -> Carrying | None:
    """The call taken apart; None for other levels, where lanes may part, and where branches, loops
    or calls with rules of their own know better what to do with a batch or a tangent.
    """
    if not all([isinstance(e, Guard) or _is_op(e) for e in graph.nodes]):  # noqa: C419
        return None
    symbols = {s.name for s in graph.symbols}
    names: Names = [
        {axis: str(n) for axis, n in enumerate(v.shape) if str(n) in symbols} for v in graph.inputs
    ]
    if isinstance(level, Batch):
        if any(isinstance(e, Guard) and e.kind != "size" for e in graph.nodes):
            return None
        return _batched(graph, level, leaves, names)
    return _pushed(graph, level, leaves, names) if isinstance(level, Forward) else None


def _is_op(e: Any) -> bool:
    return isinstance(e, Node) and not isinstance(e.primitive, Control)


def _batched(graph: Graph, level: Batch, leaves: Sequence[Any], names: Names) -> Carrying:
    mine = tuple([x.__class__ is BatchTracer and x.level is level for x in leaves])
    moved: Names = [
        {a + 1: s for a, s in n.items()} if m and n else n for n, m in zip(names, mine, strict=True)
    ]
    return Carrying(
        (Batch, mine),
        [x.value if m else x for x, m in zip(leaves, mine, strict=True)],
        level.size,
        vmap(graph, tuple([0 if m else None for m in mine])),
        moved,
        lambda outs: tuple([BatchTracer(o, level) for o in outs]),
    )


def _pushed(graph: Graph, level: Forward, leaves: Sequence[Any], names: Names) -> Carrying:
    mine = tuple([x.__class__ is ForwardTracer and x.level is level for x in leaves])
    varying = [v.dtype in INEXACT for v in graph.outputs]

    def joint(*xs: Any) -> tuple[Any, ...]:
        primals = xs[: len(mine)]

        def free(*fs: Any) -> Any:
            given = iter(fs)
            return graph(*[next(given) if m else x for x, m in zip(primals, mine, strict=True)])

        moving = tuple([x for x, m in zip(primals, mine, strict=True) if m])
        outs, tangents = jvp(free, moving, xs[len(mine) :])
        return (*outs, *[t for t, v in zip(tangents, varying, strict=True) if v])

    def wrap(both: Sequence[Any]) -> tuple[Any, ...]:
        tangents = iter(both[len(varying) :])
        return tuple(
            [
                ForwardTracer(o, next(tangents), level) if v else o
                for o, v in zip(both[: len(varying)], varying, strict=True)
            ]
        )

    vals = [x.value if m else x for x, m in zip(leaves, mine, strict=True)]
    tangents = [x.tangent for x, m in zip(leaves, mine, strict=True) if m]
    of_tangents = [n for n, m in zip(names, mine, strict=True) if m]
    return Carrying((Forward, mine), vals + tangents, 0, joint, names + of_tangents, wrap)
