"""What comes to positions of an array is combined in order, with the bits of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels.cpu import loops
from funct.kernels.indexing import combining as kernels
from funct.kernels.indexing import scattering
from tests.kernels.arrays import alike, arrays, indices

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")

DTYPES = [
    "bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64",
]  # fmt: skip
OF_ROWS = ("bool", "float16", "bfloat16")  # which are combined as rows and lines only


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays go to the kernels too."""
    monkeypatch.setattr(loops, "_LEAST", 1)
    monkeypatch.setattr(kernels, "_MANY", 1)
    monkeypatch.setattr(kernels, "_FEW", 1)
    monkeypatch.setattr(scattering, "_MUCH", 1)
    monkeypatch.setattr(scattering, "_COLUMNS", 8)


@given(st.data(), st.sampled_from(DTYPES))
@pytest.mark.parametrize("mode", ["set", *kernels.COMBINED_AT])
def test_rows_are_combined_in_order(mode: str, data: st.DataObject, dtype: str) -> None:
    """With NumPy's bits; where an index is out of bounds nothing is touched."""
    y = np.array(data.draw(arrays(dtype, min_rank=2)), order="C")
    i = indices(data, tuple(data.draw(st.lists(st.integers(0, 4), max_size=2))), len(y))
    shape = (*i.shape, *y.shape[1:])
    rows = np.resize(np.flip(y), data.draw(st.sampled_from([shape, y.shape[1:], ()])))

    def combined(by: Any) -> Any:
        found = y.copy()
        try:
            by(found, rows, i, mode)
        except IndexError:
            assert found.tobytes() == y.tobytes()
            raise
        return found

    alike(lambda: combined(kernels.combine_rows_into), lambda: combined(_plain_rows))


def _plain_rows(y: Any, v: Any, i: Any, mode: str) -> None:
    y[i]  # ufuncs write until they meet an index that is out of bounds
    kernels.plain_combine_into(y, v, i, mode)


def _plain_combine(y: Any, v: Any, i: Any, mode: str) -> Any:
    kernels.plain_combine_into(y, v, i, mode)
    return y


@given(st.data(), st.sampled_from(DTYPES))
@pytest.mark.parametrize("mode", ["set", *kernels.COMBINED_AT])
def test_combining(mode: str, data: st.DataObject, dtype: str) -> None:
    """Every write counts, in order; NaN wins where NumPy lets it win."""
    x = data.draw(arrays(dtype, min_rank=1)).reshape(-1)
    v = data.draw(arrays(dtype, min_rank=1)).reshape(-1)
    i = indices(data, v.shape, len(x))
    y = x.copy()
    alike(lambda: kernels.combine(x, v, i, mode), lambda: _plain_combine(y, v, i, mode))


@given(st.data(), st.sampled_from(["float32", "float64", "int64"]), st.booleans())
@pytest.mark.parametrize("mode", ["set", "factors", *kernels.COMBINED_AT])
def test_combining_into_a_new_one(mode: str, data: st.DataObject, dtype: str, single: bool) -> None:
    """Numbers and one element for each position."""
    x = data.draw(arrays(dtype, min_rank=1)).reshape(-1)
    v = data.draw(arrays(dtype, min_rank=1)).reshape(-1)
    i = indices(data, v.shape, len(x)).astype(np.int64)
    v = v[0].item() if single and v.size else v

    def plain() -> Any:
        start = np.ones_like(x) if mode == "factors" else x.copy()
        kernels.plain_combine_into(start, v, i, "multiply" if mode == "factors" else mode)
        return start

    alike(lambda: kernels.combined_at(x, v, i, mode), plain)
    assert kernels.combined_at(x.astype("f2"), v, i, mode) is None


@given(st.data(), st.sampled_from([d for d in DTYPES if d != "bool"]), st.integers(1, 2))
@pytest.mark.parametrize("mode", kernels.COMBINED_AT)
def test_combining_along_an_axis(mode: str, data: st.DataObject, dtype: str, axis: int) -> None:
    """Positions on one axis behind the first, all others whole: NumPy's bits, also of numbers and
    of what broadcasts."""
    x = data.draw(arrays(dtype, min_rank=axis + 1))
    count = data.draw(st.lists(st.integers(1, 4), max_size=2))
    i = indices(data, tuple(count), x.shape[axis])
    key = *[slice(None)] * axis, i
    shape = (*x.shape[:axis], *i.shape, *x.shape[axis + 1 :])
    v = np.resize(np.flip(x), data.draw(st.sampled_from([shape, shape[1:], ()])))

    def plain() -> Any:
        y = np.array(x, order="C")
        each = np.moveaxis(np.broadcast_to(v, shape), range(axis, axis + i.ndim), range(i.ndim))
        _plain_rows(np.moveaxis(y, axis, 0), each, i, mode)
        return y

    for several in (1, 1 << 16) if x.size else ():
        with pytest.MonkeyPatch.context() as m:
            m.setattr(kernels, "_MUCH", several)
            alike(lambda: kernels.combined_along(x, v, key, mode), plain)
    assert kernels.combined_along(x, v, (*[slice(0, 1)] * axis, i), mode) is None


