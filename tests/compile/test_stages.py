"""Long bodies are walked in stages where their values wait for each other."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.loops import passes
from funct.compile.loops.kernel import Access, Kernel, Load, Op
from funct.compile.loops.scalars import PRINTINGS
from funct.device import Host, host
from tests.compile.test_bounds import made_of

AVX512 = frozenset({"avx512f", "avx512dq", "avx512bw", "avx512vl"})
HALVES, WHOLE = (Host(name, AVX512, 64, 2) for name in ("znver4", "sapphirerapids"))


def kernel(name: str, ways: int, steps: int) -> Kernel:
    """So many chains of an op side by side, each of so many steps."""
    access = Access("f32", "one", ())
    values: list[Any] = [Load(k, "f32", "full") for k in range(ways)]
    for _ in range(steps):
        for k in range(ways):
            last = len(values) - ways if len(values) > ways else k
            printing = PRINTINGS[name]
            values.append(Op(name, (last,), (None,), "f32", "full", printing, (), len(values)))
    stores = tuple([(len(values) - ways + k, ways + k) for k in range(ways)])
    return Kernel((access,) * 2 * ways, tuple(values), stores, True, 4, 0, True, False)


@pytest.mark.parametrize(
    ("host", "ways", "staged"),
    [(HALVES, 1, True), (HALVES, 2, False), (WHOLE, 1, True), (WHOLE, 2, True), (WHOLE, 4, False)],
)
def test_stages_are_made_where_too_few_values_are_ready(
    host: Host, ways: int, staged: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(passes, "host", lambda: host)
    assert passes.passes(kernel("exp", ways, 24 // ways)).staged is staged
    assert not passes.passes(kernel("exp", ways, 1)).staged  # too short


@pytest.mark.parametrize("host", [HALVES, WHOLE], ids=lambda h: h.name)
def test_numbers_are_the_same_in_stages(host: Host, monkeypatch: Any) -> None:
    monkeypatch.setattr(passes, "host", lambda: host)
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    rng = np.random.default_rng(0)
    x, y = xp.asarray(rng.normal(size=3001)), xp.asarray(rng.normal(size=3001))
    own = len(host.name)  # so that each host has a kernel of its own

    def f(x: Any, y: Any) -> Any:
        chain, tables = x, y
        for k in range(40):
            chain = chain * y + (0.1 * k + own) - x / 3.0
            tables = xp.sqrt(tables * tables + x)
        return chain, tables, x[xp.argsort(y)] * tables

    with np.errstate(invalid="ignore"):
        expected = f(x, y)
    for found, exact in zip(ft.jit(f)(x, y), expected, strict=True):
        np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("size", [1, host().vector_bytes // 8, 5000])
def test_one_vector_goes_through_all_at_once(size: int) -> None:
    """Ten steps of Newton's method for a number were thirteen loops, each of one step."""
    x = np.random.default_rng(0).normal(size=size)

    def fun(x: Any) -> Any:
        for _ in range(10):
            x = x - (x**3 - 2.0 * x - 5.0 + xp.sin(x)) / (3.0 * x * x + 5.0)
        return x

    made = made_of(fun, x)
    kernels = [c.kernel for c in made.calls if isinstance(c.kernel, Kernel)]
    assert any(passes.passes(k).staged for k in kernels) is (size == 5000)
    np.testing.assert_allclose(made.run(x)[0], np.asarray(fun(xp.asarray(x))), rtol=1e-12)
