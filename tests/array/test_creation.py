"""Creation functions and dtypes against NumPy."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import (
    ArgumentError,
    DTypeError,
    RangeError,
    ShapeError,
)
from tests import laws
from tests.strategies import KINDS, arrays, shapes


@given(shapes(), st.sampled_from([*KINDS, None]))
def test_constant_arrays(shape: Any, kind: Any) -> None:
    """zeros, ones, empty and full have NumPy's shape, dtype and values; float64 by default."""
    laws.same(xp.zeros(shape, dtype=kind), np.zeros(shape, kind))
    laws.same(xp.ones(shape, dtype=kind), np.ones(shape, kind))
    laws.same(xp.full(shape, 1, dtype=kind), np.full(shape, 1, kind))
    assert xp.empty(shape, dtype=kind).shape == shape
    assert xp.empty(shape, dtype=kind).dtype == np.dtype(kind)


@given(arrays(), st.sampled_from([*KINDS, None]))
def test_like_functions(x: Any, kind: Any) -> None:
    """The _like functions take shape and dtype from x."""
    t = xp.asarray(x)
    laws.same(xp.zeros_like(t, dtype=kind), np.zeros_like(x, kind))
    laws.same(xp.ones_like(t, dtype=kind), np.ones_like(x, kind))
    laws.same(xp.full_like(t, 1, dtype=kind), np.full_like(x, 1, kind))
    assert xp.empty_like(t).dtype == x.dtype


@pytest.mark.parametrize("fill", [True, 3, 2.5, 1j, np.float32(2.0)], ids=repr)
def test_full_takes_the_dtype_of_its_value(fill: Any) -> None:
    """Without a dtype, full has the value's own."""
    laws.same(xp.full((2,), fill), np.full((2,), fill))


def test_linspace_of_integers_of_any_size() -> None:
    """Python's integers are numbers beyond 64 bits, too; those beyond floats are refused."""
    assert xp.linspace(0, 2**70, 3).tolist() == [0.0, 2.0**69, 2.0**70]
    with pytest.raises(RangeError, match="linspace: "):
        xp.linspace(0, 10**400, 3)


def test_full_names_a_fill_value_that_does_not_fit() -> None:
    """It is refused by the function that was called, not by an op inside of it."""
    with pytest.raises(ShapeError, match=r"full: fill_value must broadcast to \(2,\), got shape"):
        xp.full((2,), xp.ones(3))


def test_full_of_a_traced_value() -> None:
    """The fill value may be traced."""
    g = ft.grad(lambda v: xp.sum(xp.full((2, 3), v)))(xp.asarray(1.0))
    laws.close(g, np.asarray(6.0))


@given(
    st.integers(-5, 5),
    st.one_of(st.none(), st.integers(-5, 5)),
    st.sampled_from([-2, -1, 1, 3, 0.5, -0.25]),
    st.sampled_from(["int32", "float32", None]),
)
def test_arange(start: int, stop: Any, step: Any, kind: Any) -> None:
    """arange is NumPy's; one argument is stop."""
    low, high = (0, start) if stop is None else (start, stop)
    expected = np.arange(low, high, step, kind)
    laws.same(xp.arange(start, stop, step, dtype=kind), expected)


@given(st.floats(-5, 5), st.floats(-5, 5), st.integers(0, 7), st.booleans())
def test_linspace(start: float, stop: float, num: int, endpoint: bool) -> None:
    """linspace is NumPy's."""
    laws.same(
        xp.linspace(start, stop, num, endpoint=endpoint),
        np.linspace(start, stop, num, endpoint=endpoint),
    )


@given(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4)), st.integers(-4, 4))
def test_eye(rows: int, columns: Any, k: int) -> None:
    """eye is NumPy's."""
    laws.same(xp.eye(rows, columns, k=k), np.eye(rows, columns, k))
    laws.same(xp.eye(rows, k=k, dtype=xp.int32), np.eye(rows, k=k, dtype="int32"))


