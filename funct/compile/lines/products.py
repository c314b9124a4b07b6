"""Products of small matrices as lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from funct.compile.lines.lines import Dot, Spilled
from funct.compile.lines.vectors import MOST_BYTES, Array, NoLines, Vectors
from funct.compile.loops.scalars import ELEMENTS, Printing
from funct.compile.loops.views import VIEWS, View
from funct.device import host
from funct.graph import Var
from funct.kernels.llvm import typed

__all__ = ["Products"]

_FEW_TERMS = 64  # vectors of a product whose terms are lines of their own
_MOST_STACKED = 16  # products of one stack

_FLOATS = frozenset({"f32", "f64"})
_FUSED = Printing(lambda f, x, y, z: f.fma(x, y, z), _FLOATS)
_TIMES = Printing(lambda f, x, y: x * y, _FLOATS)
_PLUS = Printing(lambda f, x, y: x + y, _FLOATS)


class Products(Vectors):
    """Who makes lines of products."""

    def product(self, a: Array, b: Array, out: Var) -> int:
        """The line of a matmul, of stacks too."""
        if {a.element, b.element, ELEMENTS[out.dtype]} not in ({"f32"}, {"f64"}):
            raise NoLines(f"a product of {a.element} and {b.element}")
        (m, k), n = a.view.shape[-2:], b.view.shape[-1]
        stack = tuple(out.shape[:-2])
        rows = math.prod(stack) * m
        if stack and math.prod(b.view.shape[:-2]) == 1:
            tall = _reshaped(a.view, (rows, k))
            if tall is not None:
                return self._matrix(tall, View(b.view.root, (k, n), b.view.strides[-2:],
                                               b.view.offset), a, b, (rows, k, n))  # fmt: skip
        if math.prod(stack) > _MOST_STACKED:
            raise NoLines("a product of many matrices")
        x, y = a.view.broadcast((*stack, m, k)), b.view.broadcast((*stack, k, n))
        parts = []
        for s, index in enumerate(np.ndindex(*stack)):
            line = self._matrix(_nth(x, index), _nth(y, index), a, b, (m, k, n))
            at = np.full(rows * n, -1)
            at[s * m * n : (s + 1) * m * n] = np.arange(m * n)
            parts.append((line, at))
        return self.joined(parts, a.element) if len(parts) > 1 else parts[0][0]

    def _matrix(self, x: View, y: View, a: Array, b: Array, shape: tuple[int, int, int]) -> int:
        """The product of two matrices, which are views of a's and b's lines."""
        m, k, n = shape
        if m * n * typed(a.element).bytes > MOST_BYTES:
            raise NoLines("a large product")
        a, b = replace(a, view=x), replace(b, view=y)
        size = typed(a.element).bytes
        small = max(m * k, k * n) * size <= MOST_BYTES
        if small and k * -(-m * n * size // host().vector_bytes) <= _FEW_TERMS:
            return self._terms(a, b, shape)
        if n == 1 and m > 1:  # a row times the transpose
            a, b = _transposed(b), _transposed(a)
            m, n = n, m
        self.price(8 * m * n * size)
        left, down, along, first = self._numbers(a)
        right, below, start = self._rows(b, k, n)
        strides, lengths = (down, along, below), (m, k, n)
        return self.add(Dot(left, right, (first, start), strides, lengths, a.element))

    def _terms(self, a: Array, b: Array, shape: tuple[int, int, int]) -> int:
        m, k, n = shape
        x, y = self.vector(a), self.vector(b)
        i, j = (g.ravel() for g in np.indices((m, n)))
        sums: list[int] = []
        several = 1 if k < 4 else 2 if k < 12 else 4
        for t in range(k):
            factors = [self.pick(x, i * k + t, a.element), self.pick(y, t * n + j, a.element)]
            if len(sums) < several:
                sums.append(self.op("multiply", _TIMES, factors, a.element, m * n))
            else:
                line = sums[t % several]
                sums[t % several] = self.op("fma", _FUSED, [*factors, line], a.element, m * n)
        while len(sums) > 1:
            sums = [
                self.op("add", _PLUS, pair, a.element, m * n)
                for pair in zip(sums[::2], sums[1::2], strict=True)
            ]
        return sums[0]

    def _numbers(self, a: Array) -> tuple[int, int, int, int]:
        """A matrix whose numbers are read one by one: place, strides, first element."""
        if a.in_memory:
            down, along = a.view.strides
            return a.line, down, along, a.view.offset
        return self.add(Spilled(self.vector(a), a.element)), a.view.shape[1], 1, 0

    def _rows(self, b: Array, k: int, n: int) -> tuple[int, int, int]:
        """A matrix whose rows are runs of memory: place, from row to row, first element."""
        if not b.in_memory:
            return self.add(Spilled(self.vector(b), b.element)), n, 0
        down, along = b.view.strides
        if along == 1 or n == 1:
            return b.line, down, b.view.offset
        return self.packed(b, b.view.offset, b.view.strides, (k, n)), n, 0


def _reshaped(view: View, shape: tuple[int, ...]) -> View | None:
    found: View | None = VIEWS["reshape"](view, shape)
    return found


def _nth(view: View, index: Sequence[int]) -> View:
    """A matrix of a stack."""
    moved = sum([i * s for i, s in zip(index, view.strides, strict=False)])
    return View(view.root, view.shape[-2:], view.strides[-2:], view.offset + moved)


def _transposed(a: Array) -> Array:
    v = a.view
    return replace(a, view=View(v.root, v.shape[::-1], v.strides[::-1], v.offset))
