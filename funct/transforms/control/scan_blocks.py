"""A scan whose steps are blocks of steps: unrolled ones, or ones that are run again backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funct import ops
from funct.array import concat, stack
from funct.core import ShapeDtype
from funct.graph import Graph
from funct.transforms.checkpoint_policies import nothing_saveable
from funct.transforms.control import bodies
from funct.transforms.control.bodies import Flat
from funct.transforms.control.scan_loop import Scan, part
from funct.transforms.remat import Checkpoint

__all__ = ["in_blocks"]


def in_blocks(
    loop: Scan, size: int, again: bool, outer: Sequence[Any], carry: Any, columns: Sequence[Any]
) -> Flat:
    """What `loop` gives, its steps taken so many at a time, and what is left over one by one.

    again: the blocks are loops that keep only what they are given; else they are unrolled.
    """
    c, n = loop.carry, int(loop.steps)
    whole = n - n % size
    first, rest = (n - whole, 0) if loop.reverse else (0, whole)  # where blocks and rest begin
    block = _again(loop, size) if again else _unrolled(loop, size)
    rows = [
        ops.reshape(part(x, first, first + whole), (whole // size, size, *x.shape[1:]))
        for x in columns
    ]
    outs = Scan(block, len(outer), c, whole // size, loop.reverse)(*outer, *carry, *rows)
    ys = [ops.reshape(y, (whole, *y.shape[2:])) for y in outs[c:]]
    if whole == n:
        return (*outs[:c], *ys)
    single = Scan(loop.body, len(outer), c, n - whole, loop.reverse)
    left = [part(x, rest, rest + n - whole) for x in columns]
    last = single(*outer, *outs[:c], *left)
    pairs = zip(ys, last[c:], strict=True)
    return (*last[:c], *[concat([b, a] if loop.reverse else [a, b]) for a, b in pairs])


def _types(loop: Scan, size: int) -> list[ShapeDtype]:
    avals = [v.aval for v in loop.body.inputs]
    return [*avals[: loop.split], *[bodies.batched(a, size) for a in avals[loop.split :]]]


def _again(loop: Scan, size: int) -> Graph:
    """A block that is a loop, and is run again on the way back."""
    inner = Scan(loop.body, loop.constants, loop.carry, size, loop.reverse)
    types = _types(loop, size)
    node = Checkpoint(bodies.regraph(inner, types), nothing_saveable)
    return bodies.regraph(node, types)


def _unrolled(loop: Scan, size: int) -> Graph:
    """A block that is its steps, one after the other."""
    order = range(size - 1, -1, -1) if loop.reverse else range(size)

    def run(*values: Any) -> list[Any]:
        held, carry, xs = loop.parts(values)
        ys: list[Any] = [None] * size
        for k in order:
            outs = loop.body(
                *held, *carry, *[ops.reshape(part(x, k, k + 1), x.shape[1:]) for x in xs]
            )
            carry, ys[k] = outs[: loop.carry], outs[loop.carry :]
        return [*carry, *[stack(list(column)) for column in zip(*ys, strict=True)]]

    return bodies.regraph(run, _types(loop, size))
