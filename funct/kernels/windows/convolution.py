"""The three bilinear maps of convolution: shapes are checked here, the kernel table computes.

Layouts: x (N, C, *S), w (O, C / G, *K), g (N, O, *T) over any number d >= 1 of spatial axes and
G groups. As in all of deep learning, "convolution" is cross-correlation: w is not flipped.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels import table
from funct.kernels.windows import inside
from funct.kernels.windows.views import Padding, Sizes, Sliding, output_size, sum_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Index

__all__ = [
    "called", "convolution", "convolution_input", "convolution_weight", "fitting_size", "in_roles",
    "output_size",
]  # fmt: skip

_VAST = 1 << 26  # elements of a result that is looked for room for beforehand


@functools.lru_cache(512)
def fitting_size(x: Sizes, w: Sizes, y: Sizes | None, slide: Sliding) -> Sizes:
    """The size *T of the result, for shapes that fit: machine code takes them at their word.

    Raises: ValueError: if they do not. y: the result's shape, if it is there already.
    """
    rank, groups = len(slide.stride) + 2, slide.groups
    ranks = len(x) == len(w) == rank > 2
    size = slide.size(x[2:], w[2:]) if ranks else ()
    if not (
        ranks
        and groups > 0
        and x[1] == w[1] * groups
        and w[0] % groups == 0
        and min(size) >= 0
        and y in (None, (x[0], w[0], *size))
    ):
        raise ValueError(f"convolution: shapes x {x}, w {w}, y {y} do not fit (groups {groups})")
    return size


def in_roles(name: str, a: Any, b: Any, result: Any) -> tuple[Any, Any, Any]:
    """x, w and y of one of the three maps, of its operands and its result."""
    return {
        "convolution": (a, b, result), "convolution_input": (result, b, a),
        "convolution_weight": (a, result, b),
    }[name]  # fmt: skip


def convolution(
    x: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> NDArray[Any]:
    """Convolve a batch of images with a bank of kernels.

    Maths:   y[n, o, t] = Σ_{c, k} x[n, c, stride t + dilation k - low] w[o, c, k]
    Args:    x: (N, C, *S). w: (O, C / groups, *K), same dtype. padding: (low, high) per spatial
             axis, zeros if positive, cropped if negative.
    Returns: (N, O, *T), *T as in `output_size`, same dtype. Integers wrap around, as in NumPy.
    Notes:   where the channels of x are last in memory, those of the result may be as well.
    """
    return called("convolution", x, w, Sliding(stride, padding, dilation, groups))


def convolution_input(
    g: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
    size: Sizes,
) -> NDArray[Any]:
    """Apply the adjoint of `convolution` in x: also what is called a transposed convolution.

    Args:    g: (N, O, *T). w: (O, C / groups, *K). size: the spatial shape *S of x.
    Returns: (N, C, *S), same dtype.
    """
    return called("convolution_input", g, w, Sliding(stride, padding, dilation, groups), size)


def convolution_weight(
    x: NDArray[Any],
    g: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
    size: Sizes,
) -> NDArray[Any]:
    """Apply the adjoint of `convolution` in w.

    Args:    x: (N, C, *S). g: (N, O, *T). size: the spatial shape *K of w.
    Returns: (O, C / groups, *K), same dtype.
    """
    return called("convolution_weight", x, g, Sliding(stride, padding, dilation, groups), size)


_Lie = tuple["np.dtype[Any]", Sizes, Sizes]  # dtype, shape, strides


def called(
    name: str, a: NDArray[Any], b: NDArray[Any], slide: Sliding, size: Sizes = ()
) -> NDArray[Any]:
    """One of the three maps; see `inside.py` on what is not finite."""
    alike = (a.dtype, a.shape, a.strides), (b.dtype, b.shape, b.strides)
    ways, telling = _ways(name, *alike, slide, size, table.left())
    given = (a, b, slide, size) if size else (a, b, slide)
    y: NDArray[Any] = ways(*given)
    if telling is None or ways.inside:
        return y
    # what was multiplied by zeros around has told it to some sum, so all of them tell as well
    told = y[telling] if telling else y
    if (telling or y.size < b.size) and inside.all_finite(told):
        return y
    if inside.all_finite(b):
        return y
    with np.errstate(all="ignore"):  # machine code is silent as well
        y = getattr(inside, name)(*given)
    return y


@functools.lru_cache(1 << 10)
def _ways(
    name: str, a: _Lie, b: _Lie, slide: Sliding, size: Sizes, only: frozenset[str] | None
) -> tuple[table.Remembered, Index | None]:
    """The rows for operands that lie so, and what of the result tells whether factors are finite.

    size: spatial, of an adjoint's result. only: what is left of the table.
    """
    (dtype, one, _), (_, other, _), groups = a, b, slide.groups
    if name == "convolution":
        size = fitting_size(one, other, None, slide)
        shape: Sizes = (one[0], other[0], *size)
    elif name == "convolution_input":
        shape = (one[0], other[1] * groups, *size)
    else:
        shape = (other[1], one[1] // groups, *size)
    x, w, y = in_roles(name, one, other, shape)
    fitting_size(x, w, y, slide)
    if name != "convolution_weight" and prod(shape) > _VAST:
        np.empty(shape, dtype)  # plans are as long as images: they are not made in vain
    half = "" if sum_dtype(dtype) == dtype else "half_"
    telling = None if dtype.kind in "biu" else inside.telling(name, x, w, y, slide)
    return table.Remembered(half + name, dtype, 2 * prod(y) * prod(w[1:])), telling


# short floats, in float32 ------------------------------------------------------------------------


def widened(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """`convolution` of what float32 holds, rounded once."""
    x, w, dtype = *_wide(x, w), x.dtype
    return _cast(convolution(x, w, *slide), dtype)


def widened_input(g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes) -> NDArray[Any]:
    """`convolution_input` of what float32 holds, rounded once."""
    g, w, dtype = *_wide(g, w), g.dtype
    return _cast(convolution_input(g, w, *slide, size), dtype)


def widened_weight(x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes) -> NDArray[Any]:
    """`convolution_weight` of what float32 holds, rounded once."""
    x, g, dtype = *_wide(x, g), x.dtype
    return _cast(convolution_weight(x, g, *slide, size), dtype)


def _wide(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return _cast(x, sum_dtype(x.dtype)), _cast(y, sum_dtype(y.dtype))


def _cast(x: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    y: NDArray[Any] = table.call("cast", x.dtype, x.size, x, dtype)
    return y
