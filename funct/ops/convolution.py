"""Chapter: convolution. Three bilinear maps, each the transpose of the others.

`convolve` is the mathematicians' convolution of two sequences, its own transpose but for flips.

Layouts are torch's and ONNX's: x (N, C, *S), w (O, C / groups, *K), result (N, O, *T), over any
number of spatial axes. stride and dilation have one int per spatial axis, padding one (low, high)
pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.core import (
    Primitive,
    Sample,
    Shape,
    ShapeDtype,
    Value,
    common_dtype,
    product_dtype,
    product_in_wide,
)
from funct.errors import ExportError, ShapeError
from funct.kernels.windows import convolution as kernels
from funct.ops.broadcasting import first_axis, of_none
from funct.ops.families import structural
from funct.ops.slicing import onnx_slice

__all__ = ["convolution", "convolution_input", "convolution_weight", "convolve"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]
Pads = tuple[tuple[int, int], ...]


def _check(x: Any, w: Any, stride: Shape, padding: Pads, dilation: Shape, groups: int) -> None:
    rank = len(stride)
    if len(x.shape) != rank + 2 or len(w.shape) != rank + 2:
        raise ShapeError(
            f"convolution: x and w must have rank {rank + 2}, got x {x.shape} and w {w.shape}"
        )
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ShapeError(
            f"convolution: x {x.shape} has {x.shape[1]} channels, w {w.shape} with groups={groups} "
            f"takes {w.shape[1] * groups}"
        )


def _convolution_aval(args: Args, params: Params) -> ShapeDtype:
    x, w = args
    stride, padding, dilation, _ = params
    _check(x, w, *params)
    size = kernels.output_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if any(isinstance(n, int) and n < 0 for n in size):
        raise ShapeError(f"convolution: kernel {w.shape[2:]} is larger than the padded x {x.shape}")
    return ShapeDtype((x.shape[0], w.shape[0], *size), common_dtype(x.dtype, w.dtype))


def _same_type(raw: Any) -> Any:
    def run(a: Any, b: Any, *params: Any) -> Any:
        if a.dtype != b.dtype:
            dtype = common_dtype(a.dtype, b.dtype)
            a, b = a.astype(dtype), b.astype(dtype)
        return raw(a, b, *params)

    return run


def _convolution_rule_x(
    g: Value, w: Value, stride: Shape, padding: Pads, dilation: Shape, groups: int, x_shape: Shape
) -> Value:
    return ops.convolution_input(g, w, stride, padding, dilation, groups, x_shape[2:])


def _convolution_rule_w(
    g: Value, x: Value, stride: Shape, padding: Pads, dilation: Shape, groups: int, w_shape: Shape
) -> Value:
    return ops.convolution_weight(x, g, stride, padding, dilation, groups, w_shape[2:])


def _merge(x: Value, axis: int) -> Value:
    """(B, ...) -> the batch folded into `axis` of the rest, in front of what is there."""
    x = ops.move_axis(x, 0, axis)
    return ops.reshape(
        x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :])
    )


def _part(y: Value, axis: int, size: int) -> Value:
    """Undo `_merge`: the leading `size` of `axis` becomes axis 0."""
    y = ops.reshape(y, (*y.shape[:axis], size, y.shape[axis] // size, *y.shape[axis + 1 :]))
    return ops.move_axis(y, axis, 0)


@of_none
def _map_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    """convolution and convolution_input: lanes become images, or groups where w differs by lane."""
    a, w = args
    size = next(v.shape[0] for v, b in zip(args, batched, strict=True) if b)
    if not batched[1]:
        return _part(prim.fn(_merge(a, 0), w, *params), 0, size)
    a = _merge(first_axis(a, batched[0], size), 1)
    stride, padding, dilation, groups, *rest = params
    out = prim.fn(a, _merge(w, 0), stride, padding, dilation, groups * size, *rest)
    return _part(out, 1, size)


@of_none
def _weight_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size = next(v.shape[0] for v, b in zip(args, batched, strict=True) if b)
    x, g = (_merge(first_axis(v, b, size), 1) for v, b in zip(args, batched, strict=True))
    stride, padding, dilation, groups, kernel = params
    return _part(prim.fn(x, g, stride, padding, dilation, groups * size, kernel), 0, size)


def _onnx_attributes(stride: Shape, padding: Pads, dilation: Shape, groups: int) -> dict[str, Any]:
    pads = [low for low, _ in padding] + [high for _, high in padding]
    if min(pads, default=0) < 0:
        raise ExportError(f"convolution: ONNX pads must be >= 0, got padding {padding}")
    return {"strides": list(stride), "pads": pads, "dilations": list(dilation), "group": groups}


def _onnx_convolution(w: Any, x: str, k: str, *params: Any, bias: str | None = None) -> str:
    kernel, dtype = list(w.shape_of(k)[2:]), w.results[0].dtype
    inputs = [w.cast(v, dtype) for v in (x, k, bias) if v is not None]
    return str(w.op("Conv", *inputs, kernel_shape=kernel, **_onnx_attributes(*params)))


def _samples(rng: np.random.Generator) -> list[Sample]:
    n = rng.normal
    return [
        Sample((n(size=(2, 2, 6)), n(size=(3, 2, 3))), ((2,), ((1, 0),), (1,), 1)),
        Sample((n(size=(1, 4, 5, 4)), n(size=(4, 2, 3, 2))), ((1, 2), ((1, 1), (0, 1)), (2, 1), 2)),
    ]


@structural(
    _same_type(kernels.convolution), _convolution_rule_x, _convolution_rule_w,
    aval=_convolution_aval, batch=_map_batch, onnx=_onnx_convolution, samples=_samples,
)  # fmt: skip
def convolution(
    x: Value, w: Value, stride: Shape, padding: Pads, dilation: Shape, groups: int
) -> Value:
    """Cross-correlation of x (N, C, *S) with w (O, C / groups, *K): (N, O, *T)."""


def _input_aval(args: Args, params: Params) -> ShapeDtype:
    (g, w), (*_, groups, size) = args, params
    return ShapeDtype((g.shape[0], w.shape[1] * groups, *size), common_dtype(g.dtype, w.dtype))


def _input_rule_g(
    h: Value, w: Value, stride: Shape, padding: Pads, dilation: Shape, groups: int
) -> Value:
    return ops.convolution(h, w, stride, padding, dilation, groups)


def _input_rule_w(
    h: Value, g: Value, stride: Shape, padding: Pads, dilation: Shape, groups: int, w_shape: Shape
) -> Value:
    return ops.convolution_weight(h, g, stride, padding, dilation, groups, w_shape[2:])


def _onnx_input(w: Any, g: str, k: str, *params: Any) -> str:
    *head, size = params
    stride, padding, dilation, _ = head
    kernel, given = w.shape_of(k)[2:], w.shape_of(g)[2:]
    axes = zip(size, given, stride, padding, dilation, kernel, strict=True)
    extra = [
        n - ((t - 1) * s - low - high + d * (m - 1) + 1) for n, t, s, (low, high), d, m in axes
    ]
    if not all(isinstance(n, int) for n in extra):
        raise ExportError("convolution_input: ONNX needs fixed image sizes, got symbolic ones")
    both = [w.cast(v, w.results[0].dtype) for v in (g, k)]
    attributes = {"kernel_shape": list(kernel), "output_padding": extra, **_onnx_attributes(*head)}
    return str(w.op("ConvTranspose", *both, **attributes))


def _input_samples(rng: np.random.Generator) -> list[Sample]:
    n = rng.normal
    return [
        Sample((n(size=(2, 3, 3)), n(size=(3, 2, 3))), ((2,), ((1, 0),), (1,), 1, (6,))),
        Sample(
            (n(size=(1, 2, 3, 3)), n(size=(2, 1, 2, 2))),
            ((1, 1), ((0, 0), (0, 0)), (1, 1), 2, (4, 4)),
        ),
    ]


@structural(
    _same_type(kernels.convolution_input), _input_rule_g, _input_rule_w,
    aval=_input_aval, batch=_map_batch, onnx=_onnx_input, samples=_input_samples,
)  # fmt: skip
def convolution_input(
    g: Value, w: Value, stride: Shape, padding: Pads, dilation: Shape, groups: int, size: Shape
) -> Value:
    """Transpose of `convolution` in x: g (N, O, *T) to (N, C, *size)."""


def _weight_aval(args: Args, params: Params) -> ShapeDtype:
    (x, g), (*_, groups, size) = args, params
    return ShapeDtype((g.shape[1], x.shape[1] // groups, *size), common_dtype(x.dtype, g.dtype))


def _weight_rule_x(
    h: Value, g: Value, stride: Shape, padding: Pads, dilation: Shape, groups: int, x_shape: Shape
) -> Value:
    return ops.convolution_input(g, h, stride, padding, dilation, groups, x_shape[2:])


def _weight_rule_g(
    h: Value, x: Value, stride: Shape, padding: Pads, dilation: Shape, groups: int
) -> Value:
    return ops.convolution(x, h, stride, padding, dilation, groups)


def _onnx_weight(w: Any, x: str, g: str, *params: Any) -> str:
    stride, padding, dilation, groups, size = params
    swap = [1, 0, *range(2, len(size) + 2)]
    # the channels play the batch, and stride and dilation exchange their roles
    attributes = _onnx_attributes(dilation, padding, stride, 1)
    out = []
    for k in range(groups):
        part = [_onnx_group(w, v, k, groups) for v in (x, g)]
        swapped = [w.op("Transpose", w.cast(v, w.results[0].dtype), perm=swap) for v in part]
        out.append(w.op("Transpose", w.op("Conv", *swapped, **attributes), perm=swap))
    whole = out[0] if groups == 1 else w.op("Concat", *out, axis=0)
    return onnx_slice(w, whole, ((None, None, 1), (None, None, 1), *[(0, n, 1) for n in size]))


def _onnx_group(w: Any, x: str, k: int, groups: int) -> str:
    """Channels of one group."""
    shape = w.shape_of(x)
    n = shape[1] // groups
    whole = ((None, None, 1),) * (len(shape) - 2)
    return onnx_slice(w, x, ((None, None, 1), (k * n, k * n + n, 1), *whole)) if groups > 1 else x


def _weight_samples(rng: np.random.Generator) -> list[Sample]:
    n = rng.normal
    return [
        Sample((n(size=(2, 2, 6)), n(size=(2, 3, 3))), ((2,), ((1, 0),), (1,), 1, (3,))),
        Sample(
            (n(size=(1, 2, 4, 4)), n(size=(1, 2, 3, 3))),
            ((1, 1), ((0, 0), (0, 0)), (1, 1), 2, (2, 2)),
        ),
    ]


@structural(
    _same_type(kernels.convolution_weight), _weight_rule_x, _weight_rule_g,
    aval=_weight_aval, batch=_weight_batch, onnx=_onnx_weight, samples=_weight_samples,
)  # fmt: skip
def convolution_weight(
    x: Value, g: Value, stride: Shape, padding: Pads, dilation: Shape, groups: int, size: Shape
) -> Value:
    """Transpose of `convolution` in w: (O, C / groups, *size)."""


# Of two sequences ---------------------------------------------------------------------------------


def _convolve_raw(x: Any, y: Any, full: bool) -> Any:
    mode: Any = "full" if full else "valid"
    if x.ndim == 1:
        return product_in_wide(np.convolve, x, y, mode)
    lead = x.shape[:-1]
    lanes = zip(x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1]), strict=True)
    rows = [product_in_wide(np.convolve, a, b, mode) for a, b in lanes]
    return np.stack(rows).reshape(*lead, -1)


def _convolve_aval(args: Args, params: Params) -> ShapeDtype:
    x, y = args
    n, m = x.shape[-1], y.shape[-1]
    if n < 1 or m < 1 or (not params[0] and n < m):
        raise ShapeError(f"convolve: 1 <= m <= n is needed for lengths n, m, got {n} and {m}")
    size = n + m - 1 if params[0] else n - m + 1
    return ShapeDtype((*x.shape[:-1], size), product_dtype(x.dtype, y.dtype))


def _turned(x: Value) -> Value:
    return ops.flip(x, (len(x.shape) - 1,))


def _convolve_rule_x(g: Value, y: Value, full: bool) -> Value:
    return ops.convolve(g, _turned(y), False) if full else _full(g, _turned(y))


def _full(x: Value, y: Value) -> Value:
    return ops.convolve(x, y, True)


def _convolve_rule_y(g: Value, x: Value, full: bool) -> Value:
    return ops.convolve(g, _turned(x), False) if full else ops.convolve(_turned(x), g, False)


@of_none
def _convolve_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)
    x, y = (first_axis(a, b, size) for a, b in zip(args, batched, strict=True))
    return ops.convolve(x, y, *params)


def _onnx_convolve(w: Any, x: str, y: str, full: bool) -> str:
    if len(w.shape_of(x)) > 1:
        raise ExportError("convolve: ONNX's Conv has one kernel for all lanes, got a batch of them")
    pads = [int(w.shape_of(y)[0]) - 1] * 2 if full else [0, 0]
    x, y = (w.op("Unsqueeze", w.cast(v, w.results[0].dtype), w.dims((0, 1))) for v in (x, y))
    whole = ((None, None, 1), (None, None, 1))
    out = w.op("Conv", x, onnx_slice(w, y, (*whole, (None, None, -1))), pads=pads)
    return str(w.op("Squeeze", out, w.dims((0, 1))))


def _convolve_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((rng.normal(size=5), rng.normal(size=3)), (True,)),
        Sample((rng.normal(size=5), rng.normal(size=2)), (False,)),
        Sample((rng.normal(size=2), rng.normal(size=4)), (True,)),
        Sample((rng.normal(size=3) + 1j, rng.normal(size=3) * 1j), (True,)),
    ]


@structural(
    _convolve_raw, _convolve_rule_x, _convolve_rule_y, aval=_convolve_aval, batch=_convolve_batch,
    onnx=_onnx_convolve, samples=_convolve_samples,
)  # fmt: skip
def convolve(x: Value, y: Value, full: bool) -> Value:
    """z_k = Σ_j x_(k - j) y_j along the last axis, other axes equal.

    full: all n + m - 1 places where the two overlap, else the n - m + 1 where all of y does, which
    is not longer than x.
    """
