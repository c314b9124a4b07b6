"""Eager speed on 16 float32 elements: Python is the whole cost.

Rows: one op; gradient of 3 and of 30 ops; second order; calls of compiled functions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.peers import optional
from benchmarks.timing import minima, table

X = np.full(16, 0.5, np.float32)


def chain3(ns: Any) -> Callable[[Any], Any]:
    """sum(sin(x) * x)."""
    return lambda x: ns.sum(ns.sin(x) * x)


def chain30(ns: Any) -> Callable[[Any], Any]:
    """Ten times sin, multiply, add; then a sum."""

    def f(x: Any) -> Any:
        y = x
        for _ in range(10):
            y = ns.sin(y) * x + y
        return ns.sum(y)

    return f


Calls = dict[str, Callable[[], object]]


def with_funct(rows: dict[str, Calls]) -> None:
    """Add funct's calls."""
    a, b = xp.asarray(X), xp.asarray(X * 2)
    g3, g30 = ft.grad(chain3(xp)), ft.grad(chain30(xp))
    second = ft.grad(lambda x: xp.sum(g3(x) * b))
    add, tree = ft.jit(lambda x, y: x + y), ft.jit(lambda p, x: p["w"] * x + p["b"])
    p = {"w": a, "b": b}
    rows["a + b"]["funct"] = lambda: a + b
    rows["exp(a)"]["funct"] = lambda: xp.exp(a)
    rows["gradient, 3 ops"]["funct"] = lambda: g3(a)
    rows["gradient, 30 ops"]["funct"] = lambda: g30(a)
    rows["second order, 3 ops"]["funct"] = lambda: second(a)
    rows["jit(x + y), call"]["funct"] = lambda: add(a, b)
    rows["jit of a dict argument, call"]["funct"] = lambda: tree(p, a)


def with_numpy(rows: dict[str, Calls]) -> None:
    """Add the floor: NumPy's own calls."""
    a, b = X.copy(), X * 2
    rows["a + b"]["numpy"] = lambda: np.add(a, b)
    rows["exp(a)"]["numpy"] = lambda: np.exp(a)


def with_torch(rows: dict[str, Calls]) -> None:
    """Add torch eager, torch.func."""
    torch = optional("torch")
    if torch is None:
        return
    torch.set_num_threads(1)
    a, b = torch.tensor(X), torch.tensor(X * 2)
    rows["a + b"]["torch"] = lambda: a + b
    rows["exp(a)"]["torch"] = lambda: torch.exp(a)
    leaf = torch.tensor(X, requires_grad=True)
    for label, f in (("gradient, 3 ops", chain3(torch)), ("gradient, 30 ops", chain30(torch))):
        rows[label]["torch"] = lambda f=f: torch.autograd.grad(f(leaf), leaf)
        g = torch.func.grad(f)
        rows[label]["torch.func"] = lambda g=g: g(a)
    g3 = torch.func.grad(chain3(torch))
    second = torch.func.grad(lambda x: torch.sum(g3(x) * b))
    rows["second order, 3 ops"]["torch.func"] = lambda: second(a)

    def by_hand() -> object:
        (g,) = torch.autograd.grad(chain3(torch)(leaf), leaf, create_graph=True)
        return torch.autograd.grad(torch.sum(g * b), leaf)

    rows["second order, 3 ops"]["torch"] = by_hand


def with_autograd(rows: dict[str, Calls]) -> None:
    """Add HIPS autograd."""
    autograd, anp = optional("autograd"), optional("autograd.numpy")
    if autograd is None or anp is None:
        return
    g3, g30 = autograd.grad(chain3(anp)), autograd.grad(chain30(anp))
    second = autograd.grad(lambda x: anp.sum(g3(x) * X))
    rows["gradient, 3 ops"]["autograd"] = lambda: g3(X)
    rows["gradient, 30 ops"]["autograd"] = lambda: g30(X)
    rows["second order, 3 ops"]["autograd"] = lambda: second(X)


def with_jax(rows: dict[str, Calls]) -> None:
    """Add JAX."""
    jax = optional("jax")
    if jax is None:
        return
    jnp = jax.numpy
    a, b = jnp.asarray(X), jnp.asarray(X * 2)
    add, tree = jax.jit(lambda x, y: x + y), jax.jit(lambda p, x: p["w"] * x + p["b"])
    p = {"w": a, "b": b}
    rows["a + b"]["jax"] = lambda: a + b
    rows["exp(a)"]["jax"] = lambda: jnp.exp(a)
    rows["jit(x + y), call"]["jax"] = lambda: add(a, b)
    rows["jit of a dict argument, call"]["jax"] = lambda: tree(p, a)
    for label, f in (("gradient, 3 ops", chain3(jnp)), ("gradient, 30 ops", chain30(jnp))):
        g = jax.grad(f)
        rows[label]["jax"] = lambda g=g: g(a)


ROWS = (
    "a + b", "exp(a)", "gradient, 3 ops", "gradient, 30 ops", "second order, 3 ops",
    "jit(x + y), call", "jit of a dict argument, call",
)  # fmt: skip


def run() -> str:
    """Measure everything; the table."""
    rows: dict[str, Calls] = {label: {} for label in ROWS}
    for add in (with_funct, with_numpy, with_torch, with_autograd, with_jax):
        add(rows)
    return table(
        "eager, 16 float32 elements", {label: minima(calls) for label, calls in rows.items()}
    )
