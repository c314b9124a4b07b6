"""Threefry-2x32: random bits as a pure function of a key and a counter, the same on every machine.

A key is two uint32 words. `split`, `fold_in` and `random_bits` hash the 64-bit flat index of each
result, so no result depends on how many others are asked for, nor on the order they are made in.
Bits and keys are those of JAX with `jax_threefry_partitionable=True`. Machine code makes them once
LLVM is loaded or many are asked for, and NumPy before that.

Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.
        https://doi.org/10.1145/2063384.2063405
"""

from __future__ import annotations

import itertools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.random import bits as cpu
from funct.kernels.random import normal as made_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    Words = NDArray[np.uint32]

__all__ = [
    "fold_in", "halves", "is_seed", "plain_bits", "plain_numbers", "plain_split", "random_bits",
    "random_exponential", "random_gumbel", "random_normal", "random_unit", "seed", "split",
    "threefry2x32",
]  # fmt: skip

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF

# Three buffers of this many words stay in a second-level cache of 512 KiB. A power of two, so that
# the high words of the counters of a block are all equal.
_BLOCK = 1 << 15
_FEW = 8  # up to here Python's own integers beat the overhead of 110 NumPy calls

_DTYPES = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def _hash_ints(k0: int, k1: int, x0: int, x1: int) -> tuple[int, int]:
    """The hash of one counter, in Python's integers."""
    ks = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = (x0 + k0) & _WORD, (x1 + k1) & _WORD
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = (x0 + x1) & _WORD
            x1 = ((x1 << r | x1 >> (32 - r)) & _WORD) ^ x0
        x0 = (x0 + ks[(i + 1) % 3]) & _WORD
        x1 = (x1 + ks[(i + 2) % 3] + i + 1) & _WORD
    return x0, x1


def _hash_block(k0: Words, k1: Words, x0: Words, x1: Words) -> None:
    """The hash of flat counters, in place; k0 and k1 have one element, or as many as x0."""
    turned = np.empty_like(x1)
    ks = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    x0 += k0
    x1 += k1
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 += x1
            np.left_shift(x1, r, out=turned)
            np.right_shift(x1, 32 - r, out=x1)
            x1 |= turned
            x1 ^= x0
        x0 += ks[(i + 1) % 3]
        x1 += ks[(i + 2) % 3]
        x1 += np.uint32(i + 1)


def _hash(k0: Words, k1: Words, x0: Words, x1: Words) -> None:
    """`_hash_block`, by the way that is quicker for so many counters."""
    if x0.size > _FEW:
        _hash_block(k0, k1, x0, x1)
        return
    keys = zip(k0.tolist(), k1.tolist())
    repeated = itertools.repeat(next(keys)) if k0.size == 1 else keys
    for i, (key, a, b) in enumerate(zip(repeated, x0.tolist(), x1.tolist())):
        x0[i], x1[i] = _hash_ints(*key, a, b)


