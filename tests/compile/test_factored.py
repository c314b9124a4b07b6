"""Ops that take one matrix apart share its factors: eager numbers, and eager errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import LinAlgError
from tests.compile.test_bounds import made_of

linalg = xp.linalg
RNG = np.random.default_rng(0)


def log_size(a: Any) -> Any:
    return xp.sum(linalg.slogdet(a)[1])


def likelihood(a: Any, b: Any) -> Any:
    return log_size(a) + xp.sum(linalg.solve(a, b) * b)


def kept_regular(a: Any, b: Any) -> Any:
    """What derivatives of `slogdet` ask for, by itself."""
    singular = linalg.slogdet(a)[1] == -xp.inf
    eye = xp.eye(a.shape[-1], dtype=a.dtype)
    return linalg.inv(xp.where(singular[..., None, None], eye, a)), linalg.det(a)


SHARED: dict[str, Callable[[Any, Any], Any]] = {
    "both ways": lambda a, b: (linalg.solve(a, b), linalg.solve(a.mT, b)),
    "inverses": lambda a, b: (linalg.inv(a.mT), linalg.solve(a, b), linalg.inv(a)),
    "determinants": lambda a, b: (linalg.det(a), *linalg.slogdet(a.mT), linalg.solve(a, b)),
    "result of a system": lambda a, b: (
        linalg.solve(a, linalg.solve(a, b)), linalg.solve(linalg.inv(a) + a, b)
    ),
    "slope of slogdet": lambda a, b: ft.grad(log_size)(a),
    "slope of a system": ft.grad(lambda a, b: xp.sum(linalg.solve(a, b) ** 2), (0, 1)),
    "slope of a likelihood": ft.grad(likelihood),
    "tangent": lambda a, b: ft.jvp(likelihood, (a, b), (a * a, b * b)),
    "second slope": lambda a, b: ft.jvp(ft.grad(likelihood), (a, b), (a * a, b * b)),
    "kept regular": kept_regular,
}  # fmt: skip


def given(n: int, lead: tuple[int, ...], dtype: str) -> tuple[Any, Any]:
    a = RNG.normal(size=(*lead, n, n)) / n**0.5 + 2 * np.eye(n)
    a[..., [0, 1], :] = a[..., [1, 0], :]  # the determinant's sign is that of a permutation
    return a.astype(dtype), RNG.normal(size=(*lead, n, 2)).astype(dtype)


def factorizations(f: Any, *arrays: Any) -> int:
    """How many ops of a program take a matrix apart."""
    made = made_of(f, *arrays)
    steps = [step.name for step in made.fused.steps if hasattr(step, "primitive")]
    return sum(name in ("lu_factored", "solve", "inv", "det", "slogdet") for name in steps)


@pytest.mark.in_turn
@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize(
    ("n", "lead", "dtype"),
    [
        (12, (), "float32"), (20, (3,), "float64"), (97, (), "float32"), (101, (2, 1), "float32"),
        (160, (2,), "float64"),
    ],
)
def test_shared_factors_give_eager_numbers(
    n: int, lead: tuple[int, ...], dtype: str, name: str
) -> None:
    f, arrays = SHARED[name], given(n, lead, dtype)
    expected = ft.tree.leaves(f(*map(xp.asarray, arrays)))
    found = made_of(f, *arrays).run(*arrays)
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    for x, y in zip(found, expected, strict=True):
        scale = float(np.max(np.abs(y)))
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)
    if n >= 97:  # of fewer rows vectors are sooner
        assert factorizations(f, *arrays) == (2 if name == "result of a system" else 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_system_has_the_bits_of_one_alone(dtype: str) -> None:
    a, b = given(70, (2,), dtype)
    found = made_of(lambda a, b: (linalg.solve(a, b), linalg.det(a)), a, b).run(a, b)
    np.testing.assert_array_equal(found[0], linalg.solve(xp.asarray(a), xp.asarray(b)))


@pytest.mark.parametrize("name", SHARED)
def test_singular_matrices_are_told_of_as_eagerly(name: str) -> None:
    f, (a, b) = SHARED[name], given(97, (2,), "float32")
    a[1, :, 3] = 0
    try:
        expected: Any = ft.tree.leaves(f(xp.asarray(a), xp.asarray(b)))
    except LinAlgError:
        expected = None
    program = ft.jit(f, mode="reduce-overhead")  # machine code at once
    assert factorizations(f, a, b) <= 2
    if expected is None:
        with pytest.raises(LinAlgError):
            program(a, b)
    else:
        for x, y in zip(ft.tree.leaves(program(a, b)), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3)


def test_in_loops_too() -> None:
    a, b = given(24, (), "float32")

    def f(a: Any, b: Any) -> Any:
        def step(x: Any, k: Any) -> tuple[Any, Any]:
            s = a + k * xp.eye(24, dtype="float32")
            x = linalg.solve(s, x)
            return x, log_size(s)

        return ft.scan(step, b, xp.arange(5, dtype="float32"))

    expected = ft.tree.leaves(f(xp.asarray(a), xp.asarray(b)))
    for x, y in zip(made_of(f, a, b).run(a, b), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)
