"""An optimizer's step on all parameters, in NumPy: what `cpu/updates.py` does in one pass."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

__all__ = ["plain_sum_of_squares", "plain_update"]


def plain_update(
    rule: Callable[..., Sequence[Any]],
    key: Hashable,
    numbers: Sequence[Any],
    columns: list[list[Any]],
    results: int,
) -> tuple[list[list[Any]], Any] | None:
    """rule(np, numbers, *operands) at every leaf: for each of its results, a list of arrays; and
    the sum of the squares of the second operand. None where a leaf's arrays differ in shape or
    dtype.
    """
    dtype, shapes = columns[0][0].dtype, [x.shape for x in columns[0]]
    for column in columns:
        if [x.shape for x in column] != shapes or {x.dtype for x in column} != {dtype}:
            return None
    rows = [rule(np, numbers, *operands) for operands in zip(*columns, strict=True)]
    new = [[np.asarray(row[k]) for row in rows] for k in range(results)]
    return new, plain_sum_of_squares(columns[1])


def plain_sum_of_squares(leaves: list[Any]) -> Any:
    """Of all elements together."""
    return sum([np.sum(np.square(a)) for a in leaves])
