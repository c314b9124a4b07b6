"""Kernels written as Python: what is compiled does what Python does, index by index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from funct.kernels.cpu.loops import available, flat, kernel, pays, ready
from funct.kernels.cpu.vectors import gathered, lanes, loaded, spread, stored
from funct.kernels.table import restricted

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")

_WEIGHTS = ((1, 2), (3, 5))


def _scaled(v: Any, how: str) -> Any:
    if how == "twice":
        return v + v
    return v * 3


@kernel
def _collatz(x: Any, y: Any, n: int) -> int:
    most = 0
    for i in range(n):
        v = x[i]
        steps = 0
        while v != 1 and steps < 1000:
            if (v & 1) == 0:
                v = v >> 1
            elif v > 1000000:
                break
            else:
                v = 3 * v + 1
            steps += 1
        y[i] = steps
        most = max(most, steps)
    return most


@kernel
def _unrolled(x: Any, y: Any, n: int, how: str) -> None:
    for i in range(n - 1, -1, -1):
        total = x.dtype.type(0)
        for a, b in _WEIGHTS:
            total = total + x[i] * a
            total = total - _scaled(x[i], how) * b
        y[i] = total if how == "twice" else -total


@kernel
def _vectors(x: Any, y: Any, n: int) -> int:
    found = 0
    for i in range(0, n - 7, 8):
        v = loaded(x, i, 8)
        place = lanes(8, np.int64) + i
        same = gathered(x, place)
        if (v == same).all() and not (v != v).any():
            found += 8
        stored(y, i, np.where(v > 0.5, np.sqrt(v), spread(x[0], 8) + v.astype(x.dtype)))
    return found


@kernel
def _searched(x: Any, n: int, wanted: int) -> int:
    i = 0
    while i < n and x[i] != wanted:
        i += 1
    if i == n or x[i] != wanted:
        return -1
    return i


@kernel
def _words(x: Any, y: Any, n: int) -> None:
    for i in range(n):
        v = x[i].view(np.uint64)
        v = (v ^ (v >> np.uint64(13))) * 0x9E3779B97F4A7C15
        y[i] = ((~v) % np.uint64(1000)).astype(np.int32) - np.int32(i)


def _agree(k: Any, *args: Any) -> None:
    """Machine code and Python give the same numbers, and Python leaves no array."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    assert k(*args) == k.checked(*copies)
    for a, b in zip(args, copies):
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes()


def test_branches_loops_and_breaks() -> None:
    """Nested control flow with several ways out."""
    x = np.arange(1, 60)
    _agree(_collatz, x, np.zeros_like(x), len(x))
    assert _collatz(x, np.zeros_like(x), 59) == 112


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("how", ["twice", "thrice"])
def test_static_loops_and_calls(dtype: Any, how: str) -> None:
    """Loops over tuples are unrolled and functions inlined, as strings decide."""
    x = (np.arange(9) / 2).astype(dtype)
    _agree(_unrolled, x, np.zeros_like(x), 9, how)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors(dtype: Any) -> None:
    """Vectors are loaded, gathered, chosen from and stored."""
    x = np.random.default_rng(0).random(24).astype(dtype)
    _agree(_vectors, x, np.zeros_like(x), 24)
    x[3] = np.nan
    _agree(_vectors, x, np.zeros_like(x), 24)
    assert _vectors(x, np.zeros_like(x), 24) == 16


def test_conditions_ask_no_more_than_they_need() -> None:
    """What stands behind `and` is not evaluated where the first part decides."""
    x = np.asarray([3, 1, 2], np.int32)
    assert [_searched(x.astype(np.int64), 3, v) for v in (3, 2, 7)] == [0, 2, -1]
    with pytest.raises(IndexError):
        _searched.checked(x, 4, 7)


def test_words_wrap() -> None:
    """Unsigned words multiply modulo their size; bits are reinterpreted."""
    x = np.random.default_rng(0).normal(size=20)
    _agree(_words, x, np.zeros(20, np.int32), 20)


def test_two_dtypes_do_not_mix() -> None:
    """Nothing is promoted in silence."""
    with pytest.raises(TypeError, match="mixes"):
        _unmixed(np.zeros(3), np.zeros(3, np.float32))


@kernel
def _unmixed(x: Any, y: Any) -> None:
    y[0] = x[0] + y[0]


def test_plain_code_runs_where_machine_code_is_not_wanted() -> None:
    """`restricted` is heard by all kernels; few elements, and dtypes unknown here, are left too."""
    x = np.zeros(1 << 16)
    assert pays(x)
    assert ready(1 << 16)
    with restricted():
        assert not pays(x)
        assert not ready(1 << 16)
    assert not pays(x[:10])
    assert not pays(x.astype(np.float16))


def test_arrays_are_made_flat_for_a_kernel() -> None:
    """Strided and misaligned arrays are copied, others are not."""
    x = np.arange(12.0).reshape(3, 4)
    assert flat(x) is x
    assert flat(x.T).flags.c_contiguous
    raw = np.zeros(8 * 12 + 1, np.uint8)[1:].view(np.float64)
    assert not raw.flags.aligned
    assert flat(raw).flags.aligned
    assert flat(x > 3).dtype == np.uint8
