"""Linear algebra on stacks of small matrices inside of a program: one in each lane of a vector.

The kernels are those that eager execution calls for many matrices (`kernels.linalg.stacks`). In a
loop LAPACK is asked for fewer, since nothing else stands around a call of it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import places_of
from funct.compile.loops.kernel import CONTROL_WORDS, WRONG
from funct.compile.steps.flat import flat_call
from funct.graph import Node
from funct.kernels.cpu.small import factors, systems
from funct.kernels.cpu.small.numbers import LANES
from funct.kernels.cpu.small.phases import turn
from funct.kernels.linalg.stacks import MOST, dealt, in_lanes, rows_of
from funct.kernels.llvm import I64, PTR, Module, Value

__all__ = ["is_systems", "lower_systems", "print_odd"]

_FEWEST = 2  # matrices, and a fourth of their rows: lanes without any cost the same
_OPS = {
    "solve": systems.solve, "inv": systems.solve, "det": systems.det,
    "cholesky": systems.cholesky,
}  # fmt: skip
_PAIRS = "_of_pairs"
_OPS |= {name + _PAIRS: kernel for name, kernel in _OPS.items()}
_OPS |= {"lu" + _PAIRS: factors.lu, "qr" + _PAIRS: factors.qr}
_ROOM, _INDEX = np.dtype(np.float64), np.dtype(np.int64)


def is_systems(step: Any) -> bool:
    """Whether a step is such an op, on matrices of one dtype in stacks of one shape."""
    held = arrays(step, _OPS)
    if not held or any(v.dtype.char not in "fd" for v in held):
        return False
    name, pairs = _op(step)
    if name in ("lu", "qr"):
        shape = step.operands[0].shape[:-1]
        return 0 not in shape and in_lanes(name, shape, held[0].dtype.char.upper())
    first, *rest = [v.shape[:-1] if pairs else v.shape for v in step.operands]
    if any(shape[:-2] != first[:-2] for shape in rest) or len({v.dtype for v in held}) > 1:
        return False
    n, many = first[-1], math.prod(first[:-2])
    few = n <= rows_of(name, held[0].dtype.char) and all(shape[-1] <= MOST for shape in rest)
    alone = pairs and in_lanes(name, first, held[0].dtype.char.upper())
    return few and (alone or many >= max(_FEWEST, n // 4))


def _op(step: Any) -> tuple[str, bool]:
    """Its name, and whether its matrices are of complex numbers, which lie as pairs."""
    name: str = step.name
    return name.removesuffix(_PAIRS), name.endswith(_PAIRS)


def lower_systems(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what does not lie one after the other."""
    calls, places = places_of(node.operands, fused)
    operands: Any = node.operands
    x, out, (name, pairs) = operands[0], node.results[0], _op(node)
    shape = x.shape[:-1] if pairs else x.shape
    *lead, m, n = shape
    most = max(m, n)
    count, part, tasks = dealt((*lead, most, most))
    arrays = [(place, x.dtype) for place in places]
    sizes, room = [n], n * n
    if name == "inv":
        unit = np.eye(n, dtype=x.dtype)
        unit = np.stack([unit, np.zeros_like(unit)], -1) if pairs else unit
        arrays.append(np.broadcast_to(unit, x.shape))  # type: ignore[arg-type]
    if name in ("inv", "solve"):
        m = out.shape[-2 if pairs else -1]
        sizes, room = [n, m], (n + 2) * (n + m | 1)
    elif name == "det":
        room = (n + 1) * (n | 1)
    elif name == "lu":
        sizes, room = [m, n], m * (n + 1) + 1
    elif name == "qr":
        columns = out.shape[-2]
        sizes, room = [m, n, columns], m * (n + columns) + n
    room *= 2 if pairs else 1
    rooms = Address(Buffer(tasks * room * LANES, _ROOM)), _ROOM
    odd = Address(Buffer(tasks, _INDEX))
    made = [(Address(v), v.dtype) for v in node.results]
    words = [*arrays, *made, rooms, (odd, _INDEX), *sizes, count, part]
    words += [pairs, tasks]
    calls.append(flat_call(_OPS[node.name].fn, words, [*node.results, odd.of], tasks))
    if name == "qr" and n < columns:  # x says nothing about columns beyond its own
        place = Address(out), out.dtype
        words = [place, n, place, m, columns, 0, 0, count]
        calls.append(flat_call(turn.fn, words, (out,)))
    return [*calls, Call(("odd",), (odd, tasks), 1, (), checks=True, doubts=True)]


def print_odd(module: Module, name: str) -> None:
    """Add what says that the program is not right if one of some numbers is not 0. Frame: where
    they are, and how many.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    space, own = f.load(PTR, frame), f.at(frame, CONTROL_WORDS, "i64")
    place, count = f.load(PTR, own), f.word(own, 1)

    def one(t: Value, _: list[Value]) -> list[Value]:
        wrong = f.ne(f.word(place, t), 0)
        f.when(wrong, lambda: f.store(f.constant(I64, WRONG), space))
        return []

    f.loop(0, count, 1, one)
    f.ret()
