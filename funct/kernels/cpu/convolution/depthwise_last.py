"""Convolution of small groups, and both of its adjoints, where channels are last (`pixels.py`).

Images of few pixels a line, whose channels are first, are turned for it, and the result turned
back: lines so short would leave most lanes of vectors empty.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from funct.device import Code, Host, host, printed
from funct.kernels.channels import channels_first, channels_last
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.convolution.axes import countless, filled
from funct.kernels.cpu.convolution.pixels import (
    PIXELS,
    Pattern,
    pixels_text,
    strip_pixels,
    sums_text,
)
from funct.kernels.cpu.convolution.turned import turned
from funct.kernels.cpu.record import address
from funct.kernels.cpu.runners import filling
from funct.kernels.windows.convolution import fitting_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from funct.kernels.windows.views import Sizes, Sliding

__all__ = ["convolution", "convolution_input", "convolution_weight"]

_ELEMENT = {"float32": "f32", "float64": "f64"}
_TASKS = 4  # per core
_PARTS = 8  # sums of weights that are added in the end, whatever the number of cores
_LONG_LINE = 28 << 10  # bytes
_FEW_BYTES = 16  # of the pixels of a line: few, which are turned where more taps are met than
_FEW_TAPS = 9  # so many, by the stride,
_FEW_PRODUCTS = 1 << 16  # and the work is worth three calls
_TAPS, _PHASES = 128, 64  # of a kernel, of an adjoint; texts grow with them

_PLACES = tuple([PIXELS.place(name) for name in ("x", "w", "y")])


class Plan(Struct, frozen=True, eq=False):
    """What is known of shapes. job: all but addresses. channels: those of each block of weights.
    zeros: a line of x.
    """

    pattern: Pattern
    job: NDArray[np.int64]
    channels: NDArray[np.int64]
    zeros: NDArray[Any]


@functools.lru_cache(512)
def _plan(
    dtype: np.dtype[Any], x: Sizes, kernel: Sizes, slide: Sliding, out: Sizes, how: str
) -> Plan | None:  # fmt: skip
    """x: shape of what is read. out: *T of what is written or, with sums, met.

    how: "pixels", "adjoint" or "sums".
    """
    images, count, *size = x
    lanes = host().vector_bytes // dtype.itemsize
    sizes = (*x, *out, *kernel)
    group = count // slide.groups
    if count < lanes or min(sizes) < 1 or prod(kernel) * group > _TAPS or len(size) > 3:
        return None
    if lanes % group or 1 < group == lanes:  # a vector of one group is a row of tiles as well
        return None
    if how == "adjoint" and countless(out, slide, _PHASES):
        return None
    axes, kernel = filled(tuple(size), out, kernel, slide, how == "adjoint")
    touched = images * count * (prod(size) + prod(out)) * dtype.itemsize
    vectors = 2 if count >= 2 * lanes else 1
    strip = strip_pixels(axes[2].stride, host(), False)
    pattern = Pattern(
        _ELEMENT[dtype.name], tuple([tuple([p.taps for p in a.phases]) for a in axes]),
        tuple([a.step for a in axes]), tuple([a.stride for a in axes]), kernel, vectors, group,
        how != "sums" and count % lanes == 0 and host().overflows(touched),
        axes[2].size * count * dtype.itemsize >= _LONG_LINE,
        how != "sums" and axes[2].out // axes[2].step < strip,
    )  # fmt: skip
    lines = images * axes[0].out * axes[1].out
    zeros = np.zeros(axes[2].size * count, dtype)
    job = PIXELS.fill(
        tasks=min(lines, _PARTS if how == "sums" else _TASKS * host().cores), lines=lines,
        channels=count, x=0, w=0, y=0, zeros=address(zeros),
        **{f"{name}{k}": v for k, a in enumerate(axes)
           for name, v in (("size", a.size), ("out", a.out), ("low", a.low))},
    )  # fmt: skip
    block = vectors * lanes
    first = np.minimum(np.arange(0, count, block), count - block)
    return Plan(pattern, job, first[:, None] + np.arange(block), zeros)


@functools.lru_cache(1 << 10)
def _filling(made: Plan, name: str, streams: bool) -> Callable[..., None]:
    code = _code(replace(made.pattern, streams=streams), name, host())
    return filling(code.address(name), made.job, _PLACES)


@functools.cache
def _code(pattern: Pattern, name: str, target: Host) -> Code:
    return printed(sums_text if name == "sums" else pixels_text, pattern, target)


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution`."""
    return _run(x, w, slide, None, "pixels")


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_input`."""
    return _run(g, w, slide, size, "adjoint")


def _run(
    x: NDArray[Any], w: NDArray[Any], slide: Sliding, out: Sizes | None, how: str
) -> NDArray[Any]:
    """out: *T of the result; None: that of a convolution."""
    if not x.shape[1] == len(w) == w.shape[1] * slide.groups:
        return NotImplemented
    size = fitting_size(x.shape, w.shape, None, slide) if out is None else out
    turns = _turns(x, w, slide, size)
    if not turns and not _fits(x, w, slide):
        return NotImplemented
    made = _plan(x.dtype, x.shape, w.shape[2:], slide, size, how)
    if made is None:
        return NotImplemented
    if turns:
        last = turned(x.reshape(*x.shape[:2], -1)).reshape(len(x), *x.shape[2:], -1)
        x = channels_first(last)
    packed = _of_taps(w, how == "adjoint")[made.channels].swapaxes(1, 2).copy()
    y = memory.fresh((len(x), *size, len(w)), x.dtype)
    streams = made.pattern.streams and address(y) % host().vector_bytes == 0
    _filling(made, "pixels", streams)(channels_last(x), packed, y)
    if turns:
        return turned(y.reshape(len(y), -1, len(w))).reshape(len(y), len(w), *size)
    return channels_first(y)


def _turns(x: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes) -> bool:
    """Whether channels that are first are turned, each a group of its own. size: of the result."""
    taps, pixels = prod(w.shape[2:]), min(prod(size), prod(x.shape[2:]))
    return (
        w.shape[1] == 1
        and x.dtype == w.dtype
        and x.flags.c_contiguous
        and min(size[-1], x.shape[-1]) * x.itemsize <= _FEW_BYTES
        and taps * max(slide.stride) > _FEW_TAPS
        and len(x) * len(w) * pixels * taps > _FEW_PRODUCTS
    )


def _fits(x: NDArray[Any], other: NDArray[Any], slide: Sliding) -> bool:
    """Whether x has its channels last, in groups that vectors may hold."""
    return (
        x.shape[1] % slide.groups == 0 < x.shape[1]
        and x.dtype == other.dtype
        and not x.flags.c_contiguous
        and channels_last(x).flags.c_contiguous
    )


def _of_taps(w: NDArray[Any], adjoint: bool) -> NDArray[Any]:
    """(channel of the result, tap · channel of its group that is read)."""
    outputs, group, *_ = w.shape
    if adjoint and group > 1:
        of_groups = w.reshape(outputs // group, group, group, -1).transpose(0, 2, 3, 1)
        return of_groups.reshape(outputs, -1)
    return w.reshape(outputs, group, -1).swapaxes(1, 2).reshape(outputs, -1)


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.windows.convolution.convolution_weight`."""
    if not (_fits(x, g, slide) or _fits(g, x, slide)) or x.shape[1] != g.shape[1]:
        return NotImplemented
    made = _plan(x.dtype, x.shape, size, slide, g.shape[2:], "sums")
    if made is None:
        return NotImplemented
    count, group = x.shape[1], made.pattern.group
    taps = prod(size) * group
    blocks, block = made.channels.shape
    tasks = int(made.job[PIXELS.place("tasks")])
    parts = np.zeros((tasks, blocks, taps, block), x.dtype)
    images, ours = (np.ascontiguousarray(channels_last(v)) for v in (x, g))
    _filling(made, "sums", False)(images, parts, ours)
    w = memory.fresh((count, taps), x.dtype)
    w[made.channels] = parts.sum(0).swapaxes(1, 2)
    return w.reshape(count, -1, group).swapaxes(1, 2).reshape(count, group, *size)
