"""Keys and indices in one word: packed, the least of them found, sorted by digits, unpacked."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.vectors import lanes, loaded, many, spread, stored
from funct.kernels.dtypes import is_half

__all__ = [
    "DIGIT", "LANES", "SAMPLE", "by_digit", "by_digits", "least", "least_of_row", "ordered", "pack",
    "packed_from", "turn_halves", "unpack", "unpacked",
]  # fmt: skip

LANES = 16
DIGIT = 11  # bits
SAMPLE = 32  # words that tell where a bound of all may be
_INFINITE = {"float16": 0x7C00, "bfloat16": 0x7F80}  # the bits of halves that are
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def ordered(v: Any) -> Any:
    """An unsigned key that is ordered as v is: NaN above all, -0 equal to 0."""
    bits = v.dtype.itemsize * 8
    unsigned = _UNSIGNED[v.dtype.itemsize]
    if is_half(v.dtype):
        raw = v.view(unsigned)
        raw = np.where(raw == 1 << 15, raw ^ raw, raw)
        key = np.where(raw >> 15 != 0, ~raw, raw | (1 << 15))
        key = np.where(raw & 0x7FFF > _INFINITE[v.dtype.name], ~(raw ^ raw), key)
    elif v.dtype.kind == "u":
        key = v
    elif v.dtype.kind == "i":
        key = v.view(unsigned) ^ (1 << (bits - 1))
    else:
        v = v + 0.0
        raw = v.view(unsigned)
        negative = raw >> (bits - 1) != 0
        key = np.where(negative, ~raw, raw | (1 << (bits - 1)))
        key = np.where(v != v, ~(raw ^ raw), key)
    return key


@kernel
def turn_halves(x: Any, y: Any, n: int, infinite: int) -> int:
    """y: integers that are ordered as the halves are whose bits are x, and back; 1 where some are
    -0 or NaN, which is more than `infinite` without its sign.
    """
    odd: Any = x[0] < x[0]
    whole = n & -LANES
    most = np.int16(infinite)
    for i in range(0, whole, LANES):
        v = loaded(x, i, LANES)
        odd = odd | (((v & 0x7FFF) > spread(most, LANES)) | (v == -0x8000)).any()
        stored(y, i, v ^ ((v >> 15) & 0x7FFF))
    for i in range(whole, n):
        v = x[i]
        odd = odd | ((v & 0x7FFF) > most) | (v == -0x8000)
        y[i] = v ^ ((v >> 15) & 0x7FFF)
    if odd:
        return 1
    return 0


@kernel
def pack(x: Any, words: Any, rows: int, n: int, low: int, room: int, descending: bool) -> int:
    """words: key and index of each element of x in one word, whose `low` low bits are the index.

    Keys are cut at their end to at most `room` bits, of which there are 32 at least. The answer is
    1 if the words of some row do not ascend, and 2 more if keys are equal that were not before they
    were cut.
    """
    return packed_from(x, 0, words, rows, n, low, room, descending)


def packed_from(
    x: Any, start: Any, words: Any, rows: Any, n: Any, low: Any, room: Any, descending: bool
) -> Any:
    """The same of rows of which the first begins at start."""
    least: Any = np.uint64(0)
    most: Any = np.uint64((1 << 32) - 1)
    drop = 0
    cut = 0
    if x.dtype.itemsize > 4:
        first = ordered(x[start])
        least = first
        most = first
        varies = first ^ first
        total = rows * n
        i = 0
        if total >= 4 * LANES:
            lows = spread(first, LANES)
            highs = lows
            bits = lows ^ lows
            while i + LANES <= total:
                key = ordered(loaded(x, start + i, LANES))
                lows = np.where(key < lows, key, lows)
                highs = np.where(key > highs, key, highs)
                bits = bits | (key ^ first)
                i += LANES
            stored(words, 0, lows)
            stored(words, LANES, highs)
            stored(words, 2 * LANES, bits)
            for k in range(LANES):
                least = min(least, words[k])
                most = max(most, words[LANES + k])
                varies = varies | words[2 * LANES + k]
        while i < total:
            key = ordered(x[start + i])
            least = min(least, key)
            most = max(most, key)
            varies = varies | (key ^ first)
            i += 1
        drop = -room
        span = most - least
        while span > 0:
            span = span >> 1
            drop += 1
        drop = max(drop, 0)
        if varies & ((np.uint64(1) << np.uint64(drop)) - 1) != 0:
            cut = 2
    disorder = 0
    whole = n & -LANES
    end = most if descending else least
    for r in range(rows):
        base = r * n
        for i in range(0, whole, LANES):
            index = lanes(LANES, np.uint64) + np.uint64(i)
            key = _word(ordered(loaded(x, start + base + i, LANES)), end, low, drop, descending)
            stored(words, base + i, key | index)
        for i in range(whole, n):
            key = _word(ordered(x[start + base + i]), end, low, drop, descending)
            words[base + i] = key | np.uint64(i)
        i = 1
        while i < n and words[base + i - 1] < words[base + i]:
            i += 1
        if i < n:
            disorder = 1
    return disorder + cut


def _word(key: Any, end: Any, low: int, drop: int, descending: bool) -> Any:
    """The part of a word that is the key's."""
    key = key.astype(np.uint64)
    key = end - key if descending else key - end
    return (key >> np.uint64(drop)) << np.uint64(low)


