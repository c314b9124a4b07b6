"""Elements at indices that a loop computes, and rows between loops: eager's, and eager's refusal of
the first wrong one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import IndexOutOfBoundsError


def written(x: Any, i: Any) -> Any:
    """What three steps add and set, several to one place; of what is set there the last stays."""
    v = xp.astype(xp.arange(i.shape[0]) % 5, x.dtype)

    def step(i: Any, _: Any) -> tuple[Any, Any]:
        moved = xp.astype((i * 3 + 1) % x.shape[-1], i.dtype)
        if x.ndim > 1 or x.dtype == xp.bool:
            return moved, x.at[..., i].set(v)
        return moved, (x.at[i].add(v), x.at[i].set(v))

    return ft.scan(step, i, None, length=3)


LENGTHS = (1, 7, 8, 15, 16, 17, 40)


def walked(x: Any, i: Any) -> Any:
    """What three steps look up, each at indices that the step before moved on."""

    def step(i: Any, _: Any) -> tuple[Any, Any]:
        return xp.astype((i * 3 + 1) % x.shape[-1], i.dtype), xp.take(x, i, axis=x.ndim - 1)

    return ft.scan(step, i, None, length=3)


INDICES = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
ELEMENTS = ("float32", "float64", "int8", "int32", "int64", "float16", "bool")


VIEWS: dict[str, Callable[[Any], Any]] = {
    "a row": lambda x: x[0], "rows": lambda x: x, "backwards": lambda x: x[:, ::-1],
}  # fmt: skip


@pytest.mark.pairwise
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("f", [walked, written])
def test_elements(index: str, dtype: str, view: str, f: Callable[[Any, Any], Any]) -> None:
    rng = np.random.default_rng(3)
    x = xp.asarray((rng.normal(size=(2, 11)) * 9).astype(dtype))
    for count in LENGTHS:
        low = 0 if index[0] == "u" else -11
        i = xp.asarray(rng.integers(low, 11, size=count).astype(index))
        values = VIEWS[view](x)
        found, expected = ft.jit(f)(values, i), f(values, i)
        for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


WRONG = {
    "int32": (-12, 11, 2**31 - 1, -(2**31)),
    "int64": (-12, 11, 2**33, -(2**33) + 2),
    "uint32": (11, 2**32 - 1),
    "uint64": (11, 2**33),
}


@pytest.mark.parametrize(("index", "wrong"), [(k, n) for k, v in WRONG.items() for n in v])
def test_no_element(index: str, wrong: int) -> None:
    """At any place among the indices."""
    f, g, x = ft.jit(walked), ft.jit(written), xp.arange(11.0)
    for count in LENGTHS:
        for place in {0, count // 2, count - 1}:
            i = np.zeros(count, index)
            i[place] = wrong
            with pytest.raises(IndexOutOfBoundsError, match="out of bounds"):
                f(x, xp.asarray(i))
            with pytest.raises(IndexOutOfBoundsError, match="out of bounds"):
                g(x, xp.asarray(i))
    assert f(x, xp.asarray([1, 2, 10]))[1].shape == (3, 3)


def put_together(x: Any, i: Any, j: Any) -> Any:
    """Rows at some indices are added up at others, between loops."""
    return xp.zeros_like(x).at[j].add((x + x)[i]) + x


@pytest.mark.pairwise
@pytest.mark.parametrize("index", INDICES[2:])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("row", [(), (8,), (2, 9), (67,)], ids=str)
def test_rows_are_moved_between_loops(index: str, dtype: str, row: tuple[int, ...]) -> None:
    """In one program, by any number of threads; what must raise does, and nothing is lost."""
    rng = np.random.default_rng(3)
    x = xp.asarray((rng.normal(size=(4000, *row)) * 9).astype(dtype))
    low = 0 if index[0] == "u" else -4000
    i, j = (rng.integers(low, 4000, size=5000).astype(index) for _ in range(2))
    expected = put_together(x, i, j)
    f = ft.jit(put_together, donate_argnums=0)
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            for k in range(3):
                if k == 1:
                    wrong = np.where(np.arange(5000) == 4990, 4000, j).astype(index)
                    with pytest.raises(IndexOutOfBoundsError, match="out of bounds"):
                        f(xp.asarray(np.array(x)), xp.asarray(i), xp.asarray(wrong))
                found = f(xp.asarray(np.array(x)), xp.asarray(i), xp.asarray(j))
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)
