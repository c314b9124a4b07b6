"""All of scikit-learn's estimators on our arrays, without its dispatch: they compute in NumPy."""

import inspect
from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct.interop import rebind

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.base import RegressorMixin  # noqa: E402
from sklearn.utils import all_estimators  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

_rng = np.random.default_rng(0)
LABELS = np.tile([0, 1], 12)
X = _rng.uniform(0.2, 2.0, (24, 4)) + 1.5 * LABELS[:, None] * np.asarray([1.0, 0.0, 0.0, 0.0])
TARGETS = X @ [1.0, 2.0, 0.5, 1.0] + 0.1 * _rng.normal(size=24)
SMALL = {
    "random_state": 0, "n_estimators": 3, "max_iter": 20, "n_init": 1, "n_components": 2, "k": 2,
}  # fmt: skip
METHODS = (
    "predict", "predict_proba", "decision_function", "transform", "score_samples", "kneighbors",
)  # fmt: skip
ESTIMATORS: dict[str, Any] = dict(all_estimators())


def results(cls: Any, asarray: Any) -> list[Any]:
    """What an estimator with defaults gives that was fitted to arrays made by asarray."""
    known = inspect.signature(cls).parameters
    estimator = cls(**{k: v for k, v in SMALL.items() if k in known})
    x = asarray(X)
    estimator.fit(x, asarray(TARGETS if issubclass(cls, RegressorMixin) else LABELS))
    found: list[Any] = []
    for name in METHODS:
        if hasattr(estimator, name):
            out = getattr(estimator, name)(x)
            found += out if isinstance(out, tuple) else [out]
    return [y.toarray() if hasattr(y, "toarray") else y for y in found]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_take_our_arrays_for_numpys(name: str) -> None:
    """Fitting, predictions and transforms of Tensors and handles."""
    try:
        expected = results(ESTIMATORS[name], np.asarray)
    except Exception as error:
        pytest.skip(f"{name} needs more than two arrays: {error}"[:80])
    for namespace in (xp, rebind):
        found = results(ESTIMATORS[name], namespace.asarray)
        for a, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(a, dtype=np.asarray(e).dtype), e, 1e-6, 1e-9)
