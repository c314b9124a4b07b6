"""Each mode of `jit`, and fullgraph, does what it says, and the default does not."""

import sys
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import errors
from funct import graph as g
from funct.compile import whole_of
from funct.compile.tuned import tuned
from funct.core import catalogue
from tests import laws

TUNED = sys.modules[tuned.__module__]
MODES = ("default", "reduce-overhead", "max-autotune", "check")


def small(x: Any) -> Any:
    """A few elements, of which NumPy's calls are the code unless somebody asks for another."""
    return xp.sin(x) * 2.0 - x


def run_of(f: Any) -> Any:
    """What a jitted function with one path runs."""
    (path,) = f._table.all_paths()
    return path.raw


def is_machine_code(run: Any) -> bool:
    """Whether it is a program, not NumPy's calls."""
    return any(name.startswith("program") for name in run.__globals__)


@pytest.fixture
def x() -> Any:
    """A few elements."""
    return xp.asarray(np.linspace(-2.0, 2.0, 12))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "check"])
def test_reduce_overhead_makes_machine_code_of_everything(mode: Any, x: Any) -> None:
    """Of few elements too, which the other modes leave to NumPy."""
    f = ft.jit(small, mode=mode)
    laws.close(f(x), small(x), 1e-12, 1e-12)
    assert is_machine_code(run_of(f)) == (mode == "reduce-overhead")
    assert (whole_of(run_of(f)) is not None) == (mode == "reduce-overhead")


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_reduce_overhead_keeps_spare_results(mode: Any, x: Any) -> None:
    """A result that nobody holds is where the next one goes; one that is held is left alone."""
    f = ft.jit(lambda x: xp.exp(x) + 1.0, mode=mode)
    y = xp.ones((256, 256), dtype=xp.float32)
    held = [f(y) for _ in range(4)]
    first = [np.array(h) for h in held]
    places = {f(y).data.ctypes.data for _ in range(6)}
    assert not places & {h.data.ctypes.data for h in held}
    laws.same(held, first)
    if mode == "reduce-overhead":
        assert len(places) <= 2


@pytest.mark.parametrize("winner", ["NumPy", "machine code"])
def test_max_autotune_keeps_what_was_faster(
    winner: str, x: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Measured on the arrays of the first call, once; a second function takes the word on disk."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", str(tmp_path))
    measured: list[Any] = []

    def least(run: Any, buffers: Any) -> float:
        measured.append([b.shape for b in buffers])
        return float(is_machine_code(run) != (winner == "machine code"))

    monkeypatch.setattr(TUNED, "_least", least)
    for calls in (2, 2):
        f = ft.jit(small, mode="max-autotune")
        for _ in range(3):
            laws.close(f(x), small(x), 1e-12, 1e-12)
        assert measured == [[x.shape]] * calls
    ft.jit(small)(x)
    assert len(measured) == 2, "the default measures nothing"


def test_max_autotune_of_deterministic_programs_is_machine_code(
    x: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their bits do not hang on time."""
    monkeypatch.setattr(TUNED, "_least", lambda *_: pytest.fail("measured"))
    with ft.config.using(deterministic=True):
        f = ft.jit(small, mode="max-autotune")
        laws.close(f(x), small(x), 1e-12, 1e-12)
        assert is_machine_code(run_of(f))


def worn(graph: g.Graph) -> Any:
    """A backend that is right once."""
    calls: list[int] = []

    class Worn(g.Interpreter):
        def node(self, node: g.Node, operands: list[Any]) -> tuple[Any, ...]:
            (found,) = super().node(node, operands)
            return (found + 1.0,) if node.name == "sin" and len(calls) > 3 else (found,)

    def run(*xs: Any) -> Any:
        calls.append(1)
        return Worn(graph).run(*xs)

    return run


def test_check_looks_at_every_call_and_the_others_at_none(x: Any) -> None:
    """Also at calls that a kept path serves."""
    f = ft.jit(small, mode="check", backend=worn)
    laws.close(f(x), small(x), 1e-12, 1e-12)
    with pytest.raises(errors.MismatchError, match=r"jit\(small\): compiled code differs"):
        [f(x) for _ in range(9)]
    assert f.cache_info().misses == 1
    for mode in ("default", "reduce-overhead", "max-autotune"):
        h = ft.jit(small, mode=mode, backend=worn)
        assert not np.allclose(np.asarray([h(x) for _ in range(9)][-1]), np.asarray(small(x)))


def astray(graph: g.Graph) -> g.Graph:
    """A backend that computes a logistic function where a hyperbolic tangent stands."""
    found = {prim.name: prim for prim in catalogue()}
    nodes = [
        attrs.evolve(e, primitive=found["sigmoid"]) if e.name == "tanh" else e
        for e in graph.nodes
        if isinstance(e, g.Node)
    ]
    return attrs.evolve(graph, nodes=tuple(nodes))


TAKEN: dict[str, Any] = {
    "as it is": lambda f: f,
    "vjp": lambda f: lambda x: ft.vjp(f, x)[0],
    "grad": lambda f: ft.grad(lambda x: xp.sum(f(x))),
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (x,)),
    "vmap": ft.vmap,
    "hessian": lambda f: ft.hessian(lambda x: xp.sum(f(x))),
}


@pytest.mark.parametrize("name", TAKEN)
def test_check_looks_under_every_transform(name: str, x: Any) -> None:
    """What is compiled for derivatives and batches is compared, too: the first node that differs
    is named, with its line.
    """

    def fun(x: Any) -> Any:
        return xp.sin(x) * xp.tanh(x * 0.5) + x

    right = TAKEN[name](ft.jit(fun, mode="check"))(x)
    laws.close(right, TAKEN[name](fun)(x), 1e-12, 1e-12)
    with pytest.raises(errors.MismatchError, match=r"jit\(fun\): .* at tanh") as told:
        TAKEN[name](ft.jit(fun, mode="check", backend=astray))(x)
    assert "xp.tanh(x * 0.5)" in str(told.value)


@pytest.mark.parametrize("mode", MODES)
def test_fullgraph_refuses_what_the_default_falls_back_for(mode: Any) -> None:
    """In every mode: up to the limit both give the same, past it one is an error."""

    def f(x: Any) -> Any:
        return x * int(x)

    whole, other = ft.jit(f, fullgraph=True, mode=mode), ft.jit(f, mode=mode)
    for k in range(8):
        v = xp.asarray(float(k))
        laws.same([whole(v), other(v)], [f(v)] * 2)
    laws.same(other(xp.asarray(8.0)), xp.asarray(64.0))
    with pytest.raises(errors.TransformError, match="took 8 paths for one signature"):
        whole(xp.asarray(8.0))
    laws.same(whole(xp.asarray(7.0)), xp.asarray(49.0))
    assert whole.cache_info().paths == 8
