"""While code is made Python's collector comes seldom, and what the user set of it holds."""

import gc

import pytest

import funct as ft
import funct.array as xp
from funct.core import collecting
from funct.core.collecting import seldom

USERS = (700, 10, 10)


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    gc.set_threshold(*USERS)
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("users", [(0, 10, 10), (1 << 20, 5, 5)])
def test_a_collector_that_is_off_or_comes_seldom_is_left_alone(users):
    gc.set_threshold(*users)
    with seldom:
        assert gc.get_threshold() == users
    assert gc.get_threshold() == users
    gc.set_threshold(*USERS)
    gc.disable()
    try:
        with seldom:
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_is_set_in_a_block_holds_after_it():
    with seldom:
        assert gc.get_threshold() == (collecting._MANY, 10, 10)
        gc.set_threshold(50, 4, 3)
    assert gc.get_threshold() == (50, 4, 3)
    gc.set_threshold(*USERS)
    with seldom:
        gc.disable()
    assert not gc.isenabled()
    gc.enable()
    assert gc.get_threshold() == USERS


@pytest.mark.parametrize("folder", ["", "kept"])
@pytest.mark.parametrize("wrap", [lambda f: f, ft.grad], ids=["jit", "its gradient"])
def test_first_calls_of_many_objects_are_collected_seldom(monkeypatch, tmp_path, folder, wrap):
    monkeypatch.setenv("FUNCT_CACHE_DIR", folder and str(tmp_path))
    seen = []

    def long(x):
        for k in range(150):
            x = xp.sin(x * (k + 1.0)) + xp.cos(x)
        seen.append(gc.get_threshold()[0])
        return xp.sum(x)

    found = []

    def count(phase, _):
        found.append(phase)

    x = xp.linspace(0.0, 1.0, 8)
    f = wrap(ft.jit(long))
    f(xp.linspace(0.0, 1.0, 9))  # what the first of all needs
    gc.collect()
    gc.callbacks.append(count)
    try:
        f(x)
    finally:
        gc.callbacks.remove(count)
    assert seen[-1] == collecting._MANY
    assert gc.get_threshold() == USERS
    assert found.count("start") <= 4  # as the blocks end; 20 and more without them


def test_garbage_of_a_capture_does_not_pile_up():
    """A function that makes a great many objects is collected meanwhile."""
    found = []

    def wasteful(x):
        for _ in range(collecting._MANY + 1000):
            cycle = []
            cycle.append(cycle)
        return x * 2.0

    gc.callbacks.append(lambda phase, _: found.append(phase))
    try:
        ft.jit(wasteful)(xp.ones(3))
    finally:
        gc.callbacks.pop()
    assert found
