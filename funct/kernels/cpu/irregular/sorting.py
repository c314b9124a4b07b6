"""Keys and indices in one word to sort, and the first k by one pass.

`order` and `first_of` are steps of compiled loops (`funct/compile/steps/flat.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.vectors import lanes, loaded, many, spread, stored

__all__ = [
    "DIGIT", "LANES", "RUN", "by_digits", "distinct", "first_of", "least", "numbered", "order",
    "pack", "top_k", "unpack",
]  # fmt: skip

LANES = 16
DIGIT = 11  # bits
RUN = 8  # elements that are sorted by insertion before they are merged
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _ordered(v: Any) -> Any:
    """An unsigned key that is ordered as v is: NaN above all, -0 equal to 0."""
    bits = v.dtype.itemsize * 8
    unsigned = _UNSIGNED[v.dtype.itemsize]
    if v.dtype.kind == "u":
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
def pack(x: Any, words: Any, rows: int, n: int, low: int, room: int, descending: bool) -> int:
    """words: key and index of each element of x in one word, whose `low` low bits are the index.

    Keys are cut at their end to at most `room` bits, of which there are 32 at least. The answer is
    1 if the words of some row do not ascend, and 2 more if keys are equal that were not before they
    were cut.
    """
    least: Any = np.uint64(0)
    most: Any = np.uint64((1 << 32) - 1)
    drop = 0
    cut = 0
    if x.dtype.itemsize > 4:
        first = _ordered(x[0])
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
                key = _ordered(loaded(x, i, LANES))
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
            key = _ordered(x[i])
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
            key = _word(_ordered(loaded(x, base + i, LANES)), end, low, drop, descending)
            stored(words, base + i, key | index)
        for i in range(whole, n):
            key = _word(_ordered(x[base + i]), end, low, drop, descending)
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

    A bound is sought by halving: to count what is below costs a vector compare for 8 words. The
    answer is 1 where so many halvings do not find one; fewest < most <= n, and most >= LANES.
    """
    whole = n & -LANES
    all_ones = ~(words[0] ^ words[0])
    for r in range(rows):
        base = r * n
        first = r * most
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
        while (found < fewest or found >= most) and tries > 0:
            bound = low + ((high - low) >> np.uint64(1))
            found = 0
            for i in range(0, whole, LANES):
                found += many(loaded(words, base + i, LANES) < spread(bound, LANES))
            for i in range(whole, n):
                if words[base + i] < bound:
                    found += 1
            if found < fewest:
                low = bound
            else:
                high = bound
            tries -= 1
        if found < fewest or found >= most:
            return 1
        at: Any = first
        for i in range(n):
            v = words[base + i]
            some[at] = v
            at += np.where(v < bound, 1, 0)
        for i in range(at, first + most):
            some[i] = all_ones
    return 0


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
    many = 0
    while rest > 0:
        rest = rest >> DIGIT
        many += 1
    if many > passes:
        return -1
    shift = low
    for k in range(many):
        if k & 1 == 0:
            _by_digit(words, other, counts, n, shift)
        else:
            _by_digit(other, words, counts, n, shift)
        shift += DIGIT
    return many & 1


