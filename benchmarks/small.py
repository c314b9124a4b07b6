"""Layers, losses and draws on few elements, where calls are the whole cost, next to torch and JAX.

A row of layers is an expression in `f` (`nn.functional`, of funct or of torch) on 16 float32
elements, or 4 samples of 4; it is evaluated as it is, and with the gradient of its sum in the
floating arrays that it names. JAX's functions run uncompiled, where it has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.peers import optional
from benchmarks.timing import minima, table
from funct.nn import functional as F  # noqa: N812

__all__ = ["run"]

LAYERS = """
f.relu(x)
f.sigmoid(x)
f.silu(x)
f.gelu(x)
f.gelu(x, approximate="tanh")        => f.gelu(x, approximate=True)
f.softplus(x)
f.softmax(m, -1)
f.log_softmax(m, -1)
f.layer_norm(m, (4,), w, b)
f.rms_norm(m, (4,), w)
f.group_norm(g, 2, w, b)
f.batch_norm(m, None, None, w, b, True)
f.linear(m, k, b)
f.scaled_dot_product_attention(g, g, g)
f.dropout(x, **drawn)
f.cross_entropy(m, t)
f.nll_loss(m, t)
f.binary_cross_entropy_with_logits(m, n)
f.mse_loss(m, n)
f.huber_loss(m, n)
f.embedding(t, k)
f.avg_pool1d(s, 2)
f.avg_pool2d(i, 2)
f.max_pool2d(i, 2)
f.conv1d(s, c)
f.conv2d(i, d)
"""

DRAWS = """
normal(key, (16,))                   => randn(16)
uniform(key, (16,))                  => rand(16)
randint(key, (16,), 0, 10)           => randint(0, 10, (16,))
permutation(key, 16)                 => randperm(16)
bernoulli(key, 0.5, (16,))           => bernoulli(halves)
gamma(key, 0.5, (16,))               => _standard_gamma(halves)
poisson(key, 0.5, (16,))             => poisson(halves)
"""

Calls = dict[str, Callable[[], object]]


def arrays() -> dict[str, Any]:
    """What the expressions name."""
    rng = np.random.default_rng(0)
    shapes = {
        "x": (16,), "m": (4, 4), "n": (4, 4), "k": (4, 4), "w": (4,), "b": (4,), "s": (1, 2, 8),
        "c": (2, 2, 3), "g": (1, 4, 4), "i": (1, 1, 4, 4), "d": (1, 1, 3, 3),
    }  # fmt: skip
    found: dict[str, Any] = {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    return found | {"t": np.asarray([0, 3, 1, 2])}


def _floats(expression: str, given: dict[str, Any]) -> list[str]:
    names = compile(expression, "<small>", "eval").co_names
    return [n for n in names if n in given and given[n].dtype.kind == "f"]


def _evaluated(text: str, names: dict[str, Any], parameters: list[str]) -> Callable[..., Any]:
    made: Callable[..., Any] = eval(f"lambda {', '.join(parameters)}: {text}", names)
    return made


def layers() -> dict[str, Calls]:
    """Every expression, and with its gradient."""
    given, rows = arrays(), dict[str, Calls]()
    ours = {n: xp.asarray(a) for n, a in given.items()}
    torch, jax = optional("torch"), optional("jax")
    for line in LAYERS.strip().splitlines():
        text, _, of_jax = (part.strip() for part in line.partition("=>"))
        floats = _floats(text, given)
        alone, both = dict[str, Callable[[], object]](), dict[str, Callable[[], object]]()
        call = _evaluated(text, {"f": F, "drawn": {"key": ft.random.key(0)}, **ours}, floats)
        args = [ours[n] for n in floats]
        slope = ft.grad(lambda *a, call=call: xp.sum(call(*a)), argnums=tuple(range(len(floats))))
        alone["funct"] = lambda call=call, args=args: call(*args)
        both["funct"] = lambda slope=slope, args=args: slope(*args)
        if torch is not None:
            torch.set_num_threads(1)
            theirs = {n: torch.from_numpy(a) for n, a in given.items()}
            run = _evaluated(text, {"f": torch.nn.functional, "drawn": {}, **theirs}, floats)
            plain = [theirs[n] for n in floats]
            leaves = [a.clone().requires_grad_() for a in plain]
            alone["torch"] = lambda run=run, plain=plain: run(*plain)
            both["torch"] = lambda run=run, leaves=leaves, torch=torch: torch.autograd.grad(
                run(*leaves).sum(), leaves
            )
        if jax is not None and hasattr(jax.nn, text[2 : text.index("(")]):
            held = {n: jax.numpy.asarray(a) for n, a in given.items()}
            other = _evaluated(of_jax or text, {"f": jax.nn, **held}, floats)
            values = [held[n] for n in floats]
            back = jax.grad(
                lambda *a, other=other: other(*a).sum(), argnums=tuple(range(len(floats)))
            )
            alone["jax"] = lambda other=other, values=values: other(*values)
            both["jax"] = lambda back=back, values=values: back(*values)
        rows[text], rows[text + ", gradient"] = alone, both
    return rows


def draws() -> dict[str, Calls]:
    """Every draw. torch's have no key."""
    rows = dict[str, Calls]()
    torch, jax = optional("torch"), optional("jax")
    for line in DRAWS.strip().splitlines():
        text, _, of_torch = (part.strip() for part in line.partition("=>"))
        rows[text] = {"funct": eval(f"lambda: {text}", vars(ft.random) | {"key": ft.random.key(0)})}
        if torch is not None:
            names = {"halves": torch.full((16,), 0.5), **vars(torch)}
            rows[text]["torch"] = eval(f"lambda: {of_torch}", names)
        if jax is not None:
            names = vars(jax.random) | {"key": jax.random.key(0)}
            rows[text]["jax"] = eval(f"lambda: {text}", names)
    return rows


def run() -> str:
    """Measure everything; the table."""
    rows = layers() | draws()
    return table("layers and draws, 16 elements", {n: minima(c) for n, c in rows.items()})
