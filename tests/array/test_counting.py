"""Counting by bin against NumPy, and the laws it obeys."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, DTypeError, FunctError, ShapeError
from tests import laws
from tests.strategies import arrays

IDS = st.lists(st.integers(0, 6), max_size=8)
RNG = np.random.default_rng


@given(IDS, st.integers(0, 9))
def test_bincount(values: list[int], minlength: int) -> None:
    """Counts and sums of weights are NumPy's; other values are another path under jit."""
    x, w = np.asarray(values, "int64"), RNG(0).normal(size=len(values))
    laws.same(xp.bincount(xp.asarray(x), minlength=minlength), np.bincount(x, None, minlength))
    if values:
        laws.close(xp.bincount(xp.asarray(x), xp.asarray(w)), np.bincount(x, w))
    compiled = ft.jit(lambda v: xp.bincount(v, minlength=minlength))
    for y in (x, x[::-1] + 1):
        laws.same(compiled(xp.asarray(y)), np.bincount(y, None, minlength))


@given(IDS, st.integers(0, 9))
def test_bincount_of_known_length(values: list[int], length: int) -> None:
    """With length no value is asked for, and what lies outside is left out."""
    x = np.asarray(values, "int64") - 1
    inside = x[(x >= 0) & (x < length)]
    fun = lambda v: xp.bincount(v, length=length)  # noqa: E731
    laws.same(fun(xp.asarray(x)), np.bincount(inside, None, length))
    laws.check_batch(fun, [xp.asarray(x)], RNG(0))
    assert ft.eval_shape(fun, xp.asarray(x)).shape == (length,)
    weighted = lambda w: xp.bincount(xp.asarray(x), w, length=length)  # noqa: E731
    if values:
        laws.check_derivatives(weighted, [xp.asarray(RNG(0).normal(size=x.shape))], RNG(0), 1)


@given(IDS, arrays(["float64"], max_rank=2), st.none() | st.integers(0, 8))
def test_segment_sum(values: list[int], row: Any, num: Any) -> None:
    """Rows are added by id; ids outside are left out."""
    ids = np.asarray(values, "int64")
    data = RNG(0).normal(size=(len(values), *row.shape))
    n = (max(values) + 1 if values else 0) if num is None else num
    expected = np.zeros((n, *row.shape))
    np.add.at(expected, ids[ids < n], data[ids < n])
    fun = lambda d, i: xp.segment_sum(d, i, num)  # noqa: E731
    args = [xp.asarray(data), xp.asarray(ids)]
    laws.close(fun(*args), expected)
    laws.check_jit(fun, args)
    if num is not None and data.size and n:
        laws.check_batch(fun, args, RNG(0))
        laws.check_derivatives(fun, args, RNG(0), 1)


@given(arrays(["int64"]), st.integers(0, 4), st.data())
def test_one_hot(x: Any, n: int, data: Any) -> None:
    """A row of the unit matrix for each index, zeros for one outside."""
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    expected = np.moveaxis((x[..., None] == np.arange(n)).astype("float32"), -1, axis)
    fun = lambda v: xp.one_hot(v, n, dtype=xp.float32, axis=axis)  # noqa: E731
    laws.same(fun(xp.asarray(x)), expected)
    laws.check_batch(fun, [xp.asarray(x)], RNG(0))
    laws.check_jit(fun, [xp.asarray(x)])
    assert xp.one_hot(xp.asarray(x), n).dtype == xp.float64


EDGES = st.lists(st.integers(-3, 3), min_size=1, max_size=5, unique=True).map(sorted)


@given(arrays(["float64", "int64"]), EDGES, st.booleans(), st.booleans())
def test_digitize(x: Any, edges: list[int], right: bool, descending: bool) -> None:
    """digitize is NumPy's for ascending and descending bins."""
    bins = np.asarray(edges[::-1] if descending else edges, "float64")
    fun = lambda v: xp.digitize(v, xp.asarray(bins), right)  # noqa: E731
    laws.same(fun(xp.asarray(x)), np.asarray(np.digitize(x, bins, right)))
    laws.check_jit(fun, [xp.asarray(x)])
    laws.check_batch(fun, [xp.asarray(x)], RNG(0))


