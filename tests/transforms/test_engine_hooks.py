"""Hooks on cotangents and on saved values; pullbacks that are looked into, kept and used up."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    TransformError,
    TreeError,
    UndefinedDerivativeError,
)
from tests import laws
from tests.transforms.test_grad import arr


def wave(x: Any) -> Any:
    """A smooth function with products, reductions and a matrix product."""
    return xp.sum(xp.sin(x) * x + xp.exp(xp.tanh(x)) * (x @ x))


X = arr([0.3, -0.2, 0.5])
NESTINGS: dict[str, Callable[[Any], Any]] = {
    "grad": ft.grad,
    "jit-grad": lambda f: ft.jit(ft.grad(f)),
    "grad-jit": lambda f: ft.grad(ft.jit(f)),
    "hessian": ft.hessian,
    "jacrev-jacrev": lambda f: ft.jacrev(ft.jacrev(f)),
    "grad-of-norm-of-grad": lambda f: ft.grad(lambda x: xp.sum(ft.grad(f)(x) ** 2)),
    "vmap-grad": lambda f: lambda x: ft.vmap(ft.grad(f))(xp.stack([x, 2.0 * x])),
    "grad-vmap": lambda f: lambda x: ft.grad(lambda m: xp.sum(ft.vmap(f)(m)))(xp.stack([x, x])),
    "linearize": lambda f: lambda x: ft.linearize(ft.grad(f), x)[1](x),
    "third": lambda f: ft.grad(lambda x: xp.sum(ft.hessian(f)(x))),
}
each = pytest.mark.parametrize("name", NESTINGS)


@each
def test_a_hook_that_keeps_changes_nothing(name: str) -> None:
    """A hook that returns None leaves every derivative, of any order and nesting, as it is."""
    calls: list[Any] = []

    def hooked(x: Any) -> Any:
        return wave(ft.hook(x, backward=calls.append))

    laws.close(NESTINGS[name](hooked)(X), NESTINGS[name](wave)(X))
    assert calls


@each
def test_a_hook_that_scales_scales_once_per_order(name: str) -> None:
    """Doubling the cotangent of the result doubles what is linear in the gradient."""

    def hooked(x: Any) -> Any:
        return ft.hook(wave(x), backward=lambda g: 2.0 * g)

    expected = NESTINGS[name](lambda x: wave(x) * 2.0)(X)
    if name in ("hessian", "linearize", "third"):  # forward mode passes a hook by
        expected = NESTINGS[name](lambda x: ft.hook(wave(x) + wave(x), backward=lambda g: g))(X)
    laws.close(NESTINGS[name](hooked)(X), expected)


def test_a_hook_sees_the_whole_cotangent_once() -> None:
    """A value that is used three times has one cotangent, and the hook sees that."""
    seen: list[float] = []

    def f(x: Any) -> Any:
        y = ft.hook(x * 2.0, backward=lambda g: seen.append(float(g)))
        return y * y + 3.0 * y

    assert float(ft.grad(f)(arr(1.0))) == 14.0
    assert seen == [7.0]


def test_a_hook_of_a_tree_sees_all_cotangents_together() -> None:
    """Leaves that nothing used have zeros, integers a Zero; the replacement is a tree as well."""
    seen: list[Any] = []

    def back(ct: Any) -> Any:
        seen.append(ct)
        return {**ct, "a": ct["a"] * 10.0}

    def f(p: Any) -> Any:
        q = ft.hook({**p, "n": xp.asarray(3)}, backward=back)
        return xp.sum(q["a"] * q["n"])

    g = ft.grad(f)({"a": X, "b": arr(1.0)})
    laws.close(g, {"a": arr([30.0, 30.0, 30.0]), "b": arr(0.0)})
    assert seen[0]["n"] == ft.Zero((), np.dtype(np.int64))
    laws.close(seen[0]["b"], arr(0.0))


def test_a_hook_outside_of_derivatives_is_the_value() -> None:
    """Without a tape nothing happens, in every other transform too."""

    def never(g: Any) -> Any:
        raise AssertionError("no cotangent passes")

    laws.same(ft.hook(X, backward=never), X)
    laws.same(ft.vmap(lambda v: ft.hook(v, backward=never))(X), X)
    laws.same(ft.jit(lambda v: ft.hook(v, backward=never))(X), X)
    laws.same(ft.jvp(lambda v: ft.hook(v, backward=never), (X,), (X,)), (X, X))


def test_a_hook_must_give_what_it_got() -> None:
    """Another structure or shape is refused by name."""
    with pytest.raises(TreeError, match="hook: what backward returns"):
        ft.grad(lambda x: ft.hook(x, backward=lambda g: (g, g)))(arr(1.0))
    with pytest.raises(ShapeError, match="hook: cotangent 0 must have its operand's shape"):
        ft.grad(lambda x: xp.sum(ft.hook(x, backward=lambda g: g[:1])))(X)


def test_hooks_of_a_node() -> None:
    """pre comes before the pull, post after it; both may replace what they see."""
    order: list[Any] = []

    def pre(ct: Any) -> Any:
        order.append(("pre", float(ct)))
        return ct * 2.0

    def post(cts: Any, ct: Any) -> Any:
        order.append(("post", float(cts[0]), float(cts[1]), float(ct)))
        return cts[0] + 100.0, cts[1]

    f = ft.node_hook(lambda x, y: x * y, pre=pre, post=post)
    g = ft.grad(lambda x, y: 3.0 * f(x, y), (0, 1))(arr(5.0), arr(7.0))
    assert order == [("pre", 3.0), ("post", 42.0, 30.0, 6.0)]
    laws.close(g, (arr(142.0), arr(30.0)))
    alone = ft.node_hook(xp.sin, post=lambda cts: cts[0] * 3.0)
    assert float(ft.grad(alone)(arr(0.0))) == 3.0
    for name, nest in NESTINGS.items():
        laws.close(nest(ft.node_hook(wave, post=lambda c, g: None))(X), nest(wave)(X)), name


class Box:
    """A packed array that can be counted."""

    def __init__(self, x: Any) -> None:
        self.x = np.array(x)


@each
@pytest.mark.parametrize("outside", [False, True])
def test_saved_values_may_be_put_away(name: str, outside: bool) -> None:
    """Packing changes no derivative, wherever the decorator stands; pack sees arrays or graphs."""
    kinds: set[str] = set()
    boxes: list[Any] = []

    def pack(x: Any) -> Any:
        kinds.add(type(x).__name__)
        boxes.append(x)
        return len(boxes) - 1

    saved = ft.saved_hooks(pack, boxes.__getitem__)
    expected = NESTINGS[name](wave)(X)
    nest = NESTINGS[name]
    got = saved(nest(wave))(X) if outside else nest(saved(wave))(X)
    laws.close(got, expected)
    assert kinds <= {"Array", "GraphTracer"}
    inside = name in ("jit-grad", "grad-jit") and not outside
    assert ("GraphTracer" if inside or name == "linearize" else "Array") in kinds


@pytest.mark.parametrize("name", ["grad", "jit-grad", "grad-jit", "vmap-grad"])
@pytest.mark.parametrize("where", ["inside", "around", "outside", "twice"])
def test_what_unpack_gives_is_what_pulls_see(name: str, where: str) -> None:
    """Also in compiled code: the sine's pull sees twice its operand; hooks add up."""
    saved = ft.saved_hooks(lambda x: x, lambda x: 2.0 * x)
    sine = lambda x: xp.sum(xp.sin(x))  # noqa: E731
    nest = NESTINGS[name]
    g = {
        "inside": nest(saved(sine)),
        "around": nest(ft.jit(saved(ft.jit(sine)))),
        "outside": saved(nest(sine)),
        "twice": nest(ft.saved_hooks(lambda x: x, lambda x: 9.0 * x)(saved(sine))),
    }[where]
    factor = 18.0 if where == "twice" else 2.0
    laws.close(g(X), xp.cos(factor * (xp.stack([X, 2.0 * X]) if name == "vmap-grad" else X)))


