"""max-autotune: the faster of two ways stays, in this process and in the next."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import build, whole_of
from funct.compile.tuned import tuned
from funct.device import disk_cache
from tests import laws


class Way:
    """A function that says how often it was called and takes so many milliseconds."""

    def __init__(self, milliseconds: float) -> None:
        self.milliseconds = milliseconds
        self.made = self.calls = 0

    def make(self) -> Any:
        """The function."""
        import time

        self.made += 1

        def run(x: int) -> int:
            self.calls += 1
            time.sleep(self.milliseconds / 1e3)
            return x + 1

        return run


@pytest.mark.parametrize("slow_first", [False, True])
def test_the_faster_stays(folder: Path, slow_first: bool) -> None:
    """The other is called only while both are measured, and in no later process at all."""
    slow, fast = Way(20.0), Way(1.0)
    ways = {"slow": slow.make, "fast": fast.make}
    if not slow_first:
        ways = dict(reversed(ways.items()))
    run = tuned("key", ways)
    assert slow.made == fast.made == 0
    assert [run(k) for k in range(5)] == [1, 2, 3, 4, 5]
    measured = slow.calls
    assert 3 <= measured <= 10
    assert run(7) == 8
    assert slow.calls == measured
    assert disk_cache.read("tuned-key") == b"fast"
    again = tuned("key", ways)
    assert again(1) == 2
    assert slow.made == 1, "the choice was kept"
    assert slow.calls == measured


@pytest.mark.parametrize("kept", [b"", b"other", b"\xff\xfe"])
def test_a_choice_that_says_nothing_is_made_anew(folder: Path, kept: bytes) -> None:
    """Whatever is in the file."""
    disk_cache.write("tuned-key", kept)
    slow, fast = Way(10.0), Way(0.0)
    assert tuned("key", {"slow": slow.make, "fast": fast.make})(1) == 2
    assert disk_cache.read("tuned-key") == b"fast"
    assert tuned(None, {"fast": fast.make})(1) == 2


def small(x: Any) -> Any:
    """One cheap op on few elements."""
    return xp.sin(x) * 2.0 - x


def test_machine_code_where_it_is_faster(folder: Path) -> None:
    """Many elements of a long chain are no question; the choice is a word on disk."""
    x = xp.asarray(np.random.default_rng(0).normal(size=1 << 18).astype(np.float32))

    def chain(x: Any) -> Any:
        for _ in range(12):
            x = x * 0.5 + xp.abs(x)
        return x

    graph = ft.make_graph(chain)(x)
    run = build(graph, mode="max-autotune")
    assert not list(folder.glob("tuned-*"))
    first = run(x.data)
    assert whole_of(run) is not None, "its calls go through machine code from now on"
    (kept,) = folder.glob("tuned-*")
    assert kept.read_bytes().endswith(b"machine code")
    laws.same(build(graph, mode="max-autotune")(x.data), first)
    laws.close(ft.jit(chain, mode="max-autotune")(x), chain(x), 1e-6, 1e-6)


def test_what_acts_is_not_measured(folder: Path) -> None:
    """An effect happens once for each call; deterministic results do not hang on time."""
    seen: list[Any] = []

    def noting(x: Any) -> Any:
        ft.io_callback(lambda v: seen.append(float(v)), None, xp.sum(x))
        return small(x)

    x = xp.ones(4)
    f = ft.jit(noting, mode="max-autotune")
    for k in range(3):
        f(x)
        assert len(seen) == k + 1
    with ft.config.using(deterministic=True):
        ft.jit(small, mode="max-autotune")(x)
    assert not list(folder.glob("tuned-*"))


@pytest.mark.parametrize("mode", ["max-autotune", "reduce-overhead"])
def test_modes_compute_the_same(mode: Any) -> None:
    """Values, decisions, sizes that vary, derivatives and loops."""

    def f(x: Any) -> Any:
        y = small(x) if float(xp.sum(x)) > 0 else -x
        return ft.fori_loop(0, 3, lambda k, v: v * 0.5 + 1.0, y)

    g = ft.jit(f, mode=mode)
    for n in 3, 4, 5, 3:
        for sign in 1.0, -1.0, 1.0:
            x = xp.full((n,), sign)
            laws.close(g(x), f(x), 1e-12, 1e-12)
            total = [ft.grad(lambda x, h=h: xp.sum(h(x)))(x) for h in (g, f)]
            laws.close(total[0], total[1], 1e-12, 1e-12)
