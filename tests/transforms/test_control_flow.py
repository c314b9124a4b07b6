"""Branches and loops: every nesting agrees with plain Python, and jit keeps them one node."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import export
from funct.errors import (
    ArgumentError,
    DTypeError,
    FunctError,
    ShapeError,
    TransformError,
    TreeError,
)
from funct.graph import Control, Graph, Node
from tests import laws
from tests.together import together
from tests.transforms.test_grad import arr

Fun = Callable[[Any], Any]

X = arr([0.3, -0.2, 0.5])
LANES = xp.stack([X, X * 2.0, X - 0.85])
W = arr([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.2]])
KS = arr([0.5, 1.0, 1.5])


# Programs, each with itself written in plain Python. All close over x.


def scanned(x: Any) -> Any:
    """A scan with constants, a carry with an integer, xs and ys."""

    def body(carry: Any, k: Any) -> Any:
        h, i = carry
        h = xp.tanh(W @ h) * k + xp.sin(x)
        return (h, i + 1), {"y": xp.sum(h * h) + i}

    (h, i), ys = ft.scan(body, (x, 0), KS)
    return xp.sum(h) * i + xp.sum(ys["y"] * ys["y"])


def scanned_python(x: Any) -> Any:
    """The same."""
    h, total = x, 0.0
    for i, k in enumerate(KS.tolist()):
        h = xp.tanh(W @ h) * k + xp.sin(x)
        total = total + (xp.sum(h * h) + i) ** 2
    return xp.sum(h) * 3 + total


def reversed_scan(x: Any) -> Any:
    """From the last to the first, x among the xs."""
    c, ys = ft.scan(lambda c, v: (xp.sin(c) * v + c, c * v), xp.sum(x), x, reverse=True)
    return c + xp.sum(ys * x)


def reversed_python(x: Any) -> Any:
    """The same."""
    c, total = xp.sum(x), 0.0
    for k in (2, 1, 0):
        total = total + c * x[k] * x[k]
        c = xp.sin(c) * x[k] + c
    return c + total


def looped(x: Any) -> Any:
    """A while loop whose number of steps depends on x."""

    def body(s: Any) -> Any:
        return s[0] * 1.5 + xp.sin(x) * s[0] * 0.3, s[1] + xp.sum(s[0]) * x

    a, b = ft.while_loop(lambda s: xp.sum(s[0] * s[0]) < 50.0, body, (x + 1.0, x))
    return xp.sum(a * x) + xp.sum(xp.sin(b))


def looped_python(x: Any) -> Any:
    """The same."""
    a, b = x + 1.0, x
    while xp.sum(a * a) < 50.0:
        a, b = a * 1.5 + xp.sin(x) * a * 0.3, b + xp.sum(a) * x
    return xp.sum(a * x) + xp.sum(xp.sin(b))


def counted(x: Any) -> Any:
    """A fori_loop whose bound is data."""
    n = xp.astype(xp.abs(xp.sum(x)) * 3.0, xp.int64)
    return xp.sum(ft.fori_loop(0, n + 2, lambda i, c: xp.sin(c) * x + i, x))


def counted_python(x: Any) -> Any:
    """The same."""
    c = x
    for i in range(int(xp.abs(xp.sum(x)) * 3.0) + 2):
        c = xp.sin(c) * x + i
    return xp.sum(c)


def branched(x: Any) -> Any:
    """A cond with operands and closures; the branch not taken has an infinite derivative at 1."""
    s = xp.sum(x)
    return ft.cond(
        s < 1.0,
        lambda y, z: xp.sum(xp.sin(y) * z * x),
        lambda y, z: xp.sum(xp.sqrt(xp.abs(s - 1.0)) * y * z),
        x,
        x * 2.0,
    )


def branched_python(x: Any) -> Any:
    """The same."""
    s, z = xp.sum(x), x * 2.0
    if s < 1.0:
        return xp.sum(xp.sin(x) * z * x)
    return xp.sum(xp.sqrt(xp.abs(s - 1.0)) * x * z)


BRANCHES = [lambda y, x: xp.sum(xp.sin(y) * x), lambda y, x: xp.prod(y), lambda y, x: xp.sum(x * y)]


def switched(x: Any) -> Any:
    """A switch whose index is clamped."""
    i = xp.astype(xp.sum(x) * 2.0, xp.int64)
    return ft.switch(i, [lambda y, b=b: b(y, x) for b in BRANCHES], x * 2.0)


def switched_python(x: Any) -> Any:
    """The same."""
    return BRANCHES[min(max(int(xp.sum(x) * 2.0), 0), 2)](x * 2.0, x)


def nested(x: Any) -> Any:
    """A cond, a while_loop and a fori_loop in a scan."""

    def body(c: Any, k: Any) -> Any:
        c = ft.cond(xp.sum(c) > k, lambda c: xp.sin(c) * x, lambda c: c + k * x + 0.05, c)
        c = ft.while_loop(lambda d: xp.sum(d * d) < 1.0, lambda d: d * 1.7 + x * 0.1, c)
        return c, ft.fori_loop(0, 3, lambda i, z: z * xp.sum(c) + i, k)

    c, ys = ft.scan(body, x + 0.05, KS)
    return xp.sum(c) + xp.sum(ys)


def nested_python(x: Any) -> Any:
    """The same."""
    c, total = x + 0.05, 0.0
    for k in KS.tolist():
        c = xp.sin(c) * x if xp.sum(c) > k else c + k * x + 0.05
        while xp.sum(c * c) < 1.0:
            c = c * 1.7 + x * 0.1
        z = xp.asarray(k)
        for i in range(3):
            z = z * xp.sum(c) + i
        total = total + z
    return xp.sum(c) + total


PROGRAMS: dict[str, tuple[Fun, Fun]] = {
    "scan": (scanned, scanned_python),
    "reverse": (reversed_scan, reversed_python),
    "while": (looped, looped_python),
    "fori": (counted, counted_python),
    "cond": (branched, branched_python),
    "switch": (switched, switched_python),
    "nested": (nested, nested_python),
}

TRANSFORMS: dict[str, Callable[[Fun], Fun]] = {
    "grad": lambda g: ft.grad(lambda x: xp.sum(g(x))),
    "jvp": lambda g: lambda x: ft.jvp(g, (x,), (x * 0.5 + 1.0,))[1],
    "vmap": lambda g: lambda x: xp.sum(ft.vmap(lambda s: g(x * s))(arr([1.0, 1.1, -1.9])), axis=0),
    "jit": ft.jit,
    "linearize": lambda g: lambda x: ft.linearize(g, x)[1](x),
}

each_program = pytest.mark.parametrize("name", PROGRAMS)


def loop_vmap(g: Fun) -> Fun:
    """What vmap means, without vmap: Python branches differ between lanes."""
    return lambda x: g(x * 1.0) + g(x * 1.1) + g(x * -1.9)


def nesting(g: Fun, names: tuple[str, ...], plain: bool) -> Fun:
    """The transforms around g, innermost last; plain leaves out jit, and vmap's machinery."""
    for name in reversed(names):
        if plain and name == "jit":
            continue
        g = loop_vmap(g) if plain and name == "vmap" else TRANSFORMS[name](g)
    return g


