"""Last axes of a few elements, computed place by place: whatever begins it, and what follows it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.rewriting.narrow import taken_apart
from funct.graph import check, eliminate_dead, inline_calls, share_common
from tests import laws
from tests.compile.checked import checking, run
from tests.compile.test_bounds import made_of
from tests.strategies import filled

L = xp.linalg
ROWS = st.sampled_from([1, 2, 7, 300, 1023, 1024, 1025, 4099])


def matrices(a: Any, b: Any) -> Any:
    """A matrix of each two vectors."""
    return a[:, :, None] * b[:, None, :] + 2.0 * xp.eye(3, dtype=a.dtype)


def unit(a: Any) -> Any:
    """Vectors of length one."""
    return a / xp.sqrt(xp.sum(a * a, axis=-1, keepdims=True))


FUNCTIONS: dict[str, Any] = {
    "cross": L.cross,
    "gradient of cross": ft.grad(lambda a, b: xp.sum(L.cross(a, b) ** 2 * xp.exp(a))),
    "Hessians": ft.vmap(ft.hessian(lambda p, q: xp.sum(L.cross(p, q) ** 2) + xp.prod(p))),
    "products": lambda a, b: xp.tanh(matrices(a, b) @ matrices(b, a).mT) * 2.0,
    "einsum": lambda a, b: xp.einsum("bij,bjk->bik", matrices(a, b), matrices(b, a)),
    "trace": lambda a, b: L.trace(matrices(a, b) @ matrices(b, a)),
    "determinants": lambda a, b: L.det(xp.sin(matrices(a, b))),
    "of two rows": lambda a, b: L.det(matrices(a, b)[:, 1:, ::-2]),
    "gradient of determinants": ft.grad(lambda a, b: xp.sum(L.det(matrices(a, b)) ** 2)),
    "places": lambda a, b: (a[:, np.array([2, 2, -1, 0])] * 2.0, a + b),
    "biases": lambda a, b: a * b[0] + b[-1] - a[:, :1],
    "in reverse": lambda a, b: xp.flip(a, axis=1) * b + a[:, ::-1],
    "written": lambda a, b: a.at[:, 0].set(b[:, 1]) * 2.0 + b,
    "gradient of read": ft.grad(lambda a, b: xp.sum(a[:, 0] * a[:, 1] * b[:, 2])),
    "put together": lambda a, b: xp.stack([a[:, 0] * b[:, 1], xp.sin(a[:, 1]), b[:, 0]], axis=-1),
    "weighed": lambda a, b: xp.sin(a) @ b[0] + b[:, 0],
    "unit": lambda a, b: unit(a) * b,
    "gradient of unit": ft.grad(lambda a, b: xp.sum(unit(a) * b**2)),
    "rolled": lambda a, b: xp.roll(a, 1, axis=-1) * b,
    "reduced": lambda a, b: (xp.max(L.cross(a, b), axis=-1), xp.mean(L.cross(a, b), axis=0)),
    "transposed": lambda a, b: (a * b[:, :1]).T,
    "some rows": lambda a, b: (a * b[:, :1])[::2, 1:] + 1.0,
    "sorted": lambda a, b: xp.sort(L.cross(a, b), axis=-1),
    "chosen": lambda a, b: xp.where((a > 0) & (b[:, :1] > 0), L.cross(a, b), 0.0),
    "longer": lambda a, b: xp.concat([a * b[:, :1], b], axis=-1) * 2.0,
    "broadcast": lambda a, b: xp.broadcast_to(L.cross(a, b)[None], (2, *a.shape)) * 2.0 + a,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(rows=ROWS, dtype=st.sampled_from(["float32", "float64"]))
def test_numbers_stay(name: str, rows: int, dtype: str) -> None:
    """As a graph, and as machine code."""
    fun, rng = FUNCTIONS[name], np.random.default_rng(rows)
    given_ = [xp.asarray(rng.normal(size=(rows, 3)).astype(dtype)) for _ in range(2)]
    expected = ft.tree.leaves(fun(*given_))
    rtol, atol = (2e-4, 2e-3) if dtype == "float32" else (1e-9, 1e-10)
    for found in (ft.jit(fun, mode="reduce-overhead")(*given_), taken(fun, given_)):
        for x, y in zip(ft.tree.leaves(found), expected, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=atol)


def taken(fun: Any, given_: Any) -> Any:
    """What the graph gives, taken apart."""
    graph = eliminate_dead(share_common(inline_calls(ft.make_graph(fun)(*given_))))
    apart = taken_apart(graph)
    check(apart)
    return apart(*given_)


@pytest.mark.parametrize("name", ["cross", "trace", "gradient of read", "put together"])
def test_all_of_it_is_one_nest_of_loops(name: str) -> None:
    """What is put side by side is written by the loops that compute it."""
    x = np.ones((2000, 3), "float32")
    assert len(made_of(FUNCTIONS[name], x, x + 1).calls) == 1


@given(data=st.data(), places=st.integers(2, 17), rows=st.sampled_from([1, 2, 5, 8, 9, 31, 64, 77]))
def test_places_are_read_and_written_within_their_arrays(data: Any, places: int, rows: int) -> None:
    """Any number of them, any dtype, from any row on: the bits stay."""
    dtype = data.draw(st.sampled_from([d.name for d in ELEMENTS]))
    first, back = data.draw(st.integers(0, rows)), data.draw(st.booleans())
    x = filled((rows, places), dtype, 0)

    def moved(x: Any) -> Any:
        y = x[first:, ::-1] if back else x[first:]
        columns = [xp.maximum(y[:, k], y[:, 0]) for k in range(places)]
        return xp.stack(columns, axis=-1), xp.concat([y[:, k : k + 1] for k in (1, 0)], axis=1)

    expected = moved(xp.asarray(x))
    with checking():
        made = made_of(moved, x)
        found = run(made, x)
    for u, v in zip(found, expected, strict=True):
        np.testing.assert_array_equal(u, np.asarray(v))


def test_stacks_of_nothing_stay_empty() -> None:
    """Parts without elements are left out only of what has some."""
    stacked = lambda x: xp.stack([x[:, 0], x[:, 1] * 2.0, x[:, 0]], axis=-1)  # noqa: E731
    assert ft.jit(stacked, mode="reduce-overhead")(xp.ones((0, 2))).shape == (0, 3)


@pytest.mark.parametrize("way", [lambda f: f, ft.jit])
def test_determinants_of_extreme_scales(way: Any) -> None:
    """Products of two rows overflow where the determinant does not: float64 has nothing wider."""
    for scales in ([1e-300, 1e200, 1e200], [1e200, 1e-200, 1e-200]):
        x = xp.asarray(np.tile(np.diag(scales), (20_000, 1, 1)))
        laws.close(way(L.det)(x)[:1], np.linalg.det(np.asarray(x[:1])), 1e-9)
