"""Changing the size of signals, images and volumes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.array.conversion import check_allocation
from funct.errors import ArgumentError, ShapeError
from funct.nn.functional import resampling
from funct.nn.functional.adaptive_pooling import adaptive_mean
from funct.nn.functional.arguments import hashable
from funct.nn.functional.compiled import concrete
from funct.nn.functional.resampling import (
    flat_places,
    gathered,
    gathered_at_once,
    resampled,
)

__all__ = ["interpolate", "upsample"]

_RANKS = {
    "nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3),
    "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,),
}  # fmt: skip

_DOUBLE = np.dtype(np.float64)


def interpolate(
    input: Any, size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:  # fmt: skip
    """Resize the spatial axes of (N, C, *S).

    Args: size: the new lengths, an int for all axes. scale_factor: or the factors of the lengths,
    rounded down. mode: "nearest", "nearest-exact", "area", and by the number of spatial axes
    "linear", "bilinear" or "bicubic", "trilinear". align_corners: whether the centres of the corner
    elements stay in place (else their outer corners do); for the last four modes.
    recompute_scale_factor: whether the factor is computed anew from the rounded lengths.
    antialias: whether bilinear and bicubic average what shrinking passes over.
    Returns: shape (N, C, *T).
    Raises: ArgumentError: when not just one of size and scale_factor is given, or a parameter does
    not go with the mode. ShapeError: when the mode has not so many axes.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.interpolate(xp.asarray([[[0.0, 1.0]]]), 4, mode="linear").tolist()
        [[[0.0, 0.25, 0.75, 1.0]]]

    Source: torch.nn.functional.interpolate; bicubic: Keys 1981.
    """
    given = hashable(size), hashable(scale_factor), mode, align_corners, recompute_scale_factor
    known = concrete(input)
    find = _known if known else _resizing
    return find(tuple(input.shape), *given, antialias, known)(input)


def _resizing(
    shape: Any, size: Any, scale_factor: Any, mode: str, corners: bool | None,
    recompute: bool | None, antialias: bool, known: bool,
) -> Callable[[Any], Any]:  # fmt: skip
    """What resizes images of that shape. known: whether they are arrays, on tapes or not."""
    rank = len(shape) - 2
    _check("interpolate", shape, mode, corners, antialias, recompute, size)
    sizes, factors = _sizes("interpolate", shape[2:], size, scale_factor)
    if mode == "area":
        return lambda x: adaptive_mean(x, sizes)
    given = [None] * rank if factors is None or recompute else factors
    axes = list(zip(map(int, shape[2:]), sizes, given, strict=True))
    if mode.startswith("nearest"):
        places = [_nearest(*along, mode) for along in axes]
        if rank > 1 and known:
            at = flat_places(shape[2:], places)
            return lambda x: gathered_at_once(x, at, 2, sizes)

        def taken(x: Any) -> Any:
            for k, along in enumerate(places):
                x = gathered(x, along, 2 + k)
            return x

        return taken
    found = [_taps(*along, mode, bool(corners), antialias) for along in axes]
    taps = [(each, 2 + k) for k, each in enumerate(found) if each is not None]
    return lambda x: resampled(x, *taps)


_known = functools.lru_cache(128, typed=True)(_resizing)


def upsample(
    input: Any, size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """`interpolate` under its old name.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.upsample(xp.asarray([[[1.0, 2.0]]]), scale_factor=2).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def _taps(
    n: int, out: int, factor: float | None, mode: str, corners: bool, antialias: bool
) -> resampling.Taps | None:
    """What is read along an axis; None where it stays as it is."""
    scale = n / out if factor is None else 1.0 / factor
    if corners:
        scale = (n - 1) / (out - 1) if out > 1 else 0.0
    cubic = mode == "bicubic"
    if n == out and (antialias or not cubic):  # whatever the factor: torch copies there
        return None
    if antialias:
        return resampling.smooth_taps(n, out, scale, cubic)
    return (resampling.cubic_taps if cubic else resampling.linear_taps)(n, out, scale, corners)


def _nearest(n: int, out: int, factor: float | None, mode: str) -> Any:
    scale = n / out if factor is None else 1.0 / factor
    return resampling.nearest_places(n, out, scale, mode == "nearest-exact")


def _check(
    name: str, shape: Any, mode: str, corners: bool | None, antialias: bool, recompute: bool | None,
    size: Any,
) -> None:  # fmt: skip
    if mode not in _RANKS:
        raise ArgumentError(f"{name}: mode must be one of {sorted(_RANKS)}, got {mode!r}")
    if len(shape) - 2 not in _RANKS[mode]:
        wanted = " or ".join(str(r + 2) for r in _RANKS[mode])
        raise ShapeError(f"{name}: mode {mode!r} needs input with {wanted} axes, got {shape}")
    if corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ArgumentError(f"{name}: align_corners does not go with mode {mode!r}, got {corners}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(f"{name}: antialias needs mode 'bilinear' or 'bicubic', got {mode!r}")
    if recompute and size is not None:
        raise ArgumentError(f"{name}: recompute_scale_factor needs scale_factor, got size={size}")


def _sizes(
    name: str, shape: Any, size: Any, scale_factor: Any
) -> tuple[tuple[int, ...], list[float] | None]:
    rank = len(shape)
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            f"{name}: one of size and scale_factor is needed, got {size} and {scale_factor}"
        )
    argument, value = ("size", size) if scale_factor is None else ("scale_factor", scale_factor)
    given = list(value) if isinstance(value, tuple | list) else [value] * rank
    if len(given) != rank:
        raise ArgumentError(f"{name}: {argument} must have {rank} entries, got {value}")
    if scale_factor is None:
        sizes, factors = [int(n) for n in given], None
    else:
        factors = [float(f) for f in given]
        sizes = [math.floor(int(n) * f) for n, f in zip(shape, factors, strict=True)]
    if min(sizes) < 1:
        raise ArgumentError(f"{name}: the result must not be empty, got the size {tuple(sizes)}")
    check_allocation(name, tuple(sizes), _DOUBLE)
    return tuple(sizes), factors