@pytest.mark.in_turn
@each_program
@pytest.mark.parametrize(
    "names", [p for n in (1, 2) for p in itertools.product(TRANSFORMS, repeat=n)], ids="-".join
)
def test_nestings_agree_with_python(name: str, names: tuple[str, ...]) -> None:
    """Every pair of transforms, also compiled as a whole, equals plain Python under them."""
    staged, plain = PROGRAMS[name]
    expected = nesting(plain, names, True)(X)
    laws.close(nesting(staged, names, False)(X), expected, 1e-8, 1e-8)
    laws.close(ft.jit(nesting(staged, names, False))(X), expected, 1e-8, 1e-8)


@pytest.mark.in_turn
@each_program
@pytest.mark.parametrize(
    "names",
    [
        ("grad", "jit", "grad"),
        ("vmap", "jit", "grad"),
        ("jit", "vmap", "grad"),
        ("grad", "vmap", "jit"),
        ("jvp", "grad", "jit"),
        ("vmap", "grad", "jit"),
        ("grad", "grad", "jit"),
        ("vmap", "vmap", "jit"),
        ("grad", "jit", "vmap"),
        ("vmap", "grad", "grad"),
    ],
    ids="-".join,
)
def test_triples_agree_with_python(name: str, names: tuple[str, ...]) -> None:
    """Three deep, with jit in every place."""
    staged, plain = PROGRAMS[name]
    expected = nesting(plain, names, True)(X)
    laws.close(nesting(staged, names, False)(X), expected, 1e-7, 1e-7)


