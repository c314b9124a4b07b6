"""Convolution with one channel per group, and both of its adjoints: plane by plane.

A plane is copied to scratch with zeros around it and taken flat: element q of the result is
Σ_t w[t] plane[q + offset t], for all q at once, also between the rows, where nobody looks. So no
row, however short, has an end, and any kernel is a table of offsets.

With a stride, the plane is dealt into one plane for each residue of its coordinates, after which
the steps are 1 again; in the adjoint zeros are put between the elements of g instead.
"""

from __future__ import annotations

import ctypes
import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import Code, Host, assemble, host
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.axes import three
from funct.kernels.cpu.plane_loops import JOB, WEIGHT, text
from funct.kernels.cpu.plane_plans import Geometry, planes_plan, weights_plan
from funct.kernels.cpu.record import address

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from funct.kernels.windows import Sizes, Sliding

__all__ = ["convolution", "convolution_input", "convolution_weight"]

_ELEMENT = {"float32": "f32", "float64": "f64"}
_TASKS = 4  # per core
_PLACES = [
    JOB.place(name)
    for name in (
        "tasks", "units", "outputs", "terms", "shared", "inputs", "x", "w", "y", "scratch",
    )
]  # fmt: skip
_WEIGHT_PLACES = [
    WEIGHT.place(name)
    for name in ("tasks", "outputs", "shared", "images", "inputs", "x", "g", "w", "scratch")
]


@functools.lru_cache(512)
def _geometry(size: Sizes, out: Sizes, kernel: Sizes, slide: Sliding) -> Geometry:
    return Geometry(
        three(size, 1), three(out, 1), three(kernel, 1), three(slide.stride, 1),
        three(tuple([low for low, _ in slide.padding]), 0), three(slide.dilation, 1),
    )  # fmt: skip


def _fits(x: NDArray[Any], other: NDArray[Any], channels: int, groups: int, size: Sizes) -> bool:
    """One channel of x per group, something to compute, and weights that are not half of it."""
    return bool(
        channels == groups and x.dtype == other.dtype and len(size) <= 3
        and x.size and other.size and prod(size)
    )  # fmt: skip


def convolution(x: NDArray[Any], w: NDArray[Any], slide: Sliding) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution`."""
    size = slide.size(x.shape[2:], w.shape[2:])
    if not _fits(x, w, x.shape[1], slide.groups, size):
        return NotImplemented
    geo = _geometry(x.shape[2:], size, w.shape[2:], slide)
    outputs = len(w)
    return _run(x, w, geo, False, outputs, 1, outputs // slide.groups, size)


def convolution_input(
    g: NDArray[Any], w: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution_input`."""
    groups = slide.groups
    if not _fits(g, w, w.shape[1] * groups, groups, size):
        return NotImplemented
    geo = _geometry(g.shape[2:], size, w.shape[2:], slide)
    return _run(g, w, geo, True, groups, len(w) // groups, 1, size)


def _run(
    x: NDArray[Any], w: NDArray[Any], geo: Geometry, inserted: bool, outputs: int, terms: int,
    shared: int, size: Sizes,
) -> NDArray[Any]:  # fmt: skip
    made = planes_plan(geo, inserted, terms, host().vector_bytes // x.itemsize, x.itemsize)
    x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
    y = memory.fresh((len(x), outputs, *size), x.dtype)
    units = len(x) * outputs
    tasks = min(units, _TASKS * host().cores)
    job = made.job.copy()
    job[_PLACES] = (
        tasks, units, outputs, terms, shared, x.shape[1], address(x), address(w), address(y),
        memory.scratch(tasks * made.scratch_words * x.itemsize),
    )  # fmt: skip
    _entry(_ELEMENT[x.dtype.name], "planes")(address(job))
    return y


def convolution_weight(
    x: NDArray[Any], g: NDArray[Any], slide: Sliding, size: Sizes
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution_weight`."""
    groups = slide.groups
    if not _fits(x, g, x.shape[1], groups, size):
        return NotImplemented
    me = host()
    geo = _geometry(x.shape[2:], g.shape[2:], size, slide)
    made = weights_plan(geo, me.vector_bytes // x.itemsize, x.itemsize)
    x, g = np.ascontiguousarray(x), np.ascontiguousarray(g)
    outputs = g.shape[1]
    w = memory.fresh((outputs, 1, *size), x.dtype)
    tasks = min(outputs, _TASKS * me.cores)
    job = made.job.copy()
    job[_WEIGHT_PLACES] = (
        tasks, outputs, outputs // groups, len(x), groups, address(x), address(g), address(w),
        memory.scratch(tasks * made.scratch_words * x.itemsize),
    )  # fmt: skip
    _entry(_ELEMENT[x.dtype.name], "weights")(address(job))
    return w


@functools.cache
def _entry(element: str, name: str) -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(_code(element, host()).address(name))


@functools.cache
def _code(element: str, target: Host) -> Code:
    return assemble(text(element, target))
