"""What a call of a compiled function costs above its work: small arrays, trees of many, numbers of
Python's and choices of elements that are others at each call.
"""

from collections.abc import Callable
from itertools import count, cycle
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.timing import minima


def run() -> str:
    """x + y and three ops on 16 elements; 200 arrays in a list and in a dict; then `_others`."""
    x = xp.asarray(np.linspace(0.1, 1.0, 16, dtype=np.float32))

    def three(x, y):  # type: ignore[no-untyped-def]
        return (x + y) * y - x

    plus = ft.jit(lambda x, y: x + y)
    plain, native = ft.jit(three), ft.jit(three, mode="reduce-overhead")
    turned, given = ft.jit(three), ft.jit(three)
    square, ones = xp.reshape(x, (4, 4)), xp.ones(16, dtype=x.dtype)
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
        "three ops, of 4 x 4, turned": lambda: turned(square.T, square.T),
        "three ops, of ones": lambda: plain(ones, x),
        "three ops, of NumPy's arrays": lambda: given(a, a),
        "NumPy: sin(x) * y + x": lambda: np.sin(a) * a + a,
        "sin(x) * y + x": lambda: sine(x, x),
        "flattening a list of 200": lambda: spec.flatten_up_to(many),
        "list of 200": lambda: of_list(many),
        "flattening a dict of 200": lambda: keys.flatten_up_to(named),
        "dict of 200": lambda: of_dict(named),
        **_others(),
    }
    for case in cases.values():
        case()
    lines = [f"{k:>42s} {v:9.2f} µs" for k, v in minima(cases).items()]
    return "\n".join(["calls of compiled functions", *lines])


def _others() -> dict[str, Callable[[], object]]:
    """A perceptron's step whose rate and count are new at each call, as arrays and as Python's; the
    sum of chosen ones of 300,000 elements, which are others each time.
    """
    rng = np.random.default_rng(0)
    w, v, x = (xp.asarray(rng.normal(size=s)) for s in ((64, 128), (128, 10), (256, 64)))

    def loss(w: Any) -> Any:
        return xp.mean((xp.tanh(x @ w) @ v) ** 2)

    def step(w: Any, rate: Any, t: Any) -> Any:
        return w - rate * ft.grad(loss)(w) / (1 - 0.9**t)

    def chosen(x: Any) -> Any:
        return xp.sum(x[xp.tanh(x) > 0.5])

    given, known = ft.jit(step), ft.jit(step)
    times = count(1)
    arrays = [(xp.asarray(0.1 / t), xp.asarray(float(t))) for t in range(1, 9)]
    turns = cycle(arrays)
    many = cycle([xp.asarray(rng.normal(size=300_000).astype(np.float32)) for _ in range(40)])
    choose = ft.jit(chosen)
    return {
        "a step, arrays": lambda: given(w, *next(turns)),
        "a step, Python's numbers": lambda: known(w, 0.1 / (t := next(times)), t),
        "chosen of 300,000, without jit": lambda: chosen(next(many)),
        "chosen of 300,000": lambda: choose(next(many)),
    }
