"""Products of matrices inside of a program in our own tiles (`kernels/cpu/products/tiled.py`)."""

from __future__ import annotations

import math

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call, Word
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.steps.stacks import Matrix, stack_words
from funct.graph import Var
from funct.kernels.cpu.products.gemm import foretell
from funct.kernels.cpu.products.gemm_tile import Tile
from funct.kernels.cpu.products.tiled import Laid, Tasks, is_worth, tasks_of

__all__ = ["gemm", "is_tiled", "tiles_of"]

_Sizes = tuple[int, int, int]  # rows, columns, terms


def is_tiled(a: Matrix, b: Matrix, out: Var, sizes: _Sizes) -> bool:
    """Whether a product is worth it."""
    several = math.prod(out.shape[:-2]) > 1
    return is_worth(sizes, ELEMENTS[out.dtype], _laid(a), _laid(b), several=several)


def _laid(matrix: Matrix) -> Laid:
    return Laid(matrix.transposed, matrix.leading)


def _tasks(a: Matrix, b: Matrix, out: Var, count: int, sizes: _Sizes) -> Tasks:
    return tasks_of(sizes, ELEMENTS[out.dtype], _laid(a), _laid(b), count)


def tiles_of(a: Matrix, b: Matrix, out: Var, count: int, sizes: _Sizes) -> list[Tile]:
    """The tiles of a product, or of so many: whose code may be begun before there is a call."""
    return _tasks(a, b, out, count, sizes).tiles()


def gemm(a: Matrix, b: Matrix, out: Var, stack: tuple[int, ...], sizes: _Sizes) -> Call:
    """The call."""
    byte, count = out.dtype.itemsize, math.prod(stack)
    stack = stack if count > 1 else ()
    tasks = _tasks(a, b, out, count, sizes)
    room = Buffer(tasks.room, np.dtype(out.dtype))
    words: list[Word] = [
        Address(a.view.root, a.view.offset * byte), Address(b.view.root, b.view.offset * byte),
        Address(out), Address(room), *tasks.words(), *stack_words(stack, a, b),
    ]  # fmt: skip
    foretell(tasks.tiles())
    kernel = ("gemm", tasks.element, len(stack), *tasks.kind)
    return Call(kernel, tuple(words), tasks.number, (out, room))
