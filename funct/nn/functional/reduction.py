"""What losses share: torch's reductions, its retired arguments, and checks of shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec

import funct.array as xp
from funct.array.in_single import SHORT, narrowed, widened
from funct.core import FLOATING
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.nn.partition import is_inexact_array

__all__ = [
    "check_floating", "check_reduction", "check_same_shape", "in_single", "reduced",
    "refuse_retired", "weighted_reduced",
]  # fmt: skip

P = ParamSpec("P")


def in_single(fun: Callable[P, Any]) -> Callable[P, Any]:
    """A loss whose first argument decides: of short floats it is computed in float32 and rounded
    once, for its terms and their sums leave the range that it has itself.
    """

    @functools.wraps(fun)
    def loss(*args: P.args, **options: P.kwargs) -> Any:
        first: Any = args[0] if args else None
        if args and first.dtype.itemsize > 2:  # asked first, for it costs least
            return fun(*args, **options)
        asked = args[:1] or options.values()
        if not any(getattr(v, "dtype", None) in SHORT for v in asked):
            return fun(*args, **options)
        given = [v for v in (*args, *options.values()) if getattr(v, "dtype", None) in FLOATING]
        names = dict(zip(options, widened(*options.values()), strict=True))
        return narrowed(fun(*widened(*args), **names), *given)

    return loss


def check_reduction(name: str, reduction: str, batchmean: bool = False) -> None:
    """The word is one of torch's."""
    if reduction in ("none", "mean", "sum") or (batchmean and reduction == "batchmean"):
        return
    words = "'none', 'mean', 'sum' or 'batchmean'" if batchmean else "'none', 'mean' or 'sum'"
    raise ArgumentError(f"{name}: reduction must be {words}, got {reduction!r}")


def reduced(name: str, loss: Any, reduction: str, weights: Any = None) -> Any:
    """loss as it is, its sum, or its mean: over its elements, or the sum of the weights given."""
    check_reduction(name, reduction)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return xp.sum(loss)
    return xp.mean(loss) if weights is None else xp.sum(loss) / xp.sum(weights)


def weighted_reduced(name: str, loss: Any, reduction: str, weight: Any) -> Any:
    """`reduced` with a weight for each element, over whose sum the mean is taken."""
    if weight is None:
        return reduced(name, loss, reduction)
    return reduced(name, loss * weight, reduction, xp.broadcast_to(weight, loss.shape))


def refuse_retired(name: str, size_average: Any, reduce: Any) -> None:
    """torch's two flags before `reduction` keep their places, and may only be None."""
    if size_average is None and reduce is None:
        return
    sums = size_average is not None and not size_average
    meant = "none" if reduce is not None and not reduce else ("sum" if sums else "mean")
    raise ArgumentError(
        f"{name}: size_average and reduce must be None, got {size_average} and {reduce}",
        fix=f"say reduction={meant!r}",
    )


def check_same_shape(name: str, input: Any, target: Any, other: str = "target") -> None:
    """torch would broadcast, and warn that this is hardly meant."""
    if input.shape != target.shape:
        raise ShapeError(
            f"{name}: input and {other} must have one shape, got {input.shape} and {target.shape}"
        )


def check_floating(name: str, input: Any) -> None:
    """A loss of integers would be cut off."""
    if not is_inexact_array(input):
        raise DTypeError(f"{name}: input must be floating, got {input.dtype}")
