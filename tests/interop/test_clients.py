"""SciPy and scikit-learn on our arrays: values are NumPy's, and transforms pass through.

`funct.interop.rebind` serves every call; `funct.array` those that write into no array.
"""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy

import funct as ft
import funct.array as xp
from funct.errors import ImmutableError
from funct.interop import rebind
from tests import laws

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from tests.interop import (  # noqa: E402
    scipy_calls,
    scipy_listed_calls,
    scipy_numeric_calls,
    sklearn_calls,
)

# Clients silence 0/0 around their own lines; a pull and a compiled function run later.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning"),
    pytest.mark.usefixtures("dispatch"),
]

X = np.random.default_rng(0).uniform(0.2, 2.0, (6, 3))
TABLES = {
    "scipy": scipy_calls, "numeric": scipy_numeric_calls, "listed": scipy_listed_calls,
    "sklearn": sklearn_calls,
}  # fmt: skip


@pytest.fixture
def dispatch() -> Any:
    """scikit-learn keeps arrays of any namespace as they are."""
    with sklearn.config_context(array_api_dispatch=True):
        yield


def calls(*tables: str) -> list[Any]:
    """(call, whether a Tensor refuses it) of the tables with these names, from all files."""
    return [
        pytest.param(call, name in module.REFUSED, id=f"{label}-{name}")
        for label, module in TABLES.items()
        for table in tables
        for name, call in getattr(module, table).items()
    ]


def compared(call: Any, namespace: ModuleType, expected: Any) -> None:
    """The call on an array of the namespace gives the same numbers, as such an array or number."""
    actual = call(namespace.asarray(X))
    if not isinstance(actual, float | np.ndarray | np.generic):
        assert actual.__array_namespace__() is namespace
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("call", "refused"), calls("DIFFERENTIABLE", "VALUES"))
def test_values_are_numpys(call: Any, refused: bool) -> None:
    """On handles and, where nothing is written, on Tensors; writing into a Tensor is refused."""
    expected = np.asarray(call(X))
    compared(call, rebind, expected)
    if refused:
        with pytest.raises(ImmutableError, match=r"x\.at"):
            call(xp.asarray(X))
    else:
        compared(call, xp, expected)


def in_turn() -> list[Any]:
    """(call, whether it is given handles or Tensors): every call on handles and, where nothing is
    written, on Tensors; of these two one is quick, in turn, the other slow.
    """
    return [
        pytest.param(call, on, id=f"{case.id}-{on}", marks=[pytest.mark.slow] if later else [])
        for k, case in enumerate(calls("DIFFERENTIABLE"))
        for call, refused in [case.values]
        for j, on in enumerate(["handles"] if refused else ["handles", "tensors"])
        for later in [not refused and j != k % 2]
    ]


@pytest.mark.parametrize(("call", "on"), in_turn())
def test_transforms_pass_through(call: Any, on: str, rng: np.random.Generator) -> None:
    """Derivatives equal central differences, vmap equals a loop, jit equals the plain call."""

    def handled(x: Any) -> Any:
        return call(rebind.wrap(x)).unwrap()

    x, fun = xp.asarray(X), handled if on == "handles" else call
    laws.check_derivatives(fun, [x], rng, order=1)
    laws.check_batch(fun, [x], rng)
    laws.close(ft.jit(fun)(x), fun(x))


def test_tables_are_large_enough() -> None:
    """The counts that docs/CONFORMANCE.md states."""
    counts = {label: (len(m.DIFFERENTIABLE), len(m.VALUES)) for label, m in TABLES.items()}
    assert counts == {
        "scipy": (145, 40), "numeric": (93, 52), "listed": (0, 151), "sklearn": (63, 80)
    }  # fmt: skip
    more = np.lib.NumpyVersion(scipy.__version__) >= "1.18.0"  # which writes in more of them
    refused = {label: len(m.REFUSED) for label, m in TABLES.items()}
    expected = {"scipy": 36 + 6 * more, "numeric": 48 + 3 * more, "listed": 10, "sklearn": 56}
    assert refused == expected
    for module in TABLES.values():
        assert {*module.DIFFERENTIABLE, *module.VALUES} >= module.REFUSED
