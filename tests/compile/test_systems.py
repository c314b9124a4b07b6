"""Small systems in loops: lines for few, a matrix in each lane for stacks, LAPACK's verdict."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.native import native
from funct.errors import LinAlgError
from funct.graph import inline_calls

linalg = xp.linalg
STEPS = 40
OPS: dict[str, Callable[[Any, Any], Any]] = {
    "solve": linalg.solve,
    "inv": lambda a, b: linalg.inv(a),
    "cholesky": lambda a, b: linalg.cholesky(
        a @ xp.conj(a.mT) + 9 * xp.eye(a.shape[-1], dtype=a.dtype)
    ),
    "lower": lambda a, b: linalg.solve_triangular(a, b, lower=True),
    "upper": linalg.solve_triangular,
    "det": lambda a, b: linalg.det(a),
}
SHAPES = (
    ((), 1, 1), ((), 2, 3), ((), 3, 1), ((), 5, 2), ((), 8, 1), ((2,), 2, 2), ((3,), 3, 1),
    ((2, 2), 2, 3), ((16,), 2, 1), ((5,), 4, 4), ((40,), 3, 2), ((2,), 8, 1), ((7,), 16, 5),
    ((2,), 17, 2),
)  # fmt: skip


def given(dtype: str, lead: tuple[int, ...], n: int, m: int) -> tuple[Any, Any]:
    """Matrices whose pivots change places, and right sides."""
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(*lead, n, n)), rng.normal(size=(*lead, n, m))
    if dtype[0] == "c":
        a, b = a * (1 - 2j), b + 1j * b[..., ::-1]
    a = np.flip(a, axis=-1) * 0.1 + np.flip(np.eye(n), axis=-1) * (3 + np.arange(n))
    return xp.asarray(a.astype(dtype)), xp.asarray(b.astype(dtype))


def looped(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The op on matrices that each step changes."""

    def run(a: Any, b: Any) -> Any:
        step = lambda k, _: (k + 1, op(a * (1 + 0.1 * k), b))  # noqa: E731
        return ft.scan(step, xp.asarray(0.0, dtype=a.dtype), None, length=STEPS)[1]

    return run


def is_one_program(f: Callable[..., Any], *args: Any) -> bool:
    """Whether nothing of a function is Python's."""
    return native(inline_calls(ft.make_graph(f)(*args))).whole is not None


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("name", OPS)
def test_systems_in_loops_are_those_of_eager_execution(name: str, dtype: str) -> None:
    """Of any size, few and many."""
    for lead, n, m in SHAPES:
        a, b = given(dtype, lead, n, m)
        if name in ("lower", "upper"):
            a = xp.flip(a, axis=-1)
        f = looped(OPS[name])
        each = [OPS[name](a * xp.asarray(1 + 0.1 * k, dtype=a.dtype), b) for k in range(STEPS)]
        expected, found = np.stack(list(map(np.asarray, each))), np.asarray(ft.jit(f)(a, b))
        assert found.dtype == expected.dtype
        tolerance = (1e-4 if dtype == "float32" else 1e-12) * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
        assert is_one_program(f, a, b)


@pytest.mark.parametrize("name", OPS)
def test_derivatives_of_small_systems_in_loops(name: str) -> None:
    """Backwards through a loop is one program too."""
    a, b = given("float64", (), 3, 2)
    if name in ("lower", "upper"):
        a = xp.flip(a, axis=-1)
    f = lambda a, b: xp.sum(xp.sin(looped(OPS[name])(a, b)))  # noqa: E731
    op = lambda a, b: sum(  # noqa: E731
        xp.sum(xp.sin(OPS[name](a * (1 + 0.1 * k), b))) for k in range(STEPS)
    )
    for x, y in zip(ft.jit(ft.grad(f, (0, 1)))(a, b), ft.grad(op, (0, 1))(a, b), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), 1e-9, 1e-9)


