"""Compiled functions in processes that start anew: what is sent is the function, not its code."""

import functools
import multiprocessing
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from tests import laws


@ft.jit
def decorated(x: Any) -> Any:
    """Work enough for machine code, and for threads."""
    return xp.sum(xp.exp(xp.sin(x) * 3.0) / (1.0 + x))


def _plain(x: Any, k: int) -> Any:
    return xp.cos(x) * k + 1.0


CALLS: list[tuple[Any, int]] = [
    (decorated, 0), (ft.jit(_plain, static_argnums=1), 2),
    (ft.jit(functools.partial(_plain, k=3)), 0),
    (ft.jit(_plain, static_argnums=1, mode="reduce-overhead"), 4),
]  # fmt: skip


def call(given: tuple[Any, int]) -> list[Any]:
    """A call, and another with other values."""
    fun, k = given
    x = xp.asarray(np.linspace(0.0, 1.0, 1 << 16).astype(np.float32))
    more = (k,) if k else ()
    return [np.asarray(fun(v, *more)) for v in (x, x + 0.5)]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_compiled_functions_run_in_other_processes(method: str) -> None:
    """Also those that were compiled, and whose threads were started, here."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    expected = [call(c) for c in CALLS]
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(call, CALLS)
    for ours, theirs in zip(expected, found, strict=True):
        laws.same(tuple(ours), tuple(theirs))
    for ours, again in zip(expected, map(call, CALLS), strict=True):
        laws.same(tuple(ours), tuple(again))
