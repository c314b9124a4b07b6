"""Windows inside of a program: convolutions, and the places of maxima.

They run the machine code that eager execution runs, convolutions by its address (`told.py`). Small
images are lists of products, as eagerly. Numbers are those of eager execution wherever it takes
this code too: it leaves to BLAS what this code would not be loaded for. What is not finite beside
zeros around an image is left to eager execution (`finite.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import places_of
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.steps.finite import all_finite, some_finite
from funct.compile.steps.flat import flat_call
from funct.compile.steps.moves import copied_bytes, zeros
from funct.compile.steps.told import told
from funct.graph import Node, Var
from funct.kernels.cpu.convolution.axes import countless
from funct.kernels.cpu.convolution.few_products import add_products, products
from funct.kernels.cpu.jobs import Job, job
from funct.kernels.cpu.windows import pooling
from funct.kernels.table import met
from funct.kernels.windows import inside
from funct.kernels.windows.convolution import fitting_size, in_roles
from funct.kernels.windows.places import axes_of, in_parts
from funct.kernels.windows.pooling import lowest
from funct.kernels.windows.views import Sliding

__all__ = ["is_convolution", "is_places", "lower_convolution", "lower_places"]

_NAMES = ("convolution", "convolution_input", "convolution_weight")
_NEEDS = ("llvm", "avx2", "fma")
_ELEMENT = {"f": "f32", "d": "f64"}
_BYTES = np.dtype(np.uint8)
_INDEX = np.dtype(np.int64)

_Told = tuple[tuple[Any, ...], dict[str, Address], list[Any]]  # a job, its arrays, what it writes


def is_convolution(step: Any) -> bool:
    """Whether a step is such an op, of images that the machine code knows."""
    held = arrays(step, _NAMES)
    if not held or any(v.dtype.char not in "fd" for v in held):
        return False
    alike = len({v.dtype for v in held}) == 1
    return alike and len(held[0].shape) <= 5 and met(_NEEDS) and _fits(step)


def _fits(node: Node) -> bool:
    """Whether shapes are such that eager execution does not raise, and strides are planned for."""
    shapes = [tuple(v.shape) for v in (*node.operands, *node.results)]  # type: ignore[union-attr]
    (x, w, y), slide = in_roles(node.name, *shapes), Sliding(*node.params[:4])
    try:
        fitting_size(x, w, y, slide)
    except ValueError:
        return False
    return node.name != "convolution_input" or not countless(x[2:], slide)


def lower_convolution(node: Node, fused: Fused) -> list[Call]:
    """The calls, after copies of what does not lie one after the other."""
    calls, places = places_of(node.operands, fused)
    work = _Work(node, places)
    if few := work.few():
        return [*calls, *few]
    return [*calls, *(work.unrolled() or work.lines() or work.tiles()), *work.judged()]


class _Work:
    """One convolution. The arrays are x, w and y, or what stands for them in its adjoints."""

    def __init__(self, node: Node, places: Sequence[Address]) -> None:
        self.out = node.results[0]
        a, b = (tuple(v.shape) for v in node.operands)  # type: ignore[union-attr]
        self.given, self.places = (a, b), places
        self.slide = Sliding(*node.params[:4])
        self.dtype, self.kind = self.out.dtype, node.name
        self.size = tuple(self.out.shape[2:])

    def few(self) -> list[Call]:
        """Of small images: product after product, in eager execution's order."""
        (a, b), y = self.given, tuple(self.out.shape)
        x, w, order = {
            "convolution": (a, b, (0, 1, 2)),
            "convolution_input": (y, b, (2, 1, 0)),
            "convolution_weight": (a, y, (0, 2, 1)),
        }[self.kind]
        found = products(x, w, self.slide, order[2])
        if found is None:
            return []
        tables = [found[1][k] for k in order]
        n = len(tables[0])
        arrays = [(a, self.dtype) for a in (*self.places, Address(self.out))]
        added = [flat_call(add_products.fn, [*arrays, *tables, n], (self.out,))] if n else []
        return [zeros(self.out), *added]

    def unrolled(self) -> list[Call]:
        """Of few channels, by blocks of pixels; nothing where that does not serve."""
        (a, b), dot = self.given, _ELEMENT[self.dtype.char]
        plain = self.kind == "convolution"
        found = job("unrolled", dot, a, b, *self.slide) if plain else None
        if found is None:
            return []
        at = dict(zip(("x", "w", "y"), (*self.places, Address(self.out)), strict=True))
        at["scratch"] = Address(Buffer(max(1, found.room), _BYTES))
        return [told(found, at, [self.out])]

    def lines(self) -> list[Call]:
        """Of few channels per group, line by line; nothing where that does not serve."""
        (a, b), name, size = self.given, self.dtype.name, self.size
        if self.kind == "convolution_weight":
            found = job("line weights", name, a, b, size, *self.slide)
            arrays = "x", "g", "w"
        else:
            there = size if self.kind == "convolution_input" else None
            found = job("lines", name, a, b, there, *self.slide)
            arrays = "x", "w", "y"
        if found is None:
            return []
        room, kept, byte = found.plan.room, found.plan.kept, self.dtype.itemsize
        ends = Buffer(max(1, 2 * kept + 3 * room), self.dtype)  # of x, with room around them
        x, (behind, last) = self.places[0], (2 * room + 2 * kept, math.prod(a) - kept)
        calls = [] if not kept else [
            copied_bytes(ends, to * byte, Address(x.of, x.offset + source * byte), kept * byte)
            for to, source in ((room, 0), (behind - kept, last))
        ]  # fmt: skip
        at = dict(zip(arrays, (*self.places, Address(self.out)), strict=True))
        at |= {"head": Address(ends, room * byte), "tail": Address(ends, behind * byte)}
        if "sums" in found.places:
            at["sums"] = Address(Buffer(max(1, found.room), _BYTES))
        return [*calls, told(found, at, [self.out])]

    def tiles(self) -> list[Call]:
        """Of any channels, as products of bands of images; by squares first, where they serve."""
        (a, b), dot, size = self.given, _ELEMENT[self.dtype.char], self.size
        first, second = self.places
        what: tuple[Any, ...] = (dot, a, b, size, *self.slide)
        if self.kind == "convolution_weight":
            arrays, name = ("x", "g", "w"), "gradient by squares"
            plain = self._gradient(what)
        else:
            what = (int(self.kind == "convolution_input"), *what)
            arrays, name = ("x", "w", "y"), "by squares"
            plain = self._products(what)
        fast = job(name, *what)
        if fast is None:
            return [told(_job(kind), at, writes) for kind, at, writes in plain]
        flag = Buffer(1, _INDEX)
        at = dict(zip(arrays, (first, second, Address(self.out)), strict=True))
        at |= {"scratch": Address(Buffer(fast.room, _BYTES)), "flag": Address(flag)}
        return [told(fast, at, [self.out, flag])] + [
            told(_job(("rest", dot, *kind)), {**at, "flag": Address(flag)}, writes)
            for kind, at, writes in plain
        ]

    def judged(self) -> list[Call]:
        """What looks whether zeros around the images met what is not finite, as eagerly."""
        shapes = in_roles(self.kind, *self.given, tuple(self.out.shape))
        telling = inside.telling(self.kind, *shapes, self.slide)
        if telling is None:
            return []
        if telling:
            return [some_finite(self.out, telling)]
        factors, sums = math.prod(self.given[1]), math.prod(self.out.shape)
        told = (Address(self.out), sums) if sums < factors else (self.places[1], factors)
        return [all_finite(*told, self.dtype)]

    def _gradient(self, what: tuple[Any, ...]) -> list[_Told]:
        found = _job(("gradient", *what))
        room = Buffer(max(1, found.room), _BYTES)
        scratch = Address(room, found.plan.partial_bytes)
        at = {"x": self.places[0], "g": self.places[1], "w": Address(self.out)}
        at |= {"partial": Address(room), "scratch": scratch}
        return [(("gradient", *what), at, [self.out])]

    def _products(self, what: tuple[Any, ...]) -> list[_Told]:
        found = _job(("tiles", *what))
        panels = Buffer(max(1, found.plan.weight_words), self.dtype)
        to: _Told = (
            ("pack", *what), {"source": self.places[1], "to": Address(panels)}, [panels],
        )  # fmt: skip
        at = {"x": self.places[0], "weights": Address(panels), "y": Address(self.out)}
        at["scratch"] = Address(Buffer(max(1, found.room), _BYTES))
        return [to, (("tiles", *what), at, [self.out])]


