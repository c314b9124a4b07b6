"""Products of sparse matrices inside of a program: the kernels that eager execution calls.

Whether all indices are in bounds is a step of its own, before the loop where each step has the same
matrix. A product of a matrix that is not in bounds touches no memory: the program says at its end
that it is not right, and on the slow way the op raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec.structs import replace

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import places_of
from funct.compile.loops.kernel import CONTROL_WORDS, WRONG
from funct.compile.steps.flat import flat_call, print_flat
from funct.compile.steps.moves import zeros
from funct.graph import Node
from funct.kernels.cpu.products import csr
from funct.kernels.linalg.csr import last, parts, takes
from funct.kernels.llvm import I64, PTR, Module

__all__ = ["is_sparse", "lower_sparse", "print_judged", "print_verdict"]

_NAMES = ("sparse_matmul", "sampled_matmul")
_INDEX = np.dtype(np.int64)


def is_sparse(step: Any) -> bool:
    """Whether a step is such an op, of numbers and indices that the kernels know."""
    held = arrays(step, _NAMES)
    if not held:
        return False
    *operands, out = held
    entries = out if step.name == "sampled_matmul" else operands[0]
    return entries.shape == operands[2].shape and takes(*[v.dtype for v in operands])


def lower_sparse(node: Node, fused: Fused) -> list[Call]:
    """The calls, after copies of what does not lie one after the other."""
    operands: Any = node.operands
    (out,), sampled = node.results, node.name == "sampled_matmul"
    calls, places = places_of(operands, fused)
    a, b, indices, indptr = zip(places, [v.dtype for v in operands], strict=True)
    columns, transposed = (operands[1].shape[0], False) if sampled else node.params
    entries, rows, k = operands[2].shape[0], operands[3].shape[0] - 1, operands[1].shape[1]
    y = Address(out), out.dtype
    part, tasks = parts(rows, entries * k)
    if transposed:
        product = flat_call(csr.scattered.fn, [a, indices, indptr, b, y, rows, k], [out])
    else:
        each = [] if k == 1 and not sampled else [k]
        given = [a, b, indices, indptr] if sampled else [a, indices, indptr, b]
        fn = csr.dots.fn if sampled else csr.matmul.fn if each else csr.matvec
        product = flat_call(fn, [*given, y, rows, *each, part, tasks], [out], tasks)
    if transposed or sampled:
        calls.append(zeros(out))
    found = Address(Buffer(1, _INDEX))
    fits = [indices, indptr, entries, rows, last(operands[2].dtype, columns)]
    asked = _with(flat_call(csr.fits.fn, fits, [found.of]), "verdict", found)
    return [*calls, asked, replace(_with(product, "judged", found), checks=True)]


def _with(call: Call, kind: str, found: Address) -> Call:
    """The call of a function on flat arrays as a kernel that has to do with a number, too."""
    return replace(call, kernel=(kind, *call.kernel[1:]), words=(found, *call.words))


def print_verdict(
    module: Module, name: str, fn: Callable[..., Any], kinds: tuple[Any, ...], tasks: bool
) -> None:
    """Add what keeps the number that a function on flat arrays gives. Frame: where, then a word for
    each argument.
    """
    print_flat(module, f"{name}_flat", fn, kinds, tasks)
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    found = f.call(f"{name}_flat", I64, [f.at(frame, 1, "i64")])
    assert found is not None
    f.store(found, f.load(PTR, frame))
    f.ret()


def print_judged(
    module: Module, name: str, fn: Callable[..., Any], kinds: tuple[Any, ...], tasks: bool
) -> None:
    """Add what calls a function on flat arrays unless a number is 0: then the program is not right.
    Frame: where the number is, then a word for each argument.
    """
    print_flat(module, f"{name}_flat", fn, kinds, tasks)
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    space, own = f.load(PTR, frame), f.at(frame, CONTROL_WORDS, "i64")

    def run() -> None:
        given = [f.at(own, 1, "i64"), *([task] if tasks else [])]
        f.call(f"{name}_flat", I64, given)

    good = f.ne(f.load(I64, f.load(PTR, own)), 0)
    f.when(good, run)
    f.when(~good, lambda: f.store(f.constant(I64, WRONG), space))
    f.ret()
