"""Reductions of short rows: NumPy's results, sums bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.reductions import long_rows, short_orders, short_rows
from funct.kernels.cpu.reductions.segments import FACTORS
from funct.kernels.order import sorting
from funct.kernels.order.sorting import plain_argsort, plain_sort
from funct.kernels.reductions import statistical
from funct.kernels.table import restricted
from tests import guarded
from tests.kernels.arrays import SPECIAL, forget

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

NAMES = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float32", "float64")
LENGTHS = (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 33, 63, 64, 65, 100, 127, 128)
ROWS = 41

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text has to pay before it is made."""
    monkeypatch.setattr(short_rows.Plan, "pays", lambda *_: True)


def numbers(n: int, dtype: str, kind: str) -> Any:
    rng = np.random.default_rng(n)
    if dtype[0] != "f":
        x = rng.integers(0 if dtype[0] in "ub" else -99, 99, (ROWS, n)).astype(dtype)
    else:
        x = rng.normal(size=(ROWS, n)).astype(dtype)
        if kind == "special":
            x = np.where(rng.random(x.shape) < 0.2, rng.choice(SPECIAL, x.shape), x).astype(dtype)
    if kind == "few":
        x = (rng.random(x.shape) < 1 / n).astype(dtype)
        x[0], x[1] = -x[2] * 0 if dtype[0] == "f" else 0, 1
    return x


