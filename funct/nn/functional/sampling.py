"""Reading images and volumes at places that are data: `grid_sample`, and grids for it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import funct.array as xp
from funct import ops
from funct.array import Array
from funct.array.direct import direct
from funct.array.in_single import narrowed, widened
from funct.errors import ArgumentError, ShapeError
from funct.kernels.windows import sampling as kernels
from funct.nn.functional.compiled import below_tapes, compiled, concrete, lies_last
from funct.nn.functional.own_rules import ruled
from funct.ops.fast import wrap
from funct.transforms import jit, vjp

__all__ = ["affine_grid", "grid_sample"]

_CUBIC = -0.75


def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Any:
    """Make the grid of an affine map, for `grid_sample`.

    Args: theta: shape (N, 2, 3) or (N, 3, 4). size: shape of the sampled result, (N, C, H, W) or
    (N, C, D, H, W). align_corners: whether -1 and 1 are the centres of the corner elements, else
    their outer corners (None: False).
    Returns: shape (N, H, W, 2) or (N, D, H, W, 3); the last axis holds x, y(, z).
    Raises: ShapeError: when theta and size do not fit.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> F.affine_grid(xp.asarray([[[1.0, 0, 0], [0, 1.0, 0]]]), (1, 1, 1, 2)).tolist()
        [[[[-0.5, 0.0], [0.5, 0.0]]]]

    Source: Jaderberg, Simonyan, Zisserman, Kavukcuoglu 2015, arXiv:1506.02025.
    """
    given = tuple(size)
    rank = len(given) - 2
    if rank not in (2, 3) or tuple(theta.shape) != (given[0], rank, rank + 1):
        raise ShapeError(
            f"affine_grid: theta must have shape (N, 2, 3) for size (N, C, H, W) or (N, 3, 4) for "
            f"(N, C, D, H, W), got {theta.shape} for {given}"
        )
    axes = []
    for n in given[2:]:
        ends = 1.0 if align_corners else (n - 1) / n
        axes.append(np.linspace(-ends, ends, n) if n > 1 else np.zeros(1))
    planes = np.meshgrid(*axes, indexing="ij")[::-1]  # x first
    base = np.stack([*planes, np.ones(given[2:])], axis=-1).reshape(-1, rank + 1)
    places = xp.asarray(base, dtype=theta.dtype) @ theta.mT  # (N, H W, rank)
    return xp.reshape(places, (given[0], *given[2:], rank))


@direct(kernels.grid_sampled, arrays=2)
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """Read input at the places of grid, between its elements by interpolation.

    Args: input: shape (N, C, H, W) or (N, C, D, H, W). grid: shape (N, *T, 2) or (N, *T, 3): x, y(,
    z) from -1 to 1 over the input. mode: "bilinear" (trilinear in volumes), "nearest", or "bicubic"
    (images only). padding_mode: what stands outside: "zeros", the "border" elements, or the
    "reflection" of the input. align_corners: as in `affine_grid`.
    Returns: shape (N, C, *T).
    Raises: ShapeError: when the shapes do not fit. ArgumentError: when a mode is unknown.
    Notes: differentiable in input and grid. A place that is NaN counts as -1.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.asarray([[[[1.0, 3.0]]]])
        >>> F.grid_sample(x, xp.asarray([[[[0.0, 0.0]]]])).tolist()
        [[[[2.0]]]]

    Source: Jaderberg, Simonyan, Zisserman, Kavukcuoglu 2015, arXiv:1506.02025.
    """
    if concrete(input) and concrete(grid) and kernels.pay(input.shape, grid.shape):
        _check(input, grid, mode, padding_mode)
        x, places = widened(input, grid)
        if kernels.serves(below_tapes(x).data, below_tapes(places).data):
            y = _by_kernels(x, places, mode, padding_mode, bool(align_corners))
            return narrowed(y, input, grid)
    return _composed_sample(input, grid, mode, padding_mode, align_corners)


def _check(input: Any, grid: Any, mode: str, padding_mode: str) -> None:
    rank = len(input.shape) - 2
    if rank not in (2, 3) or len(grid.shape) != rank + 2 or grid.shape[-1] != rank:
        raise ShapeError(
            f"grid_sample: input (N, C, H, W) needs grid (N, *T, 2), (N, C, D, H, W) needs "
            f"(N, *T, 3), got {input.shape} and {grid.shape}"
        )
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and rank == 3):
        raise ArgumentError(
            f"grid_sample: mode must be 'bilinear', 'nearest' or, for images, 'bicubic', "
            f"got {mode!r}"
        )
    if padding_mode not in _PADDED:
        raise ArgumentError(
            f"grid_sample: padding_mode must be one of {list(_PADDED)}, got {padding_mode!r}"
        )


@functools.partial(compiled, least=256)
def _composed_sample(
    input: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool | None
) -> Any:
    """`grid_sample` by primitives."""
    _check(input, grid, mode, padding_mode)
    x, places = widened(input, grid)  # places of 16 bits are not those of pixels from 2,048 on
    lengths = tuple([int(n) for n in x.shape[2:]])
    flat = xp.reshape(x, (*x.shape[:2], math.prod(lengths)))
    terms = _terms(places, lengths, mode, padding_mode, bool(align_corners))
    found = [(_place(at, lengths), weight) for at, weight in terms]
    channels = x.shape[1]
    last = channels.__class__ is int and channels >= kernels.LANES and len(terms) > 1
    # whole pixels are read, for each of which place and weight are found once
    y = _summed(flat.mT, found, 2).mT if last else _summed(flat, found, 1)
    return narrowed(xp.reshape(y, (*x.shape[:2], *grid.shape[1:-1])), input, grid)


def _by_kernels(input: Any, grid: Any, mode: str, padding_mode: str, corners: bool) -> Any:
    """The same of what is known: where elements are read and their weights are compiled, all else
    is one kernel, and one for each way back.
    """
    (images, channels, *lengths), rank = map(int, input.shape), len(input.shape)
    last = channels >= kernels.LANES and lies_last(input)
    if last:
        pixels = xp.moveaxis(input, 1, -1)
        flat = xp.reshape(pixels, (images, math.prod(lengths), channels))
    else:
        flat = xp.reshape(input, (images, channels, math.prod(lengths)))
    if mode == "nearest":  # whose weights are 1
        grid = ops.stop_gradient(grid)
    places, weights = _taps_of(tuple(lengths), mode, padding_mode, corners)(grid)
    of = flat.__class__ is not Array, weights.__class__ is not Array
    given = flat, places, weights, of, last
    y = _known_sums(*given) if any(of) else _picked(*given)[0]
    to = grid.shape[1:-1]
    if last:
        return xp.moveaxis(xp.reshape(y, (images, *to, channels)), rank - 1, 1)
    return xp.reshape(y, (images, channels, *to))


@functools.lru_cache(256)
def _taps_of(lengths: tuple[int, ...], mode: str, padding_mode: str, corners: bool) -> Any:
    """The function of a grid (N, *T, rank) that gives places (N, K, T), -1 where nothing is, and
    weights.
    """

    def taps(grid: Any) -> Any:
        places, weights = [], []
        for at, weight in _terms(grid, lengths, mode, padding_mode, corners):
            index, inside = _place(at, lengths)
            places.append(xp.astype(ops.where(inside, index, -1), xp.int32))
            weights.append(xp.ones_like(at[0]) if weight is None else weight)
        return xp.stack(places, axis=1), xp.stack(weights, axis=1)

    return jit(taps)


def _picked(flat: Any, places: Any, weights: Any, of: Any, last: bool) -> Any:
    """The sums by a kernel, and what the ways back keep."""
    kept = (flat, places, weights)
    if any(v.__class__ is not Array for v in kept):
        return _sums(*kept, of, last), kept
    sampled = kernels.sampled_last if last else kernels.sampled
    return wrap(sampled(flat.data, places.data, weights.data)), kept


def _picked_back(of: Any, last: bool, kept: Any, g: Any) -> Any:
    flat, places, weights = kept
    if all(v.__class__ is Array for v in (*kept, g)):
        back = kernels.sampled_back_last if last else kernels.sampled_back
        found = back(g.data, flat.data, places.data, weights.data, of)
        to_flat, to_weights = (None if v is None else wrap(v) for v in found)
    else:
        sums = lambda x, w: _sums(x, places, w, of, last)  # noqa: E731
        to_flat, to_weights = vjp(sums, flat, weights)[1](g)
    return to_flat, None, to_weights


def _sums(flat: Any, places: Any, weights: Any, of: Any, last: bool) -> Any:
    """of: whether flat and weights are on tapes. last: of flat (N, S, C), to (N, T, C)."""
    if last:
        return _taken(flat.mT, places, weights).mT
    return _taken(flat, places, weights)


_known_sums = ruled(_sums, _picked, _picked_back, arrays=3, fixed=2)


def _taken(flat: Any, places: Any, weights: Any) -> Any:
    """The sums by primitives."""
    each = range(int(places.shape[1]))
    inside = ops.greater_equal(places, 0)
    index = xp.astype(ops.where(inside, places, 0), xp.int64)
    return _summed(flat, [((index[:, k], inside[:, k]), weights[:, k]) for k in each], 1)


Outside = Callable[[Any, int, bool], Any]


def _terms(
    grid: Any, lengths: tuple[int, ...], mode: str, padding_mode: str, corners: bool
) -> list[tuple[list[Any], Any]]:
    """Whole places, one (N, T) per axis, of all neighbours, and their weights; None is 1."""
    rank, outside = len(lengths), _PADDED[padding_mode]
    places = []
    for k, n in enumerate(lengths):  # x is the last axis of input
        at = xp.reshape(grid[..., rank - 1 - k], (grid.shape[0], math.prod(grid.shape[1:-1])))
        at = ops.where(ops.isnan(at), -1.0, at)
        places.append((at + 1.0) * ((n - 1) / 2) if corners else ((at + 1.0) * n - 1.0) / 2)
    if mode == "bicubic":  # every neighbour for itself is moved inside
        taps = [_cubic_taps(at) for at in places]
        taps = [
            [(outside(i, n, corners), w) for i, w in of_axis]
            for of_axis, n in zip(taps, lengths, strict=True)
        ]
    else:
        moved = [outside(at, n, corners) for at, n in zip(places, lengths, strict=True)]
        taps = [_nearest_tap(at) if mode == "nearest" else _linear_taps(at) for at in moved]
    terms = []
    for neighbours in itertools.product(*taps):
        weight: Any = None
        for _, w in neighbours:
            weight = w if weight is None or w is None else weight * w
        terms.append(([i for i, _ in neighbours], weight))
    return terms


def _place(places: list[Any], lengths: tuple[int, ...]) -> tuple[Any, Any]:
    """The index of a place in a flat image, and whether it is inside."""
    inside: Any = True
    index: Any = 0
    for at, n in zip(places, lengths, strict=True):
        at = ops.stop_gradient(at)
        here = ops.logical_and(ops.greater_equal(at, 0), ops.less(at, n))
        inside = here if inside is True else ops.logical_and(inside, here)
        index = index * n + xp.astype(ops.where(here, at, 0.0), xp.int64)
    return index, inside


def _summed(flat: Any, terms: Sequence[tuple[tuple[Any, Any], Any]], channels: int) -> Any:
    """flat (N, C, S) at places (N, T), times weights, to (N, C, T). channels: which axis C is; with
    2 these are (N, S, C) and (N, T, C).
    """
    axis = 3 - channels
    total: Any = None
    for (index, inside), weight in terms:
        to = list(flat.shape)
        to[axis] = index.shape[1]
        wide = ops.broadcast_to(xp.expand_dims(index, channels), tuple(to))
        found = ops.take_along_axis(flat, wide, axis)
        term = ops.where(xp.expand_dims(inside, channels), found, 0.0)
        term = term if weight is None else term * xp.expand_dims(weight, channels)
        total = term if total is None else total + term
    return total


def _nearest_tap(at: Any) -> list[tuple[Any, Any]]:
    return [(ops.round(at), None)]  # halves to even, as in torch


def _linear_taps(at: Any) -> list[tuple[Any, Any]]:
    low = ops.floor(at)
    part = at - low
    return [(low, 1.0 - part), (low + 1.0, part)]


def _cubic_taps(at: Any) -> list[tuple[Any, Any]]:
    low = ops.floor(at)
    t = at - low

    def near(d: Any) -> Any:
        return ((_CUBIC + 2.0) * d - (_CUBIC + 3.0)) * d * d + 1.0

    def far(d: Any) -> Any:
        return ((_CUBIC * d - 5.0 * _CUBIC) * d + 8.0 * _CUBIC) * d - 4.0 * _CUBIC

    weights = (far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t))
    return [(low + float(k - 1), w) for k, w in enumerate(weights)]


def _as_it_is(at: Any, n: int, corners: bool) -> Any:
    return at


def _clipped(at: Any, n: int, corners: bool) -> Any:
    """Inside [0, n - 1]; at the ends and beyond the derivative is 0, as in torch."""
    above = ops.where(ops.less_equal(at, 0), 0.0, at)
    return ops.where(ops.greater_equal(at, n - 1), float(n - 1), above)


def _reflected(at: Any, n: int, corners: bool) -> Any:
    """Mirrored at the centres of the end elements, or at their outer corners."""
    low, span = (0.0, float(n - 1)) if corners else (-0.5, float(n))
    if span == 0.0:
        return ops.where(ops.isnan(at), at, 0.0)
    away = ops.abs(at - low)
    turns = ops.floor(away / span)
    rest = away - turns * span
    even = ops.equal(ops.remainder(turns, 2.0), 0.0)
    return _clipped(ops.where(even, rest, span - rest) + low, n, corners)


_PADDED: dict[str, Outside] = {
    "zeros": _as_it_is, "border": _clipped, "reflection": _reflected,
}  # fmt: skip
