"""The maps of `convolution.py` as products of matrices, in NumPy, for every dtype.

In the comments c = C / G, o = O / G, n is the number of images in a block and P is S with padding;
S, K, T, P stand for all their axes in one, *S … for several axes, K0 for the first, K' for the
others.

Note [Blocks]
    BLAS wants a matrix that is |K| times as large as x. It is made for a few images at a time, so
    that it stays in the second-level cache and in memory that is mapped already.

Note [Shared rows]
    Along the first spatial axis, the window of an output row begins one row (times the stride)
    after the window before it. With the rows outermost in memory, these windows are overlapping
    slices of one stride, which BLAS takes as they are: only the inner axes need to be unfolded, and
    |K0| times less is copied. Measured: 1.1 to 1.6 times as fast, unless channels are few.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funct.kernels.windows.views import (
    Index,
    Padding,
    Sizes,
    Sliding,
    sum_dtype,
    windows,
    windows_adjoint,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["convolution", "convolution_input", "convolution_weight"]

_BLOCK_BYTES = 1 << 19  # times are flat from 1/4 to 1 MiB where the second-level cache has 2 MiB
_FEW_COLUMNS = 64  # below, BLAS spends its time on packing the other operand
_FEW_TERMS = 256  # the same for the sum over positions in the gradient of w
_FEW_ROWS = 8  # below, sharing rows saves less than its many small products cost


class _Geometry(NamedTuple):
    kernel: Sizes
    stride: Sizes
    padding: Padding
    dilation: Sizes
    groups: int

    @property
    def unfolded(self) -> bool:
        """Whether the columns are x as it stands."""
        ones = set(self.kernel) == set(self.stride) == {1}
        return ones and not any(map(any, self.padding))


def _overlap(size: Sizes, padding: Padding) -> tuple[Index, Index]:
    """Where x lies in its padded copy, and which part of x that is. Negative padding crops."""
    inside, source = [], []
    for s, (low, high) in zip(size, padding):
        start = max(0, -low)
        stop = max(start, min(s, s + high))
        source.append(slice(start, stop))
        inside.append(slice(start + low, stop + low))
    return (..., *inside), (..., *source)


def _pad(x: NDArray[Any], padding: Padding) -> NDArray[Any]:
    """x with zeros around its last axes; a view of x if `padding` only crops or does nothing."""
    lead = x.ndim - len(padding)
    size = x.shape[lead:]
    inside, source = _overlap(size, padding)
    if all(low <= 0 and high <= 0 for low, high in padding):
        return x[source]
    padded = np.zeros(x.shape[:lead] + _padded_size(size, padding), x.dtype)
    padded[inside] = x[source]
    return padded


def _padded_size(size: Sizes, padding: Padding) -> Sizes:
    return tuple([low + s + high for s, (low, high) in zip(size, padding)])


def _blocks(count: int, image_bytes: int, least: int = 1) -> Iterator[slice]:
    """Cut `count` images into blocks. See Note [Blocks]."""
    step = max(least, _BLOCK_BYTES // image_bytes if image_bytes else count)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _dense(x: NDArray[Any]) -> NDArray[Any]:
    """x in an order that BLAS takes. For others, as of a broadcast g, NumPy has slow loops only."""
    return np.ascontiguousarray(x)


def _columns(x: NDArray[Any], geo: _Geometry, merged: bool) -> NDArray[Any]:
    """Unfold x (im2col) to (n, G, cK, T), or to (1, G, cK, nT) if `merged`."""
    if geo.unfolded:
        return _positions(x, geo.groups, merged)
    n, channels = x.shape[:2]
    d = len(geo.kernel)
    spatial, taps = range(2, 2 + d), range(2 + d, 2 + 2 * d)
    v = windows(_pad(x, geo.padding), geo.kernel, geo.stride, geo.dilation)  # (n, C, *T, *K)
    rows, positions = channels // geo.groups * prod(geo.kernel), prod(v.shape[2 : 2 + d])
    if merged:
        v = v.transpose(1, *taps, 0, *spatial)  # (C, *K, n, *T)
        return _dense(v.reshape(1, geo.groups, rows, n * positions))
    v = v.transpose(0, 1, *taps, *spatial)  # (n, C, *K, *T)
    return _dense(v.reshape(n, geo.groups, rows, positions))


def _positions(g: NDArray[Any], groups: int, merged: bool) -> NDArray[Any]:
    """g (n, O, *T) laid out as `_columns` does: a view (n, G, o, T), or (1, G, o, nT) if merged."""
    n, out = g.shape[:2]
    positions = prod(g.shape[2:])
    if merged:
        return _dense(g.swapaxes(0, 1).reshape(1, groups, out // groups, n * positions))
    return _dense(g.reshape(n, groups, out // groups, positions))


def _rows(x: NDArray[Any], geo: _Geometry, count: int) -> NDArray[Any]:
    """Unfold the inner axes only: (G, T0, K0 c K', n T'), T0 = count. See Note [Shared rows]."""
    n, channels, *size = _padded_size(x.shape, ((0, 0), (0, 0), *geo.padding))
    inner = len(size) - 1
    c = channels // geo.groups
    p = _pad(x, geo.padding).reshape(n, geo.groups, c, *size)
    v = windows(p, geo.kernel[1:], geo.stride[1:], geo.dilation[1:])  # (n, G, c, P0, *T', *K')
    spatial, taps = range(4, 4 + inner), range(4 + inner, 4 + 2 * inner)
    length, width = c * prod(geo.kernel[1:]), n * prod(v.shape[4 : 4 + inner])  # cK', nT'
    v = v.transpose(1, 3, 2, *taps, 0, *spatial)  # (G, P0, c, *K', n, *T')
    rows = _dense(v.reshape(geo.groups, size[0], length, width))
    line = width * rows.itemsize
    row = length * line
    return as_strided(
        rows,
        (geo.groups, count, geo.kernel[0] * length, width),
        (size[0] * row, geo.stride[0] * row, line, rows.itemsize),
    )


# the maps ----------------------------------------------------------------------------------------


def _by_columns(x: NDArray[Any], w: NDArray[Any], y: NDArray[Any], geo: _Geometry) -> None:
    """Fill y by one product per image, or per block where an image has few positions."""
    out, positions = y.shape[1], prod(y.shape[2:])
    matrix = _dense(w.reshape(geo.groups, out // geo.groups, prod(w.shape[1:])))  # (G, o, cK)
    merged = positions < _FEW_COLUMNS
    image_bytes = geo.groups * prod(w.shape[1:]) * positions * x.itemsize
    if not merged and geo.unfolded:
        image_bytes = 0  # nothing is copied
    for part in _blocks(len(x), image_bytes, -(-_FEW_COLUMNS // positions)):
        cols = _columns(x[part], geo, merged)
        if merged:
            z = matrix @ cols  # (1, G, o, nT)
            n = part.stop - part.start
            y[part] = z.reshape(out, n, *y.shape[2:]).swapaxes(0, 1)  # (n, O, *T)
        else:
            target = _positions(y[part], geo.groups, merged)  # a view, for y is contiguous
            np.matmul(matrix, cols, out=target)


def _by_rows(x: NDArray[Any], w: NDArray[Any], y: NDArray[Any], geo: _Geometry) -> None:
    """Fill y by one product per output row of a block. See Note [Shared rows]."""
    count, out = y.shape[:2]
    groups, o, (first, *inner) = geo.groups, out // geo.groups, y.shape[2:]
    matrix = _dense(w.swapaxes(1, 2).reshape(groups, 1, o, prod(w.shape[1:])))  # (G, 1, o, K0cK')
    split = y.reshape(count, groups, o, first, *inner)
    taps = geo.groups * w.shape[1] * prod(geo.kernel[1:])  # C K'
    image_bytes = taps * (first * geo.stride[0] + geo.kernel[0]) * prod(inner) * x.itemsize
    for part in _blocks(count, image_bytes, -(-_FEW_COLUMNS // prod(inner))):
        z = matrix @ _rows(x[part], geo, first)  # (G, T0, o, nT')
        z = z.reshape(groups, first, o, part.stop - part.start, *inner)
        split[part] = z.transpose(3, 0, 2, 1, *range(4, z.ndim))  # (n, G, o, T0, *T')


def _shares_rows(w: NDArray[Any], geo: _Geometry) -> bool:
    return (
        len(geo.kernel) > 1
        and geo.kernel[0] > geo.stride[0]
        and geo.dilation[0] == 1
        and w.shape[1] * prod(geo.kernel[1:]) >= _FEW_ROWS
    )


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """`funct.kernels.windows.convolution.convolution`. See Note [Blocks] and Note [Shared rows]."""
    dtype, work = x.dtype, sum_dtype(x.dtype)
    geo = _Geometry(w.shape[2:], *slide)
    size = slide.size(x.shape[2:], geo.kernel)
    y = np.empty((len(x), len(w), *size), work)
    if y.size:
        fill = _by_rows if _shares_rows(w, geo) else _by_columns
        fill(x.astype(work, copy=False), w.astype(work, copy=False), y, geo)
    return y.astype(dtype, copy=False)


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """The adjoint in x."""
    dtype, work = g.dtype, sum_dtype(g.dtype)
    geo = _Geometry(w.shape[2:], *slide)
    # Folding adds C K T elements up, flipping copies O K T: the first is slower for each.
    if set(slide.stride) == {1} and 8 * w.shape[1] * slide.groups > len(w):
        return _by_flipping(g, w, geo)
    x = np.zeros((len(g), slide.groups * w.shape[1], *size), work)
    if g.size and x.size:
        _by_folding(g.astype(work, copy=False), w.astype(work, copy=False), x, geo)
    return x.astype(dtype, copy=False)


def _by_flipping(g: NDArray[Any], w: NDArray[Any], geo: _Geometry) -> NDArray[Any]:
    """With stride 1 the adjoint is a convolution too: of the padded g with the flipped kernels."""
    out, c, *kernel = w.shape
    flipped = np.flip(w, tuple(range(2, w.ndim))).reshape(geo.groups, out // geo.groups, c, *kernel)
    swapped = flipped.swapaxes(1, 2).reshape(geo.groups * c, out // geo.groups, *kernel)
    reach = [d * (k - 1) for d, k in zip(geo.dilation, kernel)]
    padding = tuple([(r - low, r - high) for r, (low, high) in zip(reach, geo.padding)])
    return convolution(g, swapped, Sliding(geo.stride, padding, geo.dilation, geo.groups))


def _by_folding(g: NDArray[Any], w: NDArray[Any], x: NDArray[Any], geo: _Geometry) -> None:
    """Fill x: products give what each output sends to each tap, `windows_adjoint` adds that up."""
    channels, d, positions = x.shape[1], len(geo.kernel), prod(g.shape[2:])
    matrix = _dense(w.reshape(geo.groups, len(w) // geo.groups, prod(w.shape[1:]))).swapaxes(1, 2)
    merged = positions < _FEW_COLUMNS
    padded = _padded_size(x.shape[2:], geo.padding)
    inside, source = _overlap(x.shape[2:], geo.padding)
    spatial, taps = range(2, 2 + d), range(2 + d, 2 + 2 * d)
    image_bytes = geo.groups * prod(w.shape[1:]) * positions * g.itemsize
    for part in _blocks(len(g), image_bytes, -(-_FEW_COLUMNS // positions)):
        v = matrix @ _positions(g[part], geo.groups, merged)  # (n, G, cK, T) or (1, G, cK, nT)
        n = part.stop - part.start
        if merged:
            v = v.reshape(channels, *geo.kernel, n, *g.shape[2:])  # (C, *K, n, *T)
            v = np.moveaxis(v, 1 + d, 0)  # (n, C, *K, *T)
        else:
            v = v.reshape(n, channels, *geo.kernel, *g.shape[2:])  # (n, C, *K, *T)
        v = v.transpose(0, 1, *taps, *spatial)  # (n, C, *T, *K)
        sums = windows_adjoint(v, padded, geo.stride, geo.dilation)  # (n, C, *P)
        x[part][source] = sums[inside]


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """The adjoint in w."""
    work = sum_dtype(x.dtype)
    geo = _Geometry(size, *slide)
    groups = slide.groups
    c, o, positions = x.shape[1] // groups, g.shape[1] // groups, prod(g.shape[2:])
    rows = c * prod(size)
    total = np.zeros((groups, o, rows), work)
    merged = positions < _FEW_TERMS
    image_bytes = groups * rows * (positions + (0 if merged else o)) * work.itemsize
    least = -(-_FEW_TERMS // max(1, positions)) if merged else 1
    for part in _blocks(len(x) if g.size else 0, image_bytes, least):
        cols = _columns(x[part].astype(work, copy=False), geo, merged)  # (b, G, cK, m)
        sent = _positions(g[part].astype(work, copy=False), groups, merged)  # (b, G, o, m)
        for a, b in zip(sent, cols):
            total += a @ b.swapaxes(1, 2)  # (G, o, cK)
    return total.reshape(groups * o, c, *size).astype(x.dtype, copy=False)