@pytest.mark.pairwise(
    where=lambda name, dtype, **_: dtype != "bool" or name in ("sum", "prod", "any", "all")
)
@pytest.mark.parametrize("kind", ["any", "few", "special"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_rows_have_numpys_bits(name: str, dtype: str, kind: str) -> None:
    for k, n in enumerate(LENGTHS):
        if n > short_rows._MOST.get(name, 128):
            continue
        raw = numbers(n, dtype, kind)
        expected = {name: getattr(raw, name)(1)}
        if name == "prod" and dtype[0] == "f" and n > FACTORS:  # in the order of long rows
            expected = {name: long_rows.of_runs(name, raw, 1, False)}
        if name == "sum" and dtype[0] == "f":
            expected["squares"] = np.square(raw).sum(1)
            expected["numbers"] = np.where(np.isnan(raw), raw.dtype.type(0), raw).sum(1)
        for each, plain in expected.items():
            with guarded.memory(at_end=bool(k % 2)):
                x = guarded.copy(raw, at_end=bool(k % 2))
                found = short_rows.of_short_rows(each, x, 1, False)
                assert found is not None
                np.testing.assert_array_equal(found, plain, strict=True)
            if name in ("sum", "prod") and dtype[0] == "f":
                real = ~np.isnan(plain)
                assert found[real].tobytes() == plain[real].tobytes()


@pytest.mark.parametrize("shape", [(40, 3, 3), (6, 5, 7, 7), (3, 129, 5), (2, 2, 90, 20)])
@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "float64", "complex64"])
def test_several_last_axes_are_one(dtype: str, shape: tuple[int, ...]) -> None:
    """With NumPy's bits, where they lie in C's order, and where they do not."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    names = ("sum", "any", "all") if dtype[0] in "bc" else ("sum", "max", "min", "any", "all")
    for name in names:
        for axes in ((-2, -1), (x.ndim - 1, x.ndim - 2), tuple(range(1, x.ndim)), (0, -1)):
            for v in (x, np.asfortranarray(x), x[:, ::-1]):
                for keepdims in (False, True):
                    found = getattr(xp, name)(xp.asarray(v), axis=axes, keepdims=keepdims)
                    expected = getattr(np, name)(v, axis=axes, keepdims=keepdims)
                    np.testing.assert_array_equal(found.data, expected, strict=True)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sums_of_complex_rows_have_numpys_bits(dtype: str) -> None:
    for n in [n for n in LENGTHS if n <= 64]:
        raw = np.empty((ROWS, n), dtype)
        raw.real = numbers(n, raw.real.dtype.name, "any")
        raw.imag = numbers(n, raw.real.dtype.name, "few")[::-1]
        expected = raw.sum(1)
        with guarded.memory(at_end=True):
            found = short_rows.of_short_rows("sum", guarded.copy(raw, at_end=True), 1, False)
        assert found is not None
        assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())
    whole = np.random.default_rng(0).normal(size=(60, 60)).view(complex)
    x = whole[:, 3:14]
    assert short_rows.of_short_rows("sum", x, 1, False).tobytes() == x.sum(1).tobytes()


@pytest.mark.parametrize("kind", ["any", "few", "special"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_rows_are_in_stable_order(descending: bool, dtype: str, kind: str) -> None:
    for k, n in enumerate((2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 31)):
        raw = numbers(n, dtype, kind)
        for name, plain in (("sort", plain_sort), ("argsort", plain_argsort)):
            if n > short_orders.longest(name, short_rows.ELEMENTS[raw.dtype]):
                continue
            with guarded.memory(at_end=bool(k % 2)):
                x = guarded.copy(raw, at_end=bool(k % 2))
                full = name + short_orders.DESCENDING if descending else name
                found = short_rows.of_short_rows(full, x, 1, False)
                expected = plain(raw, 1, descending)
                np.testing.assert_array_equal(found, expected, strict=True)
                if dtype[0] == "f":
                    real = ~np.isnan(expected)
                    np.testing.assert_array_equal(
                        np.signbit(found[real]), np.signbit(expected[real])
                    )


def test_functions_of_arrays_sort_short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.asarray(np.random.default_rng(0).normal(size=(400, 7)))
    for descending in (False, True):
        for fun in (xp.sort, xp.argsort):
            found = fun(x, axis=1, descending=descending).data
            expected = [np.asarray(fun(row, descending=descending).data) for row in x]
            np.testing.assert_array_equal(found, expected)
            with monkeypatch.context() as m:
                m.setattr(sorting, "of_short_rows", lambda *_: np.zeros(()))
                assert fun(x, axis=1, descending=descending).shape == ()


def test_shapes_are_numpys() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 0, 5))
    y = np.random.default_rng(0).normal(size=(3, 7, 5))
    for a in (x, y):
        for axis in (-1, a.ndim - 1, (a.ndim - 1,)):
            for keepdims in (False, True):
                found = short_rows.of_short_rows("sum", a, axis, keepdims)
                expected = np.add.reduce(a, axis, keepdims=keepdims)
                np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("name", [*NAMES, "sort", "argsort"])
def test_rows_of_a_part_of_a_matrix_are_read_where_they_lie(name: str) -> None:
    whole = np.random.default_rng(0).normal(size=(60, 30)).astype(np.float32)
    for x in (whole[:, 3:14], whole[::-2, :9], whole[5::3, -12:]):
        found = short_rows.of_short_rows(name, x, 1, False)
        expected = np.sort(x, 1) if name == "sort" else getattr(x, name)(1)
        np.testing.assert_array_equal(found, expected, strict=True)
        if name == "sum":
            assert found.tobytes() == expected.tobytes()


def test_the_rest_is_left_to_numpy() -> None:
    x = np.ones((40, 50))
    assert short_rows.of_short_rows("sum", x, 1, False) is not None
    for axis in (0, None, (0, 1), (), -2):
        assert short_rows.of_short_rows("sum", x, axis, False) is None
    for a in (
        x[0], x.T, x[:, ::2], np.ones((40, 129)), np.ones((40, 1)), np.ones((40, 0)),
        np.ones((40, 65), complex), x.astype(np.float16), x.astype(">f8"), np.float64(2),
    ):  # fmt: skip
        assert short_rows.of_short_rows("sum", np.asarray(a), -1, False) is None
    assert short_rows.of_short_rows("argmax", np.ones((40, 65)), 1, False) is None
    with restricted():
        assert short_rows.of_short_rows("sum", x, 1, False) is None


def test_threads_change_nothing() -> None:
    x = np.random.default_rng(0).normal(size=(20_000, 7))
    for name in NAMES:
        found = []
        for threads in (1, 2):
            with ft.config.using(threads=threads):
                found.append(short_rows.of_short_rows(name, x, 1, False))
        assert found[0].tobytes() == found[1].tobytes()
        np.testing.assert_array_equal(found[0], getattr(x, name)(1), strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_arrays_take_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.asarray(np.random.default_rng(0).normal(size=(400, 7)))
    fun = getattr(xp, name)
    forget(monkeypatch)
    rows = ft.vmap(fun)(x)
    monkeypatch.setattr(statistical, "of_short_rows", lambda *_: None)
    expected = fun(x, axis=1)
    np.testing.assert_array_equal(rows.data, expected.data, strict=True)
    monkeypatch.setattr(statistical, "of_short_rows", lambda *_: np.zeros(()))
    assert fun(x, axis=1).shape == ft.vmap(fun)(x).shape == ()


def test_texts_are_made_once_they_have_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    x = np.ones((1000, 11))
    short_rows._plan.cache_clear()
    many = -(-short_rows._PAID // x.size)
    answers = [short_rows.of_short_rows("min", x, 1, False) is None for _ in range(many + 1)]
    assert answers == [True] * (many - 1) + [False] * 2
