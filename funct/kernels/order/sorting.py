"""Sorting and searching: plain, or in machine code; both give the same order.

Equal elements keep their order, also in descending order; NaN is the largest, -0 equals 0.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device.memory import LARGE, serve
from funct.kernels.cpu.indexing import packing
from funct.kernels.cpu.loops import pays, ready
from funct.kernels.cpu.order import sorting as cpu
from funct.kernels.cpu.order import words as packed
from funct.kernels.cpu.order.presorted import STANDS, in_order, positions
from funct.kernels.cpu.reductions.short_orders import DESCENDING
from funct.kernels.cpu.reductions.short_rows import ROWS, of_short_rows
from funct.kernels.cpu.scratch import fresh
from funct.kernels.dtypes import is_half
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.indexing.gather import take_along
from funct.kernels.indexing.masks import wide
from funct.kernels.order import counting, few_rows
from funct.kernels.order.columns import packs_short, packs_slowly, side_by_side
from funct.kernels.reductions.statistical import total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[np.int64]

__all__ = [
    "argsort", "known_by_bits", "known_order", "plain_argsort", "plain_sort",
    "plain_top_k", "sort", "top_k",
]  # fmt: skip

_LONG = 64  # halves in a row from which on their digits say their order sooner
_SHORT = 32  # rows up to here are sorted quicker by insertion
_DIGITS = 1 << 13  # and up to here those of one or two bytes, which NumPy sorts by digits
_CUT = 33  # bits of a key, which are three digits: few keys differ in others alone,
_CUT_MOST = 1 << 20  # if they are no more than these
_EVEN, _EVEN_MOST = 22, 1 << 15  # bits that so many integers differ in, if they lie evenly
_HALVED = 1 << 15  # words in a row up to which bounds are sought by counting, again and again
_ROOM = packed.SAMPLE  # words more than are needed, and a quarter, are sorted, not halved away
_FEW = 32  # of so few the largest are found by insertion, and the signs of zeros by NumPy
_PER_SQUARE, _INSERTED = 4, 1 << 12  # elements by the square of how many; in all: fewer will do
_SOME, _LEAST_ROW = 3, 16  # of so few, and of so short rows, insertion finds the largest sooner
_LINE = 24  # narrow integers that NumPy sorts sooner without its tables
_MUCH_TRUTH = 1 << 12  # elements from which on truth is counted
_DIGITS_LEAST = 1 << 12  # words in a row, of which no fewer are sorted by digits
_MUCH = 4  # part of a row from which on it is sorted whole, where digits are few
_WORD, _SINGLE = np.dtype(np.uint64), np.dtype(np.float32)
_LIKE = np.zeros(1, np.int64)  # what places are
_REALS = frozenset([np.dtype(c).num for c in "fd"])
_WORDS = frozenset([np.dtype(c).num for c in "fdiIlL"])  # which NumPy sorts in vectors
_LONG_LINE = 1 << 13  # elements from which on their memory is served
_NEAR = 1 << 12  # elements of a row that stays in the nearest caches while it is sorted
_MAGNITUDE = np.int16(0x7FFF)  # the bits of a half without its sign


def known_by_bits(x: NDArray[Any], length: int) -> bool:
    """Whether these functions know the order of lines of halves that NumPy has no order of."""
    return x.__class__ is np.ndarray and length >= _LONG and is_half(x.dtype)


def argsort(x: NDArray[Any], axis: int, descending: bool) -> Index:
    """The stable permutation that sorts x along axis."""
    n = x.shape[axis]
    if x.size < _LONG_LINE and (few := few_rows.argsort(x, axis, n, descending)) is not None:
        return few
    if n < _SHORT and x.size >= ROWS:
        name = f"argsort{DESCENDING}" if descending else "argsort"
        if (found := of_short_rows(name, x, axis, False)) is not None:
            return found
    if n >= _LONG and is_half(x.dtype):
        if not ready(x.size, x.size >> 3):
            return argsort(_key(x), axis, descending)
    elif n < (_SHORT if x.dtype.itemsize > 2 else _DIGITS) or not pays(x):
        return plain_argsort(x, axis, descending)
    if state := known_order(x, axis, descending):
        at: Index = positions(n, _LIKE, state != STANDS)
        return at if x.ndim == 1 else np.array(np.broadcast_to(at, x.shape))
    found = _first_of_order(x, axis, n, descending)
    return plain_argsort(x, axis, descending) if found is None else found


def known_order(x: NDArray[Any], axis: int, descending: bool) -> int:
    """What `in_order` says of all rows, if they lie so that it can be asked."""
    n = x.shape[axis]
    if axis != x.ndim - 1 or n < _SHORT or not x.flags.c_contiguous:
        return 0
    if not pays(x) and not (is_half(x.dtype) and ready(x.size, x.size >> 3)):
        return 0
    state: int = in_order(x, x.size // n, n, descending)
    return state


def _first_of_order(x: NDArray[Any], axis: int, count: int, descending: bool) -> Index | None:
    """Where the first `count` elements of sorted x stand along axis; None where that costs more.

    Key and index go in one word, so an unstable sort of words sorts the keys stably.
    """
    n, last = x.shape[axis], axis == x.ndim - 1
    rows = x if last else np.ascontiguousarray(x.swapaxes(axis, -1))
    words = fresh(rows.shape, _WORD)  # which the next call finds again, where it is large
    y = None
    if count == n:
        if x.dtype.itemsize == 8 and _by_digits()[-1][0] <= n <= _CUT_MOST:
            few = x.dtype.kind in "iu" and n < _EVEN_MOST
            y = _whole_order(rows, words, _EVEN if few else _CUT, descending)
        if y is None:
            y = _whole_order(rows, words, 64, descending)
    else:
        y = _part_of_order(rows, words, count, descending)
    return y if last or y is None else y.swapaxes(axis, -1)


def _whole_order(
    rows: NDArray[Any], words: NDArray[Any], most: int, descending: bool
) -> Index | None:
    """The order of each row, by keys of at most so many bits."""
    n = rows.shape[-1]
    lead, low = rows.size // n, (n - 1).bit_length()
    state = packed.pack(rows, words, lead, n, low, min(most, 64 - low), descending)
    y: Index = words.view(np.int64)
    if state & 1:
        words = _in_order(words, low)
    failed = packed.unpack(rows, words, y, lead, n, n, n, low, descending, state > 1)
    return None if failed else y


def _part_of_order(
    rows: NDArray[Any], words: NDArray[Any], count: int, descending: bool
) -> Index | None:
    """The first of the order of each row."""
    n = rows.shape[-1]
    lead, low = rows.size // n, (n - 1).bit_length()
    state = packed.pack(rows, words, lead, n, low, 64 - low, descending)
    given, ascend = count + 1, not state & 1  # one more tells whether the last is a tie
    if not ascend and words.ndim == 1 and n >= _by_digits()[-1][0] and n <= _MUCH * count:
        by_digits = _by_few_digits(words, low, 2)
        ascend, words = by_digits is not None, words if by_digits is None else by_digits
    some = None if ascend else _least(words, lead, n, given)
    if some is None:
        if not ascend:
            words.partition(count)
        some = words[:given] if words.ndim == 1 else words[..., :given].copy()
    given = some.shape[-1]
    y = np.empty((*rows.shape[:-1], count), np.int64)
    if not ascend:
        some.sort()
    failed = packed.unpack(rows, some, y, lead, n, given, count, low, descending, state > 1)
    return None if failed else y


def _least(words: NDArray[Any], rows: int, n: int, fewest: int) -> NDArray[Any] | None:
    """Some of each row of words with the least ones among them; None where that costs more."""
    most = fewest + (fewest >> 2) + _ROOM
    if n > _HALVED or most > n:
        return None
    some = np.empty((*words.shape[:-1], most), np.uint64)
    return None if packed.least(words, some, rows, n, fewest, most) else some


def _in_order(words: NDArray[Any], low: int) -> NDArray[Any]:
    """Words sorted along the last axis, in their own memory or elsewhere; their bits below `low`
    ascend as they stand.
    """
    n = words.shape[-1]
    digits = next((most for least, most in _by_digits() if n >= least), 0)
    if digits and words.ndim == 1:
        found = _by_few_digits(words, low, digits)
        if found is not None:
            return found
    elif digits:
        rows = words.reshape(-1, n)
        for k, row in enumerate(rows):
            rows[k] = _in_order(row, low)
        return words
    words.sort()
    return words


def _by_few_digits(words: NDArray[Any], low: int, most: int) -> NDArray[Any] | None:
    """The same by digits; None where that takes more of them."""
    other, counts = fresh(words.shape, _WORD), np.empty(1 << packed.DIGIT, np.int64)
    where = packed.by_digits(words, other, counts, words.size, low, most)
    return None if where < 0 else other if where else words


@functools.cache
def _by_digits() -> tuple[tuple[int, int], ...]:
    """From so many words on, up to how many digits say their order sooner than NumPy's sort."""
    return ((1 << 17, 6), (1 << 12, 3)) if packs_slowly() else ((1 << 15, 3), (1 << 13, 2))