@given(st.lists(st.integers(0, 3), max_size=4), st.sampled_from(["xy", "ij"]))
def test_meshgrid(lengths: Any, indexing: str) -> None:
    """meshgrid is NumPy's for any number of vectors."""
    vectors = [np.arange(float(n)) + k for k, n in enumerate(lengths)]
    out = xp.meshgrid(*[xp.asarray(v) for v in vectors], indexing=indexing)
    laws.same(list(out), list(np.meshgrid(*vectors, indexing=indexing)))  # type: ignore[call-overload]


@given(arrays(min_rank=2), st.integers(-4, 4))
def test_triangles(x: Any, k: int) -> None:
    """tril and triu are NumPy's, for stacks of matrices."""
    laws.same(xp.tril(xp.asarray(x), k=k), np.tril(x, k))
    laws.same(xp.triu(xp.asarray(x), k=k), np.triu(x, k))


def test_asarray_of_python_objects() -> None:
    """Numbers and nested sequences convert as in NumPy; Tensors may stand among them."""
    for obj in (1, 2.0, True, 1j, [1, 2], [[1.0], [2.0]], (1, 2.5), [], np.float32(1), range(3)):
        laws.same(xp.asarray(obj), np.asarray(obj))
    laws.same(xp.asarray([1, 2], dtype=xp.float32), np.asarray([1, 2], "float32"))
    mixed = xp.asarray([[xp.asarray(1.0), 2.0], [3, xp.asarray(4.0)]])
    laws.same(mixed, np.asarray([[1.0, 2.0], [3.0, 4.0]]))
    g = ft.grad(lambda a: xp.sum(xp.asarray([a, 2.0 * a]) ** 2))(xp.asarray(3.0))
    laws.close(g, np.asarray(30.0))


def test_asarray_copies() -> None:
    """Writing into the source changes nothing, except where copy=False was asked for."""
    x = np.arange(3.0)
    t, shared = xp.asarray(x), xp.asarray(x, copy=False)
    x[0] = 9.0
    assert t.tolist() == [0.0, 1.0, 2.0]
    assert shared.tolist() == [9.0, 1.0, 2.0]
    assert xp.asarray(t) is t
    with pytest.raises(ArgumentError, match="copy=False"):
        xp.asarray(t, dtype="float32", copy=False)


@pytest.mark.parametrize(
    ("obj", "error"),
    [
        ([[1], [2, 3]], ShapeError),
        ("text", DTypeError),
        (["a"], DTypeError),
        ([None], DTypeError),
        ({"a": 1}, DTypeError),
        (object(), DTypeError),
    ],
    ids=["ragged", "text", "letters", "none", "mapping", "object"],
)
def test_asarray_refuses_what_is_no_array(obj: Any, error: type[Exception]) -> None:
    """Ragged sequences and objects raise typed errors."""
    with pytest.raises(error, match=r"^asarray: "):
        xp.asarray(obj)


@given(arrays())
def test_exchange(x: Any) -> None:
    """DLPack, pickle, copy and deepcopy keep every element; DLPack consumers get a copy."""
    t = xp.asarray(x)
    laws.same(pickle.loads(pickle.dumps(t)), x)
    assert copy.copy(t) is t
    assert copy.deepcopy(t) is t
    laws.same(xp.from_dlpack(x), x)
    laws.same(np.from_dlpack(t), x)
    if x.size:
        other = np.from_dlpack(t)
        assert not np.shares_memory(other, np.asarray(t))
        mine = xp.from_dlpack(x)
        x[...] = 1
        laws.same(mine, other)


# dtypes -------------------------------------------------------------------------------------------

NAMES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_are_numpys(name: str) -> None:
    """Every dtype of the standard is NumPy's, and equals its name."""
    assert getattr(xp, name) == np.dtype(name)
    assert xp.zeros(1, dtype=getattr(xp, name)).dtype == name


@pytest.mark.parametrize("kind", ["bool", "signed integer", "unsigned integer", "integral",
                                  "real floating", "complex floating", "numeric"])  # fmt: skip
