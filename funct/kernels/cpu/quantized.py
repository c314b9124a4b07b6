"""Layers on codes: exact sums of 16-bit pairs, the weights laid out once, codes in one pass.

`vpmaddwd` sums two products of 16-bit integers exactly, where AVX2's product of bytes saturates.
The differences from the zero point fit into 9 bits, so no correction is needed behind.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.convolution import convolution as convolve
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.byte_rows import byte_rows
from funct.kernels.cpu.codes import centred_pairs, centred_planes, requantized, rounded
from funct.kernels.cpu.convolution import convolver
from funct.kernels.cpu.products import multiplier as multiplier_of
from funct.kernels.cpu.products import multiply, pairs
from funct.kernels.cpu.record import address

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.quantized import Codes
    from funct.kernels.windows import Sliding

__all__ = ["convolution", "linear", "quantize"]

_BYTES = frozenset([np.dtype(np.uint8), np.dtype(np.int8)])
_FARTHEST = 255 * 128  # the largest product there can be
_INT32_MAX = 2**31 - 1
_FLOAT32_EXACT = 2**24
_FEW_OUTPUTS = 4  # per group; they would fill few lanes of a tile
_KEPT = 64

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_size_t,) * 3
_lock = threading.Lock()
_panels: OrderedDict[Any, tuple[NDArray[Any], NDArray[Any]]] = OrderedDict()


def _kept(w: NDArray[Any], kind: Any, make: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
    """The panels of w, made once for the weights that are used most recently.

    What lies at an address may have changed: the weights themselves are compared.
    """
    key = (address(w), w.shape, w.strides, kind)
    with _lock:
        found = _panels.get(key)
    if found is not None and _same(found[0], w):
        with _lock:
            if key in _panels:
                _panels.move_to_end(key)
        return found[1]
    made = make(w)
    with _lock:
        _panels[key] = (w.copy(), made)
        while len(_panels) > _KEPT:
            _panels.popitem(last=False)
    return made


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    if a.flags.c_contiguous and b.flags.c_contiguous:
        return not _memcmp(address(a), address(b), a.nbytes)
    return np.array_equal(a, b)


def _fits(x: NDArray[Any], w: NDArray[Any], bias: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether codes are bytes, and no sum, with its bias, leaves int32."""
    if x.dtype not in _BYTES or dtype not in _BYTES or w.dtype != np.int8:
        return False
    if not (x.size and w.size):
        return False
    farthest = max(int(bias.max()), -int(bias.min()))
    return _FARTHEST * prod(w.shape[1:]) + farthest <= _INT32_MAX


def linear(
    x: NDArray[Any], x_zero_point: int, w: NDArray[Any], bias: NDArray[np.int32], codes: Codes
) -> NDArray[Any]:
    """See `funct.kernels.quantized.linear`."""
    if not _fits(x, w, bias, np.dtype(codes.dtype)) or x.ndim < 2:
        return NotImplemented
    outputs, depth = w.shape
    x2 = x.reshape(-1, depth)
    sums = byte_rows(x2, x_zero_point, w)
    if sums is NotImplemented:
        words = centred_pairs(x2, x_zero_point)
        made = multiplier_of(*words.shape, outputs, "s16", True)
        panels = _kept(w, "linear", lambda w: made.panels(pairs(w)))
        sums = multiply(made, words, panels, outputs)
    y = requantized(sums, bias, codes)
    return y.reshape(*x.shape[:-1], outputs)


def convolution(
    x: NDArray[Any], x_zero_point: int, w: NDArray[Any], bias: NDArray[np.int32], codes: Codes,
    slide: Sliding,
) -> NDArray[Any]:  # fmt: skip
    """See `funct.kernels.quantized.convolution`."""
    outputs, c, *kernel = w.shape
    groups = slide.groups
    if not _fits(x, w, bias, np.dtype(codes.dtype)) or len(kernel) > 3:
        return NotImplemented
    if outputs // groups < _FEW_OUTPUTS:
        return _by_floats(x, x_zero_point, w, bias, codes, slide)
    size = slide.size(x.shape[2:], w.shape[2:])
    if not prod(size):
        return NotImplemented
    words = -(-c // 2)
    read = (len(x), words * groups, *x.shape[2:])
    laid = (outputs, words, *kernel)
    made = convolver("s16", read, laid, size, slide, False)

    def make(w: NDArray[Any]) -> NDArray[Any]:
        halves = np.zeros((outputs, words, prod(kernel), 2), np.int16)
        both = w.reshape(outputs, c, prod(kernel))
        halves[:, : c - c // 2, :, 0] = both[:, ::2]
        halves[:, : c // 2, :, 1] = both[:, 1::2]
        return made.panels(halves.view(np.int32))

    # few channels are merged with taps in one order or another, as the geometry says
    panels = _kept(w, (groups, (x.shape, slide) if words <= 16 else ()), make)
    planes = centred_planes(x, x_zero_point, groups)
    sums = memory.fresh((len(x), outputs, *size), np.dtype(np.int32))
    made.run(planes, panels, sums)
    return requantized(sums, bias, codes)


def _by_floats(
    x: NDArray[Any], x_zero_point: int, w: NDArray[Any], bias: NDArray[np.int32], codes: Codes,
    slide: Sliding,
) -> NDArray[Any]:  # fmt: skip
    """The same for few outputs per group, where sums are exact in float32."""
    if _FARTHEST * prod(w.shape[1:]) >= _FLOAT32_EXACT:
        return NotImplemented
    centred = x.astype(np.float32)
    centred -= np.float32(x_zero_point)
    sums = convolve(centred, w.astype(np.float32), *slide)
    return requantized(sums.astype(np.int32), bias, codes) if sums.size else NotImplemented


def quantize(
    x: NDArray[Any], scale: Any, zero_point: Any, qmin: int, qmax: int, dtype: Any, axis: int
) -> NDArray[Any]:
    """See `funct.kernels.quantized.quantize`."""
    one = np.ndim(scale) == 0 and np.ndim(zero_point) == 0
    if not one or np.dtype(dtype) not in _BYTES or not x.size:
        return NotImplemented
    number = float(np.float32(scale))
    return rounded(x, number, int(zero_point), qmin, qmax, np.dtype(dtype))
