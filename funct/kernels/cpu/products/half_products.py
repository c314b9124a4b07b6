"""Products of float16 and bfloat16 matrices: sums in float32, each rounded once to the dtype.

bfloat16 is multiplied in pairs where the processor does (`vdpbf16ps`, which takes subnormal numbers
as 0), twice as fast as float32; else it is widened where it is packed, as float16 is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
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
from funct.kernels.cpu.runners import filling
from funct.kernels.table import Planned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Sizes = tuple[int, ...]

__all__ = ["half_matmul"]

_ELEMENTS = {np.dtype(np.float16): "f16", np.dtype(ml_dtypes.bfloat16): "bf16"}
_KEPT = 1 << 12  # matrices of a stack whose places are kept
_DTYPES = {dtype.char: dtype for dtype in _ELEMENTS}
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
_NO_TAP = np.zeros(2, np.int64)


def _plan(
    x: _Sizes, y: _Sizes, x_strides: _Sizes, y_strides: _Sizes, char: str
) -> Callable[..., Any] | None:
    """x @ y of one half-precision dtype and at least two axes each."""
    if 0 in (*x, *y) or x[-1] != y[-2]:
        return None
    dtype, (m, k), n = _DTYPES[char], x[-2:], y[-1]
    byte = dtype.itemsize
    if n == 1 < m:
        row: Any = _plan(_turned(y), _turned(x), _turned(y_strides), _turned(x_strides), char)
        shape = (*np.broadcast_shapes(x[:-2], y[:-2]), m, 1)
        return lambda x, y: row(y.swapaxes(-1, -2), x.swapaxes(-1, -2)).reshape(shape)
    if len(y) == 2 < len(x) and _dense(x, x_strides, byte):
        flat: Any = _plan((prod(x[:-1]), k), y, (k * byte, byte), y_strides, char)
        return lambda x, y: flat(x.reshape(-1, k), y).reshape(*x.shape[:-1], n)
    element, dot, per = _kind(dtype)
    left = _laid(x, x_strides, byte, per)
    right: Any = (False, n) if _dense(y, y_strides, byte) else None
    if right is None:
        lines = _laid(_turned(y), _turned(y_strides), byte, per)
        right = None if lines is None else (not lines[0], lines[1])
    if k % per or left is None or right is None:
        return _copied(x, y, char, per)
    lead = np.broadcast_shapes(x[:-2], y[:-2])
    left_row = left[1] // per if per > 1 and not left[0] else 0
    made = _job(element, dot, prod(lead), (m, k // per, n), left_row)
    job = made.job.copy()
    JOB.put(job, x_row=left[1], x_turned=left[0], y_row=right[1], y_turned=right[0])
    run = filling(made.code, job, [JOB.place(name) for name in CALL[:6]])
    make, room = memory.maker((*lead, m, n), dtype), made.scratch_bytes

    def places() -> list[NDArray[np.int64]]:
        stacks = (x, x_strides), (y, y_strides)
        return [_starts(of[:-2], steps[:-2], byte, lead) for of, steps in stacks]

    kept = places() if prod(lead) <= _KEPT else None

    def multiply(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        run(memory.scratch(room), x, y, out := make(), *(kept or places()))
        return out

    return multiply


half_matmul = Planned(_plan)


def _copied(x: _Sizes, y: _Sizes, char: str, per: int) -> Callable[..., Any]:
    """The same for copies of operands, with zeros behind so that terms are whole words."""
    wanting = -x[-1] % per
    x, y = (*x[:-1], x[-1] + wanting), (*y[:-2], y[-2] + wanting, y[-1])
    dense = np.empty(x, np.int16).strides, np.empty(y, np.int16).strides
    multiply: Any = _plan(x, y, *dense, char)

    def copied(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        if wanting:
            x, y = _filled(x, x.ndim - 1, per), _filled(y, y.ndim - 2, per)
        product: NDArray[Any] = multiply(np.ascontiguousarray(x), np.ascontiguousarray(y))
        return product

    return copied


def _turned(of: _Sizes) -> _Sizes:
    return (*of[:-2], of[-1], of[-2])


def _dense(shape: _Sizes, strides: _Sizes, step: int) -> bool:
    """Whether elements follow each other in C's order."""
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and stride != step:
            return False
        step *= n
    return True


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


def _laid(shape: _Sizes, strides: _Sizes, byte: int, per: int) -> tuple[bool, int] | None:
    """Whether a column of a matrix is a run of elements, not a row one of words, and the step from
    one to the next; None where neither is.
    """
    (rows, columns), (down, along) = shape[-2:], strides[-2:]
    if columns % per == 0 and _dense(shape, strides, byte):
        return False, columns
    if any(s % byte for s in strides):
        return None
    if (along == byte or columns == 1) and down // byte % per == 0:
        return False, down // byte
    return (True, along // byte) if down == byte or rows == 1 else None


def _starts(
    lengths: tuple[int, ...], strides: tuple[int, ...], itemsize: int, lead: tuple[int, ...]
) -> NDArray[np.int64]:
    """Where each matrix of a stack begins, in elements."""
    at = np.zeros((), np.int64)
    own = [0 if n == 1 else s // itemsize for n, s in zip(lengths, strides, strict=True)]
    for n, step in zip(lead, [0] * (len(lead) - len(own)) + own, strict=True):
        at = np.add.outer(at, np.arange(n) * step)
    return np.ascontiguousarray(at.ravel())


class _Job(Struct, frozen=True, eq=False):
    """What is known of sizes. job: all but the fields of a call. tables: what it points to."""

    code: int
    job: NDArray[np.int64]
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
    return _Job(_entry(element, dot), job, 4 * end * tasks, (pixels, tiles))


@functools.cache
def _entry(element: str, dot: str) -> int:
    return printed(text, element, dot, host()).keep().address("multiply")
