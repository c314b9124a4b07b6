"""Padding: constants, mirror images, repeated borders and tilings around an array."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.array.direct import direct
from funct.core.dtypes import INEXACT
from funct.errors import ArgumentError, ShapeError
from funct.kernels import manipulation as kernels
from funct.nn.functional.arguments import Pairs
from funct.nn.functional.compiled import concrete
from funct.nn.functional.resampling import flat_places, gathered, gathered_at_once
from funct.ops.fast import wrap

__all__ = ["pad"]


@direct(kernels.pad_last)
def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """Put elements around the last axes; negative amounts take elements away.

    Args: pad: (low, high) of the last axis, then of the one before it, and so on. mode: "constant"
    puts value (None: 0); "reflect" mirrors without repeating the border, "replicate" repeats the
    border, "circular" repeats what negative amounts leave. These three take 1, 2 or 3 axes, behind
    one or two that stay.
    Returns: input with the last axes longer or shorter.
    Raises: ArgumentError: when pad, mode or value is not among these, or is too long for the mode.
    ShapeError: when input has too few axes.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.pad(xp.asarray([[1.0, 2.0, 3.0]]), (2, -1), mode="reflect").tolist()
        [[3.0, 2.0, 1.0, 2.0]]

    Source: torch.nn.functional.pad.
    """
    given = tuple(input.shape), tuple(pad), mode, value
    if concrete(input) and (value is None or value.__class__ is float or value.__class__ is int):
        return _known(*given, True)(input)
    return _padding(*given, False)(input)


def _padding(
    shape: Any, amounts: tuple[int, ...], mode: str, value: Any, known: bool
) -> Callable[[Any], Any]:
    """What pads arrays of that shape. known: whether they are arrays, on tapes or not."""
    if len(amounts) % 2 or any(n.__class__ is not int for n in amounts):
        raise ArgumentError(f"pad: pad must be an even number of ints, got {amounts!r}")
    pairs = tuple(zip(amounts[-2::-2], amounts[::-2], strict=True))
    if len(pairs) > len(shape):
        raise ShapeError(f"pad: pad has {len(pairs)} pairs, input only the axes {shape}")
    lead = len(shape) - len(pairs)
    for n, (low, high) in zip(shape[lead:], pairs, strict=True):
        left = (low, high) if mode in ("reflect", "replicate") else (min(low, 0), min(high, 0))
        if n.__class__ is int and n + sum(left) < 0:
            raise ArgumentError(f"pad: pad takes more than an axis of length {n}: {low}, {high}")
    if mode == "constant":
        return lambda x: _constant(x, pairs, 0 if value is None else value)
    if mode not in _PLACES:
        modes = ["constant", *_PLACES]
        raise ArgumentError(f"pad: mode must be one of {modes}, got {mode!r}")
    if value:
        raise ArgumentError(f"pad: value must be None for mode {mode!r}, got {value}")
    if not 1 <= len(pairs) <= 3 or lead not in (1, 2):
        raise ShapeError(
            f"pad: mode {mode!r} takes 1, 2 or 3 axes behind one or two more, got {len(pairs)} "
            f"pairs for {shape}"
        )
    padded = [k for k, pair in enumerate(pairs) if any(pair)]
    if len(padded) > 1 and known:
        each = [_PLACES[mode](n, *pair) for n, pair in zip(shape[lead:], pairs, strict=True)]
        at, counts = flat_places(shape[lead:], each), tuple([len(along) for along in each])
        return lambda x: gathered_at_once(x, at, lead, counts)
    places = [(_PLACES[mode](int(shape[lead + k]), *pairs[k]), lead + k) for k in padded]

    def taken(x: Any) -> Any:
        for along, axis in places:
            x = gathered(x, along, axis)
        return x

    return taken


_known = functools.lru_cache(128, typed=True)(_padding)


def _constant(x: Any, pairs: Pairs, value: float) -> Any:
    y = ops.pad_axes(x, pairs)
    if value == 0:
        return y
    lead = len(x.shape) - len(pairs)
    inside = ops.pad_axes(ops.broadcast_to(wrap(np.ones((), bool)), x.shape[lead:]), pairs)
    around = ops.astype(wrap(np.asarray(value)), x.dtype)
    if x.dtype not in INEXACT:
        return ops.where(inside, y, around)
    return y + ops.where(inside, ops.astype(wrap(np.asarray(-0.0)), x.dtype), around)  # as it was


def _reflected(n: int, low: int, high: int) -> Any:
    if max(low, high) >= n:
        raise ArgumentError(
            f"pad: mode 'reflect' needs pad below the length {n}, got {low}, {high}"
        )
    at = np.abs(np.arange(-low, n + high))
    return n - 1 - np.abs(n - 1 - at)


def _replicated(n: int, low: int, high: int) -> Any:
    return np.clip(np.arange(-low, n + high), 0, n - 1)


def _wrapped(n: int, low: int, high: int) -> Any:
    kept = n + min(low, 0) + min(high, 0)
    if max(low, high) > kept:
        raise ArgumentError(
            f"pad: mode 'circular' needs pad up to the length {kept}, got {low}, {high}"
        )
    at = np.arange(-max(low, 0), kept + max(high, 0)) % max(kept, 1)
    return at - min(low, 0)


_PLACES = {"reflect": _reflected, "replicate": _replicated, "circular": _wrapped}
