"""Kernels for machine code that has their arrays' addresses later: in the body of a loop.

A job is the address of a function and the words that it is told, of which the addresses of arrays
are missing. It holds addresses of tables and of code too, so what is kept on disk is the recipe
that it is made by: whole numbers and names. Images have their channels first here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funct.device import host
from funct.kernels.cpu.attention import fused, strips
from funct.kernels.cpu.dense import bands, depthwise, weight_gradient
from funct.kernels.cpu.dense.convolution import convolver
from funct.kernels.cpu.dense.line_weights import WEIGHTS
from funct.kernels.cpu.dense.lines import PLANES
from funct.kernels.cpu.quantized import weight_only
from funct.kernels.cpu.quantized.layer import CALL, layer
from funct.kernels.cpu.quantized.layer import JOB as OF_LAYER
from funct.kernels.cpu.quantized.words import best
from funct.kernels.windows.views import Sliding

if TYPE_CHECKING:
    from funct.kernels.cpu.record import Fields
    from funct.kernels.windows.views import Sizes

__all__ = ["Job", "job"]

_ALONE = 1 << 22  # multiplications and additions of a step that wakes no threads


class Job(np.ndarray[Any, np.dtype[np.int64]]):
    """places: where the missing addresses go, by what is there. room: bytes that are needed while
    it runs, in which the number of cores has a part. plan: what it was made of, and points to.
    """

    recipe: tuple[Any, ...]
    places: dict[str, int]
    room: int
    plan: Any


@functools.cache
def job(kind: str, *given: Any) -> Job | None:
    """The job of a kind for shapes and what else is no array; None where it does not serve."""
    found = _KINDS[kind](*given)
    if found is not None:
        found.recipe = kind, *given
    return found


def _job(
    entry: int, words: Any, fields: Fields, missing: tuple[str, ...], room: int, plan: Any
) -> Job:
    found = np.array([entry, *words.tolist()], np.int64).view(Job)
    found.room, found.plan = room, plan
    found.places = {name: 1 + fields.place(name) for name in missing}
    return found


def _alone(found: Job, fields: Fields, work: int, tasks: str = "tasks") -> Job:
    """The job, with one task for all units where the work is little."""
    if work < _ALONE:
        found[1 + fields.place(tasks)] = 1
    return found


def _lines(name: str, x: Sizes, w: Sizes, size: Sizes | None, *how: Any) -> Job | None:
    """Convolution with few channels per group, or its adjoint in x: from x, or g."""
    made = depthwise.planes(np.dtype(name), x, w, Sliding(*how), size)
    if made is None:
        return None
    work = 2 * max(prod(made.shape), prod(x)) * prod(w[1:])
    return _alone(_of_lines(made, ("x", "w", "y")), PLANES, work)


def _line_weights(name: str, x: Sizes, g: Sizes, size: Sizes, *how: Any) -> Job | None:
    """The adjoint in w of convolution with one channel per group."""
    made = depthwise.weight_planes(np.dtype(name), x, g, Sliding(*how), size)
    if made is None:
        return None
    return _alone(_of_lines(made, ("x", "g", "w")), WEIGHTS, 2 * prod(g) * prod(size))


def _of_lines(made: depthwise.Plan, arrays: tuple[str, ...]) -> Job:
    pattern = attrs.evolve(made.pattern, streams=False)  # who knows where results will lie
    fields, scratch = (WEIGHTS, ("sums",)) if "g" in arrays else (PLANES, ())
    missing = (*arrays, "head", "tail", *scratch)
    return _job(depthwise.entry(pattern, made.name), made.job, fields, missing, made.sums, made)


def _tiles(adjoint: int, dot: str, x: Sizes, w: Sizes, size: Sizes, *how: Any) -> Job:
    """Convolution, or its adjoint in x, with weights that are laid out in panels."""
    made = convolver(dot, x, w, size, Sliding(*how), bool(adjoint))
    entry = bands.entry(dot, host(), False, "convolve")
    missing = ("x", "weights", "y", "scratch")
    found = _job(entry, made.job, bands.JOB, missing, made.scratch_bytes, made)
    return _alone(found, bands.JOB, 2 * max(prod(x), x[0] * prod(size)) * prod(w[1:]))


def _pack(number: int, *tiles: Any) -> Job:
    """How the weights of a class of pixels are laid out for such tiles."""
    made, dot = _tiles(*tiles).plan, tiles[1]
    entry = bands.entry(dot, host(), False, "pack")
    return _job(entry, made.packs[number], bands.PACK, ("source", "to"), 0, made)


def _gradient(dot: str, x: Sizes, g: Sizes, size: Sizes, *how: Any) -> Job:
    """The adjoint of convolution in w."""
    made = weight_gradient.plan(x, g, Sliding(*how), size, dot)
    missing = ("x", "g", "w", "partial", "scratch")
    room = made.partial_bytes + made.scratch_bytes
    entry = weight_gradient.entry(dot)
    return _job(entry, made.job, weight_gradient.JOB, missing, room, made)


def _attention(
    name: str, dtype: str, causal: int, scale: str, rate: str, passes: int, mask: Sizes,
    seed: Sizes, *operands: tuple[Sizes, Sizes],
) -> Job | None:  # fmt: skip
    """Attention, or its adjoint, with a mask of numbers. scale, rate: in hexadecimal digits.
    operands: shapes and strides.
    """
    number = np.dtype(dtype)
    numbers, given = map(float.fromhex, (scale, rate)), [(number, *o) for o in operands]
    how = bool(causal), *numbers, bool(passes)
    made = fused.plan(name, *how, False, mask, seed, *given)
    if made is None:
        return None
    words = np.frombuffer(bytes(8 * len(strips.ADDRESSES)) + made.rest, np.int64)
    backward = name == "attend_back"
    used = ("q", "k", "v", "seed", *(() if passes else ("mask",)), "scratch")
    used += ("lse", "g", "delta", "dq", "dk", "dv") if backward else ("o", "lse")
    found = _job(fused.entry(number, made.name), words, strips.JOB, used, made.room, made)
    work = 2 * prod(made.lead) * made.queries * operands[1][0][-2] * (made.depth + made.width)
    return _alone(found, strips.JOB, work, "workers")


def _few_bits(bits: int, rows: int, outputs: int, count: int, groups: int) -> Job | None:
    """A few rows of float32 times weights of few bits."""
    words = weight_only.plan(rows, outputs, count, groups)
    if words is None:
        return None
    fields, missing = weight_only.JOB, ("x", "codes", "scale", "y")
    found = _job(weight_only.entry(bits), words, fields, missing, 0, None)
    return _alone(found, fields, 2 * rows * outputs * count)


def _layer(
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
    words = np.frombuffer(bytes(8 * len(CALL)) + made.job, np.int64)
    found = _job(made.place, words, OF_LAYER, CALL, made.scratch_bytes, made)
    return _alone(found, OF_LAYER, 2 * rows * depth * made.shape[1])


_KINDS: dict[str, Callable[..., Job | None]] = {
    "attention": _attention, "few bits": _few_bits, "gradient": _gradient,
    "layer": _layer, "line weights": _line_weights, "lines": _lines,
    "pack": _pack, "tiles": _tiles,
}  # fmt: skip
