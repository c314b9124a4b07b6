"""Reductions of few columns: NumPy's results, sums and products bit for bit."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import funct as ft
import funct.array as xp
from funct.device import assemble, host
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.reductions import columns, short_rows
from funct.kernels.reductions import statistical
from funct.kernels.table import restricted
from tests import guarded
from tests.kernels.arrays import SPECIAL, forget

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

NAMES = ("sum", "prod", "max", "min", "any", "all")
DTYPES = (
    "bool", "uint8", "int8", "int32", "int64", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
COLUMNS = (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 77, 112)
ROWS = (2, 3, 5, 41)
TRUTH = ("any", "all")

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text has to pay before it is made."""
    monkeypatch.setattr(short_rows.Plan, "pays", lambda *_: True)


def numbers(shape: tuple[int, ...], dtype: str, kind: str) -> Any:
    rng = np.random.default_rng(shape[-1])
    if dtype[0] == "c":
        part = f"float{int(dtype[7:]) // 2}"
        z = np.empty(shape, dtype)
        z.real, z.imag = numbers(shape, part, kind), numbers(shape, part, kind)[::-1]
        return z
    if dtype[0] != "f":
        x = rng.integers(0 if dtype[0] in "ub" else -99, 99, shape).astype(dtype)
    else:
        x = rng.normal(size=shape).astype(dtype)
        if kind == "special":
            x = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), x).astype(dtype)
    if kind == "few":
        x = (rng.random(shape) < 1 / shape[0]).astype(dtype)
        x[..., 0], x[..., 1] = -x[..., -1] * 0 if dtype[0] == "f" else 0, 1
    return x


def assert_bits(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected, strict=True)
    if expected.dtype.kind in "fc":
        parts = [np.ascontiguousarray(a).view(expected.real.dtype) for a in (found, expected)]
        real = ~np.isnan(parts[1])
        assert parts[0][real].tobytes() == parts[1][real].tobytes()


@pytest.mark.pairwise(
    where=lambda name, dtype, **_: name == "sum" if dtype[0] == "c"
    else dtype != "bool" or name not in ("max", "min")
)  # fmt: skip
@pytest.mark.parametrize("kind", ["any", "few", "special"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_columns_have_numpys_bits(name: str, dtype: str, kind: str) -> None:
    for k, n in enumerate(COLUMNS):
        kind_of_sum = np.dtype(f"f{np.dtype(dtype).itemsize // 2}") if dtype[0] == "c" else dtype
        if columns._plan(name, np.dtype(kind_of_sum), n * (2 if dtype[0] == "c" else 1)) is None:
            assert n > 16
            continue
        for rows in ROWS:
            raw = numbers((rows, n), dtype, kind)
            expected = getattr(raw, name)(0)
            with guarded.memory(at_end=bool(k % 2)):
                x = guarded.copy(raw, at_end=bool(k % 2))
                found = columns.of_few_columns(name, x, 0, False)
                assert found is not None
                if name in ("sum", "prod"):
                    assert_bits(found, expected)
                else:
                    np.testing.assert_array_equal(found, expected, strict=True)


def test_shapes_are_numpys() -> None:
    rng = np.random.default_rng(0)
    for shape in ((3, 7, 5), (6, 4, 3, 5), (2, 3, 1, 4), (0, 3, 5)):
        x = rng.normal(size=shape)
        for axis in (0, 1, (1,), -2, (0, 1), (1, 0), (-3, -2)):
            for keepdims in (False, True):
                found = columns.of_few_columns("sum", x, axis, keepdims)
                if found is not None:
                    assert_bits(found, np.add.reduce(x, axis, keepdims=keepdims))
    assert columns.of_few_columns("sum", rng.normal(size=(3, 7, 5)), (1, 0), True) is not None


def test_the_rest_is_left_to_numpy() -> None:
    x = np.ones((40, 5))
    assert columns.of_few_columns("sum", x, 0, False) is not None
    for axis in (1, -1, None, (0, 1), (), 2, -3, (0, 0), True):
        assert columns.of_few_columns("sum", x, axis, False) is None
    assert columns.of_few_columns("sum", np.ones((4, 5, 6)), (0, 2), False) is None
    for a in (
        x[0], x.T, x[:, ::2], x[::2], np.ones((1, 5)), np.ones((0, 5)), np.ones((40, 1)),
        np.ones((40, 0)), np.ones((4, 1000)), x.astype(np.float16), x.astype(">f8"),
    ):  # fmt: skip
        assert columns.of_few_columns("sum", a, 0, False) is None
    assert columns.of_few_columns("prod", x.astype(complex), 0, False) is None
    with restricted():
        assert columns.of_few_columns("sum", x, 0, False) is None


def test_threads_change_nothing() -> None:
    x = np.random.default_rng(0).normal(size=(20, 1000, 7))
    for name in NAMES:
        found = []
        for threads in (1, 2):
            with ft.config.using(threads=threads):
                found.append(columns.of_few_columns(name, x, 1, False))
        assert found[0].tobytes() == found[1].tobytes()
        np.testing.assert_array_equal(found[0], getattr(x, name)(1), strict=True)


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("name", NAMES)
def test_narrower_vectors_give_the_same(
    name: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).normal(size=(41, 13)).astype(np.float32)
    expected = columns.of_few_columns(name, x, 0, False)
    narrow = replace(host(), vector_bytes=width, features=frozenset({"avx2", "fma"}))
    code = assemble(columns.text(name, "f32", 13, narrow))
    found = np.empty_like(expected)
    job = np.array((x.ctypes.data, found.ctypes.data, 1, 1, 41))
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("reduce"))(job.ctypes.data)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_arrays_take_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.asarray(np.random.default_rng(0).normal(size=(400, 7)))
    fun = getattr(xp, name)
    forget(monkeypatch)
    stacked = ft.vmap(lambda a: fun(a, axis=0))(x.reshape(4, 100, 7))
    monkeypatch.setattr(statistical, "of_few_columns", lambda *_: None)
    expected = fun(x.reshape(4, 100, 7), axis=1)
    np.testing.assert_array_equal(stacked.data, expected.data, strict=True)
    monkeypatch.setattr(statistical, "of_few_columns", lambda *_: np.zeros(()))
    assert fun(x, axis=0).shape == ()
