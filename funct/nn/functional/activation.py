"""Activations: one number in, one number out, and `glu`.

At a kink the derivative is torch's, which is that of one side. Every branch of a `where` is given
operands on which it is finite, so that the branch that was not taken leaves no NaN behind.
"""

from __future__ import annotations

import math
from typing import Any

import funct.array as xp
from funct import ops, random
from funct.array.axes import normal_axis
from funct.array.direct import direct
from funct.array.in_single import narrowed, widened
from funct.errors import ArgumentError, ShapeError
from funct.kernels import neural as kernels
from funct.nn.functional.arguments import needed_key, refuse_inplace
from funct.nn.functional.compiled import compiled

__all__ = [
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "leaky_relu", "logsigmoid", "mish", "prelu", "relu", "relu6", "rrelu", "selu", "sigmoid",
    "silu", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
]  # fmt: skip

_SQRT_HALF = math.sqrt(0.5)
_SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


# piecewise linear ---------------------------------------------------------------------------------


@direct(kernels.relu)
@compiled
def relu(input: Any, inplace: bool = False) -> Any:
    """Replace negative elements by 0; the derivative at 0 is 0.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.relu(xp.asarray([-2.0, 3.0])).tolist(), float(ft.grad(F.relu)(xp.asarray(0.0)))
        ([0.0, 3.0], 0.0)
    """
    refuse_inplace("relu", inplace)
    return ops.relu(input)


@compiled
def relu6(input: Any, inplace: bool = False) -> Any:
    """Limit to [0, 6]; the derivative at 0 and at 6 is 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.relu6(xp.asarray([-2.0, 3.0, 9.0])).tolist()
        [0.0, 3.0, 6.0]
    """
    refuse_inplace("relu6", inplace)
    return hardtanh(input, 0.0, 6.0)


@compiled
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Limit to [min_val, max_val]; the derivative at both ends is 0.

    Raises: ArgumentError: when min_val is above max_val.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.hardtanh(xp.asarray([-4.0, 0.5, 4.0])).tolist()
        [-1.0, 0.5, 1.0]
    """
    refuse_inplace("hardtanh", inplace)
    if min_val > max_val:
        raise ArgumentError(
            f"hardtanh: min_val must not be above max_val, got {min_val} and {max_val}"
        )
    below = ops.where(ops.less_equal(input, min_val), float(min_val), input)
    return ops.where(ops.greater_equal(input, max_val), float(max_val), below)


@compiled
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Shrink negative elements by negative_slope; at 0 the derivative is negative_slope.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.leaky_relu(xp.asarray([-2.0, 3.0]), 0.5).tolist()
        [-1.0, 3.0]
    """
    refuse_inplace("leaky_relu", inplace)
    return ops.where(ops.greater(input, 0), input, input * negative_slope)


@compiled
def prelu(input: Any, weight: Any) -> Any:
    """`leaky_relu` with learned slopes, one for all or one per channel.

    Args: input: shape (N, C, *S), or (N,) with one slope. weight: shape (), (1,) or (C,).
    Raises: ShapeError: when weight has neither 1 nor C elements.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.prelu(xp.asarray([[-2.0, -2.0]]), xp.asarray([0.5, 0.25])).tolist()
        [[-1.0, -0.5]]

    Source: He, Zhang, Ren, Sun 2015, arXiv:1502.01852.
    """
    n = weight.size
    if n != 1 and (len(input.shape) < 2 or n != input.shape[1]):
        raise ShapeError(
            f"prelu: weight must have 1 element or one per channel of input {input.shape}, "
            f"got {weight.shape}"
        )
    behind = (1,) * max(len(input.shape) - 2, 0)
    slope = xp.reshape(weight, (n, *behind) if n != 1 else ())  # (C, 1, ...)
    return ops.where(ops.greater(input, 0), input, input * slope)


