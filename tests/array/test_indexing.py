"""x[key] and x.at[key] against NumPy, and under grad, vmap and jit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.array import changes
from funct.errors import DTypeError, IndexOutOfBoundsError, ShapeError, UnsupportedOperandError
from tests import laws
from tests.strategies import filled, indices, shapes

UFUNCS = {
    "add": np.add,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}


@st.composite
def keyed(draw: Any, min_side: int = 0) -> tuple[Any, Any]:
    """An array and a key for it."""
    shape = draw(shapes(max_rank=4, min_side=min_side))
    x = filled(shape, "float64", draw(st.integers(0, 2**32 - 1)))
    return x, draw(indices(shape))


def as_tensors(key: Any) -> Any:
    """The key with its arrays as Tensors."""
    if isinstance(key, tuple):
        return tuple([as_tensors(k) for k in key])
    return xp.asarray(key) if isinstance(key, np.ndarray) else key


def positions(x: Any, key: Any) -> Any:
    """Flat positions that key selects."""
    return np.arange(x.size).reshape(x.shape)[key]


@given(keyed())
def test_index_equals_numpy(case: Any) -> None:
    """Every form of index selects what NumPy selects."""
    x, key = case
    laws.same(xp.asarray(x)[key], x[key])
    laws.same(xp.asarray(x)[as_tensors(key)], x[key])


@given(keyed(min_side=1), st.integers(0, 2**32 - 1))
def test_index_is_linear(case: Any, seed: int) -> None:
    """Its derivatives are itself and a scatter; under vmap it is a loop, under jit the same."""
    x, key = case
    rng = np.random.default_rng(seed)
    if x[key].size:
        laws.check_derivatives(lambda v: v[key], [xp.asarray(x)], rng, order=1)
    laws.check_batch(lambda v: v[key], [xp.asarray(x)], rng)
    laws.check_jit(lambda v: v[key], [xp.asarray(x)])


@pytest.mark.parametrize(
    "key",
    [
        np.asarray([[True, False, True], [False, True, True]]),
        (slice(1, None), np.asarray([True, False, True])),
        (np.asarray([[True, False, True], [False, True, True]]), 1),
        (np.asarray([True, False]), Ellipsis, -1),
        (np.asarray([True, False]), slice(None), np.asarray([0])),
        True,
        False,
        (None, True, 0),
        np.asarray(True),
        [1, 0, 1],
        ([1, 0], [2, 1]),
        (0, [1, 0], slice(None), None),
        ([1, 0], 0, [1, 2]),
        (0, slice(None), [1, 0]),
        (Ellipsis, [0, 1], [1, 2]),
        (np.int8(-1),),
        np.asarray([0, 1], np.uint8),
        (slice(None, None, -1), slice(5, None, -2)),
        (slice(np.int64(0), np.int64(2)),),
        (),
        Ellipsis,
        None,
        (slice(2, 1), Ellipsis, None),
    ],
    ids=repr,
)
def test_index_forms(key: Any) -> None:
    """Forms that the random keys seldom reach."""
    x = np.arange(24.0).reshape(2, 3, 4)
    laws.same(xp.asarray(x)[key], x[key])
    laws.same(ft.jit(lambda v: v[key])(xp.asarray(x)), x[key])


@pytest.mark.parametrize("form", ["one", "two", "apart", "with_slice", "zero_d"])
def test_batched_indices_equal_a_loop(form: str, rng: np.random.Generator) -> None:
    """Under vmap the indices may differ from lane to lane, for x.at as well."""
    x = rng.normal(size=(3, 4, 5, 4))
    i, j = rng.integers(-4, 4, (3, 2)), rng.integers(-4, 4, (3, 2))
    forms = {
        "one": lambda i, j: (slice(None), i),
        "two": lambda i, j: (i, i, j),
        "apart": lambda i, j: (i, slice(None), j),
        "with_slice": lambda i, j: (slice(1, None), i, j),
        "zero_d": lambda i, j: (i[0], slice(None), j),
    }
    key = forms[form]

    def get(x: Any, i: Any, j: Any) -> Any:
        return x[key(i, j)]

    def add(x: Any, i: Any, j: Any) -> Any:
        return x.at[key(i, j)].add(2.0)

    loop = np.stack([a[key(k, m)] for a, k, m in zip(x, i, j, strict=True)])
    arrays = [xp.asarray(v) for v in (x, i, j)]
    laws.same(ft.vmap(get)(*arrays), loop)
    laws.same(ft.jit(ft.vmap(get))(*arrays), loop)
    sums = x.copy()
    for a, k, m in zip(sums, i, j, strict=True):
        np.add.at(a, key(k, m), 2.0)
    laws.close(ft.vmap(add)(*arrays), sums)
    total = ft.grad(lambda x, i, j: xp.sum(ft.vmap(get)(x, i, j) ** 2))
    expected = np.zeros_like(x)
    for g, a, k, m in zip(expected, x, i, j, strict=True):
        np.add.at(g, key(k, m), 2 * a[key(k, m)])
    laws.close(total(*arrays), expected)


def test_traced_scalars_index(rng: np.random.Generator) -> None:
    """A traced 0-d integer is an index, without a guard."""
    x = xp.asarray(rng.normal(size=(4, 3)))
    pick = ft.jit(lambda x, i: x[i])
    for k in (0, 2, -1):
        laws.same(pick(x, xp.asarray(k)), np.asarray(x)[k])
    assert pick.cache_info().misses == 1
    laws.same(ft.vmap(lambda i: x[i, 1])(xp.asarray([3, 0])), np.asarray(x)[[3, 0], 1])


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("key", "text"),
    [
        (4, "x[...]: index 4 is out of bounds for axis 0 of length 2"),
        ((0, -4), "x[...]: index -4 is out of bounds for axis 1 of length 3"),
        ((0, 0, 0), "x[...]: 3 indices for an array of rank 2"),
        ((Ellipsis, Ellipsis), "x[...]: an index can have only one Ellipsis"),
        (np.asarray([0, 2]), "x[...]: index 2 is out of bounds for an axis of length 2"),
        (([0, 0], [0, 3]), "x[...]: index 3 is out of bounds for an axis of length 3"),
        (np.asarray([True]), "x[mask]: mask has shape (1,), the axes it selects have (2,)"),
        (np.asarray([0.5]), "x[...]: an index must be of integers, got float64"),
        (slice(None, None, 0), "x[...]: a slice step must not be 0"),
        (([0, 1], [0, 1, 2]), "x[...]: index arrays must broadcast, got shapes (2,) and (3,)"),
    ],
    ids=repr,
)
def test_bad_index_raises(key: Any, text: str, traced: bool) -> None:
    """The error names the index, the axis and its length, eager and under grad."""
    x = xp.ones((2, 3))
    call = (lambda: ft.vjp(lambda v: v[key], x)) if traced else (lambda: x[key])
    with pytest.raises(IndexOutOfBoundsError) as caught:
        call()
    assert caught.value.what == text
    assert "test_indexing.py" in str(caught.value)


@pytest.mark.parametrize("key", [1.5, "a", (0, 0.5), slice(0.5)])
def test_index_of_another_type_raises(key: Any) -> None:
    """What is neither int, slice, None, Ellipsis nor integer array is refused by name."""
    with pytest.raises(UnsupportedOperandError, match="int, slice, None, Ellipsis or Tensor"):
        xp.ones((2, 2))[key]
    with pytest.raises(UnsupportedOperandError):
        xp.ones((2, 2)).at[key].set(0.0)


def test_out_of_bounds_raises_in_every_transform() -> None:
    """Indices are checked under jit, vmap and grad too, never clamped."""
    x, i = xp.ones(3), xp.asarray([0, 5])
    for fun in (ft.jit(lambda x, i: x[i]), ft.vmap(lambda x, i: x[i], in_axes=(None, 0))):
        with pytest.raises(IndexOutOfBoundsError):
            fun(x, i)
    with pytest.raises(IndexOutOfBoundsError):
        ft.grad(lambda x: xp.sum(x[i]))(x)
    with pytest.raises(IndexOutOfBoundsError):
        x.at[i].set(0.0)


# x.at ---------------------------------------------------------------------------------------------


def traced(fun: Any) -> Any:
    """fun of arrays whose values it does not see."""
    return lambda *args: ft.vmap(fun)(*[xp.stack([a]) for a in args])[0]


@given(keyed(), st.integers(0, 2**32 - 1))
def test_set_equals_numpy(case: Any, seed: int) -> None:
    """x.at[key].set(v) is x with x[key] = v; x itself stays."""
    x, key = case
    v = np.random.default_rng(seed).normal(size=x[key].shape)
    expected = x.copy()
    expected[key] = v
    y = xp.asarray(x)
    laws.same(y.at[key].set(xp.asarray(v)), expected)
    laws.same(traced(lambda x, v: x.at[key].set(v))(y, xp.asarray(v)), expected)
    laws.same(y.at[key].get(), x[key])
    laws.same(y, x)
    expected[key] = 3
    laws.same(y.at[as_tensors(key)].set(3), expected)


@pytest.mark.parametrize("name", UFUNCS)
@given(case=keyed(), seed=st.integers(0, 2**32 - 1))
def test_update_equals_ufunc_at(name: str, case: Any, seed: int) -> None:
    """x.at[key].add(v) is np.add.at(x, key, v), repeated positions included, and so on."""
    x, key = case
    x = np.abs(x) + 0.5
    v = np.random.default_rng(seed).uniform(0.5, 2.0, x[key].shape)
    at = positions(x, key)
    for value in (v, np.asarray(2.0)):
        expected = x.reshape(-1).copy()  # ufunc.at knows no 0-d arrays
        UFUNCS[name].at(expected, at.reshape(-1), np.broadcast_to(value, at.shape).reshape(-1))
        args = xp.asarray(x), xp.asarray(value)
        for way in (lambda f: f, traced):
            updated = way(lambda x, v: getattr(x.at[key], name)(v))(*args)
            laws.close(updated, expected.reshape(x.shape))


@pytest.mark.pairwise
@pytest.mark.parametrize("name", ["set", *UFUNCS])
@pytest.mark.parametrize(
    "key", [np.asarray([0, 3, -1]), np.asarray([[1, 1], [2, 1]]), (slice(1, 4, 2),), 2], ids=repr
)
@pytest.mark.parametrize("row", [(), (2,)])
def test_update_obeys_the_laws(name: str, row: Any, key: Any, rng: np.random.Generator) -> None:
    """Updates have derivatives in x and in v, to second order, repeated positions included."""
    x = xp.asarray(rng.uniform(0.5, 2.0, (5, *row)))
    v = xp.asarray(rng.uniform(0.5, 2.0, np.asarray(x)[key].shape))

    def fun(x: Any, v: Any) -> Any:
        return getattr(x.at[key], name)(v)

    laws.check_derivatives(fun, [x, v], rng)
    laws.check_batch(fun, [x, v], rng)
    laws.check_jit(fun, [x, v])
    laws.check_nesting(fun, [x, v], rng, turn=["set", *UFUNCS].index(name) + x.ndim)


@pytest.mark.parametrize("name", ["set", *UFUNCS])
def test_update_with_traced_positions(name: str, rng: np.random.Generator) -> None:
    """Positions may be traced: batched under vmap, an input of a jit graph."""
    x = xp.asarray(rng.uniform(0.5, 2.0, (2, 5)))
    v = xp.asarray(rng.uniform(0.5, 2.0, (2, 3)))
    i = xp.asarray([[0, 3, 0], [4, -1, 2]])

    def fun(x: Any, v: Any, i: Any) -> Any:
        return getattr(x.at[i], name)(v)

    loop = xp.stack([fun(x[k], v[k], i[k]) for k in range(2)])
    laws.close(ft.vmap(fun)(x, v, i), loop)
    laws.close(ft.jit(ft.vmap(fun))(x, v, i), loop)

    def total(x: Any, v: Any) -> Any:
        return xp.sum(xp.sin(ft.vmap(fun)(x, v, i)))

    def each(x: Any, v: Any) -> Any:
        return xp.sum(xp.sin(xp.stack([fun(x[k], v[k], i[k]) for k in range(2)])))

    laws.close(ft.grad(total, (0, 1))(x, v), ft.grad(each, (0, 1))(x, v))
    laws.close(ft.jit(ft.grad(total, (0, 1)))(x, v), ft.grad(each, (0, 1))(x, v))


def test_multiply_derivative_is_exact_at_zero() -> None:
    """The derivative of a product of repeated factors holds where factors are 0."""
    x, v = xp.asarray([2.0, 3.0]), xp.asarray([0.0, 5.0, 7.0])
    i = xp.asarray([0, 0, 1])

    def fun(x: Any, v: Any) -> Any:
        return xp.sum(x.at[i].multiply(v))

    gx, gv = ft.grad(fun, (0, 1))(x, v)
    laws.close(gx, np.asarray([0.0, 7.0]))
    laws.close(gv, np.asarray([10.0, 0.0, 3.0]))
    h = ft.hessian(lambda v: fun(x, v))(v)
    laws.close(h, np.asarray([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))


def test_equal_elements_share_the_derivative_of_max() -> None:
    """x.at[i].max(v) shares between x and all v that are equal, as reduce_max does."""
    i = xp.asarray([0, 0])
    g = ft.grad(lambda x, v: xp.sum(x.at[i].max(v)), (0, 1))
    gx, gv = g(xp.asarray([2.0, 1.0]), xp.asarray([2.0, 1.0]))
    laws.close(gx, np.asarray([0.5, 1.0]))
    laws.close(gv, np.asarray([0.5, 0.0]))


def test_masked_update_by_broadcasting() -> None:
    """A mask selects the positions; a scalar or a row broadcasts to what it selects."""
    x = np.arange(6.0).reshape(2, 3)
    mask = x > 2
    expected = x.copy()
    expected[mask] = 0.0
    laws.same(xp.asarray(x).at[xp.asarray(mask)].set(0.0), expected)
    expected[:, :2] = [7.0, 8.0]
    laws.same(xp.asarray(expected).at[:, :2].set(xp.asarray([7.0, 8.0])), expected)


@pytest.mark.parametrize("mode", ["set", *UFUNCS])
@pytest.mark.parametrize(
    "key",
    [
        lambda m: m,
        lambda m: (..., m),
        lambda m: (m, ...),
        lambda m: (m[0],),
        lambda m: (slice(None), m[0, 0]),
        lambda m: (slice(None), m[0, 0], slice(None)),
        lambda m: (..., m[:, 0, 0], slice(None), slice(None)),
        lambda m: m[0, 0, 0],
    ],
    ids=["whole", "behind", "before", "first", "second", "between", "leading", "0-d"],
)
def test_update_under_a_traced_mask(mode: str, key: Any, rng: np.random.Generator) -> None:
    """One value for all that a mask selects: no shape depends on the mask, so it may be traced."""
    x = rng.uniform(0.5, 2.0, (3, 3, 3))
    mask = rng.random((3, 3, 3)) < 0.5

    def update(x: Any, v: Any, mask: Any) -> Any:
        return getattr(x.at[key(mask)], mode)(v)

    expected = x.copy()
    at = key(mask)
    expected[at] = 1.5 if mode == "set" else UFUNCS[mode](expected[at], 1.5)
    given = [xp.asarray(x), xp.asarray(1.5), xp.asarray(mask)]
    laws.close(update(*given), expected)
    laws.close(ft.jit(update, fullgraph=True)(*given), expected)
    assert ft.make_graph(update)(*given).nodes
    laws.check_batch(update, given, rng)
    laws.check_derivatives(lambda x, v: update(x, v, given[2]), given[:2], rng, order=1)


@pytest.mark.parametrize("kind", ["int32", "float32", "complex128", "bool"])
def test_update_keeps_the_dtype(kind: str) -> None:
    """The result has x's dtype whatever v is."""
    x = xp.zeros(3, dtype=kind)
    assert x.at[0].set(1).dtype == kind
    assert x.at[0].set(xp.asarray(1.0)).dtype == kind
    assert x.at[xp.asarray([0, 0])].add(1).dtype == kind


