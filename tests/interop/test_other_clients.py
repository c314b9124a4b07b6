"""array-api-extra and xarray on our arrays: values are NumPy's, and transforms pass through."""

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ImmutableError
from funct.interop import extra, rebind
from tests import laws

X = np.random.default_rng(0).uniform(0.2, 2.0, (4, 3))
BOTH = pytest.mark.parametrize("namespace", [rebind, xp], ids=["rebind", "array"])


def _whole(x: Any) -> Any:
    xp = x.__array_namespace__()
    return xp.astype(xp.floor(x[:, 0]), xp.int64)


def _rising(x: Any) -> Any:
    return x.__array_namespace__().sort(x[:, 0])


EXTRA = {
    "apply_where": lambda x, xpx: xpx.apply_where(x > 1, x, lambda a: a * a, lambda a: 1 / a),
    "apply_where fill": lambda x, xpx: xpx.apply_where(x > 1, x, lambda a: a * a, fill_value=0.0),
    "at set": lambda x, xpx: xpx.at(x)[0, :].set(7.0, copy=True),
    "at add": lambda x, xpx: xpx.at(x)[x > 1].add(1.0, copy=True),
    "at multiply": lambda x, xpx: xpx.at(x)[:, 1].multiply(2.0, copy=True),
    "at subtract": lambda x, xpx: xpx.at(x)[::2].subtract(x[::2], copy=True),
    "at divide": lambda x, xpx: xpx.at(x)[..., 0].divide(3.0, copy=True),
    "at power": lambda x, xpx: xpx.at(x)[1:].power(2.0, copy=True),
    "at min": lambda x, xpx: xpx.at(x)[:, :2].min(1.0, copy=True),
    "at max": lambda x, xpx: xpx.at(x)[x < 1].max(0.7, copy=True),
    "angle": lambda x, xpx: xpx.angle(x * (1.0 + 2.0j)),
    "argpartition": lambda x, xpx: xpx.argpartition(x[:, 0], 2)[2],
    "atleast_nd": lambda x, xpx: xpx.atleast_nd(x, ndim=3),
    "cov": lambda x, xpx: xpx.cov(x.T),
    "cov correction": lambda x, xpx: xpx.cov(x, correction=0, axis=0),
    "deg2rad": lambda x, xpx: xpx.deg2rad(x) + xpx.rad2deg(x),
    "nanmean": lambda x, xpx: xpx.nanmean(x, axis=0) + xpx.nansum(x, axis=0),
    "nanmax": lambda x, xpx: xpx.nanmax(x, axis=1) - xpx.nanmin(x, axis=1),
    "isclose": lambda x, xpx: xpx.isclose(x, x + 1e-9),
    "isin": lambda x, xpx: xpx.isin(x, x[0]),
    "kron of vectors": lambda x, xpx: xpx.kron(x[0], x[:, 0]),
    "nan_to_num": lambda x, xpx: xpx.nan_to_num(x, fill_value=1.0),
    "one_hot": lambda x, xpx: xpx.one_hot(_whole(x), 3),
    "partition": lambda x, xpx: xpx.partition(x[:, 0], 1)[1],
    "searchsorted": lambda x, xpx: xpx.searchsorted(_rising(x), x[:, 1]),
    "create_diagonal offset": lambda x, xpx: xpx.create_diagonal(x[0], offset=1),
    "union1d": lambda x, xpx: xpx.union1d(x[:, 0], x[:2, 0]),
    "create_diagonal": lambda x, xpx: xpx.create_diagonal(x),
    "kron": lambda x, xpx: xpx.kron(x, x),
    "nunique": lambda x, xpx: xpx.nunique(x),
    "pad": lambda x, xpx: xpx.pad(x, 2),
    "setdiff1d": lambda x, xpx: xpx.setdiff1d(x[:, 0], x[:2, 0]),
    "sinc": lambda x, xpx: xpx.sinc(x),
}
WHOLE = {"nunique", "setdiff1d"}  # their results have no derivative, or a shape known late


