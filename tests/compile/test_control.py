"""Loops and branches as parts of programs: eager's bits, and no Python between their steps."""

import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.array import special
from funct.compile import why_not_fused
from funct.compile.native import native
from funct.compile.steps.walker import HEAD
from funct.device import host
from funct.transforms.control.staged import Staged
from tests import laws

X = xp.asarray([0.3, -0.7, 1.2])
W = xp.asarray(np.linspace(-0.4, 0.5, 9).reshape(3, 3))


def interrupted(call: Callable[[], Any]) -> None:
    """The call, which would not end, hears a signal's handler."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        signal.signal(signal.SIGALRM, before)


def newton(x: Any) -> Any:
    """Until no lane moves."""
    step = lambda x: x - (x * xp.cos(x) - x * x + 1) / (xp.cos(x) - x * xp.sin(x) - 2 * x)  # noqa: E731
    far = lambda x: xp.any(xp.abs(x * xp.cos(x) - x * x + 1) > 1e-9)  # noqa: E731
    return ft.while_loop(far, step, xp.abs(x) + 0.5)


def swapped(x: Any) -> Any:
    """Carries that change places, stay, or are one value twice; some steps and none."""

    def body(s: Any) -> Any:
        a, b, c, _, i = s
        return b, a + 0.5, c, b, i + 1

    first = ft.while_loop(lambda s: s[4] < 7, body, (x, x * 2.0, x - 1.0, x, 0))
    none = ft.while_loop(lambda s: s[4] < 0, body, (x, x * 2.0, x - 1.0, x, 0))
    return first, none


def carried_matrices(x: Any) -> Any:
    """Products in the body, of what is carried and what is not."""

    def body(s: Any) -> Any:
        m, h, i = s
        return m @ W * 0.5 + 0.1, xp.tanh(h @ m.mT) + x, i + 1

    return ft.while_loop(lambda s: s[2] < 9, body, (W + 0.2, xp.stack([x, -x]), 0))


def chosen(x: Any) -> Any:
    """Branches in a loop of known length, forwards and backwards."""

    def step(c: Any, v: Any) -> Any:
        c = ft.cond(xp.sum(c) > 1.0, lambda c: xp.exp(-c) * v, lambda c: c + 0.4, c)
        k = xp.astype(xp.abs(v) * 4.0, xp.int32)
        c = ft.switch(k, [lambda c: c, xp.sin, lambda c: c * c], c)
        return c, c[0]

    xs = xp.linspace(-1.0, 1.0, 300)
    return ft.scan(step, x, xs), ft.scan(step, x, xs, reverse=True)


def nested(x: Any) -> Any:
    """A while in a scan in a while, which reads what the outer ones carry."""

    def outer(s: Any) -> Any:
        a, i = s

        def middle(c: Any, v: Any) -> Any:
            halved = ft.while_loop(lambda z: xp.max(xp.abs(z)) > 0.9, lambda z: z * 0.5 - 0.01, c)
            return halved + v * xp.sin(a) + xp.astype(i, xp.float64) * 0.1, halved

        c, ys = ft.scan(middle, a, xp.stack([a, a * 0.5, -a, a + 0.3]))
        return c + xp.sum(ys, axis=0), i + 1

    return ft.while_loop(lambda s: s[1] < 6, outer, (x, 0))


def counted(x: Any) -> Any:
    """fori_loop with bounds that are values, and known ones."""
    n = xp.astype(xp.abs(xp.sum(x)) * 9.0, xp.int64)
    known = ft.fori_loop(0, 700, lambda i, c: c * 0.99 + xp.astype(i, xp.float64) * x, x)
    return ft.fori_loop(2, n, lambda i, c: xp.sin(c) * x + i, x), known


def generated(x: Any) -> Any:
    """Integers, flags and several dtypes are carried."""

    def body(s: Any) -> Any:
        k, odd, y = s
        k = k ^ (k << 13)
        k = k ^ (k >> 7)
        return k, odd | (k < 0), y + xp.astype(k & 7, xp.float32)

    start = (xp.asarray(88172645463325252), xp.asarray(False), xp.astype(x, xp.float32))
    return ft.while_loop(lambda s: (s[0] & 1023) != 5, body, start)


def indexed(x: Any) -> Any:
    """Elements, rows and updates at indices that are carried."""
    table = xp.reshape(xp.linspace(-1.0, 1.0, 60), (4, 5, 3))

    def body(i: Any, c: Any) -> Any:
        y, at, sums = c
        y = y * 0.5 + table[at, i % 5] + table[2, at % 3] + xp.take(y, at % 3 - 1) * 0.1
        sums = sums.at[at].set(xp.sum(y)).at[-1].add(y[at % 3])
        return y, (at * 5 + i) % 4, sums

    return ft.fori_loop(0, 400, body, (x, 1, xp.zeros(4)))


def single(x: Any) -> Any:
    """Numbers alone are carried: their loop is one kernel, forwards, backwards, from no step on."""
    a, b = x[0], x[1:2]

    def body(s: Any) -> Any:
        y, z, i, odd = s
        return y * 0.9 + z * a, z - y * b[0], i + 1, odd ^ (y > z)

    start = (a, x[2], 0, a > 0)
    some = [ft.while_loop(lambda s, n=n: s[2] < n, body, start) for n in (0, 1, 8, 65)]
    step = lambda c, v: (c * 0.5 + v[1] - v[0], (c > v[2]) & (v[0] > c))  # noqa: E731
    xs = xp.reshape(xp.linspace(-1.0, 1.0, 6000), (2000, 3))
    return some, ft.scan(step, a, xs), ft.scan(step, a, xs, reverse=True)


ONE = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log",
    "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh",
)  # fmt: skip
TWO = ("atan2", "floor_divide", "fmod", "hypot", "logaddexp", "pow", "remainder")
EXACT = ("floor_divide", "fmod", "remainder")
LOOPS = [newton, swapped, carried_matrices, chosen, nested, counted, generated, indexed, single]
named = pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__)


@pytest.fixture
def native_only(monkeypatch: Any) -> None:
    """Python compiles no body, and so takes no step."""

    def fail(self: Any, graph: Any) -> Any:
        raise AssertionError(f"{self.name} goes through its steps in Python")

    monkeypatch.setattr(Staged, "compiled", fail)


@named
@pytest.mark.usefixtures("native_only")
def test_values_are_those_of_eager_execution(loop: Any) -> None:
    """Bit for bit where all ops are exact; functions, sums and products within their ulps."""
    expected = loop(X)
    f = ft.jit(loop)
    for _ in range(2):
        if loop in (generated, single):
            laws.same(f(X), expected)
        else:
            laws.close(f(X), expected, 1e-12, 1e-12)


def _total(tree: Any) -> Any:
    return sum([xp.sum(v * v) for v in ft.tree.leaves(tree) if v.dtype.kind == "f"])


@pytest.mark.parametrize("loop", [f for f in LOOPS if f is not generated], ids=lambda f: f.__name__)
def test_derivatives_and_batches(loop: Any) -> None:
    """Reverse mode, forward mode and lanes whose tests and choices differ."""
    f = lambda x: _total(loop(x))  # noqa: E731
    laws.close(ft.jit(ft.grad(f))(X), ft.grad(f)(X), 1e-9, 1e-9)
    laws.close(ft.jit(ft.jacfwd(f))(X), ft.grad(f)(X), 1e-8, 1e-8)
    lanes = xp.stack([X, X * 0.5, X + 0.4])
    expected = [loop(lanes[k]) for k in range(3)]
    found = ft.jit(ft.vmap(loop))(lanes)
    laws.close(found, ft.tree.map(lambda *xs: xp.stack(xs), *expected), 1e-12, 1e-12)


@pytest.mark.usefixtures("native_only")
def test_a_long_loop_is_reversed_without_python_steps() -> None:
    """Its trail is made of stretches that are programs."""

    def looped(x: Any) -> Any:
        body = lambda s: (s[0] + 0.01 * xp.sin(s[0] * x), s[1] + 1)  # noqa: E731
        return ft.while_loop(lambda s: s[1] < 1000, body, (x, 0))[0]

    def scanned(x: Any) -> Any:
        body = lambda c, _: (c + 0.01 * xp.sin(c * x), None)  # noqa: E731
        return ft.scan(body, x, None, length=1000)[0]

    x = xp.asarray(0.7)
    expected = float(ft.jit(ft.grad(scanned))(x))
    np.testing.assert_allclose(float(ft.jit(ft.grad(looped))(x)), expected, rtol=1e-12)
    second = ft.jit(ft.grad(ft.grad(looped)))(x)
    np.testing.assert_allclose(float(second), float(ft.jit(ft.grad(ft.grad(scanned)))(x)), 1e-9)


def test_loops_are_part_of_the_program_around_them() -> None:
    """In a graph that is machine code a loop is a call among others."""
    x = xp.asarray(np.random.default_rng(0).normal(size=(200, 300)))

    def f(x: Any) -> Any:
        y = xp.exp(x * 0.1) + 1.0
        z = ft.while_loop(lambda z: xp.max(z) > 1.0, lambda z: z * 0.5, y)
        return ft.cond(xp.sum(z) > 0.0, lambda z: z - 1.0, lambda z: z + 1.0, z) * 2.0

    from funct.compile.native import native

    made = native(ft.make_graph(f)(x))
    assert len(made.programs) == 1
    np.testing.assert_allclose(made.run(x.data)[0], np.asarray(f(x)), rtol=1e-14)


def test_symbolic_lengths() -> None:
    """One loop, captured once, for arrays of any length."""
    f = ft.jit(lambda x: ft.scan(lambda c, v: (c * 0.5 + v, c), xp.zeros(2), x))
    for n in (400, 500, 600, 1100):
        x = xp.asarray(np.random.default_rng(n).normal(size=(n, 2)))
        expected = ft.scan(lambda c, v: (c * 0.5 + v, c), xp.zeros(2), x)
        laws.same(f(x), expected)


@pytest.mark.parametrize("kind", ["while", "scan", "nested"])
def test_an_index_out_of_bounds_is_eagers_error(kind: str) -> None:
    """The same exception, with the user's line, and the next call works."""

    def look(x: Any, i: Any) -> Any:
        return x * 0.9 + x[i]  # here

    def f(x: Any, n: Any) -> Any:
        if kind == "scan":
            return ft.scan(lambda c, i: (look(c, i * n), None), x, xp.arange(2000))[0]
        body = lambda s: (look(s[0], s[1]), s[1] + 1)  # noqa: E731
        if kind == "while":
            return ft.while_loop(lambda s: s[1] < n, body, (x, 0))[0]
        inner = lambda c, _: (ft.while_loop(lambda s: s[1] < n, body, (c, 0))[0], None)  # noqa: E731
        return ft.scan(inner, x, None, length=1000)[0]

    g = ft.jit(f)
    good, bad = (xp.asarray(n) for n in ((0, 1) if kind == "scan" else (3, 5)))
    laws.same(g(X, good), f(X, good))
    for run in (g, f):
        with pytest.raises(ft.errors.IndexOutOfBoundsError, match="index 3 is out of bounds") as at:
            run(X, bad)
        assert "# here" in str(at.value)
    laws.same(g(X, good), f(X, good))