@each
def test_offload_changes_nothing(name: str) -> None:
    """Values that wait elsewhere come back the same."""
    laws.close(NESTINGS[name](ft.offload("cpu")(wave))(X), NESTINGS[name](wave)(X))


_SAVED = ft.saved_hooks(lambda x: x, lambda x: x)
_ORDERS: dict[str, Any] = {
    "hessian": ft.hessian,
    "jit of it": lambda f: ft.jit(ft.hessian(f)),
    "grad of grad": lambda f: ft.grad(lambda x: xp.sum(xp.sin(ft.grad(f)(x)))),
    "vmap of it": lambda f: lambda x: ft.vmap(ft.hessian(f))(xp.stack([x, 2.0 * x])),
    "linearize": lambda f: lambda x: ft.linearize(ft.grad(f), x)[1](x),
}
_NESTED: dict[str, Any] = {
    "twice": lambda f: _SAVED(_SAVED(f)),
    "thrice": lambda f: _SAVED(_SAVED(_SAVED(f))),
    "around a checkpoint": lambda f: _SAVED(ft.checkpoint(_SAVED(f))),
    "in a checkpoint": lambda f: ft.checkpoint(_SAVED(_SAVED(f))),
    "offloaded": lambda f: ft.offload("cpu")(_SAVED(f)),
    "around a scan": lambda f: _SAVED(
        lambda x: ft.scan(lambda c, a: (c, _SAVED(f)(a)), x, x[None])[1][0]
    ),
}


