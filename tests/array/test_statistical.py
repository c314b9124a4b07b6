"""Statistical, searching and sorting functions against NumPy, and the laws they obey."""

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, DTypeError, IndexOutOfBoundsError, ShapeError
from tests import laws
from tests.strategies import REAL, arrays, filled, with_axes, with_axis

NUMBERS = ["int8", "uint16", "int64", "float32", "float64", "complex128"]
FLOATS = ["float8_e4m3fn", "bfloat16", "float16", "float32", "float64"]


def check(fun: Any, x: Any) -> None:
    """Derivatives, vmap and jit of a function of one floating array without ties."""
    rng = np.random.default_rng(0)
    arg = xp.asarray(rng.normal(size=x.shape))
    if arg.size:
        laws.check_derivatives(fun, [arg], rng, order=1)
    laws.check_batch(fun, [arg], rng)
    laws.check_jit(fun, [arg])


def summed(x: Any, axis: Any) -> bool:
    """Whether some reduced axis has length 0."""
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis)
    return any(x.shape[int(a)] == 0 for a in axes)


REDUCTIONS = [
    name for name in xp.__all__
    if inspect.isfunction(f := getattr(xp, name)) and "keepdims" in inspect.signature(f).parameters
]  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0])
def test_keepdims_is_any_truth(name: str, axis: int | None) -> None:
    """0, 1 and NumPy's truth do what False and True do, and graphs hold True and False."""
    fun, more = getattr(xp, name), {"q": 0.5} if "quantile" in name else {}
    more = {"q": 50.0} if "percentile" in name else more
    x = xp.asarray([[1.0, 4.0, 2.0], [3.0, 0.5, 6.0]])
    for truth in (0, 1, np.True_, np.False_):
        kept = lambda v, t=truth: fun(v, axis=axis, keepdims=t, **more)  # noqa: E731
        told = lambda v, t=bool(truth): fun(v, axis=axis, keepdims=t, **more)  # noqa: E731
        laws.same(kept(x), told(x))
        laws.same(ft.jit(kept)(x), told(x))
        laws.same(ft.vmap(kept)(x[None]), ft.vmap(told)(x[None]))
        graphs = [ft.make_graph(f)(x) for f in (kept, told)]
        assert len({repr([e.params for e in g.nodes]) for g in graphs}) == 1


@pytest.mark.parametrize("name", ["sum", "prod"])
@given(case=with_axes(NUMBERS), keepdims=st.booleans())
def test_sum_and_prod(name: str, case: Any, keepdims: bool) -> None:
    """sum and prod are NumPy's: axis forms, keepdims, widening of small integers."""
    x, axis = case
    fun, ref = getattr(xp, name), getattr(np, name)
    expected = ref(x, axis=axis, keepdims=keepdims)
    laws.close(fun(xp.asarray(x), axis=axis, keepdims=keepdims), expected, 1e-6, 1e-6)
    if x.dtype.kind != "c":
        single = fun(xp.asarray(x), axis=axis, dtype="float64")
        laws.close(single, ref(x.astype("float64"), axis=axis), 1e-12, 1e-12)
    check(lambda v: fun(v, axis=axis, keepdims=keepdims), x)


@pytest.mark.parametrize("name", ["max", "min"])
@given(case=with_axes(REAL), keepdims=st.booleans())
def test_extrema(name: str, case: Any, keepdims: bool) -> None:
    """max and min are NumPy's; over nothing they raise."""
    x, axis = case
    fun, ref = getattr(xp, name), getattr(np, name)
    if summed(x, axis):
        with pytest.raises(ShapeError, match=f"^{name}: no elements along axis "):
            fun(xp.asarray(x), axis=axis)
        return
    laws.same(
        fun(xp.asarray(x), axis=axis, keepdims=keepdims), ref(x, axis=axis, keepdims=keepdims)
    )
    check(lambda v: fun(v, axis=axis, keepdims=keepdims), x)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
