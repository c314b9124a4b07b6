"""How often a transform has met an op says nothing about what it computes, on large arrays too."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.core import Absent, Primitive, catalogue
from funct.core import level as levels
from funct.kernels.elementwise.thresholds import ASKING, MANY
from funct.transforms.forward import ForwardTracer
from funct.transforms.reverse import ReverseTracer
from funct.transforms.tape import code as tape_code
from funct.transforms.vmap import BatchTracer
from tests import laws

SLOW = sorted(
    (
        p for p in catalogue()
        if p.name in ASKING and not p.params and len(p.rules) < 3
        and not any(isinstance(r, Absent) for r in p.rules)
    ),
    key=lambda p: p.name,
)  # fmt: skip


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Lets ops be taken as at their first call, or as ones that have come often."""
    tracers = (ReverseTracer, ForwardTracer, BatchTracer)
    before = [dict(t.ways) for t in tracers]

    def turn(often: bool, machine: bool = False) -> None:
        code = tape_code.load() if machine else None
        monkeypatch.setattr(tape_code._loading, "code", code)
        monkeypatch.setattr(levels, "_OFTEN", 0 if often else 1 << 60)
        for t in tracers:
            t.ways.clear()

    yield turn
    for t, known in zip(tracers, before, strict=True):
        t.ways.clear()
        t.ways.update(known)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("prim", SLOW, ids=lambda p: p.name)
def test_ways_have_the_bits_of_eager_code(prim: Primitive, dtype: str, ways: Any) -> None:
    """Values are those of the op itself, derivatives those of the first call."""
    rng = np.random.default_rng(0)
    xs = [xp.asarray(rng.uniform(0.1, 0.9, (MANY // 64, 64)).astype(dtype)) for _ in prim.rules]
    apart = [xp.asarray(rng.uniform(1.1, 1.9, (MANY // 64, 64)).astype(dtype))]
    xs = apart if prim.name == "acosh" else xs

    def all_of_them() -> list[Any]:
        value, pull = ft.vjp(prim.fn, *xs)
        pushed = ft.jvp(prim.fn, tuple(xs), tuple(xs[::-1]))
        lanes = ft.vmap(prim.fn)(*xs)
        return [value, lanes, pushed[0], pushed[1], *pull(xs[0])]

    ways(False)
    first = all_of_them()
    for same in first[:3]:
        laws.same(same, prim.fn(*xs))
    for machine in (False, True):
        ways(True, machine)
        laws.same(all_of_them(), first)
