"""Code of all that a function calls is made in one go, whatever Python does in between."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import program
from funct.compile.control import is_lowered
from funct.graph import Control, Node
from tests.compile.test_bounds import made_of


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts were made at each time; no kernel is known from before."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    found: list[int] = []
    make = program.assemble_kernels
    monkeypatch.setattr(
        program, "assemble_kernels", lambda texts: found.append(len(texts)) or make(texts)
    )
    monkeypatch.setattr(program, "_codes", {})
    return found


def sorts(x: Any) -> Any:
    """Loops, then what is called, three times."""
    for k in range(3):
        x = xp.sort(xp.tanh(x * (k + 1.5)) - k, axis=0)
    return xp.sum(x * 3.25, axis=1)


def looks(x: Any, rows: Any) -> Any:
    """A loop that is called by itself: an index may be off its axis."""

    def step(c: Any, row: Any) -> tuple[Any, Any]:
        c = xp.tanh(c * 1.125) + xp.take_along_axis(c, row, axis=0)
        return c, xp.sum(c)

    return ft.scan(step, x * 2.75 + 1, rows)


ROWS = np.random.default_rng(0).integers(0, 2000, (5, 2000))
CASES = {"sorts": (sorts, (np.ones((300, 70)),)), "looks": (looks, (np.ones(2000), ROWS))}


@pytest.mark.parametrize("case", CASES)
def test_code_is_made_once(case: str, texts: list[int]) -> None:
    fun, args = CASES[case]
    given = [xp.asarray(a) for a in args]
    found = ft.jit(fun)(*given)
    assert len(texts) == 1
    for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(fun(*given)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_there_is_something_in_between(case: str) -> None:
    fun, args = CASES[case]
    made = made_of(fun, *args)
    between = [e for e in made.fused.steps if not is_lowered(e)]
    assert between
    loops = [e for e in between if isinstance(e, Node) and isinstance(e.primitive, Control)]
    assert bool(loops) == (case == "looks")


def test_of_what_is_not_run_at_once_loops_by_themselves_wait(texts: list[int]) -> None:
    made = made_of(looks, np.ones(2000), ROWS)
    assert len(texts) == 1
    made.run(np.ones(2000), ROWS)
    assert len(texts) == 2
