"""Rectifiers and shrinkages with slopes and bounds as layers."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct.array import Tensor
from funct.errors import ArgumentError
from funct.nn import functional
from funct.nn.functional.arguments import needed_key, refuse_inplace
from funct.nn.module import Module, static

__all__ = [
    "CELU", "ELU", "Hardshrink", "Hardtanh", "LeakyReLU", "PReLU", "RReLU", "Softshrink",
    "Threshold",
]  # fmt: skip


class ELU(Module):
    """Give x where positive, else alpha (exp(x) - 1).

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ELU(alpha=0.5)(xp.asarray([-xp.inf, 3.0])).tolist()
        [-0.5, 3.0]
    """

    alpha: float = static()

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        refuse_inplace("ELU", inplace)
        self.__attrs_init__(alpha)

    def __call__(self, x: Any) -> Any:
        """See `functional.elu`."""
        return functional.elu(x, self.alpha)


class CELU(Module):
    """Give x where positive, else alpha (exp(x / alpha) - 1).

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.CELU(alpha=0.5)(xp.asarray([-xp.inf, 3.0])).tolist()
        [-0.5, 3.0]
    """

    alpha: float = static()

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        refuse_inplace("CELU", inplace)
        self.__attrs_init__(alpha)

    def __call__(self, x: Any) -> Any:
        """See `functional.celu`."""
        return functional.celu(x, self.alpha)


class LeakyReLU(Module):
    """Shrink negative elements by negative_slope.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.LeakyReLU(0.5)(xp.asarray([-2.0, 3.0])).tolist()
        [-1.0, 3.0]
    """

    negative_slope: float = static()

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        refuse_inplace("LeakyReLU", inplace)
        self.__attrs_init__(negative_slope)

    def __call__(self, x: Any) -> Any:
        """See `functional.leaky_relu`."""
        return functional.leaky_relu(x, self.negative_slope)


class PReLU(Module):
    """Shrink negative elements by learned slopes, one for all or one per channel.

    Args: num_parameters: 1 or the number of channels. init: the slopes at first. dtype: of the
    slopes.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> layer = nn.PReLU(num_parameters=2, init=0.5)
        >>> layer(xp.asarray([[-2.0, -4.0]])).tolist(), layer.weight.tolist()
        ([[-1.0, -2.0]], [0.5, 0.5])

    Source: He, Zhang, Ren, Sun 2015, arXiv:1502.01852; torch.nn.PReLU.
    """

    num_parameters: int = static()
    weight: Tensor

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = xp.float32
    ) -> None:
        self.__attrs_init__(num_parameters, xp.full((num_parameters,), init, dtype=dtype))

    def __call__(self, x: Any) -> Any:
        """See `functional.prelu`. Raises: ShapeError: when the channels do not fit."""
        return functional.prelu(x, self.weight)


class RReLU(Module):
    """Shrink negative elements by slopes drawn from [lower, upper] in training, else their mean.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> layer, x = nn.RReLU(0.25, 0.75), xp.asarray([-1.0, 3.0])
        >>> nn.needs_key(layer), nn.eval_mode(layer)(x).tolist()
        (True, [-0.5, 3.0])

    Source: Xu, Wang, Chen, Li 2015, arXiv:1505.00853; torch.nn.RReLU.
    """

    lower: float = static()
    upper: float = static()
    training: bool = static()

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        refuse_inplace("RReLU", inplace)
        self.__attrs_init__(lower, upper, True)

    @property
    def draws(self) -> bool:
        """Whether a call needs `key`."""
        return self.training

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """See `functional.rrelu`. Raises: MissingKeyError: when key is missing in training."""
        given = needed_key("RReLU", key) if self.training else None
        return functional.rrelu(x, self.lower, self.upper, self.training, key=given)


class Hardtanh(Module):
    """Limit to [min_val, max_val]; min_value and max_value are torch's retired names.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Hardtanh(-2.0, 2.0)(xp.asarray([-4.0, 0.5])).tolist()
        [-2.0, 0.5]
    """

    min_val: float = static()
    max_val: float = static()

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
        min_value: float | None = None, max_value: float | None = None,
    ) -> None:  # fmt: skip
        refuse_inplace("Hardtanh", inplace)
        if min_value is not None or max_value is not None:
            raise ArgumentError(
                f"Hardtanh: min_value and max_value must be None, got {min_value} and {max_value}",
                fix="say min_val and max_val",
            )
        if min_val > max_val:
            raise ArgumentError(
                f"Hardtanh: min_val must not be above max_val, got {min_val} and {max_val}"
            )
        self.__attrs_init__(min_val, max_val)

    def __call__(self, x: Any) -> Any:
        """See `functional.hardtanh`."""
        return functional.hardtanh(x, self.min_val, self.max_val)


class Threshold(Module):
    """Keep what is above threshold, replace the rest by value.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Threshold(1.0, -7.0)(xp.asarray([0.5, 2.0])).tolist()
        [-7.0, 2.0]
    """

    threshold: float = static()
    value: float = static()

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        refuse_inplace("Threshold", inplace)
        self.__attrs_init__(threshold, value)

    def __call__(self, x: Any) -> Any:
        """See `functional.threshold`."""
        return functional.threshold(x, self.threshold, self.value)


class Hardshrink(Module):
    """Replace elements of [-lambd, lambd] by 0.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Hardshrink()(xp.asarray([-2.0, 0.5, 0.75])).tolist()
        [-2.0, 0.0, 0.75]
    """

    lambd: float = static(default=0.5)

    def __call__(self, x: Any) -> Any:
        """See `functional.hardshrink`."""
        return functional.hardshrink(x, self.lambd)


class Softshrink(Module):
    """Move every element by lambd towards 0, but not across it.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Softshrink()(xp.asarray([-2.0, 0.25, 0.75])).tolist()
        [-1.5, 0.0, 0.25]
    """

    lambd: float = static(default=0.5)

    def __call__(self, x: Any) -> Any:
        """See `functional.softshrink`."""
        return functional.softshrink(x, self.lambd)
