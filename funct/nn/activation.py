"""Activations as layers: records of their parameters, nothing else."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

import funct.array as xp
from funct.array import Tensor
from funct.errors import ArgumentError, ShapeError
from funct.nn import functional
from funct.nn.functional.arguments import needed_key, refuse_inplace
from funct.nn.module import Module, static

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU",
    "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign",
    "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class _Plain(Module):
    """An activation without parameters."""

    apply: ClassVar[Any]

    def __call__(self, x: Any) -> Any:
        """The function of each element, same shape and dtype."""
        return type(self).apply(x)


class _Switch(_Plain):
    """An activation that torch can be told to write into its operand, which must stay False."""

    def __init__(self, inplace: bool = False) -> None:
        refuse_inplace(type(self).__name__, inplace)
        self.__attrs_init__()


class ReLU(_Switch):
    """Replace negative elements by 0."""

    apply = staticmethod(functional.relu)


class ReLU6(_Switch):
    """Limit to [0, 6]."""

    apply = staticmethod(functional.relu6)


class SELU(_Switch):
    """See `functional.selu`."""

    apply = staticmethod(functional.selu)


class SiLU(_Switch):
    """Compute x sigmoid(x)."""

    apply = staticmethod(functional.silu)


class Mish(_Switch):
    """Compute x tanh(softplus(x))."""

    apply = staticmethod(functional.mish)


class Hardsigmoid(_Switch):
    """Compute relu6(x + 3) / 6."""

    apply = staticmethod(functional.hardsigmoid)


class Hardswish(_Switch):
    """Compute x relu6(x + 3) / 6."""

    apply = staticmethod(functional.hardswish)


class Sigmoid(_Plain):
    """Compute 1 / (1 + exp(-x))."""

    apply = staticmethod(functional.sigmoid)


class Tanh(_Plain):
    """Compute the hyperbolic tangent."""

    apply = staticmethod(functional.tanh)


class LogSigmoid(_Plain):
    """Compute log(sigmoid(x))."""

    apply = staticmethod(functional.logsigmoid)


class Softsign(_Plain):
    """Compute x / (1 + |x|)."""

    apply = staticmethod(functional.softsign)


class Tanhshrink(_Plain):
    """Compute x - tanh(x)."""

    apply = staticmethod(functional.tanhshrink)


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


class ELU(Module):
    """Give x where positive, else alpha (exp(x) - 1)."""

    alpha: float = static()

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        refuse_inplace("ELU", inplace)
        self.__attrs_init__(alpha)

    def __call__(self, x: Any) -> Any:
        """See `functional.elu`."""
        return functional.elu(x, self.alpha)


class CELU(Module):
    """Give x where positive, else alpha (exp(x / alpha) - 1)."""

    alpha: float = static()

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        refuse_inplace("CELU", inplace)
        self.__attrs_init__(alpha)

    def __call__(self, x: Any) -> Any:
        """See `functional.celu`."""
        return functional.celu(x, self.alpha)


class LeakyReLU(Module):
    """Shrink negative elements by negative_slope."""

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
    """Limit to [min_val, max_val]; min_value and max_value are torch's retired names."""

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
    """Keep what is above threshold, replace the rest by value."""

    threshold: float = static()
    value: float = static()

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        refuse_inplace("Threshold", inplace)
        self.__attrs_init__(threshold, value)

    def __call__(self, x: Any) -> Any:
        """See `functional.threshold`."""
        return functional.threshold(x, self.threshold, self.value)


class Hardshrink(Module):
    """Replace elements of [-lambd, lambd] by 0."""

    lambd: float = static(default=0.5)

    def __call__(self, x: Any) -> Any:
        """See `functional.hardshrink`."""
        return functional.hardshrink(x, self.lambd)


class Softshrink(Module):
    """Move every element by lambd towards 0, but not across it."""

    lambd: float = static(default=0.5)

    def __call__(self, x: Any) -> Any:
        """See `functional.softshrink`."""
        return functional.softshrink(x, self.lambd)


class Softplus(Module):
    """Compute log(1 + exp(beta x)) / beta, and x itself where beta x is above threshold."""

    beta: float = static(default=1.0)
    threshold: float = static(default=20.0)

    def __call__(self, x: Any) -> Any:
        """See `functional.softplus`."""
        return functional.softplus(x, self.beta, self.threshold)


class GLU(Module):
    """Halve x along dim into a and b, and give a sigmoid(b)."""

    dim: int = static(default=-1)

    def __call__(self, x: Any) -> Any:
        """See `functional.glu`."""
        return functional.glu(x, self.dim)


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
    """Compute exp(x_i) / Σ exp(x_j) along dim."""

    apply = staticmethod(functional.softmax)


class Softmin(_AlongAxis):
    """Compute softmax(-x) along dim."""

    apply = staticmethod(functional.softmin)


class LogSoftmax(_AlongAxis):
    """Compute log(softmax(x)) along dim."""

    apply = staticmethod(functional.log_softmax)


class Softmax2d(Module):
    """Compute softmax over the channels of images (N, C, H, W) or (C, H, W)."""

    def __call__(self, x: Any) -> Any:
        """See `functional.softmax`. Raises: ShapeError: when x has neither 3 nor 4 axes."""
        if len(x.shape) not in (3, 4):
            raise ShapeError(f"Softmax2d: x must be (N, C, H, W) or (C, H, W), got {x.shape}")
        return functional.softmax(x, -3)
