"""Products that NumPy's BLAS computes on our threads: its numbers, within the result, and none of
its own threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import funct as ft
from funct.kernels.cpu.products import blas_products, gram, vector_products
from tests import guarded
from tests.compile.test_native import compiled

RNG = np.random.default_rng(0)
DTYPES = ["float32", "float64", "complex64", "complex128"]
LIES: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x,
    "columns": lambda x: np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2),
    "a part": lambda x: np.concatenate([x, x[..., :1]], axis=-1)[..., :-1],
    "each second": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: x[..., ::-1, :].copy()[..., ::-1, :],
}
SIZES = [(50, 500, 50), (3, 700, 900), (900, 700, 3), (1, 600, 900), (65, 65, 65), (16, 2000, 16),
         (70, 20, 900)]  # fmt: skip


def normal(dtype: str, size: Any) -> Any:
    """Numbers of that dtype."""
    x = RNG.normal(size=size)
    return (x + 1j * RNG.normal(size=size) if dtype.startswith("c") else x).astype(dtype)


def close(found: Any, x: Any, y: Any) -> None:
    """found is x @ y but for rounding of so many terms.

    BLAS adds hundreds one after the other: what is rounded walks at random, √n steps far.
    """
    wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
    exact = x.astype(wide) @ y.astype(wide)
    finfo: Any = ml_dtypes.finfo if x.dtype.kind == "V" else np.finfo
    of_terms = np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64)
    assert found.shape == exact.shape
    assert found.dtype == x.dtype
    steps = max(8.0, x.shape[-1] ** 0.5)
    assert (np.abs(found - exact) <= steps * float(finfo(x.dtype).eps) * of_terms).all()


@pytest.fixture(params=[False, True], ids=["before", "behind"])
def at_end(request: Any) -> Iterator[bool]:
    with guarded.memory(at_end=request.param):
        yield request.param


@pytest.mark.parametrize("size", [(3, 5, 40, 7), (4, 70, 300, 90), (2, 1, 600, 500)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("right", ["rows", "columns"])
def test_products_are_added_where_they_belong(
    right: str, dtype: str, size: Any, at_end: bool
) -> None:
    """Sums over a stack, the same by any number of threads."""
    n, m, k, o = size
    x, y = (guarded.copy(normal(dtype, s), at_end=at_end) for s in ((n, m, k), (n, k, o)))
    y, found = LIES[right](y), []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(blas_products.summed_matmul(x, y))
    for z in found:
        close(z, *(np.concatenate(list(v), axis) for v, axis in ((x, 1), (y, 0))))
    np.testing.assert_array_equal(*found)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("left", LIES)
@pytest.mark.parametrize("right", LIES)
def test_matrices(left: str, right: str, size: Any, dtype: str, at_end: bool) -> None:
    m, k, n = size
    x, y = (normal(dtype, s) for s in ((m, k), (k, n)))
    x, y = LIES[left](guarded.copy(x, at_end=at_end)), LIES[right](guarded.copy(y, at_end=at_end))
    close(blas_products.large_matmul(x, y), x, y)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stack", [(1,), (3,), (2, 3), (5, 1, 1)])
@pytest.mark.parametrize("other", [(), (1,), (3,), (2, 1), (2, 3)])
@pytest.mark.parametrize("lies", ["rows", "columns", "backwards"])
@pytest.mark.parametrize("size", [(70, 80, 90), (300, 200, 40)])
def test_stacks(stack: Any, other: Any, lies: str, size: Any, dtype: str, at_end: bool) -> None:
    m, k, n = size
    x, y = (normal(dtype, s) for s in ((*stack, m, k), (*other, k, n)))
    x = LIES[lies](guarded.copy(x, at_end=at_end))
    close(blas_products.large_matmul(x, y), x, y)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "bfloat16"])
@pytest.mark.parametrize(
    "shape", [(100, 100), (2, 9000), (3, 5), (1, 500), (9000, 2), (1, 9999), (1100, 1000)]
)
@pytest.mark.parametrize("lies", ["rows", "columns", "a part"])
@pytest.mark.parametrize("from_left", [False, True])
def test_vectors(lies: str, shape: Any, dtype: str, from_left: bool, at_end: bool) -> None:
    x = LIES[lies](guarded.copy(normal(dtype, shape), at_end=at_end))
    v = guarded.copy(normal(dtype, shape[not from_left]), at_end=at_end)
    given = (v, x) if from_left else (x, v)
    if not dtype.endswith("16"):
        close(blas_products.vector_matmul(*given), *given)
    if not dtype.startswith("c"):
        same_by_threads(vector_products.vector_matmul, *given)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("stack", [(1,), (3,), (2, 3), (2, 1, 1)])
@pytest.mark.parametrize("other", [(), (1,), (3,), (2, 1)])
@pytest.mark.parametrize("lies", LIES)
@pytest.mark.parametrize("shape", [(1, 70), (70, 1), (300, 5), (130, 600), (9, 4097)])
@pytest.mark.parametrize("from_left", [False, True])
def test_stacks_of_vectors(
    stack: Any, other: Any, lies: str, shape: Any, dtype: str, from_left: bool, at_end: bool
) -> None:
    """Each whole in one task; what lies neither by rows nor by columns is others'."""
    x = LIES[lies](guarded.copy(normal(dtype, (*stack, *shape)), at_end=at_end))
    side = (1, shape[0]) if from_left else (shape[1], 1)
    v = guarded.copy(normal(dtype, (*other, *side)), at_end=at_end)
    given = (v, x) if from_left else (x, v)
    if vector_products.large_matmul(*given) is NotImplemented:
        assert lies in ("each second", "backwards") or 1 in shape
    else:
        same_by_threads(vector_products.large_matmul, *given)


