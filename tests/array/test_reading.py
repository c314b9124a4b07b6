"""Reading elements in machine code gives what Python gives."""

import gc
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given

import funct as ft
import funct.array as xp
from funct.array import keys, reading
from funct.errors import FunctError
from funct.kernels.cpu import often
from tests import laws
from tests.array.test_indexing import as_tensors, keyed


@pytest.fixture(autouse=True, params=[False, True], ids=["python", "code"])
def loaded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With the code, and without."""
    for name, plain in (("read", reading._read), ("rows", reading._rows), ("bare", keys.bare)):
        monkeypatch.setattr(reading, name, plain)
    if request.param:
        reading._load()
        assert reading.read is not reading._read
    return bool(request.param)


X = np.arange(24.0).reshape(2, 3, 4)
MASK = np.asarray([True, False, True])
LOOP: list[Any] = []
LOOP.append(LOOP)

READ = [
    0, -1, True, None, ..., slice(1, None), (), (1, 2), (1, 2, 3), (0, ..., 1), (None, 0, None),
    (slice(None, None, -1), 1), np.int64(1), np.int8(-1), (np.int64(0), np.int64(2)),
    [0, 1], [[0, 1], [1, 0]], [], (slice(None), [0, 2]), ([0, 1], [1, 2]), [True, False],
    (slice(None), [2, 0], slice(1, 3)), (0, slice(None), [1, 0]),
    np.asarray([1, 0, 1]), np.asarray([[1], [0]], np.int32), np.asarray([0], np.uint8),
    np.asarray(1), (np.asarray(1), np.asarray(2)), (slice(None), np.asarray([2, 0])),
    (..., np.asarray([0, 3])), (np.asarray([0, 1]), slice(1, 3), np.asarray([1, 1])),
    (slice(None), MASK), (slice(None), MASK, np.asarray([1, 1])), X > 5.0, (X[:, 0] > 2.0)[:, :3],
    np.zeros((2, 0), np.int64), (slice(None), np.asarray([0, 1], np.uint64)),
]  # fmt: skip
REFUSED = [
    2, (0, 3), (0, 0, 0, 0), [5], np.asarray([7]), MASK, "a", 1.5, [0.5], (..., ...), LOOP,
    [[0], 1], (0,) * 40, slice(None, None, 0), np.asarray([0.5]), 2**70, np.asarray([-(2**40)]),
]  # fmt: skip


@pytest.mark.parametrize("key", READ, ids=repr)
def test_reads_what_numpy_reads(key: Any) -> None:
    """Every kind of key, on arrays in any order; what is no view lies in C order."""
    for raw in (X, X.transpose(0, 1, 2)[::-1], np.asfortranarray(X)):
        x = xp.asarray(raw)
        laws.same(x[key], raw[key])
        laws.same(x[as_tensors(key)], raw[key])
        assert x[key].__class__ is xp.Array
        assert np.shares_memory(x[key].data, x.data) or x[key].is_contiguous()


@pytest.mark.parametrize("key", REFUSED, ids=lambda k: "loop" if k is LOOP else repr(k))
def test_refuses_by_name(key: Any) -> None:
    """What NumPy refuses comes out as a typed error, and the next read works."""
    x = xp.asarray(X)
    with pytest.raises(FunctError):
        x[key]
    assert float(x[0, 0, 1]) == 1.0


@given(case=keyed())
def test_reads_random_keys(case: Any) -> None:
    """As above, for keys at random."""
    raw, key = case
    laws.same(xp.asarray(raw)[as_tensors(key)], raw[key])


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.complex64, ml_dtypes.bfloat16])
def test_dtypes_stay(dtype: Any) -> None:
    """An element, a row and a selection have the array's dtype."""
    x = xp.asarray(np.arange(6).reshape(2, 3).astype(dtype))
    for key in ((0, 1), 0, (slice(None), xp.asarray([0, 2])), xp.asarray([0, 0])):
        assert x[key].dtype == dtype
    assert {row.dtype for row in x} == {np.dtype(dtype)}


def test_many_positions_in_a_vector() -> None:
    """Long vectors of positions and masks go a way of their own."""
    raw = np.arange(1000.0)
    x, at = xp.asarray(raw), np.arange(999, -1, -2)
    laws.same(x[xp.asarray(at)], raw[at])
    laws.same(x[xp.asarray(at.reshape(2, -1))], raw[at.reshape(2, -1)])
    laws.same(x[x > 7.0], raw[raw > 7.0])


