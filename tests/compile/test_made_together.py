"""Code of all that a function calls is made in one go, whatever Python does in between."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import program
from funct.compile.control import is_lowered
from tests.compile.test_bounds import made_of


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts were made at each time; no kernel is known from before."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    found: list[int] = []
    make = program.assemble_kernels

    def noted(texts: list[Any], **how: Any) -> list[Any]:
        found.append(len(texts))
        return make(texts, **how)

    monkeypatch.setattr(program, "assemble_kernels", noted)
    monkeypatch.setattr(program, "_codes", {})
    return found


def sorts(x: Any) -> Any:
    """Loops, then what is called, three times."""
    for k in range(3):
        x = xp.sort(xp.tanh(x * (k + 1.5)) - k, axis=0)
    return xp.sum(x * 3.25, axis=1)


def test_code_is_made_once(texts: list[int]) -> None:
    x = xp.asarray(np.ones((300, 70)))
    found = ft.jit(sorts)(x)
    assert len(texts) == 1
    np.testing.assert_allclose(found, sorts(x), rtol=1e-12)


def test_there_is_something_in_between() -> None:
    made = made_of(sorts, np.ones((300, 70)))
    assert [e for e in made.fused.steps if not is_lowered(e)]
