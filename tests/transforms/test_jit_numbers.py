"""jit and arguments that are Python's numbers: how many compilations fifty of them cost."""

import enum
import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from tests import laws

X = xp.asarray(np.random.default_rng(0).normal(size=(1 << 10, 17)))
W = xp.asarray(np.random.default_rng(1).normal(size=(17, 5)))


def _step(x: Any, lr: Any, t: Any) -> Any:
    g = ft.grad(lambda w: xp.mean(xp.tanh(x @ w) ** 2))(W)
    return W - lr * g / (1 - 0.9**t)


PROGRAMS: dict[str, Any] = {
    "scaled": lambda x, r: xp.exp(x) * r + xp.sin(x * r),
    "a step": lambda x, r: _step(x, r, r * 10 + 1),
    "a number of its own": lambda x, r: xp.tanh(x) + 1 / (1 + r) ** 2,
    "in a loop": lambda x, r: ft.fori_loop(0, 5, lambda _, c: c * 0.5 + xp.tanh(c) * r, x),
    "int and float": lambda x, r: xp.cos(x) * (r if isinstance(r, int) else -r),
    "a branch": lambda x, r: xp.exp(x) * r if r < 0.5 else xp.exp(x) - r,
    "a power": lambda x, r: xp.abs(x) ** r * xp.exp(x),
    "an array of it": lambda x, r: xp.exp(x) * xp.asarray([r] * 17),
    "a shift": lambda x, r: xp.roll(xp.exp(x), int(r * 20), axis=0),
    "a slice": lambda x, r: xp.exp(x)[int(r * 20) :] * 2,
    "an axis": lambda x, r: xp.sum(xp.exp(x), axis=int(r * 20) % 2),
}
FEW = {"scaled", "a step", "a number of its own", "int and float", "a branch"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_handed_to_code_that_is_there(name: str) -> None:
    """Every number is right; and where a program computes with it, all share their code."""
    fun = PROGRAMS[name]
    f = ft.jit(fun)
    for r in [0.5, 1, 0.25, *np.linspace(0.0, 1.0, 46).tolist(), 0.5, -0.0, 1]:
        laws.close(f(X, r), fun(X, r), 1e-12, 1e-12)
        assert f(X, r).dtype == fun(X, r).dtype
    if name in FEW:
        assert f.cache_info().misses <= 5, f.explain()


def test_what_numbers_are_no_arrays_of() -> None:
    """Weak, as Python's numbers are: a float does not widen float32, a complex one is complex."""
    x = xp.astype(X, xp.float32)
    f = ft.jit(lambda x, r: xp.exp(x) * r)
    for r in (1.5, 2.5, 1e300, float("nan"), 3, 1 << 40, 1j, 2j, True, False, float("inf")):
        with np.errstate(all="ignore"):
            found, expected = f(x, r), xp.exp(x) * r
        laws.close(found, expected, 1e-6, 1e-6)
        assert found.dtype == expected.dtype


class _Count(enum.IntEnum):
    ONE = 1
    TWO = 2


class _Unit(float):
    def __repr__(self) -> str:
        return "a unit"


class _Phase(complex):
    def __repr__(self) -> str:
        return "a phase"


NAMED = [_Count.ONE, _Count.TWO, _Unit(1.5), _Unit(-0.0), _Phase(1 + 2j), _Phase(2j)]


@pytest.mark.parametrize("op", [xp.multiply, xp.add, xp.pow, xp.where, xp.equal])
def test_numbers_that_print_otherwise(op: Any) -> None:
    """Members of enums and other numbers with names compute what Python's numbers do, given or
    closed over, one after the other; so do their graphs in files.
    """
    x = xp.abs(X[:3, :2])

    def fun(x: Any, r: Any) -> Any:
        return op(x > 0.5, x, r) if op is xp.where else op(x, r)

    given, static = ft.jit(fun), ft.jit(fun, static_argnums=1)
    for r in NAMED:
        expected = fun(x, r)
        closing = ft.jit(lambda x, r=r: fun(x, r))
        graph = ft.Graph.from_json(ft.make_graph(lambda x, r=r: fun(x, r))(x).to_json())
        for found in (given(x, r), static(x, r), closing(x), graph(x)[0]):
            laws.close(found, expected, 1e-14, 1e-14)
            assert found.dtype == expected.dtype


def test_numbers_in_trees_and_keywords_and_lengths_that_vary() -> None:
    def fun(x: Any, options: Any, *, scale: Any) -> Any:
        return xp.tanh(x * options["rate"]) * scale + options["shift"][0]

    f = ft.jit(fun)
    rng = np.random.default_rng(0)
    for k in range(40):
        x = X[: 900 + k % 3]
        options = {"rate": rng.normal(), "shift": [k, "name"]}
        laws.close(f(x, options, scale=k / 7), fun(x, options, scale=k / 7), 1e-12, 1e-12)
    assert f.cache_info().misses <= 8, f.explain()


def test_static_arguments_are_each_a_program() -> None:
    f = ft.jit(lambda x, n: xp.exp(x) * n, static_argnums=1)
    for n in range(4):
        laws.close(f(X, n), xp.exp(X) * n)
    assert f.cache_info().misses == 4


def test_derivatives_of_functions_of_numbers() -> None:
    f = ft.jit(lambda x, r: xp.sum(xp.tanh(x * r) * r))
    for r in np.linspace(0.1, 2.0, 12).tolist():
        laws.close(ft.grad(f)(X, r), r * r / xp.cosh(X * r) ** 2, 1e-11, 1e-11)


def test_programs_for_numbers_of_long_ago_are_let_go() -> None:
    """What a thousand numbers leave behind, of a function that needs to know them, is what the last
    256 do.
    """
    f = ft.jit(lambda x, r: xp.exp(x) * math.sqrt(r * r))
    f(X, 0.5)
    first = weakref.ref(f._table.all_paths()[0].raw)
    for k in range(400):
        f(X, 1.0 + k)
    gc.collect()
    assert first() is None
    assert len(f._table.paths) == len(f._table.open) == len(f._table.all_paths()) == 256
    assert len(f._table.exact) <= 257
    laws.close(f(X, 0.5), xp.exp(X) * 0.5, 1e-12, 1e-12)
    assert f.cache_info().misses <= 3
