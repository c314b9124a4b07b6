"""jit(fast=True): approximations where somebody asks for them, and nowhere else."""

import pickle
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import errors
from funct import graph as g
from funct.compile import stored
from funct.device import disk_cache, host
from funct.nn import functional
from tests import laws

X = xp.asarray(np.random.default_rng(0).normal(size=40_000).astype(np.float32))

FUNCTIONS: dict[str, Any] = {
    "cos": xp.cos, "erf": xp.erf, "exp": xp.exp, "exp2": xp.special.exp2,
    "logaddexp": lambda x: xp.logaddexp(x, 0.5), "pow": lambda x: xp.abs(x) ** 1.3,
    "sigmoid": functional.sigmoid, "sin": xp.sin, "tanh": xp.tanh,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_near_and_not_the_same(name: str) -> None:
    """A few ulp away from the exact function, whose results jit has without the option; with
    AVX-512 two of the exact functions are as short.
    """
    f = FUNCTIONS[name]
    exact, fast = ft.jit(f)(X), ft.jit(f, fast=True)(X)
    laws.close(fast, exact, 2e-6, 2e-6)
    same = name in ("exp", "erf") and host().vector_bytes == 64
    assert np.array_equal(np.asarray(fast), np.asarray(exact)) == same
    assert f" fast_{name}(" in ft.jit(f, fast=True).show(X, form="graph")
    assert f" fast_{name}(" not in ft.jit(f).show(X, form="graph")


def test_it_says_so() -> None:
    """The graph, the loops, the assembly's graph and the reasons."""
    f = ft.jit(lambda x: xp.exp(x) + 1.0, fast=True)
    f(X)
    assert "functions are approximated: fast=True" in f.explain()
    assert "fast_exp(t" in f.show(X, form="loops")
    assert "fast_exp" in f.lower(X).compile().as_text()


def test_derivatives_and_bodies_of_loops_are_fast_too() -> None:
    """Each graph that the function becomes goes through the pass, with the bodies in it."""

    def f(x: Any) -> Any:
        step = lambda c, row: (xp.tanh(c * 0.5 + row), xp.exp(c))  # noqa: E731
        return xp.sum(ft.scan(step, x[:400], xp.reshape(x, (100, 400)))[1])

    seen: list[str] = []

    def names(graph: g.Graph) -> None:
        for e in graph.nodes:
            seen.append(e.name)
            if isinstance(e, g.Node) and isinstance(e.primitive, g.Control):
                for _, body in e.primitive.bodies:
                    names(body)

    def spy(graph: g.Graph) -> g.Graph:
        names(graph)
        return graph

    exact = ft.grad(ft.jit(f))(X)
    laws.close(ft.grad(ft.jit(f, fast=True, backend=spy))(X), exact, 1e-4, 1e-4)
    assert {"fast_tanh", "fast_exp"} <= set(seen)
    assert not {"tanh", "exp"} & set(seen)


def test_the_caches_tell_them_apart(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On disk and in memory; and code found on disk again is what was kept."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", str(tmp_path))
    graph = ft.make_graph(xp.sin)(X)
    keys = {stored.kept_as(k, True) for k in (graph, g.approximate(graph))}
    assert len(keys) == 2
    assert None not in keys
    first = [np.asarray(ft.jit(xp.sin, fast=fast)(X)) for fast in (True, False)]
    assert all(disk_cache.read(k) is not None for k in keys if k is not None)
    again = [np.asarray(ft.jit(xp.sin, fast=fast)(X)) for fast in (True, False)]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(*first)


def test_what_stays_exact() -> None:
    """Integer powers of numbers of both signs, complex numbers, decisions."""
    signed = ft.jit(lambda x, y: (x**3.0, x**4.0, x**y), fast=True)
    y = xp.full(X.shape, 3.0, dtype=xp.float32)
    laws.close(signed(X, y), (X * X * X, X * X * X * X, X * X * X), 1e-5, 1e-5)
    z = xp.astype(X, xp.complex64) * 1j
    laws.same(ft.jit(xp.exp, fast=True)(z), ft.jit(xp.exp)(z))
    decided = ft.jit(lambda x: x * 2.0 if xp.exp(x[0]) == xp.exp(x[1]) else x, fast=True)
    both = xp.concat([X[:1], X[:1], X])
    laws.same(decided(both), both * 2.0)


def test_it_is_asked_for_with_care() -> None:
    """A truth value, not together with the comparison against exact functions; it pickles."""
    with pytest.raises(errors.ArgumentError, match="fast must be True or False, got 'yes'"):
        ft.jit(xp.exp, fast="yes")  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="compares with exact functions"):
        ft.jit(xp.exp, fast=True, mode="check")
    assert pickle.loads(pickle.dumps(ft.jit(xp.exp, fast=True))).fast is True
    graph = g.approximate(ft.make_graph(xp.exp)(X))
    assert [e.name for e in g.Graph.from_json(graph.to_json()).nodes] == ["fast_exp"]
    laws.same(graph(X)[0], xp.exp(X))
