"""The compiled workloads, written for JAX."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def data(seed=0):
    return np.random.default_rng(seed)


def black_scholes(n=1 << 22):
    r = data()
    S, K, T = (r.uniform(a, b, n).astype(np.float32) for a, b in ((10, 50), (10, 50), (0.1, 2)))

    def price(S, K, T):
        v, q = 0.3, 0.02
        d1 = (jnp.log(S / K) + (q + v * v / 2) * T) / (v * jnp.sqrt(T))
        d2 = d1 - v * jnp.sqrt(T)

        def cdf(x):
            return 0.5 * (1 + lax.erf(x * 0.70710678))

        return S * cdf(d1) - K * jnp.exp(-q * T) * cdf(d2)

    f = jax.jit(lambda S, K, T: (price(S, K, T), jax.grad(lambda s: price(s, K, T).sum())(S)))
    args = tuple(map(jnp.asarray, (S, K, T)))
    return lambda: jax.block_until_ready(f(*args))


def softmax_layernorm(m=4096, n=1024):
    x = jnp.asarray(data().standard_normal((m, n), dtype=np.float32))

    def f(x):
        h = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        return jax.nn.softmax(h * 1.7 + 0.3, axis=-1)

    f = jax.jit(f)
    return lambda: f(x).block_until_ready()


def mlp_params(sizes, r):
    return [
        (r.standard_normal((a, b), dtype=np.float32) * (2 / a) ** 0.5, np.zeros(b, np.float32))
        for a, b in itertools.pairwise(sizes)
    ]


def mlp_step(sizes=(784, 512, 512, 10), batch=128):
    r = data()
    p = jax.tree.map(jnp.asarray, mlp_params(sizes, r))
    x = jnp.asarray(r.standard_normal((batch, sizes[0]), dtype=np.float32))
    y = jnp.asarray(r.integers(0, 10, batch))

    def loss(p, x, y):
        for w, b in p[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = p[-1]
        lo = jax.nn.log_softmax(x @ w + b)
        return -jnp.take_along_axis(lo, y[:, None], 1).mean()

    @jax.jit
    def step(s):
        p, m, v, t = s
        l, g = jax.value_and_grad(loss)(p, x, y)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        p = jax.tree.map(
            lambda p, m, v: p - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8),
            p,
            m,
            v,
        )
        return (p, m, v, t), l

    z = jax.tree.map(jnp.zeros_like, p)
    s = [(p, z, z, jnp.float32(0))]

    def run():
        s[0], l = step(s[0])
        return l.block_until_ready()

    return run


def gpt_params(V=512, D=256, L=4, T=128, r=None):
    def n(*s):
        return r.standard_normal(s, dtype=np.float32) * 0.02

    return {
        "wte": n(V, D),
        "wpe": n(T, D),
        "blocks": [
            {
                "g1": np.ones(D, np.float32),
                "b1": np.zeros(D, np.float32),
                "qkv": n(D, 3 * D),
                "o": n(D, D),
                "g2": np.ones(D, np.float32),
                "b2": np.zeros(D, np.float32),
                "up": n(D, 4 * D),
                "down": n(4 * D, D),
            }
            for _ in range(L)
        ],
        "gf": np.ones(D, np.float32),
        "bf": np.zeros(D, np.float32),
    }


def gpt_step(V=512, D=256, L=4, T=128, B=8, H=8, checkpointed=False):
    r = data()
    p = jax.tree.map(jnp.asarray, gpt_params(V, D, L, T, r))
    ids = jnp.asarray(r.integers(0, V, (B, T)))
    tgt = jnp.asarray(r.integers(0, V, (B, T)))
    mask = jnp.tril(jnp.ones((T, T), bool))

    def ln(x, g, b):
        m = x.mean(-1, keepdims=True)
        v = ((x - m) ** 2).mean(-1, keepdims=True)
        return (x - m) * lax.rsqrt(v + 1e-5) * g + b

    def block(x, q):
        h = ln(x, q["g1"], q["b1"]) @ q["qkv"]
        q_, k, v = (a.reshape(B, T, H, D // H).transpose(0, 2, 1, 3) for a in jnp.split(h, 3, -1))
        s = (q_ @ k.transpose(0, 1, 3, 2)) * (D // H) ** -0.5
        a = jax.nn.softmax(jnp.where(mask, s, -1e9), -1) @ v
        x = x + a.transpose(0, 2, 1, 3).reshape(B, T, D) @ q["o"]
        return x + jax.nn.gelu(ln(x, q["g2"], q["b2"]) @ q["up"]) @ q["down"]

    def loss(p):
        x = p["wte"][ids] + p["wpe"]
        for q in p["blocks"]:
            x = (jax.checkpoint(block) if checkpointed else block)(x, q)
        lo = jax.nn.log_softmax(ln(x, p["gf"], p["bf"]) @ p["wte"].T)
        return -jnp.take_along_axis(lo, tgt[..., None], -1).mean()

    @jax.jit
    def step(s):
        p, m, v, t = s
        l, g = jax.value_and_grad(loss)(p)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        p = jax.tree.map(
            lambda p, m, v: (
                p * (1 - 1e-4) - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
            ),
            p,
            m,
            v,
        )
        return (p, m, v, t), l

    z = jax.tree.map(jnp.zeros_like, p)
    s = [(p, z, z, jnp.float32(0))]

    def run():
        s[0], l = step(s[0])
        return l.block_until_ready()

    return run


def cnn_step(B=32):
    r = data()

    def n(*s):
        return jnp.asarray(r.standard_normal(s, dtype=np.float32) * (2 / np.prod(s[1:])) ** 0.5)

    p = [
        n(32, 3, 3, 3),
        n(64, 32, 3, 3),
        n(64, 64, 3, 3),
        jnp.asarray(r.standard_normal((64, 10), dtype=np.float32) * 0.1),
    ]
    x = jnp.asarray(r.standard_normal((B, 3, 32, 32), dtype=np.float32))
    y = jnp.asarray(r.integers(0, 10, B))

    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def loss(p):
        h = x
        for w in p[:3]:
            h = pool(jax.nn.relu(lax.conv_general_dilated(h, w, (1, 1), "SAME")))
        lo = jax.nn.log_softmax(h.mean((2, 3)) @ p[3])
        return -jnp.take_along_axis(lo, y[:, None], 1).mean()

    @jax.jit
    def step(p):
        l, g = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda p, g: p - 0.05 * g, p, g), l

    s = [p]

    def run():
        s[0], l = step(s[0])
        return l.block_until_ready()

    return run


WORK = {
    "black_scholes": black_scholes,
    "softmax_layernorm": softmax_layernorm,
    "mlp_step": mlp_step,
    "gpt_step": gpt_step,
    "cnn_step": cnn_step,
    "gpt_checkpoint": lambda: gpt_step(checkpointed=True),
}
