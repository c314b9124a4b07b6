"""Products of sparse matrices in loops: eager's bits, and no Python between the steps."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import funct as ft
import funct.array as xp
from funct import ops
from funct.kernels.cpu.loops import available
from funct.kernels.linalg import csr
from tests import laws
from tests.compile.test_windows import compiled, looped, steps_python

assert available()  # eager execution takes machine code then, too

RNG = np.random.default_rng(0)


def matrix(rows: int, n: int, dtype: Any, index: Any, density: float = 0.3) -> Any:
    """Entries, columns and where rows begin."""
    held = scipy.sparse.random(rows, n, density, "csr", rng=RNG)
    data = RNG.integers(-4, 5, held.nnz).astype(dtype)
    return data, held.indices.astype(index), held.indptr.astype(index)


@pytest.mark.pairwise
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex128"])
@pytest.mark.parametrize("k", [1, 3, 8, 41])
@pytest.mark.parametrize("part", [5, 1 << 14])
def test_loops_have_eagers_bits(
    k: int, dtype: str, index: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the product, of its transpose, and of products at the entries alone."""
    monkeypatch.setattr(csr, "_PART", part)
    data, *places = matrix(9, 7, dtype, index)
    indices, indptr = map(xp.asarray, places)
    x, g = (xp.asarray(RNG.normal(size=(3, s, k)) * 8, dtype=data.dtype) for s in (7, 9))
    entries = xp.asarray(np.stack([data, 2 * data, -data]))
    if dtype == "complex128":
        x, g, entries = (v * (1 + 2j) for v in (x, g, entries))

    def f(data: Any, x: Any, g: Any) -> Any:
        return (
            ops.sparse_matmul(data, x, indices, indptr, 7, False),
            ops.sparse_matmul(data, g, indices, indptr, 7, True),
            ops.sampled_matmul(g, x, indices, indptr),
        )

    assert not steps_python(looped(f), entries, x, g)
    found = compiled(looped(f), entries, x, g)
    for k_th, rows in enumerate(zip(*found, strict=True)):
        expected = f(entries[k_th], x[k_th], g[k_th])
        if dtype == "complex128":  # parts of four products are put together
            laws.close(rows, expected, 1e-12, 1e-12)
        else:
            laws.same(rows, expected)


@pytest.mark.parametrize("bad", [7, -1, 1 << 20])
def test_an_index_out_of_bounds_raises(bad: int) -> None:
    """As eagerly, whether the matrix is known or comes with the call; memory is left alone."""
    data, indices, indptr = matrix(9, 7, "float64", "int32")
    wrong = indices.copy()
    wrong[3] = bad

    def run(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
        step = lambda c, x: (c, ops.sparse_matmul(data, x, indices, indptr, 7, False))  # noqa: E731
        return ft.scan(step, 0.0, x)[1]

    x = xp.ones((300, 7, 2))
    given = [xp.asarray(v) for v in (data, indices, indptr)]
    jitted = ft.jit(run)
    laws.same(jitted(*given, x), run(*given, x))
    with pytest.raises(IndexError, match="out of bounds"):
        jitted(given[0], xp.asarray(wrong), given[2], x)
    with pytest.raises(IndexError, match="do not fit"):
        jitted(given[0], given[1], given[2].at[4].set(1 << 20), x)


def test_conjugate_gradients() -> None:
    """A system is solved in a loop, and differentiated through it."""
    held = scipy.sparse.random(50, 50, 0.1, "csr", rng=RNG)
    held = (held @ held.T + 4 * scipy.sparse.eye(50)).tocsr()
    indices, indptr = xp.asarray(held.indices), xp.asarray(held.indptr)

    def solve(data: Any, b: Any) -> Any:
        def times(v: Any) -> Any:
            return ops.sparse_matmul(data, v[:, None], indices, indptr, 50, False)[:, 0]

        def step(s: Any, _: Any) -> Any:
            x, r, p, rr = s
            q = times(p)
            alpha = rr / xp.vecdot(p, q)
            r = r - alpha * q
            new = xp.vecdot(r, r)
            return (x + alpha * p, r, r + new / rr * p, new), None

        return ft.scan(step, (xp.zeros(50), b, b, xp.vecdot(b, b)), None, length=8)[0][0]

    data, b = xp.asarray(held.data), xp.asarray(RNG.normal(size=50))
    assert not steps_python(solve, data, b)
    found = ft.jit(solve)(data, b)
    laws.close(found, solve(data, b), 1e-9, 1e-9)
    slopes = ft.jit(ft.grad(lambda *v: xp.sum(solve(*v)), argnums=(0, 1)))
    laws.close(
        slopes(data, b), ft.grad(lambda *v: xp.sum(solve(*v)), argnums=(0, 1))(data, b), 1e-9, 1e-9
    )
