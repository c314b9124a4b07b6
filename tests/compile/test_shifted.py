"""What loops read shifted is computed where it is read, with the bits of eager ops."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.loops.kernel import Kernel
from tests.compile.test_bounds import made_of
from tests.compile.test_short_rows import numbers
from tests.compile.test_within_zeros import agree

SHAPES = [(20_000,), (150, 128), (7, 61, 70)]


def kernels(fun: Any, *given: Any) -> int:
    return sum(isinstance(c.kernel, Kernel) for c in made_of(fun, *given).calls)


def inner(x: Any, *, axis: int, by: int) -> Any:
    """All but the outermost elements of an axis, moved by one of -1, 0, 1."""
    index: list[Any] = [slice(None)] * len(x.shape)
    index[axis] = slice(1 + by, x.shape[axis] - 1 + by)
    return x[tuple(index)]


PROGRAMS = {
    "differences of squares": lambda x: (x * x)[1:] - (x * x)[:-1],
    "second differences": lambda x: (
        inner(-x, axis=-1, by=1) - 2 * inner(-x, axis=-1, by=0) + inner(-x, axis=-1, by=-1)
    ),
    "differences twice": lambda x: xp.diff(xp.diff(x, axis=0), axis=-1) * 0.5,
    "every second": lambda x: (x - 1)[::2] * 2,
    "backwards": lambda x: (x + x)[4::-1] * (x + x)[:5],
    "of a broadcast sum": lambda x: (x + x[:1])[1:] * (x + x[:1])[:-1],
    "zeros around": lambda x: xp.pad(x + 1, 1) * xp.pad(x, 1),
    "zeros around what is negative": lambda x: -(xp.pad(-x, 2)[1:] * 1),
    "zeros around what is infinite at zero": lambda x: xp.pad(1 / x, 1) + xp.pad(x, 1),
    "slices of it": lambda x: xp.pad(x - 1, 2)[1:-1] + xp.pad(-x, 2)[1:-1],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bits_are_those_of_eager_ops(name: str, shape: tuple[int, ...]) -> None:
    x = numbers("float64", *shape)
    with np.errstate(all="ignore"):
        agree(PROGRAMS[name], np.where(np.isnan(x), 0.0, x))


@pytest.mark.parametrize("dtype", ["float16", "int16", "int64"])
def test_dtypes(dtype: str) -> None:
    x = numbers(dtype, 300, 200)
    with np.errstate(all="ignore"):
        agree(lambda x: (x + x)[1:] - (x + x)[:-1], x)
        agree(lambda x: xp.pad(x + 1, 1)[1:] + xp.pad(x, 1)[:-1], x)


def test_truth_and_numbers_beside_arrays() -> None:
    x, a = numbers("int64", 300, 200), np.asarray(3)
    agree(lambda x: xp.pad(x > 1, 1) & xp.pad(x < 2, 1), np.tile(x, (2, 2)))
    agree(lambda x, a: (x * (a + 1))[1:] - (x * (a + 1))[:-1], x, a)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_total_variation_are_one_kernel(shape: tuple[int, ...]) -> None:
    def variation(x: Any) -> Any:
        return sum(xp.sum(xp.diff(x, axis=a) ** 2) for a in range(len(shape)))

    x = np.random.default_rng(0).normal(size=shape)
    assert kernels(ft.grad(variation), x) == 1
    agree(ft.grad(variation), x)


def test_what_costs_much_is_computed_once() -> None:
    x = np.random.default_rng(0).normal(size=(200, 300))
    (first, *_) = made_of(lambda x: xp.exp(x)[1:] - xp.exp(x)[:-1], x).calls
    assert [e.name for e in first.kernel.values if hasattr(e, "name")].count("exp") == 1
    assert kernels(lambda x: xp.exp(x)[1:] - xp.exp(x)[:-1], x) == 2


def test_what_costs_much_is_not_computed_for_zeros() -> None:
    """Parts of a whole, as both halves of a gated unit's gradient, are computed for themselves."""

    def joined(x: Any) -> Any:
        n = x.shape[1]
        return xp.pad(xp.exp(x), ((0, 0), (0, n))) + xp.pad(xp.exp(-x), ((0, 0), (n, 0)))

    x = np.random.default_rng(0).normal(size=(200, 300))
    assert kernels(joined, x) == 2
    agree(lambda x: xp.pad(xp.abs(x), 300)[300:] + xp.pad(-x, 300)[:-300], x)


def test_what_somebody_else_reads_is_written() -> None:
    """A product, the caller and a reduction of all of it read it from memory."""
    x = np.random.default_rng(0).normal(size=(200, 200))
    assert kernels(lambda x: ((x * x)[1:] - (x * x)[:-1], x * x), x) == 2
    agree(lambda x: (x * x)[1:] - (x * x)[:-1] + xp.sum(xp.sort(x * x)[:-1], axis=0) * 0, x)
    for fun in (
        lambda x: (x * x)[1:] - (x * x)[:-1] + (x * x)[1:] @ x,
        lambda x: xp.sort((x * x)[1:]) - (x * x)[:-1],
    ):
        expected = np.asarray(fun(xp.asarray(x)))  # type: ignore[no-untyped-call]
        np.testing.assert_allclose(made_of(fun, x).run(x)[0], expected, rtol=1e-12)


def test_differences_of_differences_are_written_now_and_then() -> None:
    """Each level doubles what is done again: where that is too much, one is written."""

    def rough(x: Any) -> Any:
        for _ in range(6):
            x = (x[1:] - x[:-1]) * 0.5
        return x

    x = np.random.default_rng(0).normal(size=30_000)
    assert kernels(rough, x) == 3
    agree(rough, x)
