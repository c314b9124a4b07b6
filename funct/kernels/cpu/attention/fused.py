"""Attention that never holds the matrix of weights, forward and backward (`text.py`).

What follows from shapes, strides and numbers is planned once and kept: on few elements the calls
around the loops are the whole cost.
"""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import struct
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import Code, host
from funct.device.machine_code import LEAN
from funct.device.printed import Asked, printed_all
from funct.kernels.attention import reduced, threshold
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.attention import strips as strips
from funct.kernels.cpu.attention import text as attention_text
from funct.kernels.cpu.attention.few import FEW, FEW_KEYS
from funct.kernels.cpu.attention.strip_products import TILES, products_level, products_text
from funct.kernels.cpu.dense.turn import turn_text
from funct.kernels.cpu.record import address

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Plan", "attention", "attention_pull", "entry", "plan"]

Array = Any
Sizes = tuple[int, ...]
Layout = tuple[np.dtype[Any], Sizes, Sizes]  # dtype, shape and strides

_ELEMENT = {"float32": "f32", "float64": "f64"}
_LOG2_E = 1 / math.log(2)
_SPLITS = 8  # tasks that a backward pass has at least, where there are queries enough
_SHARED = 64  # queries of one head of keys that a task takes
# What a mask differs by; a boolean one that differs by query is read as bits.
_NONE, _BY_QUERY, _BY_KEY, _BITS = range(4)
_WORD = 32  # keys
_packed = struct.Struct(f"{len(strips.ADDRESSES)}q").pack


@functools.cache
def _function(dtype: np.dtype[Any], name: str) -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_char_p)(entry(dtype, name))


def entry(dtype: np.dtype[Any], name: str) -> int:
    """The address of a function that is told a job: "attend", "attend_few" or "attend_back"."""
    return _code(_ELEMENT[dtype.name], name).address(name)


@functools.cache
def _code(element: str, name: str) -> Code:
    """With that of what it calls, which is made beside it."""
    asked: list[Asked] = [(attention_text.text, (name, element, host()))]
    levels = [LEAN]
    if name != "attend_few":
        given = element, host().vector_bytes
        asked += [(products_text, (*given, along, host())) for along in ("steps", "rows")]
        asked.append((turn_text, (*given, host())))
        levels += [products_level(host().vector_bytes)] * 2 + [LEAN]
    return printed_all(asked, opt=levels)[0]


class Plan(Struct, frozen=True):
    """What follows from all but the elements.

    name: of the function. lead: of the heads. keys_lead: of those of keys. mask: its shape as it is
    read. rest: the job but for its addresses, some of which point into `held`. room: of all
    workers, in bytes. partial: shapes of what becomes the cotangents of keys and values.
    """

    name: str
    run: Callable[[bytes], None]
    lead: Sizes
    keys_lead: Sizes
    queries: int
    depth: int
    width: int
    mask: Sizes
    mask_kind: int
    rest: bytes
    room: int
    partial: tuple[Sizes, Sizes]
    held: tuple[Array, ...]


