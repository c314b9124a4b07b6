"""Attention, heads x length x size, in G operations/s; of causal ones, those that count.

funct/peer above 1 means that funct is faster. `backward` is forward and backward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.kernels.row import Row
from benchmarks.peers import optional
from funct.kernels.attention import attention, attention_pull

TITLE = "attention, one thread [G/s]"

_ALWAYS, _SEED = np.ones((1, 1), np.bool_), np.zeros((1, 2), np.uint32)


def rows() -> Iterator[Row]:
    """Every row."""
    for length, heads in ((128, 8), (512, 4), (1024, 2), (4096, 1)):
        for causal in (False, True):
            yield from _of(length, heads, 64, causal)
    for size in (32, 80, 128):
        yield from _of(512, 4, size, False)
    yield from _of(777, 2, 40, False)


def _of(length: int, heads: int, size: int, causal: bool) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    q, k, v, g = (rng.standard_normal((1, heads, length, size)).astype("f4") for _ in range(4))
    scale = size**-0.5

    def forward() -> Any:
        return attention(q, k, v, _ALWAYS, _SEED, causal, scale, 0.0)

    def both() -> Any:
        out, lse = forward()
        delta = np.einsum("bhtd,bhtd->bht", g, out)
        return attention_pull(q, k, v, _ALWAYS, _SEED, lse, g, delta, causal, scale, 0.0)

    work = 4 * heads * length**2 * size / (2 if causal else 1)
    name = f"{heads} x {length} x {size}" + (", causal" if causal else "")
    peers = _torch([q, k, v, g], causal)
    yield Row(name, work, forward, {n: p[0] for n, p in peers.items()}, "f32")
    yield Row(name + ", backward", 3.5 * work, both, {n: p[1] for n, p in peers.items()}, "f32")


def _torch(arrays: list[Any], causal: bool) -> dict[str, list[Callable[[], object]]]:
    torch: Any = optional("torch")
    if torch is None:
        return {}
    attend = torch.nn.functional.scaled_dot_product_attention
    *plain, g = [torch.asarray(x) for x in arrays]
    leaves = [x.clone().requires_grad_() for x in plain]

    def both() -> object:
        out = attend(*leaves, is_causal=causal)
        return torch.autograd.grad(out, leaves, g)

    return {"torch": [lambda: attend(*plain, is_causal=causal), both]}
