"""The order of keys that lie evenly, as random ones do: they fall into buckets of some each by
their first bits, and a bucket is put in order in registers, by a network of comparisons.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from funct.kernels.cpu.loops import making
from funct.kernels.cpu.order.networks import ascending
from funct.kernels.cpu.order.words import LANES
from funct.kernels.cpu.vectors import asked, lanes, loaded, spread, stored

__all__ = ["NEAR", "even_order", "items_for", "sizes"]

NEAR = 1 << 18  # keys up to which all buckets are at hand
PLACES = 32  # of a bucket, which are enough but for one of some 20 million,
_MOST = 16  # and of which most buckets need no more than so many
_LOAD = 11  # keys for each bucket
# keys whose buckets are not all in the first cache, so one is asked for ahead of so many others
_MANY, _AHEAD = 1 << 11, 16
# bits of how many keys have one first digit, whose buckets stay in the second cache; and of that,
# if it has as many: each is a place that is written by turns, on a page of its own
_PART, _DIGIT = 14, 11
_NONE = np.int32((1 << 31) - 1)  # what stands in places of no key


@functools.lru_cache(256)
def sizes(n: int, near: int) -> tuple[int, int, int, int]:
    """For n keys: bits of an index; bits of the first digit, by which keys are dealt out before if
    they are more than `near`; how many have the same one, at most; and how many buckets there are.
    """
    low, digit, part = (n - 1).bit_length(), 0, n
    if n > near:
        digit = max(1, min(low - _PART, _DIGIT))
        mean = n >> digit
        part = mean + 8 * math.isqrt(mean) + 16
    return low, digit, part, -(-part // _LOAD)


def items_for(room: int) -> int:
    """How many integers of 32 bits hold so many buckets, what fits in none, and their sizes."""
    return room * (PLACES + 1) + 1


@making("n", "like")
def even_order(
    keys: Any, like: Any, words: Any, counts: Any, items: Any, n: int, low: int, digit: int,
    part: int, room: int, y: Any, size: int,
) -> int:  # fmt: skip
    """The indices of keys (n,), 64 bits without sign, in stable order, in a new array of the dtype
    of like, int64. The answer is 1 where they do not lie evenly.

    low, digit, part, room: see `sizes`. words: `part` for each first digit, counts: one, if it has
    bits. items: `items_for(room)`.
    """
    failed: Any = n < 0
    if digit == 0:
        failed = _in_buckets(keys, keys, y, items, room, 0, 0, n, 64, low, True)
    else:
        bottom, top = np.uint64(low), np.uint64(64 - digit)
        for d in range(1 << digit):
            counts[d] = d * part
        most = (part << digit) - 1
        for i in range(n):
            v = keys[i]
            d = (v >> top).astype(np.int64)
            place = counts[d]
            counts[d] = place + 1
            words[min(place, most)] = ((v >> bottom) << bottom) | np.uint64(i)
        to: Any = np.int64(0)
        for d in range(1 << digit):
            first = d * part
            count = counts[d] - first
            failed = failed | (count > part)
            if ~failed:
                failed = _in_buckets(
                    keys, words, y, items, room, first, to, count, 64 - digit, low, False
                )  # fmt: skip
            to += count
    return 1 if failed else 0


def _in_buckets(
    keys: Any, words: Any, y: Any, items: Any, room: Any, first: Any, to: Any, n: Any, top: Any,
    low: Any, whole: bool,
) -> Any:  # fmt: skip
    """The order of n words from `first` on, all of whose bits from `top` on are the same, into y,
    from `to` on: of all keys, if whole; else words have behind the first bits of a key its index.

    An item of a bucket is as many bits of a word as there is room for, and its place behind first.
    """
    size = np.int64(np.uint64(n + _LOAD - 1) // np.uint64(_LOAD))
    wide: Any = np.int64(31)  # bits of an item for those of a word
    rest: Any = n + 0
    while rest > 0:
        rest = rest >> 1
        wide -= 1
    some: Any = room * PLACES
    ends: Any = some + 1
    for d in range(size):
        items[ends + d] = np.int32(d * PLACES)
    above, times = np.uint64(64 - top), size.astype(np.uint64)
    behind = (31 - wide).astype(np.uint64)
    key = np.uint64((1 << 31) - 1) >> behind << behind
    beyond = np.int32(some)
    soon = n - _AHEAD if n >= _MANY else np.int64(0)
    for i in range(soon):
        later = (words[first + i + _AHEAD] << above) >> 32
        asked(items, (later * times >> 32).astype(np.int64) * PLACES, 1)
        _put(items, ends, beyond, i, ((words[first + i] << above) >> 32) * times, key)
    for i in range(soon, n):
        _put(items, ends, beyond, i, ((words[first + i] << above) >> 32) * times, key)
    failed: Any = n < 0
    at: Any = np.int64(0)
    for d in range(size):
        start = d * PLACES
        count = items[ends + d].astype(np.int64) - start
        failed = failed | (count > PLACES)
        if ~failed:
            if count <= _MOST:
                _in_order(items, start, count, at, _MOST)
            else:
                _in_order(items, start, count, at, PLACES)
        at += count
    if ~failed:
        _settled(keys, words, items, first, n, behind, low, whole)
        place = (np.int32(1) << behind.astype(np.int32)) - 1
        vectors = n & -LANES if whole else np.int64(0)
        for i in range(0, vectors, LANES):
            stored(y, to + i, (loaded(items, i, LANES) & place).astype(np.int64))
        for i in range(vectors, n):
            y[to + i] = _index(words, items[i] & place, first, low, whole)
    return failed


def _put(items: Any, ends: Any, beyond: Any, i: Any, part: Any, key: Any) -> None:
    """Put word i into its bucket. part: how many are before that, in parts of 2 ** 32."""
    d = ends + (part >> 32).astype(np.int64)
    place = items[d]
    items[d] = place + 1
    item = (part >> 1 & key) | np.uint64(i)
    items[min(place, beyond).astype(np.int64)] = item.astype(np.int32)


def _in_order(items: Any, start: Any, count: Any, to: Any, places: int) -> None:
    """Put the `count` items of a bucket in order, from `to` on; what is behind them is anything."""
    here = lanes(places, np.int32) < count.astype(np.int32)
    v = np.where(here, loaded(items, start, places), spread(_NONE, places))
    stored(items, to, ascending(v, places))


def _settled(
    keys: Any, words: Any, items: Any, first: Any, n: Any, behind: Any, low: Any, whole: bool
) -> None:  # fmt: skip
    """Items are in order but for those that are alike in the bits that they have of a key."""
    bits = behind.astype(np.int32)
    i: Any = np.int64(1)
    while i < n:
        end = min(i + LANES, n)
        alike = end < i + LANES
        if ~alike:
            alike = ((loaded(items, i, LANES) ^ loaded(items, i - 1, LANES)) >> bits == 0).any()
        if alike:
            for k in range(i, end):
                if (items[k] ^ items[k - 1]) >> bits == 0:
                    _inserted(keys, words, items, k, first, behind, low, whole)
        i = end


def _inserted(
    keys: Any, words: Any, items: Any, at: Any, first: Any, behind: Any, low: Any, whole: bool
) -> None:  # fmt: skip
    """Move one item to where its key belongs among those before it."""
    place = (np.int32(1) << behind.astype(np.int32)) - 1
    item = items[at]
    key = keys[_index(words, item & place, first, low, whole)]
    to: Any = at + 0
    moves = to > 0
    while moves:
        before = items[to - 1]
        moves = keys[_index(words, before & place, first, low, whole)] > key
        if moves:
            items[to] = before
            to -= 1
            moves = to > 0
    items[to] = item


def _index(words: Any, place: Any, first: Any, low: Any, whole: bool) -> Any:
    """The index of a key whose word is so far behind the first one."""
    if whole:
        return place.astype(np.int64)
    word = words[first + place.astype(np.int64)]
    return (word & ((np.uint64(1) << np.uint64(low)) - 1)).astype(np.int64)
