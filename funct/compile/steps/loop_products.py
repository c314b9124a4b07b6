"""A product of small matrices, or of a stack of such, with NumPy's bits: by the loop behind
`numpy.matmul`, which sees where they lie.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import copy
from funct.compile.steps.ufuncs import NUMPYS, data_of, loop_of_numpy
from funct.graph import Node
from funct.kernels.linalg.products import FEW_OF_STACKS, LONG
from funct.kernels.llvm import I64, PTR, Module

__all__ = [
    "is_numpys_product", "lower_loop_product", "may_be_numpys_product", "print_loop_product",
]  # fmt: skip

_FEW = 1 << 11  # elements of a matrix; of more, who multiplies depends on more than the dtype


def is_numpys_product(step: Any) -> bool:
    """Whether a step is such a product, by NumPy's loop."""
    return isinstance(step, Node) and step.name == f"{NUMPYS}matmul"


def may_be_numpys_product(e: Node) -> bool:
    """Whether a node is a product of two matrices that may be such a step, or of as many as many of
    which the elements follow each other, or of many and one.
    """
    if e.name != "matmul":
        return False
    held = [*e.reads, *e.results]
    if len(held) < 3 or len({v.dtype for v in held}) > 1 or held[0].dtype.char not in "fd":
        return False
    by_vector = len(held[2].shape) == 2 and 1 in held[2].shape
    few = all(0 < math.prod(v.shape) < (LONG if by_vector else _FEW) for v in held)
    leads = {v.shape[:-2] for v in held}
    alike = len(leads - {()}) < 2
    return few and alike and loop_of_numpy(np.matmul, held[0].dtype) is not None


def lower_loop_product(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of stacks that do not follow each other: sizes and strides are those
    that NumPy hands over.
    """
    (x, y), (out,) = node.reads, node.results
    byte = out.dtype.itemsize
    loop = loop_of_numpy(np.matmul, out.dtype)
    assert loop is not None, "asked for by `may_be_numpys_product`"
    calls: list[Call] = []
    seen = []
    for v in (x, y):
        view = fused.views[v]
        if len(v.shape) > 2 and not view.is_run:
            added, view = copy(view, fused)
            calls += added
        seen.append(view)
    left, right = seen
    places = [Address(v.root, v.offset * byte) for v in seen]
    *lead, rows, columns = out.shape
    terms = x.shape[-1]
    if len(x.shape) > 2 and len(y.shape) == 2 and math.prod(out.shape) * terms >= FEW_OF_STACKS:
        # eagerly it is one tall matrix
        lead, rows = [], math.prod(x.shape[:-1])
    down = left.strides[-2:] if len(x.shape) == 2 else (terms, 1)
    within = (*down, *right.strides[-2:], columns, 1)
    apart = [math.prod(v.shape[-2:]) if v.shape[:-2] else 0 for v in (x, y, out)]
    strides = [s * byte for s in (*apart, *within)]
    words = (*places, Address(out), math.prod(lead), rows, terms, columns, *strides)
    return [*calls, Call(("loop product", *loop), words, 1, (out,))]


def print_loop_product(module: Module, name: str, loop: str, data: bool) -> None:
    """Add the kernel of a product. Frame: matrices and result; how many products, rows, terms and
    columns; strides from product to product, and within each matrix, in bytes.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    table = f.allocate(PTR, 3)  # which a loop may change
    for k in range(3):
        f.store(f.pointer(frame, k), f.at(table, k, "i64"))
    sizes, strides = (f.at(frame, k, "i64") for k in (3, 7))
    f.call(loop, None, [table, sizes, strides, data_of(f, loop, data)])
    f.ret()
