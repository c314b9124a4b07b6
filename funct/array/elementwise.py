"""Chapter: elementwise functions that are no primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.conversion import as_tensor, as_tensors, asarray
from funct.array.direct import direct
from funct.array.dtypes import result_type
from funct.errors import ArgumentError
from funct.kernels import elementwise as kernels

__all__ = ["clip", "positive", "select"]


def positive(x: Any, /) -> Any:
    """x itself."""
    return x


@direct(kernels.clip, maybe=("min", "max"))
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """x limited to [min, max], in x's dtype; None leaves a side open.

    The limits are numbers or arrays that broadcast with x. NaN in any of the three gives NaN; where
    min > max, the result is max. An integer x takes limits outside its dtype's range.
    Example:
        >>> import funct.array as xp
        >>> xp.clip(xp.asarray([-2.0, 0.5, 3.0]), 0.0, max=1.0).tolist()
        [0.0, 0.5, 1.0]

    Source: Array API 2025.12 `clip`.
    """
    x = as_tensor("clip", x)
    y = x
    if min is not None:
        y = ops.maximum(y, _within(min, x.dtype))
    if max is not None:
        y = ops.minimum(y, _within(max, x.dtype))
    widened = x.dtype.kind in "biu" and y.dtype.kind not in "biu"  # promotion, as in NumPy
    return y if y.dtype == x.dtype or widened else ops.astype(y, x.dtype)


def _within(limit: Any, dtype: np.dtype[Any]) -> Any:
    """A Python integer brought into the range of an integer dtype."""
    if limit.__class__ is not int or dtype.kind not in "iu":
        return limit
    info = np.iinfo(dtype)
    return int(info.min) if limit < info.min else int(info.max) if limit > info.max else limit


def select(condlist: Any, choicelist: Any, default: Any = 0, /) -> Any:
    """The choice that belongs to the first condition that holds, else default.

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([-1, 0, 1])
        >>> xp.select([x < 0, x > 0], [-x, 10 * x], 5).tolist()
        [1, 5, 10]

    Source: NumPy `select`.
    """
    condlist, choicelist = as_tensors("select", condlist), as_tensors("select", choicelist)
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(
            "select: one choice per condition is needed, "
            f"got {len(condlist)} conditions and {len(choicelist)} choices"
        )
    dtype = result_type(*choicelist, default)
    out = asarray(default, dtype=dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        out = ops.where(condition, asarray(choice, dtype=dtype), out)
    return out