@given(arrays(["float64", "float32", "int64", "int8"]), st.data())
def test_histogram(x: Any, data: Any) -> None:
    """Counts, weights, density and edges are NumPy's, for numbers of bins and for edges."""
    edges = data.draw(EDGES.filter(lambda e: len(e) > 1))
    bins = data.draw(st.integers(1, 5) | st.just(np.asarray(edges, "float64")))
    given_range = data.draw(st.none() | st.just((-1.0, 2.5)))
    options = {"range": given_range, "density": data.draw(st.booleans())}
    counted = np.histogram(x, bins, given_range)[0].sum()
    if not counted:
        options["density"] = False  # NumPy divides 0 by 0
    weights = data.draw(st.none() | st.just(np.arange(x.size, dtype="float64").reshape(x.shape)))
    if (
        weights is not None
        and counted
        and not np.histogram(x, bins, given_range, weights=weights)[0].sum()
    ):
        options["density"] = False
    mine = xp.asarray(bins) if isinstance(bins, np.ndarray) else bins
    w = None if weights is None else xp.asarray(weights)
    counts, at = xp.histogram(xp.asarray(x), mine, weights=w, **options)
    expected, expected_at = np.histogram(x, bins, weights=weights, **options)
    assert at.dtype == expected_at.dtype  # an element may be at an edge of its own precision
    eps = float(np.finfo(expected_at.dtype).eps)
    laws.close(at, np.asarray(expected_at), 8 * eps, 8 * eps)
    laws.close(counts, expected, 8 * eps)
    laws.check_jit(lambda v: xp.histogram(v, mine, **options), [xp.asarray(x)])


def test_histogram_carries_derivatives_of_the_weights() -> None:
    """The derivative of a bin in the weight of an element is 1 where it falls in."""
    x = xp.asarray([0.1, 0.6, 0.9])
    j = ft.jacrev(lambda w: xp.histogram(x, 2, (0.0, 1.0), weights=w)[0])(xp.ones(3))
    laws.same(j, np.asarray([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]))


X = xp.asarray([0, 1])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: xp.bincount(X - 1),
            ArgumentError,
            "bincount: indices must not be negative, got -1",
        ),
        (
            lambda: xp.bincount(xp.ones(2)),
            DTypeError,
            "bincount: indices must be integers, got float64",
        ),
        (
            lambda: xp.bincount(X, xp.ones(3)),
            ShapeError,
            "bincount: weights must have x's shape (2,), got (3,)",
        ),
        (
            lambda: xp.segment_sum(xp.ones(3), X),
            ShapeError,
            "segment_sum: ids must be one per slice, got data (3,) and ids (2,)",
        ),
        (lambda: xp.histogram(X, 0), ArgumentError, "histogram: bins must be at least 1, got 0"),
        (
            lambda: xp.histogram_bin_edges(X, 0),
            ArgumentError,
            "histogram_bin_edges: bins must be at least 1, got 0",
        ),
        (
            lambda: xp.digitize(X, xp.ones(0)),
            ShapeError,
            "digitize: bins must be 1-D and not empty, got shape (0,)",
        ),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    """The error names function, expectation and value."""
    with pytest.raises(error) as caught:
        call()
    assert caught.value.what == text


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
@pytest.mark.parametrize("bins", [1, 2, 7, 100])
def test_bins_without_width_are_refused_as_by_numpy(kind: str, bins: int) -> None:
    """Where edges of bins would be one number; a little further apart they are NumPy's."""
    eps = 1.0 if kind == "int64" else float(np.finfo(kind).eps)
    refused = 0
    for start in [0.0, 1.0, -3.0, 2.0**30, 2.0**60, -(2.0**62)]:
        for steps in [0, 1, bins - 1, bins, 2 * bins, 9 * bins]:
            far = start * (1.0 if kind == "int64" else 1.0 + eps * steps)
            x = np.asarray([start, far + steps * (kind == "int64")]).astype(kind)
            for call in (xp.histogram, xp.histogram_bin_edges):
                try:
                    expected = np.histogram(x, bins)
                except ValueError:
                    refused += 1
                    with pytest.raises(ArgumentError, match=f"{bins} bins between .* no width"):
                        call(xp.asarray(x), bins)
                    continue
                edges = call(xp.asarray(x), bins)
                edges = edges[1] if isinstance(edges, tuple) else edges
                near = 2 * float(np.finfo(expected[1].dtype).eps)
                np.testing.assert_allclose(np.asarray(edges), expected[1], near)
    assert bins == 1 or refused


