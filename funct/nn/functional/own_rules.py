"""Functions with rules of their own: `custom_vjp`, and less to ask on a tape above arrays.

`custom_vjp` serves trees, any level and any rule. Of a function of this package the rules are known
to fit, so on arrays and one tape above them a call is one node, and nothing is asked of trees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from funct.array import Array
from funct.transforms import custom_vjp
from funct.transforms.reverse import Reverse, ReverseTracer
from funct.transforms.tape.nodes import Composed, Node

__all__ = ["ruled"]

Forward = Callable[..., tuple[Any, tuple[Any, ...]]]
Back = Callable[..., tuple[Any, ...]]


class _Ruled(Composed):
    """A call. mine: which of its arrays are on the tape. fixed: what is no array."""

    def __init__(
        self, name: str, back: Back, fixed: tuple[Any, ...], mine: list[int], masks: bool
    ) -> None:
        self.name, self.masks = name, masks
        self._back, self._fixed, self._mine = back, fixed, mine

    def pull(self, g: Any, *kept: Any) -> Any:
        found = self._back(*self._fixed, kept, g)
        mine = [found[k] for k in self._mine]
        return mine[0] if len(mine) == 1 else mine

    masked = pull


def ruled(
    fun: Callable[..., Any], forward: Forward, back: Back, arrays: int = 1, fixed: int = 0,
    masks: Callable[..., bool] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """fun(*arrays, *fixed), which gives one array, with rules of its own.

    forward(*arrays, *fixed): the result, and a tuple of arrays that the way back keeps.
    back(*fixed, kept, g): the cotangents of the arrays, None of those that have none.
    masks(*fixed): whether there are structural zeros among these; where there may be, other levels
    meet fun by its ops.
    """
    general: Any = fun
    if masks is None:
        general = custom_vjp(fun, nondiff_argnums=tuple(range(arrays, arrays + fixed)))
        general.defvjp(forward, back)

    @functools.wraps(fun)
    def call(*args: Any) -> Any:
        level: Any = None
        nodes: list[Node | None] = []
        below = []
        for a in args[:arrays]:
            if a.__class__ is ReverseTracer and level in (None, a.level):
                level = a.level
                nodes.append(a.node)
                a = a.value
            else:
                nodes.append(None)
            if a.__class__ is not Array:
                return general(*args)
            below.append(a)
        if level.__class__ is not Reverse or level.open is not True:
            return general(*args)
        rest = args[arrays:]
        ans, kept = forward(*below, *rest)
        mine = [k for k, node in enumerate(nodes) if node is not None]
        some = masks is not None and masks(*rest)
        return level.record_whole(ans, _Ruled(fun.__name__, back, rest, mine, some), nodes, kept)

    return call