def same_by_threads(multiply: Any, x: Any, y: Any) -> None:
    """The product, with the same bits by any number of threads."""
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(multiply(x, y))
    close(found[0], x, y)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("size", [1, 10_001, 131_071, 131_073, 400_000])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_sums_of_products(size: int, dtype: str, at_end: bool) -> None:
    x, y = (guarded.copy(normal(dtype, size), at_end=at_end) for _ in range(2))
    close(np.asarray(blas_products.dot(x, y)), x, y)
    close(np.asarray(blas_products.vdot(x, y)), x.conj(), y)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(100, 300), (65, 1000), (700, 20)])
@pytest.mark.parametrize("lies", ["rows", "columns", "a part"])
def test_a_matrix_by_itself(lies: str, shape: Any, dtype: str, at_end: bool) -> None:
    """Both halves are the same numbers."""
    x = LIES[lies](guarded.copy(RNG.normal(size=shape).astype(dtype), at_end=at_end))
    found = gram.gram_matmul(x, x.T)
    close(found, x, x.T)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("stack", [(), (1,), (1, 1)])
@pytest.mark.parametrize("turned", [False, True])
def test_panels_of_programs_stay_in_the_result(stack: Any, turned: bool) -> None:
    """Of a stack of one product too."""
    x, y = np.ones((*stack, 400, 520), np.float32), np.ones((*stack, 400, 40), np.float32)
    fun = (lambda x, y: x.mT @ y) if turned else (lambda x, y: (y.mT @ x).mT)
    made = compiled(fun, x, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(made.run.__globals__, "empty", guarded.empty)
        (found,) = made.run(x, y)
    assert (found == 400).all()


_ON_THREADS_OF_BLAS = """
import time
from pathlib import Path

import numpy as np

import funct as ft
import funct.array as xp

np.ones((600, 600)) @ np.ones((600, 600))  # by NumPy itself: begins the threads
main = str(__import__("os").getpid())
others = [t / "schedstat" for t in Path("/proc/self/task").iterdir() if t.name != main]
assert others, "one core"

def computed():
    return sum(int(t.read_text().split()[0]) for t in others)

def asleep():
    before = -1
    while before != (now := computed()):
        before = now
        time.sleep(0.1)

asleep()
rng = np.random.default_rng(0)
linalg = xp.linalg
for dtype in ("float32", "float64", "complex64", "complex128"):
    for n in (32, 64, 128, 200):
        x, v, z = (xp.asarray(rng.normal(size=s).astype(dtype)) for s in ((n, n), n, (3, n, n)))
        p = x @ x.mT + n * xp.eye(n, dtype=x.dtype)
        calls = {
            "x @ x": lambda: x @ x, "x @ x.mT": lambda: x @ x.mT, "z @ x": lambda: z @ x,
            "z @ z": lambda: z @ z, "x @ v": lambda: x @ v, "v @ x": lambda: v @ x,
            "vecdot": lambda: xp.vecdot(xp.reshape(x, (-1,)), xp.reshape(x, (-1,))),
            "tensordot": lambda: xp.tensordot(z, z, axes=((0, 2), (0, 2))),
            "einsum": lambda: xp.einsum("bij,bjk->ik", z, z),
            "jit": ft.jit(lambda: xp.tanh(x @ x[:, :40]) @ xp.exp(x[:40])),
            "cholesky": lambda: linalg.cholesky(p), "solve": lambda: linalg.solve(p, v),
            "slogdet": lambda: linalg.slogdet(p), "svdvals": lambda: linalg.svdvals(x),
            **{name: lambda f=getattr(linalg, name): f(p)
               for name in ("qr", "svd", "eigh", "eigvalsh", "eigvals", "pinv")},
        }
        for name, call in calls.items():
            before = computed()
            call()
            if computed() != before:
                print(name, dtype, n)
                asleep()
"""


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="asks the kernel")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="BLAS has no threads on one core")
def test_threads_of_blas_sleep() -> None:
    """They yield to whoever else is there, so that a product takes many times as long."""
    done = subprocess.run(
        [sys.executable, "-c", _ON_THREADS_OF_BLAS], capture_output=True, text=True, check=False,
        env={k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("", "")
