"""The compiled workloads, written for funct."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from funct.device.memory import empty_cache
from funct.nn import functional

Run = Callable[[], object]
Tree = Any
f32 = np.float32
forget = empty_cache  # memory of earlier calls


def data(seed: int = 0) -> np.random.Generator:
    """Random numbers, the same for every framework."""
    return np.random.default_rng(seed)


def black_scholes(n: int = 1 << 22) -> Run:
    """Prices of options and their derivatives: elementwise, transcendental."""
    r = data()
    S, K, T = (
        xp.asarray(r.uniform(a, b, n).astype(f32)) for a, b in ((10, 50), (10, 50), (0.1, 2))
    )

    def price(S: Any, K: Any, T: Any) -> Any:
        v, q = 0.3, 0.02
        d1 = (xp.log(S / K) + (q + v * v / 2) * T) / (v * xp.sqrt(T))
        d2 = d1 - v * xp.sqrt(T)

        def cdf(x: Any) -> Any:
            return 0.5 * (1 + xp.erf(x * 0.70710678))

        return S * cdf(d1) - K * xp.exp(-q * T) * cdf(d2)

    f = ft.jit(lambda S, K, T: (price(S, K, T), ft.grad(lambda s: xp.sum(price(s, K, T)))(S)))
    return lambda: f(S, K, T)


def softmax_layernorm(m: int = 4096, n: int = 1024) -> Run:
    """Reductions along rows."""
    x = xp.asarray(data().standard_normal((m, n), dtype=f32))

    @ft.jit
    def f(x: Any) -> Any:
        h = (x - xp.mean(x, axis=-1, keepdims=True)) / xp.sqrt(
            xp.var(x, axis=-1, keepdims=True) + 1e-5
        )
        return functional.softmax(h * 1.7 + 0.3, -1)

    return lambda: f(x)


def _adam(
    loss: Callable[[Tree], Any], p: Tree, rate: Callable[[Any, Any], Any]
) -> Callable[[], object]:
    z = ft.tree.map(xp.zeros_like, p)
    s = [(p, z, z, xp.asarray(f32(0)))]

    @ft.jit
    def step(s: Tree) -> Tree:
        p, m, v, t = s
        l, g = ft.value_and_grad(loss)(p)
        t = t + 1
        m = ft.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = ft.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        p = ft.tree.map(
            lambda p, m, v: rate(p, (m / (1 - 0.9**t)) / (xp.sqrt(v / (1 - 0.999**t)) + 1e-8)),
            p, m, v,
        )  # fmt: skip
        return (p, m, v, t), l

    def run() -> object:
        s[0], l = step(s[0])
        return l

    return run


def mlp_step(sizes: tuple[int, ...] = (784, 512, 512, 10), batch: int = 128) -> Run:
    """A training step of a perceptron with Adam."""
    r = data()
    p = [
        (
            xp.asarray(r.standard_normal((a, b), dtype=f32) * f32((2 / a) ** 0.5)),
            xp.asarray(np.zeros(b, f32)),
        )
        for a, b in pairwise(sizes)
    ]
    x = xp.asarray(r.standard_normal((batch, sizes[0]), dtype=f32))
    y = xp.asarray(r.integers(0, 10, batch))

    def loss(p: Tree) -> Any:
        h = x
        for w, b in p[:-1]:
            h = functional.relu(h @ w + b)
        w, b = p[-1]
        lo = functional.log_softmax(h @ w + b, -1)
        return -xp.mean(xp.take_along_axis(lo, y[:, None], axis=1))

    return _adam(loss, p, lambda p, d: p - 1e-3 * d)


def gpt_params(V: int, D: int, L: int, T: int, r: np.random.Generator) -> Tree:
    """Parameters of a small language model."""

    def n(*s: int) -> Any:
        return xp.asarray(r.standard_normal(s, dtype=f32) * f32(0.02))

    one, zero = xp.asarray(np.ones(D, f32)), xp.asarray(np.zeros(D, f32))
    return {
        "wte": n(V, D), "wpe": n(T, D), "gf": one, "bf": zero,
        "blocks": [
            {"g1": one, "b1": zero, "qkv": n(D, 3 * D), "o": n(D, D), "g2": one, "b2": zero,
             "up": n(D, 4 * D), "down": n(4 * D, D)}
            for _ in range(L)
        ],
    }  # fmt: skip


def gpt_step(
    V: int = 512, D: int = 256, L: int = 4, T: int = 128, B: int = 8, H: int = 8,
    checkpointed: bool = False,
) -> Run:  # fmt: skip
    """A training step of a small language model with AdamW."""
    r = data()
    p = gpt_params(V, D, L, T, r)
    ids, tgt = (xp.asarray(r.integers(0, V, (B, T))) for _ in range(2))
    mask = xp.tril(xp.ones((T, T), dtype=bool))

    def ln(x: Any, g: Any, b: Any) -> Any:
        m = xp.mean(x, axis=-1, keepdims=True)
        v = xp.mean((x - m) ** 2, axis=-1, keepdims=True)
        return (x - m) / xp.sqrt(v + 1e-5) * g + b

    def block(x: Any, q: Tree) -> Any:
        h = ln(x, q["g1"], q["b1"]) @ q["qkv"]
        q_, k, v = (
            xp.permute_dims(
                xp.reshape(h[..., i * D : (i + 1) * D], (B, T, H, D // H)), (0, 2, 1, 3)
            )
            for i in range(3)
        )
        s = (q_ @ xp.permute_dims(k, (0, 1, 3, 2))) * (D // H) ** -0.5
        a = functional.softmax(xp.where(mask, s, -1e9), -1) @ v
        x = x + xp.reshape(xp.permute_dims(a, (0, 2, 1, 3)), (B, T, D)) @ q["o"]
        return x + functional.gelu(ln(x, q["g2"], q["b2"]) @ q["up"], "tanh") @ q["down"]

    def loss(p: Tree) -> Any:
        x = xp.take(p["wte"], ids, axis=0) + p["wpe"]
        for q in p["blocks"]:
            x = (ft.checkpoint(block) if checkpointed else block)(x, q)
        lo = functional.log_softmax(ln(x, p["gf"], p["bf"]) @ p["wte"].T, -1)
        return -xp.mean(xp.take_along_axis(lo, tgt[..., None], axis=-1))

    return _adam(loss, p, lambda p, d: p * (1 - 1e-4) - 1e-3 * d)


def cnn_step(B: int = 32) -> Run:
    """A training step of a convolutional network with SGD."""
    r = data()

    def n(*s: int) -> Any:
        return xp.asarray(r.standard_normal(s, dtype=f32) * f32((2 / np.prod(s[1:])) ** 0.5))

    p = [n(32, 3, 3, 3), n(64, 32, 3, 3), n(64, 64, 3, 3),
         xp.asarray(r.standard_normal((64, 10), dtype=f32) * f32(0.1))]  # fmt: skip
    x = xp.asarray(r.standard_normal((B, 3, 32, 32), dtype=f32))
    y = xp.asarray(r.integers(0, 10, B))

    def loss(p: Tree) -> Any:
        h = x
        for w in p[:3]:
            h = functional.max_pool2d(functional.relu(functional.conv2d(h, w, padding=1)), 2)
        lo = functional.log_softmax(xp.mean(h, axis=(2, 3)) @ p[3], -1)
        return -xp.mean(xp.take_along_axis(lo, y[:, None], axis=1))

    @ft.jit
    def step(p: Tree) -> Tree:
        l, g = ft.value_and_grad(loss)(p)
        return ft.tree.map(lambda p, g: p - 0.05 * g, p, g), l

    s = [p]

    def run() -> object:
        s[0], l = step(s[0])
        return l

    return run


def gpt_checkpoint() -> Run:
    """The same step, which computes each block again in the backward pass."""
    return gpt_step(checkpointed=True)


def gpt_budget() -> Run:
    """The same step, which may hold half of what it likes: the compiler says what is done again."""
    ft.config.memory_budget = 0.5
    return gpt_step()


WORK: dict[str, Callable[[], Run]] = {
    "black_scholes": black_scholes, "softmax_layernorm": softmax_layernorm, "mlp_step": mlp_step,
    "gpt_step": gpt_step, "cnn_step": cnn_step, "gpt_checkpoint": gpt_checkpoint,
    "gpt_budget": gpt_budget,
}  # fmt: skip
