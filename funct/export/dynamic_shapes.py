"""Which axes of the arguments stay symbolic: reads `dynamic_shapes`, a tree beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from funct import pytree
from funct.errors import ExportError
from funct.graph import Guard
from funct.serialize import is_symbol_name

__all__ = ["Dim", "DynamicShapes"]


@attrs.frozen
class Dim:
    """A symbolic axis length with bounds, both inclusive; max None: unbounded.

    Raises: ExportError: for a name that is no identifier, bounds that are no lengths, and min above
    max; in `export`, for an example out of bounds.
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> batch = export.Dim("batch", min=1, max=64)
        >>> x = xp.ones((4, 3))
        >>> program = export.export(lambda x: 2.0 * x, (x,), dynamic_shapes=({0: batch},))
        >>> program(xp.ones((64, 3))).shape  # more raise a GuardError
        (64, 3)
    """

    name: str
    min: int = 0
    max: int | None = None

    def __attrs_post_init__(self) -> None:
        if not is_symbol_name(self.name):
            raise ExportError(
                f"export.Dim: a symbolic size must be named by an identifier, got {self.name!r}"
            )
        _check_length(self, "min", self.min)
        if self.max is not None:
            _check_length(self, "max", self.max)
            if self.max < self.min:
                raise ExportError(
                    f"export.Dim: max of {self.name} must be at least min, got min {self.min} and "
                    f"max {self.max}"
                )


def _check_length(dim: Dim, which: str, n: Any) -> None:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise ExportError(f"export.Dim: {which} of {dim.name} must be an int from 0 on, got {n!r}")


Axes = dict[int, Dim]


@attrs.frozen
class DynamicShapes:
    """Per leaf of the arguments, axis -> Dim."""

    leaves: tuple[Axes, ...]

    @classmethod
    def read(cls, args: tuple[Any, ...], given: Any, count: int) -> DynamicShapes:
        """From what the user gave for positional arguments; count: leaves of all arguments."""
        if given is None:
            return cls(({},) * count)
        specs = tuple(given) if isinstance(given, tuple | list) else (given,)
        if len(specs) > len(args):
            raise ExportError(
                f"export: dynamic_shapes has {len(specs)} entries for {len(args)} arguments"
            )
        found = [axes for arg, spec in zip(args, specs, strict=False) for axes in _read(arg, spec)]
        return cls((*found, *({},) * (count - len(found))))

    def names(self) -> list[dict[int, str] | None]:
        """Per leaf, axis -> name."""
        return [{axis: d.name for axis, d in axes.items()} for axes in self.leaves]

    def guards(self, examples: Sequence[Any]) -> tuple[Guard, ...]:
        """The bounds, as decisions that a run must meet; the examples must meet them too."""
        lengths: dict[str, int] = {}
        texts: list[str] = []
        for axes, x in zip(self.leaves, examples, strict=True):
            for axis, d in axes.items():
                n = x.shape[axis]
                if lengths.setdefault(d.name, n) != n:
                    raise ExportError(
                        f"export: the size {d.name!r} is {lengths[d.name]} and {n} in the examples"
                    )
                if n < d.min or (d.max is not None and n > d.max):
                    raise ExportError(f"export: an example has {d.name} = {n}, outside of {d}")
                texts += [f"{d.name} >= {d.min}"] * (d.min > 0)
                texts += [f"{d.name} <= {d.max}"] * (d.max is not None)
        return tuple([Guard("size", None, text) for text in dict.fromkeys(texts)])


def _read(arg: Any, spec: Any) -> list[Axes]:
    """Axes of each leaf of one argument."""
    if spec is None:
        return [{} for _ in pytree.leaves(arg)]
    inner = pytree.one_level(arg)
    if inner is None:
        return [_axes(arg, spec)]
    pairs = inner[0]
    if isinstance(spec, Mapping):
        known = {str(k): v for k, v in spec.items()}
        specs = [known.get(name) for name, _ in pairs]
        fits = known.keys() <= {name for name, _ in pairs}
    else:
        specs = list(spec) if isinstance(spec, tuple | list) else []
        fits = len(specs) == len(pairs)
    if not fits:
        raise ExportError(
            f"export: dynamic_shapes {spec!r} does not have the structure of its argument"
        )
    return [axes for (_, a), s in zip(pairs, specs, strict=True) for axes in _read(a, s)]


def _axes(x: Any, spec: Any) -> Axes:
    rank = len(getattr(x, "shape", ()))
    if not isinstance(spec, Mapping | tuple | list):
        raise ExportError(f"export: the axes of an array are a dict or a tuple, got {spec!r}")
    pairs = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
    found: Axes = {}
    for axis, d in pairs:
        if d is None:
            continue
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise ExportError(
                f"export: dynamic_shapes names axis {axis!r} of an array of rank {rank}"
            )
        found[axis % rank] = _dim(d)
    return found


def _dim(d: Any) -> Dim:
    return d if isinstance(d, Dim) else Dim(d)
