"""Jobs of convolutions. Images have their channels first."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from funct.device import host
from funct.kernels.cpu.convolution import (
    bands,
    depthwise,
    squares,
    unrolled,
    weight_gradient,
    weight_text,
    winograd,
    winograd_text,
    winograd_weight,
)  # fmt: skip
from funct.kernels.cpu.convolution.convolution import convolver
from funct.kernels.cpu.convolution.line_weights import WEIGHTS
from funct.kernels.cpu.convolution.lines import PLANES
from funct.kernels.cpu.jobs import alone, job, job_of
from funct.kernels.windows.views import Sliding

if TYPE_CHECKING:
    from funct.kernels.cpu.jobs import Job
    from funct.kernels.windows.views import Sizes

__all__ = [
    "by_squares", "gradient", "gradient_by_squares", "line_weights", "lines", "pack", "rest",
    "tiles", "unrolled_images",
]  # fmt: skip


def lines(name: str, x: Sizes, w: Sizes, size: Sizes | None, *how: Any) -> Job | None:
    """Convolution with few channels per group, or its adjoint in x: from x, or g."""
    made = depthwise.planes(np.dtype(name), x, w, Sliding(*how), size)
    if made is None:
        return None
    work = 2 * max(prod(made.shape), prod(x)) * prod(w[1:])
    return alone(_of_lines(made, ("x", "w", "y")), PLANES, work)


def unrolled_images(dot: str, x: Sizes, w: Sizes, *how: Any) -> Job | None:
    """Convolution of few channels, where that is quicker by blocks of pixels."""
    slide = Sliding(*how)
    if not unrolled.serves(x, w, slide):
        return None
    made = unrolled.plan(dot, x, w, slide)
    missing = ("x", "w", "y", "scratch")
    return job_of(unrolled.entry(dot), made.job, unrolled.JOB, missing, made.scratch_bytes, made)


def line_weights(name: str, x: Sizes, g: Sizes, size: Sizes, *how: Any) -> Job | None:
    """The adjoint in w of convolution with one channel per group."""
    made = depthwise.weight_planes(np.dtype(name), x, g, Sliding(*how), size)
    if made is None:
        return None
    return alone(_of_lines(made, ("x", "g", "w")), WEIGHTS, 2 * prod(g) * prod(size))


def _of_lines(made: depthwise.Plan, arrays: tuple[str, ...]) -> Job:
    pattern = replace(made.pattern, streams=False)  # who knows where results will lie
    fields, scratch = (WEIGHTS, ("sums",)) if "g" in arrays else (PLANES, ())
    missing = (*arrays, "head", "tail", *scratch)
    return job_of(depthwise.entry(pattern, made.name), made.job, fields, missing, made.sums, made)


def tiles(adjoint: int, dot: str, x: Sizes, w: Sizes, size: Sizes, *how: Any) -> Job:
    """Convolution, or its adjoint in x, with weights that are laid out in panels."""
    made = convolver(dot, x, w, size, Sliding(*how), bool(adjoint))
    entry = bands.entry(dot, host(), False, "convolve")
    missing = ("x", "weights", "y", "scratch")
    found = job_of(entry, made.job, bands.JOB, missing, made.scratch_bytes, made)
    return alone(found, bands.JOB, 2 * max(prod(x), x[0] * prod(size)) * prod(w[1:]))


def pack(*given: Any) -> Job:
    """How the weights are laid out for such tiles."""
    made, dot = tiles(*given).plan, given[1]
    entry = bands.entry(dot, host(), False, "pack")
    return job_of(entry, made.pack, bands.PACK, ("source", "to"), 0, made)


def gradient(dot: str, x: Sizes, g: Sizes, size: Sizes, *how: Any) -> Job:
    """The adjoint of convolution in w."""
    made = weight_gradient.plan(x, g, Sliding(*how), size, dot)
    missing = ("x", "g", "w", "partial", "scratch")
    room = made.partial_bytes + made.scratch_bytes
    entry = weight_gradient.entry(dot)
    return job_of(entry, made.job, weight_text.JOB, missing, room, made)


def by_squares(adjoint: int, dot: str, x: Sizes, w: Sizes, size: Sizes, *how: Any) -> Job | None:
    """The same by squares, where that is worth it."""
    slide = Sliding(*how)
    if not winograd.served(w[2:], slide):
        return None
    made = winograd.plan(dot, x, w, size, slide, bool(adjoint))
    if made is None:
        return None
    missing = ("x", "w", "y", "scratch", "flag")
    entry, fields = winograd.entry(made.text, dot, "squares"), made.fields
    found = job_of(entry, made.job, fields, missing, made.scratch_bytes, made)
    work = 2 * max(prod(x), x[0] * prod(size)) * prod(w[1:])
    return alone(alone(found, fields, work), fields, work, "weight_tasks")


def gradient_by_squares(dot: str, x: Sizes, g: Sizes, size: Sizes, *how: Any) -> Job | None:
    """The same in w."""
    slide = Sliding(*how)
    if not winograd.served(size, slide):
        return None
    made = winograd_weight.plan(dot, x, g, slide)
    if made is None:
        return None
    missing = ("x", "g", "w", "scratch", "flag")
    entry = winograd.entry(made.text, dot, "squares")
    return job_of(entry, made.job, made.fields, missing, made.scratch_bytes, made)


def rest(dot: str, kind: str, *given: Any) -> Job:
    """Another job of convolution, of which nothing is done unless a flag is set."""
    found = job(kind, *given)
    assert found is not None, "it serves all"
    missing = {name: place + len(squares.REST) for name, place in found.places.items()}
    words = np.array([0, *found.tolist()], np.int64)
    entry = winograd.entry(winograd_text.text, dot, "rest")
    made = job_of(entry, words, squares.REST, ("flag",), found.room, found)
    made.places |= missing
    return made
