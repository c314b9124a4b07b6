"""What holds of a symbolic size for every length: bounds of polynomials with atoms.

An atom stands for what is no polynomial. It is text that remembers what it was made of, which is
what bounds it: n // 2 lies between (n - 1) / 2 and n / 2. To bound a polynomial from below, its
atoms are replaced one after the other by what bounds them, from below or above as their sign says,
until only symbols are left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import inf, prod
from typing import Any

__all__ = ["Atom", "Terms", "lower", "names_in", "text"]

Terms = dict[tuple[str, ...], int]  # monomial (sorted atoms) -> coefficient; () is the constant

Raised = frozenset[tuple[str, int]]

_MOST = 6  # atoms that are looked into: each has two bounds, and all combinations are tried


class Atom(str):
    """left op right, as text. op: "//", "%", or "max", the larger of two of which one is 0."""

    __slots__ = ("left", "op", "right")
    op: str
    left: Terms
    right: Terms

    def __new__(cls, op: str, left: Terms, right: Terms) -> Atom:
        """Polynomials print in one order, so that equal atoms are equal text."""
        a, b = (text(dict(sorted(t.items(), key=_place))) for t in (left, right))
        self = super().__new__(cls, f"max({a}, {b})" if op == "max" else f"(({a}) {op} ({b}))")
        self.op, self.left, self.right = op, left, right
        return self

    def __reduce__(self) -> Any:
        return Atom, (self.op, self.left, self.right)


def _place(term: tuple[tuple[str, ...], int]) -> tuple[int, tuple[str, ...]]:
    return -len(term[0]), term[0]


def text(terms: Terms) -> str:
    """A polynomial as Python text."""
    found = ""
    for atoms, factor in terms.items():
        parts = ([str(abs(factor))] if abs(factor) != 1 or not atoms else []) + list(atoms)
        sign = "-" if factor < 0 else "+"
        found += (f" {sign} " if found else sign.strip("+")) + "*".join(parts)
    return found or "0"


def names_in(terms: Terms) -> set[str]:
    """The symbols in a polynomial."""
    found: set[str] = set()
    for a in {a for atoms in terms for a in atoms}:
        found |= names_in(a.left) | names_in(a.right) if isinstance(a, Atom) else {a}
    return found


def lower(terms: Terms, least: int, raised: Raised = frozenset()) -> float:
    """A number that a polynomial is never below; -inf where none is known.

    least: what no symbol is below. raised: (symbol, number) for those that are known better.
    """
    return _lower(frozenset(terms.items()), least, raised)


@lru_cache(maxsize=4096)
def _lower(terms: frozenset[tuple[tuple[str, ...], int]], least: int, raised: Raised) -> float:
    floor = partial(lower, least=least, raised=raised)
    known = dict(terms)
    inside = sorted({a for atoms in known for a in atoms if isinstance(a, Atom)}, key=len)
    alone = [a for a in inside if sum(a in atoms for atoms in known) == 1 and (a,) in known]
    if not alone or len(inside) > _MOST:
        found = 0.0
        for atoms, factor in known.items():
            each = [
                floor({(a,): 1}) if isinstance(a, Atom) else dict(raised).get(a, least)
                for a in atoms
            ]
            found += prod([factor, *each]) if factor > 0 <= min(each, default=0) else (
                -inf if atoms else factor
            )
        return found
    a = alone[-1]  # the longest, for others may be in it
    factor = known.pop((a,))
    if a.op == "max":
        ends = [floor(known), floor(_sum(known, a.left, factor))]
        return max(ends) if factor > 0 else min(ends)
    found = -inf
    for times, bound in _bounds(a, factor > 0, floor):
        low = floor(_sum({k: times * v for k, v in known.items()}, bound, factor))
        found = max(found, low if low == -inf else -(-low // times))
    return found


def _bounds(a: Atom, below: bool, floor: Callable[[Terms], float]) -> list[tuple[int, Terms]]:
    """Pairs k, p: k times the quotient or the remainder is at least p, or at most."""
    by = a.right.get((), 0) if set(a.right) == {()} else None
    if floor(a.right) < (0 if by is None else 1):  # a symbol that divides is not 0
        return []
    natural = floor(a.left) >= 0
    nothing: list[tuple[int, Terms]] = [(1, {})]
    whole: list[tuple[int, Terms]] = [(1, a.left)]
    if a.op == "%":
        return nothing if below else [(1, _sum(a.right, {(): 1}, -1)), *whole * natural]
    if by is None:
        return (nothing if below else whole) * natural
    return [(by, _sum(a.left, {(): by - 1}, -1)), *nothing * natural] if below else [(by, a.left)]


def _sum(x: Terms, y: Terms, factor: int) -> Terms:
    """x + factor * y."""
    found = dict(x)
    for k, v in y.items():
        found[k] = found.get(k, 0) + factor * v
    return {k: v for k, v in found.items() if v}
