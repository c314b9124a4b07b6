"""Layers on codes: exact sums of words (`words.py`), weights laid out once, codes in one pass."""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.convolution import convolver
from funct.kernels.cpu.convolution.depthwise import convolution_of_codes, weights_of_codes
from funct.kernels.cpu.convolution.squares import TAPS
from funct.kernels.cpu.convolution.winograd import panels as of_places
from funct.kernels.cpu.convolution.winograd import plan, served
from funct.kernels.cpu.quantized.codes import (
    farthest,
    fit,
    planes_of_words,
    requantized,
    rounded,
    scaled,
)
from funct.kernels.cpu.quantized.kept import kept
from funct.kernels.cpu.quantized.layer import layer
from funct.kernels.cpu.quantized.words import PAIRS, best
from funct.kernels.windows.convolution import convolution as convolve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.quantized.affine import Codes
    from funct.kernels.windows.views import Sizes, Sliding

__all__ = ["convolution", "dequantize", "linear", "quantize"]

_BYTES = frozenset([np.dtype(np.uint8), np.dtype(np.int8)])
_FLOAT32_EXACT = 2**24
_FARTHEST_ZERO = 1 << 16  # codes less it are exact in float32, in NumPy too
_SQUARE = 4  # as many times as large are the sums that squares make
_FEW_OUTPUTS = 4  # per group; they would fill few lanes of a tile


def _bytes(x: NDArray[Any], w: NDArray[Any], codes: Codes) -> bool:
    """Whether there are codes, and they are bytes."""
    return bool(_are_bytes(x.dtype, w.dtype, codes.dtype) and x.size and w.size)


@functools.lru_cache(64)
def _are_bytes(x: np.dtype[Any], w: np.dtype[Any], y: Any) -> bool:
    return x in _BYTES and np.dtype(y) in _BYTES and w == np.int8


def linear(
    x: NDArray[Any], x_zero_point: int, w: NDArray[Any], bias: NDArray[np.int32], codes: Codes
) -> NDArray[Any]:
    """See `funct.kernels.quantized.affine.linear`."""
    if not _bytes(x, w, codes) or x.ndim < 2:
        return NotImplemented
    outputs, depth = w.shape
    offsets = np.asarray(bias, np.int32).tobytes()
    factors = np.asarray(codes.multiplier, np.float32).tobytes()
    how = int(x_zero_point), offsets, factors, codes[1:], best()
    made = layer(x.size // depth, depth, x.dtype, *how)
    if made is None:
        return NotImplemented
    if made.packing is None:
        laid = np.ascontiguousarray(w), made.bias
    else:
        laid = kept(w, (made.words.dot, made.zero_point, offsets), made.laid)
    y: NDArray[Any] = made(np.ascontiguousarray(x), *laid)
    return y if x.ndim == 2 else y.reshape(*x.shape[:-1], outputs)


def convolution(
    x: NDArray[Any], x_zero_point: int, w: NDArray[Any], bias: NDArray[np.int32], codes: Codes,
    slide: Sliding,
) -> NDArray[Any]:  # fmt: skip
    """See `funct.kernels.quantized.affine.convolution`."""
    outputs, c, *kernel = w.shape
    groups = slide.groups
    offsets = np.asarray(bias, np.int32).tobytes()
    if not _bytes(x, w, codes) or len(kernel) > 3 or not fit(c * prod(kernel), offsets):
        return NotImplemented
    if outputs // groups < _FEW_OUTPUTS:
        exact = farthest(2 * c * prod(kernel), offsets) < _FLOAT32_EXACT
        return _of_few(x, x_zero_point, w, bias, codes, slide, exact)
    size = slide.size(x.shape[2:], w.shape[2:])
    if not prod(size):
        return NotImplemented
    words = best()
    count = -(-c // words.count)
    planes = planes_of_words(x, x_zero_point, groups, words)
    sums = memory.fresh((len(x), outputs, *size), np.dtype(np.int32))
    laid = (outputs, count, *kernel)
    if words.centred and _by_squares(planes, w, sums, laid, slide):
        return requantized(sums, bias, codes)
    made = convolver(words.dot, planes.shape, laid, size, slide, False)

    def make(w: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        taps = np.ascontiguousarray(w).reshape(outputs, c, prod(kernel))
        return made.panels(words.weights(taps)), words.offset(w)

    # few channels are merged with taps in one order or another, as the geometry says
    how = (words.dot, groups, (x.shape, slide) if count <= 16 else ())
    panels, offset = kept(w, how, make)
    zero = words.zero_point(int(x_zero_point), x.dtype)
    made.run(planes, panels, sums, around=0 if words.centred else zero)
    return requantized(sums, bias - zero * offset, codes)


def _by_squares(
    planes: NDArray[np.int32], w: NDArray[np.int8], sums: NDArray[np.int32], laid: Sizes,
    slide: Sliding,
) -> bool:  # fmt: skip
    """Fill the sums of pairs by squares, where these are exact and worth it. laid: the shape of the
    weights, in words.
    """
    if not served(laid[2:], slide) or not fit(_SQUARE * w.shape[1] * TAPS, b""):
        return False
    made = plan(PAIRS.dot, planes.shape, laid, sums.shape[2:], slide, False)
    if made is None:
        return False
    of_groups = functools.partial(of_places, groups=slide.groups)
    return made.run(False, planes, kept(w, ("squares", slide.groups), of_groups), sums)


def _of_few(
    x: NDArray[Any], x_zero_point: int, w: NDArray[Any], bias: NDArray[np.int32], codes: Codes,
    slide: Sliding, exact: bool,
) -> NDArray[Any]:  # fmt: skip
    """The same for few outputs per group, in words of bytes or where floats are exact."""
    factors = np.asarray(codes.multiplier, np.float32).tobytes()
    for number in [np.dtype(np.int32), *([np.dtype(np.float32)] if exact else [])]:
        how = int(x_zero_point), x.dtype, bias.tobytes(), factors, codes[1:], number

        def make(w: NDArray[Any], number: np.dtype[Any] = number) -> Any:
            return weights_of_codes(w, int(x_zero_point), x.dtype, bias, codes, number)

        prepared = functools.partial(kept, w, how, make)
        written = np.dtype(codes.dtype)
        y = convolution_of_codes(x, how[0], w.shape, prepared, written, slide, number)
        if y is not NotImplemented:
            return y
    if not exact:
        return NotImplemented
    centred = x.astype(np.float32)
    centred -= np.float32(x_zero_point)
    sums = convolve(centred, w.astype(np.float32), *slide)
    return requantized(sums.astype(np.int32), bias, codes) if sums.size else NotImplemented


def quantize(
    x: NDArray[Any], scale: Any, zero_point: Any, qmin: int, qmax: int, dtype: Any, axis: int
) -> NDArray[Any]:
    """See `funct.kernels.quantized.affine.quantize`."""
    several = getattr(scale, "ndim", 0) or getattr(zero_point, "ndim", 0)
    if several or np.dtype(dtype) not in _BYTES or not x.size:
        return NotImplemented
    return rounded(x, float(scale), int(zero_point), qmin, qmax, np.dtype(dtype))


def dequantize(q: NDArray[Any], scale: Any, zero_point: Any, axis: int, dtype: Any) -> NDArray[Any]:
    """See `funct.kernels.quantized.affine.dequantize`."""
    several = getattr(scale, "ndim", 0) or getattr(zero_point, "ndim", 0)
    if several or np.dtype(dtype) != np.float32 or not q.size or abs(zero_point) > _FARTHEST_ZERO:
        return NotImplemented
    return scaled(q, float(np.float32(scale)), int(zero_point))
