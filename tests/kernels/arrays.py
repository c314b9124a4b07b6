"""Arrays that kernels meet: any shape and stride, few different values, special ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from funct.kernels.cpu.reductions.few import Few
from funct.kernels.reductions import statistical

INDICES = ["int8", "int32", "int64", "uint8", "uint32", "uint64"]
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-40, 2.5)


def misaligned(x: Any) -> Any:
    """x at an address that is no multiple of its elements' size."""
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:]
    y = raw.view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


@st.composite
def arrays(draw: st.DrawFn, dtype: str, min_rank: int = 0, max_length: int = 7) -> Any:
    """An array whose memory may be strided, turned or misaligned; lengths 0, 1 and odd ones."""
    shape = tuple(draw(st.lists(st.integers(0, max_length), min_size=min_rank, max_size=3)))
    steps = tuple([draw(st.sampled_from([1, 1, 2, -1])) for _ in shape])
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    full = tuple([n * abs(s) for n, s in zip(shape, steps)])
    if np.dtype(dtype).kind == "f" or dtype == "bfloat16":
        x = rng.choice(np.asarray(SPECIAL), full).astype(dtype)
    else:
        x = rng.integers(0 if dtype[0] in "ub" else -2, 3, full).astype(dtype)
    x = x[tuple([slice(None, None, s) for s in steps])]
    return misaligned(x) if draw(st.booleans()) and x.size else x


def indices(data: st.DataObject, shape: tuple[int, ...], n: int) -> Any:
    """Mostly valid indices for an axis of length n, some from the end, now and then none."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = data.draw(st.sampled_from(INDICES))
    low = 0 if dtype[0] == "u" else -n
    slip = data.draw(st.sampled_from([0, 0, 0, 1]))
    if n + slip <= low:
        return np.zeros(shape, dtype)
    i = rng.integers(low, n + slip, shape).astype(dtype)
    return misaligned(i) if data.draw(st.booleans()) else i


def elsewhere(x: Any) -> list[Any]:
    """The same elements, elsewhere in memory: columns first, and that backwards."""
    back = tuple([slice(None, None, -1)] * x.ndim)
    return [np.asfortranarray(x), np.asfortranarray(x[back])[back]]


def agree(kernel: Any, *args: Any) -> None:
    """Machine code and Python with every index checked give and write the same."""
    copies, others = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in "ab")
    assert kernel(*copies) == kernel.checked(*others)
    for a, b in zip(copies, others):
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes()


def agree_on_new(kernel: Any, new: Any, *args: Any) -> None:
    """The same of a kernel that makes its result, of the shape and dtype of `new`."""
    expected = np.zeros_like(new, order="C")
    answer = kernel.checked(*args, expected, expected.size)
    found = kernel(*args)
    assert (found is None) == (answer != 0)
    if found is not None:
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert found.tobytes() == expected.tobytes()


def same_signs(a: Any, b: Any) -> None:
    """Two arrays are the same, and so are the signs of zeros."""
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(a)[a == a], np.signbit(b)[b == b])


def whole_range(shape: Any, dtype: Any, seed: int) -> np.ndarray[Any, Any]:
    """Any integers that the dtype holds."""
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def alike(ours: Callable[[], Any], plain: Callable[[], Any]) -> None:
    """Both give the same array, or both refuse an index."""
    with np.errstate(all="ignore"):
        try:
            expected = plain()
        except IndexError:
            with pytest.raises(IndexError):
                ours()
            return
        actual = np.asarray(ours())
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if expected.dtype == "bfloat16":  # whose NaN NumPy takes for unequal
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(actual, expected)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reductions ask Python again, as before they were called often."""
    for name in ("sum", "prod", "max", "min", "any", "all"):
        monkeypatch.setattr(statistical, f"_{name.upper()}", Few(name))
