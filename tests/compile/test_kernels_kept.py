"""Code of kernels is there as long as a program has it, shared meanwhile, and then goes."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import program
from tests import laws

X = xp.asarray(np.linspace(-1.0, 1.0, 1 << 15).reshape(64, 512))


def made(k: int) -> Callable[[Any], Any]:
    """A function whose kernel is that of no other k."""

    def f(x: Any) -> Any:
        for bit in range(6):
            x = xp.sin(x) + 1.5 if k >> bit & 1 else xp.exp(-x) * 0.5
        return xp.sum(x, axis=1)

    return f


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Nothing is on disk, and of kernels that nobody has three are kept."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(program, "_MOST_RECENT", 3)
    monkeypatch.setattr(program, "_recent", OrderedDict())


def alive(codes: list[weakref.ref[Any]]) -> int:
    """How many of them are still there."""
    gc.collect()
    return sum(c() is not None for c in codes)


def test_functions_that_come_and_go_leave_no_code(few: None) -> None:
    """Of those that nobody has, the last ones are kept."""
    codes = []
    for k in range(12):
        f = ft.jit(made(k))
        laws.close(f(X), made(k)(X), 1e-12, 1e-12)
        codes += [weakref.ref(m.code) for m in program._recent.values()][-1:]
        del f
    assert alive(codes) == 3


def test_code_lives_as_long_as_a_function_that_runs_it(
    few: None, caplog: pytest.LogCaptureFixture
) -> None:
    """Others may have come since, and a new function with its kernels has them without LLVM."""
    first = ft.jit(made(3))
    expected = first(X)
    for k in range(4, 12):
        ft.jit(made(k))(X)
    gc.collect()
    for _ in range(3):
        laws.same(first(X), expected)
    with caplog.at_level(logging.DEBUG, "funct.code"):
        laws.same(ft.jit(lambda x: made(3)(x) * 1.0)(X), expected)
        laws.same(ft.jit(made(3), mode="reduce-overhead")(X), expected)
    assert not caplog.records


def test_code_outlives_the_call_that_is_in_it(few: None) -> None:
    """Whoever forgets a function meanwhile takes nothing from under it."""
    x = xp.asarray(np.linspace(-1.0, 1.0, 1 << 21).reshape(64, -1))
    f = ft.jit(made(1))
    expected = f(x)
    running, found = threading.Event(), []

    def work() -> None:
        for _ in range(8):
            running.set()
            found.append(f(x))

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    for k in range(2, 8):
        f.clear_cache()
        ft.jit(made(k))(X)
        gc.collect()
    thread.join()
    for y in found:
        laws.same(y, expected)
