"""Schedules: torch's rates in closed form, on ints and on traced steps."""

import math
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError
from funct.optim import schedule
from tests import laws
from tests.optim import cases

GOLDEN = cases.stored()


@pytest.mark.parametrize("name", cases.SCHEDULES)
def test_rates_are_those_that_torch_gave(name: str) -> None:
    """20 rates agree with the stored ones."""
    np.testing.assert_allclose(cases.rates_by_funct(name), GOLDEN[name], rtol=1e-12, atol=1e-16)


def test_rates_are_those_of_torch() -> None:
    """The stored rates are what the torch that is installed says."""
    pytest.importorskip("torch", reason="the stored numbers stand in for it")
    for name in cases.SCHEDULES:
        np.testing.assert_allclose(cases.rates_by_torch(name), GOLDEN[name], rtol=1e-14)


def test_golden_file_holds_just_the_cases() -> None:
    """Nothing is stored that no test reads."""
    assert set(GOLDEN) == set(cases.SCHEDULES) | set(cases.OPTIMIZERS)


def test_warmup_cosine_is_its_formula() -> None:
    """Linear to lr over the warm-up, half a cosine to eta_min, constant after the end."""
    rate = schedule.warmup_cosine(2.0, 4, 12, eta_min=0.5)
    found = [float(rate(t)) for t in range(15)]
    up = [2.0 * t / 4 for t in range(4)]
    down = [0.5 + 1.5 * 0.5 * (1 + math.cos(math.pi * t / 8)) for t in range(9)]
    np.testing.assert_allclose(found, [*up, *down, 0.5, 0.5], rtol=1e-14)
    assert float(schedule.warmup_cosine(2.0, 0, 12)(0)) == 2.0


@pytest.mark.parametrize(
    "rate",
    [
        schedule.constant(0.1), schedule.linear(0.1), schedule.cosine(0.1, 9),
        schedule.warmup_cosine(0.1, 3, 9), schedule.one_cycle(0.1, 9),
        schedule.one_cycle(0.1, 9, three_phase=True, anneal_strategy="linear"),
    ],
)  # fmt: skip
def test_steps_may_be_traced(rate: Any) -> None:
    """The same numbers under jit and vmap, float64, never negative."""
    steps = xp.arange(12)
    expected = xp.stack([rate(t) for t in range(12)])
    assert expected.dtype == xp.float64
    laws.close(ft.vmap(rate)(steps), expected, 1e-14, 1e-18)
    call = ft.jit(rate)
    laws.close(xp.stack([call(t) for t in steps]), expected, 1e-14, 1e-18)
    assert call.cache_info().misses == 1
    assert float(xp.min(expected)) >= 0.0


ERRORS = [
    (lambda: schedule.linear(1.0, total_iters=0),
     "schedule.linear: total_iters must be positive, got 0"),
    (lambda: schedule.cosine(1.0, -1), "schedule.cosine: T_max must be positive, got -1"),
    (lambda: schedule.warmup_cosine(1.0, 5, 5),
     "schedule.warmup_cosine: warmup_steps must be in [0, total_steps=5), got 5"),
    (lambda: schedule.one_cycle(1.0, 5, pct_start=2.0),
     "schedule.one_cycle: pct_start must be in [0, 1], got 2.0"),
    (lambda: schedule.one_cycle(1.0, 5, anneal_strategy="exp"),
     "schedule.one_cycle: anneal_strategy must be 'cos' or 'linear', got 'exp'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), ERRORS, ids=[e[1][:30] for e in ERRORS])
def test_wrong_arguments_are_named(call: Any, text: str) -> None:
    """Each error names the schedule, what was expected and what came."""
    with pytest.raises(ArgumentError) as caught:
        call()
    assert str(caught.value).splitlines()[0] == text