@given(case=with_axes(["float32", "float64", "complex128"]), keepdims=st.booleans())
def test_moments(name: str, case: Any, keepdims: bool) -> None:
    """mean, var and std are NumPy's, complex variance included, and keep the precision."""
    x, axis = case
    assume(x.size and not (x.dtype.kind == "c" and name == "std"))
    fun, ref = getattr(xp, name), getattr(np, name)
    out = fun(xp.asarray(x), axis=axis, keepdims=keepdims)
    laws.close(out, ref(x, axis=axis, keepdims=keepdims), 1e-5, 1e-6)
    if name != "mean":
        n = x.size if axis is None else int(np.prod([x.shape[a] for a in np.atleast_1d(axis)]))
        if n > 1:
            laws.close(
                fun(xp.asarray(x), axis=axis, correction=1), ref(x, axis=axis, ddof=1), 1e-5, 1e-6
            )
    if name != "std":
        check(lambda v: fun(v, axis=axis, keepdims=keepdims), x)


@pytest.mark.parametrize(
    ("name", "dtype"), [("mean", "bool"), ("mean", "int8"), ("var", "uint8"), ("var", "float32")]
)
def test_number_of_elements_fits_no_dtype(name: str, dtype: str) -> None:
    """A symbolic number of elements is no element: it may be larger than the dtype holds."""
    fun = getattr(xp, name)
    compiled = ft.jit(fun)
    for n in (100, 200, 300, 400):
        x = xp.asarray(np.arange(n) % 2, dtype=dtype)
        laws.same(compiled(x), fun(x))
    assert compiled.cache_info().misses == 2


@pytest.mark.parametrize("name", ["all", "any", "count_nonzero"])
@given(case=with_axes(), keepdims=st.booleans())
def test_truth(name: str, case: Any, keepdims: bool) -> None:
    """all, any and count_nonzero are NumPy's for every dtype."""
    x, axis = case
    expected = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
    laws.same(getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims), expected)


@given(with_axes(["float64"]), st.booleans())
def test_logsumexp(case: Any, keepdims: bool) -> None:
    """logsumexp is log(sum(exp(x))), and does not overflow."""
    x, axis = case
    fun = lambda v: xp.logsumexp(v, axis=axis, keepdims=keepdims)  # noqa: E731
    with np.errstate(divide="ignore"):
        expected = np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))  # -inf of nothing
    laws.close(fun(xp.asarray(x)), expected)
    laws.close(fun(xp.asarray(x) + 1e4), expected + 1e4, 1e-12)
    check(fun, x)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@given(case=with_axis(REAL), keepdims=st.booleans(), flat=st.booleans())
def test_positions_of_extrema(name: str, case: Any, keepdims: bool, flat: bool) -> None:
    """argmax and argmin give the first position, along an axis or in the flat array."""
    x, axis = case
    axis = None if flat else axis
    assume(not summed(x, axis))
    expected = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
    laws.same(getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims), expected)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@given(case=with_axis(NUMBERS), initial=st.booleans())
def test_running(name: str, case: Any, initial: bool) -> None:
    """Running sums and products are NumPy's, with and without the initial element."""
    x, axis = case
    fun, ref = getattr(xp, name), getattr(np, name)
    expected = ref(x, axis=axis, include_initial=initial)
    laws.close(fun(xp.asarray(x), axis=axis, include_initial=initial), expected, 1e-5, 1e-6)
    check(lambda v: fun(v, axis=axis, include_initial=initial), x)


@pytest.mark.parametrize("way", [lambda f: f, ft.jit])
def test_products_of_infinite_factors(way: Any) -> None:
    """The derivative in a factor is the product of the others, also beside an infinite one."""
    x = xp.asarray([[np.inf, 2.0, 3.0], [2.0, np.inf, 0.5], [np.inf, np.inf, 1.0]])
    expected = [[6.0, np.inf, np.inf], [np.inf, 1.0, np.inf], [np.inf, np.inf, np.inf]]
    for product in (xp.prod, lambda v, axis: xp.cumulative_prod(v, axis=axis)[:, -1]):
        slopes = way(ft.grad(lambda v, f=product: xp.sum(f(v, axis=1))))(x)
        np.testing.assert_array_equal(np.asarray(slopes), expected)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@given(case=with_axis(REAL))