@functools.lru_cache(256)
def plan(
    name: str, causal: bool, scale: float, rate: float, passes: bool, boolean: bool, mask: Sizes,
    seed: Sizes, *operands: Layout,
) -> Plan | None:  # fmt: skip
    """What is done: "attend", or "attend_back" for the adjoint.

    operands: q, k, v, and g where there is one. passes: whether the mask changes nothing.
    boolean: whether it is.

    None where the kernel does not know the case: operands must be of one dtype, hold something,
    and their rows must be `_readable`.
    """
    dtype, itemsize = operands[0][0], operands[0][0].itemsize
    if not prod(mask) or any(o[0] != dtype or not prod(o[1]) for o in operands):
        return None
    if not all(_readable(*o) for o in operands):
        return None
    (_, q, _), (_, k, _), (_, v, _), *_ = operands
    queries, keys, depth, width = q[-2], k[-2], q[-1], v[-1]
    lanes = host().vector_bytes // itemsize
    strip = max(TILES[lanes * itemsize]) * lanes
    wide = strips.STRIPS * strip
    shared = np.broadcast_shapes(k[:-2], v[:-2])
    lead = np.broadcast_shapes(q[:-2], shared, mask[:-2], seed[:-2])
    keys_lead = (1,) * (len(lead) - len(shared)) + shared
    blocks, groups = -(-queries // wide), prod(keys_lead)
    group = prod(lead) // groups
    few = name == "attend" and queries < FEW and group * queries <= _SHARED and not threshold(rate)
    kind, mask = _kind(mask, queries, keys, passes, packs=boolean and not few)
    heads = _heads(mask, seed, operands, lead, keys_lead)
    pad = 2 * lanes if few else lanes
    padded = (-(-depth // pad) * pad, -(-width // pad) * pad)
    if few:
        name, splits, items = "attend_few", 0, groups
        words = group * queries * (sum(padded) + 2 * lanes) + FEW_KEYS
    elif name == "attend":
        splits, items = 0, len(heads) * blocks
        words = (depth + width + 2) * wide + (strips.BLOCK + 1) * strip
    else:
        splits = min(-(-_SPLITS // groups), group * blocks)
        items = groups * splits
        words = wide * (2 * depth + width + sum(padded) + 2)
        words += 2 * strips.BLOCK * (wide + strips.LINE // itemsize)
    words = -(-words // 64) * 64
    workers = min(items, 4 * host().cores)
    scales = np.array([scale * _LOG2_E, scale, 1 / (1 - rate)], dtype)
    names = ("q_row", "k_row", "v_row", "g_row")
    rows = dict.fromkeys(names, 0) | {
        n: strides[-2] // itemsize for n, (_, _, strides) in zip(names, operands)
    }
    job = strips.JOB.fill(
        **dict.fromkeys(strips.ADDRESSES.names, 0), workers=workers, items=items, blocks=blocks,
        queries=queries, keys=keys, depth=depth, width=width, causal=causal, mask_kind=kind,
        mask_row=mask[-1], heads=address(heads), scratch_step=words,
        scale=address(scales), threshold=threshold(rate), splits=splits, group=group,
        depth_padded=padded[0], width_padded=padded[1], **rows,
    )  # fmt: skip
    dk, dv = ((groups, splits, keys, n) for n in padded)
    return Plan(
        name, _function(dtype, name), lead, keys_lead, queries, depth, width, mask, kind,
        job[len(strips.ADDRESSES) :].tobytes(), workers * words * itemsize, (dk, dv),
        (heads, scales),
    )  # fmt: skip


def _readable(dtype: np.dtype[Any], shape: Sizes, strides: Sizes) -> bool:
    """Whether elements of a row stand side by side, and rows whole elements apart, forwards."""
    size = dtype.itemsize
    near = strides[-1] == size or shape[-1] == 1
    return near and min(strides) >= 0 and not any(s % size for s in strides)


def _kind(mask: Sizes, queries: int, keys: int, passes: bool, *, packs: bool) -> tuple[int, Sizes]:
    """What a mask differs by, and its shape as it is read."""
    if passes:
        return _NONE, mask
    if mask[-2] == 1:
        return _BY_KEY, (*mask[:-2], keys, 1)
    if packs:
        return _BITS, (*mask[:-2], queries, -(-keys // _WORD))
    return _BY_QUERY, (*mask[:-2], queries, keys)


def _heads(
    mask: Sizes, seed: Sizes, operands: tuple[Layout, ...], lead: Sizes, keys_lead: Sizes
) -> NDArray[np.int64]:  # fmt: skip
    """Where the matrices of each head begin, those that share keys side by side."""
    order = _grouped(lead, keys_lead)
    columns = [_offsets(shape, strides, own.itemsize, lead) for own, shape, strides in operands]
    inner = mask[-1] * mask[-2]
    columns.insert(3, _offsets(mask, _contiguous(mask, inner), 1, lead))
    columns.insert(4, _offsets(seed, _contiguous(seed, 2), 1, lead))
    if len(columns) == 5:
        columns.append(columns[0])
    return np.ascontiguousarray(np.stack([*[c[order] for c in columns], order], 1))


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


def _passes(mask: Array) -> bool:
    """Whether it lets every query see every key."""
    if mask.size != 1:
        return False
    x = mask.item()
    return bool(x) if mask.dtype == np.bool_ else x == 0


def _read(mask: Array, plan: Plan, keys: int, dtype: np.dtype[Any]) -> Array:
    """The mask side by side, as what is added or as bits."""
    if plan.mask_kind == _BITS:
        return _packed_bits(mask, plan.mask, keys)
    if mask.dtype == np.bool_:
        mask = np.where(mask, dtype.type(0), dtype.type(-np.inf))
    if plan.mask_kind == _BY_KEY:
        *lead, _, _ = plan.mask
        mask = np.broadcast_to(mask, (*lead, 1, keys)).reshape(plan.mask)
    return np.ascontiguousarray(np.broadcast_to(mask, plan.mask), dtype)


def _packed_bits(mask: Array, shape: Sizes, keys: int) -> Array:
    """Whole words for each query, the first key in the lowest bit."""
    *lead, queries, words = shape
    packed = np.packbits(np.broadcast_to(mask, (*lead, queries, keys)), -1, "little")
    whole = words * _WORD // 8
    if packed.shape[-1] == whole:
        return np.ascontiguousarray(packed)  # its rows lie as those of the mask do
    out = np.zeros((*lead, queries, whole), np.uint8)
    out[..., : packed.shape[-1]] = packed
    return out


def _dense(x: Array) -> Array:
    """x, or a copy whose rows are readable."""
    return x if _readable(x.dtype, x.shape, x.strides) else np.ascontiguousarray(x)


def attention(
    q: Array, k: Array, v: Array, mask: Array, seed: Array, causal: bool, scale: float, rate: float
) -> Any:
    """See `funct.kernels.attention.attention`."""
    planned = plan(
        "attend", causal, scale, rate, _passes(mask), mask.dtype == np.bool_,
        mask.shape, seed.shape,
        (q.dtype, q.shape, q.strides), (k.dtype, k.shape, k.strides), (v.dtype, v.shape, v.strides),
    )  # fmt: skip
    if planned is None:
        dense = [_dense(x) for x in (q, k, v)]
        if all(map(operator.is_, dense, (q, k, v))):
            return NotImplemented
        q, k, v = dense
        return attention(q, k, v, mask, seed, causal, scale, rate)
    dtype = q.dtype
    if planned.mask_kind:
        mask = _read(mask, planned, k.shape[-2], dtype)
    seed = np.ascontiguousarray(seed)
    out = memory.fresh((*planned.lead, planned.queries, planned.width), dtype)
    lse = memory.fresh((*planned.lead, planned.queries), dtype)
    room = memory.scratch(planned.room)
    places = [*map(address, (q, k, v, mask, seed, out, lse)), 0, 0, 0, 0, 0, room]
    planned.run(_packed(*places) + planned.rest)
    return out, lse


def attention_pull(
    q: Array, k: Array, v: Array, mask: Array, seed: Array, lse: Array, g: Array, delta: Array,
    causal: bool, scale: float, rate: float,
) -> Any:  # fmt: skip
    """See `funct.kernels.attention.attention_pull`."""
    dtype = q.dtype
    if not lse.dtype == delta.dtype == dtype:
        return NotImplemented
    planned = plan(
        "attend_back", causal, scale, rate, _passes(mask), mask.dtype == np.bool_,
        mask.shape, seed.shape,
        (dtype, q.shape, q.strides), (k.dtype, k.shape, k.strides), (v.dtype, v.shape, v.strides),
        (g.dtype, g.shape, g.strides),
    )  # fmt: skip
    if planned is None:
        dense = [_dense(x) for x in (q, k, v, g)]
        if all(map(operator.is_, dense, (q, k, v, g))):
            return NotImplemented
        q, k, v, g = dense
        return attention_pull(q, k, v, mask, seed, lse, g, delta, causal, scale, rate)
    if planned.mask_kind:
        mask = _read(mask, planned, k.shape[-2], dtype)
    seed = np.ascontiguousarray(seed)
    lse, delta = (_whole(x, (*planned.lead, planned.queries)) for x in (lse, delta))
    dq = memory.fresh((*planned.lead, planned.queries, planned.depth), dtype)
    dk, dv = (memory.fresh(shape, dtype) for shape in planned.partial)
    room = memory.scratch(planned.room)
    given = (lse, g, delta, dq, dk, dv)
    places = [*map(address, (q, k, v, mask, seed)), 0, *map(address, given), room]
    planned.run(_packed(*places) + planned.rest)
    lead = planned.keys_lead
    dk, dv = _gathered(dk, planned.depth, lead), _gathered(dv, planned.width, lead)
    return reduced(dq, q.shape), reduced(dk, k.shape), reduced(dv, v.shape)


def _whole(x: Array, shape: Sizes) -> Array:
    return np.ascontiguousarray(x if x.shape == shape else np.broadcast_to(x, shape))


def _gathered(parts: Array, columns: int, lead: Sizes) -> Array:
    """The sum of what the tasks of a head found, in their order."""
    whole = parts[:, 0, :, :columns] if parts.shape[1] == 1 else None
    if whole is None:
        whole = np.add.reduce(parts[..., :columns], 1)
    return np.ascontiguousarray(whole).reshape(*lead, parts.shape[2], columns)