@pytest.mark.pairwise(
    where=lambda update, dtype, **_: update == "set" if dtype == "bool"
    else dtype[0] == "f" or update not in {"divide", "power"}
)  # fmt: skip
@pytest.mark.parametrize("update", ["set", "add", "multiply", "divide", "power", "min", "max"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int8", "bool"])
@pytest.mark.parametrize("shape", [(3000,), (300, 10), (30, 10, 10)], ids=str)
def test_updates_of_many_elements(update: str, dtype: str, shape: Any) -> None:
    """Kernels take numbers and arrays that broadcast, and give what is composed of ops."""
    rng = np.random.default_rng(0)
    x = xp.asarray(rng.integers(1, 4, shape).astype(dtype))
    # NumPy's powers in vectors err by an ulp, which the next power of a place multiplies
    rtol = 1e-9 if update != "power" else max(1e-9, 16 * float(np.finfo(dtype).eps))
    i = rng.integers(-shape[0], shape[0], 3 * shape[0])
    masks = x.concrete() > 2, x.concrete()[:, ..., 0] > 2 if len(shape) > 1 else x.concrete() < 2
    last = np.arange(shape[-1]) % 2 == 0
    parts = (masks[0],), (..., last), (..., xp.asarray(1)), (0, ..., last), (np.uint8(2), ...)
    if len(shape) == 1:
        parts = parts[:3]
    for key in (i, i.astype(np.int32), i.reshape(3, -1), i[:3], *masks, *parts):
        part = x[key]
        values = [1, xp.asarray(2, dtype=dtype), part, part[:1] if part.ndim else part]
        for v in values:
            change = lambda x, v=v, key=key: getattr(x.at[key], update)(v)  # noqa: E731
            with np.errstate(over="ignore"):  # what comes to one place is multiplied up
                laws.close(change(x), ft.jit(change)(x), rtol)


@pytest.mark.pairwise
@pytest.mark.parametrize("name", ["set", *UFUNCS])
@pytest.mark.parametrize("n", [3, 300])
@pytest.mark.parametrize("shape", [(2, 2), (1, 4), (2, 3, 2), (20, 30)], ids=str)
def test_values_broadcast_to_positions(shape: Any, n: int, name: str) -> None:
    """As if each position had its own: NumPy 2.4 itself reads on behind the end of the values."""
    rng = np.random.default_rng(0)
    x, at = rng.uniform(1.0, 2.0, n), rng.integers(-3, 3, shape)
    for v in (
        rng.uniform(0.97, 1.03, s) for s in (shape[1:], shape[-1:], (1, *shape[1:]), (1,), ())
    ):
        expected = x.copy()
        values = np.broadcast_to(v, shape).reshape(-1)
        for k, one in zip(at.reshape(-1), values, strict=True):
            expected[k] = one if name == "set" else UFUNCS[name](expected[k], one)
        for key in (xp.asarray(at), at, (xp.asarray(at),), at.tolist()):
            found = getattr(xp.asarray(x).at[key], name)(xp.asarray(v))
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


def test_update_errors() -> None:
    """Values that do not fit are refused by name."""
    with pytest.raises(ShapeError) as shape:
        xp.zeros(3).at[:2].set(xp.ones(3))
    assert shape.value.what.startswith("x.at[...].set: v of shape (3,) does not broadcast to (2,)")
    with pytest.raises(DTypeError):
        xp.zeros(3).at[0].set(1j)
    with pytest.raises(DTypeError):
        xp.zeros(3, dtype="int64").at[0].divide(2)
    with pytest.raises(DTypeError):
        xp.zeros(3).at[0].set("a")


KEYS = {
    "int": 1, "slice": slice(None, None, -2), "ints": (1, -1), "mixed": (slice(1, None), None, 0),
    "dots": (..., 1), "rows": xp.asarray([2, 0, 2]), "columns": (slice(None), xp.asarray([1, 1])),
    "grid": xp.asarray([[0, 1], [-1, 1]]), "pairs": (xp.asarray([0, 1]), xp.asarray([-1, 1])),
    "behind": (0, xp.asarray([1, 0])), "mask": xp.asarray([True, False, True]),
    "points": xp.asarray([[True, False], [False, True], [True, True]]), "none": xp.asarray([0])[:0],
    "zero": xp.asarray(1), "list": [2, 0, 2], "lists": ([1, 0], [1, 1]), "scalar": np.int8(-1),
    "raw": np.asarray([0, 2], np.uint8), "under": (xp.asarray([True, False, True]), 1),
    "beside": (slice(None), xp.asarray([True, False])), "apart": (xp.asarray([2, -1]), 0),
}  # fmt: skip


def _is_defined(update: str, dtype: str, **_: Any) -> bool:
    """Truth is only set, integers are not divided, complex numbers are in no order."""
    if dtype == "bool":
        return update == "set"
    refused = {"divide"} if dtype in {"int64", "uint8"} else {"power", "min", "max"}
    return dtype.startswith("float") or update not in refused


@pytest.mark.pairwise(where=_is_defined)
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("update", ["set", "add", "multiply", "divide", "power", "min", "max"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "complex128", "bool"])
def test_concrete_arrays_take_a_short_way_to_the_same_bits(
    key: Any, update: str, dtype: str
) -> None:
    """What NumPy does at once and what is composed of ops agree, also in the sign of zero."""
    if dtype == "bool":
        x, numbers = xp.asarray([[True, False], [False, False], [True, True]]), [True, 0]
    elif dtype == "complex128":
        x, numbers = xp.asarray([[-0.0, 2.5j], [0.1, -0.0j], [0.7 - 1j, -1.3]]), [-0.3, 2, 1 - 0.5j]
    elif dtype in {"int64", "uint8"}:
        x, numbers = xp.asarray([[0, 2], [1, 250], [7, 13]], dtype=dtype), [0, 3]
    else:
        x = xp.asarray([[-0.0, 2.5], [0.1, -0.0], [-np.inf, 1.3]], dtype=dtype)
        numbers = [-0.3 if update == "divide" else -0.0, 0.3, 0.5, 2, 1]
    change = lambda x, v: getattr(x.at[key], update)(v)  # noqa: E731
    values = *numbers, xp.asarray(3, dtype=dtype), x[key][..., ::-1] if x[key].shape else x[key]
    with np.errstate(divide="ignore", invalid="ignore"):  # of 0 by 0
        every = ft.jit(lambda x: [change(x, v) for v in values])(x)
        pairs = [(change(x, v), composed) for v, composed in zip(values, every, strict=True)]
    for known, composed in pairs:
        if update == "power" and x.dtype.kind == "f":
            # NumPy squares for a single exponent 2; its powers on AVX-512 are not all nearest
            np.testing.assert_array_max_ulp(np.asarray(known), np.asarray(composed), 1)
            np.testing.assert_array_equal(np.signbit(known), np.signbit(composed))
        else:
            assert bytes(np.asarray(known)) == bytes(np.asarray(composed))
    read, composed = x[key], ft.jit(lambda x: x[key])(x)
    assert bytes(np.ascontiguousarray(read)) == bytes(np.ascontiguousarray(composed))
    assert read.shape == composed.shape


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "complex64"])
@pytest.mark.parametrize("v", [0.0, -0.0, float("nan"), 2.5, 3])
def test_a_number_under_a_mask_of_many(dtype: str, v: Any) -> None:
    """What a mask of x's shape keeps, with the bits of `where`; elsewhere x."""
    rng = np.random.default_rng(0)
    x = rng.choice([0.0, -0.0, 1.0, -7.0], (20, 33)).astype(dtype)
    for y, mask in ((x, rng.random(x.shape) > 0.5), (x.T, x.T == 1), (x[0], x[0] == 1)):
        if dtype == "int32" and v != 3:
            continue
        found = xp.asarray(y).at[xp.asarray(mask)].set(v)
        assert np.asarray(found).tobytes() == np.where(mask, np.asarray(v, dtype), y).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("mode", ["add", "multiply", "min", "max"])
