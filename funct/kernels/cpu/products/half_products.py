"""Products of float16 and bfloat16 matrices: sums in float32, each rounded once to the dtype.

bfloat16 is multiplied in pairs where the processor does (`vdpbf16ps`, which takes subnormal numbers
as 0), twice as fast as float32; else it is widened where it is packed, as float16 is.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from math import prod
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from msgspec import Struct

from funct.device import host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.tile import most_rows, tile_table
from funct.kernels.cpu.products.half_rows import KEPT, NARROWEST
from funct.kernels.cpu.products.half_text import CALL, JOB, STRIP, text
from funct.kernels.cpu.record import address

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["half_matmul"]

_ELEMENTS = {np.dtype(np.float16): "f16", np.dtype(ml_dtypes.bfloat16): "bf16"}
_LEFT_BYTES = 1 << 20  # of rows that stay in the second-level cache, or near
_MOST_ROWS = 512
# Words along the depth that are packed at a time, and columns, so that their sums stay there too:
# of many rows, whose sums each piece loads and stores, and of few, whose columns come from afar.
_MANY, _FEW = (512, 64), (256, 256)
_FEW_ROWS = 64
_LEAST_PANELS = 4  # columns of a unit, in panels
_NEAR_ROWS = 16  # rows that read the right operand where it lies, if it has so few elements
_NEAR = 1 << 15
_GAP = 16  # words between packed rows, which else may have the same place in the cache
_SHORT = 64  # words of rows that follow each other, so that a matrix of them is one run
_KEPT = 1 << 12  # matrices of a stack whose places are kept
_FIRST = np.zeros(1, np.int64)
_NO_TAP = np.zeros(2, np.int64)


def half_matmul(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """x @ y of one half-precision dtype and at least two axes each."""
    if not (x.size and y.size):
        return NotImplemented
    (m, k), n = x.shape[-2:], y.shape[-1]
    if n == 1 < m:
        row = half_matmul(y.swapaxes(-1, -2), x.swapaxes(-1, -2))
        return row.reshape(*row.shape[:-2], m, 1)
    if y.ndim == 2 < x.ndim and x.flags.c_contiguous:
        flat = half_matmul(x.reshape(-1, k), y)
        return flat.reshape(*x.shape[:-1], n)
    element, dot, per = _kind(x.dtype)
    if k % per:
        x, y = _filled(x, x.ndim - 1, per), _filled(y, y.ndim - 2, per)
    x, x_turned, x_row = _laid(x, per)
    if y.flags.c_contiguous and y.flags.aligned:
        y_turned, y_row = False, n
    else:
        y, lines, y_row = _laid(y.swapaxes(-1, -2), per)
        y, y_turned = y.swapaxes(-1, -2), not lines
    lead: tuple[int, ...] = ()
    x_places = y_places = _FIRST
    if x.ndim > 2 or y.ndim > 2:
        lead = x.shape[:-2]
        if y.shape[:-2] != lead:
            lead = np.broadcast_shapes(lead, y.shape[:-2])
        x_places, y_places = _places(x, lead), _places(y, lead)
    left_row = x_row // per if per > 1 and not x_turned else 0
    made = _job(element, dot, prod(lead), (m, x.shape[-1] // per, n), left_row)
    out = memory.fresh((*lead, m, n), x.dtype)
    given = _given(
        memory.scratch(made.scratch_bytes), address(x), address(y), address(out),
        address(x_places), address(y_places), x_row, x_turned, y_row, y_turned,
    )  # fmt: skip
    made.run(given + made.job)
    return out


_given = struct.Struct(f"={len(CALL)}q").pack


@functools.cache
def _kind(dtype: np.dtype[Any]) -> tuple[str, str, int]:
    """The element, the dot that this processor has for it, and elements in a word."""
    pairs = dtype != np.float16 and supported(DOTS["bf16"], host()) == host().vector_bytes
    dot = DOTS["bf16" if pairs else "f32"]
    return _ELEMENTS[dtype], dot.name, dot.per_word


def _filled(x: NDArray[Any], axis: int, per: int) -> NDArray[Any]:
    """x with zeros behind it along an axis, whose length becomes a multiple."""
    n = x.shape[axis]
    shape = list(x.shape)
    shape[axis] = -(-n // per) * per
    y = np.zeros(shape, x.dtype)
    y[(*[slice(None)] * axis, slice(n))] = x
    return y


def _laid(x: NDArray[Any], per: int) -> tuple[NDArray[Any], bool, int]:
    """Matrices of which a row is a run of words, or turned: a column a run of elements; the step
    from one to the next.
    """
    rows, columns = x.shape[-2:]
    if x.flags.c_contiguous and x.flags.aligned and columns % per == 0:
        return x, False, columns
    size = x.itemsize
    down, along = x.strides[-2:]
    right = x.flags.aligned and not any(s % size for s in x.strides)
    if right and (along == size or columns == 1) and down // size % per == 0:
        return x, False, down // size
    if right and (down == size or rows == 1):
        return x, True, along // size
    return _laid(np.ascontiguousarray(x), per) if not x.flags.c_contiguous else (x, False, columns)


def _places(x: NDArray[Any], lead: tuple[int, ...]) -> NDArray[np.int64]:
    """Where each matrix of the stack begins, in elements."""
    asked = x.shape[:-2], x.strides[:-2], x.itemsize, lead
    return _starts(*asked) if prod(lead) <= _KEPT else _starts.__wrapped__(*asked)


@functools.lru_cache(256)
def _starts(
    lengths: tuple[int, ...], strides: tuple[int, ...], itemsize: int, lead: tuple[int, ...]
) -> NDArray[np.int64]:
    at = np.zeros((), np.int64)
    own = [0 if n == 1 else s // itemsize for n, s in zip(lengths, strides, strict=True)]
    for n, step in zip(lead, [0] * (len(lead) - len(own)) + own, strict=True):
        at = np.add.outer(at, np.arange(n) * step)
    return np.ascontiguousarray(at.ravel())


class _Job(Struct, frozen=True, eq=False):
    """What is known before the arrays are. job: all fields but those of a call. tables: what its
    addresses point to.
    """

    run: Any
    job: bytes
    scratch_bytes: int
    tables: tuple[NDArray[np.int64], ...]


@functools.lru_cache(512)
def _job(element: str, dot: str, stack: int, sizes: tuple[int, int, int], left_row: int) -> _Job:
    """left_row: words from one row of x to the next; 0 where rows are packed."""
    rows, depth, columns = sizes
    width = supported(DOTS[dot], host())
    lanes = width // 4
    most = min(_MOST_ROWS, max(_LEFT_BYTES // (4 * depth), 2 * most_rows(DOTS[dot], width)))
    block = -(-rows // -(-rows // most))
    blocks = -(-rows // block)
    cores = host().cores
    panels = -(-columns // (2 * lanes))
    splits = min(max(1, -(-2 * cores // (stack * blocks))), max(1, panels // _LEAST_PANELS))
    splits = 1 if cores == 1 else splits
    split = -(-panels // splits) * 2 * lanes
    most_piece, most_chunk = _FEW if block <= _FEW_ROWS else _MANY
    piece, chunk = min(most_piece, depth), min(most_chunk, split)
    per = DOTS[dot].per_word
    near = rows <= _NEAR_ROWS and depth * per * columns <= _NEAR
    few = (rows == 1 or near) and (per == 1 or (columns - 1) % split + 1 >= NARROWEST)
    packed_row = depth + (0 if few and depth <= _SHORT else _GAP)
    parts = {
        "left": 0 if left_row else block * packed_row, "panels": chunk * piece,
        "sums": max(block * chunk, KEPT if few else 0), "lines": STRIP * max(block, 2 * lanes),
    }  # fmt: skip
    starts, end = {}, 0
    for name, size in parts.items():
        starts[name] = end
        end += -(-size // 16) * 16 + 16
    units = stack * blocks * -(-columns // split)
    tasks = min(units, cores)
    along = np.arange(block)
    pixels = np.stack([along * (left_row or packed_row), along * chunk], axis=1)
    counts = {block, rows - (blocks - 1) * block}
    padded = -(-min(columns, 2 * lanes) // lanes) * lanes
    ends = -(-(columns % (2 * lanes)) // lanes) * lanes
    tiles = tile_table(dot, width, counts, padded)
    tile_table(dot, width, counts, ends)
    job = JOB.fill(
        **dict.fromkeys(CALL, 0), **starts, tasks=tasks, units=units, scratch_step=end, rows=rows,
        columns=columns, depth=depth, blocks=blocks, block_rows=block,
        splits=-(-columns // split), split_columns=split, chunk=chunk, piece=piece,
        left_row=left_row or packed_row, pixels=address(pixels), taps=address(_NO_TAP),
        tiles=address(tiles),
        most_rows=most_rows(DOTS[dot], width), lanes=lanes, few=few,
    )  # fmt: skip
    fixed = job[len(CALL) :].tobytes()
    return _Job(_entry(element, dot), fixed, 4 * end * tasks, (pixels,))


@functools.cache
def _entry(element: str, dot: str) -> Any:
    code = printed(text, element, dot, host()).keep()
    return ctypes.CFUNCTYPE(None, ctypes.c_char_p)(code.address("multiply"))
