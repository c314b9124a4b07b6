"""What an optimizer is: a pair of pure functions, and the walk over parameters that all share.

    state = opt.init(params)
    params, state, info = opt.step(params, grads, state)

Nothing is kept outside of `state`, and all of `state` is arrays: it compiles, batches and is saved
like any pytree. Hyper-parameters are leaves of it: `attrs.evolve(state, lr=…)` changes one, and
`vmap` trains one model per learning rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

import funct.array as xp
from funct import tree
from funct.core import INEXACT, Value
from funct.errors import ArgumentError, DTypeError

__all__ = [
    "Info", "LearningRate", "Optimizer", "cast", "check_rate", "first_rate",
    "global_norm", "scalar", "step_count", "update_leaves",
]  # fmt: skip

LearningRate = float | Value | Callable[[Any], Any]


@tree.register
@attrs.frozen(eq=False)
class Info:
    """What a step reports: lr, that it used; grad_norm, of all gradients as given; step, from 1."""

    lr: Any
    grad_norm: Any
    step: Any

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@attrs.frozen(eq=False)
class Optimizer:
    """Two pure functions.

    init(params) -> state: params is any tree of floating arrays, with empty places or without.
    step(params, grads, state) -> (params, state, info): grads has the structure of params; info is
    an `Info`. Raises: TreeError: when the structures differ. DTypeError: when a parameter is not
    floating.
    """

    name: str
    init: Callable[[Any], Any]
    step: Callable[[Any, Any, Any], tuple[Any, Any, Info]]

    def __repr__(self) -> str:
        return f"Optimizer({self.name})"


def check_rate(name: str, **values: Any) -> None:
    """Refuse negative hyper-parameters; what is traced or a schedule passes."""
    for argument, value in values.items():
        if isinstance(value, int | float) and not value >= 0.0:
            raise ArgumentError(f"{name}: {argument} must be >= 0, got {value}")


def scalar(value: Any) -> Any:
    """A hyper-parameter as a leaf: a 0-d float64 array; a Tensor stays as it is."""
    return value if isinstance(value, Value) else xp.asarray(float(value), dtype=xp.float64)


def step_count() -> Any:
    """The counter before the first step: an array, so that counting compiles nothing anew."""
    return xp.asarray(0, dtype=xp.int64)


def first_rate(lr: LearningRate) -> Any:
    """The learning rate of the first step, as a leaf."""
    return scalar(lr(step_count()) if callable(lr) else lr)


def cast(value: Any, like: Any) -> Any:
    """A hyper-parameter in a parameter's dtype, so that float32 parameters stay float32."""
    return xp.astype(value, like.dtype, copy=False)


def global_norm(grads: Any) -> Any:
    """Euclidean norm of all leaves taken as one vector; its derivative at 0 is 0.

    Returns: a 0-d array, float64 when there is no leaf.
    """
    leaves = tree.leaves(grads)
    if not leaves:
        return xp.asarray(0.0)
    total = sum([xp.sum(xp.square(xp.abs(g))) for g in leaves])
    positive = total > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, total, 1.0)), 0.0)


def update_leaves(
    name: str, rule: Callable[..., tuple[Any, ...]], params: Any, grads: Any, *slots: Any
) -> tuple[Any, ...]:
    """rule(p, g, *slots at p) -> (new p, *new slots) at every leaf, as one tree for each of them.

    A slot that is None stays None and is given to the rule as None.
    """
    tree.same_structure(f"{name}: grads", params, grads)
    leaves, spec = tree.flatten(params)
    _check_floating(name, params)
    columns = [[None] * len(leaves) if s is None else tree.leaves(s) for s in slots]
    rows = zip(leaves, tree.leaves(grads), *columns, strict=True)
    new: Sequence[tuple[Any, ...]] = [rule(*row) for row in rows]
    kept = [True, *[s is not None for s in slots]]
    return tuple(
        [tree.unflatten(spec, [r[i] for r in new]) if k else None for i, k in enumerate(kept)]
    )


def _check_floating(name: str, params: Any) -> None:
    for leaf in tree.leaves(params):
        if leaf.dtype not in INEXACT:
            path = next(p for p, x in tree.flatten_with_path(params) if x is leaf)
            raise DTypeError(
                f"{name}: parameters must be floating, got {leaf.dtype} at {path or 'the root'}",
                fix="take the parameters by nn.partition(model)",
            )
