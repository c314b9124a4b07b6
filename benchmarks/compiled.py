"""Compiled graphs on large arrays: what planning buffers buys over eager."""

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.timing import minima


def run() -> str:
    """A chain of elementwise ops on 4M float32, eager and compiled."""
    x = xp.asarray(np.linspace(0.1, 1.0, 4_000_000, dtype=np.float32))

    def f(x):  # type: ignore[no-untyped-def]
        y = x * 1.5 + 2.0
        for _ in range(6):
            y = y * x + 0.5
        return y

    best = minima({"eager": lambda: f(x), "jit": (lambda g: lambda: g(x))(ft.jit(f))})
    lines = [f"{k:>8s} {v / 1e3:9.2f} ms" for k, v in best.items()]
    ratio = best["jit"] / best["eager"]
    return "\n".join(
        ["elementwise chain, 14 ops, 4M float32", *lines, f"     jit/eager {ratio:.2f}"]
    )
