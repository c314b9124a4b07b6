"""What was made of a graph can be read: loops, LLVM text, assembly, and why a step stands alone."""

from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from funct.compile import show_assembly, show_llvm, show_loops, why_not_fused


def layer(x: Any, w: Any) -> Any:
    """A layer, and an order of its rows."""
    y = xp.tanh(x @ w + 1.0)
    return y - xp.max(y, axis=1, keepdims=True), xp.sort(y, axis=0)


def graph() -> Any:
    """Its graph."""
    return ft.make_graph(layer)(xp.asarray(np.ones((8, 5))), xp.asarray(np.ones((5, 6))))


def test_loops_are_readable() -> None:
    """The function first, then each kernel as loops over rows and columns."""
    text = show_loops(graph(), "reduce-overhead")
    assert text.startswith("def run(x0, x1):")
    assert "product (8, 5) @ (5, 6) of BLAS" in text
    assert "for i in rows:" in text
    assert "= max(" in text


def test_code_can_be_seen() -> None:
    """The kernels as LLVM text and as assembly."""
    text = show_llvm(graph())
    assert "define void @kernel0(ptr %frame, i64 %task)" in text
    assert "kernel0:" in show_assembly(graph())


def test_what_stands_alone_says_why() -> None:
    """Each step that is no loops, in order, with the user's line."""
    product, order = why_not_fused(graph())
    assert product.startswith("matmul: tiles or BLAS compute it")
    assert order.startswith("sort: sort has no printing")
    assert "xp.sort(y, axis=0)" in order


def test_known_numbers_are_no_arrays() -> None:
    """A cotangent of ones costs nothing."""
    slope = ft.grad(lambda x: xp.sum(xp.sin(x) * 2.0))
    text = show_loops(ft.make_graph(slope)(xp.asarray(np.ones(50))), "reduce-overhead")
    assert "broadcast" not in text
    assert text.count("multiply") == 1
