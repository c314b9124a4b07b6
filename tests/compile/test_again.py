"""What loops compute again instead of reading it: the same numbers, with less in memory."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.loops.kernel import Kernel, Load, Op
from funct.nn import functional
from tests.compile.test_native import compiled


def kernels(made: Any) -> list[Kernel]:
    return [c.kernel for c in made.calls if isinstance(c.kernel, Kernel)]


def step(x: Any, w: Any, v: Any) -> Any:
    """A layer, an activation and a layer, with their gradients."""

    def loss(w: Any, v: Any) -> Any:
        return xp.sum(functional.gelu(x @ w, "tanh") @ v)

    return ft.value_and_grad(loss, argnums=(0, 1))(w, v)


@pytest.mark.parametrize("rows", [512, 16])
def test_a_gradient_reads_what_is_costly_alone(rows: int) -> None:
    """Of gelu's forward pass the backward one reads x and tanh; of few, all there is."""
    rng = np.random.default_rng(0)
    x, w, v = (rng.normal(size=s).astype("f") for s in ((rows, 32), (32, 64), (64, 48)))
    made = compiled(step, x, w, v)
    elements = [k for k in kernels(made) if any(isinstance(e, Op) for e in k.values)]
    back = max(elements, key=lambda k: len(k.values))
    read = sum([isinstance(e, Load) and e.kind == "full" for e in back.values])
    assert (read == 3) is (rows == 512)
    names = [e.name for k in elements for e in k.values if isinstance(e, Op)]
    assert names.count("tanh") == 1
    expected = ft.tree.leaves(step(*map(xp.asarray, (x, w, v))))
    for a, e in zip(made.run(x, w, v), expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-4)


def test_what_the_caller_gets_is_written_once() -> None:
    """An array that is a result, and that later loops compute again, has one home."""
    x = np.linspace(-2, 2, 1 << 15).astype("f").reshape(256, 128)

    def f(x: Any) -> Any:
        y = xp.tanh(x)
        z = y + 1.0
        return z, (z @ x.mT) @ x * z * y

    made = compiled(f, x)
    first, last = kernels(made)
    assert len(first.stores) == 2
    assert len(last.stores) == 1
    assert [e.name for e in last.values if isinstance(e, Op)].count("add") == 1
    assert len(last.accesses) == 3
    for actual, expected in zip(made.run(x), f(xp.asarray(x)), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_sums_of_products_and_rows_are_not_kept() -> None:
    """A gradient reads the product, which is there, for all that adding a row and a few numbers
    makes of it.
    """
    rng = np.random.default_rng(0)
    given = [rng.normal(size=s).astype("f") / 8 for s in ((512, 32), (32, 64), (64,), (64, 48))]

    def run(x: Any, *layers: Any) -> Any:
        def loss(w: Any, b: Any, v: Any) -> Any:
            return xp.sum((functional.gelu(x @ w + b) @ v) ** 2)

        return ft.grad(loss, argnums=(0, 1, 2))(*layers)

    made = compiled(run, *given)
    stored = [k.stores for k in kernels(made) if any(isinstance(e, Op) for e in k.values)]
    assert max(map(len, stored)) == 2
    expected = run(*map(xp.asarray, given))
    for a, e in zip(made.run(*given), expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-3)


def test_what_is_there_is_read_once_for_each_array_that_is_not_written() -> None:
    """Two arrays are not read in place of one."""
    x, w = (np.linspace(-2, 2, 1 << 15).astype("f").reshape(256, 128) * k for k in (1, 3))

    def f(x: Any, w: Any) -> Any:
        y = x + w
        return xp.tanh(xp.sin(y) @ x.mT) @ y

    made = compiled(f, x, w)
    assert next(len(k.stores) for k in kernels(made)) == 2
    np.testing.assert_allclose(made.run(x, w)[0], f(xp.asarray(x), xp.asarray(w)), rtol=1e-3)


@pytest.mark.parametrize("shape", [(256, 64, 8), (8, 64, 256)])
def test_what_a_statistic_was_taken_from_is_read_instead(shape: tuple[int, ...]) -> None:
    """x is read beside the means of it that are in memory: x without its mean never is."""
    x = np.random.default_rng(0).normal(size=shape).astype("f")

    def f(x: Any) -> Any:
        centred = x - xp.mean(x, axis=(0, 2), keepdims=True)
        return centred / xp.sqrt(xp.mean(centred * centred, axis=(0, 2), keepdims=True))

    made = compiled(f, x)
    (program,) = made.programs
    assert program.workspace < x.nbytes / 2
    np.testing.assert_allclose(made.run(x)[0], f(xp.asarray(x)), rtol=1e-4, atol=1e-4)