def test_changes_by_a_number_under_a_mask_of_many(
    mode: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bits of those under a mask of few, also of -0 and what is not finite; nothing warns."""
    rng = np.random.default_rng(0)
    x = (9 * rng.normal(size=(70, 100))).astype(dtype)
    if dtype[0] == "f":
        x[0, :6] = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max]
    mask = rng.random(x.shape) > 0.5
    for v in (2, 0, -3) if dtype[0] == "i" else (2, 0.0, -0.0, 1e30, -2.5):
        found = getattr(xp.asarray(x).at[xp.asarray(mask)], mode)(v)
        with monkeypatch.context() as m, np.errstate(all="ignore"):
            m.setattr(changes, "_MANY", 1 << 40)
            each = getattr(xp.asarray(x).at[xp.asarray(mask)], mode)(v)
        assert found.dtype == each.dtype == x.dtype
        np.testing.assert_array_equal(found.data, each.data)
        if dtype[0] == "f":
            signs = [np.signbit(a.data)[found.data == found.data] for a in (found, each)]
            np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize("v", [1j, xp.asarray([1j])])
def test_complex_updates_of_real_elements_are_refused_by_the_update(v: Any) -> None:
    """The message names what was called, not the cast inside of it."""
    x = xp.asarray([1.0, 2.0])
    for update in (lambda x: x.at[:1].set(v), ft.jit(lambda x: x.at[:1].set(v))):
        with pytest.raises(DTypeError, match=r"x\.at\[...\]\.set: v must be real, as x of float64"):
            update(x)
