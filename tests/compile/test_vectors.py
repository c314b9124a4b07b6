"""Of loops over rows of known lengths, what would never run is not printed."""

import re
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.loops.kernel import Kernel
from funct.compile.program import kernels_text
from funct.device import host
from tests.compile.checked import checking, run
from tests.compile.test_bounds import made_of

LENGTHS = sorted({k * n + d for k in (1, 2, 3, 4, 6, 8) for n in (2, 4, 8, 16) for d in (-1, 0, 1)})
WAYS: dict[str, Any] = {
    "one row": lambda x: (x.reshape(-1) * 3 + 1, x - 2),
    "sums of rows": lambda x: (xp.sum(x * 2, axis=-1), xp.max(x + 1, axis=-1)),
    "what rows are less": lambda x: x - xp.max(x, axis=-1, keepdims=True),
    "sums of columns": lambda x: (xp.sum(x * 2, axis=0), x + 1),
    "the sum of all": lambda x: (xp.sum(x * 2), xp.max(x)),
    "a dear sum": lambda x: xp.sum(xp.tanh(x * 0.125) ** 3 / 7, axis=-1),
}  # fmt: skip


@pytest.mark.pairwise(where=lambda way, dtype, **_: way != "a dear sum" or dtype[0] == "f")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(way: str, dtype: str, n: int) -> None:
    """The numbers are small and whole, so that every order of additions gives the same."""
    x = np.arange(3 * n).reshape(3, n) % 11
    given = xp.asarray(x, dtype=dtype)
    made = made_of(WAYS[way], given)
    with checking():
        found = run(made_of(WAYS[way], given), np.asarray(given))
    eager = ft.tree.leaves(WAYS[way](given))
    for a, b in zip([*found, *made.run(np.asarray(given))], [*eager, *eager], strict=True):
        rtol = {"float32": 1e-5, "float64": 1e-13}.get(dtype, 0) * (way == "a dear sum")
        np.testing.assert_allclose(a, b, rtol=rtol, atol=0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("registers", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_what_would_never_run_is_not_printed(way: str, registers: int, over: int) -> None:
    """Vectors are no longer than rows, and have masks only where some are left half full."""
    lanes = host().vector_bytes // 4
    n = registers * lanes + over
    x = np.ones((1 if way == "one row" else 5, n), np.float32)
    made = made_of(WAYS[way], x)
    calls = [c for c in made.calls if isinstance(c.kernel, Kernel)]
    assert calls
    for c in calls:
        length = c.words[1]
        assert isinstance(length, int)
        text = kernels_text([c.kernel])
        assert max(int(w) for w in re.findall(r"<(\d+) x float>", text)) <= max(length, lanes)
        assert ("masked" in text) == (length % lanes > 0)
    with checking():
        found = run(made, x)
    for a, b in zip(found, ft.tree.leaves(WAYS[way](xp.asarray(x))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_function_that_few_elements_take_often_is_printed_once() -> None:
    """With the bits that it has alone; on more elements each has its own text, as before."""

    def often(x: Any) -> tuple[Any, ...]:
        y = xp.sin(x * 3)
        return y, xp.sin(y + x), xp.sin(y * 1e6), xp.exp(y), xp.sin(xp.exp(y)), xp.sin(x) - y

    for dtype in ("float32", "float64"):
        lanes = host().vector_bytes // np.dtype(dtype).itemsize
        for n in (lanes, lanes - 1, 2 * lanes - 1, 8 * lanes):
            x = np.random.default_rng(n).normal(size=n).astype(dtype)
            made = made_of(often, x)
            (kernel,) = [c.kernel for c in made.calls if isinstance(c.kernel, Kernel)]
            text = kernels_text([kernel])
            assert len(re.findall(r"call [^@\n]*@kernel0_sin_v", text)) == 5 * (n < 2 * lanes)
            assert "@kernel0_exp_v" not in text
            with checking():
                found = run(made, x)
            wide = made_of(often, np.tile(x, 16)).run(np.tile(x, 16))
            for a, b, c in zip(found, made.run(x), wide, strict=True):
                np.testing.assert_array_equal(a, b)
                np.testing.assert_array_equal(a, c[:n])


@pytest.mark.parametrize(("ways", "registers"), [(1, 2), (16, 1)])
def test_one_vector_where_it_is_enough(ways: int, registers: int) -> None:
    """A long body whose values do not wait for each other is not printed for two at a time."""
    x = np.random.default_rng(0).normal(size=(40, 256)).astype(np.float32)

    def windows(x: Any) -> Any:
        chain = [xp.exp(xp.exp(x[:, k : k + 240]) * -0.5) for k in range(ways)]
        while len(chain) > 1:
            chain = [a + b for a, b in zip(chain[::2], chain[1::2], strict=True)]
        for _ in range(16 // ways):  # as long in either way
            chain = [xp.exp(-c) for c in chain]
        return chain[0]

    made = made_of(windows, x)
    (kernel,) = [c.kernel for c in made.calls if isinstance(c.kernel, Kernel)]
    lanes = [int(n) for n in re.findall(r"<(\d+) x float>", kernels_text([kernel]))]
    assert max(lanes) == registers * host().vector_bytes // 4
    with checking():
        (checked,) = run(made_of(windows, x), x)
    (found,) = made.run(x)
    np.testing.assert_array_equal(found, checked)
    np.testing.assert_allclose(found, np.asarray(windows(xp.asarray(x))), rtol=1e-5)


@pytest.mark.parametrize(
    ("terms", "chain", "arrays", "registers"),
    [(0, 1, 1, 2), (0, 3, 1, 4), (0, 3, 3, 2), (0, 7, 1, 2), (10, 0, 1, 2), (40, 0, 1, 4),
     (40, 1, 1, 2)],
)  # fmt: skip
def test_more_vectors_where_one_waits(terms: int, chain: int, arrays: int, registers: int) -> None:
    """What waits for itself is printed for four at a time, if it is short and reads little: long
    functions have more code than additions that take as long.
    """
    xs = np.random.default_rng(0).normal(size=(arrays, 5000)).astype(np.float32)

    def waiting(*xs: Any) -> Any:
        x = y = sum(xs)
        for k in range(terms):
            y = y * x + 1 / (k + 1)
        for _ in range(chain):
            y = xp.exp(-y)
        return y

    made = made_of(waiting, *xs)
    (kernel,) = [c.kernel for c in made.calls if isinstance(c.kernel, Kernel)]
    lanes = [int(n) for n in re.findall(r"<(\d+) x float>", kernels_text([kernel]))]
    assert max(lanes) == registers * host().vector_bytes // 4
    (found,) = made.run(*xs)
    np.testing.assert_allclose(found, np.asarray(waiting(*map(xp.asarray, xs))), rtol=1e-5)
