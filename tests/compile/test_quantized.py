"""Codes in loops: eager's, every one, and no Python between the steps."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import ops
from funct.compile.executable import first_calls
from funct.compile.native import native
from funct.kernels import table
from tests import laws
from tests.compile.test_windows import compiled, looped, steps_python

RNG = np.random.default_rng(0)


def each(f: Any, *args: Any) -> Any:
    return xp.stack([f(*[a[k] for a in args]) for k in range(3)])


@pytest.mark.parametrize("wide", ["float32", "float64"])
@pytest.mark.parametrize("codes", ["uint8", "int8", "int32"])
@pytest.mark.parametrize("axis", [None, 1])
def test_rounding_to_codes_and_back(axis: int | None, codes: str, wide: str) -> None:
    """By one scale or one for each channel; of what is far off, halves, infinities and NaN."""
    x = RNG.normal(size=(3, 4, 5, 6)).astype(wide) * 60
    x[0, 0, 0] = np.nan, np.inf, -np.inf, 1e30, 0.125, -0.375
    size = () if axis is None else (5,)
    scale = xp.asarray(np.full(size, 0.25) * RNG.uniform(1, 1 + len(size), size), dtype=xp.float32)
    zero = xp.asarray(np.asarray(RNG.integers(0, 9, size)).astype(codes))
    dtype = np.dtype(codes)
    there = lambda x: ops.quantize(x, scale, zero, dtype, axis or 0)  # noqa: E731
    back = lambda q: ops.dequantize(q, scale, zero, np.dtype(wide), axis or 0)  # noqa: E731
    xs = xp.asarray(x)
    assert not steps_python(looped(there), xs)
    qs = each(there, xs)
    laws.same(compiled(looped(there), xs), qs)
    assert not steps_python(looped(back), qs)
    laws.same(compiled(looped(back), qs), each(back, qs))


def test_a_scale_that_is_not_positive_raises() -> None:
    """As eagerly, also where it comes with the call."""
    zero, dtype = xp.asarray(0, dtype=xp.int8), np.dtype(np.int8)

    def run(x: Any, scale: Any) -> Any:
        return ft.scan(lambda c, x: (c, ops.quantize(x, scale, zero, dtype, 0)), 0.0, x)[1]

    x = xp.ones((300, 4), dtype=xp.float32)
    one = xp.asarray(0.5, dtype=xp.float32)
    laws.same(ft.jit(run)(x, one), run(x, one))
    for scale in (0.0, -1.0, float("nan")):
        with pytest.raises(ft.errors.QuantizationError, match="scale must be"):
            ft.jit(run)(x, xp.asarray(scale, dtype=xp.float32))


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [(), (1,), (3, 2), (65,)])
@pytest.mark.parametrize("size", [(3, 8, 1), (300, 512, 4)])
def test_weights_of_few_bits(size: Any, rows: Any, dtype: str, bits: int) -> None:
    """Those that machine code takes as they are, and those that become numbers before the loop."""
    outputs, inputs, groups = size
    shape = (outputs, inputs * bits // 8)
    raw = RNG.integers(0, 256, shape).astype("uint8")
    codes = xp.asarray(raw.view("uint8" if bits == 4 else "int8"))
    scale = xp.asarray(RNG.uniform(0.1, 1, (outputs, groups)).astype(dtype))
    x = xp.asarray(RNG.normal(size=(3, *rows, inputs)).astype(dtype))
    f = lambda x: ops.weight_only_linear(x[::-1], codes, scale)  # noqa: E731
    assert not steps_python(looped(f), x)
    found, expected = compiled(looped(f), x), each(f, x)
    few = dtype == "float32" and rows != (65,) and outputs == 300
    if few and 2 * int(np.prod(rows)) * outputs * inputs >= 1 << 13 and table.met(("avx2", "fma")):
        np.testing.assert_array_equal(found, expected)
    else:
        eps = float(np.finfo(dtype).eps)
        laws.close(found, expected, 0, 16 * eps * float(xp.max(xp.abs(expected))))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("given", ["uint8", "int8"])
@pytest.mark.parametrize("codes", ["uint8", "int8"])
@pytest.mark.parametrize(("rows", "depth", "outputs"), [(1, 3, 2), (2, 300, 70), (33, 130, 65)])
def test_linear_layers(
    rows: int, depth: int, outputs: int, given: str, codes: str, relu: bool
) -> None:
    """Of few rows, whose weights are read where they lie, and of many; a chain of them."""
    w = xp.asarray(RNG.integers(-127, 128, (outputs, depth)).astype("int8"))
    bias = xp.asarray(RNG.integers(-999, 999, outputs).astype("int32"))
    scales = [xp.asarray(RNG.uniform(0.01, 0.02, outputs), dtype=xp.float32)]
    one, most = (xp.asarray(v, dtype=xp.float32) for v in (0.1, 0.7))
    zeros = xp.asarray(99, dtype=getattr(xp, given)), xp.asarray(7, dtype=getattr(xp, codes))
    held = w, bias, one, zeros[0], scales[0], one * scales[0], most, zeros[1]

    def f(x: Any) -> Any:
        return ops.quantized_linear(x, *held, relu)

    x = xp.asarray(RNG.integers(0, 128, (3, rows, depth)).astype(given))
    assert not steps_python(looped(f), x)
    laws.same(compiled(looped(f), x), each(f, x))


@pytest.mark.parametrize("given", ["uint8", "int8"])
@pytest.mark.parametrize("rows", [1, 5, 70])
def test_programs_on_codes_are_one_piece(rows: int, given: str) -> None:
    """At once, of few elements too: each op on codes takes longer to call than to compute."""
    depth, outputs, dtype = 40, 33, np.dtype(given)
    w = xp.asarray(RNG.integers(-127, 128, (outputs, depth)).astype("int8"))
    bias = xp.asarray(RNG.integers(-999, 999, outputs).astype("int32"))
    scale = xp.asarray(RNG.uniform(0.01, 0.02, outputs), dtype=xp.float32)
    of_x, of_y = (xp.asarray(v, dtype=xp.float32) for v in (0.1, 0.7))
    zero, last = xp.asarray(3, dtype=getattr(xp, given)), xp.asarray(9, dtype=getattr(xp, given))
    held = w, bias, of_x, zero, scale, of_x * scale, of_y, last

    def f(x: Any) -> Any:
        y = ops.quantized_linear(ops.quantize(x, of_x, zero, dtype, 0), *held, False)
        twice = ops.quantized_add(y, y, of_y, last, of_y, last, of_y, last, True)
        return ops.dequantize(twice, of_y, last, np.dtype("float32"), 0)

    x = xp.asarray(RNG.normal(size=(2, rows, depth)).astype("float32") * 9)
    graph = ft.make_graph(f)(x)
    assert first_calls(graph, "default") is None
    assert native(graph).whole is not None
    laws.same(ft.jit(f)(x), f(x))


@pytest.mark.parametrize("given", ["uint8", "int8"])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    ("channels", "outputs", "groups", "window", "stride", "d"),
    [(5, 9, 1, 1, 1, 2), (4, 6, 1, 3, 2, 2), (6, 6, 6, 3, 1, 2), (3, 6, 3, 5, 1, 1),
     (40, 70, 1, 3, 1, 2), (2, 4, 1, 2, 1, 3)],
)  # fmt: skip
def test_convolutions(
    channels: int, outputs: int, groups: int, window: int, stride: int, d: int, relu: bool,
    given: str,
) -> None:  # fmt: skip
    """In programs and in bodies, of images that lie anyhow: where one call computes them, it is a
    step of the program; the others have eager's codes, too.
    """
    w = RNG.integers(-127, 128, (outputs, channels // groups, *[window] * d)).astype("int8")
    bias = xp.asarray(RNG.integers(-999, 999, outputs).astype("int32"))
    scale = xp.asarray(RNG.uniform(0.01, 0.02, outputs), dtype=xp.float32)
    of_x, of_y = (xp.asarray(v, dtype=xp.float32) for v in (0.1, 0.7))
    zero, last = xp.asarray(3, dtype=getattr(xp, given)), xp.asarray(9, dtype=xp.uint8)
    held = xp.asarray(w), bias, of_x, zero, scale, of_x * scale, of_y, last
    pads = ((window // 2, window // 2),) * d
    how = (stride,) * d, pads, (1,) * d, groups, relu

    def f(x: Any) -> Any:
        return ops.quantized_convolution(xp.flip(x, axis=-1), *held, *how)

    def numbers(x: Any) -> Any:
        return ops.dequantize(f(x), of_y, last, np.dtype("float32"), 0)

    size = {1: (70,), 2: (13, 15), 3: (4, 5, 7)}[d]
    x = xp.asarray(RNG.integers(0, 128, (3, 2, channels, *size)).astype(given))
    laws.same(compiled(looped(f), x), each(f, x))
    one = xp.asarray(np.asarray(x)[0])
    for run in (f, numbers):
        laws.same(ft.jit(run)(one), run(one))
    at_once = groups == channels or (d == 2 and channels <= 8)
    if at_once and table.met(("llvm", "avx2")):
        assert native(ft.make_graph(numbers)(one)).whole is not None
