"""Calls that are prepared for arrays of such shapes: what the other way gives, or nothing."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from funct.kernels.cpu import prepared as module
from funct.kernels.cpu.by_words import PLACES
from funct.kernels.cpu.loops import available, making
from funct.kernels.cpu.prepared import Plan, Prepared
from funct.kernels.indexing import combining, gather, runs, scattering
from funct.kernels.order import few_rows, sorting
from funct.kernels.table import restricted
from tests import guarded

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def _taken() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    kinds = [(np.float64, "int64"), (np.int64, "int64"), (np.bool_, "int32"), (bfloat16, "uint8")]
    for k, (dtype, places) in enumerate(4 * kinds):
        x = rng.integers(0, 2, (k % 5 + 1, 11)).astype(dtype)
        i = rng.integers(0 if places[0] == "u" else -11, 11, (len(x), k)).astype(places)
        for axis in (-1, 1, None, 0):
            yield np.take, (x, i[0] % len(x) if axis == 0 else i[0], axis)
        yield np.take, (x[0], i, 0)
        yield np.take, (x[0], i[0], None)
        yield np.take_along_axis, (x, i, 1)
        yield np.take_along_axis, (x[0], i[0], -1)


def _joined() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    for rows, dtype in zip((3, 23, 43, 63), (np.float64, np.int64, np.bool_, bfloat16)):
        for widths, axis in itertools.product(((3, 5), (1, 0, 17), (64, 2), (1,) * 8), (0, 1, -1)):
            shape = (rows, 7, 2)[: 3 - (axis < 0)]
            k = axis % len(shape)
            shapes = [(*shape[:k], n, *shape[k + 1 :]) for n in widths]
            yield _concatenated, (*[rng.integers(0, 2, s).astype(dtype) for s in shapes], axis)


def _concatenated(*given: Any) -> Any:
    return np.concatenate(given[:-1], given[-1])


def _combined() -> Iterator[Case]:
    rng = np.random.default_rng(2)
    for dtype, mode in itertools.product(
        (np.float64, np.float32, np.int8), ("set", "add", "multiply", "min", "max")
    ):
        x = rng.integers(0, 5, 90).astype(dtype)
        for i in (rng.integers(-90, 90, 70), rng.integers(0, 90, (5, 9)).astype(np.int32)):
            yield _by_numpy, (x, rng.integers(0, 5, i.shape).astype(dtype), i, mode)
            yield _by_numpy, (x, 1.5, i, mode)
        yield _by_numpy, (x, np.nan, x > 2, mode)
        yield _by_numpy, (x.reshape(9, 10), 2.0, x[:9] > 2, mode)
        yield _by_numpy, (x, 2 * x[x > 2], x > 2, mode)
        places = np.arange(-9, 9), np.eye(3, dtype=int)
        for rows, i in zip((x.reshape(9, 10), x.reshape(18, 5)), places):
            v = rng.integers(0, 5, (*i.shape, rows.shape[1])).astype(dtype)
            yield _by_numpy, (rows, v, i, mode)
            yield _by_numpy, (rows, 2.5, i, mode)
        y = x.reshape(3, 6, 5)
        for key in KEYS if dtype is np.float64 or mode == "add" else KEYS[-2:]:
            yield _by_numpy, (y, rng.integers(0, 5, y[key].shape).astype(dtype), key, mode)
            yield _by_numpy, (y, -0.0, key, mode)


CHANGES = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
ALL, TURNED = slice(None), slice(None, None, -1)
KEYS: tuple[Any, ...] = (
    0, ALL, (), ..., (None, 1, ..., 2), (1, slice(1, -1)), (..., 3), slice(None, None, 2), TURNED,
    (ALL, TURNED), (0, TURNED, TURNED), (ALL, 2), (slice(1, 3), ALL, slice(1, 4)), (2, 0, 1), True,
    (ALL, slice(None, None, 2), slice(None, None, 2)), (1, 5), slice(2, 2), (slice(1, None), 4),
)  # fmt: skip


def _by_numpy(x: Any, v: Any, i: Any, mode: str) -> Any:
    y = x.copy()
    if (isinstance(i, np.ndarray) and i.dtype != bool) or mode == "set" or _is_places(i):
        combining.plain_combine_into(y, v, i, mode)
    else:
        y[i] = CHANGES[mode](y[i], v)
    return y


def _summed() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    for dtype, count in itertools.product((np.float64, np.int8), (1, 7, 64, 100)):
        for n in (1, 5, 90):
            x, ids = rng.integers(0, 5, count).astype(dtype), rng.integers(-3, n + 3, count)
            yield scattering.plain_segment_sum, (x, ids, n)


def _columns() -> Iterator[Case]:
    rng = np.random.default_rng(5)
    for n, mode in itertools.product((3, 20, 33), ("set", "add", "multiply", "min", "max")):
        for dtype, places in ((np.float64, (7,)), (np.float32, (2, 3)), (np.int8, (1,))):
            x = rng.integers(0, 5, (n, 11)).astype(dtype)
            i = rng.integers(-11, 11, places)
            yield _by_key, (x, rng.integers(0, 5, (n, *places)).astype(dtype), mode, ALL, i)


def _places() -> Iterator[Case]:
    rng = np.random.default_rng(6)
    kinds = (np.float64, np.float32, np.int8, bfloat16)
    for dtype, mode in itertools.product(kinds, ("set", "add", "multiply", "min", "max")):
        x = rng.integers(0, 5, (9, 11, 3)).astype(dtype)
        for kind, count in ((np.int64, (7,)), (np.int32, (40,)), (np.int64, (2, 3))):
            i, j = (rng.integers(-n, n, count).astype(kind) for n in (9, 11))
            for key in (
                (i, slice(2, 9)), (i, slice(None)), (i, -4, 2), (1, j, -1), (3, 4, j % 3),
                (i, slice(3, 3)), (i, slice(None, None, 2)), (i, j),
            ):  # fmt: skip
                yield _by_key, (x, rng.integers(0, 5, x[key].shape).astype(dtype), mode, *key)
                yield _by_key, (x, 2.5, mode, *key)
            flat = x[..., 0].copy()
            yield _by_key, (flat, rng.integers(0, 5, count).astype(dtype), mode, i, j)
            yield _by_key, (flat, -0.0, mode, i, j)


def _is_places(key: Any) -> bool:
    return isinstance(key, tuple) and any(isinstance(k, np.ndarray) for k in key)


def _by_key(x: Any, v: Any, mode: str, *key: Any) -> Any:
    return _by_numpy(x, v, key, mode)


def _sorted() -> Iterator[Case]:
    rng = np.random.default_rng(4)
    ways = itertools.cycle([(-1, False), (-2, True), (0, False), (-2, False), (-1, True)])
    shapes = ((100,), (17, 40), (40, 17), (5, 20, 3), (33, 6, 2), (3, 16), (64, 64), (300,), (2, 9))
    for shape, dtype in itertools.product(shapes, ("f8", "f4", "i8", "u4", "i2", "u2", "i1")):
        x = 40 + 10 * rng.normal(size=shape)
        odd = rng.choice([0.0, -0.0, np.nan, np.inf], shape)
        for k, y in enumerate((x, x // 10, odd) if dtype[0] == "f" else (x, x // 10)):
            y = np.concatenate([y] + [y[:1]] * k).astype(dtype)
            axis, descending = next(ways)
            yield _in_order, (y, max(axis, -y.ndim), descending)


def _in_order(x: Any, axis: int, descending: bool) -> Any:
    return sorting.plain_sort(x, axis % x.ndim, descending)


FUNCTIONS = {
    "take": (gather._taken, _taken, np.take), "along": (gather._along, _taken, np.take_along_axis),
    "join": (runs._joined, _joined, _concatenated),
    "sum": (scattering._summed, _summed, scattering.plain_segment_sum),
    "combine": (combining._combined, _combined, _by_numpy),
    "columns": (combining._combined_places, _columns, _by_key),
    "places": (combining._combined_places, _places, _by_key),
    "sort": (few_rows._sorted, _sorted, _in_order),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_prepared_calls_give_what_numpy_gives(name: str) -> None:
    """To the bit, of new arrays and new numbers, reading nothing beyond; or nothing."""
    way, cases, of = FUNCTIONS[name]
    few, given = Prepared(way), 0
    few.load()
    for at_end, (plain, args) in zip(itertools.cycle((False, True)), cases()):
        if plain is not of:
            continue
        with guarded.memory(at_end=at_end):
            there = [
                guarded.copy(a, at_end=at_end) if isinstance(a, np.ndarray) and a.size else a
                for a in args
            ]
            made = [few.call(*each) for each in (args, args, args, there)]
        assert made[0] is None  # nothing is prepared yet
        expected = plain(*args) if made[2] is not None else None
        for y in made[2:]:
            assert (y is None) == (expected is None)
            if y is not None and expected is not None:
                np.testing.assert_array_equal(y, expected, strict=True)
                assert y.tobytes() == expected.tobytes()
                given += 1
        with restricted():
            assert few.call(*args) is None
        if args[0].size > 1:
            strided = args[0].repeat(2, -1)[..., ::2]
            assert few.call(strided, *args[1:]) is None
    assert given > 40


def test_indices_outside_are_left_to_who_refuses_them() -> None:
    """And the next call is answered again."""
    few, x, i = Prepared(gather._taken), np.arange(9.0), np.arange(4)
    few.load()
    for shift in (0, 0, 0, 9, 0, -14, -9):
        y = few.call(x, i + shift, 0)
    np.testing.assert_array_equal(y, x[:4])
    assert few.call(x, i + 9, 0) is few.call(x, i - 14, 0) is few.call(x, i, 1 << 70) is None
    assert few.call(x.tolist(), i, 0) is few.call(x, i, (0,)) is few.call(*[x] * 10) is None


@making("x")
def _plus(x: Any, v: float, step: int, table: Any, y: Any, n: int) -> None:
    for k in range(n):
        y[k] = x[k] + v + np.float64(step) + table[0]


def test_plans_belong_to_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a plan needs stays while it is kept, arrays of calls do not; dtypes that may go are not
    known.
    """
    monkeypatch.setattr(module, "_SELDOM", 1)
    tables: list[weakref.ref[Any]] = []

    def way(x: Any, v: float, step: int) -> Plan:
        table = np.full(1, 100.0)
        tables.append(weakref.ref(table))
        return Plan(_plus, (x, v, step, table), (0, 1, None), x.shape, x.dtype)

    few = Prepared(way)
    few.load()
    arrays = [np.ones(n) for n in range(1, 2 * PLACES)]
    for x, v in itertools.product(arrays, (0.5, 1.5, 2.5)):
        y = few.call(x, v, 3)
        assert (y is None) == (v != 2.5)
        assert y is None or (y.shape == x.shape and (y == 106.5).all())
    assert 0 < sum(table() is not None for table in tables) <= PLACES
    there = weakref.ref(arrays[-1])
    del arrays, x
    gc.collect()
    assert there() is None
    odd = np.ones(5, np.dtype("f8", metadata={"unit": "m"}))
    assert not any(few.call(odd, 1.0, 3) is not None for _ in range(4))


def test_shapes_that_come_once_prepare_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost a look, as most do where nearly all are new, and arrays that are large before
    blocks are ours.
    """
    asked: list[Any] = []
    few = Prepared(lambda x, axis: asked.append(x))
    few.load()
    for n in range(1, 50):
        assert few.call(np.ones(n), 0) is None
    assert not asked
    for n in range(1, 4 * PLACES):
        assert few.call(np.ones(n), 0) is few.call(np.ones(n), 0) is None
    assert PLACES < len(asked) < PLACES + 50
    monkeypatch.setattr(module, "is_serving", lambda: False)
    join = Prepared(runs._joined)
    join.load()
    x = np.ones(5000)
    assert all(join.call(x, x, 0) is None for _ in range(4))
    monkeypatch.undo()
    monkeypatch.setattr(module, "is_serving", lambda: True)
    assert [join.call(x, x, 0) is not None for _ in range(2)] == [False, True]