@kernel
def least(words: Any, some: Any, rows: int, n: int, fewest: int, most: int) -> int:
    """some (rows, most): at least the `fewest` least of each row of words, all different, as they
    stand, and behind them words that are greater than all.

    A bound is sought among some of the words, then by halving: to count what is below costs a
    vector compare for 8 words. The answer is 1 where so many halvings do not find one; fewest <
    most <= n, and most >= SAMPLE.
    """
    for r in range(rows):
        if least_of_row(words, r * n, some, r * most, n, fewest, most):
            return 1
    return 0


def least_of_row(
    words: Any, base: Any, some: Any, first: Any, n: Any, fewest: Any, most: Any
) -> Any:
    """The same of one row, which begins at base, and in some at first."""
    whole = n & -LANES
    all_ones = ~(words[0] ^ words[0])
    high = words[base]
    if n >= LANES:
        highs = spread(high, LANES)
        for i in range(0, whole, LANES):
            v = loaded(words, base + i, LANES)
            highs = np.where(v > highs, v, highs)
        stored(some, first, highs)
        for k in range(LANES):
            high = max(high, some[first + k])
    for i in range(whole, n):
        high = max(high, words[base + i])
    low = high ^ high
    bound = high
    found = n - 1
    tries = 48
    if n >= 4 * SAMPLE:  # some of the words tell where to begin
        _sampled(words, base, n, some, first)
        few: Any = np.int64(-1)
        enough: Any = np.int64(SAMPLE)
        at: Any = np.uint64(fewest * SAMPLE) // np.uint64(n)
        at = min(at.astype(np.int64), SAMPLE - 1)
        while enough - few > 1 and (found < fewest or found >= most):
            bound = some[first + at]
            found = _how_many_below(words, base, n, bound)
            if found < fewest:
                low = bound
                few = at
                at += 1
            else:
                high = bound
                enough = at
                at -= 1
    while (found < fewest or found >= most) and tries > 0:
        bound = low + ((high - low) >> np.uint64(1))
        found = _how_many_below(words, base, n, bound)
        if found < fewest:
            low = bound
        else:
            high = bound
        tries -= 1
    failed = (found < fewest) | (found >= most)
    if ~failed:
        to: Any = first
        for i in range(n):
            v = words[base + i]
            some[to] = v
            to += np.where(v < bound, 1, 0)
        for i in range(to, first + most):
            some[i] = all_ones
    return failed


