"""Gradient transforms, and chains that end in an optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

import funct.array as xp
from funct import pytree, tree
from funct.errors import ArgumentError
from funct.optim.optimizer import Info, Optimizer, check_rate, global_norm, scalar

__all__ = ["ClipState", "GradientTransform", "chain", "clip_by_global_norm"]


@attrs.frozen(eq=False)
class GradientTransform:
    """Changes gradients before an optimizer sees them.

    init(params) -> state; update(grads, state, params) -> (grads, state).
    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> sign = optim.GradientTransform("sign", lambda p: None, lambda g, s, p: (xp.sign(g), s))
        >>> opt = optim.chain(sign, optim.sgd(1.0))
        >>> params = xp.asarray([0.0, 0.0])
        >>> opt.step(params, xp.asarray([3.0, -4.0]), opt.init(params))[0].tolist()
        [-1.0, 1.0]
    """

    name: str
    init: Callable[[Any], Any]
    update: Callable[[Any, Any, Any], tuple[Any, Any]]

    def __repr__(self) -> str:
        return f"GradientTransform({self.name})"


@tree.register
@attrs.frozen(eq=False)
class ClipState:
    """The largest norm, a leaf like every hyper-parameter.

    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> optim.clip_by_global_norm(1.5).init(xp.ones(2))
        ClipState(max_norm=Array(1.5, dtype=float64))
    """

    max_norm: Any


def clip_by_global_norm(max_norm: float) -> GradientTransform:
    """Scale all gradients by one factor so that their joint norm is at most max_norm.

    Maths: g ← g · min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_.
    Raises: ArgumentError: when max_norm is negative.
    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> clip = optim.clip_by_global_norm(1.0)
        >>> params, grads = xp.zeros(2), xp.asarray([3.0, 4.0])
        >>> grads, state = clip.update(grads, clip.init(params), params)
        >>> [round(float(g), 3) for g in grads]
        [0.6, 0.8]

    Source: Pascanu, Mikolov, Bengio 2012, arXiv:1211.5063.
    """
    check_rate("clip_by_global_norm", max_norm=max_norm)

    def update(grads: Any, state: ClipState, params: Any) -> tuple[Any, ClipState]:
        factor = xp.minimum(state.max_norm / (global_norm(grads) + 1e-6), 1.0)
        return pytree.map(lambda g: g * xp.astype(factor, g.dtype), grads), state

    return GradientTransform(
        "clip_by_global_norm", lambda params: ClipState(scalar(max_norm)), update
    )


def chain(*parts: GradientTransform | Optimizer) -> Optimizer:
    """Gradient transforms, applied in order, before an optimizer.

    Args: parts: any number of gradient transforms, then one optimizer (another chain, say).
    Returns: an Optimizer whose state is the tuple of its parts' states. Its info.grad_norm is that
    of the gradients as given, before any transform.
    Raises: ArgumentError: when the last part is no optimizer, or an earlier one no transform.
    Example:
        >>> import funct.array as xp
        >>> from funct import optim
        >>> opt = optim.chain(optim.clip_by_global_norm(1.0), optim.sgd(1.0))
        >>> params = xp.asarray([0.0, 0.0])
        >>> params, state, info = opt.step(params, xp.asarray([3.0, 4.0]), opt.init(params))
        >>> [round(float(p), 3) for p in params], float(info.grad_norm)
        ([-0.6, -0.8], 5.0)
    """
    *transforms, last = parts or (None,)
    if not isinstance(last, Optimizer):
        raise ArgumentError(f"chain: the last part must be an Optimizer, got {type(last).__name__}")
    for i, part in enumerate(transforms):
        if not isinstance(part, GradientTransform):
            raise ArgumentError(
                f"chain: part {i} must be a GradientTransform, got {type(part).__name__}"
            )
    before = [p for p in transforms if isinstance(p, GradientTransform)]

    def init(params: Any) -> tuple[Any, ...]:
        return (*[t.init(params) for t in before], last.init(params))

    def step(params: Any, grads: Any, state: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], Info]:
        norm = global_norm(grads)
        new: list[Any] = []
        for transform, own in zip(before, state[:-1], strict=True):
            grads, own = transform.update(grads, own, params)
            new.append(own)
        params, own, info = last.step(params, grads, state[-1])
        return params, (*new, own), attrs.evolve(info, grad_norm=norm)

    return Optimizer(
        f"chain({', '.join([*[t.name for t in before], last.name])})", init, step, tuple
    )
