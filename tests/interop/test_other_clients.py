"""array-api-extra and xarray on our arrays: values are NumPy's, and transforms pass through."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ImmutableError
from funct.interop import rebind
from tests import laws

X = np.random.default_rng(0).uniform(0.2, 2.0, (4, 3))
BOTH = pytest.mark.parametrize("namespace", [rebind, xp], ids=["rebind", "array"])

EXTRA = {
    "apply_where": lambda x, xpx: xpx.apply_where(x > 1, x, lambda a: a * a, lambda a: 1 / a),
    "apply_where fill": lambda x, xpx: xpx.apply_where(x > 1, x, lambda a: a * a, fill_value=0.0),
    "at set": lambda x, xpx: xpx.at(x)[0, :].set(7.0, copy=True),
    "at add": lambda x, xpx: xpx.at(x)[x > 1].add(1.0, copy=True),
    "at multiply": lambda x, xpx: xpx.at(x)[:, 1].multiply(2.0, copy=True),
    "atleast_nd": lambda x, xpx: xpx.atleast_nd(x, ndim=3),
    "cov": lambda x, xpx: xpx.cov(x.T),
    "create_diagonal": lambda x, xpx: xpx.create_diagonal(x),
    "kron": lambda x, xpx: xpx.kron(x, x),
    "nunique": lambda x, xpx: xpx.nunique(x),
    "pad": lambda x, xpx: xpx.pad(x, 2),
    "setdiff1d": lambda x, xpx: xpx.setdiff1d(x[:, 0], x[:2, 0]),
    "sinc": lambda x, xpx: xpx.sinc(x),
}
WRITING = {"at set", "at add", "at multiply", "create_diagonal", "pad"}
WHOLE = {"nunique", "setdiff1d"}  # their results have no derivative, or a shape known late

LABELLED = {
    "sum": lambda d: d.sum("t"),
    "mean": lambda d: d.mean("t"),
    "std": lambda d: d.std("t"),
    "max": lambda d: d.max("t"),
    "arithmetic": lambda d: d * 2.0 + d.isel(t=0),
    "isel": lambda d: d.isel(t=[0, 2]),
    "sel": lambda d: d.sel(t=20),
    "where": lambda d: d.where(d > 1, 0.0),
    "clip": lambda d: d.clip(0.5, 1.0),
    "transpose": lambda d: d.transpose("s", "t"),
    "stack": lambda d: d.stack(z=("t", "s")),
    "roll": lambda d: d.roll(t=1),
    "diff": lambda d: d.diff("t"),
    "cumsum": lambda d: d.cumsum("t"),
    "groupby": lambda d: d.groupby("t").mean(),
}


@BOTH
@pytest.mark.parametrize("name", EXTRA)
def test_array_api_extra(name: str, namespace: Any) -> None:
    """NumPy's values; what writes into its argument needs a handle."""
    xpx = pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")
    expected = EXTRA[name](X.copy(), xpx)
    x = namespace.asarray(X)
    if namespace is xp and name in WRITING:
        with pytest.raises(ImmutableError):
            EXTRA[name](x, xpx)
        return
    np.testing.assert_allclose(np.asarray(EXTRA[name](x, xpx)), expected, rtol=1e-12)
    laws.same(xp.asarray(x), X)


@pytest.mark.parametrize("name", [n for n in EXTRA if n not in WHOLE])
def test_array_api_extra_under_transforms(name: str, rng: np.random.Generator) -> None:
    """Derivatives equal central differences, vmap equals a loop, jit equals the plain call."""
    xpx = pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")

    def fun(x: Any) -> Any:
        return EXTRA[name](rebind.wrap(x), xpx).unwrap()

    x = xp.asarray(X)
    laws.check_derivatives(fun, [x], rng, order=1)
    laws.check_batch(fun, [x], rng)
    laws.close(ft.jit(fun)(x), fun(x))


def labelled(x: Any) -> Any:
    """A DataArray with coordinates on its first axis."""
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    return xarray.DataArray(x, dims=("t", "s"), coords={"t": [10, 20, 30, 40]})


@BOTH
@pytest.mark.parametrize("name", LABELLED)
def test_xarray(name: str, namespace: Any) -> None:
    """Labelled arrays keep ours inside, with NumPy's values."""
    call = LABELLED[name]
    result = call(labelled(namespace.asarray(X))).data
    assert result.__array_namespace__() is namespace
    np.testing.assert_allclose(np.asarray(result), call(labelled(X)).data, rtol=1e-12)


@pytest.mark.parametrize("name", LABELLED)
def test_xarray_under_transforms(name: str, rng: np.random.Generator) -> None:
    """Tracers can be labelled, too: derivatives, vmap and jit pass through."""

    def fun(x: Any) -> Any:
        return LABELLED[name](labelled(x)).data

    x = xp.asarray(X)
    laws.check_derivatives(fun, [x], rng, order=1)
    laws.check_batch(fun, [x], rng)
    laws.close(ft.jit(fun)(x), fun(x))


def test_xarray_writes_into_handles() -> None:
    """d[...] = v writes through to the handle that it labels."""
    d = labelled(rebind.asarray(X))
    d[0, 0] = 5.0
    d.loc[{"t": 20}] = 6.0
    assert d.data[0, 0] == 5.0
    assert d.data[1].tolist() == [6.0] * 3
