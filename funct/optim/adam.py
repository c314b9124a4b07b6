"""Adam and AdamW."""

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
    smallest,
    step_count,
    update_leaves,
)

__all__ = ["AdamState", "adam", "adamw"]


@tree.register
@attrs.frozen(eq=False)
class AdamState:
    """Steps done, hyper-parameters, and the moments of each parameter (torch's names).

    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> state = optim.adam(0.1).init({"w": xp.ones(2)})
        >>> int(state.step), float(state.lr), state.exp_avg["w"].tolist()
        (0, 0.1, [0.0, 0.0])
    """

    step: Any
    lr: Any
    beta1: Any
    beta2: Any
    eps: Any
    weight_decay: Any
    exp_avg: Any
    exp_avg_sq: Any
    max_exp_avg_sq: Any


def adam(
    lr: LearningRate = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
    weight_decay: float = 0.0, amsgrad: bool = False,
) -> Optimizer:  # fmt: skip
    """Adam: steps scaled by running estimates of the gradient's first and second moment.

    Maths: g ← g + weight_decay · p; m ← m + (1 - β₁)(g - m); v ← β₂ v + (1 - β₂) g²;
    p ← p - lr / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + eps). amsgrad: the largest v so far for v.
    Args: lr: a number, or a schedule: step -> number. The rest: as in torch.
    Raises: ArgumentError: when a number is negative or a β is not below 1.
    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> opt = optim.adam(0.1)
        >>> params = xp.asarray([1.0, -1.0])
        >>> params, state, info = opt.step(params, xp.asarray([3.0, -4.0]), opt.init(params))
        >>> [round(float(p), 6) for p in params], float(info.grad_norm)
        ([0.9, -0.9], 5.0)

    Source: Kingma, Ba 2014, arXiv:1412.6980; amsgrad: Reddi, Kale, Kumar 2018; torch.optim.Adam.
    """
    return _adam("adam", lr, betas, eps, weight_decay, amsgrad)


def adamw(
    lr: LearningRate = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
    weight_decay: float = 1e-2, amsgrad: bool = False,
) -> Optimizer:  # fmt: skip
    """Adam with decoupled weight decay: p ← p (1 - lr · weight_decay) before the step, not in g.

    Args, Raises: as `adam`. weight_decay is 1e-2 by default as in torch (1e-4 in optax).
    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> opt = optim.adamw(0.1, weight_decay=0.5)
        >>> params = xp.asarray([2.0])
        >>> params, state, info = opt.step(params, xp.asarray([0.0]), opt.init(params))
        >>> [round(float(p), 6) for p in params]  # no gradient, but decay
        [1.9]

    Source: Loshchilov, Hutter 2017, arXiv:1711.05101; torch.optim.AdamW.
    """
    return _adam("adamw", lr, betas, eps, weight_decay, amsgrad)


def _adam(
    name: str, lr: LearningRate, betas: tuple[float, float], eps: float, weight_decay: float,
    amsgrad: bool,
) -> Optimizer:  # fmt: skip
    check_rate(name, lr=lr, eps=eps, weight_decay=weight_decay)
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ArgumentError(f"{name}: betas[{i}] must be in [0, 1), got {beta}")
    decoupled, decays = name == "adamw", weight_decay != 0.0

    def init(params: Any) -> AdamState:
        # each has zeros of its own, so that a step may be given their memory
        m, v, top = (tree.map(xp.zeros_like, params) for _ in range(3))
        return AdamState(
            step_count(), first_rate(lr), scalar(betas[0]), scalar(betas[1]), scalar(eps),
            scalar(weight_decay), m, v, top if amsgrad else None,
        )  # fmt: skip

    def update(
        e: Any, numbers: Sequence[Any], p: Any, g: Any, m: Any, v: Any, top: Any = None
    ) -> tuple[Any, ...]:
        size, root, decay, new1, beta2, new2, eps, least = numbers
        if decays and decoupled:
            p = p * decay
        elif decays:
            g = g + decay * p
        m = m + new1 * (g - m)
        v = beta2 * v + new2 * (g * g)
        most = v if top is None else e.maximum(top, v)
        # √ has no derivative at 0: far below eps the root is cut off, so that a step of a
        # gradient that is exactly 0 can be differentiated
        denominator = e.sqrt(e.maximum(most, least)) / root + eps
        return p - size * (m / denominator), m, v, *([] if top is None else [most])

    rule = LeafRule(name, update, (decays, amsgrad))

    def step(params: Any, grads: Any, state: AdamState) -> tuple[Any, AdamState, Info]:
        rate = scalar(lr(state.step)) if callable(lr) else state.lr
        count = state.step + 1
        e, (now, beta1, beta2, eps, decay, t) = bare(
            rate, state.beta1, state.beta2, state.eps, state.weight_decay,
            xp.astype(count, xp.float64),
        )  # fmt: skip
        size, root = now / (1.0 - beta1**t), e.sqrt(1.0 - beta2**t)
        if decoupled:
            decay = 1.0 - now * decay
        numbers = (size, root, decay, 1.0 - beta1, beta2, 1.0 - beta2, eps, smallest)
        slots = (state.exp_avg, state.exp_avg_sq, *([state.max_exp_avg_sq] if amsgrad else []))
        (new, m, v, *top), norm = update_leaves(rule, numbers, params, grads, *slots)
        info = Info(rate, norm, count)
        state = AdamState(
            count, rate, state.beta1, state.beta2, state.eps, state.weight_decay, m, v,
            top[0] if amsgrad else None,
        )  # fmt: skip
        return new, state, info

    return Optimizer(name, init, step, AdamState)
