"""Bodies of small loops as lines: whatever ops are in them, the values are the Python loop's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile.forms import Repeat
from funct.compile.lines.small_loops import SmallLoop, in_registers
from tests import laws
from tests.compile.test_control import interrupted

Op = Callable[[Any], Any]

# of an array of two axes, to one of any shape; exact ones have eager's bits
EXACT: dict[str, Op] = {
    "transpose": lambda c: c.mT * 0.5,
    "flip": lambda c: xp.flip(c, axis=0),
    "roll": lambda c: xp.roll(c, 1, axis=1),
    "slice": lambda c: c[:1, ::-1],
    "concat": lambda c: xp.concat([c, c[:1]], axis=0),
    "stack": lambda c: xp.stack([c, -c], axis=1),
    "pad": lambda c: xp.pad(c, ((1, 0), (0, 2))),
    "reshape": lambda c: xp.reshape(c.mT, (-1,)),
    "max": lambda c: xp.max(c, axis=0),
    "least of all": xp.min,
    "argmax": lambda c: xp.argmax(c, axis=1),
    "argmin": lambda c: xp.argmin(c, axis=0),
    "any": lambda c: xp.any(c > 0.1, axis=1),
    "where": lambda c: xp.where(c > 0, c, -c * 0.5),
    "broadcast": lambda c: c + c[:, :1] * c[:1, :],
    "take": lambda c: c[xp.argmax(c[:, 0])],
    "put": lambda c: c.at[xp.argmin(c[:, 0]), 0].set(0.25),
    "added": lambda c: c.at[xp.argmin(c[:, 0])].add(0.25),
    "whole numbers": lambda c: xp.astype(c * 8.0, "int32") // 3,
    "remainder": lambda c: xp.remainder(c, 0.3),
}
CLOSE: dict[str, Op] = {
    "sum": lambda c: xp.sum(c, axis=1),
    "sum of all": xp.sum,
    "product": lambda c: c @ c.mT,
    "functions": lambda c: xp.tanh(c) + xp.exp(-c * c),
    "branch": lambda c: ft.cond(c[0, 0] > 0, xp.sin, lambda c: xp.exp(-c), c),
    "loop": lambda c: ft.fori_loop(
        0, 3, lambda i, d: d * 0.5 + xp.sin(d) * xp.asarray(i, dtype=d.dtype), c
    ),
    "scan": lambda c: ft.scan(lambda s, x: (s * 0.5 + x, s), c[0], c)[1],
    "scan back": lambda c: ft.scan(lambda s, x: (s + x, s * x), c[0], c, reverse=True),
    "while": lambda c: ft.while_loop(lambda d: xp.max(d) > 0.3, lambda d: d * 0.5, c),
}
OPS = EXACT | CLOSE


def by_steps(step: Any, c: Any, xs: Any, reverse: bool) -> tuple[Any, Any]:
    """The loop in Python."""
    kept = []
    for k in reversed(range(xs.shape[0])) if reverse else range(xs.shape[0]):
        c, y = step(c, xs[k])
        kept.append(y)
    kept = kept[::-1] if reverse else kept
    return c, ft.tree.map(lambda *rows: xp.stack(rows), *kept)


@given(
    st.lists(st.sampled_from(sorted(OPS)), min_size=1, max_size=3),
    st.integers(1, 5), st.integers(1, 9), st.sampled_from([1, 2, 7]), st.booleans(),
    st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def test_bodies(
    names: list[str], rows: int, columns: int, steps: int, reverse: bool, dtype: str
) -> None:
    """Shapes with axes of 1, one step, both directions; exact ops have the bits of eager code."""
    rng = np.random.default_rng(rows * 10 + columns)
    c = xp.asarray(rng.normal(size=(rows, columns)).astype(dtype))
    xs = xp.asarray(rng.normal(size=(steps, rows, columns)).astype(dtype))

    def step(c: Any, x: Any) -> Any:
        return c * 0.5 + x, [OPS[name](c) for name in names]

    graph = ft.make_graph(lambda c, x: ft.tree.leaves(step(c, x)))(c, xs[0])
    assert isinstance(in_registers(Repeat(graph, 0, 1, steps, back=reverse)), SmallLoop)
    found = in_program(lambda c, xs: ft.scan(step, c, xs, reverse=reverse), c, xs)
    expected = by_steps(step, c, xs, reverse)
    agree(names, found, expected, dtype)


def agree(names: list[str], found: Any, expected: Any, dtype: str) -> None:
    """To the bit, if all of these ops are exact."""
    if set(names) <= set(EXACT):
        laws.same(found, expected)
    else:
        eps = 64 * float(np.finfo(dtype).eps)
        laws.close(found, expected, eps, eps)


def in_program(f: Callable[..., Any], *args: Any) -> Any:
    """What f gives as machine code, however small it is."""
    from funct.compile.native import native

    tree: list[Any] = []

    def flat(*xs: Any) -> Any:
        leaves, spec = ft.tree.flatten(f(*xs))
        tree[:] = [spec]
        return leaves

    made = native(ft.make_graph(flat)(*args))
    return tree[0].unflatten([xp.asarray(y) for y in made.run(*[x.data for x in args])])


@pytest.mark.parametrize("shape", [(1, 64, 64), (1, 48, 128), (2, 33, 20), (64, 64, 1), (3, 17, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("turned", [False, True])
def test_products(shape: tuple[int, int, int], dtype: str, turned: bool) -> None:
    """A matrix that all steps multiply by: as it lies, and transposed."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    x = xp.asarray(rng.normal(size=(40, m, k)).astype(dtype))
    w = xp.asarray(rng.normal(size=(n, k) if turned else (k, n)).astype(dtype) / k)

    def f(w: Any, x: Any) -> Any:
        body = lambda c, x: (c * 0.5 + x @ (w.mT if turned else w), None)  # noqa: E731
        return ft.scan(body, xp.zeros((m, n), dtype=dtype), x)[0]

    g = ft.jit(f)
    assert "in registers" in g.show(w, x, form="loops")
    expected = 0.0
    for row in np.asarray(x, np.float64):
        expected = expected * 0.5 + row @ np.asarray(w.mT if turned else w, np.float64)
    eps = 8 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(g(w, x)), expected, eps, eps)


