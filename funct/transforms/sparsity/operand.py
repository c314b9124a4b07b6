"""Operands that carry dependence, and the ways in which it goes from them to a result."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from funct.array import Tensor
from funct.kernels.linalg.sparse import Rows, filled, linked, nothing, union

__all__ = ["Index", "Operand", "Params", "Shape", "all_of", "mixed", "positions", "rows_at"]

Shape = tuple[int, ...]
Index = np.ndarray[Any, Any]
Params = tuple[Any, ...]


class Operand(Struct, frozen=True, eq=False):
    """An operand, and what its elements depend on.

    rows: None for a constant. loose: its zeros may be no zeros elsewhere, though they do not vary
    smoothly with the inputs.
    """

    value: Any
    rows: Rows | None
    loose: bool

    @property
    def shape(self) -> Shape:
        """Its lengths."""
        return tuple([int(n) for n in getattr(self.value, "shape", ())])

    @property
    def at(self) -> Index:
        """The position of each element."""
        return positions(self.shape)

    @property
    def constant(self) -> bool:
        """Whether it is the same wherever the inputs are."""
        return self.rows is None and not self.loose

    def elements(self) -> Any:
        """The elements at this point."""
        return self.value.concrete() if isinstance(self.value, Tensor) else np.asarray(self.value)

    def possible(self) -> Index:
        """Whether each element may be anything but zero."""
        if self.loose:
            return np.ones(self.shape, np.bool_)
        there = self.elements() != 0
        return there if self.rows is None else there | filled(self.rows).reshape(self.shape)


def positions(shape: Shape) -> Index:
    """The place of each element in C order."""
    return np.arange(prod(shape)).reshape(shape)


def all_of(parts: Sequence[Rows], size: int, n: int) -> Rows:
    """What size elements depend on by all parts together."""
    if not parts:
        return nothing(size, n)
    total = parts[0]
    for p in parts[1:]:
        total = union(total, p)
    return total


def rows_at(d: Rows, source: Index, keep: Index | None = None) -> Rows:
    """One row for each position in source, empty where keep does not hold."""
    flat = source.reshape(-1)
    out = np.arange(flat.size)
    if keep is not None and not keep.all():
        out = np.flatnonzero(keep)
        return linked(d, out, flat[out], flat.size)
    same = flat.size == d.shape[0] and bool((flat == out).all())
    return d if same else linked(d, out, flat, flat.size)


def mixed(d: Rows, at: Index, inner: Sequence[int], shape: Shape, outer: Sequence[int]) -> Rows:
    """Each result reads all elements along the inner axes of its operand, whose other axes belong
    to those of the result that are not outer.
    """
    kept = [i for i in range(at.ndim) if i not in inner]
    lead = [m for i, m in enumerate(shape) if i not in outer]
    core = [at.shape[i] for i in inner]
    groups = positions(tuple(lead))
    if core:
        source = np.broadcast_to(at.transpose([*kept, *inner]), (*lead, *core))
        place = np.broadcast_to(groups.reshape(*lead, *(1,) * len(core)), source.shape)
        d = linked(d, place.reshape(-1), source.reshape(-1), groups.size)
    else:
        d = rows_at(d, np.broadcast_to(at, lead))
    wide = groups.reshape([1 if i in outer else m for i, m in enumerate(shape)])
    return rows_at(d, np.broadcast_to(wide, shape))
