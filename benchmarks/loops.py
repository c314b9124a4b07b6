"""Compiled loops and branches next to JAX's, in float64."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.peers import optional
from benchmarks.timing import minima, table

RNG = np.random.default_rng(0)
STEPS = 10_000
WORD = 60
WORDS = RNG.integers(0, 4, (2, WORD))
CELLS, ROWS = RNG.normal(size=(20, 20)) > 0, RNG.normal(size=(50, 20, 8))
SIGNAL, TABLE = RNG.normal(size=(100, 64)), RNG.normal(size=(WORD, WORD))
STATES = RNG.normal(size=(100, 32, 9))
SPECTRUM = np.fft.fft2(RNG.normal(size=(64, 64)))
PLANE = RNG.normal(size=64) * 0.1 + 0.1j * RNG.normal(size=64)
AROUND = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
PLACES, PAIRS = RNG.integers(0, 100_000, STEPS), RNG.integers(0, 5000, (2, STEPS))
WEIGHTS, WORTH = RNG.integers(1, 200, 100), RNG.uniform(1, 9, 100)
W, XS = RNG.normal(size=(8, 8)) * 0.3, RNG.normal(size=(STEPS, 4))

Calls = dict[str, Callable[[], object]]


def programs(
    ns: Any, control: Any, grad: Any
) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Each row's function and arguments. control: where while_loop, scan and cond are."""

    def lorenz(x: Any, y: Any, z: Any) -> Any:
        def body(s: Any) -> Any:
            x, y, z, i = s
            dt = 0.001
            return x + dt * 10 * (y - x), y + dt * (x * (28 - z) - y), z + dt * (x * y - z), i + 1

        return control.while_loop(lambda s: s[3] < STEPS, body, (x, y, z, 0))

    def products(x: Any, w: Any) -> Any:
        body = lambda s: (ns.tanh(w @ s[0]) + 0.01, s[1] + 1)  # noqa: E731
        return control.while_loop(lambda s: s[1] < STEPS, body, (x, 0))

    def newton(x: Any) -> Any:
        f = lambda x: x * ns.cos(x) - x * x + 1  # noqa: E731
        slope = lambda x: ns.cos(x) - x * ns.sin(x) - 2 * x  # noqa: E731
        far = lambda x: ns.any(ns.abs(f(x)) > 1e-10)  # noqa: E731
        return control.while_loop(far, lambda x: x - f(x) / slope(x), x)

    def branches(c: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = control.cond(c[0] > 1, lambda c: c * 0.5 + x, lambda c: c + x * 0.1, c)
            return c, c[0]

        return control.scan(step, c, xs)

    def common(a: Any, b: Any) -> Any:
        def row(i: Any, t: Any) -> Any:
            def cell(j: Any, t: Any) -> Any:
                longer = ns.maximum(t[i - 1, j], t[i, j - 1])
                return t.at[i, j].set(ns.where(a[i - 1] == b[j - 1], t[i - 1, j - 1] + 1, longer))

            return control.fori_loop(1, WORD + 1, cell, t)

        return control.fori_loop(1, WORD + 1, row, ns.zeros((WORD + 1, WORD + 1), dtype=int))

    def mandelbrot(c: Any) -> Any:
        return control.scan(lambda z, _: (z * z + c, None), c, None, length=1000)[0]

    def running(c: Any, xs: Any) -> Any:
        return control.scan(lambda c, x: (ns.cumulative_sum(c * 0.5 + x), c[3]), c, xs)

    def attracted(p: Any, v: Any) -> Any:
        def step(s: Any, _: Any) -> Any:
            p, v = s
            d = p[None] - p[:, None]
            far = ns.sum(d * d, axis=-1) + 0.01
            v = v + 0.01 * ns.sum(d / (far * ns.sqrt(far))[..., None], axis=1)
            return (p + 0.01 * v, v), None

        return control.scan(step, (p, v), None, length=100)[0]

    def in_turn(t: Any) -> Any:
        return control.fori_loop(1, 1000, lambda i, t: t.at[i].set(t[i - 1] * 0.5 + t[i]), t)

    def life(g: Any) -> Any:
        def step(g: Any, _: Any) -> Any:
            around = [ns.roll(ns.where(g, 1, 0), (i, j), axis=(0, 1)) for i, j in AROUND]
            n = sum(around)
            return (n == 3) | (g & (n == 2)), ns.sum(n)

        return control.scan(step, g, None, length=100)

    def nested(x: Any) -> Any:
        def outer(c: Any, rows: Any) -> Any:
            inner = lambda c, row: (ns.sin(c) + row, ns.sum(c))  # noqa: E731
            c, sums = control.scan(inner, c, rows)
            return c * 0.5, ns.sum(sums)

        return control.scan(outer, ns.zeros(8), x)

    def sorts(c: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = ns.sort(c * 0.5 + x)
            return c, c[3]

        return control.scan(step, c, xs)

    def beam(table: Any) -> Any:
        largest = getattr(ns, "top_k", None) or control.top_k

        def step(s: Any, _: Any) -> Any:
            scores, words = s
            best, places = largest(ns.reshape(table[words] + scores[:, None], (-1,)), 4)
            places = ns.asarray(places, dtype=words.dtype)
            return (best, places % WORD), places // WORD

        first = ns.zeros(4), ns.asarray([0, 1, 2, 3])
        return control.scan(step, first, None, length=100)

    def particles(x: Any, u: Any) -> Any:
        def step(x: Any, u: Any) -> Any:
            total = ns.cumulative_sum(ns.exp(-x * x))
            x = x[ns.searchsorted(total, u * total[-1])] + 0.1 * u
            return x, ns.sum(x)

        return control.scan(step, x, u)

    def roots(s: Any, a: Any) -> Any:
        def step(s: Any, _: Any) -> Any:
            r = ns.linalg.qr(ns.concat([s @ a.mT, 0.1 * ns.eye(4)]))[1]
            return r, r[0, 0]

        return control.scan(step, s, None, length=100)

    def kalman(h: Any, ys: Any) -> Any:
        def step(state: Any, y: Any) -> Any:
            x, p = 0.9 * state[0], 0.8 * state[1] + 0.1 * ns.eye(4)
            gain = ns.linalg.solve(h @ p @ h.mT + 0.5 * ns.eye(2), h @ p).mT
            x = x + gain @ (y - h @ x)
            return (x, p - gain @ h @ p), x

        lead = ys.shape[1:-2]
        first = ns.zeros((*lead, 4, 1)), ns.broadcast_to(ns.eye(4), (*lead, 4, 4))
        return control.scan(step, first, ys)

    def visits(t: Any, at: Any) -> Any:
        return control.fori_loop(0, STEPS, lambda i, t: t.at[at[i]].add(1.0), t)

    def relaxed(a: Any, b: Any) -> Any:
        def row(i: Any, x: Any) -> Any:
            return x.at[i].set((b[i] - ns.sum(a[i] * x) + a[i, i] * x[i]) / a[i, i])

        sweep = lambda _, x: control.fori_loop(0, 60, row, x)  # noqa: E731
        return control.fori_loop(0, 10, sweep, b * 0)

    def aligned(x: Any, y: Any) -> Any:
        def row(before: Any, here: Any) -> Any:
            def cell(left: Any, given: Any) -> Any:
                far, above, corner = given
                least = far + ns.minimum(ns.minimum(left, above), corner)
                return least, least

            corners = ns.concat([ns.asarray([ns.inf]), before[:-1]])
            far = ns.abs(here - y)
            return control.scan(cell, ns.asarray(ns.inf), (far, before, corners))[1], None

        return control.scan(row, ns.abs(x[0] - y) * 100, x)[0][-1]

    def packed(weights: Any, values: Any) -> Any:
        places = ns.arange(5001)

        def step(best: Any, item: Any) -> Any:
            weight, value = item
            before = places - weight
            more = ns.where(before >= 0, best[ns.maximum(before, 0)] + value, 0.0)
            return ns.maximum(best, more), None

        return control.scan(step, ns.zeros(5001), (weights, values))[0]

    def filtered(t: Any, xs: Any) -> Any:
        def step(a: Any, x: Any) -> Any:
            far = a[:, :, None] + t
            most = ns.max(far, axis=1)
            return most + ns.log(ns.sum(ns.exp(far - most[:, None]), axis=1)) + x, None

        return control.scan(step, xs[0], xs)[0]

    def flow(h: Any, k: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            u, slope = ns.real(ns.fft.ifft2(h)), ns.real(ns.fft.ifft2(1j * k * h))
            return (h - 0.001 * ns.fft.fft2(u * slope)) / (1 + 1e-4 * k * k), ns.sum(u)

        return control.scan(step, h, None, length=20)

    def joined(a: Any, b: Any) -> Any:
        def join(i: Any, t: Any) -> Any:
            return t.at[a[i]].min(t[b[i]]).at[b[i]].min(t[a[i]])

        return control.fori_loop(0, STEPS, join, ns.arange(5000))

    def variances(t: Any, r: Any) -> Any:
        def step(s: Any, r: Any) -> Any:
            s = t[0] + t[1] * r * r + t[2] * s
            return s, ns.log(s) + r * r / s

        return ns.sum(control.scan(step, ns.asarray(1.0), r)[1])

    def decided(c: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            up = lambda c: ns.tanh(c) - x  # noqa: E731
            c = control.cond(ns.sum(c) > 0, up, lambda c: c * 0.5 + ns.sin(x), c)
            return c, ns.sum(c)

        return ns.sum(control.scan(step, c, xs)[1] ** 2)

    one = ns.asarray(1.0)
    return {
        "gradient of 2000 variances in turn": (
            grad(variances), (ns.asarray([0.1, 0.1, 0.8]), ns.asarray(SIGNAL.reshape(-1)[:2000])),
        ),
        "gradient of 300 decisions, 4 numbers": (
            grad(decided, (0, 1)), (ns.ones(4), ns.asarray(XS[:300])),
        ),
        "10,000 visits of 100,000 places, counted": (
            visits,
            (ns.zeros(100_000), ns.asarray(PLACES)),
        ),
        "knapsack, 100 things, 5000 weights": (packed, (ns.asarray(WEIGHTS), ns.asarray(WORTH))),
        "Gauss-Seidel, 60 rows, 10 sweeps": (
            relaxed,
            (ns.asarray(TABLE + 20 * np.eye(WORD)), ns.asarray(TABLE[0])),
        ),
        "filters over 9 states, 100 steps, 32 series": (
            filtered,
            (ns.asarray(TABLE[:9, :9]), ns.asarray(STATES)),
        ),
        "spectral flow, 20 steps, 64 x 64": (
            flow,
            (ns.asarray(SPECTRUM), ns.asarray(np.fft.fftfreq(64, 1 / 64))),
        ),
        "time warping, 1000 by 100": (
            aligned,
            (ns.linspace(0.0, 9.0, 1000), ns.asarray(SIGNAL[:, 0])),
        ),
        "10,000 pairs of 5,000 sets, joined": (joined, tuple(map(ns.asarray, PAIRS))),
        "particle filter, 100 steps, 64 particles": (
            particles,
            (ns.asarray(SIGNAL[0]), ns.asarray(np.abs(SIGNAL) % 1)),
        ),
        "square-root filter by QR, 100 steps, 4 x 4": (roots, (ns.eye(4), ns.asarray(W[:4, :4]))),
        "Kalman filter, 100 steps, 4 states": (
            kalman,
            (ns.asarray(W[:2, :4]), ns.asarray(SIGNAL[:, :2, None])),
        ),
        "64 Kalman filters, 100 steps, 4 states": (
            kalman,
            (ns.asarray(W[:2, :4]), ns.asarray(STATES[..., :4].reshape(100, 64, 2, 1))),
        ),
        "while, 10,000 steps, 4 numbers": (lorenz, (one, one, one)),
        "while, 10,000 steps, 8 x 8 product": (products, (ns.ones(8), ns.asarray(W))),
        "Newton, 1 number": (newton, (ns.asarray(1.5),)),
        "Newton, 1000 numbers": (newton, (ns.linspace(1.0, 2.0, 1000),)),
        "scan of cond, 10,000 steps, 4 numbers": (branches, (ns.ones(4), ns.asarray(XS))),
        "longest common subsequence, 60 x 60": (common, tuple(map(ns.asarray, WORDS))),
        "64 complex numbers, 1000 steps": (mandelbrot, (ns.asarray(PLANE),)),
        "scan of running sums, 100 steps, 64 numbers": (
            running,
            (ns.zeros(64), ns.asarray(SIGNAL)),
        ),
        "30 bodies that attract each other, 100 steps": (
            attracted,
            (ns.asarray(SIGNAL[:30, :3]), ns.zeros((30, 3))),
        ),
        "map of sums, 100 rows of 100": (
            lambda x: control.map(lambda row: ns.sum(ns.sin(row)), x),
            (ns.reshape(ns.linspace(0.0, 9.0, 10_000), (100, 100)),),
        ),
        "1000 numbers of a table in turn": (in_turn, (ns.linspace(1.0, 2.0, 1000),)),
        "game of life, 100 steps, 20 x 20": (life, (ns.asarray(CELLS),)),
        "scan of sort, 100 steps, 64 numbers": (sorts, (ns.zeros(64), ns.asarray(SIGNAL))),
        "beam search, 100 steps, 4 of 240": (beam, (ns.asarray(TABLE),)),
        "scan of scans, 50 x 20 steps, 8 numbers": (nested, (ns.asarray(ROWS),)),
    }


def _waiting(jax: Any, fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], object]:
    return lambda: jax.block_until_ready(fun(*args))


def run() -> str:
    """Measure everything; the table."""
    rows: dict[str, Calls] = {}
    for label, (fun, args) in programs(xp, ft, ft.grad).items():
        rows[label] = {"funct": partial(ft.jit(fun), *args)}
    jax = optional("jax")
    if jax is not None:
        jax.config.update("jax_enable_x64", True)
        for label, (fun, args) in programs(jax.numpy, jax.lax, jax.grad).items():
            rows[label]["jax"] = _waiting(jax, jax.jit(fun), args)
    return table("loops", {label: minima(c, rounds=8) for label, c in rows.items()})
