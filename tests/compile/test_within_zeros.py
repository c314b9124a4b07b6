"""Arrays with zeros around: read where they are by the loops that compute with them."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.loops.kernel import Kernel
from tests.compile.checked import checking, run
from tests.compile.test_bounds import in_steps, made_of
from tests.compile.test_short_rows import numbers

SHAPES = [
    (5000,), (70, 64), (67, 131), (5, 40, 48), (2, 3, 17, 50), (4100, 1), (1, 4100), (3, 2000),
]  # fmt: skip


def agree(fun: Any, *given: Any) -> None:
    """Compiled and checked loops give the bits of eager ops."""
    with np.errstate(invalid="ignore"):
        expected = np.asarray(fun(*map(xp.asarray, given)))
    with checking():
        (checked,) = run(made_of(fun, *given), *given)
    (found,) = made_of(fun, *given).run(*given)
    (looped,) = in_steps(fun, *given)
    for y in (checked, found, looped):
        assert y.dtype == expected.dtype
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_array_equal(np.signbit(y * 1.0), np.signbit(expected * 1.0))


def padded(x: Any, widths: Any) -> Any:
    return xp.pad(x, widths)


WIDTHS = {
    "before": lambda rank: [(2, 0)] + [(0, 0)] * (rank - 1),
    "behind": lambda rank: [(0, 0)] * (rank - 1) + [(0, 3)],
    "around": lambda rank: [(1, 1)] * rank,
    "far": lambda rank: [(100, 0)] + [(0, 40)] * (rank - 1),
    "outer": lambda rank: [(2, 1)] * (rank - 1) + [(0, 0)],
}


@pytest.mark.pairwise
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_padding(dtype: str, widths: str, shape: tuple[int, ...]) -> None:
    x, w = numbers(dtype, *shape), WIDTHS[widths](len(shape))
    agree(lambda x: -xp.pad(x, w) * 2.0, x)


@pytest.mark.parametrize("dtype", ["float16", "int8", "int32", "int64", "bool"])
def test_dtypes(dtype: str) -> None:
    x, y = numbers(dtype, 61, 80), numbers(dtype, 64, 90)
    both = (lambda p, y: p & y) if dtype == "bool" else (lambda p, y: p + y)
    agree(lambda x, y: both(xp.pad(x, [(1, 2), (7, 3)]), y), x, y)
    agree(lambda x, y: both(xp.pad(x, [(1, 2), (0, 0)]), y[:, :80]), x, y)


@pytest.mark.parametrize("shape", [(70, 64), (5, 40, 48)])
def test_stencils_with_zeros_around(shape: tuple[int, ...]) -> None:
    def laplacian(x: Any) -> Any:
        p, inner = xp.pad(x, 1), (slice(1, -1),)
        rank = len(x.shape)
        out = -2.0 * rank * x
        for axis in range(rank):
            for side in (slice(0, -2), slice(2, None)):
                out = out + p[inner * axis + (side,) + inner * (rank - axis - 1)]
        return out

    agree(laplacian, numbers("float64", *shape))


def test_slices_of_what_has_zeros_around() -> None:
    x = numbers("float64", 80, 90)
    agree(lambda x: xp.pad(x, 5)[3:60, 2:97] * 2.0, x)
    agree(lambda x: xp.pad(x, 5)[:3, :] * 2.0, numbers("float64", 80, 2000))  # zeros alone
    agree(lambda x: xp.pad(x, 5)[::2, 1::3] * 2.0, x)
    agree(lambda x: xp.flip(xp.pad(x, 5)) * 2.0 + xp.pad(x, 5), x)
    agree(lambda x: xp.pad(x, 5).mT * 2.0, x)
    agree(lambda x: xp.reshape(xp.pad(x, 5), (-1,)) * 2.0, x)
    agree(lambda x: xp.pad(xp.pad(x, 5) + 1.0, ((0, 0), (3, 0))) * 2.0, x)
    agree(lambda x: xp.pad(x.mT, 5) * 2.0, x)
    agree(lambda x: xp.pad(x[::2, ::-1], 5) * 2.0, x)


def test_what_is_read_often_with_zeros_around() -> None:
    """It lies nowhere as a whole: a copy of it would have as many elements."""
    x = numbers("float64", 4, 800)
    again = lambda x: xp.broadcast_to(xp.flip(x, axis=1)[:, None], (4, 12, 800))  # noqa: E731
    agree(lambda x: xp.pad(again(x), ((0, 0), (1, 2), (0, 0))) * 2.0, x)
    agree(lambda x: xp.pad(again(x), ((1, 0), (0, 0), (3, 0))) * 2.0, x)


def test_numbers_with_zeros_around() -> None:
    """What has one element for a whole row is no row's value: there are zeros in the row."""
    wide = lambda x: xp.broadcast_to(x, (60, 90))  # noqa: E731
    x = numbers("float64", 60, 1)
    agree(lambda x: xp.pad(wide(x), ((1, 2), (3, 4))) * 2.0, x)
    agree(lambda x: xp.pad(wide(x), ((0, 0), (3, 4))) * 2.0, x)
    agree(lambda x: xp.pad(wide(x), ((3, 4), (0, 0))) * 2.0, x)
    agree(lambda x: xp.pad(wide(x[0]), 2) * 2.0, x)
    agree(lambda x: xp.pad(xp.broadcast_to(x[0], (5000,)), (2, 3)) * 2.0, x)


