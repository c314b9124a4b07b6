"""A matrix times its own transpose: half of it by BLAS, mirrored."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import funct.array as xp
from funct.device import host
from funct.kernels.cpu.products import gram
from tests.compile.checked import checking, run
from tests.compile.test_bounds import made_of

RNG = np.random.default_rng(0)
LOOKS: dict[str, Any] = {
    "columns": lambda x: x.mT @ x,
    "rows": lambda x: x @ x.mT,
    "of a part": lambda x: x[3:, 5:].mT @ x[3:, 5:],
    "in a larger one": lambda x: x[:, 10:90] @ x[:, 10:90].mT,
}


@pytest.mark.pairwise
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("shape", [(100, 100), (201, 131), (131, 203), (70, 300)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("look", LOOKS)
def test_both_halves(
    look: str, dtype: str, shape: tuple[int, int], cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gram, "host", lambda: replace(host(), cores=cores))
    x = RNG.normal(size=shape).astype(dtype)
    fun = lambda x: LOOKS[look](x - 0.25) * 2.0  # noqa: E731
    made = made_of(fun, x)
    halves = [c for c in made.calls if type(c.kernel) is tuple and c.kernel[0] == "gram"]
    wide = LOOKS[look](x - 0.25)
    if shape != (100, 100) and look in ("columns", "rows"):
        assert [c.tasks for c in halves] == [1 if cores == 1 else 3]
    with checking():
        (checked,) = run(made_of(fun, x), x)
    (found,) = made_of(fun, x).run(x)
    scale = float(np.abs(wide).max() * np.finfo(dtype).eps)
    for y in (checked, found):
        np.testing.assert_allclose(y, wide * 2.0, rtol=0, atol=256 * scale)
        if halves:
            np.testing.assert_array_equal(y, y.T)


def test_what_is_no_matrix_by_itself() -> None:
    """Another part of the same array, or a matrix and itself as it is, are products as others."""
    x = RNG.normal(size=(200, 200))
    for fun in (
        lambda x: (x * 2.0) @ (x * 2.0),
        lambda x: (lambda z: z[:100].mT @ z[100:])(x * 2.0),
        lambda x: (lambda z: z[:, :100].mT @ z[:, 100:])(x * 2.0),
    ):
        expected = np.asarray(fun(xp.asarray(x)))
        made = made_of(fun, x)
        kinds = [c.kernel[0] for c in made.calls if type(c.kernel) is tuple]
        assert "gram" not in kinds
        np.testing.assert_allclose(made.run(x)[0], expected, rtol=0, atol=1e-11)


def test_columns_times_rows_are_loops() -> None:
    """Contractions that add nothing up are products of elements."""
    x, y = RNG.normal(size=(40, 7)), RNG.normal(size=(40, 9))
    for spec in ("bi,bj->bij", "bi,bj->jbi", "bi,bj->jib"):
        fun = lambda x, y, spec=spec: xp.einsum(spec, x, y) * 2.0  # noqa: E731
        made = made_of(fun, x, y)
        assert "contract" not in made.show()
        np.testing.assert_array_equal(
            made.run(x, y)[0], np.asarray(fun(xp.asarray(x), xp.asarray(y)))
        )