def _sampled(words: Any, base: Any, n: Any, some: Any, first: Any) -> None:
    """Sort `SAMPLE` of a row of words into a row of some."""
    step = np.int64(np.uint64(n) // np.uint64(SAMPLE))
    for i in range(SAMPLE):
        v = words[base + i * step]
        j = i
        while j > 0 and some[first + max(j - 1, 0)] > v:
            some[first + j] = some[first + j - 1]
            j -= 1
        some[first + j] = v


def _how_many_below(words: Any, base: Any, n: Any, bound: Any) -> Any:
    whole = n & -LANES
    limit = spread(bound, LANES)
    found: Any = np.int64(0)
    for i in range(0, whole, LANES):
        found += many(loaded(words, base + i, LANES) < limit)
    for i in range(whole, n):
        found += np.where(words[base + i] < bound, 1, 0)
    return found


@kernel
def by_digits(words: Any, other: Any, counts: Any, n: int, low: int, passes: int) -> int:
    """Sort words by their bits from `low` on, equal ones as they stand, by a digit in each pass.

    The answer is 0 where words has them, 1 where other has them, and -1 where the bits that differ
    are more than so many digits; nothing is then done. counts: 2 ** DIGIT.
    """
    first = words[0]
    some = spread(first, LANES)
    varies = some ^ some
    whole = n & -LANES
    for i in range(0, whole, LANES):
        varies = varies | (loaded(words, i, LANES) ^ some)
    stored(counts, 0, varies.astype(np.int64))
    bits: Any = np.int64(0)
    for k in range(LANES):
        bits = bits | counts[k]
    rest = bits.astype(np.uint64)
    for i in range(whole, n):
        rest = rest | (words[i] ^ first)
    rest = rest >> np.uint64(low)
    bottom: Any = np.int64(low + 0)
    while rest > 0 and rest & 1 == 0:
        rest = rest >> np.uint64(1)
        bottom += 1
    mask = np.uint64((1 << DIGIT) - 1)
    left = rest
    many: Any = np.int64(0)
    while left > 0:
        many += np.where(left & mask != 0, 1, 0)
        left = left >> DIGIT
    if many > passes:
        return -1
    turn: Any = np.int64(0)
    while rest > 0:
        if rest & mask != 0:  # others have all one digit
            if turn == 0:
                by_digit(words, other, counts, n, bottom)
            else:
                by_digit(other, words, counts, n, bottom)
            turn = 1 - turn
        rest = rest >> DIGIT
        bottom += DIGIT
    return turn


def by_digit(words: Any, other: Any, counts: Any, n: int, shift: int) -> None:
    """other: the words in the order of one digit."""
    at = np.uint64(shift)
    mask = np.uint64((1 << DIGIT) - 1)
    for d in range(1 << DIGIT):
        counts[d] = 0
    for i in range(n):
        digit = ((words[i] >> at) & mask).astype(np.int64)
        counts[digit] = counts[digit] + 1
    place = np.int64(0)
    for d in range(1 << DIGIT):
        many = counts[d]
        counts[d] = place
        place += many
    for i in range(n):
        v = words[i]
        digit = ((v >> at) & mask).astype(np.int64)
        place = counts[digit]
        counts[digit] = place + 1
        other[place] = v


@kernel
def unpack(
    x: Any, words: Any, y: Any, rows: int, n: int, given: int, count: int, low: int,
    descending: bool, cut: bool,
) -> int:  # fmt: skip
    """y (rows, count): the indices in the first of `given` sorted words of each row of x (rows, n).

    words may be y. cut: some bits of the keys are missing; what is equal without them is settled by
    insertion. The answer is 1 if that takes too long, or an element that is not given comes before
    one that is.
    """
    for r in range(rows):
        at = r * given
        if unpacked(x, r * n, words, at, y, r * count, n, given, count, low, descending, cut):
            return 1
    return 0


def unpacked(
    x: Any, base: Any, words: Any, start: Any, y: Any, first: Any, n: Any, given: Any, count: Any,
    low: Any, descending: bool, cut: Any,
) -> Any:  # fmt: skip
    """The same of one row, which begins at base, its words at start and its indices at first."""
    bottom = np.uint64(low)
    index = (np.uint64(1) << bottom) - 1
    moves: Any = 16 * count
    run: Any = np.int64(0)
    before = words[start] >> bottom
    behind = words[start + min(count, given - 1)] >> bottom
    doubtful = False
    if cut:
        doubtful = (given > count) & (behind == words[start + count - 1] >> bottom)
    i: Any = np.int64(0)
    while i < count and moves >= 0:
        v = words[start + i]
        place = (v & index).astype(np.int64)
        at = i
        if cut:
            if v >> bottom != before:
                run = i
                before = v >> bottom
            elif i > run:
                key = ordered(x[base + place])
                while at > run and _after(x[base + y[first + at - 1]], key, descending):
                    y[first + at] = y[first + at - 1]
                    at -= 1
                moves -= i - at
        y[first + at] = place
        i += 1
    failed = moves < 0
    if cut and doubtful and ~failed:  # right where what comes before the last is all here
        last = ordered(x[base + y[first + count - 1]])
        known: Any = np.int64(0)
        for k in range(count):
            known += np.where(_before(x[base + y[first + k]], last, descending), 1, 0)
        failed = _how_many_before(x, base, n, last, descending) > known
    return failed


def _how_many_before(x: Any, base: Any, n: Any, key: Any, descending: bool) -> Any:
    whole = n & -LANES
    keys = spread(key, LANES)
    found: Any = np.int64(0)
    for i in range(0, whole, LANES):
        found += many(_before(loaded(x, base + i, LANES), keys, descending))
    for i in range(whole, n):
        found += np.where(_before(x[base + i], key, descending), 1, 0)
    return found


def _before(v: Any, key: Any, descending: bool) -> Any:
    return ordered(v) > key if descending else ordered(v) < key


def _after(v: Any, key: Any, descending: bool) -> Any:
    return ordered(v) < key if descending else ordered(v) > key