GRADIENTS = {
    "differences": lambda x: (x[1:] - x[:-1]) ** 2,
    "second": lambda x: x[2:] - 2 * x[1:-1] * x[:-2],
    "last": lambda x: x[..., 1:] * x[..., :-1],
    "means": lambda x: 0.5 * (x[..., 1:] + x[..., :-1]),
    "rolled": lambda x: (x - xp.roll(x, 1, axis=0)) ** 2,
    "halves": lambda x: xp.tanh(x[..., : x.shape[-1] // 2]) * x[..., x.shape[-1] // 2 :],
    "corner": lambda x: x[tuple([slice(1, None)] * len(x.shape))] ** 2,
}


@pytest.mark.parametrize("shape", [(5000,), (70, 64), (5, 40, 48)])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_slices(name: str, shape: tuple[int, ...]) -> None:
    x = numbers("float64", *shape)
    x = np.where(np.isfinite(x), x, 1.0)
    fun = ft.grad(lambda x: xp.sum(GRADIENTS[name](x)))
    expected = np.asarray(fun(xp.asarray(x)))
    with checking():
        (checked,) = run(made_of(fun, x), x)
    for y in (checked, np.asarray(ft.jit(fun)(xp.asarray(x)))):
        np.testing.assert_allclose(y, expected, rtol=1e-14, atol=1e-14)


def test_one_kernel_reads_all_and_writes_no_zeros() -> None:
    x = np.ones((100, 90))
    made = made_of(lambda x: xp.pad(x, 1)[2:, 1:-1] + xp.pad(x, 1)[:-2, 1:-1] - x, x)
    (call,) = made.calls
    assert isinstance(call.kernel, Kernel)
    assert sum(a.is_within for a in call.kernel.accesses) == 2


def test_who_reads_them_otherwise_finds_them_written() -> None:
    x = numbers("float64", 80, 90)
    x = np.where(np.isfinite(x), x, 1.0)
    for fun in (
        lambda x: xp.pad(x, 5) @ xp.pad(x, 5).mT,
        lambda x: xp.sum(xp.pad(x, 5), axis=0),
        lambda x: xp.pad(x, 5) + xp.sum(xp.pad(x, 5)),
        lambda x: xp.sort(xp.pad(x, 5), axis=0) + xp.pad(x, 5),
        lambda x: xp.pad(x, 5)[None] * xp.ones((2, 1, 1)),
    ):
        expected = np.asarray(fun(xp.asarray(x)))  # type: ignore[no-untyped-call]
        (found,) = made_of(fun, x).run(x)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("side", "written"), [(2, False), (3, True), (5, True)])
def test_windows_over_zeros_around(side: int, written: bool) -> None:
    """What many read with zeros around is written once, so that nobody sees to where they are."""
    x = numbers("float32", 67, 80)

    def windows(x: Any) -> Any:
        p = xp.pad(x, [(1, side - 1)] * 2)
        places = np.ndindex(side, side)
        return sum(p[i : i + 67, j : j + 80] * float(1 + i + 2 * j) for i, j in places)

    agree(windows, x)
    kernels = [c.kernel for c in made_of(windows, x).calls if isinstance(c.kernel, Kernel)]
    around = [k for k in kernels if any(a.is_within for a in k.accesses)]
    assert len(kernels) == 1 + written
    assert all(len(k.values) < 5 for k in around) == written
