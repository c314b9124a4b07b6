"""New results as large as memory traffic, and updates of all parameters of a model, in GB/s.

"into": NumPy into a buffer that exists, the floor of what a new result can cost. NumPy's own rows
run in a context of their own, where its own allocator serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import Context
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.kernels.row import Row
from benchmarks.peers import optional
from funct import optim, tree
from funct.device.memory.front import numpy_handler, set_handler

TITLE = "memory and updates, one thread [GB/s]"
SIZES = (64 << 20, 4 << 20)  # bytes of a result
WIDTH, LAYERS = 256, 4


def rows() -> Iterator[Row]:
    """Every row."""
    for size in SIZES:
        yield _added(size)
        yield _summed(size)
    yield from _updates([s for _ in range(LAYERS) for s in _layer(WIDTH)])
    yield from _updates([(1000,)] * 10)


def _layer(d: int) -> list[tuple[int, ...]]:
    """Parameters of one layer of a transformer."""
    return [
        (d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (4 * d, d), (4 * d,),
        (d, 4 * d), (d,),
    ]  # fmt: skip


def _added(size: int) -> Row:
    a, b = (np.ones(size // 4, np.float32) for _ in range(2))
    x, y, out = xp.asarray(a), xp.asarray(b), np.empty_like(a)
    apart = Context()
    apart.run(set_handler, numpy_handler())
    peers: dict[str, Callable[[], object]] = {
        "into": lambda: np.add(a, b, out=out),
        "numpy": lambda: apart.run(np.add, a, b),
    }
    torch: Any = optional("torch")
    if torch is not None:
        s, t = torch.from_numpy(a), torch.from_numpy(b)
        peers["torch"] = lambda: s + t
    return Row(f"a + b, a new result of {size >> 20} MiB", 3 * size, lambda: x + y, peers)


def _summed(size: int) -> Row:
    a = np.ones(size // 8)
    x = xp.asarray(a)
    peers: dict[str, Callable[[], object]] = {"numpy": lambda: np.sum(a)}
    torch: Any = optional("torch")
    if torch is not None:
        t = torch.from_numpy(a)
        peers["torch"] = t.sum
    return Row(f"sum of {size >> 20} MiB of float64", size, lambda: xp.sum(x), peers)


def _updates(shapes: list[tuple[int, ...]]) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    raw = [[rng.standard_normal(s).astype(np.float32) for s in shapes] for _ in range(2)]
    params, grads = [[xp.asarray(a) for a in column] for column in raw]
    size = sum([a.nbytes for a in raw[0]])
    torch: Any = optional("torch")
    label = f"{size // 4:,} parameters in {len(shapes)} arrays"
    kinds = {
        "adam": (optim.adam(1e-3), lambda t, p: t.optim.Adam(p, lr=1e-3, fused=True), 7),
        "sgd, momentum": (
            optim.sgd(1e-3, momentum=0.9),
            lambda t, p: t.optim.SGD(p, lr=1e-3, momentum=0.9, fused=True),
            5,
        ),
    }
    for name, (opt, theirs, columns) in kinds.items():
        peers: dict[str, Callable[[], object]] = {}
        if torch is not None:
            tensors = [torch.tensor(a, requires_grad=True) for a in raw[0]]
            for tensor, g in zip(tensors, raw[1]):
                tensor.grad = torch.from_numpy(g)
            peers["torch fused"] = theirs(torch, tensors).step
        donated = ft.jit(opt.step, donate_argnums=(0, 2))
        for how, step in {"": opt.step, ", compiled, donated": donated}.items():
            held = [tree.map(lambda p: p + 0, params), opt.init(params)]

            def run(step: Any = step, held: list[Any] = held) -> None:
                held[:] = step(held[0], grads, held[1])[:2]

            yield Row(f"{name}{how}, {label}", columns * size, run, peers)
    norm: dict[str, Callable[[], object]] = {}
    if torch is not None:
        gs = [torch.from_numpy(g) for g in raw[1]]
        norm["torch"] = lambda: torch.nn.utils.get_total_norm(gs)
    yield Row(f"norm, {label}", size, lambda: optim.global_norm(grads), norm)
