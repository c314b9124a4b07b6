"""What a program holds at once: the order of its steps, and where its buffers stand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import funct as ft
import funct.array as xp
from funct.compile import native as natives
from funct.compile.memory import workspace
from funct.compile.memory.order import held
from funct.nn import functional
from tests.compile.test_native import compiled
from tests.strategies import Program, inputs, programs


def step(x: Any, *ws: Any) -> Any:
    """The gradients of layers whose activations are wider than what they read and give."""

    def loss(*ws: Any) -> Any:
        h = x
        for up, down in zip(ws[::2], ws[1::2], strict=True):
            h = h + functional.gelu(h @ up, "tanh") @ down
        return xp.sum(h * h)

    return ft.grad(loss, argnums=tuple(range(len(ws))))(*ws)


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=s).astype("f") / 8 for s in shapes]


def test_what_frees_memory_comes_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product for the weights' gradient is the last that reads the activations; the order
    changes no bit."""
    given = arrays((512, 16), *[(16, 128), (128, 16)] * 2)
    made = compiled(step, *given)
    monkeypatch.setattr(natives, "ordered", lambda fused, _: fused)
    usual = compiled(step, *given)
    assert held(made.fused).peak < held(usual.fused).peak
    assert made.programs[0].workspace < usual.programs[0].workspace
    for a, b in zip(made.run(*given), usual.run(*given), strict=True):
        np.testing.assert_array_equal(a, b)


def test_loops_write_into_the_place_of_what_they_read_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of products and maps needs two buffers, not three."""
    x, w = arrays((4096, 16), (16, 16))

    def chain(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = xp.tanh(x @ w)
        return x @ w

    made = compiled(chain, x, w)
    assert made.programs[0].workspace < 2.1 * x.nbytes
    monkeypatch.setattr(workspace, "in_place", lambda *_: False)
    usual = compiled(chain, x, w)
    assert usual.programs[0].workspace >= 2 * x.nbytes
    assert made.programs[0].workspace <= usual.programs[0].workspace
    np.testing.assert_array_equal(made.run(x, w), usual.run(x, w))


def test_places_of_random_programs() -> None:
    """With a buffer for each array or with shared ones, in any order: the same bits."""

    @settings(max_examples=2 * settings.default.max_examples)
    @given(program=programs())
    def run(program: Program) -> None:
        xs = inputs(40)
        made = compiled(program, *xs)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(natives, "ordered", lambda fused, _: fused)
            patch.setattr(workspace, "_joined", lambda free: [])
            patch.setattr(workspace, "in_place", lambda *_: False)
            apart = compiled(program, *xs)
        for a, b in zip(made.run(*xs), apart.run(*xs), strict=True):
            np.testing.assert_array_equal(a, b)

    run()


def between(x: Any, w: Any, rows: Any) -> Any:
    """An update of w; what scatters in the middle is no loop, so there are two programs."""
    g = x @ w
    return w * xp.sum(xp.reshape(x, (-1,)).at[rows].add(xp.sum(g))) - g


def test_results_take_the_memory_of_what_an_earlier_program_made() -> None:
    """g is made by the first program and read for the last time where w is updated."""
    x, w = arrays((128, 128), (128, 128))
    rows = np.arange(5000) % 3
    made = compiled(between, x, w, rows)
    assert len(made.programs) == 2
    assert made.text.count("empty((128, 128") == 1
    expected = between(*map(xp.asarray, (x, w, rows)))
    np.testing.assert_allclose(made.run(x, w, rows)[0], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(made.run(x, w, rows)[0], made.run(x, w, rows)[0])


def test_what_numpy_reads_too_is_left_alone() -> None:
    """A user's op may give its operand back, or a look at it."""
    same = ft.primitive("tests::given_back", lambda x: x, abstract=lambda x: x)

    def f(x: Any, w: Any) -> Any:
        g = x @ w
        return same(g), g * 2.0 - w

    x, w = arrays((128, 128), (128, 128))
    made = compiled(f, x, w)
    first, second = made.run(x, w)
    np.testing.assert_allclose(first, x @ w, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(second, 2 * (x @ w) - w, rtol=1e-4, atol=1e-4)
