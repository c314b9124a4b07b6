"""Layers on codes: exact sums of words (`words.py`), weights laid out once, codes in one pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.byte_planes import convolver as by_planes
from funct.kernels.cpu.convolution.convolution import convolver as tiles
from funct.kernels.cpu.convolution.depthwise import convolution_of_codes, weights_of_codes
from funct.kernels.cpu.convolution.squares import TAPS
from funct.kernels.cpu.convolution.winograd import panels as of_places
from funct.kernels.cpu.convolution.winograd import plan, served
from funct.kernels.cpu.quantized.byte_pixels import convolver as by_pixels
from funct.kernels.cpu.quantized.codes import (
    BYTE,
    farthest,
    fit,
    planes_of_words,
    requantized,
    rounded,
    scaled,
    to_codes_fields,
)
from funct.kernels.cpu.quantized.images import Images
from funct.kernels.cpu.quantized.kept import kept
from funct.kernels.cpu.quantized.layer import layer
from funct.kernels.cpu.quantized.words import Words, best
from funct.kernels.quantized.affine import Codes
from funct.kernels.windows.convolution import convolution as convolve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

__all__ = ["convolution", "convolver", "dequantize", "images", "linear", "quantize"]

_BYTES = frozenset([np.dtype(np.uint8), np.dtype(np.int8)])
_INT, _FLOAT = np.dtype(np.int32), np.dtype(np.float32)
_FLOAT32_EXACT = 2**24
_FARTHEST_ZERO = 1 << 16  # codes less it are exact in float32, in NumPy too
_SQUARE = 4  # as many times as large are the sums that squares make
_FEW_OUTPUTS = 4  # per group; they would fill few lanes of a tile,
_FEW_PRODUCTS = 8  # as do more of them, of as few channels, in less time than sums are turned


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
    if not _bytes(x, w, codes):
        return NotImplemented
    offsets = np.asarray(bias, np.int32).tobytes()
    factors = np.asarray(codes.multiplier, np.float32).tobytes()
    how = int(x_zero_point), w.shape, offsets, factors, codes[1:], slide, best()
    made = convolver(x.shape, x.dtype, *how)
    return NotImplemented if made is None else made(np.ascontiguousarray(x), w)


_Run = Callable[["NDArray[Any]", "NDArray[np.int8]"], "NDArray[Any]"]  # of codes and weights
_Limits = tuple[int, int, int, Any]


@functools.lru_cache(256)
def convolver(
    x: Sizes, dtype: np.dtype[Any], zero_point: int, w: Sizes, bias: bytes, factor: bytes,
    limits: _Limits, slide: Sliding, words: Words,
) -> _Run | None:  # fmt: skip
    """The convolution of dense images of codes of this shape; None where sums could leave int32.

    bias: int32, one for each output. factor: float32, one for each or one for all. limits: of the
    codes of the result.
    """
    outputs, c, *kernel = w
    size = slide.size(x[2:], w[2:])
    if not _fits(w, size, bias):
        return None
    at_once = images(x, dtype, zero_point, w, bias, factor, limits, slide, words)
    if at_once is not None:
        return at_once.function()
    offset, factors = np.frombuffer(bias, np.int32), np.frombuffer(factor, np.float32)
    if _has_few_products(w, slide):
        exact = farthest(2 * c * prod(kernel), bias) < _FLOAT32_EXACT
        given = x, dtype, zero_point, w, offset, Codes(factors, *limits), slide
        ways = (_by_lines(*given, number) for number in (_INT, *([_FLOAT] if exact else [])))
        found = next(filter(None, ways), None)
        if found is not None:
            return found
        if exact and outputs // slide.groups < _FEW_OUTPUTS:
            return _of_numbers(*given)
    planes = planes_of_words(x, dtype, zero_point, slide.groups, words)
    written: np.dtype[Any] = np.dtype(limits[-1])
    make = memory.maker((x[0], outputs, *size), written)
    fields, (_, multiplier) = to_codes_fields(offset, Codes(factors, *limits))
    fields = {name: fields[name] for name in ("zero_point", "low", "high")}
    coded = _coded(x, w, size, slide, words, words.zero_point(zero_point, dtype))
    fill = coded(BYTE[written], fields)

    def of_words(x: NDArray[Any], w: NDArray[np.int8]) -> NDArray[Any]:
        fill(planes(x), w, y := make(), offset, multiplier)
        return y

    return of_words


def images(
    x: Sizes, dtype: np.dtype[Any], zero_point: int, w: Sizes, bias: bytes, factor: bytes,
    limits: _Limits, slide: Sliding, words: Words,
) -> Images | None:  # fmt: skip
    """The same where it is one call; None where it is none, too."""
    if not _fits(w, slide.size(x[2:], w[2:]), bias):
        return None
    offset, factors = np.frombuffer(bias, np.int32), np.frombuffer(factor, np.float32)
    given = x, dtype, zero_point, w, offset, Codes(factors, *limits), slide, words
    found = by_pixels(*given)
    return by_planes(*given) if found is None and _has_few_products(w, slide) else found


def _fits(w: Sizes, size: Sizes, bias: bytes) -> bool:
    """Whether there are results, of three axes at most, and their sums stay in int32."""
    return len(size) <= 3 and bool(prod(size)) and fit(prod(w[1:]), bias)


def _has_few_products(w: Sizes, slide: Sliding) -> bool:
    few = w[0] // slide.groups  # words of a single channel would be filled up with nothing
    return few < _FEW_OUTPUTS or w[1] == 1 or max(few, w[1]) < _FEW_PRODUCTS


def _coded(
    x: Sizes, w: Sizes, size: Sizes, slide: Sliding, words: Words, zero: int
) -> Callable[[str, dict[str, int]], Callable[..., None]]:
    """What gives, of an element and fields for codes, what fills them from images in words, and
    weights: by squares where these are exact and worth it.
    """
    (outputs, c, *kernel), groups = w, slide.groups
    count = -(-c // words.count)
    read, laid = (x[0], count * groups, *x[2:]), (outputs, count, *kernel)
    squares = None
    if words.centred and served(w[2:], slide) and fit(_SQUARE * c * TAPS, b""):
        squares = plan(words.dot, read, laid, size, slide, False)

    def by_squares(written: str, fields: dict[str, int]) -> Callable[..., None]:
        assert squares is not None
        fill, make = squares.to_codes(written, fields), functools.partial(of_places, groups=groups)

        def run(planes: Any, w: Any, y: Any, *of_channels: Any) -> None:
            fill(planes, kept(w, ("squares", groups), make), y, *of_channels)

        return run

    def by_taps(written: str, fields: dict[str, int]) -> Callable[..., None]:
        made = tiles(words.dot, read, laid, size, slide, False)
        fill = made.to_codes(written, fields)
        # few channels are merged with taps in one order or another, as the geometry says
        how = (words.dot, groups, (x, slide) if count <= 16 else ())

        def panels_of(w: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
            taps = np.ascontiguousarray(w).reshape(outputs, c, prod(kernel))
            return made.panels(words.weights(taps)), words.offset(w)

        def run(planes: Any, w: Any, y: Any, bias: Any, multiplier: Any) -> None:
            panels, offset = kept(w, how, panels_of)
            if words.centred:
                fill(planes, panels, y, 0, bias, multiplier)
            else:
                fill(planes, panels, y, zero, bias - zero * offset, multiplier)

        return run

    return by_taps if squares is None else by_squares


def _of_numbers(
    x: Sizes, dtype: np.dtype[Any], zero_point: int, w: Sizes, bias: NDArray[np.int32],
    codes: Codes, slide: Sliding,
) -> _Run:  # fmt: skip
    """The same where sums of float32 are exact."""
    sums = (x[0], w[0], *slide.size(x[2:], w[2:]))
    to_codes = requantized(sums, codes.multiplier, codes[1:])

    def run(x: NDArray[Any], w: NDArray[np.int8]) -> NDArray[Any]:
        centred = x.astype(_FLOAT)
        centred -= np.float32(zero_point)
        sums = convolve(centred, w.astype(_FLOAT), *slide)
        return to_codes(sums.astype(_INT), bias)

    return run


def _by_lines(
    x: Sizes, dtype: np.dtype[Any], zero_point: int, w: Sizes, bias: NDArray[np.int32],
    codes: Codes, slide: Sliding, number: np.dtype[Any],
) -> _Run | None:  # fmt: skip
    """The same for few outputs per group, in words of bytes or where floats are exact."""
    run = convolution_of_codes(x, dtype, zero_point, w, np.dtype(codes.dtype), slide, number)
    if run is None:
        return None
    how = zero_point, dtype, bias.tobytes(), codes.multiplier.tobytes(), codes[1:], number

    def weights(w: NDArray[np.int8]) -> Any:
        return weights_of_codes(w, zero_point, dtype, bias, codes, number)

    return lambda x, w: run(x, *kept(w, how, weights))


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
