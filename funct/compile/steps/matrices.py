"""Linear algebra on small matrices inside of a program: the loops that np.linalg calls, by address.

So the numbers are those of eager execution. Small matrices in single precision are computed in
double, and of what is Hermitian the symmetric part is taken; both are copies before the call. A
failure fills the first result with NaN: the program says at its end that it is not right, and on
the slow way the op raises, or finds that its operand had NaN. Several small real ones are computed
by `systems.py`. Complex matrices have a last axis of two. Triangular systems are BLAS's.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import places_of
from funct.compile.loops.kernel import CONTROL_WORDS, WRONG
from funct.compile.steps.moves import copy_bytes
from funct.compile.steps.ufuncs import NUMPYS
from funct.device.machine_code import offer
from funct.graph import Node
from funct.kernels.cpu.products.blas import alone
from funct.kernels.cpu.triangular import counts_in_64_bits, print_solution
from funct.kernels.linalg import lapack
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

__all__ = [
    "call_alone", "call_lapack", "converted", "is_matrices", "lower_matrices", "print_matrices",
    "print_triangular", "refuse",
]  # fmt: skip


class _Loop(Struct, frozen=True):
    """name: NumPy's. symmetric: its operand is Hermitian, and made so. fails: it may. real: which
    result is so of complex matrices too. pairs: matrices are complex.
    """

    name: str
    symmetric: bool = False
    fails: bool = True
    real: int | None = None
    pairs: bool = False

    def parts(self, operands: int, results: int) -> list[int]:
        """Of how many numbers an element of each array is."""
        found = [1 + self.pairs] * (operands + results)
        if self.real is not None:
            found[operands + self.real] = 1
        return found


_LOOPS = {
    "inv": _Loop("inv"), "solve": _Loop("solve"), "det": _Loop("det", fails=False),
    "slogdet": _Loop("slogdet", fails=False, real=1),
    "cholesky": _Loop("cholesky_lo", symmetric=True),
    "eigh": _Loop("eigh_lo", symmetric=True, real=0),
    "eigvalsh": _Loop("eigvalsh_lo", symmetric=True, real=0),
}  # fmt: skip
_LOOPS[f"{NUMPYS}cholesky"] = _LOOPS["cholesky"]
_LOOPS |= {f"{op}_of_pairs": replace(loop, pairs=True) for op, loop in _LOOPS.items()}
_TRIANGULAR = ("solve_triangular", "solve_triangular_of_pairs")
_DOUBLE = np.dtype(np.float64)


def is_matrices(step: Any) -> bool:
    """Whether a step is such an op, on matrices of one dtype in stacks of one shape."""
    held = arrays(step, (*_LOOPS, *_TRIANGULAR))
    if not held or any(v.dtype.char not in "fd" for v in held):
        return False
    operands: Any = step.operands
    last = -3 if step.name.endswith("_of_pairs") else -2
    stacks = {v.shape[:last] for v in operands}
    alike = len(stacks) == 1 and len({v.dtype for v in operands}) == 1
    if step.name in _TRIANGULAR:
        wide = counts_in_64_bits(_element(step.results[0].dtype), last == -3)
        return alike and wide is not None
    loop = _LOOPS[step.name]
    return alike and lapack.address(loop.name, _inner(loop, operands[0])) is not None


def _inner(loop: _Loop, x: Any) -> str:
    """The character of the dtype in which stacks of matrices like x are computed."""
    if loop.pairs:
        return lapack.inner(x.dtype.char.upper(), *x.shape[-3:-1])
    return lapack.inner(x.dtype.char, *x.shape[-2:])


def _element(dtype: np.dtype[Any]) -> str:
    return "f64" if dtype == _DOUBLE else "f32"


def lower_matrices(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what does not lie one after the other."""
    operands: Any = node.operands
    calls, places = places_of(operands, fused)
    places += [Address(v) for v in node.results]
    held = (*operands, *node.results)
    loop = _LOOPS.get(node.name, _Loop(node.name, pairs=node.name.endswith("_of_pairs")))
    parts = loop.parts(len(operands), len(node.results))
    shapes = [v.shape[: len(v.shape) + 1 - p] for v, p in zip(held, parts, strict=True)]
    lead = shapes[0][:-2]
    count, m, n = math.prod(lead), shapes[0][-1], shapes[len(operands) - 1][-1]
    element = _element(operands[0].dtype)
    if node.name in _TRIANGULAR:
        words = (*places, count, m, n)
        kernel: Any = ("triangular", element, bool(node.params[0]), loop.pairs)
        return [*calls, Call(kernel, words, 1, node.results, checks=True, doubts=True)]
    cores = [s[len(lead) :] for s in shapes]
    sizes = [p * math.prod(c) for c, p in zip(cores, parts, strict=True)]
    inner = np.dtype(_inner(loop, operands[0]).lower())
    widened, wide = inner != operands[0].dtype, inner.itemsize
    copied = [widened or (loop.symmetric and k < len(operands)) for k in range(len(held))]
    room = [
        Address(Buffer(count * s, inner)) if c else 0 for c, s in zip(copied, sizes, strict=True)
    ]
    strides = [
        wide * p * math.prod(c[k + 1 :])
        for c, p in zip(cores, parts, strict=True) for k in range(len(c))
    ]  # fmt: skip
    numbers = [count, m, n] if loop.name == "solve" else [count, m]
    words = (*places, *room, *sizes, *numbers, *[wide * s for s in sizes], *strides)
    counts = (len(operands), len(held), len(numbers))
    kernel = ("matrices", node.name, element, f"f{8 * wide}", *counts)
    return [*calls, Call(kernel, words, 1, node.results, checks=True, doubts=True)]


