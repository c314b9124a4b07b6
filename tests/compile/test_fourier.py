"""Fourier transforms in loops: NumPy's numbers, and no Python between the steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import why_not_fused
from funct.kernels.fft import LINES
from tests import laws
from tests.compile.test_windows import looped, steps_python

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


@pytest.mark.in_turn
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


LONG = [(64, 64), (60, 70), (100, 33), (37, 128), (8, 8, 49), (5, 512), (1024, 20), (16, 30, 16),
        (2, 3, 1024), (3, 81, 27)]  # fmt: skip


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", LONG)
@pytest.mark.parametrize("way", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("norm", ["backward", "ortho"])
def test_many_lines_are_lanes_of_vectors(
    shape: tuple[int, ...], dtype: str, way: str, norm: str
) -> None:
    """They are as near to the exact numbers as NumPy's, along each axis, there and back, and have
    the bits of eager calls, whose text is told the length.
    """
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(3, *shape)) + 1j * rng.normal(size=(3, *shape))).astype(dtype)
    x = x.real if way == "rfft" else x
    ours, theirs = getattr(fft, way), getattr(np.fft, way)
    for axis in range(-len(shape), 0):
        f = lambda z, axis=axis: ours(z, axis=axis, norm=norm)  # noqa: E731
        exact = theirs(x.astype(np.result_type(x, np.float64)), axis=axis, norm=norm)
        xs, run = xp.asarray(x), repeated(f)
        found = ft.jit(run)(xs)
        assert found.dtype == f(xs[0]).dtype
        near = 4 * float(np.finfo(dtype).eps) * abs(exact).max()
        laws.close(np.asarray(found), exact.astype(found.dtype), 0, near)
        if x[0].size >= LINES:
            np.testing.assert_array_equal(found, xp.stack([f(one) for one in xs]))


def repeated(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A loop that is long enough to be machine code, and gives what `looped` does."""

    def run(xs: Any) -> Any:
        found = ft.scan(lambda c, k: (c, f(xs[k % 3])), 0.0, xp.arange(48))[1]
        return found[-3:]

    return run


@pytest.mark.parametrize("threads", [1, 2])
def test_spectra_of_planes_need_no_python(threads: int) -> None:
    """A step of a flow on a square of 64 by 64: transforms of both axes, and their gradient."""
    rng = np.random.default_rng(0)
    u = xp.asarray(rng.normal(size=(64, 64)), dtype="float32")
    k = xp.asarray(np.fft.fftfreq(64, 1 / 64), dtype="float32")

    def flow(u: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            v, slope = xp.real(fft.ifft2(h)), xp.real(fft.ifft2(1j * k * h))
            h = (h - 0.001 * fft.fft2(v * slope)) / (1 + 1e-4 * (k * k + k[:, None] ** 2))
            return h, xp.mean(v * v)

        h, energy = ft.scan(step, fft.fft2(u), None, length=20)
        return xp.real(fft.ifft2(h)), energy

    loss = lambda u: xp.sum(flow(u)[0] ** 2) + xp.sum(flow(u)[1])  # noqa: E731
    assert not steps_python(flow, u)
    assert not steps_python(repeated(fft.fft2), xp.stack([u, u, u]) + 0j)
    with ft.config.using(threads=threads):
        laws.close(ft.jit(flow)(u), flow(u), 1e-4, 1e-5)
        laws.close(ft.jit(ft.grad(loss))(u), ft.grad(loss)(u), 1e-3, 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_programs_hold_transforms_of_many_lines(dtype: str) -> None:
    """Outside of loops too, with what is computed between them; others are called as they were."""
    rng = np.random.default_rng(0)
    x, h = (xp.asarray(rng.normal(size=(2, 60, 50)), dtype=dtype) for _ in range(2))
    eps = 20 * float(np.finfo(dtype).eps)

    def filtered(x: Any, h: Any) -> Any:
        z = fft.fftn(x * h, axes=(-2, -1)) * h
        return xp.real(fft.ifftn(z, axes=(-2, -1))), fft.irfft(fft.rfft(x) * 2.0j, n=50), xp.abs(z)

    def loss(x: Any, h: Any) -> Any:
        return sum([xp.sum(v * v) for v in filtered(x, h)])

    reasons = [r for r in why_not_fused(ft.make_graph(filtered)(x, h)) if "fft" in r]
    assert len(reasons) == 4
    assert all("within the same program" in r for r in reasons)
    for f in (filtered, ft.grad(loss, (0, 1)), ft.vmap(filtered)):
        for a, b in zip(ft.jit(f)(x, h), f(x, h), strict=True):
            assert a.dtype == b.dtype
            laws.close(a, b, eps, eps * float(xp.max(xp.abs(b))))


@pytest.mark.parametrize("shape", [(3, 700), (8, 514), (1, 4096)])
def test_other_large_ones_are_scipys(shape: tuple[int, int]) -> None:
    """Few lines that are no rows of whole vectors, and lengths with large factors; and long lines,
    which are ours: Python goes through the steps.
    """
    xs = xp.asarray(np.random.default_rng(0).normal(size=(3, *shape)) + 0j, dtype=xp.complex64)
    run = looped(fft.fft)
    assert steps_python(run, xs)
    np.testing.assert_array_equal(ft.jit(run)(xs), xp.stack([fft.fft(x) for x in xs]))


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
