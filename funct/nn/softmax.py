"""Softmax and its kin as layers."""

from __future__ import annotations

from typing import Any, ClassVar

from funct.errors import ArgumentError, ShapeError
from funct.nn import functional
from funct.nn.functional.arguments import shape_of
from funct.nn.module import Module, static

__all__ = ["LogSoftmax", "Softmax", "Softmax2d", "Softmin"]


class _AlongAxis(Module):
    """A softmax along dim, which has to be said: torch's None depends on the rank."""

    apply: ClassVar[Any]
    dim: int = static()

    def __init__(self, dim: int | None = None) -> None:
        if dim is None:
            raise ArgumentError(f"{type(self).__name__}: dim must be an axis, got None")
        self.__attrs_init__(dim)

    def __call__(self, x: Any) -> Any:
        """The function along dim, same shape and dtype."""
        return type(self).apply(x, self.dim)


class Softmax(_AlongAxis):
    """Compute exp(x_i) / Σ exp(x_j) along dim.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Softmax(dim=1)(xp.asarray([[0.0, 0.0], [0.0, -1000.0]])).tolist()
        [[0.5, 0.5], [1.0, 0.0]]
    """

    apply = staticmethod(functional.softmax)


class Softmin(_AlongAxis):
    """Compute softmax(-x) along dim.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Softmin(dim=0)(xp.asarray([0.0, 0.0, 1000.0])).tolist()
        [0.5, 0.5, 0.0]
    """

    apply = staticmethod(functional.softmin)


class LogSoftmax(_AlongAxis):
    """Compute log(softmax(x)) along dim.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.LogSoftmax(dim=0)(xp.asarray([0.0, -1000.0])).tolist()
        [0.0, -1000.0]
    """

    apply = staticmethod(functional.log_softmax)


class Softmax2d(Module):
    """Compute softmax over the channels of images (N, C, H, W) or (C, H, W).

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Softmax2d()(xp.ones((2, 4, 3, 3)))[0, :, 0, 0].tolist()
        [0.25, 0.25, 0.25, 0.25]
    """

    def __call__(self, x: Any) -> Any:
        """See `functional.softmax`. Raises: ShapeError: when x has neither 3 nor 4 axes."""
        shape = shape_of(x)
        if len(shape) not in (3, 4):
            raise ShapeError(f"Softmax2d: x must be (N, C, H, W) or (C, H, W), got {shape}")
        return functional.softmax(x, -3)
