"""`config`: what a program may choose once for all calls; one frozen record in a context variable.

A field exists only if something reads it. A new thread starts from the defaults; what is compiled
remembers which fields it read and is compiled again where they differ.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import attrs

from funct.errors import ArgumentError

__all__ = ["Config", "Settings", "config", "cores", "follow"]

_CONVENTIONS = ("torch", "jax")
MOST_THREADS = 4096


_budgets: dict[float, float] = {}


def _convention(given: Any) -> Any:
    if given not in _CONVENTIONS:
        raise ArgumentError(
            f"config: complex_convention must be one of {_CONVENTIONS}, got {given!r}"
        )
    return _CONVENTIONS[_CONVENTIONS.index(given)]  # one object per value: guards compare identity


def cores() -> int:
    """Cores that this process may use: by affinity, by the quota of its control group, by
    `OMP_NUM_THREADS`."""
    affine = getattr(os, "sched_getaffinity", None)
    found = len(affine(0)) if affine else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()[:2]
        if quota != "max":
            found = min(found, max(1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):
        pass  # no such groups here
    wished = os.environ.get("OMP_NUM_THREADS", "")
    return min(found, int(wished)) if wished.isdecimal() and int(wished) else found


def _threads(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_THREADS:
        raise ArgumentError(
            f"config: threads must be an integer from 1 to {MOST_THREADS}, got {given!r}"
        )
    return given


def _yes(given: Any) -> bool:
    if not isinstance(given, bool):
        raise ArgumentError(f"config: deterministic must be True or False, got {given!r}")
    return given


def _budget(given: Any) -> float:
    if not isinstance(given, int | float) or not 0.0 <= given <= 1.0:
        raise ArgumentError(f"config: memory_budget must lie between 0 and 1, got {given!r}")
    return _budgets.setdefault(given, float(given))  # one object per value, as above


@attrs.frozen
class Settings:
    """The record.

    complex_convention: "torch": the gradient of a real function of z is the direction of steepest
    ascent, df/d(Re z) + i df/d(Im z). "jax": its conjugate; pullbacks are plain transposes.

    memory_budget: the part of the bytes that a compiled function keeps for its derivative, of those
    that it keeps at 1. What is not kept is made again in the backward pass. A program that computes
    derivatives itself, `jit(grad(f))`, holds at most this part at once of what it makes, as far as
    that can be had: where it would hold most, values are made again behind that place.

    threads: how many threads compute, BLAS included; all cores of the process by default. Results
    of funct's own kernels have the same bits for any number.

    deterministic: results do not depend on `threads` at all: BLAS, whose order of adding does,
    computes on one thread.
    """

    complex_convention: Literal["torch", "jax"] = attrs.field(
        default="torch", converter=_convention
    )
    memory_budget: float = attrs.field(default=1.0, converter=_budget)
    threads: int = attrs.field(factory=cores, converter=_threads)
    deterministic: bool = attrs.field(default=False, converter=_yes)


_DEFAULTS = Settings()
_current: ContextVar[Settings] = ContextVar("funct.config", default=_DEFAULTS)
_readers: ContextVar[set[str] | None] = ContextVar("funct.config.readers", default=None)


_followers: list[Callable[[Settings], None]] = []


def follow(fun: Callable[[Settings], None]) -> Callable[[Settings], None]:
    """Call fun with the record that holds from now on, whenever this or another thread changes its
    own; in that thread. Not for what decides a result: that is read by `config`."""
    _followers.append(fun)
    return fun


def _put(record: Settings) -> Settings:
    _current.set(record)
    for fun in _followers:
        fun(record)
    return record


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
        raise AttributeError(f"config: no field {name!r}; there is {', '.join(_FIELDS)}")

    def __setattr__(self, name: str, value: Any) -> None:
        _put(_changed({name: value}))

    @contextmanager
    def using(self, **changes: Any) -> Iterator[Settings]:
        """The settings with these fields changed, until the block ends, however it ends.

        Raises: ArgumentError: for a field that does not exist or a value that it may not take.
        """
        before = _current.get()
        try:
            yield _put(_changed(changes))
        finally:
            _put(before)

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


def _field(name: str) -> property:
    return property(lambda self: self.get(name))


_FIELDS = tuple([f.name for f in attrs.fields(Settings)])
for _name in _FIELDS:  # found on the class, at a quarter of the time that __getattr__ takes
    setattr(Config, _name, _field(_name))


def _changed(changes: dict[str, Any]) -> Settings:
    for name in changes:
        if name not in _FIELDS:
            raise ArgumentError(f"config: no field {name!r}; there is {', '.join(_FIELDS)}")
    return attrs.evolve(_current.get(), **changes)


config = Config()
