"""Reductions of many columns: NumPy's results, sums and products bit for bit."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import funct as ft
from funct.device import assemble, host
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.reductions import wide_columns as cpu
from funct.kernels.reductions import statistical
from funct.kernels.table import restricted
from tests import guarded
from tests.kernels.arrays import SPECIAL

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")

DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
SHAPES = ((49, 1024), (5, 1100), (41, 700), (41, 701), (3, 9, 513), (2, 5, 4, 600))
NAMES = {
    "sum": statistical.total, "prod": statistical.product, "max": statistical.most,
    "min": statistical.least, "any": statistical.some, "all": statistical.every,
}  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(shape[-1])
    if dtype[0] == "c":
        part = f"float{int(dtype[7:]) // 2}"
        return numbers((*shape[:-1], 2 * shape[-1]), part).view(dtype)
    if dtype[0] != "f":
        return rng.integers(0 if dtype[0] in "ub" else -99, 99, shape).astype(dtype)
    x = rng.normal(size=shape).astype(dtype)
    x = np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), x).astype(dtype)
    x[..., 0] = -0.0
    return x


def known(name: str, dtype: str) -> bool:
    """Whether columns of these are reduced here."""
    if dtype[0] in "bc":
        return name in ("sum", "prod", "any", "all") if dtype == "bool" else name == "sum"
    return name not in ("any", "all")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_are_reduced_as_numpy_does(
    dtype: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over any axis but the last, all rows at a time and some, and nothing outside is touched;
    equal zeros count as one.
    """
    for n, shape in enumerate(SHAPES):
        monkeypatch.setattr(cpu, "_NEAR", 1 << 18 if n % 2 else 0)
        cpu._plan.cache_clear()
        raw, axis = numbers(shape, dtype), len(shape) - 2
        for a, keepdims in ((axis, False), (-2, True), ((axis,), False)):
            with restricted("numpy"):
                expected = NAMES[name](raw, a, keepdims)
            with guarded.memory(at_end=bool(n % 2)):
                x = guarded.copy(raw, at_end=bool(n % 2))
                found = cpu.of_many_columns(name, x, a, keepdims)
            if not known(name, dtype):
                assert found is None
                continue
            np.testing.assert_array_equal(found, expected, strict=True)
            if name in ("sum", "prod") and dtype[0] in "fc":
                real = expected.real.dtype
                found, expected = (np.ascontiguousarray(v).view(real) for v in (found, expected))
                right = ~np.isnan(expected)
                assert found[right].tobytes() == expected[right].tobytes()


def test_what_is_left_to_numpy() -> None:
    """The last axis, few rows or columns, other dtypes, and what is not dense."""
    x = np.ones((300, 333))
    several = (
        ("sum", x, 1), ("sum", x, 2), ("sum", x, -3), ("sum", x, None), ("sum", x, (0, 1)),
        ("any", x, 0), ("sum", x[:3], 0), ("sum", x[:, :8], 0), ("sum", x.T, 0),
        ("sum", np.ones((1100, 333), np.float16), 0), ("prod", x.astype("c8"), 0),
        ("sum", x[:9, :9], 0),
    )  # fmt: skip
    for name, a, axis in several:
        assert cpu.of_many_columns(name, a, axis, False) is None
    assert cpu.of_many_columns("sum", x, 0, False) is not None


def test_threads_change_nothing() -> None:
    x = np.random.default_rng(0).normal(size=(3, 100, 700))
    for name in ("sum", "prod", "max", "min"):
        found = []
        for threads in (1, 2):
            with ft.config.using(threads=threads):
                found.append(cpu.of_many_columns(name, x, 1, False))
        assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_narrower_vectors_give_the_same(name: str, width: int) -> None:
    x = np.random.default_rng(0).normal(size=(41, 333)).astype(np.float32)
    expected = cpu.of_many_columns(name, x, 0, False)
    narrow = replace(host(), vector_bytes=width, features=frozenset({"avx2", "fma"}))
    code = assemble(cpu.text(name, "f32", narrow))
    found = np.empty_like(expected)
    strips = -(-333 // (2 * width))
    job = np.array((x.ctypes.data, found.ctypes.data, 1, 1, 41, 333, strips, strips, 7))
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("reduce"))(job.ctypes.data)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_transposes_are_reduced_as_numpy_does(name: str) -> None:
    """As the array lies behind them, over any axes, and laid out as NumPy's results are."""
    theirs = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[name]
    x = numbers((20, 30, 40), "float32").T
    for axis in (None, 0, 1, -1, (0, 1), (-1, 1), (0, 2)):
        for keepdims in (False, True):
            found = NAMES[name](x, axis, keepdims)
            expected = theirs.reduce(x, axis, keepdims=keepdims)
            np.testing.assert_array_equal(found, expected, strict=True)
