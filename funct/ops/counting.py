"""What is made from lengths alone, which capture may keep open."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.core import Size
from funct.ops.fast import wrap

__all__ = ["counted", "lifted"]


def lifted(x: Any, shape: Any) -> Any:
    """x, in the capture that a symbolic length of shape belongs to.

    An op on concrete arrays alone is computed at once, and would ask the length for its number.
    """
    for n in shape:
        if n.__class__ is Size:
            lift = n.scope.lift
            return x if lift is None or x.level.transforms else lift(x)
    return x


def counted(n: Any) -> Any:
    """0 … n - 1 as int64."""
    if n.__class__ is int:
        return wrap(np.arange(n, dtype=np.int64))
    one = lifted(wrap(np.ones((), np.int64)), (n,))
    return ops.cumulative_sum(ops.broadcast_to(one, (max(n, 0),)), 0) - 1
