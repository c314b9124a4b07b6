"""One element for each index in loops: eager's numbers and errors, no Python between the steps."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import IndexOutOfBoundsError
from tests import laws
from tests.compile.test_flat import DTYPES, _same_in_a_loop

RNG = np.random.default_rng(0)
SHAPES = [((5,), 0), ((4, 3), 0), ((4, 3), 1), ((2, 6, 3), 1), ((1, 1), 0)]


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("count", [1, 7])
def test_taken(dtype: str, shape: tuple[int, ...], axis: int, count: int) -> None:
    """At indices from either end, several times the same, of indices of any width."""
    n = shape[axis]
    i = RNG.integers(-n, n, (3, *shape[:axis], count, *shape[axis + 1 :]))
    x = xp.asarray(RNG.integers(0, 99, (3, *shape)).astype(dtype))
    for kind in ("int64", "int8"):
        at = xp.asarray(i.astype(kind))
        pairs = xp.concat([xp.reshape(xp.astype(v, "int64"), (3, -1)) for v in (at, x)], axis=1)
        size = at.size // 3

        def step(p: Any, at: Any = at, kind: str = kind, size: int = size) -> Any:
            i = xp.astype(xp.reshape(p[:size], at.shape[1:]), kind)
            v = xp.astype(xp.reshape(p[size:], shape), dtype)
            seen = xp.flip(v, axis=-1)
            return [xp.take_along_axis(y, i, axis=axis) for y in (v, seen)]

        _same_in_a_loop(step, pairs)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_derivatives(shape: tuple[int, ...], axis: int) -> None:
    """What comes back to an element is added; sorts, medians and quantiles are made of this."""
    n = shape[axis]
    x = xp.asarray(RNG.normal(size=(3, *shape)))
    i = xp.asarray(RNG.integers(-n, n, (1, *shape[:axis], 7, *shape[axis + 1 :])))

    def taken(v: Any) -> Any:
        return ft.grad(lambda v: xp.sum(xp.take_along_axis(v, i[0], axis=axis) ** 2))(v)

    _same_in_a_loop(taken, x)
    _same_in_a_loop(ft.grad(lambda v: xp.sum(xp.sort(v, axis=axis)[..., :2] ** 2)), x)
    _same_in_a_loop(lambda v: xp.quantile(v, 0.3, axis=axis), x)
    _same_in_a_loop(ft.vmap(xp.median), xp.stack([x, -x], axis=1))


@pytest.mark.parametrize("at", [3, -4, 1 << 40])
def test_indices_outside_raise(at: int) -> None:
    """Eager's error, at the step that has it."""
    i = xp.asarray([[0], [1], [at], [0]])

    def run(i: Any) -> Any:
        x = xp.asarray([1.0, 2.0, 3.0])
        return ft.scan(lambda c, k: (c + 1, xp.take_along_axis(x, k, axis=0)), 0, i)[1]

    with pytest.raises(IndexOutOfBoundsError) as eager:
        run(i)
    with pytest.raises(IndexOutOfBoundsError) as compiled:
        ft.jit(run)(i)
    assert str(compiled.value).splitlines()[0] == str(eager.value).splitlines()[0]
    laws.same(ft.jit(run)(i[:2]), run(i[:2]))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("given", [(60,), (60, 1), (2, 30), (2, 31)])
def test_one_of_each_row_stays_in_loops(dtype: str, given: tuple[int, ...]) -> None:
    """Losses that look up a class and their gradients, however the classes are shaped when they
    are given: nothing as large as what is looked up is written for that, and errors are eager's.
    """
    x = xp.asarray(RNG.normal(size=(60, 300)))
    i = xp.asarray(RNG.integers(-128, 127, given).astype(dtype))

    def loss(x: Any, i: Any) -> Any:
        classes = xp.reshape(i[:, 1:] if i.shape == (2, 31) else i, (-1,))  # one is nobody's
        chosen = xp.take_along_axis(xp.sin(x), classes[:, None], axis=-1)
        return xp.sum(xp.cos(x)) - xp.sum(chosen)

    if given == (2, 31):
        i = i.at[:, 0].set(xp.iinfo(i.dtype).max)
    compiled = ft.jit(ft.grad(loss))
    laws.close(compiled(x, i), ft.grad(loss)(x, i), 4)
    assert "along_axis_" not in compiled.show(x, i)  # a call of NumPy
    if dtype != "int8":
        with pytest.raises(IndexOutOfBoundsError) as eager:
            ft.grad(loss)(x, i + 400)
        with pytest.raises(IndexOutOfBoundsError) as told:
            compiled(x, i + 400)
        assert str(told.value).splitlines()[0] == str(eager.value).splitlines()[0]
