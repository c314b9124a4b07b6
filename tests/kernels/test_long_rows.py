"""Reductions of long rows: NumPy's extrema and integers, products of floats within rounding."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import funct as ft
from funct.device import assemble, host
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.reductions import long_rows
from funct.kernels.reductions import statistical
from funct.kernels.table import restricted
from tests import guarded
from tests.kernels.arrays import SPECIAL

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")

NAMES = {"prod": statistical.product, "max": statistical.most, "min": statistical.least}
DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "float64",
)  # fmt: skip
SHAPES = ((2100,), (65, 33), (16, 129), (7, 333), (3, 5, 260), (2, 140_000))


def numbers(shape: tuple[int, ...], dtype: str, name: str) -> Any:
    rng = np.random.default_rng(shape[-1])
    if dtype[0] != "f":
        return (rng.integers(0 if dtype[0] in "ub" else -99, 99, shape) | 1).astype(dtype)
    if name == "prod":  # the product of any of them is none that is too large or too small
        return (rng.choice([-1, 1], shape) * np.exp(rng.normal(size=shape) / 100)).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_reduced_as_numpy_does(dtype: str, name: str) -> None:
    """Over the last axis and over all; nothing outside is touched."""
    for n, shape in enumerate(SHAPES):
        if shape[-1] <= long_rows.shortest(name, np.dtype(dtype)):
            continue
        raw = numbers(shape, dtype, name)
        for axis, keepdims in ((-1, False), (None, True), ((len(shape) - 1,), True)):
            with restricted("numpy"):
                expected = np.asarray(NAMES[name](raw, axis, keepdims))
            with guarded.memory(at_end=bool(n % 2)):
                x = guarded.copy(raw, at_end=bool(n % 2))
                found = long_rows.of_runs(name, x, axis, keepdims)
            if dtype == "bool" and name != "prod":
                assert found is None
                continue
            found = np.asarray(found)
            if name == "prod" and dtype[0] == "f":
                count = raw.size if axis is None else shape[-1]
                close = {"rtol": count * np.finfo(dtype).eps, "atol": 0}
                np.testing.assert_allclose(found, expected, strict=True, **close)
            else:
                np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_products_of_complex_numbers(dtype: str) -> None:
    """Within what a product of so many rounds; nothing outside is touched."""
    unit = np.finfo(dtype).eps
    for n, shape in enumerate(SHAPES):
        if shape[-1] <= long_rows.shortest("prod", np.dtype(dtype)):
            continue
        rng = np.random.default_rng(n)
        raw = np.exp(rng.normal(size=shape) / 100 + 1j * rng.uniform(-3, 3, shape)).astype(dtype)
        for axis in (-1, None):
            expected = np.prod(raw.astype(np.clongdouble), axis)
            with guarded.memory(at_end=bool(n % 2)):
                found = long_rows.of_runs(
                    "prod", guarded.copy(raw, at_end=bool(n % 2)), axis, False
                )
            assert found.dtype == raw.dtype
            count = raw.size if axis is None else shape[-1]
            assert np.all(np.abs(found - expected) <= 3 * count * unit * np.abs(expected))
    assert long_rows.of_runs("max", np.ones(5000, dtype), None, False) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_numbers(dtype: str) -> None:
    """One in any place of a row of ones decides as it does in NumPy."""
    for value in SPECIAL:
        for place in (0, 7, 70, 255, 299, 332):
            x = np.ones((7, 333), dtype)
            x[::2, place] = value
            for name, plain in NAMES.items():
                with restricted("numpy"):
                    expected = plain(x, -1, False)
                np.testing.assert_array_equal(long_rows.of_runs(name, x, -1, False), expected)


def test_what_is_left_to_numpy() -> None:
    x = np.ones((40, 200))
    for a, axis in (
        (x, 0), (x, (0,)), (x, 2), (x, ()), (x.T, 0), (x[:, ::2], 1), (x[:, :128].copy(), 1),
        (x[:2], 1), (x.astype(complex), 1), (x.astype("f2"), 1),
    ):  # fmt: skip
        assert long_rows.of_runs("max", a, axis, False) is None
    assert long_rows.of_runs("max", x, 1, False) is not None


@pytest.mark.parametrize("name", NAMES)
def test_threads_change_no_bit(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(3, 400_000)) / 8 + 1
    found = []
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            found.append(long_rows.of_runs(name, x, 1, False))
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("name", NAMES)
def test_narrower_vectors(name: str, width: int) -> None:
    """Extrema are the same; of factors that are powers of two products are, too."""
    x = 2.0 ** np.random.default_rng(0).integers(-3, 4, (4, 517)).astype(np.float32)
    narrow = replace(host(), vector_bytes=width, features=frozenset({"avx2", "fma"}))
    code = assemble(long_rows.text(name, "f32", narrow))
    found = np.empty(4, np.float32)
    to = found.ctypes.data
    job = np.array((x.ctypes.data, to, to, 1, 4, 1, 517, 517))
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("reduce"))(job.ctypes.data)
    np.testing.assert_array_equal(found, long_rows.of_runs(name, x, 1, False))
