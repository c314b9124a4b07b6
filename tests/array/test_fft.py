"""The fft extension against NumPy's pocketfft, and the laws it obeys."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, DTypeError, ShapeError
from tests import laws
from tests.strategies import filled

NORMS = st.sampled_from([None, "backward", "ortho", "forward"])
KINDS = ["float32", "float64", "complex64", "complex128", "int64"]
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn"]
NEEDS_REAL = ("rfft", "ihfft", "rfftn")


@st.composite
def signals(draw: Any, name: str) -> Any:
    """An array that the function takes, without empty axes."""
    kinds = [k for k in KINDS if name not in NEEDS_REAL or not k.startswith("complex")]
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple))
    if name in ("irfft", "hfft", "irfftn"):
        shape = (*shape[:-1], shape[-1] + 1)  # the default length is 2 (m - 1)
    return filled(shape, draw(st.sampled_from(kinds)), draw(st.integers(0, 2**32 - 1)))


def check(name: str, x: Any, fun: Any) -> None:
    """Derivatives to first order, vmap and jit on a double-precision operand of x's kind."""
    kind = "float64" if name in NEEDS_REAL else "complex128"
    arg = xp.asarray(filled(x.shape, kind, 1))
    rng = np.random.default_rng(0)
    laws.check_derivatives(fun, [arg], rng, order=1)
    laws.check_batch(fun, [arg], rng)
    laws.check_jit(fun, [arg])


@pytest.mark.parametrize("name", ONE)
@given(data=st.data(), norm=NORMS)
def test_along_one_axis(name: str, data: Any, norm: Any) -> None:
    """Values, dtype and length are NumPy's, for every axis, length and norm."""
    x = data.draw(signals(name))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1)) if name in ("fft", "ifft", "rfft") else -1
    n = data.draw(st.none() | st.integers(1, 8))
    fun, ref = getattr(xp.fft, name), getattr(np.fft, name)
    out = fun(xp.asarray(x), n=n, axis=axis, norm=norm)
    tol = 1e-5 if x.dtype.itemsize == 4 or x.dtype == np.complex64 else 1e-12
    laws.close(out, ref(x, n, axis, norm), tol, tol)
    check(name, x, lambda v: fun(v, n=n, axis=axis, norm=norm))


@pytest.mark.parametrize("name", MANY)
@given(data=st.data(), norm=NORMS)
def test_along_several_axes(name: str, data: Any, norm: Any) -> None:
    """Axes in any order, with lengths of their own; -1 stands for the array's length."""
    x = data.draw(signals(name))
    last = st.just((x.ndim - 1,))  # the half spectrum stands along the last of the axes given
    others = st.permutations(range(x.ndim - 1)).map(tuple)
    axes = data.draw(others) + data.draw(last)
    s = data.draw(st.none() | st.tuples(*[st.integers(1, 6)] * len(axes)))
    fun, ref = getattr(xp.fft, name), getattr(np.fft, name)
    out = fun(xp.asarray(x), s=s, axes=axes, norm=norm)
    tol = 1e-5 if x.dtype.itemsize == 4 or x.dtype == np.complex64 else 1e-12
    laws.close(out, ref(x, s, axes, norm), tol, tol)
    same_length = fun(xp.asarray(x), s=(-1,) * len(axes), axes=axes, norm=norm)
    if name != "irfftn":
        laws.same(same_length, fun(xp.asarray(x), axes=axes, norm=norm))
    check(name, x, lambda v: fun(v, s=s, axes=axes, norm=norm))


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(2100,), (3, 997), (64, 40), (1, 2048, 2), (520, 512)])
def test_large(shape: Any, kind: str) -> None:
    """Large arrays too are NumPy's along every axis, cut off and padded, with the same bits for
    one thread and two; single precision loses no more than an FFT in it must.
    """
    x = filled(shape, kind, 3)
    real = kind.startswith("float")
    eps = float(np.finfo(kind).eps)
    for axis, extra in itertools.product(range(x.ndim), (None, -1, 5)):
        n = None if extra is None else max(x.shape[axis] + extra, 1)
        for name in ["fft", "ifft", "rfft", "ihfft"] if real else ["fft", "ifft", "irfft", "hfft"]:
            if name in ("irfft", "hfft") and x.shape[axis] == 1:
                continue
            fun, ref = getattr(xp.fft, name), getattr(np.fft, name)
            want = ref(x.astype(np.result_type(x, np.float64)), n, axis)
            with ft.config.using(threads=1):
                one = fun(xp.asarray(x), n=n, axis=axis)
            with ft.config.using(threads=2):
                two = fun(xp.asarray(x), n=n, axis=axis)
            laws.same(one, two)
            assert one.dtype == ref(x, n, axis).dtype
            assert one.shape == want.shape
            size = np.sqrt(np.mean(np.abs(want) ** 2))
            laws.close(one, want.astype(one.dtype), 0, eps * (np.log2(x.size) + 2) * size)
    for name in ("fftn", "ifftn"):
        for s, axes in ((None, None), (None, (-1,)), ((33,), (0,))):
            want = getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)), s, axes)
            got = getattr(xp.fft, name)(xp.asarray(x), s=s, axes=axes)
            size = np.sqrt(np.mean(np.abs(want) ** 2))
            laws.close(got, want.astype(got.dtype), 0, eps * (np.log2(x.size) + 2) * size)


