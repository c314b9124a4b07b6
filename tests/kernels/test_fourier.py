"""Fourier transforms of many lines: the numbers of the definition, however they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
from funct.kernels import fft, table
from funct.kernels.cpu.fourier.line_text import steps_of
from funct.kernels.cpu.fourier.lines import along
from funct.kernels.cpu.fourier.radices import radices
from tests.kernels.arrays import misaligned

pytestmark = pytest.mark.skipif("llvm" not in table.available(), reason="llvmlite is absent")

LENGTHS = (2, 3, 4, 5, 7, 8, 9, 12, 14, 15, 16, 25, 30, 32, 42, 49, 64, 100, 105, 128, 210)
LONG = (256, 480, 512, 1000, 1536)  # of which vectors take one line at a time
PRIMES = (11, 13, 22, 31, 62, 101, 143, 242)  # what loops over roots make
OTHERS = (1, 257, 514)  # which no radix makes


@given(
    n=st.sampled_from(LENGTHS + LONG + PRIMES + OTHERS), before=st.sampled_from([1, 4, 5, 9, 17]),
    after=st.sampled_from([1, 1, 3, 4, 11, 16]), dtype=st.sampled_from("fdFD"),
    name=st.sampled_from(["fft", "ifft", "rfft", "irfft"]), norm=st.sampled_from(fft._NORMS),
    lies=st.sampled_from(["dense", "backwards", "columns", "misaligned"]), seed=st.integers(0, 99),
)  # fmt: skip
def test_lines_have_the_numbers_of_the_definition(
    n: int, before: int, after: int, dtype: str, name: str, norm: Any, lies: str, seed: int
) -> None:
    """Or are left to others: lengths with large factors, and few lines. No result has to do with
    how the array lies, or with how many threads there are.
    """
    rng = np.random.default_rng(seed)
    real = np.dtype(dtype.lower())
    x = rng.normal(size=(before, n // 2 + 1 if name == "irfft" else n, after))
    x = (x + 1j * rng.normal(size=x.shape)).astype(real.char.upper())
    x = x.real.copy() if dtype in "fd" else x
    how = {"backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1], "columns": np.asfortranarray}
    given_ = misaligned(x) if lies == "misaligned" else how.get(lies, np.array)(x)
    found = along(name, given_, (n,), (1,), norm)
    if found is NotImplemented:
        few = max(before, after) < 16
        wrong = (name == "rfft" and dtype in "FD") or (name == "irfft" and dtype in "fd")
        assert wrong or n in OTHERS or n < 8 or few or n // 2 in OTHERS
        return
    wide = x.astype(np.result_type(x, np.float64))
    expected = getattr(np.fft, name)(wide, n, axis=1, norm=norm)
    assert found.dtype == (real if name == "irfft" else np.dtype(real.char.upper()))
    assert found.shape == expected.shape
    near = 4 * float(np.finfo(real).eps) * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=near)
    with ft.config.using(threads=1):
        assert along(name, x, (n,), (1,), norm).tobytes() == found.tobytes()


@pytest.mark.parametrize("n", [8192, 10_000, 1 << 17])
@pytest.mark.parametrize("dtype", "FD")
def test_a_long_line_has_the_numbers_of_the_definition(n: int, dtype: str) -> None:
    """And its own real numbers back; a program leaves it to the eager call."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(dtype)
    real = x.real.copy()
    expected = np.fft.fft(x.astype("D"))
    near = 4 * float(np.finfo(dtype).eps) * np.abs(expected).max()
    found = along("fft", x, (None,), (0,), "backward")
    np.testing.assert_allclose(found, expected, rtol=0, atol=near)
    half = along("rfft", real, (None,), (0,), "backward")
    np.testing.assert_allclose(half, np.fft.rfft(real.astype("d")), rtol=0, atol=near)
    back = along("irfft", half, (n,), (0,), "backward")
    np.testing.assert_allclose(back, real, rtol=0, atol=16 * float(np.finfo(dtype).eps))
    compiled = ft.jit(ft.array.fft.fft)(ft.array.asarray(x))
    assert np.asarray(compiled).tobytes() == found.tobytes()


def test_what_leaves_the_caches_is_no_line_for_vectors() -> None:
    """Nor is one in whose length there is a large factor."""
    for n in (1 << 19, 257 << 8):
        x = np.zeros(n, np.complex64)
        assert along("fft", x, (None,), (0,), "backward") is NotImplemented


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_several_axes_are_taken_one_by_one(dtype: str) -> None:
    """Those of real numbers where all of them are of lines."""
    x = np.random.default_rng(0).normal(size=(16, 30, 20)).astype(dtype)
    one = along("fft", along("fft", x, (None,), (2,), "ortho"), (None,), (0,), "ortho")
    assert along("fft", x, (16, 20), (0, 2), "ortho").tobytes() == one.tobytes()
    assert fft.fftn(x, None, (0, 2), "ortho").tobytes() == one.tobytes()
    wide = np.zeros((16, 2, 257), dtype)  # a prime that is too large
    assert along("fft", wide, (16, 257), (0, 2), "ortho") is NotImplemented
    other = x.astype(x.dtype.newbyteorder())
    assert along("fft", other, (None,), (2,), "ortho") is NotImplemented


@pytest.mark.parametrize("n", LENGTHS + LONG + PRIMES)
def test_passes_make_the_line_and_are_few(n: int) -> None:
    """Two fours stand for an eight and a two."""
    found = [s.radix for s in steps_of(n) or ()]
    assert np.prod(found) == n
    assert not {2, 8} <= set(found)
    assert found.count(4) <= 2 or 8 not in radices()
