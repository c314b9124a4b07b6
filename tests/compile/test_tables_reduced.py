"""Steps that make a table to reduce it: no line has all of it, and the values are the steps'."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from tests import laws
from tests.compile.test_lines import by_steps, in_program

Op = Callable[[Any, int], Any]


def _soft(t: Any, axis: int) -> Any:
    most = xp.max(t, axis=axis, keepdims=True)
    return xp.log(xp.sum(xp.exp(t - most), axis=axis)) + xp.squeeze(most, axis=axis)


# of a table and an axis, to a row
EXACT: dict[str, Op] = {
    "max": lambda t, axis: xp.max(t, axis=axis),
    "least kept": lambda t, axis: xp.min(t, axis=axis, keepdims=True),
    "argmax": lambda t, axis: xp.argmax(t, axis=axis),
    "argmin": lambda t, axis: xp.argmin(t, axis=axis),
    "any": lambda t, axis: xp.any(t > 0.5, axis=axis),
    "counted": lambda t, axis: xp.sum(xp.astype(t > 0, "int32"), axis=axis),
    "of bytes": lambda t, axis: xp.max(xp.astype(t > 0, "int8"), axis=axis),
    "whole": lambda t, axis: t * 0.5,
    "all of it": lambda t, axis: xp.max(t),
}
CLOSE: dict[str, Op] = {
    "sum": lambda t, axis: xp.sum(t, axis=axis),
    "product": lambda t, axis: xp.prod(t, axis=axis),
    "soft": _soft,
    "centred": lambda t, axis: xp.sum((t - xp.mean(t, axis=axis, keepdims=True)) ** 2, axis=axis),
}
OPS = EXACT | CLOSE


def tables(moves: Any, c: Any, x: Any) -> dict[str, Any]:
    """Tables of a state and a row: with what is held, with one another, and with a table's edge."""
    return {"held": c[:, None] + moves, "turned": c[:, None] * moves.mT, "outer": c[:, None] - x}


@given(
    st.lists(st.sampled_from(sorted(OPS)), min_size=1, max_size=3), st.integers(1, 40),
    st.sampled_from(["held", "turned", "outer"]), st.sampled_from([0, 1, -1]),
    st.sampled_from(["float32", "float64"]), st.booleans(),
)  # fmt: skip
def test_reductions(names: list[str], n: int, kind: str, axis: int, dtype: str, lost: bool) -> None:
    """Along either axis, of few and of many states, with NaN: exact ops have eager's bits."""
    rng = np.random.default_rng(n)
    numbers = rng.integers(-6, 6, (5, n)) / 8 if n % 2 else rng.normal(size=(5, n))
    if lost:
        numbers[rng.random((5, n)) < 0.1] = np.nan
    moves, xs = (xp.asarray(a.astype(dtype)) for a in (rng.normal(size=(n, n)), numbers))

    def step(c: Any, x: Any) -> Any:
        table = tables(moves, c, x)[kind]
        return c * 0.5 + x, [OPS[name](table, axis) for name in names]

    start = xp.zeros(n, dtype=dtype)
    found = in_program(lambda c, xs: ft.scan(step, c, xs), start, xs)
    expected = by_steps(step, start, xs, False)
    if set(names) <= set(EXACT):
        laws.same(found, expected)
    else:
        eps = 256 * float(np.finfo(dtype).eps)
        laws.close(found, expected, eps, eps)


@pytest.mark.parametrize("n", [17, 24, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_decoders_are_in_registers(n: int, dtype: str) -> None:
    """The most likely way through many states, forth and back, is two loops in registers."""
    if n * n * np.dtype(dtype).itemsize > 1 << 12:
        pytest.skip("as good as several loops")
    rng = np.random.default_rng(0)
    moves, scores = (xp.asarray(rng.normal(size=s).astype(dtype)) for s in ((n, n), (50, n)))

    def decoded(moves: Any, scores: Any) -> Any:
        def step(s: Any, x: Any) -> Any:
            table = s[:, None] + moves
            return xp.max(table, axis=0) + x, xp.argmax(table, axis=0)

        s, came = ft.scan(step, scores[0], scores[1:])
        last = xp.argmax(s)
        before = ft.scan(lambda k, row: (row[k], row[k]), last, came, reverse=True)[1]
        return xp.concat([before, last[None]]), xp.max(s)

    f = ft.jit(decoded)
    assert f.show(moves, scores).count("a loop in registers") == 2
    way, score = (np.asarray(a) for a in f(moves, scores))
    m, s = np.asarray(moves, np.float64), np.asarray(scores, np.float64)
    steps = enumerate(itertools.pairwise(way), 1)
    expected = s[0, way[0]] + sum(m[a, b] + s[k, b] for k, (a, b) in steps)
    np.testing.assert_allclose(score, expected, 1e-5)
    best = s[0]
    for row in s[1:]:
        best = np.max(best[:, None] + m, axis=0) + row
    np.testing.assert_allclose(score, np.max(best), 1e-5)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 11, 12])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_points_that_pull_at_each_other(n: int, dtype: str) -> None:
    """Pairs of few points, whose sums are over either of them."""
    rng = np.random.default_rng(n)
    p, v = (xp.asarray(rng.normal(size=(n, 3)).astype(dtype)) for _ in range(2))

    def step(s: Any, x: Any) -> Any:
        p, v = s
        d = p[None] - p[:, None]
        far = xp.sum(d * d, axis=-1) + 0.1
        v = v + x * xp.sum(d / (far * xp.sqrt(far))[..., None], axis=1)
        return (p + x * v, v), xp.max(far, axis=0)

    xs = xp.full(6, 0.01, dtype=dtype)
    found = in_program(lambda p, v, xs: ft.scan(step, (p, v), xs), p, v, xs)
    eps = 256 * float(np.finfo(dtype).eps)
    laws.close(found, by_steps(step, (p, v), xs, False), eps, eps)


def test_what_is_read_twice_is_made_once() -> None:
    """A table whose ops each read the one before twice takes as long as its ops, not as paths."""
    moves = xp.asarray(np.random.default_rng(0).normal(size=(16, 16)) * 0.1)

    def step(c: Any, x: Any) -> Any:
        table = c[:, None] + moves
        for _ in range(40):
            table = table * 0.5 + table * table * 0.25
        return c * 0.5 + x + xp.sum(table, axis=0), None

    c, xs = xp.zeros(16), xp.ones((3, 16)) * 0.01
    found = in_program(lambda c, xs: ft.scan(step, c, xs), c, xs)
    laws.close(found, by_steps(step, c, xs, False), 1e-13, 1e-13)
