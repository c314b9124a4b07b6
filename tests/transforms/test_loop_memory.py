"""What loops hold for their reverse mode: measured, and the derivatives of long loops are right."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.graph import Control, Node
from funct.transforms.control.trail import Stepwise, run_sweeps

SIZE = 1 << 13  # elements of a carry


def _peak(run: Callable[[], Any]) -> int:
    """Bytes that the call holds at most, beyond what there was before."""
    run()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _counted(steps: int) -> Callable[[Any], Any]:
    """A while loop of so many steps over a large state."""

    def f(x: Any) -> Any:
        body = lambda s: (xp.sin(s[0]) * s[0] + 0.1 * s[0], s[1] + 1)  # noqa: E731
        return xp.sum(ft.while_loop(lambda s: s[1] < steps, body, (x, 0))[0])

    return f


def test_while_loop_holds_the_root_of_its_steps() -> None:
    """Sixteen times the steps take about four times the memory, and 400 steps few carries."""
    x = xp.linspace(0.1, 0.4, SIZE)
    each = SIZE * 8
    held = {}
    for n in (100, 400, 1600):
        g = ft.jit(ft.grad(_counted(n)))
        held[n] = _peak(lambda g=g: g(x)) / each  # type: ignore[misc]
    assert held[400] < 200
    assert held[1600] < 5 * held[100]
    assert held[1600] < 2.6 * held[400]


@pytest.mark.parametrize("steps", [63, 64, 65, 66, 127, 129, 300])
def test_long_loops_have_right_derivatives(steps: int) -> None:
    """The loop is that of scan, to the third order, around the lengths where the trail thins."""

    def looped(x: Any) -> Any:
        go = lambda s: s[1] < steps  # noqa: E731
        body = lambda s: (s[0] + 0.1 * xp.sin(s[0] * x), s[1] + 1)  # noqa: E731
        return ft.while_loop(go, body, (x, 0))[0]

    def scanned(x: Any) -> Any:
        return ft.scan(lambda c, _: (c + 0.1 * xp.sin(c * x), None), x, None, length=steps)[0]

    x = xp.asarray(0.7)
    a, b = looped, scanned
    for _ in range(3):
        a, b = ft.grad(a), ft.grad(b)
        np.testing.assert_allclose(float(ft.jit(a)(x)), float(ft.jit(b)(x)), rtol=1e-9)


@pytest.mark.parametrize("back", [(False, True), (False, True, False, True), (False, False, True)])
@pytest.mark.parametrize("steps", [0, 1, 64, 65, 200, 1023])
def test_sweeps_see_what_earlier_ones_left(back: tuple[bool, ...], steps: int) -> None:
    """Every sweep reads, at its step, what all earlier ones left there; runs are few."""
    runs = [0] * len(back)

    def step(k: int) -> Callable[..., tuple[Any, ...]]:
        def run(state: int, *seen: int) -> tuple[int, ...]:
            runs[k] += 1
            assert len(seen) == k
            if k:
                own = seen[0]  # the first sweep leaves the number of the step
                assert own == state
            at = state if k == 0 else seen[0]
            return (state + (-1 if back[k] else 1), at)

        return run

    firsts = [(steps - 1,) if b else (0,) for b in back]
    sweeps = Stepwise(lambda s: s[0] < steps, [step(k) for k in range(len(back))], back)
    ends = run_sweeps(sweeps, firsts)
    assert ends == tuple([-1 if b else steps for b in back])
    assert all(n <= steps * (len(back) - k) for k, n in enumerate(runs))


def _scanned(steps: int, body: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: xp.sum(ft.scan(body, x, None, length=steps)[0])


def _step(c: Any, _: Any) -> Any:
    return xp.sin(c) * c + 0.1 * xp.exp(-c), None


@pytest.mark.parametrize("compiled", [False, True])
def test_checkpointed_scan_holds_the_root_of_its_steps(compiled: bool) -> None:
    """Sixteen times the steps take about four times the memory; without checkpoint, sixteen."""
    x = xp.linspace(0.1, 0.4, SIZE // 8)
    held: dict[tuple[str, int], int] = {}
    for name, body in (("plain", _step), ("again", ft.checkpoint(_step))):
        for n in (256, 4096):
            g = ft.grad(_scanned(n, body))
            g = ft.jit(g) if compiled else g
            held[name, n] = _peak(lambda g=g: g(x))  # type: ignore[misc]
    assert held["plain", 4096] > 10 * held["plain", 256]
    assert held["again", 4096] < 5 * held["again", 256]
    assert held["again", 4096] < held["plain", 4096] / 8


@pytest.mark.in_turn
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 30, 64])
def test_blocks_are_the_loop(n: int, reverse: bool) -> None:
    """Blocks of steps, with a rest, give what single steps give: values and derivatives."""
    w = xp.linspace(0.5, 1.5, n)

    def run(f: Any, **options: Any) -> Any:
        def loss(x: Any, w: Any) -> Any:
            c, ys = ft.scan(f, x, (w, w * 2.0), reverse=reverse, **options)
            return xp.sum(c) + xp.sum(ys * xp.arange(1.0, n + 1.0))

        return ft.grad(loss, (0, 1))

    def f(c: Any, v: Any) -> Any:
        return xp.sin(c * v[0]) + 0.1 * v[1], xp.sum(c) * v[1]

    x = xp.asarray([0.3, 0.8])
    expected = run(f)(x, w)
    for g in (run(ft.checkpoint(f)), run(f, unroll=3), run(f, unroll=True), run(f, unroll=n)):
        for h in (g, ft.jit(g)):
            for a, b in zip(h(x, w), expected, strict=True):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10, atol=1e-14)


def test_unroll_is_honoured() -> None:
    """So many steps are one step of the loop, or there is no loop."""

    def loops(**options: Any) -> list[Any]:
        f = lambda c, v: (c * v, c)  # noqa: E731
        graph = ft.jit(lambda x: ft.scan(f, x[0], x, **options)).graph(xp.arange(1.0, 11.0))
        return [
            e.primitive.kind.steps
            for e in graph.nodes
            if isinstance(e, Node) and isinstance(e.primitive, Control)
        ]

    assert loops() == loops(unroll=False) == [10]
    assert loops(unroll=4) == [2, 2]
    assert loops(unroll=5) == [2]
    assert loops(unroll=True) == []


def test_long_eager_loops_are_captured() -> None:
    """A long loop calls its function a few times, unless that decides on values; both are right."""
    calls = [0]

    def body(c: Any, v: Any) -> Any:
        calls[0] += 1
        return xp.sin(c) * v + c, c

    def deciding(c: Any, v: Any) -> Any:
        calls[0] += 1
        return (xp.sin(c) * v + c if float(c) > -10.0 else c), c

    n = 2000
    w = xp.linspace(0.0, 1.0, n)

    def loss(f: Any) -> Any:
        return ft.value_and_grad(lambda x, w: xp.sum(ft.scan(f, x, w)[1]), (0, 1))

    x = xp.asarray(0.4)
    fast, few = loss(body)(x, w), calls[0]
    calls[0] = 0
    slow = loss(deciding)(x, w)
    assert few < 5
    assert calls[0] >= n
    np.testing.assert_allclose(float(fast[0]), float(slow[0]), rtol=1e-12)
    for a, b in zip(fast[1], slow[1], strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9)


def test_long_eager_while_loops_are_captured() -> None:
    """The later steps of a long while loop run captured, under derivatives and batches."""
    calls = [0]

    def run(x: Any) -> Any:
        def body(s: Any) -> Any:
            calls[0] += 1
            return s[0] + 1e-3 * xp.sin(x * s[0]), s[1] + 1

        return ft.while_loop(lambda s: s[1] < 3000, body, (x, 0))[0]

    def plain(x: Any) -> Any:
        return ft.scan(lambda c, _: (c + 1e-3 * xp.sin(x * c), None), x, None, length=3000)[0]

    xs = xp.asarray([0.5, 0.9])
    for f in (lambda g: g(xs[0]), lambda g: ft.grad(g)(xs[0]), lambda g: ft.vmap(ft.grad(g))(xs)):
        np.testing.assert_allclose(np.asarray(f(run)), np.asarray(f(plain)), rtol=1e-10)
    assert calls[0] < 1000
