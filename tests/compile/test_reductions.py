"""Reductions over any axes, and the places of extremes, are loops: with eager's numbers."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile import program
from tests.compile.test_bounds import made_of

AXES = [a for n in range(1, 5) for a in itertools.combinations(range(4), n)]
REDUCTIONS: dict[str, Any] = {
    "sum": xp.sum, "prod": xp.prod, "max": xp.max, "min": xp.min, "any": xp.any, "all": xp.all,
}  # fmt: skip


def small(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray[Any, Any]:
    """Small integers of that dtype, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_any_axes_are_one_program(name: str, axes: tuple[int, ...]) -> None:
    """What is reduced, another use of it and the reduction, without a call of NumPy."""
    x, reduce = np.sign(small((3, 4, 5, 6))), REDUCTIONS[name]
    made = made_of(lambda x: (-x, reduce(-x, axis=axes, keepdims=True)), x)
    assert made.whole is not None
    full, found = made.run(x)
    np.testing.assert_array_equal(full, -x)
    np.testing.assert_array_equal(found, reduce(xp.asarray(-x), axis=axes, keepdims=True))


@pytest.mark.parametrize("shape", [(40, 300, 70), (2, 5000, 3), (33, 2, 4000), (5, 70_000)])
def test_threads_do_not_show(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    axis = len(shape) - 2
    made = made_of(lambda x: (xp.sum(xp.sin(x), axis=axis), xp.argmin(x, axis=axis)), x)
    with ft.config.using(threads=1):
        alone = made.run(x)
    with ft.config.using(threads=2):
        together = made.run(x)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(alone[0], np.sin(x.astype(float)).sum(axis), rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(alone[1], x.argmin(axis))


@pytest.mark.parametrize(
    "shape", [(1030, 10), (1100, 3), (3, 2600), (40, 2049), (90, 130), (3, 50, 41), (2, 1, 700)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_columns_of_any_number(shape: tuple[int, ...], dtype: Any) -> None:
    """Of what is computed for each element on the way, and of several things at once: in a loop or
    two, and if there are parts of columns in another for each.
    """
    x, axis = small(shape, dtype), len(shape) - 2
    row = small((*shape[:-1], 1), dtype, seed=1)

    def run(x: Any, row: Any) -> Any:
        y = xp.abs(x) - 1
        return xp.max(y, axis=axis), xp.sum(y, axis=axis), xp.sum(x * row, axis=axis)

    made = made_of(run, x, row)
    assert len(made.calls) <= 2 * 3 + 2
    for found, expected in zip(made.run(x, row), run(x, row), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_two_stretches_of_other_lengths_are_two_loops() -> None:
    x = small((6, 4, 5, 8))
    made = made_of(lambda x: (xp.sum(x, axis=1), xp.sum(xp.reshape(x, (3, 8, 5, 8)), axis=1)), x)
    first, second = made.run(x)
    np.testing.assert_array_equal(first, x.sum(1))
    np.testing.assert_array_equal(second, x.reshape(3, 8, 5, 8).sum(1))


def test_a_result_as_long_as_a_row_is_read_after_the_loops() -> None:
    """A stretch of as many rows as there are columns has results that could be one for each row."""
    x = small((4, 5, 5))
    made = made_of(lambda x: xp.sum(x, axis=1)[:, :, None] + x, x)
    (found,) = made.run(x)
    np.testing.assert_array_equal(found, x.sum(1)[:, :, None] + x)


EXTREMES = [np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.uint64, np.bool_]


@given(
    st.lists(st.sampled_from([1, 2, 3, 8, 17]), min_size=1, max_size=4),
    st.sampled_from(EXTREMES), st.integers(0, 3), st.booleans(), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_the_first_extreme_is_found(
    shape: list[int], dtype: Any, axis: int, largest: bool, keepdims: bool, seed: int
) -> None:
    """Many are equal; a NaN is the largest and the least."""
    x, axis = small(tuple(shape), dtype, seed), axis % len(shape)
    if x.dtype.kind == "f":
        x[np.random.default_rng(seed).random(x.shape) < 0.05] = np.nan
        x[x == 2] = -0.0
        x[x == -2] = np.inf
    ours, numpys = (xp.argmax, np.argmax) if largest else (xp.argmin, np.argmin)
    (found,) = made_of(lambda x: ours(x, axis=axis, keepdims=keepdims), x).run(x)
    expected = numpys(x, axis=axis, keepdims=keepdims)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected)


def test_the_place_of_an_extreme_is_found_in_the_loops_that_compute_it() -> None:
    x = np.random.default_rng(0).standard_normal((50, 33)).astype(np.float32)
    made = made_of(lambda x: xp.argmax(x * x - x, axis=1), x)
    assert made.whole is not None
    assert len(made.calls) == 1
    np.testing.assert_array_equal(made.run(x)[0], (x * x - x).argmax(1))


def _text(fun: Any, x: Any) -> str:
    return program.kernels_text([c.kernel for c in made_of(fun, x).calls])


def test_what_a_row_costs_is_computed_once() -> None:
    """A later pass reads what many cheap ops, or a costly one, gave before it."""

    def normal(x: Any, how: Any) -> Any:
        h = how(x / xp.sum(x * x, axis=-1, keepdims=True))
        return xp.exp(h - xp.max(h, axis=-1, keepdims=True))

    def divisions(how: Any) -> int:
        return _text(lambda x: normal(x, how), np.ones((64, 64), np.float32)).count("= fdiv <")

    assert divisions(lambda h: h * 1.5 + 0.5) == divisions(lambda h: h) == 1


def test_the_next_row_is_brought_near_while_one_is_computed() -> None:
    x = np.random.default_rng(0).standard_normal((40, 64)).astype(np.float32)
    (call,) = made_of(lambda x: xp.exp(x - xp.max(x, axis=1, keepdims=True)), x).calls
    assert "call void @llvm.prefetch" in program.kernels_text([call.kernel])
    assert "prefetch" not in _text(xp.exp, x)
    assert "prefetch" not in _text(lambda x: xp.sum(xp.exp(x), axis=1), x)
