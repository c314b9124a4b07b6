"""checkpoint: a function whose intermediate values are computed again in the backward pass.

The function is captured, with what it closes over as further operands. Its reverse rule keeps the
operands and what the policy says; the rest of the forward pass is part of the pull. The pull is one
node too, so under jit nobody mistakes the second computation for the first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops
from funct import tree as pytree
from funct.array import Tensor, asarray
from funct.errors import ArgumentError
from funct.graph import Graph, Interpreter
from funct.ops.families import wrap
from funct.transforms import bodies, checkpoint_policies
from funct.transforms.bodies import Flags, Flat
from funct.transforms.checkpoint_policies import OFFLOAD, Policy
from funct.transforms.packing import Packing, host_copy, put_away
from funct.transforms.staged import Staged
from funct.transforms.tape import Packed

__all__ = ["Checkpoint", "as_node", "checkpoint", "checkpoint_name", "kept_small"]

_KEEPS_NOTHING = "__keeps_nothing__"


def checkpoint(fun: Callable[..., Any], *, policy: Policy | None = None) -> Callable[..., Any]:
    """fun, but reverse mode keeps its arguments alone and runs it once more on the way back.

    Args: policy: which values are kept after all, a function of the node that made them: True,
    False, or `checkpoint_policies.OFFLOAD` for those that wait in the memory of the host;
    `checkpoint_policies` has the usual ones. None keeps nothing. What is much cheaper to do again
    than to keep is always done again.
    Returns: a function with fun's signature and values. Memory of a loop: `scan(checkpoint(f), …)`
    keeps about 2√n carries of n steps.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> block = ft.checkpoint(lambda x: xp.sum(xp.sin(xp.sin(x))))
        >>> round(float(ft.grad(block)(xp.asarray(1.0))), 6)
        0.360039

    Source: Griewank and Walther, "Algorithm 799: Revolve" (2000); `jax.checkpoint`.
    """
    if policy is not None and not callable(policy):
        raise ArgumentError(
            f"checkpoint: policy must be a function of a node, got {policy!r}",
            fix="take one from checkpoint_policies",
        )
    saveable = policy if policy is not None else checkpoint_policies.nothing_saveable

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves = pytree.leaves((args, kwargs))
        if not any(_traced(x) for x in leaves):
            out = fun(*args, **kwargs)
            if not any(_traced(x) for x in pytree.leaves(out)):
                return out  # nobody looks: there is no backward pass
        return as_node("checkpoint", fun, args, kwargs, lambda graph: Checkpoint(graph, saveable))

    run.__dict__[_KEEPS_NOTHING] = saveable is checkpoint_policies.nothing_saveable
    return run


def as_node(
    name: str, fun: Any, args: Any, kwargs: Any, make: Callable[[Graph], Checkpoint]
) -> Any:
    """fun(*args, **kwargs) as one node, with what fun closes over as further operands."""
    leaves, spec = pytree.flatten((args, kwargs))
    moving = [isinstance(x, Tensor | np.ndarray | np.generic) for x in leaves]
    structure: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        given = iter(xs)
        full = [next(given) if m else x for x, m in zip(leaves, moving, strict=True)]
        a, k = spec.unflatten(full)
        outs, shape = pytree.flatten(fun(*a, **k))
        structure[:] = [shape]
        return [asarray(o) for o in outs]

    arrays = [asarray(x) for x in bodies.chosen(leaves, moving)]
    graph, outer = bodies.trace(name, flat, arrays, fun)
    return structure[0].unflatten(make(graph)(*arrays, *outer))


def kept_small(fun: Callable[..., Any]) -> bool:
    """Whether fun is a `checkpoint` that keeps its arguments alone."""
    return getattr(fun, _KEEPS_NOTHING, False)


def checkpoint_name(x: Any, name: str) -> Any:
    """x (a pytree), under a name that `checkpoint_policies.save_only_these_names` may ask for."""
    return pytree.map(lambda v: ops.checkpoint_name(asarray(v), name), x)


def _traced(x: Any) -> bool:
    return isinstance(x, Tensor) and x.level.transforms


class Checkpoint(Staged):
    """A graph as one node. saveable: which values its forward half keeps for its backward half.

    packing: how all that is kept is put away, and got back (`saved_hooks`).
    """

    name = "checkpoint"

    def __init__(self, body: Graph, saveable: Policy, packing: Packing | None = None) -> None:
        self.name = "checkpoint" if packing is None else "saved_hooks"  # type: ignore[misc]
        self.body = body
        self.saveable = saveable
        self.packing = packing
        ins = tuple([v.aval for v in body.inputs])
        super().__init__([("body", body)], ins, tuple([v.aval for v in body.outputs]))

    def mapped(self, change: Callable[[Graph], Graph]) -> Checkpoint:
        """A changed body, checkpointed."""
        return self.like(change(self.body))

    def like(self, body: Graph) -> Checkpoint:
        """Another body, checkpointed in the same way."""
        return Checkpoint(body, self.saveable, self.packing)

    def run(self, *buffers: Any) -> Flat:
        """The body: interpreted the first time, since eager code comes by once, then compiled."""
        if self.once("seen", lambda: [False])[0]:
            return self.compiled(self.body)(*buffers)
        self.once("seen", list)[0] = True
        outs = Interpreter(self.body).run(*[wrap(b) for b in buffers])
        return tuple([o.data for o in outs])

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """The body with its tangents, checkpointed."""
        flags = bodies.reached(self.body, mine, derivative=True)
        both = self.once(("push", mine), lambda: self.like(bodies.dual(self.body, mine, flags)))(
            *primals, *bodies.chosen(tangents, mine)
        )
        n = len(flags)
        return both[:n], bodies.or_zero(both[n:], flags, both[:n])

    def _halves(self, mine: Flags) -> tuple[Checkpoint, Checkpoint, Sequence[int], Flags, Flags]:
        flags = bodies.reached(self.body, mine, derivative=True)
        ready = (True,) * len(mine)
        cut = bodies.halves(self.body, mine, flags, ready, lambda e: not self.saveable(e))
        early, late = self.like(cut.forward), self.like(cut.backward)
        away = tuple([e is not None and self.saveable(e) == OFFLOAD for e in cut.makers])
        return early, late, cut.uses, flags, away

    def forward(self, mine: Flags, *vals: Any) -> tuple[Flat, Flat]:
        """The body, and what the policy keeps."""
        early, _, uses, flags, away = self.once(("halves", mine), lambda: self._halves(mine))
        both = early(*vals)
        kept = [*[vals[k] for k in uses], *both[len(flags) :]]
        if self.packing is not None:
            return both[: len(flags)], tuple([put_away(x, *self.packing) for x in kept])
        pairs = zip(kept[len(uses) :], away, strict=True)
        kept[len(uses) :] = [put_away(x, host_copy) if a else x for x, a in pairs]
        return both[: len(flags)], tuple(kept)

    def backward(self, mine: Flags, residuals: Flat, cts: Flat) -> Flat:
        """The body again, and its pull."""
        _, late, _, flags, _ = self.once(("halves", mine), lambda: self._halves(mine))
        residuals = tuple([r.restore() if isinstance(r, Packed) else r for r in residuals])
        return tuple(bodies.or_none(late(*residuals, *bodies.chosen(cts, flags)), mine))

    def batch(self, size: Any, flags: Flags, vals: Flat) -> Flat:
        """The batched body, checkpointed."""

        whole = (True,) * len(self.outs)
        make = lambda: self.like(bodies.lifted(self.body, flags, whole, size))  # noqa: E731
        return self.once(("batch", flags, size), make)(*vals)
