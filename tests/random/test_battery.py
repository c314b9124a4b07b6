"""Statistical tests of the random numbers, with fixed keys: p-values are numbers, not chances.

Source: Knuth, The Art of Computer Programming 2, 3.3.2; L'Ecuyer and Simard 2007, TestU01, for the
parameters of birthday spacings and of matrix ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from funct.kernels.random.bits import fold_in, random_bits, random_normal, random_unit, seed

stats = pytest.importorskip("scipy.stats", reason="SciPy has the distributions")

Words = Any  # uint32
LEAST = 1e-5  # a p-value beyond this, or as near to 1, does not happen to random numbers


def _chi_square(counts: Any, expected: Any) -> float:
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1))


def monobit(words: Words) -> float:
    """Half of all bits are set."""
    ones, n = int(np.bitwise_count(words).sum()), 32 * len(words)
    return float(2 * stats.norm.sf(abs(ones - n / 2) / np.sqrt(n / 4)))


def birthday_spacings(words: Words) -> float:
    """Spacings of 512 birthdays in a year of 2**24 days coincide as often as Poisson has it."""
    days = np.sort((words >> 8).reshape(-1, 512).astype(np.int64), 1)
    gaps = np.sort(np.diff(days, axis=1), 1)
    hits = int((np.diff(gaps, axis=1) == 0).sum())
    mean = len(days) * 512**3 / (4 * 2**24)
    return float(min(1.0, 2 * min(stats.poisson.cdf(hits, mean), stats.poisson.sf(hits - 1, mean))))


def collisions(words: Words) -> float:
    """2**16 balls in 2**22 urns: so many fall where one lies."""
    balls, urns = 2**16, 2**22
    found = balls - len(np.unique(words[:balls] >> 10))
    mean = balls - urns * (1 - (1 - 1 / urns) ** balls)
    return float(2 * min(stats.poisson.cdf(found, mean), stats.poisson.sf(found - 1, mean)))


def gaps(words: Words) -> float:
    """Numbers below 1/8 follow each other at geometric distances."""
    at = np.flatnonzero(words < 2**29)
    lengths = np.minimum(np.diff(at) - 1, 40)
    p = 0.125 * 0.875 ** np.arange(41)
    p[40] = 0.875**40
    return _chi_square(np.bincount(lengths, minlength=41), p * len(lengths))


def runs_up(words: Words) -> float:
    """Lengths of ascending runs; the element behind a run is left out, so they are independent."""
    lengths, i = np.zeros(6), 0
    rises = (words[1:] > words[:-1]).tolist()
    while i < len(rises):
        start = i
        while i < len(rises) and rises[i]:
            i += 1
        lengths[min(i - start, 5)] += 1
        i += 2
    p = np.asarray([1 / 2, 1 / 3, 1 / 8, 1 / 30, 1 / 144, 1 / 720])
    return _chi_square(lengths, p * lengths.sum())


def pairs(words: Words) -> float:
    """Neighbours fill the cells of a 64 by 64 square evenly."""
    cells = (words[:-1:2] >> 26) * 64 + (words[1::2] >> 26)
    return _chi_square(np.bincount(cells, minlength=4096), len(cells) / 4096)


def triples(words: Words) -> float:
    """Three in a row fill a cube evenly."""
    x = (words[: len(words) // 3 * 3] >> 28).reshape(-1, 3)
    cells = (x[:, 0] * 16 + x[:, 1]) * 16 + x[:, 2]
    return _chi_square(np.bincount(cells, minlength=4096), len(cells) / 4096)


def low_pairs(words: Words) -> float:
    """The low bits of neighbours too."""
    cells = (words[:-1:2] & 63) * 64 + (words[1::2] & 63)
    return _chi_square(np.bincount(cells, minlength=4096), len(cells) / 4096)


def ranks(words: Words) -> float:
    """Ranks over GF(2) of 32 by 32 matrices of bits."""
    rows = words[: len(words) // 32 * 32].reshape(-1, 32).copy()
    rank = np.zeros(len(rows), np.int64)
    for bit in range(32):
        mask = np.uint32(1 << bit)
        free = (rows & mask != 0) & (np.arange(32) >= rank[:, None])
        some, at = free.any(1), free.argmax(1)
        each = np.flatnonzero(some)
        pivot, place = rows[each, at[each]].copy(), rank[each]
        rows[each, at[each]] = rows[each, place]
        rows[each, place] = pivot
        hits = (rows[each] & mask != 0) & (np.arange(32) > place[:, None])
        rows[each] ^= np.where(hits, pivot[:, None], np.uint32(0))
        rank[each] += 1
    p = np.asarray([0.1336357, 0.5775762, 0.2887881])  # 30 or less, 31, 32
    counts = np.bincount(np.maximum(rank, 30) - 30, minlength=3)
    return _chi_square(counts, p * len(rows))


def serial_correlation(words: Words) -> float:
    """Neighbours, and words 16 apart, are uncorrelated."""
    x = words.astype(np.float64) / 2**32 - 0.5
    worst = 1.0
    for lag in (1, 2, 8, 16):
        r = float((x[:-lag] * x[lag:]).mean()) * 12
        worst = min(worst, 2 * stats.norm.sf(abs(r) * np.sqrt(len(x) - lag)))
    return min(1.0, 4 * worst)


BATTERY: tuple[Callable[[Words], float], ...] = (
    monobit, birthday_spacings, collisions, gaps, runs_up, pairs, triples, low_pairs, ranks,
    serial_correlation,
)  # fmt: skip
N = 2**17


def _streams() -> dict[str, Words]:
    """Ways in which programs come to their words."""
    key = seed(2024)
    many = fold_in(key, np.arange(N // 64))
    wide = random_bits(key, (N // 2,), 64)
    narrow = random_bits(key, (4 * N,), 8)
    return {
        "one key": random_bits(key, (N,), 32),
        "many keys, a few words of each": random_bits(many, (64,), 32).reshape(-1),
        "one word of each of many keys": random_bits(many, (64,), 32).T.reshape(-1),
        "64 bits": wide.view(np.uint32),
        "8 bits": narrow.view(np.uint32),
        "uniform numbers": (random_unit(key, (N,), np.dtype(np.float64)) * 2**32).astype(np.uint32),
        "normal numbers": (
            stats.norm.cdf(random_normal(seed(5), (N,), np.dtype(np.float64))) * 2**32
        ).astype(np.uint32),
    }


STREAMS = _streams()


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("test", BATTERY, ids=lambda t: t.__name__)
def test_words_are_random(test: Callable[[Words], float], name: str) -> None:
    """No test of the battery tells the words from random ones."""
    p = test(STREAMS[name])
    assert LEAST < p < 1 - LEAST or p == 1.0


def _congruential() -> Words:
    """RANDU: the generator whose triples lie in 15 planes."""
    found, v = np.empty(N, np.uint32), 1
    for i in range(N):
        v = v * 65539 % 2**31
        found[i] = v << 1
    return found


@pytest.mark.parametrize(
    ("bad", "caught"),
    [
        (_congruential(), triples),
        (_congruential(), low_pairs),
        (np.arange(N, dtype=np.uint32) * np.uint32(2654435769), birthday_spacings),
        (np.arange(N, dtype=np.uint32) * np.uint32(2654435769), collisions),
        (np.arange(N, dtype=np.uint32) * np.uint32(2654435769), gaps),
        (np.sort(STREAMS["one key"]), runs_up),
        (np.repeat(STREAMS["one key"], 2)[:N], pairs),
        (np.repeat(STREAMS["one key"], 2)[:N], serial_correlation),
        (np.repeat(STREAMS["one key"], 2)[:N], ranks),
        (STREAMS["one key"] | np.uint32(1), monobit),
    ],
)
def test_the_battery_catches_bad_words(bad: Words, caught: Callable[[Words], float]) -> None:
    """Each test fails for words that are not random in its sense."""
    assert caught(bad) < LEAST


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distributions(dtype: str) -> None:
    """Kolmogorov-Smirnov, moments to the fourth, and tails."""
    n, kind = 2**18, np.dtype(dtype)
    u, z = random_unit(seed(11), (n,), kind), random_normal(seed(12), (n,), kind)
    assert stats.kstest(u, "uniform").pvalue > LEAST
    assert stats.kstest(z, "norm").pvalue > LEAST
    moments = [(z.astype(np.float64) ** k).mean() for k in (1, 2, 3, 4)]
    spread = np.sqrt(np.asarray([1, 2, 15, 96]) / n)
    assert np.all(np.abs(np.asarray(moments) - [0, 1, 0, 3]) < 5 * spread)
    for limit in (2.0, 3.0, 4.0):
        expected = 2 * stats.norm.sf(limit)
        hits = int((np.abs(z) > limit).sum())
        assert stats.binomtest(hits, n, expected).pvalue > LEAST
