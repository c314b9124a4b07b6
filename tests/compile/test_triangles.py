"""Cholesky's factors and triangular systems of large matrices in programs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.rewriting.new_nodes import NewNodes
from funct.errors import LinAlgError
from tests.compile.test_bounds import made_of

linalg = xp.linalg
RNG = np.random.default_rng(0)
PRIVATE = ("cholesky_turned", "triangular_solved")


def lower(a: Any, b: Any, **how: Any) -> Any:
    return linalg.solve_triangular(a, b, lower=True, **how)


def upper(a: Any, b: Any) -> Any:
    return linalg.solve_triangular(a, b)


SYSTEMS: dict[str, Callable[[Any, Any], Any]] = {
    "lower": lower,
    "upper": upper,
    "of the transpose": lambda a, b: (upper(a.mT, b), lower(a.mT, b)),
    "rows": lambda a, b: (lower(a, 1 * b.mT.mT).mT, upper(a, (b + 1).mT.mT)),
    "turned right sides": lambda a, b: (
        lower(a, (b.mT * 2).mT), upper(a, (b.mT * 2).mT), lower(a.mT, (b.mT * 2).mT)
    ),
    "of a square": lambda a, b: upper(a.mT, lower(a, a.mT)),
    "slopes": ft.grad(lambda a, b: xp.sum(lower(a, b) ** 2) + xp.sum(upper(a, b) ** 3), (0, 1)),
}  # fmt: skip
FACTORS: dict[str, Callable[[Any, Any], Any]] = {
    "factor": lambda a, b: linalg.cholesky(a @ a.mT),
    "of what is not symmetric": lambda a, b: linalg.cholesky(a @ a.mT + xp.triu(a)),
    "system by it": lambda a, b: lower(linalg.cholesky(a @ a.mT), b),
    "slope": lambda a, b: ft.grad(lambda s: xp.sum(linalg.cholesky(s) ** 3))(a @ a.mT),
    "tangent": lambda a, b: ft.jvp(linalg.cholesky, (a @ a.mT,), (a + a.mT,)),
}
SIZES = [(33, (), 5), (64, (), 64), (130, (2,), 20), (20, (2, 2), 4), (301, (), 4)]


def given(n: int, lead: tuple[int, ...], sides: int, dtype: str) -> tuple[Any, Any]:
    a = RNG.normal(size=(*lead, n, n)) * 0.3 / n**0.5 + 2 * np.eye(n)
    return a.astype(dtype), RNG.normal(size=(*lead, n, sides)).astype(dtype)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", [*SYSTEMS, *FACTORS])
def test_numbers_are_eager_ones(name: str, size: tuple[int, Any, int], dtype: str) -> None:
    f, arrays = (SYSTEMS | FACTORS)[name], given(*size, dtype)
    expected = ft.tree.leaves(f(*map(xp.asarray, arrays)))
    made = made_of(f, *arrays)
    if name in SYSTEMS or size[0] > 300:  # of fewer rows vectors are sooner
        assert any(getattr(s, "name", "") in PRIVATE for s in made.fused.steps)
    for x, y in zip(made.run(*arrays), expected, strict=True):
        tolerance = 1e-4 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * float(np.max(np.abs(y))))


def test_factors_have_eager_bits() -> None:
    s = given(100, (2,), 1, "float32")[0]
    s = s @ np.swapaxes(s, -1, -2)
    np.testing.assert_array_equal(
        made_of(linalg.cholesky, s).run(s)[0], linalg.cholesky(xp.asarray(s))
    )


@pytest.mark.parametrize("f", [lambda a, b: linalg.cholesky(a), lower, upper])
def test_what_has_no_result_raises_as_eagerly(f: Any) -> None:
    a, b = given(40, (2,), 8, "float32")
    program = ft.jit(f, mode="reduce-overhead")
    program(a, b)
    a[1, 17, 17] = 0
    for run in (f, program):
        with pytest.raises(LinAlgError):
            run(xp.asarray(a), xp.asarray(b))


def test_in_loops_too() -> None:
    a, b = given(40, (), 8, "float32")

    def f(a: Any, b: Any) -> Any:
        def step(x: Any, k: Any) -> tuple[Any, Any]:
            factor = linalg.cholesky(a @ a.mT + k * xp.eye(40, dtype="float32"))
            x = upper(factor.mT, lower(factor, x))
            return x, x

        return ft.scan(step, b, xp.arange(5, dtype="float32"))

    expected = ft.tree.leaves(f(xp.asarray(a), xp.asarray(b)))
    for x, y in zip(made_of(f, a, b).run(a, b), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


def test_constants_of_what_is_spelled_have_names_of_their_own():
    """Another graph begins to count its constants anew."""
    x = xp.ones((2, 3))
    graph = ft.make_graph(lambda x: x * xp.asarray(np.arange(3.0)))(x)
    walk = NewNodes(graph)
    walk.spelled(lambda x: [x + xp.asarray(np.arange(6.0).reshape(2, 3))], graph.inputs)
    names = [v.name for v in walk.constants]
    assert len(names) == 2
    assert len(set(names)) == 2
