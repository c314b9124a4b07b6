"""The three bilinear maps of convolution, and sliding windows with their adjoint.

`convolution`, `convolution_input` and `convolution_weight` take the best row of the kernel table;
the `plain_` ones are NumPy.

Layouts: x (N, C, *S), w (O, C / G, *K), g (N, O, *T) over any number d >= 1 of spatial axes and
G groups. As in all of deep learning, "convolution" is cross-correlation: w is not flipped.
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

from funct.kernels import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = [
    "convolution", "convolution_input", "convolution_last", "convolution_weight", "fitting_size",
    "output_size", "plain_convolution", "plain_convolution_input", "plain_convolution_last",
    "plain_convolution_weight", "sum_dtype", "windows", "windows_adjoint",
]  # fmt: skip

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]
Index = Any  # a tuple that indexes the last axes: mypy knows no (..., *slices)

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


def output_size(
    size: Sequence[Any],
    kernel: Sequence[Any],
    stride: Sequence[Any],
    padding: Sequence[tuple[Any, Any]],
    dilation: Sequence[Any],
) -> tuple[Any, ...]:
    """Count the window positions along each axis: what convolution and pooling make of `size`.

    Maths: T = floor((S + low + high - dilation (K - 1) - 1) / stride) + 1
    Raises: ValueError: for a stride or dilation < 1, which would leave the array's memory.
    Notes: uses nothing but + - * //, so symbolic sizes pass through.
    """
    if min((*stride, *dilation), default=1) < 1:
        raise ValueError(f"stride {stride} and dilation {dilation} must be >= 1")
    return tuple(
        [
            (s + low + high - d * (k - 1) - 1) // step + 1
            for s, k, step, (low, high), d in zip(size, kernel, stride, padding, dilation)
        ]
    )


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype to sum in: float32 for floats of one or two bytes, else `dtype`."""
    is_short = dtype.itemsize <= 2 and dtype.kind not in "biu"
    return np.dtype(np.float32) if is_short else dtype


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


# ------------------------------------------------------------------------------------- windows


def windows(x: NDArray[Any], size: Sizes, stride: Sizes, dilation: Sizes) -> NDArray[Any]:
    """View the windows that slide over the last axes of x, without copying.

    Args:    x: (…, *S). size, stride, dilation: one int per sliding axis.
    Returns: (…, *T, *K), K = size: a read-only view of x.
    """
    lead = x.ndim - len(size)
    count = output_size(x.shape[lead:], size, stride, ((0, 0),) * len(size), dilation)  # *T
    steps = [a * b for a, b in zip(x.strides[lead:], stride)]
    taps = [a * b for a, b in zip(x.strides[lead:], dilation)]
    return as_strided(
        x, (*x.shape[:lead], *count, *size), (*x.strides[:lead], *steps, *taps), writeable=False
    )


def windows_adjoint(g: NDArray[Any], shape: Sizes, stride: Sizes, dilation: Sizes) -> NDArray[Any]:
    """Add windows up where they overlap: the adjoint of `windows`.

    Args:    g: (…, *T, *K). shape: the sizes *S of the axes that the windows slid over.
    Returns: (…, *S), the dtype of g.
    """
    d = len(shape)
    count, size = g.shape[-2 * d : -d], g.shape[-d:]  # *T, *K
    x = np.zeros((*g.shape[: -2 * d], *shape), g.dtype)
    for tap in np.ndindex(*size):
        starts = [k * dil for k, dil in zip(tap, dilation)]
        hit: Index = (..., *[slice(a, a + s * t, s) for a, s, t in zip(starts, stride, count)])
        here: Index = (..., *tap)
        x[hit] += g[here]
    return x


# ------------------------------------------------------------------------------------ matrices


