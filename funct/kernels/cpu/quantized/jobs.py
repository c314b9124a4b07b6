"""Jobs of products with weights of few bits, and of layers on codes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.jobs import alone, job_of
from funct.kernels.cpu.quantized import images, weight_only
from funct.kernels.cpu.quantized.layer import CALL, JOB, layer
from funct.kernels.cpu.quantized.layers import images as images_at_once
from funct.kernels.cpu.quantized.words import best
from funct.kernels.windows.views import Sliding

if TYPE_CHECKING:
    from funct.kernels.cpu.jobs import Job
    from funct.kernels.windows.views import Sizes

__all__ = ["convolution_on_codes", "few_bits", "layer_on_codes"]


def few_bits(bits: int, rows: int, outputs: int, count: int, groups: int) -> Job | None:
    """A few rows of float32 times weights of few bits."""
    words = weight_only.plan(rows, outputs, count, groups)
    if words is None:
        return None
    fields, missing = weight_only.JOB, ("x", "codes", "scale", "y")
    found = job_of(weight_only.entry(bits, rows), words, fields, missing, 0, None)
    return alone(found, fields, 2 * rows * outputs * count)


def layer_on_codes(
    rows: int, depth: int, dtype: str, zero_point: int, bias: str, factor: str, *limits: Any
) -> Job | None:
    """A linear layer on codes. bias, factor: bytes in hexadecimal digits. limits: of the codes of
    the result, and their dtype's name.
    """
    numbers = map(bytes.fromhex, (bias, factor))
    codes = (*limits[:-1], np.dtype(limits[-1]))
    made = layer(rows, depth, np.dtype(dtype), zero_point, *numbers, codes, best())
    if made is None:
        return None
    found = job_of(made.place, made.job, JOB, CALL, made.scratch_bytes, made)
    return alone(found, JOB, 2 * rows * depth * made.shape[1])


def convolution_on_codes(
    x: Sizes, dtype: str, zero_point: int, w: Sizes, bias: str, factor: str, limits: Any,
    *slide: Any,
) -> Job | None:  # fmt: skip
    """The same of images, where that is one call."""
    offsets, factors = map(bytes.fromhex, (bias, factor))
    codes = (*limits[:-1], np.dtype(limits[-1]))
    how = codes, Sliding(*slide), best()
    made = images_at_once(x, np.dtype(dtype), zero_point, w, offsets, factors, *how)
    if made is None:
        return None
    found = job_of(made.place, made.job, made.fields, images.CALL, made.scratch_bytes, made)
    return alone(found, made.fields, 2 * prod(made.shape) * prod(w[1:]))
