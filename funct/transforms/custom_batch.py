"""Calls of a function whose batching rule is given: what the rule makes of its derivatives.

The derivative of such a function, in each mode, is again such a function: its batching rule is the
derivative of the rule. So the rule serves `vmap(grad(f))` as well as `grad(vmap(f))`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from funct import ops, pytree
from funct.array import Tensor
from funct.core import INEXACT, Region, bind_region
from funct.errors import ShapeError
from funct.graph import GraphTracer
from funct.transforms.forward import jvp
from funct.transforms.vjp import vjp
from funct.transforms.vmap import Batch, BatchTracer, lift

__all__ = ["BatchRule", "batched_call", "needs_rule", "spread_out", "with_rule"]

Flat = tuple[Any, ...]
BatchRule = Callable[..., Flat]  # (size, flags, *operands) -> results, all with the batch on axis 0


def needs_rule(x: Any) -> bool:
    """Whether a vmap may see what is done with x, now or when a graph is run."""
    while isinstance(x, Tensor) and x.level.transforms:
        if x.__class__ is BatchTracer or x.__class__ is GraphTracer:
            return True
        x = x.value
    return False


def with_rule(region: Region, rule: BatchRule) -> Region:
    """A call with derivative rules of its own, which are batched op by op, and a batching rule."""

    def batch(level: Batch, flags: Sequence[bool]) -> Region:
        run = lambda *xs: rule(level.size, tuple(flags), *xs)  # noqa: E731
        return replace(lift(region, level, flags), run=run)

    return replace(region, batch=batch)


def batched_call(name: str, run: Callable[..., Flat], rule: BatchRule) -> Region:
    """A call with a batching rule; its derivatives are those of what it does."""

    def push(primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        n = len(primals)

        def both(*vs: Any) -> Flat:
            outs, pushed = jvp(run, vs[:n], vs[n:])
            return (*outs, *pushed)

        def batched(size: Any, flags: Sequence[bool], *vs: Any) -> Flat:
            wide = tuple([p or t for p, t in zip(flags[:n], flags[n:], strict=True)])
            full = [
                _spread(v, size, f, w) for v, f, w in zip(vs, flags, (*wide, *wide), strict=True)
            ]
            outs, pushed = jvp(lambda *xs: rule(size, wide, *xs), tuple(full[:n]), tuple(full[n:]))
            return (*outs, *pushed)

        found = bind_region(batched_call(f"push of {name}", both, batched), (*primals, *tangents))
        return found[: len(found) // 2], found[len(found) // 2 :]

    def forward(*xs: Any) -> tuple[Flat, Flat]:
        return bind_region(region, xs), xs

    def backward(xs: Flat, cts: Flat) -> Flat:
        n = len(xs)
        at = [k for k, x in enumerate(xs) if x.dtype in INEXACT]

        def pull(*vs: Any) -> Flat:
            found = vjp(run, *vs[:n])[1].adjoint(vs[n:])
            return tuple([found[k] for k in at])

        def batched(size: Any, flags: Sequence[bool], *vs: Any) -> Flat:
            # each lane has a cotangent of its own, also for what the lanes share
            wide = [f or (k in at or k >= n) for k, f in enumerate(flags)]
            full = [_spread(v, size, f, w) for v, f, w in zip(vs, flags, wide, strict=True)]
            found = vjp(lambda *ws: rule(size, tuple(wide[:n]), *ws), *full[:n])[1].adjoint(
                full[n:]
            )
            return tuple([found[k] for k in at])

        given = iter(bind_region(batched_call(f"pull of {name}", pull, batched), (*xs, *cts)))
        return tuple([next(given) if k in at else None for k in range(n)])

    def batch(level: Batch, flags: Sequence[bool]) -> Region:
        return Region(name, lambda *xs: rule(level.size, tuple(flags), *xs))

    region = Region(name, run, push, forward, backward, batch)
    return region


def _spread(x: Any, size: Any, batched: bool, wanted: bool) -> Any:
    return x if batched or not wanted else ops.broadcast_to(x, (size, *x.shape))


def spread_out(name: str, size: Any, result: tuple[Any, Any], outs: Flat) -> Flat:
    """The leaves of what a user's rule returned, all with the batch on axis 0.

    Raises: TreeError: when out_batched is no prefix of out. ShapeError: when a leaf that it says is
    batched is not.
    """
    tree, flags = result
    marks = pytree.broadcast_prefix(f"custom_vmap: out_batched of {name}", flags, tree, "out")
    made = []
    for (path, _), o, f in zip(pytree.flatten_with_path(tree), outs, marks, strict=True):
        if f and (not o.shape or o.shape[0] != size):
            at = f" at {path}" if path else ""
            raise ShapeError(
                f"custom_vmap: the rule of {name} must give results with {size} lanes on axis 0 "
                f"where out_batched says so, got shape {tuple(o.shape)}{at}"
            )
        made.append(_spread(o, size, bool(f), True))
    return tuple(made)