def _blocks(count: int, image_bytes: int, least: int = 1) -> Iterator[slice]:
    """Cut `count` images into blocks. See Note [Blocks]."""
    step = max(least, _BLOCK_BYTES // max(1, image_bytes))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _dense(x: NDArray[Any]) -> NDArray[Any]:
    """x in an order that BLAS takes. For others, as of a broadcast g, NumPy has slow loops only."""
    return np.ascontiguousarray(x)


def _columns(x: NDArray[Any], geo: _Geometry, merged: bool) -> NDArray[Any]:
    """Unfold x (im2col) to (n, G, cK, T), or to (1, G, cK, nT) if `merged`.

    A 1×1 kernel has nothing to unfold: then this is a view of x.
    """
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
    """Lay g (n, O, *T) out as `_columns` does: (n, G, o, T), or (1, G, o, nT) if `merged`."""
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


# ------------------------------------------------------------------------------------ the maps


def fitting_size(
    x: Sizes,
    w: Sizes,
    y: Sizes | None,
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> Sizes:
    """The size *T of the result, for shapes that fit: machine code takes them at their word.

    Raises: ValueError: if they do not. y: the result's shape, if it is there already.
    """
    size = output_size(x[2:], w[2:], stride, padding, dilation)
    rank = len(stride) + 2
    if not (
        len(x) == len(w) == rank > 2
        and groups > 0
        and x[1] == w[1] * groups
        and w[0] % groups == 0
        and min(size) >= 0
        and y in (None, (x[0], w[0], *size))
    ):
        raise ValueError(f"convolution: shapes x {x}, w {w}, y {y} do not fit (groups {groups})")
    return size


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
    """
    size = fitting_size(x.shape, w.shape, None, stride, padding, dilation, groups)
    wide = sum_dtype(x.dtype)
    if wide != x.dtype:
        both = x.astype(wide), w.astype(wide)
        return convolution(*both, stride, padding, dilation, groups).astype(x.dtype)
    work = 2 * len(x) * prod(size) * w.size
    y: NDArray[Any] = table.call(
        "convolution", x.dtype, work, x, w, stride, padding, dilation, groups
    )
    return y


def convolution_last(
    x: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> NDArray[Any]:
    """`convolution` of images with their channels last: (N, *S, C) to (N, *T, O)."""
    shape = (*x.shape[:1], *x.shape[-1:], *x.shape[1:-1])
    size = fitting_size(shape, w.shape, None, stride, padding, dilation, groups)
    work = 2 * len(x) * prod(size) * w.size
    given = (x, w, stride, padding, dilation, groups)
    y: NDArray[Any] = table.call("convolution_last", x.dtype, work, *given)
    return y


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
    shape = (len(g), w.shape[1] * groups, *size)
    fitting_size(shape, w.shape, g.shape, stride, padding, dilation, groups)
    wide = sum_dtype(g.dtype)
    if wide != g.dtype:
        both = g.astype(wide), w.astype(wide)
        return convolution_input(*both, stride, padding, dilation, groups, size).astype(g.dtype)
    work = 2 * g.size * prod(w.shape[1:])
    x: NDArray[Any] = table.call(
        "convolution_input", g.dtype, work, g, w, stride, padding, dilation, groups, size
    )
    return x


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
    shape = (*g.shape[1:2], x.shape[1] // groups, *size)
    fitting_size(x.shape, shape, g.shape, stride, padding, dilation, groups)
    wide = sum_dtype(x.dtype)
    if wide != x.dtype:
        both = x.astype(wide), g.astype(wide)
        return convolution_weight(*both, stride, padding, dilation, groups, size).astype(x.dtype)
    work = 2 * g.size * x.shape[1] // groups * prod(size)
    w: NDArray[Any] = table.call(
        "convolution_weight", x.dtype, work, x, g, stride, padding, dilation, groups, size
    )
    return w


# --------------------------------------------------------------------------------------- plain


def _by_columns(x: NDArray[Any], w: NDArray[Any], y: NDArray[Any], geo: _Geometry) -> None:
    """Fill y by one product per image, or per block where an image has few positions."""
    out, positions = y.shape[1], prod(y.shape[2:])
    matrix = _dense(w.reshape(geo.groups, out // geo.groups, prod(w.shape[1:])))  # (G, o, cK)
    merged = positions < _FEW_COLUMNS
    image_bytes = geo.groups * prod(w.shape[1:]) * positions * x.itemsize
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


def plain_convolution(
    x: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> NDArray[Any]:
    """`convolution` by products of matrices. See Note [Blocks] and Note [Shared rows]."""
    dtype, work = x.dtype, sum_dtype(x.dtype)
    geo = _Geometry(w.shape[2:], stride, padding, dilation, groups)
    size = output_size(x.shape[2:], geo.kernel, stride, padding, dilation)
    y = np.empty((len(x), len(w), *size), work)
    if y.size:
        fill = _by_rows if _shares_rows(w, geo) else _by_columns
        fill(x.astype(work, copy=False), w.astype(work, copy=False), y, geo)
    return y.astype(dtype, copy=False)


def plain_convolution_last(
    x: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> NDArray[Any]:
    """`convolution_last` with the channels moved there and back."""
    first = np.ascontiguousarray(np.moveaxis(x, -1, 1))
    y = plain_convolution(first, w, stride, padding, dilation, groups)
    return np.ascontiguousarray(np.moveaxis(y, 1, -1))


def plain_convolution_input(
    g: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
    size: Sizes,
) -> NDArray[Any]:
    """`convolution_input` by products of matrices."""
    dtype, work = g.dtype, sum_dtype(g.dtype)
    geo = _Geometry(w.shape[2:], stride, padding, dilation, groups)
    # Folding adds C K T elements up, flipping copies O K T: the first is slower for each.
    if all(s == 1 for s in stride) and 8 * w.shape[1] * groups > len(w):
        return _by_flipping(g, w, geo)
    x = np.zeros((len(g), groups * w.shape[1], *size), work)
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
    return plain_convolution(g, swapped, geo.stride, padding, geo.dilation, geo.groups)


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


def plain_convolution_weight(
    x: NDArray[Any],
    g: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
    size: Sizes,
) -> NDArray[Any]:
    """`convolution_weight` by products of matrices."""
    work = sum_dtype(x.dtype)
    geo = _Geometry(size, stride, padding, dilation, groups)
    c, o, positions = x.shape[1] // groups, g.shape[1] // groups, prod(g.shape[2:])
    rows = c * prod(size)
    total = np.zeros((groups, rows, o), work)
    merged = positions < _FEW_TERMS
    image_bytes = groups * rows * (positions + (0 if merged else o)) * work.itemsize
    least = -(-_FEW_TERMS // max(1, positions)) if merged else 1
    for part in _blocks(len(x) if g.size else 0, image_bytes, least):
        cols = _columns(x[part].astype(work, copy=False), geo, merged)  # (b, G, cK, m)
        sent = _positions(g[part].astype(work, copy=False), groups, merged)  # (b, G, o, m)
        # Not sent @ colsᵀ: BLAS is up to 1.5 times as fast if the smaller operand is transposed.
        total += np.add.reduce(cols @ sent.swapaxes(2, 3), axis=0)  # (G, cK, o)
    w = total.swapaxes(1, 2).reshape(groups * o, c, *size)
    return np.ascontiguousarray(w).astype(x.dtype, copy=False)