def _xarray() -> Any:
    return pytest.importorskip("xarray", reason="xarray is not installed")


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
    "var": lambda d: d.var("s", ddof=1),
    "prod": lambda d: d.prod("s"),
    "min": lambda d: d.min(),
    "median": lambda d: d.median("t"),
    "shift": lambda d: d.shift(t=1, fill_value=0.0),
    "pad": lambda d: d.pad(t=1, constant_values=2.0),
    "fillna": lambda d: d.where(d > 1).fillna(0.5),
    "cumprod": lambda d: d.cumprod("s"),
    "expand": lambda d: d.expand_dims("u"),
    "broadcast": lambda d: d + d.isel(t=1, drop=True),
    "coarsen": lambda d: d.coarsen(t=2).mean(),
    "integrate": lambda d: d.integrate("t"),
    "quantile": lambda d: d.quantile(0.3, "t"),
    "sortby": lambda d: d.sortby("t", ascending=False),
    "argmax": lambda d: d.argmax("t"),
    "stacked": lambda d: d.stack(z=("t", "s")).unstack(),
    "thin": lambda d: d.thin(t=2),
    "isnull": lambda d: d.isnull().sum(),
    "apply_ufunc": lambda d: _xarray().apply_ufunc(lambda a: a**2, d),
    "np.exp": np.exp,
    "concat": lambda d: _xarray().concat([d, d], "t"),
    "zeros_like": lambda d: _xarray().zeros_like(d) + d,
    "rolling": lambda d: d.rolling(t=2).mean().fillna(0.0),
    "rolling min_periods": lambda d: d.rolling(t=3, min_periods=1).sum(),
    "rolling construct": lambda d: d.rolling(t=2).construct("w", fill_value=0.0),
    "rolling max": lambda d: d.rolling(s=2, center=True).max().fillna(0.0),
    "cumulative": lambda d: d.cumulative("t").sum(),
    "differentiate": lambda d: d.differentiate("t"),
    "differentiate edges": lambda d: d.differentiate("t", edge_order=2),
    "cumulative_integrate": lambda d: d.cumulative_integrate("t"),
    "cumsum of everything": lambda d: d.cumsum("t", skipna=False),
    "round": lambda d: d.round(2),
    "np.round": lambda d: np.round(d, 1),
    "cross": lambda d: _xarray().cross(d, d**2, dim="s"),
    "dot": lambda d: _xarray().dot(d, d + 1.0, dim="t"),
    "method dot": lambda d: d.dot(d.isel(t=0, drop=True)),
    "@": lambda d: d @ d,
    "weighted": lambda d: d.weighted(d.isel(s=0, drop=True)).mean("t"),
    "weighted std": lambda d: d.weighted(d).std("t"),
    "array * labelled": lambda d: d.data * d,
    "array - labelled": lambda d: d.data - d.isel(t=[1, 0, 3, 2]).data * d,
    "dataset": lambda d: (_xarray().Dataset({"a": d, "b": d * 2.0}) * 3.0 + 1.0).mean("t")["b"],
    "datasets together": lambda d: _xarray().concat(
        [_xarray().Dataset({"a": d}), _xarray().Dataset({"a": d * 2.0})], "u"
    )["a"],
    "groups": lambda d: d.groupby_bins("t", [0, 25, 50]).mean(),
    "groups of a label": lambda d: d.assign_coords(g=("t", [0, 1, 0, 1])).groupby("g").sum(),
    "anomalies": lambda d: (lambda g: g - g.mean("t"))(
        d.assign_coords(g=("t", [0, 1, 0, 1])).groupby("g")
    ).drop_vars("g"),
    "corr": lambda d: _xarray().corr(d[:, 0], d[:, 1]),
    "to_array": lambda d: _xarray().Dataset({"a": d, "b": d * 2.0}).to_dataarray(),
    "reindex": lambda d: d.reindex(t=[10, 15, 40], fill_value=0.0),
    "combine_first": lambda d: d.where(d > 1).combine_first(d * 0.5),
    "polyval": lambda d: _xarray().polyval(
        d, d.isel(t=slice(0, 2)).rename(t="degree", s="r").assign_coords(degree=[0, 1])
    ),
}


CONTRACTED = {
    "a chain": lambda x, contract: contract("ij,kj,kl->il", x, x, x),
    "einsum": lambda x, contract: contract("ij,ij->i", x, x),
    "a transpose": lambda x, contract: contract("ij,jk->ki", x, x.T),
}


@BOTH
@pytest.mark.parametrize("name", EXTRA)
def test_array_api_extra(name: str, namespace: Any) -> None:
    """NumPy's values; `at`, once it is taught, needs no handle."""
    xpx = pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")
    extra.teach(xpx)
    expected = EXTRA[name](X.copy(), xpx)
    x = namespace.asarray(X)
    np.testing.assert_allclose(np.asarray(EXTRA[name](x, xpx)), expected, rtol=1e-12)
    laws.same(xp.asarray(x), X)


