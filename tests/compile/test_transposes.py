"""Copies of transposed views: each element in its place, and nothing beside the arrays touched."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.loops.transposes import print_transposed, transposed
from funct.compile.loops.views import View, dense
from funct.device.machine_code import assembly
from funct.graph import Var
from funct.kernels.llvm import Module
from tests.compile.checked import checking, run
from tests.compile.test_native import compiled
from tests.compile.test_targets import X86

# shape, axes: matrices, stacks of them, axes between, few elements that stay together
CASES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((8, 8), (1, 0)), ((9, 17), (1, 0)), ((16, 64), (1, 0)), ((100, 33), (1, 0)),
    ((257, 300), (1, 0)), ((1031, 129), (1, 0)), ((3, 40, 50), (0, 2, 1)), ((40, 3, 50), (2, 1, 0)),
    ((1, 1000, 8), (2, 1, 0)), ((5, 20, 3, 30), (0, 3, 2, 1)), ((900, 9, 8), (0, 2, 1)),
    ((2, 3, 4, 16, 17), (0, 1, 4, 2, 3)), ((70, 9, 16, 2), (2, 1, 0, 3)), ((7, 40), (1, 0)),
]  # fmt: skip
DTYPES = ["float32", "float64", "int8", "uint16", "int64", "float16"]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Different ones, as far as the type has them."""
    return (np.arange(np.prod(shape)) % 1009 % 127).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_element_is_where_numpy_puts_it(case: Any, dtype: str) -> None:
    shape, axes = case
    x = numbers(shape, dtype)
    one = np.ones((), dtype)
    with checking():
        made = compiled(lambda x: xp.permute_dims(x, axes) + one, x)
        (found,) = run(made, x)
    np.testing.assert_array_equal(found, np.transpose(x, axes) + one)
    assert found.dtype == dtype


def test_what_is_cut_flipped_and_repeated_is_right_too() -> None:
    x = numbers((64, 48), "float32")
    for fun in (
        lambda x: x[3:50, 5:].T * 2, lambda x: x[::2, ::3].T * 2, lambda x: x[:, ::-1].T * 2,
        lambda x: x[::-1].T * 2, lambda x: xp.broadcast_to(x.T, (5, 48, 64)) * 2,
        lambda x: x.T + x[:48, :].T[:, :48].T[:, :1], lambda x: xp.sum(x.T * 2, axis=0),
        lambda x: xp.sum(x.T * xp.sin(x.T), axis=1), lambda x: xp.sin(x) @ x.T[:, :9],
        lambda x: xp.concat([x.T, x.T * 2]), lambda x: xp.reshape(x.T, (6, 8, 64))[1:] * 2,
    ):  # fmt: skip
        with checking():
            made = compiled(fun, x)
            (found,) = run(made, x)
        np.testing.assert_allclose(found, fun(xp.asarray(x)), 1e-4, 1e-4)


def test_bodies_of_loops_have_them() -> None:
    """What a loop reads at each step, and what it carries."""
    x = xp.asarray(numbers((12, 12), "float32")) / 127

    def steps(x: Any) -> Any:
        return ft.fori_loop(0, 4, lambda k, c: xp.sin(c.T + x.T) @ c * 0.1, x)

    found = ft.jit(steps, mode="reduce-overhead")(x)
    np.testing.assert_allclose(found, steps(x), 1e-5, 1e-5)


def test_threads_do_not_show() -> None:
    x = numbers((513, 777), "float64")
    made = compiled(lambda x: x.T * 2, x)
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            np.testing.assert_array_equal(made.run(x)[0], x.T * 2)


def test_which_views_are_copied_so() -> None:
    """Where rows of the result are short, or it repeats elements, loops are as good."""
    v = dense(Var("x", (64, 32), np.dtype("float32")))
    turned = View(v.root, (32, 64), (1, 32))
    assert transposed(turned) is not None
    assert transposed(v) is None
    assert transposed(turned.broadcast((3, 32, 64))) is None
    assert transposed(View(v.root, (7, 64), (1, 32))) is None
    assert transposed(View(v.root, (32, 7), (1, 32))) is None


@pytest.mark.parametrize("side", [8, 16])
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("cpu", X86)
def test_code_for_other_processors(
    cpu: str, element: str, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It assembles, and has no wider vectors than they have."""
    target, _, beyond = X86[cpu]
    monkeypatch.setattr("funct.kernels.llvm.emitter.host", lambda: target)
    module = Module()
    print_transposed(module, "kernel0", element, side)
    lines = assembly(module.text(), target)
    assert "kernel0" in lines
    assert beyond is None or beyond not in lines
