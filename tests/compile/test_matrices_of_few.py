"""Linear algebra on few elements outside of loops: part of the program, and of machine code that
comes in place of NumPy calls.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import build, whole_of
from funct.errors import IndexOutOfBoundsError, LinAlgError
from funct.kernels.linalg import lapack
from funct.transforms.compiled import paths
from tests import laws
from tests.compile.test_factors import OPS as FACTORS
from tests.compile.test_matrices import LAYOUTS, OPS, matrices

linalg = xp.linalg
EVERY: dict[str, Callable[[Any, Any], Any]] = OPS | {
    name: (lambda a, b, f=f: f(a)) for name, f in FACTORS.items()
}
RAISES = {"inv": 0.0, "solve": 0.0, "cholesky": -1.0, "lower": 0.0, "upper": 0.0}

pytestmark = pytest.mark.skipif(
    not lapack.address("inv", "d"), reason="NumPy's loops are not where they were"
)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few calls are many."""
    monkeypatch.setattr(paths, "_OFTEN", 4)


def pulled(f: Any) -> Any:
    """The gradient of the sum of squares of all that f gives."""

    def total(a: Any, b: Any) -> Any:
        return sum([xp.sum(xp.real(y * xp.conj(y))) for y in ft.tree.leaves(f(a, b))])

    return ft.grad(total)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("size", [((), 1), ((), 3), ((), 7), ((3,), 2)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_they_are_one_program_with_the_ops_around(
    name: str, dtype: str, size: tuple[tuple[int, ...], int], layout: str
) -> None:
    """Eager execution's numbers, of any layout; so with derivatives."""
    op = EVERY[name]
    a, b = matrices(dtype, *size)
    f = lambda a, b: op(LAYOUTS[layout](a) * 2.0, b)  # noqa: E731
    run = build(ft.make_graph(f)(a, b), mode="reduce-overhead")
    assert whole_of(run) is not None or dtype.startswith("complex")
    close = 2e-5 if dtype in ("float32", "complex64") else 1e-12
    laws.close(ft.jit(f, mode="reduce-overhead")(a, b), f(a, b), close, close)
    if name in OPS and name != "eigh" and not dtype.startswith("complex"):
        laws.close(ft.jit(pulled(op))(a, b), pulled(op)(a, b), 10 * close, 10 * close)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EVERY)
def test_a_function_gives_the_same_however_often_it_was_called(
    name: str, dtype: str, soon: None
) -> None:
    """The bits of eager execution at every call, whatever answers it; and its errors."""
    op = EVERY[name]
    f = ft.jit(op)
    a, b = matrices(dtype, (), 3)
    bad = xp.eye(3, dtype=dtype) * RAISES.get(name, 1.0)
    for _ in range(12):
        for x in (a, a + 0.5, a.mT * 1.0, a * xp.nan):
            try:
                with np.errstate(all="ignore"):
                    expected = op(x, b)
            except LinAlgError:
                with np.errstate(all="ignore"), pytest.raises(LinAlgError):
                    f(x, b)
            else:
                with np.errstate(all="ignore"):
                    laws.same(f(x, b), expected)
        if name in RAISES:
            with pytest.raises(LinAlgError):
                f(bad, b)
    (path,) = f._table.all_paths()
    assert name in ("lower", "upper") or path.answered() > 0, "machine code answers in the end"


def test_an_index_outside_raises_at_every_call(soon: None) -> None:
    """So does that of an adjoint."""
    x, weights = xp.asarray(np.arange(12.0).reshape(4, 3)), xp.asarray(np.arange(4.0))

    def loss(x: Any, i: Any) -> Any:
        m = xp.max(x, axis=1, keepdims=True)
        all_ = xp.log(xp.sum(xp.exp(x - m), axis=1)) + m[:, 0]
        return xp.sum((all_ - xp.take_along_axis(x, i[:, None], axis=1)[:, 0]) * weights)

    good, bad = xp.asarray([0, 2, -1, 1]), xp.asarray([0, 2, 3, 1])
    for f in (loss, ft.grad(loss), lambda x, i: xp.take_along_axis(x, i[:, None], axis=1)):
        run, expected = ft.jit(f), f(x, good)
        for _ in range(8):
            laws.close(run(x, good), expected, 1e-12, 1e-12)
            with pytest.raises(IndexOutOfBoundsError):
                run(x, bad)
    graph = ft.make_graph(ft.grad(loss))(x, good)
    assert whole_of(build(graph)) is not None, "no call of Python among the loops"
