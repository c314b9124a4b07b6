"""Layers as values: `Module`, the frozen record that every layer is, and walks over models.

A layer is a pytree. Its fields are of three kinds: parameters (plain fields: arrays, layers,
containers of them), buffers (running statistics: arrays that no optimizer touches) and static
fields (hyper-parameters: part of the structure, so that jit specialises on them). Nothing is ever
changed in place: `evolve` gives a changed copy, and a layer that keeps state returns its successor.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

import attrs

from funct import tree
from funct.core import Value
from funct.errors import ArgumentError, ImmutableError
from funct.ops.refusals import refuse
from funct.source import is_ours, known_as_layer

__all__ = [
    "Module", "buffer", "eval_mode", "field_kinds", "is_stateful", "layout", "named_leaves",
    "named_modules", "needs_key", "static", "train_mode",
]  # fmt: skip

M = TypeVar("M")

_BUFFER = "funct_buffer"
_OURS = __name__.partition(".")[0]


def static(**kwargs: Any) -> Any:
    """A field that is structure: a number, text or tuple that hashes. Takes attrs' `default`.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> class Scale(nn.Module):
        ...     weight: xp.Tensor
        ...     power: int = nn.static(default=2)
        ...     def __call__(self, x):
        ...         return self.weight * x**self.power
        >>> ft.tree.leaves(Scale(xp.asarray(2.0))), float(Scale(xp.asarray(2.0))(3.0))
        ([Array(2., dtype=float64)], 18.0)
    """
    return tree.static_field(**kwargs)


def buffer(**kwargs: Any) -> Any:
    """A field for an array that is state and no parameter. Takes attrs' `default`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> class Counter(nn.Module):
        ...     seen: xp.Tensor = nn.buffer()
        >>> list(nn.named_leaves(Counter(xp.asarray(3))))
        [('seen', 'buffer', Array(3, dtype=int64))]
    """
    return attrs.field(metadata={_BUFFER: True}, **kwargs)


@dataclass_transform(frozen_default=True, field_specifiers=(attrs.field, static, buffer))
class Module:
    """Base of all layers: a subclass is a frozen attrs record and a pytree.

    Fields are declared as in attrs; a class that declares some and has no `__init__` gets one that
    takes them in order. An `__init__` of its own ends with `self.__attrs_init__(...)`, which takes
    the same.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> class Scale(nn.Module):
        ...     factor: ft.Tensor
        ...     power: int = nn.static(default=1)
        ...
        ...     def __call__(self, x):
        ...         return x * self.factor**self.power
        >>> layer = Scale(xp.asarray(3.0), power=2)
        >>> layer
        Scale(factor=float64[], power=2)
        >>> float(ft.grad(lambda m: m(xp.asarray(1.0)))(layer).factor)
        6.0
    """

    if TYPE_CHECKING:

        def __attrs_init__(self, *args: Any, **fields: Any) -> None: ...

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        written = "__init__" in cls.__dict__
        if "__call__" in cls.__dict__ and is_ours(cls.__call__.__code__):
            known_as_layer(cls.__call__)
        attrs.frozen(cls, slots=False, eq=False, repr=False)  # in place, as there are no slots
        base = cls.__base__
        names = list(field_kinds(cls))
        if not written and base is not Module and names == list(field_kinds(base)):  # type: ignore[arg-type]
            del cls.__init__  # without fields of its own it is made as its base is
        if "__init__" in cls.__dict__ and cls.__module__.partition(".")[0] == _OURS:
            cls.__init__ = _named(cls.__init__)  # type: ignore[method-assign]
        cls.__setattr__ = Module.__setattr__  # type: ignore[method-assign]
        if "_flatten" in cls.__dict__:
            tree.register(cls, cls._flatten, cls._unflatten)
        else:
            tree.register(cls)

    def _flatten(self) -> tuple[Any, Any, Any]:
        """Children, static, names: for a class whose children are not named as its fields."""
        raise NotImplementedError

    @classmethod
    def _unflatten(cls, static: Any, children: Any) -> Any:
        raise NotImplementedError

    @property
    def keeps_state(self) -> bool:
        """Whether this layer itself, as it is set now, returns (y, layer)."""
        return False

    @property
    def draws(self) -> bool:
        """Whether this layer itself, as it is set now, draws random numbers from `key`."""
        return False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The layer's output; every subclass says of what."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__")

    def evolve(self: M, **changes: Any) -> M:
        """A copy with these fields changed; nothing is checked or converted.

        Raises: ArgumentError: when a name is no field.
        Example:
            >>> from funct import nn
            >>> nn.Dropout(0.5).evolve(p=0.1)
            Dropout(p=0.1, training=True)
        """
        names = field_kinds(type(self))
        for name in changes:
            if name not in names:
                raise ArgumentError(f"{type(self).__name__}.evolve: there is no field {name!r}")
        new = object.__new__(type(self))
        new.__dict__.update({n: getattr(self, n) for n in names}, **changes)
        return new

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        cls = type(self).__name__
        made = name in self.__dict__  # else __init__ is running, or the name is no field
        fix = f"declare {name} in {cls}, and end its __init__ by self.__attrs_init__({name}=…)"
        raise ImmutableError(
            f"{cls}.{name} = …: layers are immutable",
            fix=f"layer = layer.evolve({name}=…)" if made else fix,
        )

    def __repr__(self) -> str:
        pairs = [(n, getattr(self, n)) for n in field_kinds(type(self))]
        return layout(type(self).__name__, [(f"{n}=", v) for n, v in pairs])


def _named(init: Callable[..., None]) -> Callable[..., None]:
    """init, which refuses what it cannot serve by the name of the layer that is made."""

    @functools.wraps(init)
    def make(self: Any, *args: Any, **fields: Any) -> None:
        try:
            init(self, *args, **fields)
        except Exception as error:
            trace = error.__traceback__
            if trace is not None and trace.tb_next is not None:  # else Python tells why
                names = list(inspect.signature(init).parameters)[1:]
                given = {**dict(zip(names, args, strict=False)), **fields}
                refuse(type(self).__name__, error, given)
            raise

    known_as_layer(make, made=True)
    return make


def layout(name: str, parts: list[tuple[str, Any]]) -> str:
    """One line for plain fields, one indented line for each field that holds layers."""
    texts = [label + _text(value) for label, value in parts]
    if not any(_holds_layers(value) for _, value in parts):
        return f"{name}({', '.join(texts)})"
    lines = [("  " + text).replace("\n", "\n  ") for text in texts]
    return f"{name}(\n" + ",\n".join(lines) + "\n)"


def _holds_layers(value: Any) -> bool:
    return any(isinstance(m, Module) for _, m in named_modules(value))


def _text(value: Any) -> str:
    if isinstance(value, Value):
        return f"{value.dtype}[{', '.join(str(n) for n in value.shape)}]"
    if isinstance(value, list | tuple) and tree.leaves(value) != list(value):
        inner = ", ".join(_text(v) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


def field_kinds(cls: type) -> dict[str, str]:
    """Field name -> "parameter", "buffer" or "static", in order, of a Module class."""
    found: dict[str, str] | None = cls.__dict__.get("_kinds")
    if found is None:
        fields = attrs.fields(cls) if attrs.has(cls) else ()  # Module itself has none
        found = {f.name: _kind(f.metadata) for f in fields}
        cls._kinds = found  # type: ignore[attr-defined]
    return found


def _kind(metadata: Any) -> str:
    if metadata.get(_BUFFER):
        return "buffer"
    return "static" if tree.is_static(metadata) else "parameter"


def named_leaves(model: Any) -> Iterator[tuple[str, str, Any]]:
    """(dotted path, "parameter" or "buffer", leaf) of every leaf, in the order of `tree.leaves`.

    Example:
        >>> import funct as ft
        >>> from funct import nn
        >>> [(path, kind) for path, kind, _ in nn.named_leaves(nn.BatchNorm1d(3))][:3]
        [('weight', 'parameter'), ('bias', 'parameter'), ('running_mean', 'buffer')]
    """
    return _walk_leaves(model, "", "parameter")


def _walk_leaves(node: Any, path: str, kind: str) -> Iterator[tuple[str, str, Any]]:
    level = tree.one_level(node)
    if level is None:
        yield path, kind, node
        return
    kinds = field_kinds(type(node)) if isinstance(node, Module) else {}
    for name, child in level[0]:
        below = "buffer" if kinds.get(name) == "buffer" else kind
        yield from _walk_leaves(child, f"{path}.{name}" if path else name, below)


def named_modules(model: Any, path: str = "") -> Iterator[tuple[str, Module]]:
    """(dotted path, layer) of every layer in a model or container, outer ones first.

    Example:
        >>> from funct import nn
        >>> model = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Dropout(0.5)))
        >>> [(path, type(layer).__name__) for path, layer in nn.named_modules(model)]
        [('', 'Sequential'), ('0', 'ReLU'), ('1', 'Sequential'), ('1.0', 'Dropout')]
    """
    if isinstance(model, Module):
        yield path, model
    level = tree.one_level(model)
    for name, child in level[0] if level is not None else ():
        yield from named_modules(child, f"{path}.{name}" if path else name)


def is_stateful(model: Any) -> bool:
    """Whether a call returns (y, model): some layer in it keeps state, as batch norm in training.

    Example:
        >>> from funct import nn
        >>> layer = nn.BatchNorm1d(3)
        >>> nn.is_stateful(layer), nn.is_stateful(nn.eval_mode(layer))
        (True, False)
    """
    return any(m.keeps_state for _, m in named_modules(model))


def needs_key(model: Any) -> bool:
    """Whether a call needs `key`: some layer in it draws random numbers, as dropout in training.

    Example:
        >>> from funct import nn
        >>> model = nn.Sequential(nn.ReLU(), nn.Dropout(0.5))
        >>> nn.needs_key(model), nn.needs_key(nn.eval_mode(model))
        (True, False)
    """
    return any(m.draws for _, m in named_modules(model))


def eval_mode(model: M) -> M:
    """The model for inference: every layer's static field `training` is False.

    Example:
        >>> from funct import nn
        >>> nn.eval_mode(nn.Dropout(0.5))
        Dropout(p=0.5, training=False)
    """
    return _map_modules(lambda m: _with_mode(m, False), model)


def train_mode(model: M) -> M:
    """The model for training: every layer's static field `training` is True.

    Example:
        >>> from funct import nn
        >>> nn.train_mode(nn.eval_mode(nn.Dropout(0.5))).training
        True
    """
    return _map_modules(lambda m: _with_mode(m, True), model)


def _with_mode(layer: Module, training: bool) -> Module:
    kinds = field_kinds(type(layer))
    return layer.evolve(training=training) if kinds.get("training") == "static" else layer


def _map_modules(fun: Callable[[Module], Module], node: Any) -> Any:
    """fun of every layer, inner ones first."""
    level = tree.one_level(node)
    if level is None:
        return node
    pairs, build = level
    new = build([_map_modules(fun, child) for _, child in pairs])
    return fun(new) if isinstance(new, Module) else new
