"""Attrs classes and dataclasses are pytrees wherever one is met, and nobody registers them."""

import dataclasses
import functools
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import funct as ft
import funct.array as xp
from funct import export, nn, optim, records, serialize, tree
from funct.errors import FunctError, TransformError, TreeError, UnsupportedOperandError
from tests import laws
from tests.together import together

FIELDS: Any = ["w", "b"]
CLASSES: dict[str, Callable[[], Any]] = {
    "dataclass": lambda: dataclasses.make_dataclass("Part", FIELDS),
    "frozen dataclass": lambda: dataclasses.make_dataclass("Part", FIELDS, frozen=True),
    "slotted dataclass": lambda: dataclasses.make_dataclass("Part", FIELDS, slots=True),
    "dataclass that hashes": lambda: dataclasses.make_dataclass("Part", FIELDS, eq=False),
    "define": lambda: attrs.make_class("Part", FIELDS, slots=True),
    "frozen": lambda: attrs.make_class("Part", FIELDS, slots=True, frozen=True),
    "attrs without slots": lambda: attrs.make_class("Part", FIELDS),
    "frozen that hashes": lambda: attrs.make_class("Part", FIELDS, frozen=True, eq=False),
}

W, B = xp.asarray([1.0, 2.0]), xp.asarray(3.0)
ROWS = xp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
YES = xp.asarray(True)


def loss(p: Any) -> Any:
    return xp.sum(p.w * p.w) * p.b


def step(p: Any) -> Any:
    return type(p)(p.w * p.b, p.b + 1.0)


def jvp_of(c: Any, fun: Any) -> Any:
    rule = ft.custom_jvp(fun)
    rule.defjvp(lambda p, t: (fun(p[0]), ft.jvp(fun, p, t)[1]))
    return rule


def vjp_of(c: Any, fun: Any, bwd: Any) -> Any:
    rule = ft.custom_vjp(fun)
    rule.defvjp(lambda p: (fun(p), c(p.w, p.b) if isinstance(p, c) else c(p, p)), bwd)
    return rule


def batched(c: Any) -> Any:
    rule = ft.custom_vmap(step)
    rule.def_vmap(lambda size, flags, p: (c(p.w, p.b), c(True, flags[0].b)))
    return ft.vmap(rule)(c(ROWS, ROWS[:, 0]))


def trained(opt: Any, c: Any) -> Any:
    p = c(W, B)
    state = opt.init(p)
    for _ in range(2):
        p, state, _ = opt.step(p, ft.grad(loss)(p), state)
    return p, tree.leaves(state)