@pytest.mark.skipif(
    sys.platform == "win32" or threading.current_thread() is not threading.main_thread(),
    reason="interrupts by a timer of POSIX, in the main thread",
)
def test_endless_loops_can_be_interrupted() -> None:
    """A signal's handler is heard, and the next call works."""
    f = ft.jit(lambda x, n: ft.while_loop(lambda s: s[1] < n, lambda s: (s[0], s[1] + 1), (x, 0)))
    few, endless = xp.asarray(3), xp.asarray(1 << 62)
    assert int(f(X, few)[1]) == 3
    interrupted(lambda: f(X, endless))
    assert int(f(X, few)[1]) == 3


@pytest.mark.in_turn
@pytest.mark.parametrize("name", [*ONE, *TWO])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.usefixtures("native_only")
def test_functions(name: str, dtype: str) -> None:
    """One element, few, views and broadcasts: within the ulps of the functions."""
    two = name in TWO
    fun = getattr(xp, name)

    def step(x: Any) -> Any:
        y = xp.abs(x) + (1.5 if name == "acosh" else 0.25)
        y = y * 0.5 if name in ("acos", "asin", "atanh") else y
        return fun(y, y[:1] + 0.5) if two else fun(y[::-1])

    def f(x: Any) -> Any:
        body = lambda s: (step(s[0] * 0.9 + 0.01) * 0.1, s[1] + 1)  # noqa: E731
        return ft.while_loop(lambda s: s[1] < 3, body, (x, 0))[0]

    for n in (1, 2, 7, 40):
        x = xp.asarray(np.linspace(-0.9, 0.9, n).astype(dtype))
        if name in EXACT:
            laws.same(ft.jit(f)(x), f(x))
        else:
            ulps = 64 * float(np.finfo(dtype).eps)
            np.testing.assert_allclose(np.asarray(ft.jit(f)(x)), np.asarray(f(x)), ulps, ulps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_of_floats(dtype: str) -> None:
    """All pairs of signs, zeros, infinities and NaN: NumPy's bits."""
    some = np.array([0.0, -0.0, 1.0, -1.0, 0.1, -0.1, 7.5, -7.5, 1e30, np.inf, -np.inf, np.nan])
    x, y = (xp.asarray(v.ravel().astype(dtype)) for v in np.meshgrid(some, some))
    with np.errstate(all="ignore"):
        for fun in (xp.floor_divide, xp.remainder, xp.fmod):
            body = lambda s, fun=fun: (s[0], s[1], fun(s[0], s[1]), s[3] + 1)  # noqa: E731
            f = ft.jit(lambda x, y, b=body: ft.while_loop(lambda s: s[3] < 2, b, (x, y, x, 0))[2])
            laws.same(f(x, y), fun(x, y))


@pytest.mark.parametrize("shape", [(5,), (300,), (4, 9), (3, 200), (2, 3, 130)])
@pytest.mark.usefixtures("native_only")
def test_sums(shape: tuple[int, ...]) -> None:
    """Of rows and of everything."""

    def f(x: Any) -> Any:
        def body(s: Any) -> Any:
            x, i = s
            rows = xp.sum(x * 1.01, axis=-1, keepdims=True)
            return x * 0.5 + rows * 1e-3 + xp.sum(x) * 1e-4 - xp.mean(xp.square(x)), i + 1

        return ft.while_loop(lambda s: s[1] < 3, body, (x, 0))[0]

    for dtype in ("float32", "float64"):
        x = xp.asarray(np.random.default_rng(0).normal(size=shape).astype(dtype))
        eps = 16 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(np.asarray(ft.jit(f)(x)), np.asarray(f(x)), eps, eps)


def test_what_cannot_be_a_program_raises_what_eager_raises() -> None:
    """A callback in a body; integers divided by zero, which NumPy defines."""

    def fail(x: Any) -> Any:
        if np.max(x) > 2.0:
            raise ValueError("far")
        return x

    kind = ft.ShapeDtype((3,), np.dtype(np.float64))

    def called(x: Any) -> Any:
        body = lambda x: ft.pure_callback(fail, kind, x * 1.5)  # noqa: E731
        loop = lambda x: ft.while_loop(lambda x: xp.max(x) < 9.0, body, x)  # noqa: E731
        return ft.cond(xp.max(x) > 0.0, loop, lambda x: x, x)

    for run in (called, ft.jit(called), ft.jit(lambda x: ft.jit(called)(x) + 1.0)):
        with pytest.raises(ValueError, match=r"^far") as at:
            run(X)
        assert at.type is ValueError

    def divided(s: Any) -> Any:
        body = lambda s: (s[0] // (s[2] - 2), s[0] % (s[2] - 2), s[2] + 1)  # noqa: E731
        return ft.while_loop(lambda s: s[2] < 4, body, s)

    n = (xp.asarray([7, -7, -(2**63)]), xp.asarray([0, 0, 0]), 0)
    with np.errstate(all="ignore"):
        laws.same(ft.jit(divided)(n), divided(n))


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (lambda c: c * 0.5, "its steps are machine code, within the same program"),
        (lambda c: c[xp.astype(c[0], "int64")] + c, "within the same program"),
        (lambda c: special.airy(c)[0], "Python goes through it: airy_ai: "),
        (
            lambda c: ft.cond(c[0] > 0, lambda x: special.airy(x)[0], xp.sin, c),
            "Python goes through it: Python goes",
        ),
    ],
)
def test_why_a_loop_is_by_itself(step: Any, why: str) -> None:
    """What people are told of a loop is what is done with it."""
    graph = ft.make_graph(lambda x: ft.while_loop(lambda c: xp.max(c) > 0.1, step, x))(X)
    (told,) = [line for line in why_not_fused(graph) if line.startswith("while_loop")]
    assert why in told


