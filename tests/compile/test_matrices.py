"""Linear algebra in loops: NumPy's numbers, its errors, and no Python between the steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import LinAlgError
from funct.graph import Control, Graph
from funct.kernels.linalg import lapack

linalg = xp.linalg
OPS: dict[str, Callable[[Any, Any], Any]] = {
    "inv": lambda a, b: linalg.inv(a),
    "solve": linalg.solve,
    "cholesky": lambda a, b: linalg.cholesky(a + a.mT),
    "lower": lambda a, b: linalg.solve_triangular(a, b, lower=True),
    "upper": linalg.solve_triangular,
    "det": lambda a, b: linalg.det(a)[..., None, None] * b,
    "slogdet": lambda a, b: sum(linalg.slogdet(a))[..., None, None] * b,
    "eigh": lambda a, b: linalg.eigh(a)[0],
    "eigvalsh": lambda a, b: linalg.eigvalsh(a),
}
SINGLE = ("float32", "complex64")
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda a: a,
    "transposed": lambda a: a.mT,
    "turned": lambda a: xp.flip(a, axis=-1)[..., ::-1],
    "one row": lambda a: (
        xp.broadcast_to(a[..., :1, :], a.shape) * 0.1 + 3.0 * xp.eye(a.shape[-1], dtype=a.dtype)
    ),
}


def controls(graph: Graph) -> list[Any]:
    """The branches and loops of a graph."""
    nodes = [n for n in graph.nodes if isinstance(getattr(n, "primitive", None), Control)]
    return [n.primitive.kind for n in nodes]


def matrices(dtype: str, lead: tuple[int, ...], m: int) -> tuple[Any, Any]:
    """Regular matrices, and right sides."""
    rng = np.random.default_rng(m)
    a = rng.normal(size=(*lead, m, m)) * (0.5 / m**0.5) + np.eye(m) * 3
    b = rng.normal(size=(*lead, m, 2))
    if dtype[0] == "c":
        a, b = (x + 0.3j * rng.normal(size=x.shape) / m**0.5 for x in (a, b))
    return xp.asarray(a.astype(dtype)), xp.asarray(b.astype(dtype))


def looped(op: Callable[[Any, Any], Any], layout: Callable[[Any], Any], steps: int) -> Any:
    """The op on matrices that every step changes."""

    def run(a: Any, b: Any) -> Any:
        def step(c: Any, k: Any) -> tuple[Any, Any]:
            y = op(layout(c), b)
            return c + 0.01 * k, y

        return ft.scan(step, a, xp.astype(xp.arange(steps), a.dtype))[1]

    return run


@pytest.mark.skipif(not lapack.address("inv", "d"), reason="NumPy's loops are not where they were")
@pytest.mark.pairwise
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", OPS)
def test_matrices_in_loops_are_those_of_eager_execution(name: str, dtype: str, layout: str) -> None:
    """In a program without Python between the steps, for stacks too."""
    for lead, m in (((), 1), ((), 3), ((), 8), ((2, 3), 2), ((2,), 66)):
        a, b = matrices(dtype, lead, m)
        f = looped(OPS[name], LAYOUTS[layout], 4)
        expected = np.asarray(f(a, b))  # of few steps: Python's
        assert all(c.native() is not None for c in controls(ft.make_graph(f)(a, b)))
        found = np.asarray(ft.jit(f)(a, b))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype in SINGLE else 1e-13)


@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "eigh", "slogdet"])
def test_large_matrices_have_the_bits_of_eager_execution(name: str) -> None:
    """BLAS computes on as many threads: in another number it would add in another order."""
    a, b = matrices("float64", (), 230)

    def f(a: Any, b: Any) -> Any:
        return OPS[name](a, b)

    np.testing.assert_array_equal(ft.jit(f)(a, b), f(a, b))
    np.testing.assert_array_equal(ft.jit(looped(f, LAYOUTS["dense"], 2))(a, b)[0], f(a, b))


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", ["inv", "solve", "cholesky", "lower", "det", "slogdet"])
def test_derivatives_of_matrices_in_loops(name: str, n: int) -> None:
    """They are such ops again, or written out."""
    a, b = matrices("float64", (), n)
    f = lambda a, b: xp.sum(xp.sin(looped(OPS[name], LAYOUTS["dense"], n)(a, b)))  # noqa: E731
    expected = ft.grad(f)(a, b)
    np.testing.assert_allclose(
        np.asarray(ft.jit(ft.grad(f))(a, b)), np.asarray(expected), rtol=1e-10
    )
    graph = ft.make_graph(ft.grad(f))(a, b)
    assert all(c.native() is not None for c in controls(graph)) or name == "slogdet"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lead", [(), (2,)])
@pytest.mark.parametrize("n", [2, 3])
def test_second_derivatives_of_determinants(n: int, lead: tuple[int, ...], dtype: str) -> None:
    """Forwards over backwards and twice backwards, of regular and singular matrices, in loops."""
    (x, _), (t, _) = matrices(dtype, lead, n), matrices(dtype, (3, *lead), n)
    t = t[0]

    def slope(x: Any) -> Any:
        step = lambda c, _: (c * 0.5 + xp.sum(xp.sin(xp.linalg.det(x * xp.cos(c)))), None)  # noqa: E731
        return ft.grad(lambda x: ft.scan(step, 1.0 + xp.sum(x) * 0, None, length=3)[0])(x)

    for y in (x, x * 0, x.at[..., 0, :].set(x[..., 1, :])):
        forwards = lambda y: ft.jvp(slope, (y,), (t,))[1]  # noqa: E731
        backwards = ft.grad(lambda y: xp.sum(slope(y) * t))
        h = 1e-5
        wide, along = xp.astype(y, "float64"), xp.astype(t, "float64")
        expected = (slope(wide + h * along) - slope(wide - h * along)) / (2 * h)
        size = float(xp.max(xp.abs(expected))) + 1.0
        for f in (forwards, backwards, ft.jit(forwards), ft.jit(backwards)):
            limit = size * (1e-4 if dtype == "float32" else 1e-7)
            np.testing.assert_allclose(f(y), expected, rtol=0, atol=limit)
    assert all(c.native() is not None for c in controls(ft.make_graph(slope)(x)))


@pytest.mark.parametrize(
    ("name", "bad"),
    [("inv", 0.0), ("solve", 0.0), ("cholesky", -1.0), ("lower", 0.0), ("upper", 0.0)],
)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_matrix_that_an_op_refuses_raises_what_eager_code_raises(
    name: str, bad: float, dtype: str
) -> None:
    """At the step at which it comes, with the user's line; NaN is no such matrix."""

    def f(a: Any, b: Any) -> Any:
        def step(c: Any, k: Any) -> tuple[Any, Any]:
            return c - (1.0 - bad) * xp.eye(2), OPS[name](c, b)

        return ft.scan(step, a, xp.arange(4.0))

    a, b = xp.eye(2, dtype=dtype) * 2.0 * (1.0 - bad), xp.ones((2, 1), dtype=dtype)
    for run in (f, ft.jit(f)):
        with pytest.raises(LinAlgError, match=r"test_matrices\.py"):
            run(a, b)
    if name in ("inv", "solve", "lower", "upper"):
        nan = ft.jit(f)(a * xp.nan, b)[1]
        np.testing.assert_array_equal(np.asarray(nan), np.asarray(f(a * xp.nan, b)[1]))


def test_branches_and_while_loops_hold_matrices() -> None:
    """What a Newton iteration and a choice need."""

    def f(x: Any) -> Any:
        residual = lambda x: xp.stack([x[0] ** 2 + x[1] - 3.0, x[0] - x[1] ** 2 + 1.0])  # noqa: E731
        jacobian = ft.jacfwd(residual)

        def step(s: Any) -> Any:
            x, k = s
            j = jacobian(x)
            near = lambda: x - linalg.solve(j, residual(x)[:, None])[:, 0]  # noqa: E731
            return ft.cond(xp.abs(linalg.det(j)) > 1e-6, near, lambda: x + 0.1), k + 1

        return ft.while_loop(lambda s: s[1] < 20, step, (x, 0))[0]

    x = xp.asarray([0.7, 0.2])
    assert all(c.native() is not None for c in controls(ft.make_graph(f)(x)))
    np.testing.assert_allclose(np.asarray(ft.jit(f)(x)), np.asarray(f(x)), rtol=1e-14)
