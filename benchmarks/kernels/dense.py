"""Convolutions and products of matrices, in G operations/s.

funct/peer above 1 means that funct is faster. Depthwise convolutions count bytes: they are bounded
by memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes  # noqa: F401  (NumPy knows bfloat16 by name)
import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.kernels.row import Row
from benchmarks.peers import optional
from funct.device import host
from funct.kernels.cpu.convolution import convolution as taps
from funct.kernels.cpu.convolution import weight_gradient
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.linalg.dots import dot as dotted
from funct.kernels.linalg.dots import vdot
from funct.kernels.linalg.matrices import solve_triangular
from funct.kernels.linalg.products import matmul
from funct.kernels.windows.convolution import convolution, convolution_input, convolution_weight
from funct.kernels.windows.views import Sliding

TITLE = "dense kernels, one thread [G/s]"

# x, w, stride, padding, groups, and perhaps dilation
CONVOLUTIONS = {
    "3x3, 64 to 64, 56x56": ((8, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1),
    "3x3, 256 to 256, 14x14": ((8, 256, 14, 14), (256, 256, 3, 3), 1, 1, 1),
    "3x3, 1024 to 512, 16x16": ((2, 1024, 16, 16), (512, 1024, 3, 3), 1, 1, 1),
    "3x3, 512 to 512, 7x7": ((8, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1),
    "1x1, 64 to 64, 14x14": ((8, 64, 14, 14), (64, 64, 1, 1), 1, 0, 1),
    "1x1, 256 to 128, 28x28": ((8, 256, 28, 28), (128, 256, 1, 1), 1, 0, 1),
    "1x1, stride 2, 512 to 1024, 28x28": ((8, 512, 28, 28), (1024, 512, 1, 1), 2, 0, 1),
    "1x1, 64 to 1, 128x128": ((1, 64, 128, 128), (1, 64, 1, 1), 1, 0, 1),
    "1x1, 1152 to 48, one pixel": ((1, 1152, 1, 1), (48, 1152, 1, 1), 1, 0, 1),
    "1x1x1, 16 to 16, 16x32x32": ((2, 16, 16, 32, 32), (16, 16, 1, 1, 1), 1, 0, 1),
    "1x1, 512 to 2048, 7x7": ((8, 512, 7, 7), (2048, 512, 1, 1), 1, 0, 1),
    "1x1, 256 to 64, 7x7": ((8, 256, 7, 7), (64, 256, 1, 1), 1, 0, 1),
    "7x7 stem, stride 2, 224x224": ((2, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1),
    "3x3, 16 to 32, 32x32": ((8, 16, 32, 32), (32, 16, 3, 3), 1, 1, 1),
    "3x3, 3 to 32, 32x32": ((32, 3, 32, 32), (32, 3, 3, 3), 1, 1, 1),
    "3x3, 1 to 32, 28x28": ((64, 1, 28, 28), (32, 1, 3, 3), 1, 1, 1),
    "3x3, stride 2, 3 to 32, 224x224": ((2, 3, 224, 224), (32, 3, 3, 3), 2, 1, 1),
    "3x3x3, 1 to 16, 16x32x32": ((2, 1, 16, 32, 32), (16, 1, 3, 3, 3), 1, 1, 1),
    "3x3, 4 to 320, 64x64": ((1, 4, 64, 64), (320, 4, 3, 3), 1, 1, 1),
    "3x3, stride 2, 3 to 512, 28x28": ((1, 3, 28, 28), (512, 3, 3, 3), 2, 1, 1),
    "3x3, 64 to 3, 64x64": ((2, 64, 64, 64), (3, 64, 3, 3), 1, 1, 1),
    "16x16 patches, 3 to 192, 224x224": ((1, 3, 224, 224), (192, 3, 16, 16), 16, 0, 1),
    "16x16 patches, 3 to 192, 112x112": ((2, 3, 112, 112), (192, 3, 16, 16), 16, 0, 1),
    "9x9 patches, 128 to 2, 28x28": ((8, 128, 28, 28), (2, 128, 9, 9), 9, 0, 1),
    "63, 4 to 4, 1000": ((8, 4, 1000), (4, 4, 63), 1, 31, 1),
    "3x3, stride 2, 64 to 128, 56x56": ((8, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1),
    "3x3, 4 groups, 128, 28x28": ((8, 128, 28, 28), (128, 32, 3, 3), 1, 1, 4),
    "3x3, 32 groups, 128, 28x28": ((8, 128, 28, 28), (128, 4, 3, 3), 1, 1, 32),
    "3x3, 32 groups, 256, 56x56": ((4, 256, 56, 56), (256, 8, 3, 3), 1, 1, 32),
    "3x3, 32 groups, 512, 14x14": ((2, 512, 14, 14), (512, 16, 3, 3), 1, 1, 32),
    "4x4, 100 to 512, one pixel": ((16, 512, 4, 4), (100, 512, 4, 4), 1, 0, 1),
    "2, stride 2, 256 to 256, 3000": ((2, 256, 3000), (256, 256, 2), 2, 0, 1),
    "5, 64 to 64, 1024": ((8, 64, 1024), (64, 64, 5), 1, 2, 1),
    "3x3x3, 32 to 32, 16x28x28": ((1, 32, 16, 28, 28), (32, 32, 3, 3, 3), 1, 1, 1),
    "3x3x3, stride 2, 16 to 32, 16x32x32": ((2, 16, 16, 32, 32), (32, 16, 3, 3, 3), 2, 1, 1),
    "3x3, dilation 2, 64, 28x28": ((8, 64, 28, 28), (64, 64, 3, 3), 1, 2, 1, 2),
    "3x3, stride 2, dilation 2, 64, 28x28": ((8, 64, 28, 28), (64, 64, 3, 3), 2, 2, 1, 2),
    "3x3, stride 2, 8 groups, 256, 28x28": ((8, 256, 28, 28), (256, 32, 3, 3), 2, 1, 8),
    "4x4, stride 2, 64 to 128, 32x32": ((8, 64, 32, 32), (128, 64, 4, 4), 2, 1, 1),
    "2x2 patches, 96 to 192, 56x56": ((8, 96, 56, 56), (192, 96, 2, 2), 2, 0, 1),
    "2x2 patches, 16 to 64, 56x56": ((4, 16, 56, 56), (64, 16, 2, 2), 2, 0, 1),
    "7x7, 64 to 64, 12x12": ((4, 64, 12, 12), (64, 64, 7, 7), 1, 0, 1),
    "2x2, stride 3, 96 to 1, 15x12": ((1, 96, 15, 12), (1, 96, 2, 2), 3, 0, 1),
    "1x1, 4 groups, 4 to 512, 28x28": ((1, 4, 28, 28), (512, 1, 1, 1), 1, 0, 4),
    "10, stride 5, 1 to 512, 16000": ((1, 1, 16000), (512, 1, 10), 5, 0, 1),
    "400, stride 160, 1 to 64, 16000": ((1, 1, 16000), (64, 1, 400), 160, 0, 1),
    "3, dilation 8, 64, 4096": ((2, 64, 4096), (64, 64, 3), 1, 8, 1, 8),
    "3, 3 to 48, 1024, one image": ((1, 3, 1024), (48, 3, 3), 1, 1, 1),
    "3x3, 512 to 512, one pixel": ((8, 512, 1, 1), (512, 512, 3, 3), 1, 1, 1),
    "3x3x3, stride 2, 1 to 96, 12x12x12": ((1, 1, 12, 12, 12), (96, 1, 3, 3, 3), 2, 1, 1),
    "4, stride 2, 96 to 8, 250": ((16, 96, 250), (8, 96, 4), 2, 1, 1),
    "25, 1 to 256, 2048": ((4, 1, 2048), (256, 1, 25), 1, 12, 1),
    "5x5x5, 64 to 96, 4x8x8": ((2, 64, 4, 8, 8), (96, 64, 5, 5, 5), 1, 2, 1),
    "5x5, 64 to 64, 7x7": ((8, 64, 7, 7), (64, 64, 5, 5), 1, 2, 1),
    "1x1x1, stride 2, 4 to 64, 12x12x12": ((32, 4, 12, 12, 12), (64, 4, 1, 1, 1), 2, 0, 1),
    "3x3, 64 to 64, 4x4": ((8, 64, 4, 4), (64, 64, 3, 3), 1, 1, 1),
    "3x3, 8 to 8, 8x8, one image": ((1, 8, 8, 8), (8, 8, 3, 3), 1, 1, 1),
    "3x3, 64 to 256, 7x7, one image": ((1, 64, 7, 7), (256, 64, 3, 3), 1, 1, 1),
    "3x3, dilation 8, 4 to 128, 56x56": ((1, 4, 56, 56), (128, 4, 3, 3), 1, 8, 1, 8),
    "1x1, 64 to 64, 14x14, one image": ((1, 64, 14, 14), (64, 64, 1, 1), 1, 0, 1),
    "1x1, 32 groups, 256, 28x28": ((2, 256, 28, 28), (256, 8, 1, 1), 1, 0, 32),
    "1x1, 80 to 480, 14x14": ((8, 80, 14, 14), (480, 80, 1, 1), 1, 0, 1),
    "1x1, 64 to 32, 112x112": ((2, 64, 112, 112), (32, 64, 1, 1), 1, 0, 1),
    "1x1, 64 to 3, 56x56": ((8, 64, 56, 56), (3, 64, 1, 1), 1, 0, 1),
    "1x1, stride 2, 16 to 32, 32x32, one image": ((1, 16, 32, 32), (32, 16, 1, 1), 2, 0, 1),
}
HALF_CONVOLUTIONS = {  # peers take half a second for a larger one in float16
    "float16": ("1x1, 256 to 128, 28x28",),
    "bfloat16": ("3x3, 64 to 64, 56x56", "3x3, 256 to 256, 14x14", "1x1, 256 to 128, 28x28"),
}
LAST = (  # also with channels last in memory
    "3x3, 64 to 64, 56x56", "1x1, 256 to 128, 28x28", "3x3, stride 2, 3 to 32, 224x224",
    "3x3, 32 groups, 128, 28x28", "1x1, 32 groups, 256, 28x28", "1x1, 4 groups, 4 to 512, 28x28",
    "1x1, 64 to 32, 112x112", "3x3, 16 to 32, 32x32", "3x3, 32 groups, 512, 14x14",
)  # fmt: skip
DEPTHWISE = {
    "3x3, 64, 56x56": ((8, 64, 56, 56), (64, 1, 3, 3), 1, 1, 64),
    "3x3, 256, 14x14": ((8, 256, 14, 14), (256, 1, 3, 3), 1, 1, 256),
    "3x3, 32, 112x112": ((8, 32, 112, 112), (32, 1, 3, 3), 1, 1, 32),
    "3x3, 512, 7x7": ((8, 512, 7, 7), (512, 1, 3, 3), 1, 1, 512),
    "3x3, 960, 7x7, 32 images": ((32, 960, 7, 7), (960, 1, 3, 3), 1, 1, 960),
    "5x5, 64, 56x56": ((8, 64, 56, 56), (64, 1, 5, 5), 1, 2, 64),
    "9, 64, 1024": ((8, 64, 1024), (64, 1, 9), 1, 4, 64),
    "3x3, stride 2, 96, 56x56": ((8, 96, 56, 56), (96, 1, 3, 3), 2, 1, 96),
    "3x3, stride 2, 96, 112x112": ((4, 96, 112, 112), (96, 1, 3, 3), 2, 1, 96),
    "3x3, stride 3, 8 to 64, 33x33": ((8, 8, 33, 33), (64, 1, 3, 3), 3, 1, 8),
    "3x3, stride 3, 256, 28x28": ((2, 256, 28, 28), (256, 1, 3, 3), 3, 1, 256),
    "7x7, stride 4, 64, 112x112": ((4, 64, 112, 112), (64, 1, 7, 7), 4, 3, 64),
    "15, stride 4, 64, 1000": ((32, 64, 1000), (64, 1, 15), 4, 0, 64),
    "5x5x5, 96, 4x4x4": ((8, 96, 4, 4, 4), (96, 1, 5, 5, 5), 1, 2, 96),
    "3x3, stride 2, 512, 7x7": ((8, 512, 7, 7), (512, 1, 3, 3), 2, 1, 512),
    "7x7, 256, one pixel": ((8, 256, 7, 7), (256, 1, 7, 7), 1, 0, 256),
    "7x7, 96, 56x56": ((2, 96, 56, 56), (96, 1, 7, 7), 1, 3, 96),
    "11x11, stride 2, 64, 56x56": ((2, 64, 56, 56), (64, 1, 11, 11), 2, 5, 64),
    "3x3, dilation 2, 64, 56x56": ((2, 64, 56, 56), (64, 1, 3, 3), 1, 2, 64, 2),
}
MATRICES = ("int8", "int32", "int64")
INTEGER_PRODUCTS = (  # of few rows or columns, small ones, and a stack of small ones
    ((1, 1024), (1024, 1024)), ((4, 1024), (1024, 1024)), ((2736, 86), (86, 1)),
    ((32, 32), (32, 32)), ((423, 9, 139), (423, 139, 44)),
)  # fmt: skip
COMPILED = (
    (128, 784, 512), (1024, 256, 1024), (32, 512, 512), (8, 1024, 1024), (256, 1024, 768),
    (128, 512, 784),
)  # fmt: skip
HALVES = {  # the dot that bounds each
    "float16": "f32",
    "bfloat16": "bf16" if supported(DOTS["bf16"], host()) else "f32",
}
HALF_PRODUCTS = (
    ((192, 192), (192, 192)), ((512, 512), (512, 512)), ((1024, 1024), (1024, 1024)),
    ((1, 4096), (4096, 4096)), ((256, 16, 16), (256, 16, 16)), ((1, 300), (300, 64)),
)  # fmt: skip
PRODUCTS = (
    ((256, 256), (256, 256)), ((1, 1024), (1024, 1024)), ((2, 1024), (1024, 1024)),
    ((8, 1024), (1024, 1024)), ((16, 1024), (1024, 1024)),
    ((1024, 16), (16, 1024)), ((1024, 1), (1, 1024)), ((16, 4096), (4096, 16)),
    ((1500, 1500), (1500, 16)), ((1500, 1500), (1500, 48)),
    ((256, 16, 16), (256, 16, 16)), ((32, 1, 64), (32, 64, 128)), ((100, 3, 64), (64, 64)),
    ((16, 64, 128), (16, 128, 128)), ((10_000, 5, 5), (10_000, 5, 5)),
    ((10_000, 8, 8), (10_000, 8, 1)),
    ((8, 1, 1024), (8, 1024, 1024)), ((100, 200, 200), (100, 200, 1)),
    ((4, 4), (4, 4)), ((128,), (128, 128)), ((10, 5, 5), (10, 5, 5)),
)  # fmt: skip


def rows() -> Iterator[Row]:
    """Every row."""
    for name, case in CONVOLUTIONS.items():
        yield from _convolutions("conv " + name, *case)
    for name, case in DEPTHWISE.items():
        yield from _convolutions("depthwise " + name, *case, dense=False)
    for name in (
        "3x3, 64, 56x56", "3x3, 512, 7x7", "3x3, stride 2, 96, 56x56",
        "3x3, stride 2, 96, 112x112", "7x7, 96, 56x56", "11x11, stride 2, 64, 56x56",
    ):  # fmt: skip
        case = DEPTHWISE[name]
        yield from _convolutions(f"depthwise {name}, last", *case, dense=False, last=True)
    for name in LAST:
        yield from _convolutions(f"conv {name}, last", *CONVOLUTIONS[name], last=True)
    for dtype, dot in HALVES.items():
        for name in HALF_CONVOLUTIONS[dtype]:
            case = CONVOLUTIONS[name]
            yield from _convolutions(f"conv {name}, {dtype}", *case, dtype=dtype, dot=dot)
        name = "3x3, 64, 56x56"
        case = DEPTHWISE[name]
        yield from _convolutions(f"depthwise {name}, {dtype}", *case, dense=False, dtype=dtype)
    name = "3x3, 64 to 64, 56x56"
    case = CONVOLUTIONS[name]
    yield from _convolutions(
        f"conv {name}, bfloat16, last", *case, last=True, dtype="bfloat16", dot=HALVES["bfloat16"]
    )
    yield from _by_squares()
    yield from _products()
    yield from _compiled_products()
    yield from _systems()


def _normal(shape: Any, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def _by_squares() -> Iterator[Row]:
    """What squares gain over sums tap by tap, which are the peer here."""
    for n, c, o, size in ((8, 64, 64, 56), (8, 256, 256, 14), (32, 32, 64, 16)):
        slide = Sliding((1, 1), ((1, 1), (1, 1)), (1, 1), 1)
        x, g, w = (_normal(s, k) for k, s in enumerate(
            ((n, c, size, size), (n, o, size, size), (o, c, 3, 3))))  # fmt: skip
        ways: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
            "": (convolution, taps.convolution, (x, w)),
            ", dx": (convolution_input, taps.convolution_input, (g, w, (size, size))),
            ", dw": (convolution_weight, weight_gradient.convolution_weight, (x, g, (3, 3))),
        }
        for which, (ours, plain, (a, b, *rest)) in ways.items():
            yield Row(
                f"by squares, {c} to {o}, {size}x{size}{which}", 2 * g.size * c * 9,
                functools.partial(ours, a, b, *slide, *rest),
                {"tap by tap": functools.partial(plain, a, b, slide, *rest)}, "f32",
            )  # fmt: skip


def _convolutions(
    name: str, x_shape: Any, w_shape: Any, stride: int, padding: int, groups: int,
    dilation: int = 1, *, dense: bool = True, last: bool = False, dtype: str = "float32",
    dot: str = "f32",
) -> Iterator[Row]:  # fmt: skip
    torch: Any = optional("torch")
    d = len(x_shape) - 2
    x, w = (_normal(shape, k).astype(np.dtype(dtype)) for k, shape in enumerate((x_shape, w_shape)))
    static = ((stride,) * d, ((padding, padding),) * d, (dilation,) * d, groups)
    y = convolution(x, w, *static)
    g = _normal(y.shape, 2).astype(x.dtype)
    if last:
        x, g = [np.moveaxis(np.ascontiguousarray(np.moveaxis(v, 1, -1)), -1, 1) for v in (x, g)]
    work: float = 2 * y.size * w[0].size if dense else x.itemsize * (x.size + y.size)
    of = dot if dense else None
    peers: list[dict[str, Any]] = [{}, {}, {}]
    if torch is not None:
        tx, tw, tg = (_tensor(torch, v) for v in (x, w, g))
        if last:
            tw = tw.contiguous(memory_format=torch.channels_last)
        f = (torch.conv1d, torch.conv2d, torch.conv3d)[d - 1]
        how = [stride] * d, [padding] * d, [dilation] * d

        def backward(mask: list[bool]) -> Any:
            return lambda: torch.ops.aten.convolution_backward(
                tg, tx, tw, None, *how, False, [0] * d, groups, mask
            )

        peers = [
            {"torch": lambda: f(tx, tw, None, *how, groups)},
            {"torch": backward([True, False, False])},
            {"torch": backward([False, True, False])},
        ]
    yield Row(name, work, lambda: convolution(x, w, *static), peers[0], of)
    yield Row(
        name + ", dx", work, lambda: convolution_input(g, w, *static, x_shape[2:]), peers[1], of
    )
    yield Row(
        name + ", dw", work, lambda: convolution_weight(x, g, *static, w_shape[2:]), peers[2], of
    )


def _tensor(torch: Any, x: Any) -> Any:
    """The same memory; NumPy's bfloat16 is not torch's."""
    if x.dtype.itemsize > 2:
        return torch.from_numpy(x)
    return torch.from_numpy(x.view(np.int16)).view(getattr(torch, x.dtype.name))


def _products() -> Iterator[Row]:
    torch: Any = optional("torch")
    n = 192
    for dtype in MATRICES:
        x = (_normal((n, n), 0) * 10).astype(dtype)
        peers: dict[str, Any] = {"numpy": lambda x=x: np.matmul(x, x)}
        if torch is not None:
            t = torch.from_numpy(x)
            peers["torch"] = lambda t=t: t @ t
        yield Row(f"matmul {n}, {dtype}", 2 * n**3, lambda x=x: matmul(x, x), peers, "f32")
    for dtype in MATRICES:
        for a, b in INTEGER_PRODUCTS:
            yield _integer_product(dtype, a, b)
    for a, b in PRODUCTS:
        x, y = _normal(a, 0), _normal(b, 1)
        peers = {"numpy": lambda x=x, y=y: np.matmul(x, y)}
        if torch is not None:
            both = [torch.from_numpy(v) for v in (x, y)]
            peers["torch"] = lambda both=both: both[0] @ both[1]
        work = 2 * x.size * b[-1]
        yield Row(f"matmul {a} {b}", work, lambda x=x, y=y: matmul(x, y), peers, "f32")
        if x.ndim == y.ndim:  # weights that lie by outputs
            w = np.ascontiguousarray(y.mT)
            peers = {"numpy": lambda x=x, w=w: np.matmul(x, w.mT)}
            if torch is not None:
                both = [torch.from_numpy(v) for v in (x, w)]
                peers["torch"] = lambda both=both: both[0] @ both[1].mT
            name = f"matmul {a} {w.shape}.T"
            yield Row(name, work, lambda x=x, w=w: matmul(x, w.mT), peers, "f32")
    for shape in ((100, 3, 3), (3000, 3, 3), (32, 32), (192, 192)):
        yield _complex_products(shape)
    x, y, v = _normal((300, 400), 0), _normal((1000, 1000), 1), _normal((1000,), 2)
    terms = _normal((300_000,), 3).astype(np.float64)
    pairs = terms + 1j * terms[::-1]
    waves, wave = (y + 1j * y.T).astype(np.complex64), v.astype(np.complex64)
    for name, work, call, plain, dot in (
        ("matmul (300, 400) by itself", 2 * 300 * x.size, lambda: matmul(x, x.T), lambda: x @ x.T,
         "f32"),
        ("matmul (1000, 1000) (1000,)", 2 * y.size, lambda: matmul(y, v), lambda: y @ v, "f32"),
        ("matmul (1000, 1000) (1000,), complex64", 8 * y.size, lambda: matmul(waves, wave),
         lambda: waves @ wave, "f32"),
        ("vdot (300000,), float64", 2 * terms.size, lambda: vdot(terms, terms),
         lambda: np.vdot(terms, terms), "f64"),
        ("dot (300000,), complex128", 8 * pairs.size, lambda: dotted(pairs, pairs),
         lambda: pairs @ pairs, "f64"),
    ):  # fmt: skip
        yield Row(name, work, call, {"numpy": plain}, dot)
    for dtype, dot in HALVES.items():
        for a, b in HALF_PRODUCTS:
            yield _half_product(dtype, dot, a, b)
        yield _half_product(dtype, dot, (1, 4096), (4096, 4096), turned=True)


def _complex_products(shape: Any) -> Row:
    x, y = (_normal(shape, k) + 1j * _normal(shape, k + 2) for k in range(2))
    peers: dict[str, Any] = {"numpy": lambda: np.matmul(x, y)}
    torch: Any = optional("torch")
    if torch is not None:
        both = [torch.from_numpy(v) for v in (x, y)]
        peers["torch"] = lambda: both[0] @ both[1]
    work = 8 * x.size * shape[-1]
    return Row(f"matmul {shape} {shape}, {x.dtype}", work, lambda: matmul(x, y), peers, "f32")


def _compiled_products() -> Iterator[Row]:
    """Layers and their gradients, whose operands lie transposed, as parts of compiled programs."""
    torch: Any = optional("torch")
    for m, k, n in COMPILED:
        for name, turns in {"x @ w": (0, 0), "x @ w.T": (0, 1), "x.T @ w": (1, 0)}.items():
            shapes = [v[::-1] if turn else v for v, turn in zip(((m, k), (k, n)), turns)]
            given = [_normal(shape, seed) for seed, shape in enumerate(shapes)]

            def layer(x: Any, w: Any, turns: Any = turns) -> Any:
                return (x.T if turns[0] else x) @ (w.T if turns[1] else w) + 1

            made = ft.jit(layer)
            call = functools.partial(made, *map(xp.asarray, given))
            peers: dict[str, Any] = {"numpy": functools.partial(layer, *given)}
            if torch is not None:
                peers["torch"] = functools.partial(layer, *map(torch.from_numpy, given))
            yield Row(f"compiled {name}, ({m}, {k}, {n})", 2 * m * k * n, call, peers, "f32")


def _systems() -> Iterator[Row]:
    torch: Any = optional("torch")
    cases = ((128, 8, 8, "float32"), (64, 32, 1, "float32"), (20, 6, 2, "complex64"))
    for count, m, n, dtype in cases:
        turn = np.asarray(1j if dtype == "complex64" else 1, dtype)
        a = (_normal((count, m, m), 0) + 8 * np.eye(m, dtype=np.float32)) * turn
        b = _normal((count, m, n), 1) * turn
        peers: dict[str, Any] = {"numpy, whole": lambda a=a, b=b: np.linalg.solve(a, b)}
        if torch is not None:
            both = [torch.from_numpy(v) for v in (a, b)]
            peers["torch"] = lambda both=both: torch.linalg.solve_triangular(*both, upper=False)
        call = functools.partial(solve_triangular, a, b, True)
        name, work = f"triangular systems ({count}, {m}, {n})", count * m * m * n
        name, work = (name, work) if dtype == "float32" else (f"{name}, {dtype}", 4 * work)
        yield Row(name, work, call, peers, "f32")


def _integer_product(dtype: str, a: Any, b: Any) -> Row:
    x, y = ((_normal(s, k) * 10).astype(dtype) for k, s in enumerate((a, b)))
    peers: dict[str, Any] = {"numpy": lambda: np.matmul(x, y)}
    torch: Any = optional("torch")
    if torch is not None:
        both = [torch.from_numpy(v) for v in (x, y)]
        peers["torch"] = lambda: both[0] @ both[1]
    work = 2 * x.size * b[-1]
    return Row(f"matmul {a} {b}, {dtype}", work, lambda: matmul(x, y), peers, "f32")


def _half_product(dtype: str, dot: str, a: Any, b: Any, turned: bool = False) -> Row:
    """turned: whether the columns of the second matrix are what lies in memory."""
    torch: Any = optional("torch")
    x, y = (_normal(s, k).astype(np.dtype(dtype)) for k, s in enumerate((a, b)))
    y = np.ascontiguousarray(y.T).T if turned else y
    peers: dict[str, Any] = {"float32": _float32_product(x, y)}
    if torch is not None:
        both = [_tensor(torch, v) for v in (x, y)]
        peers["torch"] = lambda: both[0] @ both[1]
    name = f"matmul {a} {b}{'.T' if turned else ''}, {dtype}"
    return Row(name, 2 * x.size * b[-1], lambda: matmul(x, y), peers, dot)


def _float32_product(x: Any, y: Any) -> Callable[[], object]:
    """The same numbers, kept in float32."""
    wide = [v.astype(np.float32) for v in (x, y)]
    return lambda: wide[0] @ wide[1]
