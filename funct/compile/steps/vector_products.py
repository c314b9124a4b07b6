"""Products of a matrix and a vector, as loops of our own (`vector_text.py`)."""

from __future__ import annotations

import math

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call, Word
from funct.compile.loops.scalars import ELEMENTS
from funct.graph import Node, Var
from funct.kernels.cpu.products.few_rows import FEW_ROWS
from funct.kernels.cpu.products.vector_text import TASK, cut, cut_stack
from funct.kernels.linalg.products import LONG
from funct.kernels.table import met

__all__ = ["is_eager_vector_product", "vector_product", "vector_products"]


def is_eager_vector_product(e: Node) -> bool:
    """Whether a node is a product of a matrix and a vector that eager execution computes by these
    loops as well, in one task: so with the same bits.
    """
    held = [*e.reads, *e.results]
    if e.name != "matmul" or len(held) < 3 or not met(FEW_ROWS):
        return False
    if len({v.dtype for v in held}) > 1 or held[0].dtype.char not in "fd":
        return False
    if any(len(v.shape) != 2 for v in held) or held[0].shape[1] == 1:
        return False
    rows, columns = held[2].shape
    most = max(math.prod(v.shape) for v in held)
    return min(rows, columns) == 1 < max(rows, columns) and LONG <= most <= TASK


def vector_product(
    matrix: Address, vector: Address, out: Var, terms: int, leading: int, *, across: bool
) -> list[Call]:
    """The calls. across: whether the matrix's rows lie along the result, not along the sum."""
    length, element = math.prod(out.shape), ELEMENTS[out.dtype]
    found = cut(length, terms, leading, across=across)
    kernel = ("columns" if across else "rows", element, 0)
    if found.parts == 1:
        words: tuple[Word, ...] = (matrix, vector, Address(out), *found.words)
        return [Call(kernel, words, found.tasks, (out,))]
    parts = Buffer(length * found.parts, np.dtype(out.dtype))
    combined = (Address(parts), Address(out), found.parts, length, length)
    return [
        Call(kernel, (matrix, vector, Address(parts), *found.words), found.tasks, (parts,)),
        Call(("combine", "sum", element), combined, 1, (out,)),
    ]


def vector_products(
    matrix: Address, vector: Address, out: Var, sizes: tuple[int, int, int],
    stack: tuple[tuple[int, ...], list[int]], *, across: bool,
) -> Call:  # fmt: skip
    """The call for a stack of them. sizes: elements of a result, terms, elements from row to row.
    stack: its shape, and where its products lie (`stack_words`).
    """
    shape, axes = stack
    found = cut_stack(math.prod(shape), *sizes)
    words: tuple[Word, ...] = (matrix, vector, Address(out), *found.words, *axes)
    kernel = ("columns" if across else "rows", ELEMENTS[out.dtype], len(shape))
    return Call(kernel, words, found.tasks, (out,))
