"""Compiled graphs on large arrays: what planning buffers buys over eager, and how cost grows with
size.
"""

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
    head = "elementwise chain, 14 ops, 4M float32"
    return "\n".join([head, *lines, f"     jit/eager {ratio:.2f}", "", *scaling(f)])


def scaling(f, megabytes=(1, 4, 16, 64, 256, 1024)):  # type: ignore[no-untyped-def]
    """Nanoseconds per element of the same chain, compiled, for growing arrays."""
    lines = ["the chain by size of its argument"]
    g = ft.jit(f, dynamic=False)
    for mb in megabytes:
        x = xp.asarray(np.linspace(0.1, 1.0, mb << 18, dtype=np.float32))
        best = minima({"jit": lambda x=x: g(x)}, rounds=5)["jit"]
        lines.append(f"{mb:6d} MB {best * 1e3 / (mb << 18):9.3f} ns per element")
    return lines
