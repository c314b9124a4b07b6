"""Attempts to draw from distributions with parameters: candidates, and whether they are accepted.

Functions of words and parameters that are inlined into kernels, and act on NumPy's arrays with the
same bits. All compute in float64. A parameter outside of the distribution's domain is accepted at
once, with what belongs to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.random.elementary import excess, exp, log, polynomial
from funct.kernels.random.normal import normal64, unit64

__all__ = ["gamma_attempt", "gamma_terms", "most", "poisson_attempt"]

_BEYOND = 2.0**63  # counts are int64
_LAST = 2**63 - 1  # stands for all that are beyond
_SURE = 2.0**64  # from this mean on all are
_WHOLE = 2.0**53  # numbers from here on are integers

_SMALLEST = 2.0**-53
_INFINITE = float("inf")
_NAN = float("nan")


def _open(high: Any, low: Any) -> Any:
    """Uniform on (0, 1): 0 becomes what is next to it."""
    u = unit64(high, low)
    return np.where(u > _SMALLEST, u, _SMALLEST)


def most(dtype: Any) -> int:
    """The largest count that an array of such integers holds, as int64."""
    return min(int(np.iinfo(dtype).max), 2**63 - 1)


def gamma_terms(a: Any, logarithm: bool) -> tuple[Any, ...]:
    """What attempts with shape parameter a share."""
    usable = (a > 0.0) & (a < _INFINITE)
    safe = np.where(usable, a, 1.0)
    small = safe < 1.0
    d = np.where(small, safe + 1.0, safe) - 1.0 / 3.0
    nothing = -_INFINITE if logarithm else 0.0
    beyond = np.where(a == 0.0, nothing, np.where(a > 0.0, _INFINITE, _NAN))
    return usable, safe, small, d, (1.0 / 3.0) / np.sqrt(d), log(d) if logarithm else d, beyond


def gamma_attempt(n: Any, u: Any, b: Any, terms: Any, logarithm: bool) -> tuple[Any, Any]:
    """A gamma number with shape parameter a, or its logarithm, given its terms.

    n, u, b: pairs of words, for a normal and two uniform numbers.

    x normal, (1 + c x)³ d is accepted where log(u) < x²/2 + d - d v + d log(v). By
    v = (1 + w)³ that is x²/6 - d (w³ + 3 (w - log(1 + w))), which loses no digits for a large a.
    For a < 1, a + 1 takes the place of a, and the number is multiplied by u**(1/a).

    Source: Marsaglia, Tsang 2000, A simple method for generating gamma variables,
            https://doi.org/10.1145/358407.358414.
    """
    usable, safe, small, d, slope, scale, beyond = terms
    x = normal64(n[0], n[1])
    w = x * slope
    inside = w > -1.0
    w = np.where(inside, w, 0.0)
    over = excess(w)
    bound = x * x * (1.0 / 6.0) - d * (w * w * w + over * 3.0)
    accepted = (inside & (log(_open(u[0], u[1])) < bound)) | ~usable
    boost = w * 0.0
    if small.any():
        boost = np.where(small, log(_open(b[0], b[1])) / safe, 0.0)
    if logarithm:
        drawn = scale + (w - over) * 3.0 + boost
    else:
        root = w + 1.0
        drawn = root * root * root * scale
        if small.any():
            drawn = drawn * exp(boost)
    return np.where(usable, drawn, beyond), accepted


def _convergent(parts: tuple[float, ...]) -> list[list[float]]:
    """p and q of p / q = a₁ / (z + a₂ / (z + …)): their coefficients, the highest power first."""
    before, last = ([1.0], [0.0]), ([0.0], [1.0])
    for a in parts:
        both = [
            [y + a * x for x, y in zip([0.0] * (len(q) + 1 - len(p)) + p, [*q, 0.0], strict=True)]
            for p, q in zip(before, last, strict=True)
        ]
        before, last = last, (both[0], both[1])
    return [*last]


# What Stirling's formula misses of log(k!). Source: Stieltjes; DLMF 5.10.
_MISSED, _OF = _convergent(
    (1 / 12, 1 / 30, 53 / 210, 195 / 371, 22999 / 22737, 29944523 / 19733142)
)  # fmt: skip
_TURN = 10.0  # where counting gives way to rejection
_NEVER = 2.0**-80  # a probability
_TAU = 6.283185307179586


def poisson_attempt(u: Any, v: Any, mean: Any) -> tuple[Any, Any]:
    """A count as int64, the largest one where that does not hold it; -1 where the mean is negative
    or NaN.

    u, v: pairs of words, for two uniform numbers. A mean below 10 is counted up: probabilities are
    taken off u until nothing is left. From 10 on a transformed number is accepted or not.

    Source: Hörmann 1993, The transformed rejection method for generating Poisson random variables,
            https://doi.org/10.1016/0167-6687(93)90997-4, algorithm PTRS. Probabilities there are
            differences of large numbers; here those of Loader 2000, Fast and accurate computation
            of binomial probabilities.
    """
    usable = mean >= 0.0
    large = mean >= _TURN
    k = mean * 0.0
    accepted = usable | ~usable
    if large.any():
        k, fits = _transformed(u, v, np.where(large, np.where(mean < _SURE, mean, _SURE), _TURN))
        accepted = fits | ~large
    if (~large).any():
        few = _counted(unit64(u[0], u[1]), np.where(usable & ~large, mean, 0.0))
        k = np.where(large, k, few)
    held = k < _BEYOND
    count = np.where(usable, np.where(held, k, 0.0), -1.0).astype(np.int64)
    return np.where(held, count, _LAST), accepted


def _counted(rest: Any, mean: Any) -> Any:
    p = exp(-mean)
    rest = rest - p
    k = mean * 0.0
    more = rest >= 0.0
    at = 1.0
    while more.any():
        k = np.where(more, at, k)
        p = p * (mean * (1.0 / at))
        rest = rest - p
        more = (rest >= 0.0) & (p > _NEVER)
        at = at + 1.0
    return k


def _transformed(u: Any, v: Any, mean: Any) -> tuple[Any, Any]:
    """From 10 on. The test is that of k + 2, so that Stirling's formula has no small numbers."""
    b = np.sqrt(mean) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    x = (unit64(u[0], u[1]) - 0.5) + 2.0**-54  # on (-½, ½)
    y = 1.0 - unit64(v[0], v[1])
    near = 0.5 - np.where(x < 0.0, -x, x)
    k = (a * 2.0 / near + b) * x + mean + 0.43
    inside = (k >= 0.0) & ((near >= 0.013) | (y <= near))
    k = np.where(inside, k, 0.0)
    k = np.where(k < _WHOLE, np.where(k < _WHOLE, k, 0.0).astype(np.int64).astype(np.float64), k)
    n = k + 2.0
    scale = y * (1.1328 / (b - 3.4) + 1.1239) / (a / (near * near) + b)
    scale = scale * np.sqrt(n * _TAU) * (mean * mean / ((k + 1.0) * n))
    missed = polynomial(n, _MISSED) / polynomial(n, _OF)
    likely = log(scale) <= -missed - n * excess((mean - n) / n)
    quick = (near >= 0.07) & (y <= 0.9277 - 3.6224 / (b - 2.0))
    return k, inside & (quick | likely)