def plain_argsort(x: NDArray[Any], axis: int, descending: bool) -> Index:
    """`argsort` in NumPy."""
    if not descending:
        return x.argsort(axis, "stable")
    n = x.shape[axis]  # sort the reversed axis, reverse the permutation
    return _turned(n - 1 - _turned(x, axis).argsort(axis, "stable"), axis)


def _turned(x: NDArray[Any], axis: int) -> NDArray[Any]:
    return x[(slice(None),) * axis + (slice(None, None, -1),)]


def sort(x: NDArray[Any], axis: int, descending: bool) -> NDArray[Any]:
    """x sorted along axis."""
    n, d = x.size, x.dtype
    if axis < x.ndim - 1 and (side := side_by_side(x, axis, descending)) is not None:
        return side
    few, length = None, x.shape[axis]
    rows = n < _LONG_LINE or (length < _NEAR and axis == x.ndim - 1 > 0)
    if rows and (n < _DIGITS_LEAST or not _digits_tell(length)):
        few = few_rows.sort(x, n, axis, descending)
    if few is not None:
        return few
    word = d.num in _WORDS
    if word and x.ndim == 1 and n >= _FEW and ready(n, 0) and not _digits_tell(n):
        return _sorted_line(x, n, d.num in _REALS, descending)
    if n >= ROWS and length < _SHORT:
        name = f"sort{DESCENDING}" if descending else "sort"
        if (found := of_short_rows(name, x, axis, False)) is not None:
            return found
    if not word and (d.itemsize < 4 or d.kind == "c"):  # counted by NumPy, or of two keys
        return _sorted_others(x, axis, descending)
    if state := known_order(x, axis, descending):
        return x.copy() if state == STANDS else x[..., ::-1].copy()
    if _digits_tell(x.shape[axis]) and d.itemsize <= 8 and pays(x):
        at = argsort(x, axis, descending)
        return _taken(x, at, axis)
    out = x.copy("K")
    out.sort(axis)
    # An unstable sort is quicker. It tells only in zeros, whose signs it may even lose.
    if d.kind == "f" and not _settled(x, out, axis, descending):
        return plain_sort(x, axis, descending)
    return _turned(out, axis) if descending else out


