"""Pools whose windows divide axes into parts, where windows of one size do that.

Each gives, bit for bit, what the function of its name in `funct.nn.functional` composes of
primitives, or None where that takes several.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from funct.kernels.reductions import statistical
from funct.kernels.windows.pooling import max_pool, mean_pool

__all__ = ["LARGE", "WIDE", "avg_pool_of", "even", "max_pool_of"]

# Elements of windows of one size from which on they are boxes like others, where there are so many.
WIDE, LARGE = 1 << 6, 1 << 17
_FLOATS = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def even(shape: Sequence[Any], sizes: Sequence[int]) -> Any:
    """What poolings are told of windows of one size whose distances are equal; None where they
    are not.

    They are where the number of windows divides the axis, or would if it were one shorter: then
    each window shares its last element with the next.
    """
    window, stride = [], []
    for n, out in zip(shape, sizes, strict=True):
        if n.__class__ is not int or n < out or n % out > 1:
            return None
        window.append(n // out + n % out)
        stride.append(n // out)
    return tuple(window), tuple(stride), ((0, 0),) * len(window), (1,) * len(window)


def avg_pool_of(rank: int) -> Callable[..., Any]:
    """The function of so many pooled axes."""

    def run(x: Any, output_size: Any) -> Any:
        plan = _plan(x.shape, x.dtype, rank, output_size)
        if plan is None:
            return None
        axes, _, given = plan
        return statistical.mean(x, axes, True) if axes else mean_pool(x, *given)

    return run


def max_pool_of(rank: int) -> Callable[..., Any]:
    """The function of so many pooled axes."""

    def run(x: Any, output_size: Any, return_indices: Any = False) -> Any:
        plan = _plan(x.shape, x.dtype, rank, output_size)
        return None if return_indices or plan is None else max_pool(x, *plan[1])

    return run


@functools.lru_cache(256)
def _plan(shape: tuple[int, ...], dtype: Any, rank: int, size: Any) -> Any:
    """The axes of which all is one mean, if that is so, what pooling functions are told, and what
    means are; None where that does not serve.
    """
    if size.__class__ is not int or size < 1 or 0 in shape or not 1 <= len(shape) - rank <= 2:
        return None
    lead = len(shape) - rank
    given = even(shape[lead:], (size,) * rank)
    if dtype not in _FLOATS or given is None:
        return None
    if size == 1:
        return tuple(range(lead, len(shape))), given, None
    if prod(given[0]) >= WIDE and prod(shape) >= LARGE:
        return None
    return (), given, (*given[:3], np.full((size,) * rank, prod(given[0]), dtype))