@given(
    st.data(), st.sampled_from([d for d in DTYPES if d != "bool"]), st.integers(-4, 4),
    st.integers(-4, 4), st.integers(1, 3),
)  # fmt: skip
@pytest.mark.parametrize("mode", kernels.COMBINED_AT)
def test_combining_parts_of_rows(
    mode: str, data: st.DataObject, dtype: str, start: int, stop: int, step: int
) -> None:
    """Positions on the first axis, a slice of the second: NumPy's bits, and all else as it was."""
    x = data.draw(arrays(dtype, min_rank=2))
    part = slice(start, stop, step)
    i = indices(data, (data.draw(st.integers(1, 4)),), len(x))
    shape = (*i.shape, *x[:1, part].shape[1:])
    v = np.resize(np.flip(x), data.draw(st.sampled_from([shape, shape[1:], ()])))

    def plain() -> Any:
        y = np.array(x, order="C")
        _plain_rows(y[:, part], np.broadcast_to(v, shape), i, mode)
        return y

    key = i, part, *[slice(None)] * (x.ndim - 2)
    if x[:, part].shape[1] and x.size and (step == 1 or x[0, 0].size == 1):
        alike(lambda: kernels.combined_within(x, v, key, mode), plain)
    else:
        assert kernels.combined_within(x, v, key, mode) is None
    assert kernels.combined_within(x, v, (i, slice(None, None, -1)), mode) is None


def _known(mode: str, dtype: str) -> bool:
    """Whether rows of these are combined: of complex numbers sums, and what is set."""
    return dtype[0] != "c" or mode in ("add", "set")


@given(
    st.data(), st.sampled_from(["float32", "int64", "uint8", "bool", "bfloat16", "complex64"])
)  # fmt: skip
@pytest.mark.parametrize("mode", ["set", *kernels.COMBINED_AT])
def test_combining_whole_rows(mode: str, data: st.DataObject, dtype: str) -> None:
    """Where it is done at all, rows that come to one place come in their order."""
    x = data.draw(arrays(dtype, min_rank=1))
    count = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=2))
    i = indices(data, tuple(count), len(x)).astype(np.int64)
    v = np.ascontiguousarray(np.resize(x.reshape(-1)[::-1], (*i.shape, *x.shape[1:])))

    def plain() -> Any:
        start = x.copy()
        kernels.plain_combine_into(start, v, i, mode)
        return start

    if x.size and v.size and _known(mode, dtype):
        alike(lambda: kernels.combined_rows(x, v, i, mode), plain)
    else:
        assert kernels.combined_rows(x, v, i, mode) is None
    assert kernels.combined_rows(x, v[..., None], i, mode) is None
    assert kernels.combined_rows(x, v, i.astype("i4"), mode) is None
    if x.ndim == 1 and x.size and v.size and _known(mode, dtype):
        alike(lambda: kernels.combined_each(x, v, i, mode), plain)


@given(st.data(), st.sampled_from(["float32", "float64", "int64"]), st.booleans())
@pytest.mark.parametrize("mode", ["set", "factors", *kernels.COMBINED_AT])
def test_combining_at_rows_and_columns(
    mode: str, data: st.DataObject, dtype: str, single: bool
) -> None:
    """A pair of indices says what the flat place of an element does."""
    x = data.draw(arrays(dtype, min_rank=2))
    x = x.reshape(len(x), -1) if x.size else np.zeros((2, 3), dtype)
    v = data.draw(arrays(dtype, min_rank=1))
    i, j = (
        indices(data, v.shape, n).astype(data.draw(st.sampled_from(["int32", "int64"])))
        for n in x.shape
    )
    v = v.reshape(-1)[0].item() if single and v.size else v

    def plain() -> Any:
        start = np.ones_like(x) if mode == "factors" else x.copy()
        if mode == "set":
            start[i, j] = v
        else:
            kernels.COMBINED_AT["multiply" if mode == "factors" else mode](start, (i, j), v)
        return start

    alike(lambda: kernels.combined_at(x, v, (i, j), mode), plain)
    others = (i, x.shape[1]), (i, True), (len(x), j), (True, j), (0, 0)
    for key in ((i,), (i, j, i), (i, j[..., None]), (i.astype("i2"), j), *others):
        assert kernels.combined_at(x, v, key, mode) is None


