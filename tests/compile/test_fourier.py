"""Fourier transforms in loops: NumPy's numbers, and no Python between the steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import why_not_fused
from tests import laws

fft = xp.fft
OF_COMPLEX: dict[str, Callable[[Any], Any]] = {
    "fft": fft.fft,
    "first axis": lambda z: fft.fft(z, axis=0),
    "inverse": lambda z: fft.ifft(z, norm="backward"),
    "ortho": lambda z: fft.fft(z, norm="ortho"),
    "forward": lambda z: fft.ifft(z, norm="forward"),
    "all axes": fft.fftn,
    "all axes back": lambda z: fft.ifftn(z, norm="ortho"),
    "irfft": fft.irfft,
    "irfft of 7": lambda z: fft.irfft(z, n=7),
    "irfftn": fft.irfftn,
    "turned": lambda z: fft.fft(xp.flip(z, axis=0).mT),
    "shorter": lambda z: fft.fft(z, n=2),
}
OF_REALS: dict[str, Callable[[Any], Any]] = {
    "rfft": fft.rfft,
    "rfft of columns": lambda x: fft.rfft(x, axis=0),
    "rfftn": lambda x: fft.rfftn(x, norm="forward"),
    "of a broadcast": lambda x: fft.rfft(xp.broadcast_to(x[:1], x.shape)),
}
SHAPES = [(8, 5), (3, 12), (1, 7), (2, 2), (4, 2, 6), (16, 64), (1, 512)]


def looped(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda xs: ft.scan(lambda c, x: (c + 1.0, f(x)), 0.0, xs)[1]


def steps_python(f: Callable[[Any], Any], *args: Any) -> bool:
    return any("Python goes through" in line for line in why_not_fused(ft.make_graph(f)(*args)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*OF_COMPLEX, *OF_REALS])
def test_loops_have_eagers_bits(name: str, dtype: str) -> None:
    f = OF_COMPLEX.get(name) or OF_REALS[name]
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        raw = rng.normal(size=(5, *shape)).astype(dtype)
        if name in OF_COMPLEX:
            kind = np.result_type(raw, np.complex64)
            raw = (raw + 1j * rng.normal(size=raw.shape)).astype(kind)
        xs, run = xp.asarray(raw), looped(f)
        found, expected = ft.jit(run)(xs), xp.stack([f(x) for x in xs])
        assert not steps_python(run, xs)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_large_ones_are_scipys() -> None:
    """Which take several lines at once: Python goes through the steps."""
    xs = xp.asarray(np.random.default_rng(0).normal(size=(3, 64, 64)) + 0j, dtype=xp.complex64)
    run = looped(fft.fftn)
    assert steps_python(run, xs)
    np.testing.assert_array_equal(ft.jit(run)(xs), xp.stack([fft.fftn(x) for x in xs]))


def split_step(psi: Any, v: Any, k: Any) -> Any:
    """A wave in a potential: half a step there, a step of free motion, half a step there."""
    turn, move = xp.exp(-0.005j * v), xp.exp(-0.01j * k * k)

    def step(p: Any, _: Any) -> Any:
        p = turn * fft.ifft(move * fft.fft(turn * p))
        return p, xp.abs(p)

    return ft.scan(step, psi, None, length=20)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_wave(dtype: str) -> None:
    """It, its gradient and a batch of it are what eager execution gives."""
    rng = np.random.default_rng(0)
    psi = xp.asarray(rng.normal(size=32) + 1j * rng.normal(size=32), dtype=dtype)
    v, k = (xp.asarray(rng.normal(size=32), dtype=xp.real(psi).dtype) for _ in range(2))
    assert not steps_python(split_step, psi, v, k)
    eps = 100 * float(np.finfo(dtype).eps)
    laws.close(ft.jit(split_step)(psi, v, k), split_step(psi, v, k), eps, eps)
    loss = lambda v: xp.sum(split_step(psi, v, k)[1] ** 2 * xp.arange(32))  # noqa: E731
    slope = ft.grad(loss)
    laws.close(ft.jit(slope)(v), slope(v), eps, 1000 * eps)
    many = ft.vmap(slope)
    laws.close(ft.jit(many)(xp.stack([v, k])), xp.stack([slope(v), slope(k)]), eps, 1000 * eps)