def _sorted_others(x: NDArray[Any], axis: int, descending: bool) -> NDArray[Any]:
    """`sort` of truth, of what has one or two bytes, and of complex numbers."""
    d, n = x.dtype, x.shape[axis]
    if d.kind == "b" and (x.ndim == 1 or x.size >= _MUCH_TRUTH):
        return _sorted_truth(x, axis, descending)
    if d.kind in "biu" and (n <= _LINE or (d.itemsize == 2 and packs_short())):
        few = x.copy("K")
        few.sort(axis)
        return _turned(few, axis) if descending else few
    if d.itemsize != 2 or n < _LONG:
        return plain_sort(x, axis, descending)
    if d.kind not in "iu":
        return _sorted_halves(x, axis, descending)
    words: NDArray[Any] = x.copy("K")
    words.sort(axis, _of_words(x.size))
    return _turned(words, axis) if descending else words


def _sorted_line(x: NDArray[Any], n: int, real: bool, descending: bool) -> NDArray[Any]:
    """`sort` of a line of words, in NumPy's vectors, which lose the signs of zeros."""
    if not real:
        if state := in_order(x, 1, n, descending):
            return x.copy() if state == STANDS else x[::-1].copy()
        if (counted := counting.sort(x)) is not None:
            return counted[::-1] if descending else counted
    if x.nbytes >= LARGE:
        serve(x.nbytes)
    if (found := few_rows.line(x, n, descending)) is not None:
        return found
    line = x.copy()
    line.sort()
    if real:
        packing.zeros(x, line, packing.PLACES, 1, n, descending, wide())
    return line[::-1] if descending else line


