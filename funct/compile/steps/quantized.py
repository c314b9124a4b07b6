"""Layers on codes, and products with weights of few bits, inside of a program: the machine code
that eager execution runs, by its address.

What is told to a layer on codes, and how its weights are laid out, is found by the rewriting
(`rewriting/quantized.py`).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import copy, places_of
from funct.compile.loops.views import View
from funct.compile.rewriting.quantized import JOBS, in_few_bits
from funct.compile.steps.told import told
from funct.graph import Node
from funct.kernels.cpu.jobs import job

__all__ = ["is_in_few_bits", "is_layer", "lower_few_bits", "lower_layer"]

_BYTES = np.dtype(np.uint8)


def is_in_few_bits(step: Any) -> bool:
    """Whether a step is a product with weights of few bits that the machine code knows."""
    return bool(arrays(step, ("weight_only_linear",))) and in_few_bits(step) is not None


def lower_few_bits(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what does not lie one after the other, or in halves."""
    (out,) = node.results
    found = in_few_bits(node)
    calls, places = places_of(node.operands, fused)
    at = dict(zip(("x", "codes", "scale"), places, strict=True)) | {"y": Address(out)}
    codes: Any = node.operands[1]
    if codes.dtype != np.int8:  # the even elements of all rows, then the odd ones
        x: Any = node.operands[0]
        columns = x.shape[-1] // 2
        rows = prod(x.shape) // x.shape[-1]
        offset = at["x"].offset // x.dtype.itemsize
        root: Any = at["x"].of
        halves = View(root, (2, rows, columns), (1, 2 * columns, 2), offset)
        added, view = copy(halves, fused)
        calls += added
        at["x"] = Address(view.root)
    return [*calls, told(found, at, [out])]


def is_layer(step: Any) -> bool:
    """Whether a step is a layer on codes."""
    return isinstance(step, Node) and step.name in JOBS


def lower_layer(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what does not lie one after the other."""
    found = job(JOBS[node.name], *node.params)
    assert found is not None, "the rewriting asked for it"
    calls, places = places_of(node.operands, fused)
    at = dict(zip(("x", "w", "bias"), places, strict=True)) | {"y": Address(node.results[0])}
    at["scratch"] = Address(Buffer(max(1, found.room), _BYTES))
    return [*calls, told(found, at, node.results)]
