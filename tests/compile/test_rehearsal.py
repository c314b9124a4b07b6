"""Ops that are no loops are called on zeros while code is made, and nobody sees that they were."""

import threading

import attrs
import numpy as np
import pytest
from msgspec.structs import replace

import funct as ft
import funct.array as xp
from funct.compile import native, rehearsal, run_at_once
from funct.compile.rehearsal import REHEARSED, rehearse
from funct.core import lookup
from funct.device import host
from funct.graph import Node, Var
from funct.nn import functional

F32 = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    def two():
        return replace(host(), cores=2)

    monkeypatch.setattr(rehearsal, "cores", lambda: 2)
    monkeypatch.setattr(rehearsal, "host", two)


def called(prim, *nodes, at_once=True):
    """What the op is called with. nodes: (shapes, params) of each."""
    found = []

    def raw(*args):
        found.append((threading.get_ident(), *args))
        raise ArithmeticError("the function would find it again")

    seen = attrs.evolve(prim, raw=raw)
    steps = [
        Node(seen, tuple([Var(f"x{k}", s, F32) for k, s in enumerate(shapes)]), params, ())
        for shapes, params in nodes
    ]
    if at_once:
        with run_at_once():
            threads = rehearse(steps)
    else:
        threads = rehearse(steps)
    for thread in threads:
        thread.join()
    return found


POOL, WINDOW = "max_pool", ((2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1))


def test_all_that_are_rehearsed_are_ops_without_effects():
    """Those that raise do so for their indices, and zeros are on any axis."""
    for name in REHEARSED:
        prim = lookup(name)
        assert prim is not None
        assert not prim.effect
        assert not prim.raises or name in ("put", "scatter_add")


def test_an_op_is_called_on_zeros_by_another_thread():
    ((thread, x, *params),) = called(lookup(POOL), (((2, 3, 8, 8),), WINDOW))
    assert thread != threading.get_ident()
    assert x.shape == (2, 3, 8, 8)
    assert x.dtype == F32
    assert not x.any()
    assert tuple(params) == WINDOW


def test_each_kind_is_called_once_and_large_ones_never():
    small, other, large = (((1, 1, n, n),) for n in (8, 16, 4096))
    found = called(lookup(POOL), (small, WINDOW), (other, WINDOW), (small, WINDOW), (large, WINDOW))
    assert sorted([x.shape[-1] for _, x, *_ in found]) == [8, 16]


def test_other_ops_and_functions_that_are_not_run_at_once_are_left_alone(monkeypatch):
    assert not called(lookup("sort"), (((8,),), (0,)))
    assert not called(lookup(POOL), (((2, 3, 8, 8),), WINDOW), at_once=False)
    monkeypatch.setattr(rehearsal, "cores", lambda: 1)
    assert not called(lookup(POOL), (((2, 3, 8, 8),), WINDOW))


def test_a_first_call_has_the_values_of_later_ones(monkeypatch):
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")  # code that is there needs no rehearsal
    threads = []
    monkeypatch.setattr(native, "rehearse", lambda steps: threads.extend(rehearse(steps)))
    r = np.random.default_rng(0)
    x = xp.asarray(r.standard_normal((4, 8, 20, 20), dtype=np.float32))
    w = xp.asarray(r.standard_normal((40, 8, 3, 3), dtype=np.float32))

    def loss(w):
        h = functional.relu(functional.conv2d(x, w, padding=1))
        return xp.sum(functional.max_pool2d(h, 2) ** 2)

    step = ft.jit(ft.value_and_grad(loss))
    first, slope = step(w)
    assert threads
    for thread in threads:
        thread.join()
    again, slope_again = step(w)
    assert np.asarray(first) == np.asarray(again)
    np.testing.assert_array_equal(np.asarray(slope), np.asarray(slope_again))
    want, slope_eager = ft.value_and_grad(loss)(w)
    np.testing.assert_allclose(np.asarray(first), np.asarray(want), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(slope), np.asarray(slope_eager), rtol=1e-3, atol=1e-3)
