"""Shapes that meet: the common shape of operands, batches lined up, cotangents summed back.

And batching rules that several chapters have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import core, ops
from funct.core import Primitive
from funct.ops.fast import wrap

__all__ = [
    "align", "axis_behind", "broadcast_shapes", "first_axis", "match_operand", "merged", "of_none",
    "pad_rank", "same_call",
]  # fmt: skip

Batching = Callable[[Primitive, Sequence[Any], Sequence[bool], Any], Any]


def broadcast_shapes(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The common shape; symbolic sizes are compared as the literals they stand for.

    Raises ValueError where two lengths differ and neither is 1.
    """
    if len(shapes) == 2 and shapes[0] is shapes[1]:
        return tuple(shapes[0])
    out: list[Any] = []
    for k in range(max(map(len, shapes), default=0)):
        best: Any = 1
        for s in shapes:
            if k < len(s):
                n = s[-1 - k]
                if n is best or (n == 1 if n.__class__ is int else core.is_one(n)):
                    continue
                if best == 1 if best.__class__ is int else core.is_one(best):
                    best = n
                elif n != best:
                    raise ValueError(f"{best} != {n}")
        out.append(best)
    return tuple(out[::-1])


def align(
    prim: Primitive, args: Sequence[Any], batched: Sequence[bool], params: tuple[Any, ...]
) -> Any:
    """Batching of every elementwise op: axis 0 is the batch, ranks are padded after it."""
    ranks = [len(getattr(a, "shape", ())) - b for a, b in zip(args, batched, strict=True)]
    rank = max(ranks)
    full = [pad_rank(a, rank) if b else a for a, b in zip(args, batched, strict=True)]
    return prim.fn(*full, *params)


def pad_rank(x: Any, rank: int) -> Any:
    """Give a batched value `rank` axes after the batch, with axes of length 1 behind it."""
    missing = rank + 1 - len(x.shape)
    if missing <= 0:
        return x
    return ops.reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:]))


def first_axis(x: Any, batched: bool, size: int) -> Any:
    """x with the batch on axis 0, repeated where it has none."""
    return x if batched else ops.broadcast_to(x, (size, *x.shape))


def of_none(rule: Batching) -> Batching:
    """A batching rule that takes lanes apart or counts by them, for no lanes as well: those have
    the rank and the lengths of one, of which nothing is kept.
    """

    @functools.wraps(rule)
    def batch(prim: Primitive, args: Sequence[Any], batched: Sequence[bool], params: Any) -> Any:
        size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)
        if size.__class__ is not int or size:
            return rule(prim, args, batched, params)
        one = [_and_one(a) if b else a for a, b in zip(args, batched, strict=True)]
        y = rule(prim, one, batched, params)
        return tuple(map(_no_lanes, y)) if isinstance(y, tuple) else _no_lanes(y)

    return batch


def _no_lanes(y: Any) -> Any:
    return ops.slice_(y, ((0, 0, 1), *((None, None, 1),) * (len(y.shape) - 1)))


def _and_one(x: Any) -> Any:
    """No lanes and one more: ones, and of integers, which may be indices, zeros."""
    fill = np.zeros((), x.dtype) if x.dtype.kind in "iub" else np.ones((), x.dtype)
    return ops.concat(x, ops.broadcast_to(wrap(fill), (1, *x.shape[1:])), 0)


def match_operand(g: Any, shape: tuple[Any, ...], dtype: np.dtype[Any] | None = None) -> Any:
    """Cotangent of an operand from that of the broadcast result: summed and cast back."""
    extra = len(g.shape) - len(shape)
    axes = tuple(range(extra)) + tuple(
        [
            i + extra
            for i, n in enumerate(shape)
            if core.is_one(n) and not core.is_one(g.shape[i + extra])
        ]
    )
    if axes:
        g = ops.reduce_sum(g, axes, False)
        if len(axes) > extra:
            g = ops.reshape(g, shape)
    if dtype is not None and g.dtype != dtype:
        if g.dtype.kind == "c" and dtype.kind != "c":
            g = ops.real(g)
        g = ops.astype(g, dtype)
    return g


def same_call(
    prim: Primitive, args: Sequence[Any], batched: Sequence[bool], params: tuple[Any, ...]
) -> Any:
    """Batching of an op of one operand that counts no axes from the first: there is one more."""
    return prim.fn(args[0], *params)


def axis_behind(
    prim: Primitive, args: Sequence[Any], batched: Sequence[bool], params: tuple[Any, ...]
) -> Any:
    """Batching of what goes along the axis of one operand that its first parameter names."""
    return prim.fn(args[0], params[0] + 1, *params[1:])


def merged(x: Any) -> Any:
    """x with its first two axes, of which one is the batch, as one."""
    return ops.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
