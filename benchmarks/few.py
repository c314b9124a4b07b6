"""Compiled programs on few elements, whose ops take less time than calls of NumPy, next to JAX's,
in float32: their calls, and the first of them.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.peers import optional
from benchmarks.timing import minima, table

RNG = np.random.default_rng(0)


def _normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype("float32")


LAYERS = [_normal(*s) for s in ((8, 16), (16,), (16, 4), (4,))]
INPUTS, PLACES, SPEEDS = _normal(6, 8), _normal(16), _normal(16)
QUERIES, KEYS, VALUES = (_normal(8, 16) for _ in range(3))
STATE = [np.abs(_normal(32)) for _ in range(4)]


def programs(ns: Any, transforms: Any, control: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Each row's function and arguments. ns: the namespace; control: where scan is."""
    grad = transforms.grad

    def leapfrog(q: Any, p: Any) -> Any:
        slope = grad(lambda q: ns.sum(q**4 / 4 + ns.cos(q)))
        for _ in range(5):
            p = p - 0.05 * slope(q)
            q = q + 0.1 * p
            p = p - 0.05 * slope(q)
        return q, p

    def attention(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.T / 4.0
        e = ns.exp(s - ns.max(s, axis=-1, keepdims=True))
        return ns.sum((e / ns.sum(e, axis=-1, keepdims=True)) @ v)

    def perceptron(layers: Any, x: Any) -> Any:
        w, b, v, c = layers
        return ns.sum(ns.tanh(ns.tanh(x @ w + b) @ v + c) ** 2)

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + ns.tanh(0.79788 * (x + 0.044715 * x**3)))

    def rosenbrock(x: Any) -> Any:
        return ns.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def quantile(q: Any, y: Any) -> Any:
        return ns.mean(ns.maximum(0.9 * (y - q), -0.1 * (y - q)))

    def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
        m = 0.9 * m + 0.1 * g
        v = 0.99 * v + 0.01 * g * g
        return p - 0.1 * m / (ns.sqrt(v) + 1e-8), m, v

    def running(x: Any) -> Any:
        s = ns.cumulative_sum(x)
        return ns.sum(ns.sin(s)) + ns.sum(ns.sort(x) * s)

    def space(u: Any, a: Any, b: Any) -> Any:
        def step(h: Any, u: Any) -> Any:
            h = a * h + b * u[:, None]
            return h, ns.sum(b * h, axis=-1)

        return ns.sum(control.scan(step, a * 0, u)[1] ** 2)

    def likelihood(s: Any, x: Any) -> Any:
        return ns.sum(x * ns.linalg.solve(s, x)) + ns.linalg.slogdet(s)[1]

    def triangle(s: Any) -> Any:
        return ns.linalg.qr(s)[1] * 2

    def entropy(x: Any, y: Any) -> Any:
        m = ns.max(x, axis=1, keepdims=True)
        all_ = ns.log(ns.sum(ns.exp(x - m), axis=1)) + m[:, 0]
        return ns.mean(all_ - ns.take_along_axis(x, y[:, None], axis=1)[:, 0])

    a = ns.asarray
    spread = a(QUERIES[:, :3].T @ QUERIES[:, :3])
    layers, x, q = [a(w) for w in LAYERS], a(INPUTS), a(PLACES)
    space_args = tuple([a(v[:n, :2]) for v, n in ((QUERIES, 4), (KEYS, 2), (VALUES, 2))])
    heads = a(QUERIES), a(KEYS), a(VALUES)
    return {
        "five leapfrog steps, 16 numbers": (leapfrog, (q, a(SPEEDS))),
        "gradient of attention, 8 x 16": (grad(attention, (0, 1, 2)), heads),
        "gradient of a perceptron, 6 x 8": (grad(perceptron), (layers, x)),
        "its gradients per example": (transforms.vmap(grad(perceptron), (None, 0)), (layers, x)),
        "gradient of gelu, 16": (grad(lambda x: ns.sum(gelu(x))), (q,)),
        "Hessian, Rosenbrock, 16": (transforms.hessian(rosenbrock), (q,)),
        "its product with a vector": (
            lambda x, v: transforms.jvp(grad(rosenbrock), (x,), (v,))[1], (q, a(SPEEDS)),
        ),
        "gradient of a quantile loss, 16": (grad(quantile), (q, a(SPEEDS))),
        "Hessian of sorts and running sums, 16": (transforms.hessian(running), (q,)),
        "gradient of a state space, 4 steps of 2 x 2": (grad(space, (0, 1, 2)), space_args),
        "attention, 8 x 16": (attention, heads),
        "Adam, 32": (adam, tuple([a(v) for v in STATE])),
        "gradient of a likelihood, 3 x 3": (grad(likelihood), (spread, q[:3])),
        "a determinant's logarithm, 3 x 3": (lambda s: ns.linalg.slogdet(s)[1] * 2, (spread,)),
        "R of QR, 3 x 3": (triangle, (spread,)),
        "gradient of cross entropy, 8 x 16": (
            grad(entropy), (a(QUERIES), a(RNG.integers(0, 16, 8))),
        ),
        "three ops, 16": (lambda x: ns.sin(x) * 2 + 1, (q,)),
        "sums of three ops, 16": (lambda x: ns.log(ns.sum(ns.exp(x))), (q,)),
    }  # fmt: skip


def _waiting(jax: Any, fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], object]:
    return lambda: jax.block_until_ready(fun(*args))


def run() -> str:
    """Measure everything; the table."""
    rows: dict[str, dict[str, Callable[[], object]]] = {}
    for label, (fun, args) in programs(xp, ft, ft).items():
        rows[label] = {"funct": partial(ft.jit(fun), *args)}
    jax = optional("jax")
    if jax is not None:
        for label, (fun, args) in programs(jax.numpy, jax, jax.lax).items():
            rows[label]["jax"] = _waiting(jax, jax.jit(fun), args)
    firsts = {n: {k: _once(call) for k, call in c.items()} for n, c in rows.items()}
    calls = {n: minima(c) for n, c in rows.items()}
    title = "programs on few elements"
    return "\n\n".join([table(title, calls), table(f"{title}, first calls", firsts, unit="ms")])


def _once(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3
