"""What a call of a compiled function costs above its work: small arrays, and trees of many."""

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.timing import minima


def run() -> str:
    """x + y and three ops on 16 elements; 200 arrays in a list and in a dict."""
    x = xp.asarray(np.linspace(0.1, 1.0, 16, dtype=np.float32))

    def three(x, y):  # type: ignore[no-untyped-def]
        return (x + y) * y - x

    plus = ft.jit(lambda x, y: x + y)
    plain, native = ft.jit(three), ft.jit(three, mode="reduce-overhead")
    sine = ft.jit(lambda x, y: xp.sin(x) * y + x)
    many = [x + k for k in range(200)]
    named = {f"w{k}": v for k, v in enumerate(many)}
    of_list, of_dict = ft.jit(lambda t: t[0] + t[-1]), ft.jit(lambda t: t["w0"] + t["w199"])
    spec, keys = ft.tree.structure(many), ft.tree.structure(named)
    a = np.asarray(x)
    cases = {
        "NumPy: x + y": lambda: a + a,
        "x + y": lambda: plus(x, x),
        "NumPy: three ops": lambda: (a + a) * a - a,
        "three ops": lambda: plain(x, x),
        "three ops, reduce-overhead": lambda: native(x, x),
        "NumPy: sin(x) * y + x": lambda: np.sin(a) * a + a,
        "sin(x) * y + x": lambda: sine(x, x),
        "flattening a list of 200": lambda: spec.flatten_up_to(many),
        "list of 200": lambda: of_list(many),
        "flattening a dict of 200": lambda: keys.flatten_up_to(named),
        "dict of 200": lambda: of_dict(named),
    }
    for case in cases.values():
        case()
    lines = [f"{k:>28s} {v:9.2f} µs" for k, v in minima(cases).items()]
    return "\n".join(["calls of compiled functions", *lines])
