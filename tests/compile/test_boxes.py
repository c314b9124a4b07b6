"""Updates and reads at known indices that are slices."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile.rewriting.boxes import box
from tests import laws
from tests.compile.test_native import compiled


@st.composite
def _slices(draw: st.DrawFn, backwards: bool = True) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """A shape and a key of slices and ints that selects something of it."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    key: list[Any] = []
    for n in shape:
        start = draw(st.integers(0, n - 1))
        if draw(st.booleans()):
            key.append(start)
            continue
        step = draw(st.sampled_from([1, 1, 2, 3, *([-1] if backwards else [])]))
        key.append(slice(start, draw(st.integers(start + 1, n)) if step > 0 else None, step))
    return shape, tuple(key)


@given(_slices())
def test_a_box_has_the_places_in_order(case: Any) -> None:
    """What a box says is what was asked; slices of step 1 are always one."""
    shape, key = case
    n = math.prod(shape)
    places = np.arange(n).reshape(shape)[key]
    found = box(places, n)
    steps = [k.step for k in key if isinstance(k, slice)]
    if found is None:
        assert set(steps) != {1} or len(shape) > 2
        return
    seen = np.arange(n).reshape(found.shape)[tuple([slice(*t) for t in found.index])]
    assert seen.shape == found.lengths
    np.testing.assert_array_equal(seen.ravel(), places.ravel())


@pytest.mark.parametrize("places", [[1, 2, 0], [0, 0], [3, 2], [0, 1, 3], [5], [-7]])
def test_no_box(places: list[int]) -> None:
    """Places out of order, twice, or outside of the axis are none."""
    assert box(np.asarray(places), 5) is None


UPDATES = {
    "set": lambda x, v, k: x.at[k].set(v),
    "add": lambda x, v, k: x.at[k].add(v),
    "multiply": lambda x, v, k: x.at[k].multiply(v),
    "min": lambda x, v, k: x.at[k].min(v),
    "gradient": lambda x, v, k: ft.grad(lambda v: xp.sum(x * x.at[k].set(v * v)))(v),
    "push": lambda x, v, k: ft.jvp(lambda x: x.at[k].multiply(v), (x,), (x + 1,))[1],
    "rows": lambda x, v, k: ft.vmap(x.at[k].add)(xp.stack([v, v * 2])),
}


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", UPDATES)
@given(_slices())
def test_updates(name: str, dtype: str, case: Any) -> None:
    """They are what they are eagerly, whatever the key is, the sign of zeros too."""
    shape, key = case
    if dtype == "int64" and name in ("gradient", "push"):
        return
    rng = np.random.default_rng(0)
    x = np.where(rng.random(shape) < 0.3, -0.0, rng.normal(size=shape) * 3).astype(dtype)
    v = -x[key] * (rng.random(x[key].shape) < 0.5)
    args = [x, np.asarray(v, dtype)]
    fun = lambda x, v: UPDATES[name](x, v, key)  # noqa: E731
    laws.same(compiled(fun, *args).run(*args)[0], fun(*map(xp.asarray, args)))


CALLS = {
    "set": lambda x, v: x.at[1:-1, 2:].set(v) * 2,
    "one row": lambda x, v: x.at[3].set(v[0, 0]) * 2,
    "add": lambda x, v: x.at[1:-1, 2:].add(v) * 2,
    "steps": lambda x, v: x.at[1:5:2, 3:].add(v[::2, 1:]) * 2,
    "max": lambda x, v: x.at[1:-1, 2:].max(v) * 2,
    "gradient": lambda x, v: ft.grad(lambda v: xp.sum(x * x.at[1:-1, 2:].set(v * v)))(v),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_looked_up(name: str) -> None:
    """No kernel of indices is called, and a loop that updates needs no Python."""
    rng = np.random.default_rng(0)
    args = [rng.normal(size=s).astype("float32") for s in ((6, 8), (4, 6))]
    made = compiled(CALLS[name], *args)
    assert not any(op in made.text for op in ("scatter", "put_", "take_"))
    laws.same(made.run(*args)[0], CALLS[name](*map(xp.asarray, args)))


def test_a_stencil_in_a_loop_is_one_program() -> None:
    """A scan whose steps update the inside of an array."""

    def heat(u: Any) -> Any:
        def step(u: Any, _: Any) -> tuple[Any, None]:
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            return u.at[1:-1, 1:-1].add(0.1 * (around - 4 * u[1:-1, 1:-1])), None

        return ft.scan(step, u, None, length=7)[0]

    u = np.random.default_rng(0).random((70, 70))
    made = compiled(heat, u)
    assert len(made.programs) == 1
    assert "scan_" not in made.text
    laws.same(made.run(u)[0], heat(xp.asarray(u)))


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("name", UPDATES)
def test_updates_of_nothing(name: str, shape: tuple[int, ...]) -> None:
    """Arrays without elements stay what they are."""
    x, key = np.ones(shape, "float32"), (slice(0, 2),)
    args = [x, x[key]]
    fun = lambda x, v: UPDATES[name](x, v, key) + 1  # noqa: E731
    laws.same(compiled(fun, *args).run(*args)[0], fun(*map(xp.asarray, args)))
