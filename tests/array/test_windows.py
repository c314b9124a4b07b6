"""`lib.stride_tricks.sliding_window_view` against NumPy, and under transforms."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct.array as xp
from funct.array.lib.stride_tricks import sliding_window_view
from funct.errors import ArgumentError, ShapeError
from funct.interop import rebind
from tests import laws
from tests.strategies import filled, shapes

numpy_windows = np.lib.stride_tricks.sliding_window_view


@given(shapes(min_rank=1, min_side=1), st.data())
def test_windows(shape: Any, data: Any) -> None:
    """NumPy's windows along any axes, one of them twice as well; all moves of elements."""
    axes = data.draw(st.none() | st.lists(st.integers(-len(shape), len(shape) - 1), max_size=3))
    left = list(shape)
    lengths = []
    for k in range(len(shape)) if axes is None else axes:
        lengths.append(data.draw(st.integers(0, left[k])))
        left[k] -= lengths[-1] - 1 if lengths[-1] else -1
    x = filled(shape, "float64", 0)
    axis = axes if axes is None else tuple(axes)

    def fun(v: Any) -> Any:
        return sliding_window_view(v, tuple(lengths), axis)

    laws.same(fun(xp.asarray(x)), numpy_windows(x, tuple(lengths), axis))
    laws.check_derivatives(fun, [xp.asarray(x)], np.random.default_rng(0), order=1)
    laws.check_batch(fun, [xp.asarray(x)], np.random.default_rng(0))
    laws.check_jit(fun, [xp.asarray(x)])


def test_windows_of_an_array_are_views() -> None:
    """Of the same memory; a handle gives an array of its own."""
    x = xp.arange(6.0)
    assert np.shares_memory(np.asarray(sliding_window_view(x, 3)), np.asarray(x))
    y = rebind.arange(6.0)
    windows = rebind.lib.stride_tricks.sliding_window_view(y, 3)
    windows[0, 0] = 9.0
    assert (float(windows[0, 0]), float(y[0])) == (9.0, 0.0)


def test_what_is_refused() -> None:
    """Windows that are longer than the axis, lengths without an axis, and writing."""
    x = xp.ones((3, 2))
    with pytest.raises(ShapeError, match="axis 1 of length 2 must have 0 to 2 elements, got 3"):
        sliding_window_view(x, (2, 3))
    with pytest.raises(ShapeError, match="one length for each axis, got 1 for 2"):
        sliding_window_view(x, 2)
    with pytest.raises(ArgumentError, match="writeable must be False"):
        sliding_window_view(x, 2, 0, writeable=True)
