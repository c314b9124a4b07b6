"""Indices are numbers, whatever their dtype: 2**64 - 1 is beyond every axis, and never the last
place, and -1 of int8 is the last of 300, however they are used and whoever runs it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import IndexOutOfBoundsError
from funct.nn import functional
from tests import laws

N, COUNT = 6, 3
Function = Callable[[Any, Any], Any]


def _table(x: Any) -> Any:
    """x (N,) as columns of a table, so that indices go along its last axis."""
    return xp.stack([x, 2.0 * x])


def _combined(name: str) -> Function:
    return lambda x, i: getattr(_table(x).at[:, i], name)(1.5)


# All that takes indices which must be on an axis; x (N,) has the elements, i (COUNT,) is last.
FUNCTIONS: dict[str, Function] = {
    "x[i]": lambda x, i: x[i],
    "x[i[0]]": lambda x, i: x[i[0]],
    "x[i, i]": lambda x, i: (x[:, None] * x)[i, i],
    "x[i, 0]": lambda x, i: x[:, None][i, 0],
    "x[:, i]": lambda x, i: _table(x)[:, i],
    "x[i] of rows": lambda x, i: _table(x).T[i],
    "take": lambda x, i: xp.take(x, i, axis=0),
    "take of rows": lambda x, i: xp.take(_table(x), i, axis=1),
    "take_along_axis": lambda x, i: xp.take_along_axis(x, i, axis=0),
    "take_along_axis of rows": lambda x, i: xp.take_along_axis(_table(x), xp.stack([i, i]), axis=1),
    "take_along_axis of columns": lambda x, i: xp.take_along_axis(
        _table(x).T, xp.stack([i, i], axis=1), axis=0
    ),
    **{
        f"at.{name}": _combined(name)
        for name in ("set", "add", "multiply", "divide", "power", "min", "max")
    },
    "at.set of elements": lambda x, i: x.at[i].set(2.0 * x[:COUNT]),
    "at.add of elements": lambda x, i: x.at[i].add(2.0 * x[:COUNT]),
    "at.add of rows": lambda x, i: _table(x).T.at[i].add(1.0),
    "at.max of pairs": lambda x, i: (x[:, None] * x).at[i, i].max(0.5),
    "at.get": lambda x, i: x.at[i].get(),
    "embedding": lambda x, i: functional.embedding(i, x[:, None]),
    "embedding_bag": lambda x, i: functional.embedding_bag(i[None], x[:, None]),
    "nll_loss": lambda x, i: functional.nll_loss(xp.stack([x] * COUNT), i),
    "cross_entropy": lambda x, i: functional.cross_entropy(xp.stack([x] * COUNT), i),
    "multi_margin_loss": lambda x, i: functional.multi_margin_loss(xp.stack([x] * COUNT), i),
    "max_unpool1d": lambda x, i: functional.max_unpool1d(x[None, :COUNT], i[None], 2),
}

X = xp.asarray(np.random.default_rng(0).normal(size=N) ** 2)
NEAR = np.asarray([1, 4, 0])
OFF = (2**63, 2**64 - 1, 2**64 - N)


def _total(fun: Function) -> Function:
    return lambda x, i: xp.sum(xp.asarray(fun(x, i)) ** 2)


def _repeated(fun: Function) -> Function:
    def run(x: Any, i: Any) -> Any:
        return ft.scan(lambda c, k: (c, fun(x * k, i)), 0.0, xp.arange(2.0))[1]

    return run


TRANSFORMED: dict[str, Callable[[Function], Function]] = {
    "eager": lambda fun: fun,
    "jit": ft.jit,
    "jit of more": lambda fun: ft.jit(lambda x, i: fun(x * 2.0 + 1.0, i) * 3.0),
    "vmap": lambda fun: lambda x, i: ft.vmap(fun)(xp.stack([x, x]), xp.stack([i, i])),
    "jit(vmap)": lambda fun: ft.jit(lambda x, i: ft.vmap(fun, (None, 0))(x, xp.stack([i, i]))),
    "grad": lambda fun: ft.grad(_total(fun)),
    "jit(value_and_grad)": lambda fun: ft.jit(ft.value_and_grad(_total(fun))),
    "jit(scan)": lambda fun: ft.jit(_repeated(fun)),
}


def _indices(dtype: Any, off: int | None = None) -> Any:
    i = NEAR.astype(dtype)
    if off is not None:
        i[0] = off
    return xp.asarray(i)


@pytest.mark.in_turn
@pytest.mark.parametrize("how", TRANSFORMED)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_unsigned_index_counts_from_the_end(name: str, how: str) -> None:
    """Each of them raises what a signed one beyond the axis raises, with its own number; those on
    the axis mean what signed ones mean.
    """
    fun = TRANSFORMED[how](FUNCTIONS[name])
    for a, b in zip(
        ft.tree.leaves(fun(X, _indices(np.uint64))), ft.tree.leaves(fun(X, _indices(np.int64))),
        strict=True,
    ):  # fmt: skip
        laws.same(a, b)
    beyond = 1000
    with pytest.raises(IndexOutOfBoundsError) as wanted:
        fun(X, _indices(np.int64, beyond))
    for off in OFF:
        with pytest.raises(IndexOutOfBoundsError) as got:
            fun(X, _indices(np.uint64, off))
        assert got.value.what == wanted.value.what.replace(str(beyond), str(off))


@pytest.mark.parametrize("off", OFF)
def test_large_numbers_without_a_sign_stay_what_they_are(off: int) -> None:
    """What takes any number takes these for what they are, traced or not."""
    x, s = xp.arange(7), xp.asarray(np.asarray(off, np.uint64))
    ids = _indices(np.uint64, off)
    branches = [lambda: 0, lambda: 1, lambda: 2]
    for how in (lambda fun: fun, ft.jit):
        laws.same(how(xp.roll)(x, s), np.roll(np.arange(7), off % 7))
        found = how(lambda ids: xp.segment_sum(xp.ones(COUNT), ids, N))(ids)
        laws.same(found, np.asarray([1.0, 0, 0, 0, 1.0, 0]))
        laws.same(how(lambda ids: xp.one_hot(ids, N))(ids)[0], np.zeros(N))
        assert int(how(lambda s: ft.switch(s, branches))(s)) == 2
        with pytest.raises(ft.errors.AllocationError):
            how(lambda ids: xp.bincount(ids, minlength=N))(ids)


@pytest.mark.in_turn
@pytest.mark.parametrize("how", ["eager", "jit of more", "jit(vmap)", "jit(value_and_grad)"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_narrow_indices_go_along_long_axes(name: str, how: str) -> None:
    """An axis may be longer than the dtype of its indices counts, which mean what wide ones mean,
    or are refused as those are.
    """
    fun = TRANSFORMED[how](FUNCTIONS[name])
    x = xp.asarray(np.random.default_rng(0).normal(size=300) ** 2)
    for given in ([1, 127, 0], [-1, -128, 3]):
        try:
            wanted = fun(x, xp.asarray(given))
        except IndexOutOfBoundsError:
            with pytest.raises(IndexOutOfBoundsError):
                fun(x, xp.asarray(given, dtype=xp.int8))
            continue
        found = fun(x, xp.asarray(given, dtype=xp.int8))
        for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(wanted), strict=True):
            laws.same(a, b)
