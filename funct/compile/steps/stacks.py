"""Matrices of a program, and stacks of them: where the operands of one of their products lie."""

from __future__ import annotations

import math

from msgspec import Struct

from funct.compile.loops.views import View

__all__ = ["Matrix", "stack_words"]


class Matrix(Struct, frozen=True):
    """A stack of matrices as BLAS takes them: leading dimension, and how the stack moves."""

    view: View
    transposed: bool
    leading: int
    stack: tuple[tuple[int, int], ...]  # (length, stride), the innermost last


def _terms(stack: tuple[int, ...], matrix: Matrix) -> list[int]:
    """Strides of the operand along the axes of the result's stack; 0 where it broadcasts."""
    own = [0 if length == 1 else stride for length, stride in matrix.stack]
    return [0] * (len(stack) - len(own)) + own if stack else []


def stack_words(stack: tuple[int, ...], a: Matrix, b: Matrix, byte: int = 1) -> list[int]:
    """For each axis of a stack the words that say where its products lie (`find_products`)."""
    terms = zip(_terms(stack, a), _terms(stack, b), strict=True)
    return [
        word
        for k, (n, (x, y)) in enumerate(zip(stack, terms, strict=True))
        for word in (math.prod(stack[k + 1 :]), n, x * byte, y * byte)
    ]