def test_few_tasks_of_a_step_wake_no_threads() -> None:
    """They are done one after the other, with the values that they have side by side."""
    x = xp.asarray(np.random.default_rng(0).normal(size=20_000))
    run = lambda x: ft.scan(lambda c, _: (xp.tanh(c) * 0.5 + x, xp.sum(c)), x, None, length=9)  # noqa: E731
    graph = ft.make_graph(lambda x: ft.tree.leaves(run(x)))(x)
    made = native(graph)
    (program,) = made.programs
    head = dict(zip(HEAD, program.table.tolist(), strict=False))
    first = len(HEAD) + 3 * head["patches"] + head["controls"]
    tasks = program.table[first : first + 3 * head["steps"]].reshape(-1, 3)[:, 2]
    assert tasks.min() < -1
    for found, expected in zip(made.run(x.data), ft.tree.leaves(run(x)), strict=True):
        np.testing.assert_allclose(found, np.asarray(expected), 1e-13, 1e-13)


def recurrence(x: Any) -> Any:
    """The gradient of a recurrent layer in its weights, which few rows are multiplied by."""
    rows = xp.reshape(xp.sin(xp.arange(40 * 80, dtype=x.dtype)), (40, 80)) * 0.1

    def total(w: Any, b: Any) -> Any:
        def step(h: Any, row: Any) -> tuple[Any, Any]:
            gates = h @ w + row + b
            h = xp.tanh(gates[:, :80]) * xp.exp(gates[:, 80:] * 0.1)
            return h, h

        both = xp.concat([rows, rows], axis=-1)
        return xp.sum(ft.scan(step, xp.ones((22, 80), dtype=x.dtype) * x, both)[1])

    w = xp.reshape(xp.cos(xp.arange(80 * 160, dtype=x.dtype)), (80, 160)) * 0.05
    return ft.grad(total, argnums=(0, 1))(w, w[0])


