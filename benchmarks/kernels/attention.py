"""Attention, heads x length x size, in G operations/s; of causal ones, those that count.

funct/peer above 1 means that funct is faster. `backward` is forward and backward.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np

from benchmarks.kernels.row import Row
from benchmarks.peers import optional
from funct.kernels.attention import attention, attention_pull

TITLE = "attention, one thread [G/s]; decoding: GB/s of keys and values"

_ALWAYS, _SEED = np.ones((1, 1), np.bool_), np.zeros((1, 2), np.uint32)


@attrs.frozen
class _Case:
    """What attends to what.

    shared: heads per head of keys. mask: how it is drawn from a generator, queries and keys.
    """

    heads: int
    queries: int
    keys: int
    size: int
    causal: bool = False
    mask: Callable[[np.random.Generator, int, int], Any] | None = None
    rate: float = 0.0
    shared: int = 1


def rows() -> Iterator[Row]:
    """Every row."""
    for length, heads in ((128, 8), (512, 4), (1024, 2), (4096, 1)):
        for causal in (False, True):
            name = f"{heads} x {length} x 64" + (", causal" if causal else "")
            yield from _of(name, _Case(heads, length, length, 64, causal))
    for size in (32, 80, 128):
        yield from _of(f"4 x 512 x {size}", _Case(4, 512, 512, size))
    yield from _of("2 x 777 x 40", _Case(2, 777, 777, 40))
    yield from _of("4 x 512 x 64, mask", _Case(4, 512, 512, 64, mask=_some))
    yield from _of("4 x 1024 x 64, mask of a band", _Case(4, 1024, 1024, 64, mask=_band))
    yield from _of("4 x 512 x 64, mask of keys", _Case(4, 512, 512, 64, mask=_some_keys))
    yield from _of("4 x 512 x 64, added mask", _Case(4, 512, 512, 64, mask=_added))
    yield from _of("4 x 512 x 64, dropout", _Case(4, 512, 512, 64, rate=0.1))
    yield from _of("8 x 512 x 64, 2 heads of keys", _Case(8, 512, 512, 64, shared=4))
    yield from _of("4 x 128 x 64, 1024 keys", _Case(4, 128, 1024, 64))
    yield from _of("4 x 1024 x 64, 77 keys", _Case(4, 1024, 77, 64))
    for keys in (512, 4096, 32768):
        yield _decoding(keys, _Case(8, 1, keys, 64))
    yield _decoding(4096, _Case(32, 1, 4096, 128, shared=4))


def _some(rng: np.random.Generator, queries: int, keys: int) -> Any:
    return rng.random((1, 1, queries, keys)) > 0.2


def _band(_: np.random.Generator, queries: int, keys: int) -> Any:
    return abs(np.arange(queries)[:, None] - np.arange(keys))[None, None] < 100


def _some_keys(rng: np.random.Generator, _: int, keys: int) -> Any:
    return rng.random((1, 1, 1, keys)) > 0.2


def _added(rng: np.random.Generator, queries: int, keys: int) -> Any:
    return rng.standard_normal((1, 1, queries, keys)).astype("f4")


def _calls(case: _Case) -> list[tuple[Callable[[], Any], dict[str, Callable[[], object]]]]:
    """Forward, and with backward: ours and those of peers."""
    c, rng = case, np.random.default_rng(0)
    lead, scale = (1, c.heads // c.shared, c.shared), c.size**-0.5
    q, g = (rng.standard_normal((*lead, c.queries, c.size)).astype("f4") for _ in range(2))
    k, v = (rng.standard_normal((*lead[:2], 1, c.keys, c.size)).astype("f4") for _ in range(2))
    mask = None if c.mask is None else c.mask(rng, c.queries, c.keys)
    how = (_ALWAYS if mask is None else mask[:, None], _SEED)

    def forward() -> Any:
        return attention(q, k, v, *how, c.causal, scale, c.rate)

    def both() -> Any:
        out, lse = forward()
        delta = np.einsum("...td,...td->...t", g, out)
        return attention_pull(q, k, v, *how, lse, g, delta, c.causal, scale, c.rate)

    theirs = _torch([x.reshape(1, -1, *x.shape[-2:]) for x in (q, k, v, g)], mask, case)
    return [(ours, {n: p[i] for n, p in theirs.items()}) for i, ours in enumerate((forward, both))]


def _of(name: str, case: _Case) -> Iterator[Row]:
    work = 4 * case.heads * case.queries * case.keys * case.size / (2 if case.causal else 1)
    (forward, theirs), (both, theirs_both) = _calls(case)
    yield Row(name, work, forward, theirs, "f32")
    yield Row(name + ", backward", 3.5 * work, both, theirs_both, "f32")


def _decoding(keys: int, case: _Case) -> Row:
    """One query: every key and value is read once."""
    forward, theirs = _calls(case)[0]
    own = case.heads // case.shared
    name = f"{case.heads} x 1 x {case.size}, {keys} keys" + (
        f" of {own} heads" if case.shared > 1 else ""
    )
    return Row(name, 2 * 4 * own * keys * case.size, forward, theirs)


def _torch(arrays: list[Any], mask: Any, case: _Case) -> dict[str, list[Callable[[], object]]]:
    torch: Any = optional("torch")
    if torch is None:
        return {}
    attend = functools.partial(
        torch.nn.functional.scaled_dot_product_attention,
        attn_mask=None if mask is None else torch.asarray(mask), dropout_p=case.rate,
        is_causal=case.causal, enable_gqa=case.shared > 1,
    )  # fmt: skip
    *plain, g = [torch.asarray(x) for x in arrays]
    leaves = [x.clone().requires_grad_() for x in plain]

    def both() -> object:
        return torch.autograd.grad(attend(*leaves), leaves, g)

    return {"torch": [lambda: attend(*plain), both]}
