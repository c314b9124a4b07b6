"""Attention that is written out, in any spelling, is the kernel's, and so is its gradient."""

import itertools

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import why_not_fused
from funct.compile.rewriting import weights, written_attention
from funct.compile.rewriting.attention import NEEDS, with_attention
from funct.graph.passes import optimize
from funct.kernels.table import met
from funct.nn import functional

pytestmark = pytest.mark.skipif(not met(NEEDS), reason="the processor has no kernel of attention")
B, H, L, S, E, V = 2, 3, 5, 7, 4, 3


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Attention on few elements is attention too."""
    monkeypatch.setattr(weights, "_LEAST", 1)
    monkeypatch.setattr(written_attention, "WORTH", 1)
    monkeypatch.setattr(written_attention, "_MASKED", 1)


def composed(s):
    e = xp.exp(s - xp.max(s, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def reciprocal(s):
    e = xp.exp(s - ft.stop_gradient(xp.max(s, axis=-1, keepdims=True)))
    return e * (1 / xp.sum(e, axis=-1)[..., None])


def without_lse(s):
    return xp.exp(s - xp.max(s, axis=-1, keepdims=True)) / xp.expand_dims(
        xp.sum(xp.exp(s - xp.max(s, axis=-1, keepdims=True)), axis=-1), axis=-1
    )


SOFTMAXES = {
    "nn": lambda s: functional.softmax(s, -1), "special": lambda s: xp.special.softmax(s, axis=-1),
    "composed": composed, "reciprocal": reciprocal, "twice": without_lse,
}  # fmt: skip

SCORES = {
    "mT": lambda q, k: q @ k.mT * 0.5,
    "divided": lambda q, k: q @ xp.permute_dims(k, (0, 1, 3, 2)) / 2.0,
    "scaled before": lambda q, k: (q * 0.5) @ k.mT,
    "scaled twice": lambda q, k: ((q / 4.0) @ (k * 4.0).mT) * 0.5,
    "einsum": lambda q, k: xp.einsum("bhqd,bhkd->bhqk", q, k) * 0.5,
    "plain": lambda q, k: q @ k.mT,
    "negative": lambda q, k: -(q @ k.mT),
}

rng = np.random.default_rng(5)
SHOWN = rng.random((L, S)) < 0.6
SHOWN[2] = False  # a query that sees no key
PADDED = np.ones((B, 1, 1, S), bool)
PADDED[0, ..., 4:] = False
ADDED = rng.normal(size=(H, L, S))
MASKS = {
    "none": (None, lambda s, m: s),
    "causal": (None, lambda s, m: xp.where(xp.tril(xp.ones((L, S), dtype=bool)), s, -1e9)),
    "shown": (SHOWN, lambda s, m: xp.where(m, s, -1e30)),
    "hidden": (~SHOWN, lambda s, m: xp.where(m, -1e9, s)),
    "known": (None, lambda s, m: xp.where(xp.asarray(SHOWN), s, -1e9)),
    "padded": (PADDED, lambda s, m: xp.where(m, s, float("-inf"))),
    "heads": (np.stack([SHOWN] * H), lambda s, m: xp.where(m, s, -1e9)),
    "added": (ADDED, lambda s, m: s + m),
    "added of keys": (np.where(PADDED, 0.0, -np.inf), lambda s, m: m + s),
}


def arrays(*shapes):
    made = np.random.default_rng(2)
    return [xp.asarray(made.normal(size=shape)) for shape in shapes]


def names(graph):
    return [e.name for e in graph.nodes]


def told_apart(f, *args):
    """The graph as it is and rewritten, and that both compute the same."""
    graph = optimize(ft.make_graph(f)(*args))
    new = with_attention(graph)
    for x, y in zip(graph(*args), new(*args), strict=True):
        np.testing.assert_allclose(np.asarray(y), np.asarray(x), rtol=1e-11, atol=1e-12)
    return names(graph), names(new)


def attention(scores, masked, softmax):
    def f(q, k, v, *mask):
        return softmax(masked(scores(q, k), *(mask or [None]))) @ v

    return f


CASES = [
    *itertools.product(SCORES, ["none", "shown"], SOFTMAXES),
    *itertools.product(["mT", "einsum"], MASKS, ["nn", "composed"]),
]


@pytest.mark.parametrize(("scores", "mask", "softmax"), CASES)
def test_results_and_gradients_in_every_spelling(scores, mask, softmax):
    held, masked = MASKS[mask]
    f = attention(SCORES[scores], masked, SOFTMAXES[softmax])
    q, k, v, g = arrays((B, H, L, E), (B, H, S, E), (B, H, S, V), (B, H, L, V))
    more = [] if held is None else [xp.asarray(held)]

    def pulled(q, k, v, g, *more):
        y, pull = ft.vjp(lambda q, k, v: f(q, k, v, *more), q, k, v)
        return y, *pull(g)

    _, forward = told_apart(lambda *a: (f(*a),), q, k, v, *more)
    assert "attention" in forward
    assert "exp" not in forward
    _, both = told_apart(pulled, q, k, v, g, *more)
    assert {"attention", "attention_pull"} <= set(both)
    assert not {"exp", "reduce_max"} & set(both)
    _, gradient = told_apart(lambda *a: pulled(*a)[1:], q, k, v, g, *more)
    assert "attention_pull" in gradient
    assert "exp" not in gradient


@pytest.mark.parametrize("of", [(0,), (1,), (0, 2), (1, 2)])
def test_gradients_of_some_operands(of):
    q, k, v, g = arrays((B, H, L, E), (B, H, S, E), (B, H, S, V), (B, H, L, V))
    f = attention(SCORES["mT"], MASKS["causal"][1], SOFTMAXES["nn"])

    def pulled(q, k, v, g):
        given = [q, k, v]

        def some(*xs):
            for i, x in zip(of, xs, strict=True):
                given[i] = x
            return f(*given)

        return ft.vjp(some, *[given[i] for i in of])[1](g)

    _, found = told_apart(pulled, q, k, v, g)
    assert "attention_pull" in found
    assert "exp" not in found


def test_axes_in_any_order():
    """As they are where heads stand behind positions, without heads, and with scores turned."""
    q, k, v, g = arrays((B, L, H, E), (B, S, H, E), (B, S, H, V), (B, L, H, V))

    def beside(q, k, v):
        p = functional.softmax(xp.einsum("bqhd,bkhd->bhqk", q, k) / 2.0, -1)
        return xp.einsum("bhqk,bkhd->bqhd", p, v)

    def turned(q, k, v):
        p = functional.softmax(xp.einsum("bqhd,bkhd->bkhq", q, k) * 0.5, 1)
        return xp.einsum("bkhq,bkhd->bqhd", p, v)

    def behind(q, k, v):
        q, k, v = (xp.permute_dims(x, (0, 2, 1, 3)) for x in (q, k, v))
        return xp.permute_dims(composed(k @ q.mT).mT @ k, (0, 2, 1, 3)) + xp.sum(v)

    for f in (beside, turned):
        for both in (lambda *a, f=f: (f(*a[:3]),), lambda *a, f=f: ft.vjp(f, *a[:3])[1](a[3])):
            _, found = told_apart(both, q, k, v, g)
            assert "attention" in found
            assert "exp" not in found
    told_apart(lambda q, k, v, g: (behind(q, k, v),), q, k, v, g)
    flat = [x[0, :, 0] for x in (q, k, v, g)]
    f = lambda q, k, v: SOFTMAXES["nn"](q @ k.T) @ v  # noqa: E731
    _, found = told_apart(lambda *a: ft.vjp(f, *a[:3])[1](a[3]), *flat)
    assert "attention_pull" in found


def test_batched_attention_is_attention():
    f = attention(lambda q, k: q @ k.T * 0.5, MASKS["none"][1], SOFTMAXES["nn"])
    q, k, v, g = arrays((B, H, L, E), (B, H, S, E), (B, H, S, V), (B, H, L, V))
    many = ft.vmap(ft.vmap(f))
    _, found = told_apart(lambda q, k, v, g: ft.vjp(many, q, k, v)[1](g), q, k, v, g)
    assert "attention_pull" in found
    assert "exp" not in found


def test_weights_that_others_need_stay():
    """Returned, dropped, of second order, with a mask that is learned, or of two values."""
    q, k, v, g = arrays((L, E), (S, E), (S, V), (L, V))
    softmax = SOFTMAXES["nn"]
    bias = xp.asarray(ADDED[0])
    keep = xp.asarray(rng.random((L, S)) < 0.5)
    others = {
        "returned": lambda q, k, v, g: (softmax(q @ k.T) @ v, softmax(q @ k.T)),
        "dropped": lambda q, k, v, g: (xp.where(keep, softmax(q @ k.T), 0.0) @ v,),
        "learned": lambda q, k, v, g: ft.vjp(lambda m: softmax(q @ k.T + m) @ v, bias)[1](g),
        "second": lambda q, k, v, g: (
            ft.grad(lambda q: xp.sum(ft.grad(lambda q: xp.sum(softmax(q @ k.T) @ v * g))(q) ** 2))(
                q
            ),
        ),
        "two": lambda q, k, v, g: (softmax(q @ k.T) @ v, softmax(q @ k.T) @ (v * 2)),
        "along queries": lambda q, k, v, g: (functional.softmax(q @ k.T, 0) @ v,),
        "not so low": lambda q, k, v, g: (softmax(xp.where(keep, q @ k.T, -9.0)) @ v,),
    }
    for name, f in others.items():
        _, found = told_apart(f, q, k, v, g)
        assert "exp" in found, name


def test_what_only_looks_like_attention_stays():
    """Maxima and sums that lie along other axes, masks and sums that broadcast scores."""
    q, k, v, g = arrays((S, E), (S, E), (S, V), (S, V))
    shown = xp.asarray(rng.random((S, S)) < 0.7)
    many = xp.asarray(np.random.default_rng(3).normal(size=(4, S, V)))

    def weighed(top, total):
        def f(q, k, v):
            s = q @ k.T
            e = xp.exp(s - top(s))
            return e / total(e) @ v

        return f

    def rows(x):
        return xp.max(x, axis=-1, keepdims=True)

    def sums(x):
        return xp.sum(x, axis=-1, keepdims=True)

    def spread(q, k, v):
        s = xp.where(xp.stack([shown, ~shown]), q @ k.T, -1e9)
        return functional.softmax(s, -1) @ xp.stack([v, v])

    def shared(q, k, v):
        p = functional.softmax(q @ k.T, -1)
        return xp.broadcast_to(p, (4, S, S)) @ (many + v)

    others = {
        "rows of maxima": weighed(lambda s: xp.max(s, axis=-1), sums),
        "rows of sums": weighed(rows, lambda e: xp.sum(e, axis=-1)),
        "columns of sums": weighed(rows, lambda e: xp.sum(e, axis=0, keepdims=True)),
        "sums turned": weighed(rows, lambda e: sums(e).T),
        "all": weighed(xp.max, xp.sum),
        "scaled after": lambda q, k, v: (q @ k.T - rows(q @ k.T * 2.0)) @ v,
        "spread": spread,
        "shared": shared,
        "nothing": lambda q, k, v: functional.softmax(q @ k.T * 0.0, -1) @ v,
        "of one more axis": lambda q, k, v: functional.softmax(
            (q @ k.T) * xp.asarray([[[0.5]]]), -1
        ) @ v[None],
    }  # fmt: skip
    for f in others.values():
        told_apart(lambda q, k, v, g, f=f: (f(q, k, v),), q, k, v, g)
        told_apart(
            lambda q, k, v, g, f=f: ft.vjp(f, q, k, v)[1](xp.ones_like(f(q, k, v)) * g[None, 0, 0]),
            q, k, v, g,
        )  # fmt: skip
    for name in ("rows of maxima", "rows of sums", "columns of sums", "sums turned", "all"):
        _, found = told_apart(lambda q, k, v, g, f=others[name]: (f(q, k, v),), q, k, v, g)
        assert "exp" in found, name


def test_compiled_attention_is_the_eager_one():
    """At a size that is worth it: with its gradient, and in a loop over layers."""
    made = np.random.default_rng(4)
    q, k, v, g = (xp.asarray(made.normal(size=(8, 300, 16)).astype("float32")) for _ in range(4))
    shown = xp.asarray(made.random((300, 300)) < 0.5)

    def f(q, k, v):
        s = xp.where(shown, q @ k.mT * 0.25, -1e9)
        return functional.softmax(s, -1) @ v

    def layers(x, ws):
        return ft.scan(lambda x, w: (x + f(x @ w, x, x), None), x, ws)[0]

    ws = xp.asarray(made.normal(size=(2, 16, 16)).astype("float32")) * 0.1
    for fun, args in (
        (f, (q, k, v)),
        (lambda *a: ft.vjp(f, *a[:3])[1](a[3]), (q, k, v, g)),
        (layers, (q, ws)),
        (lambda x, ws: ft.grad(lambda x: xp.sum(layers(x, ws) * g))(x), (q, ws)),
    ):
        found, expected = ft.jit(fun)(*args), fun(*args)
        for x, y in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-4, atol=2e-5)


def test_compiled_halves_keep_no_weights():
    """A gradient around a compiled function, and one of a loop over layers."""
    made = np.random.default_rng(4)
    x = xp.asarray(made.normal(size=(4, 500, 8)).astype("float32"))

    def f(x):
        return xp.sum(functional.softmax(x @ x.mT, -1) @ x)

    def layers(x):
        def layer(x, _):
            return x + functional.softmax(x @ x.mT * 0.1, -1) @ x, None

        return xp.sum(ft.scan(layer, x, None, length=3)[0])

    told = why_not_fused(ft.make_graph(layers)(x))
    assert not any("Python goes through" in line for line in told)
    for plain in (f, layers):
        fun = ft.jit(plain)
        np.testing.assert_allclose(ft.grad(fun)(x), ft.grad(plain)(x), rtol=2e-4, atol=2e-4)
        with ft.device.memory_scope() as told:
            ft.grad(fun)(x)
        assert told.peak < 4 * 500 * 500 * 4