def written(p: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        serialize.save(p, Path(folder) / "p.safetensors")
        return serialize.load(Path(folder) / "p.safetensors", like=p)


# each is given a class and gives a tree; nothing before it has met the class
PLACES: dict[str, Callable[[Any], Any]] = {
    "grad": lambda c: ft.grad(loss)(c(W, B)),
    "grad of numbers": lambda c: ft.grad(lambda p: p.w * p.w * p.b)(c(2.0, 3.0)),
    "grad in a tree": lambda c: ft.grad(lambda t: loss(t["p"][0]))({"p": [c(W, B)]}),
    "value_and_grad": lambda c: ft.value_and_grad(loss)(c(W, B)),
    "aux of grad": lambda c: ft.grad(lambda w: (xp.sum(w), c(w, B)), has_aux=True)(W),
    "vjp": lambda c: ft.vjp(step, c(W, B))[1](c(W, B)),
    "result of vjp": lambda c: ft.vjp(lambda w: c(w, w), W)[1](c(W, W)),
    "jvp": lambda c: ft.jvp(step, (c(W, B),), (c(W, B),)),
    "result of jvp": lambda c: ft.jvp(lambda w: c(w, w), (W,), (W,)),
    "aux of jvp": lambda c: ft.jvp(lambda w: (w, c(w, B)), (W,), (W,), has_aux=True),
    "linearize": lambda c: ft.linearize(step, c(W, B))[1](c(W, B)),
    "linear_transpose": lambda c: ft.linear_transpose(lambda p: p.w * 2.0, c(W, B))(W),
    "jet": lambda c: ft.jet(step, (c(W, B),), (c([W, W], [B, B]),)),
    "result of jet": lambda c: ft.jet(lambda w: c(w, w), (W,), ([W, W],)),
    "jacrev": lambda c: ft.jacrev(step)(c(W, B)),
    "jacfwd": lambda c: ft.jacfwd(step)(c(W, B)),
    "hessian": lambda c: ft.hessian(loss)(c(W, B)),
    "hvp": lambda c: ft.hvp(loss, (c(W, B),), (c(W, B),)),
    "vmap": lambda c: ft.vmap(step)(c(ROWS, ROWS[:, 0])),
    "axes of vmap": lambda c: ft.vmap(step, in_axes=(c(0, None),))(c(ROWS, B)),
    "out_axes of vmap": lambda c: ft.vmap(step, out_axes=c(1, 0))(c(ROWS, ROWS[:, 0])),
    "vmap by name": lambda c: ft.vmap(lambda *, p: step(p))(p=c(ROWS, ROWS[:, 0])),
    "vmap whose lanes part": lambda c: ft.vmap(
        lambda w: c(w, w) if xp.sum(w) > 5.0 else c(-w, w)
    )(ROWS),
    "psum": lambda c: ft.vmap(lambda w: ft.psum(c(w, w), "i"), axis_name="i")(ROWS),
    "jit": lambda c: ft.jit(step)(c(W, B)),
    "jit by name": lambda c: ft.jit(lambda *, p: step(p))(p=c(W, B)),
    "jit with a static argument": lambda c: ft.jit(
        lambda p, n: c(p.w * n, p.b), static_argnums=1
    )(c(W, B), 2),
    "donated": lambda c: ft.jit(step, donate_argnums=0)(c(W + 0.0, B + 0.0)),
    "checked": lambda c: ft.jit(step, mode="check")(c(W, B)),
    "result of jit": lambda c: ft.jit(lambda w: c(w, w * 2.0))(W),
    "jit, again and again": lambda c: [ft.jit(step)(ft.jit(step)(c(W, B))) for _ in range(3)],
    "lower": lambda c: ft.jit(step).lower(c(W, B)).compile()(c(W, B)),
    "carry of scan": lambda c: ft.scan(lambda p, x: (step(p), x), c(W, B), ROWS),
    "numbers in a carry": lambda c: ft.scan(
        lambda p, x: (c(p.w + x, p.b + 1), p.b), c(0.0, 0), ROWS[:, 0]
    ),
    "xs of scan": lambda c: ft.scan(lambda t, p: (t + p.w, p.b), W, c(ROWS, ROWS)),
    "ys of scan": lambda c: ft.scan(lambda t, x: (t + x, c(t, x)), W, ROWS),
    "ys of scan, compiled": lambda c: ft.jit(
        lambda t: ft.scan(lambda t, x: (t + x, c(t, x)), t, ROWS)
    )(W),
    "scan of no steps": lambda c: ft.scan(lambda p, x: (step(p), x), c(W, B), ROWS[:0]),
    "while_loop": lambda c: ft.while_loop(lambda p: p.b < 9.0, step, c(W, B)),
    "while_loop, compiled": lambda c: ft.jit(
        lambda w: ft.while_loop(lambda p: p.b < 9.0, step, c(w, 3.0))
    )(W),
    "fori_loop": lambda c: ft.fori_loop(0, 3, lambda _, p: step(p), c(W, B)),
    "map": lambda c: ft.map(step, c(ROWS, ROWS[:, 0])),
    "map in batches": lambda c: ft.map(step, c(ROWS, ROWS[:, 0]), batch_size=2),
    "associative_scan": lambda c: ft.associative_scan(
        lambda p, q: c(p.w + q.w, p.b * q.b), c(ROWS, ROWS)
    ),
    "cond": lambda c: ft.cond(YES, step, lambda p: p, c(W, B)),
    "results of cond": lambda c: ft.cond(YES, lambda w: c(w, w), lambda w: c(w, -w), W),
    "results of cond, compiled": lambda c: ft.jit(
        lambda t, w: ft.cond(t, lambda w: c(w, w), lambda w: c(w, -w), w)
    )(YES, W),
    "results of cond, batched": lambda c: ft.vmap(
        lambda w: ft.cond(xp.sum(w) > 5.0, lambda w: c(w, w), lambda w: c(w, -w), w)
    )(ROWS),
    "switch": lambda c: ft.switch(1, [step, lambda p: p], c(W, B)),
    "checkpoint": lambda c: ft.grad(
        lambda w: loss(ft.checkpoint(lambda p: c(p.w * p.b, p.b))(c(w, B)))
    )(W),
    "checkpoint, compiled": lambda c: ft.jit(ft.checkpoint(step))(c(W, B)),
    "checkpoint_name": lambda c: ft.checkpoint_name(c(W, B), "h"),
    "custom_jvp": lambda c: ft.grad(lambda w: loss(jvp_of(c, step)(c(w, B))))(W),
    "custom_vjp": lambda c: ft.grad(
        lambda w: vjp_of(c, loss, lambda r, g: (c(g * r.w, g * r.b),))(c(w, B))
    )(W),
    "result of custom_vjp": lambda c: ft.grad(
        lambda w: loss(vjp_of(c, lambda w: c(w, B), lambda r, g: (g.w + r.w,))(w))
    )(W),
    "custom_vmap": batched,
    "custom_root": lambda c: ft.custom_root(
        lambda p: c(p.w - 1.0, p.b - 2.0), c(W, B), lambda f, p: c(W / W, B - 1.0), lambda g, y: y
    ),
    "custom_linear_solve": lambda c: ft.custom_linear_solve(
        lambda p: p, c(W, B), lambda _, y: y, symmetric=True
    ),
    "closure_convert": lambda c: ft.closure_convert(step, c(W, B))[0](c(W, B)),
    "stop_gradient": lambda c: ft.stop_gradient(c(W, B)),
    "eval_shape": lambda c: ft.eval_shape(step, c(W, B)),
    "make_graph": lambda c: ft.make_graph(step)(c(W, B))(W, B),
    "pure_callback": lambda c: ft.pure_callback(lambda p: p, c(W, B), c(W, B)),
    "hook": lambda c: ft.grad(
        lambda w: loss(ft.hook(c(w, B), backward=lambda g: c(g.w * 2.0, g.b)))
    )(W),
    "detect_anomaly": lambda c: ft.detect_anomaly(step)(c(W, B)),
    "saved_hooks": lambda c: ft.grad(
        ft.saved_hooks(lambda x: x, lambda x: x)(lambda w: loss(c(w, B)))
    )(W),
    "once_differentiable": lambda c: ft.once_differentiable(step)(c(W, B)),
    "leaf": lambda c: ft.jit(ft.graph.leaf(step))(c(W, B)),
    "check_grads": lambda c: ft.check_grads(loss, (c(W, B),)),
    "adam": lambda c: trained(optim.adam(0.1), c),
    "sgd": lambda c: trained(optim.sgd(0.1, momentum=0.9), c),
    "clipped": lambda c: trained(optim.chain(optim.clip_by_global_norm(1.0), optim.sgd(0.1)), c),
    "global_norm": lambda c: optim.global_norm(c(W, B)),
    "export": lambda c: export.export(step, (c(W, B),))(c(W, B)),
    "results of export": lambda c: export.export(lambda w: c(w, w), (W,))(W),
    "save": lambda c: written(c(W, B)),
    "partition": lambda c: nn.partition(c(W, B)),
    "tree.leaves": lambda c: tree.leaves([c(W, B)]),
    "tree.flatten": lambda c: tree.flatten([c(W, B)])[0],
    "tree.structure": lambda c: tree.structure(c(W, B)).num_leaves,
    "tree.map": lambda c: tree.map(lambda x, y: x * y, c(W, B), c(B, W)),
    "tree.flatten_with_path": lambda c: tree.flatten_with_path([c(W, B)]),
    "tree.map_with_path": lambda c: tree.map_with_path(lambda p, x: x * len(p), c(W, B)),
    "tree.one_level": lambda c: [x for _, x in (tree.one_level(c(W, B)) or ([], None))[0]],
    "tree.reduce": lambda c: tree.reduce(lambda n, _: n + 1, c(W, B), 0),
    "tree.broadcast_prefix": lambda c: tree.broadcast_prefix("axes", 0, c(W, B)),
}  # fmt: skip


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("place", PLACES)
def test_it_is_as_if_the_class_were_registered(place: str, kind: str) -> None:
    """Equal trees of arrays, of the class itself, whichever place meets the class first."""
    new, told = CLASSES[kind](), tree.register(CLASSES[kind]())
    found, expected = PLACES[place](new), PLACES[place](told)
    shown = str(tree.structure(expected)).replace(str(told), str(new))
    assert str(tree.structure(found)) == shown
    for a, e in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        assert type(a) is type(e)
        if isinstance(a, ft.Array):
            laws.same(a, e)
        else:
            assert a == e


class Alien:
    """An object that is no array, nor a value that jit could take for one."""

    __hash__ = None  # type: ignore[assignment]


USERS = ("result of custom_vjp", "tree.map", "tree.map_with_path")  # fail in lines of their own


@pytest.mark.parametrize("alien", ["text", Alien()], ids=["text", "object"])
@pytest.mark.parametrize("place", [p for p in PLACES if p not in USERS])
def test_a_leaf_that_is_no_array_is_told_by_its_path(place: str, alien: Any) -> None:
    """Whoever asks for arrays says which leaf is none; the user's own ops on it say so."""
    new, told = CLASSES["frozen"](), None
    try:
        PLACES[place](lambda w, _: new(w, alien))
    except FunctError as error:
        told = error
    if isinstance(told, UnsupportedOperandError):
        assert "multiply: x2 must be" in told.what
    elif told is not None:
        assert re.search(r"(leaf|at|in) ([\w.]+\.)?b\b", told.what), told


def test_fields_are_leaves_and_static_ones_structure() -> None:
    """Records in records, in a subclass too; what is static stays as it is."""

    @dataclasses.dataclass(frozen=True)
    class Inner:
        w: Any
        power: int = dataclasses.field(default=2, metadata={"static": True})

    @attrs.frozen
    class Outer:
        inner: Any
        names: Any = tree.static_field(default=("a", "b"))  # noqa: RUF009

    @attrs.frozen
    class Wider(Outer):
        b: Any = 1.0

    p = Wider({"x": [Inner(W, 3)]}, ("c",), B)
    g = ft.jit(ft.grad(lambda p: p.b * xp.sum(p.inner["x"][0].w ** p.inner["x"][0].power)))(p)
    assert (type(g), g.names, g.inner["x"][0].power) == (Wider, ("c",), 3)
    laws.close(tree.leaves(g), [9.0 * W**2, xp.asarray(9.0)])


def test_records_without_arrays_are_values() -> None:
    """They reach compiled functions as they are, and trees take them for leaves."""

    @dataclasses.dataclass(frozen=True)
    class Config:
        layers: int
        names: frozenset[str] = frozenset({"a"})

    config, seen = Config(3), []

    @ft.jit
    def f(x: Any, c: Any) -> Any:
        seen.append(c)
        return x * c.layers

    assert f(W, config).tolist() == [3.0, 6.0]
    assert f(W, Config(3)).tolist() == [3.0, 6.0]
    assert [c is config for c in seen] == [True]
    assert tree.leaves({"c": config}) == [config]
    assert tree.map(lambda c: c.layers, [config]) == [3]
    assert ft.vmap(lambda x, c: x * c.layers, in_axes=(0, None))(W, config).tolist() == [3.0, 6.0]
    assert ft.jit(lambda x: (x, config))(W)[1] is config


def test_classes_of_this_package_say_themselves_what_they_are() -> None:
    """Types, zeros and programs are leaves."""
    types = ft.eval_shape(lambda p: {"a": p}, W)
    assert tree.map(lambda t: t.shape, types) == {"a": (2,)}
    zero = ft.grad(lambda n, x: n * x, allow_int=True)(2, 3.0)
    assert tree.leaves(zero) == [zero]
    program = export.export(step, (dataclasses.make_dataclass("Part", FIELDS)(W, B),))
    assert tree.leaves(program) == [program]


def test_what_a_tree_would_lose_is_no_tree() -> None:
    """Attributes that are no fields, objects that hold themselves: errors say what to do."""

    @dataclasses.dataclass
    class Keeping:
        w: Any

        def __post_init__(self) -> None:
            self.more = self.w * 2.0

    @dataclasses.dataclass
    class Linked:
        w: Any
        next: Any = None

    linked = Linked(W)
    linked.next = [linked]
    for given in (Keeping(W), linked):
        for f in (ft.grad(loss), ft.jit(loss), ft.vmap(loss)):
            with pytest.raises(FunctError) as caught:
                f(given)
            assert caught.value.fix == f"funct.tree.register({type(given).__name__})"
        assert tree.leaves(given) == [given]


def test_what_is_computed_once_may_be_computed_again() -> None:
    """A cached property is no part of its object."""

    @dataclasses.dataclass
    class Part:
        w: Any

        @functools.cached_property
        def norm(self) -> Any:
            return xp.sum(self.w * self.w)

    p = Part(W)
    assert float(p.norm) == 5.0
    assert ft.grad(lambda p: p.norm)(p).w.tolist() == [2.0, 4.0]


def test_a_class_may_be_registered_later() -> None:
    """As it is, once; or with functions, which then hold."""
    for kind in CLASSES.values():
        cls = kind()
        ft.grad(loss)(cls(W, B))
        assert tree.register(cls) is cls
        with pytest.raises(TreeError, match="Part is a pytree already"):
            tree.register(cls)
    cls = CLASSES["dataclass"]()
    f = ft.jit(lambda p: p)
    assert f(cls(W, B)).w.tolist() == [1.0, 2.0]
    tree.register(cls, lambda p: ((p.b,), p.w, ("b",)), lambda w, values: cls(w, *values))
    assert tree.leaves(cls("static", B)) == [B]
    assert f(cls("static", B)).w == "static"


def test_threads_may_meet_a_class_at_once() -> None:
    """One registers it, and nobody notices."""
    for _ in range(20):
        cls = CLASSES["frozen"]()
        found = together(4, lambda k, cls=cls: ft.grad(loss)(cls(W, B)).w.tolist())
        assert found == [[6.0, 12.0]] * 4


MODULE = """
import attrs
@attrs.frozen
class Part:
    w: object
    b: object
"""


def test_structures_are_read_where_nobody_met_the_class(tmp_path: Path) -> None:
    """Pullbacks, derivatives, programs and structures go to another process with their classes."""
    (tmp_path / "parts_of_a_test.py").write_text(MODULE)
    write = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import pickle, funct as ft, funct.array as xp
from funct import export
from parts_of_a_test import Part
p = Part(xp.asarray([1.0, 2.0]), xp.asarray(3.0))
f = lambda p: Part(p.w * p.b, p.b)
made = [ft.vjp(f, p)[1], ft.linearize(f, p)[1], export.export(f, (p,)), ft.tree.structure([p, p])]
sys.stdout.buffer.write(pickle.dumps((p.w, made)))
"""
    read = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import pickle, funct as ft
w, (pull, push, program, structure) = pickle.load(sys.stdin.buffer)
from parts_of_a_test import Part
p = Part(w, w[0])
print(pull(p)[0].b.tolist(), push(p).w.tolist(), program(p).w.tolist(), structure.num_leaves)
"""
    run = [sys.executable, "-c"]
    kept = subprocess.run([*run, write], check=True, capture_output=True).stdout
    said = subprocess.run([*run, read], check=True, capture_output=True, input=kept).stdout
    assert said.decode().split() == ["6.0", "[4.0,", "8.0]", "[1.0,", "2.0]", "4"]


def test_plain_structures_pickle_as_optree_pickles_them() -> None:
    """Nothing of ours is in them."""
    spec = tree.structure({"a": [1, 2]})
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert b"records" not in pickle.dumps(spec)
    assert not records.opened([1, W, "x", None, len])


@pytest.mark.parametrize("kind", CLASSES)
def test_a_record_is_no_scalar(kind: str) -> None:
    """The error of grad says what came."""
    cls = CLASSES[kind]()
    for f in (ft.grad(lambda w: cls(w, w)), ft.value_and_grad(lambda w: cls(w, w))):
        with pytest.raises(TransformError, match="the function must return a scalar, got a Part"):
            f(W)
