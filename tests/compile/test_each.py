"""Elements that are each there for a few columns of a row: repeated along the last axis."""

from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct.compile.loops.kernel import Kernel
from tests.compile.checked import checking, run
from tests.compile.test_bounds import made_of
from tests.compile.test_short_rows import numbers

TIMES = [2, 3, 4, 7, 8, 16, 17]


def wanted(fun: Any, *arrays: Any) -> None:
    """Compiled and checked loops give what NumPy gives."""
    with np.errstate(invalid="ignore"):
        expected = np.asarray(fun(*map(xp.asarray, arrays)))
    with checking():
        (found,) = run(made_of(fun, *arrays), *arrays)
    (again,) = made_of(fun, *arrays).run(*arrays)
    for y in (found, again):
        assert y.dtype == expected.dtype
        np.testing.assert_array_equal(y, expected)


@pytest.mark.pairwise
@pytest.mark.parametrize("length", [1, 31, 1000])
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "bool"])
def test_a_row_repeated(dtype: str, times: int, length: int) -> None:
    x = numbers(dtype, length)
    wanted(lambda x: xp.abs(xp.repeat(x, times)) if dtype != "bool" else ~xp.repeat(x, times), x)


@pytest.mark.parametrize("times", TIMES)
def test_beside_what_is_whole(times: int) -> None:
    x, y = numbers("float32", 5, 3, 21), numbers("float32", 5, 3 * times, 21 * times)

    def larger(x: Any) -> Any:
        return xp.repeat(xp.repeat(x, times, axis=1), times, axis=2)

    wanted(lambda x, y: larger(x) * 0.5 - y, x, y)
    wanted(lambda x, y: larger(x)[:, ::-1] * y, x, y)
    wanted(lambda x, y: larger(x) + xp.flip(y, axis=2), x, y)


@pytest.mark.parametrize("times", [2, 3, 8])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_in_reductions(axis: Any, times: int) -> None:
    x, y = numbers("int32", 40, 24), numbers("int32", 40, 24 * times)
    wanted(lambda x, y: xp.sum(xp.repeat(x, times, axis=1) * y, axis=axis), x, y)
    wanted(lambda x, y: xp.max(xp.repeat(x, times, axis=1) + y[:, :1], axis=axis), x, y)


@pytest.mark.parametrize("times", [2, 4, 6])
def test_others_end_rows_elsewhere(times: int) -> None:
    """Rows of which no element is whole for its columns are read as before."""
    x, y = numbers("float32", 35), numbers("float32", 1, 7)
    wanted(lambda x, y: xp.reshape(xp.repeat(x, times), (-1, 7)) + y, x, y)
    wanted(lambda x, y: xp.reshape(xp.repeat(x, times), (-1, 7)) + y[:, ::-1], x, y)


@pytest.mark.parametrize("times", [2, 3, 16])
def test_one_kernel_reads_each_once(times: int) -> None:
    x = np.ones((64, 48), np.float32)
    (call,) = made_of(lambda x: xp.repeat(x, times, axis=1) * 2.0, x).calls
    assert isinstance(call.kernel, Kernel)
    assert {(a.inner, a.each) for a in call.kernel.accesses} == {("one", times), ("one", 1)}