@given(st.integers(1, 9), st.integers(1, 9), NORMS)
def test_inverses(n: int, m: int, norm: Any) -> None:
    """Each function undoes its inverse, for even and odd lengths."""
    x = xp.asarray(filled((n, m), "complex128", 0))
    r = xp.real(x)
    laws.close(xp.fft.ifftn(xp.fft.fftn(x, norm=norm), norm=norm), x, 1e-12, 1e-12)
    back = xp.fft.irfftn(xp.fft.rfftn(r, norm=norm), s=(n, m), norm=norm)
    laws.close(back, r, 1e-12, 1e-12)
    laws.close(xp.fft.hfft(xp.fft.ihfft(r, norm=norm), n=m, norm=norm), r, 1e-12, 1e-12)


def test_parseval_under_grad() -> None:
    """The gradient of a spectrum's energy is 2 n x: the transform is unitary but for √n."""
    x = xp.asarray(filled((6,), "float64", 2))
    for fun in (xp.fft.fft, lambda v: xp.fft.fft(v, norm="ortho") * 6**0.5):
        g = ft.grad(lambda v, f=fun: xp.sum(xp.abs(f(v)) ** 2))(x)
        laws.close(g, 12 * np.asarray(x), 1e-12)


@given(st.integers(1, 9), st.sampled_from([1.0, 0.5, 3.0]))
def test_frequencies(n: int, d: float) -> None:
    """fftfreq and rfftfreq are NumPy's, in the dtype asked for."""
    laws.close(xp.fft.fftfreq(n, d=d), np.fft.fftfreq(n, d), 1e-15, 0)
    laws.close(xp.fft.rfftfreq(n, d=d), np.fft.rfftfreq(n, d), 1e-15, 0)
    assert xp.fft.fftfreq(n, d=d, dtype=xp.float32).dtype == xp.float32


@given(st.data())
def test_shifts(data: Any) -> None:
    """fftshift and ifftshift are NumPy's, and undo each other."""
    x = data.draw(signals("fft"))
    axes = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    t = xp.asarray(x)
    laws.same(xp.fft.fftshift(t, axes=axes), np.fft.fftshift(x, axes))
    laws.same(xp.fft.ifftshift(t, axes=axes), np.fft.ifftshift(x, axes))
    laws.same(xp.fft.ifftshift(xp.fft.fftshift(t, axes=axes), axes=axes), x)


X = xp.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: xp.fft.fft(X, n=0), ShapeError, "fft: n must be at least 1, got 0"),
        (
            lambda: xp.fft.fft(xp.zeros((2, 0))),
            ShapeError,
            "fft: a transform needs at least 1 element, got 0",
        ),
        (
            lambda: xp.fft.fft(X, norm="both"),
            ArgumentError,
            "fft: norm must be 'backward', 'ortho' or 'forward', got 'both'",
        ),
        (lambda: xp.fft.rfft(X * 1j), DTypeError, "rfft: x must be real, got complex128"),
        (
            lambda: xp.fft.fftn(X, s=(1, 2), axes=(0,)),
            ShapeError,
            "fftn: s must have one length per axis, got s (1, 2) and axes (0,)",
        ),
        (
            lambda: xp.fft.fftn(X, axes=(0, -2)),
            ShapeError,
            "fftn: an axis occurs twice in (0, -2)",
        ),
        (lambda: xp.fft.irfft(X[:, :1]), ShapeError, "irfft: n must be at least 1, got 0"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    """The error names function, expectation and value."""
    with pytest.raises(error) as caught:
        call()
    assert caught.value.what == text