def _by_digit(words: Any, other: Any, counts: Any, n: int, shift: int) -> None:
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
    insertion. The answer is 1 if that takes too long, or the word behind the last is equal too.
    """
    bottom = np.uint64(low)
    index = (np.uint64(1) << bottom) - 1
    moves = 16 * count
    for r in range(rows):
        base = r * n
        start = r * given
        first = r * count
        run = 0
        before = words[start] >> bottom
        behind = words[start + min(count, given - 1)] >> bottom
        if cut and given > count and behind == words[start + count - 1] >> bottom:
            return 1
        for i in range(count):
            v = words[start + i]
            place = (v & index).astype(np.int64)
            at = i
            if cut:
                if v >> bottom != before:
                    run = i
                    before = v >> bottom
                elif i > run:
                    key = _ordered(x[base + place])
                    while at > run and _after(x[base + y[first + at - 1]], key, descending):
                        y[first + at] = y[first + at - 1]
                        at -= 1
                    moves -= i - at
                    if moves < 0:
                        return 1
            y[first + at] = place
    return 0


def _after(v: Any, key: Any, descending: bool) -> Any:
    return _ordered(v) < key if descending else _ordered(v) > key


def _above(v: Any, least: Any) -> Any:
    if v.dtype.kind != "f":
        return v > least
    return ~(v <= least) & (least == least)


@kernel
def top_k(x: Any, values: Any, places: Any, rows: int, n: int, k: int, patient: bool) -> int:
    """The k >= 1 largest of each row in descending order, equal ones by index; NaN is largest.

    Unless it is patient, the answer is 1 where insertion takes too long, as in a row that ascends.
    """
    tries = rows * ((n >> 3) + 32 * k)
    for r in range(rows):
        start = r * n
        first = r * k
        filled = 0
        i = 0
        while i < n:
            some = True
            if filled == k and i + LANES <= n:
                some = _above(loaded(x, start + i, LANES), values[first + k - 1]).any()
            if not some:
                i += LANES
            else:
                for _ in range(min(LANES, n - i)):
                    v = x[start + i]
                    at = filled
                    if filled == k:
                        at = k - 1
                        if not _above(v, values[first + at]):
                            at = k
                    else:
                        filled += 1
                    if at < k:
                        tries -= 1
                        while at > 0 and _above(v, values[first + at - 1]):
                            values[first + at] = values[first + at - 1]
                            places[first + at] = places[first + at - 1]
                            at -= 1
                        values[first + at] = v
                        places[first + at] = i
                    i += 1
                if not patient and tries < 0:
                    return 1
    return 0


def _behind(v: Any, other: Any, descending: bool) -> Any:
    """Whether v comes after the other one, which stands before it or behind it."""
    return _above(other, v) if descending else _above(v, other)


def order(x: Any, at: Any, other: Any, rows: int, n: int, descending: bool) -> None:
    """at: the permutation that sorts each row stably, by merging runs. other: room for n."""
    for r in range(rows):
        base = r * n
        start = 0
        while start < n:
            end = min(start + RUN, n)
            for i in range(start, end):
                v = x[base + i]
                j = i
                while j > start and _behind(x[base + at[base + j - 1]], v, descending):
                    at[base + j] = at[base + j - 1]
                    j -= 1
                at[base + j] = i
            start = end
        width = RUN
        while width < n:
            low = 0
            while low < n:
                middle = min(low + width, n)
                high = min(middle + width, n)
                a = low
                b = middle
                for k in range(low, high):
                    first = a < middle
                    if first and b < high:
                        v = x[base + at[base + a]]
                        first = ~_behind(v, x[base + at[base + b]], descending)
                    if first:
                        other[k] = at[base + a]
                        a += 1
                    else:
                        other[k] = at[base + b]
                        b += 1
                low = high
            for i in range(n):
                at[base + i] = other[i]
            width = width + width


def first_of(x: Any, at: Any, values: Any, places: Any, rows: int, n: int, count: int) -> None:
    """The first `count` elements of each row of x in the order `at`, and where they stand."""
    for r in range(rows):
        for i in range(count):
            place = at[r * n + i]
            values[r * count + i] = x[r * n + place]
            places[r * count + i] = place


@kernel
def distinct(x: Any, y: Any, counts: Any, n: int, counted: bool) -> int:
    """y: the elements of sorted x that are not equal to the one before; how many there are.

    counted: counts says how often each occurs.
    """
    last = x[0]
    y[0] = last
    if counted:
        counts[0] = 1
    start: Any = 0
    found: Any = 1
    for i in range(1, n):
        v = x[i]
        y[found] = v
        found += np.where(v != last, 1, 0)
        if counted:
            start = np.where(v != last, i, start)
            counts[found - 1] = i + 1 - start
        last = v
    return found


@kernel
def numbered(x: Any, at: Any, places: Any, counts: Any, back: Any, n: int) -> int:
    """How many distinct elements x has, which the permutation `at` sorts stably.

    places, counts: where each stands first, and how often. back: of each of x the number.
    """
    last = x[at[0]]
    places[0] = at[0]
    start = 0
    found = 0
    for i in range(n):
        place = at[i]
        v = x[place]
        if i > 0 and v != last:
            counts[found] = i - start
            found += 1
            places[found] = place
            start = i
            last = v
        back[place] = found
    counts[found] = n - start
    return found + 1