@each_program
def test_hessians_agree_with_python(name: str) -> None:
    """Forward over reverse, reverse over reverse, compiled inside, outside, batched."""
    staged, plain = PROGRAMS[name]
    expected = ft.hessian(plain)(X)
    for h in (
        ft.hessian(staged),
        ft.jit(ft.hessian(staged)),
        ft.hessian(ft.jit(staged)),
        ft.jit(ft.jacrev(ft.jacrev(staged))),
    ):
        laws.close(h(X), expected, 1e-8, 1e-8)
    rows = xp.stack([ft.hessian(plain)(LANES[k]) for k in range(3)])
    laws.close(ft.vmap(ft.hessian(staged))(LANES), rows, 1e-7, 1e-7)
    laws.close(ft.jit(ft.vmap(ft.hessian(staged)))(LANES), rows, 1e-7, 1e-7)


@each_program
def test_differences(name: str, rng: np.random.Generator) -> None:
    """The compiled program obeys every derivative law."""
    laws.check_derivatives(ft.jit(PROGRAMS[name][0]), [X], rng, order=2, tol=1e-4)


@each_program
def test_jit_is_exact(name: str) -> None:
    """Compiled = step by step, bit for bit."""
    staged = PROGRAMS[name][0]
    compiled = ft.jit(staged)
    laws.same(compiled(X), staged(X))
    laws.same(compiled(X), staged(X))


# hypothesis ---------------------------------------------------------------------------------------

UNARY = [xp.sin, xp.tanh, lambda v: v * v * 0.3, lambda v: -v, lambda v: xp.sum(v) + v * 0.5]


@st.composite
def bodies(draw: Any) -> tuple[Any, Any]:
    """A body of random ops on a random tree of carries, and the first carry."""
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    shapes = {n: draw(st.sampled_from([(), (2,), (2, 3)])) for n in names}
    plan = [
        (draw(st.sampled_from(names)), draw(st.integers(0, 4)), draw(st.booleans()))
        for _ in range(draw(st.integers(1, 4)))
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    init = {n: xp.asarray(rng.normal(size=s) * 0.5) for n, s in shapes.items()}

    def body(carry: Any, x: Any) -> Any:
        state = dict(carry)
        for name, op, mixes in plan:
            v = UNARY[op](state[name])
            other = xp.sum(state[names[0]])
            state[name] = v + (x * other if mixes else x)
        return state, (xp.sum(state[names[-1]]), None)

    return body, init


@given(bodies(), st.integers(0, 4), st.booleans(), st.sampled_from(["grad", "jvp", "vmap"]))
def test_random_scans(made: Any, n: int, back: bool, name: str) -> None:
    """Whatever the body: scan is the Python loop, under each transform, compiled or not."""
    body, init = made
    xs = xp.asarray(np.linspace(-1.0, 1.0, n))

    def total(state: Any, ys: Any) -> Any:
        return sum([xp.sum(v * v) for v in state.values()], 0.0) + ys

    def staged(s: Any) -> Any:
        state, (ys, none) = ft.scan(
            body, {k: v * xp.sum(s) for k, v in init.items()}, xs * s[0], reverse=back
        )
        assert none is None
        return total(state, xp.sum(ys))

    def plain(s: Any) -> Any:
        state, ys = {k: v * xp.sum(s) for k, v in init.items()}, 0.0
        for k in range(n)[::-1] if back else range(n):
            state, (y, _) = body(state, xs[k] * s[0])
            ys = ys + y
        return total(state, ys)

    s = arr([0.7, 0.4])
    expected = nesting(plain, (name,), True)(s)
    for g in (staged, ft.jit(staged)):
        laws.close(TRANSFORMS[name](g)(s), expected, 1e-8, 1e-8)
        laws.close(ft.jit(TRANSFORMS[name](g))(s), expected, 1e-8, 1e-8)


# semantics ----------------------------------------------------------------------------------------


def test_oracle() -> None:
    """JAX gives the same."""
    jax = pytest.importorskip("jax", reason="the oracle is not installed")
    jnp, lax = jax.numpy, jax.lax
    x = np.linspace(-1.0, 1.0, 12).reshape(4, 3).astype(np.float32)

    def program(np_: Any, m: Any) -> Any:
        def f(x: Any) -> Any:
            c, ys = m.scan(lambda c, v: (c + np_.sin(v), (c * v, c)), x[0], x, reverse=True)
            n = m.while_loop(lambda s: np_.sum(s[0]) < 9.0, lambda s: (s[0] * s[0] + 1.5, s[1] + 1),
                             (c, 0))  # fmt: skip
            k = m.fori_loop(2, 5, lambda i, s: s * 0.5 + x[i - 2], c)
            b = m.cond(np_.sum(c) > 0, lambda v: v * 2, lambda v: v - 1, c)
            i = m.switch(np_.sum(x > 0), [np_.sin, np_.cos, np_.tanh], c)
            a = m.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (x, x + 1))
            r = m.associative_scan(np_.multiply, x.T, reverse=True, axis=1)
            return c, ys, n[0], k, b, i, a, r, m.map(np_.sum, x), m.map(np_.sum, x, batch_size=3)

        return f

    theirs = jax.tree_util.tree_leaves(program(jnp, lax)(jnp.asarray(x)))
    for g in (program(xp, ft), ft.jit(program(xp, ft))):
        ours = ft.tree.leaves(g(xp.asarray(x)))
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_associative_scan_of_what_does_not_commute(n: int) -> None:
    """Factors stand in the order in which they come, from either end."""
    x = np.random.default_rng(n).normal(size=(n, 2, 2))
    for reverse in (False, True):
        want = [x[-1] if reverse else x[0]]
        for v in x[::-1][1:] if reverse else x[1:]:
            want.append(want[-1] @ v)
        f = partial(ft.associative_scan, xp.matmul, reverse=reverse)
        for g in (f, ft.jit(f), lambda x, f=f: ft.vmap(f)(x[None])[0]):
            np.testing.assert_allclose(
                np.asarray(g(xp.asarray(x))), want[::-1] if reverse else want, rtol=1e-12
            )


