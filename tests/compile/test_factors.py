"""QR and singular values in loops: NumPy's numbers, its errors, no Python between the steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import LinAlgError
from tests import laws
from tests.compile.test_flat import _same_in_a_loop

linalg = xp.linalg
RNG = np.random.default_rng(0)
OPS: dict[str, Callable[[Any], Any]] = {
    "qr": linalg.qr,
    "complete": lambda a: linalg.qr(a, mode="complete"),
    "svd": linalg.svd,
    "short": lambda a: linalg.svd(a, full_matrices=False),
    "svdvals": linalg.svdvals,
}
SHAPES = [(1, 1), (3, 3), (5, 2), (2, 5), (4, 1), (2, 3, 4, 3), (3, 2, 6), (40, 30), (70, 60)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", OPS)
def test_numbers(op: str, shape: tuple[int, ...], dtype: str) -> None:
    """Of stacks, of what is a look at something else, and of a matrix without full rank."""
    if dtype == "float32" and shape[-1] * shape[-2] >= 64 * 64:
        pytest.skip("computed in single precision: Python goes through it")
    x = RNG.normal(size=(3, *shape))
    x[1, ..., -1] = x[1, ..., 0]
    x[2, ..., :1, :] = 0
    f = OPS[op]
    flat = lambda y: list(y) if isinstance(y, tuple) else [y]  # noqa: E731
    step = lambda x: [*flat(f(x)), *flat(f(x.mT)), *flat(f(xp.flip(x, axis=-1)))]  # noqa: E731
    _same_in_a_loop(step, xp.asarray(x.astype(dtype)))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_what_is_not_finite(op: str, special: float) -> None:
    """Eager's error, or its numbers."""
    x = RNG.normal(size=(4, 3, 3))
    x[2, 1, 1] = special
    scan = lambda x: ft.scan(lambda c, x: (c + 1, OPS[op](x)), 0, x)[1]  # noqa: E731
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
