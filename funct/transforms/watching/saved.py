"""saved_hooks and offload: what derivatives save goes through functions of the user's.

What a tape keeps is put away when its node is born. A function that is compiled has no tape: where
`jit` captures what these functions are put on, it becomes one node, a `Checkpoint` that keeps
everything and puts that away; and a compiled function that is called under them is run op by op,
with all that its backward part reads from its forward part put away.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from funct import tree
from funct.array import Tensor
from funct.array.device import check_device
from funct.core import top_level
from funct.graph import Call, Capture, Graph, Guard, Interpreter, Var
from funct.graph import Node as Entry
from funct.transforms.given import expect_functions
from funct.transforms.remat import Checkpoint, as_node
from funct.transforms.tape.nodes import Node, Packed
from funct.transforms.tape.packing import Packing, host_copy, put_away
from funct.transforms.watching.watch import Watch, WatchTracer, run_under

__all__ = ["offload", "saved_hooks"]


class _Saved(Watch):
    """Packs what tapes keep."""

    __slots__ = ("pack", "unpack")

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]

    def replay(self, graph: Graph, args: Sequence[Any]) -> tuple[Any, ...]:
        """A compiled function whose graph has a backward pass: what that reads is put away."""
        return _Replay(graph, (self.pack, self.unpack)).run(*args)

    def born(self, nodes: Sequence[Node]) -> None:
        """Replace what the nodes' pulls keep by what `pack` makes of it."""
        for node in nodes:
            self._put_away(node)

    def _put_away(self, node: Node) -> None:
        packed: dict[int, Packed] = {}  # by what the edges hold: ids of others are given again

        def away(k: Any) -> Any:
            if not isinstance(k, Tensor | Packed):
                return k
            if id(k) not in packed:
                # hooks further out come first
                x = k.restore() if k.__class__ is Packed else k
                packed[id(k)] = put_away(x, self.pack, self.unpack)
            return packed[id(k)]

        node.edges = tuple(
            [
                (parent, _unpacking(pull), tuple([away(k) for k in kept]))
                if any(isinstance(k, Tensor | Packed) for k in kept)
                else (parent, pull, kept)
                for parent, pull, kept in node.edges
            ]
        )


class _Replay(Interpreter):
    """A graph whose backward ops get what the forward ones have made through pack and unpack."""

    def __init__(self, graph: Graph, packing: Packing) -> None:
        super().__init__(graph)
        self.packing = packing
        self.away: dict[Var, Packed] = {}
        late = [e for e in graph.nodes if _backward(e)]
        made = {v for e in late for v in e.results}  # type: ignore[union-attr]
        read = {a for e in late for a in e.operands if isinstance(a, Var)}  # type: ignore[union-attr]
        self.crossing = read - made - {v for v, _ in graph.constants}

    def node(self, node: Entry, operands: list[Any]) -> tuple[Any, ...]:
        """One primitive."""
        return super().node(node, self._given(node, operands))

    def call(self, call: Call, operands: list[Any]) -> tuple[Any, ...]:
        """One call of a function with its own rules."""
        return super().call(call, self._given(call, operands))

    def _given(self, e: Entry | Call, operands: list[Any]) -> list[Any]:
        if not _backward(e):
            return operands
        pairs = zip(e.operands, operands, strict=True)
        return [self._restored(a, x) if a in self.crossing else x for a, x in pairs]

    def _restored(self, v: Any, x: Any) -> Any:
        if v not in self.away:
            self.away[v] = put_away(x, *self.packing)
        return self.away[v].restore()


def _kept_by_tapes(e: Entry | Call) -> bool:
    return not _backward(e)


def _backward(e: Any) -> bool:
    return not isinstance(e, Guard) and e.site is not None and e.site.of != ""


def _unpacking(pull: Callable[..., Any]) -> Callable[..., Any]:
    def run(g: Any, *kept: Any) -> Any:
        return pull(g, *[k.restore() if k.__class__ is Packed else k for k in kept])

    return run


def saved_hooks(
    pack: Callable[[Any], Any], unpack: Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: what tapes keep for the derivatives of the function goes through pack and
    unpack.

    Args: pack: gets each array that a tape keeps, when it is kept, and gives anything. unpack: gets
    that back when the backward pass needs the array, and gives an array of that shape and dtype.
    Both see the arrays themselves however transforms are nested; inside `jit` they are traced, and
    so they are in the derivative of what `jit` compiled. Of `saved_hooks(…)(grad(jit(f)))` they see
    what the compiled forward half keeps for the backward half. Of a function that is compiled
    outside of this one, say `saved_hooks(…)(jit(grad(f)))`, ops are run one by one here.
    Raises: ShapeError: where unpack gives another shape or dtype.
    Example:
        >>> import funct as ft, funct.array as xp, numpy as np
        >>> kept = {}
        >>> pack = lambda x: (kept.update({len(kept): np.asarray(x)}), len(kept) - 1)[1]
        >>> f = ft.saved_hooks(pack, lambda k: xp.asarray(kept[k]))(lambda x: xp.sum(xp.sin(x)))
        >>> ft.grad(f)(xp.zeros(2)).tolist(), len(kept)
        ([1.0, 1.0], 1)
    """
    expect_functions("saved_hooks", pack=pack, unpack=unpack)

    def decorate(fun: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fun)
        def run(*args: Any, **kwargs: Any) -> Any:
            def watched(*args: Any, **kwargs: Any) -> Any:
                level = _Saved("saved_hooks", fun)
                level.pack, level.unpack = pack, unpack
                return run_under(level, fun, args, kwargs)

            if not _captured(tree.leaves((args, kwargs))):
                return watched(*args, **kwargs)
            packing = pack, unpack  # a derivative of the compiled function will ask for them
            return as_node(
                "saved_hooks", watched, args, kwargs,
                lambda graph: Checkpoint(graph, _kept_by_tapes, packing),
            )  # fmt: skip

        return run

    return decorate


def _captured(values: Sequence[Any]) -> bool:
    """Whether a capture is the highest level of these values, watches left aside."""
    below = []
    for x in values:
        while x.__class__ is WatchTracer:
            x = x.value
        below.append(x)
    return isinstance(top_level(below), Capture)


def offload(device: str = "cpu") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: what tapes keep for the derivatives of the function waits on that device.

    The copies are made when values are kept, and go back when the backward pass needs them. On a
    machine with one device that is a copy there and back.
    Raises: ArgumentError: for a device that does not exist.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> loss = ft.offload("cpu")(lambda x: xp.sum(xp.sin(x) ** 2))
        >>> ft.grad(loss)(xp.asarray([0.0])).tolist()
        [0.0]

    Source: torch `autograd.graph.save_on_cpu`, as a decorator.
    """
    check_device("offload", device)

    return saved_hooks(host_copy, lambda x: x)