def test_python_numbers_take_the_dtype_of_the_body() -> None:
    """0.0 beside float32 is float32, an int that becomes a float is one, in any mode."""
    x = xp.asarray([1.5, 2.0], dtype=xp.float32)
    for wrap in (lambda f: f, ft.jit):
        total, ys = wrap(lambda x: ft.scan(lambda c, v: (c + v, c), 0.0, x))(x)
        assert (total.dtype, ys.dtype) == (xp.float32, xp.float32)
        assert wrap(lambda x: ft.fori_loop(0, 2, lambda i, c: c * x[i], 1))(x).dtype == xp.float32
        assert wrap(lambda x: ft.fori_loop(0, 2, lambda i, c: c + 1, 0))(x).dtype == xp.int64
        assert wrap(lambda x: ft.while_loop(lambda c: c < 3, lambda c: c + x[0], 0))(x) == 3.0
        picked = wrap(lambda x: ft.cond(x[0] > 0, lambda: x[0], lambda: 0.0))(x)
        assert picked.dtype == xp.float32
    assert ft.scan(lambda c, v: (c, None), 0.0, x)[0].dtype == xp.float64


def test_no_steps() -> None:
    """A loop without steps gives the first carry, and empty ys of the right type."""
    for wrap in (lambda f: f, ft.jit):
        carry, ys = wrap(lambda x: ft.scan(lambda c, v: (c + v, (v * c, 1)), x, xp.zeros((0, 3))))(
            X
        )
        laws.same(carry, X)
        assert [(y.shape, y.dtype) for y in ys] == [((0, 3), xp.float64), ((0,), xp.int64)]
        laws.same(wrap(lambda x: ft.fori_loop(3, 1, lambda i, c: c * 2.0, x))(X), X)
        laws.same(wrap(lambda x: ft.while_loop(lambda c: c[0] > 9.0, xp.sin, x))(X), X)
        g = ft.grad(wrap(lambda x: xp.sum(ft.fori_loop(0, 0, lambda i, c: c * 5.0, x) ** 2)))
        laws.close(g(X), 2.0 * X)


def test_unbatched_parts_stay_unbatched() -> None:
    """A counter that no lane shares keeps the loop free of masks: one test, not one per lane."""
    graph = ft.make_graph(
        ft.vmap(lambda x: ft.while_loop(lambda s: s[1] < 5, lambda s: (s[0] * x, s[1] + 1), (x, 0)))
    )(LANES)
    (node,) = controls(graph)
    test = dict(bodies_of(node))["test"]
    assert all(v.shape == () for v in test.inputs[-1:])
    assert "any" not in str(test)


def test_a_dead_lane_is_left_alone() -> None:
    """A lane that has ended takes no part: no NaN from what it would have computed."""

    def f(x: Any) -> Any:
        return ft.while_loop(lambda c: c > 1.0, lambda c: xp.sqrt(c - 1.0), x)

    x = arr([1.0, 5.0, 3.0, 1.5])
    expected = xp.stack([ft.grad(f)(v) for v in x])
    assert np.isfinite(np.asarray(expected)).all()
    with np.errstate(all="ignore"):
        for g in (ft.vmap(ft.grad(f)), ft.vmap(ft.jit(ft.grad(f))), ft.jit(ft.vmap(ft.grad(f)))):
            laws.close(g(x), expected)
        laws.close(ft.grad(lambda x: xp.sum(ft.vmap(f)(x)))(x), expected)
        laws.close(ft.jit(ft.grad(lambda x: xp.sum(ft.vmap(f)(x))))(x), expected)