@pytest.mark.parametrize("n", [1, 100, 600])
def test_loops_in_registers_can_be_interrupted(n: int) -> None:
    """One vector, many columns, and columns on several threads; the next call works."""
    f = ft.jit(lambda x, n: ft.while_loop(lambda s: s[1] < n, lambda s: (s[0], s[1] + 1), (x, 0)))
    x, few, endless = xp.zeros(n), xp.asarray(3), xp.asarray(1 << 62)
    assert int(f(x, few)[1]) == 3
    interrupted(lambda: f(x, endless))
    assert int(f(x, few)[1]) == 3


def test_why_a_loop_is_not_in_registers() -> None:
    """The reason is said."""
    big, small = xp.zeros((100, 100)), xp.zeros(3)
    for f, x, why in (
        (lambda c: c * 2.0 + xp.sum(c), big, "not held in registers"),
        (xp.sort, small, "sort"),
    ):
        graph = ft.make_graph(f)(x)
        found = in_registers(Repeat(graph, 0, 1, 10))
        assert isinstance(found, str)
        assert why in found


DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "complex64", "complex128")


@pytest.mark.parametrize("dtype", DTYPES)
def test_carries_and_constants_of_any_dtype(dtype: str) -> None:
    """What lines have no element for is computed otherwise, also where it is only passed on."""
    held, x0 = xp.asarray([[1, 0], [1, 1]], dtype=dtype), xp.asarray([0.5, 0.25])

    def step(carry: Any, x: Any) -> Any:
        a, kept, other = carry
        return (a * 0.5 + x, other, kept), (a, xp.where(kept, kept, other))

    start, xs = (x0, held, ~held if dtype == "bool" else held * held), xp.ones((300, 2))
    laws.close(ft.jit(ft.scan, static_argnums=0)(step, start, xs), by_steps(step, start, xs, False))

    def turn(c: Any, x: Any) -> Any:
        return xp.real(c * held[0]) * 0.5 + x, c

    laws.close(ft.jit(lambda c: ft.scan(turn, c, xs))(x0), by_steps(turn, x0, xs, False))
