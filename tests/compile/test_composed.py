"""Linear algebra that loops hold by other ops, and L and U: near eager's numbers, without Python
between the steps.
"""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import ops
from funct.compile.rewriting.composed import composed
from funct.errors import LinAlgError
from tests import laws
from tests.compile.test_factors import numbers
from tests.compile.test_windows import compiled, looped, steps_python

linalg = xp.linalg
RNG = np.random.default_rng(0)
mpmath = pytest.importorskip("mpmath", reason="exponentials are compared with its digits")
KINDS = ["float32", "float64", "complex64", "complex128"]


def is_near(f: Any, *xs: Any, ulps: float = 64) -> None:
    """In units of the largest number."""
    run = looped(f)
    assert not steps_python(run, *xs)
    found, expected = compiled(run, *xs), [f(*[x[k] for x in xs]) for k in range(xs[0].shape[0])]
    stacked = ft.tree.map(lambda *ys: xp.stack(ys), *expected)
    leaves = zip(ft.tree.leaves(found), ft.tree.leaves(stacked), strict=True)
    for a, b in leaves:
        assert a.dtype == b.dtype
        unit = 0.0 if b.dtype.kind == "i" else float(np.finfo(b.dtype).eps)
        laws.close(a, b, 0, ulps * unit * float(xp.max(xp.abs(b))))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 2), (2, 5), (2, 3, 4, 3), (30, 20)])
def test_l_and_u(shape: tuple[int, ...], dtype: str) -> None:
    """Of matrices whose rows are exchanged, and of one without full rank."""
    x = numbers(4, *shape, dtype=dtype)
    x[1, ..., 0, :] = 0
    x[2] = 0
    x[3] = np.round(x[3])
    f = lambda x: list(linalg.lu(x))  # noqa: E731
    is_near(f, xp.asarray(x.astype(dtype)))
    p, low, up = ft.jit(looped(f))(xp.asarray(x.astype(dtype)))
    eps = 100 * float(np.finfo(dtype).eps)
    laws.close(xp.astype(p, dtype) @ low @ up, xp.asarray(x.astype(dtype)), eps, eps)


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 2), (2, 5), (2, 3, 4, 3), (12, 9)])
def test_pseudo_inverses(shape: tuple[int, ...], dtype: str) -> None:
    """Of matrices of full rank, of less, and of none."""
    x = numbers(4, *shape, dtype=dtype)
    x[1, ..., -1] = x[1, ..., 0]
    x[2] = 0
    xs = xp.asarray(x.astype(dtype))
    is_near(linalg.pinv, xs, ulps=2048)
    is_near(lambda x: linalg.pinv(x, rtol=0.3), xs, ulps=2048)
    rtol = np.asarray(RNG.random((4, *shape[:-2])) * 0.3)
    is_near(ops.pinv, xs, xp.asarray(rtol), ulps=2048)


def test_what_is_not_finite() -> None:
    """Eager's error."""
    x = RNG.normal(size=(3, 3, 2))
    x[1, 0, 0] = np.nan
    xs, run = xp.asarray(x), looped(linalg.pinv)
    with pytest.raises(LinAlgError):
        ft.jit(run)(xs)
    laws.close(ft.jit(run)(xs[:1]), run(xs[:1]), 1e-13, 1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_stacks_that_differ(dtype: str) -> None:
    """One matrix with several right sides, and the other way around."""
    a = RNG.normal(size=(3, 4, 4)) + 4 * np.eye(4)
    b = RNG.normal(size=(3, 2, 5, 4, 3))
    left, right = (xp.asarray(v.astype(dtype)) for v in (a, b))
    stacks, one = right[..., :1] + left[:, None, None], left[:, :, :2]
    for f in (
        ops.solve,
        lambda a, b: ops.solve_triangular(a, b, True),
        lambda a, b: list(ops.lstsq(a, b, None)),
    ):
        is_near(f, left, right)
        is_near(f, stacks, one, ulps=4096)


@pytest.mark.parametrize("name", ["solve", "solve_triangular"])
def test_systems_of_one_matrix_take_it_apart_once(name: str) -> None:
    """Its right sides are columns, wherever the stacks are."""
    params: Any = () if name == "solve" else (True,)
    op = getattr(ops, name)
    for a, b in (((4, 4), (2, 5, 4, 3)), ((1, 1, 4, 4), (7, 4, 1)), ((3, 3), (40, 3, 1))):
        graph = ft.make_graph(lambda a, b: op(a, b, *params))(xp.ones(a), xp.ones(b))
        (found,) = [e for e in composed(graph).nodes if e.name == name]
        assert [len(v.shape) for v in found.operands] == [2, 2]


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (40, 7), (300, 40)])
def test_sequences(shape: tuple[int, int], full: bool) -> None:
    """Convolved, in stacks too."""
    n, m = shape
    for lead in ((), (2,)):
        x, y = (xp.asarray(RNG.normal(size=(3, *lead, k))) for k in (n, m))
        is_near(lambda x, y: ops.convolve(x, y, full), x, y)