def test_isdtype(kind: str) -> None:
    """isdtype is NumPy's, for names, tuples and dtypes."""
    for name in NAMES:
        assert xp.isdtype(np.dtype(name), kind) == np.isdtype(np.dtype(name), kind)
    assert xp.isdtype(xp.int8, (kind, xp.int8))
    with pytest.raises(DTypeError, match="isdtype: kind must be one of"):
        xp.isdtype(xp.int8, "floating")


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3), st.sampled_from([1, 2.0, 1j]))
def test_result_type(names: Any, number: Any) -> None:
    """Promotion is NumPy's: arrays, dtypes, and numbers that adopt the others' dtype."""
    dtypes = [np.dtype(n) for n in names]
    given_ = [xp.zeros(2, dtype=d) if i % 2 else d for i, d in enumerate(dtypes)]
    assert xp.result_type(*given_) == np.result_type(*dtypes)
    assert xp.result_type(*given_, number) == np.result_type(*dtypes, number)


def test_can_cast() -> None:
    """can_cast is NumPy's."""
    for a in NAMES:
        for b in NAMES:
            assert xp.can_cast(np.dtype(a), np.dtype(b)) == np.can_cast(a, b)
    assert xp.can_cast(xp.zeros(1, dtype="int8"), xp.int16)


def test_limits() -> None:
    """finfo and iinfo give Python numbers, for dtypes and for arrays."""
    for name in ("float32", "float64", "complex64"):
        info, expected = xp.finfo(np.dtype(name)), np.finfo(name)
        assert info.eps == float(expected.eps)
        assert info.max == float(expected.max)
        assert type(info.smallest_normal) is float
        assert info.bits == expected.bits
    assert xp.finfo(xp.ones(1)).dtype == xp.float64
    assert xp.iinfo(xp.int8).max == 127
    assert xp.iinfo(xp.zeros(1, dtype="uint8")).min == 0
    with pytest.raises(DTypeError, match="finfo: dtype must be floating, got int8"):
        xp.finfo(xp.int8)
    with pytest.raises(DTypeError, match="iinfo: dtype must be of integers, got float32"):
        xp.iinfo(xp.float32)


@given(arrays(), st.sampled_from(NAMES))
def test_astype(x: Any, name: str) -> None:
    """astype converts as NumPy does; complex numbers have a truth and no real value."""
    t = xp.asarray(x)
    if x.dtype.kind == "c" and np.dtype(name).kind not in "cb":
        with pytest.raises(DTypeError, match="astype: a complex array has no"):
            xp.astype(t, name)
        return
    with np.errstate(invalid="ignore"):
        laws.same(xp.astype(t, name), x.astype(name))
    assert xp.astype(t, x.dtype, copy=False) is t


def test_nested_sequences_of_tensors_promote_as_stack_does() -> None:
    """The dtype is that of all parts together, not of pairs; unequal parts are named."""
    parts = [xp.asarray(1, dtype=d) for d in (xp.int8, xp.uint8, xp.float16)]
    assert xp.asarray(parts).dtype == xp.stack(parts).dtype == xp.float16
    with pytest.raises(ShapeError, match=r"parts must have one shape, got \[\(0,\), \(1,\)\]"):
        xp.asarray([[], [xp.asarray(1.0)]])


@pytest.mark.parametrize("dtype", [xp.int4, xp.uint4, xp.int8, xp.uint16])
@pytest.mark.parametrize("way", [
    lambda v, d: xp.asarray(v, dtype=d), lambda v, d: xp.asarray([v], dtype=d),
    lambda v, d: xp.asarray([[0], (v,)], dtype=d), lambda v, d: xp.zeros(1, dtype=d).at[0].set(v),
    lambda v, d: xp.zeros(1, dtype=d).at[[0]].set([v]), lambda v, d: xp.full(1, v, dtype=d),
])  # fmt: skip
def test_integers_fit_their_dtype_or_are_refused(dtype: Any, way: Any) -> None:
    """Numbers and lists of them, of NumPy's dtypes and of narrower ones."""
    limits = xp.iinfo(dtype)
    for v in (limits.min, limits.max):
        assert int(xp.reshape(way(v, dtype), (-1,))[-1]) == v
    for v in (limits.min - 1, limits.max + 1, 2**70):
        with pytest.raises(RangeError):
            way(v, dtype)
