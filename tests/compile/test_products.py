"""Products inside of programs, and the rewriting before them: eager's numbers, but for the order of
sums.
"""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import funct as ft
import funct.array as xp
from funct.compile.steps import gemm, products
from funct.device import host
from funct.kernels.cpu.products import blas_products, few_rows, tiled
from funct.kernels.linalg.products import matmul
from tests.compile.checked import checking, run
from tests.compile.test_native import compiled, eager

CASES: list[tuple[Any, list[tuple[int, ...]]]] = [
    (lambda x, y: x @ y, [(3, 4), (4, 5)]),
    (lambda x, y: x @ y, [(1, 4), (4, 1)]),
    (lambda x, y: x @ y, [(3, 1), (1, 5)]),
    (lambda x, y: x @ y, [(300, 200), (200, 500)]),
    (lambda x, y: x @ y, [(120, 200), (200, 1500)]),
    (lambda x, y: x @ y, [(8, 30, 20), (20, 7)]),
    (lambda x, y: x @ y, [(4, 3, 5, 6), (3, 6, 2)]),
    (lambda x, y: x @ y, [(4, 1, 5, 6), (1, 3, 6, 2)]),
    (lambda x, y: x @ y, [(5, 6), (2, 3, 6, 4)]),
    *[(lambda x, y: x @ y, [(*(2, 3, 4, 2)[4 - i :], 5, 6), (*(2, 3, 4, 2)[4 - j :], 6, 4)])
      for i in range(5) for j in range(5)],  # stacks of any ranks
    *[(lambda x, y: x @ y, [(*(2, 1, 4, 1)[4 - i :], 5, 6), (*(1, 3, 1, 2)[4 - j :], 6, 4)])
      for i in range(1, 5) for j in range(1, 5)],
    (lambda x, y: x.mT @ y, [(6, 4), (6, 5)]),
    (lambda x, y: x @ y.mT, [(3, 4), (5, 4)]),
    (lambda x, y: x.mT @ y.mT, [(40, 30), (50, 40)]),
    (lambda x, y: x.mT @ y, [(70, 5, 7), (70, 5, 1)]),
    (lambda x, y: x.mT @ y.mT, [(70, 5, 7), (70, 1, 5)]),
    (lambda x, y: x.mT @ y[..., 1:2], [(3, 70, 33, 20), (70, 33, 4)]),
    (lambda x, y: x[..., 1:].mT @ y[:, ::2], [(70, 8, 12), (1, 16, 1)]),
    (lambda x, y: x[::2, ::3] @ y[1:, ::-1], [(9, 12), (5, 6)]),
    (lambda x, y: x[:, :, 2:6] @ y[..., 1:5].mT, [(2, 5, 8), (2, 3, 8)]),
    (lambda x, y: xp.permute_dims(xp.reshape(x, (2, 5, 3, 4)), (0, 2, 1, 3)) @ y,
     [(2, 5, 12), (4, 6)]),
    (lambda x, y: xp.broadcast_to(x, (3, 4, 5)) @ y, [(4, 5), (3, 5, 2)]),
    (lambda x, y: xp.sum(x.mT @ y, axis=0), [(7, 5, 3), (7, 5, 4)]),
    (lambda x, y: xp.sum(x @ y, axis=(0, 2), keepdims=True), [(2, 3, 4, 5, 6), (2, 3, 4, 6, 2)]),
    (lambda x, y: xp.sum(x @ y, axis=1), [(2, 3, 5, 6), (2, 3, 6, 4)]),
    (lambda x, y: xp.einsum("bik,bjk->bij", x, y), [(3, 4, 5), (3, 6, 5)]),
    (lambda x, y: xp.einsum("ijk,kjl->li", x, y), [(3, 4, 5), (5, 4, 2)]),
    (lambda x, y: xp.tanh(x + 1.0) @ y, [(33, 20), (20, 1)]),
    (lambda x, y: x @ xp.tanh(y * 2.0), [(3, 1, 20), (3, 20, 17)]),
    (lambda x, y: xp.exp(x @ y) + 1.0, [(3, 40, 1), (3, 1, 17)]),
    (lambda x, y: xp.tanh(x + 1.0) @ xp.exp(y) + 2.0, [(33, 20), (20, 41)]),
    (lambda x, y: x @ y, [(33, 45), (45, 1)]),
    (lambda x, y: y.mT @ x.mT, [(3, 77), (77, 1)]),
    (lambda x, y: x.mT @ y, [(45, 77), (45, 1)]),
    (lambda x, y: y.mT @ x, [(600, 33), (600, 1)]),
    (lambda x, y: x @ y[::3, ::2], [(7, 20), (60, 2)]),
    (lambda x, y: xp.broadcast_to(y, (1, 20)) @ x[::2, 3:], [(40, 70), (1, 1)]),
    (lambda x, y: x @ y, [(4, 5, 6), (6, 1)]),
    (lambda x, y: x @ y, [(1100, 131), (131, 1)]),  # three tasks
    (lambda x, y: x.mT @ y, [(101, 1507), (101, 1)]),
    (lambda x, y: y.mT @ x, [(5003, 41), (5003, 1)]),  # parts of the sum
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[str(k) for k in range(len(CASES))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products(case: Any, dtype: str) -> None:
    """Whatever views the operands are, alone and in stacks, in one program."""
    fun, shapes = case
    rng = np.random.default_rng(0)
    args = [rng.normal(size=s).astype(dtype) for s in shapes]
    made = compiled(fun, *args)
    assert made.calls
    (actual,), expected = made.run(*args), eager(fun, *args)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    scale = np.abs(expected).max() * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=64 * scale)


@pytest.mark.parametrize(
    ("m", "k", "n", "tasks"),
    [
        (64, 64, 64, 1), (128, 512, 10, 2), (10, 512, 128, 2), (2048, 64, 64, 4),
        (1024, 512, 512, 4 if host().vector_bytes == 64 else 2),  # in tiles, or by BLAS
    ],
)  # fmt: skip
def test_who_cuts_a_product(
    m: int, k: int, n: int, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What BLAS would compute on threads of its own is computed on ours, which wait for work."""
    for module in (blas_products, few_rows, tiled):
        monkeypatch.setattr(module, "host", lambda: replace(host(), cores=2))
    x, y = (np.ones(s, np.float32) for s in ((m, k), (k, n)))
    made = compiled(lambda x, y: x @ y, x, y)
    assert [c.tasks for c in made.calls] == [tasks]
    assert (made.run(x, y)[0] == k).all()


@pytest.mark.skipif(host().vector_bytes < 64, reason="the processor's vectors are shorter")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_few_columns_have_the_bits_of_eager_ones(dtype: str) -> None:
    """Both are tiles, as operands lie."""
    x, y = (np.random.default_rng(0).normal(size=s).astype(dtype) for s in ((60, 900), (900, 28)))
    made = compiled(lambda x, y: x @ y, x, y)
    np.testing.assert_array_equal(made.run(x, y)[0], matmul(x, y), strict=True)


def test_a_matrix_that_is_computed_for_one_column_is_never_written() -> None:
    """A product by one column, by one row, or of one inner term is part of the loops around it."""
    x, y = np.ones((300, 200), "float32"), np.ones((200, 1), "float32")
    shown = {
        name: ft.jit(fun).show(xp.asarray(x), xp.asarray(y), form="loops")
        for name, fun in {
            "column": lambda x, y: xp.exp(x) @ y,
            "row": lambda x, y: y.mT @ xp.exp(x.mT),
            "outer": lambda x, y: xp.exp(y @ y.mT),
            "in memory": lambda x, y: xp.exp(x @ y),
        }.items()
    }
    assert {name for name, text in shown.items() if "times a vector" in text} == {"in memory"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(64, 3, 3), (70, 5, 64), (8, 9, 7, 4)])
def test_many_small_matrices_times_vectors_are_loops(shape: Any, dtype: str) -> None:
    """They are sums in the loops that read them, or of vectors."""
    rng = np.random.default_rng(0)
    args = [rng.normal(size=s).astype(dtype) for s in (shape, (*shape[:-2], shape[-1], 1))]
    fun = lambda x, y: xp.tanh(x @ y)[..., 0]  # noqa: E731
    made = compiled(fun, *args)
    assert not any("of BLAS" in line for line in made.show().split("\n"))
    (actual,), expected = made.run(*args), eager(fun, *args)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=64 * float(np.finfo(dtype).eps))


SMALL = [(1, 1), (1, 3), (2, 1), (3, 5), (4, 4), (5, 16), (8, 1), (9, 8), (16, 2), (1, 9)]
STACKS: dict[str, Any] = {  # a product, and its operands
    "as they are": (lambda x, y: x @ y, lambda x, y: (x, y)),
    "turned": (lambda x, y: x.mT @ y, lambda x, y: (x.swapaxes(1, 2).copy(), y)),
    "by turned": (lambda x, y: x @ y.mT, lambda x, y: (x, y.swapaxes(1, 2).copy())),
    "repeated": (lambda x, y: x[:, None] @ y, lambda x, y: (x, y[None, :7])),
    "every second": (lambda x, y: x[::2] @ y[:35], lambda x, y: (x, y)),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 11, 16])
@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("how", STACKS)
def test_stacks_of_small_products(k: int, dtype: str, size: tuple[int, int], how: str) -> None:
    """Of all small sizes, turned and repeated, in memory that nothing else is touched of."""
    (m, n), rng = size, np.random.default_rng(k)
    x, y = (rng.normal(size=s).astype(dtype) for s in ((70, m, k), (70, k, n)))
    fun, operands = STACKS[how]
    args = operands(x, y)
    with checking():
        made = compiled(fun, *args)
        (found,) = run(made, *args)
    expected = eager(fun, *args)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    scale = float(np.finfo(dtype).eps) * k * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(24, 24, 24), (32, 32, 32), (33, 40, 48), (64, 17, 50)], ids=str)
def test_stacks_of_medium_products_are_programs(shape: tuple[int, int, int], dtype: str) -> None:
    """However their operands are turned, and if one of them is the same for all."""
    m, k, n = shape
    rng = np.random.default_rng(m)
    x, y = (xp.asarray(rng.normal(size=s).astype(dtype)) for s in ((120, m, k), (120, k, n)))
    turned = [xp.asarray(np.ascontiguousarray(np.asarray(a).swapaxes(1, 2))) for a in (x, y)]
    cases: list[tuple[Any, Any]] = [
        (lambda x, y: x @ y, (x, y)),
        (lambda x, y: x.mT @ y, (turned[0], y)),
        (lambda x, y: x @ y.mT, (x, turned[1])),
        (lambda x, y: x.mT @ y.mT, turned),
        (lambda x, y: x[::2] @ y[:60].mT, (x, turned[1])),
        (lambda x, y: x.reshape((12, 10, m, k)) @ y.mT, (x, turned[1][:10])),
    ]
    for fun, args in cases:
        f = ft.jit(fun)
        assert "NumPy's" not in f.show(*args, form="loops")
        found, expected = np.asarray(f(*args)), fun(*[np.asarray(a, np.float64) for a in args])
        scale = float(np.finfo(dtype).eps) * k * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=scale)


BY_VECTORS: dict[str, Any] = {  # square matrices, and a column each
    "as they are": lambda x, v: x @ v,
    "turned": lambda x, v: x.mT @ v,
    "rows": lambda x, v: v.mT @ x,
    "rows by turned": lambda x, v: v.mT @ x.mT,
    "one vector": lambda x, v: x @ v[:1],
    "every second": lambda x, v: x[..., ::2] @ v[..., ::2, :],
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 70), (3, 2, 41)], ids=str)
@pytest.mark.parametrize("how", BY_VECTORS)
def test_few_matrices_times_vectors_are_loops(how: str, shape: Any, dtype: str) -> None:
    """By columns and by rows, however both are turned, repeated or apart in memory."""
    rng, n = np.random.default_rng(0), shape[-1]
    args = [rng.normal(size=s).astype(dtype) for s in ((*shape, n), (*shape, 1))]
    with checking():
        made = compiled(BY_VECTORS[how], *args)
        (found,), expected = run(made, *args), eager(BY_VECTORS[how], *args)
    assert "of BLAS" not in made.show()
    scale = float(np.finfo(dtype).eps) * n * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=scale)


def test_small_products_of_eager_stacks_are_programs() -> None:
    """NumPy calls BLAS for each: a graph that is nothing else is worth code."""
    x = xp.asarray(np.random.default_rng(0).normal(size=(1000, 5, 5)).astype("float32"))
    v = x[:, 0]
    for fun in (
        lambda x, v: x @ x, lambda x, v: xp.einsum("bij,bj->bi", x, v),
        lambda x, v: (x @ v[..., None])[..., 0],
    ):  # fmt: skip
        f = ft.jit(fun)
        assert "of BLAS" not in f.show(x, v, form="loops")
        np.testing.assert_allclose(f(x, v), fun(x, v), 1e-4, 1e-4)


def test_products_of_integers_stay_with_numpy() -> None:
    """They have NumPy's bits, and their results go into loops as before."""
    x = np.arange(12).reshape(3, 4)
    made = compiled(lambda x: (x @ x.mT) * 2, x)
    np.testing.assert_array_equal(made.run(x)[0], (x @ x.T) * 2)


def cross_entropy(logits: Any, target: Any) -> Any:
    """Mean negative log likelihood of the targets."""
    chosen = xp.take_along_axis(
        logits - xp.logsumexp(logits, axis=-1, keepdims=True), target, axis=-1
    )
    return -xp.mean(chosen)


@pytest.mark.parametrize("index", [[[0], [3], [-1], [2]], [[1], [1], [-4], [0]]])
def test_one_element_of_each_row(index: Any) -> None:
    """It is taken and put by comparison, negative indices too."""
    x = np.random.default_rng(0).normal(size=(4, 4))
    i = np.asarray(index)
    step = ft.value_and_grad(cross_entropy)
    made = compiled(step, x, i)
    assert not made.fused.reasons
    loss, slope = made.run(x, i)
    expected, expected_slope = step(xp.asarray(x), xp.asarray(i))
    np.testing.assert_allclose(loss, np.asarray(expected), rtol=1e-14)
    np.testing.assert_allclose(slope, np.asarray(expected_slope), rtol=1e-13, atol=1e-16)


def test_indices_out_of_bounds_raise_as_in_eager() -> None:
    """Before any code runs, with the user's line."""
    f = ft.jit(lambda x, i: cross_entropy(x * 2.0, i))  # the guilty line
    x, good = xp.asarray(np.ones((400, 50))), xp.asarray(np.zeros((400, 1), np.int64))
    f(x, good)
    with pytest.raises(ft.errors.IndexOutOfBoundsError, match="index 50 is out of bounds"):
        f(x, good + 50)
    np.testing.assert_allclose(float(f(x, good)), np.log(50))


def test_what_can_be_infinite_is_absorbed() -> None:
    """absorb goes only where nothing can be absorbed."""

    def f(x: Any) -> Any:
        return xp.sum(xp.where(x > 1.0, x, xp.sqrt(x)) * 3.0)

    x = np.asarray([0.0, 4.0, 0.25])
    made = compiled(ft.grad(f), x)
    np.testing.assert_allclose(made.run(x)[0], [np.inf, 3.0, 3.0])
    masked = compiled(ft.grad(lambda x: xp.sum(xp.where(x > 0.0, xp.log(x), 1.0))), x)
    np.testing.assert_allclose(masked.run(x)[0], [0.0, 0.25, 4.0])


@pytest.mark.parametrize("wrap", [lambda f: f, ft.grad], ids=["its own", "of its gradient"])
@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        *CASES,
        (lambda x, y: x @ y, [(8, 64, 256), (256, 300)]),
        (lambda x, y: xp.permute_dims(x, (0, 2, 1)) @ y, [(4, 200, 100), (4, 200, 130)]),
        (lambda x, y: xp.reshape(x, (128, 256)) @ y[:, 40:] + 1.0, [(8, 16, 256), (256, 200)]),
        (lambda x, y: xp.tanh(x.T) @ y @ xp.tanh(y).T, [(200, 150), (200, 250)]),
    ],
)
def test_the_tiles_that_programs_take_are_begun_before_the_passes(monkeypatch, f, shapes, wrap):
    """On processors whose products are tiles of our own; elsewhere there are none."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    begun, taken = set(), set()
    monkeypatch.setattr(products, "foretell", begun.update)
    monkeypatch.setattr(gemm, "foretell", taken.update)
    rng = np.random.default_rng(0)
    given = [xp.asarray(rng.standard_normal(s, dtype=np.float32)) for s in shapes]
    ft.jit(wrap(lambda x: xp.sum(xp.sin(f(x, *given[1:])))))(given[0])
    assert begun == taken
