"""Updates of arrays that are given away are made where they lie, and are right all the same."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import optim
from tests import laws

ROWS, COLUMNS = 2048, 16
V = xp.asarray(np.random.default_rng(0).normal(size=COLUMNS))
AT = xp.asarray(np.array([3, 3, -1, 700]))
MANY = xp.asarray(np.random.default_rng(1).normal(size=(4, COLUMNS)))

Update = Callable[[Any, Any, Any], Any]
IN_PLACE: dict[str, tuple[Update, Any, Any]] = {
    "a row": (lambda x, i, v: x.at[5].set(v), xp.asarray(0), V),
    "a row that comes with the call": (lambda x, i, v: x.at[i].set(v), xp.asarray(7), V),
    "counted from the end": (lambda x, i, v: x.at[i].set(v * 2.0), xp.asarray(-3), V),
    "rows, one twice": (lambda x, i, v: x.at[i].set(v), AT, MANY),
    "a slice": (lambda x, i, v: x.at[5:9].set(v), xp.asarray(0), V),
    "a column's part": (lambda x, i, v: x.at[4:9, 3].set(v[:5]), xp.asarray(0), V),
    "what was read there": (lambda x, i, v: x.at[i].set(v + x[0] * 2.0), xp.asarray(0), V),
    "one update of another": (
        lambda x, i, v: x.at[5].set(v).at[i].set(v * 3.0).at[0, 0].set(1.0), xp.asarray(5), V,
    ),
    "added to rows, one twice": (lambda x, i, v: x.at[i].add(v), AT, MANY),
    "added to a slice": (lambda x, i, v: x.at[5:9].add(v), xp.asarray(0), V),
    "added to a row": (lambda x, i, v: x.at[i].add(v), xp.asarray(-3), V),
    "multiplied": (lambda x, i, v: x.at[i].multiply(v), AT, MANY),
    "the smaller": (lambda x, i, v: x.at[i].min(v), AT, MANY),
    "the larger, after a sum": (lambda x, i, v: x.at[7].add(v[0]).at[i].max(v), AT, MANY),
    "another shape": (lambda x, i, v: x.at[i].set(v).reshape(-1).at[3].set(0.5), xp.asarray(9), V),
}  # fmt: skip
RIGHT: dict[str, tuple[Update, Any, Any]] = IN_PLACE | {
    "read afterwards": (lambda x, i, v: (x.at[i].set(v), x[i] + 1.0, xp.max(x)), xp.asarray(3), V),
    "between": (lambda x, i, v: (y := x.at[i].set(v), y.at[i + 1].set(y[i] * 2.0)), AT[0], V),
    "an index of its own": (
        lambda x, i, v: x.at[xp.astype(xp.sum(x[i]) > 0.0, xp.int64)].set(v), xp.asarray(2), V,
    ),
    "a branch": (
        lambda x, i, v: ft.cond(i > 2, lambda: x.at[i].set(v), lambda: x), xp.asarray(7), V,
    ),
    "a loop": (
        lambda x, i, v: ft.fori_loop(0, i, lambda k, c: c.at[k].set(v + c[k - 1]), x),
        xp.asarray(60), V,
    ),
    "a loop of 60": (
        lambda x, i, v: ft.scan(lambda c, k: (c.at[k + i].set(v), None), x, xp.arange(60))[0],
        xp.asarray(60), V,
    ),
    "a loop that adds": (
        lambda x, i, v: ft.fori_loop(0, i, lambda k, c: c.at[k * 7 % 40].add(v * c[k, 0]), x),
        xp.asarray(60), V,
    ),
    "a loop that takes the larger": (
        lambda x, i, v: ft.fori_loop(0, i, lambda k, c: c.at[k % 40].max(v).at[k].multiply(2.0), x),
        xp.asarray(60), V,
    ),
}  # fmt: skip


def table(seed: int) -> Any:
    return xp.asarray(np.random.default_rng(seed).normal(size=(ROWS, COLUMNS)))


@pytest.mark.parametrize("name", RIGHT)
def test_updates_of_donated_arrays_are_eagers(name: str) -> None:
    """Each call of several, the first of which is captured."""
    fun, i, v = RIGHT[name]
    donating, plain = ft.jit(fun, donate_argnums=0), ft.jit(fun)
    for seed in range(4):
        kept = table(seed)
        expected = fun(kept, i, v)
        laws.same(plain(kept, i, v), expected)
        laws.same(kept, table(seed))
        laws.same(donating(table(seed), i, v), expected)


@pytest.mark.parametrize("name", IN_PLACE)
def test_they_are_made_where_the_array_lies(name: str) -> None:
    """From the third call on."""
    fun, i, v = IN_PLACE[name]
    f = ft.jit(fun, donate_argnums=0)
    for seed in range(5):
        x = table(seed)
        before = x.data.ctypes.data
        out = f(x, i, v)
        if seed >= 2 and out.shape == (ROWS, COLUMNS):
            assert out.data.ctypes.data == before
        del x, out
        gc.collect()


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_an_optimizers_step_is_made_where_parameters_and_moments_lie(name: str) -> None:
    """Though its state has numbers that come back as they are, and a count that is there twice;
    and the code is not made for it alone.
    """
    opt = getattr(optim, name)(1e-2, **({"momentum": 0.9} if name == "sgd" else {}))
    params = {"a": [table(0), table(1)], "b": table(2)}
    grads = ft.tree.map(lambda p: p * 0.5, params)
    expected = params, opt.init(params)
    given = ft.tree.map(lambda p: xp.asarray(np.array(p)), expected)
    f = ft.jit(opt.step, donate_argnums=(0, 2))
    for k in range(5):
        *expected, info = opt.step(expected[0], grads, expected[1])
        places = [x.data.ctypes.data for x in ft.tree.leaves(given) if x.shape]
        *given, found = f(given[0], grads, given[1])
        laws.close((given, found), (expected, info), 1e-12, 1e-12)
        if k >= 2:
            assert [x.data.ctypes.data for x in ft.tree.leaves(given) if x.shape] == places


def test_a_number_may_be_given_away_and_kept() -> None:
    """Only arrays can be donated twice."""
    f = ft.jit(lambda state, n: (state["x"] * n + state["n"], n), donate_argnums=0)
    for _ in range(3):
        laws.same(f({"x": table(0), "n": 3}, 3)[0], table(0) * 3 + 3)
    x = table(0)
    with pytest.raises(ft.errors.ArgumentError, match="passed twice"):
        f({"x": x, "n": 3}, x)
    laws.same(x, table(0))


def test_what_is_given_away_may_change_its_structure() -> None:
    """Where an array was there is a list now, and the other way round."""
    f = ft.jit(lambda xs: ft.tree.map(lambda x: x + 1.0, xs), donate_argnums=0)
    for k in range(8):
        xs = [table(0), table(1)] if k % 3 else [table(0), [table(1), table(2)]]
        expected = ft.tree.map(lambda x: x + 1.0, xs)
        laws.same(f(xs), expected)
        with pytest.raises(ft.errors.DonatedError):
            ft.tree.map(lambda x: x + 1.0, xs[1])


def test_what_others_hold_is_left_alone() -> None:
    """A view that NumPy has of the buffer, or another array's."""
    f = ft.jit(lambda x, i, v: x.at[i].set(v), donate_argnums=0)
    for seed in range(4):
        x = table(seed)
        seen, copy = x.data, x.data.copy()
        laws.same(f(x, xp.asarray(7), V)[7], V)
        assert np.array_equal(seen, copy)


@pytest.mark.parametrize("wrong", [ROWS, -ROWS - 1])
def test_an_index_that_is_outside_raises(wrong: int) -> None:
    """Also where an update before it was made; what was given away is gone then, not half changed,
    and what was not is as it was.
    """
    fun = lambda x, i, j, v: x.at[i].set(v + x[i]).at[j].set(v)  # noqa: E731
    plain, donating = ft.jit(fun), ft.jit(fun, donate_argnums=0)
    i, j, bad = xp.asarray(3), xp.asarray(4), xp.asarray(wrong)
    for seed in range(4):
        kept = table(seed)
        for f in (fun, plain, donating):
            for places in ((i, bad), (bad, i)):
                x = table(seed) if f is donating else kept
                with pytest.raises(ft.errors.IndexOutOfBoundsError, match="2048"):
                    f(x, *places, V)
                try:
                    laws.same(x + 0.0, table(seed))
                except ft.errors.DonatedError:
                    assert f is donating
        laws.same(kept, table(seed))
        laws.same(donating(table(seed), i, j, V), plain(kept, i, j, V))