def test_branches_not_taken_give_no_nan() -> None:
    """sqrt at 0 in the branch not taken: batched, compiled, of first and second order."""

    def f(x: Any) -> Any:
        return ft.cond(x < 1.0, lambda x: x * x, xp.sqrt, x)

    x = arr([0.0, 4.0, 0.5])
    first = arr([0.0, 0.25, 1.0])
    second = arr([2.0, -0.03125, 2.0])
    with np.errstate(all="ignore"):
        for wrap in (lambda g: g, ft.jit):
            for inner in (f, ft.jit(f)):
                laws.close(wrap(ft.vmap(ft.grad(inner)))(x), first)
                laws.close(wrap(ft.grad(lambda x, h=inner: xp.sum(ft.vmap(h)(x))))(x), first)
                laws.close(wrap(ft.vmap(ft.grad(ft.grad(inner))))(x), second)


def test_integers_and_structures() -> None:
    """Integer, boolean and empty parts of carries, operands and results have no derivative."""

    def f(x: Any) -> Any:
        def body(c: Any, k: Any) -> Any:
            v, n, on, none = c
            off = xp.logical_not(xp.asarray(on))
            return (v * x + n, n + k, off, none), {"n": n, "on": on, "v": v}

        (v, n, _, _), ys = ft.scan(body, (x, 1, True, None), xp.asarray([1, 2, 3]))
        picked = ft.cond(n > 3, lambda t: (t["v"], t["n"]), lambda t: (t["n"] * 1.0, t["n"]), ys)
        return v + xp.sum(picked[0]) + xp.sum(picked[1])

    x = arr(0.7)

    def plain(x: Any) -> Any:
        v, n, vs, ns = x, 1, [], []
        for k in (1, 2, 3):
            vs.append(v)
            ns.append(n)
            v, n = v * x + n, n + k
        return v + sum(vs) + sum(ns)

    for g in (f, ft.jit(f)):
        laws.close(g(x), plain(x))
        laws.close(ft.grad(g)(x), ft.grad(plain)(x))
        laws.close(ft.jit(ft.grad(ft.grad(g)))(x), ft.grad(ft.grad(plain))(x))
        lanes = ft.vmap(ft.grad(g))(arr([0.7, 0.9]))
        laws.close(lanes[1], ft.grad(plain)(arr(0.9)))


def test_complex_carries() -> None:
    """The convention for complex gradients holds through compiled loops."""
    z = xp.asarray([0.3 + 0.4j, -0.2 + 0.1j])

    def loop(z: Any) -> Any:
        c, _ = ft.scan(lambda c, k: (c * z * (1 + 2j) + k, None), z, KS)
        return xp.sum(xp.abs(c) ** 2)

    def plain(z: Any) -> Any:
        c = z
        for k in KS.tolist():
            c = c * z * (1 + 2j) + k
        return xp.sum(xp.abs(c) ** 2)

    expected = ft.grad(plain)(z)
    for g in (ft.grad(loop), ft.jit(ft.grad(loop)), ft.grad(ft.jit(loop))):
        laws.close(g(z), expected)


# one node -----------------------------------------------------------------------------------------


def controls(graph: Graph) -> list[Node]:
    """The branches and loops of a graph, outermost only."""
    return [e for e in graph.nodes if isinstance(e, Node) and isinstance(e.primitive, Control)]


def bodies_of(node: Node) -> Any:
    """Its graphs, by name."""
    assert isinstance(node.primitive, Control)
    return node.primitive.bodies


def entries(graph: Graph) -> int:
    """Entries of a graph and of all bodies in it."""
    inner = [entries(b) for e in controls(graph) for _, b in bodies_of(e)]
    return len(graph.nodes) + sum(inner)