def test_running_extrema(name: str, case: Any) -> None:
    """cumulative_max and cumulative_min accumulate NumPy's maximum and minimum, NaN too."""
    x, axis = case
    fun = {"maximum": xp.cumulative_max, "minimum": xp.cumulative_min}[name]
    y = np.where(x > 1, np.nan, x) if x.dtype.kind == "f" else x
    found = np.asarray(fun(xp.asarray(y), axis=axis))  # of 0 and -0 either
    np.testing.assert_array_equal(found, getattr(np, name).accumulate(y, axis))
    assert (found.dtype, found.shape) == (y.dtype, y.shape)
    check(lambda v: fun(v, axis=axis), x)


@given(arrays(["float64", "complex128"], min_rank=1, max_rank=2, min_side=2), st.data())
def test_cov(x: Any, data: Any) -> None:
    """cov and corrcoef are NumPy's, with weights, both orientations and a second operand."""
    rowvar = data.draw(st.booleans())
    x = x + np.random.default_rng(4).normal(size=x.shape)  # no variable is constant
    n = x.shape[-1] if rowvar or x.ndim == 1 else x.shape[0]
    options: dict[str, Any] = {"bias": data.draw(st.booleans())}
    if data.draw(st.booleans()):
        options |= {"fweights": np.arange(n) + 1, "aweights": np.linspace(0.5, 2, n)}
    mine = {k: xp.asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    for other in (None, x[::-1].copy()):
        y = None if other is None else xp.asarray(other)
        out = xp.cov(xp.asarray(x), y, rowvar, **mine)
        laws.close(out, np.cov(x, other, rowvar, **options), 1e-9, 1e-12)
    if x.dtype.kind == "f":
        expected = np.asarray(np.corrcoef(x, rowvar=rowvar))
        laws.close(xp.corrcoef(xp.asarray(x), None, rowvar), expected, 1e-9, 1e-12)
        check(lambda v: xp.cov(v, None, rowvar, **mine), x)


@given(with_axis(["int64", "float64"]), st.integers(0, 3), st.booleans())
def test_diff(case: Any, n: int, bordered: bool) -> None:
    """diff is NumPy's, with values in front and behind."""
    x, axis = case
    edge = {"prepend": x, "append": x} if bordered else {}
    mine = {k: xp.asarray(v) for k, v in edge.items()}
    laws.close(xp.diff(xp.asarray(x), axis=axis, n=n, **mine), np.diff(x, n, axis, **edge))
    laws.close(xp.diff(xp.asarray(x), n, axis, **mine), np.diff(x, n, axis, **edge))
    check(lambda v: xp.diff(v, axis=axis, n=n), x)


@given(arrays(min_rank=1))
def test_nonzero(x: Any) -> None:
    """nonzero is NumPy's."""
    laws.same(list(xp.nonzero(xp.asarray(x))), list(np.nonzero(x)))


@given(with_axis(REAL), st.booleans())
def test_sorting(case: Any, descending: bool) -> None:
    """sort and argsort are stable in both directions."""
    x, axis = case
    t = xp.asarray(x)
    order = np.argsort(-x if descending else x, axis, kind="stable")
    laws.same(xp.argsort(t, axis=axis, descending=descending), order)
    laws.same(xp.sort(t, axis=axis, descending=descending), np.take_along_axis(x, order, axis))
    check(lambda v: xp.sort(v, axis=axis, descending=descending), x)


def test_nan_sorts_last() -> None:
    """NaN stands behind all numbers in ascending order."""
    x = xp.asarray([np.nan, 1.0, -1.0])
    laws.same(xp.sort(x), np.asarray([-1.0, 1.0, np.nan]))
    laws.same(xp.argsort(x), np.asarray([2, 1, 0]))


@given(with_axis(REAL), st.data())
def test_top_k(case: Any, data: Any) -> None:
    """top_k gives the largest elements in descending order, and where they stand."""
    x, axis = case
    k = data.draw(st.integers(0, x.shape[axis]))
    values, at = xp.top_k(xp.asarray(x), k, axis=axis)
    expected = np.take(np.flip(np.sort(x, axis), axis), np.arange(k), axis)
    laws.same(values, expected)
    laws.same(xp.take_along_axis(xp.asarray(x), at, axis=axis), expected)
    check(lambda v: xp.top_k(v, k, axis=axis)[0], x)


@given(
    st.lists(st.floats(-3, 3), max_size=6), arrays(["float64"]), st.sampled_from(["left", "right"])
)
def test_searchsorted(values: Any, v: Any, side: Any) -> None:
    """searchsorted is NumPy's, with a sorter too, and under vmap."""
    raw = np.asarray(values, "float64")
    order = np.argsort(raw, kind="stable")
    s, t = xp.asarray(raw[order]), xp.asarray(v)
    expected = np.searchsorted(raw[order], v, side)
    laws.same(xp.searchsorted(s, t, side=side), np.asarray(expected))
    laws.same(
        xp.searchsorted(xp.asarray(raw), t, side=side, sorter=xp.asarray(order)),
        np.asarray(expected),
    )
    laws.check_batch(
        lambda a, b: xp.searchsorted(xp.sort(a), b, side=side), [s, t], np.random.default_rng(0)
    )


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", ["bool", "uint8", "int4", "int64", "uint64", *FLOATS])
@pytest.mark.parametrize("other", ["bool", "int8", "uint4", "int64", "uint64", *FLOATS])
def test_searchsorted_in_two_dtypes(kind: str, other: str) -> None:
    """What can be compared is found in every lane as well."""
    x = xp.asarray([0, 1, 1, 3], dtype=getattr(xp, kind))
    v = xp.asarray([1, 0, 2], dtype=getattr(xp, other))
    for side in ("left", "right"):
        fun = lambda x, v, s=side: xp.searchsorted(x, v, side=s)  # noqa: E731
        expected = np.asarray(fun(x, v))
        laws.same(ft.jit(fun)(x, v), expected)
        laws.same(ft.vmap(fun)(x[None], v[None])[0], expected)
        laws.same(ft.vmap(fun, (0, None))(x[None], v)[0], expected)
        laws.same(ft.jit(ft.vmap(fun, (None, 0)))(x, v[None])[0], expected)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_puts_nan_last(side: Any) -> None:
    """NaN stands behind all numbers, for one search and for a batch of them."""
    raw, v = np.asarray([0.0, 1.0, 1.0, np.nan, np.nan]), np.asarray([1.0, np.nan, -1.0, 2.0])
    expected = np.searchsorted(raw, v, side)
    laws.same(xp.searchsorted(xp.asarray(raw), xp.asarray(v), side=side), expected)
    lanes = [xp.asarray(np.stack([a, a])) for a in (raw, v)]
    batched = ft.vmap(lambda a, b: xp.searchsorted(a, b, side=side))(*lanes)
    laws.same(batched, np.stack([expected, expected]))


@given(with_axis(), st.data())
def test_take(case: Any, data: Any) -> None:
    """take and take_along_axis are NumPy's, negative indices included."""
    x, axis = case
    n = x.shape[axis]
    assume(n)
    i = data.draw(arrays(["int64"])) % (2 * n) - n
    laws.same(xp.take(xp.asarray(x), xp.asarray(i), axis=axis), np.take(x, i, axis))
    laws.same(xp.take(xp.asarray(x), [0, -1], axis=axis), np.take(x, [0, -1], axis))
    along = filled(x.shape, "int64", 3) % (2 * n) - n
    laws.same(
        xp.take_along_axis(xp.asarray(x), xp.asarray(along), axis=axis),
        np.take_along_axis(x, along, axis),
    )
    check(lambda v: xp.take(v, xp.asarray(i), axis=axis), x)


def test_dtypes_of_integer_statistics() -> None:
    """mean of integers is floating, sums of small integers widen."""
    x = xp.asarray([1, 2, 4], dtype="int8")
    assert xp.mean(x).dtype == xp.float64
    assert float(xp.mean(x)) == pytest.approx(7 / 3)
    assert xp.sum(x).dtype == xp.int64
    assert xp.sum(xp.asarray([1], dtype="uint8")).dtype == xp.uint64
    assert xp.cumulative_sum(x).dtype == xp.int64
    assert xp.sum(x, dtype=xp.int8).dtype == xp.int8


def test_where_and_nan() -> None:
    """What is not chosen has derivative 0 even where it is NaN or infinite; dtypes are kept."""
    x32 = xp.asarray([4.0, -1.0], dtype="float32")
    c = x32 > 0
    assert xp.where(c, x32, 0.0).dtype == xp.float32
    assert xp.where(c, 0.0, x32).dtype == xp.float32
    assert xp.where(c, 1, x32).dtype == xp.float32
    assert xp.where(c, xp.asarray(1, dtype="int8"), 2).dtype == xp.int8
    with np.errstate(invalid="ignore", divide="ignore"):
        g = ft.grad(lambda x: xp.sum(xp.where(x > 0, xp.sqrt(x), 0.0)))(x32)
        laws.same(g, np.asarray([0.25, 0.0], "float32"))
        g = ft.grad(lambda x: xp.sum(xp.where(x > 0, 1 / x, x)))(xp.asarray([2.0, 0.0]))
        laws.close(g, np.asarray([-0.25, 1.0]))


X = xp.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: xp.sum(X, axis=2),
            ShapeError,
            "sum: axis 2 is out of range for an array of rank 2",
        ),
        (lambda: xp.max(X, axis=(0, 0)), ShapeError, "max: an axis occurs twice in (0, 0)"),
        (
            lambda: xp.argmax(X, axis=5),
            ShapeError,
            "argmax: axis 5 is out of range for an array of rank 2",
        ),
        (lambda: xp.sort(X, axis="a"), ShapeError, "sort: axis must be an int, got 'a'"),
        (
            lambda: xp.cumulative_sum(X),
            ShapeError,
            "cumulative_sum: axis is needed for an array of rank 2",
        ),
        (
            lambda: xp.take(X, xp.asarray([0])),
            ShapeError,
            "take: axis is needed for an array of rank 2",
        ),
        (
            lambda: xp.take(X, xp.asarray([0.5]), axis=0),
            DTypeError,
            "take: indices must be integers, got float64",
        ),
        (
            lambda: xp.take(X, xp.asarray([3]), axis=0),
            IndexOutOfBoundsError,
            "take: index 3 is out of bounds for an axis of length 2",
        ),
        (
            lambda: xp.take_along_axis(X, xp.asarray([0])),
            ShapeError,
            "take_along_axis: ranks must agree, got x (2, 3), indices (1,)",
        ),
        (
            lambda: xp.take_along_axis(X, xp.zeros((4, 1), dtype="int64")),
            ShapeError,
            "take_along_axis: shapes must broadcast, got x (2, 3), indices (4, 1)",
        ),
        (
            lambda: xp.corrcoef(xp.zeros((2, 2, 2))),
            ShapeError,
            "corrcoef: m must have at most 2 axes, got shape (2, 2, 2)",
        ),
        (lambda: xp.top_k(X, 4), ShapeError, "top_k: k must be between 0 and 3, got 4"),
        (lambda: xp.nonzero(xp.asarray(1)), ShapeError, "nonzero: a 0-d array has no indices"),
        (
            lambda: xp.searchsorted(X[0], X, side="middle"),
            ArgumentError,
            "searchsorted: side must be 'left' or 'right', got 'middle'",
        ),
        (
            lambda: xp.searchsorted(X, X),
            ShapeError,
            "searchsorted: x1 must be 1-D, got shape (2, 3)",
        ),
        (
            lambda: xp.argmax(xp.zeros(0)),
            ShapeError,
            "argmax: no elements along axis 0 of shape (0,)",
        ),
        (lambda: xp.sum(X, dtype="text"), DTypeError, "sum: 'text' is no dtype"),
    ],
)
def test_errors(call: Any, error: Any, text: str) -> None:
    """The error names function, expectation and value, and quotes this file's line."""
    with pytest.raises(error) as caught:
        call()
    assert caught.value.what == text
    assert "in test_statistical.py:" in str(caught.value)


@pytest.mark.pairwise
@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd", "average"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64", "bool"])
@pytest.mark.parametrize("axis", [None, 0, (1,)])
@pytest.mark.parametrize("rows", [3, 5000])
def test_sums_of_integers_may_leave_their_range(name, dtype, axis, rows) -> None:
    """Means of the greatest integers are NumPy's: nanoseconds of today add up to 2**63 soon."""
    ends = (False, True) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = np.random.default_rng(0).choice(np.asarray([ends[1], ends[1], ends[0]], dtype), (rows, 2))
    fun, expected = lambda v: getattr(xp, name)(v, axis=axis), getattr(np, name)(x, axis=axis)
    for run in (fun, ft.jit(fun)):
        found = run(xp.asarray(x))
        assert found.dtype == expected.dtype
        laws.close(found, expected, 1e-12)
