"""Transforms next to the peers', in float64: a Hessian, per-example gradients, long programs.

Eager rows run op by op everywhere; rows with jit compare compiled functions (torch has no compiled
form of torch.func that takes less than seconds, and is left out there).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.peers import optional
from benchmarks.timing import minima, table

RNG = np.random.default_rng(0)
X100 = RNG.normal(size=100)
A100 = RNG.normal(size=(100, 100)) / 10
X16 = RNG.normal(size=16)
WEIGHTS = [RNG.normal(size=shape) / 8 for shape in ((64, 64), (64,), (64, 10), (10,))]
BATCH = RNG.normal(size=(128, 64))
LABELS = RNG.normal(size=(128, 10))

Calls = dict[str, Callable[[], object]]


def well(ns: Any, a: Any) -> Callable[[Any], Any]:
    """A smooth function of 100 variables: log of a sum of exponentials of sines."""
    return lambda x: ns.log(ns.sum(ns.exp(ns.sin(a @ x)))) + 0.5 * ns.sum(x * x)


def loss(ns: Any) -> Callable[..., Any]:
    """Squared error of a two-layer network on one example."""

    def f(w: Any, x: Any, y: Any) -> Any:
        h = ns.tanh(x @ w[0] + w[1])
        return ns.sum((h @ w[2] + w[3] - y) ** 2)

    return f


def long(ns: Any) -> Callable[[Any], Any]:
    """1,000 ops on 16 elements."""

    def f(x: Any) -> Any:
        y = x
        for _ in range(333):
            y = ns.sin(y) * x + 0.5
        return ns.sum(y)

    return f


def with_funct(rows: dict[str, Calls]) -> None:
    """Add funct's calls."""
    x, a, short = xp.asarray(X100), xp.asarray(A100), xp.asarray(X16)
    w = [xp.asarray(p) for p in WEIGHTS]
    batch, labels = xp.asarray(BATCH), xp.asarray(LABELS)
    hessian = ft.hessian(well(xp, a))
    each = ft.vmap(ft.grad(loss(xp)), in_axes=(None, 0, 0))
    fast_hessian, fast_each = ft.jit(hessian), ft.jit(each)
    program, one = long(xp), xp.asarray(1.0)
    rows["hessian, 100 variables"]["funct"] = lambda: hessian(x)
    rows["hessian, 100 variables, jit"]["funct"] = lambda: fast_hessian(x)
    rows["per-example gradients, 128"]["funct"] = lambda: each(w, batch, labels)
    rows["per-example gradients, 128, jit"]["funct"] = lambda: fast_each(w, batch, labels)
    rows["vjp, 1000 ops"]["funct"] = lambda: ft.vjp(program, short)[1](one)
    rows["jvp, 1000 ops"]["funct"] = lambda: ft.jvp(program, (short,), (short,))


def with_torch(rows: dict[str, Calls]) -> None:
    """Add torch.func, and torch's tape for the long program."""
    torch = optional("torch")
    if torch is None:
        return
    torch.set_num_threads(1)
    x, a, short = torch.tensor(X100), torch.tensor(A100), torch.tensor(X16)
    w = [torch.tensor(p) for p in WEIGHTS]
    batch, labels = torch.tensor(BATCH), torch.tensor(LABELS)
    hessian = torch.func.hessian(well(torch, a))
    each = torch.func.vmap(torch.func.grad(loss(torch)), in_dims=(None, 0, 0))
    program, one = long(torch), torch.tensor(1.0, dtype=torch.float64)
    rows["hessian, 100 variables"]["torch.func"] = lambda: hessian(x)
    rows["per-example gradients, 128"]["torch.func"] = lambda: each(w, batch, labels)
    rows["vjp, 1000 ops"]["torch.func"] = lambda: torch.func.vjp(program, short)[1](one)
    rows["jvp, 1000 ops"]["torch.func"] = lambda: torch.func.jvp(program, (short,), (short,))
    leaf = torch.tensor(X16, requires_grad=True)
    rows["vjp, 1000 ops"]["torch"] = lambda: torch.autograd.grad(program(leaf), leaf)


def with_autograd(rows: dict[str, Calls]) -> None:
    """Add HIPS autograd."""
    autograd, anp = optional("autograd"), optional("autograd.numpy")
    if autograd is None or anp is None:
        return
    hessian, program = autograd.hessian(well(anp, A100)), long(anp)
    rows["hessian, 100 variables"]["autograd"] = lambda: hessian(X100)
    rows["vjp, 1000 ops"]["autograd"] = lambda: autograd.make_vjp(program)(X16)[0](1.0)


def with_jax(rows: dict[str, Calls]) -> None:
    """Add JAX, compiled and, for the Hessian and the gradients, op by op."""
    jax = optional("jax")
    if jax is None:
        return
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    x, a = jnp.asarray(X100), jnp.asarray(A100)
    w = [jnp.asarray(p) for p in WEIGHTS]
    batch, labels = jnp.asarray(BATCH), jnp.asarray(LABELS)
    hessian = jax.hessian(well(jnp, a))
    each = jax.vmap(jax.grad(loss(jnp)), in_axes=(None, 0, 0))
    for label, fun, args in (
        ("hessian, 100 variables", hessian, (x,)),
        ("per-example gradients, 128", each, (w, batch, labels)),
    ):
        fast = jax.jit(fun)
        rows[label]["jax"] = lambda fun=fun, args=args: jax.block_until_ready(fun(*args))
        rows[f"{label}, jit"]["jax"] = lambda fast=fast, args=args: jax.block_until_ready(
            fast(*args)
        )


ROWS = (
    "hessian, 100 variables", "hessian, 100 variables, jit", "per-example gradients, 128",
    "per-example gradients, 128, jit", "vjp, 1000 ops", "jvp, 1000 ops",
)  # fmt: skip


def run() -> str:
    """Measure everything; the table."""
    rows: dict[str, Calls] = {label: {} for label in ROWS}
    for add in (with_funct, with_torch, with_autograd, with_jax):
        add(rows)
    return table("transforms", {label: minima(c, rounds=8) for label, c in rows.items()})
