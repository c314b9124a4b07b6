"""Donated arrays: given away to a compiled function, which may use their memory for its results.

An Array is immutable, so giving it away is the one thing that can happen to it: its buffer is
replaced by a `Gone`, which raises for whatever is asked of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from funct.array import Array
from funct.errors import ArgumentError, DonatedError

__all__ = ["Gone", "check_donation", "give_away"]


class Gone:
    """In the place of a buffer that was given away: raises DonatedError for every use."""

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
    __copy__ = __deepcopy__ = __reduce_ex__ = __repr__ = _raise


def check_donation(name: str, arrays: Sequence[Any], given: Sequence[bool]) -> None:
    """Raise where one array is donated and passed once more in the same call."""
    donated = [x for x, g in zip(arrays, given, strict=True) if g]
    if len({id(x) for x in donated}) < len(donated) or any(
        x is d for d in donated for x, g in zip(arrays, given, strict=True) if not g
    ):
        raise ArgumentError(
            f"{name}: a donated array is passed twice in one call",
            fix="pass a copy, or leave the argument out of donate_argnums",
        )


def give_away(name: str, arrays: Sequence[Any], given: Sequence[bool]) -> None:
    """Take the buffers of donated arrays away from them; tracers keep what they stand for."""
    for x, g in zip(arrays, given, strict=True):
        if g and x.__class__ is Array:
            x.data = Gone(name)
