"""Activations as layers: records of their parameters, nothing else."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from funct.errors import ArgumentError
from funct.nn import functional
from funct.nn.functional.arguments import refuse_inplace
from funct.nn.module import Module, static

__all__ = [
    "GELU", "GLU", "Hardsigmoid", "Hardswish", "LogSigmoid", "Mish", "ReLU", "ReLU6", "SELU",
    "SiLU", "Sigmoid", "Softplus", "Softsign", "Tanh", "Tanhshrink",
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
