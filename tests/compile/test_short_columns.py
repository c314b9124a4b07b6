"""Columns of many short rows: the same numbers from rows that lie side by side."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.rewriting.short_columns import rows_together
from funct.nn import functional


def standard(x: Any, b: Any) -> Any:
    y = x - xp.mean(x, axis=0)
    return y / xp.sqrt(xp.mean(y * y, axis=0, keepdims=True) + 1e-5) * b


EXACT = {
    "bias": lambda x, b: xp.maximum(x + b, 0.0),
    "bias of many": lambda x, b: xp.max(xp.reshape(x, (12, -1, 10)) + b, axis=(0, 1)),
    "largest": lambda x, b: xp.max(x * b, axis=0),
    "smallest of each": lambda x, b: xp.where(x == xp.min(x, axis=0), b, x),
    "whole": lambda x, b: (x + b, xp.sum(x + b > 0, axis=0)),
}
NEAR = {
    "softmax": lambda x, b: functional.softmax(x, 0) * b,
    "log_softmax": lambda x, b: functional.log_softmax(x * b, 0),
    "standard": standard,
    "product": lambda x, b: (xp.tanh(x + b) @ xp.ones((b.shape[0], 3), dtype=x.dtype)) * 0.01,
}


def drawn(shape: tuple[int, ...], dtype: Any = np.float32) -> list[Any]:
    rng = np.random.default_rng(0)
    return [xp.asarray(rng.normal(size=s).astype(dtype)) for s in (shape, shape[-1:])]


def moved(f: Any, *args: Any) -> bool:
    graph = ft.make_graph(f)(*args)
    return rows_together(graph) is not graph


@pytest.mark.parametrize("name", EXACT | NEAR)
def test_values_and_gradients_are_the_same(name: str) -> None:
    f = (EXACT | NEAR)[name]
    weights = xp.sin(xp.arange(10.0, dtype=xp.float32))

    def loss(x: Any, b: Any) -> Any:
        leaves = [v for v in ft.tree.leaves(f(x, b)) if v.dtype == x.dtype]
        return sum(xp.sum(v * weights[: v.shape[-1]]) for v in leaves)

    x, b = drawn((516, 10))
    for found, expected in zip(
        ft.tree.leaves(ft.jit(f)(x, b)), ft.tree.leaves(f(x, b)), strict=True
    ):
        if name in EXACT:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
    slopes = ft.grad(loss, argnums=(0, 1))
    for found, expected in zip(ft.jit(slopes)(x, b), slopes(x, b), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    ("f", "shape", "wanted"),
    [
        (lambda x, b: x + b, (512, 10), True),
        (lambda x, b: xp.sum(x, axis=0), (516, 13), True),
        (lambda x, b: x + b if xp.sum(b) < 1e6 else x, (512, 10), True),  # with a guard
        (lambda x, b: xp.sum(x * b, axis=(0, 1)), (4, 129, 13), True),
        (lambda x, b: xp.sum(x * b, axis=0), (4, 129, 13), False),
        (lambda x, b: xp.reshape(x, (-1, 10)) + b, (12, 43, 10), True),
        (lambda x, b: x * 2.0, (512, 10), False),
        (lambda x, b: x + b, (512, 16), False),
        (lambda x, b: x + b, (513, 10), False),
        (lambda x, b: x + b, (64, 10), False),
        (lambda x, b: (x - xp.mean(x, axis=1, keepdims=True)) * b, (512, 10), False),
        (lambda x, b: xp.sum(x + b, axis=1), (512, 10), False),
        (lambda x, b: (x + b).T * 2.0, (512, 10), False),
    ],
)
def test_it_is_done_for_columns_where_nothing_looks_along_rows(
    f: Any, shape: tuple[int, ...], wanted: bool
) -> None:
    assert moved(f, *drawn(shape)) is wanted


def test_loops_have_rows_of_whole_vectors() -> None:
    x, b = drawn((4096, 10))
    assert "80 columns" in ft.jit(lambda x, b: x + b).show(x, b, form="loops")