def print_matrices(
    module: Module, name: str, op: str, element: str, inner: str, given: int, all_: int,
    lengths: int,
) -> None:  # fmt: skip
    """Add the kernel of an op, computed in `inner`. Frame: for each array, operands first, its
    place, its copy's, and elements of one matrix; then the arrays that NumPy's loop takes: lengths
    and strides.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    space, own = f.load(PTR, frame), f.at(frame, CONTROL_WORDS, "i64")
    loop = _LOOPS[op]
    places, copies = (f.pointers(own, s, all_) for s in (0, all_))
    sizes = f.words(own, 2 * all_, all_)
    dimensions = f.at(own, 3 * all_, "i64")
    count, m = f.words(dimensions, 0, 2)
    table = f.allocate(PTR, all_)
    alike = element == inner
    for k in range(all_):
        symmetric = loop.symmetric and k < given
        plain = alike and not symmetric
        f.store(places[k] if plain else copies[k], f.at(table, k, "i64"))
        if symmetric:
            _symmetric(f, places[k], copies[k], count, m, element, inner, pairs=loop.pairs)
        elif not alike and k < given:
            converted(f, places[k], copies[k], count * sizes[k], element, inner)
    strides = f.at(dimensions, lengths, "i64")
    operands = [table, dimensions, strides, f.null()]
    sides = f.word(dimensions, 2) if loop.name == "solve" else None
    call_lapack(f, f"funct_{op}_of_matrices_{inner}", loop.name, m, m, operands, sides)
    first, real = places[given] if alike else copies[given], typed(inner)
    if loop.fails:
        refuse(
            f, count, space, lambda t: f.isnan(f.load(real, f.at(first, t * sizes[given], inner)))
        )
    for k in range(given, all_ if not alike else given):
        converted(f, copies[k], places[k], count * sizes[k], inner, element)
    f.ret()


def call_lapack(
    f: Emitter, name: str, loop: str, rows: Value, columns: Value, operands: list[Value],
    sides: Value | None = None,
) -> None:  # fmt: skip
    """Call NumPy's loop, by that name here, on matrices of so many rows and columns, with as many
    threads of BLAS as eagerly. sides: how many right sides there are.
    """
    if loop not in lapack.ALONE:
        f.call(name, None, operands)
        return
    elements = rows * columns
    least, most = (n * n for n in lapack.ALONE[loop])
    within = f.compare("ge", elements, least) & f.compare("lt", elements, most)
    if sides is not None:
        within = within & f.compare("le", sides * lapack.SIDES, rows)
    call_alone(f, name, operands, within)


def call_alone(f: Emitter, name: str, operands: list[Value], where: Value | None = None) -> None:
    """Call a function of BLAS or LAPACK on the thread that calls. where: only if that holds."""
    with alone(f, where):
        f.call(name, None, operands)


def converted(f: Emitter, x: Value, to: Value, count: Value, before: str, after: str) -> None:
    """So many numbers as another element, in other memory."""

    def one(k: Value, _: list[Value]) -> list[Value]:
        f.store(f.convert(f.load(typed(before), f.at(x, k, before)), after), f.at(to, k, after))
        return []

    f.loop(0, count, 1, one)


def _symmetric(
    f: Emitter, x: Value, to: Value, count: Value, m: Value, element: str, inner: str,
    pairs: bool,
) -> None:  # fmt: skip
    """x/2 + xᴴ/2 of each matrix."""
    real, width = typed(element), 1 + pairs

    def row(r: Value, _: list[Value]) -> list[Value]:
        first, i = f.div(r, m) * m * m, f.rem(r, m)

        def one(j: Value, _: list[Value]) -> list[Value]:
            places = ((first + i * m + j) * width, (first + j * m + i) * width)
            for part in range(width):
                a, b = (f.load(real, f.at(x, p + part, element)) * 0.5 for p in places)
                half = a - b if part else a + b
                f.store(f.convert(half, inner), f.at(to, places[0] + part, inner))
            return []

        f.loop(0, m, 1, one)
        return []

    f.loop(0, count * m, 1, row)


def refuse(f: Emitter, count: Value, space: Value, wrong: Any) -> None:
    """Say that the program is not right if one of so many things is wrong."""

    def one(t: Value, _: list[Value]) -> list[Value]:
        f.when(wrong(t), lambda: f.store(f.constant(I64, WRONG), space))
        return []

    f.loop(0, count, 1, one)


def print_triangular(module: Module, name: str, element: str, lower: bool, pairs: bool) -> None:
    """Add the solution of triangular systems. Frame: matrices, right sides, results; how many, rows
    and columns. pairs: numbers are complex.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    space, own = f.load(PTR, frame), f.at(frame, CONTROL_WORDS, "i64")
    a, b, out = f.pointers(own, 0, 3)
    count, m, n = f.words(own, 3, 3)
    real, width = typed(element), 1 + pairs
    wide = counts_in_64_bits(element, pairs)
    assert wide is not None, "there is BLAS where systems are lowered"
    copy_bytes(f, out, b, count * m * n * (width * real.bytes))

    def diagonal(t: Value) -> Value:
        at = f.div(t, m) * m * m + f.rem(t, m) * (m + 1)
        zero = f.eq(f.load(real, f.at(a, at * width, element)), 0.0)
        if pairs:
            zero = zero & f.eq(f.load(real, f.at(a, at * width + 1, element)), 0.0)
        return zero

    refuse(f, count * m, space, diagonal)

    def one(t: Value, _: list[Value]) -> list[Value]:
        matrix, x = f.at(a, t * m * m * width, element), f.at(out, t * m * n * width, element)
        print_solution(f, element, wide, lower, matrix, x, m, n, pairs=pairs)
        return []

    f.loop(0, count, 1, one)
    f.ret()


def _address(op: str, element: str) -> int | None:
    char = "f" if element == "f32" else "d"
    loop = _LOOPS[op]
    return lapack.address(loop.name, char.upper() if loop.pairs else char)


for _kind in ("f32", "f64"):
    for _op in _LOOPS:
        _name = f"funct_{_op}_of_matrices_{_kind}"
        offer(_name, functools.partial(_address, _op, _kind))
