"""Keys of mixed index arrays, ints, slices and masks, of which some are empty and some are off
their axis: NumPy says what they select and what they refuse, eagerly and under every transform.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from tests import laws
from tests.strategies import filled

SHAPES = [(3,), (2, 3), (3, 1, 2), (2, 3, 4), (2, 0, 3), (0, 2), (2, 1, 3, 2)]
COMMON = [(), (1,), (2,), (0,), (2, 1), (2, 2), (0, 1), (1, 0), (2, 0)]


@st.composite
def mixed(draw: Any) -> tuple[Any, tuple[Any, ...]]:
    """An array, and an entry for each of its first axes: an index is off its axis now and then."""
    shape = draw(st.sampled_from(SHAPES))
    common = draw(st.sampled_from(COMMON))
    key: list[Any] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 5)):
        n = shape[axis]
        kind = draw(st.sampled_from(["array", "array", "array", "int", "slice", "mask", "none"]))
        limit = n + 2 if draw(st.integers(0, 3)) == 0 else n
        if kind == "array":
            own = common[draw(st.integers(0, len(common))) :]
            own = tuple([1 if draw(st.integers(0, 4)) == 0 else k for k in own])
            count = int(np.prod(own))
            drawn = draw(
                st.lists(
                    st.integers(-limit, max(limit - 1, -limit)), min_size=count, max_size=count
                )
            )
            key.append(np.asarray(drawn, np.int64).reshape(own))
        elif kind == "int":
            key.append(draw(st.integers(-limit, max(limit - 1, -limit))))
        elif kind == "slice":
            bound = st.one_of(st.none(), st.integers(-4, 4))
            key.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, -1, 2]))))
        elif kind == "mask":
            key.append(np.asarray(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool))
        else:
            key.append(None)
        axis += kind != "none"
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), Ellipsis)
    return filled(shape, "float64", draw(st.integers(0, 2**32 - 1))), tuple(key)


def outcome(fun: Callable[..., Any], *args: Any) -> Any:
    """The result, or None for an IndexError (those of funct are some)."""
    try:
        return np.asarray(fun(*args))
    except IndexError:
        return None


def agree(found: Any, expected: Any) -> None:
    """Both are refused, or equal."""
    assert (found is None) == (expected is None)
    if found is not None:
        laws.same(found, expected)


def check_key(
    x: Any, key: tuple[Any, ...], numpys: Callable[[Any], Any], functs: Callable[[Any, Any], Any],
) -> None:  # fmt: skip
    """functs(x, key) is numpys(x), where the key's arrays are known, and where they are not."""
    v = xp.asarray(x)
    given = [xp.asarray(k) for k in key if isinstance(k, np.ndarray) and k.dtype != bool]

    def filled_key(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        left = iter(arrays)
        known = [
            next(left) if isinstance(k, np.ndarray) and k.dtype != bool else k for k in key
        ]
        return tuple([xp.asarray(k) if isinstance(k, np.ndarray) else k for k in known])

    def told(v: Any, *arrays: Any) -> Any:
        return functs(v, filled_key(arrays))

    def known(v: Any) -> Any:
        return functs(v, key)

    expected = outcome(numpys, x)
    for f in (known, ft.jit(known)):
        agree(outcome(f, v), expected)
        agree(outcome(lambda v: ft.vjp(f, v)[0], v), expected)  # noqa: B023
    agree(outcome(told, v, *given), expected)
    agree(outcome(ft.jit(told), v, *given), expected)
    pair = None if expected is None else np.stack([expected, outcome(numpys, x + 1.0)])
    agree(outcome(ft.vmap(known), xp.stack([v, v + 1.0])), pair)
    lanes = [xp.stack([a, a]) for a in given]
    agree(outcome(ft.vmap(told), xp.stack([v, v + 1.0]), *lanes), pair)
    agree(outcome(ft.jit(ft.vmap(told)), xp.stack([v, v + 1.0]), *lanes), pair)


@settings(max_examples=4 * settings.default.max_examples)
@given(mixed())
def test_reading_is_numpys(case: tuple[Any, Any]) -> None:
    """Elements, their order, and what is refused; the gradient counts how often each is read."""
    x, key = case
    check_key(x, key, lambda x: x[key], lambda v, k: v[k])
    if outcome(lambda: x[key]) is not None:
        counts = np.zeros_like(x)
        np.add.at(counts, key, 1.0)
        for f in (lambda v: xp.sum(v[key]), ft.jit(lambda v: xp.sum(v[key]))):
            laws.same(ft.grad(f)(xp.asarray(x)), counts)


@settings(max_examples=4 * settings.default.max_examples)
@given(mixed())
def test_writing_is_numpys(case: tuple[Any, Any]) -> None:
    """A number set, and added, at the elements of a key."""
    x, key = case

    def put(x: Any) -> Any:
        y = x.copy()
        y[key] = 2.0
        return y

    def added(x: Any) -> Any:
        y = x.copy()
        np.add.at(y, key, 2.0)
        return y

    check_key(x, key, put, lambda v, k: v.at[k].set(2.0))
    check_key(x, key, added, lambda v, k: v.at[k].add(2.0))
