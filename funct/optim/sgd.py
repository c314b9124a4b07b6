"""Stochastic gradient descent, with momentum and Nesterov's variant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

import funct.array as xp
from funct import tree
from funct.errors import ArgumentError
from funct.optim.optimizer import (
    Info,
    LeafRule,
    LearningRate,
    Optimizer,
    bare,
    check_rate,
    first_rate,
    scalar,
    step_count,
    update_leaves,
)

__all__ = ["SGDState", "sgd"]


@tree.register
@attrs.frozen(eq=False)
class SGDState:
    """Steps done, hyper-parameters, and the momentum buffer of each parameter, or None.

    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> state = optim.sgd(0.1, momentum=0.9).init({"w": xp.ones(2)})
        >>> int(state.step), float(state.momentum), state.momentum_buffer["w"].tolist()
        (0, 0.9, [0.0, 0.0])
    """

    step: Any
    lr: Any
    momentum: Any
    dampening: Any
    weight_decay: Any
    momentum_buffer: Any


def sgd(
    lr: LearningRate = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
    weight_decay: float = 0.0, nesterov: bool = False,
) -> Optimizer:  # fmt: skip
    """Stochastic gradient descent.

    Maths: g ← g + weight_decay · p; b ← momentum · b + (1 - dampening) g, but b = g in the first
    step; p ← p - lr · b, with nesterov p - lr (g + momentum · b).
    Args: lr: a number, or a schedule: step -> number. The rest: as in torch. Without momentum there
    is no buffer, and the state's `momentum` is not used; nor is its `dampening` without dampening.
    Raises: ArgumentError: when a number is negative, or nesterov has no momentum or dampening.
    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> opt = optim.sgd(0.5)
        >>> params = {"w": xp.asarray([1.0])}
        >>> params, state, info = opt.step(params, {"w": xp.asarray([2.0])}, opt.init(params))
        >>> params["w"].tolist(), float(info.grad_norm), int(info.step)
        ([0.0], 2.0, 1)

    Source: torch.optim.SGD; Sutskever, Martens, Dahl, Hinton 2013.
    """
    check_rate("sgd", lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay)
    if nesterov and (momentum == 0.0 or dampening != 0.0):
        raise ArgumentError("sgd: nesterov needs a momentum and no dampening")
    with_buffer = momentum != 0.0
    decays, damps = weight_decay != 0.0, dampening != 0.0

    def init(params: Any) -> SGDState:
        buffer = tree.map(xp.zeros_like, params) if with_buffer else None
        return SGDState(
            step_count(), first_rate(lr), scalar(momentum), scalar(dampening), scalar(weight_decay),
            buffer,
        )  # fmt: skip

    def update(_: Any, numbers: Sequence[Any], p: Any, g: Any, b: Any = None) -> tuple[Any, ...]:
        rate, decay, momentum, *share = numbers
        if decays:
            g = g + decay * p
        if b is None:
            return (p - rate * g,)
        b = momentum * b + (share[0] * g if damps else g)
        return p - rate * (g + momentum * b if nesterov else b), b

    rule = LeafRule("sgd", update, (decays, damps, with_buffer, nesterov))

    def step(params: Any, grads: Any, state: SGDState) -> tuple[Any, SGDState, Info]:
        rate = scalar(lr(state.step)) if callable(lr) else state.lr
        _, numbers = bare(rate, state.weight_decay, state.momentum)
        if damps:
            share = 1.0 - xp.astype(state.step != 0, xp.float64) * state.dampening
            numbers = [*numbers, share]
        slots = [state.momentum_buffer] if with_buffer else []
        (new, *buffer), norm = update_leaves(rule, numbers, params, grads, *slots)
        count = state.step + 1
        info = Info(rate, norm, count)
        state = SGDState(
            count, rate, state.momentum, state.dampening, state.weight_decay,
            buffer[0] if with_buffer else None,
        )  # fmt: skip
        return new, state, info

    return Optimizer("sgd", init, step, SGDState)
