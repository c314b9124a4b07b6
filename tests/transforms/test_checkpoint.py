"""checkpoint: the same numbers, fewer saved values."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, UnsupportedOperandError
from funct.graph import Control, Graph, Node
from funct.transforms.control import halving
from tests import laws
from tests.transforms.test_control_flow import W, X, controls

P = ft.checkpoint_policies

POLICIES: dict[str, Any] = {
    "none": None,
    "everything": P.everything_saveable,
    "dots": P.dots_saveable,
    "names": P.save_only_these_names("pre"),
    "ops": P.save_only_these_ops("sin"),
}


def layer(h: Any, w: Any) -> Any:
    """A few ops, one of them named."""
    return xp.tanh(ft.checkpoint_name(w @ h, "pre")) * xp.sin(h) + xp.exp(h * 0.1)


def network(policy: Any, wrapped: bool = True) -> Callable[[Any], Any]:
    """Three layers that close over x."""

    def f(x: Any) -> Any:
        h = x
        for _ in range(3):
            step = lambda h: layer(h, W * xp.sum(x))  # noqa: E731
            h = (ft.checkpoint(step, policy=policy) if wrapped else step)(h)
        return xp.sum(h * x)

    return f


@pytest.mark.parametrize("policy", POLICIES)
def test_values_and_derivatives(policy: str) -> None:
    """Whatever is kept: every mode, order and nesting is that of the plain function."""
    f, plain = network(POLICIES[policy]), network(None, wrapped=False)
    lanes = xp.stack([X, X * 2.0])
    laws.same(f(X), plain(X))
    first, second = ft.grad(plain)(X), ft.hessian(plain)(X)
    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        laws.close(g(X), first)
        laws.close(g(X), first)
    for h in (ft.hessian(f), ft.jit(ft.jacrev(ft.jacrev(f))), ft.hessian(ft.jit(f))):
        laws.close(h(X), second)
    laws.close(ft.jvp(f, (X,), (X,)), ft.jvp(plain, (X,), (X,)))
    laws.close(ft.linearize(f, X)[1](X), ft.linearize(plain, X)[1](X))
    for g in (ft.vmap(ft.grad(f)), ft.jit(ft.vmap(ft.grad(f))), ft.vmap(ft.jit(ft.grad(f)))):
        laws.close(g(lanes)[0], first)


def kept(f: Any, *args: Any) -> int:
    """How many elements a gradient of f keeps from forward to backward."""
    sizes: list[int] = []

    def pack(x: Any) -> Any:
        sizes.append(int(np.prod(x.shape)))
        return x

    ft.grad(ft.saved_hooks(pack, lambda x: x)(f))(*args)
    return sum(sizes)


def test_a_policy_decides_what_is_kept() -> None:
    """Nothing but the argument; one product more; everything."""
    x = xp.asarray(np.linspace(0.0, 1.0, 100))
    deep = lambda x: xp.sum(xp.sin(xp.exp(xp.sin(ft.checkpoint_name(xp.exp(x), "a")))))  # noqa: E731
    counts = {
        n: kept(ft.checkpoint(deep, policy=p), x)
        for n, p in {**POLICIES, "a": P.save_only_these_names("a")}.items()
    }
    assert counts["none"] == 100
    assert counts["a"] == counts["none"] + 100
    assert counts["everything"] >= 400
    others = P.save_any_names_but_these("b")
    assert kept(ft.checkpoint(deep, policy=others), x) == counts["a"]
    both = P.save_from_both_policies(others, P.save_only_these_ops("sin"))
    assert counts["a"] < kept(ft.checkpoint(deep, policy=both), x) <= counts["everything"]


def test_offloaded_values_wait_in_copies() -> None:
    """A policy may put values into the host's memory: they are copies there, and none under jit."""
    x = xp.asarray(np.linspace(0.0, 1.0, 8))

    def deep(x: Any) -> Any:
        b = ft.checkpoint_name(xp.cos(x), "b")
        return xp.sum(xp.sin(ft.checkpoint_name(xp.exp(b), "a")))

    policy = P.save_and_offload_only_these_names(
        names_which_can_be_saved=["b"], names_which_can_be_offloaded=["a"]
    )
    f = ft.checkpoint(deep, policy=policy)
    expected = ft.grad(deep)(x)
    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)), ft.offload()(ft.grad(f))):
        laws.close(g(x), expected)
    laws.close(ft.vmap(ft.grad(f))(xp.stack([x, x * 2.0]))[0], expected)
    hess = ft.jacfwd(ft.grad(deep))(x)
    laws.close(ft.jacfwd(ft.grad(f))(x), hess)
    laws.close(ft.jacrev(ft.grad(f))(x), hess)
    _, pull = ft.vjp(f, x)
    saved = [v for n in pull.nodes() for v in n.saved]
    assert len(saved) == 3  # the argument and the two names
    dots = ft.checkpoint(lambda a: xp.sum(xp.sin(a @ a)), policy=P.offload_dot_with_no_batch_dims())
    a = xp.reshape(xp.arange(4.0), (2, 2)) * 0.1
    laws.close(ft.grad(dots)(a), ft.grad(lambda a: xp.sum(xp.sin(a @ a)))(a))
    both = P.save_from_both_policies(P.dots_saveable, P.offload_dot_with_no_batch_dims())
    laws.close(ft.grad(ft.checkpoint(dots, policy=both))(a), ft.grad(dots)(a))
    with pytest.raises(ArgumentError, match="not both"):
        P.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"]
        )
    with pytest.raises(ArgumentError, match="offload_dst"):
        P.offload_dot_with_no_batch_dims(offload_dst="disk")