def test_what_is_the_same_in_each_step_is_made_once() -> None:
    """Weights turned around for a recurrent layer's gradient; what a step keeps is as it lies.
    Tiles of long vectors read weights as they lie.
    """
    x = xp.asarray(0.5)
    lines = ft.jit(recurrence).show(x, form="loops").splitlines()
    turned = [k for k, line in enumerate(lines) if "turned around" in line]
    loops = [k for k, line in enumerate(lines) if line.startswith("# a loop")]
    assert len(turned) == (host().vector_bytes < 64)
    assert len(loops) == 2
    assert all(loops[0] < k < loops[1] for k in turned)
    for found, expected in zip(ft.jit(recurrence)(x), recurrence(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_what_a_step_changes_is_not_made_once() -> None:
    """A table that is the same at first, copied where steps write to it; a loop of no steps."""
    table = xp.arange(400.0)[::-1]

    def steps(x: Any, n: int) -> Any:
        def step(c: Any, k: Any) -> tuple[Any, Any]:
            own = table.at[k].set(c)
            return c + own[k + 1], own[3:6] * c

        return ft.scan(step, x, xp.arange(n))

    for n in (1, 5):
        found = ft.jit(lambda x: steps(x, n))(xp.asarray(2.0))  # noqa: B023  (called at once)
        for a, b in zip(found, steps(xp.asarray(2.0), n), strict=True):
            np.testing.assert_array_equal(a, b)

    def while_loop(x: Any) -> Any:
        turned = xp.reshape(xp.arange(200.0 * 200), (200, 200)).mT / 4e4
        start = xp.ones((2, 200)) * x
        return ft.while_loop(lambda c: xp.sum(c) < 300.0, lambda c: c @ turned, start)

    for x in (0.5, 2.0):
        np.testing.assert_allclose(
            ft.jit(while_loop)(xp.asarray(x)), while_loop(xp.asarray(x)), rtol=1e-12
        )
