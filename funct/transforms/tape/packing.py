"""Putting saved values away and getting them back: shared by hooks and by checkpoint's policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funct.array import asarray
from funct.errors import ShapeError
from funct.graph import GraphTracer
from funct.ops.fast import wrap
from funct.transforms.tape.nodes import Packed

__all__ = ["Packing", "host_copy", "put_away"]

Packing = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def host_copy(x: Any) -> Any:
    """The array in the memory of the host: a copy of its own."""
    return x if x.__class__ is GraphTracer else wrap(x.data.copy())


def put_away(
    x: Any, pack: Callable[[Any], Any], unpack: Callable[[Any], Any] = lambda x: x
) -> Packed:
    """x as pack makes it, until unpack makes it again."""
    return Packed(_packed(x, pack, unpack))


def _packed(x: Any, pack: Any, unpack: Any) -> Callable[[], Any]:
    """What restores x. Of a tracer only the arrays that it stands for are packed."""
    if x.__class__ is GraphTracer or not x.level.transforms:
        payload, shape, dtype = pack(x), x.shape, x.dtype

        def restored() -> Any:
            y = asarray(unpack(payload))
            if y.shape != shape or y.dtype != dtype:
                raise ShapeError(
                    f"saved_hooks: unpack must give back the array that was packed, {dtype}"
                    f"{tuple(shape)}, got {y.dtype}{tuple(y.shape)}"
                )
            return y

        return restored
    kind = x.__class__
    parts = {n: _packed(getattr(x, n), pack, unpack) for n in ("value", "tangent") if hasattr(x, n)}
    rest = {n: getattr(x, n) for n in kind.__slots__ if n not in parts}

    def rebuilt() -> Any:
        y = object.__new__(kind)
        for n, part in rest.items():
            setattr(y, n, part)
        for n, restore in parts.items():
            setattr(y, n, restore())
        return y

    return rebuilt
