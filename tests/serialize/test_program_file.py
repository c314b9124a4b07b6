"""`*.funct`: programs come back bit for bit."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export, nn, tree
from funct.core import Sample, catalogue
from funct.errors import (
    ExportError,
    FileFormatError,
    ForgottenRulesWarning,
    GuardError,
    TreeError,
)


def same_bits(a: Any, b: Any) -> None:
    """Check that two trees agree bit for bit."""
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def through(program: Any, folder: Path) -> Any:
    """Save and load; a second round gives the same bytes."""
    export.save(program, folder / "a.funct")
    loaded = export.load(folder / "a.funct")
    export.save(loaded, folder / "b.funct")
    assert (folder / "a.funct").read_bytes() == (folder / "b.funct").read_bytes()
    return loaded


WEIGHTS = xp.asarray(np.random.default_rng(0).normal(size=(3, 4)))


def model(x: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Inputs and outputs as trees, constants, Python numbers of all kinds."""
    y = xp.tanh(x @ WEIGHTS) * options["scale"] + 0.1
    y = xp.where(y > float("-inf"), y, 1e300)
    return y[::-1, 1:], {"sum": xp.sum(y, axis=(0, 1)), "count": [xp.mean(x, axis=0)]}


ARGS = (xp.asarray(np.random.default_rng(1).normal(size=(5, 3))), {"scale": xp.asarray(2.0)})


def test_round_trip(tmp_path: Path) -> None:
    """A loaded program gives the same bits, under grad, vmap and jit too."""
    program = export.export(model, ARGS)
    loaded = through(program, tmp_path)
    same_bits(loaded(*ARGS), program(*ARGS))
    assert (loaded.input_names, loaded.output_names) == (program.input_names, program.output_names)

    def loss(p: Any) -> Any:
        return lambda x: p(x, ARGS[1])[1]["sum"]

    same_bits(ft.grad(loss(loaded))(ARGS[0]), ft.grad(loss(program))(ARGS[0]))
    batch = xp.stack([ARGS[0], ARGS[0] + 1.0])
    same_bits(ft.vmap(loss(loaded))(batch), ft.vmap(loss(program))(batch))
    same_bits(ft.jit(loss(loaded))(ARGS[0]), ft.jit(loss(program))(ARGS[0]))