@pytest.mark.parametrize("order", _ORDERS)
@pytest.mark.parametrize("way", _NESTED)
def test_hooks_in_hooks_keep_each_value_apart(way: str, order: str) -> None:
    """What outer ones give back to inner ones lives for a moment, and others take its place."""
    w = arr(np.random.default_rng(0).normal(size=(3, 3)))

    def fun(x: Any) -> Any:
        return xp.tanh(x @ w) * x + xp.sin(x) * x * x

    x = arr([0.3, -0.7, 1.1])
    found = _ORDERS[order](lambda x: xp.sum(_NESTED[way](fun)(x) ** 2))(x)
    laws.close(found, _ORDERS[order](lambda x: xp.sum(fun(x) ** 2))(x), 1e-9, 1e-9)


def test_saved_hooks_see_what_a_rule_keeps() -> None:
    """sin keeps its operand, exp its result; a custom rule its residuals; each value once."""
    kept: list[Any] = []
    saved = ft.saved_hooks(lambda x: (kept.append(np.asarray(x)), x)[1], lambda x: x)
    ft.grad(saved(lambda x: xp.sum(xp.exp(xp.sin(x)))))(X)
    assert [k.tolist() for k in kept] == [X.tolist(), np.exp(np.sin(np.asarray(X))).tolist()]
    kept.clear()
    f = ft.custom_vjp(xp.sin)
    f.defvjp(lambda x: (xp.sin(x), x * 7.0), lambda r, g: (g * r,))
    laws.close(ft.grad(saved(lambda x: xp.sum(f(x))))(X), X * 7.0)
    assert any(np.array_equal(k, np.asarray(X) * 7.0) for k in kept)


def test_saved_hooks_see_what_the_half_of_a_compiled_function_keeps() -> None:
    """The tape of `grad(jit(f))` holds the residuals alone: fewer than the ops would keep."""
    kept: list[Any] = []
    saved = ft.saved_hooks(lambda x: (kept.append(np.asarray(x)), x)[1], lambda x: x)
    f = lambda x: xp.sum(xp.sin(x) * xp.exp(x))  # noqa: E731
    laws.close(saved(ft.grad(ft.jit(f)))(X), ft.grad(f)(X))
    assert [k.tolist() for k in kept] == [X.tolist()]  # the rest is cheap to compute again
    kept.clear()
    saved(ft.grad(f))(X)
    assert len(kept) == 4


def test_unpack_must_give_the_array_back() -> None:
    """Another shape or dtype is refused."""
    bad = ft.saved_hooks(lambda x: x, lambda x: xp.stack([x, x]))
    with pytest.raises(ShapeError, match="unpack must give back the array that was packed"):
        ft.grad(bad(wave))(X)
    with pytest.raises(ArgumentError, match="offload: there is no device"):
        ft.offload("moon")


def boxed(f: Any) -> tuple[Any, list[Any]]:
    """f with saved values in boxes, and weak references to those."""
    refs: list[Any] = []

    def pack(x: Any) -> Any:
        box = Box(x)
        refs.append(weakref.ref(box))
        return box

    return ft.saved_hooks(pack, lambda box: xp.asarray(box.x))(f), refs


def test_saved_values_are_freed_while_backward_runs() -> None:
    """With `grad` and `once` each node's values are gone before the next pull runs; no cycles."""
    gc.disable()
    try:
        alive: list[int] = []

        def chain(x: Any) -> Any:
            for _ in range(5):
                x = ft.hook(xp.sin(x), backward=lambda g: alive.append(count()))
            return x

        saved, refs = boxed(chain)

        def count() -> int:
            return sum(r() is not None for r in refs)

        ft.grad(saved)(arr(0.3))
        assert alive == [5, 4, 3, 2, 1]
        assert count() == 0
        refs.clear()
        alive.clear()
        _, pull = ft.vjp(saved, arr(0.3))
        first = pull(arr(1.0))
        assert alive == [5] * 5
        laws.same(pull(arr(1.0)), first)
        laws.same(pull.once(arr(1.0)), first)
        assert count() == 0
        with pytest.raises(TransformError, match=r"used up by once\(\)"):
            pull(arr(1.0))
        refs.clear()
        del pull
        _, pull = ft.vjp(saved, arr(0.3))
        assert count() == 5
        del pull
        assert count() == 0
    finally:
        gc.enable()


