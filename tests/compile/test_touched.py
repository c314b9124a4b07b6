"""Results of a first call lie in memory that was touched while code was made, each in its own."""

import sys
import threading

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import build, run_at_once, touched
from funct.compile.touched import touch
from tests import laws

F32, U8 = np.dtype(np.float32), np.dtype(np.uint8)
LARGE = ((1024, 512), F32)  # 2 MiB


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(touched, "cores", lambda: 2)


def begun(*results):
    names = {"empty": np.empty}
    with run_at_once():
        touch(results, names)
    return names


def test_each_array_is_given_once_and_then_empty_is_numpys():
    names = begun(LARGE, LARGE, ((4096, 512), F32))
    empty = names["empty"]
    found = [empty(*LARGE), empty((4096, 512), F32), empty(*LARGE), empty(*LARGE)]
    assert [(x.shape, x.dtype) for x in found] == [LARGE, ((4096, 512), F32), LARGE, LARGE]
    assert not any(np.shares_memory(x, y) for x in found for y in found if x is not y)
    assert names["empty"] is np.empty


def test_nobody_writes_into_what_was_given():
    for _ in range(20):
        names = begun(((1 << 25,), U8))
        x = names["empty"]((1 << 25,), U8)  # while it is touched
        x[:] = 7
        assert np.all(x == 7)


def test_the_pages_are_touched():
    names = begun(((1 << 21,), U8))
    for thread in names["empty"]._threads:
        thread.join()
    x = names["empty"]((1 << 21,), U8)
    assert not x[:: 1 << 12].any()


def test_other_types_and_small_arrays_are_numpys():
    names = begun(LARGE, ((4,), F32))
    empty = names["empty"]
    assert len(empty._arrays) == 1
    assert empty((512, 1024), F32).shape == (512, 1024)
    assert empty((1024, 512), np.dtype(np.int32)).dtype == np.int32
    assert names["empty"] is empty
    empty(*LARGE)
    assert names["empty"] is np.empty


def test_programs_of_one_function_add_up():
    names = begun(LARGE)
    with run_at_once():
        touch([LARGE], names)
    held = {id(x) for x in names["empty"]._arrays}
    assert {id(names["empty"](*LARGE)) for _ in range(2)} <= held


def test_not_more_than_a_bound_is_touched():
    names = begun(*[((1 << 24,), U8)] * 9)
    assert sum(x.nbytes for x in names["empty"]._arrays) == touched._MOST
    assert begun(((touched._MOST + 1,), U8)) == {"empty": np.empty}


@pytest.mark.parametrize("cores", [1, 2])
def test_without_a_call_or_a_second_core_nothing_is_touched(monkeypatch, cores):
    monkeypatch.setattr(touched, "cores", lambda: cores)
    names = {"empty": np.empty}
    if cores > 1:
        touch([LARGE], names)
    else:
        names = begun(LARGE)
    assert names == {"empty": np.empty}


def test_threads_that_ask_at_once_get_arrays_of_their_own():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        empty, found = begun(*[LARGE] * 8)["empty"], []
        threads = [threading.Thread(target=lambda: found.append(empty(*LARGE))) for _ in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert len({x.ctypes.data for x in found}) == 16


def two(x):
    return xp.exp(x) + 1.0, xp.sum(x * x, axis=-1), -x


@pytest.mark.parametrize("folder", ["", "kept"])
def test_first_and_later_calls_give_the_same(monkeypatch, tmp_path, folder):
    monkeypatch.setenv("FUNCT_CACHE_DIR", folder and str(tmp_path))
    seen, add = [], touched._Touched.add

    def watched(self, given):
        seen.extend(given)
        add(self, given)

    monkeypatch.setattr(touched._Touched, "add", watched)
    x = xp.asarray(np.random.default_rng(0).standard_normal((1024, 512), dtype=np.float32))
    first = ft.jit(two)
    out = first(x)
    again = ft.jit(two)(x)  # from disk, where there is one
    assert seen == [LARGE, LARGE] * 2
    kept = [np.array(o) for o in out]
    later = first(x)
    laws.same(list(later), kept)
    laws.same(list(again), kept)
    laws.same(list(out), kept)
    for ours, eager in zip(out, two(x), strict=True):
        assert np.allclose(np.asarray(ours), np.asarray(eager), rtol=1e-5)


def test_what_is_compiled_without_a_call_holds_no_memory(monkeypatch):
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    x = xp.ones((1024, 512), dtype=xp.float32)
    run = build(ft.make_graph(two)(x))
    assert run.__globals__["empty"] is np.empty