def test_symbolic_sizes(tmp_path: Path) -> None:
    """Symbolic sizes, what is computed from them and guards on them survive."""

    def fun(x: Any) -> Any:
        if x.shape[0] < 3:
            return x
        return xp.concat([xp.reshape(x, (x.shape[0] // 2, 4)), xp.zeros((1, 4))]), xp.mean(x[1:])

    x = xp.reshape(xp.arange(12, dtype=xp.float64), (6, 2))
    program = export.export(fun, (x,), dynamic_shapes=({0: "N"},))
    loaded = through(program, tmp_path)
    assert str(loaded.graph.inputs[0].shape[0]) == "N"
    for n in (4, 10):
        x = xp.reshape(xp.arange(2 * n, dtype=xp.float64), (n, 2))
        same_bits(loaded(x), program(x))
    with pytest.raises(GuardError):
        loaded(xp.zeros((2, 2)))


def test_guards_on_values(tmp_path: Path) -> None:
    """Decisions on values are kept, arrays among them."""

    def fun(x: Any) -> Any:
        if xp.sum(x) > 0 and float(x[0]) == 1.0:
            return x * int(xp.asarray(x[1], dtype=xp.int64))
        return x

    x = xp.asarray([1.0, 3.0])
    loaded = through(export.export(fun, (x,)), tmp_path)
    same_bits(loaded(x), fun(x))
    with pytest.raises(GuardError):
        loaded(xp.asarray([2.0, 3.0]))


def test_lines_of_the_user(tmp_path: Path) -> None:
    """An error in a loaded program names file and line of the source, not the folder."""
    program = export.export(xp.take, (xp.ones(3), xp.asarray([0])))
    export.save(program, tmp_path / "a.funct")
    assert str(tmp_path) not in (tmp_path / "a.funct").read_bytes().decode("latin-1")
    with pytest.raises(IndexError, match=r"<test_program_file\.py>:\d+"):
        export.load(tmp_path / "a.funct")(xp.ones(3), xp.asarray([7]))


def test_calls_are_inlined(tmp_path: Path) -> None:
    """A function with derivative rules of its own is saved as its body, which is said by name."""

    @ft.custom_vjp
    def double(x: Any) -> Any:
        return x * 2.0

    double.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * 7.0,))

    @ft.custom_jvp
    def same(x: Any) -> Any:
        return x

    same.defjvp(lambda p, t: (p[0], t[0] * 7.0))
    for used in (
        lambda f: lambda x: f(x) * 1.0,
        ft.vmap,
        lambda f: ft.jit(lambda x: f(x) * 1.0),
        lambda f: ft.checkpoint(lambda x: f(x) * 1.0),
        lambda f: lambda x: ft.scan(lambda c, _: (f(c), None), x, None, 2)[0] / 2.0,
        ft.detect_anomaly,
        lambda f: lambda x: ft.cond(xp.sum(x) > 0.0, f, lambda x: x, x),
    ):
        f = used(double)  # type: ignore[no-untyped-call]
        program = export.export(lambda x, f=f: f(same(x)) + 1.0, (xp.ones(2),))
        with pytest.warns(ForgottenRulesWarning, match="same, double have derivative rules"):
            loaded = through(program, tmp_path)
        assert loaded(xp.ones(2)).tolist() == [3.0, 3.0]
        assert ft.grad(lambda x, g=loaded: xp.sum(g(x)))(xp.ones(2)).tolist() == [2.0, 2.0]


def test_derivatives_that_are_those_of_bodies_are_in_the_file(tmp_path: Path) -> None:
    """Nothing is said of compiled functions, checkpoints, leaves and batching rules."""
    ruled = ft.custom_vmap(lambda x: xp.sin(x) * 1.0)
    ruled.def_vmap(lambda size, flags, x: (xp.sin(x), True))
    for f in (ft.jit(xp.sin), ft.checkpoint(xp.sin), ft.graph.leaf(xp.sin), ruled):
        loaded = through(export.export(lambda x, f=f: f(x) * 2.0, (xp.ones(2),)), tmp_path)
        assert float(ft.grad(lambda x, g=loaded: xp.sum(g(x)))(xp.zeros(2))[0]) == 2.0


def test_parameter_names(tmp_path: Path) -> None:
    """The names of a layer's parameters survive."""
    from funct import nn

    layer = nn.Linear(3, 2, key=ft.random.key(0))
    x = xp.ones((4, 3), dtype=xp.float32)
    loaded = through(export.export(layer, (x,)), tmp_path)
    assert set(loaded.constant_names.values()) == {"weight", "bias"}
    same_bits(loaded(x), layer(x))


@pytest.mark.parametrize("prim", list(catalogue()), ids=lambda p: p.name)
def test_every_primitive(prim: Any, tmp_path: Path) -> None:
    """Every primitive with every sample's parameters goes through a file."""
    samples: list[Sample] = prim.samples(np.random.default_rng(0))
    for s in samples:
        args = tuple(xp.asarray(a) for a in s.args)
        program = export.export(lambda *xs, s=s: prim.fn(*xs, *s.params), args)
        same_bits(through(program, tmp_path)(*args), program(*args))


@attrs.frozen
class Scaled:
    """A record that nobody registers, with a static field."""

    x: Any
    by: Any
    power: int = tree.static_field(default=3)


@dataclasses.dataclass
class Pair:
    """A dataclass."""

    first: Any
    rest: Any


class Point(NamedTuple):
    """A named tuple."""

    x: Any
    y: Any


def _of_records(p: Any) -> Any:
    s = p["s"]
    return Pair(s.x**s.power * s.by[0].x, Point(Scaled(s.by[0].y, None), (p["linear"](s.x),)))


def test_records_and_layers_are_arguments_and_results(tmp_path: Path) -> None:
    """They come back as the classes that they were, with what is static in them."""
    one = xp.asarray([1.0, 2.0])
    linear = nn.Linear(2, 3, key=ft.random.key(0), dtype=xp.float64)
    args = ({"s": Scaled(one, [Point(one * 2.0, one)], 2), "linear": linear},)
    program = export.export(_of_records, args)
    loaded = through(program, tmp_path)
    assert tree.structure(loaded(*args)) == tree.structure(_of_records(*args))
    assert type(loaded(*args)) is Pair
    same_bits(loaded(*args), program(*args))
    same_bits(ft.jit(loaded)(*args), program(*args))
    other = {**args[0], "s": Scaled(one, [Point(one, one)], 3)}
    with pytest.raises(TreeError, match=r"got .*Scaled\[\(3,\)"):
        loaded(other)


def test_a_class_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a program imports nothing; a class that changed its fields is another."""
    program = export.export(lambda p: p.first, (Pair(xp.ones(1), ()),))
    export.save(program, tmp_path / "a.funct")
    monkeypatch.delitem(sys.modules, __name__)
    with pytest.raises(FileFormatError, match=rf"objects of {__name__}.Pair, .*\n.*\n?.*import"):
        export.load(tmp_path / "a.funct")
    monkeypatch.undo()
    monkeypatch.setitem(globals(), "Pair", attrs.make_class("Pair", ["first", "last"]))
    with pytest.raises(FileFormatError, match="other fields"):
        export.load(tmp_path / "a.funct")


def test_classes_without_a_form(tmp_path: Path) -> None:
    """One that cannot be found by its name, or that says itself how it is taken apart."""
    program = export.export(lambda z: z, (xp.asarray(1.0),))
    export.save(program, tmp_path / "a.funct")
    local = attrs.make_class("Local", ["x"])
    own = type("Own", (), {})
    tree.register(own, lambda _: ((xp.ones(1),), None, ("x",)), lambda _, children: own())
    for made, told in ((local(xp.ones(1)), "found by its name"), (own(), "attrs classes, got Own")):
        with pytest.raises(ExportError, match=told):
            export.save(export.export(lambda _: xp.ones(1), (made,)), tmp_path / "b.funct")
    assert [p.name for p in tmp_path.iterdir()] == ["a.funct"]
