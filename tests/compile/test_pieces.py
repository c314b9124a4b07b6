"""Elementwise ops on joined arrays: computed for each piece, where it belongs in the result."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.loops.kernel import Kernel, Reduce
from tests.compile.checked import checking, run
from tests.compile.test_bounds import in_steps, made_of

SHAPES = [(5000,), (70, 64), (3, 40, 48), (2, 3, 17, 50)]


def arrays(shape: tuple[int, ...], seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape), rng.normal(size=shape)


def agree(fun: Any, *given: Any) -> None:
    """Compiled and checked loops give the bits of eager ops."""
    expected = [np.asarray(v) for v in fun(*map(xp.asarray, given))]
    made = made_of(fun, *given)
    with checking():
        checked = run(made_of(fun, *given), *given)
    for found in (checked, made.run(*given), in_steps(fun, *given)):
        for y, e in zip(found, expected, strict=True):
            np.testing.assert_array_equal(y, e)


class Programs:
    """Random programs of joins, slices and elementwise ops over arrays of one shape."""

    def __init__(self, seed: int, rank: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.rank = rank

    def __call__(self, x: Any, y: Any) -> tuple[Any, ...]:
        self.rng = np.random.default_rng(self.rng.bit_generator.seed_seq)  # type: ignore[attr-defined]
        known = [x, y]
        for _ in range(int(self.rng.integers(3, 9))):
            known.append(self.step(known))
        ends = [known[-1], xp.sum(known[-2], axis=-1), known[-3].mT if self.rank > 1 else known[2]]
        return tuple(ends[: int(self.rng.integers(1, 4))])

    def step(self, known: list[Any]) -> Any:
        pick = lambda: known[int(self.rng.integers(max(0, len(known) - 4), len(known)))]  # noqa: E731
        axis = int(self.rng.integers(self.rank))
        match int(self.rng.integers(9)):
            case 0 | 1:
                return xp.roll(pick(), int(self.rng.integers(-3, 4)), axis=axis)
            case 2:
                x, half = pick(), pick().shape[axis] // 2
                first = [slice(None)] * self.rank
                first[axis] = slice(half)
                rest = [slice(None)] * self.rank
                rest[axis] = slice(half, None)
                return xp.concat([-x[tuple(rest)], x[tuple(first)]], axis=axis)
            case 3:
                x, ends = pick(), [slice(None)] * self.rank
                ends[axis] = slice(0, 1)
                inner = [slice(None)] * self.rank
                inner[axis] = slice(1, None)
                return xp.concat([x[tuple(ends)] * 2.0, x[tuple(inner)]], axis=axis)
            case 4:
                return pick() * xp.max(pick(), axis=axis, keepdims=True)
            case 5:
                return xp.where(pick() > 0, pick(), pick())
            case 6:
                return xp.maximum(pick(), pick())
            case 7:
                return pick() - pick()
        return pick() + pick() * 0.5


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(12))
def test_programs(shape: tuple[int, ...], seed: int) -> None:
    program = Programs(seed, len(shape))
    x, y = arrays(shape, seed)
    expected = [np.asarray(v) for v in program(xp.asarray(x), xp.asarray(y))]
    for found, e in zip(made_of(program, x, y).run(x, y), expected, strict=True):
        np.testing.assert_allclose(found, e, rtol=1e-12, atol=1e-11)  # sums are added otherwise


def rotated(x: Any, y: Any) -> Any:
    half = x.shape[-1] // 2
    return (x * y + xp.concat([-x[..., half:], x[..., :half]], axis=-1) * y,)


def advected(x: Any, y: Any) -> Any:
    to, fro = xp.roll(x, 1, axis=0), xp.roll(x, -1, axis=0)
    return (x - 0.1 * (fro - to) + 0.01 * (fro - 2 * x + to),)


def both_axes(x: Any, y: Any) -> Any:
    across = xp.roll(x, 1, axis=0) + xp.roll(x, -1, axis=0)
    return (across + (xp.roll(x, 2, axis=-1) * y + x) - 4 * x,)


def read_twice(x: Any, y: Any) -> Any:
    z = xp.roll(x, 1, axis=0) * y
    return z + 1.0, z * 2.0, xp.roll(z, 1, axis=0) - z


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fun", [rotated, advected, both_axes, read_twice])
def test_bits_are_those_of_eager_ops(fun: Any, shape: tuple[int, ...]) -> None:
    agree(fun, *arrays(shape))


@pytest.mark.parametrize("fun", [rotated, advected])
def test_nothing_is_copied(fun: Any) -> None:
    made = made_of(fun, *arrays((128, 64)))
    assert all(isinstance(c.kernel, Kernel) for c in made.calls)
    assert all({v.name for v in c.writes} == {made.fused.graph.outputs[0].name} for c in made.calls)


def test_what_a_reduction_reads_is_in_one_pass() -> None:
    """Pieces would be written, only to be read again."""
    made = made_of(lambda x: (xp.sum((xp.roll(x, 1) - x) ** 2),), arrays((5000,))[0])
    *copies, sums = [c.kernel for c in made.calls]
    assert all(len(k.values) == 2 for k in copies)  # read, and written
    assert any(isinstance(v, Reduce) for v in sums.values)


@pytest.mark.parametrize("shape", [(60, 100), (4, 30, 50)])
@pytest.mark.parametrize("axis", [0, -1])
def test_parts_are_made_where_they_belong(shape: tuple[int, ...], axis: int) -> None:
    fun = lambda x, y: (xp.concat([xp.abs(x), x * y, y], axis=axis),)  # noqa: E731
    x, y = arrays(shape)
    agree(fun, x, y)
    assert len(made_of(fun, x, y).calls) == 2  # two parts in one kernel, and a copy


@pytest.mark.parametrize("shape", [(2, 7, 1, 1), (5, 40, 1), (70, 64, 1), (6, 1)])
@pytest.mark.parametrize("axis", [-1, -2])
def test_parts_side_by_side_are_not_made_there(axis: int, shape: tuple[int, ...]) -> None:
    """Columns of a result lie apart: loops that walk rows would write into those of others."""

    def fun(x: Any, y: Any) -> Any:
        z = x / (xp.sum(xp.abs(x), axis=0, keepdims=True) + 1.0) * y
        w = x / (xp.sum(xp.abs(x), axis=-2, keepdims=True) + 1.0) * y
        return xp.concat([z, z * 2.0], axis=axis), xp.concat([w, y, w * 2.0], axis=axis)

    x, y = arrays(shape)
    expected = [np.asarray(v) for v in fun(xp.asarray(x), xp.asarray(y))]
    for found, e in zip(made_of(fun, x, y).run(x, y), expected, strict=True):
        np.testing.assert_allclose(found, e, rtol=1e-14)


_VIEWS: list[Any] = [
    lambda v: v, xp.matrix_transpose, lambda v: xp.reshape(v, (-1,)), lambda v: v[None],
    lambda v: v[10:30], lambda v: xp.flip(v, axis=0), lambda v: xp.broadcast_to(v, (2, *v.shape)),
]  # fmt: skip
_MADE: list[Any] = [
    lambda x, y: xp.concat([x, y]) + 1.0, lambda x, y: xp.roll(x, 3, axis=0) * y,
    lambda x, y: xp.pad(x, ((1, 0), (0, 0)))[:-1] + y, lambda x, y: (x + y).mT,
    lambda x, y: xp.exp(x[:4])[xp.asarray([0, 3] * 40)], lambda x, y: xp.repeat(x, 2, axis=0) - 1.0,
]  # fmt: skip


@pytest.mark.parametrize("view", _VIEWS)
@pytest.mark.parametrize("made", _MADE)
def test_python_may_ask_for_views_of_what_is_rewritten(made: Any, view: Any) -> None:
    """A decision on the elements of a view, its only reader, is taken as eager code takes it."""
    x, y = (xp.asarray(np.round(a)) for a in arrays((80, 64)))

    def fun(x: Any, y: Any) -> Any:
        whole = made(x, y)
        (chosen, *_) = xp.nonzero(view(whole))
        return chosen + 1, xp.sum(whole)

    found = ft.jit(fun, mode="reduce-overhead")(x, y)
    expected = fun(x, y)
    np.testing.assert_array_equal(np.asarray(found[0]), np.asarray(expected[0]))
    np.testing.assert_allclose(np.asarray(found[1]), np.asarray(expected[1]), rtol=1e-9)
