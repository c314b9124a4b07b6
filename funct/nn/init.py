"""Initialisers: pure functions (key, shape, ...) -> Tensor, with torch.nn.init's names and
formulas.

All take `key` first and `shape` second, also those that draw nothing, so that one can stand in for
another. The default dtype is that of layers, float32. Source: `torch.nn.init`.
"""

from __future__ import annotations

import math
from typing import Any

import funct.array as xp
from funct import random
from funct.errors import ArgumentError, ShapeError

__all__ = [
    "calculate_gain", "constant", "fans", "kaiming_normal", "kaiming_uniform", "normal", "ones",
    "uniform", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip

Shape = tuple[int, ...]

_GAINS = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "sigmoid": 1.0,
    "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 0.75,
}  # fmt: skip


def _drawn(dtype: Any) -> Any:
    """The dtype to draw in: short floats are drawn in float32 and rounded once."""
    return dtype if dtype == xp.float64 else xp.float32


def zeros(key: Any, shape: Shape, *, dtype: Any = xp.float32) -> Any:
    """All zeros; key is not used.

    Example:
        >>> import funct as ft
        >>> from funct.nn import init
        >>> init.zeros(ft.random.key(0), (2,))
        Array([0., 0.], dtype=float32)
    """
    return xp.zeros(shape, dtype=dtype)


def ones(key: Any, shape: Shape, *, dtype: Any = xp.float32) -> Any:
    """All ones; key is not used.

    Example:
        >>> import funct as ft
        >>> from funct.nn import init
        >>> init.ones(ft.random.key(0), (2,)).tolist()
        [1.0, 1.0]
    """
    return xp.ones(shape, dtype=dtype)


def constant(key: Any, shape: Shape, val: float, *, dtype: Any = xp.float32) -> Any:
    """All `val`; key is not used.

    Example:
        >>> import funct as ft
        >>> from funct.nn import init
        >>> init.constant(ft.random.key(0), (2,), 0.5).tolist()
        [0.5, 0.5]
    """
    return xp.full(shape, val, dtype=dtype)


def uniform(
    key: Any, shape: Shape, a: float = 0.0, b: float = 1.0, *, dtype: Any = xp.float32
) -> Any:
    """Uniform on [a, b).

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import init
        >>> w = init.uniform(ft.random.key(0), (1000,), -2.0, 2.0)
        >>> bool(xp.all((w >= -2.0) & (w < 2.0)))
        True
    """
    return xp.astype(random.uniform(key, shape, _drawn(dtype), a, b), dtype, copy=False)


def normal(
    key: Any, shape: Shape, mean: float = 0.0, std: float = 1.0, *, dtype: Any = xp.float32
) -> Any:
    """Normal with this mean and standard deviation.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import init
        >>> w = init.normal(ft.random.key(0), (1000,), mean=1.0, std=0.1)
        >>> w.dtype, round(float(xp.mean(w)), 1)
        (dtype('float32'), 1.0)
    """
    return xp.astype(random.normal(key, shape, _drawn(dtype)) * std + mean, dtype, copy=False)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Factor by which a nonlinearity shrinks a signal; param is leaky_relu's negative slope.

    Raises: ArgumentError: when the nonlinearity is unknown.
    Example:
        >>> from funct.nn import init
        >>> init.calculate_gain("leaky_relu", 0.0) == 2**0.5
        True
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1.0 + slope * slope))
    if nonlinearity not in _GAINS:
        known = sorted([*_GAINS, "leaky_relu"])
        raise ArgumentError(
            f"calculate_gain: nonlinearity must be one of {known}, got {nonlinearity!r}"
        )
    return _GAINS[nonlinearity]


def fans(shape: Shape) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight (out, in, *kernel).

    Raises: ShapeError: when the shape has fewer than two axes.
    Example:
        >>> from funct.nn import init
        >>> init.fans((8, 4)), init.fans((16, 3, 5, 5))  # of a linear layer, and a convolution
        ((4, 8), (75, 400))
    """
    if len(shape) < 2:
        raise ShapeError(f"init: shape must have at least 2 axes (out, in, *kernel), got {shape}")
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def xavier_uniform(key: Any, shape: Shape, gain: float = 1.0, *, dtype: Any = xp.float32) -> Any:
    """Uniform with variance 2 gain² / (fan_in + fan_out).

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import init
        >>> w = init.xavier_uniform(ft.random.key(0), (30, 20))
        >>> bool(xp.all(xp.abs(w) <= (6 / (20 + 30)) ** 0.5))
        True

    Source: Glorot, Bengio 2010, AISTATS.
    """
    bound = gain * math.sqrt(6.0 / sum(fans(shape)))
    return uniform(key, shape, -bound, bound, dtype=dtype)


def xavier_normal(key: Any, shape: Shape, gain: float = 1.0, *, dtype: Any = xp.float32) -> Any:
    """Normal with variance 2 gain² / (fan_in + fan_out).

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import init
        >>> w = init.xavier_normal(ft.random.key(0), (300, 200))
        >>> round(float(xp.std(w)) * ((200 + 300) / 2) ** 0.5, 1)
        1.0

    Source: Glorot, Bengio 2010, AISTATS.
    """
    return normal(key, shape, 0.0, gain * math.sqrt(2.0 / sum(fans(shape))), dtype=dtype)


def _kaiming_std(shape: Shape, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"kaiming: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan = fans(shape)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def kaiming_uniform(
    key: Any, shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    *, dtype: Any = xp.float32,
) -> Any:  # fmt: skip
    """Uniform with variance gain² / fan.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import init
        >>> w = init.kaiming_uniform(ft.random.key(0), (30, 20), nonlinearity="relu")
        >>> bool(xp.all(xp.abs(w) <= (2 * 3 / 20) ** 0.5))
        True

    Source: He, Zhang, Ren, Sun 2015, arXiv:1502.01852.
    """
    bound = math.sqrt(3.0) * _kaiming_std(shape, a, mode, nonlinearity)
    return uniform(key, shape, -bound, bound, dtype=dtype)


def kaiming_normal(
    key: Any, shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    *, dtype: Any = xp.float32,
) -> Any:  # fmt: skip
    """Normal with variance gain² / fan.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import init
        >>> w = init.kaiming_normal(ft.random.key(0), (300, 200), nonlinearity="relu")
        >>> round(float(xp.std(w)) * (200 / 2) ** 0.5, 1)
        1.0

    Source: He, Zhang, Ren, Sun 2015, arXiv:1502.01852.
    """
    return normal(key, shape, 0.0, _kaiming_std(shape, a, mode, nonlinearity), dtype=dtype)
