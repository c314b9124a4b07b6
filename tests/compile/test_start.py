"""What every program needs is begun while a function is captured, where one will come of it."""

import os
import subprocess
import sys

import pytest

import funct as ft
import funct.array as xp
from funct.compile import executable
from funct.transforms.compiled import table


@pytest.fixture
def events(monkeypatch):
    found = []
    monkeypatch.setattr(executable, "begin_walker", lambda **_: found.append("begun"))
    monkeypatch.setattr(table, "begin_walker", lambda: found.append("begun meanwhile"))
    return found


def traced(events, *arrays, **options):
    def f(*xs):
        events.append("captured")
        return xs[0] * 2.0

    ft.jit(f, **options)(*arrays)
    return events[: events.index("captured") + 1]  # then it is begun in any case


def test_it_is_begun_before_the_capture_of_large_arrays(events):
    assert traced(events, xp.ones((128, 128))) == ["begun", "captured"]


def test_sizes_are_added_up(events):
    assert traced(events, *[xp.ones((64, 64))] * 4) == ["begun", "captured"]


def test_small_arrays_begin_nothing(events):
    assert traced(events, xp.ones((64, 64)), xp.ones(())) == ["captured"]


def many(x):
    for _ in range(30):
        x = xp.sin(x) + 1.0
    return x


def inside(x):
    return ft.scan(lambda h, _: (many(h), None), x, None, length=3)[0]


@pytest.mark.parametrize("fun", [many, inside])
def test_captures_of_many_ops_begin_it_before_they_end(events, fun):
    def f(x):
        y = fun(x)
        events.append("captured")
        return y

    ft.jit(f)(xp.ones(3))
    assert events[:2] == ["begun meanwhile", "captured"]


POOL = """
import numpy as np
import funct as ft, funct.array as xp
from funct.device import threads

def f(x):
    for _ in range(30):
        x = xp.sin(x) @ xp.ones((8, 8)) + 1.0
    return x

def asked():
    return bool(threads._pool.cache_info().currsize)

ft.jit(f)(xp.ones((8, 8)))
few = asked()
x = np.linspace(0.0, 1.0, 1 << 16)
assert np.array_equal(np.asarray(ft.jit(lambda x: x * 2.0 + 1.0)(xp.asarray(x))), x * 2.0 + 1.0)
print(few, asked())
"""


@pytest.mark.parametrize("folder", ["", "there"])
def test_threads_are_for_programs_of_several_tasks(tmp_path, folder):
    where = str(tmp_path / folder) if folder else ""
    for _ in range(2):  # made, and where it is kept, loaded
        done = subprocess.run(
            [sys.executable, "-c", POOL], env={**os.environ, "FUNCT_CACHE_DIR": where}, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.stdout == "False True\n"


LOADED = """
import sys
import funct as ft, funct.array as xp
from funct.compile.steps import walker
from funct.device import llvm

walker.cores = lambda: 2
ft.jit(lambda x: x * 2.0)(xp.ones((256, 256)))
for thread in walker._starters:
    thread.join()
print(llvm.loaded())
ft.jit(lambda x: xp.tanh(x) * 2.0)(xp.ones((256, 256)))
"""


def test_llvm_is_loaded_meanwhile_but_where_the_code_is_on_disk(tmp_path):
    environment = {**os.environ, "FUNCT_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", LOADED]
    said = [
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert said == ["True\n", "False\n"]


def test_another_backend_begins_nothing(events):
    assert traced(events, xp.ones((256, 256)), backend="interpret") == ["captured"]