def stacked(graph: Graph) -> int:
    """Elements that the first loop of a graph hands to later ones, step by step."""
    loops = [e for e in controls(graph) if e.name == "scan"]
    later = {a for e in loops[1:] for a in e.operands}
    return sum(int(np.prod(v.shape)) for v in loops[0].results if v in later)


def test_loops_keep_carries_alone() -> None:
    """A checkpointed body keeps √n carries of n steps, and fewer if its block is one again."""
    n, d, side = 64, 5, 8
    w = xp.asarray(np.linspace(-0.5, 0.5, d * d).reshape(d, d))

    def step(c: Any, _: Any) -> Any:
        return xp.sin(w @ xp.exp(w @ xp.tanh(c) * 0.3)) * c, None

    def plain(f: Any) -> Any:
        return lambda x: xp.sum(ft.scan(f, x, length=n)[0])

    def block(c: Any, _: Any) -> Any:
        return ft.scan(ft.checkpoint(step), c, length=side)

    x = xp.asarray(np.linspace(-1.0, 1.0, d))
    programs = [plain(step), plain(ft.checkpoint(step))]
    programs.append(lambda x: xp.sum(ft.scan(ft.checkpoint(block), x, length=side)[0]))
    counts = [stacked(ft.make_graph(ft.grad(f))(x)) for f in programs]
    assert counts[0] > n * d
    assert counts[1:] == [side * d, side // 2 * d]
    expected = ft.grad(programs[0])(x)
    for f in programs[1:]:
        laws.close(ft.grad(f)(x), expected)
        laws.close(ft.jit(ft.grad(f))(x), expected)


def test_the_second_computation_is_not_shared_with_the_first() -> None:
    """Under jit the pull is a node of its own, which computes the forward pass again."""
    graph = ft.make_graph(ft.grad(ft.checkpoint(lambda x: xp.sum(xp.sin(xp.exp(x))))))(X)
    names = [_ops(b) for e in controls(graph) for _, b in e.primitive.bodies]  # type: ignore[attr-defined]
    assert "exp" in names[-1]


def _ops(graph: Graph) -> list[str]:
    return [e.name for e in graph.nodes if isinstance(e, Node) and not _is_control(e)]


def _is_control(node: Node) -> bool:
    return isinstance(node.primitive, Control)


def test_python_decisions_and_static_arguments() -> None:
    """`if` on values, keyword arguments and leaves that are no arrays work as without."""

    @ft.checkpoint
    def f(x: Any, how: str, *, scale: int) -> Any:
        y = xp.sin(x) if how == "sin" else x
        return {"y": y * scale if xp.sum(x) > 0 else -y}

    g = ft.grad(lambda x: xp.sum(f(x, "sin", scale=2)["y"]))
    laws.close(g(X), 2.0 * xp.cos(X))
    laws.close(g(-X), -xp.cos(X))
    h = ft.jit(g)
    laws.close(h(X), 2.0 * xp.cos(X))
    laws.close(h(-X), -xp.cos(X))
    assert f(X, "id", scale=3)["y"].tolist() == (X * 3).tolist()


def test_nothing_is_captured_where_nobody_looks() -> None:
    """Without a derivative the function is called, once."""
    calls: list[int] = []
    f = ft.checkpoint(lambda x: (calls.append(1), x * 2.0)[1])
    assert f(X).tolist() == (X * 2.0).tolist()
    assert len(calls) == 1


def test_errors() -> None:
    """A policy is a function."""
    with pytest.raises(ArgumentError, match="policy must be a function"):
        ft.checkpoint(xp.sin, policy="dots")  # type: ignore[arg-type]


@pytest.mark.parametrize("way", [lambda f: f, ft.jit, ft.checkpoint])
def test_names_are_strings(way: Any) -> None:
    """What is no string no policy could ask for."""
    with pytest.raises(UnsupportedOperandError, match=r"checkpoint_name: name .*string, got 3"):
        way(lambda x: ft.checkpoint_name(x, 3))(X)


def test_eager_code_is_run_again_not_captured() -> None:
    """Once forward and once back, on values: Python may decide on them, and see their types."""
    rule: Any = ft.custom_jvp(xp.sin)
    rule.defjvp(lambda p, t: (rule(*p), t[0]))
    ft.jit(rule)(X)  # what others have captured does not matter
    runs: list[str] = []

    def block(x: Any, k: Any, *, scale: Any) -> Any:
        runs.append(type(x).__name__)
        y = xp.sin(x) * scale["by"] if xp.sum(x) > 0.0 else x
        return {"y": y, "k": k + 1}

    f = lambda x, s: xp.sum(ft.checkpoint(block)(x, xp.asarray(3), scale={"by": s})["y"])  # noqa: E731
    plain = lambda x, s: xp.sum(xp.sin(x) * s)  # noqa: E731
    s = xp.asarray(2.0)
    laws.close(ft.grad(f, (0, 1))(X, s), ft.grad(plain, (0, 1))(X, s))
    assert runs == ["Array", "ReverseTracer"]
    laws.close(ft.grad(f)(-X, s), xp.ones_like(X))
    laws.close(ft.jvp(f, (X, s), (X, s)), ft.jvp(plain, (X, s), (X, s)))
    laws.close(ft.hvp(f, (X, s), (X, s)), ft.hvp(plain, (X, s), (X, s)))
    laws.close(ft.jet(f, (X, s), ([X, X], [s, s])), ft.jet(plain, (X, s), ([X, X], [s, s])))


@pytest.mark.parametrize("outer", [ft.grad, ft.jacfwd, lambda f: ft.vmap(ft.grad(f))])
def test_what_a_block_closes_over_is_found_at_any_level(outer: Any) -> None:
    """Through a derivative inside a derivative, where the block's arguments vary with neither."""

    def make(wrap: Any) -> Any:
        def f(w: Any) -> Any:
            block = wrap(lambda x: xp.sum(xp.sin(x * w)))
            return block(X) + xp.sum(ft.grad(lambda x: block(x * 2.0))(X)) + block(X * w)

        return f

    at = xp.asarray([0.3, 0.7]) if outer not in (ft.grad, ft.jacfwd) else xp.asarray(0.3)
    laws.close(outer(make(ft.checkpoint))(at), outer(make(lambda f: f))(at))


def test_what_is_not_asked_for_needs_no_derivative() -> None:
    """An argument by which nothing is differentiated may have no derivative at all."""
    a, x = xp.asarray(1.5), xp.asarray([0.3, 0.6])
    f = ft.checkpoint(lambda a, x: xp.sum(xp.special.hyp1f1(a, 2.0, x) ** 2))
    found = ft.grad(f, argnums=1)(a, x)
    laws.close(found, ft.grad(f.__wrapped__, argnums=1)(a, x))
    with pytest.raises(ft.errors.UndefinedDerivativeError):
        ft.grad(f)(a, x)


def test_eager_bodies_are_taken_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps and layers that do the same share their halves, with the same bits each time; another
    constant, type or policy is another body.
    """
    made = []
    plain = halving.halves

    def counted(*args: Any, **options: Any) -> Any:
        made.append(args)
        return plain(*args, **options)

    monkeypatch.setattr(halving, "halves", counted)

    def slope(x: Any, k: float, policy: Any, wrap: Any = ft.checkpoint) -> Any:
        def block(x: Any) -> Any:
            return wrap(lambda x: xp.tanh(x @ x) * k, policy=policy)(x)

        return ft.grad(lambda x: xp.sum(block(block(x))))(x)

    x = xp.asarray(np.random.default_rng(0).normal(size=(4, 4)) * 0.3)
    dots, tanhs = P.dots_saveable, P.save_only_these_ops("tanh")
    for y, k, policy in (
        (x, 0.5, dots), (x, 0.75, dots), (xp.astype(x, xp.float32), 0.5, dots),
        (x[:3, :3], 0.5, dots), (x, 0.5, tanhs),
    ):  # fmt: skip
        made.clear()
        first = slope(y, k, policy)
        assert len(made) == 1
        laws.close(first, slope(y, k, policy, lambda f, policy: f))
        for _ in range(2):
            assert np.array_equal(np.asarray(slope(y, k, policy)), np.asarray(first))
        assert len(made) == 1


LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "nothing": lambda f, x: f(x),
    "checkpoint": lambda f, x: ft.checkpoint(f)(xp.sin(x)),
    "scan": lambda f, x: ft.scan(lambda c, a: (f(c) + a, c), x, xp.stack([x, x]))[0],
    "map": lambda f, x: ft.map(f, xp.stack([x, x * 2.0])),
    "fori_loop": lambda f, x: ft.fori_loop(0, 3, lambda i, c: f(c) + i, x),
    "while_loop": lambda f, x: ft.while_loop(
        lambda c: xp.sum(c) < 9.0, lambda c: f(c) + c + 2.0, x
    ),
    "cond": lambda f, x: ft.cond(xp.sum(x) > 0.0, f, lambda x: x, x),
}


def scaled(by: float, mode: str) -> Any:
    """sin with the derivative `by`."""
    if mode == "reverse":
        f: Any = ft.custom_vjp(xp.sin)
        f.defvjp(lambda x: (xp.sin(x), None), lambda _, g: (g * by,))
    else:
        f = ft.custom_jvp(xp.sin)
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * by))
    return f


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("inside", LOOPS)
def test_functions_that_differ_in_their_rules_are_told_apart(inside: str, mode: str) -> None:
    """A body that eager code has captured before is another one if a rule in it is another."""
    x = xp.asarray([[0.5, 0.25], [1.0, 2.0]])
    for by in (2.0, 3.0):
        f = scaled(by, mode)
        plain = lambda x, f=f: xp.sum(LOOPS[inside](f, x))  # noqa: E731
        found = ft.vmap(ft.grad(ft.checkpoint(plain)))(x)
        np.testing.assert_allclose(found, [ft.grad(plain)(row) for row in x])