def threefry2x32(
    key0: ArrayLike, key1: ArrayLike, x0: ArrayLike, x1: ArrayLike
) -> tuple[Words, Words]:
    """Hash counters (x0, x1) under keys (key0, key1) by 20 rounds of Threefry-2x32.

    Args:    four arrays of uint32 whose shapes broadcast.
    Returns: (y0, y1), uint32 of the common shape.
    """
    given = [np.asarray(a, np.uint32) for a in (key0, key1, x0, x1)]
    shape = np.broadcast_shapes(*[a.shape for a in given])
    single = given[0].size == given[1].size == 1
    k0, k1 = [a.reshape(1) if single else _flat(a, shape) for a in given[:2]]
    y0, y1 = [_flat(a, shape).copy() for a in given[2:]]
    if ready(y0.size):
        cpu.hash_words(k0, k1, y0, y1)
        return y0.reshape(shape), y1.reshape(shape)
    for start in range(0, y0.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        here = slice(None) if single else part
        _hash(k0[here], k1[here], y0[part], y1[part])
    return y0.reshape(shape), y1.reshape(shape)


def _flat(x: Words, shape: tuple[int, ...]) -> Words:
    return np.broadcast_to(x, shape).reshape(-1)


def _count(start: int, indices: Words, x0: Words, x1: Words) -> None:
    """Write start + indices as high words x0 and low words x1; see _BLOCK why x0 is one number."""
    x0.fill(start >> 32)
    np.add(indices, np.uint32(start & _WORD), out=x1)


def _tiles(keys: Words, count: int) -> Iterator[tuple[slice, slice, Words, Words]]:
    """Hash the counters 0 … count - 1 under each of the keys (b, 2), tile by tile.

    Yields the tile's keys, its counters, and the two words, both (keys, counters). The words live
    in buffers that the next tile overwrites.
    """
    width = max(1, min(count, _BLOCK))
    height = max(1, min(len(keys), _BLOCK // width))
    buffer = np.empty((2, height * width), np.uint32)
    indices = np.arange(width, dtype=np.uint32)
    for top in range(0, len(keys), height):
        rows = slice(top, min(top + height, len(keys)))
        for start in range(0, count, width):
            columns = slice(start, min(start + width, count))
            m, n = rows.stop - top, columns.stop - start
            x0, x1 = buffer[:, : m * n]
            _count(start, indices[:n], x0, x1.reshape(m, n))
            k0, k1 = [k if m == 1 else np.repeat(k, n) for k in keys[rows].T]
            _hash(k0, k1, x0, x1)
            yield rows, columns, x0.reshape(m, n), x1.reshape(m, n)


def random_bits(key: Words, shape: tuple[int, ...], width: int) -> NDArray[Any]:
    """Make uniformly random unsigned integers of `width` bits.

    Args:    key: (*b, 2). width: 8, 16, 32 or 64.
    Returns: (*b, *shape), uint8 … uint64.
    Raises:  ValueError: when there is no such width.
    """
    if width not in _DTYPES:
        raise ValueError(f"random_bits: width must be 8, 16, 32 or 64, got {width}")
    if ready(prod(shape) * key.size):
        made: NDArray[Any] = cpu.numbers(key, shape, _DTYPES[width], "bits")
        return made
    return plain_bits(key, shape, width)


def plain_bits(key: Words, shape: tuple[int, ...], width: int) -> NDArray[Any]:
    """`random_bits` in NumPy."""
    keys, count = key.reshape(-1, 2), prod(shape)
    bits = np.empty((len(keys), count), _DTYPES[width])
    for rows, columns, y0, y1 in _tiles(keys, count):
        tile = bits[rows, columns]
        if width == 64:
            np.left_shift(y0, 32, out=tile, dtype=np.uint64)
            tile |= y1
        else:
            y0 ^= y1
            tile[...] = y0  # the low bits, where width < 32
    return bits.reshape((*key.shape[:-1], *shape))


def random_unit(key: Words, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Make uniform numbers on [0, 1): the first 24 or 53 of `random_bits`, scaled exactly.

    Args:    key: (*b, 2). dtype: float32 or float64.
    Returns: (*b, *shape).
    """
    return _numbers(key, shape, dtype, "unit")


def random_normal(key: Words, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Make standard normal numbers, by inversion: each word of `random_bits` gives one.

    Args, Returns: as `random_unit`.
    """
    return _numbers(key, shape, dtype, "normal")


def random_exponential(key: Words, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Make exponential numbers with rate 1, in the same way: finite, and never 0."""
    return _numbers(key, shape, dtype, "exponential")


def random_gumbel(key: Words, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Make standard Gumbel numbers, in the same way."""
    return _numbers(key, shape, dtype, "gumbel")


def _numbers(key: Words, shape: tuple[int, ...], dtype: np.dtype[Any], kind: str) -> NDArray[Any]:
    if ready(prod(shape) * key.size):
        return cpu.numbers(key, shape, dtype, kind)
    return plain_numbers(key, shape, dtype, kind)


def plain_numbers(
    key: Words, shape: tuple[int, ...], dtype: np.dtype[Any], kind: str
) -> NDArray[Any]:
    """Numbers of a kind in NumPy: "unit", "normal", "exponential" or "gumbel"."""
    words = np.atleast_1d(plain_bits(key, shape, dtype.itemsize * 8))
    with np.errstate(all="ignore"):  # what lies in the far tail is computed for all
        if dtype.itemsize == 4:
            made = getattr(made_of, f"{kind}32")(words)
        else:
            high, low = (words >> 32).astype(np.uint32), words.astype(np.uint32)
            made = getattr(made_of, f"{kind}64")(high, low)
    return np.asarray(made.reshape((*key.shape[:-1], *shape)))


def split(key: Words, n: int) -> Words:
    """Make n keys from each key: (*b, 2) -> (*b, n, 2)."""
    if ready(n * key.size):
        words = cpu.numbers(key, (n,), np.uint64, "split")
        if key.ndim == 1:
            return words.view(np.uint32).reshape(n, 2)
        return words.reshape(-1).view(np.uint32).reshape(*key.shape[:-1], n, 2)
    return plain_split(key, n)


def plain_split(key: Words, n: int) -> Words:
    """`split` in NumPy."""
    keys = key.reshape(-1, 2)
    made = np.empty((len(keys), n, 2), np.uint32)
    for rows, columns, y0, y1 in _tiles(keys, n):
        made[rows, columns, 0] = y0
        made[rows, columns, 1] = y1
    return made.reshape(*key.shape[:-1], n, 2)


def fold_in(key: Words, data: int | NDArray[Any]) -> Words:
    """Make the key that belongs to `data`, an integer or an array of them.

    Args:    key: (*b, 2). data: broadcasts against *b; its low 32 bits count.
    Returns: (*b, 2), *b the common shape, uint32.
    """
    single = key.shape == (2,)
    if single and isinstance(data, np.ndarray) and data.size >= cpu.WIDE and ready(data.size):
        made: Words = cpu.folded(key, data)
        return made
    low = np.asarray(data & _WORD).astype(np.uint32)
    if low.ndim == 0 and single and ready(1):
        return cpu.hash_one(key, low.item())
    return np.stack(threefry2x32(key[..., 0], key[..., 1], np.uint32(0), low), axis=-1)


def seed(value: int) -> Words:
    """Make a key, (2,) uint32, of a 64-bit integer: its high word and its low word.

    Raises: OverflowError: when `value` has more than 64 bits.
    """
    if not is_seed(value):
        raise OverflowError(f"seed: value must fit 64 bits, got {value}")
    return np.array(halves(value), np.uint32)


def is_seed(value: int) -> bool:
    """Whether an integer has 64 bits at most."""
    return -(1 << 63) <= value < 1 << 64


def halves(value: int) -> tuple[Any, Any]:
    """The high word and the low word of 64 bits."""
    return value >> 32 & _WORD, value & _WORD