def _job(kind: tuple[Any, ...]) -> Job:
    found = job(*kind)
    assert found is not None, "it serves all"
    return found


def is_places(step: Any) -> bool:
    """Whether a step finds the maxima of windows, of elements that kernels know."""
    if not isinstance(step, Node) or step.name != "max_pool_index":
        return False
    x: Any = step.operands[0]
    held = (x, step.results[0])
    if not all(isinstance(v, Var) and 0 not in v.shape and v.dtype in ELEMENTS for v in held):
        return False
    return len(step.params[0]) <= 3


def lower_places(node: Node, fused: Fused) -> list[Call]:
    """The call, after a copy of what does not lie one after the other."""
    x: Any = node.operands[0]
    (out,), window = node.results, node.params[0]
    calls, (place,) = places_of(node.operands, fused)
    lead = len(x.shape) - len(window)
    size, planes = x.shape[lead:], math.prod(x.shape[:lead])
    _, axes = axes_of(size, *node.params)
    last = axes[2, 1:5].tolist()
    given: list[Any] = [(place, x.dtype), (Address(out), _INDEX)]
    if last[0] < pooling.LANES or math.prod(size) * last[2] >= 1 << 31:
        words = [*given, axes, planes, planes, 0]
        return [*calls, flat_call(pooling.max_index.fn, words, (out,))]
    taps, phase = in_parts(*last)
    room = Buffer(math.prod(size[:-1]) * last[2] * phase, x.dtype)
    least = np.asarray([lowest(x.dtype)], x.dtype)
    words = [*given, (Address(room), x.dtype), taps, axes, planes, planes, phase, least, 0]
    return [*calls, flat_call(pooling.max_index_rows.fn, words, (out,))]
