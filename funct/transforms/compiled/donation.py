"""Donated arrays: given away to a compiled function, which may use their memory for its results.

An Array is immutable, so giving it away is the one thing that can happen to it: its buffer is
replaced by a `Gone`, which raises for whatever is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from operator import not_
from typing import Any, NoReturn

from funct.array import Array
from funct.errors import ArgumentError, DonatedError
from funct.transforms.compiled.arguments import is_array

__all__ = ["Gone", "check_donation", "give_away"]


class Gone:
    """In the place of a buffer that was given away: raises DonatedError for every use, and shows as
    what it is: tracebacks, debuggers and logs print whatever is around."""

    __slots__ = ("_to",)

    def __init__(self, to: str) -> None:
        self._to = to

    def _raise(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise DonatedError(
            f"an array that was donated to {self._to} was used again; its memory is gone",
            fix="use the result instead, or leave the argument out of donate_argnums",
        )

    def __getattr__(self, name: str) -> NoReturn:
        self._raise()

    __array__ = __array_ufunc__ = __array_function__ = __getitem__ = __iter__ = __len__ = _raise
    __bool__ = __int__ = __float__ = __complex__ = __index__ = __array_priority__ = _raise
    __copy__ = __deepcopy__ = __reduce_ex__ = _raise

    def __repr__(self) -> str:
        return f"donated to {self._to}"


def check_donation(name: str, leaves: Sequence[Any], given: Sequence[bool]) -> None:
    """Raise where one array is donated and passed once more in the same call."""
    if not _twice(leaves, given):
        return
    both = zip(leaves, given, strict=True)  # a number or a string may well be there twice
    arrays = [(x, g) for x, g in both if is_array(x)]
    if _twice([x for x, _ in arrays], [g for _, g in arrays]):
        raise ArgumentError(
            f"{name}: a donated array is passed twice in one call",
            fix="pass a copy, or leave the argument out of donate_argnums",
        )


def _twice(leaves: Sequence[Any], given: Sequence[bool]) -> bool:
    donated = [id(x) for x in compress(leaves, given)]
    others = compress(leaves, map(not_, given))
    different = set(donated)
    return len(different) < len(donated) or not different.isdisjoint(map(id, others))


def give_away(name: str, donated: Iterable[Any], kept: Iterable[Any] = ()) -> None:
    """Take the buffers of donated arrays away from them; tracers keep what they stand for, and so
    do those that are kept.
    """
    gone, mine = Gone(name), set(map(id, kept))
    for x in donated:
        if x.__class__ is Array and id(x) not in mine:
            x.data = gone
