"""Means, deviations, norms and distances of short floats are computed in float32."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.nn import functional as F  # noqa: N812

# The squares of all of these, and the sum of some, are infinite in float16.
ROWS = 100.0 * np.asarray([
    [3.0, -3.0, 2.0, 5.0], [640.0, 600.0, 650.0, 20.0], [-9.0, 9.0, -8.0, 7.0], [4.0, 8.0, 4.0, 4.0]
])  # fmt: skip
IMAGES = ROWS.reshape(2, 2, 4)
WEIGHT, BIAS = np.asarray([0.5, 2.0]), np.asarray([1.0, -1.0])
MEANS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mean": (lambda x: xp.mean(x, axis=1), (ROWS,)),
    "mean of all": (xp.mean, (ROWS,)),
    "nanmean": (lambda x: xp.nanmean(x, axis=1), (ROWS,)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2), (IMAGES,)),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 2), (IMAGES,)),
    "var": (lambda x: xp.var(x, axis=1), (ROWS / 500,)),
    "nanvar": (lambda x: xp.nanvar(x, axis=1), (ROWS / 500,)),
    "std": (lambda x: xp.std(x, axis=1), (ROWS,)),
    "nanstd": (lambda x: xp.nanstd(x, axis=1), (ROWS,)),
    "layer_norm": (lambda x: F.layer_norm(x, (4,)), (ROWS,)),
    "rms_norm": (lambda x: F.rms_norm(x, (4,), eps=1e-3), (ROWS,)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (IMAGES, WEIGHT, BIAS)),
    "instance_norm": (lambda x, w, b: F.instance_norm(x, None, None, w, b), (IMAGES, WEIGHT, BIAS)),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (IMAGES, WEIGHT, BIAS)
    ),
    "batch_norm of known statistics": (
        F.batch_norm, (IMAGES, WEIGHT, np.asarray([30.0, 3e4]))
    ),
    "local_response_norm": (lambda x: F.local_response_norm(x, 2, alpha=1e-2), (IMAGES,)),
    "normalize": (F.normalize, (ROWS,)),
    "cosine_similarity": (F.cosine_similarity, (ROWS, ROWS[::-1].copy())),
    "pairwise_distance": (F.pairwise_distance, (ROWS / 5, ROWS[::-1] / 5)),
    "pdist": (F.pdist, (ROWS / 5,)),
    "cdist": (F.cdist, (ROWS / 5, ROWS[::-1] / 5)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [xp.float16, xp.bfloat16])
@pytest.mark.parametrize("name", list(MEANS))
def test_what_is_in_range_is_computed(name: str, dtype: Any) -> None:
    """As in float64 of the same numbers, eagerly, compiled and under a derivative."""
    fun, given = MEANS[name]
    short = [xp.astype(xp.asarray(v), dtype) for v in given]
    expected = np.asarray(fun(*[xp.astype(v, xp.float64) for v in short]))
    rtol = 4 * float(xp.finfo(dtype).eps)
    for y in (fun(*short), ft.jit(fun)(*short), ft.vjp(fun, *short)[0]):
        assert y.dtype == dtype
        np.testing.assert_allclose(np.asarray(y, np.float64), expected, rtol=rtol, atol=rtol)


def factors(x: Any) -> Any:
    """By turns a little above and below 1, of x's shape and dtype."""
    above = xp.arange(x.shape[0])[:, None] % 2 == 0
    return xp.where(above, x * 0 + 65 / 64, x * 0 + 63 / 64)


SUMS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: xp.sum(x, axis=0),
    "sum in its dtype": lambda x: xp.sum(x, axis=0, dtype=x.dtype),
    "sum of all": lambda x: xp.sum(x / 64),
    "prod": lambda x: xp.prod(factors(x), axis=0),
    "prod in its dtype": lambda x: xp.prod(factors(x), axis=0, dtype=x.dtype),
    "nansum": lambda x: xp.nansum(x, axis=0),
    "average": lambda x: xp.average(x, axis=0, weights=xp.ones(x.shape[0], dtype=x.dtype)),
    "einsum": lambda x: xp.einsum("ij->j", x),
    "vector_norm": lambda x: xp.linalg.vector_norm(x, ord=1, axis=0),
    "cumulative_sum": lambda x: xp.cumulative_sum(x, axis=0),
    "matmul": lambda x: xp.ones(x.shape[0], dtype=x.dtype) @ x,
    "embedding_bag": lambda x: F.embedding_bag(xp.arange(x.shape[0])[None], x, mode="sum"),
    "trapezoid": lambda x: xp.trapezoid(x, axis=0),
    "slope of a row": lambda x: ft.vjp(lambda b: x + b, x[0])[1](x)[0],
    "batch": ft.vmap(xp.sum, in_axes=1),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("columns", [1, 3, 16, 40])
@pytest.mark.parametrize("rows", [20, 60, 1500])
@pytest.mark.parametrize("dtype", [xp.float16, xp.bfloat16])
@pytest.mark.parametrize("name", list(SUMS))
def test_small_terms_count_behind_a_large_one(
    name: str, dtype: Any, rows: int, columns: int
) -> None:
    """Half a unit of the first one each: added one by one in its dtype they are lost."""
    large = 1 / float(xp.finfo(dtype).eps)
    x = xp.full((rows, columns), 0.5, dtype=dtype).at[0].set(2 * large)
    fun = SUMS[name]
    expected = np.asarray(fun(xp.astype(x, xp.float64)))
    rtol = 2 * float(xp.finfo(dtype).eps)
    for y in (fun(x), ft.jit(fun)(x)):
        assert y.dtype == dtype
        np.testing.assert_allclose(np.asarray(y, np.float64), expected, rtol=rtol)


@pytest.mark.parametrize("dtype", [xp.float16, xp.bfloat16])
def test_slopes_of_what_varies_little_are_finite(dtype: Any) -> None:
    """The cube of a small deviation's inverse leaves the range of float16 as well."""
    x = xp.astype(xp.asarray([[0.0, 0.001, 0.0, 0.0]]), dtype)

    def of(x: Any) -> Any:
        return xp.sum(F.layer_norm(x, (4,), eps=1e-5) * xp.asarray([1.0, 2.0, 3.0, 4.0]))

    slopes = np.asarray(ft.grad(of)(x), np.float64)
    expected = np.asarray(ft.grad(of)(xp.astype(x, xp.float64)))
    np.testing.assert_allclose(slopes, expected, rtol=4 * float(xp.finfo(dtype).eps), atol=1e-1)


@pytest.mark.parametrize("dtype", [xp.float16, xp.bfloat16])
@pytest.mark.parametrize("fun", [F.hardsigmoid, F.hardswish])
def test_slopes_beside_a_kink_are_those_of_the_side(fun: Any, dtype: Any) -> None:
    """Next to 3, where x + 3 is 6 in these dtypes."""
    three = np.asarray(3.0, dtype)
    x = xp.asarray([np.nextafter(three, v) for v in (three * 0, three * 2)])
    slopes, expected = (ft.grad(lambda x: xp.sum(fun(x)))(v) for v in (x, xp.astype(x, xp.float64)))
    rtol = 2 * float(xp.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(slopes, np.float64), np.asarray(expected), rtol=rtol)


def test_weights_of_another_dtype_decide() -> None:
    """Short floats times float32 are float32, as products are."""
    x, w = xp.ones((2, 3), dtype=xp.float16), xp.ones(3, dtype=xp.float32)
    assert F.layer_norm(x, (3,), w).dtype == xp.float32
    assert F.layer_norm(x, (3,), xp.astype(w, xp.float16)).dtype == xp.float16
