"""Attention that never holds the matrix of weights, forward and backward (`text.py`)."""

from __future__ import annotations

import ctypes
import functools
import math
from math import prod
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funct.device import Code, host, printed
from funct.kernels.attention import reduced, threshold
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.attention import strips as strips
from funct.kernels.cpu.attention import text as attention_text
from funct.kernels.cpu.record import address

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["attention", "attention_pull"]

Array = Any
Sizes = tuple[int, ...]

_ELEMENT = {"float32": "f32", "float64": "f64"}
_LOG2_E = 1 / math.log(2)
_SPLITS = 8  # tasks that a backward pass has at least, where there are queries enough


@functools.cache
def _entry(element: str, name: str) -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(_code(element, name).address(name))


@functools.cache
def _code(element: str, name: str) -> Code:
    return printed(attention_text.text, name, element, host())


@attrs.frozen
class _Plan:
    """What follows from shapes and strides alone.

    heads: where the matrices of each head begin, those that share keys side by side. job: what is
    filled in.
    """

    lead: Sizes
    keys_lead: Sizes
    group: int
    blocks: int
    wide: int
    heads: NDArray[np.int64]
    job: NDArray[np.int64]


@functools.lru_cache(256)
def _plan(
    lanes: int, itemsize: int, mask: Sizes, seed: Sizes, operands: tuple[tuple[Sizes, Sizes], ...]
) -> _Plan:
    """operands: shape and strides of q, k, v, and of g where there is one."""
    (q, _), (k, _), (v, _), *_ = operands
    wide = strips.STRIPS * max(strips.TILES[lanes * itemsize]) * lanes
    keys = np.broadcast_shapes(k[:-2], v[:-2])
    lead = np.broadcast_shapes(q[:-2], keys, mask[:-2], seed[:-2])
    keys_lead = (1,) * (len(lead) - len(keys)) + keys
    order = _grouped(lead, keys_lead)
    columns = [_offsets(shape, strides, itemsize, lead) for shape, strides in operands]
    inner = mask[-1] * mask[-2]
    columns.insert(3, _offsets(mask, _contiguous(mask, inner), 1, lead))
    columns.insert(4, _offsets(seed, _contiguous(seed, 2), 1, lead))
    if len(columns) == 5:
        columns.append(columns[0])
    table = np.ascontiguousarray(np.stack([*[c[order] for c in columns], order], 1))
    names = ("q_row", "k_row", "v_row", "g_row")
    rows = dict.fromkeys(names, 0) | {
        n: strides[-2] // itemsize for n, (_, strides) in zip(names, operands)
    }
    blocks = -(-q[-2] // wide)
    group = prod(lead) // prod(keys_lead)
    job = np.zeros(len(strips.JOB), np.int64)
    strips.JOB.put(
        job, blocks=blocks, queries=q[-2], keys=k[-2], depth=q[-1], width=v[-1], group=group,
        heads=address(table), **rows,
    )  # fmt: skip
    return _Plan(lead, keys_lead, group, blocks, wide, table, job)


def _grouped(lead: Sizes, keys_lead: Sizes) -> NDArray[np.int64]:
    """The heads in an order in which those that share keys stand together."""
    shared = [n == 1 != m for n, m in zip(keys_lead, lead)]
    axes = sorted(range(len(lead)), key=lambda i: shared[i])
    numbers = np.arange(prod(lead), dtype=np.int64).reshape(lead)
    return numbers.transpose(axes).reshape(-1)


def _contiguous(shape: Sizes, inner: int) -> Sizes:
    """The strides of leading axes over matrices of `inner` elements, side by side."""
    steps = [inner * prod(shape[i + 1 : -2]) for i in range(len(shape) - 2)]
    return (*steps, 0, 0)


def _offsets(shape: Sizes, strides: Sizes, itemsize: int, lead: Sizes) -> NDArray[np.int64]:
    """Where the matrices of a stack begin, in elements, for each place of the leading axes."""
    at = np.zeros((1,) * len(lead), np.int64)
    own = shape[:-2]
    for i, (n, s) in enumerate(zip(own, strides)):
        axis = i + len(lead) - len(own)
        steps = np.arange(n, dtype=np.int64) * (s // itemsize if n > 1 else 0)
        at = at + steps.reshape([-1 if j == axis else 1 for j in range(len(lead))])
    return np.broadcast_to(at, lead).reshape(-1)


def _read_mask(
    mask: Array, queries: int, keys: int, dtype: np.dtype[Any]
) -> tuple[Array, int, int]:
    """The mask as numbers, side by side; 0: none, 1: by query and key, 2: by key alone; its row."""
    if mask.size == 1 and _passes(mask):
        return mask, 0, 0
    if mask.dtype == np.bool_:
        mask = np.where(mask, dtype.type(0), dtype.type(-np.inf))
    lead = mask.shape[:-2]
    if mask.shape[-2] == 1:
        by_key = np.broadcast_to(mask, (*lead, 1, keys)).reshape(*lead, keys, 1)
        return np.ascontiguousarray(by_key, dtype), 2, 1
    full = np.broadcast_to(mask, (*lead, queries, keys))
    return np.ascontiguousarray(full, dtype), 1, keys


def _passes(mask: Array) -> bool:
    return bool(mask.reshape(())) if mask.dtype == np.bool_ else not mask.reshape(())


def _rows(x: Array) -> Array:
    """x with the elements of a row side by side, and rows that do not overlap backwards."""
    return x if _readable(x.shape, x.strides, x.itemsize) else np.ascontiguousarray(x)


@functools.lru_cache(256)
def _readable(shape: Sizes, strides: Sizes, itemsize: int) -> bool:
    return (strides[-1] == itemsize or shape[-1] == 1) and min(strides) >= 0


def _fits(mask: Array, *operands: Array) -> bool:
    return bool(mask.size) and _known(*[(a.dtype, a.shape, a.strides) for a in operands])


@functools.lru_cache(256)
def _known(*operands: tuple[np.dtype[Any], Sizes, Sizes]) -> bool:
    """Whether all are of one dtype, hold something, and have whole elements between them."""
    dtype, step = operands[0][0], operands[0][0].itemsize
    return all(
        own == dtype and prod(shape) > 0 and not any(s % step for s in strides)
        for own, shape, strides in operands
    )


def _prepare(mask: Array, seed: Array, *operands: Array) -> tuple[_Plan, tuple[Array, int, int]]:
    """operands: q, k, v, and g where there is one."""
    q, k = operands[:2]
    lanes = host().vector_bytes // q.itemsize
    read = _read_mask(mask, q.shape[-2], k.shape[-2], q.dtype)
    given = tuple([(a.shape, a.strides) for a in operands])
    return _plan(lanes, q.itemsize, read[0].shape, seed.shape, given), read


def _run(
    name: str, plan: _Plan, read: tuple[Array, int, int], seed: Array, causal: bool,
    scale: float, rate: float, operands: tuple[Array, ...], items: int, words: int, **fields: int,
) -> None:  # fmt: skip
    q, k, v = operands[:3]
    mask, kind, row = read
    scales = np.array([scale * _LOG2_E, scale, 1 / (1 - rate)], q.dtype)
    seed = np.ascontiguousarray(seed)
    workers = min(items, 4 * host().cores)
    words = -(-words // 64) * 64
    job = plan.job.copy()
    strips.JOB.put(
        job, workers=workers, items=items, causal=causal, mask_kind=kind, mask_row=row,
        q=address(q), k=address(k), v=address(v), mask=address(mask), scale=address(scales),
        scratch=memory.scratch(workers * words * q.itemsize), scratch_step=words,
        seed=address(seed), threshold=threshold(rate), **fields,
    )  # fmt: skip
    _entry(_ELEMENT[q.dtype.name], name)(address(job))


def attention(
    q: Array, k: Array, v: Array, mask: Array, seed: Array, causal: bool, scale: float, rate: float
) -> Any:
    """See `funct.kernels.attention.attention`."""
    if not _fits(mask, q, k, v):
        return NotImplemented
    operands = q, k, v = tuple([_rows(a) for a in (q, k, v)])
    plan, read = _prepare(mask, seed, *operands)
    queries, depth, width = q.shape[-2], q.shape[-1], v.shape[-1]
    out = memory.fresh((*plan.lead, queries, width), q.dtype)
    lse = memory.fresh((*plan.lead, queries), q.dtype)
    strip = plan.wide // strips.STRIPS
    _run(
        "attend", plan, read, seed, causal, scale, rate, operands,
        items=len(plan.heads) * plan.blocks,
        words=(depth + width + 2) * plan.wide + (2 * strips.BLOCK + 1) * strip, o=address(out),
        lse=address(lse),
    )  # fmt: skip
    return out, lse


def attention_pull(
    q: Array, k: Array, v: Array, mask: Array, seed: Array, lse: Array, g: Array, delta: Array,
    causal: bool, scale: float, rate: float,
) -> Any:  # fmt: skip
    """See `funct.kernels.attention.attention_pull`."""
    if not _fits(mask, q, k, v, lse, g, delta):
        return NotImplemented
    operands = q, k, v, g = tuple([_rows(a) for a in (q, k, v, g)])
    plan, read = _prepare(mask, seed, *operands)
    queries, keys, depth, width = q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1]
    lse, delta = (
        np.ascontiguousarray(np.broadcast_to(x, (*plan.lead, queries))) for x in (lse, delta)
    )
    groups = len(plan.heads) // plan.group
    splits = min(-(-_SPLITS // groups), plan.group * plan.blocks)
    pad = 2 * host().vector_bytes // q.itemsize
    wide = (-(-depth // pad) * pad, -(-width // pad) * pad)
    dq = memory.fresh((*plan.lead, queries, depth), q.dtype)
    dk, dv = (memory.fresh((groups, splits, keys, n), q.dtype) for n in wide)
    _run(
        "attend_back", plan, read, seed, causal, scale, rate, operands, items=groups * splits,
        words=plan.wide * (2 * depth + width + sum(wide) + 3 * strips.BLOCK + 2),
        lse=address(lse), splits=splits, g=address(g), delta=address(delta), dq=address(dq),
        dk=address(dk), dv=address(dv), depth_padded=wide[0], width_padded=wide[1],
    )  # fmt: skip
    dk, dv = _gathered(dk, depth, plan.keys_lead), _gathered(dv, width, plan.keys_lead)
    dk *= q.dtype.type(scale)
    return reduced(dq, q.shape), reduced(dk, k.shape), reduced(dv, v.shape)


def _gathered(parts: Array, columns: int, lead: Sizes) -> Array:
    """The sum of what the tasks of a head found, in their order."""
    whole = parts[:, 0, :, :columns] if parts.shape[1] == 1 else None
    if whole is None:
        whole = np.add.reduce(parts[..., :columns], 1)
    return np.ascontiguousarray(whole).reshape(*lead, parts.shape[2], columns)