@pytest.mark.parametrize(
    ("wrap", "start"),
    [(lambda f: f, 0.1), (ft.grad, 0.1), (lambda f: ft.vmap(ft.grad(f)), [0.1, 0.2])],
    ids=["plain", "grad", "vmap(grad)"],
)
def test_a_loop_is_not_unrolled(wrap: Any, start: Any) -> None:
    """The graph of 3 steps and of 3000 are of one size, derivatives and batches included."""

    def sizes(n: int) -> tuple[int, int, int]:
        def by_scan(x: Any) -> Any:
            return ft.scan(lambda c, k: (xp.sin(c) * x + k, None), x, xp.zeros(n))[0]

        def by_fori(x: Any) -> Any:
            return ft.fori_loop(0, n, lambda i, c: xp.sin(c) * x + i, x)

        def by_while(x: Any) -> Any:
            return ft.while_loop(
                lambda s: s[1] < n, lambda s: (xp.sin(s[0]) * x, s[1] + 1), (x, 0)
            )[0]

        x = arr([0.1, 0.2]) if wrap(xp.sin).__name__.startswith("vmap") else arr(0.1)
        a, b, c = (entries(ft.make_graph(wrap(f))(x)) for f in (by_scan, by_fori, by_while))
        return a, b, c

    assert sizes(3) == sizes(3000)


def test_closures_and_constants_under_jit_are_not_unrolled() -> None:
    """What makes a loop part of the graph may be hidden in a closure."""
    graph = ft.make_graph(lambda w: ft.scan(lambda c, x: (c * w, c), 1.0, xp.ones(50)))(arr(2.0))
    assert len(controls(graph)) == 1
    graph = ft.make_graph(lambda w: ft.while_loop(lambda c: c < 9.0, lambda c: c * w, 1.0))(
        arr(2.0)
    )
    assert len(controls(graph)) == 1
    graph = ft.make_graph(lambda w: ft.while_loop(lambda c: c < w, lambda c: c * 2.0, 1.0))(
        arr(9.0)
    )
    assert len(controls(graph)) == 1


def test_bodies_are_captured_once() -> None:
    """A compiled loop calls the Python functions while it is captured, and never again."""
    calls: list[int] = []

    def body(c: Any, x: Any) -> Any:
        calls.append(1)
        return xp.tanh(c * x), c

    f = ft.jit(ft.grad(lambda x: xp.sum(ft.scan(body, x, xp.ones(20))[1])))
    g = ft.vmap(ft.grad(ft.jit(lambda x: xp.sum(ft.scan(body, x, xp.ones(20))[1]))))
    f(arr(0.3))
    g(arr([0.3, 0.4]))
    count = len(calls)
    for _ in range(3):
        f(arr(0.4))
        g(arr([0.5, 0.4]))
    assert len(calls) == count <= 4


def test_a_predicate_under_jit_is_a_branch_and_no_guard() -> None:
    """One compilation serves both sides."""
    f = ft.jit(lambda x: ft.cond(x > 0, xp.sin, xp.cos, x))
    assert float(f(arr(0.0))) == 1.0
    assert float(f(arr(np.pi / 2))) == 1.0
    assert f.cache_info().misses == 1


def test_residuals_are_small() -> None:
    """Nothing equal in every step is stacked: the backward loop is given W itself."""
    n, d = 7, 5
    w = arr(np.eye(d))

    def f(w: Any, x: Any) -> Any:
        c, _ = ft.scan(lambda c, _: (xp.tanh(w @ c), None), x, None, length=n)
        return xp.sum(c)

    graph = ft.make_graph(ft.grad(f, (0, 1)))(w, xp.ones(d))
    forward, backward = controls(graph)
    stacked = [v for v in forward.results if v.shape and v.shape[0] == n]
    assert sum(int(np.prod(v.shape)) for v in stacked) <= 2 * n * d
    assert any(a in graph.inputs for a in backward.operands)


def test_graphs_are_readable() -> None:
    """A graph shows its bodies."""
    text = str(ft.make_graph(lambda x: ft.fori_loop(0, 9, lambda i, c: c * 2.0, x))(X))
    assert [w for w in ("def body(", "= scan(", "multiply(") if w not in text] == []


def test_ten_thousand_steps() -> None:
    """No recursion, eager or compiled, forward or back."""
    n = 10_000
    xs = xp.asarray(np.linspace(0.0, 1.0, n))

    def f(w: Any) -> Any:
        return xp.sum(ft.scan(lambda c, x: (xp.tanh(c * w + x), c), w, xs)[1])

    laws.close(ft.grad(f)(arr(0.3)), ft.jit(ft.grad(f))(arr(0.3)), 1e-9)
    g = ft.jit(ft.grad(lambda w: ft.fori_loop(0, n, lambda i, c: xp.sin(c) + w, w)))
    assert np.isfinite(float(g(arr(0.3))))


