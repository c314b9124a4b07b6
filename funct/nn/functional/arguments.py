"""Arguments of windows as torch takes them, brought to one form, and the errors about them."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct.errors import ArgumentError, ShapeError

__all__ = ["batched", "per_axis", "unbatched"]

Ints = int | tuple[int, ...] | list[int]


def per_axis(name: str, argument: str, value: Ints, rank: int, least: int = 1) -> tuple[int, ...]:
    """One int per spatial axis, each at least `least`, from an int or a sequence."""
    given = tuple(value) if isinstance(value, tuple | list) else (value,) * rank
    if len(given) == 1:
        given = given * rank
    if len(given) != rank or any(n.__class__ is not int or n < least for n in given):
        count = "an int" if rank == 1 else f"an int or {rank} ints"
        raise ArgumentError(f"{name}: {argument} must be {count} >= {least}, got {value!r}")
    return given


def batched(name: str, x: Any, rank: int, letters: str) -> tuple[Any, bool]:
    """x (N, C, *S), and whether the batch axis was added here."""
    if len(x.shape) == rank + 2:
        return x, False
    if len(x.shape) != rank + 1:
        raise ShapeError(
            f"{name}: input must have shape (N, C, {letters}) or (C, {letters}), got {x.shape}"
        )
    return xp.expand_dims(x, 0), True  # (1, C, *S)


def unbatched(y: Any, added: bool) -> Any:
    """Undo `batched`."""
    return xp.squeeze(y, 0) if added else y
