"""What is computed of floats below float32: in float32, and rounded once at the end.

Squares and sums of such numbers leave their range long before what is made of them does: of ±300
in float16 the square is infinite, the standard deviation 300.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.core import FLOATING

__all__ = ["SHORT", "narrowed", "widened"]

_SINGLE = np.dtype(np.float32)
SHORT = FLOATING - {_SINGLE, np.dtype(np.float64)}


def widened(*values: Any) -> tuple[Any, ...]:
    """The values; short floats among the arrays as float32."""
    return tuple([
        ops.astype(v, _SINGLE) if getattr(v, "dtype", None) in SHORT else v for v in values
    ])  # fmt: skip


def narrowed(y: Any, *given: Any) -> Any:
    """y in the dtype of the arrays that were given, if that is one of short floats."""
    kinds = {v.dtype for v in given if v is not None}
    kind = kinds.pop() if len(kinds) == 1 else None
    return ops.astype(y, kind) if kind in SHORT else y