def test_threads() -> None:
    """Sixteen threads trace, compile and run the same and different loops."""
    shared = ft.jit(ft.grad(nested))
    expected = ft.grad(nested_python)(X)

    def work(k: int) -> None:
        laws.close(shared(X), expected, 1e-8)
        laws.close(ft.vmap(ft.jit(ft.grad(looped)))(LANES)[0], ft.grad(looped_python)(X), 1e-8)

    together(16, work)


# errors -------------------------------------------------------------------------------------------

MODES = [lambda f: f, ft.jit]


@pytest.mark.parametrize("wrap", MODES, ids=["eager", "jit"])
def test_errors_name_the_leaf(wrap: Any) -> None:
    """Wrong types, named by path, with what was expected and what came."""
    pair = {"h": X, "n": arr(1.0)}

    def fails(kind: type, match: str, f: Any, *args: Any) -> None:
        with pytest.raises(kind, match=match):
            wrap(f)(*args)

    def grows(x: Any) -> Any:
        return ft.scan(lambda c, _: ({**c, "h": c["h"][:2]}, None), {**pair, "h": x}, length=2)

    def casts(x: Any) -> Any:
        return ft.while_loop(lambda c: c[0][0] < 9, lambda c: (xp.astype(c[0], xp.float32),), (x,))

    fails(ShapeError, r"'h' must be float64\[3\], got float64\[2\]", grows, X)
    fails(DTypeError, r"'0' must be float64\[3\], got float32\[3\]", casts, X)
    decides = lambda c, _: (c if c[0] > 0 else -c, None)  # noqa: E731
    if wrap is ft.jit:
        for f in (
            lambda x: ft.scan(decides, x, length=3),
            lambda x: ft.while_loop(lambda c: bool(c[0] > 0), lambda c: c - 1.0, x),
            lambda x: ft.cond(x[0] > 0, lambda x: float(x[0]) * x, lambda x: x, x),
        ):
            with pytest.raises(TransformError) as caught:
                ft.jit(f, fullgraph=True)(X)
            assert caught.value.fix is not None
    fails(TreeError, "carry", lambda x: ft.scan(lambda c, _: ((c, c), None), x, length=1), X)
    fails(TransformError, r"return \(carry, y\)", lambda x: ft.scan(lambda c, _: c, x, length=1), X)
    fails(ShapeError, "3 from .*'0' of xs, 2 from .*'1'",
          lambda x: ft.scan(lambda c, _: (c, None), 0, (x, x[:2])), X)  # fmt: skip
    fails(ShapeError, "2 from length", lambda x: ft.scan(lambda c, _: (c, None), 0, x, length=2), X)
    fails(TransformError, "length is needed", lambda x: ft.scan(lambda c, _: (c, None), x), X)
    fails(ShapeError, "no axis", lambda x: ft.scan(lambda c, _: (c, None), 0, xp.sum(x)), X)
    fails(ArgumentError, "unroll", lambda x: ft.scan(lambda c, v: (c, v), 0, x, unroll=-1), X)
    fails(DTypeError, "boolean, got float64", lambda x: ft.cond(x[0], xp.sin, xp.cos, x), X)
    fails(ShapeError, r"scalar, got shape \(3,\)", lambda x: ft.cond(x > 0, xp.sin, xp.cos, x), X)
    fails(TreeError, "result of true_fun",
          lambda x: ft.cond(x[0] > 0, lambda x: (x, x), lambda x: x, x), X)  # fmt: skip
    fails(ShapeError, r"float64\[3\] from false_fun, float64\[\] from true_fun",
          lambda x: ft.cond(x[0] > 0, xp.sum, lambda x: x, x), X)  # fmt: skip
    fails(DTypeError, r"leaf 'a' is float64\[3\] from branch 0, bool\[3\] from branch 1",
          lambda x: ft.switch(xp.argmax(x), [lambda: {"a": x}, lambda: {"a": x > 0}]),
          X)  # fmt: skip
    fails(DTypeError, "index must be an integer", lambda x: ft.switch(x[0], [xp.sin], x), X)
    fails(ShapeError, "index must be a scalar",
          lambda x: ft.switch(xp.argsort(x), [xp.sin], x), X)  # fmt: skip
    fails(TransformError, "at least one branch", lambda x: ft.switch(0, [], x), X)
    fails(DTypeError, "cond_fun must be a boolean", lambda x: ft.while_loop(xp.sum, xp.sin, x), X)
    fails(DTypeError, "upper must be an integer",
          lambda x: ft.fori_loop(0, x[0], lambda i, c: c, x), X)  # fmt: skip
    fails(ArgumentError, "batch_size", lambda x: ft.map(xp.sin, x, batch_size=0), X)
    fails(ShapeError, "must agree", lambda x: ft.associative_scan(lambda a, b: a, (x, x[:2])), X)


