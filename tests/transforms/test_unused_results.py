"""What nothing used has no cotangent: a singular derivative of it is not to be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp

Pair = tuple[Any, Any]

X = xp.asarray([0.0, 1.0, 4.0])
W = xp.asarray([1.0, -2.0, 0.5])


def singular(x: Any) -> Pair:
    """Derivatives of the first result are infinite at 0."""
    return xp.sqrt(x) + 1 / (x + (x == 0)), xp.sin(x)


def step(c: Pair, x: Any) -> Pair:
    """What the first of the carry gives in the next step is singular too."""
    return xp.sqrt(c[0] * x) + xp.sqrt(x), xp.sin(c[1]) * xp.cos(x)


def with_push(fun: Callable[[Any], Pair]) -> Callable[[Any], Pair]:
    own = ft.custom_jvp(fun)
    own.defjvp(lambda primals, tangents: ft.jvp(fun, primals, tangents))
    return own


def chosen(fun: Callable[[Any], Pair]) -> Callable[[Any], Pair]:
    return lambda x: ft.cond(xp.sum(x) > -1, fun, lambda x: (x, x), x)


def switched(fun: Callable[[Any], Pair]) -> Callable[[Any], Pair]:
    other = lambda x: (x * x, x)  # noqa: E731
    return lambda x: ft.switch(xp.astype(xp.sum(x) > -1, xp.int64), [other, fun, other], x)


KEEPS = ft.checkpoint_policies.everything_saveable

# each is a function that must be differentiated as the plain one is
CALLS: dict[str, Callable[[Callable[[Any], Pair]], Callable[[Any], Pair]]] = {
    "jit": ft.jit,
    "jit of jit": lambda fun: ft.jit(ft.jit(fun)),
    "checkpoint": ft.checkpoint,
    "checkpoint that keeps": lambda fun: ft.checkpoint(fun, policy=KEEPS),
    "jit of checkpoint": lambda fun: ft.jit(ft.checkpoint(fun)),
    "custom_jvp": with_push,
    "jit of custom_jvp": lambda fun: ft.jit(with_push(fun)),
    "cond": lambda fun: ft.jit(chosen(fun)),
    "switch": lambda fun: ft.jit(switched(fun)),
    "cond in cond": lambda fun: ft.jit(chosen(chosen(fun))),
    "map": lambda fun: ft.jit(lambda x: ft.map(fun, x)),
    "map of cond": lambda fun: ft.jit(lambda x: ft.map(chosen(fun), x)),
    "rows of a scan": lambda fun: ft.jit(lambda x: ft.scan(lambda c, t: (c, fun(t)), 0.0, x)[1]),
}


def steps(body: Callable[[Pair, Any], Pair], x: Any) -> Pair:
    c = (xp.ones(3), x)
    for _ in range(3):
        c = body(c, x)
    return c


# each runs a body three times
LOOPS: dict[str, Callable[[Callable[[Pair, Any], Pair], Any], Pair]] = {
    "scan": lambda body, x: ft.scan(
        lambda c, _: (body(c, x), None), (xp.ones(3), x), None, length=3
    )[0],
    "scan of rows": lambda body, x: ft.scan(
        lambda c, t: (body(c, t), None), (xp.ones(3), x), xp.stack([x, x, x])
    )[0],
    "fori_loop": lambda body, x: ft.fori_loop(0, 3, lambda _, c: body(c, x), (xp.ones(3), x)),
    "while_loop": lambda body, x: ft.while_loop(
        lambda c: c[2] < 3, lambda c: (*body(c[:2], x), c[2] + 1), (xp.ones(3), x, 0)
    )[:2],
    "checkpoint in a scan": lambda body, x: ft.scan(
        ft.checkpoint(lambda c, _: (body(c, x), None)), (xp.ones(3), x), None, length=3
    )[0],
    "cond in a scan": lambda body, x: ft.scan(
        lambda c, _: (ft.cond(xp.sum(x) > -1, body, lambda c, _: c, c, x), None),
        (xp.ones(3), x), None, length=3,
    )[0],
    "scan in a scan": lambda body, x: ft.scan(
        lambda c, _: (ft.scan(lambda c, _: (body(c, x), None), c, None, length=1)[0], None),
        (xp.ones(3), x), None, length=3,
    )[0],
}  # fmt: skip


def derivatives(fun: Callable[[Any], Pair]) -> list[Any]:
    """Gradients of the second result: one to three times, of lanes, and compiled."""
    value = lambda x: xp.sum(fun(x)[1] * W)  # noqa: E731
    first = ft.grad(value)
    second = ft.grad(lambda x: xp.sum(first(x) * W))
    third = ft.grad(lambda x: xp.sum(second(x) * W))
    lanes = ft.vmap(first)(xp.stack([X, X + 1]))
    return [first(X), second(X), third(X), ft.jit(first)(X), ft.jit(second)(X), lanes]


def same(found: list[Any], wanted: list[Any]) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert np.isfinite(np.asarray(b)).all()
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    same(derivatives(CALLS[name](singular)), derivatives(singular))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    loop = LOOPS[name]
    same(derivatives(ft.jit(lambda x: loop(step, x))), derivatives(lambda x: steps(step, x)))


# steps whose derivatives are infinite where they are not used, or not of what is differentiated
UNEVEN: dict[str, Callable[[Pair, Any], Pair]] = {
    "the last one stays": lambda c, t: (xp.sqrt(t), xp.sin(c[1]) * xp.cos(t)),
    "each one later": lambda c, t: (xp.sqrt(c[1]), xp.sqrt(t)),
    "from a number": lambda c, t: (xp.sqrt(c[0]) + t, c[1] * xp.sin(t)),
    "by turns": lambda c, t: (c[1] * t, xp.sqrt(c[0] + 1) + xp.sqrt(t)),
}
COUNTED: dict[str, Callable[[Callable[[Pair, Any], Pair], Any], Pair]] = {
    "scan": lambda body, x: ft.scan(lambda c, t: (body(c, t), None), (0.0, x[1]), x)[0],
    "scan from the end": lambda body, x: ft.scan(
        lambda c, t: (body(c, t), c), (0.0, x[1]), x[::-1], reverse=True
    )[0],
    "fori_loop": lambda body, x: ft.fori_loop(0, 3, lambda k, c: body(c, x[k]), (0.0, x[1])),
    "while_loop": lambda body, x: ft.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, body(s[1], x[s[0]])), (0, (0.0, x[1]))
    )[1],
    "scan of lanes": lambda body, x: ft.vmap(
        lambda x: ft.scan(lambda c, t: (body(c, t), None), (0.0, x[1]), x)[0]
    )(x[None]),
    "while_loop of lanes": lambda body, x: ft.vmap(
        lambda x: ft.while_loop(
            lambda s: s[0] < 3 + 0 * xp.sum(x),
            lambda s: (s[0] + 1, body(s[1], x[s[0]])), (0, (0.0, x[1])),
        )[1]
    )(x[None]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "loop"),
    [
        pytest.param(name, loop, marks=[] if (k + n) % 4 == 3 else pytest.mark.slow)
        for k, name in enumerate(UNEVEN)
        for n, loop in enumerate(COUNTED)
    ],
)
def test_steps_that_differ(name: str, loop: str) -> None:
    """What a step has no cotangent of, or no tangent, meets nothing infinite in it."""
    body = UNEVEN[name]

    def plain(x: Any) -> Pair:
        c: Pair = (0.0, x[1])
        for t in x:
            c = body(c, t)
        return c

    x = X + 1.0 if name == "from a number" else X
    for k in (0, 1):
        wanted = lambda x, k=k: xp.sum(plain(x)[k])  # noqa: E731
        found = lambda x, k=k: xp.sum(COUNTED[loop](body, x)[k])  # noqa: E731
        slopes = np.asarray(ft.grad(wanted)(x))
        for way in (ft.grad(ft.jit(found)), ft.jit(ft.grad(found))):
            np.testing.assert_allclose(np.asarray(way(x)), slopes, rtol=1e-12)
        t = xp.ones(3) * (x > 0)
        np.testing.assert_allclose(
            np.asarray(ft.jvp(ft.jit(found), (x + 1.0,), (t,))[1]),
            np.asarray(ft.jvp(wanted, (x + 1.0,), (t,))[1]), rtol=1e-12,
        )  # fmt: skip
        curves = [ft.grad(lambda x, f=f: xp.sum(ft.grad(f)(x)))(x + 1.0) for f in (wanted, found)]
        np.testing.assert_allclose(np.asarray(curves[1]), np.asarray(curves[0]), rtol=1e-12)


LINES: dict[str, Callable[[Callable[[Any], Any], int, Any], Any]] = {
    "scan": lambda body, n, c: ft.scan(lambda c, _: (body(c), None), c, length=n)[0],
    "while_loop": lambda body, n, c: ft.while_loop(
        lambda s: s[0] < n, lambda s: (s[0] + 1, body(s[1])), (0, c)
    )[1],
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("loop", LINES)
def test_lines_of_delay(loop: str) -> None:
    """However long a value waits in the carry, it has no cotangent where none came."""
    waits, n = 7, 9

    def plain(body: Any, n: int, c: Any) -> Any:
        for _ in range(n):
            c = body(c)
        return c

    def last(run: Any, k: int) -> Any:
        def fun(x: Any) -> Any:
            return run(lambda c: (c[0] * x, xp.sqrt(c[0] - 1), *c[1:-1]), n, (x,) * waits)[k]

        return fun

    for k in range(waits):
        slopes = [ft.grad(last(run, k))(xp.asarray(1.0)) for run in (plain, LINES[loop])]
        found = ft.jit(ft.grad(last(LINES[loop], k)))(xp.asarray(1.0))
        assert str(float(found)) == str(float(slopes[0])) == str(float(slopes[1]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_came_is_told_apart() -> None:
    """Cotangents of either result, of both, and of neither, by one compiled call."""
    own = ft.jit(singular)
    x = xp.asarray([1.0, 4.0])
    for weights in [(1.0, None), (None, 1.0), (2.0, 3.0), (None, None)]:

        def value(x: Any, fun: Any, weights: Any = weights) -> Any:
            pairs = zip(weights, fun(x), strict=True)
            return sum([w * xp.sum(y) for w, y in pairs if w is not None], 0.0 * xp.sum(x))

        wanted = ft.grad(lambda x: value(x, singular))(x)
        np.testing.assert_allclose(
            np.asarray(ft.grad(lambda x: value(x, own))(x)), np.asarray(wanted), rtol=1e-12
        )


# what else is done to a gradient
AROUND: list[Callable[[Any], Any]] = [
    lambda f: f,
    ft.jit,
    lambda f: lambda x: ft.vmap(f)(xp.stack([x, x]))[0],
    lambda f: ft.grad(lambda x: xp.sum(f(x) * x)),
]

LENGTHS: dict[str, Callable[[Any], Pair]] = {
    "singular": singular,
    "linear": lambda x: (x * 2, xp.sum(x)),  # nothing is kept that has the length
    "longer": lambda x: (xp.concat([x, x, xp.ones(1)]), xp.sum(x) * 2),
    "two axes": lambda x: (x[:, None] + x, xp.mean(x * x)),
    "cond": chosen(lambda x: (x * 2, xp.sin(x))),
    "scan": lambda x: ft.scan(lambda c, t: (c + t, xp.sqrt(t)), 0.0, x)[::-1],
    "rows": lambda x: ft.scan(lambda c, t: (c, (t * 2, xp.sin(t))), 0.0, x)[1],
    "while": lambda x: ft.while_loop(
        lambda c: c[2] < 3, lambda c: (c[0] * 2, xp.sin(c[1]), c[2] + 1), (x, x, 0)
    )[:2],
    "checkpoint": ft.checkpoint(lambda x: (x * 2, xp.sum(xp.sin(x))), policy=KEEPS),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_any_length(name: str, dynamic: bool) -> None:
    """Where sizes are open, also where no other operand of the way back has them."""
    fun = LENGTHS[name]
    own = ft.jit(fun, dynamic=dynamic)
    for around in AROUND:
        found = around(ft.grad(lambda x: xp.sum(own(x)[1])))
        wanted = around(ft.grad(lambda x: xp.sum(fun(x)[1])))
        for n in (2, 3, 5, 1, 7):
            x = xp.arange(float(n))
            np.testing.assert_allclose(
                np.asarray(found(x)), np.asarray(wanted(x)), rtol=1e-12, atol=1e-14
            )


def test_a_rule_may_make_something_of_nothing() -> None:
    """What bwd gives need not depend on the cotangent, and is no zero where it does not."""
    own = ft.custom_vjp(lambda x, y: (x * y, y))
    own.defvjp(lambda x, y: (own(x, y), (x, y)), lambda kept, ct: (kept[0], ct[0]))
    for call in (own, ft.jit(own), ft.checkpoint(own), ft.jit(ft.checkpoint(own))):
        for k in (0, 1):
            value = lambda x, y, k=k, call=call: xp.sum(call(x, y)[k])  # noqa: E731
            for f in (ft.grad(value), ft.jit(ft.grad(value)), ft.grad(ft.jit(value))):
                np.testing.assert_array_equal(np.asarray(f(X, W)), np.asarray(X))


SEVERAL: dict[str, Callable[[Any], Any]] = {
    "eig": xp.linalg.eig,
    "eigh": xp.linalg.eigh,
    "lstsq": lambda a: xp.linalg.lstsq(a, xp.cos(xp.arange(float(a.shape[0]))) + 0 * a[:, 0]),
    "lu": xp.linalg.lu,
    "qr": xp.linalg.qr,
    "qr, complete": lambda a: xp.linalg.qr(a, mode="complete"),
    "slogdet": xp.linalg.slogdet,
    "svd": lambda a: xp.linalg.svd(a, full_matrices=False),
}


@pytest.mark.parametrize("unit", [0.0, 1j])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("name", SEVERAL)
def test_parts_of_decompositions(name: str, shape: tuple[int, int], unit: complex) -> None:
    """Rules that are told what nothing used give what they give for zeros there."""
    if shape != (4, 4) and name in ("eig", "eigh", "slogdet"):
        return
    rng = np.random.default_rng(3)
    a = rng.normal(size=shape) + unit * rng.normal(size=shape) if unit else rng.normal(size=shape)
    x = xp.asarray(a + a.conj().T if name == "eigh" else a)
    out, pull = ft.vjp(lambda x: tuple(SEVERAL[name](x)), x)
    parts = [k for k, o in enumerate(out) if o.dtype.kind in "fc" and o.size]
    weights = [xp.asarray(rng.normal(size=o.shape)) for o in out]
    for k in parts:

        def part(x: Any, k: int = k) -> Any:
            y = SEVERAL[name](x)[k]
            return xp.sum((xp.real(y) + xp.imag(y) if y.dtype.kind == "c" else y) * weights[k])

        whole = [
            ft.grad(lambda o, w=w: xp.sum(o * w))(o) if o.dtype.kind == "f"
            else ft.grad(lambda o, w=w: xp.sum((xp.real(o) + xp.imag(o)) * w))(o)
            if o.dtype.kind == "c" else xp.zeros(o.shape, dtype=o.dtype)
            for o, w in zip(out, weights, strict=True)
        ]  # fmt: skip
        cts = tuple([c if j == k else 0 * c for j, c in enumerate(whole)])
        (expected,) = pull(cts)
        for found in (ft.grad(part)(x), ft.jit(ft.grad(part))(x)):
            np.testing.assert_allclose(
                np.asarray(found), np.asarray(expected), rtol=1e-9, atol=1e-10
            )
