"""What clients use beyond the standard, call by call, on both namespaces: NumPy's answers."""

from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct.interop import rebind

X = np.random.default_rng(0).uniform(0.2, 2.0, (6, 3))
BOTH = pytest.mark.parametrize("namespace", [rebind, xp], ids=["rebind", "array"])

LENIENT = {
    "len": lambda x, n: len(x),
    "iteration": lambda x, n: [float(row[0]) for row in x],
    "fewer indices than axes": lambda x, n: x[1],
    "an array of indices after an ellipsis": lambda x, n: x[..., n.asarray([0, 2])],
    "a shape that is a list": lambda x, n: n.reshape(x, [3, 6]),
    "a 0-d fill value": lambda x, n: n.full((2,), x[0, 0]),
    "NumPy's numbers": lambda x, n: np.float64(2) * x + np.float32(1) - np.int64(3),
    "NumPy's arrays": lambda x, n: np.ones(3) * x + np.arange(3),
    "NumPy's dtypes": lambda x, n: n.asarray(x, dtype=np.float32),
    "dtype objects": lambda x, n: n.zeros((2,), dtype=np.dtype("float32")),
    "dtypes by name": lambda x, n: n.ones((2,), dtype="float32"),
    "int / int": lambda x, n: n.asarray([1, 2]) / n.asarray([2, 4]),
    "floats of ints": lambda x, n: n.exp(n.asarray([1, 2])),
    "int + float": lambda x, n: n.asarray([1, 2, 3]) + x,
    "dtype.kind": lambda x, n: [ord(x.dtype.kind)],
    "dtypes in sets": lambda x, n: [len({x.dtype, n.float64})],
    "np.dtype": lambda x, n: [np.dtype(x.dtype).itemsize],
    "methods": lambda x, n: x.reshape(-1).mean() + x.ravel().sum() + x.flatten().max(),
    "mean of a dtype": lambda x, n: x.mean(dtype=np.float32),
    "deviations": lambda x, n: x.std(axis=0, ddof=1) + x.var(0, ddof=1),
    "flat": lambda x, n: x.flat[::4],
    "diff by position": lambda x, n: n.diff(x, 2, 0),
    "where without choices": lambda x, n: n.where(x[:, 0] > 1.0)[0],
    "np.mean": lambda x, n: np.mean(x, axis=0, dtype=np.float64),
    "np.var": lambda x, n: np.var(x, axis=0),
}

WRITTEN = {
    "an array of indices": lambda x, n: x.__setitem__((slice(None), n.asarray([0, 2])), 0.0),
    "a mask": lambda x, n: x.__setitem__(x > 1, 0.0),
    "a mask and an array": lambda x, n: x.__setitem__(x > 1, x[x > 1] * 2.0),
    "flat": lambda x, n: x.flat.__setitem__(slice(None, None, 4), 0.0),
    "out": lambda x, n: np.clip(x, 0.5, None, out=x),
    "out of a ufunc": lambda x, n: np.sqrt(x, out=x),
    "ufunc.at": lambda x, n: np.add.at(x, np.asarray([1, 1]), 1.0),
}


@BOTH
@pytest.mark.parametrize("name", LENIENT)
def test_beyond_the_standard(name: str, namespace: Any) -> None:
    """Values and dtypes are NumPy's."""
    call = LENIENT[name]
    got, expected = call(namespace.asarray(X), namespace), np.asarray(call(X, np))
    assert np.asarray(got).dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6 if "dtype" in name else 1e-14)


@pytest.mark.parametrize("name", WRITTEN)
def test_writes_beyond_the_standard(name: str) -> None:
    """Into handles."""
    x, y = X.copy(), rebind.asarray(X)
    WRITTEN[name](x, np)
    WRITTEN[name](y, rebind)
    np.testing.assert_array_equal(np.asarray(y), x)


@BOTH
@pytest.mark.parametrize(
    "name", ["KMeans", "KNeighbors", "IncrementalPCA", "KernelPCA", "NMF", "RandomForest"]
)
def test_estimators_that_know_no_namespaces(name: str, namespace: Any) -> None:
    """Without `array_api_dispatch` scikit-learn takes the elements, and gives NumPy's arrays."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn import cluster, decomposition, ensemble, neighbors

    labels = np.asarray([0, 1, 0, 1, 1, 0])
    fitted: dict[str, Any] = {
        "KMeans": lambda x, y: cluster.KMeans(2, n_init=1, random_state=0).fit(x).transform(x),
        "KNeighbors": lambda x, y: neighbors.KNeighborsClassifier(2).fit(x, y).predict_proba(x),
        "IncrementalPCA": lambda x, y: decomposition.IncrementalPCA(2).fit_transform(x),
        "KernelPCA": lambda x, y: decomposition.KernelPCA(2, kernel="rbf").fit_transform(x),
        "NMF": lambda x, y: decomposition.NMF(2, init="nndsvd", random_state=0).fit_transform(x),
        "RandomForest": lambda x, y: (
            ensemble.RandomForestClassifier(3, random_state=0).fit(x, y).predict_proba(x)
        ),
    }
    got = fitted[name](namespace.asarray(X), namespace.asarray(labels))
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(got, fitted[name](X, labels), rtol=1e-10, atol=1e-13)