SINGULAR = np.asarray([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])
HARD: dict[str, Any] = {
    "regular": np.eye(3) * 2, "zeros": np.zeros((3, 3)), "ones": np.ones((3, 3)),
    "singular": SINGULAR, "nearly": SINGULAR + np.diag([0, 0, 1e-14]),
    "scaled": np.diag([1.0, 1e-20, 1e20]), "tiny": np.eye(3) * 1e-300,
    "nan": np.where(np.eye(3) > 0, np.nan, 1.0), "inf": np.where(np.eye(3) > 0, np.inf, 0.0),
    "indefinite": np.diag([1.0, -1.0, 1.0]),
}  # fmt: skip


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """What it gives, or what it raises and where."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(f(*args))
    except LinAlgError as error:
        return str(error)


@pytest.mark.pairwise
@pytest.mark.parametrize("count", [None, 2, 9])
@pytest.mark.parametrize("matrix", HARD)
@pytest.mark.parametrize("name", ["solve", "inv", "cholesky", "lower", "det"])
def test_what_raises_is_what_lapack_refuses(name: str, matrix: str, count: int | None) -> None:
    """With the line of the user's, at every call; the calls after it are as they were."""
    ops = OPS | {"cholesky": lambda a, b: linalg.cholesky(a)}
    a = xp.asarray(HARD[matrix] if count is None else np.stack([np.eye(3), HARD[matrix]] * count))
    b = xp.ones((*a.shape[:-1], 2))
    each = lambda a, b: xp.stack(  # noqa: E731
        [ops[name](a * (1 + 0.1 * k), b) for k in range(STEPS)]
    )
    f = ft.jit(looped(ops[name]))
    good = np.asarray(f(a * 0 + xp.eye(3), b)) if matrix not in ("nan", "inf") else None
    expected, found = outcome(each, a, b), [outcome(f, a, b) for _ in range(2)]
    for x in found:
        if isinstance(expected, str):
            assert isinstance(x, str)
            assert x.split("\n")[0] == expected.split("\n")[0]
            assert "test_systems.py" in x
        else:
            some = np.abs(np.where(np.isfinite(expected), expected, 0)).max()
            scale = 9.0**3 * 125 if name == "det" else some
            rounded = 1e-2 if matrix == "nearly" and name in ("solve", "inv") else 1e-12
            np.testing.assert_allclose(x, expected, rtol=rounded, atol=1e-14 * scale)
    if good is not None:
        np.testing.assert_array_equal(np.asarray(f(a * 0 + xp.eye(3), b)), good)


def test_what_is_done_otherwise_finds_its_operands_as_they_were() -> None:
    """Nothing is written to memory that was given away, before it is sure that all is right."""

    def f(c: Any, a: Any) -> Any:
        step = lambda c, _: (linalg.solve(a, c) * 0.5 + 1.0, None)  # noqa: E731
        return ft.scan(step, c * 2.0, None, length=STEPS)[0]

    run = ft.jit(f, donate_argnums=0)
    nearly = xp.asarray(HARD["nearly"])
    for a in (xp.eye(3), xp.asarray(np.diag([1.0, np.nan, 1.0])), nearly):
        for _ in range(4):
            c = xp.ones(3)
            c = c + 0.25
            found = np.asarray(run(c, a))
            expected = xp.ones(3) + 0.25
            expected = expected * 2.0
            for _ in range(STEPS):
                expected = linalg.solve(a, expected) * 0.5 + 1.0
            np.testing.assert_allclose(found, np.asarray(expected), 1e-3)


def test_effects_before_what_is_done_otherwise_happen_once() -> None:
    """A call that acts is not begun anew."""
    seen: list[float] = []

    def f(a: Any, b: Any) -> Any:
        ft.io_callback(lambda x: seen.append(float(x)), None, xp.sum(a[0, 1:]))
        return looped(linalg.solve)(a, b)

    a, b = xp.asarray(np.diag([np.nan, 1.0, 1.0])), xp.ones((3, 1))
    run = ft.jit(f)
    for k in range(1, 4):
        run(a, b)
        assert len(seen) == k
