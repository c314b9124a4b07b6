"""`config`: what a program may choose once for all calls; one frozen record in a context variable.

A field exists only if something reads it. A new thread starts from the defaults; what is compiled
remembers which fields it read and is compiled again where they differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import attrs

from funct.errors import ArgumentError

__all__ = ["Config", "Settings", "config"]

_CONVENTIONS = ("torch", "jax")


def _convention(given: Any) -> Any:
    if given not in _CONVENTIONS:
        raise ArgumentError(
            f"config: complex_convention must be one of {_CONVENTIONS}, got {given!r}"
        )
    return _CONVENTIONS[_CONVENTIONS.index(given)]  # one object per value: guards compare identity


@attrs.frozen
class Settings:
    """The record.

    complex_convention: "torch": the gradient of a real function of z is the direction of steepest
    ascent, df/d(Re z) + i df/d(Im z). "jax": its conjugate; pullbacks are plain transposes.
    """

    complex_convention: Literal["torch", "jax"] = attrs.field(
        default="torch", converter=_convention
    )


_DEFAULTS = Settings()
_current: ContextVar[Settings] = ContextVar("funct.config", default=_DEFAULTS)
_readers: ContextVar[set[str] | None] = ContextVar("funct.config.readers", default=None)


class Config:
    """The settings of this context. Fields are read as attributes; assigning replaces the record.

    Example:
        >>> import funct as ft
        >>> with ft.config.using(complex_convention="jax"):
        ...     ft.config.complex_convention
        'jax'
        >>> ft.config.complex_convention
        'torch'
    """

    __slots__ = ()

    @property
    def record(self) -> Settings:
        """The frozen record that holds now."""
        return _current.get()

    def get(self, name: str) -> Any:
        """The value of a field; `remembering` hears of it."""
        readers = _readers.get()
        if readers is not None:
            readers.add(name)
        return getattr(_current.get(), name)

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS:
            raise AttributeError(f"config: no field {name!r}; there is {', '.join(_FIELDS)}")
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        _current.set(_changed({name: value}))

    @contextmanager
    def using(self, **changes: Any) -> Iterator[Settings]:
        """The settings with these fields changed, until the block ends, however it ends.

        Raises: ArgumentError: for a field that does not exist or a value that it may not take.
        """
        token = _current.set(_changed(changes))
        try:
            yield _current.get()
        finally:
            _current.reset(token)

    @contextmanager
    def remembering(self) -> Iterator[set[str]]:
        """The names of the fields that are read in the block."""
        outer, inner = _readers.get(), set[str]()
        token = _readers.set(inner)
        try:
            yield inner
        finally:
            _readers.reset(token)
            if outer is not None:
                outer |= inner

    def __repr__(self) -> str:
        return repr(_current.get()).replace("Settings", "config", 1)


_FIELDS = tuple([f.name for f in attrs.fields(Settings)])


def _changed(changes: dict[str, Any]) -> Settings:
    for name in changes:
        if name not in _FIELDS:
            raise ArgumentError(f"config: no field {name!r}; there is {', '.join(_FIELDS)}")
    return attrs.evolve(_current.get(), **changes)


config = Config()
