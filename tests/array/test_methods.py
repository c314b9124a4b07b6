"""NumPy's methods, and NumPy's functions that call them: its values, and traced."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, FunctError, IndexOutOfBoundsError, ShapeError
from funct.interop import rebind
from tests import laws
from tests.strategies import filled, shapes

X = np.random.default_rng(0).uniform(0.2, 2.0, (4, 3))

METHODS = {
    "argsort": lambda x: x.argsort(axis=0),
    "conjugate": lambda x: x.conjugate(),
    "cumprod": lambda x: x.cumprod(),
    "cumprod axis": lambda x: x.cumprod(axis=1),
    "cumsum": lambda x: x.cumsum(),
    "cumsum axis": lambda x: x.cumsum(0),
    "diagonal": lambda x: x.diagonal(),
    "diagonal of other axes": lambda x: x.reshape(2, 2, 3).diagonal(-1, 2, 0),
    "diagonal of stacks": lambda x: x.reshape(2, 2, 3).diagonal(1),
    "np.array_split": lambda x: np.array_split(x, 3)[1],
    "np.cumprod": lambda x: np.cumprod(x, axis=0),
    "np.repeat": lambda x: np.repeat(x, 2, axis=1),
    "np.reshape": lambda x: np.reshape(x, (3, 4)),
    "np.reshape F": lambda x: np.reshape(x, (2, -1), order="F"),
    "np.round": lambda x: np.round(x, 1),
    "np.searchsorted": lambda x: np.searchsorted(x[:, 0].cumsum(), 1.5),
    "np.swapaxes": lambda x: np.swapaxes(x, 0, -1),
    "np.take": lambda x: np.take(x, [3, 0], axis=0),
    "repeat": lambda x: x.repeat(3),
    "reshape": lambda x: x.reshape(2, 6, order="F"),
    "reshape to one axis": lambda x: x.reshape(-1, order="F"),
    "round": lambda x: x.round(2),
    "round tens": lambda x: (x * 100.0).round(-1),
    "searchsorted": lambda x: x[:, 1].cumsum().searchsorted(x[0], side="right"),
    "swapaxes": lambda x: x.swapaxes(1, 0),
    "trace": lambda x: x.trace(),
    "trace of other axes": lambda x: x.reshape(2, 2, 3).trace(1, axis1=1, axis2=2),
    "take": lambda x: x.take([[0, 5], [-1, 2]]),
    "take along an axis": lambda x: x.take(np.asarray([[0, 2], [-1, 2]]), axis=-1),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_numpys(name: str, rng: np.random.Generator) -> None:
    """Values on Tensors and handles; derivatives, lanes and captures of Tensors."""
    call, expected = METHODS[name], np.asarray(METHODS[name](X))
    x = xp.asarray(X)
    for namespace in (xp, rebind):
        got = call(namespace.asarray(X))
        assert got.__array_namespace__() is namespace
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-14)
    if expected.dtype == X.dtype:
        laws.check_derivatives(call, [x], rng, order=1)
    laws.check_batch(call, [x], rng)
    laws.close(ft.jit(call)(x), call(x))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "complex128"])
@given(shape=shapes(), decimals=st.integers(-2, 3))
def test_round(dtype: str, shape: Any, decimals: int) -> None:
    """NumPy's values and dtypes for every kind of number."""
    x = filled(shape, dtype, 3) * 7
    laws.close(xp.asarray(x).round(decimals), np.round(x, decimals), 1e-6, 1e-12)
    assert xp.asarray(x).round(decimals).dtype == x.dtype


def test_python_asks() -> None:
    """`round` and `divmod`, from either side."""
    x, y = xp.asarray([2.55, -1.25]), np.asarray([2.55, -1.25])
    laws.same(round(x, 1), np.round(y, 1))
    laws.same(round(x), np.round(y))
    for ours, theirs in ((divmod(x, 0.5), divmod(y, 0.5)), (divmod(7.0, x), divmod(7.0, y))):
        for a, b in zip(ours, theirs, strict=True):
            laws.same(a, b)


def test_peak_to_peak() -> None:
    """As in NumPy before 2.0."""
    x = xp.asarray(X)
    laws.same(x.ptp(), np.ptp(X))
    laws.same(x.ptp(axis=1, keepdims=True), np.ptp(X, axis=1, keepdims=True))
    assert x.astype(xp.int8).trace().dtype == xp.int64
    assert x.trace(dtype=xp.float32).dtype == xp.float32


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take_off_the_axis(axis: Any, mode: str) -> None:
    """Indices that are off the axis end at it, or go round, as NumPy has it; traced ones too."""
    x = xp.asarray(X)
    for at in (7, -9, [-7, 0, 9], [[1, -1], [2, 30]], np.asarray([200, 1], np.uint8)):
        expected = X.take(at, axis=axis, mode=mode)
        laws.same(x.take(at, axis=axis, mode=mode), expected)
        f = lambda x, at: x.take(at, axis=axis, mode=mode)  # noqa: E731
        laws.same(ft.jit(f)(x, xp.asarray(at)), expected)
        slope = ft.grad(lambda x, at=at, f=f: xp.sum(f(x, at)))(x)
        assert float(xp.sum(slope)) == expected.size


@pytest.mark.parametrize("shape", [(), (0, 3), (4, 3)])
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "complex128", "bool", "int4"])
def test_bytes_are_numpys(shape: tuple[int, ...], dtype: str) -> None:
    """Those of an element and of all, of views and tracers too."""
    x = xp.zeros(shape, dtype=getattr(xp, dtype))
    y = np.asarray(x)
    seen: list[Any] = []
    ft.make_graph(lambda v: (seen.append((v.itemsize, v.nbytes)), v)[1])(x)
    assert seen == [(y.itemsize, y.nbytes)] == [(x.itemsize, x.nbytes)]
    assert rebind.wrap(x).nbytes == y.nbytes
    assert xp.broadcast_to(x, (5, *shape)).nbytes == np.broadcast_to(y, (5, *shape)).nbytes


def test_what_methods_refuse() -> None:
    """What NumPy has and a Tensor has not, by name."""
    x = xp.asarray(X)
    with pytest.raises(ArgumentError, match="reshape: order must be 'C' or 'F', got 'A'"):
        x.reshape(12, order="A")
    with pytest.raises(ArgumentError, match="take: mode must be 'raise' or 'clip' or 'wrap', got"):
        x.take(0, mode="near")
    for mode in ("clip", "wrap"):
        with pytest.raises(IndexOutOfBoundsError, match="take: index 0 is out of bounds"):
            xp.zeros((0, 2)).take([0], axis=0, mode=mode)
        with pytest.raises(FunctError):
            x.take([0.5], axis=0, mode=mode)
    for method in (x.round, x.cumprod, x.trace, x.ptp, lambda out: x.take(0, out=out)):
        with pytest.raises(ArgumentError, match="out must be None"):
            method(out=np.zeros(3))
    with pytest.raises(ShapeError, match="swapaxes: axis"):
        x.swapaxes(0, 2)
