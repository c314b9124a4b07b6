"""Chapter: quantiles of the Poisson distribution, which are whole numbers."""

from __future__ import annotations

from funct.core import Operand, Value
from funct.kernels import special as kernels
from funct.ops.samples import ranges
from funct.ops.special.room import room

__all__ = ["poisson_quantile"]


@room(
    kernels.poisson_quantile, None, None, samples=ranges((0.05, 0.95), (0.3, 9.0), smooth=False)
)
def poisson_quantile(p: Operand, m: Operand, /) -> Value:
    """The least whole number k with P(X ≤ k) ≥ p, where X is Poisson with mean m."""
