"""Slices are pytrees of their bounds: arguments, static arguments and results of transforms."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

import funct as ft
import funct.array as xp
from tests import laws

X = xp.asarray([1.0, 2.0, 3.0, 4.0])
SLICES = (
    slice(0, 2),
    slice(1, 3),
    slice(None),
    slice(None, None, -1),
    slice(1, 1),
    slice(-2, None),
)
Key = Any

CALLS: dict[str, Callable[[Any, Key], Any]] = {
    "positional": ft.jit(lambda x, s: x[s]),
    "keyword": lambda x, s: _by_name(x, s=s),
    "static": ft.jit(lambda x, s: x[s], static_argnums=1),
    "static by name": lambda x, s: _static(x, s=s),
    "static, in a tuple": lambda x, s: _static_tuple(x, (..., s)),
    "in a tuple": lambda x, s: _in_tuple(x, (..., s)),
    "in a dict": lambda x, s: _in_dict(x, {"at": [s]}),
    "partial": lambda x, s: ft.jit(functools.partial(lambda s, x: x[s], s))(x),
    "closure": lambda x, s: ft.jit(lambda x: x[s])(x),
    "returned": lambda x, s: _whole(*_bounds(x, s), s),
    "checkpoint": ft.checkpoint(lambda x, s: x[s]),
    "jit of checkpoint": ft.jit(ft.checkpoint(lambda x, s: x[s])),
    "cond": lambda x, s: ft.cond(True, lambda x, s: x[s], lambda x, s: x[s] * 2.0, x, s),
    "vmap": lambda x, s: ft.vmap(lambda x, s: x[s], in_axes=(0, None))(x[None], s)[0],
    "grad": lambda x, s: ft.vjp(lambda x, s: x[s], x, s)[0],
    "jit of grad": lambda x, s: x[s] * _slope(x, s)[s],
}
_by_name = ft.jit(lambda x, *, s: x[s])
_static = ft.jit(lambda x, *, s: x[s], static_argnames="s")
_static_tuple = ft.jit(lambda x, s: x[s], static_argnums=1)
_in_tuple = ft.jit(lambda x, s: x[s])
_in_dict = ft.jit(lambda x, s: x[s["at"][0]])
_bounds = ft.jit(lambda x, s: (x * 1.0, s))
_slope = ft.jit(ft.grad(lambda x, s: xp.sum(x[s])))


def _whole(x: Any, bounds: slice, s: slice) -> Any:
    assert bounds == s
    return x[bounds]


@pytest.mark.parametrize("name", CALLS)
def test_as_an_argument(name: str) -> None:
    """Each slice selects what it does in eager code, each time."""
    for s in (*SLICES, *SLICES):
        laws.close(CALLS[name](X, s), X[s])


@pytest.mark.parametrize("options", [{}, {"static_argnums": 1}])
def test_equal_slices_are_one_signature(options: Any) -> None:
    """A slice is told apart by its bounds, and their types, not by which object it is."""
    f = ft.jit(lambda x, s: x[s], **options)
    for _ in range(3):
        f(X, slice(0, 2))
    assert f.cache_info().misses == 1
    laws.close(f(X, slice(0, 1)), X[:1])
    laws.close(f(X, slice(0, True)), X[:1])
    assert f.cache_info().paths == 3, f.explain()


def test_bounds_that_are_arrays() -> None:
    """Traced bounds are decisions, as for x[i:j]."""
    f = ft.jit(lambda x, s: x[s])
    for a, b in ((0, 2), (1, 3), (0, 2), (2, 2)):
        laws.close(f(X, slice(xp.asarray(a), xp.asarray(b))), X[a:b])
    assert f.cache_info().misses == 3


class _Holder:
    window: Any = slice(0, 2)


def test_a_slice_that_is_read_from_outside() -> None:
    """Replaced by an equal one it compiles nothing; replaced by another it is followed."""
    holder = _Holder()
    f = ft.jit(lambda x: x[holder.window])
    for window in (slice(0, 2), slice(0, 2), (..., slice(0, 2)), (..., slice(0, 2)), slice(1, 3)):
        holder.window = window
        laws.close(f(X), X[window])
    assert f.cache_info().misses == 3, f.explain()


def test_paths_and_errors() -> None:
    """Leaves are named by their bound."""
    assert ft.tree.flatten_with_path({"a": slice(0, 2)}) == [("a.start", 0), ("a.stop", 2)]
    assert ft.tree.map(lambda v: v + 1, (slice(1, None, 2),)) == (slice(2, None, 3),)
    f = ft.jit(lambda x, s: x, static_argnums=1)
    with pytest.raises(ft.errors.TransformError, match="must be hashable, got a list"):
        f(X, [slice(0, 1)])