def test_a_decision_on_a_value_in_a_compiled_body_is_pythons() -> None:
    """Python `if` works step by step, and is refused in a body that must be captured."""

    def f(x: Any) -> Any:
        return ft.scan(lambda c, k: (c * k if c > 0 else c, None), x, KS)[0]

    assert float(f(arr(-1.0))) == -1.0
    assert float(ft.jit(f)(arr(-1.0))) == -1.0
    with pytest.raises(TransformError, match="depends on a value"):
        ft.jit(f, fullgraph=True)(arr(-1.0))


def test_errors_in_bodies_name_the_line_and_leave_no_trace() -> None:
    """A user's exception a thousand times over: the next call is right."""

    class OwnError(Exception):
        pass

    def body(c: Any, k: Any, fail: bool) -> Any:
        if fail:
            raise OwnError
        return c * k, None

    def f(x: Any, fail: bool) -> Any:
        c, _ = ft.scan(lambda c, k: body(c, k, fail), x, KS)
        c = ft.while_loop(lambda c: c < 9.0, lambda c: body(c, 2.0, fail)[0], c)
        return ft.cond(c > 1.0, lambda c: body(c, 2.0, fail)[0], xp.sin, c)

    wraps: list[Any] = [lambda g: g, ft.jit, ft.grad, lambda g: ft.jit(ft.grad(g))]
    for k in range(1000):
        with pytest.raises(OwnError):
            wraps[k % 4](lambda x: f(x, True))(arr(1.0))
    expected = ft.grad(lambda x: f(x, False))(arr(1.0))
    laws.close(ft.jit(ft.grad(lambda x: f(x, False)))(arr(1.0)), expected)


def test_escaped_values_are_recognised() -> None:
    """A tracer that a body lets out cannot be used."""
    seen: list[Any] = []

    def f(x: Any) -> Any:
        return ft.scan(lambda c, k: (seen.append(c) or c * k, None), x, KS)[0]  # type: ignore[func-returns-value]

    ft.jit(f)(arr(1.0))
    with pytest.raises(FunctError, match="has returned"):
        seen[-1] + 1.0


def test_programs_with_loops(tmp_path: Any) -> None:
    """An exported program with a loop runs, is differentiated and saved; ONNX says what fails."""
    program = export.export(scanned, (X,))
    export.save(program, tmp_path / "p.funct")
    for p in program, export.load(tmp_path / "p.funct"):
        laws.close(p(X), scanned(X))
        laws.close(ft.grad(p)(X), ft.grad(scanned_python)(X))
    with pytest.raises(FunctError, match="scan: control flow has no ONNX form"):
        export.to_onnx(program)


def test_collectives_in_bodies() -> None:
    """A body may ask for the other lanes."""
    f = lambda x: ft.scan(lambda c, k: (c * k + ft.psum(c, "i"), None), x, arr([1.0, 2.0]))[0]  # noqa: E731
    for g in (ft.vmap(f, axis_name="i"), ft.jit(ft.vmap(f, axis_name="i"))):
        assert g(arr([1.0, 2.0, 3.0])).tolist() == [38.0, 40.0, 42.0]


def test_nested_branches_are_traced_once_at_any_depth() -> None:
    """A function that is chosen in a choice in a choice … runs as often as one in a single one."""

    def calls(depth: int) -> int:
        seen = []

        def leaf(x: Any) -> Any:
            seen.append(None)
            return xp.sin(x)

        f = leaf
        for _ in range(depth):
            f = (lambda g: lambda x: ft.cond(x > 0, g, lambda x: x - 1.0, x))(f)
        x = xp.asarray(0.5)
        assert float(ft.jit(f)(x)) == float(leaf(x))
        return len(seen)

    assert calls(12) == calls(1)


def test_numbers_take_the_dtype_of_the_other_branch_in_nests() -> None:
    def f(x: Any) -> Any:
        inner = lambda x: ft.cond(x > 1, lambda x: 2, lambda x: x, x)  # noqa: E731
        return ft.cond(x > 0, inner, lambda x: 0, x)

    for v in (2.0, 0.5, -1.0):
        x = xp.asarray(v, dtype="float32")
        got = ft.jit(f)(x)
        assert (float(got), got.dtype) == (max(0.0, min(v, 2.0)), xp.float32)
