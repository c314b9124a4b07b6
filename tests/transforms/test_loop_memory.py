"""What loops hold for their reverse mode: measured, and the derivatives of long loops are right."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.transforms.trail import run_sweeps

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
    ends = run_sweeps(lambda s: s[0] < steps, [step(k) for k in range(len(back))], back, firsts)
    assert ends == tuple([-1 if b else steps for b in back])
    assert all(n <= steps * (len(back) - k) for k, n in enumerate(runs))
