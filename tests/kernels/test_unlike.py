"""Operands of two shapes whose last axis is short: NumPy's results, by whatever way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct.array as xp
from funct.core import lookup
from funct.kernels.cpu.loops import available
from funct.kernels.table import restricted
from tests.kernels.arrays import SPECIAL

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

from funct.kernels.cpu.elementwise import unlike
from funct.kernels.cpu.elementwise.sized import chosen

NAMES = (
    "add", "subtract", "multiply", "divide", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal",
)  # fmt: skip
MANY = 1 << 14
SHAPES = [
    ((MANY, 1), (1, 3)), ((MANY // 3 + 1, 3), (3,)), ((MANY, 1), (MANY, 2)), ((600, 31), (600, 1)),
    ((40, 40, 1), (1, 40, 17)), ((513, 255), (255,)), ((4, 2, 512, 5), (2, 512, 5)),
    ((1, MANY, 7), (MANY, 1)), ((600, 4, 1, 1), (4, 3, 5)), ((3, 1, 2000, 1), (3, 1, 1, 4)),
    ((700, 6, 8), (6, 1)), ((9, 1, MANY), (MANY,)), ((8, 65), (700, 1, 65)),
    ((60, 1000), (60, 1)), ((41, 1000), (1000,)), ((21, 2048), (1, 2048)),
]  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")


def numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, shape)
    if np.dtype(dtype).kind == "i":
        return x.astype(dtype)
    return np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), x / 7).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("name", NAMES)
def test_results_are_numpys(name: str, dtype: str) -> None:
    raw = lookup(name).raw
    way = unlike.of_unlike(name, raw)
    assert way is not None
    for one, other in SHAPES:
        for a, b in ((one, other), (other, one)):
            x, y = numbers(a, dtype, 0), numbers(b, dtype, 1)
            expected = raw(x, y)
            for found in (way(x, y), way(x[..., ::-1], y), way(x, y[::-1])):
                assert found.shape == expected.shape
                assert found.dtype == expected.dtype
            np.testing.assert_array_equal(way(x, y), expected)
            if expected.dtype.kind == "f":
                real = ~np.isnan(expected)
                np.testing.assert_array_equal(
                    np.signbit(way(x, y)[real]), np.signbit(expected[real])
                )
            np.testing.assert_array_equal(way(x[..., ::-1], y), raw(x[..., ::-1], y))


def test_rows_of_few_elements_are_no_work_for_numpy() -> None:
    def never(x: Any, y: Any) -> Any:
        raise AssertionError

    way = unlike.of_unlike("add", never)
    assert way is not None
    for one, other in (*SHAPES[:5], *SHAPES[-3:]):
        way(np.ones(one), np.ones(other))
    x = np.ones((60, 1000))
    way(x, x[:, :1])  # a short operand with gaps is copied
    way(x[::-1, 1:2], x)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((MANY, 3), (4,)), ((600, 3), (3,)), ((10, 9999), (9999,)), ((MANY, 3), (1, 1)),
        ((0, 3), (3,)), ((64, 256), (256,)),
        ((40, 1000), (40, 1)), ((21, 2049), (21, 1)),
    ],
)  # fmt: skip
def test_the_rest_is_left_to_numpy(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    way = unlike.of_unlike("add", lambda x, y: "NumPy's")
    assert way is not None
    assert way(np.ones(one), np.ones(other)) == "NumPy's"


def test_nothing_else_is_taken() -> None:
    assert unlike.of_unlike("atan2", np.arctan2) is None
    divide = unlike.of_unlike("divide", lambda x, y: "NumPy's")
    add = unlike.of_unlike("add", lambda x, y: "NumPy's")
    assert divide is not None
    assert add is not None
    x, y = np.ones((MANY, 3)), np.ones(3)
    assert divide(x.astype(int), y.astype(int)) == "NumPy's"
    assert add(x, y.astype(np.float32)) == "NumPy's"
    assert add(np.asfortranarray(x), y) == "NumPy's"
    with restricted():
        assert add(x, y) == "NumPy's"


def test_shapes_that_differ_are_told() -> None:
    told = chosen(lambda *a: "plain", lambda *a: "large", 5, [], lambda *a: "unlike")
    x = np.ones((MANY, 3))
    assert told(x, x[0]) == told(x[:, :1], x[:1]) == told(x[0], x) == told(x, x[:1]) == "unlike"
    assert told(x, x) == told(x, 1.0) == told(1.0, x) == told(x) == told(x, x, x) == "plain"
    assert told(x[:9], x[0]) == told(x[:9], x[:9, :1]) == told(x[:0], x[0]) == "plain"


AXES = st.tuples(st.sampled_from([1, 2, 3, 5, 30]), st.booleans(), st.booleans())


@given(st.lists(AXES, max_size=5), st.integers(0, 3), st.booleans())
def test_sizes_of_results_are_told(axes: list[Any], missing: int, turn: bool) -> None:
    """Only where the result of two shapes has many elements anybody else than NumPy is asked."""
    one = tuple([1 if a else n for n, a, _ in axes])[missing:]
    other = tuple([1 if b else n for n, _, b in axes])
    one, other = (other, one) if turn else (one, other)
    told = chosen(lambda *a: "plain", lambda *a: "large", 5, [], lambda *a: "unlike")
    many = math.prod(np.broadcast_shapes(one, other)) >= MANY
    expected = "unlike" if many and one != other else "plain"
    assert told(np.empty(one, np.int8), np.empty(other, np.int8)) == expected


def test_large_arrays_of_short_rows_bring_it_about(monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.asarray(np.ones((MANY, 3)))
    with pytest.raises(ValueError, match="add"):
        x + xp.ones(4)
    monkeypatch.setattr(unlike, "computed", lambda *_: np.zeros(()))
    assert (x + xp.asarray(np.ones(3))).shape == ()