def test_derivatives_and_batches() -> None:
    """Of loops whose state goes through them."""
    x = xp.asarray(RNG.normal(size=(4, 4)) + 4 * np.eye(4))

    def end(x: Any) -> Any:
        def step(s: Any, _: Any) -> Any:
            _, low, up = linalg.lu(s)
            s = linalg.pinv(s) + 0.1 * (low @ up)
            return s, ops.lstsq(s, x[:, :2], None)[0]

        last, rows = ft.scan(step, x, None, length=5)
        return xp.sum(last**2) + xp.sum(xp.sin(rows))

    slope = ft.grad(end)
    assert not steps_python(slope, x)
    laws.close(ft.jit(slope)(x), slope(x), 1e-9, 1e-9)
    both, many = xp.stack([x, 2 * x]), ft.vmap(slope)
    assert not steps_python(many, both)
    laws.close(ft.jit(many)(both), xp.stack([slope(one) for one in both]), 1e-9, 1e-9)


def test_empty_matrices() -> None:
    """Which eager execution takes."""
    xs = xp.zeros((3, 0, 2))
    run = looped(linalg.pinv)
    laws.same(ft.jit(run)(xs), run(xs))




def exponential(x: Any) -> Any:
    """With 50 digits."""
    with mpmath.workdps(50):
        found = mpmath.expm(mpmath.matrix(x.tolist()), method="taylor")
        return np.array(found.tolist(), dtype=x.dtype)


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 3, 4, 4), (8, 8)])
def test_exponentials(shape: tuple[int, ...], dtype: str) -> None:
    """Of norms that ask for no squaring and for several; each as near as its norm lets it be."""
    scale = np.asarray([0.01, 0.5, 3, 6]).reshape(4, *[1] * len(shape))
    x = numbers(4, *shape, dtype=dtype) * scale
    xs, run = xp.asarray(x.astype(dtype)), looped(linalg.expm)
    assert not steps_python(run, xs)
    found = compiled(run, xs)[:4]
    assert found.dtype == dtype
    core = (-1, *shape[-2:])
    for a, y in zip(np.asarray(xs).reshape(core), np.asarray(found).reshape(core), strict=True):
        expected = exponential(a)
        norm = max(1.0, float(np.max(np.sum(np.abs(a), 0))))
        unit = float(np.finfo(dtype).eps) * float(np.max(np.abs(expected)))
        laws.close(xp.asarray(y), xp.asarray(expected), 0, 16 * norm * unit)


def test_exponentials_of_what_is_not_finite() -> None:
    """What eager execution makes of them: numbers, or an error."""
    x = RNG.normal(size=(200, 2, 2))
    for special in (np.nan, np.inf):
        x[7, 0, 1] = special
        xs, run = xp.asarray(x), looped(linalg.expm)
        told = []
        for f in (run, ft.jit(run)):
            with np.errstate(all="ignore"):
                try:
                    told.append(np.isfinite(np.asarray(f(xs))))
                except LinAlgError:
                    told.append(np.zeros(0))
        np.testing.assert_array_equal(*told)


def test_a_wave_that_is_propagated() -> None:
    """A Hamiltonian of each step; its derivative, and batches."""
    h = xp.asarray(RNG.normal(size=(2, 3, 3)))

    def end(h: Any) -> Any:
        def step(s: Any, t: Any) -> Any:
            return linalg.expm(-0.1j * (h[0] + h[0].mT + t * (h[1] + h[1].mT))) @ s, None

        return xp.abs(ft.scan(step, xp.ones(3) + 0j, xp.arange(40) * 0.1)[0][0]) ** 2

    slope = ft.grad(end)
    assert not steps_python(slope, h)
    laws.close(ft.jit(slope)(h), slope(h), 1e-11, 1e-11)
    both, many = xp.stack([h, 2 * h]), ft.vmap(slope)
    assert not steps_python(many, both)
    laws.close(ft.jit(many)(both), xp.stack([slope(one) for one in both]), 1e-11, 1e-11)