def _digits_tell(n: int) -> bool:
    """Whether digits say the order of n elements sooner than NumPy sorts them."""
    return n >= _DIGITS_LEAST and packs_slowly() and n >= _by_digits()[-1][0]


def _sorted_truth(x: NDArray[Any], axis: int, descending: bool) -> NDArray[Any]:
    """Which is as often true as before, at one end."""
    n = x.shape[axis]
    if x.ndim == 1:
        often = int(np.count_nonzero(x))
        line: NDArray[Any] = np.zeros(n, bool)
        line[slice(often) if descending else slice(n - often, n)] = True
        return line
    true = total(x, axis, True)
    at = np.arange(n).reshape(-1, *(1,) * (x.ndim - axis - 1))
    found: NDArray[Any] = at < true if descending else at >= n - true
    return found


def _key(x: NDArray[Any]) -> NDArray[np.int16]:
    """Integers that are ordered as halves are: NaN above all, -0 equal to 0."""
    raw = x.view(np.int16)
    key = raw ^ (raw >> 15 & _MAGNITUDE)
    key[raw == ~_MAGNITUDE] = 0
    key[raw & _MAGNITUDE > _infinite(x.dtype)] = _MAGNITUDE
    return key


@functools.cache
def _infinite(half: np.dtype[Any]) -> int:
    """The bits of infinity."""
    return int(np.asarray(np.inf, half).view(np.int16))


def _sorted_halves(x: NDArray[Any], axis: int, descending: bool) -> NDArray[Any]:
    """`sort` of halves: keys say the halves, but not -0, nor which NaN."""
    if not ready(x.size, x.size >> 3):
        at = argsort(_key(x), axis, descending)
        return np.take_along_axis(x, at, axis)
    x = np.ascontiguousarray(x)
    key, infinite = np.empty(x.shape, np.int16), _infinite(x.dtype)
    if packed.turn_halves(x.view(np.int16), key, x.size, infinite):
        return _taken(x, argsort(x, axis, descending), axis)
    key.sort(axis, _of_words(x.size))
    packed.turn_halves(key, key, key.size, infinite)
    out: NDArray[Any] = key.view(x.dtype)
    return _turned(out, axis) if descending else out


def _taken(x: NDArray[Any], at: Index, axis: int) -> NDArray[Any]:
    return x[at] if x.ndim == 1 else take_along(x, at, axis)


def _of_words(n: int) -> Any:
    """How NumPy sorts 16 bits soonest: in vectors, or by digits."""
    return "quick" if ready(n, 0) and packs_short() else "stable"


