"""Reductions of few elements: the bits of the other way, and None where that is to decide."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import funct.array as xp
from funct.kernels.cpu.loops import available
from funct.kernels.cpu.outside import warning_flags
from funct.kernels.cpu.reductions import few
from funct.kernels.reductions import statistical
from funct.kernels.table import restricted
from tests import guarded

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

WAYS = {
    "sum": statistical.total, "prod": statistical.product, "max": statistical.most,
    "min": statistical.least, "any": statistical.some, "all": statistical.every,
}  # fmt: skip
DTYPES = ("bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64")
SHAPES = (
    (2,), (7,), (8,), (9,), (33,), (65,), (137,), (487,), (513,), (1025,), (3, 4), (1, 5), (5, 1),
    (3, 1499), (40, 110), (2, 1, 3), (3, 200), (20, 64), (9, 33), (2, 5, 9), (0, 3), (3, 0),
)  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    rng = np.random.default_rng(sum(shape))
    if dtype.kind == "b":
        return rng.random(shape) < 0.95
    if dtype.kind in "iu":
        return rng.integers(-3 if dtype.kind == "i" else 0, 100, shape).astype(dtype)
    return np.exp(rng.normal(size=shape) / 9).astype(dtype) * np.sign(rng.normal(size=shape))


def axes_of(rank: int) -> list[Any]:
    """Each, the last ones from the end, all, and those that lie side by side."""
    runs = [tuple(range(*ends)) for ends in itertools.combinations(range(rank + 1), 2)]
    return [None, *range(-rank, rank), *runs]


def loaded(name: str, dtype: Any) -> few.Few:
    found = few.Few(name)
    found._load(dtype)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", WAYS)
def test_few_elements_have_the_bits_of_the_other_way(
    name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in ("_SUM", "_PROD", "_MAX", "_MIN", "_ANY", "_ALL"):
        monkeypatch.setattr(statistical, other, few.Few(name))
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    reduce, given = loaded(name, kind), 0
    for shape in SHAPES:
        raw = numbers(shape, kind).astype(kind)
        wide = raw.astype(np.float32) if raw.itemsize == 2 and kind.kind not in "iu" else raw
        for axis, keepdims in itertools.product(axes_of(raw.ndim), (False, True)):
            with guarded.memory(at_end=keepdims):
                y = reduce.call(guarded.copy(raw, at_end=keepdims), axis, keepdims)
            if y is not None:
                expected = np.asarray(WAYS[name](wide, axis, keepdims))
                expected = expected.astype(kind) if wide is not raw else expected
                assert wide is raw or not statistical.in_single(raw)
                assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
                assert y.tobytes() == expected.tobytes(), (shape, axis)
                given += 1
    known = (name in ("any", "all")) == (kind.kind == "b") or name == "sum"
    assert given > 100 if known else not given
    with restricted():
        assert reduce.call(np.ones(9, kind), None, False) is None


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_special_values_are_reduced_as_numpy_does(name: str) -> None:
    reduce = loaded(name, np.dtype(np.float64))
    for value in (-0.0, np.nan, -np.inf, 1e-320):
        for x in (np.full((5, 9), value), np.r_[np.ones(80), value], np.r_[value, np.ones(11)]):
            for axis in (None, 0, -1):
                with np.errstate(all="ignore"):
                    expected = WAYS[name](x, axis, False)
                found = reduce.call(x, axis, False)
                if found is None:  # what NumPy warns of is left to it
                    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
                        WAYS[name](x, axis, False)
                    continue
                np.testing.assert_array_equal(found, expected)
                assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.skipif(not warning_flags(), reason="the processor's flags are not known")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_numpy_warns_of_is_left_to_it(dtype: Any) -> None:
    """Each time, and nothing after it; extrema are silent."""
    most = np.finfo(dtype).max
    for name, x in (("sum", [np.inf, -np.inf]), ("sum", [most, most]), ("prod", [most, 2])):
        reduce, given = loaded(name, np.dtype(dtype)), np.asarray(x, dtype)
        for y in (given, np.tile(given, 50), given[:, None] * np.ones(40, dtype)):
            assert reduce.call(y, 0, False) is None
            assert reduce.call(np.ones_like(y), 0, False) is not None
    for x in ([np.nan, 1.0], [np.inf, -np.inf]):
        assert loaded("max", np.dtype(dtype)).call(np.asarray(x, dtype), 0, False) is not None


def test_the_rest_is_left_to_python() -> None:
    reduce = loaded("sum", np.dtype(np.float32))
    x = np.ones((4, 6), np.float32)
    assert float(reduce.call(x, None, False)) == 24
    for axis in ((), (0, 0), (1, 0), 2, -3, [0], True, np.int64(0), (0.0,), "x"):
        assert reduce.call(x, axis, False) is None
    for y in (x.T, x[:, ::2], x.astype(np.float64), x.astype(">f4"), x[0, 0], np.asarray(x[0, 0])):
        assert reduce.call(y, None, False) is None
    assert reduce.call(x, None, 1) is None
    for shape, axis in (((1 << 16,), None), ((300, 9), 1), ((300, 40), 0), ((70, 128), 1)):
        assert reduce.call(np.ones(shape, np.float32), axis, False) is None
    with pytest.raises(OverflowError):
        reduce.call(x, 1 << 70, False)


def test_the_code_is_loaded_where_it_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 500 calls of a dtype, if it is on disk, and without asking what may load LLVM."""
    x, reduce = np.ones((3, 4)), few.Few("sum")
    monkeypatch.setattr(few, "loaded", lambda: False)
    monkeypatch.setattr(few, "told", lambda: False)
    monkeypatch.setattr(few, "host", None)
    assert all(reduce.call(x, None, False) is None for _ in range(1100))
    monkeypatch.undo()
    monkeypatch.setattr(few, "recall", lambda *_: True)
    assert [reduce.call(x, 0, False) is None for _ in range(501)][-1] is False


def test_functions_of_arrays_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the calls that it takes until the code is made, with the same results."""
    x = xp.asarray(np.arange(1.0, 13.0).reshape(3, 4))
    for name, mark in (("sum", "_SUM"), ("max", "_MAX"), ("mean", "_SUM")):
        call = getattr(xp, name)
        monkeypatch.setattr(statistical, mark, few.Few("max" if name == "max" else "sum"))
        before = [call(x, axis=axis).data for axis in (None, 0, 1)]
        getattr(statistical, mark)._load(np.dtype(np.float64))
        for y, axis in zip(before, (None, 0, 1), strict=True):
            np.testing.assert_array_equal(call(x, axis=axis).data, y, strict=True)
    with pytest.raises((IndexError, ValueError), match="sum"):
        xp.sum(x, axis=2)