@pytest.mark.pairwise
@pytest.mark.parametrize("index", [np.int64, np.int32, np.int16, np.uint8])
@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.complex128, ml_dtypes.bfloat16])
@pytest.mark.parametrize("axes", [2, 3])
def test_many_positions_on_several_axes(axes: int, dtype: Any, index: Any) -> None:
    """Elements and rows, from the end too, in arrays of any order; also beside other keys."""
    rng = np.random.default_rng(axes)
    raw = rng.integers(0, 99, (5, 7, 11)).astype(dtype)
    low = 0 if np.dtype(index).kind == "u" else -1
    at = tuple([rng.integers(low * n, n, 3000).astype(index) for n in raw.shape[:axes]])
    turned = tuple([k.reshape(60, 50)[:, ::2] for k in at])
    for x in (raw, np.asfortranarray(raw), raw[::-1, :, ::2], raw[..., None]):
        short = tuple([k % min(n, 6) for k, n in zip(at, x.shape)])
        i, rest = short[:1], short[1:]
        beside = (*i, slice(None)), (*i, 1), (slice(None), *rest), (*i, None), (*i, rest[0][:1])
        for key in (short, tuple([k[:, None] for k in short]), *beside):
            laws.same(xp.asarray(x)[as_tensors(key)], x[key])
    laws.same(xp.asarray(raw)[as_tensors(turned)], raw[turned])
    for axis, n in enumerate(raw.shape[:axes]):
        wrong = [k.copy() for k in at]
        wrong[axis][2999] = n
        with pytest.raises(FunctError, match="out of bounds"):
            xp.asarray(raw)[as_tensors(tuple(wrong))]


@pytest.mark.parametrize("raw", [X, X[0, 0], X[:0], X.T, X[::-1, :, ::2], np.zeros((3, 0))])
def test_rows(raw: Any) -> None:
    """Iteration gives Arrays that are views of the buffer, which they keep."""
    x = xp.asarray(raw, copy=False)
    found = list(x)
    assert len(found) == len(raw)
    for row, expected in zip(found, raw, strict=True):
        laws.same(row, expected)
        assert row.__class__ is xp.Array
        assert np.shares_memory(row.data, x.data) or not row.size
        assert not row.size or row.data.flags.writeable == x.data.flags.writeable
    del x
    gc.collect()
    assert [float(xp.sum(row)) for row in found] == [float(v.sum()) for v in raw]


def test_no_reference_is_lost() -> None:
    """Neither what is read nor what is refused keeps the array, the key or the dtype."""
    x, at = xp.asarray(X), xp.asarray([1, 0])
    watched = [x, x.data, at, at.data, np.dtype(np.float64), np.int64]

    def use() -> None:
        for _ in range(50):
            for key in (0, (0, 1, 2), at, (slice(None), at), (at, at), [0, 1], (0, [0, 1])):
                _ = x[key]
            for key in (9, "a", (at, at, at, at), [0.5]):
                with pytest.raises(FunctError):
                    x[key]
            _ = list(x), x.at[at].set(1.0)

    use()
    before = [sys.getrefcount(v) for v in watched]
    use()
    after = [sys.getrefcount(v) for v in watched]
    assert all(b <= a + 5 for a, b in zip(before, after, strict=True)), (before, after)


def test_tracers_go_the_general_way() -> None:
    """A traced key or array is seen by its transform."""
    x, at = xp.asarray(X), xp.asarray([1, 0])
    laws.same(ft.vmap(lambda i: x[i])(at), X[[1, 0]])
    g = ft.grad(lambda v: xp.sum(v[at] * v[0]))(x)
    laws.close(g, np.stack([2 * X[0] + X[1], X[0]]))


def test_loads_when_it_is_called_often(loaded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python functions that are there at first make room for the code."""
    monkeypatch.setattr(often, "_OFTEN", 3)
    monkeypatch.setattr(often, "_LOADED", 3)
    first = often.Often(reading._load).counted(reading._read)
    x = xp.asarray(X)
    monkeypatch.setattr(reading, "read", first)
    for _ in range(7):
        laws.same(x[1], X[1])
    assert reading.read is not first


def test_contains() -> None:
    """`v in x` asks whether any element equals v, whatever axes there are."""
    x = xp.asarray(X)
    assert 5.0 in x
    assert xp.asarray(23) in x
    assert 0.5 not in x
    assert 0.5 not in x[:0]
    assert ft.jit(lambda x: 1.0 if 5.0 in x else 2.0)(x) == 1.0