def _settled(x: NDArray[Any], y: NDArray[Any], axis: int, descending: bool) -> bool:
    """Whether zeros in y, sorted x, have their signs by now, in the order of x."""
    if not pays(x, 1):
        return not np.signbit(x[x == 0]).any()
    n = x.shape[axis]
    if axis == x.ndim - 1 and y.flags.c_contiguous:
        packing.zeros(x, y, packing.PLACES, x.size // n, n, descending, wide())
        return True
    return not packing.negative_zero(x, x.size)


def plain_sort(x: NDArray[Any], axis: int, descending: bool) -> NDArray[Any]:
    """`sort` by NumPy's stable sort."""
    out = (_turned(x, axis) if descending else x).copy("K")
    out.sort(axis, "stable")
    return _turned(out, axis) if descending else out


def top_k(x: NDArray[Any], axis: int, k: int) -> tuple[NDArray[Any], Index]:
    """The k largest along axis in descending order, and where they stand."""
    n, half = x.shape[axis], is_half(x.dtype)
    if half and n >= _LONG and not ready(x.size, x.size >> 3):
        places = plain_top_k(_key(x), axis, k)[1]
        return np.take_along_axis(x, places, axis), places
    if half and k > 0 and (k <= _FEW or n < _LONG):  # float32 orders them as they are
        values, places = top_k(in_dtype(x, _SINGLE), axis, k)
        return in_dtype(values, x.dtype), places
    if k == 0 or not (half or pays(x, 1)):
        return plain_top_k(x, axis, k)
    last = axis == x.ndim - 1
    rows = x if last else np.ascontiguousarray(x.swapaxes(axis, -1))
    values, places = _largest(rows, n, k, half)
    return (values, places) if last else (values.swapaxes(axis, -1), places.swapaxes(axis, -1))


def _largest(x: NDArray[Any], n: int, k: int, half: bool) -> tuple[NDArray[Any], Index]:
    """`top_k` along the last axis, whose length is n."""
    lead = x.shape[:-1]
    short = _SOME <= k < n and _LEAST_ROW <= n <= few_rows.SHORT
    if short and (few := few_rows.top_k(x, k)) is not None:
        return few
    many = n << 3 if x.size < _INSERTED else n
    if k <= _FEW and (k == 1 or n < _SHORT or _PER_SQUARE * k * k <= many):
        values, places = np.empty((*lead, k), x.dtype), np.empty((*lead, k), np.int64)
        if not cpu.top_k(x, values, places, prod(lead), n, k, False):
            return values, places
    if x.size < _LONG_LINE and (few := few_rows.top_k(x, k)) is not None:
        return few
    if state := known_order(x, x.ndim - 1, True):
        places = positions(n, _LIKE, state != STANDS)[:k].copy()
        if lead:
            places = np.array(np.broadcast_to(places, (*lead, k)))
        return (x[..., :k] if state == STANDS else x[..., : -k - 1 : -1]).copy(), places
    if x.ndim == 1 and not half and known_order(x, 0, False) == STANDS:
        last = _last_of_ascending(x, n, k)
        return x[last], last
    if not half and not pays(x):
        return plain_top_k(x, x.ndim - 1, k)
    at = _first_of_order(x, x.ndim - 1, k, True)
    if at is None:
        at = argsort(x, x.ndim - 1, True)[..., :k]
    return _taken(x, at, x.ndim - 1), at


def _last_of_ascending(x: NDArray[Any], n: int, k: int) -> Index:
    """Where the k largest of an ascending line stand: of equal ones the first comes first."""
    least = x[n - k]
    first, above = int(x.searchsorted(least)), int(x.searchsorted(least, "right"))
    at = np.empty(k, np.int64)
    at[: n - above] = argsort(x[above:], 0, True)
    at[: n - above] += above
    at[n - above :] = np.arange(first, first + k - (n - above))
    return at


def plain_top_k(x: NDArray[Any], axis: int, k: int) -> tuple[NDArray[Any], Index]:
    """`top_k` by sorting all."""
    at = plain_argsort(x, axis, True)[(slice(None),) * axis + (slice(k),)].copy()
    return x[at] if x.ndim == 1 else np.take_along_axis(x, at, axis), at