@given(st.data(), st.integers(2, 4), st.booleans())
@pytest.mark.parametrize("mode", ["set", "factors", *kernels.COMBINED_AT])
def test_combining_at_a_position_on_each_axis(
    mode: str, data: st.DataObject, rank: int, single: bool
) -> None:
    """And `leading`, of the first axes, says which elements those are."""
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)))
    x = np.random.default_rng(0).normal(size=shape)
    count = data.draw(st.integers(0, 70))
    kinds = st.sampled_from(["int32", "int64"])
    key = tuple([indices(data, (count,), n).astype(data.draw(kinds)) for n in shape])
    one = tuple([data.draw(st.integers(-n, n - 1)) for n in shape])
    alone = data.draw(st.integers(0, rank - 1))  # the axis whose array may be the only one
    key = data.draw(
        st.sampled_from([
            key, (*key[:-1], one[-1]), (*one[:alone], key[alone], *one[alone + 1 :])
        ])
    )  # fmt: skip
    v = 2.5 if single else np.linspace(1, 2, count)

    def plain() -> Any:
        start = np.ones_like(x) if mode == "factors" else x.copy()
        start[key]  # ufuncs write until they meet an index that is out of bounds
        if mode == "set":
            start[key] = v
        else:
            kernels.COMBINED_AT["multiply" if mode == "factors" else mode](start, key, v)
        return start

    alike(lambda: kernels.combined_at(x, v, key, mode), plain)
    places = np.arange(x[..., 0].size).reshape(shape[:-1])
    for first in (key[:-1], (key[0], *(np.asarray(k)[..., None][:1] for k in key[1:-1]))):
        if rank > 2 and any(k.__class__ is np.ndarray and k.ndim for k in first):
            alike(lambda f=first: kernels.leading(f, shape), lambda f=first: places[f])


@pytest.mark.parametrize("mode", ["set", "min"])
@pytest.mark.parametrize("count", [31, 32, 33, 64, 100])
def test_many_indices_are_looked_at_together(count: int, mode: str) -> None:
    """All inside, one from the end, one outside, wherever it stands."""
    x, rng = np.arange(7.0), np.random.default_rng(count)
    v = rng.standard_normal(count)
    for odd in (3, -1, -7, -8, 7, 100):
        for place in (0, 1, 30, count - 1):
            i = rng.integers(0, 7, count)
            i[place] = odd
            alike(
                lambda i=i: kernels.combined_at(x, v, i, mode),
                lambda i=i: _plain_combine(x.copy(), v, i, mode),
            )


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("count", [31, 32, 33, 64, 100])
def test_many_pairs_are_looked_at_together(count: int, index: str) -> None:
    """One row from the end or outside, and one column, wherever they stand."""
    x, rng = np.arange(35.0).reshape(7, 5), np.random.default_rng(count)
    v = rng.standard_normal(count)
    for odd in (3, -1, -5, -6, -7, -8, 5, 7, 100):
        for axis, place in ((0, 0), (1, 1), (0, 30), (1, count - 1)):
            key = rng.integers(0, 7, count), rng.integers(0, 5, count)
            key[axis][place] = odd
            i, j = (k.astype(index) for k in key)

            def plain(i: Any = i, j: Any = j) -> Any:
                y = x.copy()
                np.add.at(y, (i, j), v)
                return y

            alike(lambda i=i, j=j: kernels.combined_at(x, v, (i, j), "add"), plain)


def _line_and_positions(data: st.DataObject, dtype: str, index: str) -> tuple[Any, Any]:
    x = data.draw(arrays(dtype, min_rank=1)).reshape(-1)
    return x, indices(data, (data.draw(st.integers(1, 40)),), len(x)).astype(index)


def _plainly(x: Any, v: Any, i: Any, mode: str) -> Any:
    """`plain_combine_into` in a copy of x."""
    y = x.copy()
    kernels.plain_combine_into(y, v, i, mode)
    return y


@given(st.data(), st.sampled_from(DTYPES), st.sampled_from(["int32", "int64", "int16", "uint32"]))
@pytest.mark.parametrize("mode", ["set", *kernels.COMBINED_AT])
def test_indices_of_four_bytes_and_eight(
    mode: str, data: st.DataObject, dtype: str, index: str
) -> None:
    """One value for each position, in a new array; other indices are left to NumPy."""
    x, i = _line_and_positions(data, dtype, index)
    v = np.resize(np.arange(-3, 4).astype(dtype), i.shape)
    if index not in ("int32", "int64"):
        assert kernels.combined_each(x, v, i, mode) is None
        return

    alike(lambda: kernels.combined_each(x, v, i, mode), lambda: _plainly(x, v, i, mode))


@given(st.data(), st.sampled_from(DTYPES), st.sampled_from(["int32", "int64"]))
@pytest.mark.parametrize("mode", ["set", *kernels.COMBINED_AT])
def test_one_number_at_indices_of_four_bytes_and_eight(
    mode: str, data: st.DataObject, dtype: str, index: str
) -> None:
    """The same number for each position, in a new array, whatever the indices are made of."""
    x, i = _line_and_positions(data, dtype, index)
    v = 3.0 if x.dtype.kind == "f" else 3

    if dtype in ("uint64", *OF_ROWS):  # Python has too many of the first
        assert kernels.combined_at(x, v, i, mode) is None
    else:
        each = np.full(i.shape, v, x.dtype)
        alike(lambda: kernels.combined_at(x, v, i, mode), lambda: _plainly(x, each, i, mode))
