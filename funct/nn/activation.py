"""Activations as layers: records of their parameters, nothing else."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

import funct.array as xp
from funct.array import Tensor
from funct.errors import ArgumentError, ShapeError
from funct.nn import functional
from funct.nn.functional.arguments import needed_key, refuse_inplace, shape_of
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
    """Replace negative elements by 0.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ReLU()(xp.asarray([-2.0, 3.0])).tolist()
        [0.0, 3.0]
    """

    apply = staticmethod(functional.relu)


class ReLU6(_Switch):
    """Limit to [0, 6].

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.ReLU6()(xp.asarray([-2.0, 3.0, 9.0])).tolist()
        [0.0, 3.0, 6.0]
    """

    apply = staticmethod(functional.relu6)


class SELU(_Switch):
    """See `functional.selu`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> [round(v, 4) for v in nn.SELU()(xp.asarray([-1.0, 1.0])).tolist()]
        [-1.1113, 1.0507]
    """

    apply = staticmethod(functional.selu)


class SiLU(_Switch):
    """Compute x sigmoid(x).

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> [round(v, 4) for v in nn.SiLU()(xp.asarray([-1.0, 1.0])).tolist()]
        [-0.2689, 0.7311]
    """

    apply = staticmethod(functional.silu)


class Mish(_Switch):
    """Compute x tanh(softplus(x)).

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> [round(v, 4) for v in nn.Mish()(xp.asarray([-1.0, 1.0])).tolist()]
        [-0.3034, 0.8651]
    """

    apply = staticmethod(functional.mish)


class Hardsigmoid(_Switch):
    """Compute relu6(x + 3) / 6.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Hardsigmoid()(xp.asarray([-4.0, 0.0, 4.0])).tolist()
        [0.0, 0.5, 1.0]
    """

    apply = staticmethod(functional.hardsigmoid)


class Hardswish(_Switch):
    """Compute x relu6(x + 3) / 6.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Hardswish()(xp.asarray([-4.0, 3.0, 4.0])).tolist()
        [-0.0, 3.0, 4.0]
    """

    apply = staticmethod(functional.hardswish)


class Sigmoid(_Plain):
    """Compute 1 / (1 + exp(-x)).

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Sigmoid()(xp.asarray([0.0, 1000.0])).tolist()
        [0.5, 1.0]
    """

    apply = staticmethod(functional.sigmoid)


class Tanh(_Plain):
    """Compute the hyperbolic tangent.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Tanh()(xp.asarray([-1000.0, 0.0])).tolist()
        [-1.0, 0.0]
    """

    apply = staticmethod(functional.tanh)


class LogSigmoid(_Plain):
    """Compute log(sigmoid(x)).

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.LogSigmoid()(xp.asarray([-1000.0])).tolist()
        [-1000.0]
    """

    apply = staticmethod(functional.logsigmoid)


class Softsign(_Plain):
    """Compute x / (1 + |x|).

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Softsign()(xp.asarray([-1.0, 3.0])).tolist()
        [-0.5, 0.75]
    """

    apply = staticmethod(functional.softsign)


class Tanhshrink(_Plain):
    """Compute x - tanh(x).

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> [round(v, 4) for v in nn.Tanhshrink()(xp.asarray([-1.0, 1.0])).tolist()]
        [-0.2384, 0.2384]
    """

    apply = staticmethod(functional.tanhshrink)


def _known(layer: GELU, field: attrs.Attribute[str], value: str) -> None:
    if value not in ("none", "tanh"):
        raise ArgumentError(f"GELU: approximate must be 'none' or 'tanh', got {value!r}")


class GELU(Module):
    """Weigh each element by the normal distribution function.

    Args: approximate: "none" (exact, by erf) or "tanh".
    Raises: ArgumentError: when approximate is neither.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x = xp.asarray(1.0)
        >>> round(float(nn.GELU()(x)), 4), round(float(nn.GELU("tanh")(x)), 4)
        (0.8413, 0.8412)

    Source: Hendrycks, Gimpel 2016, arXiv:1606.08415; torch.nn.GELU.
    """

    approximate: str = static(default="none", validator=_known)

    def __call__(self, x: Any) -> Any:
        """x Φ(x), same shape and dtype."""
        return functional.gelu(x, self.approximate)


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


class Softplus(Module):
    """Compute log(1 + exp(beta x)) / beta, and x itself where beta x is above threshold.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.Softplus()(xp.asarray([-1000.0, 1000.0])).tolist()
        [0.0, 1000.0]
    """

    beta: float = static(default=1.0)
    threshold: float = static(default=20.0)

    def __call__(self, x: Any) -> Any:
        """See `functional.softplus`."""
        return functional.softplus(x, self.beta, self.threshold)


class GLU(Module):
    """Halve x along dim into a and b, and give a sigmoid(b).

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.GLU()(xp.asarray([2.0, 4.0, 0.0, 1000.0])).tolist()
        [1.0, 4.0]
    """

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
