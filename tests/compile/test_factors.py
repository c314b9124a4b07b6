"""Decompositions in loops: NumPy's numbers, its errors, no Python between the steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import ops
from funct.errors import LinAlgError
from funct.kernels.cpu.loops import available
from tests import laws
from tests.compile.test_flat import _same_in_a_loop

linalg = xp.linalg
RNG = np.random.default_rng(0)
OPS: dict[str, Callable[[Any], Any]] = {
    "qr": linalg.qr,
    "triangle": lambda a: linalg.qr(a)[1],
    "complete": lambda a: linalg.qr(a, mode="complete"),
    "svd": linalg.svd,
    "short": lambda a: linalg.svd(a, full_matrices=False),
    "svdvals": linalg.svdvals,
}
SHAPES = [
    (1, 1), (3, 3), (5, 2), (2, 5), (4, 1), (2, 3, 4, 3), (3, 2, 6), (40, 30), (70, 60),
    (2, 64, 64),
]  # fmt: skip

assert available()  # phases are turned by machine code then, in eager execution too


def numbers(*shape: int, dtype: str) -> Any:
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if dtype.startswith("complex") else x


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", OPS)
def test_numbers(op: str, shape: tuple[int, ...], dtype: str) -> None:
    """Of stacks, of what is a look at something else, and of a matrix without full rank."""
    x = numbers(3, *shape, dtype=dtype)
    x[1, ..., -1] = x[1, ..., 0]
    x[2, ..., :1, :] = 0
    f = OPS[op]
    flat = lambda y: list(y) if isinstance(y, tuple) else [y]  # noqa: E731
    step = lambda x: [*flat(f(x)), *flat(f(x.mT)), *flat(f(xp.flip(x, axis=-1)))]  # noqa: E731
    _same_in_a_loop(step, xp.asarray(x.astype(dtype)))


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 3, 4, 4), (20, 20), (65, 65)])
def test_eigenvalues(shape: tuple[int, ...], dtype: str) -> None:
    """And vectors, whose phases follow from them."""
    x = xp.asarray(numbers(3, *shape, dtype=dtype).astype(dtype))
    _same_in_a_loop(lambda x: [*linalg.eig(x), linalg.eigvals(x.mT)], x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("lead", [(), (3,)])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 3, 2), (5, 2, 1), (2, 5, 3), (12, 7, 4), (90, 50, 3)]
)
def test_least_squares(shape: tuple[int, ...], lead: tuple[int, ...], dtype: str) -> None:
    """With the rank, that of a matrix of less than the full one too."""
    m, n, k = shape
    a, b = numbers(3, *lead, m, n, dtype=dtype), numbers(3, *lead, m, k, dtype=dtype)
    a[1, ..., -1] = a[1, ..., 0]
    a[2] = 0
    both = xp.asarray(np.concatenate([a, b], -1).astype(dtype))
    for rtol in (None, 1e-3):
        step = lambda x, rtol=rtol: list(ops.lstsq(x[..., :n], x[..., n:], rtol))  # noqa: E731
        _same_in_a_loop(step, both)


@pytest.mark.parametrize("op", [*OPS, "eig", "eigvals", "lstsq"])
@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize(("size", "dtype"), [(3, "float64"), (70, "float32")])
def test_what_is_not_finite(op: str, size: int, dtype: str, special: float) -> None:
    """Eager's error, or its numbers."""
    x = RNG.normal(size=(4, size, size)).astype(dtype)
    x[2, 1, 1] = special
    more = {
        "eig": linalg.eig, "eigvals": linalg.eigvals,
        "lstsq": lambda x: list(ops.lstsq(x, xp.ones((size, 1), dtype=x.dtype), None)),
    }  # fmt: skip
    f = OPS.get(op) or more[op]
    scan = lambda x: ft.scan(lambda c, x: (c + 1, f(x)), 0, x)[1]  # noqa: E731
    xs, found = xp.asarray(x), []
    for run in (scan, ft.jit(scan)):
        try:
            with np.errstate(all="ignore"):
                found.append(run(xs))
        except LinAlgError as error:
            found.append(str(error).splitlines()[0])
    if isinstance(found[0], str):
        assert found[0] == found[1]
        laws.same(ft.jit(scan)(xs[:2]), scan(xs[:2]))
    else:
        laws.same(*found)


def test_a_square_root_filter() -> None:
    """A covariance is carried as a factor; its derivative and batches of it."""
    a = xp.asarray(RNG.normal(size=(3, 3)) * 0.4 + np.eye(3))
    noise = xp.asarray(np.eye(3) * 0.3)

    def loss(a: Any) -> Any:
        def step(s: Any, _: Any) -> tuple[Any, Any]:
            r = linalg.qr(xp.concat([s @ a.mT, noise]))[1]
            return r, xp.sum(xp.log(xp.abs(linalg.diagonal(r))))

        return xp.sum(ft.scan(step, noise, None, length=20)[1])

    laws.close(ft.jit(ft.grad(loss))(a), ft.grad(loss)(a), 1e-10, 1e-10)
    both = xp.stack([a, 0.5 * a])
    laws.close(ft.jit(ft.vmap(loss))(both), xp.stack([loss(b) for b in both]), 1e-11, 1e-11)
