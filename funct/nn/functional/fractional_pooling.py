"""Maxima of windows whose places are drawn: the size shrinks by a ratio that is no whole number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import funct.array as xp
from funct import ops, random
from funct.errors import ArgumentError, MissingKeyError, ShapeError
from funct.nn.functional.arguments import Ints, Sizes, batched, per_axis, unbatched
from funct.ops.fast import wrap

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d"]

Ratios = float | tuple[float, ...] | list[float]


def fractional_max_pool2d(
    input: Any, kernel_size: Ints, output_size: Ints | None = None,
    output_ratio: Ratios | None = None, return_indices: bool = False,
    _random_samples: Any = None, *, key: Any = None,
) -> Any:  # fmt: skip
    """Take maxima of output_size windows that begin at random places of an image.

    Args: input: shape (N, C, H, W) or (C, H, W). kernel_size: of the windows. output_size, or
    output_ratio in (0, 1): how many. return_indices: give the place of each maximum in the flat
    image too. _random_samples: shape (N, C, 2) in [0, 1), in place of what is drawn from key.
    Returns: shape (N, C, *T) or (C, *T); with return_indices a pair of that.
    Raises: ArgumentError: when not just one of output_size and output_ratio is given, or a
    parameter is out of range. ShapeError: when the windows do not fit. MissingKeyError: when there
    are neither samples nor a key.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.ones((1, 3, 8, 8))
        >>> F.fractional_max_pool2d(x, 2, output_ratio=0.7, key=ft.random.key(0)).shape
        (1, 3, 5, 5)

    Source: Graham 2014, arXiv:1412.6071; torch.nn.functional.fractional_max_pool2d.
    """
    return _fractional(
        "fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, return_indices,
        _random_samples, key,
    )  # fmt: skip


def fractional_max_pool3d(
    input: Any, kernel_size: Ints, output_size: Ints | None = None,
    output_ratio: Ratios | None = None, return_indices: bool = False,
    _random_samples: Any = None, *, key: Any = None,
) -> Any:  # fmt: skip
    """Take maxima of output_size windows that begin at random places of a volume.

    Args: input: shape (N, C, D, H, W) or (C, D, H, W). _random_samples: shape (N, C, 3). The rest,
    Raises, Source: as `fractional_max_pool2d`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.ones((1, 3, 8, 8, 8))
        >>> F.fractional_max_pool3d(x, 2, output_size=5, key=ft.random.key(0)).shape
        (1, 3, 5, 5, 5)
    """
    return _fractional(
        "fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, return_indices,
        _random_samples, key,
    )  # fmt: skip


def _fractional(
    name: str, rank: int, x: Any, kernel_size: Ints, output_size: Ints | None,
    output_ratio: Ratios | None, return_indices: bool, samples: Any, key: Any,
) -> Any:  # fmt: skip
    x, added = batched(name, x, rank)
    shape = tuple([int(n) for n in x.shape[2:]])
    kernel = per_axis(name, "kernel_size", kernel_size, rank)
    sizes = _sizes(name, shape, output_size, output_ratio)
    if any(out + k - 1 > n for n, k, out in zip(shape, kernel, sizes, strict=True)):
        raise ShapeError(f"{name}: {sizes} windows {kernel} do not fit into {shape}")
    if samples is None:
        if key is None:
            raise MissingKeyError(
                f"{name}: without _random_samples a key is needed to draw where windows begin",
                fix="pass key=random.key(seed)",
            )
        samples = random.uniform(key, (*x.shape[:2], rank))
    at: Any = 0  # (N, C, T1, K1, T2, K2, …)
    for axis, (n, k, out) in enumerate(zip(shape, kernel, sizes, strict=True)):
        drawn = samples[..., rank - 1 - axis if rank == 2 else axis]  # torch's planes hold x, y
        along = xp.expand_dims(_starts(drawn, n, k, out), -1) + wrap(np.arange(k))
        behind = (1,) * (2 * (rank - axis - 1))
        front = (1,) * (2 * axis)
        at = at * n + xp.reshape(along, (*x.shape[:2], *front, out, k, *behind))
    order = (0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2))
    places = ops.permute_dims(at, order)  # (N, C, T1, T2, …, K1, K2, …)
    rows, taps = math.prod(sizes), math.prod(kernel)
    flat = xp.reshape(x, (*x.shape[:2], math.prod(shape)))
    seen = ops.take_along_axis(
        ops.stop_gradient(flat), xp.reshape(places, (*x.shape[:2], rows * taps)), 2
    )
    best = ops.max_pool_index(seen, (taps,), (taps,), ((0, 0),), (1,))
    places = xp.reshape(places, (*x.shape[:2], rows * taps))
    chosen = ops.take_along_axis(places, best, 2)  # (N, C, T)
    y = ops.take_along_axis(flat, chosen, 2)
    y, chosen = (unbatched(xp.reshape(v, (*x.shape[:2], *sizes)), added) for v in (y, chosen))
    return (y, chosen) if return_indices else y


def _starts(sample: Any, n: int, k: int, out: int) -> Any:
    """Where the windows of one axis begin, (N, C, out); the last one ends with the axis."""
    last = wrap(np.full((1,), n - k))
    if out == 1:
        return xp.broadcast_to(last, (*sample.shape, 1))
    alpha = (n - k) / (out - 1)
    u = xp.expand_dims(ops.stop_gradient(sample), -1)
    steps = ops.floor((u + wrap(np.arange(out, dtype=u.dtype))) * alpha)
    starts = xp.astype(steps - ops.floor(u * alpha), xp.int64)
    return ops.where(wrap(np.arange(out) == out - 1), last, starts)


def _sizes(name: str, shape: Sizes, output_size: Any, output_ratio: Any) -> Sizes:
    rank = len(shape)
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(
            f"{name}: one of output_size and output_ratio is needed, got {output_size} and "
            f"{output_ratio}"
        )
    if output_ratio is None:
        return per_axis(name, "output_size", output_size, rank)
    one = not isinstance(output_ratio, tuple | list)
    ratios = (output_ratio,) * rank if one else tuple(output_ratio)
    if len(ratios) != rank or any(not 0.0 < r < 1.0 for r in ratios):
        raise ArgumentError(f"{name}: output_ratio must lie in (0, 1), got {output_ratio}")
    return tuple([int(n * r) for n, r in zip(shape, ratios, strict=True)])
