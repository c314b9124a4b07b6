"""Convolution of small images: a list of products, where calls of BLAS are the whole cost.

A convolution and its adjoints are the same products of elements of x, w and y, added up in another
of the three. Which ones they are depends on shapes alone, and is kept. In the comments G is the
number of groups, c = C / G and o = O / G.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import available, kernel
from funct.kernels.windows.views import windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

__all__ = [
    "add_products", "convolution", "convolution_input", "convolution_weight", "products",
]  # fmt: skip

_MOST = 1 << 12  # products, and elements; more are quicker by BLAS


@kernel
def add_products(a: Any, b: Any, y: Any, at_a: Any, at_b: Any, at_y: Any, n: int) -> None:
    """y += a · b at n places, one after the other: best each to another element than the last."""
    for k in range(n):
        to = at_y[k]
        y[to] = y[to] + a[at_a[k]] * b[at_b[k]]


@functools.lru_cache(64)
def products(x: Sizes, w: Sizes, slide: Sliding, result: int = 2) -> Any:
    """The shape of y, and the flat places of the products in x, w and y; None for too many.

    result: which of the three is summed. All sums have a term before one has a second: what is
    added waits for what was added to the same element before.
    """
    size, d = slide.size(x[2:], w[2:]), len(slide.stride)
    y = (x[0], w[0], *size)
    if min(size) < 0 or prod(y) * prod(w[1:]) > _MOST or prod(x) > _MOST:
        return None
    if min(map(min, slide.padding)) < 0:
        return None
    split, ones = (x[0], slide.groups, w[0] // slide.groups, w[1]), (1,) * d
    at = np.pad(
        np.arange(prod(x)).reshape(x), ((0, 0), (0, 0), *slide.padding), constant_values=-1
    )
    at_x = windows(at, w[2:], slide.stride, slide.dilation)  # (N, C, *T, *K)
    at_x = at_x.reshape(*split[:2], 1, split[3], *at_x.shape[2:])  # (N, G, 1, c, *T, *K)
    at_w = np.arange(prod(w)).reshape(1, *split[1:], *ones, *w[2:])
    at_y = np.arange(prod(y)).reshape(*split[:3], 1, *size, *ones)
    found = [np.moveaxis(v, 3, 3 + d) for v in np.broadcast_arrays(at_x, at_w, at_y)]
    places = [v[found[0] >= 0] for v in found]
    order = np.argsort(places[result], kind="stable")
    sums = places[result][order]
    term = np.arange(len(sums)) - np.searchsorted(sums, sums)
    turn = order[np.argsort(term, kind="stable")]
    return y, [v[turn] for v in places]


def _added(
    a: NDArray[Any], b: NDArray[Any], shape: Sizes, places: Any, order: tuple[int, int, int]
) -> NDArray[Any]:
    """What is added up: order says which of x, w, y are the operands and the result."""
    if a.dtype is not b.dtype or not available():  # at any time, since BLAS has other bits
        return NotImplemented
    if not a.flags.c_contiguous:
        a = np.ascontiguousarray(a)
    if not b.flags.c_contiguous:
        b = np.ascontiguousarray(b)
    y = np.zeros(shape, a.dtype)
    i, j, k = order
    add_products(a, b, y, places[i], places[j], places[k], len(places[k]))
    return y


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution`."""
    found = products(x.shape, w.shape, slide)
    return NotImplemented if found is None else _added(x, w, found[0], found[1], (0, 1, 2))


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_input`."""
    shape = (len(g), w.shape[1] * slide.groups, *size)
    found = products(shape, w.shape, slide, 0)
    return NotImplemented if found is None else _added(g, w, shape, found[1], (2, 1, 0))


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_weight`."""
    shape = (g.shape[1], x.shape[1] // slide.groups, *size)
    found = products(x.shape, shape, slide, 1)
    return NotImplemented if found is None else _added(x, g, shape, found[1], (0, 2, 1))
