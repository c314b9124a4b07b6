"""The maps of `convolution.py` where a number is infinite or none: tap by tap, inside of the image.

Zeros around an image are no terms of a sum. Kernels may multiply by them nevertheless, which makes
no difference as long as the other factor is finite: what is not would spread to pixels that it does
not reach. One element of each sum that takes all factors tells whether they are.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.windows.views import Sizes, Sliding, sum_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from funct.kernels.windows.views import Index

__all__ = ["all_finite", "convolution", "convolution_input", "convolution_weight", "telling"]

_MOST = 64  # elements of each sum, which are looked at in its stead


def telling(name: str, x: Sizes, w: Sizes, y: Sizes, slide: Sliding) -> Index | None:
    """Which elements of the result tell whether factors are finite that meet zeros around.

    () where none takes all factors: these must be asked, or all results, which have met whatever
    the zeros have. None: nothing around is read.
    """
    axes = list(zip(x[2:], w[2:], y[2:], slide.stride, slide.padding, slide.dilation))
    crops = name != "convolution_input" and max(map(max, slide.padding)) <= 0
    if crops or (set(w[2:]) == {1} and not any(map(any, slide.padding))):
        return None
    if 0 in (*x, *w, *y):
        return ()
    if name == "convolution_input":
        starts = [max(0, d * (k - 1) - low) for _, k, _, _, (low, _), d in axes]
        seen = [
            (first + s - 1 + low) // s < t and first + s <= size
            for first, (size, _, t, s, (low, _), _) in zip(starts, axes)
        ]
        if not all(seen) or np.prod(slide.stride) > _MOST:
            return ()
        return (0, slice(None), *[slice(a, a + s) for a, s in zip(starts, slide.stride)])
    found = []
    for size, k, t, s, (low, _), d in axes:
        steps, other, count, rest = (s, d, t, k) if name == "convolution" else (d, s, k, t)
        at = -(-max(0, low) // steps)
        if at >= count or at * steps + other * (rest - 1) - low >= size:
            return ()
        found.append(at)
    return (0, slice(None), *found) if name == "convolution" else (slice(None), 0, *found)


def all_finite(x: NDArray[Any]) -> bool:
    """Whether all elements are; of few, bytes are sooner searched than truths reduced."""
    return b"\0" not in np.isfinite(x).tobytes()


def _taps(
    x: Sizes, w: Sizes, y: Sizes, slide: Sliding
) -> Iterator[tuple[Index, Index, Index]]:  # fmt: skip
    """Each tap, with the pixels that it reads, inside of the image, and the places they go to."""
    given = zip(x[2:], w[2:], y[2:], slide.stride, slide.padding, slide.dilation)
    axes = []
    for size, k, t, s, (low, high), d in given:
        found = []
        for tap in range(k):
            at = d * tap - low
            first, last = max(0, -low), size - max(0, -high)
            start, stop = max(0, -((at - first) // s)), min(t, -(-(last - at) // s))
            if start < stop:
                pixels = slice(start * s + at, (stop - 1) * s + at + 1, s)
                found.append((tap, pixels, slice(start, stop)))
        axes.append(found)
    for parts in itertools.product(*axes):
        taps, pixels, places = zip(*parts)
        yield (..., *taps), (..., *pixels), (..., *places)


def _groups(x: NDArray[Any], groups: int) -> NDArray[Any]:
    return x.reshape(len(x), groups, x.shape[1] // groups, -1)


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution`."""
    work, groups = sum_dtype(x.dtype), slide.groups
    shape = (len(x), len(w), *slide.size(x.shape[2:], w.shape[2:]))
    y, image = np.zeros(shape, work), x.astype(work, copy=False)
    matrices = w.astype(work, copy=False).reshape(groups, -1, *w.shape[1:])
    for tap, pixels, places in _taps(x.shape, w.shape, shape, slide):
        sent = matrices[tap] @ _groups(image[pixels], groups)
        y[places] += sent.reshape(y[places].shape)
    return y.astype(x.dtype, copy=False)


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_input`."""
    work, groups = sum_dtype(g.dtype), slide.groups
    x = np.zeros((len(g), w.shape[1] * groups, *size), work)
    image = g.astype(work, copy=False)
    matrices = w.astype(work, copy=False).reshape(groups, -1, *w.shape[1:])
    for tap, pixels, places in _taps(x.shape, w.shape, g.shape, slide):
        sent = matrices[tap].swapaxes(1, 2) @ _groups(image[places], groups)
        x[pixels] += sent.reshape(x[pixels].shape)
    return x.astype(g.dtype, copy=False)


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_weight`."""
    work, groups = sum_dtype(x.dtype), slide.groups
    w = np.zeros((g.shape[1], x.shape[1] // groups, *size), work)
    image, sent = x.astype(work, copy=False), g.astype(work, copy=False)
    for tap, pixels, places in _taps(x.shape, w.shape, g.shape, slide):
        rows = _groups(sent[places], groups) @ _groups(image[pixels], groups).swapaxes(2, 3)
        w[tap] = np.add.reduce(rows, 0).reshape(w.shape[:2])
    return w.astype(x.dtype, copy=False)
