"""Where reductions and choices have no derivative, or a closed form loses it: what stands for it.

Ties share, norms and deviations have 0 at their point, what is not chosen counts for nothing even
where it is NaN, and products are polynomials. Every way of asking agrees, in both orders.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, nan
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

L = xp.linalg

GRADIENTS: list[tuple[str, Callable[[Any], Any], list[float], list[float]]] = [
    ("max", xp.max, [1, 1, 0], [0.5, 0.5, 0]), ("max", xp.max, [inf, 1, inf], [0.5, 0, 0.5]),
    ("min", xp.min, [0, 1, 0], [0.5, 0, 0.5]), ("min", xp.min, [-inf, -inf], [0.5, 0.5]),
    ("maximum", lambda x: xp.maximum(x[0], x[1]), [-0.0, 0.0], [0.5, 0.5]),
    ("clip", lambda x: xp.sum(xp.clip(x, 0.0, 1.0)), [0, 0.5, 1, 2], [0.5, 1, 0.5, 0]),
    ("abs", lambda x: xp.sum(xp.abs(x)), [0, -0.0, -inf, inf], [0, 0, -1, 1]),
    ("median", xp.median, [1, 3, 1, 2], [0, 0, 0.5, 0.5]),
    ("sort", lambda x: xp.sort(x)[1], [1, 1, 2], [0, 1, 0]),
    ("cumulative_max", lambda x: xp.cumulative_max(x)[-1], [1, 1, 0], [1, 0, 0]),
    ("norm 2", L.vector_norm, [0, 0], [0, 0]), ("norm 2", L.vector_norm, [0, -2], [0, -1]),
    ("norm 1", lambda x: L.vector_norm(x, ord=1), [0, -inf], [0, -1]),
    ("norm 3", lambda x: L.vector_norm(x, ord=3), [0, 0], [0, 0]),
    ("norm inf", lambda x: L.vector_norm(x, ord=inf), [-2, 2], [-0.5, 0.5]),
    ("norm inf", lambda x: L.vector_norm(x, ord=inf), [0, 0], [0, 0]),
    ("std", xp.std, [3, 3, 3], [0, 0, 0]), ("var", xp.var, [3, 3], [0, 0]),
    ("logsumexp", xp.logsumexp, [0, -inf], [1, 0]),
    ("logsumexp", xp.logsumexp, [1e300, 0], [1, 0]),
    ("logsumexp", xp.logsumexp, [0, 40], [exp(-40), 1]),
    ("logaddexp", lambda x: xp.logaddexp(x[0], x[1]), [inf, inf], [0.5, 0.5]),
    ("nansum", xp.nansum, [nan, 1], [0, 1]),
    ("where", lambda x: xp.sum(xp.where(x > 0, xp.sqrt(x), 0.0)), [0, -1, nan, 4], [0, 0, 0, 0.25]),
    ("where", lambda x: xp.sum(xp.where(x > 0, x * xp.log(x), 0.0)), [0, 1], [0, 1]),
    ("x**0", lambda x: xp.sum(x**0), [0, 2, inf], [0, 0, 0]),
    ("x**3", lambda x: xp.sum(x**3), [-2, 0, -0.0], [12, 0, 0]),
    ("x**y", lambda x: xp.sum(x ** xp.asarray([2.0, 1.0, 0.0])), [-2, 0, 0], [-4, 1, 0]),
    ("0**y", lambda y: xp.sum(xp.asarray(0.0) ** y), [0, 1, 2.5], [0, 0, 0]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("f", "point", "expected"), [g[1:] for g in GRADIENTS], ids=[g[0] for g in GRADIENTS]
)
def test_gradients(f: Callable[[Any], Any], point: list[float], expected: list[float]) -> None:
    """In both modes, compiled, and of a batch."""
    x = xp.asarray(point, dtype="float64")
    lanes = ft.vmap(ft.grad(f))(xp.stack([x, x]))
    found = [ft.grad(f)(x), ft.jit(ft.grad(f))(x), lanes[1]]
    if np.isfinite(expected).all():  # else 0 of the basis meets infinity
        found += [ft.jacfwd(f)(x), ft.jit(ft.jacfwd(f))(x)]
    for slope in found:
        np.testing.assert_allclose(np.asarray(slope), expected, 1e-15)


def _polynomial(x: list[float], terms: list[list[int]]) -> tuple[Any, Any]:
    """Gradient and Hessian of the sum of the products of the elements with these indices."""
    n = len(x)
    first, second = np.zeros(n), np.zeros((n, n))
    for term in terms:
        for i in term:
            first[i] += np.prod([x[k] for k in term if k != i])
            for j in term:
                if j != i:
                    second[i, j] += np.prod([x[k] for k in term if k not in (i, j)])
    return first, second


@pytest.mark.parametrize("x", [[0, 2, 3], [0, 0, 3], [2, 0, 0, 0], [1e150, 0, -1e150], [-0.0, 5]])
@pytest.mark.parametrize("name", ["prod", "cumulative_prod"])
def test_products_with_zeros(name: str, x: list[float]) -> None:
    """Products of the others, and of all but two."""
    n = len(x)
    terms = [list(range(k + 1)) for k in range(n)] if name != "prod" else [list(range(n))]
    first, second = _polynomial(x, terms)
    f, at = (lambda x: xp.sum(getattr(xp, name)(x))), xp.asarray(x, dtype="float64")
    for slope in (ft.grad(f), ft.jacfwd(f), ft.jit(ft.grad(f))):
        np.testing.assert_allclose(np.asarray(slope(at)), first, 1e-15)
    for bend in (ft.hessian(f), ft.jacrev(ft.grad(f)), ft.jit(ft.hessian(f))):
        np.testing.assert_allclose(np.asarray(bend(at)), second, 1e-15)
