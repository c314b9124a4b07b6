"""Layers on codes of eight bits and weights of few, in G operations/s, beside float32.

Numbers to numbers is a compiled program, as users run one: quantize, the layer, dequantize.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.kernels.row import Row
from funct import ops
from funct.kernels.cpu.products.integers import multiplier, multiply
from funct.kernels.cpu.quantized.words import best
from funct.kernels.quantized import affine as quantized
from funct.kernels.quantized.weight_only import weight_only_linear
from funct.kernels.windows.convolution import convolution
from funct.kernels.windows.views import Sliding

TITLE = "layers on codes, one thread [G/s]"

LAYERS = (
    (128, 1024, 1024), (512, 512, 512), (1, 1024, 1024), (1, 4096, 4096), (128, 64, 64),
    (32, 128, 128),
)  # fmt: skip
WEIGHTS = (1, 4096, 4096), (1, 512, 512), (16, 1024, 1024)  # rows, outputs, depth
CONVOLUTIONS = {  # x, w, groups, stride
    "3x3, 64 to 64, 28x28": ((8, 64, 28, 28), (64, 64, 3, 3), 1, 1),
    "3x3, 256 to 256, 14x14": ((8, 256, 14, 14), (256, 256, 3, 3), 1, 1),
    "3x3, 64 to 64, 56x56, one image": ((1, 64, 56, 56), (64, 64, 3, 3), 1, 1),
    "3x3, 16 to 16, 7x7, one image": ((1, 16, 7, 7), (16, 16, 3, 3), 1, 1),
    "3x3, 1 to 32, 28x28": ((16, 1, 28, 28), (32, 1, 3, 3), 1, 1),
    "1x1, 256 to 128, 28x28": ((8, 256, 28, 28), (128, 256, 1, 1), 1, 1),
    "1x1, 64 to 64, 14x14, one image": ((1, 64, 14, 14), (64, 64, 1, 1), 1, 1),
    "1x1, 24 to 144, 56x56": ((8, 24, 56, 56), (144, 24, 1, 1), 1, 1),
    "1x1, 32 groups, 256, 28x28": ((2, 256, 28, 28), (256, 8, 1, 1), 32, 1),
    "3x3, 32 groups, 256, 28x28": ((2, 256, 28, 28), (256, 8, 3, 3), 32, 1),
    "3x3, 32 groups, 128, 28x28": ((2, 128, 28, 28), (128, 4, 3, 3), 32, 1),
    "3x3, depthwise 64, 28x28": ((8, 64, 28, 28), (64, 1, 3, 3), 64, 1),
    "3x3, depthwise 64, 7x7": ((8, 64, 7, 7), (64, 1, 3, 3), 64, 1),
    "5x5, depthwise 64, 14x14": ((8, 64, 14, 14), (64, 1, 5, 5), 64, 1),
    "7x7, stride 2, 3 to 64, 224x224": ((1, 3, 224, 224), (64, 3, 7, 7), 1, 2),
    "3x3, stride 2, 64 to 128, 56x56": ((2, 64, 56, 56), (128, 64, 3, 3), 1, 2),
}


def rows() -> Iterator[Row]:
    """Every row."""
    yield from _bytes()
    for rows, depth, outputs in LAYERS:
        yield from _layer(rows, depth, outputs)
    yield from _convolutions()
    yield from _weight_only()
    million = _normal((1000, 1000), 0)
    scale = np.float32(0.05)
    yield Row(
        "quantize 1e6", 5 * million.size,
        lambda: quantized.quantize(million, scale, 99, 0, 255, np.uint8, 0),
        {"numpy": lambda: quantized.plain_quantize(million, scale, 99, 0, 255, np.uint8, 0)},
    )  # fmt: skip
    codes = quantized.quantize(million, scale, 99, 0, 255, np.uint8, 0)
    yield Row(
        "dequantize 1e6", 5 * million.size,
        lambda: quantized.dequantize(codes, scale, 99, 0, np.float32),
        {"numpy": lambda: quantized.plain_dequantize(codes, scale, 99, 0, np.float32)},
    )  # fmt: skip


def _normal(shape: Any, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def _bytes() -> Iterator[Row]:
    """Words of codes by weights laid out before, to int32: a layer without its ends."""
    rows, depth, outputs = 512, 2048, 512
    rng, words = np.random.default_rng(0), best()
    w = rng.integers(-127, 128, (outputs, depth)).astype(np.int8)
    x = rng.integers(0, 256, (rows, depth * 4 // words.count)).astype(np.uint8).view(np.int32)
    made = multiplier(rows, x.shape[1], outputs, words.dot, True)
    panels = made.panels(words.weights(w[:, :, None]))
    real, weights = _normal((rows, depth), 0), _normal((outputs, depth), 1)
    yield Row(
        f"int8 product {rows}x{depth}x{outputs}, laid out", 2 * rows * depth * outputs,
        lambda: multiply(made, x, panels, outputs), {"float32": lambda: real @ weights.T},
        words.dot,
    )  # fmt: skip


def _layer(rows: int, depth: int, outputs: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    real, weights = _normal((rows, depth), 0), _normal((outputs, depth), 1)
    x = rng.integers(0, 256, (rows, depth)).astype(np.uint8)
    w = rng.integers(-127, 128, (outputs, depth)).astype(np.int8)
    factor = np.full(outputs, 1e-4, np.float32)
    to_codes = np.zeros(outputs, np.int32), quantized.Codes(factor, 7, 7, 255, np.uint8)
    peers = {"float32": lambda: np.maximum(real @ weights.T, 0)}

    work, name = 2 * rows * depth * outputs, f"int8 linear {rows}x{depth}x{outputs}"
    ours: dict[str, Callable[[], object]] = {
        "codes to codes": lambda: quantized.linear(x, 99, w, *to_codes),
        "numbers": functools.partial(_compiled_layer(w), xp.asarray(real)),
    }
    for kind, call in ours.items():
        yield Row(f"{name}, {kind}", work, call, peers, best().dot)


def _compiled_layer(w: Any) -> Callable[[Any], object]:
    """A quantized program of one layer, from numbers to numbers."""
    scale = xp.asarray(np.asarray([0.05, 0.1], np.float32))
    zero = xp.asarray(np.asarray([99, 7], np.uint8))
    of_weights = xp.full(len(w), 0.01, dtype=xp.float32)
    bias = xp.zeros(len(w), dtype=xp.int32), scale[0], zero[0], of_weights, scale[0] * of_weights
    codes, kernels = np.dtype(np.uint8), xp.asarray(w)

    def run(x: Any) -> Any:
        q = ops.quantize(x, scale[0], zero[0], codes, 0)
        y = ops.quantized_linear(q, kernels, *bias, scale[1], zero[1], True)
        return ops.dequantize(y, scale[1], zero[1], np.dtype(np.float32), 0)

    return ft.jit(run)


def _convolutions() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for name, (xs, ws, groups, stride) in CONVOLUTIONS.items():
        pad = ws[-1] // 2
        slide = Sliding((stride, stride), ((pad, pad), (pad, pad)), (1, 1), groups)
        image, kernels = _normal(xs, 0), _normal(ws, 1)
        x = rng.integers(0, 256, xs).astype(np.uint8)
        w = rng.integers(-127, 128, ws).astype(np.int8)
        factor = np.full(len(w), 1e-4, np.float32)
        few = np.zeros(len(w), np.int32), quantized.Codes(factor, 7, 7, 255, np.uint8)
        pixels = len(x) * math.prod(slide.size(xs[2:], ws[2:]))
        ours: dict[str, Callable[[], object]] = {
            f"int8 conv {name}": functools.partial(quantized.convolution, x, 99, w, *few, slide)
        }
        if name.endswith("one image"):
            made = _compiled_convolution(w, slide)
            ours[f"int8 conv {name}, compiled"] = functools.partial(made, xp.asarray(x))
        peer = {"float32": functools.partial(convolution, image, kernels, *slide)}
        for row, call in ours.items():
            yield Row(row, 2 * pixels * w.size, call, peer, best().dot)


def _compiled_convolution(w: Any, slide: Sliding) -> Callable[[Any], object]:
    """A program of one layer, from codes to codes."""
    kernels, zero = xp.asarray(w), xp.asarray(7, dtype=xp.uint8)
    one, of_weights = xp.asarray(1.0, dtype=xp.float32), xp.full(len(w), 1e-4, dtype=xp.float32)
    bias = xp.zeros(len(w), dtype=xp.int32), one, zero, of_weights, of_weights, one, zero
    return ft.jit(lambda x: ops.quantized_convolution(x, kernels, *bias, *slide, True))


def _weight_only() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for rows, outputs, depth in WEIGHTS:
        x, large = _normal((rows, depth), 0), _normal((outputs, depth), 1)
        scale = np.ones((outputs, depth // 128), np.float32)
        for bits, codes in (
            (4, rng.integers(0, 256, (outputs, depth // 2)).astype(np.uint8)),
            (8, rng.integers(-128, 128, (outputs, depth)).astype(np.int8)),
        ):
            yield Row(
                f"int{bits} weights, {rows}x{depth}x{outputs}", 2 * rows * large.size,
                functools.partial(weight_only_linear, x, codes, scale),
                {"float32": functools.partial(_product, x, large)}, "f32",
            )  # fmt: skip


def _product(x: Any, w: Any) -> Any:
    return x @ w.T
