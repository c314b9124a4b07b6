"""What every program needs is begun while a function is captured, where one will come of it."""

import pytest

import funct as ft
import funct.array as xp
from funct.compile import executable


@pytest.fixture
def events(monkeypatch):
    found = []
    monkeypatch.setattr(executable, "begin_walker", lambda: found.append("begun"))
    monkeypatch.setattr(executable, "loaded", lambda: True)
    return found


def traced(events, *arrays, **options):
    def f(*xs):
        events.append("captured")
        return xs[0] * 2.0

    ft.jit(f, **options)(*arrays)
    return events


def test_it_is_begun_before_the_capture_of_large_arrays(events):
    assert traced(events, xp.ones((128, 128))) == ["begun", "captured"]


def test_sizes_are_added_up(events):
    assert traced(events, *[xp.ones((64, 64))] * 4) == ["begun", "captured"]


def test_small_arrays_begin_nothing(events):
    assert traced(events, xp.ones((64, 64)), xp.ones(())) == ["captured"]


def test_where_llvm_is_not_loaded_nothing_loads_it(events, monkeypatch):
    monkeypatch.setattr(executable, "loaded", lambda: False)
    assert traced(events, xp.ones((256, 256))) == ["captured"]


def test_another_backend_begins_nothing(events):
    assert traced(events, xp.ones((256, 256)), backend="interpret") == ["captured"]
