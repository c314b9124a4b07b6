"""Learning-rate schedules: functions step -> lr, with torch's formulas in closed form.

Steps count from 0: schedule(0) is the rate of the first step. A step may be an int or an array,
traced too; the result is a 0-d float64 array. Where torch raises or goes on beyond the last step,
the notes say what holds here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import funct.array as xp
from funct.array.direct import entrances
from funct.errors import ArgumentError

__all__ = ["Schedule", "constant", "cosine", "linear", "one_cycle", "warmup_cosine"]

Schedule = Callable[[Any], Any]


def _float(step: Any) -> Any:
    return xp.astype(xp.asarray(step), xp.float64)


def _positive(name: str, **counts: Any) -> None:
    for argument, n in counts.items():
        if not n > 0:
            raise ArgumentError(f"schedule.{name}: {argument} must be positive, got {n}")


def constant(lr: float) -> Schedule:
    """The same rate at every step.

    Example:
        >>> from funct import optim
        >>> float(optim.schedule.constant(0.1)(7))
        0.1
    """
    return lambda step: _float(step) * 0.0 + lr


def linear(
    lr: float, start_factor: float = 1.0 / 3.0, end_factor: float = 1.0, total_iters: int = 5
) -> Schedule:
    """From lr · start_factor to lr · end_factor in total_iters steps, then constant.

    Raises: ArgumentError: when total_iters is not positive.
    Example:
        >>> from funct import optim
        >>> rate = optim.schedule.linear(1.0, start_factor=0.0, total_iters=4)
        >>> [float(rate(t)) for t in range(6)]
        [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]

    Source: torch.optim.lr_scheduler.LinearLR.
    """
    _positive("linear", total_iters=total_iters)

    def rate(step: Any) -> Any:
        done = xp.minimum(_float(step), float(total_iters)) / total_iters
        return lr * (start_factor + (end_factor - start_factor) * done)

    return rate


def cosine(lr: float, T_max: int, eta_min: float = 0.0) -> Schedule:
    """From lr to eta_min along half a cosine in T_max steps.

    Raises: ArgumentError: when T_max is not positive.
    Notes: beyond T_max the cosine goes on and the rate rises again, as in torch.
    Example:
        >>> from funct import optim
        >>> rate = optim.schedule.cosine(1.0, T_max=2)
        >>> [round(float(rate(t)), 6) for t in range(3)]
        [1.0, 0.5, 0.0]

    Source: Loshchilov, Hutter 2016, arXiv:1608.03983; torch.optim.lr_scheduler.CosineAnnealingLR.
    """
    _positive("cosine", T_max=T_max)

    def rate(step: Any) -> Any:
        return eta_min + (lr - eta_min) * 0.5 * (1.0 + xp.cos(_float(step) * (math.pi / T_max)))

    return rate


def warmup_cosine(
    lr: float, warmup_steps: int, total_steps: int, eta_min: float = 0.0, start_factor: float = 0.0
) -> Schedule:
    """Linear from lr · start_factor to lr in warmup_steps, then half a cosine to eta_min.

    Raises: ArgumentError: when warmup_steps is negative or not below total_steps.
    Notes: constant after total_steps. The first step has rate lr · start_factor: 0 by default.
    Example:
        >>> from funct import optim
        >>> rate = optim.schedule.warmup_cosine(1.0, warmup_steps=2, total_steps=6)
        >>> [round(float(rate(step)), 3) for step in range(7)]
        [0.0, 0.5, 1.0, 0.854, 0.5, 0.146, 0.0]

    Source: torch's LinearLR followed by CosineAnnealingLR(T_max=total_steps - warmup_steps).
    """
    if not 0 <= warmup_steps < total_steps:
        raise ArgumentError(
            f"schedule.warmup_cosine: warmup_steps must be in [0, total_steps={total_steps}), "
            f"got {warmup_steps}"
        )
    down = cosine(lr, total_steps - warmup_steps, eta_min)
    if warmup_steps == 0:
        return lambda step: down(xp.minimum(_float(step), float(total_steps)))
    up = linear(lr, start_factor, 1.0, warmup_steps)

    def rate(step: Any) -> Any:
        t = _float(step)
        late = xp.minimum(t, float(total_steps)) - warmup_steps
        return xp.where(t < warmup_steps, up(t), down(late))

    return rate


def one_cycle(
    max_lr: float, total_steps: int, pct_start: float = 0.3, anneal_strategy: str = "cos",
    div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False,
) -> Schedule:  # fmt: skip
    """Up from max_lr / div_factor to max_lr, and down to a final_div_factor-th of where it began.

    Args: pct_start: share of the steps that go up. anneal_strategy: "cos" or "linear". three_phase:
    go down to the beginning first, as fast as up, and only then to the end.
    Raises: ArgumentError: when an argument is out of range.
    Notes: constant after total_steps, where torch raises. Momentum is not cycled.
    Example:
        >>> from funct import optim
        >>> rate = optim.schedule.one_cycle(1.0, total_steps=11, pct_start=0.5)
        >>> round(float(rate(0)), 6), round(float(rate(4.5)), 6), round(float(rate(10)), 9)
        (0.04, 1.0, 4e-06)

    Source: Smith, Topin 2017, arXiv:1708.07120; torch.optim.lr_scheduler.OneCycleLR.
    """
    _positive("one_cycle", total_steps=total_steps, div_factor=div_factor)
    if not 0.0 <= pct_start <= 1.0:
        raise ArgumentError(f"schedule.one_cycle: pct_start must be in [0, 1], got {pct_start}")
    if anneal_strategy not in ("cos", "linear"):
        raise ArgumentError(
            f"schedule.one_cycle: anneal_strategy must be 'cos' or 'linear', "
            f"got {anneal_strategy!r}"
        )
    first = max_lr / div_factor
    last = first / final_div_factor
    top, end = pct_start * total_steps - 1.0, total_steps - 1.0
    if three_phase:
        back = 2.0 * pct_start * total_steps - 2.0
        phases = [(0.0, top, first, max_lr), (top, back, max_lr, first), (back, end, first, last)]
    else:
        phases = [(0.0, top, first, max_lr), (top, end, max_lr, last)]

    def rate(step: Any) -> Any:
        t = xp.minimum(_float(step), end)
        *earlier, final = phases
        value = _annealed(anneal_strategy, t, *final)
        for phase in reversed(earlier):
            value = xp.where(t <= phase[1], _annealed(anneal_strategy, t, *phase), value)
        return value

    return rate


def _annealed(strategy: str, t: Any, begin: float, end: float, low: float, high: float) -> Any:
    """Between `low` at step begin and `high` at step end."""
    done = (t - begin) / (end - begin) if end != begin else t * 0.0
    if strategy == "linear":
        return low + (high - low) * done
    return high + (low - high) / 2.0 * (1.0 + xp.cos(math.pi * done))


entrances(globals())