def test_only_pulls_that_are_needed_run() -> None:
    """Branches that end in no requested input are not on the tape, and their pulls never run."""
    ran: list[str] = []

    def tag(x: Any, name: str) -> Any:
        return ft.hook(x, backward=lambda g: ran.append(name))

    def f(x: Any, y: Any) -> Any:
        a = tag(xp.sin(x), "x")
        b = tag(xp.cos(y), "y")
        dead = tag(x * 3.0, "dead")
        xp.exp(dead)
        return a * b + tag(ft.stop_gradient(x), "stopped") + tag(x > 0, "bool")

    ft.grad(f)(arr(1.0), arr(2.0))
    assert ran == ["x"]
    ran.clear()
    ft.grad(f, 1)(arr(1.0), arr(2.0))
    assert ran == ["y"]
    ran.clear()
    ft.grad(f, (0, 1))(arr(1.0), arr(2.0))
    assert sorted(ran) == ["x", "y"]


def test_the_tape_can_be_read() -> None:
    """Nodes have a name, a number, parents and saved values, in the order of backward."""
    _, pull = ft.vjp(lambda x, n: {"a": xp.exp(xp.sin(x)) * 2.0, "b": n}, X, xp.asarray(2))
    nodes = list(pull.nodes())
    assert [n.name for n in nodes] == ["multiply", "exp", "sin", "input"]
    assert [n.sequence for n in nodes] == sorted([n.sequence for n in nodes], reverse=True)
    assert nodes[0].next == (nodes[1],)
    laws.same(nodes[2].saved[0], X)
    laws.same(nodes[1].saved[0], xp.exp(xp.sin(X)))
    assert nodes[3].next == nodes[3].saved == ()
    assert pull.roots == (nodes[0], None)
    assert (nodes[0].shape, nodes[0].dtype) == ((3,), np.dtype(np.float64))
    assert "exp float64(3,)" in repr(nodes[1])
    assert nodes[0].where is None
    call = ft.custom_vjp(xp.sin)
    call.defvjp(lambda x: (xp.sin(x), x), lambda r, g: (g * r,))
    _, pull = ft.vjp(call, X)
    assert "sin" in [n.name for n in pull.nodes()]


def test_cotangents_are_checked_leaf_by_leaf() -> None:
    """Structure, shape and dtype of a cotangent; the message names the leaf."""
    _, pull = ft.vjp(lambda x: {"p": x, "q": [x * 2.0]}, X)
    good = {"p": X, "q": [X]}
    pull(good)
    with pytest.raises(TreeError, match="vjp: cotangent: expected the structure"):
        pull({"p": X, "q": X})
    with pytest.raises(ShapeError, match=r"output's shape \(3,\), got \(2,\) at q.0"):
        pull({"p": X, "q": [arr([1.0, 2.0])]})
    with pytest.raises(DTypeError, match=r"output's dtype float64, got complex128 at p"):
        pull({"p": X * 1j, "q": [X]})


def test_once_differentiable() -> None:
    """The first derivative is there, the second raises by name, in both modes; never a zero."""
    f = ft.custom_vjp(xp.sin)

    def bwd(r: Any, g: Any) -> Any:
        return (xp.cos(r) * g,)

    f.defvjp(lambda x: (xp.sin(x), x), ft.once_differentiable(bwd))
    laws.close(ft.grad(f)(arr(0.3)), xp.cos(arr(0.3)))
    laws.close(ft.vmap(ft.grad(f))(X), xp.cos(X))
    laws.close(ft.jit(ft.grad(f))(arr(0.3)), xp.cos(arr(0.3)))
    first = ft.grad(f)
    for second, at in (
        (ft.grad(first), arr(0.3)),
        (ft.jacfwd(first), arr(0.3)),
        (ft.jit(ft.grad(first)), arr(0.3)),
        (ft.grad(ft.jit(first)), arr(0.3)),
        (ft.vmap(ft.grad(first)), X),
    ):
        with pytest.raises(UndefinedDerivativeError, match="bwd: differentiable once"):
            second(at)


@pytest.mark.parametrize("name", ["grad", "grad-jit", "jit-grad"])
@pytest.mark.parametrize("ask", [float, bool, int, np.asarray, lambda g: g > 0])
def test_what_asks_for_a_cotangent_is_told_one_that_came(name: str, ask: Any) -> None:
    """Python that looks at a cotangent, in a hook or in a rule, never sees an invented number."""

    def look(g: Any) -> None:
        if not ask(g):
            raise AssertionError("no cotangent is 0 here")

    def back(kept: Any, g: Any) -> Any:
        look(g)
        return (2 * g,)

    double = ft.custom_vjp(lambda x: 2 * x)
    double.defvjp(lambda x: (2 * x, x), back)
    for fun in (lambda x: 3 * ft.hook(2 * x, backward=look), lambda x: 3 * double(x)):
        assert float(NESTINGS[name](fun)(arr(1.5))) == 6
