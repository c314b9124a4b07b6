"""Loops touch nothing but their arrays, and have eager's bits: any shape, dtype, layout.

Numbers are small integers, so that sums have the same bits in any order.
"""

from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.native import Native, native
from funct.graph import eliminate_dead, inline_calls, share_common
from tests.compile.checked import checking, run
from tests.strategies import filled

SIDES = st.sampled_from([0, 1, 1, 2, 3, 7, 16, 33, 70])
LAYOUTS = ["C", "F", "reversed", "strided", "broadcast", "far apart"]
NUMBERS = [d.name for d in ELEMENTS]


def made_of(fun: Any, *args: Any) -> Native:
    """The machine code of a function's graph."""
    graph = ft.make_graph(fun)(*map(xp.asarray, args))
    return native(eliminate_dead(share_common(inline_calls(graph)), guards=True))


def in_steps(fun: Any, *args: Any) -> list[Any]:
    """What its compiled loop gives where the function is the body: of two steps, the second."""

    def steps(*given: Any) -> Any:
        twice = tuple([xp.stack([x[::-1] if x.shape else x, x]) for x in given])
        return ft.map(lambda rows: fun(*rows), twice)

    return [np.asarray(y[1]) for y in made_of(steps, *args).run(*args)]


def laid_out(x: np.ndarray[Any, Any], how: str) -> np.ndarray[Any, Any]:
    """The same numbers, elsewhere in memory (one of them for all where they are broadcast)."""
    match how:
        case "F":
            return np.asfortranarray(x)
        case "reversed":
            return x[tuple([slice(None, None, -1)] * x.ndim)]
        case "strided" if x.ndim:
            return np.repeat(x, 3, axis=-1)[..., ::3]
        case "broadcast" if x.ndim and x.shape[0]:
            return np.broadcast_to(x[:1], x.shape)
        case "far apart" if x.ndim:
            room = np.zeros((*x.shape[:-1], x.shape[-1], 257), x.dtype)
            room[..., 0] = x
            return room[..., 0]
    return x


UNARY: list[Any] = [
    xp.abs, lambda x: xp.where(x > 1, x, xp.zeros_like(x)), xp.flip,
    lambda x: x[..., ::-2] if x.ndim else x, lambda x: x.T if x.ndim == 2 else x,
    lambda x: xp.reshape(x, (-1,)), lambda x: x[1:] if x.ndim else x,
    lambda x: xp.sum(x, axis=-1, keepdims=True) if x.ndim else x,
    lambda x: xp.sum(x, axis=0) if x.ndim else x, xp.sum,
    lambda x: xp.any(x > 1, axis=-1) if x.ndim else x,
    lambda x: xp.max(x, axis=-1, keepdims=True) if x.ndim and x.shape[-1] else x,
    lambda x: xp.min(x, axis=0) if x.ndim and x.shape[0] else x,
    lambda x: xp.astype(x, "float64"), lambda x: xp.astype(x, "int32"),
    lambda x: xp.sum(x, axis=1) if x.ndim == 3 else x,
    lambda x: xp.min(x, axis=1, keepdims=True) if x.ndim == 3 and x.shape[1] else x,
    lambda x: xp.argmax(x, axis=-1) if x.ndim and x.shape[-1] else x,
    lambda x: xp.argmin(x, axis=0, keepdims=True) if x.ndim and x.shape[0] else x,
]  # fmt: skip
BINARY: list[Any] = [
    lambda x, y: x + y, xp.maximum, xp.minimum,
    lambda x, y: x < y, xp.equal, lambda x, y: xp.where(x > y, x, y),
]  # fmt: skip


def allowed(x: Any) -> bool:
    """Whether the ops above take it: masks have no sums and no largest element."""
    return x.dtype != xp.bool


@attrs.frozen
class Steps:
    """A program over what is there so far. Steps that do not fit shapes and dtypes are left out."""

    picks: tuple[tuple[int, int, int], ...]

    def __call__(self, *xs: Any) -> Any:
        held = list(xs)
        for op, a, b in self.picks:
            x, y = held[a % len(held)], held[b % len(held)]
            ops = UNARY + BINARY
            op %= len(ops)
            if not allowed(x):
                x = xp.astype(x, "float32")
            if op < len(UNARY):
                held.append(ops[op](x))
                continue
            if not allowed(y):
                y = xp.astype(y, "float32")
            try:
                np.broadcast_shapes(x.shape, y.shape)
                held.append(ops[op](x, y))
            except (ValueError, TypeError, ft.errors.FunctError):
                held.append(x)
        return tuple(held[len(xs) :])


@st.composite
def cases(draw: Any) -> tuple[Steps, list[np.ndarray[Any, Any]]]:
    """A program and its arrays, whose shapes broadcast."""
    full = draw(st.lists(SIDES, max_size=3))
    arrays = []
    for _ in range(draw(st.integers(1, 3))):
        shape = tuple([n if draw(st.booleans()) else 1 for n in full])
        shape = shape[draw(st.integers(0, len(shape))) :]
        kind = draw(st.sampled_from(NUMBERS))
        x = filled(shape, kind, draw(st.integers(0, 999)))
        x = np.round(x) if x.dtype.kind == "f" else x
        arrays.append(laid_out(x, draw(st.sampled_from(LAYOUTS))))
    pick = st.tuples(*[st.integers(0, 999)] * 3)
    return Steps(tuple(draw(st.lists(pick, min_size=1, max_size=8)))), arrays


@given(cases())
@settings(max_examples=4 * settings.default.max_examples)
def test_loops_stay_within_their_arrays_and_have_the_bits_of_eager(case: Any) -> None:
    """Every load and store is looked at while the program runs."""
    steps, arrays = case
    with np.errstate(all="ignore"):
        expected = steps(*map(xp.asarray, arrays))
    with checking():
        made = made_of(steps, *arrays)
        found = run(made, *arrays)
    for actual, wanted in zip(found, expected, strict=True):
        a, e = np.asarray(actual), np.asarray(wanted)
        assert a.dtype == e.dtype
        np.testing.assert_array_equal(a, e)
        assert a.shape == e.shape


@pytest.mark.parametrize("fun", [
    lambda x: x * 2.0, lambda x: xp.sum(x, axis=1), lambda x: xp.sum(x, axis=0),
    lambda x: x.T + 1.0, lambda x: x - xp.max(x, axis=1, keepdims=True),
])  # fmt: skip
@pytest.mark.parametrize("short", [(5, 6), (4, 7)])
def test_what_lies_outside_is_found(fun: Any, short: tuple[int, int]) -> None:
    """The code of a larger array, run on a smaller one, reads behind its end."""
    with checking():
        made = made_of(fun, np.ones((5, 7)))
        run(made, np.ones((5, 7)))
        with pytest.raises(IndexError, match="accesses outside"):
            run(made, np.ones(short))
