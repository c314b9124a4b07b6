"""Programs of steps: each step as NumPy computes it, as machine code and as checked Python."""

from typing import Any

import numpy as np
import pytest

from funct.kernels.cpu.loops import available
from funct.kernels.cpu.steps import ARRAYS, program

_DTYPES = [np.float32, np.float64]
_LAST, _WORDS = ARRAYS - 2, ARRAYS - 1  # the arrays for floats and for integers

# what, operands, and the same by NumPy
EACH: list[tuple[str, int, Any]] = [
    ("add", 2, np.add), ("subtract", 2, np.subtract), ("multiply", 2, np.multiply),
    ("divide", 2, np.divide), ("negative", 1, np.negative), ("square", 1, np.square),
    ("abs", 1, np.abs), ("sign", 1, np.sign), ("less", 2, np.less), ("greater", 2, np.greater),
    ("less_equal", 2, np.less_equal), ("greater_equal", 2, np.greater_equal),
    ("equal", 2, np.equal), ("not_equal", 2, np.not_equal),
    ("absorb", 2, lambda g, h: np.where((g == 0) & ~np.isfinite(h), 0.0, h).astype(h.dtype)),
]  # fmt: skip
_TRUTH = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


def _run(steps: Any, *arrays: Any, floats: int = 64, checked: bool) -> tuple[Any, Any]:
    """The arrays of floats and of integers after a program."""
    room, words = np.full(floats, 7.0, arrays[0].dtype), np.full(64, 7)
    given = [*arrays, *[room] * (ARRAYS - 2 - len(arrays)), room, words]
    made = program()
    assert (made.checked if checked else made)(*given, steps) == 0
    return room, words


@pytest.fixture(params=[False, True])
def checked(request: pytest.FixtureRequest) -> bool:
    if not request.param and not available():
        pytest.skip("no LLVM")
    return bool(request.param)


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize(("what", "count", "expected"), EACH, ids=[w for w, _, _ in EACH])
def test_an_op_of_elements_has_numpys_bits(
    what: str, count: int, expected: Any, dtype: Any, checked: bool
) -> None:
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.25, 1e-30]
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(edges, edges))
    each = tuple([(k, 0, (0, 0, 1)) for k in range(count)] + [0.0] * (3 - count))
    to = _WORDS if what in _TRUTH else _LAST
    steps = (("each", what, to, 0, (1, 1, 64), each),)
    with np.errstate(all="ignore"):
        found = _run(steps, x, y, checked=checked)[to == _WORDS]
        wanted = expected(*(x, y)[:count])
    assert np.array_equal(found, wanted.astype(found.dtype), equal_nan=True)
    same = np.signbit(found) == np.signbit(wanted.astype(found.dtype))
    assert np.all(same | np.isnan(wanted.astype(float)))


@pytest.mark.parametrize("dtype", _DTYPES)
def test_strides_repeat_and_turn(dtype: Any, checked: bool) -> None:
    x = np.arange(24, dtype=dtype)
    column = np.asarray([1.0, -3.0], dtype)
    operands = ((0, 0, (12, 1, 3)), (1, 0, (1, 0, 0)), 0.0)
    steps = (("each", "multiply", _LAST, 5, (2, 3, 4), operands),)
    room, _ = _run(steps, x, column, checked=checked)
    turned = x.reshape(2, 4, 3).swapaxes(1, 2) * column[:, None, None]
    assert np.array_equal(room[5:29], turned.ravel())
    assert np.all(room[:5] == 7)
    assert np.all(room[29:] == 7)


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize(("rows", "n"), [(1, 1), (3, 1), (2, 7), (3, 8), (2, 29), (1, 200)])
def test_sums_and_maxima_of_rows_and_columns(rows: int, n: int, dtype: Any, checked: bool) -> None:
    x = np.random.default_rng(n).normal(size=(rows, n)).astype(dtype)
    steps = (
        ("rows", "sum", _LAST, 0, rows, (0, 0, n)),
        ("rows", "max", _LAST, 10, rows, (0, 0, n)),
        ("columns", "sum", _LAST, 20, n, (0, 0, rows)),
        ("loop", np.exp, _LAST, 300, rows * n, (0, 0, None)),
        ("loop", np.logaddexp, _LAST, 600, rows * n, (0, 0, 0.5)),
    )
    room, _ = _run(steps, x.ravel(), floats=900, checked=checked)
    assert np.array_equal(room[:rows], x.sum(1))
    assert np.array_equal(room[10 : 10 + rows], x.max(1))
    if rows > 1 and n > 1:  # else NumPy adds up one line
        assert np.array_equal(room[20 : 20 + n], x.sum(0))
    assert np.array_equal(room[300 : 300 + rows * n], np.exp(x).ravel())
    assert np.array_equal(room[600 : 600 + rows * n], np.logaddexp(x, dtype(0.5)).ravel())


def test_numbers_are_put_where_indices_say(checked: bool) -> None:
    x, indices = np.asarray([1.5, 2.5, 3.5]), np.asarray([3, 0, 3])
    steps = (("put", "", _LAST, 1, 3, (0, 0, 1, 0, 4)),)
    room, _ = _run(steps, x, indices, checked=checked)
    expected = np.zeros((3, 4))
    expected[np.arange(3), indices] = x
    assert np.array_equal(room[1:13], expected.ravel())


@pytest.mark.parametrize("index", [-1, 4])
def test_an_index_outside_is_told(index: int, checked: bool) -> None:
    x, indices, room = np.ones(1), np.asarray([index]), np.zeros(8)
    made = program()
    run = made.checked if checked else made
    steps = (("put", "", _LAST, 0, 1, (0, 0, 1, 0, 4)),)
    assert run(x, indices, *[room] * 6, room, np.zeros(1, np.int64), steps) == 1