def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    inplace: bool = False, *, key: Any = None,
) -> Any:  # fmt: skip
    """`leaky_relu` with slopes drawn uniformly from [lower, upper]; else with their mean.

    Args: training: whether to draw. key: a random key, needed in training.
    Raises: ArgumentError: when lower is above upper. MissingKeyError: when key is missing.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.asarray([-1.0, 3.0])
        >>> F.rrelu(x, 0.25, 0.75).tolist()
        [-0.5, 3.0]
        >>> y = F.rrelu(x, 0.25, 0.75, training=True, key=ft.random.key(0))
        >>> bool(-0.75 <= y[0] <= -0.25)
        True

    Source: Xu, Wang, Chen, Li 2015, arXiv:1505.00853.
    """
    refuse_inplace("rrelu", inplace)
    if lower > upper:
        raise ArgumentError(f"rrelu: lower must not be above upper, got {lower} and {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    drawn = random.uniform(needed_key("rrelu", key), input.shape, xp.float32)
    slope = xp.astype(drawn, input.dtype, copy=False) * (upper - lower) + lower
    return ops.where(ops.greater(input, 0), input, input * slope)


@compiled
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """Keep what is above threshold, replace the rest by value.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.threshold(xp.asarray([0.5, 2.0]), 1.0, -7.0).tolist()
        [-7.0, 2.0]
    """
    refuse_inplace("threshold", inplace)
    return ops.where(ops.less_equal(input, threshold), float(value), input)  # NaN stays


@compiled
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """Replace elements of [-lambd, lambd] by 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.hardshrink(xp.asarray([-2.0, 0.5, 0.75])).tolist()
        [-2.0, 0.0, 0.75]
    """
    return ops.where(ops.less_equal(ops.abs(input), lambd), 0.0, input)


@compiled
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """Move every element by lambd towards 0, but not across it.

    Raises: ArgumentError: when lambd is negative.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.softshrink(xp.asarray([-2.0, 0.25, 0.75])).tolist()
        [-1.5, 0.0, 0.25]
    """
    if lambd < 0:
        raise ArgumentError(f"softshrink: lambd must not be negative, got {lambd}")
    far = ops.where(ops.less(input, 0.0), input + lambd, input - lambd)
    return ops.where(ops.less_equal(ops.abs(input), lambd), 0.0, far)


@compiled
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """relu6(x + 3) / 6: a sigmoid of three straight pieces.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.hardsigmoid(xp.asarray([-4.0, 0.0, 4.0])).tolist()
        [0.0, 0.5, 1.0]
    """
    refuse_inplace("hardsigmoid", inplace)
    (wide,) = widened(input)  # x + 3 of short floats may round to 6, whose slope is another
    return narrowed(relu6(wide + 3.0) / 6.0, input)


@compiled
def hardswish(input: Any, inplace: bool = False) -> Any:
    """x relu6(x + 3) / 6.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.hardswish(xp.asarray([-4.0, 3.0, 4.0])).tolist()
        [-0.0, 3.0, 4.0]

    Source: Howard et al. 2019, arXiv:1905.02244.
    """
    refuse_inplace("hardswish", inplace)
    (wide,) = widened(input)
    return narrowed(wide * hardsigmoid(wide), input)


# smooth -------------------------------------------------------------------------------------------


@direct(kernels.sigmoid)
@compiled
def sigmoid(input: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.sigmoid(xp.asarray([-1000.0, 0.0, 1000.0])).tolist()
        [0.0, 0.5, 1.0]
    """
    return ops.sigmoid(input)


def tanh(input: Any) -> Any:
    """Hyperbolic tangent.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.tanh(xp.asarray([-1000.0, 0.0])).tolist()
        [-1.0, 0.0]
    """
    return ops.tanh(input)


@compiled
def logsigmoid(input: Any) -> Any:
    """log(sigmoid(x)), exact where the sigmoid underflows.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.logsigmoid(xp.asarray([-1000.0])).tolist()
        [-1000.0]
    """
    return -ops.logaddexp(-input, 0.0)


@direct(kernels.softplus)
@compiled
def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Any:
    """log(1 + exp(beta x)) / beta, and x itself where beta x is above threshold.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.softplus(xp.asarray([-1000.0, 1000.0])).tolist()
        [0.0, 1000.0]
    """
    scaled = input * beta
    return ops.where(ops.greater(scaled, threshold), input, ops.logaddexp(scaled, 0.0) / beta)


@compiled
def softsign(input: Any) -> Any:
    """x / (1 + |x|).

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.softsign(xp.asarray([-1.0, 3.0])).tolist()
        [-0.5, 0.75]
    """
    return input / (1.0 + ops.abs(input))


@compiled
def tanhshrink(input: Any) -> Any:
    """x - tanh(x).

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> round(float(F.tanhshrink(xp.asarray(1.0))), 4)
        0.2384
    """
    (x,) = widened(input)
    return narrowed(x - ops.tanh(x), input)


@direct(kernels.silu)
@compiled
def silu(input: Any, inplace: bool = False) -> Any:
    """x sigmoid(x), also called swish.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> round(float(F.silu(xp.asarray(1.0))), 4)
        0.7311

    Source: Elfwing, Uchibe, Doya 2017, arXiv:1702.03118.
    """
    refuse_inplace("silu", inplace)
    return input * ops.sigmoid(input)


@compiled
def mish(input: Any, inplace: bool = False) -> Any:
    """x tanh(softplus(x)).

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> round(float(F.mish(xp.asarray(1.0))), 4)
        0.8651

    Source: Misra 2019, arXiv:1908.08681.
    """
    refuse_inplace("mish", inplace)
    return input * ops.tanh(ops.logaddexp(input, 0.0))


@direct(kernels.gelu)
@compiled
def gelu(input: Any, approximate: str = "none") -> Any:
    """Weigh each element by the normal distribution function: x Φ(x).

    Args: approximate: "none" computes Φ by erf, "tanh" by torch's and GPT-2's tanh formula.
    Raises: ArgumentError: when approximate is neither.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.asarray([-10.0, 1.0])
        >>> [round(v, 4) for v in F.gelu(x).tolist() + F.gelu(x, approximate="tanh").tolist()]
        [-0.0, 0.8413, -0.0, 0.8412]

    Source: Hendrycks, Gimpel 2016, arXiv:1606.08415.
    """
    (x,) = widened(input)  # 1 + erf cancels
    if approximate == "none":
        return narrowed(0.5 * x * (1.0 + xp.erf(x * _SQRT_HALF)), input)
    if approximate == "tanh":
        inner = _SQRT_TWO_OVER_PI * (x + 0.044715 * (x * x * x))
        return narrowed(0.5 * x * (1.0 + xp.tanh(inner)), input)
    raise ArgumentError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")


def _exponential_unit(x: Any, alpha: float, rate: float) -> Any:
    """x where positive, else alpha (exp(rate x) - 1); expm1 never sees a positive x."""
    positive = ops.greater(x, 0)
    below = ops.expm1(ops.where(positive, 0.0, x) * rate) * alpha
    return ops.where(positive, x, below)


@compiled
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x where positive, else alpha (exp(x) - 1).

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.elu(xp.asarray([-xp.inf, 3.0]), alpha=0.5).tolist()
        [-0.5, 3.0]

    Source: Clevert, Unterthiner, Hochreiter 2015, arXiv:1511.07289.
    """
    refuse_inplace("elu", inplace)
    return _exponential_unit(input, alpha, 1.0)


@compiled
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x where positive, else alpha (exp(x / alpha) - 1): `elu` with a continuous derivative.

    Raises: ArgumentError: when alpha is 0.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.celu(xp.asarray([-xp.inf, 3.0]), alpha=0.5).tolist()
        [-0.5, 3.0]

    Source: Barron 2017, arXiv:1704.07483.
    """
    refuse_inplace("celu", inplace)
    if alpha == 0:
        raise ArgumentError("celu: alpha must not be 0, got 0")
    return _exponential_unit(input, alpha, 1.0 / alpha)


@compiled
def selu(input: Any, inplace: bool = False) -> Any:
    """A scaled `elu` that keeps mean 0 and variance 1.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> [round(v, 4) for v in F.selu(xp.asarray([-xp.inf, 1.0])).tolist()]
        [-1.7581, 1.0507]

    Source: Klambauer, Unterthiner, Mayr, Hochreiter 2017, arXiv:1706.02515.
    """
    refuse_inplace("selu", inplace)
    return _exponential_unit(input, _SELU_ALPHA, 1.0) * _SELU_SCALE


@compiled
def glu(input: Any, dim: int = -1) -> Any:
    """Halve input along dim into a and b, and give a sigmoid(b).

    Raises: ShapeError: when dim does not exist or has an odd length.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.glu(xp.asarray([2.0, 4.0, 0.0, 1000.0])).tolist()
        [1.0, 4.0]

    Source: Dauphin, Fan, Auli, Grangier 2016, arXiv:1612.08083.
    """
    axis = normal_axis("glu", dim, len(input.shape))
    if not input.shape or input.shape[axis] % 2:
        raise ShapeError(f"glu: axis {dim} must have an even length, got {input.shape}")
    half = input.shape[axis] // 2
    head = (slice(None),) * axis
    return input[(*head, slice(None, half))] * ops.sigmoid(input[(*head, slice(half, None))])