@pytest.mark.parametrize("n", [1 << 40, 1 << 62, (1 << 63) - 1, 1 << 70])
@pytest.mark.parametrize(
    "call",
    [
        lambda n: xp.segment_sum(xp.ones(3), xp.arange(3), n),
        lambda n: xp.bincount(xp.arange(3), minlength=n),
        lambda n: xp.bincount(xp.arange(3), length=n),
        lambda n: xp.bincount(xp.asarray([min(n, (1 << 63) - 1)])),
        lambda n: xp.histogram(xp.ones(3), n),
        lambda n: xp.one_hot(xp.arange(3), n),
    ],
)
def test_more_groups_than_the_machine_has_room_for_are_refused(call, n):
    with pytest.raises(FunctError):
        call(n)


def test_bincount_of_other_values_is_not_compiled_again() -> None:
    """Where minlength says how long the result is, the greatest value says nothing."""
    fun = ft.jit(lambda v: xp.bincount(v, minlength=50))
    rng = np.random.default_rng(0)
    for most in (1, 7, 20, 49, 50):
        x = rng.integers(0, most, 300).astype("uint8")
        laws.same(fun(xp.asarray(x)), np.bincount(x, None, 50))
    assert fun.cache_info().misses == 1
    longer = np.asarray([3, 70])
    laws.same(fun(xp.asarray(longer)), np.bincount(longer, None, 50))


def test_bins_may_be_counted_by_an_integer_of_numpy() -> None:
    """NumPy's integers count bins as Python's do; they were taken for edges."""
    counts, edges = xp.histogram(xp.asarray([0.0, 1.0]), np.int64(2))
    assert (counts.tolist(), edges.tolist()) == ([1, 1], [0.0, 0.5, 1.0])


ENDS = [0.0, -0.0, 1.0, 2.0, 2.0, -3.0, np.nan, np.inf, -np.inf]


@given(
    st.lists(st.sampled_from(ENDS), max_size=4),
    st.lists(st.sampled_from(ENDS[:-3]), min_size=1, max_size=4),
    st.none() | st.tuples(st.sampled_from(ENDS), st.sampled_from(ENDS)),
    st.booleans(),
)
def test_what_numpy_refuses_to_count_is_refused(values, edges, between, of_edges) -> None:
    """Ranges without finite ends, bins in no order: both count, or neither does."""
    x, bins = np.asarray(values), np.asarray(edges) if of_edges else 3
    mine = xp.asarray(bins) if of_edges else bins
    options = {} if of_edges else {"range": between}
    for name in ("histogram", "histogram_bin_edges", "digitize"):
        if name == "digitize":
            options, bins, mine = {}, np.asarray(edges), xp.asarray(edges)
        elif of_edges and len(bins) < 2:
            continue
        try:
            expected = getattr(np, name)(x, bins, **options)
        except ValueError:
            with pytest.raises(ArgumentError, match=f"^{name}: "):
                getattr(xp, name)(xp.asarray(x), mine, **options)
            continue
        found = getattr(xp, name)(xp.asarray(x), mine, **options)
        for a, b in zip(*((v if type(v) is tuple else (v,)) for v in (found, expected))):
            laws.close(a, b)
