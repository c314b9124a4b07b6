"""Linear algebra on one real matrix inside of a program, or on few: its rows are vectors.
Triangular systems may be complex, and what QR factors.

The kernels are those that eager execution calls (`kernels.linalg.few`), so the numbers are, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import places_of
from funct.compile.steps.flat import flat_call
from funct.compile.steps.systems import is_systems
from funct.compile.steps.ufuncs import NUMPYS
from funct.graph import Node
from funct.kernels.cpu.small import row_factors, row_systems, row_triangles
from funct.kernels.linalg import few
from funct.kernels.linalg.stacks import are_some, rows_of

__all__ = ["is_doubted_rows", "is_rows", "lower_rows"]

_PAIRS = "qr_of_pairs"  # of complex numbers, which lie as pairs
_SURE = {"det": row_systems.det, "slogdet": row_systems.slogdet, "lu": row_systems.lu}
_DOUBTED = {
    "solve": row_systems.solve, "inv": row_systems.inv, "cholesky": row_factors.cholesky,
    f"{NUMPYS}cholesky": row_factors.cholesky, "qr": row_factors.qr,
    _PAIRS: row_factors.qr,
    "solve_triangular": row_triangles.solve_triangular,
}  # fmt: skip
_KERNELS = _SURE | _DOUBTED
_PLACED = frozenset({"lu", "inv"})
_INDEX = np.dtype(np.int64)


def is_rows(step: Any) -> bool:
    """Whether a step is such an op, of matrices of one dtype in stacks of one shape, for which any
    matrix is right.
    """
    return _are_rows(step, _SURE)


def is_doubted_rows(step: Any) -> bool:
    """The same of ops for which it may not be."""
    return _are_rows(step, _DOUBTED)


def _are_rows(step: Any, names: dict[str, Any]) -> bool:
    held = arrays(step, names)
    if not held or any(v.dtype != held[0].dtype for v in held) or is_systems(step):
        return False
    x, b = step.operands[0], step.operands[-1]
    name, shape, char = step.name.removeprefix(NUMPYS), x.shape, x.dtype.char
    if name == _PAIRS:
        name, shape, char = "qr", shape[:-1], char.upper()
    if name == "qr" and char in "FD" and step.params[0] and shape[-2] > shape[-1]:
        return False  # phases of columns beyond those of the matrix are free
    sides = b.shape[-1] if b is not x else 0
    if (b is not x and b.shape[:-2] != shape[:-2]) or not few.suits(name, shape, char, sides):
        return False
    return not (are_some(shape) and max(shape[-2:]) <= rows_of(name, char))


def lower_rows(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what does not lie one after the other."""
    calls, places = places_of(node.operands, fused)
    operands: Any = node.operands
    x, name = operands[0], node.name.removeprefix(NUMPYS)
    element = np.dtype(x.dtype.char.lower())  # or of the parts of complex numbers
    held = [(place, element) for place in (*places, *map(Address, node.results))]
    if name in ("qr", _PAIRS):
        shape, char = x.shape, x.dtype.char
        if name == _PAIRS:
            shape, char = shape[:-1], char.upper()
        own, dealt, each, wide, tasks = few.reflections(shape, char, bool(node.params[0]))
        sizes: tuple[Any, ...] = (*own, 0, *dealt)
    elif name == "solve_triangular":
        n, m = x.shape[-1], operands[1].shape[-1]
        each, wide, count, part, span, tasks = few.triangles(x.shape, x.dtype.char, m)
        lower, pairs = bool(node.params[0]), bool(x.dtype != wide)
        sizes = n, m, n * m, 1, count, lower, pairs, part, span
    else:
        right = operands[-1].shape[-1] if name in ("solve", "inv") else 0
        n, apart, wide, count, part, tasks = few.layout(x.shape, x.dtype.char, right)
        sides = (right, n * right) if name == "solve" else ()
        start = (0,) if name == "slogdet" else ()
        sizes, each = (n, *sides, apart, *start, count, part), (n + 1) * apart
        if name in _PLACED:
            held.append((Address(Buffer(tasks * n, _INDEX)), _INDEX))
    odd = Address(Buffer(tasks, _INDEX))
    held += [(Address(Buffer(tasks * each, wide)), wide), (odd, _INDEX)]
    words = [*held, *sizes, tasks]
    call = flat_call(_KERNELS[node.name].fn, words, [*node.results, odd.of], tasks, lean=True)
    if node.name in _SURE:
        return [*calls, call]
    return [*calls, call, Call(("odd",), (odd, tasks), 1, (), checks=True, doubts=True)]
