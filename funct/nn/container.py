"""Containers: Sequential."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

from funct import random
from funct.errors import IndexOutOfBoundsError, UnsupportedOperandError
from funct.nn.module import Module, is_stateful, layout, needs_key

__all__ = ["Sequential"]


class Sequential(Module):
    """Call layers one after the other.

    Args: layers: any number of layers. Their leaves are named by position, "0.weight", as in torch.
    Raises: UnsupportedOperandError: when an argument is no layer.
    Notes: where a layer keeps state (`nn.is_stateful`), a call returns (y, the new Sequential).
    Where a layer draws random numbers, a call needs `key`; layer i gets fold_in(key, i).
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> k1, k2 = ft.random.split(ft.random.key(0))
        >>> model = nn.Sequential(nn.Linear(4, 8, key=k1), nn.ReLU(), nn.Linear(8, 2, key=k2))
        >>> model(xp.ones((3, 4), dtype=xp.float32)).shape
        (3, 2)
        >>> list(nn.state_dict(model))
        ['0.weight', '0.bias', '2.weight', '2.bias']
        >>> model[:2]
        Sequential(
          (0): Linear(in_features=4, out_features=8, weight=float32[8, 4], bias=float32[8]),
          (1): ReLU()
        )
    """

    layers: tuple[Any, ...]

    def __init__(self, *layers: Module) -> None:
        for i, layer in enumerate(layers):
            if not isinstance(layer, Module):
                raise UnsupportedOperandError(
                    f"Sequential: layer {i} must be a Module, got {type(layer).__name__}"
                )
        self.__attrs_init__(layers)

    def _flatten(self) -> tuple[Any, Any, Any]:
        return self.layers, None, range(len(self.layers))

    @classmethod
    def _unflatten(cls, static: Any, children: Any) -> Any:
        new = object.__new__(cls)  # no check: the children may be anything
        new.__dict__["layers"] = tuple(children)
        return new

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """The last layer's output; with a layer that keeps state, (y, the new Sequential)."""
        new: list[Any] = []
        kinds = self._layer_kinds()
        for i, (layer, (stateful, draws)) in enumerate(zip(self.layers, kinds, strict=True)):
            given = {"key": _own_key(key, i)} if draws else {}
            if stateful:
                x, layer = layer(x, **given)
            else:
                x = layer(x, **given)
            new.append(layer)
        return (x, self.evolve(layers=tuple(new))) if any(s for s, _ in kinds) else x

    def _layer_kinds(self) -> tuple[tuple[bool, bool], ...]:
        """(is stateful, needs a key) of each layer, kept: asking costs more than a small layer."""
        kinds: tuple[tuple[bool, bool], ...] | None = self.__dict__.get("_kinds_of_layers")
        if kinds is None:
            kinds = tuple([(is_stateful(m), needs_key(m)) for m in self.layers])
            self.__dict__["_kinds_of_layers"] = kinds
        return kinds

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(*self.layers[index])
        if not -len(self.layers) <= index < len(self.layers):
            raise IndexOutOfBoundsError(
                f"Sequential: index {index} is out of range for {len(self.layers)} layers"
            )
        return self.layers[index]

    def __repr__(self) -> str:
        return layout("Sequential", [(f"({i}): ", m) for i, m in enumerate(self.layers)])


def _own_key(key: Any, i: int) -> Any:
    return None if key is None else random.fold_in(key, i)  # the layer says that its key is missing
