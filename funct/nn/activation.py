"""Activations as layers: ReLU, GELU."""

from __future__ import annotations

from typing import Any

import attrs

from funct.errors import ArgumentError
from funct.nn import functional
from funct.nn.module import Module, static

__all__ = ["GELU", "ReLU"]


class ReLU(Module):
    """Replace negative elements by 0."""

    def __call__(self, x: Any) -> Any:
        """max(x, 0), same shape and dtype."""
        return functional.relu(x)


def _known(layer: GELU, field: attrs.Attribute[str], value: str) -> None:
    if value not in ("none", "tanh"):
        raise ArgumentError(f"GELU: approximate must be 'none' or 'tanh', got {value!r}")


class GELU(Module):
    """Weigh each element by the normal distribution function.

    Args: approximate: "none" (exact, by erf) or "tanh".
    Raises: ArgumentError: when approximate is neither.
    Source: Hendrycks, Gimpel 2016, arXiv:1606.08415; torch.nn.GELU.
    """

    approximate: str = static(default="none", validator=_known)

    def __call__(self, x: Any) -> Any:
        """x Φ(x), same shape and dtype."""
        return functional.gelu(x, self.approximate)
