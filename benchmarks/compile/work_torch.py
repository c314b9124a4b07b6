"""The compiled workloads, written for PyTorch; TORCH_EAGER=1 leaves torch.compile out."""

import itertools
import os

import numpy as np
import torch
from torch.func import grad
from torch.nn import functional

EAGER = os.environ.get("TORCH_EAGER") == "1"
comp = (lambda f: f) if EAGER else torch.compile


def data(seed=0):
    return np.random.default_rng(seed)


t = torch.from_numpy


def black_scholes(n=1 << 22):
    r = data()
    S, K, T = (t(r.uniform(a, b, n).astype(np.float32)) for a, b in ((10, 50), (10, 50), (0.1, 2)))

    def price(S, K, T):
        v, q = 0.3, 0.02
        d1 = (torch.log(S / K) + (q + v * v / 2) * T) / (v * torch.sqrt(T))
        d2 = d1 - v * torch.sqrt(T)

        def cdf(x):
            return 0.5 * (1 + torch.erf(x * 0.70710678))

        return S * cdf(d1) - K * torch.exp(-q * T) * cdf(d2)

    f = comp(lambda S, K, T: (price(S, K, T), grad(lambda s: price(s, K, T).sum())(S)))
    return lambda: f(S, K, T)


def softmax_layernorm(m=4096, n=1024):
    x = t(data().standard_normal((m, n), dtype=np.float32))

    def f(x):
        h = (x - x.mean(-1, keepdim=True)) * torch.rsqrt(
            x.var(-1, keepdim=True, unbiased=False) + 1e-5
        )
        return torch.softmax(h * 1.7 + 0.3, -1)

    f = comp(f)
    return lambda: f(x)


def mlp_step(sizes=(784, 512, 512, 10), batch=128):
    r = data()
    p = [
        t(a)
        for ab in itertools.pairwise(sizes)
        for a in (
            r.standard_normal(ab, dtype=np.float32) * (2 / ab[0]) ** 0.5,
            np.zeros(ab[1], np.float32),
        )
    ]
    p = [a.requires_grad_() for a in p]
    x = t(r.standard_normal((batch, sizes[0]), dtype=np.float32))
    y = t(r.integers(0, 10, batch))
    opt = torch.optim.Adam(p, 1e-3, fused=True)

    def loss(x, y):
        for i in range(0, len(p) - 2, 2):
            x = torch.relu(x @ p[i] + p[i + 1])
        return functional.cross_entropy(x @ p[-2] + p[-1], y)

    loss = comp(loss)

    def run():
        l = loss(x, y)
        opt.zero_grad()
        l.backward()
        opt.step()
        return l

    return run


def gpt_step(V=512, D=256, L=4, T=128, B=8, H=8):
    r = data()

    def n(*s):
        return t(r.standard_normal(s, dtype=np.float32) * 0.02).requires_grad_()

    def one():
        return torch.ones(D, requires_grad=True)

    def zero():
        return torch.zeros(D, requires_grad=True)

    wte, wpe = n(V, D), n(T, D)
    bl = [
        {
            "g1": one(),
            "b1": zero(),
            "qkv": n(D, 3 * D),
            "o": n(D, D),
            "g2": one(),
            "b2": zero(),
            "up": n(D, 4 * D),
            "down": n(4 * D, D),
        }
        for _ in range(L)
    ]
    gf, bf = one(), zero()
    ps = [wte, wpe, gf, bf] + [a for b in bl for a in b.values()]
    ids, tgt = t(r.integers(0, V, (B, T))), t(r.integers(0, V, (B, T)))
    opt = torch.optim.AdamW(ps, 1e-3, fused=True)

    def loss():
        x = wte[ids] + wpe
        for q in bl:
            h = functional.layer_norm(x, (D,), q["g1"], q["b1"]) @ q["qkv"]
            a, k, v = (z.reshape(B, T, H, D // H).transpose(1, 2) for z in h.split(D, -1))
            a = functional.scaled_dot_product_attention(a, k, v, is_causal=True)
            x = x + a.transpose(1, 2).reshape(B, T, D) @ q["o"]
            x = (
                x
                + functional.gelu(
                    functional.layer_norm(x, (D,), q["g2"], q["b2"]) @ q["up"], approximate="tanh"
                )
                @ q["down"]
            )
        return functional.cross_entropy(
            (functional.layer_norm(x, (D,), gf, bf) @ wte.T).reshape(-1, V), tgt.reshape(-1)
        )

    loss = comp(loss)

    def run():
        l = loss()
        opt.zero_grad()
        l.backward()
        opt.step()
        return l

    return run


def cnn_step(B=32):
    r = data()

    def n(*s):
        return t(
            r.standard_normal(s, dtype=np.float32) * np.float32((2 / np.prod(s[1:])) ** 0.5)
        ).requires_grad_()

    p = [
        n(32, 3, 3, 3),
        n(64, 32, 3, 3),
        n(64, 64, 3, 3),
        t(r.standard_normal((64, 10), dtype=np.float32) * 0.1).requires_grad_(),
    ]
    x = t(r.standard_normal((B, 3, 32, 32), dtype=np.float32))
    y = t(r.integers(0, 10, B))
    opt = torch.optim.SGD(p, 0.05)

    def loss():
        h = x
        for w in p[:3]:
            h = functional.max_pool2d(torch.relu(functional.conv2d(h, w, padding=1)), 2)
        return functional.cross_entropy(h.mean((2, 3)) @ p[3], y)

    loss = comp(loss)

    def run():
        l = loss()
        opt.zero_grad()
        l.backward()
        opt.step()
        return l

    return run


WORK = {
    "black_scholes": black_scholes,
    "softmax_layernorm": softmax_layernorm,
    "mlp_step": mlp_step,
    "gpt_step": gpt_step,
    "cnn_step": cnn_step,
}
