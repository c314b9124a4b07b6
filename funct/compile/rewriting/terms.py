"""Polynomials in what gradients of a softmax are made of, a coefficient for each product of powers.

They are e, the exponentials; d, the cotangents of the weights; for each row l, the sum of e, and r,
the sum of e d; and t, the shares of the largest scores in a row, which sum to 1. Powers of l may be
negative.
"""

from __future__ import annotations

__all__ = ["ONE", "ROUNDED", "SHARE", "Powers", "Terms", "added", "inverse", "multiplied", "summed"]

Powers = tuple[int, int, int, int, int]  # of e, d, l, r and t
Terms = dict[Powers, float]

ONE: Powers = (0, 0, 0, 0, 0)
SHARE: Powers = (0, 0, 0, 0, 1)
ROUNDED = 1e-12  # a difference of equal numbers, of the larger one


def added(x: Terms, y: Terms) -> Terms:
    """x + y; what is nothing but rounding is 0."""
    found = dict(x)
    for powers, c in y.items():
        total = found.pop(powers, 0.0) + c
        if abs(total) > ROUNDED * abs(c):
            found[powers] = total
    return found


def multiplied(x: Terms, y: Terms) -> Terms:
    """x y."""
    found: Terms = {}
    for (a, b, n, r, t), c in x.items():
        for (a2, b2, n2, r2, t2), c2 in y.items():
            found = added(found, {(a + a2, b + b2, n + n2, r + r2, t + t2): c * c2})
    return found


def inverse(x: Terms) -> Terms | None:
    """1 / x, where that has one term, of powers of l."""
    if len(x) != 1:
        return None
    (((a, b, n, r, t), c),) = x.items()
    return {(0, 0, -n, 0, 0): 1 / c} if not (a or b or r or t) and c else None


def summed(x: Terms) -> Terms | None:
    """The sum along a row; None where it has no name."""
    found: Terms = {}
    for (a, b, n, r, t), c in x.items():
        if (a, b, t) not in ((1, 0, 0), (1, 1, 0), (0, 0, 1)):
            return None
        l_more, r_more = int((a, b) == (1, 0)), int((a, b) == (1, 1))
        found = added(found, {(0, 0, n + l_more, r + r_more, 0): c})
    return found
