"""L, U and a permutation of matrices inside of a program: LAPACK's `getrf`, by address.

Eager execution calls it as well. Complex matrices have a last axis of two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import places_of
from funct.compile.steps.matrices import call_lapack
from funct.compile.steps.systems import is_systems
from funct.graph import Node
from funct.kernels.cpu.getrf import counts_in_64_bits, print_factors
from funct.kernels.llvm import Emitter, Module, Value

__all__ = ["is_lu", "lower_lu", "print_lu"]

_INDEX = np.dtype(np.int64)
_NAMES = ("lu", "lu_of_pairs")


def is_lu(step: Any) -> bool:
    """Whether a step is that, of matrices with elements that lanes are not for."""
    held = arrays(step, _NAMES)
    if not held or any(v.dtype.char not in "fd" for v in held) or is_systems(step):
        return False
    return counts_in_64_bits(*_kind(step)) is not None


def _kind(node: Node) -> tuple[str, int]:
    """The element, and how many numbers one of a matrix is."""
    element = "f64" if node.results[0].dtype.char == "d" else "f32"
    return element, 2 if node.name == "lu_of_pairs" else 1


def lower_lu(node: Node, fused: Fused) -> list[Call]:
    """The call, after a copy of what does not lie one after the other."""
    calls, places = places_of(node.operands, fused)
    x: Any = node.operands[0]
    element, width = _kind(node)
    *lead, m, n = x.shape[: len(x.shape) + 1 - width]
    made = Address(Buffer(m * n * width, x.dtype))
    rows = Address(Buffer(m, _INDEX)), Address(Buffer(min(m, n), _INDEX))
    words = (*places, *[Address(v) for v in node.results], made, *rows, math.prod(lead), m, n)
    return [*calls, Call(("lu", element, width), words, 1, node.results)]


def print_lu(module: Module, name: str, element: str, width: int) -> None:
    """Add the kernel: see `print_factors`."""

    def call(f: Emitter, symbol: str, m: Value, n: Value, given: list[Value]) -> None:
        call_lapack(f, symbol, "lu", m, n, given)

    print_factors(module, name, element, width, call)
