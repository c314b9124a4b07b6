"""checkpoint: a function whose intermediate values are computed again in the backward pass.

Where a value is traced for derivatives alone, that is a call whose reverse rule runs the function
again. Elsewhere, and where a policy keeps something or the function closes over what is traced, it
is captured, with what it closes over as further operands: its reverse rule keeps the operands and
what the policy says; the rest of the forward pass is part of the pull. The pull is one node too, so
under jit nobody mistakes the second computation for the first.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from types import CodeType
from typing import Any

import attrs
import numpy as np

from funct import ops, pytree
from funct.array import Tensor, asarray
from funct.array.trees import flat_arrays, map_arrays
from funct.compile import Choice
from funct.core import Met, Region, bind_region, top_level
from funct.errors import ArgumentError, UnsupportedOperandError
from funct.graph import Control, Graph, Guard, dependent
from funct.graph.controls import Written, agree, remakes
from funct.graph.digest import digest
from funct.transforms import checkpoint_policies
from funct.transforms.checkpoint_policies import OFFLOAD, Policy
from funct.transforms.control import bodies, halving
from funct.transforms.control.absent import without
from funct.transforms.control.bodies import Flags, Flat
from funct.transforms.control.staged import Less, Staged, op_by_op, plainly_transformed
from funct.transforms.forward import jvp
from funct.transforms.given import expect_functions
from funct.transforms.recipes import noted
from funct.transforms.tape.nodes import Packed
from funct.transforms.tape.packing import Packing, host_copy, put_away
from funct.transforms.vjp import vjp
from funct.transforms.vmap import BatchTracer
from funct.transforms.watching.watch import chain

__all__ = ["Checkpoint", "as_node", "checkpoint", "checkpoint_name", "kept_small"]

_KEEPS_NOTHING = "__keeps_nothing__"
_with_rules: weakref.WeakSet[CodeType] = weakref.WeakSet()  # of what calls functions with such
_SMALL = 1 << 16  # bytes of constants of a body that is remembered


def checkpoint(fun: Callable[..., Any], *, policy: Policy | None = None) -> Callable[..., Any]:
    """fun, but reverse mode keeps its arguments alone and runs it once more on the way back.

    Args: policy: which values are kept after all, a function of the node that made them: True,
    False, or `checkpoint_policies.OFFLOAD` for those that wait in the memory of the host;
    `checkpoint_policies` has the usual ones. None keeps nothing. What is much cheaper to do again
    than to keep is always done again.
    Returns: a function with fun's signature and values. Memory of a loop: `scan(checkpoint(f), …)`
    keeps about 2√n carries of n steps.
    Raises: ArgumentError: when policy is no function.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> block = ft.checkpoint(lambda x: xp.sum(xp.sin(xp.sin(x))))
        >>> round(float(ft.grad(block)(xp.asarray(1.0))), 6)
        0.360039

    Source: Griewank and Walther, "Algorithm 799: Revolve" (2000); `jax.checkpoint`.
    """
    expect_functions("checkpoint", fun=fun)
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
        if keeps_nothing and _differentiated(leaves):
            try:
                return _as_call(fun, args, kwargs)
            except _ClosureError:
                pass
        eager = plainly_transformed([x for x in leaves if isinstance(x, Tensor)])
        make = _known if eager else Checkpoint
        return as_node("checkpoint", fun, args, kwargs, lambda graph: make(graph, saveable))

    keeps_nothing = saveable is checkpoint_policies.nothing_saveable
    run.__dict__[_KEEPS_NOTHING] = keeps_nothing
    return noted(run, checkpoint, (fun,), "policy", policy)


class _ClosureError(Exception):
    """What is run closes over a traced value, whose derivative a call of arguments would lose."""


def _closed(ins: Sequence[Any], outs: Sequence[Any]) -> Flat:
    """Results that depend on no transform that the operands do not. Raises _ClosureError."""
    if top_level(outs).serial > top_level(ins).serial:
        raise _ClosureError
    return tuple(outs)


def _as_call(fun: Any, args: Any, kwargs: Any) -> Any:
    """fun(*args, **kwargs) as a call that keeps its arguments; its pull runs fun itself again.

    Its operands are the arguments that a transform looks at: a derivative by the others may not
    exist. The results are those that a tape of fun has: a function with rules of its own is what
    they compute. Raises _ClosureError.
    """
    flat, given, structure = _flattened(fun, args, kwargs)
    looked_at = [_traced(x) for x in given]
    leaves = bodies.chosen(given, looked_at)

    def run(*xs: Any) -> Flat:
        rest = iter(xs)
        full = [next(rest) if t else x for x, t in zip(given, looked_at, strict=True)]
        return _closed(xs, flat(*full))

    code = getattr(fun, "__code__", None)
    outs = bind_region(_call(run, code), leaves)
    return structure[0].unflatten(outs)


def _call(run: Callable[..., Flat], code: CodeType | None) -> Region:
    def recorded(*xs: Any) -> Flat:
        return _closed(xs, vjp(run, *xs)[0])

    def computed(*xs: Any) -> Flat:
        # A tape keeps what a run lets go of: only functions with rules know the difference.
        before = Met.told()
        if code not in _with_rules:
            outs = run(*xs)
            if Met.told() == before:
                return outs
            if code is not None:
                _with_rules.add(code)
        return recorded(*xs)

    def push(xs: Flat, ts: Flat) -> tuple[Flat, Flat]:
        outs, pushed = jvp(run, xs, ts)
        _closed((*xs, *ts), (*outs, *pushed))
        return outs, pushed

    def forward(*xs: Any) -> tuple[Flat, Flat]:
        if not any(_traced(x) for x in xs):
            return computed(*xs), xs
        return bind_region(_call(recorded, code), xs), xs

    def backward(xs: Flat, cts: Flat) -> Flat:
        return tuple(vjp(run, *xs)[1].reaching(cts, once=True))

    return Region("checkpoint", run, push, forward, backward, some=True)


def as_node(
    name: str, fun: Any, args: Any, kwargs: Any, make: Callable[[Graph], Checkpoint]
) -> Any:
    """fun(*args, **kwargs) as one node, with what fun closes over as further operands."""
    flat, arrays, structure = _flattened(fun, args, kwargs)
    graph, outer = bodies.trace(name, flat, arrays, fun)
    return structure[0].unflatten(make(graph)(*arrays, *outer))


@attrs.frozen
class _Body:
    """A graph, equal to those that compute the same on the same lines for the same policy."""

    key: Hashable
    graph: Graph = attrs.field(eq=False)
    saveable: Policy = attrs.field(eq=False)


def _known(graph: Graph, saveable: Policy) -> Checkpoint:
    """The node of a body that eager code has captured: it comes by at every step, and its halves
    cost much more than a run of it.
    """
    small = sum(x.data.nbytes for _, x in graph.constants) <= _SMALL
    key = digest(graph, rules=True) if small else None
    if key is None:
        return Checkpoint(graph, saveable, steps=True)
    sites = tuple([None if isinstance(e, Guard) else e.site for e in graph.nodes])
    return _made(_Body((key, sites, id(saveable)), graph, saveable))


@functools.lru_cache(256)
def _made(body: _Body) -> Checkpoint:
    return Checkpoint(body.graph, body.saveable, steps=True)


def _flattened(fun: Any, args: Any, kwargs: Any) -> tuple[Callable[..., Any], list[Any], list[Any]]:
    """fun of the arrays among the arguments, these, and a list that gets the structure of what it
    gives when it runs.
    """
    leaves, spec = pytree.flatten((args, kwargs))
    moving = [isinstance(x, Tensor | np.ndarray | np.generic) for x in leaves]
    structure: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        given = iter(xs)
        full = [next(given) if m else x for x, m in zip(leaves, moving, strict=True)]
        a, k = spec.unflatten(full)
        outs, shape = flat_arrays(fun(*a, **k))
        structure[:] = [shape]
        return outs

    return flat, [asarray(x) for x in bodies.chosen(leaves, moving)], structure


def kept_small(fun: Callable[..., Any]) -> bool:
    """Whether fun is a `checkpoint` that keeps its arguments alone."""
    return getattr(fun, _KEEPS_NOTHING, False)


def checkpoint_name(x: Any, name: str) -> Any:
    """x (a pytree), under a name that `checkpoint_policies.save_only_these_names` may ask for.

    Raises: UnsupportedOperandError: for a name that is no string.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> keep = ft.checkpoint_policies.save_only_these_names("h")
        >>> fun = ft.checkpoint(lambda x: xp.sin(ft.checkpoint_name(x * x, "h")), policy=keep)
        >>> round(float(ft.grad(fun)(xp.asarray(2.0))), 4)
        -2.6146

    Source: JAX `ad_checkpoint.checkpoint_name`.
    """
    if not isinstance(name, str):
        raise UnsupportedOperandError(f"checkpoint_name: name must be a string, got {name!r}")
    return map_arrays(lambda v: ops.checkpoint_name(v, name), x)


def _traced(x: Any) -> bool:
    return isinstance(x, Tensor) and x.level.transforms


def _differentiated(leaves: Sequence[Any]) -> bool:
    """Whether nothing but derivatives of arrays is taken."""
    below = [v for x in leaves for v in chain(x)]
    return not any(isinstance(v, BatchTracer) for v in below) and plainly_transformed(
        [x for x in leaves if isinstance(x, Tensor)]
    )


class Checkpoint(Staged):
    """A graph as one node. saveable: which values its forward half keeps for its backward half.

    packing: how all that is kept is put away, and got back (`saved_hooks`). steps: it runs op by op
    each time, as eager code does; else compiled from the second time on.
    """

    name = "checkpoint"

    def __init__(
        self, body: Graph, saveable: Policy, packing: Packing | None = None, *, steps: bool = False
    ) -> None:
        self.name = "checkpoint" if packing is None else "saved_hooks"  # type: ignore[misc]
        self.body = body
        self.saveable = saveable
        self.packing = packing
        self.steps = steps
        ins = tuple([v.aval for v in body.inputs])
        super().__init__([("body", body)], ins, tuple([v.aval for v in body.outputs]))

    def written(self) -> Written | None:
        """The node, taken apart; None if its policy is a function of the user's."""
        name = getattr(self.saveable, "__name__", "")
        plain = name in _PLAIN and getattr(checkpoint_policies, name) is self.saveable
        if self.packing is not None or not plain:
            return None
        return Written("checkpoint", (self.body,), (name,))

    def form(self) -> Choice:
        """Its body, with no choice."""
        return Choice((self.body,))

    def without(self, moving: Flags, absent: Flags, wanted: Flags) -> Less:
        """Its body without them, checkpointed."""
        less = self.like(without(self.body, moving, absent, wanted))
        return Less(less, tuple([not a for a in absent]), wanted)

    def mapped(self, change: Callable[[Graph], Graph]) -> Checkpoint:
        """A changed body, checkpointed."""
        return self.like(change(self.body))

    def like(self, body: Graph) -> Checkpoint:
        """Another body, checkpointed in the same way."""
        return Checkpoint(body, self.saveable, self.packing, steps=self.steps)

    def run(self, *buffers: Any) -> Flat:
        """The body, op by op or compiled."""
        if not self.steps:
            if self.once("seen", lambda: [False])[0]:
                return self.compiled(self.body)(*buffers)
            self.once("seen", list)[0] = True
        return op_by_op(self.body, buffers)

    def depends(self, flags: Flags) -> Flags:
        """What depends on flagged operands in the body."""
        return dependent(self.body, flags)

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """The body with its tangents, checkpointed."""
        flags = bodies.varied(self.body, mine)
        both = self.once(("push", mine), lambda: self.like(bodies.dual(self.body, mine, flags)))(
            *primals, *bodies.chosen(tangents, mine)
        )
        n = len(flags)
        return both[:n], bodies.or_zero(both[n:], flags, both[:n])

    def _halves(self, mine: Flags) -> tuple[Checkpoint, Checkpoint, Sequence[int], Flags, Flags]:
        flags = bodies.varied(self.body, mine)
        ready = (True,) * len(mine)
        cut = halving.halves(self.body, mine, flags, ready, lambda e: not self.saveable(e))
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
        return tuple(bodies.or_none(self.pulled(late, residuals, bodies.chosen(cts, flags)), mine))

    def batch(self, size: Any, flags: Flags, vals: Flat) -> Flat:
        """The batched body, checkpointed."""

        whole = (True,) * len(self.outs)
        make = lambda: self.like(bodies.lifted(self.body, flags, whole, size))  # noqa: E731
        return self.once(("batch", flags, size), make)(*vals)


@remakes("checkpoint")
def _again(graphs: Sequence[Graph], values: tuple[Any, ...]) -> Control:
    """The node that `Checkpoint.written` took apart."""
    (body,), (name,) = graphs, values
    agree("checkpoint", isinstance(name, str) and name in _PLAIN)
    return Checkpoint(body, getattr(checkpoint_policies, name)).primitive


_PLAIN = frozenset({
    "nothing_saveable", "everything_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable",
})  # fmt: skip
