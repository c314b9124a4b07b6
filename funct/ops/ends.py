"""What rules are made of where closed forms end, and where their digits cancel.

On arrays, which nobody differentiates again, nothing here costs more than the closed form.
"""

from __future__ import annotations

from typing import Any

from funct import ops
from funct.core import Value
from funct.ops import fast

__all__ = ["constant", "one_less_square", "settled"]


def constant(*values: Any) -> bool:
    """Whether all are arrays or numbers, not tracers: no rule of them is differentiated."""
    return all(v.__class__ in fast.CONSTANT for v in values)


def settled(x: Value) -> Value:
    """x, of derivative 0 where it is 0 or infinite; see `ops.settled`."""
    return x if constant(x) else ops.settled(x)


def one_less_square(x: Value) -> Value:
    """1 - x², with its digits where x is near -1 or 1; its derivative is -2x, which has them all.

    The derivative of the product, x - 1 + x + 1 but for the signs, would lose those of a small x,
    and meet infinity times 0 at 1.
    """
    if constant(x):
        exact: Any = (1 - x) * (1 + x)
        return exact
    near = ops.less_equal(ops.abs(x), 1)  # beyond, x² may be infinite, and the product has digits
    inner, far = ops.where(near, x, 0.0), ops.where(near, ops.stop_gradient(x), x)
    plain = 1 - inner * inner
    return (1 - far) * (1 + far) + (plain - ops.stop_gradient(plain))
