"""Compiled graphs on large arrays: what planning buffers buys over eager, how cost grows with size,
how first calls grow with the number of ops, and what it costs to write images with channels last.
"""

import time

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.timing import minima
from funct.nn import functional


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
    lines = [head, *lines, f"     jit/eager {ratio:.2f}"]
    return "\n".join([*lines, "", *scaling(f), "", *growing(), "", *layouts()])


def scaling(f, megabytes=(1, 4, 16, 64, 256, 1024)):  # type: ignore[no-untyped-def]
    """Nanoseconds per element of the same chain, compiled, for growing arrays."""
    lines = ["the chain by size of its argument"]
    g = ft.jit(f, dynamic=False)
    for mb in megabytes:
        x = xp.asarray(np.linspace(0.1, 1.0, mb << 18, dtype=np.float32))
        best = minima({"jit": lambda x=x: g(x)}, rounds=5)["jit"]
        lines.append(f"{mb:6d} MB {best * 1e3 / (mb << 18):9.3f} ns per element")
    return lines


def growing(counts=(1_000, 3_000, 10_000)):  # type: ignore[no-untyped-def]
    """Seconds of the first calls of graphs of so many ops, each of another text than the others."""
    kinds = {
        "arithmetic": (2, lambda y, x, k: y * x + k),
        "functions": (2, lambda y, x, k: xp.sin(y) * k),
        "reductions": (3, lambda y, x, k: y * xp.sum(x * k)),
        "products": (2, lambda y, x, k: (y @ x) * k),
    }
    x = xp.asarray(np.full((32, 32), 1 / 32, np.float32))
    lines = ["first calls by number of ops, seconds, and microseconds per op"]
    for name, (ops, step) in kinds.items():
        found = []
        for count in counts:

            def f(x, step=step, count=count, ops=ops):  # type: ignore[no-untyped-def]
                y = x
                for k in range(count // ops):
                    y = step(y, x, 1 + 1 / (k + count))
                return y

            start = time.perf_counter()
            ft.jit(f)(x)
            took = time.perf_counter() - start
            found.append(f"{count:7d} {took:6.2f} {took / count * 1e6:5.0f}")
        lines.append(f"{name:>12s} " + "   ".join(found))
    return lines


def layouts():  # type: ignore[no-untyped-def]
    """Blocks of a depthwise convolution, layer norm and gelu on images whose channels are last, as
    the layers take them, and with a transpose around each norm instead of around each convolution.
    """
    rng = np.random.default_rng(0)
    x, w = [
        xp.asarray(rng.normal(size=s).astype(np.float32)) for s in ((8, 32, 32, 32), (32, 1, 3, 3))
    ]

    def first(x):  # type: ignore[no-untyped-def]
        return xp.permute_dims(x, (0, 3, 1, 2))

    def last(x):  # type: ignore[no-untyped-def]
        return xp.permute_dims(x, (0, 2, 3, 1))

    def conv(x):  # type: ignore[no-untyped-def]
        return functional.conv2d(x, w, padding=1, groups=32)

    def around_convolutions(x):  # type: ignore[no-untyped-def]
        for _ in range(3):
            x = x + functional.gelu(functional.layer_norm(last(conv(first(x))), (32,)))
        return x

    def around_norms(x):  # type: ignore[no-untyped-def]
        x = first(x)
        for _ in range(3):
            x = x + functional.gelu(first(functional.layer_norm(last(conv(x)), (32,))))
        return last(x)

    programs = {"around convolutions": around_convolutions, "around norms": around_norms}
    best = minima({
        f"{how}, {name}": (lambda g: lambda: g(x))(ft.jit(f) if how == "jit" else f)
        for name, f in programs.items()
        for how in ("eager", "jit")
    })  # fmt: skip
    head = "three blocks on 8 images 32 x 32 x 32, channels last; transposes:"
    return [head, *[f"{k:>28s} {v / 1e3:9.2f} ms" for k, v in best.items()]]
