"""Arguments as torch takes them, brought to one form, and the errors about them."""

from __future__ import annotations

from typing import Any

import funct.array as xp
from funct import ops
from funct.errors import ArgumentError, MissingKeyError, ShapeError, UnsupportedOperandError

__all__ = [
    "Ints", "Pairs", "Sizes", "batched", "from_begin", "hashable", "needed_key", "per_axis",
    "probability", "refuse_inplace", "shape_of", "spatial_letters", "unbatched",
]  # fmt: skip

Ints = int | tuple[int, ...] | list[int]
Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

_LETTERS = {1: "L", 2: "H, W", 3: "D, H, W"}


def spatial_letters(rank: int) -> str:
    """How errors call the spatial axes: "L", "H, W" or "D, H, W"."""
    return _LETTERS[rank]


def shape_of(x: Any, argument: str = "x") -> Any:
    """The shape of what a layer was called with; its name is told with every error."""
    try:
        return x.shape
    except AttributeError:
        raise UnsupportedOperandError(
            f"{argument} must be a Tensor, got {type(x).__name__}",
            fix=f"funct.array.asarray({argument})" if isinstance(x, list | tuple) else None,
        ) from None


def from_begin(i: Any, n: Any) -> Any:
    """Indices into an axis of length n, which raise where they are negative: those do not count
    from the end, but are moved beyond it.
    """
    if i.__class__ is xp.Array and i.dtype.kind in "iu" and i.size:
        d = i.data
        if d.item(d.argmin()) >= 0:
            return i
    if i.dtype.itemsize < 8:
        i = xp.astype(i, xp.int64)  # a narrow dtype may have no number n
    return ops.where(ops.less(i, 0), n, i)


def per_axis(name: str, argument: str, value: Ints, rank: int, least: int = 1) -> Sizes:
    """One int per spatial axis, each at least `least`, from an int or a sequence."""
    if value.__class__ is int and value >= least:
        return (value,) * rank
    given = tuple(value) if isinstance(value, tuple | list) else (value,) * rank
    if len(given) == 1:
        given = given * rank
    if len(given) != rank or any(n.__class__ is not int or n < least for n in given):
        count = "an int" if rank == 1 else f"an int or {rank} ints"
        raise ArgumentError(f"{name}: {argument} must be {count} >= {least}, got {value!r}")
    return given


def batched(name: str, x: Any, rank: int) -> tuple[Any, bool]:
    """x (N, C, *S), and whether the batch axis was added here."""
    if len(x.shape) == rank + 2:
        return x, False
    if len(x.shape) != rank + 1:
        letters = _LETTERS[rank]
        raise ShapeError(
            f"{name}: input must have shape (N, C, {letters}) or (C, {letters}), got {x.shape}"
        )
    return xp.expand_dims(x, 0), True  # (1, C, *S)


def unbatched(y: Any, added: bool) -> Any:
    """Undo `batched`."""
    return xp.squeeze(y, 0) if added else y


def refuse_inplace(name: str, inplace: bool) -> None:
    """torch's `inplace` may be said, as long as it is False."""
    if inplace:
        raise ArgumentError(
            f"{name}: inplace must be False, got {inplace!r}: arrays are immutable",
            fix="leave inplace out and use what is returned",
        )


def hashable(value: Any) -> Any:
    """value, a tuple where it was a list: fit for a static field."""
    return tuple(value) if isinstance(value, list) else value


def probability(name: str, p: float) -> float:
    """p, which must lie in [0, 1]."""
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"{name}: p must be between 0 and 1, got {p}")
    return p


def needed_key(name: str, key: Any, argument: str = "key", *, always: bool = False) -> Any:
    """The key of a function that is about to draw random numbers.

    always: it draws in evaluation too.
    """
    if key is None:
        give = f"pass {argument}=random.key(seed)"
        raise MissingKeyError(
            f"{name}: a key is needed" + " in training" * (not always),
            fix=give if always else f"{give}, or call nn.eval_mode(model) first",
        )
    return key
