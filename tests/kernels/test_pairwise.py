"""Sums of many numbers: NumPy's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import funct as ft
import funct.array as xp
from funct.device import host
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.reductions import pairwise
from funct.kernels.reductions import statistical
from funct.kernels.table import restricted
from tests import guarded
from tests.kernels.arrays import forget

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

LENGTHS = (
    129, 130, 135, 136, 137, 200, 255, 256, 257, 271, 272, 300, 391, 480, 487, 488, 489, 504, 511,
    512, 513, 520, 1000, 1025, 4099, 16_391,
)  # fmt: skip

DTYPES = (
    "bool", "uint8", "int8", "int32", "int64", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    """Of all sizes, so that every order has other bits."""
    rng = np.random.default_rng(shape[-1])
    kind = np.dtype(dtype)
    if kind.kind == "c":
        z = np.empty(shape, kind)
        z.real, z.imag = numbers(shape, z.real.dtype), numbers((2, *shape), z.real.dtype)[1]
        return z
    if kind.kind != "f":
        return rng.integers(0 if kind.kind in "ub" else -100, 100, shape).astype(kind)
    return (rng.normal(size=shape) * np.exp(5 * rng.normal(size=shape))).astype(kind)


def other_terms(x: Any, axis: Any) -> list[tuple[str, Any, Any]]:
    """What else is summed of floats: its name, the means that it asks for, and all of it."""
    if x.dtype.kind != "f":
        assert pairwise.of_long_rows(x, axis, False, "squares") is None
        return []
    means = np.asarray(x.mean(axis, keepdims=True) * 3)
    return [
        ("squares", None, np.square(x)), ("deviations", means, np.square(x - means)),
        ("numbers", None, x),
    ]  # fmt: skip


def assert_bits(found: Any, expected: Any) -> None:
    assert type(found) is np.ndarray
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_sums_have_numpys_bits(n: int, dtype: Any) -> None:
    for shape, axis in (
        ((n,), 0), ((n,), None), ((3, n), 1), ((3, n), None), ((2, n), (0, 1)), ((2, 3, n), (2,)),
    ):  # fmt: skip
        raw = numbers(shape, dtype)
        for keepdims in (False, True):
            expected = np.add.reduce(raw, axis, None, None, keepdims)
            with guarded.memory(at_end=keepdims):
                x = guarded.copy(raw, at_end=keepdims)
                assert_bits(pairwise.of_long_rows(x, axis, keepdims), expected)
                for terms, means, made in other_terms(raw, axis):
                    plain = np.add.reduce(made, axis, None, None, keepdims)
                    assert_bits(pairwise.of_long_rows(x, axis, keepdims, terms, means), plain)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_sums_of_pieces_have_numpys_bits(dtype: str) -> None:
    """Around the lengths at which pieces are four blocks, and are so many that they are halved."""
    vectors = {v << k for k in range(8) for v in (33, 34, 60, 61, 63, 64)}
    terms = {8 * v + more for v in vectors for more in (-1, 0, 1, 8)}
    x = numbers((max(terms),), dtype)
    for n in terms:
        row = x[: n // (2 if x.dtype.kind == "c" else 1)]
        assert_bits(pairwise.of_long_rows(row, None, False), np.add.reduce(row))


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(65_535,), (65_536,), (131_077,), (300_001,), (3, 70_001), (2, 3, 66_000)]
)
@pytest.mark.parametrize("cores", [2, 8])
def test_parts_of_few_long_rows_change_no_bit(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: Any, cores: int
) -> None:
    """On any number of threads, and for any number of parts."""
    monkeypatch.setattr(pairwise, "_PART", 1 << 14)
    monkeypatch.setattr(pairwise, "host", lambda: replace(host(), cores=cores))
    pairwise._plan.cache_clear()
    x = numbers(shape, dtype)
    for axis, keepdims in ((None, False), (-1, True)):
        expected = np.add.reduce(x, axis, None, None, keepdims)
        for threads in (1, 2, 3):
            with ft.config.using(threads=threads):
                assert_bits(pairwise.of_long_rows(x, axis, keepdims), expected)
        for terms, means, made in other_terms(x, axis):
            plain = np.add.reduce(made, axis, None, None, keepdims)
            assert_bits(pairwise.of_long_rows(x, axis, keepdims, terms, means), plain)


@pytest.mark.parametrize("value", [-0.0, np.nan, np.inf, 1e-320])
def test_special_values_are_summed_as_numpy_does(value: float) -> None:
    for row in (
        np.full(300, value),
        np.r_[np.ones(299), value],
        np.r_[-np.inf, np.ones(299), value],
    ):
        with np.errstate(invalid="ignore"):
            expected = np.add.reduce(row)
        found = pairwise.of_long_rows(row, None, False)
        np.testing.assert_array_equal(found, expected)
        assert np.isnan(found) or np.signbit(found) == np.signbit(expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_no_number_counts_as_none(dtype: str) -> None:
    """In each place of a block, in all of a row, and beside infinities."""
    for n in (129, 300, 487, 1000):
        x = numbers((9, n), dtype)
        for k in range(7):
            x[k, k::7] = np.nan
        x[7], x[8, 5] = np.nan, -np.inf
        kept = np.where(np.isnan(x), x.dtype.type(0), x)
        assert_bits(pairwise.of_long_rows(x, 1, False, "numbers"), np.add.reduce(kept, 1))


def test_the_rest_is_left_to_numpy() -> None:
    x = np.ones((300, 300))
    assert pairwise.of_long_rows(x, 1, False) is not None
    for axis in ((), (0, 1), (0, 0), 1, -2, [0], True):
        assert pairwise.of_long_rows(x.reshape(-1), axis, False) is None
    for axis in (0, (0,), (), -2, (0, 0), (1, 2), (-1, -1), 2):
        assert pairwise.of_long_rows(x, axis, False) is None
    for a in (
        x.T, x[:, ::2], np.ones((300, 128)), x.astype(np.int16), x.astype(">f8"), x.astype(">c8"),
        x.astype(np.float16), np.float64(2),
    ):  # fmt: skip
        assert pairwise.of_long_rows(np.asarray(a), -1, False) is None
    with restricted():
        assert pairwise.of_long_rows(x, 1, False) is None


def test_threads_change_nothing() -> None:
    x = numbers((40, 5000), np.float32)
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            assert_bits(pairwise.of_long_rows(x, 1, False), np.add.reduce(x, 1))


@pytest.mark.parametrize("name", ["sum", "mean", "var"])
def test_functions_of_arrays_take_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.asarray(numbers((3, 30_000), np.float64))
    found = [getattr(xp, name)(x, axis=axis).data for axis in (None, 1)]
    calls = []
    forget(monkeypatch)
    monkeypatch.setattr(statistical, "of_long_rows", lambda *a: calls.append(a))
    for y, axis in zip(found, (None, 1), strict=True):
        np.testing.assert_array_equal(y, getattr(xp, name)(x, axis=axis).data, strict=True)
    assert len(calls) >= 2