@pytest.mark.parametrize("name", [n for n in EXTRA if n not in WHOLE])
def test_array_api_extra_under_transforms(name: str, rng: np.random.Generator) -> None:
    """Derivatives equal central differences, vmap equals a loop, jit equals the plain call."""
    xpx = pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")
    extra.teach(xpx)

    def handled(x: Any) -> Any:
        return EXTRA[name](rebind.wrap(x), xpx).unwrap()

    def plain(x: Any) -> Any:
        return EXTRA[name](x, xpx)

    x = xp.asarray(X)
    for fun in (handled, plain):
        laws.check_derivatives(fun, [x], rng, order=1)
        laws.check_batch(fun, [x], rng)
        laws.close(ft.jit(fun)(x), fun(x))


OPS = {"set", "add", "subtract", "multiply", "divide", "power", "min", "max"}


@pytest.fixture
def at() -> Any:
    """A class `at` that nobody else has, taught."""
    xpx = pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")
    copy = ModuleType("client.array_api_extra")
    copy.at = type("at", (xpx.at,), {})  # type: ignore[attr-defined]
    assert extra.teach(copy) == ["client.array_api_extra"]
    return copy.at


@pytest.mark.parametrize("op", sorted(OPS))
def test_at_of_a_tensor(op: str, at: Any) -> None:
    """Every update, by both spellings of the index, gives a new Tensor with NumPy's elements."""
    x, one = xp.asarray(X), np.full(3, 1.5)
    for key in (1, (slice(None), 2), (..., slice(None, None, 2))):
        want = getattr(at(X.copy())[key], op)(1.5)
        for got in (getattr(at(x)[key], op)(1.5), getattr(at(x, key), op)(1.5, copy=True, xp=xp)):
            assert isinstance(got, xp.Array)
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-15)
    want = getattr(at(X.copy())[0], op)(one)
    np.testing.assert_allclose(np.asarray(getattr(at(x)[0], op)(xp.asarray(one))), want, rtol=1e-15)
    laws.same(x, X)


def test_at_refuses_what_it_refuses_of_others(at: Any) -> None:
    """No index, two of them, another dtype, no such update; and a write in place."""
    x = xp.asarray([1, 2])
    with pytest.raises(ValueError, match="Index has not been set"):
        at(x).set(1)
    with pytest.raises(ValueError, match="Index has already been set"):
        at(x, 0)[1]
    with pytest.raises(TypeError, match="cannot hold float64"):
        at(x)[0].add(1.5)
    with pytest.raises(AttributeError, match="multiplied"):
        at(x)[0].multiplied(2)
    with pytest.raises(ImmutableError, match="copy=False, but Tensors are immutable"):
        at(x)[0].set(1, copy=False)


def test_every_loaded_copy_is_taught(monkeypatch: pytest.MonkeyPatch, at: Any) -> None:
    """Clients carry copies under names of their own."""
    found = {name: ModuleType(name) for name in ("a.array_api_extra", "array_api_extra", "a.other")}
    for module in found.values():
        module.at = type("at", (at,), {})  # type: ignore[attr-defined]
    monkeypatch.setattr(extra, "sys", SimpleNamespace(modules=found))
    assert extra.teach() == ["a.array_api_extra", "array_api_extra"]
    assert "__new__" not in vars(found["a.other"].at)


def labelled(x: Any) -> Any:
    """A DataArray with coordinates on its first axis."""
    return _xarray().DataArray(x, dims=("t", "s"), coords={"t": [10, 20, 30, 40]})


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

    def handled(x: Any) -> Any:
        return LABELLED[name](labelled(rebind.wrap(x))).data.unwrap()

    def plain(x: Any) -> Any:
        return LABELLED[name](labelled(x)).data

    x = xp.asarray(X)
    for fun in (handled, plain):
        laws.check_derivatives(fun, [x], rng, order=1)
        laws.check_batch(fun, [x], rng)
        laws.close(ft.jit(fun)(x), fun(x))


@pytest.mark.parametrize("name", CONTRACTED)
def test_opt_einsum(name: str, rng: np.random.Generator) -> None:
    """Contractions are the arrays' own, as values and under transforms."""
    einsum = pytest.importorskip("opt_einsum", reason="opt_einsum is not installed")
    call, expected = CONTRACTED[name], CONTRACTED[name](X, einsum.contract)
    for namespace in (rebind, xp):
        result = call(namespace.asarray(X), einsum.contract)
        assert result.__array_namespace__() is namespace
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)

    def fun(x: Any) -> Any:
        return call(x, einsum.contract)

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
